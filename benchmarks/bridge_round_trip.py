"""A round trip of one gate in the real Claude Code, measured between two requests to its model.

The model is a script on this machine: it asks for one shell command again and again.  The time from its answer to the
next request is a turn: the gate, the command, and the work of Claude Code itself.  Six sessions take turns, so that a
busy machine disturbs all of them alike: without a hook, with `/bin/true`, a bare interpreter or the gate as the hook, and
as `agent-hooks install` leaves the agent, with the real mod and with an empty one.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median
from time import perf_counter
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.seat import MODS
from benchmarks import peer_runs
from benchmarks.bridge_commands import TRUE
from benchmarks.bridge_projects import AGENT, BASE, EVENT, Project, end, served, server_of
from benchmarks.harness import Effort, NotHereError, Rounds, Row, interleave
from benchmarks.peer_runs import ROOT

# The drivers of real agents and the model's server are those of the tests.
TESTS = ROOT / "tests"
HOOK = "def register(api):\n    @api.on('tool_call')\n    async def nothing(event, ctx): ...\n"
CALL = ("Bash", {"command": "true", "description": "Do nothing"})
NAME = "a gate in Claude Code, added to a turn"
MOD = "our mod in Claude Code, added to a turn"
EMPTY = "export const register = on => { on('tool.call', async ($, e, next) => await next(e)) }\n"
# The hooks to compare with, by the word for their sessions.
FLOORS = {"base": "a bare interpreter", "true": "/bin/true"}
# Seconds for Claude Code to start, and for a turn.
PATIENCE = 120


async def round_trip(folder: Path, effort: Effort) -> list[Row]:
    """Measure the milliseconds that our gate adds to a turn, beside those of `/bin/true` and of a bare interpreter."""
    _need_client()
    with ExitStack() as stack:
        ours = Project(folder / "ours", {}, HOOK)
        stack.enter_context(served(ours))
        gate = [sys.executable, "-I", "-S", str(stub_path(open_bridge(AGENT), ours.home))]
        projects = {name: Project(folder / name, {}) for name in ("none", *FLOORS)} | {"ours": ours}
        gates = {"none": None, "true": TRUE, "base": BASE, "ours": gate}
        sessions = {name: stack.enter_context(_opened(projects[name], gates[name])) for name in projects}
        for name, register in {"mod": None, "empty": EMPTY}.items():
            installed = stack.enter_context(_installed(folder / name, register))
            sessions[name] = stack.enter_context(_opened(installed, None))
        for session in sessions.values():
            session.wait()
        rounds = await interleave({name: session.turn for name, session in sessions.items()}, effort)
    return _rows(rounds)


def _rows(rounds: Rounds) -> list[Row]:
    without, turns = rounds.seconds("none") * 1e3, len(rounds.times["none"])
    ours, floors = _added(rounds, "ours"), {name: _added(rounds, word) for word, name in FLOORS.items()}
    note = f"a turn with one shell call takes {without:.0f} ms without a hook; {turns} turns of one session each"
    return [
        Row(NAME, ours, "ms", peers=floors, note=note),
        *(_to_floor(ours, floor, f"to that of {name}") for name, floor in floors.items()),
        Row(MOD, _added(rounds, "mod", "empty"), "ms", must=2, note="to an empty mod"),
    ]


def _to_floor(ours: float, floor: float, note: str) -> Row:
    if floor > 0:
        return Row(NAME, ours / floor, note=note)
    return Row(NAME, None, note=note, problem="not measured: the machine was so busy that the other hook took no time")


def _added(rounds: Rounds, name: str, floor: str = "none") -> float:
    """Return the milliseconds that a gate adds: the median of the differences within a round."""
    pairs = zip(rounds.times[name], rounds.times[floor], strict=True)
    return median(one - other for one, other in pairs) * 1e3


def _need_client() -> None:
    """Find the tests' modules, and check that they can start Claude Code."""
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    if not importlib.import_module("clients.installing").PACKAGES[AGENT].path(peer_runs.HOME / "clients").exists():
        raise NotHereError("not installed: Claude Code (python -m checks.agents)")


@contextmanager
def _installed(folder: Path, register: str | None) -> Iterator[Project]:
    """Install our hooks in a project, with another text of the mod if there is one, and end the server that it starts."""
    project = Project(folder, {}, HOOK)
    project.run([sys.executable, "-m", "agent_hooks", "install", AGENT])
    if register is not None:
        (project.home / MODS / AGENT / "hooks" / "register.ts").write_text(register)
    yield project
    end(server_of(project))


@contextmanager
def _opened(project: Project, gate: list[str] | None) -> Iterator[Session]:
    """Start Claude Code in a project, with a gate, and end it."""
    client = importlib.import_module("clients.drivers").ClaudeCode(project.folder, project.folder / "home")
    if gate is not None:
        path = project.folder / ".claude" / "settings.json"
        path.parent.mkdir()
        path.write_text(json.dumps(open_bridge(AGENT).install({}, gate, [EVENT])))
    session = Session(client)
    try:
        yield session
    finally:
        session.end()
        client.server.__exit__()


class Session:
    """A running session of Claude Code, whose model waits until a turn is asked for."""

    def __init__(self, client: Any) -> None:
        self._requests: SimpleQueue[float] = SimpleQueue()
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self._say = importlib.import_module("model_server").Say
        self._read = importlib.import_module("clients.conversation").read
        client.server.choose = self._choose
        self._process = subprocess.Popen(
            client.headless("go"),
            cwd=client.project,
            env=client.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> float:
        """Wait for the next request to the model, and return its time."""
        try:
            return self._requests.get(timeout=PATIENCE)
        except Empty:
            raise RuntimeError(f"Claude Code asked its model nothing for {PATIENCE} s") from None

    async def turn(self, loops: int) -> float:
        """Let the model ask for a shell command, and return the seconds until the request with its result."""
        took = 0.0
        for _ in range(loops):
            begin = perf_counter()
            self._replies.put(self._say(calls=[CALL]))
            took += self.wait() - begin
        return took / loops

    def end(self) -> None:
        """Let the model say its last word, and wait until Claude Code has ended."""
        self._replies.put(self._say("done"))
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _choose(self, request: Any) -> Any:
        """Answer a request to the model, once a turn is asked for; a request without tools, for a title, at once."""
        if not self._read(request).tools:
            return self._say("done")
        self._requests.put(perf_counter())
        return self._replies.get()
