"""Records last: without a key, without their directory, across forks, locks and many sessions."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from agent_hooks import AgentStart, HookContext, HookRunner, ToolCall
from agent_hooks.records import Records, reading
from agent_hooks.records import pruning as pruning_room
from agent_hooks.records.files import make_directory
from agent_hooks.records.keyed import load_key
from agent_hooks.records.lines import Decision, Line, Note, Prompt
from agent_hooks.records.pruning import forget, prune_at_times
from agent_hooks.records.reading import Damage, check_chain, raw_lines, read_lines, record_files, tail
from agent_hooks.records.writer import ChainWriter, is_written
from agent_hooks.storage.files import StorageError
from agent_hooks.testing import ScriptedUI, call_tool
from support import PATIENCE, hook_on

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "0123456789abcdefghij" * 2
HEAD = b'"session":"s"'


def lines(directory: Path) -> list[Line]:
    """Return all lines of a directory's record files."""
    return [line for path in record_files(str(directory)) for line in read_lines(path)]


def runner_of(home: Path, *hooks: Any, required: bool = False, **options: Any) -> tuple[HookRunner, list[str]]:
    """Return a runner that writes records, and the list of its reports."""
    errors: list[str] = []
    runner = HookRunner(list(hooks), cwd=str(home), records=Records(home=str(home), required=required), **options)
    runner.on_error(lambda error: errors.append(str(error)))
    return runner, errors


async def start(runner: HookRunner, session: str) -> None:
    """Let the agent of another session begin its work."""
    await runner.engine.emit(AgentStart(), replace(runner.engine.surroundings, session_id=session))


def write(writer: ChainWriter, text: str = "a", *, required: bool = False) -> None:
    """Write one prompt."""
    writer.write(Prompt, {"id": writer.new_id(), "text": text}, HEAD, required=required)


# ---- records that are required ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("spoil", [lambda key: key.write_text("short"), lambda key: key.mkdir()])
async def test_without_a_key_no_call_runs_where_records_are_required(
    tmp_path: Path, required: bool, spoil: Callable[[Path], Any]
) -> None:
    """Otherwise the lines have no digest; the failure is reported once."""
    make_directory(str(tmp_path / "records"))
    spoil(tmp_path / "records" / "key")
    runner, errors = runner_of(tmp_path, required=required)
    for _ in range(3):
        output = await call_tool(runner, "bash", {"command": "ls"})
        assert output.is_error == required
        assert ("records.required" in output.text) == required
    runner.end_records()
    assert len(errors) == 1
    assert "key" in errors[0]
    assert [line.digest for line in lines(tmp_path / "records") if isinstance(line, Decision)] == [""] * (
        0 if required else 3
    )


async def test_a_directory_that_was_removed_is_made_again_before_a_required_decision(tmp_path: Path) -> None:
    """The lines that went with it are noted as lost; where no directory can be made, the call does not run."""
    directory = tmp_path / "records"
    runner, _ = runner_of(tmp_path, required=True)
    await call_tool(runner, "bash", {"command": "ls"})
    shutil.rmtree(directory)
    assert not (await call_tool(runner, "bash", {"command": "pwd"})).is_error
    note = next(line for line in lines(directory) if isinstance(line, Note))
    assert (note.about, note.lines) == ("lost", 2)
    assert "was removed" in note.reason
    assert [line.input for line in lines(directory) if isinstance(line, Decision)] == [{"command": "pwd"}]
    shutil.rmtree(directory)
    directory.write_text("in the way")
    assert "is not a directory" in (await call_tool(runner, "bash", {"command": "ls"})).text
    runner.end_records()


