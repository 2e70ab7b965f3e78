"""The `find` tool: files by name."""

from __future__ import annotations

import os
from typing import Any

import anyio

from agent_hooks.errors import count, printable
from agent_hooks.host.tools.base import (
    SEARCH_SECONDS,
    BuiltinTool,
    Refused,
    exclude_schema,
    listing_output,
    number_schema,
    object_schema,
    text_schema,
    with_line,
)
from agent_hooks.host.tools.listing import excluding, list_files
from agent_hooks.storage.files import refusing
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import FindToolDetails, OnUpdate

LIMIT = 1000
"""The files in the output by default."""


class FindTool(BuiltinTool):
    """Finds files by a glob."""

    name = "find"
    description = (
        "Find files below a directory by a glob, for example *.py or src/**/*.ts; files that .gitignore names are left "
        "out."
    )
    input_schema = object_schema(
        ["pattern"],
        pattern=text_schema("A glob for the path below the directory; without a / it matches the name alone"),
        path=text_schema("The directory to search; the working directory by default"),
        exclude=exclude_schema(),
        limit=number_schema(f"Number of files to show; {LIMIT} by default"),
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        path = input.get("path", ".")
        directory = self.resolve(path)
        with refusing("search", path):
            os.stat(directory)
        if not os.path.isdir(directory):
            raise Refused(f"{path} is not a directory; give the directory to search")
        files: list[str] = []
        left_out = excluding(input.get("exclude", ()), directory, self.cwd)
        with anyio.move_on_after(SEARCH_SECONDS) as deadline:
            files = await list_files(directory, input["pattern"], left_out)
        if deadline.cancelled_caught:
            raise Refused(f"find took more than {SEARCH_SECONDS:g} s in {path}; search a smaller directory")
        found = [printable(name) for name in files]
        shown = found[: int(input.get("limit", LIMIT))]
        output = listing_output(self, shown, found, FindToolDetails, of=count(len(found), "file"))
        text = output.text or "no files found"
        return ToolOutput(with_line(text, left_out.note()) if left_out.count else text, output.details)
