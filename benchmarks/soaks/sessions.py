"""Sessions of a resident server with hooks, some of which attack it: the real server, installed as a person installs it.

The first event is sent by the installed command, and then one in a hundred.  The others go over the server's socket, as
the command sends them.  A tenth of the sessions has no end, as if the agent was killed while its process lives on.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from agent_hooks.server.sessions import MOST_LOADED
from agent_hooks.server.stub import HELLO
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.repository import project_key
from agent_hooks.trust.store import TrustStore
from benchmarks.bridge_projects import AGENT, Project
from benchmarks.soaks.flatness import Run, figures_of

POINTS = 60
"""The number of times at which the figures are noted."""
WARM_UP = 200
"""The number of sessions that do not count."""
HOOK = """
import asyncio, atexit, gc, logging, os, sys, threading, time, typing, weakref
import anyio
import helper

log = logging.getLogger(__name__)
DATA = bytearray(20_000)

class Kept:
    pass

kept = Kept()
weakref.finalize(kept, lambda: DATA)
atexit.register(lambda: DATA)

def annotated(value: typing.Optional[Kept]) -> typing.List[Kept]:
    return [value]

async def attack(kind):
    match kind:
        case "cancel": asyncio.current_task().cancel()
        case "scope": anyio.CancelScope().__enter__().cancel()
        case "exit": sys.exit(3)
        case "interrupt": raise KeyboardInterrupt
        case "stop": asyncio.get_running_loop().stop()
        case "task": asyncio.get_running_loop().kept = asyncio.create_task(anyio.sleep_forever())
        case "thread": threading.Thread(target=time.sleep, args=(0.05,)).start()
        case "close": os.closerange(0, 3); sys.stdout.close()
        case "change": os.chdir("/"); os.umask(0); gc.disable(); sys.setrecursionlimit(300)
        case "raise": raise ValueError("x" * 10_000)
        case "print": print("y" * 10_000)
    await anyio.sleep(0.001)

def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        await attack(event.input["command"])

    @api.on("tool_call")
    def plain(event, ctx):
        return helper.judge(event)

    @api.on("tool_result")
    async def result(event, ctx):
        log.debug("a result")

    @api.on("session")
    async def session(event, ctx):
        await anyio.sleep(0)

    api.start_task(anyio.sleep_forever)
"""
HELPER = """
def judge(event):
    return {"block": True, "reason": "forbidden"} if event.input["command"] == "forbidden" else None
"""
ATTACKS = (
    "cancel", "scope", "exit", "interrupt", "stop", "task", "thread", "close", "change", "raise", "print", "forbidden",
)  # fmt: skip


class Agent:
    """The other agent: it sends the events of sessions to the server of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._command = _installed(project)
        assert self.by_command("Stop", "first") == {}
        self.status = self._find_server()
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(60)
        self._connection.connect(f"{self.status['path']}.socket")
        self._answers = self._connection.makefile("rb")
        self._greeted = False
        given = project.environment.items()
        self._environment = {name: value for name, value in given if name.startswith("CLAUDE")}

    def by_command(self, event: str, session: str, **fields: Any) -> Any:
        """Send an event by the installed command, and return the answer."""
        done = subprocess.run(
            [*self._command, event],
            input=json.dumps(self._payload(event, session, fields)).encode(),
            stdout=subprocess.PIPE,
            env=self.project.environment,
            cwd=self.project.folder,
            check=True,
        )
        return json.loads(done.stdout)

    def __call__(self, event: str, session: str, **fields: Any) -> Any:
        """Send an event over the socket, and return the answer."""
        head = {**json.loads(HELLO), "do": "answer", "agent": AGENT, "event": event, "environment": self._environment}
        code, answer = self._ask([head, self._payload(event, session, fields)])
        assert code == 0, answer
        return answer

    def figures(self) -> dict[str, float]:
        """Return the figures of the server's process."""
        status = self._ask([{"do": "status"}, None])
        assert status["pid"] == self.status["pid"], "another server runs"
        return {**figures_of(status["pid"]), "modules": status["modules"]}

    def stop(self) -> None:
        """End the server, and remove its files."""
        # A server stops by a signal only.
        os.kill(self.status["pid"], signal.SIGTERM)
        self._connection.close()
        end = time.monotonic() + 60
        while Path(f"/proc/{self.status['pid']}").exists() and time.monotonic() < end:
            time.sleep(0.05)
        path = Path(self.status["path"])
        for left in path.parent.glob(f"{path.name}.*"):
            left.unlink()

    def _ask(self, request: Any) -> Any:
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        if not self._greeted:
            self._greeted = True
            self._answers.readline()
        return json.loads(self._answers.readline())

    def _payload(self, event: str, session: str, fields: dict[str, Any]) -> dict[str, Any]:
        common = {"hook_event_name": event, "session_id": session, "cwd": str(self.project.folder)}
        call = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}
        return {**common, **(call if "ToolUse" in event else {}), **fields}

    def _find_server(self) -> dict[str, Any]:
        found = self.project.run([sys.executable, "-m", "agent_hooks", "serve", "--status", "--json"], subprocess.PIPE)
        servers = json.loads(found)["servers"]
        return next(each for each in servers if each["project"] == str(self.project.folder))


