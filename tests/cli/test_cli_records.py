"""`agent-hooks records` and `agent-hooks why`, run as a person does after a day's work."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent_hooks.cli.reports.ladder import explanation, print_ladder
from agent_hooks.cli.reports.recorded import find, json_line, row_of
from agent_hooks.records.files import file_name
from agent_hooks.records.joining import Reader, Record
from agent_hooks.records.lines import Answer, Decision, Line, Note, Prompt, Question, Result, Step, Turn
from agent_hooks.records.reading import decode_line, record_files
from agent_hooks.records.writer import ChainWriter
from other_agent import OtherAgent
from running import Command
from working import git

pytestmark = pytest.mark.usefixtures("no_agent_around")
GATE = """
    from agent_hooks import Ask, Block, Rewrite

    def register(api):
        @api.on("before_tool_call", tool="bash")
        def quieter(event, ctx):
            return Rewrite({"command": "echo one"}) if event.params["command"] == "echo 1" else None

        @api.on("tool_call", tool="bash")
        def gate(event, ctx):
            if event.input["command"].startswith("curl"):
                return Block("no downloads")
            return Ask("Really push?") if "push" in event.input["command"] else None
"""
HEAD = b'"session":"s","client":"agent-hooks","project":"/home/ann/shop","cwd":"/home/ann/shop"'


@pytest.fixture
def records(home: Path) -> Path:
    """Give the directory of the person's records."""
    return home / ".agent" / "records"


def write(records: Path, *lines: tuple[type[Line], dict[str, Any]], session: str = "s") -> Path:
    """Write lines of one session and process, and return the file."""
    writer = ChainWriter(str(records), session)
    for kind, fields in lines:
        writer.write(kind, {"id": writer.new_id()} | fields, HEAD.replace(b'"s"', json.dumps(session).encode()))
    path = records / writer.name
    writer.close()
    return path


def decision(id: str, verdict: str = "pass", command: str = "ls", **fields: Any) -> tuple[type[Line], dict[str, Any]]:
    """Return a decision about a call of bash."""
    return Decision, {"id": id, "tool": "bash", "verdict": verdict, "input": {"command": command}} | fields


def objects(command: Command, *args: str) -> list[dict[str, Any]]:
    """Return the objects of `records --json`."""
    return [json.loads(line) for line in command("records", "--json", *args).stdout.splitlines()]


# ---- a day's work ----------------------------------------------------------------------------------------------------


def test_a_record_is_shown_with_the_files_of_its_turn_and_the_way_back(command: Command, records: Path) -> None:
    """The command that `records show` prints takes them back; a call of a turn without files has no such line."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    (command.project / "plan.md").write_text("the plan\n")
    command("run", "@bash ls\n@bash rm plan.md")
    for call in objects(command):
        shown = command("records", "show", call["id"]).stdout
        assert f"turn      1 file changed in {command.project}: plan.md\n" in shown
    (words,) = re.findall(r"^way back  agent-hooks (.+)$", shown, re.MULTILINE)
    command(*words.split(), "--yes")
    assert (command.project / "plan.md").exists()
    files = tuple(f"f{number}" for number in range(200))
    write(
        records,
        decision("c1", turn_id="t1"),
        (Turn, {"event": "saved", "turn_id": "t1", "tree": "/x", "more": 3, "files": files}),
    )
    assert "203 files changed in /x: f0, f1," in command("records", "show", "c1").stdout
    write(records, decision("c2", turn_id="t2"), (Turn, {"event": "saved", "turn_id": "t2", "tree": "/x"}))
    shown = command("records", "show", "c2").stdout
    assert "turn      0 files changed in /x\n" in shown
    assert "way back" not in shown


def test_a_command_in_a_skill_is_recorded_with_the_skill(command: Command, agent: OtherAgent) -> None:
    """The JSON, the table, the ladder and `why` say that the call is not the model's."""
    call = {"tool_input": {"command": "cat .env"}, "tool_use_id": "toolu_1:inner:preamble-0"}
    origin = {"command_name": "release", "command_source": "projectSettings", "invoked_by": "model"}
    reply = agent("PreSkillShellCommand", tool_name="Bash", **call, **origin)
    assert reply["hookSpecificOutput"]["permissionDecision"] == "deny"
    agent("PreToolUse", tool_input={"command": "ls"}, tool_use_id="toolu_2")
    skill, model = objects(command)
    assert skill["origin"] == "skill release"
    assert "origin" not in model
    assert "(skill release) bash cat .env" in command("records").stdout
    assert "(skill release) bash cat .env was blocked" in command("why", skill["id"]).stdout
    assert re.search(r"origin +skill release; no call of the model", command("records", "show", skill["id"]).stdout)
    assert "origin" not in command("records", "show", model["id"]).stdout


