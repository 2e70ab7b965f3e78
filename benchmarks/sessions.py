"""The cost of a long session: one more entry, and to resume it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from agent_hooks.host.session import Session, now_iso
from agent_hooks.values.content import AssistantMessage, MessageEntry, ToolCallContent, ToolResultMessage, UserMessage
from benchmarks.harness import Effort, Row, attempt, interleave, unrolled
from benchmarks.peer_runs import Peers

ENTRIES = 100_000
ENTRY = MessageEntry(timestamp=now_iso(), message=UserMessage(content="What is in this directory?", timestamp=1))

RESUME = """
import sys
from time import process_time
from agent_hooks.host.exchanges import conversation
from agent_hooks.host.session import Session
from agent_hooks.host.session_file import paused_collector

begin = process_time()
session = Session.open(sys.argv[1], sys.argv[2])
with paused_collector():
    conversation(session.entries)
took = process_time() - begin
print(took, len(session))
"""


def talk(session: Session, entries: int) -> None:
    """Fill a session up to exactly `entries` entries: its header, then prompts, calls and results of a common size."""
    for number in range(entries - len(session)):
        call = ToolCallContent(f"call_{number // 3}", "bash", {"command": "ls -la"})
        match number % 3:
            case 0:
                session.append(ENTRY)
            case 1:
                session.add_message(AssistantMessage(content=(call,), timestamp=1, provider="p", model="m"))
            case _:
                result = ToolResultMessage(tool_call_id=call.id, tool_name="bash", content="a file\n" * 30, timestamp=1)
                session.add_message(result)
    assert len(session) == entries, f"the session has {len(session)} entries, not {entries}"


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure an append to a long session against one to a new session, then the resume of a long session."""
    entries = 3_000 if effort.quick else ENTRIES
    return [
        *attempt(f"an entry more, after {entries:,}", lambda: _append(entries, effort)),
        *attempt(f"resume of {entries:,} entries", lambda: _resume(entries, effort)),
    ]


def _append(entries: int, effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        long, new = Session.create(directory), Session.create(directory)
        talk(long, entries)
        sides = {
            name: unrolled("append(entry)", append=session.append, entry=ENTRY)
            for name, session in (("long", long), ("new", new))
        }
        rounds = asyncio.run(interleave(sides, effort))
        long.close()
        new.close()
    name = f"an entry more, after {entries:,}"
    yield Row(name, rounds.ratio("long", "new"), must=1.25, goal=1.1, note="in a new session")


def _resume(entries: int, effort: Effort) -> Iterator[Row]:
    """Measure the processor time of a new process, so that other programs on the machine do not count."""
    with tempfile.TemporaryDirectory() as directory:
        session = Session.create(directory)
        talk(session, entries)
        session.close()
        took, found = subprocess.check_output([sys.executable, "-c", RESUME, str(session.path), directory]).split()
    assert int(found) == entries, f"{int(found)} entries were read, not {entries}"
    must = None if effort.quick else 1
    yield Row(f"resume of {entries:,} entries", float(took), "s", must=must, note="in a new process; of its own time")
