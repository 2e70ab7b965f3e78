"""The messages between an agent and the process of a hook, over a socket of their own.

A message is a MessagePack array in a frame: four bytes of length, then the array.  Its first element names the kind of
message, and each kind has one struct here.  Fields of type `Any` hold values that `exact` has packed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError
from agent_hooks.isolation.exact import MOST as MOST
from agent_hooks.isolation.exact import encode, unpack

VERSION = 2
_HEAD = 4


class ProtocolError(AgentHooksError):
    """The other process sent something that is no message, or a message is too large to be sent."""


class Message(Struct, array_like=True, frozen=True, tag_field="message"):
    """Base of all messages."""


# ---- from the agent


class Hello(Message, frozen=True, tag="hello"):
    """The first message.

    `search`: `sys.path` of the agent; the limits are those of `Limits`; `own_first` is that of `Launch`;
    `variables`: the variables of Python's own in the environment, which the hook has back before it is loaded.
    """

    version: int
    backend: str
    search: list[bytes] | None
    memory: int | None = None
    cpu: int | None = None
    files: int | None = None
    own_first: bool = False
    variables: dict[bytes, bytes] = {}


class Load(Message, frozen=True, tag="load"):
    """Import the hook and call `register(api)`; answered by `Loaded` or `Failed`.

    `sources`: the approved bytes by path, `None` when the disk counts; `first`: the smallest number of handlers that
    subscribe after the loading; `kept`: the bytes by path that an earlier run has read from the disk.
    """

    id: int
    path: Any
    resolved: Any
    label: Any
    sources: Any
    first: int
    kept: Any


class Begin(Message, frozen=True, tag="begin"):
    """The runner was entered: take over the state of the former generation, and start the background tasks."""

    state: Any


class Scene(Struct, array_like=True, frozen=True):
    """The directories that the effects of a call are found with; `stays_open`: the agent may type into the command."""

    cwd: Any
    root: Any
    home: Any
    stays_open: bool


class Place(Struct, array_like=True, frozen=True):
    """The surroundings of an event, without the UI; `scene`: for the event of a call, of which effects can be asked."""

    cwd: Any
    has_ui: bool
    mode: Any
    session_id: Any
    session_file: Any
    agent_id: Any
    tool_name: Any
    scene: Scene | None = None


class Call(Message, frozen=True, tag="call"):
    """Call a handler."""

    id: int
    handler: int
    event: Any
    place: Place


class Reach(Message, frozen=True, tag="reach"):
    """Call an interceptor with a copy of the output; its result is a mapping of the changed fields."""

    id: int
    interceptor: str
    input: Any
    output: Any
    place: Place


class Execute(Message, frozen=True, tag="execute"):
    """Run a tool; `updates`: the agent takes its progress."""

    id: int
    tool: str
    tool_call_id: Any
    input: Any
    updates: bool


class Cancel(Message, frozen=True, tag="cancel"):
    """Cancel a call; it is answered all the same."""

    id: int


class Unload(Message, frozen=True, tag="unload"):
    """End the background tasks and call the `on_unload` functions; the result is `api.state`."""

    id: int


class Reply(Message, frozen=True, tag="reply"):
    """The answer to a request of the hook; `error`: why there is no value; `kind`: the class of that error."""

    request: int
    value: Any = None
    error: str | None = None
    kind: str = ""


# ---- from the hook's process


class Failure(Struct, array_like=True, frozen=True):
    """An exception in the hook's process: its text, its traceback, and its place in the hook."""

    text: str
    traceback: str
    file: str | None
    line: int | None


class Subscribed(Struct, array_like=True, frozen=True):
    """A handler; `tool`: names, and patterns with their flags."""

    number: int
    event: str
    name: str
    priority: int
    tool: list[str | tuple[str, int]] | None
    on_error: Literal["block", "continue"] | None
    file: str | None
    line: int | None


class Stepping(Struct, array_like=True, frozen=True):
    """An interceptor; a pattern is a text, or a text with its flags."""

    id: str
    point: str
    name: str
    priority: int
    tool: str | tuple[str, int] | None
    agent: str | tuple[str, int] | None


class Offered(Struct, array_like=True, frozen=True):
    """A tool."""

    name: str
    description: str
    input_schema: Any


