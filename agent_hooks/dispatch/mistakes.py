"""The texts for a handler's exceptions: Python's own, and the remedy for the mistakes that authors of hooks make."""

from __future__ import annotations

import re

from agent_hooks.errors import AgentHooksError, describe, nearest, shown
from agent_hooks.values.answers import Ask, Block, Cancel, Compaction, Replace, Rewrite, Stop
from agent_hooks.values.frozen import NO_TEXT
from agent_hooks.values.near import camel_case

# The tool whose input has this key, as far as there is only one.
MAIN_ARGUMENT_OF = {"command": "bash", "content": "write", "oldText": "edit", "newText": "edit"}
_ANSWERS = (Block, Ask, Replace, Rewrite, Stop, Cancel, Compaction)
# Content that is read as a text, and a part of it: a slice is a plain list.
_OF_CONTENT = ("FrozenList", "Blocks", 'can only concatenate str (not "list") to str', "found list", "got 'list'")
_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'", re.IGNORECASE)


def failure_text(exc: BaseException, event: object = None, hook: str = "") -> str:
    """Return the text for an exception of a handler of `event`; `hook`: the path of its hook."""
    text = describe(exc)
    if isinstance(exc, AgentHooksError) or "write " in text:
        # The error of a near miss has its remedy.
        return text
    if isinstance(exc, ModuleNotFoundError):
        # Imported here, because few handlers miss a module.
        from agent_hooks.dispatch.missing import remedy_for

        return f"{text}{remedy_for(exc, hook)}"
    remedy = _of_key(exc, event) if isinstance(exc, KeyError) else _remedy(exc, text)
    return f"{text}; {remedy}" if remedy else text


def _of_key(exc: KeyError, event: object) -> str | None:
    """Return the remedy for a handler that takes the input of one tool for that of another."""
    tool, given = getattr(event, "tool_name", None), getattr(event, "input", None)
    if tool is None or not isinstance(given, dict) or not exc.args or exc.args[0] in given:
        return None
    known = ", ".join(map(repr, given)) or "nothing"
    one = MAIN_ARGUMENT_OF.get(exc.args[0], "NAME")
    return f'the input of {shown(tool)} has {known}; for the calls of one tool only, write api.on(…, tool="{one}")'


def _remedy(exc: BaseException, text: str) -> str | None:
    if isinstance(exc, SystemExit):
        return "a hook has no exit code: to stop the call, write return Block(reason)"
    if isinstance(exc, TypeError):
        if NO_TEXT not in text and any(each in text for each in _OF_CONTENT):
            return NO_TEXT
        if "exceptions must derive from BaseException" in text:
            return "an answer is returned: write return, not raise"
        if "Extra positional arguments" in text:
            return "give an answer its fields by name: write Replace(content=…) for example"
        if found := _KEYWORD.search(text):
            fields = {name for answer in _ANSWERS for name in answer.__struct_fields__}
            words = [name for name in fields if camel_case(name) == found[1] or found[1].lower().endswith(name)]
            near = next(iter(words), None) or nearest(found[1], fields)
            return f"write {near}=" if near else None
    if isinstance(exc, AttributeError) and exc.name is not None:
        if isinstance(exc.obj, dict):
            return f'it is a dict: write ["{exc.name}"] in place of .{exc.name}'
        if type(exc.obj).__module__.startswith("agent_hooks.") and NO_TEXT not in text:
            near = nearest(exc.name, [name for name in dir(exc.obj) if not name.startswith("_")])
            return f"did you mean .{near}?" if near else None
    return None
