"""Read the text of a `command_intercept.yaml`: its sections, and its mistakes with file, line and key.

A mistake below `tools.X` blocks the tool X, and a mistake elsewhere blocks every tool: the tools that the file should
name are unknown then, as in a text that is no YAML.  The reader is stricter than YAML on purpose: a key that is given
twice, an alias, and `on` for true are mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct, field
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from agent_hooks.errors import did_you_mean, nearest, shown
from agent_hooks.transformers.base import Mistake
from agent_hooks.validation import mismatch

VERSION = 1
_FILE_KEYS = ("version", "enabled", "tools")
_TOOL_KEYS = ("enabled", "auto_allow", "transformers")
_STEP_KEYS = ("name", "config")
_ALIAS = "!alias"
_YAML = "tag:yaml.org,2002:"
_WORDS = {"bool": "true or false", "int": "a number", "float": "a number", "null": "nothing"}
T = TypeVar("T")


class TransformerStep(Struct, kw_only=True):
    """One transformer of a tool, as written.

    `key`: its place in the file, for example `tools.bash.transformers[0]`; `node`: the YAML of its configuration, for
    the lines of mistakes in it.
    """

    name: str
    config: dict[str, Any]
    line: int
    key: str
    node: Any = None


class ToolSection(Struct, kw_only=True):
    """The section of one tool in one file, and the mistakes that block the tool."""

    enabled: bool | None = None
    auto_allow: bool | None = None
    steps: list[TransformerStep] = field(default_factory=list)
    errors: list[Mistake] = field(default_factory=list)


class InterceptFile(Struct, kw_only=True):
    """One file; `errors` are the mistakes outside of the sections of tools, which block every tool."""

    path: str
    enabled: bool = True
    tools: dict[str, ToolSection] = field(default_factory=dict)
    errors: list[Mistake] = field(default_factory=list)


class _Wrong(Exception):  # noqa: N818  # becomes a Mistake
    """A mistake at a node."""

    def __init__(self, node: Node, text: str) -> None:
        super().__init__(text)
        self.line = node.start_mark.line + 1


class _Loader(yaml.SafeLoader):
    """Keeps an alias as a node of its own, where YAML would insert a copy of the aliased value."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()  # type: ignore[no-untyped-call]  # types-pyyaml leaves it out
            return ScalarNode(_ALIAS, event.anchor, event.start_mark, event.end_mark)
        return super().compose_node(parent, index)


LARGEST = 256 * 1024
"""The most bytes of a file that is read."""


def parse(text: bytes, path: str) -> InterceptFile:
    """Read the text of a file; `path` is for the errors.  Mistakes never raise: they are in `errors`."""
    file = InterceptFile(path=path)
    if len(text) > LARGEST:
        # YAML reads about 1 MB a second; an agent that waits longer for a bridge may run the call.
        file.errors.append(Mistake(path, f"is larger than {LARGEST // 1024} KiB"))
        return file
    try:
        node = _Loader(text).get_single_node()
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        file.errors.append(Mistake(path, f"is not YAML: {_problem(exc)}", _line(exc)))
    except RecursionError:
        file.errors.append(Mistake(path, "is nested too deeply"))
    else:
        _Reader(file).read(node)
    return file