def test_a_file_that_was_removed_is_left_at_the_next_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where records are not required."""
    writer = ChainWriter(str(tmp_path / "records"), "s")
    write(writer)
    shutil.rmtree(tmp_path / "records")
    monkeypatch.setattr("agent_hooks.records.writer.HEAD_LINES", 2)
    write(writer, "b")
    write(writer, "c")
    writer.close()
    note, prompt = lines(tmp_path / "records")
    assert isinstance(note, Note)
    assert (note.about, note.lines) == ("lost", 2)
    assert isinstance(prompt, Prompt)
    assert prompt.text == "c"


async def test_lines_that_were_lost_before_a_file_could_be_made_are_noted(tmp_path: Path) -> None:
    """The reason says that the directory is none."""
    directory = tmp_path / "records"
    directory.write_text("in the way")
    runner, errors = runner_of(tmp_path)
    for _ in range(3):
        await call_tool(runner, "bash", {"command": "ls"})
    directory.unlink()
    await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    note = next(line for line in lines(directory) if isinstance(line, Note))
    assert (note.about, note.lines) == ("lost", 6)
    assert "is not a directory" in note.reason
    assert len(errors) == 1
    assert "is not a directory" in errors[0]


def test_a_path_below_a_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """For the directory and for the key."""
    (tmp_path / "file").write_text("")
    for call in (make_directory, load_key):
        with pytest.raises(StorageError, match="cannot"):
            call(str(tmp_path / "file" / "records"))
        with pytest.raises(StorageError):
            call(str(tmp_path / "file"))


# ---- forks, descriptors, locks ---------------------------------------------------------------------------------------


FORK = """
    import os, sys, threading
    from agent_hooks.records.lines import Prompt
    from agent_hooks.records.writer import ChainWriter
    inside, go_on = threading.Event(), threading.Event()
    slow = threading.Event()
    def tap(name, data):
        if slow.is_set():
            inside.set()
            go_on.wait()
    writer = ChainWriter(sys.argv[1], "s", tap)
    def write(text):
        writer.write(Prompt, {"id": writer.new_id(), "text": text}, b'"session":"s"')
    write("before")
    slow.set()
    thread = threading.Thread(target=write, args=("thread",))
    thread.start()
    inside.wait()
    child = os.fork()
    slow.clear()
    if child == 0:
        write("child")
        os._exit(0)
    os.waitpid(child, 0)
    go_on.set()
    thread.join()
