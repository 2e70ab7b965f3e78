"""The sessions of a server: when they end, and that nothing of them stays in memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import HookRunner
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Bridge, Happening
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.server.opened import Opened
from agent_hooks.server.sessions import Sessions
from agent_hooks.server.sources import Sources
from agent_hooks.server.tasks import Tasks
from agent_hooks.trust.place import Place
from server.test_server_protocol import answer_of, request, serving
from support import PATIENCE

CLAUDE = open_bridge("claude-code")
CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}
HOOK = """
    import anyio

    class State:
        pass

    def register(api):
        state = State()

        @api.on("session")
        async def session(event, ctx):
            with open({marks!r}, "a") as file:
                file.write(f"{{ctx.session_id}} {{event.reason}}\\n")

        @api.on("tool_call")
        def judge(event, ctx):
            state.last = event, ctx

        @api.on("tool_call")
        async def wait(event, ctx):
            await anyio.sleep(0)

        api.start_task(anyio.sleep_forever)
"""


class LoadingOpener:
    """Opens each session with hooks that are loaded from a file, and holds weak references to them."""

    plain = False

    def __init__(self, hook: Path) -> None:
        self.opened: list[weakref.ref[Any]] = []
        self._hook = hook
        self._session_id: str | None = None

    def __call__(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> LoadingOpener:
        """Find the hook."""
        self._session_id = happening.session_id
        return self

    async def open(self) -> Opened:
        """Load the hook."""
        loaded = await load_hooks([self._hook], cwd=self._hook.parent)
        assert not loaded.errors
        ui = BridgeUI()
        runner = HookRunner(loaded, cwd="/", ui=ui, mode="bridge", session_id=self._session_id)
        bridging = Bridging(runner, ui, resident=True)
        api = loaded.hooks[0].api
        function = next(iter(loaded.hooks[0].handlers["tool_call"])).function
        self.opened += map(weakref.ref, (runner, bridging, ui, api, function))
        return Opened(runner, bridging, Sources([], []), Place("/", ()))

    def alive(self) -> int:
        """Return the number of objects that are still in memory."""
        gc.collect()
        return sum(reference() is not None for reference in self.opened)


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Return the file to which the hook writes the session events that it gets."""
    return tmp_path / "marks"


@pytest.fixture
def opener(tmp_path: Path, marks: Path) -> LoadingOpener:
    """Return an opener that loads the hook."""
    hook = tmp_path / "hook.py"
    hook.write_text(textwrap.dedent(HOOK.format(marks=str(marks))))
    return LoadingOpener(hook)


def happening(name: str, session: str, **fields: Any) -> Happening:
    """Return an event of a session."""
    return CLAUDE.decode({**CALL, "hook_event_name": name, "session_id": session, **fields})


async def until_ended(opener: LoadingOpener) -> None:
    """Wait until nothing of any session is in memory."""
    with anyio.fail_after(PATIENCE):
        while opener.alive():
            await anyio.sleep(0.01)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
class TestSessions:
    """In a task group of the server's event loop."""

    async def test_nothing_of_a_session_that_has_ended_stays_in_memory(
        self, opener: LoadingOpener, tmp_path: Path
    ) -> None:
        """The runner is collected, and so are the hooks' own objects."""
        async with serving(tmp_path, opening=opener) as server:

            async def send(name: str, session: str, **fields: Any) -> None:
                payload = {**CALL, "hook_event_name": name, "session_id": session, **fields}
                await answer_of(server, request(payload, name))

            for number in range(3):
                await send("PreToolUse", f"s{number}")
                await send("PostToolUse", f"s{number}", tool_response="done")
            assert opener.alive() == len(opener.opened) == 15
            for number in range(3):
                await send("SessionEnd", f"s{number}", reason="other")
            assert server.status()["sessions"] == 0
            await until_ended(opener)

    async def test_a_session_whose_process_is_unknown_ends_when_it_is_idle(
        self, opener: LoadingOpener, marks: Path
    ) -> None:
        """No event would ever end it, while other sessions keep the server running; the next event loads its hooks."""
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        alive = {"CLAUDE_PID": str(os.getpid())}
        async with anyio.create_task_group() as group:
            tasks.use(group)
            await sessions.answer(CLAUDE, happening("PreToolUse", "unknown"), {})
            await sessions.answer(CLAUDE, happening("PreToolUse", "known"), alive)
            sessions.end_abandoned(60)
            assert len(sessions) == 2
            sessions.end_abandoned(0)
            assert len(sessions) == 1
            with anyio.fail_after(PATIENCE):
                while "unknown shutdown" not in marks.read_text():
                    await anyio.sleep(0.01)
            await sessions.answer(CLAUDE, happening("PreToolUse", "unknown"), {})
            await sessions.end()
        *lines, one, other = marks.read_text().splitlines()
        assert lines == ["unknown start", "known start", "unknown shutdown", "unknown start"]
        assert {one, other} == {"unknown shutdown", "known shutdown"}

    async def test_a_session_that_is_busy_is_not_idle(self, opener: LoadingOpener, tmp_path: Path) -> None:
        """A hook may work longer than the server waits for events."""
        opener._hook.write_text(
            f"from pathlib import Path\nimport anyio\ndef register(api):\n"
            f"    @api.on('tool_call')\n    async def judge(event, ctx):\n"
            f"        while not Path({str(tmp_path / 'go_on')!r}).exists():\n            await anyio.sleep(0.01)\n"
        )
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        async with anyio.create_task_group() as group:
            tasks.use(group)
            group.start_soon(sessions.answer, CLAUDE, happening("PreToolUse", "s"), {})
            while not opener.opened:
                await anyio.sleep(0.01)
            sessions.end_abandoned(0)
            assert len(sessions) == 1
            (tmp_path / "go_on").touch()
            while next(iter(sessions._all.values())).is_busy:
                await anyio.sleep(0.01)
            sessions.end_abandoned(0)
            assert len(sessions) == 0

    async def test_the_hooks_of_a_session_that_was_left_get_a_shutdown_when_the_agent_dies(
        self, opener: LoadingOpener, marks: Path
    ) -> None:
        """The end of a session by `/clear` is no shutdown, because the hooks continue in the next session."""
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        other = subprocess.Popen([sys.executable, "-c", ""])
        environment = {"CLAUDE_PID": str(other.pid)}
        async with anyio.create_task_group() as group:
            tasks.use(group)
            await sessions.answer(CLAUDE, happening("PreToolUse", "s"), environment)
            await sessions.answer(CLAUDE, happening("SessionEnd", "s", reason="clear"), environment)
            other.wait()
            sessions.end_abandoned(60)
        assert marks.read_text().splitlines() == ["s start", "s shutdown"]
