"""What a bridge is: a codec between another agent's hook protocol and ours.  It does no I/O.

`decode` makes a `Happening` of a payload; hooks make a `Verdict` of that (see `bridging`); `encode` makes a `Reply` of
it.  A bridge knows the other agent's field names, and nothing else does.  How to write one: docs/bridges.md.
Above: the bridges, bridging, testing, cli.  Below: content, events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError, describe
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event
from agent_hooks.values.tool import NO_SCHEMA

OURS = "agent_hooks"  # what installed entries are known by
LOOPBACK = "127.0.0.1"  # where events by HTTP are heard
UNREADABLE = "agent-hooks could not read the event"
UNJUDGED = "agent-hooks could not judge this"
"""How the reason of a refusal begins that no hook decided; `server.client` has a copy."""


class BridgeError(AgentHooksError):
    """A payload, or a settings file of the other agent, is not what its protocol says."""


# ---- what happened ---------------------------------------------------------------------------------------------------


class Happening(Struct, frozen=True, kw_only=True):
    """One event of the other agent, in our words; this class itself stands for one that we have no word for.

    `name`: the event's own name; `native`: the whole payload; `cwd`: where the agent works now; `agent_id`: `"main"`, or
    the sub-agent's; `takes_context`: whether the agent shows its model a text in the answer; `leaves`: the session ends,
    or the agent goes on in another one.  What the payload lacks is `None`.  What hooks see of `native` is a copy.
    """

    name: str
    native: Mapping[str, Any]
    session_id: str | None = None
    session_file: str | None = None
    cwd: str | None = None
    agent_id: str = "main"
    takes_context: bool = False
    leaves: bool = False


class Told(Happening, frozen=True):
    """Events to emit in this order; `before_compact` can be cancelled."""

    events: tuple[Event[Any], ...]


class PromptGiven(Happening, frozen=True):
    """The person said something; it can be kept from the agent."""

    prompt: str


class Call(Happening, frozen=True):
    """A tool call: `tool_name` and `input` in our vocabulary where we have a word for the tool, else as they are."""

    tool_name: str
    tool_call_id: str
    input: Mapping[str, Any]


class CallAsked(Call, frozen=True):
    """A tool is about to run: the gate.  `input_schema`: what is known of the tool's arguments, in our words."""

    input_schema: Mapping[str, Any] = NO_SCHEMA


class CallEnded(Call, frozen=True):
    """A tool ran, or failed; `duration_ms`: its own time, if the payload says so."""

    output: ToolOutput
    duration_ms: float | None = None


class PermissionAsked(Call, frozen=True):
    """The other agent is about to ask the person whether a tool may run."""


# ---- what hooks made of it, and what goes out ------------------------------------------------------------------------


class Verdict(Struct, frozen=True, kw_only=True):
    """What hooks made of a happening; as it is, nothing.

    `block`: it must not happen, and why; `ask`: the person is to be asked this; `allow`: it needs no permission (only by
    `permission.ask` or `auto_allow`); `input`: what the tool is to be called with, the whole of it; `output`: what the
    agent is to see of the result; `go_on`: it stops, and is to go on with this; `context`: texts for the model;
    `messages`: for the person.
    """

    block: str | None = None
    ask: str | None = None
    allow: bool = False
    input: Mapping[str, Any] | None = None
    output: ToolOutput | None = None
    go_on: str | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


class Reply(Struct, frozen=True):
    """What a hook command prints, and the code it exits with."""

    stdout: str
    stderr: str = ""
    exit_code: int = 0

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Reply:
        """Return the reply that is one JSON object; ASCII, so that no half of a surrogate pair can break it.

        Raises `ValueError` or `TypeError` for what JSON has no word for: half an answer would pass for none.
        """
        return cls(json.dumps(value, allow_nan=False) + "\n" if value else "{}\n")


class EventRow(Struct, frozen=True):
    """One event of the other agent: what it becomes here, what hooks can do about it, and what they cannot."""

    name: str
    becomes: str
    can: str = "-"
    cannot: str = "-"
    gate: bool = False  # whether its hooks can stop something: a failure of ours then does
    timeout: int | None = None  # seconds, where the agent's own is too short
    decides_nothing: bool = False  # nor hides anything: where it can be told by HTTP, it may be, and may be lost
    always: bool = False  # installed also where nobody listens, as gates are
    feeds: tuple[
        str, ...
    ] = ()  # what it reaches here: our events, points, and the other words of `bridging.listened_to`


NOTHING = Verdict()
SILENCE = Reply.of({})


class Address(Struct, frozen=True):
    """Where the resident server hears events by HTTP: a port of `LOOPBACK`, and the token that a request has to bring."""

    port: int
    token: str

    def url(self, agent: str, event: str) -> str:
        """Return where an event of an agent is posted."""
        return f"http://{LOOPBACK}:{self.port}/agent-hooks/{agent}/{event}"


