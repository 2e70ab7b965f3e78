"""Edits of JSON, JSONC and JSON5 texts: the value is the wanted one, and all other places keep their bytes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from agent_hooks.installs.json_text import edited, parse
from agent_hooks.installs.json_tree import Dialect, Node, read

SCALARS = st.none() | st.booleans() | st.integers(-99, 10**6) | st.sampled_from([1.5, -2e30]) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)
SPACES: dict[Dialect, list[str]] = {
    "json": ["", "", " ", "\n  ", "\r\n\t", "\n"],
    "jsonc": ["", "", " ", "\n  ", "\n", " // one \n  ", "/* two */", "\n  // three\n  ", " /* fo\n ur */\n", "//\r\n"],
    "json5": ["", "", " ", "\n  ", "\n", ' // "it\'s" \n  ', "/* two */", "\n  // {three\n  ", "\xa0", "//\u2028\n"],
}
DIALECTS = st.sampled_from(sorted(SPACES))


class Writer:
    """Writes values in a layout that `draw` chooses."""

    def __init__(self, draw: st.DrawFn, dialect: Dialect) -> None:
        self.draw = draw
        self.dialect = dialect

    def space(self) -> str:
        return self.draw(st.sampled_from(SPACES[self.dialect]))

    def string(self, value: str) -> str:
        text = json.dumps(value, ensure_ascii=self.draw(st.booleans()))
        if self.dialect == "json5" and "'" not in value and '"' not in value and self.draw(st.booleans()):
            return f"'{text[1:-1]}'"
        return text

    def key(self, value: str) -> str:
        if self.dialect == "json5" and value.isascii() and value.isidentifier() and self.draw(st.booleans()):
            return value
        return self.string(value)

    def text(self, value: Any) -> str:
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, int) and not isinstance(value, bool) and self.dialect == "json5" and value >= 0:
            return self.draw(st.sampled_from([str(value), hex(value), f"+{value}"]))
        if not isinstance(value, dict | list):
            return json.dumps(value)
        members = (
            [f"{self.key(key)}{self.space()}:{self.space()}{self.text(each)}" for key, each in value.items()]
            if isinstance(value, dict)
            else [self.text(each) for each in value]
        )
        inside = ",".join(f"{self.space()}{each}{self.space()}" for each in members)
        trailing = "," if members and self.dialect != "json" and self.draw(st.booleans()) else ""
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return f"{opening}{inside}{trailing}{self.space()}{closing}"


@st.composite
def files(draw: st.DrawFn) -> tuple[Dialect, str, dict[str, Any]]:
    """Draw a dialect, a text of it, and the value of the text."""
    dialect, value = draw(DIALECTS), draw(OBJECTS)
    writer = Writer(draw, dialect)
    return dialect, f"{writer.space()}{writer.text(value)}{writer.space()}", value


def containers(value: Any) -> list[Any]:
    """Return all objects and lists in a value, and itself."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(each for item in inside for each in containers(item))] if isinstance(value, dict | list) else []


def nodes(node: Node) -> list[Node]:
    """Return the objects and lists in a tree, in the order of `containers`."""
    inside = [each for item in node.items or () for each in nodes(item.value)]
    return [] if node.items is None else [node, *inside]


def is_part(part: str, whole: str) -> bool:
    """Tell whether `part` is `whole` without some of its characters."""
    rest = iter(whole)
    return all(each in rest for each in part)


@given(files())
def test_a_text_is_read_without_loss(file: tuple[Dialect, str, dict[str, Any]]) -> None:
    """The tree has each character, and the value of the text."""
    dialect, text, value = file
    assert read(text, dialect).text() == text
    assert json.dumps(read(text, dialect).body.value) == json.dumps(parse(text, dialect)) == json.dumps(value)
    assert edited(text, value, dialect) == text


@given(files(), OBJECTS)
def test_an_edited_text_has_the_wanted_value(file: tuple[Dialect, str, dict[str, Any]], new: dict[str, Any]) -> None:
    """This holds for any two values, also where comments and commas stand between the members."""
    dialect, text, old = file
    for wanted in (new, {**old, **new}, {key: old[key] for key in reversed(old)}):
        assert json.dumps(parse(edited(text, wanted, dialect), dialect)) == json.dumps(wanted)


@given(files(), VALUES, st.data())
def test_an_added_member_takes_nothing_away_and_goes_without_a_trace(
    file: tuple[Dialect, str, dict[str, Any]], new: Any, data: st.DataObject
) -> None:
    """All characters of the file are there after the addition, and only those are there after the removal."""
    dialect, text, old = file
    changed = json.loads(json.dumps(old))
    places = containers(changed)
    index = data.draw(st.integers(0, len(places) - 1))
    place = places[index]
    if isinstance(place, dict):
        assume("ours" not in place)
        place["ours"] = new
    else:
        place.insert(data.draw(st.sampled_from([0, len(place)])), ["ours", new])
    written = edited(text, changed, dialect)
    assert json.dumps(parse(written, dialect)) == json.dumps(changed)
    assert is_part(text, written) or len(place) == 1
    back = edited(written, old, dialect)
    node = nodes(read(text, dialect).body)[index]
    leads = "".join(item.lead for item in node.items or ())
    if node.items and ("\n" in leads or "\n" not in node.tail):
        assert back == text
    # Brackets with nothing between them lose the space there, and so does a bracket alone in a line.
    assert "".join(back.split()) == "".join(text.split())


@given(files(), st.data())
def test_a_removed_member_leaves_all_others_as_they_are(
    file: tuple[Dialect, str, dict[str, Any]], data: st.DataObject
) -> None:
    """Comments outside of it stay too."""
    dialect, text, old = file
    assume(old)
    gone = data.draw(st.sampled_from(sorted(old)))
    document = read(text, dialect)
    left = edited(text, {key: value for key, value in old.items() if key != gone}, dialect)
    for item in document.body.items or ():
        if item.name != gone:
            assert item.key + item.value.text() in left
        for space in (item.lead, item.middle, item.after):
            assert space.strip() in left
