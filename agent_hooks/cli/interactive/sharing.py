"""`/copy` and `/export`: the last answer into the clipboard, and the conversation into a file."""

from __future__ import annotations

import os
from datetime import datetime

import anyio

from agent_hooks.cli.screen.clipboard import copy_text
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.errors import AgentHooksError, count, os_reason
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.storage.files import StorageError
from agent_hooks.storage.links import inside_tree
from agent_hooks.ui.harmless import uncoloured
from agent_hooks.values.content import AssistantMessage


class SharingError(AgentHooksError):
    """The conversation cannot be written; the text names the file and the reason."""


class Sharing:
    """The two commands as methods, which get the text after the name; `cwd`: the directory of the session."""

    def __init__(self, cwd: str, host: SessionHost, screen: PromptScreen) -> None:
        self._cwd = cwd
        self._host = host
        self._screen = screen

    async def copy(self, argument: str) -> None:
        """Put the last answer of the model into the person's clipboard."""
        answers = (each.text.strip() for each in reversed(self._host.messages) if isinstance(each, AssistantMessage))
        text = next(filter(None, answers), "")
        if not text:
            self._screen.print_line("there is no answer to copy yet", "info")
            return
        lines = count(len(text.splitlines()), "line")
        if await anyio.to_thread.run_sync(copy_text, text):
            self._screen.print_line(f"copied the last answer: {lines}", "info")
        else:
            self._screen.copy(text)
            self._screen.print_line(
                f"gave the last answer to the terminal: {lines}; if your clipboard lacks it, install wl-copy or xclip",
                "info",
            )

    async def export(self, argument: str) -> None:
        """Write the conversation, with all that is folded in it, into a new file.  Raises `SharingError`."""
        name = argument or f"conversation-{datetime.now():%Y-%m-%d-%H%M%S}.txt"
        path = os.path.join(self._cwd, os.path.expanduser(name))
        text = uncoloured(self._screen.transcript())
        try:
            inside_tree(path, self._cwd)
            # It must not take the place of another file.
            async with await anyio.open_file(path, "x", encoding="utf-8", errors="replace") as file:
                await file.write(text)
        except StorageError as exc:
            raise SharingError(str(exc)) from None
        except OSError as exc:
            raise SharingError(f"the conversation was not written: {path}: {os_reason(exc)}") from None
        self._screen.print_line(f"written: {path}", "info")
