"""The files of records: a chain of lines that a kill, a full disk or a clock that goes back does not break."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.records import writer as writing
from agent_hooks.records.files import file_name, files_of, make_directory, parse_name, session_stem
from agent_hooks.records.index import Index, IndexBusyError
from agent_hooks.records.keyed import KEY_FILE, Keyed, load_key
from agent_hooks.records.lines import AnyLine, Head, Note, Prompt, Tombstone
from agent_hooks.records.pruning import RecordsInUseError, forget, prune, prune_at_times
from agent_hooks.records.reading import (
    Damage,
    check_chain,
    decode_line,
    name_of_session,
    read_heads,
    read_index,
    read_lines,
    record_files,
    tail,
)
from agent_hooks.records.writer import HEAD_LINES, ChainWriter, RecordError
from agent_hooks.storage.files import StorageError
from support import PATIENCE

HEAD = b'"session":"s"'


def b2(data: bytes) -> str:
    """Return the hash of the chain, as the standard library makes it."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def written(directory: Path, *texts: str, session: str = "s", close: bool = True) -> Path:
    """Return the file of a writer that wrote one prompt for each text."""
    writer = ChainWriter(str(directory), session)
    for text in texts:
        writer.write(Prompt, {"id": writer.new_id(), "text": text}, HEAD)
    path = directory / writer.name
    if close:
        writer.close()
    return path


def prompts(path: Path) -> list[str]:
    """Return the texts of the prompts in a file."""
    return [line.text for line in read_lines(str(path)) if isinstance(line, Prompt)]


def notes(path: Path) -> list[Note]:
    """Return the notes in a file."""
    return [line for line in read_lines(str(path)) if isinstance(line, Note)]


def in_a_process(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )


# ---- the chain -------------------------------------------------------------------------------------------------------


@given(texts=st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=8), data=st.data())
def test_a_change_of_any_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    """A whole file has no damage; a file in which one byte differs has, unless the last line has it."""
    path = written(tmp_path_factory.mktemp("records"), *texts)
    assert check_chain(str(path)) is None
    assert prompts(path) == texts
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    last = whole.rfind(b"\n", 0, len(whole) - 1) + 1
    head = read_heads(str(path.parent))[path.name]
    damage = check_chain(str(path))
    assert damage is not None or (at >= last and b2(tail(str(path))[0].removesuffix(b"\n")) != head.head)


def test_each_line_bears_the_hash_of_the_line_before(tmp_path: Path) -> None:
    """The first bears that of the file's name, and all are numbered."""
    path = written(tmp_path, "a", "b", "c")
    first, second, third = path.read_bytes().splitlines()
    prev = [msgspec.json.decode(line)["prev"] for line in (first, second, third)]
    expected = [b2(each) for each in (path.name.encode(), first, second)]
    assert prev == expected
    assert [line.n for line in read_lines(str(path))] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        (lambda lines: [lines[0], lines[2]], "changed"),
        (lambda lines: [lines[1], lines[0], lines[2]], "changed"),
        (lambda lines: [*lines, lines[2]], "changed"),
        (lambda lines: [*lines[:2], lines[2][:20]], "unfinished"),
        (lambda lines: [lines[0], b"\0" * 40 + b"\n", lines[2]], "changed"),
        (lambda lines: [*lines, b"\0" * 40], "unfinished"),
        (lambda lines: [*lines, b'{"kind":"later","v":9}\n'], "changed"),
    ],
)
def test_a_damaged_file_is_read_as_far_as_it_can_be(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], damage: str
) -> None:
    """A line that is missing, moved, doubled, cut or zeros is found, and the others are read."""
    path = written(tmp_path, "a", "b", "c")
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    found = check_chain(str(path))
    assert isinstance(found, Damage)
    assert found.kind == damage
    assert set(prompts(path)) <= {"a", "b", "c"}


def test_a_line_of_a_later_version_is_passed_over_or_read() -> None:
    """Unknown keys are ignored; an unknown kind and a text that is no JSON are no lines."""
    line = decode_line(
        b'{"kind":"prompt","v":99,"prev":"","n":1,"time":"2026-01-01T00:00:00Z","clock":1,"id":"x","new":[1]}'
    )
    assert isinstance(line, Prompt)
    assert line.v == 99
    assert decode_line(b'{"kind":"unheard-of","v":99}') is None
    assert decode_line(b"\xff\0") is None