class Registrations(Message, frozen=True, tag="registrations"):
    """Everything that the hook has registered; sent again whenever it changes."""

    handlers: list[Subscribed]
    interceptors: list[Stepping]
    tools: list[Offered]


class Imported(Message, frozen=True, tag="imported"):
    """The hook, or a module beside it, was read from the disk: each later run gets these bytes."""

    path: Any
    data: bytes


class Loaded(Message, frozen=True, tag="loaded"):
    """The hook was loaded from `files`."""

    id: int
    registrations: Registrations
    files: list[str]


class Result(Message, frozen=True, tag="result"):
    """The value that a call returned."""

    id: int
    value: Any = None


class Failed(Message, frozen=True, tag="failed"):
    """A call failed."""

    id: int
    failure: Failure


class Ask(Message, frozen=True, tag="ask"):
    """Request a dialog (`select`, `confirm`, `input`) or a program (`exec`); answered by `Reply`.

    `call`: the call whose context was used.
    """

    request: int
    call: int
    method: Literal["select", "confirm", "input", "exec"]
    arguments: Any


class Stop(Message, frozen=True, tag="stop"):
    """Cancel a request of call `call`; it gets no reply."""

    request: int
    call: int


class Notify(Message, frozen=True, tag="notify"):
    """Show the person a message."""

    call: int
    text: Any
    type: Any


class Send(Message, frozen=True, tag="send"):
    """Send the agent a message; answered by `Reply`."""

    request: int
    text: Any
    attachments: Any


class Update(Message, frozen=True, tag="update"):
    """The progress of a tool."""

    id: int
    output: Any


class Deaf(Message, frozen=True, tag="deaf"):
    """The process cannot hear of calls any more; `why`: the act of the hook that led to it."""

    why: str


class Reported(Message, frozen=True, tag="reported"):
    """A background task or an `on_unload` function failed."""

    handler: str
    event: str
    failure: Failure


FromAgent = Hello | Load | Begin | Call | Reach | Execute | Cancel | Unload | Reply
FromHook = Imported | Loaded | Registrations | Result | Failed | Ask | Stop | Notify | Send | Update | Deaf | Reported

_from_agent: msgspec.msgpack.Decoder[FromAgent] = msgspec.msgpack.Decoder(FromAgent, ext_hook=unpack)
_from_hook: msgspec.msgpack.Decoder[FromHook] = msgspec.msgpack.Decoder(FromHook, ext_hook=unpack)


def plain(text: str, limit: int = 100_000) -> str:
    """Return a text that a message can hold: without lone surrogates, and cut to `limit` characters."""
    cut = text if len(text) <= limit else f"{text[:limit]} … [{len(text) - limit} characters left out]"
    return cut.encode("utf-8", "backslashreplace").decode()


def from_agent(data: bytes) -> FromAgent:
    """Return a message of the agent."""
    return _from_agent.decode(data)


def from_hook(data: bytes) -> FromHook:
    """Return a message of a hook's process; raises `ProtocolError` for anything else."""
    try:
        return _from_hook.decode(data)
    # The process may send anything, and rebuilding a value may raise anything; the agent then ends the process.
    except Exception as exc:
        raise ProtocolError(f"its process sent something that is no message: {exc}") from None


def framed(message: Message) -> bytes:
    """Return a message with its length before it.  Raises `ProtocolError` for one that is too large."""
    data = encode(message)
    if len(data) > MOST:
        raise ProtocolError(f"a message of {len(data):,} bytes is too large: at most {MOST:,} cross between processes")
    return len(data).to_bytes(_HEAD, "big") + data


class Frames:
    """Takes bytes as they arrive, and yields whole messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the messages that are complete with `data`; raises `ProtocolError` for a length that cannot be."""
        self._data += data
        while len(self._data) >= _HEAD:
            length = int.from_bytes(self._data[:_HEAD], "big")
            if length > MOST:
                raise ProtocolError(f"its process announced a message of {length:,} bytes; at most {MOST:,} are taken")
            if len(self._data) < _HEAD + length:
                return
            message = bytes(self._data[_HEAD : _HEAD + length])
            del self._data[: _HEAD + length]
            yield message
