"""The eight clients: how each is pointed at the model's server, run, and answered at a terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from clients.client import KEY, PATIENCE, Client, Run, Screen
from clients.installing import ROOT
from clients.script import Script, Text

# Node keeps the compiled code of a client here, for the clients that keep none by themselves.
_COMPILED = {"NODE_COMPILE_CACHE": str(ROOT / ".bench/compiled")}


class ClaudeCode(Client):
    """Claude Code, with Anthropic's messages."""

    name = "claude-code"
    lacks = frozenset({"patch"})
    folders = (".claude",)
    screen = Screen(idle="shift+tab to cycle", asking="Esc to cancel", no="2")

    def configure(self, url: str) -> None:
        seen = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {
            "hasCompletedOnboarding": True,
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): seen},
        }
        self.write(".claude.json", known)

    def variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.server.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            # All tools are offered at once.
            "ENABLE_TOOL_SEARCH": "false",
            # Root may choose any permission mode too.
            "IS_SANDBOX": "1",
        }

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        mode = [] if asks else ["--permission-mode", "bypassPermissions"]
        return [str(self.program), "-p", prompt, "--output-format", "stream-json", "--verbose", *mode]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        return [str(self.program), *(["--permission-mode", "bypassPermissions"] if automatic else [])]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line, "--continue"]

    def compact(self, run: Callable[..., Run]) -> None:
        run(Text("one"), prompt="hello")
        run(Text("two"), prompt="hello again", resume=True)
        run(Text("three"), prompt="/compact", resume=True)

    def add_mcp(self, command: Sequence[str]) -> None:
        (self.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"probe": _stdio(command)}}))
        settings = self.home / ".claude/settings.json"
        known = json.loads(settings.read_text()) if settings.exists() else {}
        self.write(".claude/settings.json", {**known, "enableAllProjectMcpServers": True})


class Codex(Client):
    """Codex, with OpenAI's responses."""

    name = "codex"
    # The first offers `apply_patch`, the second only a tool that runs JavaScript, which calls the others.
    models = ("gpt-5.5", "gpt-5.6-sol")
    # Its tool `apply_patch` writes files.
    lacks = frozenset({"write"})
    # Its screen has the reason.
    blocked = "UserPromptSubmit Blocked"
    folders = (".codex",)
    screen = Screen(idle="? for shortcuts", asking="Press enter to confirm", yes="y", no="Escape")

    def configure(self, url: str) -> None:
        lines = [
            f"model = {json.dumps(self.model)}",
            'model_provider = "fake"',
            "check_for_update_on_startup = false",
            f"model_auto_compact_token_limit = {self.full}",
            # No news about newer models.
            "[notice.model_migrations]",
            f'"{self.model}" = "gpt-6-sol"',
            "[analytics]",
            "enabled = false",
            "[model_providers.fake]",
            'name = "fake"',
            f'base_url = "{url}/v1"',
            'env_key = "FAKE_API_KEY"',
            'wire_api = "responses"',
            f"[projects.{json.dumps(str(self.project))}]",
            'trust_level = "trusted"',
        ]
        self.write(".codex/config.toml", "\n".join(lines) + "\n")

    def close(self) -> None:
        """End the processes that outlive Codex's screen, and remove their copy of Codex, which is 400 MB."""
        for path in self.home.glob(".codex/app-server-daemon/*.pid"):
            with suppress(OSError, ValueError):
                pid = json.loads(path.read_text())["pid"]
                # The process may have ended, and its number may be that of another process now.
                if os.fsencode(self.home) in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        super().close()
        shutil.rmtree(self.home / ".codex/packages", ignore_errors=True)

    def variables(self) -> dict[str, str]:
        return {"FAKE_API_KEY": KEY}

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        mode = ["--sandbox", "danger-full-access"]
        return [str(self.program), *mode, "exec", "--skip-git-repo-check", prompt]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        mode = ["--dangerously-bypass-approvals-and-sandbox"] if automatic else ["-a", "on-request"]
        return [str(self.program), *mode]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line[:4], "resume", "--last", *line[4:]]

    def add_mcp(self, command: Sequence[str]) -> None:
        file = self.home / ".codex/config.toml"
        program, *args = command
        lines = ["[mcp_servers.probe]", f"command = {json.dumps(program)}", f"args = {json.dumps(args)}"]
        file.write_text(file.read_text() + "\n".join(lines) + "\n")


