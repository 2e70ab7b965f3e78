"""The cost of redaction, beside the plain way: ten regular expressions, one after another."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from agent_hooks.redaction import Redactor
from benchmarks.harness import Effort, Row, interleave, unrolled
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
TO_PLAIN = {"log": (2.0, 1.0), "source": (2.0, 1.0)}
# Milliseconds for a megabyte, which are 10 MB/s.
SLOWEST = 100.0


def texts() -> dict[str, str]:
    """Return a megabyte of each kind of output that tools return."""
    source = Path(__file__).read_text()
    pieces = {"log": LOG, "source": source, "a secret in each kilobyte": LOG * 10 + LEAKS}
    return {name: piece * (MEGABYTE // len(piece)) for name, piece in pieces.items()}


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure on a megabyte of each kind; the environment holds ten secrets."""
    redactor = Redactor(environ=ENVIRONMENT)
    patterns = [re.compile(pattern) for pattern in PLAIN]
    rows = []
    for name, text in texts().items():

        def plain(text: str) -> str:
            for pattern in patterns:
                text = pattern.sub("***", text)
            return text

        sides = {
            "redact": unrolled("redact(text)", times=1, redact=redactor.redact, text=text),
            "plain": unrolled("plain(text)", times=1, plain=plain, text=text),
        }
        rounds = asyncio.run(interleave(sides, Effort(max(5, effort.rounds // 4), effort.seconds, effort.quick)))
        must, goal = TO_PLAIN.get(name, (None, None))
        note = "to ten plain patterns"
        rows.append(Row(f"redact, {name}", rounds.ratio("redact", "plain"), must=must, goal=goal, note=note))
        took = rounds.seconds("redact") * 1000 * MEGABYTE / len(text)
        rows.append(Row(f"redact, {name}, 1 MB", took, "ms", must=SLOWEST, note="absolute: 100 ms are 10 MB/s"))
    return rows