def test_after_a_days_work_records_tell_who_stopped_and_who_allowed(command: Command, agent: OtherAgent) -> None:
    """Our agent and another one work in a project; table, JSON, ladder and `why` answer, and the files are whole."""
    hook = command.add_hook(GATE)
    user = getpass.getuser()
    for prompt in ("@bash curl evil.sh", "@bash echo 1", "@bash sudo rm -rf /"):
        command("run", "--no-session", prompt)
    rpc = command.rpc("--no-session")
    for answer in (True, False):
        rpc.send("prompt", message="@bash echo push")
        rpc.send("hook_ui_response", id=rpc.expect("hook_ui_request")["id"], confirmed=answer)
        rpc.expect("run_end")
    rpc.end()
    call = {"tool_input": {"command": "echo push"}, "tool_use_id": "toolu_1"}
    assert agent("PreToolUse", **call)["hookSpecificOutput"]["permissionDecision"] == "ask"
    agent("PostToolUse", tool_name="Bash", tool_response={"stdout": "push", "stderr": ""}, **call)

    *ours, theirs = objects(command)
    found = [(each["input"]["command"], each["verdict"], each["by"].rpartition("/")[2]) for each in [*ours, theirs]]
    assert found == [
        ("curl evil.sh", "block", "hook.py"),
        ("echo 1", "pass", "hook.py"),
        ("sudo rm -rf /", "block", "builtin:command-safety-guard (rm-rf)"),
        ("echo push", "allow", "hook.py"),
        ("echo push", "block", "hook.py"),
        ("echo push", "ask", "hook.py"),
    ]
    assert [each["changed"] for each in ours] == [False, True, False, False, False]
    replies = [[(pair["answer"]["reply"], pair["answer"]["who"]) for pair in each["questions"]] for each in ours[3:]]
    assert replies == [[("yes", "person")], [("no", "person")]]
    assert ours[3]["questions"][0]["question"]["title"] == "Really push?"
    assert ours[3]["result"]["status"] == "ok"
    assert theirs["client"] == "claude-code"
    assert theirs["nativeTool"] == "Bash"
    assert theirs["result"]["status"] == "ok"
    assert [pair["answer"]["who"] for pair in theirs["questions"]] == ["client"]

    table = command("records").stdout
    assert re.search(
        rf"\d\d:\d\d:\d\d +\w+ +agent-hooks project +bash echo push +allow +\S+hook.py +yes: {user}", table
    )
    assert re.search(r"claude-code project +bash echo push +ask +\S+hook.py +yes: claude-code's user", table)
    assert "6 calls in 5 sessions: 1 passed, 1 allowed, 1 asked, 3 blocked, 1 changed" in table
    assert "questions: 2 yes, 1 no" in table

    blocked, changed = ours[0], ours[1]
    ladder = command("records", "show", blocked["id"]).stdout
    assert re.search(r"[\d.]+ +[\d.]+ +tool_call +\.agent/hooks/hook\.py:9 gate +block: no downloads", ladder)
    assert re.search(r"result +blocked, \d+ bytes: no downloads", ladder)
    fate, cause, remedy = command("why", blocked["id"]).stdout.splitlines()
    assert "bash curl evil.sh was blocked" in fate
    assert cause == f"By {hook}:9 (gate): no downloads"
    assert remedy.startswith("To allow such calls, a person edits or removes this handler")
    assert f'By {hook}:5 (quieter): replace /command → "echo one"' in command("why", changed["id"]).stdout
    assert "--allow-once rm-rf" in command("why", ours[2]["id"]).stdout
    assert "claude-code's user" in command("why").stdout.splitlines()[0]
    assert "no problem in" in command("records", "verify").stdout


