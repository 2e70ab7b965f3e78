"""`agent-hooks look` as a person runs it: the page in a browser, the path without one, and the saved file."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from running import Command
from support import PATIENCE


@pytest.fixture
def recorded_call(command: Command) -> Command:
    command("run", "@bash rm -rf build", code=None)
    return command


def test_the_saved_file_is_for_its_owner_and_the_command_says_what_it_holds(recorded_call: Command) -> None:
    """0600, the numbers, and a word of warning."""
    done = recorded_call("look", "--save", "session.html")
    file = recorded_call.project / "session.html"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "commands of 1 call" in done.stdout.replace("command of", "commands of")
    assert "readable by you only" in done.stdout
    assert b"rm -rf build" not in file.read_bytes().partition(b'"columns"')[2]


class Looking(NamedTuple):
    """A `look` that serves: its process, the redirect file, and the host and start token in that file."""

    process: subprocess.Popen[str]
    file: Path
    host: str
    token: str


@contextmanager
def looking(command: Command) -> Iterator[Looking]:
    """Start `look` without a browser; the block ends it."""
    with subprocess.Popen(
        command.line("look", "--no-browser"),
        cwd=command.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        file = Path(process.stdout.readline().rpartition(": ")[2].strip())
        start = re.search(r"http://(127\.0\.0\.1:\d+)/#start=([\w-]+)", file.read_text())
        assert start is not None
        yield Looking(process, file, start[1], start[2])


def test_it_serves_until_ctrl_c_and_leaves_no_file(recorded_call: Command) -> None:
    """The token is in the file and in no argument; Ctrl-C ends it with 0."""
    with looking(recorded_call) as look:
        assert isinstance(look.process.args, list)
        assert look.token not in " ".join(map(str, look.process.args))
        look.process.send_signal(signal.SIGINT)
        _, err = look.process.communicate(timeout=PATIENCE)
    assert (look.process.returncode, look.file.exists()) == (0, False)
    assert f"the page is at http://{look.host}; Ctrl-C ends it" in err
    assert look.token not in err


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_word_while_a_page_listens(recorded_call: Command, signal_: signal.Signals) -> None:
    """One connection has the stream of news, another one is kept for later requests, as a browser does."""
    with looking(recorded_call) as look:
        stream, kept = (http.client.HTTPConnection(look.host, timeout=PATIENCE) for _ in range(2))
        headers = {"Sec-Fetch-Site": "same-origin"}
        kept.request("POST", "/start", look.token, headers)
        headers["Authorization"] = f"Bearer {json.loads(kept.getresponse().read())['bearer']}"
        stream.request("GET", "/api/live", headers=headers)
        news = stream.getresponse()
        assert news.readline() == b": here\n"
        look.process.send_signal(signal_)
        _, err = look.process.communicate(timeout=PATIENCE)
        stream.close()
        kept.close()
    assert (look.process.returncode, err.splitlines()[1:]) == (0, [])


def test_the_browser_gets_the_path_of_the_file_alone(recorded_call: Command, tmp_path: Path) -> None:
    """A program in the place of the browser sees its arguments: a file, without a token."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.part; mv {seen}.part {seen}; kill -INT $PPID\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": str(browser), "DISPLAY": ":9"}
    line = [sys.executable, "-m", "agent_hooks", "look"]
    done = subprocess.run(
        line, cwd=recorded_call.project, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"file://\S+/\.agent/look/start-[0-9a-f]{16}\.html\n", seen.read_text())


def test_it_refuses_below_an_agent(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of other sessions are none of the agent's business, as a page and as a file."""
    monkeypatch.setenv("CLAUDECODE", "1")
    for args in (("look",), ("look", "--save", "x.html")):
        assert "look" in command(*args, code=1).stderr
    assert not (command.project / "x.html").exists()


def test_without_the_extra_it_names_the_command_that_installs_it(command: Command) -> None:
    """The page needs the server's libraries; the saved file needs none."""
    command.first = "import sys; sys.modules['hypercorn.config'] = None"
    assert "pip install 'agent-hooks-runtime[http]'" in command("look", "--no-browser", code=1).stderr
    command("look", "--save", "session.html")


def test_a_file_is_saved_in_a_directory_that_is_there(command: Command) -> None:
    """A path with a typo makes no directories."""
    error = command("look", "--save", "typo/session.html", code=1).stderr
    assert error.startswith("agent-hooks: --save typo/session.html: there is no directory ")
    assert not (command.project / "typo").exists()
