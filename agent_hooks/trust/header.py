"""The header of a hook (PEP 723): the comments that name its dependencies and the Python that it needs.

    # /// script
    # requires-python = ">=3.11"
    # dependencies = ["httpx<1"]
    # ///

The lock file beside the hook, `gate.py.lock` for `gate.py`, names the version of each package; `uv lock --script` writes
it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from agent_hooks.errors import AgentHooksError

LOCK = ".lock"
"""The lock file of a hook has the hook's name with this behind it."""
ENVIRONMENTS = "environments"
"""The directory of the agent home that holds the packages of hooks."""
MADE = os.path.join(ENVIRONMENTS, "made")
"""The file of the agent home that is written each time when packages are there that were not there before."""
_MARK = b"# /// script"
# These are compiled at their first use: most processes meet no header.
_HEAD = rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])# /// script(?=[\r\n]|\Z)"
_ANY_HEAD = r"# /// [a-zA-Z0-9-]+"
_SCRIPT = _MARK.decode()
_END = "# ///"
_LINE_END = r"\r\n|\r|\n"


class HeaderError(AgentHooksError):
    """A header cannot be read; `line`: the line where it begins."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(f"its header (# /// script) {text}")
        self.line = line


class Header(Struct, frozen=True):
    """The header of a hook: its text as it stands in the file, and the packages that it asks for."""

    text: str
    dependencies: tuple[str, ...] = ()


def has_header(source: bytes) -> bool:
    """Tell whether a file has the head of a header, at the beginning of a line."""
    # Most hooks have none, and this search is the faster one.
    return _MARK in source and re.search(_HEAD, source) is not None


def header_of(source: bytes) -> Header | None:
    """Return the header of a file, `None` without one.  Raises `HeaderError` for one that cannot be read."""
    if not has_header(source):
        return None
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise HeaderError(f"cannot be read, because the file is not UTF-8 (byte {exc.start})", 1) from None
    found = list(blocks(text))
    if not found:
        raise HeaderError(f"has no end: write a line {_END}, and only comments before it", _line_of(source))
    if len(found) > 1:
        raise HeaderError("stands twice; a file has one", found[1][0])
    line, content = found[0]
    table = _table(line, content)
    named = table.get("dependencies", [])
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise HeaderError('needs a list of texts as dependencies: dependencies = ["httpx<1"]', line)
    lines = (f"# {each}".rstrip() for each in content.split("\n"))
    return Header("\n".join([_SCRIPT, *lines, _END, ""]), tuple(named))


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header in a text: the line of its head, and its contents without the signs of comments.

    It is the comments behind a head, up to the last end among them.
    """
    comments: list[str] = []
    for number, line in enumerate([*re.split(_LINE_END, text), ""], 1):
        if line == "#" or line.startswith("# "):
            comments.append(line)
            continue
        head = next((at for at, each in enumerate(comments) if re.fullmatch(_ANY_HEAD, each)), None)
        ends = [at for at, each in enumerate(comments) if each == _END]
        if head is not None and ends and ends[-1] > head and comments[head] == _SCRIPT:
            content = "\n".join(each[2:] for each in comments[head + 1 : ends[-1]])
            yield number - len(comments) + head, content
        comments = []


def _table(line: int, content: str) -> dict[str, Any]:
    # Imported here, because most hooks have no header.
    import tomllib

    try:
        return tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise HeaderError(f"is no TOML: {exc}", line) from None


def _line_of(source: bytes) -> int:
    found = re.search(_HEAD, source)
    assert found is not None, "the caller has found it"
    return len(re.split(_LINE_END, source[: found.end()].decode("latin-1")))
