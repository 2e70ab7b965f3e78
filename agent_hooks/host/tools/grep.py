"""The `grep` tool: lines that match a regular expression of Python, in the files that `find` would list.

1. The engine is always Python's `re`: ripgrep and git grep have other dialects, and the output must not depend on the
   installed programs.  git only lists the files.
2. The search runs in a process of its own (`search.py`): `re` holds the interpreter's lock while it searches, so a thread
   with a catastrophic pattern would stop the whole program, and a thread cannot be ended.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import tempfile
from typing import Any

import anyio
from anyio import to_thread

import agent_hooks.host.tools.search as search
from agent_hooks.concurrency.process import stream
from agent_hooks.errors import count, os_reason, printable
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
from agent_hooks.host.tools.listing import Excluding, excluding, list_files
from agent_hooks.storage.files import check_regular, refusing
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import GrepToolDetails, OnUpdate

LIMIT = 100
"""The matches in the output by default."""
OUTPUT_LIMIT = 10 * 1024 * 1024
"""The search stops when the found lines have more bytes."""


class GrepTool(BuiltinTool):
    """Finds lines in files."""

    name = "grep"
    description = (
        "Search files for a regular expression (Python syntax) or a literal text; answers path:line: text. Files that "
        ".gitignore names and binary files are left out."
    )
    input_schema = object_schema(
        ["pattern"],
        pattern=text_schema("A regular expression, or a text if literal"),
        path=text_schema("The directory or file to search; the working directory by default"),
        glob=text_schema("Search only files that fit this glob, for example *.py"),
        exclude=exclude_schema(),
        ignoreCase={"type": "boolean", "description": "Take capital and small letters as the same"},
        literal={"type": "boolean", "description": "Take the pattern as plain text"},
        context=number_schema("Lines to show above and below a match; 0 by default", 0),
        limit=number_schema(f"Number of matches to show; {LIMIT} by default"),
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        pattern = input["pattern"]
        found = _Found()
        left_out = excluding(input.get("exclude", ()), self.resolve(input.get("path", ".")), self.cwd)
        with anyio.move_on_after(SEARCH_SECONDS) as deadline:
            job = {
                "pattern": re.escape(pattern) if input.get("literal") else pattern,
                "ignore_case": bool(input.get("ignoreCase")),
                "context": int(input.get("context", 0)),
                "limit": int(input.get("limit", LIMIT)),
                "files": await self._files(input.get("path", "."), input.get("glob"), left_out),
            }
            await _run(job, self.cwd, found)
        stopped = ""
        if deadline.cancelled_caught:
            stopped = f"[stopped after {SEARCH_SECONDS:g} s; use a simpler pattern, a path or a glob]"
        elif found.too_much:
            stopped = f"[stopped after {OUTPUT_LIMIT // 1024 // 1024} MiB of matches; use a narrower pattern]"
        output = self._output(found, job_limit=int(input.get("limit", LIMIT)), stopped=stopped)
        text = with_line(output.text, left_out.note()) if left_out.count else output.text
        return ToolOutput(text, output.details, output.is_error)

    def _output(self, found: _Found, *, job_limit: int, stopped: str) -> ToolOutput:
        lines = found.lines()
        matches = sum(line[0] in "SR" for line in lines)
        if not lines:
            return ToolOutput(stopped or "no matches", is_error=bool(stopped))
        shown = [line[1:] for line in lines if line[0] in "Ss"]
        output = listing_output(self, shown, [line[1:] for line in lines], GrepToolDetails, of=count(matches, "match"))
        if not stopped:
            return output
        # A search that was stopped is no error when it has found the number of matches that the model asked for.
        return ToolOutput(with_line(output.text, stopped), output.details, is_error=matches < job_limit)

    async def _files(self, path: str, pattern: str | None, left_out: Excluding) -> list[tuple[str, str]]:
        """Return the files to search, each as its absolute path and its name in the output."""
        top = os.path.realpath(self.resolve(path))
        with refusing("search", path):
            status = os.stat(top)
        if not stat.S_ISDIR(status.st_mode):
            check_regular(status, path)
            return [] if left_out("") else [(top, printable(path))]
        names = await list_files(top, pattern, left_out)
        return [(os.path.join(top, name), printable(name)) for name in names]


class _Found:
    """Takes the output of the child process, up to `OUTPUT_LIMIT`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.too_much = False

    def __call__(self, chunk: bytes) -> bool:
        self._data += chunk
        self.too_much = len(self._data) > OUTPUT_LIMIT
        return self.too_much

    def lines(self) -> list[str]:
        """Return the whole lines so far."""
        return self._data[: self._data.rfind(b"\n") + 1].decode().split("\n")[:-1]

    def text(self) -> str:
        """Return all of it."""
        return self._data.decode("utf-8", "replace")


async def _run(job: dict[str, Any], cwd: str, found: _Found) -> None:
    """Run the search `job` in a child process."""
    with tempfile.NamedTemporaryFile("w", prefix="agent-hooks-grep-", suffix=".json", encoding="ascii") as file:
        await to_thread.run_sync(_save, job, file)
        # With -I, neither PYTHON* variables nor a module in `cwd` change the child's code.
        argv = [sys.executable, "-I", "-W", "ignore", search.__file__, file.name]
        errors = bytearray()
        try:
            code, killed = await stream(argv, cwd=cwd, stdout=found, stderr=errors.extend)
        except OSError as exc:
            raise Refused(f"cannot start {sys.executable}: {os_reason(exc)}") from None
    if code == search.WRONG_PATTERN:
        raise Refused(
            f"the pattern is no valid regular expression: {found.text()}; set literal to search for it as text"
        )
    if code and not killed:
        raise Refused(f"the search failed: {errors.decode('utf-8', 'replace').strip()[-500:]}")


def _save(job: dict[str, Any], file: Any) -> None:
    json.dump(job, file)
    file.flush()
