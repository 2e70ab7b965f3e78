"""`exclude_directories`: leaves directories out of the results of a tool.

A tool with a list argument `exclude` gets the directories in it.  From the output of any other tool, the lines that come
from these directories are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from agent_hooks.transformers.exclusion import name_matcher, with_excludes, without
from agent_hooks.values.content import ContentBlock

NEEDS_ARGUMENT = "exclude"


class Config(Struct, forbid_unknown_fields=True):
    """`patterns`: names or globs of directories; `root`: directories above it never match; the project by default."""

    patterns: list[str] = field(default_factory=list)
    root: str = ""


def transform(tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Add the directories to `exclude`."""
    directories = [f"{pattern.rstrip('/')}/" for pattern in config.get("patterns", [])]
    return with_excludes(tool_input, NEEDS_ARGUMENT, directories)


def filter_output(
    tool_input: dict[str, Any], content: Sequence[ContentBlock], config: dict[str, Any]
) -> Sequence[ContentBlock]:
    """Remove the lines that come from these directories."""
    if not config.get("patterns"):
        return content
    fits = name_matcher(config["patterns"])

    def excluded(path: str) -> bool:
        return any(fits(name) for name in path.split("/")[:-1])

    return without(excluded, tool_input, content, config.get("root", ""))
