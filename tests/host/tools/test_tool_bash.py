"""The bash tool: real programs."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio
import pytest

from agent_hooks.host.tools import bash, builtin_tools
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import BashToolDetails
from support import PATIENCE, gone
from tmux import MISSING

if TYPE_CHECKING:
    from host.tools.conftest import Call

pytestmark = pytest.mark.anyio


async def test_output_is_stdout_and_stderr_in_order(call: Call) -> None:
    output = await call("bash", command="echo one; echo two >&2; echo three")
    assert (output.text, output.is_error, output.details) == ("one\ntwo\nthree", False, None)


async def test_a_command_runs_in_cwd_and_in_bash(call: Call, project: Path) -> None:
    assert (await call("bash", command="pwd; [[ a == a ]]")).text == str(project)


async def test_a_command_does_not_learn_which_terminal_the_user_sits_at(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By these variables a program types into the terminal.  The default socket and programs with a window still work."""
    named = [
        "TMUX",
        "TMUX_PANE",
        "STY",
        "WINDOW",
        "KITTY_LISTEN_ON",
        "KITTY_PUBLIC_KEY",
        "KITTY_WINDOW_ID",
        "WEZTERM_PANE",
        "WEZTERM_UNIX_SOCKET",
        "ZELLIJ",
        "ZELLIJ_SESSION_NAME",
        "GNOME_TERMINAL_SCREEN",
        "GNOME_TERMINAL_SERVICE",
        "KONSOLE_DBUS_SESSION",
        "ALACRITTY_SOCKET",
        "ALACRITTY_WINDOW_ID",
        "ITERM_SESSION_ID",
        "TERM_SESSION_ID",
        "NVIM",
        "NVIM_LISTEN_ADDRESS",
        "WINDOWID",
        "SSH_TTY",
    ]
    kept = ["DISPLAY", "WAYLAND_DISPLAY", "TERM", "TMUX_TMPDIR", "NVIM_APPNAME", "STYLE"]
    for name in (*named, *kept):
        monkeypatch.setenv(name, "x")
    names = [line.partition("=")[0] for line in (await call("bash", command="env")).text.splitlines()]
    assert not set(named) & set(names)
    assert {*kept, "PATH"} <= set(names)


async def test_a_command_has_no_terminal(call: Call) -> None:
    """It leads a session of its own, so the terminal is neither its input nor `/dev/tty`."""
    output = await call("bash", command="test $(ps -o sid= -p $$) -eq $$ && ! true 2>/dev/null </dev/tty && echo alone")
    assert output.text == "alone"


@pytest.mark.skipif(MISSING, reason="tmux is missing")
async def test_a_command_makes_a_session_of_tmux_of_its_own(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the user's tmux, too."""
    monkeypatch.setenv("TMUX", "/nonexistent/default,1,0")
    with TemporaryDirectory(prefix="agent-hooks-") as directory:
        monkeypatch.setenv("TMUX_TMPDIR", directory)
        output = await call("bash", command="tmux -f /dev/null new -d -s x && tmux ls -F '#S' && tmux kill-server")
    assert (output.text, output.is_error) == ("x", False)


async def test_without_bash_sh_runs_the_command(call: Call, no_programs: None) -> None:
    assert (await call("bash", command="echo $0")).text.endswith("sh")


async def test_no_output_is_told(call: Call) -> None:
    assert (await call("bash", command="true")).text == "(no output)"
    assert (await call("bash", command="false")).text == "(no output)\n[exit code 1]"


async def test_an_exit_code_is_an_error_and_told_last(call: Call) -> None:
    output = await call("bash", command="printf partial; exit 3")
    assert (output.text, output.is_error) == ("partial\n[exit code 3]", True)
    assert (await call("bash", command="kill -9 $$")).text.endswith("[exit code 137]")


async def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    tool = builtin_tools(cwd=str(tmp_path / "missing"))[0]
    output = await tool.execute("1", {"command": "true"})
    assert output.is_error
    assert f"there is no directory {tmp_path / 'missing'}" in output.text


async def test_a_shell_that_does_not_start_is_told(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bin" / "bash"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF, but no program")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(broken.parent))
    output = await call("bash", command="true")
    assert output.is_error
    assert output.text == f"cannot start {broken}: Exec format error"


async def test_a_timeout_kills_and_keeps_what_was_printed(call: Call) -> None:
    # Longer each time, until the command had time to print something.
    for timeout in (0.3, 3, 30):
        output = await call("bash", command="echo $$; sleep 1000", timeout=timeout)
        *printed, last = output.text.split("\n")
        assert (last, output.is_error) == (f"[timed out after {timeout} s]", True)
        if printed:
            break
    [pid] = printed
    await gone(int(pid))


async def test_many_lines_are_cut_to_the_last_ones(call: Call, kept: Path) -> None:
    output = await call("bash", command="seq 5000; exit 1")
    details = output.details
    assert isinstance(details, BashToolDetails)
    note, *lines, last = output.text.split("\n")
    assert (
        note
        == f"[cut: the last 2000 lines of 5000 (9999 of 23893 bytes); the full text is in {details.full_output_path}]"
    )
    assert lines == [str(n) for n in range(3001, 5001)]
    assert last == "[exit code 1]"
    cut = details.truncation
    assert cut is not None
    assert (cut.truncated_by, cut.total_lines, cut.output_lines) == ("lines", 5000, 2000)
    assert details.full_output_path is not None
    assert Path(details.full_output_path).parent == kept
    assert Path(details.full_output_path).read_text() == "".join(f"{n}\n" for n in range(1, 5001))


