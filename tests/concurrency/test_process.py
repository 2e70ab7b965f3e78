"""Programs that a hook runs: their output, their exit codes, and that they end."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import anyio
import pytest

from agent_hooks import Block, ExecResult, HookContext, HookRunner, LoadedHook, TurnStart
from agent_hooks.concurrency import process
from agent_hooks.concurrency.process import CAPTURE_LIMIT, Capture, run, stream
from agent_hooks.testing import RecordedEvents, StepClock
from support import PATIENCE, call_of, gone, hook_on, runner_of

pytestmark = pytest.mark.anyio
LoadHook = Callable[..., Awaitable[LoadedHook]]
Exec = Callable[..., Awaitable[ExecResult]]
EVENT = TurnStart(turn_index=0, timestamp=0)


@pytest.fixture
def run_in_hook(load_hook: LoadHook, tmp_path: Path) -> Exec:
    """Give a function that runs a program by `ctx.exec` in a handler of a loaded hook: `await run_in_hook("'ls'")`."""

    async def execute(arguments: str) -> ExecResult:
        hook = await load_hook(f"""
            results = []
            def register(api):
                @api.on("turn_start")
                async def call(event, ctx):
                    results.append(await ctx.exec({arguments}))
        """)
        runner = HookRunner([hook], cwd=tmp_path)
        recorded = RecordedEvents(runner)
        await runner.emit(EVENT)
        assert not recorded.errors, recorded.errors[0]
        assert hook.module is not None
        result = hook.module.results[0]
        assert isinstance(result, ExecResult)
        return result

    return execute


async def test_a_program_that_ends_well_gives_its_output_and_code_0(run_in_hook: Exec, tmp_path: Path) -> None:
    """Both streams apart, in the agent's directory, no signal."""
    result = await run_in_hook("'sh', ['-c', 'pwd; echo oops >&2']")
    assert result == ExecResult(stdout=f"{tmp_path}\n", stderr="oops\n", code=0, killed=False)


async def test_a_program_that_fails_gives_its_code(run_in_hook: Exec) -> None:
    """Exit code 3 is 3."""
    assert await run_in_hook("'sh', ['-c', 'exit 3']") == ExecResult("", "", 3)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("'no-such-program-here'", 127, "no-such-program-here: cannot start: No such file"),
        ("'/'", 126, "/: cannot start: Permission denied"),
        ("'ls', cwd='/no/such/directory'", 127, "the working directory /no/such/directory does not exist"),
    ],
)
async def test_a_program_that_cannot_start_is_a_result_that_says_what_is_missing(
    run_in_hook: Exec, arguments: str, code: int, told: str
) -> None:
    """A missing program does not raise in the handler."""
    result = await run_in_hook(arguments)
    assert (result.code, result.killed, result.stdout) == (code, False, "")
    assert told in result.stderr


async def until_it_speaks(execute: Callable[[float], Awaitable[ExecResult]]) -> ExecResult:
    """Run a program that goes on for ever, with such a timeout that it has come to say something."""
    for timeout in (0.2, 1, 5):
        result = await execute(timeout)
        if result.stdout:
            return result
    return await execute(PATIENCE)


async def test_a_program_past_its_timeout_is_killed_and_its_output_so_far_is_kept(run_in_hook: Exec) -> None:
    """`killed` is true and the code is not 0."""
    program = "'sh', ['-c', 'echo begun; exec sleep 1000']"
    result = await until_it_speaks(lambda timeout: run_in_hook(f"{program}, {timeout=}"))
    assert (result.stdout, result.killed, result.code) == ("begun\n", True, 128 + signal.SIGTERM)


async def test_a_program_that_ends_well_on_sigterm_has_still_been_killed(tmp_path: Path) -> None:
    """A clean exit after our signal is not code 0."""
    program = "trap 'exit 0' TERM; echo; sleep 1000 & wait"
    result = await until_it_speaks(lambda timeout: run("sh", ["-c", program], cwd=tmp_path, timeout=timeout))
    assert (result.killed, result.code) == (True, 1)


