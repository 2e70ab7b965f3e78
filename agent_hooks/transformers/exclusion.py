"""Removal of the lines of a tool's output that come from excluded paths; shared by the transformers that exclude.

A tool's text has no structure, so a line counts as coming from a path when it begins with the path: lines of `find` and
`ls`, `path:12: text` of `grep`, `ls -l`, `du`, `git status --short`, trees.  A sentence that only mentions a path stays.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_hooks.values.content import ContentBlock, TextContent

Excluded = Callable[[str], bool]
"""Returns whether a path is excluded; the path of a directory ends with `/`."""

# The text before the path in a line of `tree`, `ls -l`, `du` or `git status --short`.
_LEADER = re.compile(
    r"""[ \t]*(?:
        [│├└─|`\xa0 ]*(?:──|--)[ ]
      | [-dlbcps][-rwxsStT]{9}[.+@]?[ ]+\d+[ ]+\S+[ ]+\S+[ ]+[\d.,]+[KMGTP]?[ ]+\S+[ ]+\S+[ ]+\S+[ ](?=\S)
      | [\d.]+[KMGTP]?\t
      | [ MADRCTU?!]{2}[ ](?=\S)
    )?[ \t]*""",
    re.VERBOSE,
)
# A path of this form may hold spaces.
_ROOTED = re.compile(r"(?:/|\./|\.\./|~/)[^:]*")
_WORD = re.compile(r"[^\s:]+")
# Arguments of tools that name the directory or file to search.
_ARGUMENTS = ("path", "file_path", "directory")


def with_excludes(tool_input: dict[str, Any], argument: str, patterns: Iterable[str]) -> dict[str, Any]:
    """Return the input with the patterns added to its list `argument`; the given input when all are in it."""
    given = tool_input.get(argument, [])
    new = [pattern for pattern in dict.fromkeys(patterns) if pattern not in given]
    return {**tool_input, argument: [*given, *new]} if new else tool_input


def name_matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that returns whether a name matches any of the globs."""
    matches = [re.compile(fnmatch.translate(pattern.strip("/"))).match for pattern in patterns]
    return lambda name: any(match(name) for match in matches)


def without(
    excluded: Excluded, tool_input: Mapping[str, Any], content: Sequence[ContentBlock], root: str
) -> list[ContentBlock]:
    """Return the content without the lines that come from excluded paths.

    When the call itself names an excluded path, the content is one empty text.
    """
    given = [tool_input[name] for name in _ARGUMENTS if isinstance(tool_input.get(name), str)]
    if any(excluded(f"{_below(root, path)}/") for path in given):
        # A note with the reason is added below this result.
        return [TextContent("")]
    return [
        TextContent(_filtered(excluded, block.text, root)) if isinstance(block, TextContent) else block
        for block in content
    ]


def _filtered(excluded: Excluded, text: str, root: str) -> str:
    kept: list[str] = []
    # `ls -R` lists a directory below a heading, up to an empty line.
    in_section = False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip()
        in_section = in_section and bool(bare)
        path = _path_of(bare)
        if in_section or (path and excluded(_below(root, path))):
            in_section = in_section or bare == f"{path.rstrip('/')}:"
        else:
            kept.append(line)
    return text if len(kept) == len(text.splitlines()) else "".join(kept).rstrip("\n")


def _path_of(line: str) -> str:
    """Return the path that a line begins with.

    A path that takes the whole line may be a directory, so it ends with `/`.
    """
    rest = line[_LEADER.match(line).end() :]  # type: ignore[union-attr]  # matches the empty text
    rest = rest.partition(" -> ")[0]
    path = _ROOTED.match(rest) or _WORD.match(rest)
    if path is None:
        return ""
    return f"{path[0].rstrip('/')}/" if path[0] == rest.removesuffix(":") else path[0]


def _below(root: str, path: str) -> str:
    """Return a path relative to `root` when it lies below it, so that directories above the project never match."""
    slash = "/" * path.endswith("/")
    path = posixpath.normpath(path)
    if root and (path + "/").startswith(root.rstrip("/") + "/"):
        path = path[len(root.rstrip("/")) :].lstrip("/") or "."
    return path + slash
