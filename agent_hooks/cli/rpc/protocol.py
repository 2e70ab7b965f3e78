"""The wire of RPC mode: the client sends requests, the agent sends records, one JSON object a line.

The documentation and the JSON Schema call a request a command.
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

# ---- requests --------------------------------------------------------------------------------------------------------


class Request(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", forbid_unknown_fields=True):
    """Base of the requests; the response has the same `id`."""

    type: ClassVar[str]

    id: str | int | None = None


class Prompt(Request, frozen=True, kw_only=True, tag="prompt"):
    """Let the agent work on a message; while it works, the message is queued.  The response says that it was accepted."""

    type: ClassVar[str] = "prompt"

    message: str
    attachments: tuple[Attachment, ...] = ()


class Abort(Request, frozen=True, kw_only=True, tag="abort"):
    """Abort the run or action under way, and refuse the requests that wait; does not wait itself."""

    type: ClassVar[str] = "abort"


class Shutdown(Request, frozen=True, kw_only=True, tag="shutdown"):
    """End the session and the process; does not wait."""

    type: ClassVar[str] = "shutdown"


class GetState(Request, frozen=True, kw_only=True, tag="get_state"):
    """Ask for the state of the session."""

    type: ClassVar[str] = "get_state"


class NewSession(Request, frozen=True, kw_only=True, tag="new_session"):
    """Leave this session and start another."""

    type: ClassVar[str] = "new_session"


class SwitchSession(Request, frozen=True, kw_only=True, tag="switch_session"):
    """Leave this session and go on with the one in `session_file`."""

    type: ClassVar[str] = "switch_session"

    session_file: str


class Clear(Request, frozen=True, kw_only=True, tag="clear"):
    """Forget the conversation."""

    type: ClassVar[str] = "clear"


class Branch(Request, frozen=True, kw_only=True, tag="branch"):
    """Go back to before the user message that is entry `entry_index` of the session."""

    type: ClassVar[str] = "branch"

    entry_index: int


class Compact(Request, frozen=True, kw_only=True, tag="compact"):
    """Put a summary in the place of the older messages."""

    type: ClassVar[str] = "compact"

    custom_instructions: str | None = None


class Reload(Request, frozen=True, kw_only=True, tag="reload"):
    """Load the hooks and settings again; a change of their files does that by itself, before the next turn."""

    type: ClassVar[str] = "reload"


REQUESTS: tuple[type[Request], ...] = (
    Prompt,
    Abort,
    Shutdown,
    GetState,
    NewSession,
    SwitchSession,
    Clear,
    Branch,
    Compact,
    Reload,
)


class UnreadableLine(Struct, frozen=True):
    """A line that is not a request: the error, and its `type` and `id` as far as they can be read."""

    error: str
    command: str = "parse"
    id: str | int | None = None


_decoder = msgspec.json.Decoder(Union[(*REQUESTS, HookUiResponse)])  # made from a tuple
_TYPES = sorted([*(kind.type for kind in REQUESTS), HookUiResponse.type])


def parse(line: bytes) -> Request | HookUiResponse | UnreadableLine:
    """Return the request or answer in a line, or an `UnreadableLine`; never raises."""
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


# ---- records ---------------------------------------------------------------------------------------------------------


class Record(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """Base of the records beside events and dialogs; a field without a value is left out."""

    type: ClassVar[str]


class Response(Record, frozen=True, kw_only=True, tag="response"):
    """The outcome of a request.

    `id`: that of the request; `command`: its type, or `parse` for a line that cannot be read; `error`: the reason if it
    was refused.  A `hook_ui_response` gets a response only if it is wrong, with the id of the dialog.
    """

    type: ClassVar[str] = "response"

    id: str | int | UnsetType = UNSET
    command: str
    success: bool
    error: str | UnsetType = UNSET


class State(Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of the session; `session_file` is `null` when it is not saved."""

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
    """The outcome of a session action: whether a hook cancelled it, and its reason.

    `text`: that of the user message at a `branch`; `compaction_entry`: the new entry of a `compact`.
    """

    cancelled: bool
    reason: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    compaction_entry: CompactionEntry | UnsetType = UNSET


class ActionResponse(Response, frozen=True, kw_only=True, tag="response"):
    """The response to a session action that was carried out, or cancelled by a hook."""

    data: ActionResult


class ReloadResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The hooks that are in force after a `reload`, and a sentence for each problem."""

    hooks: tuple[str, ...]
    problems: tuple[str, ...] = ()


class ReloadResponse(Response, frozen=True, kw_only=True, tag="response"):
    """The response to `reload`."""

    command: Literal["reload"]
    data: ReloadResult


class MessageUpdate(Record, frozen=True, kw_only=True, tag="message_update"):
    """The next piece of the model's words."""

    type: ClassVar[str] = "message_update"

    delta: str


class RunStart(Record, frozen=True, kw_only=True, tag="run_start"):
    """The agent begins to work on a message; `source` is the hook that sent it, absent for a prompt of the client."""

    type: ClassVar[str] = "run_start"

    message: str
    source: str | UnsetType = UNSET


class MessageInjected(Record, frozen=True, kw_only=True, tag="message_injected"):
    """A message is delivered to the working agent: a queued one, or one of a hook that wants the agent to go on.

    `source` as in `run_start`.
    """

    type: ClassVar[str] = "message_injected"

    message: str
    source: str | UnsetType = UNSET


class RunEnd(Record, frozen=True, kw_only=True, tag="run_end"):
    """The run has ended: in order, aborted, or because of `error`, usually of the model."""

    type: ClassVar[str] = "run_end"

    aborted: bool
    error: str | UnsetType = UNSET


class HookErrorRecord(Record, frozen=True, kw_only=True, tag="hook_error"):
    """A hook failed; `outcome` tells whether the failure blocked the event.

    `reason`: that of a `session` event; `line`: in the hook's file.  `event` is `load` for a hook that failed to load.
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
    """Return the record for the failure of a hook."""
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
    *(
        Response,
        StateResponse,
        ActionResponse,
        ReloadResponse,
        MessageUpdate,
        RunStart,
        MessageInjected,
        RunEnd,
        HookErrorRecord,
    ),
    *(SelectRequest, ConfirmRequest, InputRequest, NotifyRequest, HookUiCancel, *EVENTS),
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a line: `$defs` has `Command` for a client's lines and `Record` for the agent's."""
    kinds = (*REQUESTS, HookUiResponse, *_RECORDS)
    refs, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    commands = len(REQUESTS) + 1
    definitions = dict(definitions) | {
        "Command": {"anyOf": list(refs[:commands])},
        "Record": {"anyOf": list(refs[commands:])},
    }
    return {"anyOf": [{"$ref": "#/$defs/Command"}, {"$ref": "#/$defs/Record"}], "$defs": definitions}
