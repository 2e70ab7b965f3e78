"""The index behind `agent-hooks look`: built, updated and searched, and a transcript beside two programs that show those.

The time is the processor's, of this process or of the program, so that a busy machine disturbs it little.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import process_time, time

from agent_hooks.look.view import View
from benchmarks.harness import Effort, Row, attempt
from benchmarks.imports import spent
from benchmarks.peer_runs import HOME, Peers
from benchmarks.replay import write as write_transcript

RECORDS, SESSIONS, CALLS = 1_000_000, 10_000, 10_000
BUILT, UPDATED, FOUND = 30.0, 50.0, 100.0
SEARCHES = ("module_2999", "git docker", "rm", "--x=4321", "nowhere at all")
_WORDS = (
    "git",
    "status",
    "ls",
    "src",
    "rm",
    "build",
    "python",
    "tests",
    "make",
    "cat",
    "grep",
    "docker",
    "npm",
    "echo",
)
_DAYS = 29 * 86_400.0
# The calls of a turn.
_TURN = 10
_HASH = "a" * 64
_PEERS = {
    "claude-replay": ("claude-replay/node_modules/.bin/claude-replay", "{file}", "-o", "{out}"),
    "claude-code-log": ("claude-code-log/bin/claude-code-log", "convert", "{file}", "-o", "{out}"),
}


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure the index of a million records, and a transcript of 10,000 calls."""
    return [
        *attempt("look: index", lambda: _index(effort)),
        *attempt("look: a transcript", lambda: _transcript(effort)),
    ]


def _index(effort: Effort) -> Iterator[Row]:
    records, sessions = (20_000, 200) if effort.quick else (RECORDS, SESSIONS)
    with tempfile.TemporaryDirectory() as home:
        last = _write_records(Path(home, "records"), records, sessions)
        view = View(home, user="")
        begin = process_time()
        view.refresh()
        name = f"look: index of {records:,} records in {sessions:,} sessions"
        yield Row(f"{name} built", process_time() - begin, "s", must=None if effort.quick else BUILT)
        with last.open("a") as file:
            file.write("".join(_lines("last", 10, time())))
        begin = process_time()
        changes = view.refresh()
        assert len(changes.calls) == 10, changes
        yield Row(f"{name}, 10 more", (process_time() - begin) * 1000, "ms", must=None if effort.quick else UPDATED)
        slowest = max(_search(view, text) for text in SEARCHES)
        yield Row(
            "look: search over all commands",
            slowest,
            "ms",
            must=None if effort.quick else FOUND,
            note=f"the slowest of {len(SEARCHES)}",
        )


def _search(view: View, text: str) -> float:
    begin = process_time()
    view.search(text, 200)
    return (process_time() - begin) * 1000


def _transcript(effort: Effort) -> Iterator[Row]:
    calls = 500 if effort.quick else CALLS
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "user/.claude/projects/-home-dev-app/session.jsonl")
        file.parent.mkdir(parents=True)
        write_transcript(file, calls)
        view = View(Path(directory, "home"), user=Path(directory, "user"))
        begin = process_time()
        assert view.refresh().total == calls
        took = process_time() - begin
        others, missing = _others(file, Path(directory, "out.html"))
    note = "the others: the same transcript as one page" + (f"; {', '.join(missing)}" if missing else "")
    yield Row(f"look: a transcript of {calls:,} calls indexed", took, "s", peers=others, note=note)


def _others(file: Path, out: Path) -> tuple[dict[str, float], list[str]]:
    """Return the seconds that the other programs take for a transcript, and those that cannot be measured."""
    others, missing = {}, []
    for name, (program, *words) in _PEERS.items():
        line = [str(HOME / program), *(word.format(file=file, out=out) for word in words)]
        before = spent()
        try:
            subprocess.run(line, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as exc:
            reason = "is not installed; python -m checks.peers" if isinstance(exc, FileNotFoundError) else str(exc)[:80]
            missing.append(f"{name} {reason}")
            continue
        others[name] = spent() - before
    return others, missing


def _write_records(directory: Path, records: int, sessions: int) -> Path:
    """Write record files of a month; return the last."""
    directory.mkdir(parents=True)
    begin = time() - _DAYS
    path = directory
    for session in range(sessions):
        name = f"session-{session}"
        start = begin + session * _DAYS / sessions
        path = directory / f"{name}.{1000 + session}.{int(start * 1000)}.jsonl"
        path.write_text("".join(_lines(name, records // sessions, start)))
        if session < sessions - 1:
            # The process of the last one still writes to it.
            os.utime(path, (start, start))
    return path


def _lines(session: str, calls: int, start: float) -> Iterator[str]:
    """Yield both lines of each call, as the writer of records writes them, and the files of each turn."""
    chance = random.Random(session)  # the same each time, and no secret
    turn = ""
    head = {"session": session, "agent": "main", "client": "agent-hooks", "version": "0.1.0", "mode": "print"}
    head |= {"cwd": "/home/dev/app", "project": "/home/dev/app", "pid": 1, "trust": "none", "settings": _HASH}
    step = {"file": "/home/dev/gate.py", "sha256": _HASH, "line": 5, "at": 0.2, "ms": 0.103}
    steps = [
        {"stage": "before_tool_call", "by": "gate.py", "handler": "quiet", **step},
        {"stage": "guards", "by": "builtin:command-safety-guard", "programs": ["echo"], "at": 0.4, "ms": 0.508},
        {"stage": "tool_call", "by": "gate.py", "handler": "gate", **step},
    ]
    tail = json.dumps(head, separators=(",", ":"))[1:]
    kept = json.dumps(steps, separators=(",", ":"))
    for number in range(calls):
        words = " ".join(chance.choices(_WORDS, k=5))
        command = f"{words} src/module_{chance.randrange(3000)}.py --x={chance.randrange(10**6)}"
        when = datetime.fromtimestamp(start + number, UTC).isoformat().replace("+00:00", "Z")
        common = f'"v":1,"prev":"{_HASH}","n":{2 * number + 1},"time":"{when}","clock":{number}'
        if number % _TURN == 0:
            turn = f"{chance.getrandbits(64):016x}"
        common += f',"id":"{chance.getrandbits(72):018x}","tool":"bash","turn":0,"turnId":"{turn}"'
        common += f',"clientCall":"call_{number}"'
        yield (
            f'{{"kind":"decision",{common},"verdict":"pass","input":{{"command":"{command}"}},"inputSize":60,'
            f'"digest":"{chance.getrandbits(256):064x}","steps":{kept},"ms":1.8,{tail}\n'
        )
        yield f'{{"kind":"result",{common},"status":"ok","size":11,"ms":27.3,{tail}\n'
        if number % _TURN == _TURN - 1:
            saved = '"event":"saved","tree":"/home/dev/app","checkpoint":"7","files":["src/a.py"]'
            common = f'"v":1,"prev":"{_HASH}","n":1,"time":"{when}","clock":1,"id":"t{turn}","turnId":"{turn}"'
            yield f'{{"kind":"turn",{common},{saved},{tail}\n'
