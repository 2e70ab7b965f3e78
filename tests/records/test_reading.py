"""Record files are read whole or damaged: lines are joined to records, and compared with the chain and the heads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.records.files import INDEX
from agent_hooks.records.joining import CHANGED, Reader, Record, Wanted
from agent_hooks.records.lines import Answer, Change, Decision, Line, Observed, Prompt, Question, Result, Step
from agent_hooks.records.pruning import forget, prune
from agent_hooks.records.reading import record_files
from agent_hooks.records.verifying import Kept, Report, current_heads, verify
from agent_hooks.records.writer import ChainWriter
from support import PATIENCE

HEAD = b'"session":"s","client":"agent-hooks","project":"/p"'
BLOCK: dict[str, Any] = {
    "tool": "bash",
    "verdict": "block",
    "by": "gate.py",
    "steps": (Step(stage="tool_call", by="gate.py", file="/p/gate.py", line=3, answer="block", outcome="blocked"),),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give the directory of the records."""
    return tmp_path / "records"


def write(directory: Path, *lines: tuple[type[Line], dict[str, Any]], session: str = "s") -> Path:
    """Write lines of one session and process, and return the file."""
    writer = ChainWriter(str(directory), session)
    for kind, fields in lines:
        writer.write(kind, {"id": writer.new_id()} | fields, HEAD.replace(b'"s"', json.dumps(session).encode()))
    path = directory / writer.name
    writer.close()
    return path


def read(directory: Path, **wanted: Any) -> list[Record]:
    """Return the selected records."""
    return list(Reader(str(directory)).records(Wanted(**wanted)))


def problems(report: Report) -> list[str]:
    """Return the problems as texts."""
    return [str(problem) for problem in report.problems]


def replace_in(path: Path, old: bytes, new: bytes) -> None:
    """Change the bytes of a file."""
    data = path.read_bytes()
    assert old in data
    path.chmod(0o600)
    path.write_bytes(data.replace(old, new, 1))


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_the_lines_of_a_call_are_one_record(directory: Path) -> None:
    """The decision leads; the question has its answer, and the steps of all halves stand in order."""
    digest = "d" * 64
    write(
        directory,
        (Question, {"id": "c", "number": 1, "title": "Really?", "tool": "bash", "digest": digest}),
        (Answer, {"id": "c", "number": 1, "reply": "yes", "who": "person", "user": "ann", "tool": "bash"}),
        (Decision, {"id": "c", "tool": "bash", "verdict": "allow", "steps": (Step(stage="tool_call", by="a"),)}),
        (Result, {"id": "c", "tool": "bash", "status": "ok", "steps": (Step(stage="tool_result", by="b"),)}),
        (Observed, {"id": "c", "tool": "bash", "steps": (Step(stage="after_tool_call", by="c"),)}),
        (Prompt, {"id": "p", "text": "hello"}),
    )
    call, prompt = read(directory)
    assert (call.id, call.verdict, call.tool, call.is_call) == ("c", "allow", "bash", True)
    assert [step.by for step in call.steps] == ["a", "b", "c"]
    (exchange,) = call.exchanges
    assert exchange.question is not None
    assert exchange.answer is not None
    assert (exchange.question.title, exchange.answer.user) == ("Really?", "ann")
    assert [number for _, number in call.lines] == [1, 2, 3, 4, 5]
    assert (prompt.is_call, prompt.notable, call.notable) == (False, False, True)


def test_halves_in_files_of_different_processes_are_joined(directory: Path) -> None:
    """The files of one session are read together, in any order of its processes."""
    write(directory, (Result, {"id": "c", "tool": "bash", "status": "ok"}))
    write(directory, (Decision, {"id": "c", "tool": "bash", "verdict": "pass"}))
    write(directory, (Decision, {"id": "c", "tool": "bash", "verdict": "block"}), session="other")
    records = read(directory)
    assert [(record.lead.session, record.verdict, record.result is None) for record in records] == [
        ("s", "pass", False),
        ("other", "block", True),
    ]


def test_a_result_without_its_decision_has_no_verdict(directory: Path) -> None:
    """The half that is there is shown, and the other is not made up."""
    write(directory, (Result, {"id": "c", "tool": "bash", "status": "ok"}))
    (call,) = read(directory)
    assert (call.is_call, call.verdict, call.tool) == (True, "unknown", "bash")


