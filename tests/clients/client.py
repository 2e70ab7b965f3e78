"""The base of the drivers: a real client in an empty project, with a home and an environment built from nothing.

A driver adds the facts of one client: how it is told where the model is, its command lines, and the words on its screen.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import forking
from clients.conversation import Conversation
from clients.installing import PACKAGES, PINNED, node_directory
from clients.script import Script, Text
from model_server import KEY, ModelServer
from tmux import Tmux

# Seconds for one run; several clients share the machine.
PATIENCE = 180.0
# Variables that say nothing about a client.
_PLAIN = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "SHELL": "/bin/bash",
    "TERM": "xterm-256color",
    "USER": "root",
    "LOGNAME": "root",
    "NO_PROXY": "127.0.0.1,localhost",
    "npm_config_update_notifier": "false",
}


@dataclass
class Run:
    """One run: `output` is all that the client printed, `script` knows what the model was shown."""

    output: str
    code: int
    script: Script
    seconds: float

    @property
    def asked(self) -> bool:
        """Whether the model was asked at all."""
        return bool(self.script.seen)

    @property
    def conversation(self) -> Conversation:
        """The longest conversation of the main agent."""
        assert self.script.seen, f"the model was never asked; the client printed\n{self.output}"
        return max(self.script.seen, key=lambda each: len(each.items))

    @property
    def results(self) -> list[str]:
        """The result of each call, as the model got it."""
        return self.conversation.results

    @property
    def context(self) -> str:
        """All texts that the model got, results too, in all requests."""
        return "\n".join(each.texts("system", "user", "result") for each in self.script.seen)


@dataclass
class Screen:
    """The words on a client's screen at a terminal, and its keys.

    `idle`: it waits for a prompt; `asking`: it waits for the answer to a question of permission.
    """

    idle: str
    asking: str
    yes: str = "Enter"
    no: str = "Escape"
    ready: tuple[tuple[str, str], ...] = field(default_factory=tuple)


class Client(ABC):
    """A real client.  `models`: the names of models that change which tools it offers; the first is the usual one.

    `fast`: all cells run in CI.  `screen`: `None` if the client has no terminal of its own.  `full`: the tokens of a
    prompt that fill the model's window.  `blocked`: the only words about a blocked prompt, where a headless run prints no
    reason; `None` where it prints the reason.  `lacks`: the cases whose tool it offers with none of its models.
    """

    name: ClassVar[str]
    models: ClassVar[tuple[str, ...]] = ("fake-model",)
    fast: ClassVar[bool] = True
    screen: ClassVar[Screen | None] = None
    full: ClassVar[int] = 99_000
    blocked: ClassVar[str | None] = None
    lacks: ClassVar[frozenset[str]] = frozenset()
    # Where the project's settings of the client may be, for a test that looks at leftovers.
    folders: ClassVar[tuple[str, ...]] = ()

    def __init__(self, project: Path, home: Path, model: str = "", installed: Path = PINNED) -> None:
        self.project, self.home = project, home
        self.model = model or self.models[0]
        self.installed = installed
        self.program = PACKAGES[self.name].path(installed)
        assert self.program.exists(), f"{self.name} is missing: `python -m checks.agents` installs it, with npm"
        self.server = ModelServer()
        self.server.__enter__()
        self.configure(self.server.url)

    def close(self) -> None:
        """End the model's server, and the server of our hooks."""
        self.hooks("serve", "--stop", code=None)
        self.server.__exit__()

    # ---- the facts of a client

    @abstractmethod
    def configure(self, url: str) -> None:
        """Write the settings that point the client at the model's server, into the home."""

    @abstractmethod
    def headless(self, prompt: str, *, asks: bool = False) -> list[str]:
        """Return the command line of a run without a person.  `asks`: the client's own permissions are not bypassed."""

    def interactive(self, *, automatic: bool = False) -> list[str]:
        """Return the command line at a terminal.  `automatic`: the client's mode that asks no person."""
        raise NotImplementedError(self.name)

    def resume(self, line: Sequence[str]) -> list[str]:
        """Return a headless command line that goes on with the last session."""
        raise NotImplementedError(self.name)

    def variables(self) -> dict[str, str]:
        """Return the variables that the client needs."""
        return {}

    def add_mcp(self, command: Sequence[str]) -> None:
        """Offer the tools of an MCP server `probe`."""
        raise NotImplementedError(self.name)

    def compact(self, run: Callable[..., Run]) -> None:
        """Make the client compact its conversation, with runs of a seat: the model says that the window is full."""
        run(Text("one"), prompt="hello", tokens=self.full)
        run(Text("two"), prompt="hello again", resume=True, tokens=self.full)
        run(Text("three"), prompt="hello once more", resume=True)

    @contextmanager
    def with_helpers(self) -> Iterator[None]:
        """Give the client what it needs to start sub-agents, and wait for those that outlive its run."""
        yield

    # ---- what every client has

    def environment(self) -> dict[str, str]:
        """Return the whole environment: nothing of the tests' own is in it."""
        python = str(Path(sys.executable).parent)
        path = os.pathsep.join([str(node_directory()), python, "/usr/local/bin", "/usr/bin", "/bin"])
        certificates = {
            name: os.environ[name] for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS") if name in os.environ
        }
        return {**_PLAIN, **certificates, "HOME": str(self.home), "PATH": path, **self.variables()}

    def run(
        self, script: Script, prompt: str = "go", *, asks: bool = False, resume: bool = False, args: Sequence[str] = ()
    ) -> Run:
        """Give the client a prompt, without a person."""
        line = [*self.headless(prompt, asks=asks), *args]
        if resume:
            line = self.resume(line)
        self.server.choose = script
        began = time.monotonic()
        output, code = self.execute(line)
        return Run(output, code, script, time.monotonic() - began)

    def execute(self, line: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[str, int]:
        """Run a command line to its end, with more variables; return its output and its exit code."""
        process = subprocess.Popen(
            line,
            cwd=self.project,
            env={**self.environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired as exc:
            os.killpg(process.pid, signal.SIGKILL)
            output = ""
            # A program of the client that has a process group of its own may hold the pipe for ever.
            with suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=5)
            raise AssertionError(f"{self.name} did not end within {PATIENCE:g} s:\n{output[-3000:]}") from exc
        return output, process.returncode

    def open(self, tmux: Tmux, script: Script, *, automatic: bool = False) -> None:
        """Start the client at a terminal, and wait until it takes a prompt."""
        assert self.screen, self.name
        self.server.choose = script
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.environment().items() if name != "TERM"]
        start = self.home / "start.sh"
        line = shlex.join(["exec", *self.interactive(automatic=automatic)])
        start.write_text("\n".join([*lines, line]))
        tmux.enter(f"clear; env -i TERM=$TERM bash {shlex.quote(str(start))}")
        for words, key in self.screen.ready:
            tmux.sees(words)
            tmux.press(key)
        tmux.sees(self.screen.idle)

    # ---- our hooks

    def hooks(self, *args: str, code: int | None = 0, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        """Run `agent-hooks` in a process of its own, with the environment of the client; `python`: the interpreter."""
        if python == sys.executable:
            done = forking.run(args, self.project, "", PATIENCE, environment=self.environment())
        else:
            done = subprocess.run(
                [python, "-m", "agent_hooks", *args],
                cwd=self.project,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    def install(self) -> None:
        """Install our hooks into the client as a person does."""
        self.hooks("install", self.name)

    def uninstall(self) -> None:
        """Take our hooks out of the client."""
        self.hooks("uninstall", self.name)

    def servers(self) -> list[int]:
        """Return the processes that answer the events of this project."""
        servers = json.loads(self.hooks("serve", "--status", "--json").stdout)["servers"]
        return [each["pid"] for each in servers if each["project"] == str(self.project)]

    def write(self, path: str, value: Any) -> None:
        """Write a file of the home: text as it is, other values as JSON."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))


__all__ = ["KEY", "PATIENCE", "Client", "Run", "Screen"]