class _Reader:
    """Reads the nodes of one file."""

    def __init__(self, file: InterceptFile) -> None:
        self._file = file

    def read(self, node: Node | None) -> None:
        file, errors = self._file, self._file.errors
        found: set[str] = set()
        for key, child in self._entries(node, "", _FILE_KEYS, errors):
            found.add(key)
            if key == "tools":
                for name, section in self._entries(child, "tools", None, errors):
                    self._tools(name, section)
            elif key == "enabled":
                file.enabled = self._take(_flag, child, True, key, errors)
            else:
                self._take(_version, child, None, key, errors)
        if "version" not in found and not errors:
            self._add(errors, "version", "is missing: the file begins with version: 1", 1)

    def _tools(self, key: str, node: Node) -> None:
        """Read the section of the tool, or of each of the tools, that a key names."""
        names = _names(key)
        for name in dict.fromkeys(names):
            given = name in self._file.tools or names.count(name) > 1
            section = self._file.tools.setdefault(name, ToolSection())
            if given:
                line = node.start_mark.line + 1
                self._add(section.errors, "tools", f"{name!r} is given twice", line)
            self._tool(f"tools.{key}", node, section)

    def _tool(self, where: str, node: Node, section: ToolSection) -> None:
        errors = section.errors
        if isinstance(node, ScalarNode) and node.tag == f"{_YAML}null":
            return
        for key, child in self._entries(node, where, _TOOL_KEYS, errors):
            place = f"{where}.{key}"
            if key == "transformers":
                nothing: list[Node] = []
                for index, each in enumerate(self._take(_items, child, nothing, place, errors)):
                    self._step(each, f"{place}[{index}]", section)
            else:
                setattr(section, key, self._take(_flag, child, key == "enabled", place, errors))

    def _step(self, node: Node, where: str, section: ToolSection) -> None:
        errors = section.errors
        step = TransformerStep(name="", config={}, line=node.start_mark.line + 1, key=where)
        before = len(errors)
        for key, child in self._entries(node, where, _STEP_KEYS, errors):
            if key == "name":
                step.name = self._take(_text, child, "", f"{where}.name", errors)
            else:
                step.node = child
                step.config = self._take(_mapping, child, {}, f"{where}.config", errors)
        if len(errors) == before and not step.name:
            self._add(errors, where, "name is missing", step.line)
        if len(errors) == before:
            section.steps.append(step)

    def _entries(
        self, node: Node | None, where: str, known: tuple[str, ...] | None, errors: list[Mistake]
    ) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping; mistakes in the mapping or its keys are added to `errors`."""
        if not isinstance(node, MappingNode):
            if node is not None and node.tag == _ALIAS:
                self._take(_refuse, node, None, where, errors)
                return
            line = 1 if node is None else node.start_mark.line + 1
            self._add(errors, where, f"expected a mapping, found {_described(node)}{_form_of(node, known)}", line)
            return
        seen: set[str] = set()
        for key_node, child in node.value:
            try:
                key = _key(key_node)
                if key in seen:
                    raise _Wrong(key_node, f"{key!r} is given twice")
                seen.add(key)
                if known is not None and key not in known:
                    tools = "" if where or nearest(key, known) else "; write the name of a tool below tools:"
                    raise _Wrong(key_node, f"unknown key {key!r}{did_you_mean(key, known)}{tools}")
                if known is None:
                    _check_names(key_node, child)
            except _Wrong as exc:
                if known is None and isinstance(key_node, ScalarNode) and all(names := _names(key_node.value)):
                    # The key is the name of a tool, so the mistake blocks only this tool.
                    for name in names:
                        self._add(self._file.tools.setdefault(name, ToolSection()).errors, where, str(exc), exc.line)
                else:
                    self._add(errors, where, str(exc), exc.line)
            else:
                yield key, child

    def _take(self, read: Callable[[Node], T], node: Node, otherwise: T, where: str, errors: list[Mistake]) -> T:
        try:
            return read(node)
        except _Wrong as exc:
            self._add(errors, where, str(exc), exc.line)
            return otherwise

    def _add(self, errors: list[Mistake], where: str, text: str, line: int) -> None:
        errors.append(Mistake(self._file.path, f"key {where!r}: {text}" if where else text, line))


def check_config(step: TransformerStep, kind: type, path: str) -> Mistake | None:
    """Return the first mistake in a transformer's configuration, which `kind` describes; `None` when it has none."""
    known = [each.encode_name for each in msgspec.structs.fields(kind)]
    for key in step.config:
        if key not in known:
            text = f"key '{step.key}.config': unknown key {key!r}{did_you_mean(key, known)}"
            return Mistake(path, text, _line_at(step, key))
    try:
        msgspec.convert(step.config, kind, strict=True)
    except msgspec.ValidationError as exc:
        found = mismatch(exc)
        text = f"key '{step.key}.config{found.place}': {found.text.replace('`', '')}"
        return Mistake(path, text, _line_at(step, *found.steps))
    return None


# ---- nodes


def _form_of(node: Node | None, known: tuple[str, ...] | None) -> str:
    """Return the form in which a list of transformers, or the name of one, is a mapping; empty for any other node."""
    if known == _STEP_KEYS and isinstance(node, ScalarNode):
        return f"; write - name: {node.value}"
    return "; write transformers: above the list" if known == _TOOL_KEYS and isinstance(node, SequenceNode) else ""


def _names(key: str) -> list[str]:
    """Return the names of tools that a key has, separated by commas."""
    return [name.strip() for name in key.split(",")]


