"""What an RPC client and the agent say to each other: commands in, records out, one JSON object a line.

Above: modes.rpc, schema.  Below: events, ui.rpc.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Union

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agent_hooks.errors import HookError, Outcome, did_you_mean, shown
from agent_hooks.ui.rpc import (
    ConfirmRequest,
    HookUiCancel,
    HookUiResponse,
    InputRequest,
    NotifyRequest,
    SelectRequest,
)
from agent_hooks.values.content import Attachment, CompactionEntry
from agent_hooks.values.events import EVENTS, ModelRef

# ---- in --------------------------------------------------------------------------------------------------------------


class Command(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", forbid_unknown_fields=True):
    """Base of the commands; `id` comes back with the response."""

    type: ClassVar[str]

    id: str | int | None = None


class Prompt(Command, frozen=True, kw_only=True, tag="prompt"):
    """Let the agent work on a message; while it works, the message is queued.  Answered at acceptance."""

    type: ClassVar[str] = "prompt"

    message: str
    attachments: tuple[Attachment, ...] = ()


class Abort(Command, frozen=True, kw_only=True, tag="abort"):
    """Stop what runs, and drop the commands that wait for their turn; does not wait itself."""

    type: ClassVar[str] = "abort"


class Shutdown(Command, frozen=True, kw_only=True, tag="shutdown"):
    """End the session and the process; does not wait for its turn."""

    type: ClassVar[str] = "shutdown"


class GetState(Command, frozen=True, kw_only=True, tag="get_state"):
    """Ask how things stand."""

    type: ClassVar[str] = "get_state"


class NewSession(Command, frozen=True, kw_only=True, tag="new_session"):
    """Leave this session and start another."""

    type: ClassVar[str] = "new_session"


class SwitchSession(Command, frozen=True, kw_only=True, tag="switch_session"):
    """Leave this session and go on with the one in `session_file`."""

    type: ClassVar[str] = "switch_session"

    session_file: str


class Clear(Command, frozen=True, kw_only=True, tag="clear"):
    """Forget the conversation."""

    type: ClassVar[str] = "clear"


class Branch(Command, frozen=True, kw_only=True, tag="branch"):
    """Go back to before the user message that is entry `entry_index` of the session."""

    type: ClassVar[str] = "branch"

    entry_index: int


class Compact(Command, frozen=True, kw_only=True, tag="compact"):
    """Put a summary in the place of the older messages."""

    type: ClassVar[str] = "compact"

    custom_instructions: str | None = None


COMMANDS: tuple[type[Command], ...] = (
    Prompt,
    Abort,
    Shutdown,
    GetState,
    NewSession,
    SwitchSession,
    Clear,
    Branch,
    Compact,
)


class UnreadableLine(Struct, frozen=True):
    """A line that is no command: what is wrong with it, and what could be read of `type` and `id`."""

    error: str
    command: str = "parse"
    id: str | int | None = None


_decoder = msgspec.json.Decoder(Union[(*COMMANDS, HookUiResponse)])  # made from a tuple
_TYPES = sorted([*(kind.type for kind in COMMANDS), HookUiResponse.type])


def parse(line: bytes) -> Command | HookUiResponse | UnreadableLine:
    """Return what a line says; never raises."""
    try:
        return _decoder.decode(line)  # type: ignore[no-any-return]  # the union is made at run time
    except msgspec.ValidationError as exc:
        error = str(exc)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        error = "it cannot be read"
    try:
        found = msgspec.json.decode(line)
    except UnicodeDecodeError as exc:
        return UnreadableLine(f"invalid UTF-8: {exc}")
    except (msgspec.DecodeError, RecursionError) as exc:
        return UnreadableLine(f"invalid JSON: {exc}")
    if not isinstance(found, dict):
        return UnreadableLine(f"a command is a JSON object, not {shown(found)}")
    kind, sent_id = found.get("type"), found.get("id")
    known_id = sent_id if isinstance(sent_id, str | int) and not isinstance(sent_id, bool) else None
    if not isinstance(kind, str):
        return UnreadableLine('the command has no "type" that is text', id=known_id)
    if kind not in _TYPES:
        return UnreadableLine(f"there is no command {shown(kind)}{did_you_mean(kind, _TYPES)}", id=known_id)
    return UnreadableLine(f"{kind}: {error}", kind, known_id)


# ---- out -------------------------------------------------------------------------------------------------------------


class Record(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """Base of what the agent says beside events and dialogs; what has no value is left out."""

    type: ClassVar[str]


class Response(Record, frozen=True, kw_only=True, tag="response"):
    """What came of a command.

    `id`: as the command had it; `command`: its type, and `parse` for a line that cannot be read; `error`: if it was not
    done.  A `hook_ui_response` gets one only when something is wrong with it, with the id of the dialog.
    """

    type: ClassVar[str] = "response"

    id: str | int | UnsetType = UNSET
    command: str
    success: bool
    error: str | UnsetType = UNSET


class State(Struct, frozen=True, kw_only=True, rename="camel"):
    """How things stand; `session_file` is `null` when the session is not saved."""

    session_id: str
    session_file: str | None
    model: ModelRef
    thinking_level: str
    is_streaming: bool
    message_count: int


class StateResponse(Response, frozen=True, kw_only=True, tag="response"):
    """The response to `get_state`."""

    command: Literal["get_state"]
    data: State


class ActionResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of a session action: whether a hook cancelled it and why.

    `text`: of the user message that was branched from; `compaction_entry`: the new entry of a `compact`.
    """

    cancelled: bool
    reason: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    compaction_entry: CompactionEntry | UnsetType = UNSET


