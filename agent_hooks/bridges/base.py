"""The parts of a bridge: a codec between another agent's hook protocol and our events, which does no I/O.

`decode` turns a payload into a `Happening`.  `driver` takes the happening through our hooks and returns a `Verdict`.
`encode` turns the verdict into a `Reply`.  Only the bridge knows the other agent's field names.  The page docs/bridges.md
shows how to write one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError, describe
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event
from agent_hooks.values.tool import NO_SCHEMA

OURS = "agent_hooks"
"""The word that marks our entries in another agent's settings."""
LOOPBACK = "127.0.0.1"
"""The only address at which the resident server accepts HTTP."""
UNREADABLE = "agent-hooks could not read the event"
"""The beginning of the reason for denying an event whose payload cannot be read."""
UNJUDGED = "agent-hooks could not judge this"
"""The beginning of the reason for denying an event for another failure of ours."""


class BridgeError(AgentHooksError):
    """A payload or a settings file of the other agent does not have the form that its protocol defines."""


# ---- in: an event of the other agent ---------------------------------------------------------------------------------


class Happening(Struct, frozen=True, kw_only=True):
    """One event of the other agent, in our words.  This class itself stands for an event that we have no word for.

    `name`: the event's own name.
    `native`: the whole payload; hooks get a copy of it.
    `cwd`: the directory where the agent works now.
    `agent_id`: `"main"`, or the id of a sub-agent.
    `takes_context`: the agent shows its model a text from the answer to this event.
    `leaves`: the session ends, or the agent continues in another session.

    A field that the payload lacks is `None`.
    """

    name: str
    native: Mapping[str, Any]
    session_id: str | None = None
    session_file: str | None = None
    cwd: str | None = None
    agent_id: str = "main"
    takes_context: bool = False
    leaves: bool = False


class EventsReported(Happening, frozen=True):
    """A happening that is one or more of our events, to be emitted in this order; `before_compact` can be cancelled."""

    events: tuple[Event[Any], ...]


class PromptGiven(Happening, frozen=True):
    """The person submitted a prompt; hooks can keep it from the agent."""

    prompt: str


class Call(Happening, frozen=True):
    """A tool call.  `tool_name` and `input` are in our vocabulary if it has the tool, else as the agent sent them.

    `native_name`: the agent's own name of the tool.
    """

    tool_name: str
    tool_call_id: str
    input: Mapping[str, Any]
    native_name: str


class CallAsked(Call, frozen=True):
    """A tool is about to run: the gate.  `input_schema`: the schema of the tool's arguments, as far as it is known."""

    input_schema: Mapping[str, Any] = NO_SCHEMA


class CallEnded(Call, frozen=True):
    """A tool ran or failed.  `duration_ms`: the time that the tool took, if the payload has it."""

    output: ToolOutput
    duration_ms: float | None = None


class PermissionAsked(Call, frozen=True):
    """The other agent is about to ask the person whether a tool may run."""


# ---- out: the answer of our hooks ------------------------------------------------------------------------------------


