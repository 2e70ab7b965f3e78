"""How a person approves the hooks and settings of a project, at a terminal and without one."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import watchfiles

from agent_hooks.cli.following import follow_saves
from agent_hooks.cli.lifetime import FAILED
from agent_hooks.cli.screen.trust_question import MOST_FILES
from agent_hooks.dispatch.missing import install_command
from agent_hooks.settings import agent_home
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.own import own_files
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.store import TrustStore
from agent_hooks.turn_notes import SessionNote, Work, stores_directory, write_session_note
from running import Command
from trust.approving import approve, judged_session, state

pytestmark = pytest.mark.usefixtures("no_agent_around")
ASKS = "[y/N] "
GATE = """
    from agent_hooks import Block
    def register(api):
        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            return Block("{reason}")
"""


@pytest.fixture
def command(project: Path) -> Command:
    """Give the command line in a project that no person has approved yet."""
    found = Command(project)
    found.trusted = False
    return found


def add_gate(command: Command, reason: str = "not here", name: str = "gate.py") -> Path:
    """Add a hook that blocks bash."""
    return command.add_hook(dedent(GATE).format(reason=reason), name)


def digest(command: Command) -> str:
    """Return the digest of the project's set."""
    return read_set(str(command.project)).digest


def store() -> TrustStore:
    """Return the trust store."""
    return TrustStore(agent_home())


def listed(command: Command) -> list[dict[str, object]]:
    """Return the rows of `trust --list`."""
    found: list[dict[str, object]] = json.loads(command("trust", "--list", "--json").stdout)["projects"]
    return found


# ---- the question ----------------------------------------------------------------------------------------------------


def test_a_command_at_a_terminal_asks_and_a_yes_counts_at_once(command: Command, tmp_path: Path) -> None:
    """The question goes to stderr, facts first; print mode asks too, and stdout has the answer only."""
    add_gate(command)
    answer = tmp_path / "answer"
    dialog = command.dialog("run", "--no-session", "@bash ls", stdout=answer)
    shown = dialog.sees(ASKS)
    assert shown.index("subscribes to         tool_call of bash  (line 4)") < shown.index("| from agent_hooks import")
    assert "was never approved; until then nothing of it is run or obeyed" in shown
    dialog.type("y\n")
    dialog.end()
    assert "not here" in answer.read_text()
    assert "approved" not in answer.read_text()
    assert "not here" in command("run", "--no-session", "@bash ls").stdout


@pytest.mark.parametrize("answer", ["\n", "n\n", "yes please\n", " \n"])
def test_enter_is_no_and_a_no_is_remembered(command: Command, answer: str) -> None:
    """The set is left out, and asked about again only when its content changes."""
    hook = add_gate(command)
    dialog = command.dialog("run", "--no-session", "@bash echo done")
    dialog.sees(ASKS)
    dialog.type(answer)
    assert "ok" in dialog.end()
    again = command.dialog("run", "--no-session", "@bash echo done").end()
    assert ASKS not in again
    words = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", again).split()
    assert "because you said no: .agent/hooks/gate.py; read and approve: agent-hooks trust" in " ".join(words)
    hook.write_text(hook.read_text() + "# changed\n")
    dialog = command.dialog("run", "--no-session", "@bash echo done")
    dialog.sees(ASKS)
    dialog.type("y\n")
    assert "blocked: not here" in dialog.end()


@pytest.mark.parametrize("line", [["list"], ["doctor"], ["replay", "x.jsonl"], ["run", "--no-session", "@bash ls"]])
def test_each_command_asks_about_unapproved_hooks_and_takes_the_end_of_input_as_no_answer(
    command: Command, line: list[str]
) -> None:
    """The end of the input is no answer: nothing is approved, and nothing remembered."""
    add_gate(command)
    (command.project / "x.jsonl").write_text("")
    dialog = command.dialog(*line)
    dialog.sees(ASKS)
    dialog.type("\x04")
    dialog.end(code=None)
    assert store().entries == {}


def test_ctrl_c_at_the_question_ends_the_command(command: Command) -> None:
    """Nothing is approved, nothing is run."""
    add_gate(command)
    dialog = command.dialog("run", "--no-session", "@bash touch ran")
    dialog.sees(ASKS)
    os.kill(dialog.process.pid, signal.SIGINT)
    dialog.end(130)
    assert store().entries == {}
    assert not (command.project / "ran").exists()


