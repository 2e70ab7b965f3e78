"""Interactive mode: a person at a terminal talks to the agent, and hooks ask the person."""

from __future__ import annotations

import os

import anyio
import click
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from rich.text import Text

from agent_hooks import __version__
from agent_hooks.cli.interactive.candidates import (
    FileCandidates,
    answers,
    first_words,
    models,
    sessions,
    thinking_levels,
)
from agent_hooks.cli.interactive.facts import Facts
from agent_hooks.cli.interactive.hooks_command import answers_at
from agent_hooks.cli.interactive.levels import Levels
from agent_hooks.cli.interactive.own_commands import OwnCommands
from agent_hooks.cli.interactive.slash_commands import SlashCommands
from agent_hooks.cli.interactive.vocabulary import PATTERN
from agent_hooks.cli.lifetime import INTERRUPTED, OK, leave_soon
from agent_hooks.cli.modes.base import Start, until_signal
from agent_hooks.cli.reloading import HostReloading
from agent_hooks.cli.screen.completion import Candidate, PromptCompleter
from agent_hooks.cli.screen.line import PromptHistory
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.cli.screen.results import OWN, own_command
from agent_hooks.cli.screen.terminal import OwnTerminal
from agent_hooks.cli.screen.wording import at_home, short
from agent_hooks.cli.setup import Setup
from agent_hooks.cli.streams import on_a_terminal
from agent_hooks.cli.trusting import ask_again
from agent_hooks.errors import AgentHooksError, count
from agent_hooks.host.caution import Caution
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.models.puppet import Puppet, shown_beside
from agent_hooks.settings import agent_home
from agent_hooks.ui.harmless import harmless
from agent_hooks.ui.terminal import TerminalUI

# Words that end other programs, and mean the same here.
_LEAVING = ("exit", "quit", ":q")
HISTORY_FILE = "prompt_history"
LOOK_AGAIN = 1.0
"""Seconds between two looks at the files of hooks while the agent rests; a look is some calls of `stat`."""


async def run(start: Start) -> int:
    """Talk with the person until they quit or the terminal is gone; the terminal is left as it was."""
    if not on_a_terminal():
        raise click.UsageError(
            "interactive mode needs a terminal, for stdin and stdout; without one use -p PROMPT or --mode rpc"
        )
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        raise click.UsageError(
            "interactive mode needs a terminal that can move its cursor, not TERM=dumb; use -p PROMPT"
        )
    with OwnTerminal() as terminal:
        return await Interactive(start, terminal).run()


