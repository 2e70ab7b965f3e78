"""Claude Code for the tests of its own: exact replies of the model, its own tools, and its output as JSON.

The cases of the matrix run in every agent; these tests are about what only Claude Code has.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.drivers import ClaudeCode
from clients.seat import MCP_SERVER, Seat
from model_server import Fail, Recorded, Reply

Calls = list[tuple[str, Any]]


def bash(command: str) -> tuple[str, dict[str, str]]:
    """Return a call of Bash."""
    return "Bash", {"command": command, "description": "as the test says"}


def with_server() -> list[str]:
    """Return the arguments that offer the tools of a server."""
    server = {"command": sys.executable, "args": ["-I", str(MCP_SERVER)]}
    return ["--mcp-config", json.dumps({"mcpServers": {"probe": server}})]


@dataclass
class Result:
    """The result of a call, as the model got it."""

    text: str
    is_error: bool


@dataclass
class Played:
    """One headless run: `messages` are its output, `requests` are the requests to the model."""

    messages: list[dict[str, Any]]
    requests: list[Recorded]

    @property
    def answer(self) -> str:
        """The final answer that the person gets."""
        return str(self.messages[-1]["result"])

    @property
    def session_id(self) -> str:
        return str(self.messages[-1]["session_id"])

    @property
    def notices(self) -> list[str]:
        """The messages from hooks and mods before the answer."""
        fields = {"informational": "content", "ui_log": "text"}
        return [each[fields[kind]] for each in self.messages if (kind := each.get("subtype")) in fields]

    @property
    def results(self) -> list[Result]:
        """The result of each call, as the model got it."""
        return [
            Result(_text(block["content"]), bool(block.get("is_error")))
            for block in self._blocks()
            if block["type"] == "tool_result"
        ]

    @property
    def context(self) -> str:
        """All texts that the model got beside results: prompts, and the context from hooks."""
        return "\n".join(block["text"] for block in self._blocks() if block["type"] == "text")

    def _blocks(self) -> list[dict[str, Any]]:
        longest = max(self.requests, key=lambda request: len(request.body["messages"]))
        return _blocks_of(longest)


def _blocks_of(request: Recorded) -> list[dict[str, Any]]:
    """Return the blocks of all messages of a request; a plain text is one too."""
    found: list[dict[str, Any]] = []
    for message in request.body["messages"]:
        content = message["content"]
        found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return found


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


class ClaudeSeat(Seat):
    """Claude Code in a project whose hooks are installed as a person does it."""

    def __init__(self, project: Path, home: Path) -> None:
        super().__init__(ClaudeCode(project, home))
        self.settings = project / ".claude/settings.local.json"

    def hook(self, source: str, name: str = "hook.py") -> None:
        """Put an approved hook file into the project, and install the events that it needs."""
        self.add_hook(name, source)
        self.install()

    def install(self, *options: str) -> str:
        """Approve the project and install our hooks; return the warnings."""
        self.trust()
        return self.client.hooks("install", "claude-code", *options).stderr

    def configure(self, **settings: Any) -> None:
        """Set keys of the project's settings."""
        self.settings.parent.mkdir(exist_ok=True)
        known = json.loads(self.settings.read_text()) if self.settings.exists() else {}
        self.settings.write_text(json.dumps(known | settings))

    def lines(self) -> list[str]:
        """Return the lines that the hooks of a test wrote into the file `log`."""
        path = self.project / "log"
        return path.read_text().splitlines() if path.exists() else []

    def script(self, *replies: Reply) -> tuple[deque[Reply], list[Recorded]]:
        """Give the model exactly these replies.  Return the replies that are left, and the requests as they come."""
        left, requests = deque(replies), list[Recorded]()

        def choose(request: Recorded) -> Reply:
            requests.append(request)
            return left.popleft() if left else Fail(418, "the script has ended")

        self.client.server.choose = choose
        return left, requests

    def play(
        self,
        *replies: Reply,
        prompt: str = "go",
        allow: Sequence[str] = ("Bash", "Read", "Write", "Edit", "Glob", "Grep", "Agent"),
        args: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Played:
        """Give it a prompt, and the model exactly these replies; `allow`: tools that need no permission."""
        left, requests = self.script(*replies)
        line = [*self.client.headless(prompt, asks=True), *args, *(["--allowedTools", *allow] if allow else [])]
        output, _ = self.client.execute(line, environment)
        assert not left, f"the model was not asked for {left}\n{output}"
        assert "Traceback" not in output
        messages = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        assert messages, output
        return Played(messages, requests)


__all__ = ["Calls", "ClaudeSeat", "bash", "with_server"]
