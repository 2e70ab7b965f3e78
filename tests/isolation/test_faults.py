"""A hook that falls over in its process takes one call with it, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from agent_hooks import AgentStart, HookRunner, HookUsageError, ToolResult
from agent_hooks.isolation.process import MOST_RESTARTS
from isolation.isolating import load, running
from support import PATIENCE, ROOT, call_of, gone, unmeasured, until

SUDDEN_ENDS = {
    "segfault": "import ctypes; ctypes.string_at(0)",
    "os._exit": "import os; os._exit(3)",
    "kill -9": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "abort": "import os; os.abort()",
    "closed descriptors": "import os; os.closerange(0, 100)",
    "exec": "import os; os.execv('/bin/true', ['true'])",
}
GATE = """
import anyio, os
from pathlib import Path
from agent_hooks import Block
HERE = Path(__file__).parent

def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        command = event.input["command"]
        if command == "fall":
            FALL
        if "rm" in command:
            return Block("no rm")
    @api.on("tool_result")
    async def result(event, ctx):
        (HERE / "begun").touch()
        await anyio.sleep_forever()
"""


@pytest.mark.parametrize("fault", SUDDEN_ENDS)
async def test_a_gate_whose_process_ends_blocks_that_call_and_the_next_one_is_judged(
    fault: str, tmp_path: Path
) -> None:
    """The agent and its other hooks do not notice."""
    other = GATE.replace("FALL", "pass").replace("no rm", "also no rm")
    async with running(tmp_path, GATE.replace("FALL", SUDDEN_ENDS[fault]), other) as started:
        before = started.pid
        answer = await started.block_of(call_of("fall"))
        assert (answer.by, answer.cause) == ("hook.py", "failed")
        assert "its process ended" in answer.reason
        assert await started.emit(call_of("ls")) is None
        answer = await started.block_of(call_of("rm"))
        assert answer.reason == "no rm"
        assert started.pid != before
        assert len(started.errors) == 1


async def test_the_other_calls_of_a_process_that_ends_fail_by_their_own_policy(tmp_path: Path) -> None:
    """A result handler in flight is reported, and the result stays."""
    result = ToolResult(tool_name="bash", tool_call_id="1", input={}, content="out")
    answers: list[object] = []
    async with running(tmp_path, GATE.replace("FALL", SUDDEN_ENDS["segfault"])) as started:
        async with anyio.create_task_group() as tasks:

            async def pass_result() -> None:
                answers.append(await started.emit(result))

            tasks.start_soon(pass_result)
            while not (tmp_path / "begun").exists():
                await anyio.sleep(0.01)
            await started.block_of(call_of("fall"))
        assert answers == [None]
        assert sorted((error.handler, error.outcome) for error in started.errors) == [
            ("gate", "blocked"),
            ("result", "continued"),
        ]


async def test_an_observer_whose_process_has_ended_is_reported_and_the_event_goes_on(tmp_path: Path) -> None:
    """Both the call that it takes with it, and an end between two calls, are reported."""
    source = """
    import os
    def register(api):
        api.on("agent_start", lambda event, ctx: os._exit(4), inline=True)
    """
    async with running(tmp_path, source) as started:
        await started.emit(AgentStart())
        assert started.texts == ["its process ended (exit code 4)"]
        while started.process.pid is None:
            await anyio.sleep(0.01)
        os.kill(started.pid, signal.SIGKILL)
        await started.failed(2)
        assert started.texts[1] == "its process ended (killed by SIGKILL)"


async def test_after_too_many_ends_within_a_minute_its_gates_block(tmp_path: Path) -> None:
    """The process is not started again, and the block says so."""
    async with running(tmp_path, GATE.replace("FALL", "os._exit(1)")) as started:
        for _ in range(MOST_RESTARTS + 1):
            answer = await started.block_of(call_of("fall"))
            assert "its process ended (exit code 1)" in answer.reason
        answer = await started.block_of(call_of("ls"))
        assert "is not started again" in answer.reason
        assert started.process.run == MOST_RESTARTS + 1


@pytest.mark.parametrize(
    "hang",
    [
        "import time; time.sleep(600)",
        "import ctypes; ctypes.PyDLL(None).sleep(600)",
        "while True: pass",
        "while True:\n                try: await anyio.sleep(600)\n                except BaseException: pass",
    ],
    ids=["blocked loop", "C code that holds the interpreter", "endless loop", "swallowed cancellation"],
)
async def test_a_handler_that_does_not_stop_at_its_deadline_is_killed(hang: str, tmp_path: Path) -> None:
    """A second after the deadline the process group is gone, and the next call is judged by a new process."""
    async with running(tmp_path, GATE.replace("FALL", hang), tool_call_timeout=0.3) as started:
        before = started.pid
        begun = time.monotonic()
        answer = await started.block_of(call_of("fall"))
        assert time.monotonic() - begun < 10
        assert answer.cause == "timed_out"
        await gone(before)
        started.runner.engine.limits["tool_call_timeout"] = None
        answer = await started.block_of(call_of("rm"))
        assert "disabled" not in answer.reason


async def test_a_forked_copy_of_the_process_ends_and_does_not_answer(tmp_path: Path) -> None:
    """The copy ends when the handler returns in it, on the event loop and in a thread."""
    source = """
    import os
    from pathlib import Path
    from agent_hooks import Block
    PIDS = Path(__file__).parent / "pids"
    def judge(event):
        pid = os.fork()
        if pid:
            with open(PIDS, "a") as file:
                file.write(f"{pid}\\n")
            return Block("parent")
        return Block("copy")
    async def on_the_loop(event, ctx):
        return judge(event)
    def in_a_thread(event, ctx):
        return judge(event)
    def register(api):
        api.on("tool_call", on_the_loop, tool="loop")
        api.on("tool_call", in_a_thread, tool="thread")
    """
    async with running(tmp_path, source) as started:
        for tool in ("loop", "thread") * 2:
            answer = await started.block_of(call_of(tool=tool))
            assert answer.reason == "parent"
        for pid in (tmp_path / "pids").read_text().split():
            await gone(int(pid))
        assert started.texts == []


async def test_a_flood_of_output_is_cut_and_blocks_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first lines come out with the hook's name, and the handler answers."""
    source = """
    import os
    from agent_hooks import Block
    def register(api):
        @api.on("tool_call")
        async def gate(event, ctx):
            print("hello\\x1b[2J")
            for _ in range(256):
                os.write(1, b"x" * (1 << 20))
            return Block("printed")
    """
    async with running(tmp_path, source) as started:
        answer = await started.block_of(call_of())
        assert answer.reason == "printed"
    shown = capfd.readouterr().err
    assert shown.startswith("[hook.py] hello\\x1b[2J\n[hook.py] x")
    assert len(shown) < 100_000
    assert "bytes of output were left out" in shown


