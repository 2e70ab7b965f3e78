"""Edit the text of a JSON, JSONC or JSON5 file as a person would.

Only the members that change get another text.  A new member gets the layout of its neighbours, and a member that goes
takes its line along; comments stay.  So taking out the members that were put in gives the former text again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, NoReturn

from agent_hooks.installs.json_tree import Dialect, Document, Item, Node, read

# The space before a member that begins a line, up to its indentation.
_OWN_LINE = re.compile(r"(?:.*?)(\r\n|\n|\r)([^\S\r\n]*)\Z", re.DOTALL)
# Space whose last comment ends with its line, which has to end behind it.
_RUNS_ON = re.compile(r"(?:\s++|/\*.*?\*/|//[^\r\n]*+[\r\n])*+//[^\r\n]*\Z", re.DOTALL)
_BARE = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def parse(text: str, dialect: Dialect = "json") -> Any:
    """Return the value of a text, an empty object for an empty text.  Raises `ValueError` or `RecursionError`."""
    if not text.strip():
        return {}
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        if dialect == "json":
            raise
        return read(text, dialect).body.value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def edited(text: str, new: dict[str, Any], dialect: Dialect = "json") -> str:
    """Return `text`, an object that `parse` accepts, changed so that its value is `new`.

    Raises `ValueError` or `RecursionError`, as `parse` does.
    """
    document = read(text, dialect) if text.strip() else Document("", Node({}, "{}", []), "\n")
    _Form.of(text, document.body, dialect).change(document.body, new, "")
    changed = document.text()
    # No text is written whose value is another one.
    if not _same(parse(changed, dialect), new):
        raise ValueError("the form of this file is too unusual to be edited")
    return changed


class _New(NamedTuple):
    """A member to write: its key, which is empty for an item of a list, and its value."""

    name: str | None
    value: Any

    @property
    def is_block(self) -> bool:
        """Whether it takes more than one line."""
        return isinstance(self.value, dict | list) and bool(self.value) and not _is_plain_list(self.value)


Planned = Item | _New


class _Form(NamedTuple):
    """The layout of a file: its indentation and its line ends; for JSON5 also whether keys are bare, and the quotes."""

    indent: str
    newline: str
    bare: bool = False
    quote: str = '"'

    @classmethod
    def of(cls, text: str, body: Node, dialect: Dialect) -> _Form:
        """Return the layout of a file."""
        found = next((_indent(each) for each in body.items or () if _indent(each)), None)
        newline = "\r\n" if "\r\n" in text else "\n"
        if dialect != "json5":
            return cls(found or "  ", newline)
        keys = list(_keys(body))
        quote = "'" if text.count("'") > text.count('"') else '"'
        return cls(found or "  ", newline, sum(key[0] not in "\"'" for key in keys) * 2 > len(keys), quote)

    # ---- a change of the tree

    def change(self, node: Node, new: Any, indent: str) -> None:
        """Change a node so that its value is `new`; `indent` is the indentation of the line in which it begins."""
        if _same(node.value, new):
            return
        if isinstance(node.value, dict) and isinstance(new, dict) and node.items is not None:
            self._arrange(node, self._members(node, new, indent), indent)
        elif isinstance(node.value, list) and isinstance(new, list) and node.items is not None:
            self._arrange(node, self._items(node, new, indent), indent)
        else:
            node.plain, node.items = self.written(new, indent), None
        node.value = new

    def _members(self, node: Node, new: dict[str, Any], indent: str) -> list[Planned]:
        """Return the members of an object as they are to be; those that stay are changed already."""
        planned: list[Planned] = []
        for key, value in new.items():
            known = [item for item in node.items or () if item.name == key]
            if known:
                # Of a key that stands twice, the last value counts.
                self.change(known[-1].value, value, self._within(node, known[-1], indent))
            planned += known or [_New(key, value)]
        return planned

    def _items(self, node: Node, new: list[Any], indent: str) -> list[Planned]:
        """Return the items of a list as they are to be; an object in the place of another one is changed."""
        planned: list[Planned] = []
        olds, values = list(node.items or ()), list(new)
        for old_run, new_run in _aligned(olds, values):
            for index, value in enumerate(new_run):
                old = old_run[index] if index < len(old_run) else None
                if old is None or (type(old.value.value) is not type(value) and not _same(old.value.value, value)):
                    planned.append(_New(None, value))
                    continue
                self.change(old.value, value, self._within(node, old, indent))
                planned.append(old)
        return planned

    def _within(self, node: Node, item: Item, indent: str) -> str:
        """Return the indentation of the line in which a member's value begins."""
        own = _indent(item)
        return own if own is not None else self._inner(node, indent)

    def _inner(self, node: Node, indent: str) -> str:
        """Return the indentation of the members of a node."""
        return next((own for each in node.items or () if (own := _indent(each)) is not None), indent + self.indent)

    def _arrange(self, node: Node, planned: Sequence[Planned], indent: str) -> None:
        """Give a node its planned members: new ones get their layout, and the comments of those that go stay."""
        olds = list(node.items or ())
        trailing = bool(olds) and olds[-1].comma
        inner = self._inner(node, indent)
        kept = [each for each in planned if isinstance(each, Item)]
        in_lines = any(_indent(each) is not None for each in olds)
        in_lines = in_lines or any(isinstance(each, _New) and each.is_block for each in planned)
        in_lines = in_lines or (not olds and isinstance(node.value, dict))
        besides = chain([olds[0].lead if olds and not olds[0].lead.strip() else ""], repeat(" "))
        self._carry_comments(node, olds, kept, inner)
        self._settle_first(olds, planned, in_lines=in_lines)
        node.items = [
            each if isinstance(each, Item) else self._item(each, self.newline + inner if in_lines else beside, inner)
            for each, beside in zip(planned, besides, strict=False)
        ]
        for each in node.items:
            each.comma = each is not node.items[-1] or trailing
        self._settle_tail(node, olds, planned, indent)
        self._end_lines(node, inner, indent)

    def _carry_comments(self, node: Node, olds: Sequence[Item], kept: Sequence[Item], inner: str) -> None:
        """Move the comments of members that go to the next member that stays, or to the end."""
        carried = ""
        for old in olds:
            if any(each is old for each in kept):
                old.lead, carried = self._joined(carried, old.lead, inner), ""
                continue
            for space in _comments(old):
                carried = self._joined(carried, space, inner)
        node.tail = self._joined(carried, node.tail, inner)

    def _joined(self, space: str, more: str, indent: str) -> str:
        """Return two parts of the space between members, with a line's end behind a comment that needs one."""
        ends = not _RUNS_ON.match(space) or more.startswith(("\n", "\r"))
        return space + more if ends else space + self.newline + indent + more.lstrip(" \t")

    def _settle_first(self, olds: Sequence[Item], planned: Sequence[Planned], *, in_lines: bool) -> None:
        """Adapt the space of the first member, and of the one that was the first, when these two are in one line."""
        first = planned[0] if planned else None
        if not olds or first is olds[0] or olds[0].lead.strip() or _indent(olds[0]) is not None:
            return
        former = olds[0]
        if isinstance(first, Item):
            first.lead = first.lead if first.lead.strip() or _indent(first) is not None else former.lead
        elif not in_lines and any(each is former for each in planned):
            former.lead = former.lead or " "

    def _settle_tail(self, node: Node, olds: Sequence[Item], planned: Sequence[Planned], indent: str) -> None:
        """Adapt the space before the closing bracket to the last member."""
        assert node.items is not None
        blank = not node.tail.strip()
        if not planned:
            node.tail = "" if blank and not node.head else node.tail
        elif isinstance(planned[-1], _New) and _indent(node.items[-1]) is not None:
            if not olds and not blank and "\n" not in node.tail:
                node.head, node.tail = node.tail.rstrip(), ""
            begun = any(_indent(each) is not None for each in olds)
            if not begun and "\n" not in node.tail and "\r" not in node.tail:
                node.tail = self.newline + indent + node.tail
        elif olds and _indent(olds[-1]) is not None and all(_indent(each) is None for each in node.items):
            # The last member, which had a line of its own, has gone.
            node.tail = node.tail.removeprefix(self.newline + indent)

    def _end_lines(self, node: Node, inner: str, indent: str) -> None:
        """End the line behind each comment that goes up to the end of its line."""
        space = node.head
        for item in node.items or ():
            item.lead = self._joined(space, item.lead, inner).removeprefix(space)
            space = item.after
        node.tail = self._joined(space, node.tail, indent).removeprefix(space)

    def _item(self, new: _New, lead: str, indent: str) -> Item:
        key = "" if new.name is None else f"{self._key(new.name)}: "
        return Item(lead, key, new.name or "", Node(new.value, self.written(new.value, indent)))

    # ---- the text of a new value

    def written(self, value: Any, indent: str) -> str:
        """Return the text of a new value; a list of plain values is one line."""
        inner = indent + self.indent
        if isinstance(value, dict) and value:
            lines = [f"{self._key(key)}: {self.written(each, inner)}" for key, each in value.items()]
            return self._block("{", lines, "}", indent)
        if isinstance(value, list) and value:
            lines = [self.written(each, inner) for each in value]
            return f"[{', '.join(lines)}]" if _is_plain_list(value) else self._block("[", lines, "]", indent)
        return self._dumped(value)

    def _block(self, opening: str, lines: list[str], closing: str, indent: str) -> str:
        start = self.newline + indent + self.indent
        return opening + start + f",{start}".join(lines) + self.newline + indent + closing

    def _key(self, name: str) -> str:
        return name if self.bare and _BARE.fullmatch(name) else self._dumped(name)

    def _dumped(self, value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False)
        if re.search("[\ud800-\udfff]", text):
            # UTF-8 has no half of a surrogate pair.
            return json.dumps(value)
        simple = isinstance(value, str) and "'" not in value and "\\" not in text
        return f"'{value}'" if self.quote == "'" and simple else text


