"""What a handler can return.  Frozen values; above: events.  Below: content, errors, frozen.

Fields marked "set by the runner" tell who answered; what an author puts there is overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr

from agent_hooks.errors import shown
from agent_hooks.values.content import ContentBlock, content_blocks
from agent_hooks.values.frozen import freeze

Cause = Literal["hook", "interceptor", "failed", "timed_out", "user", "nobody", "guard", "schema", "transformer"]
DEFAULT_REASON = "blocked by a hook"
CONTINUE_LIMIT = 8  # times in a row that hooks may keep one run going


class Answer(Struct, frozen=True):
    """Base of all answers."""


class Block(Answer, frozen=True):
    """Do not run the tool; `reason` is shown to the model.

    Set by the runner: `by`, the hook or guard that blocked; `cause`, why: a `hook`'s or an `interceptor`'s answer, a
    handler that `failed` or `timed_out`, the `user` said no, `nobody` could be asked, a `guard`, an input that breaks the
    tool's `schema`, or a `transformer` that failed.
    """

    reason: str = ""
    by: str = ""
    cause: Cause = "hook"

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"Block(reason) wants a str, not {type(self.reason).__name__}")

    def __str__(self) -> str:
        """Return the text the model and the person are shown: the reason and who blocked."""
        reason = self.reason or DEFAULT_REASON
        match self.cause:
            case "failed" if self.by:
                return f"not run, because hook {self.by} failed: {reason}"
            case "timed_out":
                return f"not run, because hook {self.by} gave no verdict: {reason}"
            case "user":
                return f"{reason}: the user said no (asked by {self.by})"
            case "nobody":
                return f"{reason}: nobody could be asked (asked by {self.by})"
            case "transformer" if self.by:
                return f"not run, because transformer {self.by} failed: {reason}"
            case "transformer":
                return f"not run, because its configuration is wrong: {reason}; mend or remove it"
            case "schema":
                return reason
            case _:
                return f"{reason} ({self.by})" if self.by else reason


class Rewrite(Answer, frozen=True):
    """Run the tool with this input instead: the whole new input, not a patch.

    Set by the runner: `by`, the hooks that rewrote, in order.  Raises `TypeError` when `input` is no dict.
    """

    input: Mapping[str, Any]
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.input, dict):
            raise TypeError(f"Rewrite(input) wants the whole new input as a dict, not {type(self.input).__name__}")
        force_setattr(self, "input", freeze(self.input))  # the author keeps no handle on what will run


class Ask(Answer, frozen=True):
    """Ask the person; anything but yes blocks, and so does nobody being there.

    Set by the runner: `by`, the hook that asks; `also`, the questions of later handlers about the same call; `rewrite`,
    on `before_tool_call`, the input that the other handlers left.
    """

    title: str
    message: str = ""
    by: str = ""
    also: tuple[Ask, ...] = ()
    rewrite: Rewrite | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.title, str) or not isinstance(self.message, str):
            raise TypeError("Ask(title, message) wants two str")


class Replace(Answer, frozen=True, kw_only=True):
    """Change fields of a tool's result; a field left out stays, `details=None` clears."""

    content: Sequence[ContentBlock] | UnsetType = UNSET
    details: Any = UNSET
    is_error: bool | UnsetType = UNSET

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | Sequence[ContentBlock | Mapping[str, object]] | UnsetType = UNSET,
            details: Any = UNSET,
            is_error: bool | UnsetType = UNSET,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.content is not UNSET:
            force_setattr(self, "content", content_blocks(self.content))
        if self.is_error is not UNSET and not isinstance(self.is_error, bool):
            raise TypeError(f"Replace(is_error) wants a bool, not {type(self.is_error).__name__}")
        force_setattr(self, "details", freeze(self.details))

    def changes(self) -> dict[str, Any]:
        """Return the fields that are set, by name."""
        fields = {"content": self.content, "details": self.details, "is_error": self.is_error}
        return {name: value for name, value in fields.items() if value is not UNSET}


class Cancel(Answer, frozen=True):
    """The session action does not happen."""

    reason: str | None = None

    def __post_init__(self) -> None:
        if self.reason is not None and not isinstance(self.reason, str):
            raise TypeError(f"Cancel(reason) wants a str, not {type(self.reason).__name__}")


class Continue(Answer, frozen=True):
    """On `agent_end`: the agent goes on, with `text` as its next message; at most `CONTINUE_LIMIT` times in a row.

    Set by the runner: `by`, the path of the hook.  Raises `TypeError` when there is nothing in `text`.
    """

    text: str
    by: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise TypeError(f"Continue(text) wants a text with words in it, not {shown(self.text)}")


class SkipConversationRestore(Answer, frozen=True):
    """On `before_branch`: the file branches, the conversation stays as it is."""

    skip: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.skip, bool):
            raise TypeError(f"SkipConversationRestore(skip) wants a bool, not {type(self.skip).__name__}")


class Compaction(Answer, frozen=True):
    """On `before_compact`: the summary to use instead of the default one.

    `first_kept_entry_index`: index of the first entry whose message is kept word for word, up to `len(event.entries)`
    (keep nothing); `tokens_before`: the event's; `timestamp`: ISO 8601, set by the host when absent.
    """

    summary: str
    first_kept_entry_index: int
    tokens_before: int
    timestamp: str | None = None