def test_two_questions_about_one_call_keep_their_answers_apart(directory: Path) -> None:
    """Another agent asks once more itself, in a process that counts from 1 again."""
    write(
        directory,
        (Question, {"id": "c", "number": 1, "title": "ours", "tool": "bash"}),
        (Question, {"id": "c", "number": 1, "title": "theirs", "tool": "bash", "about": "permission"}),
        (Answer, {"id": "c", "number": 1, "reply": "no", "who": "rule"}),
        (Answer, {"id": "c", "number": 1, "reply": "yes", "who": "client"}),
    )
    (call,) = read(directory)
    found = [(each.question and each.question.title, each.answer and each.answer.who) for each in call.exchanges]
    assert found == [("ours", "client"), ("theirs", "rule")]


def test_two_calls_with_one_id_are_two_records(directory: Path) -> None:
    """A model may use its ids again.  Each decision has its own question and result, and a name of its own."""
    handed = {"id": "a", "tool": "bash", "to": "client"}
    call: dict[str, Any] = {"id": "a", "tool": "bash"}
    write(
        directory,
        (Decision, {**call, "verdict": "pass", "input": {"command": "ls"}}),
        (Result, {**call, "status": "ok"}),
        (Question, {**handed, "title": "Sure?"}),
        (Decision, {**call, "verdict": "ask", "input": {"command": "rm"}}),
        (Question, {**handed, "about": "permission", "title": "Really?"}),
        (Result, {**call, "status": "error"}),
    )
    write(directory, (Decision, {**BLOCK, "id": "a"}), (Decision, {**call, "id": "ab", "verdict": "pass"}))
    records = [record for record in read(directory) if record.id != "ab"]
    assert [(record.id, record.verdict) for record in records] == [("a", "pass"), ("a.2", "ask"), ("a.3", "block")]
    assert [record.result.status if record.result else None for record in records] == ["ok", "error", None]
    asked = [[each.question.title for each in record.exchanges if each.question] for record in records]
    assert asked == [[], ["Sure?", "Really?"], []]
    assert [record.id for record in read(directory, id="a.2")] == ["a.2"]
    assert [record.id for record in read(directory, id="a")] == ["a", "a.2", "a.3", "ab"]


def test_a_blocked_call_whose_result_comes_was_overruled(directory: Path) -> None:
    """Something else in the agent let it run, a mod for example.  An agent may report the block as a failure."""
    call: dict[str, Any] = {"tool": "bash"}
    write(
        directory,
        (Decision, {**BLOCK, "id": "a"}),
        (Result, {**call, "id": "a", "status": "blocked"}),
        (Decision, {**BLOCK, "id": "b"}),
        (Result, {**call, "id": "b", "status": "blocked"}),
        (Result, {**call, "id": "b", "status": "error"}),
    )
    write(directory, (Result, {**call, "id": "a", "status": "ok", "size": 3}))
    records = read(directory)
    assert [(record.id, record.verdict) for record in records] == [("a", "overruled"), ("b", "block")]
    assert [record.result.status if record.result else None for record in records] == ["ok", "blocked"]
    assert [record.id for record in read(directory, verdict="overruled")] == ["a"]


def test_sessions_that_overlap_are_merged_by_time(directory: Path) -> None:
    """The newest record is the last, whichever session it is of."""
    first, second = ChainWriter(str(directory), "a"), ChainWriter(str(directory), "b")
    for number in range(6):
        writer = (first, second)[number % 2]
        writer.write(Prompt, {"id": str(number)}, HEAD)
        time.sleep(0.002)
    first.close()
    second.close()
    assert [record.id for record in read(directory)] == [*"012345"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "bcrp"),
        ({"verdict": "block"}, "b"),
        ({"verdict": CHANGED}, "cr"),
        ({"tool": "BASH"}, "bc"),
        ({"tool": "mcp__*"}, "r"),
        ({"hook": "gate"}, "b"),
        ({"hook": "/p/gate.py"}, "b"),
        ({"hook": "silent.py"}, ""),
        ({"session": "s"}, "bcrp"),
        ({"session": "t"}, ""),
        ({"client": "agent-hooks"}, "bcrp"),
        ({"client": "agent"}, ""),
        ({"id": "b"}, "b"),
        ({"since": datetime(2999, 1, 1, tzinfo=UTC)}, ""),
        ({"since": datetime(1999, 1, 1, tzinfo=UTC)}, "bcrp"),
    ],
    ids=str,
)
def test_records_are_selected(directory: Path, wanted: dict[str, Any], found: str) -> None:
    """By verdict, tool, hook, session, client, id and time; a hook counts where it gave an answer."""
    change = Change(op="replace", path="/command", value="ls -l")
    silent = Step(stage="tool_call", by="silent.py")
    replaced = Step(stage="tool_result", by="trim.py", answer="replace", changed=("content",))
    write(
        directory,
        (Decision, {"id": "b"} | BLOCK | {"steps": (silent, *BLOCK["steps"])}),
        (Decision, {"id": "c", "tool": "bash", "verdict": "pass", "rewrite": (change,), "rewritten_by": ("t",)}),
        (Decision, {"id": "r", "tool": "search", "native_tool": "mcp__search", "verdict": "pass"}),
        (Result, {"id": "r", "tool": "search", "status": "ok", "steps": (replaced,)}),
        (Prompt, {"id": "p"}),
    )
    assert [record.id for record in read(directory, **wanted)] == [*found]


