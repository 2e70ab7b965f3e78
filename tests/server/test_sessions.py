"""The sessions of a server: when they end, and that nothing of them stays in memory."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import tracemalloc
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from agent_hooks import HookRunner
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.server.session import Opened
from agent_hooks.server.sessions import Sessions
from agent_hooks.server.sources import Sources
from agent_hooks.server.tasks import Tasks
from agent_hooks.trust.place import Place
from server.test_server_protocol import answer_of, request, serving, stdout_of
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
        self.place = Place("/", ())
        self.resident = False
        self._hook = hook
        self._session_id: str | None = None

    def __call__(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> LoadingOpener:
        """Find the hook."""
        self._session_id = happening.session_id
        return self

    async def renew(self, opened: Opened) -> Opened | None:
        """Open the session anew."""
        return None

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
        return Opened(runner, bridging, Sources([], []), self.place, resident=self.resident)

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


@asynccontextmanager
async def started(tasks: Tasks) -> AsyncIterator[TaskGroup]:
    """Run the server's tasks, wait for their end, and give a group for tasks of the test, which has to end in time."""
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            tasks.start()
            yield group
        await tasks.end(PATIENCE)


async def until_ended(opener: LoadingOpener) -> None:
    """Wait until nothing of any session is in memory."""
    with anyio.fail_after(PATIENCE):
        while opener.alive():
            await anyio.sleep(0.01)


