"""Every command keeps the conventions of a command line: completion, help, `-q`, `NO_COLOR`, one prefix."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from agent_hooks.cli.completing import SHELLS, script
from agent_hooks.cli.main import COMMANDS, cli
from running import Command, Dialog
from support import PATIENCE, ROOT


def every_command() -> Iterator[click.Context]:
    """Yield a context for each command, those of groups too."""
    pending = [click.Context(cli, info_name="agent-hooks", **cli.context_settings)]
    while pending:
        ctx = pending.pop()
        yield ctx
        if isinstance(ctx.command, click.Group):
            for name in ctx.command.list_commands(ctx):
                found = ctx.command.get_command(ctx, name)
                assert found is not None
                pending.append(click.Context(found, info_name=name, parent=ctx))


# ---- completion


def completions(line: str, cwd: Path) -> list[str]:
    """Return the completions of a real bash for a line, whose last word is the one to complete."""
    words = line.split(" ")
    program = f"""
        source <(agent-hooks completion bash)
        COMP_WORDS=({" ".join(word or "''" for word in words)}) COMP_CWORD={len(words) - 1}
        _agent_hooks_completion agent-hooks {words[-1] or "''"} {words[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", program],
        cwd=cwd,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_tab_completes_commands_options_and_the_names_of_this_directory(command: Command) -> None:
    """A real bash gets them: agents, hooks, rules, events, tools."""
    command.add_hook("def register(api): ...", "no_force_push.py")
    assert completions("agent-hooks unins", command.project) == ["uninstall"]
    assert completions("agent-hooks install claude-code gem", command.project) == ["gemini-cli"]
    assert completions("agent-hooks records --hook no", command.project) == ["no_force_push"]
    assert "git-history" in completions("agent-hooks run --allow-once git-", command.project)
    assert completions("agent-hooks emit before_", command.project) == ["before_tool_call"]
    assert completions("agent-hooks records --tool ba", command.project) == ["bash"]
    assert completions("agent-hooks serve --sta", command.project) == ["--status"]


def test_tab_offers_no_name_that_a_shell_would_run_or_read_as_an_option(command: Command) -> None:
    """bash inserts a word as it is, so the name of a stranger's file would run at Enter."""
    stems = (
        "gate$(touch PWNED)",
        "gate`touch PWNED`",
        "gate;touch PWNED",
        "gate\ntouch PWNED",
        "gate*",
        "gate x",
        "gate\x1b",
    )
    for stem in (*stems, "--all", "~root", "=ls", "gate_1", "gäte"):
        command.add_hook("def register(api): ...", f"{stem}.py")
    assert completions("agent-hooks disable g", command.project) == ["gate_1", "gäte"]
    for begin, name in (("-", "--all"), ("~", "~root"), ("=", "=ls")):
        assert name not in completions(f"agent-hooks disable {begin}", command.project)


def test_tab_prints_no_error_whatever_is_wrong(command: Command) -> None:
    """Broken settings, a line that makes no sense, an open quotation mark, and a directory without checkpoints."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text("{")
    for line in ("agent-hooks nope --x ", "agent-hooks checkpoints diff x", "agent-hooks --foo run --mode "):
        completions(line, command.project)
    environment = {
        "COMP_WORDS": "agent-hooks run 'unfinished",
        "COMP_CWORD": "x",
        "_AGENT_HOOKS_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        command.line(), env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_tab_in_a_shell_whose_installation_is_gone_prints_no_error(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person at a real bash presses TAB after `pip uninstall`; the line stays as it is."""
    (project / "completion.bash").write_text(script("bash"))
    bash = shutil.which("bash")
    assert bash
    monkeypatch.setenv("PS1", "ready> ")
    shell = Dialog([bash, "--norc", "--noprofile", "-i"], project, None)
    shell.sees("ready> ")
    shell.type("PATH=; source completion.bash; echo so''urced\n")
    shell.sees("sourced")
    shell.type("agent-hooks unins\t\x15echo the''-end\n")
    seen = shell.sees("the-end")
    assert "No such file" not in seen
    assert "not found" not in seen
    shell.type("exit\n")
    shell.end()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell_sends_the_errors_of_tab_nowhere(command: Command, shell: str) -> None:
    """click's script has the form that ours changes in one place."""
    text = command("completion", shell).stdout
    assert text == f"{script(shell)}\n"
    [call] = [line for line in text.splitlines() if f"_AGENT_HOOKS_COMPLETE={shell}_complete" in line]
    assert "2>/dev/null)" in call


# ---- help


def test_no_help_text_is_cut_at_80_columns() -> None:
    """Each sentence of a list of commands is whole, each line fits, and each option has a text."""
    for ctx in every_command():
        ctx.terminal_width = 80
        text = ctx.get_help()
        assert "..." not in re.sub(r"\.\.\.(\]|$)", "", text.splitlines()[0])
        assert not re.search(r"(?<!\])\.\.\.$", "\n".join(text.splitlines()[1:]), re.MULTILINE), text
        assert all(len(line) <= 80 for line in text.splitlines()), text
        for each in ctx.command.params:
            assert not isinstance(each, click.Option) or each.hidden or each.help, (ctx.command_path, each.name)


# ---- one prefix, -q, no colours


@pytest.mark.parametrize(
    ("args", "code"),
    [(["--foo"], 2), (["nope"], 2), (["install"], 2), (["schema", "x"], 2), (["why"], 1), (["run"], 2)],
)
def test_an_error_begins_with_the_name_of_the_command(command: Command, args: list[str], code: int) -> None:
    """Wrong usage has the usage above it; no other prefix is in use."""
    lines = command(*args, code=code).stderr.splitlines()
    assert sum(line.startswith("agent-hooks: ") for line in lines) == 1
    assert not any(line.startswith("Error") for line in lines)
    assert (code == 2) == lines[0].startswith("Usage: agent-hooks ")


def test_a_group_without_a_command_shows_its_help(command: Command) -> None:
    """It is a question rather than a mistake, so no error is printed."""
    done = command("guard", code=2)
    assert "Commands:" in done.stdout + done.stderr
    assert "agent-hooks: " not in done.stderr


def test_quiet_leaves_answers_warnings_and_errors(command: Command) -> None:
    """`-q` stands before or behind the name of any command; a run prints its answer only."""
    command.add_hook("def register(api): ...")
    loud = command("run", "--no-session", "@bash echo hi")
    for args in (("-q", "run"), ("run", "-q")):
        done = command(*args, "--no-session", "@bash echo hi")
        assert (done.stdout, done.stderr) == (loud.stdout, "")
    assert "• bash echo hi" in loud.stderr
    assert command("-q", "install", "claude-code").stdout == ""
    assert command("uninstall", "claude-code", "--quiet").stdout == ""
    command.trusted = False
    done = command("trust", "--yes", "-q")
    assert (done.stdout, done.stderr) == ("", "")
    for line in ("new one", "new two --user", "examples add protected_paths"):
        done = command(*line.split(), "-q")
        assert (done.stdout, done.stderr) == ("", "")
    command("untrust", "-q")
    # Without an approval, the hook does not count yet.
    assert "wait for your approval" in command("new", "three", "-q").stdout


def test_every_command_takes_quiet() -> None:
    """Those of groups too."""
    for ctx in every_command():
        assert sum("-q" in each.opts for each in ctx.command.params) == 1, ctx.command_path


@pytest.mark.parametrize("args", [("run", "--no-session", "@bash false"), ("list",), ("guard", "exceptions")])
def test_no_color_leaves_a_terminal_without_colours(
    command: Command, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    """Bold type may stay, as https://no-color.org says."""
    command.add_hook("def register(api):\n    api.on('tool_call', lambda event, ctx: None)")
    monkeypatch.setenv("NO_COLOR", "1")
    seen = command.on_terminal(*args)
    codes = {code for each in re.findall(r"\x1b\[([\d;]*)m", seen) for code in each.split(";")}
    assert not [code for code in codes if re.fullmatch(r"[349]\d|10\d", code)], seen


# ---- JSON


def keys(value: Any) -> Iterator[str]:
    """Yield the keys of a JSON value, without those of tools' own data."""
    if isinstance(value, list):
        for each in value:
            yield from keys(each)
    if isinstance(value, dict):
        for name, each in value.items():
            yield name
            if name not in ("input", "params", "details", "arguments", "rewritten", "by", "classes"):
                yield from keys(each)


def test_the_keys_of_all_json_are_spelled_alike(command: Command) -> None:
    """camelCase, whatever the command."""
    command.add_hook("""
        from agent_hooks import Block, Compaction
        def register(api):
            api.on("tool_call", lambda event, ctx: Block("no") if "no" in event.input["command"] else None, tool="bash")
            api.on("session", lambda event, ctx: event.reason == "before_compact"
                   and Compaction(summary="s", first_kept_entry_index=1, tokens_before=2) or None)
    """)
    hook = ["--hook", ".agent/hooks/hook.py"]
    for line in ("git init -q", "git config user.email a@b.c", "git config user.name a"):
        subprocess.run(line.split(), cwd=command.project, check=True)
    command("run", '@write {"path": "a.txt", "content": "x"}\n@bash echo no\n@bash echo yes')
    (command.project / "corpus.tsv").write_text('expected\tclass\tcommand\ndeny\tfiles\t"rm -rf /"\n')
    session = next((command.project / ".agent" / "sessions").glob("*.jsonl"))
    said = {
        args: command(*args, code=None, stdin='{"tool": "bash", "input": {"command": "curl x.de -T a > b"}}').stdout
        for args in [
            ("run", "--no-session", "--json", "@bash echo yes"),
            ("list", "--json"),
            ("list", "--points", "--json"),
            ("emit", "session:before_compact", *hook, "--json"),
            ("emit", "tool_call", *hook, "--input", '{"command": "no"}', "--json"),
            ("trust", "--list", "--json"),
            ("doctor", "--json"),
            ("guard", "check", "--json"),
            ("guard", "exceptions", "--json"),
            ("guard", "test", "corpus.tsv", "--json"),
            ("examples", "--json"),
            ("checkpoints", "list", "--json"),
            ("records", "--json"),
            ("records", "show", "--json"),
            ("stats", "--json"),
            ("replay", str(session), "--json"),
            ("serve", "--status", "--json"),
        ]
    }
    with_json = [ctx for ctx in every_command() if any("--json" in each.opts for each in ctx.command.params)]
    tried = [f"agent-hooks {' '.join(args)} " for args in said]
    assert [ctx.command_path for ctx in with_json if not any(f"{ctx.command_path} " in each for each in tried)] == []
    for args, text in said.items():
        values = [json.loads(line) for line in text.splitlines()]
        assert values, f"{args} printed nothing"
        wrong = {name for name in keys(values) if not re.fullmatch(r"[a-z][a-zA-Z0-9]*", name)}
        assert wrong == set(), args
    assert "firstKeptEntryIndex" in said[("emit", "session:before_compact", *hook, "--json")]
    assert "inForce" in said[("trust", "--list", "--json")]
    assert "entryIndex" in said[("checkpoints", "list", "--json")]


def test_serve_status_answers_also_when_no_server_runs(command: Command) -> None:
    """A program gets a list; `--json` without a question is wrong usage, and starts no server."""
    assert json.loads(command("serve", "--status", "--json").stdout) == {"servers": []}
    assert "--json goes with --status" in command("serve", "--json", code=2).stderr


# ---- the pages


def test_the_page_of_exit_codes_has_each_command() -> None:
    """A command that is added gets its row."""
    text = (ROOT / "docs" / "exit-codes.md").read_text()
    named = set(re.findall(r"`([a-z]+)[^`]*`", text))
    assert set(COMMANDS) <= named
