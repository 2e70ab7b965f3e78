"""The commands that the call of any tool runs, by the tables of `tools`.

A value is read as a text, as a list of texts, or as an object with arguments of its own.  Any other value of a role that
the tool's use needs is *odd*, and so undecidable.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.objects import COMPARED, FOLLOWED, Odd, decoded, objects_in
from agent_hooks.guards.tools import Role, plain_tool, roles_of, use_of

# Texts that a person reads; every other text of a shell may be typed into it.
_PROSE = {"description", "explanation", "reason", "justification", "summary", "title", "comment", "purpose", "thought",
          "prompt"}  # fmt: skip
_LANGUAGES = {"bash": "bash -c", "sh": "sh -c", "shell": "sh -c", "zsh": "zsh -c", "ruby": "ruby -e", "perl": "perl -e",
              "php": "php -r", **dict.fromkeys(("javascript", "js", "node", "nodejs", "typescript", "ts"), "node -e"),
              **dict.fromkeys(("python", "python3", "ipython", "py"), "python3 -c")}  # fmt: skip
# A line of a notebook that a shell runs.
_MAGIC = lazy_pattern(r"^[ \t]*!(.*)$|^%%(?:bash|sh|script[^\n]*)\n([\s\S]*)", re.MULTILINE)
_MOST_DEPTH = FOLLOWED.depth
# The texts of one call that may be commands; each is followed.
_MOST_TYPED = 1000
# The roles whose values are read where they stand.
_RUN: frozenset[Role] = frozenset(("command", "program", "variables"))
_CODE: frozenset[Role] = frozenset(("variables",))


class Commands(Struct, frozen=True):
    """The commands of a call; `typed`: texts that may be commands, so only findings that are certain count."""

    run: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()


NO_COMMANDS = Commands()


def commands_of(tool: str, input: Mapping[str, Any], cwd: str = "") -> Commands:
    """Return the commands that a call runs, also code of a language as the command that runs it.

    `cwd`: the directory of the call; a command of another directory begins with `cd`.  Raises `Odd`.
    """
    use = use_of(tool)
    if use == "shell":
        command = input.get("command")
        if type(command) is str and len(input) == 1:
            return Commands((command,))
        return _of_shell(input, cwd)
    if use == "code":
        return Commands(tuple(_of_code(plain_tool(tool), input)))
    if use == "kill":
        objects = objects_in(input, _CODE)
        given = ((key, value) for each in objects for key, value in each.items())
        pids = [value for key, value in given if "pid" in roles_of(key) and isinstance(value, int | str)]
        return Commands(tuple(f"kill -9 {pid}" for pid in pids))
    if use in ("names", "other"):
        typed = tuple(islice(_anywhere(input), _MOST_TYPED + 1))
        if len(typed) > _MOST_TYPED:
            raise Odd("command")
        return Commands(typed=typed)
    return NO_COMMANDS


def _of_shell(input: Mapping[str, Any], cwd: str) -> Commands:
    objects = objects_in(input, _RUN)
    typed = [text for each in objects for text in _typed(each)]
    if lines := _lines(objects, cwd):
        return Commands(tuple(lines), tuple(typed))
    if not typed and (odd := next((key for each in objects for key in each if _is_unread(key, each[key])), None)):
        raise Odd(odd)
    return Commands((), tuple(typed))


def _typed(input: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of an object that may be typed into a shell."""
    words = not any(roles_of(key) & {"command", "program"} for key in input)
    for key, value in input.items():
        if not _is_command(value) or key in _PROSE:
            continue
        if not (others := roles_of(key) - {"text"}) or (words and others == {"words"}):
            yield value if isinstance(value, str) else shlex.join(value)


def _is_unread(key: str, value: object) -> bool:
    """Return whether a value holds the words of a program that nothing names."""
    return "words" in roles_of(key) and isinstance(value, Mapping) and bool(value)


def _before(input: Mapping[str, Any], cwd: str) -> list[str]:
    """Return the commands that make the directory and the variables of an object."""
    before: list[str] = []
    exports: list[str] = []
    for key, value in input.items():
        roles = roles_of(key)
        if "directory" in roles and isinstance(value, str) and value and value != cwd:
            before.append(f"cd {shlex.quote(value)}")
        elif "variables" in roles and isinstance(value, Mapping):
            given = ((name, text) for name, text in value.items() if isinstance(text, str) and str(name).isidentifier())
            exports += [f"export {name}={shlex.quote(text)}" for name, text in given]
    return before + exports