def test_keys_pressed_before_the_question_do_not_answer_it(command: Command) -> None:
    """A line that was typed ahead is dropped."""
    add_gate(command)
    dialog = command.dialog("trust")
    dialog.type("y\n")
    dialog.sees(ASKS)
    dialog.type("\n")
    dialog.end(1)
    assert not next(iter(store().entries.values())).approved


def test_a_change_is_shown_as_a_diff_and_the_rest_is_not_repeated(command: Command) -> None:
    """The question about an approved set that changed shows the changed files only."""
    hook = add_gate(command)
    add_gate(command, name="other.py")
    command("trust", "--yes")
    hook.write_text(hook.read_text().replace("not here", "not there"))
    (command.project / ".agent" / "hooks" / "other.py").unlink()
    dialog = command.dialog("trust")
    shown = dialog.sees(ASKS)
    dialog.type("y\n")
    dialog.end()
    assert "was changed since you approved it; these are the changes:" in shown
    assert '    -|         return Block("not here")' in shown
    assert '    +|         return Block("not there")' in shown
    assert "- .agent/hooks/other.py: removed" in shown
    assert shown.count("---- ") == 1


def test_the_set_that_was_shown_is_approved_whatever_became_of_its_files(command: Command) -> None:
    """A swap between the question and the answer changes nothing: the shown bytes count."""
    hook = add_gate(command, "as shown")
    shown = digest(command)
    dialog = command.dialog("run", "--no-session", "@bash echo done")
    dialog.sees(ASKS)
    hook.write_text("import pathlib; pathlib.Path('ran').touch()\ndef register(api): ...\n")
    dialog.type("y\n")
    text = dialog.end()
    assert "blocked: as shown" in text
    assert "were changed" in text
    assert not (command.project / "ran").exists()
    assert [each.digest for entry in store().entries.values() for each in entry.approved] == [shown]


def test_nothing_of_a_set_disguises_the_question(command: Command) -> None:
    """Control, directing and invisible characters are marked, in code and in names; long lines are wrapped."""
    add_gate(command)
    nasty = "x = 1\r# \x1b[2J\x1b]0;t\x07 \u202eevil\u200b\u00a0\u3164 \udcff"
    hook = command.project / ".agent" / "hooks" / "nasty\n\x1b[1A.py"
    hook.write_bytes(f"{nasty}\n{'a' * 500}END\n".encode("utf-8", "surrogateescape"))
    dialog = command.dialog("trust")
    shown = dialog.sees(ASKS)
    dialog.type("\n")
    dialog.end(1)
    plain = shown.replace("\x1b[7m", "").replace("\x1b[27m", "")
    assert "\x1b" not in plain
    assert "\r" not in plain
    assert "* .agent/hooks/nasty<U+000A><U+001B>[1A.py" in plain
    marks = "x = 1<U+000D># <U+001B>[2J<U+001B>]0;t<U+0007> <U+202E>evil<U+200B><U+00A0><U+3164> <FF>"
    joined = plain.replace("\n     | ", "")
    assert f"    1| {marks}" in joined
    assert f"    2| {'a' * 500}END" in joined


def test_nested_projects_are_asked_about_one_after_another(command: Command) -> None:
    """The outermost comes first; each has an answer of its own."""
    add_gate(command)
    inner = command.project / "vendor" / "x"
    (inner / ".agent" / "hooks").mkdir(parents=True)
    (inner / ".agent" / "hooks" / "inner.py").write_text("def register(api): ...\n")
    (command.project / ".git").mkdir()
    dialog = command.dialog("list", "--cwd", str(inner))
    assert "inner.py" not in dialog.sees(ASKS)
    dialog.type("y\n")
    assert "inner.py" in dialog.sees(ASKS, 2)
    dialog.type("\n")
    dialog.end()
    assert sorted(bool(entry.approved) for entry in store().entries.values()) == [False, True]


def test_the_same_content_elsewhere_is_said(command: Command, tmp_path: Path) -> None:
    """A second clone is asked about anew, and the question names the first."""
    add_gate(command)
    command("trust", "--yes")
    clone = tmp_path / "clone"
    (clone / ".agent" / "hooks").mkdir(parents=True)
    (clone / ".agent" / "hooks" / "gate.py").write_bytes(
        (command.project / ".agent" / "hooks" / "gate.py").read_bytes()
    )
    dialog = command.dialog("trust", "--cwd", str(clone))
    assert f"same content as approved in {command.project}" in " ".join(dialog.sees(ASKS).split())
    dialog.type("y\n")
    dialog.end()


