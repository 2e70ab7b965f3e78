"""The arguments of `api.on`, `api.send` and `api.register_tool`: checked where they are given, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from agent_hooks.dispatch.interceptors import ALIASES
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import EVENT_NAMES, TOOL_EVENTS, rows_of
from agent_hooks.errors import HookUsageError, did_you_mean, shown
from agent_hooks.hooks.options import ToolOptions
from agent_hooks.values.content import Attachment
from agent_hooks.values.spellings import remedy, spelled


def check_on(event: str, options: Mapping[str, object]) -> None:
    """Raise `HookUsageError` for arguments of `api.on` that cannot work."""
    if callable(event):
        raise HookUsageError('api.on: which event? Write @api.on("tool_call"), with parentheses')
    if isinstance(event, str) and ALIASES.get(event, event) in POINTS:
        raise HookUsageError(f"api.on: {event!r} is a point, not an event: api.intercept({event!r}, …)")
    given: object = event
    if isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        raise HookUsageError("api.on takes one event: subscribe to each of them by a call of its own")
    if event not in EVENT_NAMES:
        near = remedy('api.on("', event) or _of_session(event) or did_you_mean(event, EVENT_NAMES)
        raise HookUsageError(f"api.on: unknown event {event!r}{near}")
    where = f"api.on({event!r})"
    known = ToolOptions.__annotations__
    for name, value in options.items():
        if name not in known:
            near = remedy("api.on(…, ", name) or did_you_mean(name, known)
            raise HookUsageError(f"{where}: unknown option {name!r}{near}")
        if name == "priority" and (isinstance(value, bool) or not isinstance(value, int)):
            raise HookUsageError(f"{where}: priority wants an int, not {shown(value)}")
    if (on_error := options.get("on_error")) not in (None, "block", "continue"):
        raise HookUsageError(f'{where}: on_error is "block" or "continue", not {shown(on_error)}')
    if on_error == "block" and not any(row.can_block for row in rows_of(event)):
        raise HookUsageError(f'{where}: on_error="block" cannot work: nothing can be blocked on {event}')
    if (tool := options.get("tool")) is not None:
        if event not in TOOL_EVENTS:
            raise HookUsageError(f"{where}: only tool events take tool=; {event} has no tool")
        _check_matcher(where, tool)


def _of_session(event: object) -> str:
    """Return the remedy for `session:before_clear`, the name of a row; empty for any other name."""
    name, colon, reason = str(event).partition(":")
    return f'; write api.on("session"), with event.reason == "{reason}"' if (name, colon) == ("session", ":") else ""


def check_point(point: object) -> None:
    """Raise `HookUsageError` for an event in the place of a point of `api.intercept`."""
    if callable(point):
        raise HookUsageError('api.intercept: which point? Write @api.intercept("tool.before"), with parentheses')
    if point in EVENT_NAMES or _of_session(point):
        raise HookUsageError(f"api.intercept: {point!r} is an event, not a point: api.on({str(point)!r}, …)")


def are_options(handler: object) -> bool:
    """Tell whether a mapping of options stands in the place of a handler."""
    known = {*ToolOptions.__annotations__, *spelled("api.on(…, ")}
    return isinstance(handler, dict) and not known.isdisjoint(handler)


def refuse_more(where: str, options: Iterable[str], wrong: Sequence[object]) -> NoReturn:
    """Raise `HookUsageError` for arguments behind the handler, where other agents take a mapping of options."""
    names = ", ".join(f"{name}=…" for name in options)
    timeout = isinstance(wrong[0], Mapping) and "timeout" in wrong[0]
    setting = remedy("api.on(…, ", "timeout") if timeout else ""
    raise HookUsageError(f"{where} takes its options by name: write {names} in place of {shown(wrong[0])}{setting}")


def check_attachments(attachments: Sequence[object]) -> None:
    """Raise `HookUsageError` for attachments of `api.send` that no model can read."""
    if not attachments:
        return
    # Imported here, because it takes a millisecond, and few messages have attachments.
    from base64 import b64decode

    for each in attachments:
        if not isinstance(each, Attachment):
            raise HookUsageError(f"api.send(attachments) wants Attachment(...) values, not {shown(each)}")
        try:
            b64decode(each.content, validate=True)
        # No model can read such a file, and the session could not be resumed.
        except ValueError as exc:
            raise HookUsageError(
                f"api.send(attachments): the content of {each.file_name} is no base64: {exc}"
            ) from None


def _is_text_pattern(part: object) -> bool:
    return isinstance(part, re.Pattern) and isinstance(part.pattern, str)


def _check_matcher(where: str, tool: object) -> None:
    # One exact name is the most common matcher.
    if type(tool) is str and tool:
        return
    parts = tool if isinstance(tool, Sequence) and not isinstance(tool, str) else [tool]
    if not parts or not all((isinstance(part, str) and part) or _is_text_pattern(part) for part in parts):
        raise HookUsageError(f"{where}: tool= wants a name, a compiled pattern or a list of those, not {shown(tool)}")
