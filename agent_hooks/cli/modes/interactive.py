"""Interactive mode: a person at a terminal talks to the agent, and hooks ask the person.

Above: run.  Below: base, line, prompt, terminal, ui.terminal.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime

import anyio
import click
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from rich.text import Text

from agent_hooks import __version__
from agent_hooks.cli.commands.list import hooks_table
from agent_hooks.cli.lifetime import leave_soon
from agent_hooks.cli.main import INTERRUPTED, OK
from agent_hooks.cli.modes.base import Start, until_signal
from agent_hooks.cli.screen.line import PromptHistory
from agent_hooks.cli.screen.output import said
from agent_hooks.cli.screen.prompt import PromptScreen, ruled
from agent_hooks.cli.screen.terminal import OwnTerminal
from agent_hooks.cli.setup import Setup, count
from agent_hooks.errors import AgentHooksError, did_you_mean
from agent_hooks.host.exchanges import summary_of
from agent_hooks.host.lifecycle import Outcome, SessionHost
from agent_hooks.host.model import THINKING_LEVELS
from agent_hooks.host.models import open_model
from agent_hooks.host.session_file import list_sessions
from agent_hooks.settings import agent_home
from agent_hooks.ui.harmless import harmless
from agent_hooks.ui.terminal import Option, TerminalUI
from agent_hooks.values.content import (
    AssistantMessage,
    Message,
    MessageEntry,
    ToolResultMessage,
    UserMessage,
    text_of_content,
)
from agent_hooks.values.tool import call_line

HISTORY_FILE = "prompt_history"
LABEL = 60  # characters of a message in a list; with its time they fit into 80 columns
REPLAYED = 20  # messages of a session that is gone on with, shown again
COMMANDS = {
    "/help": "commands and keys",
    "/hooks": "the hooks, in the order they run",
    "/resume": "go on with an earlier session",
    "/new": "begin another session",
    "/clear": "forget the conversation; its session stays on disk",
    "/branch": "go back before one of your messages",
    "/compact": "sum up what is old; what you write after it says what to keep",
    "/model": "the model, or another one: /model anthropic:NAME",
    "/thinking": f"how much the model thinks: {', '.join(THINKING_LEVELS)}",
    "/quit": "end",
}
KEYS = {
    "Enter": "sends; while the agent works, the message waits for the next request to the model",
    "Alt-Enter": "begins another line, as does a backslash before Enter",
    "Tab": "completes a command",
    "Up, Down": "go through what you typed, also in earlier sessions",
    "Esc": "aborts what the agent does; in a dialog, cancels it",
    "Ctrl-C": "clears the line, or aborts as Esc does; twice, it quits",
    "Ctrl-D": "quits, on an empty line",
}
_COMMAND = re.compile(r"(/[a-z]+)(?:\s+(.*))?", re.DOTALL)


async def run(start: Start) -> int:
    """Talk with the person until they quit or the terminal is gone; the terminal is left as it was."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
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
    """What the person can do, as one loop over the lines they send."""

    def __init__(self, start: Start, terminal: OwnTerminal) -> None:
        self._start = start
        self._terminal = terminal
        self._left = anyio.Event()
        self._acting = False  # a slash command is under way
        self._host: SessionHost
        self._setup: Setup
        self._lines: MemoryObjectSendStream[str]
        self._received: MemoryObjectReceiveStream[str]
        self._lines, self._received = anyio.create_memory_object_stream[str](float("inf"))
        history = PromptHistory(os.path.join(agent_home(), HISTORY_FILE), lambda text: self._screen.warning(text))
        self._screen = PromptScreen(
            terminal.input(),
            terminal.output(),
            history=history,
            commands=COMMANDS,
            submit=self._submit,
            abort=lambda: self._host.abort(),
            leave=self._leave,
        )
        terminal.show, terminal.gone = self._screen.stray, self._leave
        self._ui = TerminalUI(self._screen)
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/help": self._help,
            "/hooks": self._hooks,
            "/resume": self._resume,
            "/new": self._new,
            "/clear": self._clear,
            "/branch": self._branch,
            "/compact": self._compact,
            "/model": self._model,
            "/thinking": self._thinking,
            "/quit": self._quit,
        }

    async def run(self) -> int:
        """Run the whole of it and return the exit code."""
        start, screen = self._start, self._screen
        self._setup = await start.load(screen.warning, screen.error)
        runner = start.runner(self._setup, "interactive", self._ui)
        runner.on_error(screen.hook_error)
        async with runner:
            async with until_signal(last_words=self._terminal.give_back) as scope:
                await self._talk(start.host(self._setup, runner, screen))
            code = INTERRUPTED if scope.cancelled_caught else OK
            leave_soon(code, last_words=self._terminal.give_back)
        return code

    async def _talk(self, host: SessionHost) -> None:
        self._host = host
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._own_terminal)  # before any hook: one may ask at once
            try:
                self._greet()
                async with host:
                    self._screen.ready()
                    self._show_conversation()
                    tasks.start_soon(self._work)
                    if self._start.prompt:
                        self._submit(self._start.prompt)
                    await self._left.wait()
                    self._screen.leaving()
            finally:
                tasks.cancel_scope.cancel()

    async def _own_terminal(self, *, task_status: TaskStatus[None]) -> None:
        await self._screen.run(task_status.started)
        self._left.set()  # the terminal is gone

    # ---- what the person does

    def _submit(self, text: str) -> None:
        if _COMMAND.fullmatch(text):
            self._lines.send_nowait(text)
            return
        waits, said = self._host.running or self._acting, text.strip()
        try:
            self._host.submit(said)
        except AgentHooksError as exc:  # too much waits already, or it is too long
            self._screen.error(str(exc))
            self._screen.offer(text)
        else:
            if waits:
                self._screen.queued(said)

    def _leave(self) -> None:
        self._left.set()

    async def _work(self) -> None:
        """Carry out slash commands, one after another."""
        async for line in self._received:
            match = _COMMAND.fullmatch(line)
            assert match is not None
            name, argument = match[1], (match[2] or "").strip()
            self._screen.echo(line)
            self._acting = True
            self._screen.busy(name)
            try:
                if (carry_out := self._commands.get(name)) is None:
                    self._unknown(name)
                else:
                    await carry_out(await self._host.command(name[1:], argument))
            except AgentHooksError as exc:
                self._screen.error(f"{name}: {exc}")
            finally:
                self._acting = False
                self._screen.busy("working" if self._host.running else None)

    def _unknown(self, name: str) -> None:
        hint = did_you_mean(name, COMMANDS) or "; /help lists them"
        self._screen.error(f"there is no command {name}{hint}; to say it to the agent, begin with a space")

    # ---- commands that look

    async def _help(self, argument: str) -> None:
        for rows in (COMMANDS, KEYS):
            width = max(map(len, rows))
            self._screen.print(*(Text.assemble((f"{key:{width}}", "bold"), f"  {does}") for key, does in rows.items()))

    async def _hooks(self, argument: str) -> None:
        self._screen.print(hooks_table(self._setup) or Text("no hooks: ~/.agent/hooks and ./.agent/hooks hold none"))

    # ---- commands that change the session

    async def _resume(self, argument: str) -> None:
        if argument:
            path: str | None = os.path.join(self._setup.cwd, os.path.expanduser(argument))
        else:
            path = await self._choose_session()
        if path is not None and self._done(await self._host.switch_session(path)):
            self._screen.rule(f"resumed {os.path.basename(path)}")
            self._show_conversation()

    async def _choose_session(self) -> str | None:
        current = self._host.state().session_file
        sessions = [each for each in list_sessions(self._setup.cwd) if each.path != current and each.messages]
        options = [
            labelled(each.written, each.first_text, f" ({count(each.messages, 'message')})") for each in sessions
        ]
        if not options:
            self._screen.say("there is no other session here", "info")
        index = await self._ui.choose("Which session?", options)
        return None if index is None else sessions[index].path

    async def _new(self, argument: str) -> None:
        if self._done(await self._host.new_session()):
            self._screen.rule("a new session")

    async def _clear(self, argument: str) -> None:
        if self._done(await self._host.clear()):
            self._screen.rule("the conversation is forgotten")

    async def _branch(self, argument: str) -> None:
        entries = [
            (index, entry, entry.message)
            for index, entry in enumerate(self._host.entries)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
        ]
        options = [labelled(entry.timestamp, text_of_content(message.content)) for _, entry, message in entries]
        if not options:
            self._screen.say("there is nothing to go back to yet", "info")
        chosen = await self._ui.choose("Go back before which message?", options, selected=len(options) - 1)
        if chosen is None:
            return
        outcome = await self._host.branch(entries[chosen][0])
        if self._done(outcome):
            said = outcome.text or ""
            self._screen.rule(f"back before: {first_words(said)}")
            self._screen.offer(f" {said}" if _COMMAND.fullmatch(said) else said)

    async def _compact(self, argument: str) -> None:
        outcome = await self._host.compact(argument or None)
        if self._done(outcome) and outcome.entry is not None:
            self._screen.rule("summed up what is old")

    def _done(self, outcome: Outcome) -> bool:
        if outcome.cancelled:
            self._screen.say(f"nothing changed: {outcome.reason}", "warning")
        return not outcome.cancelled

    # ---- commands that set something

    async def _model(self, argument: str) -> None:
        if argument:
            self._host.set_model(open_model(argument))
        model = self._host.state().model
        self._screen.say(f"model: {model.provider}:{model.id}", "info")

    async def _thinking(self, argument: str) -> None:
        levels = {level: level for level in THINKING_LEVELS}
        if argument in levels:
            self._host.set_thinking_level(levels[argument])
        elif argument:
            self._screen.error(f"there is no level {argument!r}{did_you_mean(argument, levels)}")
            return
        self._screen.say(f"thinking: {self._host.state().thinking_level}", "info")

    async def _quit(self, argument: str) -> None:
        self._left.set()

    # ---- what is shown at first

    def _greet(self) -> None:
        model = self._start.model
        hooks = count(len(self._setup.loaded.hooks), "hook")
        self._screen.print(
            Text.assemble((f"agent-hooks {__version__}", "bold"), f" · {model.provider}:{model.id} · {hooks} · /help")
        )

    def _show_conversation(self) -> None:
        messages = self._host.messages
        if len(messages) > REPLAYED:
            self._screen.rule(f"{len(messages) - REPLAYED} earlier messages")
        self._screen.print(*transcript(messages[-REPLAYED:]))