def test_the_newest_call_with_a_cause_is_found_first(directory: Path) -> None:
    """Calls that passed in silence, and prompts, are passed over."""
    write(directory, (Decision, {"id": "old"} | BLOCK), session="a")
    write(directory, (Decision, {"id": "new"} | BLOCK), (Decision, {"id": "x", "tool": "t", "verdict": "pass"}))
    reader = Reader(str(directory))
    newest = reader.newest(Wanted())
    assert newest is not None
    assert newest.id == "new"
    assert Reader(str(directory / "none")).newest(Wanted()) is None


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_damaged_lines_and_those_of_a_later_version_are_counted(directory: Path) -> None:
    """Half a line, zeros, another program's text and unknown kinds cost no other line."""
    path = write(directory, (Prompt, {"id": "1"}), (Prompt, {"id": "2"}))
    later = {"kind": "prompt", "v": 99, "prev": "", "n": 3, "time": "2026-01-01T00:00:00Z", "clock": 1, "id": "3"}
    unknown = {"kind": "dream", "v": 2, "colour": [1]}
    strange = {**later, "v": 1, "id": "4", "unknownField": {"a": 1}, "time": "2026-01-01T00:00:00"}
    with path.open("ab") as file:
        for line in (later, unknown, strange):
            file.write(json.dumps(line).encode() + b"\n")
        file.write(b"hello\n\xff\xfe\n" + b"\0" * 100 + b'\n{"kind":"prompt","v":1,"pr')
    reader = Reader(str(directory))
    assert [record.id for record in reader.records()] == ["4", "1", "2"]
    assert (reader.unread.lines, reader.unread.newer, reader.unread.files) == (4, 2, [])


def test_a_file_that_cannot_be_read_is_named(directory: Path) -> None:
    """A FIFO, a directory and a link that leads nowhere stop no reader."""
    write(directory, (Prompt, {"id": "1"}))
    os.mkfifo(directory / "fifo.1.1.jsonl")
    (directory / "folder.1.2.jsonl").mkdir()
    (directory / "link.1.3.jsonl").symlink_to("nowhere")
    reader = Reader(str(directory))
    assert [record.id for record in reader.records()] == ["1"]
    assert len(reader.unread.files) == 3
    assert {problem.file for problem in verify(str(directory)).problems} == {
        "fifo.1.1.jsonl",
        "folder.1.2.jsonl",
        "link.1.3.jsonl",
    }