class Interactive:
    """One loop over the lines that the person sends: prompts go to the agent, slash commands are carried out here."""

    def __init__(self, start: Start, terminal: OwnTerminal) -> None:
        self._caution = Caution()
        # The rules that `/allow` names too.
        self._allowed = [*start.allow_once]
        self._start = start._replace(more_guards=(self._caution,), allow_once=self._allowed)
        self._terminal = terminal
        self._left = anyio.Event()
        # Whether a slash command is under way.
        self._acting = False
        self._host: SessionHost
        self._reloading: HostReloading
        self._facts: Facts
        self._levels: Levels
        self._commands: SlashCommands
        self._own: OwnCommands
        self._lines: MemoryObjectSendStream[str]
        self._received: MemoryObjectReceiveStream[str]
        self._lines, self._received = anyio.create_memory_object_stream[str](float("inf"))
        history = PromptHistory(os.path.join(agent_home(), HISTORY_FILE), lambda text: self._screen.warning(text))
        self._screen = PromptScreen(
            terminal.input(),
            terminal.output(),
            history=history,
            completer=self._completer(),
            submit=self._submit,
            abort=self._abort,
            leave=self._left.set,
            withdraw=lambda: self._host.withdraw(),
            next_level=lambda: self._levels.be(),
            accept=lambda: self._levels.accept(),
            hint=lambda: self._levels.hint,
            name=os.path.basename(os.path.abspath(self._start.cwd)),
            facts=lambda: self._facts.parts(),
        )
        terminal.show, terminal.gone = self._screen.stray, self._left.set
        self._ui = TerminalUI(self._screen, further=lambda question: self._levels.further(question))

    def _completer(self) -> PromptCompleter:
        files = FileCandidates(os.path.abspath(self._start.cwd))
        arguments = {
            "/hooks": answers(lambda: answers_at(self._reloading.setup)),
            "/model": models,
            "/resume": sessions(lambda: self._commands.sessions_home),
            "/thinking": thinking_levels,
        }
        return PromptCompleter(lambda: self._commands.offered(), arguments, self._tools, files, self._only_tools)

    def _tools(self) -> list[Candidate]:
        """Return the tools that the beginning of a line may name."""
        return [Candidate(tool.name, first_words(tool.description)) for tool in self._host.tools]

    def _only_tools(self) -> bool:
        """Tell whether the puppet reads a line that begins with `@` as a call in any case."""
        return self._host.state().model.provider == Puppet.provider

    async def run(self) -> int:
        """Run the session from start to end, and return the exit code."""
        start, screen = self._start, self._screen
        shown_beside.set("results")
        setup = await start.load(screen.warning, screen.error)
        self._caution.level = start.caution or setup.settings.caution or "work"
        runner = start.runner(setup, "interactive", self._ui)
        runner.on_error(screen.hook_error)
        async with runner:
            reloading = start.reloading(setup, runner, screen.warning)
            host = start.host(reloading, runner, screen, self._ui.confirm)
            async with until_signal(reloading, host, last_words=self._terminal.give_back) as scope:
                await self._talk(host, reloading)
            code = INTERRUPTED if scope.cancelled_caught else OK
            leave_soon(code, last_words=self._terminal.give_back)
        return code

    async def _talk(self, host: SessionHost, reloading: HostReloading) -> None:
        self._host, self._reloading = host, reloading
        self._own = OwnCommands(reloading, self._screen, host.note)
        self._facts = Facts(host, reloading, self._caution, self._screen.refresh)
        usual = reloading.setup.settings.caution or "work"
        self._levels = Levels(self._caution, host, self._screen, self._ui, self._send, usual)
        self._commands = SlashCommands(
            host,
            reloading,
            self._screen,
            self._ui,
            self._facts,
            self._levels,
            send=self._send,
            approve=self._approve,
            allow=self._allowed.append,
            quit=self._left.set,
        )
        async with anyio.create_task_group() as tasks:
            # Before the first hook runs, because it may ask at once.
            await tasks.start(self._own_terminal)
            try:
                self._greet(reloading.setup)
                async with host:
                    self._screen.ready()
                    self._levels.session_begins()
                    self._commands.show_conversation()
                    tasks.start_soon(self._work)
                    tasks.start_soon(self._watch)
                    tasks.start_soon(self._facts.load_prices)
                    tasks.start_soon(self._facts.count_checkpoints)
                    if self._start.prompt:
                        # Only a line that is typed is a command of the person; a space makes it a message.
                        own = own_command(self._start.prompt) is not None
                        self._submit(f" {self._start.prompt}" if own else self._start.prompt)
                    await self._left.wait()
                    again = self._levels.end()
                    self._screen.leaving()
                    saved = host.state().session_file is not None and bool(host.messages)
                if saved:
                    self._screen.print_line(f"to go on with this session: {again}", "info")
            finally:
                tasks.cancel_scope.cancel()

    async def _own_terminal(self, *, task_status: TaskStatus[None]) -> None:
        await self._screen.run(task_status.started)
        self._left.set()  # the terminal is gone

    def _greet(self, setup: Setup) -> None:
        model = self._start.model
        hooks = count(len(setup.loaded.hooks), "hook")
        self._screen.print(
            Text.assemble((f"agent-hooks {__version__}", "bold"), f" · {model.provider}:{model.id} · {hooks} · /help"),
            Text(harmless(at_home(setup.cwd)), "bright_black"),
        )
        if self._start.model_note is not None:
            self._screen.print_line(self._start.model_note, "info")
        if self._caution.level == "work" and setup.settings.caution is None and model.provider != Puppet.provider:
            self._screen.print_line(
                "it works without asking, within guards and hooks; Shift-Tab lets it ask first", "info"
            )
        if files := self._start.instructions(setup, self._screen.warning).files():
            self._screen.print_line(f"instructions: {', '.join(short(path) for path in files)}", "info")
        if skills := self._start.skills(setup).found():
            self._screen.print_line(f"skills: {', '.join(skills)}", "info")

    async def _approve(self) -> None:
        """Ask about the hooks and settings that wait, as `agent-hooks trust` does."""

        def ask() -> None:
            with self._terminal.lent():
                ask_again(self._start.trust, self._start.cwd)

        await self._screen.lend(ask)

    def _abort(self) -> bool:
        """End the command of the person or the agent's work; messages that wait come back into the prompt line.

        Returns whether there was one.
        """
        if self._own.abort():
            return True
        waiting = self._host.withdraw() if self._host.running else []
        aborted = self._host.abort()
        if waiting:
            self._screen.take_back(waiting)
        return aborted

    def _submit(self, text: str) -> None:
        """Queue a command, or send a message to the agent."""
        if text.strip() in _LEAVING:
            text = "/quit"
        if text.strip() == "?":
            text = "/help"
        if text.strip() == OWN:
            self._screen.error(f"say a command after {OWN}: {OWN}git status")
            return
        if PATTERN.fullmatch(text) or own_command(text) is not None:
            self._lines.send_nowait(text)
            return
        try:
            self._send(text.strip())
        except AgentHooksError as exc:
            # The inbox is full, or the message is too long.
            self._screen.error(str(exc))
            self._screen.offer(text)

    def _send(self, message: str) -> None:
        """Send a message to the agent, and show that it waits if the agent works; raises `SendError`."""
        waits = self._host.running or self._acting
        self._host.submit(message)
        if waits:
            self._screen.queued(message)

    async def _watch(self) -> None:
        """Take up a changed hook while the agent rests, so that its author sees at once whether it loads."""
        while True:
            await anyio.sleep(LOOK_AGAIN)
            if not (self._host.running or self._acting) and await self._host.reload_if_changed():
                # The line below the prompt counts the hooks.
                self._screen.refresh()

    async def _work(self) -> None:
        """Carry out slash commands and commands of the person, one after another."""
        async for line in self._received:
            match, own = PATTERN.fullmatch(line), own_command(line)
            name = OWN if match is None else match[1]
            self._screen.echo(line)
            self._acting = True
            self._screen.busy(line if match is None else name)
            try:
                if match is not None:
                    await self._commands.carry_out(name, (match[2] or "").strip())
                elif own is not None:
                    await self._own.run(own)
            except AgentHooksError as exc:
                self._screen.error(f"{name}: {exc}")
            finally:
                self._acting = False
                self._screen.busy("working" if self._host.running else None)
