"""A hook that forks, and whose child comes back from the hook: the child ends, and the agent is there once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from other_agent import OtherAgent
from running import Command
from support import PATIENCE

# Each forks once, by a file that only the first of them makes.
FORK = """
import os
def fork(code=None):
    try:
        os.close(os.open("forked", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return None
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return pid
"""
HOOKS = {
    "import": "fork()\ndef register(api): pass",
    "register": "def register(api): fork()",
    "async register": "import anyio\nasync def register(api):\n    fork()\n    await anyio.sleep(0)",
    "register that raises": "def register(api):\n    if fork() == 0: raise ValueError('in the child')",
    "async": "def register(api):\n    @api.on(EVENT)\n    async def f(event, ctx): fork()",
    "async that waits": "import anyio\ndef register(api):\n    @api.on(EVENT)\n    async def f(event, ctx):\n"
    "        fork()\n        await anyio.sleep(0)",
    "async that has waited": "import anyio\ndef register(api):\n    @api.on(EVENT)\n    async def f(event, ctx):\n"
    "        await anyio.sleep(0)\n        fork()",
    "async that raises": "def register(api):\n    @api.on(EVENT)\n    async def f(event, ctx):\n"
    "        if fork() == 0: raise ValueError('in the child')",
    "async that exits": "def register(api):\n    @api.on(EVENT)\n    async def f(event, ctx):\n"
    "        if fork() == 0: raise SystemExit(0)",
    "thread": "def register(api):\n    @api.on(EVENT)\n    def f(event, ctx): fork()",
    "inline": "def register(api):\n    @api.on(EVENT, inline=True)\n    def f(event, ctx): fork()",
    "interceptor": "def register(api):\n    @api.intercept('tool.before')\n    def f(input, output): fork()",
    "task": "import anyio\ndef register(api):\n    async def work():\n        fork()\n        await anyio.sleep(0)\n"
    "    api.start_task(work)",
    "unload": "def register(api):\n    api.on_unload(fork)",
}
QUIET = {"async that exits"}


def hook_of(kind: str, event: str) -> str:
    """Return the text of a hook."""
    return FORK + HOOKS[kind].replace("EVENT", repr(event))


def put(project: Path, kind: str, event: str) -> Path:
    """Write a hook of the project."""
    path = project / ".agent" / "hooks" / "forking.py"
    path.parent.mkdir(parents=True)
    path.write_text(hook_of(kind, event))
    return path


def said(stderr: str) -> bool:
    """Tell whether the message of a child that came back is there, with the hook's name."""
    return "forked a process that came back from it" in stderr and "forking.py" in stderr


@pytest.mark.parametrize(
    ("kind", "backend"),
    [(kind, "asyncio") for kind in HOOKS]
    + [(kind, "trio") for kind in ("async", "async that has waited", "thread", "task")],
)
def test_a_child_that_comes_back_ends_in_an_embedding_program(project: Path, kind: str, backend: str) -> None:
    """The program goes on in one process; a plain function's child has no event loop, and ends too."""
    put(project, kind, "tool_call")
    program = """
        import anyio, os, sys
        from agent_hooks import HookRunner, discover_and_load_hooks, wrap_tool

        def bash(command: str) -> str:
            return "ran " + command

        async def main():
            loaded = await discover_and_load_hooks(cwd=".")
            async with HookRunner(loaded.hooks, cwd=".") as runner:
                print((await wrap_tool(bash, runner).execute("1", {"command": "ls"})).text, flush=True)

        anyio.run(main, backend=sys.argv[1])
        print("end", flush=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program), backend],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout, done.returncode) == ("ran ls\nend\n", 0), done.stderr
    assert (project / "forked").exists()
    assert said(done.stderr) is (kind not in QUIET), done.stderr


@pytest.mark.parametrize("kind", ["import", "async", "async that waits", "thread", "task"])
def test_a_child_that_comes_back_ends_in_the_host(command: Command, kind: str) -> None:
    """The answer is printed once, and each entry of the session is there once."""
    put(command.project, kind, "turn_start")
    done = command("run", "@bash echo once >> ran")
    assert said(done.stderr), done.stderr
    assert (command.project / "ran").read_text() == "once\n"
    assert done.stdout.count("echo once") == 1
    [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    entries = [json.loads(line) for line in session.read_text().splitlines()]
    roles = [entry["message"]["role"] for entry in entries if entry["type"] == "message"]
    assert roles == ["user", "assistant", "toolResult", "assistant"]


@pytest.mark.parametrize("kind", ["import", "async", "async that waits", "thread"])
def test_a_child_that_comes_back_ends_in_the_server(agent: OtherAgent, command: Command, kind: str) -> None:
    """Each event is answered once, and the next one by the same server."""
    put(command.project, kind, "tool_call")
    servers = []
    for _ in range(2):
        assert agent() == {}
        server = agent.server()
        assert server
        servers.append(server["pid"])
    assert (command.project / "forked").exists()
    assert servers[0] == servers[1]


def test_a_program_may_fork_and_use_its_hooks_in_both_processes(project: Path) -> None:
    """A fork of the program itself ends no process; neither does one of `multiprocessing` in a handler."""
    hook = """
        import multiprocessing, os
        def register(api):
            @api.on("tool_call")
            async def f(event, ctx):
                process = multiprocessing.get_context("fork").Process(target=os.write, args=(1, b"child\\n"))
                process.start()
                process.join()
    """
    path = project / ".agent" / "hooks" / "h.py"
    path.parent.mkdir(parents=True)
    path.write_text(dedent(hook))
    program = """
        import anyio, os, sys
        from agent_hooks import HookRunner, discover_and_load_hooks, wrap_tool

        def bash(command: str) -> str:
            return "ran " + command

        async def call(loaded):
            async with HookRunner(loaded.hooks, cwd=".") as runner:
                print((await wrap_tool(bash, runner).execute("1", {"command": "ls"})).text, flush=True)

        async def load():
            return await discover_and_load_hooks(cwd=".")

        loaded = anyio.run(load)
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        anyio.run(call, loaded)
    """
    line = [sys.executable, "-c", dedent(program)]
    done = subprocess.run(line, cwd=project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "child\nran ls\n" * 2, done.stderr