@pytest.mark.parametrize("held", ["", "ctypes.PyDLL(None).sleep(600)"], ids=["at rest", "in C code"])
def test_the_process_and_its_children_end_with_an_agent_that_is_killed(held: str, tmp_path: Path) -> None:
    """`kill -9` of the agent leaves nothing behind."""
    agent, hook, child = agent_with_a_child(tmp_path, held)
    kill(agent)
    anyio.run(gone, hook)
    anyio.run(gone, child)


@pytest.mark.parametrize("run", range(3))
def test_the_children_of_a_stopped_process_end_with_an_agent_that_is_killed(run: int, tmp_path: Path) -> None:
    """The end of the hook's process does not come before the signal to its group."""
    agent, hook, child = agent_with_a_child(tmp_path)
    os.kill(hook, signal.SIGSTOP)
    kill(agent)
    anyio.run(gone, hook)
    anyio.run(gone, child)


def test_a_fork_of_the_agent_does_not_keep_the_process(tmp_path: Path) -> None:
    """A copy of the agent that goes on after `kill -9` of the agent has no part in the life of its hooks."""
    agent, hook, child = agent_with_a_child(tmp_path, fork=True)
    copy = int((tmp_path / "copy").read_text())
    try:
        kill(agent)
        anyio.run(gone, hook)
        anyio.run(gone, child)
        os.kill(copy, 0)
    finally:
        os.kill(copy, signal.SIGKILL)


