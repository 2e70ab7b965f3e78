"""The texts for a handler's exceptions: Python's own, and the remedy for the mistakes that authors of hooks make."""

from __future__ import annotations

import re

from agent_hooks.errors import AgentHooksError, describe, nearest, shown
from agent_hooks.values.answers import (
    AddContext,
    Answer,
    Ask,
    Block,
    Cancel,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    Stop,
)
from agent_hooks.values.frozen import NO_TEXT
from agent_hooks.values.near import camel_case

# The tool whose input has this key, as far as there is only one.
MAIN_ARGUMENT_OF = {"command": "bash", "content": "write", "oldText": "edit", "newText": "edit"}
# The answers as their authors write them.
_FORMS: dict[type[Answer], str] = {
    Block: "Block(reason)",
    Ask: "Ask(title, message)",
    Stop: "Stop(reason)",
    Rewrite: "Rewrite(input)",
    Replace: "Replace(content=…, details=…, is_error=…)",
    AddContext: "AddContext(text)",
    Continue: "Continue(text)",
    Cancel: "Cancel(reason)",
    Compaction: "Compaction(summary, first_kept_entry_index, tokens_before)",
}
# The methods of the context by the names that Python gives them in its errors.
_CALLS = {
    "HookUI.select": "ctx.ui.select(title, options)",
    "HookUI.confirm": "ctx.ui.confirm(title, message)",
    "HookUI.input": "ctx.ui.input(title, placeholder)",
    "HookUI.notify": "ctx.ui.notify(message, type)",
    "HookContext.exec": "ctx.exec(command, args, timeout=…, cwd=…)",
}
# The names of an object, where no near one tells more.
_NAMES = {
    "HookAPI": "api has on, intercept, register_tool, send, state, start_task and on_unload",
    "HookContext": "ctx has agent_id, cwd, exec, has_ui, mode, session_file, session_id, tool_name and ui",
    "HookUI": "ctx.ui has select, confirm, input and notify",
}
# Content that is read as a text, and a part of it: a slice is a plain list.
_OF_CONTENT = ("FrozenList", "Blocks", 'can only concatenate str (not "list") to str', "found list", "got 'list'")
_LIST_AND_TEXT = 'can only concatenate list (not "str") to list'
_WITH_CONTENT = ("content", "message", "messages", "messages_to_summarize")
_ARGUMENTS = re.compile(r"\b(\w+\.\w+)\(\) (?:got an unexpected keyword argument '(\w+)'|takes |missing )")
# The errors of msgspec, which name no class.
_KEYWORD = re.compile(r"Unexpected keyword argument '(\w+)'")
_SET = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_MISSING = re.compile(r"Missing required argument '(\w+)'")


def failure_text(exc: BaseException, event: object = None, hook: str = "") -> str:
    """Return the text for an exception of a handler of `event`, or of a hook while it loads; `hook`: the hook's path."""
    text = describe(exc)
    if isinstance(exc, AgentHooksError) or "write " in text:
        # The error of a near miss has its remedy.
        return text
    if isinstance(exc, ImportError):
        # Imported here, because few handlers miss a module.
        from agent_hooks.dispatch.missing import remedy_for

        return f"{text}{remedy_for(exc, hook)}"
    remedy = _of_key(exc, event) if isinstance(exc, KeyError) else _remedy(exc, text, event)
    return f"{text}; {remedy}" if remedy else text


def _of_key(exc: KeyError, event: object) -> str | None:
    """Return the remedy for a wrong key of the input, or for a handler that takes one tool's input for another's."""
    tool, given = getattr(event, "tool_name", None), getattr(event, "input", None)
    if tool is None or not isinstance(given, dict) or not exc.args or exc.args[0] in given:
        return None
    known = ", ".join(map(repr, given)) or "nothing"
    if near := nearest(exc.args[0], map(str, given)):
        return f'the input of {shown(tool)} has {known}: write ["{near}"]'
    one = MAIN_ARGUMENT_OF.get(exc.args[0], "NAME")
    return f'the input of {shown(tool)} has {known}; for the calls of one tool only, write api.on(…, tool="{one}")'