def test_a_file_without_the_right_to_read_it_is_named() -> None:
    """The records of the other sessions are read, and `verify` finds the file."""
    code = """
        import os, sys
        from agent_hooks.records import joining, verifying
        if os.geteuid() == 0:
            os.setuid(65534)
        reader = joining.Reader(sys.argv[1])
        print([record.id for record in reader.records()], *reader.unread.files, *verifying.verify(sys.argv[1]).problems)
    """
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        write(Path(name), (Prompt, {"id": "1"}))
        hidden = write(Path(name), (Prompt, {"id": "2"}), session="t")
        for path in Path(name).iterdir():
            path.chmod(0o644)
        Path(name).chmod(0o755)
        hidden.chmod(0)
        done = subprocess.run(
            [sys.executable, "-c", dedent(code), name], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    assert done.stdout.startswith("['1'] ")
    assert done.stdout.count(f"cannot read {hidden}: Permission denied") == 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_KEYS = [field.encode_name for kind in (Decision, Result, Answer) for field in msgspec.structs.fields(kind)]


@given(st.lists(st.binary() | st.sampled_from([b"\n", b"\0" * 9, b"[" * 9999]), max_size=5))
def test_any_bytes_in_a_record_file_are_read(parts: list[bytes]) -> None:
    """No reader fails, whether the bytes stand in the files or in the index."""
    with TemporaryDirectory() as directory:
        write(Path(directory), (Prompt, {"id": "1"}))
        for path in [*record_files(directory), f"{directory}/{INDEX}"]:
            with open(path, "ab") as file:
                file.write(b"".join(parts))
        assert [record.id for record in read(Path(directory))][-1:] == ["1"]
        verify(directory, [Kept("0" * 64)])
        current_heads(directory)
        assert prune(directory, -1, 0)
        assert read(Path(directory)) == []


@given(st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=4), st.sampled_from(["decision", "result", "answer"]))
def test_any_values_in_a_line_are_read(values: dict[str, Any], kind: str) -> None:
    """A line whose fields hold anything is a record, or is counted."""
    line = {"kind": kind, "v": 1, "prev": "", "n": 1, "time": "2026-01-01T00:00:00Z", "clock": 1, "id": "1"}
    needed = {"tool": "bash", "verdict": "pass", "status": "ok", "reply": "yes"}
    with TemporaryDirectory() as directory:
        Path(directory, "s.1.1.jsonl").write_text(json.dumps(line | needed | values) + "\n")
        list(Reader(directory).records(Wanted(since=datetime(1990, 1, 1, tzinfo=UTC), tool="*", hook="x")))
        reader = Reader(directory)
        assert len(list(reader.records())) + reader.unread.lines + reader.unread.newer == 1
        verify(directory)


@pytest.mark.slow
def test_a_hundred_thousand_lines_are_read_as_a_stream(directory: Path) -> None:
    """Sessions are read one after another, so the memory is that of one session."""
    decision = {"id": "", "tool": "bash", "verdict": "pass", "input": {"command": "ls"}, "steps": BLOCK["steps"]}
    path = write(directory, (Decision, decision), (Result, {"id": "", "tool": "bash", "status": "ok"}))
    data = path.read_bytes()
    year = data[data.index(b'"time":"') :][8:12]
    for number in range(50):
        pairs = [data.replace(b'"id":""', b'"id":"%06d"' % each) for each in range(1000)]
        start = datetime(1960 + number, 1, 1, tzinfo=UTC).timestamp() * 1000 + 1e13
        text = b"".join(pairs).replace(b'"time":"%b' % year, b'"time":"%d' % (2277 + number))
        (directory / f"many{number}.1.{start:.0f}.jsonl").write_bytes(text)
    path.unlink()
    began = time.process_time()
    assert sum(1 for _ in Reader(str(directory)).records()) == 50_000
    # A machine under load takes several times the second that this takes alone.
    assert time.process_time() - began < 10
    tracemalloc.start()
    records = Reader(str(directory)).records()
    for _ in range(5000):
        next(records)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


# ---- verifying -------------------------------------------------------------------------------------------------------


def test_whole_files_have_no_problem(directory: Path) -> None:
    """Each line follows the one before, and each head is that of its line."""
    write(directory, *[(Prompt, {"text": str(number)}) for number in range(70)])
    write(directory, (Prompt, {}))
    report = verify(str(directory))
    assert (report.files, report.lines, report.problems, report.notes) == (2, 71, [], [])


def test_a_changed_line_is_named(directory: Path) -> None:
    """The first line that no longer follows the one before is the place."""
    path = write(directory, (Prompt, {"text": "one"}), (Prompt, {"text": "two"}), (Prompt, {"text": "three"}))
    replace_in(path, b"two", b"2wo")
    (problem,) = problems(verify(str(directory)))
    assert problem.startswith(f"{path.name}:3: does not follow the line before")


def test_a_changed_last_line_is_named(directory: Path) -> None:
    """No line follows it, but the index has its hash."""
    path = write(directory, (Prompt, {"text": "one"}), (Prompt, {"text": "two"}))
    replace_in(path, b"two", b"2wo")
    (problem,) = problems(verify(str(directory)))
    assert problem.startswith(f"{path.name}:2: is not the line that the index knows")


