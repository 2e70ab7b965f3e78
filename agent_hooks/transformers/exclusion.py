"""Which lines of a tool's text come from somewhere that is excluded.  Shared by the transformers that exclude.

A tool's text has no structure, so a line counts as *from* a path when it begins with it: `find` and `ls` lines, `grep`'s
`path:12: text`, `ls -l`, `du`, `git status --short`, trees.  A sentence that only mentions a path stays.
Above: exclude_directories, add_default_excludes.  Below: content.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_hooks.values.content import ContentBlock, TextContent

Excluded = Callable[[str], bool]  # tells of a path; a directory's ends with `/`

# what stands before the path in a line of `tree`, `ls -l`, `du` or `git status --short`
_LEADER = re.compile(
    r"""[ \t]*(?:
        [│├└─|`\xa0 ]*(?:──|--)[ ]
      | [-dlbcps][-rwxsStT]{9}[.+@]?[ ]+\d+[ ]+\S+[ ]+\S+[ ]+[\d.,]+[KMGTP]?[ ]+\S+[ ]+\S+[ ]+\S+[ ](?=\S)
      | [\d.]+[KMGTP]?\t
      | [ MADRCTU?!]{2}[ ](?=\S)
    )?[ \t]*""",
    re.VERBOSE,
)
_ROOTED = re.compile(r"(?:/|\./|\.\./|~/)[^:]*")  # such a path may hold spaces
_WORD = re.compile(r"[^\s:]+")
_ARGUMENTS = ("path", "file_path", "directory")  # where tools are told to look


def name_matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether one name fits any of the globs."""
    matches = [re.compile(fnmatch.translate(pattern.strip("/"))).match for pattern in patterns]
    return lambda name: any(match(name) for match in matches)


def without(
    excluded: Excluded, tool_input: Mapping[str, Any], content: Sequence[ContentBlock], root: str
) -> list[ContentBlock]:
    """Return the content without the lines from an excluded path; an empty text when the call itself was about one."""
    asked = [tool_input[name] for name in _ARGUMENTS if isinstance(tool_input.get(name), str)]
    if any(excluded(f"{_below(root, path)}/") for path in asked):
        return [TextContent("")]  # it is still a result; what says why comes below it
    return [
        TextContent(_filtered(excluded, block.text, root)) if isinstance(block, TextContent) else block
        for block in content
    ]


def _filtered(excluded: Excluded, text: str, root: str) -> str:
    kept: list[str] = []
    in_section = False  # what `ls -R` lists below a heading, up to an empty line
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
    """Return the path that a line begins with; one that is all of the line, a directory perhaps, ends with `/`."""
    rest = line[_LEADER.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    rest = rest.partition(" -> ")[0]
    path = _ROOTED.match(rest) or _WORD.match(rest)
    if path is None:
        return ""
    return f"{path[0].rstrip('/')}/" if path[0] == rest.removesuffix(":") else path[0]


def _below(root: str, path: str) -> str:
    """Return a path as seen from `root`, when it lies below it: what is above the project never counts."""
    slash = "/" * path.endswith("/")
    path = posixpath.normpath(path)
    if root and (path + "/").startswith(root.rstrip("/") + "/"):
        path = path[len(root.rstrip("/")) :].lstrip("/") or "."
    return path + slash