class Verdict(Struct, frozen=True, kw_only=True):
    """The combined answer of all hooks to a happening.  The default is no opinion.

    `block`: stop the happening, for this reason.
    `ask`: ask the person this question.
    `allow`: run the tool without asking for permission; only `permission.ask` and `auto_allow` set it.
    `input`: the complete input with which the tool is to be called.
    `output`: the result that the agent is to use.
    `go_on`: keep the agent going with this text, although it wants to stop.
    `context`: texts for the model.
    `messages`: texts for the person.
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
    """The output and the exit code of a hook command."""

    stdout: str
    stderr: str = ""
    exit_code: int = 0

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Reply:
        """Return the reply that prints one JSON object, in ASCII, so that half of a surrogate pair cannot break it.

        Raises `ValueError` or `TypeError` for a value that JSON cannot express.
        """
        return cls(json.dumps(value, allow_nan=False) + "\n" if value else "{}\n")


NOTHING = Verdict()
SILENCE = Reply.of({})


# ---- the facts about an agent ----------------------------------------------------------------------------------------


class EventRow(Struct, frozen=True):
    """One event of the other agent.

    `gate`: hooks can stop it, so that a failure of ours stops it too.
    `takes_context`: the agent shows its model a text from the answer.
    `decides_nothing`: no answer stops, changes or hides anything, so the event may be posted by HTTP, and be lost.
    `always`: install the event also when no hook listens to it; gates are installed always.
    `timeout`: seconds to set in the entry, because the agent's own timeout is too short.
    `feeds`: the names of our events and points that it reaches, and the other words that `driver.listened_to` returns.
    """

    name: str
    gate: bool = False
    takes_context: bool = False
    decides_nothing: bool = False
    always: bool = False
    timeout: int | None = None
    feeds: tuple[str, ...] = ()


class Address(Struct, frozen=True):
    """The place where the resident server accepts events by HTTP: a port of `LOOPBACK`, and the token of each request."""

    port: int
    token: str

    def url(self, agent: str, event: str) -> str:
        """Return the URL to which an event of an agent is posted."""
        return f"http://{LOOPBACK}:{self.port}/agent-hooks/{agent}/{event}"


class Installed(Struct, frozen=True):
    """One entry of ours in the other agent's settings.

    `command`: the words of the command line; the URL, for an entry that posts.
    `fails_closed`: the agent takes a failure of the command for a denial.
    `timeout`: seconds.
    `limits`: the settings, by key, that keep the entry from running at each such event.
    `address`: the address of an entry that posts.
    """

    event: str
    command: tuple[str, ...]
    fails_closed: bool = False
    timeout: float | None = None
    limits: Mapping[str, Any] = {}
    address: Address | None = None


class Facts(Struct, frozen=True):
    """The facts that `agent-hooks doctor` needs about an agent that works on a project; `~` stands for the home.

    `program`: the agent's command.
    `tested`: the version that this bridge was tested with.
    `files`: files other than the settings that can keep hooks from running.
    `others`: globs of files in which an agent that reads the same settings has hooks of its own.
    `environment`: the variables that the agent sets for a hook's command.
    `sample`: the payload of a tool call that does nothing.  It is no prompt, because hooks save a checkpoint at a prompt.
    """

    program: str
    tested: str
    files: tuple[str, ...]
    others: tuple[str, ...]
    environment: Mapping[str, str]
    sample: Mapping[str, Any]


class Hindrance(Struct, frozen=True):
    """A setting of the agent that keeps hooks from running.  `remedy`: the action that removes it.

    `always`: it does so always, and not only until the person answers a question.
    """

    text: str
    always: bool = True
    remedy: str = ""


class ToolWords(Struct, frozen=True):
    """A tool's name and the names of its arguments, theirs and ours.

    `arguments`: their name → our name; an argument that is not in it keeps its name.
    `milliseconds`: the arguments that are milliseconds for them and seconds for us.
    `needs`: an argument, with the same name on both sides; a call without it is no call of our tool.
    """

    theirs: str
    ours: str
    arguments: Mapping[str, str] = {}
    milliseconds: tuple[str, ...] = ()
    needs: str = ""


# ---- the bridge ------------------------------------------------------------------------------------------------------


class Bridge(ABC):
    """The base class of all bridges: a bridge defines the abstract methods, and overrides each default that differs.

    `name`: the agent's name on the command line.
    `events`: the agent's events, in the order in which they are installed.
    `tools`: the vocabulary of its tools.
    `environment`: the variables that the methods read, which the agent sets.
    `project_variable`: the one of them that holds the directory in which the agent was started; empty if there is none.
    `process_variable`: the one of them that holds the agent's process id; empty if there is none.
    `timeout`: seconds that the agent waits for a hook command whose row states no timeout.
    """

    name: str
    events: Sequence[EventRow]
    tools: Sequence[ToolWords] = ()
    environment: Sequence[str] = ()
    project_variable: str = ""
    process_variable: str = ""
    timeout: int = 600

    @abstractmethod
    def decode(self, payload: object) -> Happening:
        """Return the happening of a payload.  Raises `BridgeError`, which names the wrong field."""

    @abstractmethod
    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the reply to print.  A block overrides everything else, and only `answer.allow` becomes an allow."""

    @abstractmethod
    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return the reply for a failure of ours: a denial for a gate and for an unknown event, else silence."""

    def describe(self) -> Sequence[EventRow]:
        """Return the events, in the order in which they are installed."""
        return self.events

    def row(self, event_name: str | None) -> EventRow:
        """Return the row of an event.  An unknown event has a row of defaults."""
        return next((row for row in self.describe() if row.name == event_name), EventRow(event_name or ""))

    @abstractmethod
    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the paths of the settings files `local`, `project` and `user`.

        The first two are relative to the project's directory: this person's own file there, and the shared one.
        """

    @abstractmethod
    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the other agent's settings with our entries for `events`.

        `command`: the command line of an entry, without the event's name, which comes after it.
        `address`: post the events that decide nothing to it, if the agent can do that.

        Earlier entries of ours are brought up to date in their place, and nothing else changes.  Raises `BridgeError`.
        """

    @abstractmethod
    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without our entries.  Raises `BridgeError`."""

    @abstractmethod
    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return our entries in the settings.  Settings of a wrong form have none."""

    @abstractmethod
    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return the facts for a check of an installation.  `project`: an absolute path."""

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return the settings that keep hooks from running, in one settings file or one of `facts().files`.

        `found`: the file's content.  `posted`: the URLs of the entries that post.
        """
        return ()

    def variables(self, settings: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the environment variables that a settings file sets for the commands of hooks."""
        return ()

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Return whether this agent runs us, and not another agent that reads its settings."""
        return True

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return whether a person is at the agent to answer a question."""
        return True