def test_a_cut_end_is_named(directory: Path) -> None:
    """The chain is whole, but the index knows more lines; a removed line and half a line are found too."""
    path = write(directory, (Prompt, {"text": "one"}), (Prompt, {"text": "two"}))
    whole = path.read_bytes()
    path.write_bytes(whole.splitlines(keepends=True)[0])
    (problem,) = problems(verify(str(directory)))
    assert problem.startswith(f"{path.name}:1: the file ends here, and the index knows 2 lines of it, since 2")
    path.write_bytes(whole[:-10])
    assert problems(verify(str(directory))) == [problem]
    path.write_bytes(b"")
    (problem,) = problems(verify(str(directory)))
    assert problem.startswith(f"{path.name}:0: the file ends here")


def test_a_missing_file_is_named_and_a_forgotten_one_is_not(directory: Path) -> None:
    """A tombstone stands for a file that was removed on purpose."""
    path = write(directory, (Prompt, {"text": "one"}))
    write(directory, (Prompt, {"text": "two"}), session="t")
    write(directory, (Prompt, {"text": "three"}), session="u")
    forget(str(directory), "t")
    report = verify(str(directory))
    assert (report.problems, report.removed) == ([], 1)
    path.unlink()
    (problem,) = problems(verify(str(directory)))
    assert problem.startswith(f"{path.name}: is missing; the index knows 1 lines of it")


def test_a_changed_or_missing_index_is_named(directory: Path) -> None:
    """The index is a chain too; without it nothing is proven."""
    write(directory, (Prompt, {"text": "one"}))
    index = directory / INDEX
    replace_in(index, b'"at":"start"', b'"at":"end"')
    assert problems(verify(str(directory)))[0].startswith("index.jsonl:2: does not follow")
    index.unlink()
    assert problems(verify(str(directory))) == [
        "index.jsonl: is missing, so nothing proves that the record files are whole"
    ]


def test_the_lines_after_the_last_head_are_called_unproven(directory: Path) -> None:
    """No head would differ if they were cut off; that is no problem of its own."""
    writer = ChainWriter(str(directory), "s")
    for _ in range(66):
        writer.write(Prompt, {"id": writer.new_id()}, HEAD)
    report = verify(str(directory))
    assert report.problems == []
    assert [str(note) for note in report.notes] == [
        f"{writer.name}: lines 65 to 66 are unproven: after the last head, and is being written"
    ]
    writer.close()
    assert verify(str(directory)).notes == []


def test_an_unfinished_line_is_noted(directory: Path) -> None:
    """A kill in the middle of a line loses this line only, and is no forgery."""
    path = write(directory, (Prompt, {"text": "one"}))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"kind":')
    report = verify(str(directory))
    assert report.problems == []
    assert [str(note) for note in report.notes] == [
        f"{path.name}:2: is not a whole line (from byte {size}); its writer was ended in the middle of it"
    ]


def test_a_head_that_was_kept_elsewhere_is_compared(directory: Path) -> None:
    """It finds a directory in which files, chain and index were made anew."""
    path = write(directory, (Prompt, {"text": "one"}))
    kept = [Kept(head, name) for name, _, head in current_heads(str(directory))]
    assert [each.file for each in kept] == [INDEX, path.name]
    write(directory, (Prompt, {"text": "two"}), session="t")
    report = verify(str(directory), [*kept, Kept(kept[1].head)])
    assert report.problems == []
    assert len(report.notes) == 3
    for each in directory.iterdir():
        each.unlink()
    write(directory, (Prompt, {"text": "0ne"}))
    report = verify(str(directory), kept)
    assert [problem.text.partition(",")[0] for problem in report.problems] == [
        f"no line has the head {each.head}" for each in kept
    ]


def test_a_head_of_a_forgotten_session_is_no_problem(directory: Path) -> None:
    """The tombstone has the head; the index was written anew, and its older heads cannot be compared."""
    write(directory, (Prompt, {"text": "one"}))
    write(directory, (Prompt, {"text": "two"}), session="t")
    kept = [Kept(head, name) for name, _, head in current_heads(str(directory))]
    write(directory, (Prompt, {"text": "three"}), session="u")
    forget(str(directory), "t")
    report = verify(str(directory), kept)
    assert report.problems == []
    assert len(report.notes) == 3


def test_a_directory_that_does_not_exist_has_no_records(directory: Path) -> None:
    """A person who has run nothing yet gets no error."""
    assert read(directory) == []
    assert verify(str(directory)) == Report()
    assert current_heads(str(directory)) == []
