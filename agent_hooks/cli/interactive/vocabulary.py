"""The slash commands and keys of interactive mode in words, and the commands that users keep as files.

`/review src` sends the file `commands/review.md` from the agent home or the project.  The files of Claude Code apply
too.  They are texts that the user sends, and nothing in them is run, so they need no approval.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_hooks.cli.screen.completion import COMMAND_NAME
from agent_hooks.host.instructions import directories_of, parted, read_kept, value
from agent_hooks.host.model import THINKING_LEVELS
from agent_hooks.settings import COMMANDS_DIRECTORY
from agent_hooks.storage.files import StorageError

COMMANDS = {
    "/help": "commands and keys",
    "/hooks": "the hooks, in the order they run, guards, redaction, checkpoints, your answers; /hooks revoke N ends one",
    "/reload": "load the hooks and settings again; a change of their files does that by itself",
    "/trust": "read and approve pending hooks and settings of the project, and pending changes of your own",
    "/allow": "let one call pass that this rule of a guard would stop: /allow RULE",
    "/resume": "go on with an earlier session",
    "/new": "begin another session",
    "/clear": "forget the conversation; its session stays on disk",
    "/branch": "go back before one of your messages",
    "/diff": "the changes of the agent in this conversation, without those that were taken back",
    "/undo": "take back the files of your last message; /undo N of the last N",
    "/redo": "bring back the changes that the last undo took back",
    "/ask": "let the agent ask before each change, until the next /ask; a text after it is sent",
    "/edits": "accept edits in the project and ask before other changes, until the next /edits; a text after it is sent",
    "/plan": "let the agent only look, until the next /plan; a text after it is sent",
    "/compact": "sum up the older part; text after it names the things to keep",
    "/status": "model, context, tokens, money, session, directory",
    "/model": "choose the model from a list, or name it: /model anthropic:NAME",
    "/thinking": f"how much the model thinks: {', '.join(THINKING_LEVELS)}",
    "/init": "let the agent write AGENTS.md, the instructions for this project",
    "/copy": "put the last answer into your clipboard",
    "/export": "write the conversation into a new file: /export PATH",
    "/quit": "end",
}
"""The slash commands, with a few words about each."""
OTHER_NAMES = {"/exit": "/quit", "/cost": "/status", "/context": "/status", "/rewind": "/branch"}
"""Names that other agents have for a command; interceptors get ours."""
KEYS = {
    "Enter": "sends; while the agent works, the message waits for the next request to the model",
    "Alt-Enter": "begins another line, as do Ctrl-J, and a backslash before Enter",
    "/ and @": "offer commands and files while you type; Tab chooses one",
    "Shift-Tab": "lets the agent ask before each change, then accepts its edits, then lets it only look, then work again",
    "!": "runs the rest of the line as a command of your own; the model reads its output with your next message",
    "Ctrl-O": "shows the conversation with all that is folded in it, in your pager; q comes back",
    "Ctrl-G": "opens the line in your editor, as Ctrl-X Ctrl-E does",
    "Ctrl-T": "reads and approves pending hooks and settings on an empty line, as /trust does",
    "Ctrl-V": "names the image in your clipboard, for the model to look at",
    "Ctrl-R": "searches your earlier lines",
    "Up, Down": "go through your earlier lines, also of other sessions; while messages wait, Up takes them back",
    "Esc": "aborts the agent's work, and puts waiting messages back into the line; in a dialog, cancels it",
    "Esc Esc": "goes back before one of your messages, as /branch does, on an empty line",
    "Ctrl-C": "clears the line, or aborts as Esc does, or quits, when it is pressed twice",
    "Ctrl-D": "quits, on an empty line; while the agent works, when it is pressed twice",
}
"""The keys of the prompt line, with a few words about each."""
INIT = (
    "Look at this project, and write AGENTS.md at its root, or improve the one that is there: instructions for coding "
    "agents that work here. Say how to build, test and check it, with the exact commands, also for a single test; how it "
    "is laid out, where one file does not tell; and its conventions that an agent would not guess. Keep it below 60 "
    "lines, and write only facts that you have found in its files."
)
"""The message that `/init` sends."""
PATTERN = re.compile(rf"({COMMAND_NAME})(?:\s+(.*))?", re.DOTALL)
"""Matches a line that is a slash command: its name, and the text behind it."""

LONGEST = 100_000
"""The bytes of one file."""
# The most files of one directory.
_MOST = 500
_NAME = re.compile(r"([a-z][a-z0-9_-]*)\.md")
# `$ARGUMENTS`, `$@` and `$1` as in Claude Code, Codex and pi.
_PLACE = re.compile(r"\$(ARGUMENTS\b|@|[1-9])")


class PromptFiles:
    """The files of one session: `PromptFiles(home, top, cwd, hide)`; the arguments are those of `Instructions`."""

    def __init__(self, home: str, top: str, cwd: str, hide: Callable[[str], str]) -> None:
        self._top = top
        self._hide = hide
        self._own, self._projects = directories_of(COMMANDS_DIRECTORY, home, top, cwd)

    def found(self) -> dict[str, str]:
        """Return the paths of the files by the names of their commands, each with its slash."""
        paths: dict[str, str] = {}
        for directory in (*self._own, *self._projects):
            for name in _names(directory):
                paths.setdefault(f"/{name}", os.path.join(directory, f"{name}.md"))
        return paths

    def about(self, path: str) -> str:
        """Return the description in the head of a file, else its first words, else its path."""
        try:
            head, text = parted(self._text(path))
        except StorageError:
            return path
        return value(head, "description") or next(iter(text.split("\n")), path)

    def message(self, path: str, argument: str) -> str:
        """Return the text of a file with an argument in its places, at the end where it has none.

        Raises `StorageError` when the file cannot be read.
        """
        _, text = parted(self._text(path))
        try:
            words = shlex.split(argument)
        except ValueError:
            words = argument.split()

        def given(place: re.Match[str]) -> str:
            if not place[1].isdecimal():
                return argument
            return words[int(place[1]) - 1] if int(place[1]) <= len(words) else ""

        if _PLACE.search(text):
            return _PLACE.sub(given, text)
        return f"{text}\n\n{argument}" if argument else text

    def _text(self, path: str) -> str:
        data = read_kept(path, self._top, LONGEST + 1, own=os.path.dirname(path) in self._own)
        if len(data) > LONGEST:
            raise StorageError(f"{path} has more than {LONGEST:,} bytes")
        return self._hide(data.decode("utf-8", "replace")).replace("\r\n", "\n").strip()


def _names(directory: str) -> Iterator[str]:
    try:
        files = sorted(os.listdir(directory))[:_MOST]
    # There is no such directory, or it cannot be read.
    except OSError:
        return
    for file in files:
        if (match := _NAME.fullmatch(file)) and Path(directory, file).is_file():
            yield match[1]