# ---- the table -------------------------------------------------------------------------------------------------------


def test_each_of_two_calls_with_one_id_is_named(records: Path) -> None:
    """The agent used the id of a harmless call again for a harmful call.  `records show` and `why` find both."""
    write(records, decision("c"), decision("c", "block", "rm -rf x", reason="no removal", by="gate.py"))
    found = [json.loads(json_line(record)) for record in Reader(str(records)).records()]
    assert [(each["id"], each["input"]["command"], each["verdict"]) for each in found] == [
        ("c", "ls", "pass"),
        ("c.2", "rm -rf x", "block"),
    ]
    fate, cause, _ = explanation(find(Reader(str(records)), "c.2"))
    assert "bash rm -rf x was blocked" in fate
    assert "no removal" in cause
    assert find(Reader(str(records)), "c").verdict == "pass"
    assert [row_of(record)[1] for record in Reader(str(records)).records()] == ["c", "c.2"]


def test_a_table_has_the_newest_rows_and_counts_all(command: Command, records: Path) -> None:
    """The sums are those of all selected records."""
    write(records, *[decision(f"id{number}", command=f"echo {number}") for number in range(105)])
    shown = command("records").stdout
    assert "echo 104" in shown
    assert "echo 4 " not in shown
    assert "before these 5 more" in shown
    assert "105 calls in 1 session: 105 passed" in shown
    assert "before these 104 more" in command("records", "--last", "1").stdout
    assert len(objects(command)) == 105
    assert [each["id"] for each in objects(command, "--last", "2")] == ["id103", "id104"]


def test_records_are_selected_by_options(command: Command, records: Path) -> None:
    """Each option has its own name for the same selection."""
    write(records, decision("one"), decision("two", "block", by="gate.py"), (Prompt, {"text": "hello"}))
    assert [each["id"] for each in objects(command, "--verdict", "block", "--since", "7d")] == ["two"]
    assert [each["id"] for each in objects(command, "--hook", "gate", "--tool", "bash")] == ["two"]
    assert len(objects(command, "--client", "agent-hooks", "--session", "s", "--since", "2026-01-01")) == 2
    assert objects(command, "--client", "claude-code") == []
    done = command("records", "--since", "yesterday", code=2)
    assert "--since wants a time such as 30m, 12h, 7d or 2026-01-31, not 'yesterday'" in done.stderr
    command("records", "--since", "99999999999999d", code=2)


def test_other_events_have_a_row_where_a_hook_had_a_part(command: Command, records: Path) -> None:
    """A blocked prompt is a row; a prompt that passed is none."""
    blocked = {"id": "p", "text": "say it", "verdict": "block", "by": "gate.py", "reason": "no"}
    write(records, (Prompt, {"text": "hello"}), (Prompt, blocked))
    (found,) = objects(command)
    assert (found["type"], found["verdict"], found["text"]) == ("prompt", "block", "say it")
    assert "(prompt) say it" in command("records").stdout


def test_without_records_the_table_says_so(command: Command) -> None:
    """No directory, and no records, are no error."""
    assert command("records").stdout == "0 calls in 0 sessions\n"
    assert command("records", "--json").stdout == ""
    assert command("records", "verify").stdout == "no problem in 0 files, 0 lines checked\n"
    assert command("records", "head").stdout == ""
    assert command("records", "prune").stdout == "removed 0 files of 0 sessions, 0 lines\n"
    assert "no recorded call was stopped, asked about or changed" in command("why", code=1).stderr
    assert "no record has an id that begins with 'x'" in command("records", "show", "x", code=1).stderr
    assert "no recorded session has an id that begins with 'x'" in command("records", "forget", "x", code=1).stderr