class TestSessions:
    """In a task group of the server's event loop."""

    async def test_a_client_that_goes_while_hooks_load_leaves_them_to_the_next_event(
        self, tmp_path: Path, marks: Path
    ) -> None:
        """They are loaded once, and end with their session."""
        hook = tmp_path / "hook.py"
        hook.write_text(
            textwrap.dedent(f"""
            import anyio
            def mark(text):
                with open({str(marks)!r}, "a") as file:
                    file.write(text)
            async def register(api):
                mark("loads ")
                await anyio.sleep(0.5)
                api.on("tool_call", lambda event, ctx: {{"block": True, "reason": "no"}}, inline=True)
                api.on_unload(lambda: mark("unloads "))
            """)
        )
        async with serving(tmp_path, opening=LoadingOpener(hook)) as server:
            payload = {**CALL, "session_id": "1"}
            _, writer = await asyncio.open_unix_connection(f"{server.path}.socket")
            writer.write(request(payload) + b"\n")
            with anyio.fail_after(PATIENCE):
                while not marks.exists():
                    await anyio.sleep(0.01)
            writer.close()
            await writer.wait_closed()
            answer = stdout_of(await answer_of(server, request(payload)))
            assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
            await answer_of(server, request({**payload, "hook_event_name": "SessionEnd"}, "SessionEnd"))
            with anyio.fail_after(PATIENCE):
                while "unloads" not in marks.read_text():
                    await anyio.sleep(0.01)
            assert marks.read_text() == "loads unloads "

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

    async def test_a_scope_that_was_left_open_does_not_keep_its_task(self) -> None:
        """anyio would keep the scope of the task, the scope keeps the task, and the task the objects of its context."""
        tasks, kept = Tasks(), list[weakref.ref[Any]]()

        async def leave_open() -> None:
            scope = anyio.CancelScope().__enter__()
            kept.append(weakref.ref(scope))

        async with started(tasks):
            await tasks.apart(leave_open)
        gc.collect()
        assert kept[0]() is None

    async def test_a_session_whose_process_is_unknown_ends_when_it_is_idle(
        self, opener: LoadingOpener, marks: Path
    ) -> None:
        """No event would ever end it, while other sessions keep the server running; the next event loads its hooks."""
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        alive = {"CLAUDE_PID": str(os.getpid())}
        async with started(tasks):
            await sessions.answer(CLAUDE, happening("PreToolUse", "unknown"), {})
            await sessions.answer(CLAUDE, happening("PreToolUse", "known"), alive)
            sessions.end_abandoned(60)
            assert len(sessions) == 2
            sessions.end_abandoned(0)
            assert len(sessions) == 1
            while "unknown shutdown" not in marks.read_text():
                await anyio.sleep(0.01)
            await sessions.answer(CLAUDE, happening("PreToolUse", "unknown"), {})
            sessions.end()
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
        async with started(tasks) as group:
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
        async with started(tasks):
            await sessions.answer(CLAUDE, happening("PreToolUse", "s"), environment)
            await sessions.answer(CLAUDE, happening("SessionEnd", "s", reason="clear"), environment)
            other.wait(timeout=PATIENCE)
            sessions.end_abandoned(60)
        assert marks.read_text().splitlines() == ["s start", "s shutdown"]

    async def test_another_process_that_resumes_a_session_opens_it_anew_where_the_process_tells_of_a_person(
        self, opener: LoadingOpener, marks: Path
    ) -> None:
        """A person may have been at the first process, and the other one may wait for an answer for ever."""
        gemini = open_bridge("gemini-cli")
        event = {"hook_event_name": "BeforeTool", "session_id": "s", "tool_name": "x", "tool_input": {}}
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        async with started(tasks):
            for process in (os.getpid(), os.getpid(), os.getppid()):
                environment = {gemini.process_variable: str(process)}
                await sessions.answer(gemini, gemini.decode(event), environment)
            assert len(sessions) == 1
            while len(marks.read_text().splitlines()) < 3:
                await anyio.sleep(0.01)
            sessions.end()
        assert sorted(marks.read_text().splitlines()) == ["s shutdown", "s shutdown", "s start", "s start"]

    async def test_the_hooks_of_the_sessions_that_were_idle_for_longest_are_unloaded_when_there_are_too_many(
        self, opener: LoadingOpener, marks: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The next event of such a session loads its hooks again, and the person reads that their state is lost."""
        monkeypatch.setattr("agent_hooks.server.sessions.MOST_LOADED", 3)
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        alive = {"CLAUDE_PID": str(os.getpid())}

        async def ask(session: str) -> tuple[str, ...]:
            return (await sessions.answer(CLAUDE, happening("PreToolUse", session), alive)).messages

        async def loaded(expected: set[str]) -> None:
            while {key[1] for key, each in sessions._all.items() if each.is_loaded} != expected:
                await anyio.sleep(0.001)

        async with started(tasks):
            for session in ("a", "b", "c", "a", "d"):
                assert await ask(session) == ()
            await loaded({"a", "c", "d"})
            assert len(sessions) == 4
            [text] = await ask("b")
            assert "unloaded, because other sessions were busier; they lost their state" in text
            await loaded({"a", "b", "d"})
            assert await ask("b") == ()
            sessions.end()
        lines = marks.read_text().splitlines()
        assert [line for line in lines if line.startswith("b")] == ["b start", "b shutdown", "b start", "b shutdown"]

    async def test_the_number_of_known_sessions_has_a_limit(
        self, opener: LoadingOpener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A session that is forgotten begins anew with its next event."""
        monkeypatch.setattr("agent_hooks.server.sessions.MOST", 2)
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        alive = {"CLAUDE_PID": str(os.getpid())}
        async with started(tasks):
            for session in ("a", "b", "c"):
                await sessions.answer(CLAUDE, happening("PreToolUse", session), alive)
            assert {key[1] for key in sessions._all} == {"b", "c"}
            sessions.end()

    async def test_a_session_whose_hooks_were_unloaded_takes_less_than_a_kilobyte(
        self, opener: LoadingOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Thousands of sessions may be known, so none of them keeps the contents of its hook files."""
        monkeypatch.setattr("agent_hooks.server.sessions.MOST_LOADED", 2)
        (tmp_path / ".agent" / "hooks").mkdir(parents=True)
        (tmp_path / ".agent" / "hooks" / "large.py").write_text("#" * 10_000)
        opener.place, opener.resident = Place(str(tmp_path), (str(tmp_path),)), True
        tasks = Tasks()
        sessions = Sessions(opener, tasks)

        async def open_many(first: int, last: int) -> int:
            """Open sessions, wait until only two are loaded, and return the traced bytes."""
            for number in range(first, last):
                # Each event has an environment of its own, as it comes from a client.
                await sessions.answer(CLAUDE, happening("PreToolUse", f"s{number}"), {"CLAUDE_PID": str(os.getpid())})
            while sum(each.is_loaded for each in sessions._all.values()) > 2 or opener.alive() > 10:
                await anyio.sleep(0.01)
            opener.opened = [each for each in opener.opened if each() is not None]
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        async with started(tasks):
            tracemalloc.start()
            try:
                traced = [await open_many(*these) for these in ((0, 20), (20, 70), (70, 120))]
            finally:
                tracemalloc.stop()
            assert len(sessions) == 120
            sessions.end()
        # Threads of earlier tests may allocate memory meanwhile, so the smaller growth counts.
        assert min(later - earlier for earlier, later in pairwise(traced)) / 50 < 1000