def test_below_an_agent_nothing_is_asked_or_approved(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent at a terminal of its own cannot answer the question, nor run `trust`, `untrust` and `new`."""
    add_gate(command)
    command("trust", "--yes")
    monkeypatch.setenv("CLAUDECODE", "1")
    for line in (["trust", "--yes"], ["trust", "--digest", digest(command)], ["untrust"], ["new", "x"]):
        assert "has started this process" in command(*line, code=1).stderr
    add_gate(command, "changed")
    assert ASKS not in command.dialog("list").end()
    assert "has started this process" in command("trust", "--list", code=1).stderr
    monkeypatch.delenv("CLAUDECODE")
    assert [(each["state"], each["approvals"]) for each in listed(command)] == [("changed", 1)]


# ---- the command -----------------------------------------------------------------------------------------------------


def test_trust_without_a_terminal_refuses(command: Command) -> None:
    """Exit 2, the remedy, and nothing approved; nothing of the project runs."""
    add_gate(command)
    refused = command("trust", code=2).stderr
    assert "agent-hooks trust --digest HEX" in refused
    assert "--yes approves without reading" in refused
    assert store().entries == {}
    done = command("run", "--no-session", "@bash echo done")
    assert "no person has approved them: .agent/hooks/gate.py; read and approve: agent-hooks trust" in done.stderr
    assert "done" in done.stdout


def test_a_digest_approves_that_set_only(command: Command) -> None:
    """Another set is refused with exit 1, and both digests are named."""
    add_gate(command)
    first = digest(command)
    assert [row["digest"] for row in listed(command)] == [first]
    add_gate(command, "changed")
    refused = command("trust", "--digest", first, code=1).stderr
    assert first in refused
    assert digest(command) in refused
    assert store().entries == {}
    command("trust", "--digest", digest(command).upper())
    assert "changed" in command("run", "--no-session", "@bash ls").stdout
    assert "64 hexadecimal digits" in command("trust", "--digest", "abc", code=2).stderr


def test_the_list_names_state_digest_and_approvals(command: Command, tmp_path: Path) -> None:
    """The projects here and all others of the store, also one whose directory is gone."""
    hook = add_gate(command)
    command("trust", "--yes")
    first, text = digest(command), hook.read_text()
    add_gate(command, "second")
    command("trust", "--yes")
    hook.write_text(text)
    gone = tmp_path / "gone"
    (gone / ".agent" / "hooks").mkdir(parents=True)
    (gone / ".agent" / "hooks" / "x.py").write_text("")
    command("trust", "--yes", "--cwd", str(gone))
    for path in (gone / ".agent" / "hooks" / "x.py", gone / ".agent" / "hooks", gone / ".agent", gone):
        path.unlink() if path.is_file() else path.rmdir()
    here, other = listed(command)
    assert (here["state"], here["digest"], here["newest"], here["approvals"]) == ("approved", first, False, 2)
    assert (other["state"], other["project"], other["here"]) == ("gone", str(gone), False)
    shown = command("trust", "--list").stdout
    assert "approved, an older approval; a newer one was given since" in shown
    older = "an older set than the last approved one is in force"
    assert older in command("list").stderr
    assert older in " ".join(command("doctor").stdout.split())
    assert first in shown


def in_force(command: Command) -> str:
    """Approve two sets, the second with one more gate, let the first one come back, and return the warning of `run`."""
    command.add_hook("def register(api): ...\n")
    command("trust", "--yes")
    newest = add_gate(command, "nor here", "newest.py")
    command("trust", "--yes")
    newest.unlink()
    return command("run", "--no-session", "@ls").stderr


def test_run_warns_of_an_older_set_that_came_back(command: Command) -> None:
    """An agent that removes the newest hook brings the set before it back; each start says which file is missing."""
    warning = in_force(command)
    assert "an older set than the last approved one is in force, without .agent/hooks/newest.py" in warning
    assert "; to keep or refuse it: agent-hooks trust\n" in warning
    assert "in force, without .agent/hooks/newest.py" in command("check").stderr
    assert "without .agent/hooks/newest.py" in " ".join(command("doctor").stdout.split())
    told = command("trust").stdout
    assert "without .agent/hooks/newest.py" in told
    assert "to keep or refuse it: agent-hooks trust, at a terminal, or with --yes" in told


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_keeps_or_refuses_an_older_set(command: Command, answer: str) -> None:
    """With a yes, it is the last approved one; with a no, the kept bytes of the last one judge again."""
    in_force(command)
    dialog = command.dialog("trust")
    shown = dialog.sees(ASKS)
    assert "an older set than the last approved one; these are the changes since that one:" in " ".join(shown.split())
    assert "- .agent/hooks/newest.py: removed" in shown
    dialog.type(f"{answer}\n")
    dialog.end(0 if answer == "y" else FAILED)
    [row] = listed(command)
    assert (row["state"], row["newest"]) == (("approved", True) if answer == "y" else ("changed", True))
    assert "older set" not in command("run", "--no-session", "@ls").stderr
    assert ("nor here" in command("run", "--no-session", "@bash ls").stderr) is (answer == "n")


def test_an_older_set_is_kept_with_yes_too(command: Command) -> None:
    """Where no person can be asked."""
    in_force(command)
    assert "- .agent/hooks/newest.py: removed" in command("trust", "--yes").stderr
    assert [row["newest"] for row in listed(command)] == [True]


def test_yes_shows_the_changes_since_the_last_yes(command: Command) -> None:
    """The log of a job has them; a set that was never approved is summarised."""
    hook = add_gate(command)
    assert "1 file in summary" in command("trust", "--yes").stderr
    hook.write_text(hook.read_text().replace("not here", "not there"))
    done = command("trust", "--yes")
    assert '    -|         return Block("not here")' in done.stderr
    assert '    +|         return Block("not there")' in done.stderr


def test_an_approved_hook_that_cannot_be_loaded_is_named(command: Command) -> None:
    """It is approved, because it then blocks every call; left out, it would block none."""
    command.add_hook("def register(api:\n")
    done = command("trust", "--yes").stderr
    assert "DOES NOT LOAD" in done
    assert "IS REFUSED" not in done
    assert (
        ".agent/hooks/hook.py: cannot be loaded, so each new session blocks every tool call until it is mended" in done
    )
    assert "hook not loaded, so every tool call is blocked" in command("run", "--no-session", "@ls").stderr


def test_a_project_above_without_hooks_is_not_spoken_of(command: Command) -> None:
    """Only where no project here has anything to approve."""
    inner = command.project / "inner"
    (inner / ".agent" / "hooks").mkdir(parents=True)
    (command.project / ".agent").mkdir()
    (command.project / ".git").mkdir()
    assert command("trust", "--cwd", str(inner)).stdout.count("nothing to approve") == 2
    (inner / ".agent" / "hooks" / "x.py").write_text("def register(api): ...\n")
    assert "nothing to approve" not in command("trust", "--yes", "--cwd", str(inner)).stdout
    shown = command("trust", "--cwd", str(inner)).stdout
    assert shown.startswith(f"{inner}: approved already, digest ")


def test_a_damaged_store_is_told_by_list_trust_and_doctor(command: Command) -> None:
    """Nothing is trusted, and each exits with an error."""
    add_gate(command)
    command("trust", "--yes")
    Path(store().path).write_text("{")
    assert "trust store" in command("trust", "--list", code=1).stderr
    assert "trust store" in command("trust", "--yes", code=1).stderr
    assert "PROBLEM" in command("doctor", code=1).stdout


@pytest.mark.parametrize("with_copy", [True, False])
def test_a_damaged_store_is_rebuilt_at_a_terminal(command: Command, with_copy: bool) -> None:
    """From its copy, or as an empty one. A no leaves it as it is."""
    add_gate(command)
    approve(command.project)
    path = Path(store().path)
    path.write_text("{")
    if not with_copy:
        (path.parent / "trust" / "copy.json").unlink()
    question = "Restore them?" if with_copy else "Begin an empty store?"
    dialog = command.dialog("trust")
    shown = dialog.sees(question)
    assert (f"{command.project}: 1 approved set" in shown) is with_copy
    dialog.type("\n")
    dialog.end(1)
    assert path.read_text() == "{"
    dialog = command.dialog("trust")
    dialog.sees(question)
    dialog.type("y\n")
    if not with_copy:
        dialog.sees("count from now on? [y/N] ")
        dialog.type("y\n")
    assert "the trust store was rebuilt" in dialog.end()
    assert listed(command)[0]["state"] == "approved"


def test_named_files_are_shown_in_full_and_the_rest_in_summary(command: Command) -> None:
    """A file that is no part of the set is refused."""
    add_gate(command)
    command.add_hook("import socket\ndef register(api): ...\n# the rest\n", "other.py")
    assert "belongs to no set that can be approved here" in command("trust", "pyproject.toml", code=2).stderr
    dialog = command.dialog("trust", ".agent/hooks/gate.py")
    shown = dialog.sees(ASKS)
    dialog.type("y\n")
    dialog.end()
    assert "| from agent_hooks import Block" in shown
    assert "# the rest" not in shown
    assert "* 1 file in summary" in shown
    assert "opens connections     1 fact in 1 file" in shown
    assert listed(command)[0]["state"] == "approved"


def test_a_large_set_is_approved_by_name_only(command: Command) -> None:
    """No command asks about it, `--yes` refuses it, and the names of all its files approve it."""
    add_gate(command)
    for number in range(MOST_FILES):
        command.add_hook("x = 1\n", f"_{number}.py")
    assert ASKS not in command.dialog("list").end()
    assert "approved only by name" in command("trust", "--yes", code=2).stderr
    assert f"{MOST_FILES} files not named" in command("trust", "--yes", ".agent/hooks/gate.py", code=2).stderr
    dialog = command.dialog("trust", ".agent")
    assert f"* {MOST_FILES + 1} files in summary" in dialog.sees(ASKS)
    dialog.type("y\n")
    dialog.end()
    assert listed(command)[0]["state"] == "approved"


def test_always_is_for_a_repository_that_only_its_owner_can_change(command: Command) -> None:
    """It is refused while others can write there; then any content counts, and list and doctor say so."""
    hook = add_gate(command)
    hook.parent.chmod(0o777)
    refused = command("trust", "--always", "--yes", code=1).stderr
    assert "code of other users" in refused
    assert "chmod go-w" in refused
    hook.parent.chmod(0o755)
    assert "no person can be asked here" in command("trust", "--always", code=2).stderr
    dialog = command.dialog("trust", "--always")
    dialog.sees(ASKS)
    dialog.type("y\n")
    dialog.end()
    add_gate(command, "any content")
    assert "any content" in command("run", "--no-session", "@bash ls").stdout
    assert "ALWAYS" in command("trust", "--list").stdout
    assert "any content counts (trust --always); to end this: agent-hooks untrust" in command("list").stderr
    assert "any content counts, on every branch" in command("doctor").stdout
    command("untrust")
    assert "never" not in command("run", "--no-session", "@bash echo done").stdout
    assert store().entries == {}


@pytest.mark.parametrize(
    "line",
    [
        ["--json"],
        ["--list", "--yes"],
        ["--list", "x"],
        ["--digest", "a" * 64, "--always"],
        ["--always", "--follow", "1h"],
        ["--follow", "13h"],
        ["--follow", "0s"],
        ["--follow", "soon"],
    ],
)
def test_options_that_exclude_one_another_are_refused(command: Command, line: list[str]) -> None:
    """Exit 2, and the reason."""
    add_gate(command)
    command("trust", *line, code=2)


def test_untrust_ends_all_approvals(command: Command, tmp_path: Path) -> None:
    """Also those of a project whose directory is gone; without one, exit 1."""
    add_gate(command)
    command("trust", "--yes")
    command("untrust")
    assert "not here" not in command("run", "--no-session", "@bash ls").stdout
    command("untrust", code=1)
    command("trust", "--yes")
    command.project.rename(tmp_path / "moved")
    command.project.mkdir()
    command("untrust", str(command.project))
    assert store().entries == {}


def test_a_moved_project_is_asked_about_anew(command: Command, tmp_path: Path) -> None:
    """An approval belongs to a place."""
    add_gate(command)
    command("trust", "--yes")
    moved = tmp_path / "moved"
    command.project.rename(moved)
    command.project.mkdir()
    assert "no person has approved them" in command("list", "--cwd", str(moved)).stdout


def test_new_writes_a_hook_that_works_and_approves_it(command: Command) -> None:
    """In an empty project, and beside approved hooks."""
    assert "written and approved" in command("new", "gate").stdout
    blocked = command("run", "--no-session", "@bash git push").stdout
    assert "pushing is for people" in blocked
    assert "written and approved" in command("new", "second").stdout
    assert "exists already" in command("new", "gate.py", code=1).stderr
    for name in ("../x", "", "a b", ".x", "_x"):
        assert "is no name for a hook" in command("new", "--", name, code=2).stderr


def test_new_approves_nothing_of_others(command: Command) -> None:
    """Beside hooks that wait, the starter hook waits too."""
    command.add_hook("raise SystemExit\n", "theirs.py")
    assert "run: agent-hooks trust" in command("new", "gate").stdout
    assert store().entries == {}


def test_new_for_the_user_needs_no_approval(command: Command, home: Path) -> None:
    """The agent home is the person's own; it is no project."""
    command("new", "mine", "--user")
    assert (home / ".agent" / "hooks" / "mine.py").exists()
    assert "pushing is for people" in command("run", "--no-session", "@bash git push").stdout
    assert "add --user" in command("new", "other", "--cwd", str(home), code=2).stderr


def test_list_and_doctor_describe_hooks_that_wait_from_their_text(command: Command) -> None:
    """Nothing of them runs."""
    command.add_hook("""
        import pathlib
        pathlib.Path("ran").touch()
        def register(api):
            api.on("tool_call", gate, tool="bash")
            api.on(EVENT, gate)
    """)
    (command.project / ".agent" / "settings.json").write_text('{"redaction": {"enabled": false}}')
    shown = command("list").stdout
    assert "read and approve: agent-hooks trust" in shown
    assert "subscribes to         tool_call of bash" in shown
    assert "CANNOT BE KNOWN       the event of api.on(…)" in shown
    assert "redaction.enabled" in shown
    (row,) = json.loads(command("list", "--json").stdout)["untrusted"]
    assert row["state"] == "new"
    assert {"subscribes", "unknown", "loosens"} <= {fact["kind"] for file in row["files"] for fact in file["facts"]}
    examined = command("doctor").stdout
    assert "→ agent-hooks trust" in examined
    assert "redaction is on" in examined
    assert not (command.project / "ran").exists()


def test_require_trusted_blocks_until_a_person_approves(command: Command) -> None:
    """`run` blocks each call, and `replay` refuses; once approved, both go on."""
    command.add_hook("def register(api): ...\n")
    blocked = command("run", "--no-session", "--require-trusted", "@bash echo done").stdout
    assert "every tool call is blocked" in blocked
    command("run", "@bash echo recorded")
    sessions = ".agent/sessions"
    assert "agent-hooks trust" in command("replay", "--require-trusted", sessions, code=1).stderr
    command("trust", "--yes")
    assert "done" in command("run", "--no-session", "--require-trusted", "@bash echo done").stdout


# ---- saves -----------------------------------------------------------------------------------------------------------


def test_each_save_is_approved_while_it_is_followed(command: Command) -> None:
    """Twenty saves, by replacing the file as editors do, need no question; then a save in pieces, and Ctrl-C."""
    hook = add_gate(command)
    dialog = command.dialog("trust", "--follow", "1h")
    dialog.sees(ASKS)
    dialog.type("y\n")
    dialog.sees("Ctrl-C ends this")
    for number in range(20):
        draft = hook.parent / ".gate.py.swp"
        draft.write_text(dedent(GATE).format(reason=f"save {number}"))
        draft.replace(hook)
        dialog.sees("digest", 3 + number)
        assert f'+|         return Block("save {number}")' in dialog.sees(f"save {number}")
    with hook.open("w") as file:
        file.write("def register(api):\n    api.on('session', (")
        file.flush()
        # Longer than a pause of a writer that counts as an end.
        file.write("lambda event, ctx: None))\n")
    dialog.sees("digest", 23)
    os.kill(dialog.process.pid, signal.SIGINT)
    assert "21 saves approved" in dialog.end()
    (entry,) = store().entries.values()
    assert [each.by for each in entry.approved] == ["trust", "follow"]
    assert entry.approved[-1].digest == digest(command)


def test_a_save_during_a_call_that_may_write_is_a_question(command: Command, home: Path) -> None:
    """For a project's hook and for an own hook. Other saves need no answer, and own hooks are taken up."""
    hooks = [add_gate(command), home / ".agent" / "hooks" / "own.py"]
    approve(command.project)
    hooks[1].parent.mkdir(parents=True)
    hooks[1].write_text("one = 1\n")
    own_files(str(home / ".agent")).take_up()
    dialog = command.dialog("trust", "--follow", "1h")
    dialog.sees("Ctrl-C ends this")
    hooks[1].write_text("two = 2\n")
    dialog.sees("taken up")
    assert not own_files(str(home / ".agent")).changed

    session = judged_session()
    note = SessionNote(work=Work(turn="t", session_id="s", agent="claude-code"), running=["1"])
    for number, hook in enumerate(hooks, start=1):
        write_session_note(note)
        hook.write_text(f"three = 3  # {hook.name}\n")
        dialog.sees("you are asked when it has ended", number)
        # The call has ended, and left its change behind.
        write_session_note(SessionNote(work=note.work))
        assert f"three = 3  # {hook.name}" in dialog.sees("Do these changes count? [y/N]", number)
        approved = state(command.project).state, not own_files(str(home / ".agent")).changed
        assert approved == (("changed", True) if number == 1 else ("approved", False))
        dialog.type("y\n")
        # The dialog types the code.
        dialog.sees("agent-hooks: approved: " if number == 1 else "agent-hooks: taken up: ", number)
    # The process of a killed session has left a call open.
    session.end()
    write_session_note(note)
    for path in (session.path, os.path.join(stores_directory(), "sessions")):
        os.utime(path, (0, 0))
    hooks[1].write_text("four = 4\n")
    dialog.sees("taken up", 3)
    os.kill(dialog.process.pid, signal.SIGINT)
    dialog.end()


def test_following_ends_with_its_time(command: Command) -> None:
    """A later save waits for the person again."""
    add_gate(command)
    command("trust", "--yes")
    assert "0 saves approved" in command("trust", "--follow", "1s", "--yes").stderr
    add_gate(command, "later")
    assert listed(command)[0]["state"] == "changed"


@pytest.mark.parametrize("end", ["gone", "untrusted"])
def test_following_ends_when_the_project_does(command: Command, end: str) -> None:
    """Its directory has vanished, or another terminal has taken the approval back."""
    hook = add_gate(command)
    command("trust", "--yes")
    dialog = command.dialog("trust", "--follow", "1h")
    dialog.sees("Ctrl-C ends this")
    if end == "gone":
        command.project.rename(command.project.with_name("moved"))
        dialog.sees("is gone")
        command.project.mkdir()
    else:
        command("untrust")
        hook.write_text("# changed\n")
        dialog.sees("no longer approved")
    dialog.end(1)


def test_a_project_that_vanishes_just_before_it_is_watched_is_gone(
    command: Command, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The watcher finds no directory, which is no internal error."""
    add_gate(command)
    command("trust", "--yes")
    watch = watchfiles.watch

    def watch_too_late(*directories: str, **options: Any) -> object:
        command.project.rename(command.project.with_name("moved"))
        return watch(*directories, **options)

    monkeypatch.setattr(watchfiles, "watch", watch_too_late)
    assert follow_saves(Trust(), [str(command.project)], 60) == FAILED
    assert ".agent is gone" in capfd.readouterr().err


@pytest.mark.parametrize(
    "line", [["install", "claude-code", "--dry-run"], ["guard", "explain", "ls"], ["check", "x.py"]]
)
def test_each_command_says_that_hooks_wait(command: Command, line: list[str]) -> None:
    """Without a terminal the message is on stderr, once."""
    add_gate(command)
    (command.project / "x.py").write_text("def register(api): ...\n")
    assert (
        command(*line).stderr.count(
            "no person has approved them: .agent/hooks/gate.py; read and approve: agent-hooks trust"
        )
        == 1
    )


def test_names_in_printed_commands_are_quoted(command: Command) -> None:
    """You may copy the command, and a stranger has named the directory or the file."""
    name = "a $(touch PWNED);b"
    directory = command.project / name
    (directory / ".agent" / "hooks").mkdir(parents=True)
    (directory / ".agent" / "hooks" / "gate.py").write_text("def register(api): ...")
    command.trusted = False
    done = command("check", "--cwd", name, code=FAILED)
    assert f"agent-hooks check '{name}" in done.stderr
    assert install_command("a;b").endswith(" 'a;b'")