def _check_names(node: Node, child: Node) -> None:
    """Refuse an empty name of a tool, and a name without a colon, which YAML takes for a tool without a section."""
    if not all(_names(node.value)):
        raise _Wrong(node, f"{shown(node.value)} has an empty name; write the names of tools as: find, grep")
    if child.start_mark.index == node.end_mark.index:
        raise _Wrong(node, f"{node.value!r} has no section; between braces, put several names in quotes: 'find, grep'")


def _key(node: Node) -> str:
    _refuse(node)
    if not isinstance(node, ScalarNode) or node.tag == f"{_YAML}merge":
        raise _Wrong(node, f"expected a name as key, found {_described(node)}")
    if node.tag != f"{_YAML}str":
        kind = node.tag.removeprefix(_YAML)
        raise _Wrong(node, f"YAML reads the key {node.value!r} as {_WORDS.get(kind, kind)}; put it in quotes")
    return str(node.value)


def _version(node: Node) -> None:
    if (found := _value(node)) != VERSION or type(found) is not int:
        raise _Wrong(node, f"expected {VERSION}, found {_described(node)}")


def _items(node: Node) -> list[Node]:
    if not isinstance(node, SequenceNode):
        _refuse(node)
        raise _Wrong(node, f"expected a list, found {_described(node)}")
    return list(node.value)


def _flag(node: Node) -> bool:
    if type(value := _value(node)) is bool:
        return value
    raise _Wrong(node, f"expected true or false, found {_described(node)}")


def _text(node: Node) -> str:
    if isinstance(value := _value(node), str):
        return value
    raise _Wrong(node, f"expected a text, found {_described(node)}")


def _mapping(node: Node) -> dict[str, Any]:
    if isinstance(value := _value(node), dict):
        return value
    raise _Wrong(node, f"expected a mapping, found {_described(node)}")


def _is_plain_bool(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value.lower() in ("true", "false")


def _value(node: Node) -> Any:
    """Return the plain value of a node; raises `_Wrong` at the node that has none."""
    _refuse(node)
    if isinstance(node, SequenceNode):
        return [_value(each) for each in node.value]
    if isinstance(node, MappingNode):
        found: dict[str, Any] = {}
        for key_node, child in node.value:
            key = _key(key_node)
            if key in found:
                raise _Wrong(key_node, f"{key!r} is given twice")
            found[key] = _value(child)
        return found
    kind = node.tag.removeprefix(_YAML)
    if kind == "bool" and not _is_plain_bool(node):
        raise _Wrong(node, f"YAML reads {node.value} as true or false; write that, or put it in quotes")
    if kind not in ("str", "int", "float", "bool", "null"):
        raise _Wrong(node, f"YAML reads {node.value!r} as {_WORDS.get(kind, kind)}; put it in quotes")
    try:
        return yaml.SafeLoader("").construct_object(node)
    except (ValueError, OverflowError) as exc:
        # A number with too many digits.
        raise _Wrong(node, f"{shown(node.value)}: {exc}") from None


def _refuse(node: Node) -> None:
    if node.tag == _ALIAS:
        raise _Wrong(node, f"the alias *{node.value} is not read; write out its value")
    if not node.tag.startswith(_YAML) or node.tag.startswith(f"{_YAML}python/"):
        raise _Wrong(node, f"the tag {node.tag} is not read; leave it out")


def _described(node: Node | None) -> str:
    if node is None:
        return "nothing"
    if isinstance(node, ScalarNode):
        return "nothing" if node.tag.endswith(":null") and not node.value else shown(node.value)
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def _line_at(step: TransformerStep, *path: str | int) -> int:
    """Return the line of a value in a configuration; `path`: the keys and indexes that lead to it."""
    node = step.node
    for each in path:
        if isinstance(node, MappingNode):
            node = next((child for key, child in node.value if key.value == each), node)
        elif isinstance(node, SequenceNode) and isinstance(each, int):
            node = node.value[each]
    return step.line if node is None else node.start_mark.line + 1


def _problem(exc: Exception) -> str:
    if isinstance(exc, yaml.MarkedYAMLError):
        return ", ".join(text for text in (exc.context, exc.problem) if text)
    return " ".join(str(exc).split())


def _line(exc: Exception) -> int | None:
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    return None if mark is None else mark.line + 1
