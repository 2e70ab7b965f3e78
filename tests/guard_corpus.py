"""The corpora in tests/guards as rows, and the findings of the guards about calls in one fixed place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_hooks.guards import builtin_guards
from agent_hooks.guards.base import Finding, GuardedCall, GuardOptions, Level
from agent_hooks.guards.paths import SecurityAudit
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.pipeline.guarding import ask_guards
from agent_hooks.values.answers import Block

HERE = Path(__file__).parent / "guards"


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a corpus; commands and paths are decoded."""
    head, *lines = (HERE / name).read_text().splitlines()
    found = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    return [{**row, **{key: json.loads(row[key]) for key in ("command", "path") if key in row}} for row in found]


def call(tool: str, **input: Any) -> GuardedCall:
    """Return a call in /home/dev/app, the project of the user dev."""
    return GuardedCall(tool_name=tool, input=input, cwd="/home/dev/app", home="/home/dev", temp=("/tmp",))


def findings(command: str, level: Level = "project") -> list[Finding]:
    """Return the findings of the command guard about a command."""
    return CommandSafetyGuard(GuardOptions(level=level)).find(call("bash", command=command))


def rules(command: str, level: Level = "project") -> set[str]:
    """Return the ids of the rules that a command meets."""
    return {finding.rule for finding in findings(command, level)}


def path_rules(tool: str, path: str, **more: Any) -> set[str]:
    """Return the ids of the rules that a path meets."""
    return {finding.rule for finding in SecurityAudit().find(call(tool, path=path, **more))}


def answer(tool: str, **input: Any) -> str:
    """Return the answer of both guards to a call of any tool: allow, ask or deny."""
    found = ask_guards(builtin_guards(), call(tool, **input), lambda error: None)
    return "deny" if isinstance(found, Block) else "ask" if found else "allow"


CORPORA = sorted(path.name for path in HERE.glob("*.tsv"))
"""The names of all corpora."""
_TOOLS = {"r": "read", "w": "write", "e": "edit"}


def calls_of(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a corpus: the tool and the input of each row, and of each operation on a path."""
    found: list[tuple[str, dict[str, Any]]] = []
    for row in rows(name):
        if "tool" in row:
            found.append((row["tool"], json.loads(row["input"])))
        elif "command" in row:
            found.append(("bash", {"command": row["command"]}))
        else:
            found += [(_TOOLS[op], {"path": row["path"]}) for op in row["ops"]]
    return found
