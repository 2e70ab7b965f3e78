"""`add_default_excludes`: leaves files out of the results of a tool, if their names match a glob.

As in `exclude_directories`, a tool with a list argument `exclude` gets the globs in it, and the output of any other tool
is filtered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from agent_hooks.transformers.exclusion import name_matcher, with_excludes, without
from agent_hooks.values.content import ContentBlock

NEEDS_ARGUMENT = "exclude"


class Config(Struct, forbid_unknown_fields=True):
    """`glob_excludes`: globs for names of files; `root`: as in `exclude_directories`."""

    glob_excludes: list[str] = field(default_factory=list)
    root: str = ""


def transform(tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Add the globs to `exclude`."""
    return with_excludes(tool_input, NEEDS_ARGUMENT, config.get("glob_excludes", []))


def filter_output(
    tool_input: dict[str, Any], content: Sequence[ContentBlock], config: dict[str, Any]
) -> Sequence[ContentBlock]:
    """Remove the lines that come from matching files."""
    if not config.get("glob_excludes"):
        return content
    fits = name_matcher(config["glob_excludes"])
    return without(lambda path: fits(path.rstrip("/").rpartition("/")[2]), tool_input, content, config.get("root", ""))
