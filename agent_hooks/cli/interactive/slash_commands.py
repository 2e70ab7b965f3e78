"""The slash commands of interactive mode: each shows something, changes the session, or sets the model."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence

from rich.text import Text

from agent_hooks.cli.choosing import model_of_session, note_on
from agent_hooks.cli.interactive.candidates import first_words, labelled, session_option
from agent_hooks.cli.interactive.facts import Facts, ModelCommands
from agent_hooks.cli.interactive.hooks_command import HooksCommand
from agent_hooks.cli.interactive.levels import Levels
from agent_hooks.cli.interactive.sharing import Sharing
from agent_hooks.cli.interactive.taking_back import TakingBack
from agent_hooks.cli.interactive.vocabulary import COMMANDS, INIT, KEYS, OTHER_NAMES, PATTERN, PromptFiles
from agent_hooks.cli.reloading import HostReloading
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.cli.screen.results import hanging, own_command
from agent_hooks.cli.screen.wording import at_home, short
from agent_hooks.cli.setup import hiding
from agent_hooks.errors import count, did_you_mean
from agent_hooks.guards.base import SELF_PROTECTION
from agent_hooks.guards.table import RULES
from agent_hooks.host.lifecycle import ActionOutcome, SessionHost
from agent_hooks.host.session_file import list_sessions
from agent_hooks.settings import agent_home
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.ui.harmless import harmless
from agent_hooks.ui.terminal import TerminalUI
from agent_hooks.values.content import Message, MessageEntry, UserMessage

# The most messages of a resumed session that are printed again.
REPLAYED = 40


class SlashCommands:
    """The commands as methods: `await SlashCommands(…).carry_out(name, argument)`.

    `send` sends a message to the agent; `approve` asks about the hooks and settings that wait; `allow` lifts one veto of
    a rule after the next load; `quit` ends the program.
    """

    def __init__(
        self,
        host: SessionHost,
        reloading: HostReloading,
        screen: PromptScreen,
        ui: TerminalUI,
        facts: Facts,
        levels: Levels,
        *,
        send: Callable[[str], object],
        approve: Callable[[], Awaitable[None]],
        allow: Callable[[str], object],
        quit: Callable[[], object],
    ) -> None:
        self._host = host
        self._reloading = reloading
        self._screen = screen
        self._ui = ui
        self._facts = facts
        self._levels = levels
        self._send = send
        self._approve = approve
        self._allow_once = allow
        self._leave = quit
        setup = reloading.setup
        hide = hiding(setup.settings)
        self._taking_back = TakingBack(setup.cwd, screen, ui, host.note, hide)
        self._files = PromptFiles(agent_home(), setup.sources.place.top, setup.cwd, hide)
        # The sessions that `/branch` has left for the present one, whose turns belong to its conversation too.
        self._left: set[str] = set()
        models, sharing = ModelCommands(host, screen, ui), Sharing(setup.cwd, host, screen)
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/help": self._help,
            "/hooks": HooksCommand(reloading, screen).carry_out,
            "/status": self._status,
            "/reload": self._reload,
            "/trust": self._trust,
            "/allow": self._allow,
            "/resume": self._resume,
            "/new": self._new,
            "/clear": self._clear,
            "/branch": self._branch,
            "/diff": self._diff,
            "/undo": self._undo,
            "/redo": self._redo,
            "/compact": self._compact,
            "/ask": self._ask,
            "/edits": self._edits,
            "/plan": self._plan,
            "/model": models.model,
            "/thinking": models.thinking,
            "/init": self._init,
            "/copy": sharing.copy,
            "/export": sharing.export,
            "/quit": self._quit,
        }

    async def carry_out(self, name: str, argument: str) -> None:
        """Carry out a command, after the interceptors of commands; raises `AgentHooksError`."""
        name = OTHER_NAMES.get(name, name)
        files = self._files.found()
        known = (*COMMANDS, *files)
        meant = {OTHER_NAMES.get(each, each) for each in (*known, *OTHER_NAMES) if each.startswith(name)}
        if name not in known and len(name) > 1 and len(meant) == 1:
            # The menu showed this one alone.
            [name] = meant
        if name not in known:
            hint = did_you_mean(name, known)
            self._screen.error(f"there is no command {name}{hint} (a space before it sends it to the agent)")
            return
        argument = await self._host.command(name[1:], argument)
        if name in self._commands:
            await self._commands[name](argument)
        else:
            self._send(self._files.message(files[name], argument))

    def offered(self) -> dict[str, str]:
        """Return all commands, with a few words about each."""
        files = {name: first_words(self._files.about(path)) for name, path in self._files.found().items()}
        return {**files, **COMMANDS}

    def show_conversation(self) -> None:
        """Print the last messages of a resumed session."""
        messages = self._host.messages
        prompts = [at for at, message in enumerate(messages) if isinstance(message, UserMessage)]
        # It begins with a prompt, if there is one near enough.
        cut = max(len(messages) - REPLAYED, 0)
        first = next((at for at in prompts if at >= cut), cut)
        if first:
            self._screen.rule(f"{count(first, 'earlier message')} (Ctrl-O)")
            self._screen.earlier(messages[:first], seen=False)
        self._screen.earlier(messages[first:])

    # ---- the arguments that Tab offers

    @property
    def sessions_home(self) -> str:
        """The directory whose `.agent` has the session files."""
        return self._reloading.setup.sources.sessions_home

    # ---- commands that show something

    async def _help(self, argument: str) -> None:
        own = {name: at_home(short(path)) for name, path in self._files.found().items() if name not in COMMANDS}
        for rows in filter(None, (COMMANDS, own, KEYS)):
            self._print_rows(rows.items())

    async def _status(self, argument: str) -> None:
        self._print_rows(self._facts.rows())

    def _print_rows(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names with a text about each, which is wrapped beside its name."""
        rows = list(rows)
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            first = Text(f"{name:{width}}  ", "bold")
            self._screen.print(*hanging(Text(harmless(text)), self._screen.columns, first, " " * (width + 2)))

    async def _reload(self, argument: str) -> None:
        renewed = await self._host.reload()
        assert renewed is not None, "this host can"
        self._screen.print_line(f"in force: {count(len(renewed.hooks), 'hook')}", "info")
        # A changed hook that waits for approval was told before, and is the reason why a reload changes nothing.
        for text in (*renewed.problems, *self._reloading.setup.sources.messages):
            if text not in renewed.messages:
                self._screen.warning(text)

    async def _allow(self, argument: str) -> None:
        refuse_below_an_agent("/allow")
        names = argument.split()
        known = {*RULES, *(each.id for each in self._reloading.setup.guard_settings.rules)} - {*SELF_PROTECTION}
        wrong = [name for name in names if name not in known]
        if wrong or not names:
            hint = f": there is no rule {wrong[0]!r}{did_you_mean(wrong[0], known)}" if wrong else ""
            self._screen.error(f"say /allow RULE with the name of a guard's rule{hint}")
            return
        for name in names:
            self._allow_once(name)
        await self._reload("")
        self._screen.print_line(
            f"one call that meets {' and '.join(names)} is allowed; let the agent try again", "info"
        )

    async def _trust(self, argument: str) -> None:
        await self._approve()
        await self._reload("")

    # ---- commands that change the session

    async def _resume(self, argument: str) -> None:
        if argument:
            path: str | None = os.path.join(self._reloading.setup.cwd, os.path.expanduser(argument))
        else:
            path = await self._choose_session()
        if path is not None and self._done(outcome := await self._host.switch_session(path)):
            self._left = set()
            self._screen.rule(f"resumed {os.path.basename(path)}")
            if (model := model_of_session(outcome.model)) is not None:
                self._host.set_model(model)
                self._screen.print_line(note_on(model), "info")
            self.show_conversation()

    async def _choose_session(self) -> str | None:
        current = self._host.state().session_file
        listed = list_sessions(self._reloading.setup.sources.sessions_home)
        sessions = [each for each in listed if each.path != current and each.messages]
        options = [session_option(each) for each in sessions]
        if not options:
            self._screen.print_line("there is no other session here", "info")
        index = await self._ui.choose("Which session?", options, searches=True)
        return None if index is None else sessions[index].path

    async def _new(self, argument: str) -> None:
        if self._done(await self._host.new_session()):
            self._left = set()
            self._screen.rule("a new session")

    async def _clear(self, argument: str) -> None:
        if self._done(await self._host.clear()):
            self._left = set()
            self._screen.rule("the conversation is forgotten")

    async def _branch(self, argument: str) -> None:
        entries = self._sent()
        options = [labelled(entry.timestamp, message.sent) for _, entry, message in entries]
        if not options:
            self._screen.print_line("there is nothing to go back to yet", "info")
        chosen = await self._ui.choose(
            "Go back before which message?", options, selected=len(options) - 1, searches=True
        )
        if chosen is None:
            return
        index, entry, _ = entries[chosen]
        sessions = self._sessions()
        outcome = await self._host.branch(index)
        if self._done(outcome):
            self._left = sessions
            text = outcome.text or ""
            self._screen.rule(f"back before: {first_words(text)}")
            self._screen.earlier(self._last_exchange())
            is_command = PATTERN.fullmatch(text) or own_command(text) is not None
            self._screen.offer(f" {text}" if is_command else text)
            if turns := await self._taking_back.turns_since(entry.timestamp, sessions):
                await self._taking_back.offer(turns)

    def _last_exchange(self) -> Sequence[Message]:
        """Return the last message of the person in the conversation, and all that came after it."""
        messages = self._host.messages
        starts = [at for at, each in enumerate(messages) if isinstance(each, UserMessage) and not each.is_context]
        return messages[starts[-1] :] if starts else ()

    def _sessions(self) -> set[str]:
        """Return the ids of the sessions that the conversation has gone through."""
        return {*self._left, self._host.state().session_id}

    async def _diff(self, argument: str) -> None:
        await self._taking_back.diff(self._sessions())

    def _sent(self) -> list[tuple[int, MessageEntry, UserMessage]]:
        """Return the messages to the agent, each with its entry and the index of that."""
        return [
            (index, entry, entry.message)
            for index, entry in enumerate(self._host.entries)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
            # A hook's text about a prompt is no message: a branch before it would begin after the prompt.
            if not entry.message.is_context
        ]

    async def _undo(self, argument: str) -> None:
        if argument and not re.fullmatch("[1-9][0-9]{0,4}", argument):
            self._screen.error("say /undo, or /undo N with the number of messages")
        elif self._idle("/undo"):
            times = [entry.timestamp for _, entry, _ in self._sent()]
            await self._taking_back.undo(int(argument or 1), times, self._sessions())

    async def _redo(self, argument: str) -> None:
        if self._idle("/redo"):
            await self._taking_back.redo()

    def _idle(self, command: str) -> bool:
        if self._host.running:
            self._screen.error(f"{command}: the agent is working; abort it first")
        return not self._host.running

    async def _compact(self, argument: str) -> None:
        outcome = await self._host.compact(argument or None)
        if self._done(outcome) and outcome.entry is not None:
            now = f"{outcome.entry.tokens_before:,} tokens before, {self._host.context_tokens:,} now"
            self._screen.rule(f"summed up the older part: {now}")
            self._screen.folded(outcome.entry.summary)

    def _done(self, outcome: ActionOutcome) -> bool:
        if outcome.cancelled:
            self._screen.print_line(f"nothing changed: {outcome.reason}", "warning")
        else:
            self._levels.session_begins()
        return not outcome.cancelled

    # ---- commands that set something, or send something

    async def _ask(self, argument: str) -> None:
        self._levels.switch("ask", argument)

    async def _edits(self, argument: str) -> None:
        self._levels.switch("edits", argument)

    async def _plan(self, argument: str) -> None:
        self._levels.switch("plan", argument)

    async def _init(self, argument: str) -> None:
        self._send(f"{INIT}\n\n{argument}" if argument else INIT)

    async def _quit(self, argument: str) -> None:
        self._leave()
