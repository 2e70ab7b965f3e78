"""Well-formed inputs of the fuzzed readers, taken from the project's own examples and tests."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from agent_hooks import HookRunner, ToolOutput, wrap_tool
from agent_hooks.concurrency.stepping import run
from agent_hooks.records import Records
from agent_hooks.records.files import record_files

ROOT = Path(__file__).parent.parent.parent
TESTS = ROOT / "tests"


def lines(*values: object) -> bytes:
    """Return values as lines of JSON."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def settings() -> list[bytes]:
    """Return settings files: the example, and an empty one."""
    return [(ROOT / "settings.example.json").read_bytes(), b"{}"]


def intercept() -> list[bytes]:
    """Return `command_intercept.yaml` files."""
    return [
        (
            b"version: 1\ntools:\n  bash:\n    transformers:\n      - name: default_args\n"
            b"        config: {set: {timeout: 5}}\n"
        ),
        b"tools:\n  find:\n    transformers:\n      - name: exclude_directories\n        config: {patterns: [a, .b]}\n",
        b"enabled: true\ntools: {grep: {enabled: false, auto_allow: true}}\n",
    ]


def requests() -> list[bytes]:
    """Return lines of a client of RPC."""
    return [
        lines({"type": "prompt", "id": "7", "message": "hello"}, {"type": "branch", "entryIndex": 3}),
        lines({"type": "hook_ui_response", "id": "a", "confirmed": True, "value": None}, {"type": "abort", "id": 7}),
        lines({"type": "compact", "customInstructions": "names only"}, {"type": "switch_session", "sessionFile": "/a"}),
    ]


def sessions() -> list[bytes]:
    """Return a session file of the host."""
    stamp = "2026-11-22T10:00:00Z"
    user = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 5}
    return [
        lines(
            {"type": "session", "version": 1, "id": "s1", "timestamp": stamp, "cwd": "/home/dev"},
            {"type": "model_change", "timestamp": stamp, "provider": "puppet", "modelId": "puppet"},
            {"type": "message", "timestamp": stamp, "message": user},
        )
    ]


class _Tool:
    """A tool that does nothing."""

    name = "bash"
    description = "Do nothing."
    input_schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012  # as the protocol of tools has it

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
        """Return a text."""
        return ToolOutput("done")


def records() -> list[bytes]:
    """Return the record file of a session with three calls."""
    with tempfile.TemporaryDirectory() as home:
        runner = HookRunner([], cwd=home, records=Records(home=home))
        tool = wrap_tool(_Tool(), runner)

        async def three_calls() -> None:
            async with runner:
                for number in range(3):
                    await tool.execute(str(number), {"command": f"echo {number}"})

        run(three_calls())
        return [Path(path).read_bytes() for path in record_files(f"{home}/records")]


def transcripts() -> list[bytes]:
    """Return recorded sessions of Claude Code and of the host."""
    return [path.read_bytes()[:6000] for path in sorted((TESTS / "transcripts").rglob("*.jsonl"))] + sessions()


def commands() -> list[bytes]:
    """Return commands, harmful and harmless."""
    rows = (TESTS / "guards" / "commands.tsv").read_text().splitlines()
    column = rows[0].split("\t").index("command")
    return [json.loads(row.split("\t")[column]).encode() for row in rows[1::25]]


def patches() -> list[bytes]:
    """Return patches of git and of diff."""
    return [
        b"diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        b'Index: "a b"\n*** "a\\303\\244"\tdate\n--- x\n',
    ]


def archives() -> list[bytes]:
    """Return a zip file, a tar file, and a packed tar file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("a/b.txt", "text")
    found = [packed.getvalue()]
    for mode in ("w", "w:gz"):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode=mode) as tar:
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "../x"
            tar.addfile(link)
            tar.addfile(tarfile.TarInfo("link/y" * 20))
        found.append(packed.getvalue())
    return found


def hooks() -> list[bytes]:
    """Return the example hooks."""
    return [path.read_bytes() for path in sorted((ROOT / "examples" / "hooks").glob("*.py"))]


def payloads(agent: str) -> list[bytes]:
    """Return payloads that another agent sent."""
    found = json.loads((TESTS / "bridges" / f"{agent.replace('-', '_')}.json").read_text())
    return [json.dumps(payload).encode() for payload in found.values()]


def replies() -> list[bytes]:
    """Return lines of the resident server."""
    return [b"[0, {}]\n", b'[2, {"a": "b"}]\n', b'{"error": "a text"}\n', b'[0, {"hookSpecificOutput": {}}]\n']


def foreign_settings() -> list[bytes]:
    """Return settings files of other agents."""
    return [
        b'{\n  "theme": "dark",\n  "hooks": {"X": [{"matcher": "*", "hooks": []}]}\n}\n',
        b'\xef\xbb\xbf{"hooks": {}, "permissions": {"allow": ["Bash(ls)"]}}',
        b'// mine\n{\n\t"plugin": [ // one\n\t\t"a", /* two */\n\t],\n}\n',
        b"{ plugins: { load: { paths: ['a', 'it\\'s'] }, n: [+0x1F, .5, -Infinity] }, }",
        b"model = \"m\" # one\n\n[hooks.state.\"a:0:0\"]\ntrusted_hash = \"b\"\n\n[[l]]\nx = '''\n[t]\n'''\n",
    ]
