"""The completions of the prompt line: commands and their arguments, tools of the puppet, and files after `@`.

They are made in the background: the prompt line takes keys meanwhile, and a later key drops those of the key before.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from anyio import to_thread
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agent_hooks.ui.harmless import harmless

MOST = 50
"""The completions that are offered."""
COMMAND_NAME = "/[a-z][a-z0-9_-]*"
"""The pattern of the name of a slash command."""
_COMMAND = re.compile(f"/|{COMMAND_NAME}")
_ARGUMENT = re.compile(rf"({COMMAND_NAME})[ \t]+(.*)", re.DOTALL)
# A path after `@` begins a word, and has no space unless it is quoted.
_FILE = re.compile(r"(?:^|\s)@(\"[^\"\n]*|[^\s\"]*)\Z")
# A command of your own, and one of the puppet on the last line.
_SHELL = re.compile(r"\A\s*!|(?:^|\n)[ \t]*@bash\s[^\n]*\Z")


class Candidate(NamedTuple):
    """A text that completes a word, and a few words about it."""

    text: str
    about: str = ""


Arguments = Callable[[str], Awaitable[Iterable[Candidate]]]
"""Returns the arguments of a command that may be meant by the beginning that was typed."""


class PromptCompleter(Completer):
    """Completes the prompt line: while a command, its argument or a path is typed, and with Tab.

    `commands`: returns the slash commands in a thread, with a few words about each; `arguments`: those of some commands;
    `tools`: the names that may follow `@` at the beginning of a line, behind the `files`, or alone with `only_tools`.
    """

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        arguments: Mapping[str, Arguments],
        tools: Callable[[], Iterable[Candidate]],
        files: Arguments,
        only_tools: Callable[[], bool] = lambda: False,
    ) -> None:
        self._commands = commands
        self._arguments = arguments
        self._tools = tools
        self._files = files
        self._only_tools = only_tools

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield nothing: the completions are made by `get_completions_async`."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions of the word before the cursor."""
        if complete_event.completion_requested or is_offered(document.text_before_cursor):
            typed, found = await self._found(document.text_before_cursor)
            # A command may have an argument.
            end = " " if _COMMAND.fullmatch(document.text_before_cursor) else ""
            for each in [*found][:MOST]:
                shown, about = harmless(each.text), harmless(each.about)
                yield Completion(each.text + end, -len(typed), display=shown, display_meta=about)

    async def _found(self, text: str) -> tuple[str, Iterable[Candidate]]:
        """Return the word that is completed, and its completions."""
        if _COMMAND.fullmatch(text):
            commands = await to_thread.run_sync(self._commands)
            return text, beginning(text, (Candidate(*each) for each in commands.items()))
        if match := _ARGUMENT.fullmatch(text):
            source = self._arguments.get(match[1])
            return match[2], () if source is None else await source(match[2])
        # A shell would run a hostile name of a file.
        if not _SHELL.search(text) and (match := _FILE.search(text)):
            typed = match[1]
            begins_line = not text[: match.start(1) - 1].rpartition("\n")[2].strip()
            tools = beginning(typed, self._tools()) if begins_line else []
            if begins_line and self._only_tools():
                return typed, tools
            # A model calls its tools itself.
            return typed, [*map(_quoted, await self._files(typed.removeprefix('"'))), *tools]
        return "", ()


def is_offered(text: str) -> bool:
    """Tell whether the completions of a text are offered without Tab: a command, its argument, or a path after `@`."""
    return any(pattern.fullmatch(text) for pattern in (_COMMAND, _ARGUMENT)) or _FILE.search(text) is not None


def beginning(typed: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that begin as it was typed."""
    return [each for each in candidates if each.text.startswith(typed)]


def matching(typed: str, names: Sequence[str]) -> list[str]:
    """Return the names that begin as it was typed, then those that have it at the beginning of a part, then elsewhere.

    Without one of these, those that have its letters in this order: `plpy` finds `plan.py`.
    """
    wanted = typed.casefold()
    if not wanted:
        return [*names][:MOST]
    ranks: tuple[list[str], ...] = ([], [], [])
    for name in names:
        folded = name.casefold()
        if (at := folded.find(wanted)) >= 0:
            ranks[0 if at == 0 else 1 if folded[at - 1] in "/_-." else 2].append(name)
    found = [name for rank in ranks for name in rank] or [each for each in names if _in_order(wanted, each.casefold())]
    return found[:MOST]


def _in_order(letters: str, text: str) -> bool:
    rest = iter(text)
    # `in` takes the letters up to the one that it finds.
    return all(letter in rest for letter in letters)


def _quoted(path: Candidate) -> Candidate:
    return Candidate(f'"{path.text}"', path.about) if " " in path.text else path