def test_texts_of_records_do_not_control_the_terminal(command: Command, records: Path) -> None:
    """Escape sequences and characters that change the direction of writing are shown as escapes, in JSON too."""
    evil = "a\x1b[2J\u202eb\x9bc\nd"
    step = Step(stage=evil, by=evil, handler=evil, file=evil, answer="block", outcome="blocked", reason=evil, rule=evil)
    write(
        records,
        decision(
            "x",
            "block",
            evil,
            by=evil,
            reason=evil,
            remedy=evil,
            rule=evil,
            steps=(step,),
            native_tool=evil,
            turn_id="t1",
        ),
        (Question, {"id": "x", "title": evil, "by": evil}),
        (Answer, {"id": "x", "reply": "text", "text": evil, "who": evil, "user": evil}),
        (Result, {"id": "x", "tool": evil, "status": "error", "error": evil, "checkpoint": evil}),
        (Turn, {"event": "saved", "turn_id": "t1", "tree": evil, "checkpoint": evil, "files": (evil,)}),
        (Note, {"about": "lost", "reason": evil, "file": evil}),
    )
    for args in (("records",), ("records", "show", "x"), ("why", "x"), ("records", "verify"), ("records", "--json")):
        shown = command(*args).stdout
        assert "a" in shown
        assert not re.search("[\x1b\x9b\u202e]", shown)
    assert objects(command)[0]["input"]["command"] == evil
    assert len(command("why", "x").stdout.splitlines()) == 3


# ---- one record ------------------------------------------------------------------------------------------------------


def test_an_id_may_be_a_unique_beginning(command: Command, records: Path) -> None:
    """Several records are named; a whole id counts although another begins with it."""
    write(records, decision("abc1"), decision("abc2"), decision("abc"))
    assert re.search("id +abc1\n", command("records", "show", "abc1").stdout)
    assert re.search("id +abc\n", command("records", "show", "abc").stdout)
    done = command("records", "show", "ab", code=1)
    assert "3 records have an id that begins with 'ab': abc1, abc2, abc" in done.stderr


@pytest.mark.parametrize(
    ("fields", "cause", "remedy"),
    [
        ({"cause": "user", "by": "g.py"}, "because the person said no", "The person said no; when the agent tries"),
        ({"cause": "nobody", "by": "g.py"}, "because no person could be asked", "Run the agent where a person can"),
        ({"cause": "schema", "reason": "bash: no"}, "By agent_hooks: bash: no", "The model has to send an input"),
        ({"cause": "failed", "by": "g.py", "reason": "E: x"}, "By g.py: E: x", "Mend the hook or its settings"),
        ({"cause": "guard", "by": "b", "rule": "r", "remedy": "a person can ask"}, "By b (rule r)", "A person can ask"),
        ({"cause": "hook", "by": "g", "remedy": "use git"}, "By g", "A person can allow it: use git"),
        ({"cause": "transformer", "by": "t"}, "By t", "A person mends or removes the transformer"),
    ],
    ids=lambda value: value.get("cause") if isinstance(value, dict) else None,
)
def test_why_names_the_cause_and_the_remedy(
    command: Command, records: Path, fields: dict[str, Any], cause: str, remedy: str
) -> None:
    """Each cause of a block has a remedy of its own."""
    write(records, decision("x", "block", **fields), decision("silent"))
    lines = command("why").stdout.splitlines()
    assert len(lines) == 3
    assert cause in " ".join(lines[:2])
    assert lines[2].startswith(remedy)


def test_a_call_that_was_overruled_is_named_with_the_mods(command: Command, records: Path) -> None:
    """The records, `why` and `stats` say so, and name the command that lists the mods."""
    mod = "sly@far (user): tool.check"
    blocked = decision("a", "block", "cat .env", reason="no secrets", by="secrets", tool="bash")
    write(
        records,
        blocked,
        (Result, {"id": "a", "tool": "bash", "status": "blocked"}),
        (Result, {"id": "a", "tool": "bash", "status": "ok", "mods": (mod,)}),
    )
    (found,) = objects(command)
    assert (found["verdict"], found["result"]["mods"]) == ("overruled", [mod])
    assert "1 call in 1 session: 1 overruled" in command("records").stdout
    fate, _, remedy = command("why").stdout.splitlines()
    assert "was blocked, and ran all the same" in fate
    assert remedy == f"The agent loads these mods: {mod}; see which may have overruled the hooks: agent-hooks doctor"
    warning = "overruled: 1 call ran although a hook had blocked it; agent-hooks records --verdict overruled"
    assert warning in command("stats").stdout


