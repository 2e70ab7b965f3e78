"""A session host for tests: the puppet, one tool called bash, a real session file, and a view that keeps its calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from agent_hooks import HookAPI, HookRunner, LoadedHook
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import ModelRequest, Piece
from agent_hooks.host.models.puppet import Puppet
from agent_hooks.host.session import Session
from agent_hooks.testing import RecordedEvents
from agent_hooks.ui.base import UI
from support import EchoTool, SilentView, hook_of


class WatchedPuppet(Puppet):
    """The puppet, which keeps its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.requests.append(request)
        async with aclosing(super().stream(request)) as pieces:
            async for piece in pieces:
                yield piece


class Watched(SilentView):
    """A view that keeps the lines that matter to a person."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run_started(self, text: str, source: str | None) -> None:
        self.seen.append(f"started {text} by {source}")

    def run_ended(self, error: str | None, aborted: bool) -> None:
        self.seen.append(f"ended {error} aborted={aborted}")

    def injected(self, text: str, source: str | None) -> None:
        self.seen.append(f"injected {text} by {source}")

    def warning(self, text: str) -> None:
        self.seen.append(f"warning {text}")

    @property
    def warnings(self) -> list[str]:
        return [text.removeprefix("warning ") for text in self.seen if text.startswith("warning ")]


class Stage(NamedTuple):
    """A host with its runner, events, view and model; `path` is the file of its first session."""

    host: SessionHost
    runner: HookRunner
    events: RecordedEvents
    view: Watched
    model: Any
    session: Session
    tool: EchoTool

    @property
    def path(self) -> Path:
        assert self.session.path is not None
        return self.session.path


def stage(
    project: Path,
    *registers: Callable[[HookAPI], Any] | LoadedHook,
    model: Any = None,
    tool: EchoTool | None = None,
    ui: UI | None = None,
    session: Session | None = None,
    mode: Any = "interactive",
    **options: Any,
) -> Stage:
    """Return a host with these hooks, called `hook0.py`, `hook1.py`, …, not entered yet."""
    hooks = [
        each if isinstance(each, LoadedHook) else hook_of(each, f"hook{number}.py")
        for number, each in enumerate(registers)
    ]
    runner = HookRunner(hooks, cwd=project, ui=ui, mode=mode)
    view = Watched()
    model = model or WatchedPuppet()
    tool = tool or EchoTool()
    session = session or Session.create(str(project))
    events = RecordedEvents(runner)
    host = SessionHost(runner=runner, model=model, tools=[tool], session=session, view=view, **options)
    return Stage(host, runner, events, view, model, session, tool)
