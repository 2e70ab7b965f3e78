"""The cost of redaction, beside the plain way: ten regular expressions, one after another."""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import re
import typing
from pathlib import Path

from agent_hooks.redaction import Redactor
from benchmarks.harness import Effort, Rounds, Row, interleave, unrolled
from benchmarks.peer_runs import Peers

PLAIN = (
    r"sk-[A-Za-z0-9_-]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"AKIA[A-Z0-9]{16}",
    r"xox[abeprs]-[\w-]{10,}",
    r"glpat-[\w-]{20}",
    r"AIza[\w-]{35}",
    r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"://[^/\s:@]+:[^/\s@]+@",
    r"(?i)authorization: *(?:bearer|basic) +\S+",
)
LOG = "2026-01-01 12:00:00 INFO GET https://example.com/x?y=1 200 12 ms id=550e8400-e29b-41d4-a716-446655440000\n"
LEAKS = "sk-" + "abc0123456789abcdefghij and ghp_" + "0123456789abcdefghij" * 2 + " and postgres://a:b@c\n"
ENVIRONMENT = {f"SERVICE_{number}_TOKEN": f"{number:032x}" for number in range(10)}
MEGABYTE = 1_000_000
WIDE = (
    LOG
    + "\u8a2d\u5b9a\u3092\u8aad\u307f\u8fbc\u307f\u307e\u3057\u305f \u2014 "
    + "\u30a8\u30e9\u30fc\u306f\u3042\u308a\u307e\u305b\u3093\n"
)
SHORT = {
    "no name": "ok: 3 files written in src/agent, 12 lines\n" * 2,
    "names of secrets": "def token(self):\n    return self.keys[0]\n" * 2,
}
TO_PLAIN = {"log": (2.0, 1.0), "source": (2.0, 1.0)}
# Milliseconds for a megabyte: the limit is 50 MB/s; for wide characters it is 10 MB/s, and the goal 25.
SLOWEST = {"wide characters": (100.0, 40.0)}
SLOWEST_ASCII = 20.0


def texts() -> dict[str, str]:
    """Return a megabyte of each kind of output that tools return."""
    source = Path(__file__).read_text()
    library = "".join(Path(str(module.__file__)).read_text() for module in (argparse, ast, inspect, typing))
    pieces = {"log": LOG, "source": source, "standard library": library, "wide characters": WIDE}
    pieces["a secret in each kilobyte"] = LOG * 10 + LEAKS
    return {name: piece * (MEGABYTE // len(piece)) for name, piece in pieces.items()}


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure on a megabyte of each kind; the environment holds ten secrets."""
    redactor = Redactor(environ=ENVIRONMENT)
    patterns = [re.compile(pattern) for pattern in PLAIN]

    def plain(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub("***", text)
        return text

    def measure(text: str, times: int) -> Rounds:
        sides = {
            "redact": unrolled("redact(text)", times=times, redact=redactor.redact, text=text),
            "plain": unrolled("plain(text)", times=times, plain=plain, text=text),
        }
        return asyncio.run(interleave(sides, Effort(max(5, effort.rounds // 4), effort.seconds, effort.quick)))

    rows = []
    for name, text in texts().items():
        rounds, note = measure(text, 1), "to ten plain patterns"
        must, goal = TO_PLAIN.get(name, (None, None))
        rows.append(Row(f"redact, {name}", rounds.ratio("redact", "plain"), must=must, goal=goal, note=note))
        took = rounds.seconds("redact") * 1000 * MEGABYTE / len(text)
        must, goal = SLOWEST.get(name, (None if "secret" in name else SLOWEST_ASCII, None))
        rows.append(Row(f"redact, {name}, 1 MB", took, "ms", must=must, goal=goal, note="absolute: 20 ms are 50 MB/s"))
    for name, text in SHORT.items():
        rounds = measure(text, 10)
        note = f"to ten plain patterns; {rounds.seconds('redact') * 1e6:.1f} µs"
        rows.append(Row(f"redact, a short text, {name}", rounds.ratio("redact", "plain"), note=note))
    return rows
