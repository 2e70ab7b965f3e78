"""Values on their way between two processes: exactly as they were, or not at all.

A value is written as MessagePack.  Plain data are themselves there; the structs of this package, tuples, large numbers
and texts with lone surrogates are extensions, so that each comes out as the class that went in.  Any other object, for
example a date in a tool's input, would come out as something else, and is refused with its place.  For a handler that
only observes, its text takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from agent_hooks.dispatch import points
from agent_hooks.errors import AgentHooksError, shown, text_of
from agent_hooks.values import answers, content, events, tool
from agent_hooks.values.frozen import Blocks, FrozenDict, FrozenList

_STRUCT, _TUPLE, _INT, _TEXT, _MAPPING, _UNSET = range(1, 7)
_MODULES = (points, answers, content, events, tool)


def _structs() -> dict[str, type[Struct]]:
    found: dict[str, type[Struct]] = {}
    for module in _MODULES:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Struct) and each.__module__ == module.__name__:
                assert found.get(each.__name__, each) is each, f"two structs are named {each.__name__}"
                found[each.__name__] = each
    return found


# The structs that cross, by name.
STRUCTS = _structs()
_names = {kind: name for name, kind in STRUCTS.items()}
_ATOMS = frozenset({type(None), bool, float, bytes})
_CONTAINERS = frozenset({dict, FrozenDict, list, FrozenList, tuple, Blocks})
# Members of one list or mapping; with more of them, one value would hold up the agent's event loop for seconds.
MOST_MEMBERS = 100_000
_encoder = msgspec.msgpack.Encoder()
# Bytes of the largest message between two processes.
MOST = 64 * 1024 * 1024
# Bytes that a message has beside the state in it.
_FRAME = 1024
# Characters of an object's text that an observer gets in its place.
_SHOWN = 2000


class InexactError(AgentHooksError, TypeError):
    """A value cannot cross to another process as it is."""


class Packer:
    """Prepares values for `encode`.

    `noted`: `None` refuses a value that would not cross exactly; a list takes the texts that stand for such objects.
    """

    __slots__ = ("noted",)

    def __init__(self, noted: list[str] | None = None) -> None:
        self.noted = noted

    def pack(self, value: Any, place: str) -> Any:
        """Return `value` in the form that `encode` takes.

        `place`: the name of the value, for the error.  Raises `InexactError`.
        """
        kind = type(value)
        if kind is str:
            return value if value.isascii() or _encodable(value) else _surrogates(value)
        if kind in _ATOMS:
            return value
        if kind is int:
            return value if -(1 << 63) <= value < 1 << 64 else msgspec.msgpack.Ext(_INT, hex(value).encode())
        if kind in _CONTAINERS and len(value) > MOST_MEMBERS:
            return self._too_many(value, place)
        if kind is FrozenDict or kind is dict:
            return self._mapping(value, place)
        if kind is FrozenList or kind is list:
            return [self.pack(each, f"{place}[{index}]") for index, each in enumerate(value)]
        # A message turns its content into `Blocks` again.
        if kind is tuple or kind is Blocks:
            return _extension(_TUPLE, [self.pack(each, f"{place}[{index}]") for index, each in enumerate(value)])
        if kind in _names:
            fields = [self.pack(getattr(value, name), f"{place}.{name}") for name in kind.__struct_fields__]
            return _extension(_STRUCT, [_names[kind], *fields])
        if value is UNSET:
            return msgspec.msgpack.Ext(_UNSET, b"")
        return self._text(value, place)

    def _mapping(self, value: dict[Any, Any], place: str) -> Any:
        packed = {}
        for key, each in value.items():
            if type(key) is not str or not (key.isascii() or _encodable(key)):
                return self._pairs(value, place)
            packed[key] = self.pack(each, f"{place}[{key!r}]")
        return packed

    def _pairs(self, value: dict[Any, Any], place: str) -> Any:
        """Return a mapping whose keys are not all texts."""
        pairs = [
            (self.pack(key, f"a key of {place}"), self.pack(each, f"{place}[{key!r}]")) for key, each in value.items()
        ]
        return _extension(_MAPPING, pairs)

    def _too_many(self, value: Any, place: str) -> str:
        count = f"{len(value):,} members, and at most {MOST_MEMBERS:,} cross between two processes"
        if self.noted is None:
            raise InexactError(f"{place} has {count}")
        self.noted.append(f"[{count}]")
        return self.noted[-1]

    def _text(self, value: Any, place: str) -> str:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        if self.noted is None:
            raise InexactError(f"{place} is of {kind}, which cannot cross between two processes as it is")
        text = f"{text_of(value)[:_SHOWN]} [text of {kind}, which cannot cross between two processes]"
        text = text.encode("utf-8", "replace").decode()
        self.noted.append(text)
        return text


def packed_state(state: dict[Any, Any]) -> tuple[Any, list[InexactError]]:
    """Return the packed mapping of a hook's state without the values that cannot cross, and an error for each.

    The whole mapping fits into one message.
    """
    kept: dict[Any, Any] = {}
    left_out: list[InexactError] = []
    # Each value takes one byte more when the mapping is packed as pairs.
    room = MOST - _FRAME - len(state)
    for key, value in list(state.items()):
        try:
            room -= _size_in({key: value}, room)
        # An object of the hook may raise anything on its way; its author reads which value was left out.
        except Exception as exc:
            left_out.append(InexactError(f"api.state[{shown(key)}] was left out of the next generation: {exc}"))
        else:
            kept[key] = value
    return Packer().pack(kept, "api.state"), left_out


def _size_in(state: dict[Any, Any], room: int) -> int:
    """Return the bytes that a part of the state takes; raises `InexactError` when these are more than `room`."""
    size = len(encode(Packer().pack(state, "api.state")))
    if size > room:
        raise InexactError(f"it takes {size:,} bytes, and at most {MOST:,} of a state cross between two processes")
    return size


def encode(value: Any) -> bytes:
    """Return a packed value, or a message of packed values, as bytes."""
    return _encoder.encode(value)


def unpack(code: int, data: memoryview) -> Any:
    """Return the value of an extension; decoders of messages call this.  Raises `ValueError` for an unknown one."""
    if code == _INT:
        return int(bytes(data), 16)
    if code == _TEXT:
        return bytes(data).decode("utf-8", "surrogatepass")
    if code == _UNSET:
        return UNSET
    found = _decoder.decode(data)
    if code == _TUPLE:
        return tuple(found)
    if code == _MAPPING:
        return dict(found)
    if code == _STRUCT:
        kind = STRUCTS[found[0]]
        return kind(**dict(zip(kind.__struct_fields__, found[1:], strict=True)))
    raise ValueError(f"unknown extension {code}")


_decoder = msgspec.msgpack.Decoder(ext_hook=unpack)


def holds_any(value: Any, texts: Sequence[str]) -> bool:
    """Tell whether one of `texts` stands anywhere in `value`, as it came out of the other process."""
    if isinstance(value, str):
        return value in texts
    if isinstance(value, dict):
        return any(holds_any(each, texts) for each in value.values())
    if isinstance(value, list | tuple):
        return any(holds_any(each, texts) for each in value)
    if isinstance(value, Struct):
        return any(holds_any(getattr(value, name), texts) for name in value.__struct_fields__)
    return False


def _extension(code: int, value: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, _encoder.encode(value))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _surrogates(text: str) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(_TEXT, text.encode("utf-8", "surrogatepass"))