def transcript(messages: Sequence[Message]) -> Iterable[Text]:
    """Yield the lines of a conversation that is gone on with."""
    for index, message in enumerate(messages):
        if isinstance(message, UserMessage):
            yield Text()
            if (summary := summary_of(message)) is None:
                yield said(text_of_content(message.content), message.source)
            else:
                yield ruled("summed up")
                yield Text(harmless(summary).rstrip("\n"))
        elif isinstance(message, AssistantMessage):
            if message.text:
                yield Text(harmless(message.text).rstrip("\n"))
            for call in message.tool_calls:
                line = harmless(f"• {call_line(call.name, call.invalid or call.arguments)}")
                yield Text.assemble(line, *came_of(call.id, messages[index:]))


def came_of(call_id: str, messages: Iterable[Message]) -> Iterable[tuple[str, str]]:
    """Yield what came of a call, with its style; nothing when `messages` do not tell."""
    for message in messages:
        if isinstance(message, ToolResultMessage) and message.tool_call_id == call_id:
            text = text_of_content(message.content)
            if not message.is_error:
                yield " → ok", "green"
            elif isinstance(message.details, Mapping) and message.details.get("status") == "blocked":
                yield harmless(f" → blocked: {text}"), "bold red"
            else:
                yield harmless(f" → error: {first_words(text)}"), "red"
            return  # a model may use an id again, later


def labelled(timestamp: str, text: str, more: str = "") -> Option:
    """Return the line of a list for something said at a time; its preview is what the line leaves out."""
    words = first_words(text, LABEL - len(more))
    return Option(f"{when(timestamp)}  {words}{more}", text if words != text.strip() else "")


def when(timestamp: str) -> str:
    """Return an ISO 8601 time as a person reads it, in their time zone; what is none, as it is."""
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%d %b %H:%M}"
    except (ValueError, OverflowError):  # of a file that somebody else wrote
        return first_words(timestamp)


def first_words(text: str, most: int = LABEL) -> str:
    """Return the beginning of a text, as one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
