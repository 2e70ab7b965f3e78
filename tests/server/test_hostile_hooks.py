"""Hooks that attack the process they run in: their own session fails closed, and the other sessions do not notice.

Each test runs the real server and the generated file, as another agent does.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.server import client
from agent_hooks.server.stub import config_of
from other_agent import BRIDGE, OtherAgent
from server.test_served import reason_of
from support import until

FAULTY = """
import asyncio, gc, json, locale, os, signal, sys, threading, time
import anyio

n = 0

async def attack():
{attack}

def register(api):
    @api.on("tool_call")
    async def judge(event, ctx):
        global n
        n += 1
        if event.input["command"] == "attack":
            await attack()
        elif event.input["command"] == "state":
            state = os.getcwd(), sys.getrecursionlimit(), gc.isenabled(), sys.stdout.closed, os.fstat(1).st_ino > 0
            mask = os.umask(0o22)
            os.umask(mask)
            assert json.loads(json.dumps([1])) == [1]
            handlers = [signal.getsignal(number) == signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGINT)]
            names = time.sleep.__name__, sys.excepthook.__name__, locale.setlocale(locale.LC_NUMERIC)
            ctx.ui.notify(f"{{state}} {{mask:o}} {{handlers}} {{names}}")
            print("the log is open", flush=True)
            print("stderr too", file=sys.stderr, flush=True)
        else:
            ctx.ui.notify(f"call {{n}}")