class GeminiCli(Client):
    """Gemini CLI, with Gemini's own format."""

    name = "gemini-cli"
    lacks = frozenset({"patch"})
    models = ("gemini-2.5-flash",)
    folders = (".gemini",)
    screen = Screen(idle="Type your message", asking="Allow once")

    settings: ClassVar[Mapping[str, object]] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }

    def configure(self, url: str) -> None:
        self.write(".gemini/settings.json", self.settings)

    def variables(self) -> dict[str, str]:
        return {
            "GOOGLE_GEMINI_BASE_URL": self.server.url,
            "GEMINI_API_KEY": KEY,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            # It does not start itself again for more memory.
            "GEMINI_CLI_NO_RELAUNCH": "true",
            **_COMPILED,
        }

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        return [str(self.program), *([] if asks else ["-y"]), "-m", self.model, "-p", prompt]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        return [str(self.program), *(["-y"] if automatic else []), "-m", self.model]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line, "--resume", "latest"]

    def add_mcp(self, command: Sequence[str]) -> None:
        _add_json(self, ".gemini/settings.json", {"mcpServers": {"probe": _stdio(command)}})


class QwenCode(GeminiCli):
    """Qwen Code, with OpenAI's chat completions."""

    name = "qwen-code"
    models = ("fake-model",)
    folders = (".qwen",)
    screen = Screen(idle="Type your message", asking="Waiting for user confirmation")
    # It ends without a word.
    blocked = ""
    settings: ClassVar[Mapping[str, object]] = {
        **GeminiCli.settings,
        "security": {"auth": {"selectedType": "openai"}},
        # It asks its model for them in the midst of the script.
        "ui": {"enableFollowupSuggestions": False},
    }

    def configure(self, url: str) -> None:
        self.write(".qwen/settings.json", self.settings)

    def variables(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{self.server.url}/v1",
            "OPENAI_API_KEY": KEY,
            "OPENAI_MODEL": self.model,
            # It does not start itself again for more memory.
            "QWEN_CODE_NO_RELAUNCH": "true",
            **_COMPILED,
        }

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        return [str(self.program), *([] if asks else ["-y"]), "-p", prompt]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        # In its other modes it asks the person itself, or a model, before any hook.
        return [str(self.program), "-y"]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line, "--continue"]

    def compact(self, run: Callable[..., Run]) -> None:
        # A short conversation is not worth it.
        run(Text("one"), prompt="hello again and " * 2000)
        run(Text("two"), prompt="/compress", resume=True)

    def add_mcp(self, command: Sequence[str]) -> None:
        _add_json(self, ".qwen/settings.json", {"mcpServers": {"probe": _stdio(command)}})


class CopilotCli(Client):
    """GitHub Copilot CLI, with OpenAI's chat completions."""

    name = "copilot-cli"
    models = ("fake-model", "gpt-5.2-codex")
    folders = (".github", ".copilot")
    screen = Screen(idle="/ commands", asking="esc to cancel")

    def configure(self, url: str) -> None:
        self.write(".copilot/config.json", {"trusted_folders": [str(self.project)], "banner": "never"})

    def variables(self) -> dict[str, str]:
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{self.server.url}/v1",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": self.model,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        mode = [] if asks else ["--allow-all-tools"]
        return [str(self.program), "--disable-client-telemetry", "--no-auto-update", *mode, "-p", prompt]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        mode = ["--allow-all-tools"] if automatic else []
        return [str(self.program), "--disable-client-telemetry", "--no-auto-update", *mode]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line, "--continue"]

    def compact(self, run: Callable[..., Run]) -> None:
        run(Text("one"), prompt="hello")
        run(Text("two"), prompt="hello again", resume=True)
        run(Text("three"), prompt="/compact", resume=True)

    def add_mcp(self, command: Sequence[str]) -> None:
        server = {"type": "local", **_stdio(command), "tools": ["*"]}
        self.write(".copilot/mcp-config.json", {"mcpServers": {"probe": server}})


class OpenCode(Client):
    """OpenCode, with OpenAI's chat completions."""

    name = "opencode"
    models = ("fake-model", "gpt-5.2")
    fast = False
    folders = (".opencode",)
    screen = Screen(idle="ctrl+p commands", asking="Permission required")

    def configure(self, url: str) -> None:
        models = {model: {"name": model, "limit": {"context": 100_000, "output": 8_000}} for model in self.models}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "fake",
            "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
            "models": models,
        }
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "model": f"fake/{self.model}",
            "small_model": f"fake/{self.model}",
            "enabled_providers": ["fake"],
            "provider": {"fake": provider},
            "autoupdate": False,
            "share": "disabled",
        }
        self.write(".config/opencode/opencode.json", settings)

    def variables(self) -> dict[str, str]:
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        return {f"OPENCODE_DISABLE_{each}": "1" for each in off}

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        return [str(self.program), "run", *([] if asks else ["--auto"]), prompt]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        return [str(self.program)]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line[:2], "--continue", *line[2:]]

    def add_mcp(self, command: Sequence[str]) -> None:
        server = {"type": "local", "command": list(command), "enabled": True}
        _add_json(self, ".config/opencode/opencode.json", {"mcp": {"probe": server}})