async def test_one_endless_line_is_cut_between_characters(call: Call) -> None:
    output = await call("bash", command="head -c 3000000 /dev/zero | sed 's/\\x0/€/g'")
    note, text = output.text.split("\n")
    assert "(51198 of 9000000 bytes)" in note
    assert set(text) == {"€"}
    cut = output.details.truncation
    assert (cut.truncated_by, cut.total_bytes, cut.total_lines) == ("bytes", 9_000_000, 1)
    assert os.path.getsize(output.details.full_output_path) == 9_000_000


async def test_a_character_split_over_two_writes_is_one_character(call: Call) -> None:
    output = await call("bash", command=r"printf '\xe2\x82'; sleep 0.05; printf '\xac'")
    assert output.text == "€"


async def test_bytes_that_are_no_text_are_replaced(call: Call) -> None:
    assert (await call("bash", command=r"printf 'a\xffb'")).text == "a\ufffdb"


async def test_bytes_that_grow_when_replaced_are_cut_and_kept(call: Call) -> None:
    output = await call("bash", command=r"head -c 30000 /dev/zero | tr '\0' '\377'")
    assert output.details.truncation.output_bytes <= 50 * 1024
    assert Path(output.details.full_output_path).read_bytes() == b"\xff" * 30000


async def test_output_for_ever_ends_at_a_hundred_mebibytes(call: Call) -> None:
    output = await call("bash", command="yes")
    kept = Path(output.details.full_output_path)
    assert output.is_error
    assert output.text.endswith("y\n[stopped, because it printed more than 100 MiB]")
    assert 100 * 1024 * 1024 < kept.stat().st_size == output.details.truncation.total_bytes < 101 * 1024 * 1024
    kept.unlink()


async def test_a_full_disk_does_not_end_the_program(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bash.BashTool, "output_file", lambda self: open("/dev/full", "wb"))  # noqa: SIM115  # the tool closes it
    output = await call("bash", command="seq 100000")
    assert not output.is_error
    assert "the full text could not be kept: No space left on device" in output.text
    assert output.text.endswith("\n100000")


async def test_a_background_child_that_keeps_the_pipe_does_not_hang_the_tool(call: Call) -> None:
    with anyio.fail_after(PATIENCE):
        output = await call("bash", command="sleep 1000 & echo $!")
    assert not output.is_error
    os.kill(int(output.text.partition("\n")[0]), 9)


async def test_a_program_in_the_background_can_go_on_printing(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model learns of the file that gets its further output, as much as fits."""
    monkeypatch.setattr(bash, "OUTPUT_LIMIT", 10)
    go = tmp_path / "go"
    waits = f"while ! test -e {go}; do sleep 0.01; done; seq 3; echo end >&2; seq 100000 && touch {tmp_path}/printed"
    with anyio.fail_after(PATIENCE):
        output = await call("bash", command=f"echo begun; ({waits}) &")
    begun, note = output.text.split("\n")
    assert (begun, output.is_error) == ("begun", False)
    assert note.startswith("[a program goes on in the background; its further output is in ")
    file = Path(note.rpartition(" ")[2].removesuffix("]"))
    go.touch()
    with anyio.fail_after(PATIENCE):
        while not (tmp_path / "printed").exists() or file.read_text() != "1\n2\n3\nend\n":
            await anyio.sleep(0.01)


async def test_a_program_in_the_background_goes_on_without_a_file(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, the note says so; the command itself has succeeded."""

    def full(self: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bash.BashTool, "output_file", full)
    output = await call("bash", command="sleep 1000 & echo $!")
    pid, note = output.text.split("\n")
    os.kill(int(pid), 9)
    assert note == "[a program goes on in the background, and its output is lost: No space left on device]"


async def test_cancelling_kills_the_whole_group(project: Path) -> None:
    tool = builtin_tools(cwd=str(project))[0]
    started = anyio.Event()
    pids: list[int] = []

    def on_update(partial: ToolOutput) -> None:
        if len(lines := partial.text.split()) == 2:
            pids.extend(map(int, lines))
            started.set()

    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await tool.execute("1", {"command": "sleep 1000 & echo $!; echo $$; wait"}, on_update=on_update)

        tasks.start_soon(run)
        with anyio.fail_after(PATIENCE):
            await started.wait()
        tasks.cancel_scope.cancel()
    assert len(pids) == 2
    for pid in pids:
        await gone(pid)


async def test_progress_is_the_current_tail_a_bounded_number_of_times(project: Path) -> None:
    tool = builtin_tools(cwd=str(project))[0]
    updates: list[tuple[float, str]] = []
    command = "for i in $(seq 60); do echo $i; sleep 0.005; done; sleep 0.3"
    start = anyio.current_time()
    output = await tool.execute(
        "1", {"command": command}, on_update=lambda partial: updates.append((anyio.current_time(), partial.text))
    )
    elapsed = anyio.current_time() - start
    texts = [text for _, text in updates]
    assert 2 <= len(texts) <= math.ceil(elapsed / bash.UPDATE_INTERVAL) + 1
    # A finished line keeps its newline, without which redaction would hold it back.
    assert all(f"{output.text}\n".startswith(text) for text in texts)
    assert texts[-1] == f"{output.text}\n", "also what came last is told while the program waits"


async def test_progress_begins_with_a_whole_character(project: Path) -> None:
    tool = builtin_tools(cwd=str(project))[0]
    updates: list[str] = []
    await tool.execute(
        "1",
        {"command": "head -c 300000 /dev/zero | sed 's/\\x0/€/g'; sleep 0.3"},
        on_update=lambda partial: updates.append(partial.text),
    )
    assert set(updates[-1]) == {"€"}