def test_the_kinds_are_unlike_each_other() -> None:
    """Every kind of line has a tag of its own, by which it is read back."""
    tags = [kind.__struct_config__.tag for kind in AnyLine.__args__]
    assert len(set(tags)) == len(tags)


# ---- files and rights ------------------------------------------------------------------------------------------------


def test_only_this_user_can_read_records(tmp_path: Path) -> None:
    """The directory is 0700, also when it was wider before; every file in it is 0600."""
    directory = tmp_path / "home" / "records"
    make_directory(str(directory))
    directory.chmod(0o755)
    written(directory, "a")
    load_key(str(directory))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_a_directory_of_another_user_takes_no_records(tmp_path: Path) -> None:
    """The error says whose it is."""
    directory = tmp_path / "records"
    directory.mkdir()
    os.chown(directory, 12345, 12345)
    with pytest.raises(RecordError, match="another user"):
        written(directory, "a")


def test_a_session_is_the_set_of_its_files(tmp_path: Path) -> None:
    """Two writers of one session have two files, and neither is another session's whose name begins alike."""
    paths = [written(tmp_path, "a"), written(tmp_path, "b")]
    written(tmp_path, "c", session="s-2")
    assert files_of(str(tmp_path), "s") == sorted(map(str, paths), key=lambda path: parse_name(Path(path).name)[2])  # type: ignore[index]
    assert len(record_files(str(tmp_path))) == 3
    assert record_files(str(tmp_path / "absent")) == []
    assert name_of_session(str(paths[0])) == "s"


@pytest.mark.parametrize("session", ["../../etc/passwd", "a b\n\x1b", "x" * 500, "", "\ud800", "ü"])
def test_any_session_id_has_a_plain_file_name(tmp_path: Path, session: str) -> None:
    """The name stays in the directory, and different ids have different names."""
    name = file_name(session, 1, 2)
    assert parse_name(name) == (session_stem(session), 1, 2)
    assert len(name) < 120
    assert session_stem(session) != session_stem(session + "x")
    written(tmp_path, "a", session=session)
    assert len(files_of(str(tmp_path), session)) == 1


def test_a_forked_process_begins_a_file_of_its_own(tmp_path: Path) -> None:
    """Both chains are whole."""
    code = """
        import os, sys
        from agent_hooks.records.lines import Prompt
        from agent_hooks.records.writer import ChainWriter
        writer = ChainWriter(sys.argv[1], "s")
        def write(text):
            writer.write(Prompt, {"id": writer.new_id(), "text": text}, b'"session":"s"')
        write("before")
        child = os.fork()
        write("child" if child == 0 else "parent")
        writer.close()
        if child:
            os.waitpid(child, 0)
    """
    in_a_process(code, tmp_path)
    paths = [Path(path) for path in record_files(str(tmp_path))]
    assert sorted(map(prompts, paths)) == [["before", "parent"], ["child"]]
    assert [check_chain(str(path)) for path in paths] == [None, None]
    ids = [line.id for path in paths for line in read_lines(str(path))]
    assert len(set(ids)) == 3


