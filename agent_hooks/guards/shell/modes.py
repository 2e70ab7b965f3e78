"""The modes of `chmod`, `mkdir` and `install`."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.words import Word

_WORLD = lazy_pattern(r"([ugoa]*)([-+=])([rwxXst]*)")


def judge_modes(command: Command, modes: list[Word]) -> None:
    """Report modes that let everybody write, or run a program as its owner."""
    for mode in modes:
        if re.fullmatch(r"[0-7]{1,5}", mode):
            bits = int(mode, 8)
            if bits & 0o002:
                command.gains("world-writable")
                command.report("world-writable", "lets everybody write")
            if bits & 0o4000:
                command.gains("setuid")
                command.report("setuid", "lets everybody run it as its owner")
            continue
        for clause in mode.split(","):
            match = _WORLD.fullmatch(clause)
            if match is None or match[2] == "-":
                continue
            classes, rights = match[1], match[3]
            if "w" in rights and ("o" in classes or "a" in classes):
                command.gains("world-writable")
                command.report("world-writable", "lets everybody write")
            if "s" in rights and (not classes or "u" in classes or "a" in classes):
                command.gains("setuid")
                command.report("setuid", "lets everybody run it as its owner")