class Installed(Struct, frozen=True):
    """One entry of ours in the other agent's settings; `address`: that of one which posts, whose command is its URL."""

    event: str
    command: tuple[str, ...]
    fails_closed: bool = False  # whether the agent takes a failure of the command for a denial
    timeout: float | None = None  # seconds
    limit: str = ""  # what keeps it from running at each such event, if anything
    address: Address | None = None


class Facts(Struct, frozen=True):
    """What `agent-hooks doctor` has to know of an agent that works on a project; `~` stands for home.

    `program`: its command; `tested`: the version this bridge was tried with; `files`: what may keep hooks from running,
    beside the settings; `others`: globs of files in which an agent that reads the same settings has hooks of its own;
    `environment`: what the agent sets for a hook's command; `sample`: the payload of a tool call that does nothing.
    A call, for at a prompt hooks do things: they save a checkpoint.
    """

    program: str
    tested: str
    files: tuple[str, ...]
    others: tuple[str, ...]
    environment: Mapping[str, str]
    sample: Mapping[str, Any]


class Hindrance(Struct, frozen=True):
    """What keeps hooks from running; `always`, and not only until a question is answered; `remedy`: what to do."""

    text: str
    always: bool = True
    remedy: str = ""


class ToolWords(Struct, frozen=True):
    """A tool's name and the names of its arguments, theirs and ours; arguments that are not here keep theirs."""

    theirs: str
    ours: str
    arguments: Mapping[str, str] = {}  # theirs → ours
    milliseconds: tuple[str, ...] = ()  # arguments of theirs that are seconds with us
    needs: str = ""  # an argument, called so by both, without which a call is something else


class Bridge(Protocol):
    """The protocol of a bridge; `agent_hooks.testing.check_bridge` checks one."""

    name: str
    tools: Sequence[ToolWords]
    environment: Sequence[str]  # the variables that its methods read, which the agent sets
    project_variable: str  # of these, the one that names the directory the agent was started in
    process_variable: str  # and the agent's process id

    def decode(self, payload: object) -> Happening:
        """Return what a payload says; raises `BridgeError` that names the field."""
        ...

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return what to print; a block counts before all else, and nothing but `answer.allow` becomes an allow."""
        ...

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return the reply where we failed: a denial if the event is a gate or nobody knows it, else silence."""
        ...

    def describe(self) -> Sequence[EventRow]:
        """Return the events, in the order they are installed."""
        ...

    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the other agent's settings with our entries; `command` and the event's name are what they run.

        `events`: which, of `describe()`; with an `address`, those that decide nothing are posted there, if the agent can
        do that.  Everything else stays where it is, and so do earlier entries of ours,
        brought up to date.  Raises `BridgeError`.
        """
        ...

    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without our entries.  Raises `BridgeError`."""
        ...

    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return our entries in the settings, whatever else is in them."""
        ...

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return what there is to know for a check of an installation; `project`: an absolute path."""
        ...

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return what in the content of a settings file, or of one of `facts().files`, keeps hooks from running.

        `posted`: the URLs of the entries that post.
        """
        ...

    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the paths of the settings files `local`, `project`, `user`.

        The first two are relative to the project's directory: this person's own there, and what all who work there share.
        """
        ...

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Tell whether this is the agent that runs us, and not another one that reads its settings."""
        ...

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Tell whether a person sits at the agent."""
        ...


def read_payload(bridge: Bridge, raw: bytes | str) -> Happening:
    """Return what the text of a payload says; raises `BridgeError`."""
    try:
        payload: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:  # which is slower, and takes half of a surrogate pair too
            payload = json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise BridgeError(f"the payload is no JSON: {describe(exc)}") from None
    return bridge.decode(payload)


# ---- the vocabulary --------------------------------------------------------------------------------------------------


def to_ours(tools: Sequence[ToolWords], name: str, input: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool's name and input in our vocabulary; a tool without a word of ours stays as it is.

    Raises `BridgeError` for an input in which two arguments would become one.
    """
    words = _words(tools, name)
    if words is None or words.needs not in ("", *input):
        return name, dict(input)
    said: dict[str, Any] = {}
    for key, value in input.items():
        word = words.arguments.get(key, key)
        if word in said:
            raise BridgeError(f"{name}: tool_input has both {word!r} and the argument that we call so")
        said[word] = value / 1000 if key in words.milliseconds and _is_number(value) else value
    return words.ours, said


def to_theirs(tools: Sequence[ToolWords], name: str, input: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input of ours in the words of their tool `name`; the opposite of `to_ours`."""
    words = _words(tools, name)
    if words is None or words.needs not in ("", *input):
        return dict(input)
    back = {ours: theirs for theirs, ours in words.arguments.items()}
    said: dict[str, Any] = {}
    for key, value in input.items():
        word = back.get(key, key)
        said[word] = round(value * 1000) if word in words.milliseconds and _is_number(value) else value
    return said


def our_name(tools: Sequence[ToolWords], name: str) -> str:
    """Return our word for their tool, or their own name."""
    words = _words(tools, name)
    return name if words is None else words.ours


def _words(tools: Sequence[ToolWords], name: str) -> ToolWords | None:
    for words in tools:
        if words.theirs == name:
            return words
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