def kill(agent: subprocess.Popen[bytes]) -> None:
    """Kill an agent and collect it."""
    agent.kill()
    agent.wait(timeout=PATIENCE)


def agent_with_a_child(
    tmp_path: Path, held: str = "", *, fork: bool = False
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start an agent with a hook that has started a program; return it, and the ids of both processes.

    `held`: the next act of the hook; `fork`: whether a copy of the agent sleeps, whose id is in the file `copy`.
    """
    (tmp_path / "hook.py").write_text(
        dedent(f"""
        import ctypes, os, subprocess
        from pathlib import Path
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                child = subprocess.Popen(["sleep", "600"])
                path = Path(__file__).parent / "pids"
                path.with_suffix(".new").write_text(f"{{os.getpid()}} {{child.pid}} {{os.getppid()}}")
                path.with_suffix(".new").rename(path)
                {held}
        """)
    )
    program = """
        import anyio, sys
        from agent_hooks import HookRunner, ToolCall, load_hooks
        from agent_hooks.settings import HookIsolation, IsolationSettings
        async def main():
            wanted = IsolationSettings(others=HookIsolation(mode="process"))
            loaded = await load_hooks(["hook.py"], cwd=sys.argv[1], isolation=wanted)
            async with HookRunner(loaded, cwd=".") as runner:
                if len(sys.argv) > 2:
                    import os, time
                    if (copy := os.fork()) == 0:
                        time.sleep(600)
                    with open(sys.argv[2], "w") as file:
                        file.write(str(copy))
                await runner.emit(ToolCall(tool_name="bash", tool_call_id="1", input={}))
                await anyio.sleep(600)
        anyio.run(main)
        """
    command = [sys.executable, "-c", dedent(program), str(tmp_path), *([str(tmp_path / "copy")] if fork else [])]
    agent = subprocess.Popen(command, cwd=ROOT, env=unmeasured())
    try:
        until((tmp_path / "pids").exists)
        hook, child, parent = map(int, (tmp_path / "pids").read_text().split())
        assert parent == agent.pid
    except BaseException:
        kill(agent)
        raise
    return agent, hook, child


async def test_leaving_the_runner_ends_the_process_and_its_children(tmp_path: Path) -> None:
    """Nothing of the hook goes on."""
    source = """
    import subprocess
    from pathlib import Path
    def register(api):
        child = subprocess.Popen(["sleep", "600"])
        (Path(__file__).parent / "pid").write_text(str(child.pid))
    """
    async with running(tmp_path, source) as started:
        pid = started.pid
    await gone(pid)
    await gone(int((tmp_path / "pid").read_text()))


async def test_a_hook_that_no_runner_takes_ends_its_process(tmp_path: Path) -> None:
    """A loaded hook that is dropped leaves no process behind."""
    import gc

    loaded = await load(tmp_path, "def register(api): pass")
    process = loaded.hooks[0].process
    assert process is not None
    pid = process.pid
    assert pid is not None
    del loaded, process
    gc.collect()
    await gone(pid)


async def test_an_emit_without_an_entered_runner_raises(tmp_path: Path) -> None:
    """A gate cannot be asked before its process is served, so the call must not pass."""
    loaded = await load(tmp_path, GATE.replace("FALL", "pass"))
    runner = HookRunner(loaded, cwd=tmp_path)
    with pytest.raises(HookUsageError, match="async with HookRunner"):
        await runner.emit(call_of())


async def test_a_process_that_breaks_the_protocol_is_killed_and_its_call_blocks(tmp_path: Path) -> None:
    """Bytes that are no message end the run of the process."""
    source = """
    import os, socket, stat
    def register(api):
        @api.on("tool_call")
        async def gate(event, ctx):
            for fd in range(3, 50):
                try:
                    if stat.S_ISSOCK(os.fstat(fd).st_mode):
                        os.write(fd, b"\\x00\\x00\\x00\\x03abc")
                except OSError:
                    pass
    """
    async with running(tmp_path, source) as started:
        answer = await started.block_of(call_of())
        assert "no message" in answer.reason
