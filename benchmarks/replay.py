"""The cost of a replay of recorded sessions: to read them, and the guards."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from time import thread_time

from agent_hooks.guards import builtin_guards
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.runner.runner import HookRunner
from agent_hooks.transcripts import Transcript
from agent_hooks.transcripts.base import Reader, RecordedCall
from agent_hooks.transcripts.replaying import Gates, Replay, ReplayUI
from benchmarks.guards import commands
from benchmarks.harness import Effort, Row, Side, interleave
from benchmarks.imports import spent
from benchmarks.peer_runs import Peers

CALLS = 100_000
SECONDS = 60.0
HOME = "/home/dev/app"
# Calls that one side works on in a round.
PART = 500


def lines(calls: int) -> Iterator[str]:
    """Yield a transcript: three commands of the held-out corpus for each two calls of file tools, and results."""
    texts = cycle([command for command, _ in commands("held_out.tsv")])
    for number, kind in enumerate(islice(cycle("bbreb"), calls)):
        file = f"{HOME}/src/module_{number % 300}.py"
        name, arguments = {
            "b": ("Bash", {"command": next(texts)}),
            "r": ("Read", {"file_path": file}),
            "e": ("Edit", {"file_path": file, "old_string": "old\n" * 40, "new_string": "new\n" * 50}),
        }[kind]
        common = {"sessionId": "s", "cwd": HOME, "version": "2.1.329", "timestamp": "2026-01-01T00:00:00.000Z"}
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "a line\n" * 100, "is_error": False}
        yield json.dumps({**common, "type": "assistant", "message": {"role": "assistant", "content": [use]}})
        yield json.dumps({**common, "type": "user", "message": {"role": "user", "content": [result]}})


def write(path: Path, calls: int) -> None:
    """Write a transcript."""
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines(calls))


def replayed(path: Path) -> Side:
    """Return the side that replays the file with the built-in guards."""

    async def open_gates(reader: Reader) -> Gates:
        return Gates(HookRunner([], cwd=HOME, ui=ReplayUI(), mode="replay", guards=builtin_guards()))

    async def side(loops: int) -> float:
        begin = thread_time()
        for _ in range(loops):
            await Replay(open_gates, lambda answered: None, print).run([Transcript(str(path))])
        return (thread_time() - begin) / loops

    return side


def judged(path: Path) -> Side:
    """Return the floor: the guards alone, on the same calls."""
    guards = builtin_guards()
    with Transcript(str(path)) as transcript:
        calls = [found for _, found in transcript if isinstance(found, RecordedCall)]

    async def side(loops: int) -> float:
        begin = thread_time()
        for _ in range(loops):
            for call in calls:
                ask_guards(guards, guarded_call(call.tool_name, call.input, HOME), print)
        return (thread_time() - begin) / loops

    return side


def read(path: Path) -> Side:
    """Return the side that reads the calls."""

    async def side(loops: int) -> float:
        begin = thread_time()
        for _ in range(loops):
            with Transcript(str(path)) as transcript:
                for _ in transcript:
                    pass
        return (thread_time() - begin) / loops

    return side


def parsed(path: Path) -> Side:
    """Return the floor of reading: each line through the standard library's `json`."""

    async def side(loops: int) -> float:
        begin = thread_time()
        for _ in range(loops):
            with path.open("rb") as file:
                for line in file:
                    json.loads(line)
        return (thread_time() - begin) / loops

    return side


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure a replay against its guards and reading against parsing, then the command with a long transcript."""
    with tempfile.TemporaryDirectory() as directory:
        part, whole = Path(directory, "part.jsonl"), Path(directory, "whole.jsonl")
        write(part, 200 if effort.quick else PART)
        sides = {"replay": replayed(part), "guards": judged(part), "read": read(part), "json": parsed(part)}
        rounds = asyncio.run(interleave(sides, effort))
        calls = 2_000 if effort.quick else CALLS
        write(whole, calls)
        before = spent()
        subprocess.run(
            [sys.executable, "-m", "agent_hooks", "replay", "--json", "--cwd", directory, str(whole)],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        took = spent() - before
    return [
        Row("a call replayed", rounds.ratio("replay", "guards"), note="the built-in guards alone, on the same call"),
        Row("reading a transcript", rounds.ratio("read", "json"), note="`json.loads` of its lines"),
        Row(
            f"replay of {calls:,} calls",
            took,
            "s",
            must=None if effort.quick else SECONDS,
            note="through the built-in guards, in a new process; of its own time",
        ),
    ]
