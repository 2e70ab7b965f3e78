"""The cost of the records: both lines of a tool call, with one silent gate, with and without records.

Redaction is left out, because its cost depends on the text; a row of its own has it.  The thread's processor time is
measured, which includes the system calls.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_hooks import HookRunner, wrap_tool
from agent_hooks.records import Records
from benchmarks.harness import Effort, Row, Side, attempt, interleave, unrolled
from benchmarks.hooks import BareTool, nothing, runner_of
from benchmarks.peer_runs import Peers

# µs for both lines, redaction apart.
BOTH = 25.0
INPUT = {"command": "x" * (256 - len('{"command":""}'))}
LARGE = {"command": "x" * (1024 + len(INPUT["command"]))}


def call_of(input: dict[str, Any], records: Records | None) -> Side:
    """Return a side that calls a wrapped tool with one silent gate."""
    runner: HookRunner = runner_of(lambda api: api.on("tool_call", nothing))
    if records is not None:
        runner.engine.record(records)
    tool = wrap_tool(BareTool(), runner)
    return unrolled("await call('1', input)", times=4, call=tool.execute, input=input)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure a call without records, with them, with a larger input, and with redaction."""
    return attempt("records", lambda: _rows(effort))


def _rows(effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        plain = Records(home=home, redact=False)
        sides = {
            "without": call_of(INPUT, None),
            "with": call_of(INPUT, plain),
            "large": call_of(LARGE, plain),
            "large without": call_of(LARGE, None),
            "redacted": call_of(INPUT, Records(home=home)),
        }
        rounds = asyncio.run(interleave(sides, effort))
    base, large = rounds.seconds("without"), rounds.seconds("large without")
    both = (rounds.seconds("with") - base) * 1e6
    more = (rounds.seconds("large") - large) * 1e6 - both
    yield Row("both lines of a call, 256 bytes", both, "µs", must=BOTH, note="without redaction")
    yield Row("each further KB of input", more, "µs", note="without redaction")
    yield Row("a call with records", rounds.ratio("with", "without"), note="to one without records")
    redacted = (rounds.seconds("redacted") - base) * 1e6
    yield Row("both lines of a call, redacted", redacted, "µs", note="256 bytes")