class Pi(Client):
    """pi, with OpenAI's chat completions."""

    name = "pi"
    folders = (".pi",)
    screen = Screen(idle="(auto)", asking="enter select")

    def configure(self, url: str) -> None:
        models = [{"id": model, "contextWindow": 100_000, "maxTokens": 8_000} for model in self.models]
        provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": models}
        self.write(".pi/agent/models.json", {"providers": {"fake": provider}})

    def variables(self) -> dict[str, str]:
        return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0", **_COMPILED}

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        return [*self.interactive(), "-p", prompt]

    def interactive(self, *, automatic: bool = False) -> list[str]:
        return [str(self.program), "--provider", "fake", "--model", self.model]

    def resume(self, line: Sequence[str]) -> list[str]:
        return [*line, "--continue"]

    def compact(self, run: Callable[..., Run]) -> None:
        # The last 20,000 tokens are kept, so there has to be more.
        run(Text("one"), prompt="hello again and " * 7500)
        run(Text("two"), prompt="hello again and " * 7500, resume=True, tokens=self.full)
        run(Text("three"), prompt="hello once more", resume=True)

    def add_mcp(self, command: Sequence[str]) -> None:
        # A server's tool is offered alone. Without this, only a script of pi's code mode can call it.
        server = {**_stdio(command), "exposure": "direct"}
        self.write(".pi/agent/mcp.json", {"mcpServers": {"probe": server}})


class OpenClaw(Client):
    """OpenClaw, with OpenAI's chat completions."""

    name = "openclaw"
    fast = False
    folders = (".openclaw",)
    # The gateway in which sub-agents work.
    gateway: subprocess.Popen[bytes] | None = None
    # Its question stands at the no, and Escape leaves it open.
    screen = Screen(idle="| idle", asking="Plugin: agent-hooks-openclaw", yes="Up Enter", no="Enter")

    def configure(self, url: str) -> None:
        models = [
            {"id": model, "name": model, "contextWindow": 100_000, "maxTokens": 8_000, "input": ["text"]}
            for model in self.models
        ]
        provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": models}
        settings = {
            "models": {"mode": "replace", "providers": {"fake": provider}},
            "agents": {
                "defaults": {"model": {"primary": f"fake/{self.model}"}, "workspace": str(self.project)},
            },
        }
        self.write(".openclaw/openclaw.json", settings)

    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        place = [] if self.gateway else ["--local"]
        return [str(self.program), "agent", *place, "--session-id", "s1", "-m", prompt]

    @contextmanager
    def with_helpers(self) -> Iterator[None]:
        """Run a gateway, because only one starts sub-agents, and wait until all steps of the sub-agents are taken."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        gateway = {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": KEY}}
        # The tool that starts a sub-agent is offered at once.
        _add_json(self, ".openclaw/openclaw.json", {"gateway": gateway, "tools": {"toolSearch": False}})
        log = self.home / "gateway.log"
        with log.open("w") as output:
            self.gateway = subprocess.Popen(
                [str(self.program), "gateway", "run"],
                cwd=self.project,
                env={**self.environment(), "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._until(lambda: re.search(r"\[gateway\] ready", log.read_text()) is not None, log)
            yield
            steps = self.server.choose
            assert isinstance(steps, Script)
            self._until(lambda: bool(steps.missing) or not any(steps.helpers.values()), log)
        finally:
            os.killpg(self.gateway.pid, signal.SIGKILL)
            self.gateway.wait()

    def _until(self, holds: Callable[[], bool], log: Path) -> None:
        """Wait until something holds, while the gateway runs."""
        assert self.gateway
        end = time.monotonic() + PATIENCE
        while not holds():
            assert self.gateway.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.1)

    def interactive(self, *, automatic: bool = False) -> list[str]:
        # It runs all tools without a question of its own in any case.
        return [str(self.program), "chat"]

    def resume(self, line: Sequence[str]) -> list[str]:
        return list(line)

    def add_mcp(self, command: Sequence[str]) -> None:
        _add_json(self, ".openclaw/openclaw.json", {"mcp": {"servers": {"probe": _stdio(command)}}})


DRIVERS: Mapping[str, type[Client]] = {
    each.name: each for each in (ClaudeCode, Codex, GeminiCli, QwenCode, CopilotCli, OpenCode, Pi, OpenClaw)
}


def _stdio(command: Sequence[str]) -> dict[str, object]:
    program, *args = command
    return {"command": program, "args": args}


def _add_json(client: Client, path: str, added: Mapping[str, object]) -> None:
    known = json.loads((client.home / path).read_text())
    client.write(path, {**known, **added})
