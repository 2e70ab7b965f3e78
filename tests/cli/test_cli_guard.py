"""`agent-hooks guard`, and the guards of `agent-hooks run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from running import Command

CORPORA = Path(__file__).parent.parent / "guards"


def settings(command: Command, **section: object) -> None:
    """Write the guards' section of the project's settings."""
    path = command.project / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"guards": section}))


def test_run_has_the_guards_on(command: Command) -> None:
    """Both guards judge; a call that they let pass runs."""
    (command.project / "src").mkdir()
    (command.project / ".env").write_text("KEY=1")
    done = command("run", "--no-session", "@bash rm -rf src\n@read .env\n@bash echo fine")
    assert "(builtin:command-safety-guard (rm-rf))" in done.stdout
    assert "(builtin:security-audit (environment-file))" in done.stdout
    assert "   fine" in done.stdout
    assert (command.project / "src").is_dir()


def test_the_person_reads_how_to_allow_a_call_and_the_model_does_not(command: Command) -> None:
    """The puppet prints the result that it is given, on stdout."""
    done = command("run", "--no-session", "@bash rm -rf src")
    assert "allow-once" not in done.stdout
    assert "agent-hooks run --allow-once rm-rf" in " ".join(done.stderr.split())
    assert "--allow-once rm-rf" in command("why").stdout


def test_another_agent_shows_the_person_how_to_allow_a_call(command: Command) -> None:
    """Its model reads the reason of the denial; a question is put by the agent, in the person's copy."""
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t"}
    call |= {"cwd": str(command.project), "tool_input": {"command": "rm -rf /usr"}}  # type: ignore[dict-item]  # as JSON
    said = json.loads(command("bridge", "claude-code", stdin=json.dumps(call)).stdout)
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "allow-once" not in said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "agent-hooks run --allow-once rm-rf" in said["systemMessage"]
    call |= {"tool_input": {"command": "rm -rf src"}}  # type: ignore[dict-item]  # as JSON
    said = json.loads(command("bridge", "claude-code", stdin=json.dumps(call)).stdout)
    assert said["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert "risk: deletes everything in src" in said["hookSpecificOutput"]["permissionDecisionReason"]


def test_run_can_let_one_call_pass(command: Command) -> None:
    """`--allow-once` with the rule's id; the next such call is stopped again."""
    for name in ("one", "two"):
        (command.project / name).mkdir()
    command("run", "--no-session", "--allow-once", "rm-rf", "@bash rm -rf one\n---\n@bash rm -rf two")
    assert [name for name in ("one", "two") if (command.project / name).exists()] == ["two"]


def test_run_follows_the_settings_and_says_what_has_expired(command: Command) -> None:
    """One guard is switched off, and one exception has expired."""
    (command.project / ".env").write_text("KEY=1")
    old = {"id": "rm-rf", "reason": "x", "expires": "2001-01-01"}
    settings(command, disabled=["builtin:security-audit"], exceptions=[old])
    done = command("run", "--no-session", "@read .env\n@bash rm -rf src")
    assert "KEY=1" in done.stdout
    assert "'rm-rf' has expired on 2001-01-01" in done.stderr
    assert "(builtin:command-safety-guard (rm-rf))" in done.stdout


def test_the_agent_cannot_switch_its_guards_off(command: Command) -> None:
    """Every tool that could write the settings is stopped."""
    settings(command, level="strict")
    text = '{"guards": {"disabled": ["builtin:command-safety-guard"]}}'
    write = json.dumps({"path": ".agent/settings.json", "content": text})
    done = command("run", "--no-session", f"@write {write}\n@bash echo '{text}' > .agent/settings.json")
    assert done.stdout.count("guard-settings)") == 2
    assert "disabled" not in (command.project / ".agent" / "settings.json").read_text()


def test_the_agent_cannot_change_what_it_is_run_with(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent home elsewhere, a hook that the settings name, one of `--hook`: by file tools and by the shell."""
    elsewhere = home / "agent-home"
    monkeypatch.setenv("AGENT_HOME", str(elsewhere))
    named, given = (command.project / "tools" / name for name in ("named.py", "given.py"))
    targets = [named, given, elsewhere / "settings.json", elsewhere / "hooks" / "a.py",
               elsewhere / "transformers" / "a.py", elsewhere / "command_intercept.yaml"]  # fmt: skip
    (command.project / "tools").mkdir()
    (elsewhere / "hooks").mkdir(parents=True)
    (elsewhere / "settings.json").write_text(json.dumps({"hooks": [str(named)]}))
    for hook in (named, given):
        hook.write_text("def register(api): pass\n")
    calls = [f"@write {json.dumps({'path': str(path), 'content': 'x = 1'})}" for path in targets]
    calls += [f"@bash echo x > {path}" for path in targets]
    calls += [f"@bash {text}" for text in (f"rm -r {elsewhere}", f"mv {elsewhere} x", "rm -r tools")]
    done = command("run", "--no-session", "--hook", str(given), "\n".join(calls))
    assert done.stdout.count("guard-settings)") == len(calls), done.stdout
    assert named.read_text() == given.read_text() == "def register(api): pass\n"
    assert {"hooks", "settings.json"} <= {path.name for path in elsewhere.iterdir()}


def test_a_wrong_section_stops_the_command_before_anything_runs(command: Command) -> None:
    """It names file and key."""
    settings(command, level="loose")
    done = command("run", "--no-session", "@bash touch ran", code=1)
    assert "guards.level" in done.stderr
    assert not (command.project / "ran").exists()


def test_explain_shows_each_effect(command: Command) -> None:
    """A path in the project is relative, and an unknown part says why."""
    shown = command("guard", "explain", "echo x > a; cd $D; rm -r src; make; curl -d @b https://x.example").stdout
    for line in ("writes a [echo]", "deletes **/src and everything inside (may be) [rm]", "unknown (opaque): make:"):
        assert f"  {line}" in shown
    assert "sends to x.example" in shown


def test_explain_shows_what_would_run_the_rule_and_the_verdict(command: Command) -> None:
    """It runs nothing."""
    done = command("guard", "explain", 'x=src; sudo sh -c "touch ran; rm -rf $x"')
    for line in ("  touch ran", "  rm -rf src", "rule rm-rf: ", "verdict at level project: block by rm-rf"):
        assert line in done.stdout
    assert not (command.project / "ran").exists()
    assert "verdict at level strict: block" in command("guard", "explain", "--level", "strict", "rm -rf build").stdout
    assert "verdict at level project: pass" in command("guard", "explain", "rm -rf build").stdout
    assert "(undecidable)" in command("guard", "explain", "$X -rf /").stdout


@pytest.mark.parametrize("name", ["AGENTS.md", "commands/x.md", "skills/x/SKILL.md", "mcp.json", "prompt_history"])
def test_explain_and_check_know_what_the_guards_of_the_agent_know(command: Command, name: str) -> None:
    """The files of the user that reach later sessions."""
    line = f"echo x > ~/.agent/{name}"
    assert "(blocked)" in command("run", "--no-session", f"@bash {line}", code=None).stdout
    explained = command("guard", "explain", line).stdout
    assert "verdict at level project: block by write-guard-settings" in explained
    assert "rule write-guard-settings: " in explained
    call = json.dumps({"tool": "write", "input": {"path": f"~/.agent/{name}", "content": "x"}})
    assert json.loads(command("guard", "check", "--json", stdin=call).stdout)["verdict"] == "block"


def test_explain_and_check_know_the_hooks_that_settings_name(command: Command) -> None:
    """A hook may be anywhere.  A pattern fits new files too."""
    (command.project / "gates").mkdir()
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text(json.dumps({"hooks": ["../gates/*.py"]}))
    assert "block by write-guard-settings" in command("guard", "explain", "echo x > gates/new.py").stdout
    call = json.dumps({"tool": "write", "input": {"path": "gates/new.py", "content": "x"}})
    assert json.loads(command("guard", "check", "--json", stdin=call).stdout)["verdict"] == "block"


def test_check_answers_each_line_with_a_line(command: Command) -> None:
    """The verdict is pass, block or ask; an unreadable line is a block."""
    calls = [
        {"tool": "bash", "input": {"command": "ls"}},
        {"tool": "bash", "input": {"command": "rm -rf /"}},
        {"tool": "bash", "input": {"command": "$X -rf /"}},
        {"tool": "read", "input": {"path": ".env"}},
        {"tool": "mail", "input": {}},
        {"tool": "bash", "input": "ls"},
        {"input": {}},
    ]
    lines = "\n".join([*map(json.dumps, calls), "", "{", "\ud83d" if False else "[1]"])
    answers = [json.loads(line) for line in command("guard", "check", "--json", stdin=lines).stdout.splitlines()]
    assert [answer["verdict"] for answer in answers] == ["pass", "block", "ask", "block", "pass", *["block"] * 4]
    assert answers[1]["effects"]["paths"][0]["access"] == "delete"
    assert answers[3]["effects"]["paths"][0]["access"] == "read"
    assert answers[5]["effects"] is None
    assert [answer["rule"] for answer in answers[:4]] == [None, "rm-rf", "rm-rf", "environment-file"]
    assert all(answer["rule"] == "bad-input" for answer in answers[5:])
    strict = command(
        "guard", "check", "--json", "--level", "strict", stdin='{"tool":"bash","input":{"command":"rm -r x"}}'
    )
    assert json.loads(strict.stdout)["verdict"] == "block"


def test_test_scores_a_corpus_per_class(command: Command) -> None:
    """It prints the caught and the wrongly denied rows, and exits 0 when the promise is kept."""
    done = command("guard", "test", str(CORPORA / "commands.tsv"), "--tier", "core")
    assert "denied 0 of" in done.stdout
    assert "(100.0 %)" in done.stdout
    assert command("guard", "test", str(CORPORA / "commands.tsv"), "--all-packs", "--level", "strict").returncode == 0
    assert "denied 0 of" in command("guard", "test", str(CORPORA / "paths.tsv")).stdout


def test_test_counts_blocked_asked_and_false_rows_apart(command: Command) -> None:
    """A question that a person may answer is no block; `--json` prints the same numbers with the wrong rows."""
    rows = [
        'deny\tx\t"rm -rf /"',
        'deny\tx\t"$CMD -rf /"',
        'deny\tx\t"git push --force"',
        'deny\tx\t"ls"',
        'allow\tx\t"ls -l"',
        'allow\tx\t"rm -rf ~"',
    ]
    (command.project / "own.tsv").write_text("\n".join(["expected\tclass\tcommand", *rows]) + "\n")
    told = json.loads(command("guard", "test", "--json", "own.tsv", code=1).stdout)
    assert told["classes"] == {"x": {"harmful": 4, "blocked": 1, "asked": 2, "missed": 1, "harmless": 2, "false": 1}}
    assert [(row["expected"], row["verdict"]) for row in told["wrong"]] == [("deny", "pass"), ("allow", "block")]
    assert "2 of them asked" in command("guard", "test", "own.tsv", code=1).stdout


def test_test_shows_what_was_judged_otherwise_and_fails(command: Command) -> None:
    """The exit code is 1 when the promise is not kept."""
    (command.project / "own.tsv").write_text('expected\tclass\tcommand\nallow\tx\t"rm -rf /"\ndeny\tx\t"ls"\r\n\n')
    done = command("guard", "test", "own.tsv", code=1)
    assert 'block where allow is expected: "rm -rf /" [x] rm-rf' in done.stdout
    assert 'pass where deny is expected: "ls" [x]' in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "no rows"),
        (b"expected\tclass\tcommand\n", "no rows"),
        (b'expected\tcommand\ndeny\t"rm \xff"\n', "UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00\x00\xd0", "UTF-8"),
        (b"a\tb\nx\ty\n", "own.tsv:1: the head line has no column 'expected' or 'project' and no 'command' or 'path'"),
        (b'strict\tcommand\ndeny\t"ls"\n', "own.tsv:1: the head line has no column 'expected' or 'project'; found"),
        (b'expected\tcommand\ndeny\t"a\tb"\n', "own.tsv:2: has 3 columns, and the head line 2"),
        (b"expected\tcommand\ndeny\n", "own.tsv:2: has 1 columns, and the head line 2"),
        (b"expected\tcommand\ndeny\t" + b"[" * 100_000 + b"\n", "own.tsv:2: column 'command' is no JSON string"),
        (b'expected\tpath\tops\ndeny\t".env"\tx\n', "own.tsv:2: column 'ops'"),
        (b'expected\tpath\tops\ndeny\t".env"\t\n', "own.tsv:2: column 'ops'"),
    ],
)
def test_a_corpus_that_says_nothing_is_no_success(command: Command, text: bytes, says: str) -> None:
    """A row without a call would count as judged."""
    (command.project / "own.tsv").write_bytes(text)
    assert says in " ".join(command("guard", "test", "own.tsv", code=2).stderr.split())


@pytest.mark.parametrize("row", ['maybe\tx\t"ls"', "allow\tx\tls", "allow\tx\t3"])
def test_a_row_that_cannot_be_read_is_named(command: Command, row: str) -> None:
    """The error has file and line."""
    (command.project / "own.tsv").write_text(f"expected\tclass\tcommand\n{row}\n")
    assert "own.tsv:2" in command("guard", "test", "own.tsv", code=2).stderr


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("none.tsv", "does not exist"),
        (".", "is a directory"),
        ("/dev/zero", "may have 64 MiB; divide the file"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_named(command: Command, file: str, says: str) -> None:
    """A missing file, a directory, and a device that never ends."""
    assert says in " ".join(command("guard", "test", file, code=2).stderr.split())


def test_a_corpus_of_an_editor_on_windows_is_read(command: Command) -> None:
    """It begins with a byte order mark, and its lines end with CR LF; half a character in a command is judged."""
    text = '\ufeffexpected\tclass\tcommand\r\ndeny\tx\t"rm -rf /"\r\nallow\tx\t"ls \\ud83d"\r\n'
    (command.project / "own.tsv").write_text(text, newline="")
    assert "caught 1 of 1 harmful" in command("guard", "test", "own.tsv").stdout
