"""Find out whether a person is at the program of another agent.

Some agents wait for ever when a hook asks a question and no person is there, and tell their hooks nothing about it.  Then
the agent's process tells: a person is there if its input and output are terminals and no argument says otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from agent_hooks.bridges.base import Bridge

_PROC = "/proc"
# The programs of macOS; the paths are fixed, so that no other program of such a name runs.
_LSOF, _PS = "/usr/sbin/lsof", "/bin/ps"
# Seconds for one of them.
_PATIENCE = 5
_TERMINAL = re.compile(r"/dev/(?:pts/[0-9]+|tty[A-Za-z]*[0-9]*|console)")


def is_attended(bridge: Bridge, environment: Mapping[str, str]) -> bool:
    """Return whether a person is at the agent to answer a question; if that cannot be found out, no person is."""
    if not bridge.is_attended(environment):
        return False
    return bridge.headless is None or _is_person_at(environment.get(bridge.process_variable, ""), bridge.headless)


def _is_person_at(pid: str, headless: tuple[str, ...]) -> bool:
    if not pid.isdecimal():
        return False
    try:
        ends, arguments = (_in_proc if os.path.isdir(f"{_PROC}/self") else _by_programs)(pid)
    except OSError:
        # The process has ended, or this system has neither these files nor these programs.
        return False
    is_terminal = len(ends) == 2 and all(map(_TERMINAL.fullmatch, ends))  # input and output
    return is_terminal and not any(each in headless for each in arguments)


def _in_proc(pid: str) -> tuple[list[str], list[str]]:
    """Return the input and the output of a process, and its arguments.  Raises `OSError`."""
    ends = [os.readlink(f"{_PROC}/{pid}/fd/{number}") for number in (0, 1)]
    with open(f"{_PROC}/{pid}/cmdline", "rb") as file:
        return ends, file.read().decode(errors="replace").split("\0")


def _by_programs(pid: str) -> tuple[list[str], list[str]]:
    """Return the same on macOS, which has no `/proc`; words of a prompt count as arguments there.  Raises `OSError`."""
    # Imported here, because most systems have `/proc`.
    import subprocess

    def lines(*command: str) -> list[str]:
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired as exc:
            raise TimeoutError(str(exc)) from None
        return done.stdout.decode(errors="replace").splitlines()

    ends = [line[1:] for line in lines(_LSOF, "-a", "-p", pid, "-d", "0,1", "-F", "fn") if line.startswith("n")]
    arguments = " ".join(lines(_PS, "-ww", "-o", "args=", "-p", pid)).split()
    # Without arguments, `-p` could stand among them.
    return (ends, arguments) if arguments else ([], [])
