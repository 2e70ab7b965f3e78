"""TAB in a real zsh and a real fish, and hostile names in bash too.  `test_cli_conventions.py` has the rest of bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks.cli.completing import script
from running import Command, Dialog
from support import PATIENCE

# Ctrl-X shows the line that is being typed.
SHOW = "show() { zle -I; print -r -- \"<$BUFFER>\" }; zle -N show; bindkey '^X' show"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Let the shells find this installation's command, and no settings of the person who runs the tests."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PS1", "ready> ")
    for name in ("ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))


# ---- hostile names

HOSTILE = "gate$(touch PWNED)"
START = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
}
READY = {"zsh": "autoload -Uz compinit; compinit -u -D; "}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.zsh)])
@pytest.mark.parametrize("line", ["disable", "check"])
def test_no_name_of_a_file_runs_at_enter(command: Command, shell: str, line: str) -> None:
    """A stranger has named a hook and a file.  You press TAB, and then Enter."""
    command.add_hook("def register(api): ...", f"{HOSTILE}.py")
    (command.project / f"{HOSTILE}.txt").write_text("")
    (command.project / f"completion.{shell}").write_text(script(shell))
    dialog = Dialog([shutil.which(shell) or "", *START[shell]], command.project, None)
    try:
        dialog.sees("ready> ")
        dialog.type(f"{READY.get(shell, '')}source completion.{shell}; echo so''urced\n")
        dialog.sees("sourced")
        dialog.type(f"agent-hooks {line} gat\t")
        # The shell answers keys in their order, so the next line is read when the completion is there.
        dialog.type("\necho the''-end\n")
        dialog.sees("the-end")
    finally:
        dialog.process.kill()
        dialog.end(None)
    assert not (command.project / "PWNED").exists()


# ---- zsh


@pytest.fixture
def zsh(command: Command) -> Iterator[Dialog]:
    """Give a real zsh at a terminal, with the completions of the documentation."""
    command.add_hook("def register(api): ...", "no_force_push.py")
    (command.project / "completion.zsh").write_text(script("zsh"))
    shell = Dialog([shutil.which("zsh") or "", "-f", "-i"], command.project, None)
    try:
        # A key before the first prompt may get lost.
        shell.sees("ready> ")
        shell.type(f"{SHOW}; autoload -Uz compinit; compinit -u -D; source completion.zsh; echo so''urced\n")
        shell.sees("sourced")
        yield shell
    finally:
        # A key that comes while the line is shown would be one of the terminal, which knows no Ctrl-U of zsh.
        shell.process.kill()
        shell.end(None)


@pytest.mark.zsh
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("agent-hooks unins", "agent-hooks uninstall "),
        ("agent-hooks install claude-code gem", "agent-hooks install claude-code gemini-cli "),
        ("agent-hooks records --hook no", "agent-hooks records --hook no_force_push "),
        ("agent-hooks serve --sta", "agent-hooks serve --status "),
        ("agent-hooks check compl", "agent-hooks check completion.zsh "),
    ],
)
def test_zsh_completes_commands_options_names_and_files(zsh: Dialog, typed: str, line: str) -> None:
    """A person types the beginning, and presses TAB."""
    zsh.type(f"{typed}\t\x18")
    zsh.sees(f"<{line}>")


@pytest.mark.zsh
def test_zsh_lists_what_fits_with_the_text_beside_it(zsh: Dialog) -> None:
    """Of several completions; a text with colons and commas stays whole."""
    zsh.type("agent-hooks un\t")
    zsh.sees("Take your hooks out of another agent's settings again.")
    zsh.sees("Let the agent change hooks and settings for a limited time.")


@pytest.mark.zsh
def test_zsh_prints_no_error_when_the_installation_is_gone(zsh: Dialog) -> None:
    """TAB after `pip uninstall` leaves the line as it is."""
    zsh.type("PATH=\nagent-hooks unins\t\x18")
    seen = zsh.sees("<agent-hooks unins>")
    assert "not found" not in seen
    assert "No such file" not in seen


# ---- fish


def fish(line: str, cwd: Path, first: str = "") -> list[str]:
    """Return the completions of a real fish for a line, each with its text."""
    (cwd / "completion.fish").write_text(script("fish"))
    program = f'source completion.fish; {first} complete --do-complete "{line}"'
    done = subprocess.run(
        ["fish", "--no-config", "--command", program],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.fish
def test_fish_completes_commands_options_names_and_files(command: Command) -> None:
    """With the text beside each, commas included."""
    command.add_hook("def register(api): ...", "no_force_push.py")
    here = command.project
    assert fish("agent-hooks unins", here) == ["uninstall\tTake your hooks out of another agent's settings again."]
    (undo,) = [each for each in fish("agent-hooks re", here) if each.startswith("records\t")]
    assert undo == "records\tShow, verify and remove the records of calls and decisions."
    for line, name in (
        ("agent-hooks install claude-code gem", "gemini-cli"),
        ("agent-hooks records --hook no", "no_force_push"),
        ("agent-hooks serve --sta", "--status"),
        ("agent-hooks check compl", "completion.fish"),
    ):
        assert [each.partition("\t")[0] for each in fish(line, here)] == [name]


@pytest.mark.fish
def test_fish_offers_no_name_that_a_shell_would_run(command: Command) -> None:
    """A stranger has named the file of a hook."""
    command.add_hook("def register(api): ...", f"{HOSTILE}.py")
    command.add_hook("def register(api): ...", "gate.py")
    assert fish("agent-hooks disable gat", command.project) == ["gate"]


@pytest.mark.fish
def test_fish_prints_no_error_when_the_installation_is_gone(project: Path) -> None:
    """TAB after `pip uninstall` completes nothing."""
    assert fish("agent-hooks unins", project, first="set PATH /usr/bin /bin;") == []