def _keys(node: Node) -> Sequence[str]:
    """Return the texts of all keys in a node."""
    own = [item.key for item in node.items or () if item.key]
    return own + [key for item in node.items or () for key in _keys(item.value)]


def _indent(item: Item) -> str | None:
    """Return the indentation of a member that begins a line, else `None`."""
    found = _OWN_LINE.match(item.lead)
    return None if found is None else found[2]


def _comments(item: Item) -> list[str]:
    """Return the space with comments before and behind a member that goes."""
    found = _OWN_LINE.match(item.lead)
    before = item.lead[: found.start(1)] if found is not None else item.lead.rstrip()
    return [each for each in (before, item.middle, item.after) if each.strip()]


def _aligned(olds: Sequence[Item], values: Sequence[Any]) -> list[tuple[list[Item], list[Any]]]:
    """Return the items of a list and its new values as pairs of runs: an equal item is a pair of its own.

    Between two equal items, the others follow in one pair, each old item beside the value that takes its place.
    """
    pairs: list[tuple[list[Item], list[Any]]] = []
    before = at = 0
    for index, value in enumerate(values):
        equal = next((place for place in range(at, len(olds)) if _same(olds[place].value.value, value)), None)
        if equal is not None:
            pairs += [(list(olds[at:equal]), list(values[before:index])), ([olds[equal]], [value])]
            before, at = index + 1, equal + 1
    return [*pairs, (list(olds[at:]), list(values[before:]))]


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(each, dict | list) for each in value)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values have the same text; in Python, `1`, `1.0` and `True` are equal."""
    return json.dumps(one) == json.dumps(other)