"""
ATTACKS = {
    "cancels its task": "asyncio.current_task().cancel(); await asyncio.sleep(0)",
    "cancels its task again and again": """
        while True:
            asyncio.current_task().cancel()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling() > 20:
                    raise
    """,
    "cancels all tasks": "[task.cancel() for task in asyncio.all_tasks()]; await asyncio.sleep(0.05)",
    "leaves a scope open and cancels it": "anyio.CancelScope().__enter__().cancel(); await asyncio.sleep(0.05)",
    "leaves a task group open": """
        group = await anyio.create_task_group().__aenter__()
        async def fail(): raise ValueError("as the test wants")
        group.start_soon(fail)
        await asyncio.sleep(0.05)
    """,
    "raises SystemExit": "sys.exit(3)",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "raises GeneratorExit": "raise GeneratorExit",
    "raises CancelledError": "raise asyncio.CancelledError",
    "closes the loop": "asyncio.get_running_loop().close()",
    "lowers the recursion limit": """
        def deeper(left):
            return left and deeper(left - 1)
        frame, depth = sys._getframe(), 0
        while frame: frame, depth = frame.f_back, depth + 1
        sys.setrecursionlimit(depth + 6)
        deeper(100)
    """,
}
"""Attacks that end their handler without an answer."""
CHANGES = {
    "closes stdout": ("sys.stdout.close(); sys.stderr.close(); sys.stdin.close()", "sys.stdout"),
    "closes the descriptors 0 to 2": ("os.closerange(0, 3)", "the descriptor 1"),
    "closes low descriptors": ("os.closerange(0, 100)", "the descriptor 1"),
    "changes the directory": ("os.chdir('/')", "the working directory"),
    "sets the umask": ("os.umask(0)", "the umask (000)"),
    "sets signal handlers": (
        "[signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGINT)]",
        "the handler of SIGTERM",
    ),
    "ends the garbage collection": ("gc.disable()", "the garbage collector"),
    "empties the path of modules": ("sys.path.clear()", "sys.path"),
    "replaces the hook for exceptions": ("sys.excepthook = print", "sys.excepthook"),
    "replaces functions": ("time.sleep = time.monotonic = json.loads = json.dumps = None", "time.sleep"),
    "sets the locale": ("locale.setlocale(locale.LC_ALL, 'C.UTF-8')", "the locale"),
    "sets the recursion limit": ("sys.setrecursionlimit(300)", "the recursion limit"),
}
"""Changes of the process, each with a part of the report."""
LATER = {
    "stops the loop": "asyncio.get_running_loop().stop()",
    "leaves a scope open": "anyio.CancelScope().__enter__()",
    "leaves a scope open that ends later": "anyio.move_on_after(0.01).__enter__()",
    "exits in a task": """
        async def leave(): sys.exit(3)
        asyncio.get_running_loop().task = asyncio.create_task(leave())
    """,
    "interrupts in a callback": """
        def leave(): raise KeyboardInterrupt
        asyncio.get_running_loop().call_soon(leave)
    """,
    "cancels its task at the end": "asyncio.current_task().cancel()",
    "cancels the tasks of others later": """
        def cancel():
            for task in asyncio.all_tasks(): task.cancel()
            open("attacked", "w").close()
        asyncio.get_running_loop().call_later(0.05, cancel)
    """,
    "replaces the loop's handler of exceptions": "asyncio.get_running_loop().set_exception_handler(lambda *_: 1 / 0)",
    "stops the loop from a thread": """
        loop = asyncio.get_running_loop()
        threading.Thread(target=lambda: loop.call_soon_threadsafe(loop.stop)).start()
    """,
}
"""Attacks after which the handler goes on, and may answer."""


def add_faulty_hook(agent: OtherAgent, attack: str) -> None:
    """Put a hook into the project that attacks when the command is `attack`."""
    lines = [line for line in attack.split("\n") if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    agent.command.add_hook(FAULTY.format(attack="\n".join(f"    {line[indent:]}" for line in lines)))


def attacks(agent: OtherAgent) -> Any:
    """Return the answer to the event at which the hook of session `a` attacks, after each session had a call."""
    for session in ("a", "b"):
        assert agent(session_id=session)["systemMessage"] == "call 1"
    return agent(session_id="a", tool_input={"command": "attack"})


def assert_other_sessions_go_on(agent: OtherAgent, pid: int) -> None:
    """Session `b` still has its state, a new session begins, and session `a` is judged again, all in one process."""
    assert agent(session_id="b")["systemMessage"] == "call 2"
    assert agent(session_id="c")["systemMessage"] == "call 1"
    assert "call" in agent(session_id="a")["systemMessage"]
    server = agent.server()
    assert server is not None
    assert server["pid"] == pid
    assert agent(session_id="b")["systemMessage"] == "call 3"


def pid_of(agent: OtherAgent) -> int:
    """Return the process id of the server, which is started if need be."""
    agent("Stop", session_id="a")
    server = agent.server()
    assert server is not None
    return int(server["pid"])


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_on_the_process_denies_its_own_call_and_names_the_hook(agent: OtherAgent, attack: str) -> None:
    """The other sessions keep their state."""
    add_faulty_hook(agent, ATTACKS[attack])
    pid = pid_of(agent)
    assert "hook.py" in reason_of(attacks(agent))
    assert_other_sessions_go_on(agent, pid)


@pytest.mark.parametrize("attack", LATER)
def test_an_attack_that_works_later_does_not_reach_other_sessions(agent: OtherAgent, attack: str) -> None:
    """Its own call is denied, or the handler has judged it before."""
    add_faulty_hook(agent, LATER[attack])
    pid = pid_of(agent)
    answer = attacks(agent)
    assert answer == {} or "hook.py" in str(answer) or "could not judge" in str(answer), answer
    if "attacked" in LATER[attack]:
        # An event that is judged at that moment is denied.
        until((agent.command.project / "attacked").exists)
    assert_other_sessions_go_on(agent, pid)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_process_is_restored_and_reported(agent: OtherAgent, change: str) -> None:
    """Other sessions find the process as it was, and the person reads the name of the hook."""
    attack, report = CHANGES[change]
    add_faulty_hook(agent, attack)
    pid = pid_of(agent)
    before = agent(session_id="b", tool_input={"command": "state"})["systemMessage"]
    said = agent(session_id="a", tool_input={"command": "attack"})
    later = agent(session_id="a")
    assert report in str(said) + str(later), (said, later)
    assert "hook.py" in str(said) + str(later)
    assert agent(session_id="b", tool_input={"command": "state"})["systemMessage"] == before
    assert pid_of(agent) == pid
    log = Path("/".join(client.place(config_of(BRIDGE), str(agent.command.project))) + ".log").read_text()
    assert log.count("the log is open") == log.count("stderr too") == 2
    os.kill(pid, signal.SIGTERM)
    until(lambda: agent.server() is None)


@pytest.mark.parametrize(
    "attack", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)", "os.closerange(0, 4096)"]
)
def test_an_attack_that_no_process_survives_denies_and_the_next_event_starts_a_server(
    agent: OtherAgent, attack: str
) -> None:
    """The gate is refused, and all sessions begin anew."""
    add_faulty_hook(agent, f"{attack}; await asyncio.sleep(0.05)")
    pid = pid_of(agent)
    assert "the server ended while it judged" in reason_of(attacks(agent))
    assert agent(session_id="b")["systemMessage"] == "call 1"
    assert pid_of(agent) != pid


def test_threads_and_tasks_that_a_hook_leaves_behind_are_named_once_and_not_waited_for(agent: OtherAgent) -> None:
    """The log names them after the session has ended; tasks are cancelled, also those that run other code."""
    mark = agent.command.project / "mark"
    agent.command.add_hook(
        f"""
        import asyncio, threading
        from pathlib import Path
        async def mine():
            try:
                await asyncio.Event().wait()
            finally:
                Path({str(mark)!r}).touch()
        def work():
            threading.Event().wait()
        def register(api):
            @api.on("tool_call")
            async def judge(event, ctx):
                loop, start = asyncio.get_running_loop(), asyncio.create_task
                loop.kept = start(mine(), name="mine"), start(asyncio.sleep(3600), name="sleeper")
                threading.Thread(target=work, name="worker", daemon=True).start()
        """
    )
    assert agent(session_id="a") == {}
    assert agent("SessionEnd", session_id="a", reason="other") == {}
    log = Path("/".join(client.place(config_of(BRIDGE), str(agent.command.project))) + ".log")
    until(lambda: "sleeper" in log.read_text() and "'mine'" in log.read_text())
    until(mark.exists)
    assert agent(session_id="b") == {}
    text = log.read_text()
    assert text.count("left behind the thread 'worker'") == 1
    assert text.count("left behind the task 'mine'") == text.count("left behind the task 'sleeper'") == 1