def _installed(project: Project) -> list[str]:
    """Install the hooks as a person does, and return the command that an entry runs, without the event."""
    project.run([sys.executable, "-m", "agent_hooks", "install", AGENT, "--local"])
    return project.ask[:-1]


def soak(sessions: int, seed: int) -> Run:
    """Open the sessions, and return the figures of the server."""
    with tempfile.TemporaryDirectory(prefix="agent-hooks-soak-") as name:
        project = Project(Path(name) / "project", {}, HOOK)
        (project.folder / ".agent" / "hooks" / "helper.py").write_text(f"{HELPER}\ndef register(api): ...\n")
        TrustStore(str(project.home)).approve(project_key(str(project.folder)), read_set(str(project.folder)))
        agent = Agent(project)
        try:
            return _soak(agent, sessions, random.Random(seed))
        finally:
            agent.stop()


def _soak(agent: Agent, sessions: int, choice: random.Random) -> Run:
    run = Run(f"{sessions:,} sessions")
    # Sessions without an end, until the server holds as many as it does at once.
    for number in range(MOST_LOADED + 20):
        agent("PreToolUse", f"endless-{number}")
    # Then as many that end as fill the gaps between the blocks of memory.
    for number in range(min(sessions, WARM_UP)):
        _session(agent, f"warm-up-{number}", choice)
    agent("PreToolUse", "steady")
    denied, times = 0, list[float]()
    for number in range(sessions):
        denied += _session(agent, f"s{number}", choice)
        began = time.perf_counter()
        assert agent("PreToolUse", "steady") == {}
        times.append(time.perf_counter() - began)
        if number % 100 == 50:
            agent.by_command("PreToolUse", f"s{number}")
        if number % max(sessions // POINTS, 1) == 0:
            run.note(agent.figures())
    third = len(times) // 3
    first, last = median(times[:third]) * 1e3, median(times[-third:]) * 1e3
    run.remarks.append(f"{denied:,} calls denied; an event took {first:.2f} ms at first, {last:.2f} ms at last")
    return run


def _session(agent: Agent, session: str, choice: random.Random) -> int:
    """Send the events of a session, and return the number of denied calls."""
    agent("SessionStart", session, source="startup")
    denied = 0
    for _ in range(2):
        command = choice.choice(ATTACKS) if choice.random() < 0.2 else "ls"
        answer = agent("PreToolUse", session, tool_input={"command": command})
        denied += "deny" in json.dumps(answer)
        agent("PostToolUse", session, tool_response={"stdout": "done", "stderr": ""})
    if choice.random() < 0.9:
        agent("SessionEnd", session, reason="other")
    return denied