def test_a_name_that_is_taken_is_left_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers that start in one millisecond, in containers with the same process id, have two files."""
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    assert written(tmp_path, "a").name.endswith(".5.jsonl")
    assert written(tmp_path, "b").name.endswith(".6.jsonl")


# ---- the unfinished end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", [b'{"kind":"decis', b"\0" * 512])
def test_the_next_writer_notes_an_unfinished_line_once(tmp_path: Path, rest: bytes) -> None:
    """The note names the file and the place; the file itself is left as it is."""
    torn = written(tmp_path, "a", "b")
    size = torn.stat().st_size
    with torn.open("ab") as file:
        file.write(rest)
    second = written(tmp_path, "c")
    third = written(tmp_path, "d")
    (note,) = notes(second)
    assert (note.about, note.file, note.offset, note.bytes) == ("unfinished", torn.name, size, len(rest))
    assert note.session == "s"
    assert notes(third) == []
    assert prompts(torn) == ["a", "b"]


def test_a_file_with_a_living_writer_is_not_unfinished(tmp_path: Path) -> None:
    """Another process may be in the middle of a write."""
    writer = ChainWriter(str(tmp_path), "s")
    writer.write(Prompt, {"id": "1", "text": "a"}, HEAD)
    with (tmp_path / writer.name).open("ab") as file:
        file.write(b"{")
    assert notes(written(tmp_path, "b")) == []
    writer.close()


def test_a_killed_writer_loses_no_line_that_was_written(tmp_path: Path) -> None:
    """The process is killed by SIGKILL right after a write."""
    code = """
        import os, signal, sys
        from agent_hooks.records.lines import Prompt
        from agent_hooks.records.writer import ChainWriter
        writer = ChainWriter(sys.argv[1], "s")
        for text in "abc":
            writer.write(Prompt, {"id": writer.new_id(), "text": text}, b'"session":"s"')
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with pytest.raises(subprocess.CalledProcessError):
        in_a_process(code, tmp_path)
    (path,) = record_files(str(tmp_path))
    assert prompts(Path(path)) == ["a", "b", "c"]
    assert check_chain(path) is None
    assert read_heads(str(tmp_path))[Path(path).name].at == "start"


# ---- a full disk, a clock --------------------------------------------------------------------------------------------


FULL = """
    import resource, sys
    from agent_hooks.records.lines import Prompt
    from agent_hooks.records.writer import ChainWriter, RecordError
    writer = ChainWriter(sys.argv[1], "s")
    def write(text):
        writer.write(Prompt, {"id": writer.new_id(), "text": text}, b'"session":"s"')
    write("a")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (writer._size + 50, hard))
    for _ in range(3):
        try:
            write("lost")
        except RecordError as exc:
            print(exc)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    write("b")
    writer.close()
"""


def test_a_line_that_does_not_fit_is_taken_back_and_noted(tmp_path: Path) -> None:
    """The chain goes on as soon as there is room, behind a note with the number of lost lines."""
    done = in_a_process(FULL, tmp_path)
    assert done.stdout.count("a record was not written to") == 3
    (path,) = map(Path, record_files(str(tmp_path)))
    assert check_chain(str(path)) is None
    assert prompts(path) == ["a", "b"]
    (note,) = notes(path)
    assert (note.about, note.lines) == ("lost", 3)
    assert note.reason


def test_an_index_that_cannot_be_written_delays_only_the_head(tmp_path: Path) -> None:
    """The lines are written all the same."""
    (tmp_path / "index.jsonl").mkdir()
    path = written(tmp_path, "a", "b")
    assert prompts(path) == ["a", "b"]


def test_a_short_write_to_the_index_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index ends in a whole line."""
    index = Index(str(tmp_path))
    index.append(Head, {"file": "a"})
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    with pytest.raises(StorageError, match=os.strerror(errno.ENOSPC)):
        index.append(Head, {"file": "b"})
    monkeypatch.undo()
    index.append(Head, {"file": "c"})
    assert list(read_heads(str(tmp_path))) == ["a", "c"]
    index.close()


def test_a_clock_that_goes_back_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers and the monotonic time go on growing."""

    writer = ChainWriter(str(tmp_path), "s")
    for hour in (0, 1, 1):
        at = datetime(2026, 1, 2, tzinfo=UTC) - timedelta(hours=hour)
        monkeypatch.setattr(time, "time_ns", partial(int, at.timestamp() * 1e9))
        writer.write(Prompt, {"id": "x", "text": str(hour)}, HEAD)
    path = tmp_path / writer.name
    writer.close()
    assert prompts(path) == ["0", "1", "1"]
    assert [note.about for note in notes(path)] == ["clock"]
    assert notes(path)[0].reason == "the clock went back, from 2026-01-02T00:00:00+00:00"
    lines = list(read_lines(str(path)))
    assert [line.n for line in lines] == [1, 2, 3, 4]
    assert [line.clock for line in lines] == sorted(line.clock for line in lines)
    assert check_chain(str(path)) is None


