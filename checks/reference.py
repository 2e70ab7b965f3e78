"""`python -m checks.reference [--check]`: write docs/reference.md from docstrings, and tables of docs/coming-from.md.

With `--check`, nothing is written, and the exit code is 1 when a page is stale.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from msgspec import NODEFAULT, UNSET, Struct

import agent_hooks
from agent_hooks.dispatch import forms
from agent_hooks.dispatch.interceptors import ALIASES
from agent_hooks.dispatch.points import POINTS, Point
from agent_hooks.dispatch.table import SPECS, EventSpec
from agent_hooks.values.answers import Answer
from agent_hooks.values.events import EVENTS
from agent_hooks.values.near import NearMiss
from agent_hooks.values.spellings import SPELLINGS

DOCS = Path(__file__).parent.parent / "docs"
REFERENCE, COMING = DOCS / "reference.md", DOCS / "coming-from.md"

COMMON = {
    "tool_name": "the tool, by our name: `bash`, `read`, `write`, `edit`, `ls`, `find`, `grep`, or a tool of yours",
    "tool_call_id": "the id of the call, unique in the session",
    "input": "the arguments of the call, in the spelling of the tool's schema, read-only",
    "params": "the same as `input`",
    "args": "the same as `input`",
    "content": "a list of blocks; wherever you give it, a text counts as one block",
    "details": "what the tool tells of its result beside the text, for hooks and screens; `None` without any",
    "is_error": "whether the tool failed",
    "timestamp": "of an event or a message, Unix milliseconds; of an entry, ISO 8601 in UTC",
    "agent_id": "the agent that works; `main` is the main agent",
    "session_key": "the id of the session",
    "provider": "the provider of the model, `anthropic` for example",
    "model": "the model's id",
    "reason": "why, in a sentence",
    "block": "whether the action is blocked",
    "block_reason": "the reason of a block",
    "message": "of an entry or an event, the whole message; at a point, its text",
    "summary": "the text that stands for older messages",
    "text": "the text",
    "hook": "the path of the hook",
    "path": "the path as it was given",
}
"""The fields that many classes have, and that no docstring explains again."""

_SIGNATURES = {
    "HookAPI.on": "on(event, handler=None, *, priority=0, tool=None, on_error=None, inline=False)",
    "HookAPI.intercept": "intercept(point, handler=None, *, id=None, priority=0, tool=None, agent=None)",
}
_INTERNAL = {"HookAPI": {"changed", "bind", "adopt", "adopting", "refuse_when_ended", "unload"}}
"""Methods that the loader and the runner call."""
_LONGEST_CELL = 300  # characters of a docstring
_CALLED = {
    "HookAPI": "api",
    "HookContext": "ctx",
    "HookUI": "ctx.ui",
    "HookRunner": "runner",
    "InterceptorRegistry": "registry",
    "UI": "ui",
    "SilentUI": "ui",
    "Tool": "tool",
    "Guard": "guard",
    "Effects": "event.effects",
}


class Section(NamedTuple):
    """A part of the page: a heading, a sentence below it, and the names of the package that it explains."""

    heading: str
    begins: str
    names: tuple[str, ...]


_EVENT_NAMES = tuple(event.__name__ for event in EVENTS)
SECTIONS = (
    Section("The api", "`register(api)` gets it.", ("HookAPI", "Handler")),
    Section(
        "The context", "Each handler gets it as its second argument, `ctx`.", ("HookContext", "HookUI", "ExecResult")
    ),
    Section(
        "Events",
        "An event is read-only. `api.on(name, handler)` subscribes to it by its name.",
        ("Event", *_EVENT_NAMES, "ForeignEvent", "CutPoint", "ModelRef"),
    ),
    Section(
        "Answers",
        "A handler returns one of these, its mapping form, or `None` for no opinion.",
        (
            "Answer",
            *("Block", "Ask", "Rewrite", "Replace", "AddContext", "Stop", "Continue", "Cancel"),
            *("SkipConversationRestore", "Compaction"),
        ),
    ),
    Section(
        "Points",
        "`api.intercept(point, handler)` steps in there. The handler gets `(input, output)`, or `(input, output, ctx)`, "
        "and changes `output`.",
        (
            *(each.__name__ for point in POINTS.values() for each in (point.input, point.output)),
            *("Interceptor", "InterceptorRegistry"),
            *("initialize_interceptors", "get_interceptors", "reset_interceptors"),
        ),
    ),
    Section(
        "Content, messages and entries",
        "The parts of a conversation. In JSON, their fields are in camelCase.",
        (
            *("TextContent", "ImageContent", "ThinkingContent", "ToolCallContent"),
            *("UserMessage", "AssistantMessage", "ToolResultMessage", "Usage", "Attachment"),
            *("SessionHeader", "MessageEntry", "ModelChangeEntry", "ThinkingLevelChangeEntry", "CompactionEntry"),
        ),
    ),
    Section(
        "Tools",
        "A tool is a typed function, or an object with these parts.",
        (
            *("Tool", "ToolOutput", "ToolDetails", "BashToolDetails", "ReadToolDetails", "LsToolDetails"),
            *("FindToolDetails", "GrepToolDetails", "Truncation"),
            *(name for name in agent_hooks.__all__ if name.startswith("is_")),
        ),
    ),
    Section(
        "Effects",
        "The answer to the question of what a call would do: see [effects](effects.md).",
        (
            *("effects_of", "Effects", "PathEffect", "Place", "Program", "Transfer", "Device", "Discard", "Install"),
            *("Kill", "Privilege", "Unknown"),
        ),
    ),
    Section(
        "Loading and running",
        "For programs with an agent loop of their own: see [embedding](embedding.md).",
        (
            *("discover_and_load_hooks", "load_hooks", "load_settings", "LoadResult", "LoadedHook", "LoadError"),
            *("HookRunner", "HandlerStats", "Reloaded", "wrap_tool", "wrap_tools", "Settings", "Trust"),
            *("UI", "SilentUI", "Guard", "GuardedCall"),
        ),
    ),
    Section(
        "Errors",
        "The package raises these; `HookError` is a record for listeners, and no exception.",
        tuple(name for name in agent_hooks.__all__ if name.endswith("Error") and name != "LoadError"),
    ),
)


# ---- the page


def reference() -> str:
    """Return the text of docs/reference.md."""
    begins = (
        "Every event, answer, point and method, written by `python -m checks.reference` from the docstrings. "
        "[Writing hooks](hooks.md) explains how they work together, and [coming from another agent](coming-from.md) "
        "has the names of other agents."
    )
    parts = [
        "# Reference",
        begins,
        " · ".join(f"[{each.heading}](#{_anchor(each.heading)})" for each in SECTIONS),
        "## Fields of many classes",
        _table(("field", "meaning"), ((f"`{name}`", text) for name, text in COMMON.items())),
    ]
    for section in SECTIONS:
        parts += [f"## {section.heading}", section.begins]
        parts += _TABLES.get(section.heading, list)()
        for name in dict.fromkeys(section.names):
            parts += _entry(name, getattr(agent_hooks, name))
    return "\n\n".join(parts) + "\n"


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z ]", "", heading.lower()).replace(" ", "-")


def _entry(name: str, thing: Any) -> list[str]:
    """Return the heading of one name, its docstring, its fields and its methods."""
    if not isinstance(thing, type):
        sign = f"{name}{_signature(thing)}" if isinstance(thing, FunctionType) else name
        return [f"### `{sign}`", *_doc(thing)]
    fields = list(_fields(thing))
    parts = [f"### {_title(name, thing)}", *_doc(thing)]
    if fields:
        parts.append(_table(("field", "type", "default"), fields))
    members = list(_members(name, thing))
    if members and all(len(text) < _LONGEST_CELL for _, text in members):
        parts.append(_table(("", "does"), ((sign, " ".join(text.split())) for sign, text in members)))
    else:
        parts += [part for sign, text in members for part in (f"#### {sign}", text)]
    return parts


def _title(name: str, kind: Any) -> str:
    if kind in EVENTS:
        return f"`{kind.type}`: {name}"
    return f"`{name}`"


def _doc(thing: Any) -> list[str]:
    """Return the paragraphs of a docstring; two spaces after a sentence are one on a page."""
    return [re.sub(r"(?<=[.:!?`]) {2}(?=\S)", " ", inspect.getdoc(thing) or "")]


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    if not issubclass(kind, Struct):
        return
    notes: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        notes |= inspect.get_annotations(each)
    # `msgspec.structs.fields` would evaluate the annotations, of which some are for type checkers only.
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    known = dict(zip(reversed(names), reversed(defaults), strict=False))
    for name in names:
        if not name.startswith("_") and name != "unawaited":
            yield f"`{name}`", f"`{_text_of_type(notes[name])}`", _default(known.get(name, NODEFAULT))


def _default(default: Any) -> str:
    if default is NODEFAULT:
        return ""
    value = default.factory() if hasattr(default, "factory") else default
    if value is UNSET:
        return "as it is"
    # The address of an object is another one each time.
    return f"`{type(value).__name__}()`" if " object at " in repr(value) else f"`{value!r}`"


def _text_of_type(note: Any) -> str:
    return str(note).replace("|", "\\|") if isinstance(note, str) else inspect.formatannotation(note)


def public_members(name: str, kind: type) -> dict[str, Any]:
    """Return the public methods and properties of a class, with those of its bases in the package."""
    found: dict[str, Any] = {}
    bases = [each for each in reversed(kind.__mro__) if each.__module__.startswith("agent_hooks.")]
    for each in bases:
        for member, value in vars(each).items():
            public = not member.startswith("_") and member not in _INTERNAL.get(name, ())
            if public and isinstance(value, property | FunctionType | classmethod) and inspect.getdoc(value):
                found[member] = value
    hidden = ("keys", "route", "with_effects", "with_keys", "rewritten")
    return {
        member: value for member, value in found.items() if member not in hidden and not isinstance(value, NearMiss)
    }


def _members(name: str, kind: type) -> Iterator[tuple[str, str]]:
    prefix = _CALLED.get(name, "")
    for member, value in public_members(name, kind).items():
        sign = ""
        if not isinstance(value, property):
            function = value.__func__ if isinstance(value, classmethod) else value
            sign = _SIGNATURES.get(f"{name}.{member}", f"{member}{_signature(function)}").removeprefix(member)
        awaited = "await " if inspect.iscoroutinefunction(value) or _is_pending(value) else ""
        yield f"`{awaited}{prefix}{'.' if prefix else ''}{member}{sign}`", _doc(value)[0]


def _is_pending(value: object) -> bool:
    return isinstance(value, FunctionType) and str(value.__annotations__.get("return", "")).startswith("Pending")


def _signature(function: Callable[..., Any]) -> str:
    """Return the arguments of a function as its author wrote them, without `self` and types of one word each."""
    shown, starred = [], False
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "cls") or each.annotation == "Never":
            continue
        if each.kind is each.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        if each.kind is each.VAR_POSITIONAL:
            starred = True
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        default = "" if each.default is each.empty else f"={_shown(each.default)}"
        shown.append(f"{stars}{each.name}{default}")
    return f"({', '.join(shown)})"


def _shown(default: object) -> str:
    return "…" if "object at" in repr(default) or isinstance(default, Struct) else repr(default)


# ---- tables


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _events() -> list[str]:
    rows = ((f"`{name.replace(':', '` `')}`", *_of_spec(spec)) for name, spec in SPECS.items() if name not in POINTS)
    return [
        "A failing handler blocks the event, or is reported only; `on_error` changes that where an event can be blocked.",
        _table(("event", "answers", "deadline", "a failing handler"), rows),
    ]


def _of_spec(spec: EventSpec) -> tuple[str, str, str]:
    answers = ", ".join(f"`{each.__name__}`" for each in spec.answers if issubclass(each, Answer)) or "-"
    if not spec.can_block:
        fails = "is reported"
    else:
        fails = "**blocks**" if spec.on_error == "block" else 'is reported; with `on_error="block"` it blocks'
    return answers, _deadline(spec), fails


def _deadline(spec: EventSpec) -> str:
    if spec.total is not None:
        return f"{spec.total:g} s for all handlers"
    return {"hook_timeout": "`hookTimeout`", "tool_call_timeout": "`toolCallTimeout`"}.get(str(spec.deadline), "none")


def _forms() -> list[str]:
    kinds = [each for each in vars(forms).values() if isinstance(each, type) and each.__name__.endswith("Wire")]
    rows = ((", ".join(_takers(each)), f"{' '.join((inspect.getdoc(each) or '').split())}") for each in kinds)
    return ["The mapping forms, by event:", _table(("event", "mapping"), (row for row in rows if row[0]))]


def _takers(form: type) -> list[str]:
    return list(dict.fromkeys(f"`{name.replace(':', '` `')}`" for name, spec in SPECS.items() if spec.wire is form))


def _points() -> list[str]:
    others = {ours: theirs for theirs, ours in ALIASES.items()}
    rows = (
        (
            f"`{point.name}`",
            point.when,
            _listed(point, point.input),
            _listed(point, point.output),
            point.matched,
            "yes" if point.blocks else "",
            f"`{others[point.name]}`" if point.name in others else "",
        )
        for point in POINTS.values()
    )
    return [_table(("point", "when", "input", "output", "matcher", "can block", "also called"), rows)]


def _listed(point: Point, kind: type[Struct]) -> str:
    return ", ".join(f"`{name}`" for name in point.fields(kind)) or "-"


_TABLES: dict[str, Callable[[], list[str]]] = {"Events": _events, "Answers": _forms, "Points": _points}


# ---- the page about coming from another agent


def coming(page: str) -> str:
    """Return docs/coming-from.md with its tables written anew from the spellings; each stands between two comments."""
    for agent in dict.fromkeys(agent for agent, _, _ in SPELLINGS):
        rows = ((f"`{theirs}`", f"`{ours}`") for each, theirs, ours in SPELLINGS if each == agent)
        mark = f"<!-- spellings: {agent} -->"
        begin, _, rest = page.partition(mark)
        _, end, rest = rest.partition("<!-- end -->")
        page = f"{begin}{mark}\n\n{_table((agent, 'here'), rows)}\n\n{end}{rest}"
    return page


def stale() -> list[str]:
    """Return the names of the pages that differ from what would be written."""
    pages = {REFERENCE: reference(), COMING: coming(COMING.read_text())}
    return [path.name for path, text in pages.items() if not path.exists() or path.read_text() != text]


def main(args: list[str]) -> int:
    """Write the pages, or tell which are stale."""
    if "--check" in args:
        if found := stale():
            print(f"stale: {', '.join(found)}; run: python -m checks.reference")
        return 1 if found else 0
    REFERENCE.write_text(reference())
    COMING.write_text(coming(COMING.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