def test_why_leads_to_the_files_that_a_call_changed(command: Command) -> None:
    """Of a call that passed, it says that nothing objected, and names the command that brings its files back."""
    git(command.project, "init", "-q")
    for number in range(5):
        (command.project / f"notes-{number}.txt").write_text("three days of work\n")
    command("run", "@bash rm notes-*.txt")
    (found,) = objects(command, "--tool", "bash")
    fate, nobody, nothing, changed, back = command("why", found["id"]).stdout.splitlines()
    assert "bash rm notes-*.txt passed" in fate
    assert (nobody, nothing) == ("No guard and no hook objected", "Nothing is left to allow: the call ran")
    assert changed.startswith("Its turn changed notes-0.txt, notes-1.txt, notes-2.txt and 2 more files; to bring back")
    assert "agent-hooks undo brings back what the last turn changed" in command("why", code=1).stderr
    program, *words = shlex.split(back)
    assert program == "agent-hooks"
    command(*words, "--yes")
    assert (command.project / "notes-4.txt").read_text() == "three days of work\n"


def test_why_leads_nowhere_when_the_turn_changed_nothing(command: Command) -> None:
    """Also where there is no working tree; a call that was blocked has changed nothing either."""
    command("run", "@bash true")
    (found,) = objects(command, "--tool", "bash")
    assert len(command("why", found["id"]).stdout.splitlines()) == 3
    command("run", '@edit {"path": "x", "old": "a"}')
    (found,) = objects(command, "--tool", "edit")
    assert "was not run" in command("why").stdout.splitlines()[0]
    assert len(command("why").stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ["records", "lock"],
            "one record: agent-hooks records show lock; calls of a tool or a hook: agent-hooks records",
        ),
        (["records", "shw"], "No such command 'shw'; did you mean 'show'?\n"),
        (["examples", "protect_paths"], "agent-hooks examples add protect_paths, or examples show protect_paths"),
        (["guard", "rm -rf x"], "about a command: agent-hooks guard explain 'rm -rf x'"),
        (["checkpoints", "foo"], "No such command 'foo'; known are: diff, list, prune, restore, show, undo\n"),
    ],
)
def test_a_word_that_is_no_command_of_a_group_gets_a_remedy(command: Command, args: list[str], says: str) -> None:
    """The nearest command, or the way to what the word may mean."""
    assert says in command(*args, code=2).stderr


def test_why_names_a_hook_that_could_not_be_loaded(command: Command, tmp_path: Path) -> None:
    """The file with the mistake is named, and not the handler that stands in for it."""
    hook = tmp_path / "broken.py"
    hook.write_text("def register(api)\n    pass\n")
    command("run", "--no-session", "--hook", str(hook), "@bash true")
    _, cause, remedy = command("why").stdout.splitlines()
    assert cause.startswith(f"By {hook}: this hook could not be loaded")
    assert remedy == f"Mend or remove the hook: agent-hooks check {hook}"


# ---- care of the files -----------------------------------------------------------------------------------------------


def test_verify_ends_with_1_and_names_the_place(command: Command, records: Path) -> None:
    """The file, the line and the reason stand in one line."""
    path = write(records, decision("one", command="good"), decision("two"))
    path.write_bytes(path.read_bytes().replace(b"good", b"evil"))
    shown = command("records", "verify", code=1).stdout.splitlines()
    assert shown[0].startswith(f"{path.name}:2: does not follow the line before")
    assert shown[-1] == "1 problem in 1 file, 1 line checked"


def test_a_head_kept_elsewhere_finds_records_that_were_made_anew(
    command: Command, records: Path, tmp_path: Path
) -> None:
    """`head` prints the hashes, and `verify` takes one, or all of them in a file."""
    write(records, decision("one"))
    heads = tmp_path / "heads"
    heads.write_text(command("records", "head").stdout)
    digest, name = heads.read_text().splitlines()[-1].split()
    assert re.fullmatch(r"s\.\d+\.\d+\.jsonl:1", name)
    shown = command("records", "verify", "--head", digest.upper(), "--heads", str(heads)).stdout
    assert f"has the head {digest[:12]}…; all lines up to there are as they were" in shown
    for path in records.iterdir():
        path.unlink()
    write(records, decision("two"))
    assert "no problem" in command("records", "verify").stdout
    assert f"no line has the head {digest}" in command("records", "verify", "--head", digest, code=1).stdout
    assert "no line has the head" in command("records", "verify", "--heads", str(heads), code=1).stdout
    assert "a head has 64 hexadecimal digits" in command("records", "verify", "--head", "xyz", code=2).stderr