def read_payload(bridge: Bridge, raw: bytes | str) -> Happening:
    """Return the happening of a payload's text.  Raises `BridgeError`."""
    try:
        payload: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:
            # This decoder is slower, and accepts half of a surrogate pair.
            payload = json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise BridgeError(f"the payload is no JSON: {describe(exc)}") from None
    return bridge.decode(payload)


def to_ours(tools: Sequence[ToolWords], name: str, input: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool's name and input in our vocabulary.  A tool that the vocabulary lacks stays as it is.

    Raises `BridgeError` for an input in which two arguments would become one.
    """
    words = _words(tools, name)
    if words is None or words.needs not in ("", *input):
        return name, dict(input)
    ours: dict[str, Any] = {}
    for key, value in input.items():
        word = words.arguments.get(key, key)
        if word in ours:
            raise BridgeError(f"{name}: tool_input gives {word!r} twice, under two names")
        ours[word] = value / 1000 if key in words.milliseconds and _is_number(value) else value
    return words.ours, ours


def to_theirs(tools: Sequence[ToolWords], name: str, input: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input of ours in the vocabulary of their tool `name`: the inverse of `to_ours`."""
    words = _words(tools, name)
    if words is None or words.needs not in ("", *input):
        return dict(input)
    back = {ours: theirs for theirs, ours in words.arguments.items()}
    native: dict[str, Any] = {}
    for key, value in input.items():
        word = back.get(key, key)
        native[word] = round(value * 1000) if word in words.milliseconds and _is_number(value) else value
    return native


def our_name(tools: Sequence[ToolWords], name: str) -> str:
    """Return our name of their tool, or their name if the vocabulary lacks it."""
    words = _words(tools, name)
    return name if words is None else words.ours


def _words(tools: Sequence[ToolWords], name: str) -> ToolWords | None:
    return next((words for words in tools if words.theirs == name), None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
