"""Programs that leave the process tree."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans another parent")

# Each program prints its id and has no parent that waits for it.
BEGIN = """
import asyncio, json, os, pty, subprocess, sys, time
from agent_hooks.concurrency import orphans
orphans.INTERVAL = 0
own = orphans.Orphans()
own.adopt()
def start(line):
    program = ["sh", "-c", line]
    done = subprocess.run(program, stdout=subprocess.PIPE, start_new_session=True, text=True, check=True)
    return int(done.stdout)
def read(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
def is_zombie(pid):
    return read(pid)[0] == "Z"
"""
DETACHED = {
    "a background program": "sleep 1000 >&- & echo $!",
    "a double fork": "( ( sleep 1000 >&- & echo $! ) & )",
    "setsid": "setsid -f sh -c 'echo $$; exec sleep 1000 >&-'",
    "an empty environment": "setsid -f env -i /bin/sh -c 'echo $$; exec sleep 1000 >&-'",
}


def outcome(program: str) -> object:
    """Return the JSON that a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("line", DETACHED.values(), ids=DETACHED)
def test_a_detached_program_stays_below_this_process_and_is_collected(line: str) -> None:
    """No zombie is left of it."""
    program = f"""
pid = start({line!r})
until(lambda: int(read(pid)[1]) == os.getpid())
own.collect()
assert not is_zombie(pid)
os.kill(pid, 9)
until(lambda: is_zombie(pid))
own.collect()
own.collect()
print(json.dumps(os.path.exists(f"/proc/{{pid}}")))
"""
    assert outcome(program) is False


@pytest.mark.parametrize("new", [False, True], ids=["in this session", "in a session of its own"])
def test_the_exit_code_of_an_awaited_program_is_not_taken(new: bool) -> None:
    """Its owner may ask long after its end."""
    program = f"""
child = subprocess.Popen(["sh", "-c", "exit 7"], start_new_session={new})
forked = os.fork()
if not forked:
    os._exit(8)
until(lambda: is_zombie(child.pid) and is_zombie(forked))
for _ in range(3):
    own.collect()
print(json.dumps([child.wait(), os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1])]))
"""
    assert outcome(program) == [7, 8]


def test_without_adopting_nothing_is_collected() -> None:
    """A program that embeds hooks keeps all its children to itself."""
    program = """
pid = os.posix_spawn("/bin/true", ["true"], {}, setsid=True)
until(lambda: is_zombie(pid))
other = orphans.Orphans()
other.collect()
other.collect()
print(json.dumps(os.waitpid(pid, 0)[0] == pid))
"""
    assert outcome(program) is True
