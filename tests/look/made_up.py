"""A made-up view of any number of calls, with texts of every kind: the page's tests and benchmarks look at it."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

MINUTE, DAY = 60_000.0, 86_400_000.0
NOW = 1_785_000_000_000.0
_VERDICTS = ("pass", "allow", "ask", "block", "aborted", "unjudged")
_COMMANDS = (
    "git status --short",
    "pytest -q tests/host -k session",
    "rg -n 'class Session' src",
    "sed -n 1,80p src/app/models.py",
    "git diff --stat HEAD~3",
    "npm run build --silent",
    "ls -la dist",
    "python -m http.server 8000",
    "cat src/app/settings.py",
    "make check",
)
_TOOLS = ("bash", "read", "edit", "write", "grep", "mcp__github__search_issues")
_CLIENTS = ("claude-code", "codex", "agent-hooks", "gemini-cli")


class Found:
    """The finding of a refresh."""

    def __init__(self, calls: Sequence[int], total: int, version: int) -> None:
        self.calls, self.total, self.version = calls, total, version


class MadeUpColumns:
    """The arrays of a made-up view."""

    def __init__(self, after: int, arrays: dict[str, array[Any]]) -> None:
        self._after = after
        self._arrays = {name: numbers[after:] for name, numbers in arrays.items()}

    def header(self) -> dict[str, Any]:
        columns, at = [], 0
        for name, numbers in self._arrays.items():
            columns.append({"name": name, "type": numbers.typecode, "offset": at})
            size = len(numbers) * numbers.itemsize
            at += size + -size % 8
        return {"first": self._after, "count": len(self._arrays["time"]), "bytes": at, "columns": columns}

    def to_bytes(self) -> bytes:
        parts = []
        for numbers in self._arrays.values():
            data = numbers.tobytes()
            parts.append(data + b"\0" * (-len(data) % 8))
        return b"".join(parts)


class MadeUpView:
    """`calls` calls of 30 days in sessions of 200 or so; the same for the same numbers."""

    def __init__(self, calls: int = 2000, days: int = 30) -> None:
        self._random = random.Random(7)
        self.days, self.version = days, 1
        self.commands: dict[int, str] = {}
        self.cards: dict[int, dict[str, Any]] = {}
        self.left_out: list[dict[str, str]] = []
        self.tools = list(_TOOLS)
        self.lanes: list[dict[str, Any]] = []
        self.arrays: dict[str, array[Any]] = {
            name: array(code)
            for name, code in zip(
                ("time", "lane", "tool", "verdict", "hookMs", "waitMs", "flags"),
                ("d", "I", "H", "B", "f", "f", "B"),
                strict=True,
            )
        }
        # One number for each kind of fact is drawn for a block, because a million draws of each take seconds.
        self._fill(calls)

    def __len__(self) -> int:
        return len(self.arrays["time"])

    def _fill(self, calls: int) -> None:
        choose = self._random
        sessions = max(1, min(800, calls // 200))
        pattern = choose.choices((0, 1, 2, 3, 4, 5), (9400, 60, 70, 25, 5, 440), k=4096)
        hooks = [round(choose.lognormvariate(1.2, 1.1), 2) for _ in range(4096)]
        waits = [round(choose.lognormvariate(9.5, 1.2)) for _ in range(256)]
        extra = choose.choices((0, 1, 2, 4, 16), (9500, 80, 60, 10, 350), k=4096)
        done = 0
        for session in range(sessions):
            begin = NOW - self.days * DAY + session * self.days * DAY / sessions
            count = (calls - done) // (sessions - session)
            length = min(self.days * DAY / sessions * 1.7, 4 * 60 * MINUTE, NOW - begin)
            self._session(session, begin, length, count, (pattern, hooks, waits, extra))
            done += count

    def _session(self, number: int, begin: float, length: float, count: int, facts: tuple[list[Any], ...]) -> None:
        client = _CLIENTS[(0, 0, 0, 1, 0, 2, 1, 0, 3)[number % 9]]
        agents = ["main"] + [f"sub-{n}" for n in range(number % 4 if client == "claude-code" else 0)]
        first = len(self.lanes)
        for agent in agents:
            project = f"/home/dev/{('app', 'site', 'infra')[number % 3]}"
            label = f"{project.rpartition('/')[2]}{'' if agent == 'main' else f' / {agent}'}"
            lane = {"id": f"{number}:{agent}", "client": client, "session": f"session-{number}", "agent": agent}
            self.lanes.append({**lane, "label": label, "project": project, "first": begin, "last": begin, "calls": 0})
        step = length / max(1, count)
        for at in range(count):
            self.add(begin + at * step, first + (at * 7 // 11) % len(agents), len(self) + number * 13, facts)

    def add(self, time: float, lane: int, draw: int, facts: tuple[list[Any], ...]) -> int:
        verdicts, hooks, waits, extra = facts
        verdict = verdicts[draw * 31 % len(verdicts)]
        asked = verdict in (1, 2)
        row = {
            "time": time,
            "lane": lane,
            "tool": draw % len(self.tools),
            "verdict": verdict,
            "hookMs": 0.0 if verdict == 5 else hooks[draw * 17 % len(hooks)],
            "waitMs": waits[draw % len(waits)] if asked else 0.0,
            "flags": (extra[draw * 13 % len(extra)] if verdict != 5 else 32) | (64 if asked else 0),
        }
        for name, value in row.items():
            self.arrays[name].append(value)
        own = self.lanes[lane]
        own.update(first=min(own["first"], time), last=max(own["last"], time), calls=own["calls"] + 1)
        return len(self) - 1

    def put(
        self, time: float, *, command: str, verdict: str = "pass", flags: int = 0, lane: int = 0, **card: Any
    ) -> int:
        """Add one call with a text and a card of its own."""
        for name, value in {
            "time": time,
            "lane": lane,
            "tool": 0,
            "verdict": _VERDICTS.index(verdict),
            "hookMs": 3.5,
            "waitMs": 0.0,
            "flags": flags,
        }.items():
            self.arrays[name].append(value)
        own = self.lanes[lane]
        own.update(first=min(own["first"], time), last=max(own["last"], time), calls=own["calls"] + 1)
        row = len(self) - 1
        self.commands[row] = command
        self.cards[row] = {"command": command, "verdict": verdict, **card}
        self.version += 1
        return row

    def refresh(self) -> Found:
        return Found([], len(self), self.version)

    def summary(self) -> dict[str, Any]:
        verdicts, facts = self.arrays["verdict"], Counter(self.arrays["flags"].tobytes())
        return {
            "days": self.days,
            "here": "",
            "sessions": len({lane["session"] for lane in self.lanes}),
            "calls": len(self),
            "stopped": verdicts.count(3),
            **{name: sum(number for each, number in facts.items() if each & bit) for name, bit in _BITS.items()},
            "first": min(self.arrays["time"], default=0),
            "last": max(self.arrays["time"], default=0),
            "lanes": self.lanes,
            "tools": self.tools,
            "left_out": self.left_out,
            "version": self.version,
        }

    def columns(self, after: int = 0) -> MadeUpColumns:
        return MadeUpColumns(min(after, len(self)), self.arrays)

    def command(self, rows: Sequence[int]) -> list[str]:
        return [self.commands.get(row) or _COMMANDS[row * 7 % len(_COMMANDS)] for row in rows]

    def search(self, text: str, limit: int) -> list[int]:
        words = text.lower().split()
        found = (row for row in range(len(self) - 1, -1, -1) if all(w in self.command([row])[0].lower() for w in words))
        return [row for row, _ in zip(found, range(limit), strict=False)]

    def row_of(self, id: str) -> int | None:
        row = int(id.removeprefix("call-")) if id.removeprefix("call-").isdigit() else -1
        return row if 0 <= row < len(self) else None

    def hooks(self) -> list[dict[str, Any]]:
        names = (
            "builtin:command-safety-guard",
            ".agent/hooks/no_rm.py",
            "~/.agent/hooks/redact.py",
            "~/.agent/hooks/old.py",
        )
        return [
            {
                "hook": name,
                "judged": 48_000 >> at,
                "stopped": 31 >> at,
                "asked": 1900 >> (at * 3),
                "rewrote": 12 * (at == 2),
                "failed": int(at == 1),
                "timedOut": 0,
                "p50": 0.8 * (at + 1),
                "p99": 12.4 * (at + 1),
                "last": NOW - at * DAY,
                "gone": at == 3,
                "neverRan": False,
            }
            for at, name in enumerate(names)
        ] + [
            {
                "hook": "~/.agent/hooks/never.py",
                "judged": 0,
                "stopped": 0,
                "asked": 0,
                "rewrote": 0,
                "failed": 0,
                "timedOut": 0,
                "p50": None,
                "p99": None,
                "last": None,
                "gone": False,
                "neverRan": True,
            }
        ]

    def card(self, row: int) -> dict[str, Any]:
        if not 0 <= row < len(self):
            raise IndexError(row)
        lane = self.lanes[self.arrays["lane"][row]]
        verdict = _VERDICTS[self.arrays["verdict"][row]]
        card = {
            "id": f"call-{row}",
            "row": row,
            "time": self.arrays["time"][row],
            "client": lane["client"],
            "clientVersion": "2.1.0",
            "session": lane["session"],
            "agent": lane["agent"],
            "lane": self.arrays["lane"][row],
            "cwd": lane["project"],
            "project": lane["project"],
            "tool": self.tools[self.arrays["tool"][row]],
            "nativeTool": "Bash",
            "origin": "",
            "command": self.command([row])[0],
            "verdict": verdict,
            "cause": "hook" if verdict == "block" else "",
            "reason": "deleting needs a person" if verdict == "block" else "",
            "by": [".agent/hooks/no_rm.py"] if verdict in ("block", "ask") else [],
            "rule": "",
            "trust": "trusted",
            "remedy": "edit or remove this handler, and approve that: agent-hooks trust" if verdict == "block" else "",
            "joined": "order" if row % 5 == 0 else "id",
            "sources": [{"file": "/home/dev/.agent/records/s.1.jsonl", "line": 12 + row, "kind": "record"}],
            "input": {"command": self.command([row])[0]},
            "rungs": rungs(verdict),
            "questions": [],
            "result": {"status": "ok", "size": 3120, "ms": 412.5, "error": "", "redacted": {"token": 1}},
            "saw": {"text": " M src/app/models.py\n?? notes.txt\n", "cut": False},
            "turn": {
                "index": 4,
                "checkpoint": "3f9a1c2",
                "files": ["src/app/models.py", "notes.txt"],
                "more": 0,
                "ended": True,
                "mayBeIts": True,
                "bringBack": "agent-hooks undo --turn 3f9a1c2",
            },
            "previous": row - 1 if row else None,
            "next": row + 1 if row + 1 < len(self) else None,
            "newer": None,
            "lost": None,
        }
        if verdict == "allow":
            card["questions"] = [
                {
                    "title": "Push to the server?",
                    "message": "",
                    "by": ".agent/hooks/gate.py",
                    "to": "person",
                    "waitedMs": 12_400,
                    "reply": "yes",
                    "text": "",
                    "who": "person",
                }
            ]
        return {**card, **self.cards.get(row, {})}


_BITS = {"asked": 64, "rewritten": 1, "redacted": 2, "failed": 4}


def rung(kind: str, by: str, answer: str = "silent", **more: Any) -> dict[str, Any]:
    """Return a step of a ladder."""
    blank: dict[str, Any] = {
        "stage": kind,
        "kind": kind,
        "by": by,
        "handler": "",
        "file": "",
        "line": None,
        "gone": False,
        "answer": answer,
        "outcome": "continued",
        "reason": "",
        "rule": "",
        "remedy": "",
        "at": 0.0,
        "ms": 0.4,
        "diff": None,
        "programs": [],
        "effects": None,
        "redacted": {},
    }
    return {**blank, **more}


def rungs(verdict: str) -> list[dict[str, Any]]:
    """Return a ladder with a rung of every kind that a verdict allows."""
    gate = {"file": "/home/dev/app/.agent/hooks/no_rm.py", "line": 12, "handler": "no_rm"}
    steps = [
        rung(
            "transformer",
            "add-default-excludes",
            "changed",
            diff=[
                {"op": "-", "text": '"command": "grep -r x ."'},
                {"op": "+", "text": '"command": "grep -r --exclude-dir=.git x ."'},
            ],
        ),
        rung(
            "guard",
            "builtin:command-safety-guard",
            programs=["git", "rm"],
            ms=1.2,
            effects={
                "reads": [],
                "writes": [],
                "deletes": ["build/"],
                "programs": ["rm"],
                "sends": [],
                "opaque": False,
            },
        ),
        rung(
            "gate",
            ".agent/hooks/no_rm.py",
            "block" if verdict == "block" else "silent",
            **gate,
            reason="deleting needs a person" if verdict == "block" else "",
            outcome="blocked" if verdict == "block" else "continued",
        ),
    ]
    if verdict in ("allow", "ask"):
        steps.append(rung("person", "person", "allow" if verdict == "allow" else "ask", ms=12_400))
    if verdict in ("pass", "allow"):
        steps += [
            rung("tool", "bash", "ok", ms=412.5),
            rung("result", "redaction", "changed", redacted={"token": 1}, diff=[{"op": "-", "text": "TOKEN=[hidden]"}]),
            rung("observer", "~/.agent/hooks/audit.py", gone=True, file="/home/dev/.agent/hooks/audit.py", line=3),
        ]
    return steps