async def test_a_program_that_another_signal_ended_was_killed(tmp_path: Path) -> None:
    """128 and the number of the signal, as in a shell."""
    assert await run("sh", ["-c", "kill -9 $$"], cwd=tmp_path) == ExecResult("", "", 137, killed=True)


async def test_cancelling_the_caller_ends_the_program(tmp_path: Path) -> None:
    """No process outlives the task that waits for it."""
    pids: list[int] = []

    async def call() -> None:
        await stream(
            ["sh", "-c", "echo $$; exec sleep 1000"], cwd=tmp_path, stdout=lambda chunk: pids.append(int(chunk))
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(PATIENCE):
            while not pids:
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_a_program_that_ignores_sigterm_is_killed_after_a_grace(
    run_in_hook: Exec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM first, and 2 s later KILL."""
    assert process.GRACE == 2
    monkeypatch.setattr(process, "GRACE", 0.4)
    started = perf_counter()
    program = """'sh', ['-c', 'trap "" TERM; echo begun; sleep 1000']"""
    result = await until_it_speaks(lambda timeout: run_in_hook(f"{program}, {timeout=}"))
    assert (result.stdout, result.killed, result.code) == ("begun\n", True, 128 + signal.SIGKILL)
    assert perf_counter() - started >= 0.4


async def test_grandchildren_that_hold_the_pipe_are_ended_with_their_group(run_in_hook: Exec) -> None:
    """A timeout ends the whole process group, also a member that ignores SIGTERM."""
    program = """'sh', ['-c', '(trap "" TERM; sleep 1000) & deaf=$!; sleep 1000 & echo $deaf $!; wait']"""
    result = await until_it_speaks(lambda timeout: run_in_hook(f"{program}, {timeout=}"))
    assert result.killed
    for pid in result.stdout.split():
        await gone(int(pid))


@pytest.mark.parametrize("timeout", [None, PATIENCE])
async def test_a_program_that_ended_does_not_wait_for_who_holds_its_pipe(tmp_path: Path, timeout: float | None) -> None:
    """A background child keeps the pipe open: the program's own end counts, and its code is its own."""
    result = await run("sh", ["-c", "sleep 1000 & echo $!"], cwd=tmp_path, timeout=timeout)
    with suppress(ProcessLookupError):
        os.kill(int(result.stdout), signal.SIGKILL)
    assert (result.code, result.killed) == (0, False)


async def test_a_character_split_over_reads_is_one_character(run_in_hook: Exec) -> None:
    """Text is decoded as a whole, not read by read."""
    result = await run_in_hook(
        r"""'sh', ['-c', r"printf '\303'; sleep 0.05; printf '\251\360\237'; printf '\220\215'"]"""
    )
    assert result.stdout == "é🐍"


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    """A program may print anything."""
    assert (await run("printf", [r"a\377b"], cwd=tmp_path)).stdout == "a\ufffdb"


async def test_a_gigabyte_of_output_is_capped_with_a_note_and_bounded_memory(run_in_hook: Exec) -> None:
    """The first 10 MB are kept, the note says how much is missing, and the process stays small."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await run_in_hook("'head', ['-c', '1G', '/dev/zero']")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 100 * 1024 * 1024
    assert result.code == 0
    text, _, note = result.stdout.partition("\n")
    assert len(text) == CAPTURE_LIMIT
    assert note == f"[{2**30 - CAPTURE_LIMIT} more bytes were left out; {CAPTURE_LIMIT} bytes are kept]"


async def test_the_cap_does_not_leave_half_a_character() -> None:
    """A character that the limit cuts in two is left out."""
    capture = Capture(4)
    capture("aéé".encode())
    assert capture.text() == "aé\n[1 more bytes were left out; 4 bytes are kept]"
    whole = Capture(4)
    whole(b"abcd")
    assert whole.text() == "abcd"


async def test_a_program_that_reads_its_input_gets_the_end_of_it(run_in_hook: Exec) -> None:
    """`cat` ends at once."""
    assert await run_in_hook("'cat', timeout=60") == ExecResult("", "", 0)


async def test_streams_without_a_receiver_for_errors_come_in_the_order_written(tmp_path: Path) -> None:
    """One pipe for both."""
    chunks: list[bytes] = []
    code = await stream(["sh", "-c", "echo a; echo b >&2; echo c"], cwd=tmp_path, stdout=chunks.append)
    assert (b"".join(chunks), code) == (b"a\nb\nc\n", (0, False))


async def test_a_receiver_that_has_had_enough_ends_the_program(tmp_path: Path) -> None:
    """Returning `True` stops a program that would print for ever."""
    code, killed = await stream(["yes"], cwd=tmp_path, stdout=lambda chunk: True)
    assert (code, killed) == (128 + signal.SIGKILL, True)


async def test_the_environment_can_be_given(tmp_path: Path) -> None:
    """`env` replaces the inherited one."""
    chunks: list[bytes] = []
    await stream(["/usr/bin/env"], cwd=tmp_path, stdout=chunks.append, env={"ONLY": "this"})
    assert b"".join(chunks) == b"ONLY=this\n"


async def test_no_file_descriptor_is_left_open(tmp_path: Path) -> None:
    """Neither by programs that ran nor by ones that could not start."""
    await run("true", cwd=tmp_path)
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        await run("true", cwd=tmp_path)
        await run("no-such-program-here", cwd=tmp_path)
    assert len(os.listdir("/dev/fd")) == before


CANCELLED = """
import os, sys
import anyio
from anyio.lowlevel import checkpoint
from agent_hooks.concurrency.process import stream


async def main(steps):
    async with anyio.create_task_group() as tasks:
        async def go():
            await stream(["sleep", "1000"], cwd="/", stdout=lambda chunk: None)

        tasks.start_soon(go)
        for _ in range(steps):
            await checkpoint()
        tasks.cancel_scope.cancel()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return
    sys.exit(f"after {steps} steps a program was left")


for steps in range(8):
    anyio.run(main, steps, backend=sys.argv[1])
"""


async def test_a_program_whose_start_is_cancelled_is_not_left_to_itself(anyio_backend_name: str) -> None:
    """At whichever step; an event loop that closes before the end of a program complains about it."""
    done = await anyio.run_process([sys.executable, "-c", CANCELLED, anyio_backend_name], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# asyncio warns of the process of the abandoned call when that is collected, which happens here.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
async def test_a_program_of_a_handler_that_is_given_up_is_killed(tmp_path: Path) -> None:
    """asyncio gives a handler up after a second, in which the program has ignored SIGTERM."""
    file = tmp_path / "pid"
    answers: list[object] = []

    async def handler(event: object, ctx: HookContext) -> None:
        await ctx.exec("sh", ["-c", f"trap '' TERM; echo $$ > {file}; while :; do sleep 0.05; done"])

    runner, _ = runner_of(hook_on("tool_call", handler), tool_call_timeout=600)
    clock = StepClock(runner)

    async def judge() -> None:
        answers.append(await runner.emit(call_of()))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(judge)
            while not (file.exists() and file.read_text()):
                await anyio.sleep(0.01)
            await clock.advance(601)
    assert isinstance(answers[0], Block)
    await gone(int(file.read_text()))
    gc.collect()


async def test_a_process_that_ends_at_once_takes_its_programs_with_it(tmp_path: Path) -> None:
    """The whole group of each running program is killed, also one that ignores a request to end."""
    results: list[ExecResult] = []

    async def run_it() -> None:
        results.append(await run("sh", ["-c", "trap '' TERM; echo > ready; sleep 600"], cwd=tmp_path))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_it)
            while not (tmp_path / "ready").exists():
                await anyio.sleep(0.01)
            # On a busy machine the program may be ready before the thread that started it has reported it.
            while not results:
                process.kill_left()
                await anyio.sleep(0.01)
    assert (results[0].code, results[0].killed) == (128 + signal.SIGKILL, True)