# ---- the index -------------------------------------------------------------------------------------------------------


def test_heads_are_written_at_the_start_at_times_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many lines, or after so many seconds."""
    written(tmp_path, *"x" * (HEAD_LINES + 1))
    heads = [line for line in read_index(str(tmp_path)) if isinstance(line, Head)]
    assert [(head.at, head.lines) for head in heads] == [("start", 0), ("lines", HEAD_LINES), ("end", HEAD_LINES + 1)]
    monkeypatch.setattr(writing, "HEAD_SECONDS", 0.0)
    written(tmp_path, "a")
    assert [line.at for line in read_index(str(tmp_path)) if isinstance(line, Head)][3:] == ["start", "time"]
    assert check_index(tmp_path) is None


def check_index(directory: Path) -> Damage | None:
    """Return the damage of the index, which is a chain as well."""
    return check_chain(str(directory / "index.jsonl"))


def test_a_head_shows_that_a_file_was_cut(tmp_path: Path) -> None:
    """Without its last line the chain is whole, but the head is not."""
    path = written(tmp_path, "a", "b")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])
    assert check_chain(str(path)) is None
    head = read_heads(str(tmp_path))[path.name]
    assert head.lines == 2
    assert head.head == b2(lines[1].removesuffix(b"\n"))


def test_processes_append_to_the_index_one_after_another(tmp_path: Path) -> None:
    """The index of four processes is one whole chain."""
    code = """
        import sys
        from agent_hooks.records.index import Index
        from agent_hooks.records.lines import Head
        index = Index(sys.argv[1])
        for number in range(50):
            index.append(Head, {"file": f"{sys.argv[2]}-{number}"}, patience=30)
    """
    running = [
        subprocess.Popen([sys.executable, "-c", dedent(code), str(tmp_path), str(number)]) for number in range(4)
    ]
    assert [process.wait(PATIENCE) for process in running] == [0] * 4
    assert check_index(tmp_path) is None
    assert len(read_heads(str(tmp_path))) == 200


def test_a_part_of_a_line_at_the_end_of_the_index_is_cut_off(tmp_path: Path) -> None:
    """A note says so, and the chain goes on."""
    written(tmp_path, "a")
    with (tmp_path / "index.jsonl").open("ab") as file:
        file.write(b'{"kind":"he')
    written(tmp_path, "b")
    assert check_index(tmp_path) is None
    assert [line.about for line in read_index(str(tmp_path)) if isinstance(line, Note)] == ["unfinished"]


def test_a_locked_index_is_not_waited_for_long(tmp_path: Path) -> None:
    """The head waits for the next time."""
    holder, other = Index(str(tmp_path)), Index(str(tmp_path))
    holder.append(Head, {"file": "a"})
    holder._acquire(0)
    with pytest.raises(IndexBusyError):
        other.append(Head, {"file": "b"}, patience=0.01)
    with pytest.raises(IndexBusyError):
        other.compact(lambda name: False, patience=0.01)
    holder.close()
    other.append(Head, {"file": "b"})
    other.close()
    assert list(read_heads(str(tmp_path))) == ["a", "b"]


# ---- pruning ---------------------------------------------------------------------------------------------------------


def age(path: Path, days: float) -> None:
    """Make a file look as if it was last written so many days ago."""
    then = path.stat().st_mtime - days * 86_400
    os.utime(path, (then, then))


def test_old_records_are_removed_and_leave_a_tombstone(tmp_path: Path) -> None:
    """The tombstone has the number of lines and the last hash; the index forgets the heads."""
    old, new = written(tmp_path, "a", "b"), written(tmp_path, "c", session="t")
    age(old, 31)
    head = b2(old.read_bytes().splitlines()[-1])
    prune(str(tmp_path), 30, 1 << 30)
    assert not old.exists()
    assert new.exists()
    (tombstone,) = [line for line in read_index(str(tmp_path)) if isinstance(line, Tombstone)]
    assert tombstone.why == "prune"
    (removed,) = tombstone.files
    assert (removed.file, removed.session, removed.lines, removed.head) == (old.name, "s", 2, head)
    assert list(read_heads(str(tmp_path))) == [new.name]
    written(tmp_path, "d")
    assert prune(str(tmp_path), 30, 1 << 30) == []


def test_the_oldest_records_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    """A file with a living writer stays."""
    first, second, third = (written(tmp_path, "x" * 1000, session=name) for name in "abc")
    for days, path in ((3, first), (2, second), (1, third)):
        age(path, days)
    living = ChainWriter(str(tmp_path), "d")
    living.write(Prompt, {"id": "1", "text": "y" * 1000}, HEAD)
    age(tmp_path / living.name, 40)
    prune(str(tmp_path), 30, third.stat().st_size * 2 + 100)
    assert [path.exists() for path in (first, second, third)] == [False, False, True]
    assert (tmp_path / living.name).exists()
    living.close()


def test_a_session_can_be_forgotten(tmp_path: Path) -> None:
    """Not while its records are being written."""
    path = written(tmp_path, "a")
    writer = ChainWriter(str(tmp_path), "s")
    writer.write(Prompt, {"id": "1", "text": "b"}, HEAD)
    with pytest.raises(RecordsInUseError, match="still being recorded"):
        forget(str(tmp_path), "s")
    writer.close()
    assert len(forget(str(tmp_path), "s")) == 2
    assert not path.exists()
    assert forget(str(tmp_path), "s") == []
    assert [line.why for line in read_index(str(tmp_path)) if isinstance(line, Tombstone)] == ["forget"]


def test_a_damaged_file_can_be_removed(tmp_path: Path) -> None:
    """Its tombstone has the facts that could be read."""
    path = written(tmp_path, "a")
    path.write_bytes(b"\0" * 100)
    (removed,) = forget(str(tmp_path), "s")
    assert (removed.file, removed.lines, removed.session) == (path.name, 0, "s")


def test_pruning_happens_at_most_once_an_hour(tmp_path: Path) -> None:
    """A writer that starts in between does not look for old files."""
    old = written(tmp_path, "a")
    age(old, 31)
    prune_at_times(str(tmp_path / "absent"), 30, 1 << 30)
    prune_at_times(str(tmp_path), 30, 1 << 30)
    assert not old.exists()
    other = written(tmp_path, "b")
    age(other, 31)
    prune_at_times(str(tmp_path), 30, 1 << 30)
    assert other.exists()
    age(tmp_path / "pruned", 1)
    prune_at_times(str(tmp_path), 30, 1 << 30)
    assert not other.exists()


def test_the_tail_of_a_long_line_is_found(tmp_path: Path) -> None:
    """A line may be longer than the piece that is read first."""
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"b" * 100_000 + b"\n" + b"c" * 9000)
    assert tail(str(path)) == (b"b" * 100_000 + b"\n", 100_003, 109_003)
    path.write_bytes(b"no newline")
    assert tail(str(path)) == (b"", 0, 10)


# ---- the key ---------------------------------------------------------------------------------------------------------


@given(key=st.binary(min_size=1, max_size=200), data=st.binary(max_size=500))
def test_the_digest_is_the_hmac_of_the_standard(key: bytes, data: bytes) -> None:
    """It is HMAC with BLAKE2b of 32 bytes, for keys of any length."""
    made = hmac.new(key, data, partial(hashlib.blake2b, digest_size=32))
    assert Keyed(key)(data) == made.hexdigest()


def test_the_key_is_made_once(tmp_path: Path) -> None:
    """Only this user can read it, and no draft of it stays; a damaged key is an error that names the file."""
    key = load_key(str(tmp_path))
    assert load_key(str(tmp_path)) == key
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    (tmp_path / KEY_FILE).write_bytes(b"short")
    with pytest.raises(StorageError, match=KEY_FILE):
        load_key(str(tmp_path))


def test_processes_that_make_the_key_at_once_agree(tmp_path: Path) -> None:
    """The first one's key stays."""
    code = "import sys; from agent_hooks.records.keyed import load_key; print(load_key(sys.argv[1]).hex())"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=PATIENCE)[0] for process in running}) == 1