class ActionResponse(Response, frozen=True, kw_only=True, tag="response"):
    """The response to a session action that was carried out, or cancelled by a hook."""

    data: ActionResult


class MessageUpdate(Record, frozen=True, kw_only=True, tag="message_update"):
    """More of the model's words."""

    type: ClassVar[str] = "message_update"

    delta: str


class RunStart(Record, frozen=True, kw_only=True, tag="run_start"):
    """The agent begins to work on a message; `source` is the hook that sent it, absent for a prompt of the client."""

    type: ClassVar[str] = "run_start"

    message: str
    source: str | UnsetType = UNSET


class MessageInjected(Record, frozen=True, kw_only=True, tag="message_injected"):
    """A message is delivered to the working agent: one that was queued, or what a hook wants it to go on with.

    `source` as in `run_start`.
    """

    type: ClassVar[str] = "message_injected"

    message: str
    source: str | UnsetType = UNSET


class RunEnd(Record, frozen=True, kw_only=True, tag="run_end"):
    """The agent is done: in order, aborted, or because of `error`, the model's as a rule."""

    type: ClassVar[str] = "run_end"

    aborted: bool
    error: str | UnsetType = UNSET


class HookErrorRecord(Record, frozen=True, kw_only=True, tag="hook_error"):
    """A hook failed; `outcome` says whether that blocked what was about to happen.

    `reason`: of a `session` event; `line`: in the hook's file.  `event` is `load` for a hook that could not be loaded.
    """

    type: ClassVar[str] = "hook_error"

    hook_path: str
    event: str
    error: str
    handler: str
    outcome: Outcome
    reason: str | UnsetType = UNSET
    line: int | UnsetType = UNSET


def hook_error_record(error: HookError) -> HookErrorRecord:
    """Return the record of a hook's failure."""
    return HookErrorRecord(
        hook_path=error.hook_path,
        event=error.event,
        error=error.error,
        handler=error.handler,
        outcome=error.outcome,
        reason=error.reason or UNSET,
        line=error.line or UNSET,
    )


# ---- both, as a JSON Schema ------------------------------------------------------------------------------------------

_RECORDS = (
    *(Response, StateResponse, ActionResponse, MessageUpdate, RunStart, MessageInjected, RunEnd, HookErrorRecord),
    *(SelectRequest, ConfirmRequest, InputRequest, NotifyRequest, HookUiCancel, *EVENTS),
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a line: `$defs` has `Command` for what a client sends and `Record` for what it gets."""
    kinds = (*COMMANDS, HookUiResponse, *_RECORDS)
    refs, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    commands = len(COMMANDS) + 1
    definitions = dict(definitions) | {
        "Command": {"anyOf": list(refs[:commands])},
        "Record": {"anyOf": list(refs[commands:])},
    }
    return {"anyOf": [{"$ref": "#/$defs/Command"}, {"$ref": "#/$defs/Record"}], "$defs": definitions}
