"""The text of a tool call, for the user who is asked about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from agent_hooks.values.frozen import thaw
from agent_hooks.values.tool import MAIN_ARGUMENT


def call_text(tool: str, arguments: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """Return the whole call, in as many lines as its texts have.

    The tool and its short arguments come first, then the tool's main argument, then each other argument of several lines
    below its name.  A line with characters that no terminal shows is a literal of Python.  `without`: the arguments that
    are shown elsewhere.
    """
    short = {key: value for key, value in thaw(arguments).items() if key not in without}
    main = MAIN_ARGUMENT.get(tool, "")
    text = short.pop(main) if isinstance(short.get(main), str) else None
    long = {key: short.pop(key) for key in [*short] if isinstance(short[key], str) and "\n" in short[key]}
    head = _shown(tool)
    if short or (text is None and not long):
        head = f"{head} {short!r}"
    lines = [head]
    if text is not None:
        first, *others = _lines(text)
        lines = [head, first, *others] if short else [f"{head} {first}", *others]
    for key, value in long.items():
        lines += [f"{_shown(key)}:", *(f"  {line}" for line in _lines(value))]
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    return [_shown(line) for line in text.split("\n")]


def _shown(line: str) -> str:
    return line if line.expandtabs().isprintable() else repr(line)