def _lines(objects: list[Mapping[str, Any]], cwd: str = "", depth: int = 0) -> list[str]:
    """Return the command lines of the objects of a shell's input, each after its directory; raises `Odd`.

    The directory of an object without a command counts for all.
    """
    own = [_own_lines(each, depth) for each in objects]
    shared = [line for each, lines in zip(objects, own, strict=True) if not lines for line in _before(each, cwd)]
    return [
        "\n".join([*shared, *_before(each, cwd), line])
        for each, lines in zip(objects, own, strict=True)
        for line in lines
    ]


def _own_lines(input: Mapping[str, Any], depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in input.items():
        roles = roles_of(key)
        if value in (None, "", [], ()):
            continue
        if "command" in roles or "program" in roles:
            # The tool reads one of the arguments with words; each may be the one.
            lines += [f"{line} {words}".rstrip() for line in _command(key, value, depth) for words in _words(input)]
        elif "commands" in roles:
            for each in value if isinstance(value, list | tuple) else [value]:
                # `objects_in` has found the objects.
                lines += [] if isinstance(each, Mapping) else _command(key, each, depth)
        elif "code" in roles and not _holds(value):
            lines += _command(key, value, depth)
    return lines


def _holds(value: object) -> bool:
    """Return whether a value is an object, or a list with objects, which `objects_in` has found."""
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value)
    )


def _words(input: Mapping[str, Any]) -> list[str]:
    """Return the words that stand apart from their program, those of each argument as a text of their own."""
    found: list[str] = []
    for key, value in input.items():
        if "words" not in roles_of(key) or value in (None, "", {}, [], ()):
            continue
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list | tuple) and all(isinstance(each, str | int | float) for each in value):
            found.append(shlex.join(map(str, value)))
        else:
            raise Odd(key)
    return found or [""]


def _command(key: str, value: object, depth: int) -> list[str]:
    """Return the lines of one command; a list is a program with its words, unless its first text is a whole line."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping) and depth < _MOST_DEPTH and (lines := _lines(objects_in(value, _RUN), "", depth + 1)):
        return lines
    if isinstance(value, list | tuple) and value:
        texts = [each for each in value if isinstance(each, str | int | float) and not isinstance(each, bool)]
        if len(texts) == len(value) and isinstance(value[0], str):
            # No program has a name with a blank; such a list holds command lines.
            return list(map(str, texts)) if re.search(r"\s", value[0].strip()) else [shlex.join(map(str, texts))]
        if not texts and depth < _MOST_DEPTH:
            return [line for each in value for line in _command(key, each, depth + 1)]
    raise Odd(key)


def _of_code(tool: str, input: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands that run the code of a call, and those of a notebook's own shell."""
    words = tool.split("_")
    usual = next((_LANGUAGES[word] for word in words if word in _LANGUAGES), "python3 -c")
    objects = objects_in(input, _CODE)
    named = [
        next((str(value).lower() for key, value in each.items() if "language" in roles_of(key)), "") for each in objects
    ]
    spoken = next((_LANGUAGES[name] for name in named if name in _LANGUAGES), usual)
    for each, name in zip(objects, named, strict=True):
        yield from _of_cell(_LANGUAGES.get(name, spoken), each)


def _of_cell(runs: str, input: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands that run the code of one object; `runs`: the program of its language."""
    for key, value in input.items():
        if not value or ("code" not in roles_of(key) and key not in ("input", "source", "command")) or _holds(value):
            continue
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            value = "".join(value)
        if not isinstance(value, str):
            raise Odd(key)
        yield from (one or rest for one, rest in _MAGIC.findall(value))
        if rest := _MAGIC.sub("", value).strip():
            yield f"{runs} {shlex.quote(rest)}"


def _anywhere(value: object, key: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the texts that may be commands in the input of a tool whose use is not known; `key`: the argument's name."""
    if isinstance(value, str):
        value = None if "text" in roles_of(key) else decoded(value, key, COMPARED)
    if not isinstance(value, Mapping | list | tuple):
        return
    if depth >= COMPARED.depth:
        raise Odd(key)
    if isinstance(value, Mapping):
        for name, each in value.items():
            if roles_of(str(name)) & {"command", "commands"} and _is_command(each):
                yield each if isinstance(each, str) else shlex.join(each)
            else:
                yield from _anywhere(each, str(name), depth + 1)
    else:
        for each in value:
            if not isinstance(each, str):
                yield from _anywhere(each, key, depth + 1)


def _is_command(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(each, str) for each in value)
    )