def test_prune_and_forget_leave_a_tombstone(command: Command, records: Path, home: Path) -> None:
    """The settings say how many days, unless the command does; a session is named by the beginning of its id."""
    for session in ("first", "second", "third"):
        write(records, decision(session), session=session)
    assert command("records", "prune").stdout == "removed 0 files of 0 sessions, 0 lines\n"
    old = time.time() - 3 * 86_400
    os.utime(record_files(str(records))[0], (old, old))
    (home / ".agent" / "settings.json").write_text('{"records": {"days": 2}}')
    assert command("records", "prune").stdout == "removed 1 file of 1 session, 1 line\n"
    assert command("records", "forget", "sec").stdout == "removed 1 file of 1 session, 1 line\n"
    assert command("records", "prune", "--days", "1").stdout == "removed 0 files of 0 sessions, 0 lines\n"
    assert command("records", "prune", "--bytes", "0").stdout == "removed 1 file of 1 session, 1 line\n"
    assert "3 files removed by prune or forget" in command("records", "verify").stdout


def test_a_session_that_is_being_recorded_is_not_forgotten(command: Command, records: Path) -> None:
    """The error names the file and the remedy."""
    writer = ChainWriter(str(records), "busy")
    writer.write(Prompt, {"id": "1"}, b'"session":"busy"')
    done = command("records", "forget", "busy", code=1)
    assert f"session busy is still being recorded ({writer.name}); end its agent first" in done.stderr
    writer.close()


# ---- agents may not read ----------------------------------------------------------------------------------------------


