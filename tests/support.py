"""Hooks, tools and watchers that several test files build by hand."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import IO, Any

import anyio
import pytest
from hypothesis import settings

from agent_hooks import HookAPI, HookError, HookRunner, LoadedHook, ToolCall, ToolOutput
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.trust.manifest import TrustError
from agent_hooks.trust.place import find_place
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.repository import project_key
from agent_hooks.values.content import ToolCallContent
from agent_hooks.values.tool import OnUpdate

ROOT = Path(__file__).parent.parent
PATIENCE = 60.0
"""Seconds that a test waits for an event, long enough for a busy machine."""
EXAMPLES = 50
"""How many examples a property gets at night, unless `examples` says otherwise."""


def examples(number: int) -> settings:
    """Return settings with that many examples at night, fewer by day, and more in a search."""
    assert settings.default
    usual = settings.default.max_examples
    return settings(max_examples=max(number, usual) if usual > EXAMPLES else number * usual // EXAMPLES)


def unmeasured() -> dict[str, str]:
    """Return the environment without the measurement of coverage, which imports modules of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def approve(directory: Path | str) -> None:
    """Approve the projects that apply to a directory, with any contents: most tests are about other things than trust."""
    store = Trust().store()
    projects = (str(directory), *find_place(str(directory)).projects)
    for key, project in {project_key(project): project for project in projects}.items():
        if key not in store.entries or not store.entries[key].always:
            # Some tests break the agent home.
            with suppress(TrustError):
                store.set_always(key, project, always=True)


def until(condition: Callable[[], object]) -> None:
    """Wait for a change that another process makes."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def eager_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop whose tasks take their first step at once."""
    loop = asyncio.new_event_loop()
    loop.set_task_factory(getattr(asyncio, "eager_task_factory", None))
    return loop


BACKENDS: list[Any] = [
    pytest.param(("asyncio", {}), id="asyncio"),
    pytest.param(("asyncio", {"debug": True}), id="debug"),
    pytest.param(("trio", {}), id="trio"),
]
ASYNCIO = BACKENDS[:2]
if sys.version_info >= (3, 12):
    BACKENDS.append(pytest.param(("asyncio", {"loop_factory": eager_loop}), id="eager"))
try:
    import uvloop  # type: ignore[import-not-found,unused-ignore]  # noqa: F401  # not a dependency; tested where it is installed
except ImportError:  # pragma: no cover  # depends on the machine
    pass
else:
    BACKENDS.append(pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"))
    ASYNCIO.append(BACKENDS[-1])

everywhere = pytest.mark.parametrize("anyio_backend", BACKENDS)
on_asyncio = pytest.mark.parametrize("anyio_backend", ASYNCIO)


def hook_of(register: Callable[[HookAPI], object], path: str = "hook.py") -> LoadedHook:
    """Return the hook that `register` makes, as if it had been loaded from `path`."""
    api = HookAPI(path)
    register(api)
    return LoadedHook(path, path, PurePath(path).stem, api)


def hook_on(event: str, *handlers: Callable[..., Any], path: str = "hook.py", **options: Any) -> LoadedHook:
    """Return a hook with these handlers of one event."""

    def register(api: HookAPI) -> None:
        on: Any = api.on
        for handler in handlers:
            on(event, handler, **options)

    return hook_of(register, path)


def runner_of(*hooks: LoadedHook, **options: Any) -> tuple[HookRunner, list[HookError]]:
    """Return a runner of these hooks, and the list that its failures go to."""
    runner = HookRunner(hooks, cwd=".", **options)
    errors: list[HookError] = []
    runner.on_error(errors.append)
    return runner, errors


def call_of(command: str = "ls", tool: str = "bash") -> ToolCall:
    """Return the event of a tool call."""
    return ToolCall(tool_name=tool, tool_call_id="1", input={"command": command})


class EchoTool:
    """A tool that keeps its inputs and answers with its command."""

    description = "Echo the command."

    def __init__(self, name: str = "bash", body: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.name = name
        self.input_schema: dict[str, Any] = {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        }
        self.inputs: list[dict[str, Any]] = []
        self._body = body

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Keep the input, run the body if there is one, and answer."""
        self.inputs.append(input)
        if self._body is not None:
            output = await self._body(input)
            return output if output is not None else ToolOutput("done")
        return ToolOutput(f"ran {input['command']}", {"command": input["command"]})


class Endless:
    """An async function that begins and runs until it is cancelled: a tool's body, a handler, an answer of the person."""

    def __init__(self) -> None:
        self.begun = anyio.Event()

    async def __call__(self, *args: object) -> Any:
        """Begin."""
        self.begun.set()
        await anyio.sleep_forever()


class SilentView:
    """A view that shows nothing; a test overrides the methods that it needs."""

    def run_started(self, text: str, source: str | None) -> None: ...
    def run_ended(self, error: str | None, aborted: bool) -> None: ...
    def injected(self, text: str, source: str | None) -> None: ...
    def text(self, delta: str) -> None: ...
    def thinking(self, delta: str) -> None: ...
    def tool_judged(self, call: ToolCallContent) -> None: ...
    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None: ...
    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None: ...
    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None: ...
    def warning(self, text: str) -> None: ...


def first_line(pipe: IO[bytes]) -> bytes:
    """Wait for the first output of a program, and return its line."""
    assert select.select([pipe], [], [], PATIENCE)[0], f"no output came for {PATIENCE:g} s"
    return pipe.readline()


async def gone(pid: int) -> None:
    """Wait until a process has ended; a zombie, whose parent has not collected its exit code yet, has ended."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                return
            if state == "Z":
                return
            await anyio.sleep(0.005)


def wait_for_file(path: Path, text: str) -> None:
    """Wait until a file holds a text."""
    end = time.monotonic() + PATIENCE
    while not path.exists() or text not in path.read_text():
        assert time.monotonic() < end, f"{path} never held {text!r}"
        time.sleep(0.01)
