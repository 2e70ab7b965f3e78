"""A value comes out of the wire as it went in, or it is refused with its place."""

from __future__ import annotations

import datetime as dt
import enum
import math
from collections import OrderedDict
from pathlib import PurePath
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import AgentEnd, Ask, AssistantMessage, Block, Replace, ToolCall, ToolCallContent
from agent_hooks.isolation.exact import MOST_MEMBERS, STRUCTS, InexactError, Packer, encode, unpack
from agent_hooks.isolation.protocol import MOST, Frames, ProtocolError, Update, framed, from_hook

_decoder = msgspec.msgpack.Decoder(ext_hook=unpack)


def crossed(value: Any) -> Any:
    """Return a value after its way."""
    return _decoder.decode(encode(Packer().pack(value, "value")))


texts = st.text(st.characters(exclude_categories=()), max_size=20)
atoms = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=20)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts | st.integers(), inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal and of the same classes, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        keys = all(any(same(key, each) for each in other) for key in one)
        return keys and len(one) == len(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    return bool(one == other)


@given(values)
def test_data_come_out_as_they_went_in(value: Any) -> None:
    """Large numbers, lone surrogates, NaN, bytes, tuples and mappings with other keys too."""
    assert same(crossed(value), value)


@pytest.mark.parametrize(
    "value",
    [
        ToolCall(tool_name="bash", tool_call_id="1", input={"a": [1, {"b": "\ud800"}]}, native={"x": 1 << 70}),
        Replace(details={"a": 1}),
        Replace(content="text", is_error=True),
        Ask("t", "m", also=(Ask("u"),)),
        Block("no", "by", "guard", "rule", "remedy"),
        AgentEnd(
            messages=(
                AssistantMessage(
                    content=(ToolCallContent("1", "bash", {"command": "ls"}),), timestamp=1, provider="p", model="m"
                ),
            )
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_structs_of_the_package_keep_their_class_and_fields(value: Any) -> None:
    """Also nested ones, and fields that are not set."""
    found = crossed(value)
    assert type(found) is type(value)
    assert found == value


class Odd(enum.StrEnum):
    """A text that is more than a text."""

    ONE = "one"


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 1),
        PurePath("x"),
        {1},
        frozenset(),
        OrderedDict(a=1),
        Odd.ONE,
        object(),
        bytearray(b"x"),
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_other_object_is_refused_with_its_place(value: Any) -> None:
    """The wire would make something else of each of these."""
    with pytest.raises(InexactError, match=r"^value\['a'\]\[1\] is of "):
        Packer().pack({"a": [0, value]}, "value")
    noted: list[str] = []
    packed = Packer(noted).pack({"a": [0, value]}, "value")
    assert packed["a"][1] in noted


def test_the_names_of_structs_are_those_of_the_package() -> None:
    """A class that crosses is found by its name on the other side."""
    assert {"ToolCall", "Block", "BashToolDetails", "ToolBeforeOutput", "UserMessage"} <= STRUCTS.keys()


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(1, 7))
def test_messages_arrive_whole_however_the_bytes_are_cut(data: list[bytes], size: int) -> None:
    """A frame may come in many pieces."""
    stream = b"".join(framed(Update(number, each)) for number, each in enumerate(data))
    frames = Frames()
    found = [message for at in range(0, len(stream), size) for message in frames.feed(stream[at : at + size])]
    assert [from_hook(each) for each in found] == [Update(number, each) for number, each in enumerate(data)]


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_an_error_of_the_protocol(data: bytes) -> None:
    """No other exception comes out, for any bytes of a process."""
    try:
        from_hook(data)
    except ProtocolError:
        pass


def test_a_length_that_cannot_be_is_refused_before_anything_is_kept() -> None:
    """A process cannot make the agent wait for gigabytes."""
    with pytest.raises(ProtocolError, match="at most"):
        list(Frames().feed((MOST + 1).to_bytes(4, "big")))


def test_a_value_with_too_many_members_does_not_cross() -> None:
    """A gate blocks, and an observer gets a note: hundreds of thousands of members would hold up the event loop."""
    value = {str(number): number for number in range(MOST_MEMBERS + 1)}
    with pytest.raises(InexactError, match="input has 100,001 members"):
        Packer().pack(value, "input")
    noted: list[str] = []
    assert Packer(noted).pack([value], "input") == noted