def test_an_agent_does_not_read_or_remove_records(
    command: Command, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below our host or another agent, the commands refuse; `verify` and `head` show no content, so they run."""
    command.may_fork = False
    write(records, decision("secretid", "block"))
    monkeypatch.setenv("PATH", f"{Path(command.line()[0]).parent}:{os.environ['PATH']}")
    assert "(read-records)" in command("run", "--no-session", "@bash agent-hooks why secretid").stdout
    # The guard does not read the project's own programs.
    (command.project / "report.sh").write_text("agent-hooks why secretid\nagent-hooks records\ntrue\n")
    shown = command("run", "--no-session", "@bash sh report.sh").stdout
    assert shown.count("is for a person, and") == 2
    command.may_fork = True
    monkeypatch.setenv("CLAUDECODE", "1")
    for args in (["records"], ["records", "show", "s"], ["records", "prune"], ["records", "forget", "s"], ["why"]):
        done = command(*args, code=1)
        assert "is for a person, and claude (by $CLAUDECODE) has started this process" in done.stderr
        assert done.stdout == ""
    command("records", "verify")
    command("records", "head")


def test_commands_about_records_run_no_code_of_a_project(command: Command, records: Path, home: Path) -> None:
    """Neither hooks nor settings of a project are loaded, and broken settings stop no reader."""
    write(records, decision("x", "block"))
    mark = command.project / "ran"
    command.add_hook(f"open({str(mark)!r}, 'w')\ndef register(api): pass")
    (command.project / ".agent" / "settings.json").write_text('{"records": {"days": 1')
    for args in (["records"], ["records", "show", "x"], ["why"], ["records", "verify"], ["records", "prune"]):
        command(*args)
    assert not mark.exists()
    assert stat.S_IMODE(records.stat().st_mode) == 0o700


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_damaged_files_are_counted_and_named(command: Command, records: Path) -> None:
    """Half a line, zeros, a later version and a FIFO cost no other record."""
    path = write(records, decision("one", "block"))
    with path.open("ab") as file:
        file.write(b'{"kind":"dream","v":7}\n' + b"\0" * 50 + b"\nhalf")
    os.mkfifo(records / file_name("t", 1, 1))
    shown = command("records").stdout
    assert "1 call in 1 session: 1 blocked" in shown
    assert "not read: 2 lines; `agent-hooks records verify` names the places" in shown
    assert "not shown: 1 line of a later version of agent_hooks" in shown
    assert re.search(r"not read: .*t\.1\.1\.jsonl.* not a regular file", shown)
    assert "was blocked" in command("why").stdout
    assert "exit" not in command("records", "verify", code=1).stderr


@pytest.mark.slow
def test_a_hundred_thousand_lines_are_shown_in_seconds(command: Command, records: Path) -> None:
    """The table keeps only the rows that it shows."""
    path = write(records, decision("", "block"), (Result, {"id": "", "tool": "bash", "status": "blocked"}))
    data = path.read_bytes()
    path.write_bytes(b"".join(data.replace(b'"id":""', b'"id":"%06d"' % number) for number in range(50_000)))
    before = os.times()
    assert "50000 calls in 1 session: 50000 blocked" in command("records").stdout
    assert "000042" in command("records", "show", "000042").stdout
    after = os.times()
    # Alone, the first takes under 2 s and the second under 1 s.
    assert after.children_user - before.children_user < 12


_TEXT = st.text(max_size=20) | st.sampled_from(["\x1b[2J", "\u202e", "\ud800", "a\nb", "x" * 3000])
_VALUE = st.recursive(_TEXT | st.none() | st.integers() | st.floats(), lambda each: st.lists(each, max_size=2))


@given(st.lists(st.sampled_from([Decision, Result, Question, Answer, Prompt, Note]), min_size=1), st.data())
def test_any_record_is_shown(kinds: list[type[Line]], data: st.DataObject) -> None:
    """Every value that a line can hold is a row, an object, a ladder and an explanation, each harmless."""
    record = Record("x")
    for kind in kinds:
        line: dict[str, Any] = {
            "kind": kind.__struct_config__.tag,
            "v": 1,
            "prev": "",
            "n": 1,
            "time": "0001-01-01T00:00:00Z",
            "id": "x",
        }
        line |= {"clock": 1, "tool": "bash", "verdict": "block", "status": "ok", "reply": "yes", "about": "lost"}
        for field in msgspec.structs.fields(kind):
            if field.type is str:
                line[field.encode_name] = data.draw(_TEXT)
        line |= {"about": "lost" if kind is Note else "call", "input": data.draw(_VALUE)}
        decoded = decode_line(json.dumps(line).encode())
        if decoded is not None:
            record.add(decoded, "file")
    if record.lines:
        texts = [json_line(record), *explanation(record)]
        assert not re.search("[\x1b\u202e]", "".join(texts).replace("\\x1b", ""))
        row_of(record)
        print_ladder(record)


def test_the_schema_of_records_holds_for_what_is_written(command: Command, records: Path) -> None:
    """`agent-hooks schema record` describes each line of the files."""
    command("run", "--no-session", "@bash sudo rm -rf /")
    schema = json.loads(command("schema", "record").stdout)
    validator = Draft202012Validator(schema)
    lines = [json.loads(line) for path in record_files(str(records)) for line in Path(path).read_text().splitlines()]
    assert {line["kind"] for line in lines} >= {"session", "prompt", "decision", "result", "turn", "run"}
    for line in lines:
        validator.validate(line)


def test_a_line_names_the_trust_under_which_a_call_was_judged(command: Command) -> None:
    """An approved set that is not the newest is named as such."""
    command.trusted = False
    hook = command.add_hook("def register(api): ...\n")
    states = []
    for text in ("def register(api): ...\n", "def register(api): pass\n"):
        hook.write_text(text)
        command("trust", "--yes")
    for text in ("def register(api): pass\n", "def register(api): ...\n", "import os\n"):
        hook.write_text(text)
        command("run", "--no-session", "@bash true")
        [call] = [json.loads(line) for line in command("records", "--json").stdout.splitlines()][-1:]
        states.append(call["trust"])
        assert len(call["trustedSet"]) == len(call["settings"]) == 64
    assert states == ["approved", "older", "changed"]
