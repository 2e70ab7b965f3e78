"""Read the text of a `command_intercept.yaml`: what it says, and its mistakes with file, line and key.

A mistake below `tools.X` belongs to X, one elsewhere to every tool the file names; only a text that is no YAML says
nothing at all.  Stricter than YAML on purpose: a key that stands twice, an alias, and `on` for true are mistakes.
Does no I/O.  Above: command_intercept.  Below: errors, loader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct, field
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from agent_hooks.errors import did_you_mean, shown
from agent_hooks.hooks.loader import LoadError

VERSION = 1
_FILE_KEYS = ("version", "enabled", "tools")
_TOOL_KEYS = ("enabled", "auto_allow", "transformers")
_STEP_KEYS = ("name", "config")
_ALIAS = "!alias"
_YAML = "tag:yaml.org,2002:"
_WORDS = {"bool": "true or false", "int": "a number", "float": "a number", "null": "nothing"}
T = TypeVar("T")


class Step(Struct, kw_only=True):
    """One transformer of a tool, as written; `node` is kept for the lines of its configuration."""

    name: str
    config: dict[str, Any]
    line: int
    key: str
    node: Any = None


class ToolSection(Struct, kw_only=True):
    """What a file says of one tool; `errors` is what is wrong with it."""

    enabled: bool | None = None
    auto_allow: bool | None = None
    steps: list[Step] = field(default_factory=list)
    errors: list[LoadError] = field(default_factory=list)


class InterceptFile(Struct, kw_only=True):
    """One file: `tools` by name; `errors` has all mistakes, those of the tools too."""

    path: str
    enabled: bool = True
    tools: dict[str, ToolSection] = field(default_factory=dict)
    errors: list[LoadError] = field(default_factory=list)


class _Wrong(Exception):  # noqa: N818  # not for users: becomes a LoadError
    """A mistake at a node."""

    def __init__(self, node: Node, text: str) -> None:
        super().__init__(text)
        self.line = node.start_mark.line + 1


class _Loader(yaml.SafeLoader):
    """Keeps an alias as a node of its own, where YAML would put in what it stands for."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()  # type: ignore[no-untyped-call]  # types-pyyaml leaves it out
            return ScalarNode(_ALIAS, event.anchor, event.start_mark, event.end_mark)
        return super().compose_node(parent, index)


def parse(text: bytes, path: str) -> InterceptFile:
    """Read the text of a file; `path` is for the errors.  Never raises for a mistake in it."""
    file = InterceptFile(path=path)
    try:
        node = _Loader(text).get_single_node()
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        file.errors.append(LoadError(path, f"is not YAML, so nothing of it is active: {_problem(exc)}", _line(exc)))
    except RecursionError:
        file.errors.append(LoadError(path, "is nested too deeply, so nothing of it is active"))
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
                    self._tool(name, section)
            elif key == "enabled":
                file.enabled = self._take(_flag, child, True, key, errors)
            else:
                self._take(_version, child, None, key, errors)
        if "version" not in found and not errors:
            self._add(errors, "version", "is missing: the file begins with version: 1", 1)
        if errors:  # they belong to every tool the file names, in whatever place
            for name in _tool_names(node):
                file.tools.setdefault(name, ToolSection())
        everywhere = list(errors)
        for each in file.tools.values():
            errors += each.errors
            each.errors += everywhere

    def _tool(self, name: str, node: Node) -> None:
        section = self._file.tools.setdefault(name, ToolSection())
        where, errors = f"tools.{name}", section.errors
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
        step = Step(name="", config={}, line=node.start_mark.line + 1, key=where)
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
        self, node: Node | None, where: str, known: tuple[str, ...] | None, errors: list[LoadError]
    ) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping; what is wrong with the mapping or a key goes to `errors`."""
        if not isinstance(node, MappingNode):
            if node is not None and node.tag == _ALIAS:
                self._take(_refuse, node, None, where, errors)
                return
            line = 1 if node is None else node.start_mark.line + 1
            self._add(errors, where, f"expected a mapping, found {_show(node)}", line)
            return
        seen: set[str] = set()
        for key_node, child in node.value:
            mistakes = errors
            try:
                key = _key(key_node)
                if key in seen:
                    raise _Wrong(key_node, f"{key!r} stands here twice")
                seen.add(key)
                if known is not None and key not in known:
                    raise _Wrong(key_node, f"unknown key {key!r}{did_you_mean(key, known)}")
            except _Wrong as exc:
                if known is None and isinstance(key_node, ScalarNode):  # of a tool: the mistake is that tool's alone
                    mistakes = self._file.tools.setdefault(key_node.value, ToolSection()).errors
                self._add(mistakes, where, str(exc), exc.line)
            else:
                yield key, child

    def _take(self, read: Callable[[Node], T], node: Node, otherwise: T, where: str, errors: list[LoadError]) -> T:
        try:
            return read(node)
        except _Wrong as exc:
            self._add(errors, where, str(exc), exc.line)
            return otherwise

    def _add(self, errors: list[LoadError], where: str, text: str, line: int) -> None:
        errors.append(LoadError(self._file.path, f"key {where!r}: {text}" if where else text, line))


def check_config(step: Step, kind: type, path: str) -> LoadError | None:
    """Return what is wrong with a transformer's configuration, which `kind` describes."""
    known = [each.encode_name for each in msgspec.structs.fields(kind)]
    for key in step.config:
        if key not in known:
            text = f"key '{step.key}.config': unknown key {key!r}{did_you_mean(key, known)}"
            return LoadError(path, text, _line_at(step, key))
    try:
        msgspec.convert(step.config, kind, strict=True)
    except msgspec.ValidationError as exc:
        text, _, place = str(exc).partition(" - at `$")
        place = place.removesuffix("`")
        names = re.findall(r"[\w-]+", place)
        line = _line_at(step, *names)
        return LoadError(path, f"key '{step.key}.config{place}': {text.replace('`', '')}", line)
    return None


