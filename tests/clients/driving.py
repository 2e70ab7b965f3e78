"""The real Claude Code, headless, with a model whose replies a test sets; `make clients` installs it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_server import KEY, ModelServer, Recorded, Reply
from running import Command
from tmux import Tmux

INSTALLED = Path(__file__).parents[2] / ".bench/clients/claude-code"
PROGRAM = INSTALLED / "node_modules/.bin/claude"
PATIENCE = 90.0  # seconds
# The ends of its screen.
IDLE, ASKING = "shift+tab to cycle", "Esc to cancel"

# With these variables it connects to the model's server only.
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    # All tools are offered at once.
    "ENABLE_TOOL_SEARCH": "false",
    # Root may choose any permission mode too.
    "IS_SANDBOX": "1",
}
# Variables in the environment of the tests, which it must not get.
_FOREIGN = ("CLAUDE", "ANTHROPIC_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass
class Result:
    """The result of a call, as the model got it."""

    text: str
    is_error: bool


@dataclass
class Run:
    """One headless run: `messages` are its output, `requests` are the requests to the model."""

    messages: list[dict[str, Any]]
    requests: list[Recorded]
    stderr: str

    @property
    def answer(self) -> str:
        """The final answer that the person gets."""
        return str(self.messages[-1]["result"])

    @property
    def session_id(self) -> str:
        return str(self.messages[-1]["session_id"])

    @property
    def notices(self) -> list[str]:
        """The messages that the person got before the answer."""
        return [each["content"] for each in self.messages if each.get("subtype") == "informational"]

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
        return blocks_of(longest)


def blocks_of(request: Recorded) -> list[dict[str, Any]]:
    """Return the blocks of all messages of a request; a plain text is one too."""
    found: list[dict[str, Any]] = []
    for message in request.body["messages"]:
        content = message["content"]
        found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return found


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def answer(tmux: Tmux, key: str) -> str:
    """Press a key until the question on the screen is gone, and return the question; so soon after typing none counts."""
    question = tmux.sees(ASKING)
    pressed = 0.0

    def gone(screen: str) -> bool:
        nonlocal pressed
        if ASKING in screen and time.monotonic() > pressed + 0.5:
            tmux.press(key)
            pressed = time.monotonic()
        return ASKING not in screen

    tmux.until(gone, "the end of the question")
    return question


class ClaudeCode:
    """Claude Code in an empty project, with a home of its own; our hooks are installed as a person does it."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.config = home / ".claude"
        self.config.mkdir()
        self.command = Command(project)
        self.settings = project / ".claude/settings.local.json"

    def add_hook(self, source: str, name: str = "hook.py") -> None:
        """Put a hook file into the project, and install the events that it needs."""
        self.command.add_hook(source, name)
        self.install()

    def install(self) -> None:
        """Install our hooks into the project."""
        self.command("install", "claude-code")

    def open(self, tmux: Tmux, server: ModelServer, *args: str) -> None:
        """Start it on a terminal, as in a directory that the person trusts."""
        seen = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {
            "hasCompletedOnboarding": True,
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): seen},
        }
        (self.config / ".claude.json").write_text(json.dumps(known))
        given = {name: value for name, value in self.environment(server).items() if os.environ.get(name) != value}
        lines = [f"export {name}={shlex.quote(value)}" for name, value in given.items()]
        start = self.config / "start.sh"
        start.write_text("\n".join([*lines, shlex.join(["exec", str(PROGRAM), *args])]))
        tmux.enter(f"clear; bash {shlex.quote(str(start))}")
        tmux.sees("Claude Code v")
        tmux.sees(IDLE)

    def servers(self) -> list[int]:
        """Return the processes that answer the events of this project."""
        said = self.command("serve", "--status", "--json").stdout.splitlines()
        return [each["pid"] for line in said if (each := json.loads(line))["project"] == str(self.project)]

    def close(self) -> None:
        """End the server that the hooks left running."""
        self.command("serve", "--stop")

    def configure(self, **settings: Any) -> None:
        """Set keys of the project's settings."""
        self.settings.parent.mkdir(exist_ok=True)
        known = json.loads(self.settings.read_text()) if self.settings.exists() else {}
        self.settings.write_text(json.dumps(known | settings))

    def environment(self, server: ModelServer) -> dict[str, str]:
        """Return the environment it runs in."""
        own = {name: value for name, value in os.environ.items() if not name.upper().startswith(_FOREIGN)}
        own |= server.environment("anthropic")
        return {**own, **_QUIET, "CLAUDE_CONFIG_DIR": str(self.config)}

    def run(
        self,
        *replies: Reply,
        prompt: str = "go",
        allow: Sequence[str] = ("Bash", "Read", "Write", "Edit", "Glob", "Grep", "Agent"),
        args: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        """Give it a prompt, and the model these replies; `allow`: tools that need no permission."""
        with ModelServer() as server:
            server.play(*replies)
            done = subprocess.run(
                [
                    *(PROGRAM, "-p", prompt, "--output-format", "stream-json", "--verbose"),
                    *(args),
                    *(["--allowedTools", *allow] if allow else []),
                ],
                cwd=self.project,
                env={**self.environment(server), **(environment or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert not server.replies, f"the model was not asked for {server.replies}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            messages = [json.loads(line) for line in done.stdout.splitlines()]
            assert messages, done.stderr
            assert messages[-1]["type"] == "result", done.stderr
            return Run(messages, server.requests, done.stderr)
