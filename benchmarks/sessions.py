"""What a long session costs: one more entry, and going on with it the next day."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile

from agent_hooks.host.session import Session, now_iso
from agent_hooks.values.content import AssistantMessage, MessageEntry, ToolCallContent, ToolResultMessage, UserMessage
from benchmarks.harness import Effort, Row, interleave, unrolled
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
print(process_time() - begin)
"""


def talk(session: Session, entries: int) -> None:
    """Fill a session with prompts, calls and results of a common size."""
    for number in range(entries // 3):
        call = ToolCallContent(f"call_{number}", "bash", {"command": "ls -la"})
        session.append(ENTRY)
        session.add_message(AssistantMessage(content=(call,), timestamp=1, provider="p", model="m"))
        session.add_message(
            ToolResultMessage(tool_call_id=call.id, tool_name="bash", content="a file\n" * 30, timestamp=1)
        )


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure an append to a long session against one to a new session, and what opening the long one takes."""
    entries = 3_000 if effort.quick else ENTRIES
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
        took = float(subprocess.check_output([sys.executable, "-c", RESUME, str(long.path), directory]))
    return [
        Row(
            f"an entry more, after {entries:,}",
            rounds.ratio("long", "new"),
            must=1.25,
            goal=1.1,
            note="in a new session",
        ),
        Row(
            f"resume of {len(long):,} entries",
            took,
            "s",
            must=None if effort.quick else 1,
            note="in a new process; of its own time, for others use the machine too",
        ),
    ]
