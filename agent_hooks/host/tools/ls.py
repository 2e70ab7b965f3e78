"""The `ls` tool: the entries of a directory."""

from __future__ import annotations

import os
import stat
from typing import Any

from anyio import to_thread

from agent_hooks.errors import count, printable
from agent_hooks.host.tools.base import (
    BuiltinTool,
    Refused,
    listing_output,
    number_schema,
    object_schema,
    text_schema,
)
from agent_hooks.storage.files import refusing
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import LsToolDetails, OnUpdate

LIMIT = 500
"""The entries in the output by default."""


class LsTool(BuiltinTool):
    """Lists a directory."""

    name = "ls"
    description = "List a directory, dotfiles too: directories end with /, symlinks show their target."
    input_schema = object_schema(
        [],
        path=text_schema("The directory; the working directory by default"),
        limit=number_schema(f"Number of entries to show; {LIMIT} by default"),
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        path = input.get("path", ".")
        entries = await to_thread.run_sync(_entries, self.resolve(path), path)
        if not entries:
            return ToolOutput("(empty)")
        shown = entries[: int(input.get("limit", LIMIT))]
        return listing_output(self, shown, entries, LsToolDetails, of=count(len(entries), "entry"))


def _entries(path: str, label: str) -> list[str]:
    with refusing("list", label):
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise Refused(f"{label} is not a directory; use read to see a file")
        with os.scandir(path) as entries:
            return [_line(entry) for entry in sorted(entries, key=lambda entry: (entry.name.casefold(), entry.name))]


def _line(entry: os.DirEntry[str]) -> str:
    name = printable(entry.name)
    if entry.is_symlink():
        try:
            return f"{name} -> {printable(os.readlink(entry.path))}"
        # Removed or made unreadable a moment ago; the name was in the directory.
        except OSError:
            return f"{name} -> ?"
    return f"{name}/" if entry.is_dir() else name