def _tool_names(node: Node | None) -> Iterator[str]:
    for key, child in node.value if isinstance(node, MappingNode) else ():
        if key.value == "tools" and isinstance(child, MappingNode):
            yield from (name.value for name, _ in child.value if isinstance(name, ScalarNode))


# ---- nodes -----------------------------------------------------------------------------------------------------------


def _key(node: Node) -> str:
    _refuse(node)
    if not isinstance(node, ScalarNode) or node.tag == f"{_YAML}merge":
        raise _Wrong(node, f"expected a name as key, found {_show(node)}")
    if node.tag != f"{_YAML}str":
        kind = node.tag.removeprefix(_YAML)
        raise _Wrong(node, f"YAML reads the key {node.value!r} as {_WORDS.get(kind, kind)}; put it in quotes")
    return str(node.value)


def _version(node: Node) -> None:
    if (found := _value(node)) != VERSION or type(found) is not int:
        raise _Wrong(node, f"expected {VERSION}, found {_show(node)}")


def _items(node: Node) -> list[Node]:
    if not isinstance(node, SequenceNode):
        _refuse(node)
        raise _Wrong(node, f"expected a list, found {_show(node)}")
    return list(node.value)


def _flag(node: Node) -> bool:
    if type(value := _value(node)) is bool:
        return value
    raise _Wrong(node, f"expected true or false, found {_show(node)}")


def _text(node: Node) -> str:
    if isinstance(value := _value(node), str):
        return value
    raise _Wrong(node, f"expected a text, found {_show(node)}")


def _mapping(node: Node) -> dict[str, Any]:
    if isinstance(value := _value(node), dict):
        return value
    raise _Wrong(node, f"expected a mapping, found {_show(node)}")


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
                raise _Wrong(key_node, f"{key!r} stands here twice")
            found[key] = _value(child)
        return found
    kind = node.tag.removeprefix(_YAML)
    if kind == "bool" and not _is_plain_bool(node):
        raise _Wrong(node, f"YAML reads {node.value} as true or false; write that, or put it in quotes")
    if kind not in ("str", "int", "float", "bool", "null"):
        raise _Wrong(node, f"YAML reads {node.value!r} as {_WORDS.get(kind, kind)}; put it in quotes")
    try:
        return yaml.SafeLoader("").construct_object(node)
    except (ValueError, OverflowError) as exc:  # a number of too many digits
        raise _Wrong(node, f"{shown(node.value)}: {exc}") from None


def _refuse(node: Node) -> None:
    if node.tag == _ALIAS:
        raise _Wrong(node, f"the alias *{node.value} is not read; write out what it stands for")
    if not node.tag.startswith(_YAML) or node.tag.startswith(f"{_YAML}python/"):
        raise _Wrong(node, f"the tag {node.tag} is not read; leave it out")


def _show(node: Node | None) -> str:
    if node is None:
        return "nothing"
    if isinstance(node, ScalarNode):
        return "nothing" if node.tag.endswith(":null") and not node.value else shown(node.value)
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def _line_at(step: Step, *names: str) -> int:
    """Return the line of a value in a configuration, as far down as the names lead."""
    node = step.node
    for name in names:
        if isinstance(node, MappingNode):
            node = next((child for key, child in node.value if key.value == name), node)
        elif isinstance(node, SequenceNode) and name.isdigit():
            node = node.value[int(name)]
    return step.line if node is None else node.start_mark.line + 1


def _problem(exc: Exception) -> str:
    if isinstance(exc, yaml.MarkedYAMLError):
        return ", ".join(text for text in (exc.context, exc.problem) if text)
    return " ".join(str(exc).split())


def _line(exc: Exception) -> int | None:
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    return None if mark is None else mark.line + 1