"""


def test_a_child_of_a_fork_writes_while_a_thread_of_its_parent_was_writing(tmp_path: Path) -> None:
    """The lock of that thread is not inherited."""
    code = dedent(FORK)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=PATIENCE, check=True, start_new_session=True)
    texts = [
        [line.text for line in read_lines(path) if isinstance(line, Prompt)] for path in record_files(str(tmp_path))
    ]
    assert sorted(texts) == [["before", "thread"], ["child"]]


async def test_a_runner_that_was_dropped_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """Also without an end."""
    for _ in range(2):
        runner, _ = runner_of(tmp_path)
        await call_tool(runner, "bash", {"command": "ls"})
    del runner
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    for _ in range(10):
        runner, _ = runner_of(tmp_path)
        await call_tool(runner, "bash", {"command": "ls"})
        del runner
    gc.collect()
    assert len(os.listdir("/dev/fd")) <= before


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[None]:
    """Hold the lock of the index, as another process."""
    make_directory(str(tmp_path / "records"))
    fd = os.open(tmp_path / "records" / "index.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield
    os.close(fd)


@pytest.mark.usefixtures("busy")
async def test_many_sessions_wait_only_once_for_a_busy_index(tmp_path: Path) -> None:
    """Those that are left wait not at all, and the end of a runner waits once for all of its sessions."""
    runner, _ = runner_of(tmp_path)
    began = time.monotonic()
    for number in range(80):
        await start(runner, f"s{number}")
    runner.end_records()
    assert time.monotonic() - began < 0.5 * 6


def test_a_new_file_is_locked_although_another_process_asks_for_its_writer(tmp_path: Path) -> None:
    """The question does not keep the lock for itself, so that no later pruning takes the file for an old one."""
    real, asked = os.open, []

    def ask_at_once(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        fd = real(path, flags, *rest, **options)
        if str(path).endswith(".jsonl") and flags & os.O_EXCL:
            other = real(path, os.O_RDONLY)
            fcntl.flock(other, fcntl.LOCK_SH)
            asked.append(other)
            threading.Timer(0.01, os.close, [other]).start()
        return fd

    writer = ChainWriter(str(tmp_path), "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", ask_at_once)
        write(writer)
    assert asked
    assert is_written(str(tmp_path / writer.name))
    writer.close()
    fd = os.open(tmp_path / record_files(str(tmp_path))[0], os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    assert len(forget(str(tmp_path), "s")) == 1
    os.close(fd)


async def test_a_server_keeps_the_sessions_that_are_in_use(tmp_path: Path) -> None:
    """The one that was not used for longest is left, so that a session in use has one file."""
    runner, _ = runner_of(tmp_path)
    for number in range(70):
        for session in ("busy", f"s{number}", f"t{number % 20}"):
            await start(runner, session)
    runner.end_records()
    names = [Path(path).name.split(".")[0] for path in record_files(str(tmp_path / "records"))]
    assert [names.count(name) for name in ("busy", "t3")] == [1, 1]


# ---- secrets in names, and values of any kind ------------------------------------------------------------------------


async def test_names_with_a_secret_reach_no_record_and_no_file_name(tmp_path: Path) -> None:
    """A session id with a secret becomes a digest."""
    runner, _ = runner_of(tmp_path, session_id=f"sess-{TOKEN}")
    await call_tool(runner, f"tool_{TOKEN}", {"command": "ls"})
    await call_tool(runner, f"tool {TOKEN}", {"command": "ls"})
    runner.end_records()
    for path in (tmp_path / "records").iterdir():
        assert b"ghp_" not in path.read_bytes()
        assert "ghp_" not in path.name
    assert len({line.session for line in lines(tmp_path / "records")}) == 1
    assert lines(tmp_path / "records")[0].session.startswith("session-")


async def test_a_dialog_with_an_odd_title_fails_at_its_call_as_it_does_without_records(tmp_path: Path) -> None:
    """The gate blocks the call, and the reason names the argument."""

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        odd: Any = 5
        await ctx.ui.confirm(odd)

    runner, _ = runner_of(tmp_path, hook_on("tool_call", gate), ui=ScriptedUI(True))
    recorded = await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    plain = HookRunner([hook_on("tool_call", gate)], cwd=tmp_path, ui=ScriptedUI(True))
    assert recorded == await call_tool(plain, "bash", {"command": "ls"})
    assert "title is a text, not 5" in str(recorded.content)


# ---- long lines, many files ------------------------------------------------------------------------------------------


def test_a_line_that_no_writer_wrote_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is damage, and the lines behind it are read."""
    monkeypatch.setattr(reading, "LONGEST", 1000)
    path = tmp_path / "s.1.1.jsonl"
    path.write_bytes(b"x" * 5000)
    assert [len(data) for _, data in raw_lines(str(path))] == [1001]
    assert check_chain(str(path)) == Damage("changed", 1, 0)
    assert tail(str(path)) == (b"", 0, 5000)
    path.write_bytes(b"a\n" + b"x" * 5000 + b"\nb\n" + b"y" * 1000 + b"\n")
    found = list(raw_lines(str(path)))
    assert [(offset, len(data)) for offset, data in found] == [(0, 2), (2, 1001), (5003, 2), (5005, 1001)]
    assert tail(str(path)) == (b"", 6006, 6006)


def test_a_line_without_a_head_is_refused(tmp_path: Path) -> None:
    """It would be no JSON."""
    with pytest.raises(ValueError, match="head is empty"):
        ChainWriter(str(tmp_path), "s").write(Prompt, {"id": "1"}, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_pruning_between_two_calls_is_short_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that it leaves are removed a minute later."""
    for number in range(30):
        writer = ChainWriter(str(tmp_path), f"s{number}")
        write(writer)
        writer.close()
    for path in record_files(str(tmp_path)):
        os.utime(path, (1, 1))
    monkeypatch.setattr(pruning_room, "_SHORT", 0.0)
    prune_at_times(str(tmp_path), 30, 1 << 30)
    assert len(record_files(str(tmp_path))) == 29
    age = time.time() - (tmp_path / "pruned").stat().st_mtime
    assert 3500 < age < 3600
    monkeypatch.undo()
    os.utime(tmp_path / "pruned", (1, 1))
    prune_at_times(str(tmp_path), 30, 1 << 30)
    assert record_files(str(tmp_path)) == []
