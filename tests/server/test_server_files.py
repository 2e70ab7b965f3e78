"""The files of a server: it removes them at its end, unless they are no longer its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_hooks.server import client
from agent_hooks.server.files import ServerFiles
from agent_hooks.server.stub import config_of
from other_agent import BRIDGE, OtherAgent
from support import PATIENCE

PRINTING = """
def register(api):
    @api.on("tool_call")
    def judge(event, ctx):
        print("judged a call", flush=True)
"""
QUIET = """
def register(api):
    @api.on("tool_call")
    def judge(event, ctx):
        pass
"""


def files_of(agent: OtherAgent) -> set[str]:
    """Return the suffixes of the files of this project's server."""
    directory, name = client.place(config_of(BRIDGE), str(agent.command.project))
    return {path.suffix for path in Path(directory).glob(f"{name}.*")}


def wait_until_gone(process: int) -> None:
    """Wait until a process that is no child of this one has ended."""
    end = time.monotonic() + PATIENCE
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end, "the server did not end"
        time.sleep(0.01)


@pytest.mark.parametrize("hook", ["", QUIET], ids=["without a loop", "in a loop"])
@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_server_that_ends_in_order_removes_its_files(hook: str, how: str, agent: OtherAgent) -> None:
    """Nothing of the project stays in the temporary directory."""
    if hook:
        agent.command.add_hook(hook)
    assert agent() == {}
    server = agent.server()
    assert server is not None
    assert files_of(agent) == {".socket", ".lock", ".log", ".start"}
    if how == "stop":
        agent.command("serve", "--stop")
    else:
        os.kill(server["pid"], signal.SIGTERM)
    wait_until_gone(server["pid"])
    assert files_of(agent) == set()
    assert agent() == {}


def test_a_log_with_text_stays_and_the_lock_by_which_it_is_found(agent: OtherAgent) -> None:
    """A person may want to read the prints of a hook after the server has ended."""
    agent.command.add_hook(PRINTING)
    agent()
    server = agent.server()
    assert server is not None
    agent.command("serve", "--stop")
    wait_until_gone(server["pid"])
    assert files_of(agent) == {".lock", ".log"}
    assert agent.command("serve", "--log").stdout == "judged a call\n"


def test_a_server_that_is_killed_leaves_its_files(agent: OtherAgent) -> None:
    """The next server takes them over."""
    assert agent() == {}
    server = agent.server()
    assert server is not None
    os.kill(server["pid"], signal.SIGKILL)
    wait_until_gone(server["pid"])
    assert files_of(agent) == {".socket", ".lock", ".log", ".start"}
    assert agent() == {}


def test_a_server_removes_no_files_of_its_follower(tmp_path: Path) -> None:
    """A program emptied the temporary directory, and a second server started."""
    path = tmp_path / "s"
    files = ServerFiles(str(path))
    with path.with_suffix(".lock").open("w") as lock:
        assert files.is_locked_by(lock.fileno())
        path.with_suffix(".lock").rename(tmp_path / "tidied")
        assert not files.is_locked_by(lock.fileno())
        for suffix in (".lock", ".log", ".start"):
            path.with_suffix(suffix).touch()
        assert not files.is_locked_by(lock.fileno())
        files.remove(lock.fileno())
    assert {each.name for each in tmp_path.iterdir()} == {"tidied", "s.lock", "s.log", "s.start"}


def test_a_server_whose_log_was_just_removed_begins_a_new_one(tmp_path: Path) -> None:
    """The client opens the log before the server's process starts, when the former server may not have ended yet."""
    log = tmp_path / "s.log"
    program = f"""
import os
from agent_hooks.server.files import reopen_if_removed
print("to the old log", flush=True)
os.unlink({str(log)!r})
reopen_if_removed({str(log)!r})
print("to the new log", flush=True)
reopen_if_removed({str(log)!r})
print("and again", flush=True)
"""
    with log.open("w") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, stderr=file, check=True)
    assert log.read_text() == "to the new log\nand again\n"