def _remedy(exc: BaseException, text: str, event: object) -> str | None:
    if isinstance(exc, SystemExit):
        return "a hook has no exit code: to stop the call, write return Block(reason)"
    if "'NoneType' object" in text and (absent := _absent(event)):
        return absent
    if isinstance(exc, TypeError):
        return _of_type_error(text, event)
    return _of_attribute(exc, text) if isinstance(exc, AttributeError) else None


def _of_attribute(exc: AttributeError, text: str) -> str | None:
    if exc.name is None:
        # An assignment names neither the object nor the attribute.
        found = _SET.search(text)
        if found and found[1] == "dict":
            return f'it is a dict: write ["{found[2]}"] in place of .{found[2]}'
        return _NAMES.get(found[1]) or _fields_of_point(found[1]) if found else None
    if isinstance(exc.obj, dict):
        return f'it is a dict: write ["{exc.name}"] in place of .{exc.name}'
    kind = type(exc.obj)
    if not kind.__module__.startswith("agent_hooks.") or NO_TEXT in text:
        return None
    near = nearest(exc.name, [name for name in dir(exc.obj) if not name.startswith("_")])
    return f"did you mean .{near}?" if near else _NAMES.get(kind.__name__) or _fields(kind)


def _fields_of_point(name: str) -> str | None:
    """Return the fields of the input or output of a point, by the name of its class; `None` for any other class."""
    # Imported here, because few handlers assign to a missing field.
    from agent_hooks.dispatch.points import POINTS

    kinds = {kind.__name__: kind for point in POINTS.values() for kind in (point.input, point.output)}
    return _fields(kinds[name]) if name in kinds else None


def _fields(kind: type) -> str | None:
    fields = getattr(kind, "__struct_fields__", ())
    return f"its fields are {', '.join(f'.{name}' for name in fields)}" if fields else None


def _absent(event: object) -> str | None:
    """Return a sentence about the value of an event that may be missing, and is."""
    if getattr(event, "details", event) is None:
        return "event.details is None, because this tool gave none"
    if getattr(getattr(event, "message", None), "usage", event) is None:
        return "the usage of this message is None, because its model told none"
    return None


def _of_type_error(text: str, event: object) -> str | None:
    mixed = _LIST_AND_TEXT in text and any(getattr(event, name, None) is not None for name in _WITH_CONTENT)
    if NO_TEXT not in text and (mixed or any(each in text for each in _OF_CONTENT)):
        return NO_TEXT
    if "exceptions must derive from BaseException" in text:
        return "an answer is returned: write return, not raise"
    if "object NoneType can't be used in 'await' expression" in text:
        return "ctx.ui.notify(…) and api.send(…) return nothing to wait for: call them without await"
    if "Extra positional arguments" in text:
        return "give an answer its fields by name: write Replace(content=…) for example"
    if (found := _ARGUMENTS.search(text)) and (form := _CALLS.get(found[1])):
        return f"write {form}{_instead_of(found[1], found[2])}"
    if found := _KEYWORD.search(text):
        return _of_keyword(found[1], event)
    if found := _MISSING.search(text):
        forms = [form for kind, form in _FORMS.items() if found[1] in kind.__struct_fields__]
        return f"write {' or '.join(forms)}" if forms else None
    return None


def _instead_of(call: str, keyword: str | None) -> str:
    """Return the end of a remedy for an argument that many expect of a call."""
    if keyword == "shell":
        return '; for a line of a shell, ctx.exec("bash", ["-c", line])'
    if keyword == "timeout" and call.startswith("HookUI."):
        return ": the clock of a handler stands while a dialog is open"
    return ""


def _of_keyword(name: str, event: object) -> str:
    """Return the remedy for a field that an answer does not have."""
    given = getattr(event, "params", None)
    if isinstance(given, dict) and name in given:
        return f'write Rewrite({{**event.params, "{name}": …}})'
    if name == "timeout":
        return "a question waits for the person: leave timeout= out"
    fields = {field for kind in _FORMS for field in kind.__struct_fields__}
    if name not in fields:
        words = [each for each in sorted(fields) if camel_case(each) == name or name.lower().endswith(each)]
        if near := next(iter(words), None) or nearest(name, fields):
            return f"write {near}="
    return f"the answers are {', '.join(_FORMS.values())}"
