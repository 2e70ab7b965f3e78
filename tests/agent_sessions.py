"""Transcripts of the clients, cut down from those that the real clients wrote, in their standard places below a home.

In each, the agent ran `echo hello from the shell` and `cat missing-file; exit 3`, and most wrote `made.txt`.  Those in
`denied` have a call that a hook of ours, the person or a rule of the client's own settings denied.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

PINNED = Path(__file__).parent / "pinned_transcripts"
CLAUDE = Path(__file__).parent / "transcripts" / "-home-dev-app"
PLACES = {
    "codex": ".codex/sessions/2026/11/25/rollout-1.jsonl",
    "gemini-cli": ".gemini/tmp/app/chats/session-1.jsonl",
    "qwen-code": ".qwen/projects/-home-dev-app/chats/1.jsonl",
    "copilot-cli": ".copilot/session-state/1/events.jsonl",
    "pi": ".pi/agent/sessions/--home-dev-app--/1.jsonl",
}
DATABASE = ".local/share/opencode/opencode.db"
_SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""


def put(home: Path, client: str) -> Path:
    """Put a client's transcript into its place below a home, and return the file."""
    if client == "opencode":
        return put_database(home / DATABASE, [bash("echo hello from the shell"), bash("cat missing-file; exit 3", 3)])
    path = home / PLACES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(PINNED / f"{client.replace('-', '_')}.jsonl", path)
    return path


def put_denied(home: Path, client: str, by: str) -> Path:
    """Put the transcript of a session with a denied call into its place; `by`: `hook`, `person` or `rule`."""
    pinned = PINNED / "denied" / f"{client.replace('-', '_')}_by_{by}.jsonl"
    if client == "opencode":
        return put_database(home / DATABASE, [json.loads(line) for line in pinned.read_text().splitlines()])
    path = home / PLACES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(pinned, path)
    return path


def bash(command: str, code: int = 0, output: str = "") -> dict[str, Any]:
    """Return a part of OpenCode: a command that has ended."""
    state = {"status": "completed", "input": {"command": command}, "output": output, "metadata": {"exit": code}}
    return {"type": "tool", "tool": "bash", "callID": f"call_{len(command)}", "state": state}


def put_database(path: Path, parts: list[dict[str, Any]], time: int = 1_795_649_210_000) -> Path:
    """Write a database of OpenCode with one session and these parts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO session VALUES ('ses_1', NULL, '/home/dev/app', 'a title')")
        for number, part in enumerate(parts):
            row = (f"prt_{number}", "msg_1", "ses_1", time + number, time + number, json.dumps(part))
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    return path
