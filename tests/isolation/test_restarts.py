"""A hook that starts again after its end judges as before, or its gates block."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agent_hooks import Block, load_hooks
from isolation.isolating import Started, isolation_of, running
from support import call_of


async def end(started: Started) -> None:
    """Kill the process, and wait until its end was reported."""
    count = len(started.errors)
    os.kill(started.pid, signal.SIGKILL)
    await started.failed(count + 1)


async def reason(started: Started, command: str = "evil", tool: str = "bash") -> str | None:
    """Return the reason of the block of a call, `None` when it may run."""
    answer = await started.emit(call_of(command, tool=tool))
    return answer.reason if isinstance(answer, Block) else None


CHANGING = {
    "another order": "for tool in sorted(GATES, reverse=AGAIN): api.on('tool_call', GATES[tool], tool=tool)",
    "another event": "api.on('tool_result' if AGAIN else 'tool_call', bash, tool='bash')",
    "another function": "api.on('tool_call', write if AGAIN else bash, tool='bash')",
    "another tool": "api.on('tool_call', bash, tool='write' if AGAIN else 'bash')",
    "another pattern": "api.on('tool_call', bash, tool=re.compile('write|bash' if AGAIN else 'bash'))",
    "another priority": "api.on('tool_call', bash, tool='bash', priority=int(AGAIN))",
    "another failure policy": "api.on('tool_call', bash, tool='bash', on_error='continue' if AGAIN else 'block')",
    "another line": "api.on('tool_call', LAMBDAS[AGAIN], tool='bash')",
    "one more": "[api.on('tool_call', bash) for _ in range(1 + AGAIN)]",
    "one less": "[api.on('tool_call', bash) for _ in range(2 - AGAIN)]",
    "none": "AGAIN or api.on('tool_call', bash)",
}


@pytest.mark.parametrize(
    ("change", "anyio_backend"), [*((change, "asyncio") for change in CHANGING), ("another order", "trio")]
)
async def test_a_hook_that_registers_other_handlers_after_its_restart_blocks(change: str, tmp_path: Path) -> None:
    """No stand-in calls another handler than its own, and only a new load lets the gates judge again."""
    source = f"""
    import re
    from pathlib import Path
    from agent_hooks import Block
    MARK = Path(__file__).with_name("started")
    AGAIN = MARK.exists()
    MARK.touch()
    def bash(event, ctx):
        return Block("bash gate") if "evil" in event.input["command"] else None
    def write(event, ctx):
        return None
    GATES = {{"bash": bash, "write": write}}
    LAMBDAS = [
        lambda event, ctx: bash(event, ctx),
        lambda event, ctx: None,
    ]
    def register(api):
        {CHANGING[change]}
    """
    async with running(tmp_path, source) as started:
        assert await reason(started) == "bash gate"
        assert await reason(started, "ls") is None
        await end(started)
        for command in ("evil", "ls", "evil"):
            found = await reason(started, command)
            assert found is not None
            assert "registered other handlers after its restart" in found
            assert "load it again" in found
        # The first run and one restart.
        assert started.process.run == 2
        (tmp_path / "started").unlink()
        paths = [tmp_path / "hook.py"]
        await started.runner.reload(await load_hooks(paths, cwd=tmp_path, isolation=isolation_of("process")))
        assert await reason(started) == "bash gate"
        assert await reason(started, "ls") is None


KEPT = """
import helpers
from agent_hooks import Block

def register(api):
    @api.on("tool_call", tool="bash")
    async def gate(event, ctx):
        import late
        return Block(f"{helpers.WORD} {late.WORD}") if "evil" in event.input["command"] else None
"""
EDITS = {
    "broken": "def register(api:",
    "empty": "def register(api): pass",
    "other gates": KEPT.replace("evil", "other"),
    "removed": None,
}


@pytest.mark.parametrize("edit", EDITS)
async def test_an_own_hook_starts_again_from_the_files_that_were_loaded(edit: str, tmp_path: Path) -> None:
    """An edit of the hook, or of a module beside it, counts from the next load only, also after two ends."""
    for name, word in (("helpers", "first"), ("late", "version")):
        (tmp_path / f"{name}.py").write_text(f"WORD = {word!r}\n")
    async with running(tmp_path, KEPT) as started:
        assert await reason(started) == "first version"
        changed = EDITS[edit]
        for name in ("hook", "helpers", "late"):
            path = tmp_path / f"{name}.py"
            path.unlink() if changed is None else path.write_text(changed)
        for _ in range(2):
            await end(started)
            assert await reason(started) == "first version"
            assert await reason(started, "ls") is None


async def test_a_former_version_that_was_kept_judges_after_its_end(tmp_path: Path) -> None:
    """A reload that fails keeps the former version, and its process starts again as it was."""
    source = KEPT.replace("import helpers", "class helpers: WORD = 'former'").replace("import late", "late = helpers")
    async with running(tmp_path, source) as started:
        path = tmp_path / "hook.py"
        path.write_text("def register(api:")
        await started.runner.reload(await load_hooks([path], cwd=tmp_path, isolation=isolation_of("process")))
        await end(started)
        assert await reason(started) == "former former"
        assert await reason(started, "ls") is None


async def test_each_run_of_a_hook_goes_through_its_sets_in_the_same_order(tmp_path: Path) -> None:
    """The hash of a text is the same in each run, and the hook's own variables are those of the agent."""
    source = """
    import os, subprocess, sys
    from agent_hooks import Block
    def register(api):
        for name in {f"gate{number}" for number in range(40)}:
            def gate(event, ctx):
                return Block(f"{hash('text')} {os.environ.get('PYTHONHASHSEED')} {os.environ.get('PYTHONWARNINGS')}")
            gate.__qualname__ = name
            api.on("tool_call", gate)
    """
    async with running(tmp_path, source) as started:
        before = await reason(started)
        assert before is not None
        assert before.endswith(f" {os.environ.get('PYTHONHASHSEED')} {os.environ.get('PYTHONWARNINGS')}")
        for _ in range(2):
            await end(started)
            assert await reason(started) == before


async def test_the_failures_of_a_process_name_it(tmp_path: Path) -> None:
    """A line about its end, its restart or its unloading says `its process`."""
    source = """
    import os
    from pathlib import Path
    MARK = Path(__file__).with_name("started")
    def register(api):
        if MARK.exists():
            raise ValueError("not twice")
        MARK.touch()
        api.on_unload(lambda: os._exit(5))
    """
    async with running(tmp_path, source) as started:
        os.kill(started.pid, signal.SIGKILL)
        await started.failed(2)
        (tmp_path / "started").unlink()
        await started.runner.reload(
            await load_hooks([tmp_path / "hook.py"], cwd=tmp_path, isolation=isolation_of("process"))
        )
    assert [str(error).partition(": ")[2] for error in started.errors] == [
        "its process on exit: its process ended (killed by SIGKILL)",
        "its process on restart: ValueError: not twice",
        "its process on on_unload: its process ended (exit code 5)",
    ]
