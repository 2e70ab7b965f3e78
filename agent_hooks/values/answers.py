"""The answers that handlers return, as frozen values.

Fields marked "set by the runner" name the origin of an answer; the runner overwrites values that a handler puts there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr

from agent_hooks.errors import LONGEST_TEXT, capped, shown
from agent_hooks.values.content import ContentBlock, content_blocks
from agent_hooks.values.frozen import freeze

Cause = Literal["hook", "interceptor", "failed", "timed_out", "user", "nobody", "guard", "schema", "transformer"]
DEFAULT_REASON = "blocked by a hook"
STOP_REASON = "stopped by a hook"
CONTINUE_LIMIT = 8
"""Times in a row that hooks may keep one run going."""


class Answer(Struct, frozen=True):
    """Base of all answers."""


class Block(Answer, frozen=True):
    """Do not run the tool; `reason` is shown to the model.

    Set by the runner:

    - `by`: the hook, guard, interceptor or transformer that blocked; after a question, the one that asked, or the
      signatures of all that asked, separated by commas;
    - `cause`: the kind of the block.  `hook`, `interceptor` and `guard`: one of these answered so; `failed`,
      `timed_out`: a handler did not answer; `user`: the person said no; `nobody`: no person could be asked; `schema`:
      the input breaks the tool's schema; `transformer`: a transformer failed, or its configuration is wrong.

    - `said`: with the cause `user`, the person's reason, which the model reads.

    Set by guards, and free for gates: `rule`, the id of the rule that the call met; `remedy`, a sentence on how a person
    allows the call.
    """

    reason: str = ""
    by: str = ""
    cause: Cause = "hook"
    rule: str = ""
    remedy: str = ""
    said: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"{type(self).__name__}(reason) wants a str, not {type(self.reason).__name__}")
        if len(self.reason) > LONGEST_TEXT or not self.reason.isascii():
            force_setattr(self, "reason", capped(self.reason))
        _check_rule(self)

    @property
    def signature(self) -> str:
        """The origin of the block, for texts: `by`, with the rule in parentheses."""
        return _signature(self)

    @property
    def explanation(self) -> str:
        """The reason, and after it the remedy if there is one."""
        return _with_remedy(self.reason or DEFAULT_REASON, self.remedy)

    def __str__(self) -> str:
        """Return the text for the person: the reason, the remedy, and the origin of the block."""
        if self.cause == "nobody":
            return _with_remedy(self.model_text, self.remedy)
        return self._text(self.explanation)

    @property
    def model_text(self) -> str:
        """The text for the model: as for the person, without the remedy, which is no suggestion for an agent."""
        return self._text(self.reason or DEFAULT_REASON)

    def _text(self, reason: str) -> str:
        by = self.signature
        match self.cause:
            case "failed" if by:
                return f"not run, because hook {by} failed: {reason}"
            case "timed_out":
                return f"not run, because hook {by} gave no verdict: {reason}"
            case "user":
                why = f": {self.said}" if self.said else ""
                return f"{reason}: the user said no{why} (asked by {by})"
            case "nobody":
                return f"{reason}: no person is here to answer (asked by {by})"
            case "transformer" if by:
                return f"not run, because transformer {by} failed: {reason}"
            case "transformer":
                return f"not run, because its configuration is wrong: {reason}; mend or remove it"
            case "schema":
                return reason
            case _:
                return f"{reason} ({by})" if by else reason


class Stop(Block, frozen=True):
    """End the run; `reason` is shown to the person, and to the model where it reads anything more.

    On `tool_call` and `before_tool_call` it is a block first: the tool does not run, and no question is asked.  On
    `tool_result` and `turn_end`, the result and the turn stay as they are.  Set by the runner: the fields that it sets in
    `Block`.
    """

    @property
    def explanation(self) -> str:
        """The reason."""
        return _with_remedy(self.reason or STOP_REASON, self.remedy)

    @property
    def model_text(self) -> str:
        """The text for the model, which says that the run ends."""
        return self._text(f"the run was stopped: {self.reason or STOP_REASON}")

    def for_others(self) -> Block:
        """Return the block of the other calls of the run, which do not begin any more."""
        # The person's No was about another call.
        cause = "hook" if self.cause == "user" else self.cause
        return Block(f"not run, because the run was stopped: {self.reason or STOP_REASON}", self.by, cause)


class Rewrite(Answer, frozen=True):
    """Run the tool with this input instead: the whole new input, not a patch.

    Set by the runner: `by`, the hooks that rewrote the input, in order.  Raises `TypeError` when `input` is no dict.
    """

    input: Mapping[str, Any]
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.input, dict):
            raise TypeError(f"Rewrite(input) wants the whole new input as a dict, not {type(self.input).__name__}")
        # A frozen copy: the handler can no longer change the input that will run.
        force_setattr(self, "input", freeze(self.input))


class Ask(Answer, frozen=True):
    """Ask the person; any answer but yes blocks, and so does the absence of a person.

    `title`: the question; `message`: details below it; `remember=False`: the answer counts for this call only.
    Set by the runner: `by`, the hook or guard that asks; `hook`, the path of the hook; `also`, the questions of later
    handlers about the same call; `rewrite`, on `before_tool_call`, the input after the rewrites of other handlers.
    `rule`, `remedy`: as in `Block`.  Set by guards: `words`, the exact words of the one program that met the rule, each
    spelled for a shell, or the path; empty when they are not known, and then no answer is kept.
    """

    title: str
    message: str = ""
    by: str = ""
    also: tuple[Ask, ...] = ()
    rewrite: Rewrite | None = None
    rule: str = ""
    remedy: str = ""
    remember: bool = True
    words: tuple[str, ...] = ()
    hook: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.title, str) or not isinstance(self.message, str):
            raise TypeError("Ask(title, message) wants two str")
        if not isinstance(self.remember, bool):
            raise TypeError(f"Ask(remember) wants a bool, not {type(self.remember).__name__}")
        for name, text in (("title", self.title), ("message", self.message)):
            if len(text) > LONGEST_TEXT or not text.isascii():
                force_setattr(self, name, capped(text))
        _check_rule(self)

    @property
    def signature(self) -> str:
        """The hook or guard that asks, for texts: `by`, with the rule in parentheses."""
        return _signature(self)

    @property
    def explanation(self) -> str:
        """The message, or else the title, and after it the remedy if there is one."""
        return _with_remedy(self.message or self.title, self.remedy)


def _check_rule(answer: Block | Ask) -> None:
    """Raise `TypeError` for a rule or a remedy that is no text."""
    for name, value in (("rule", answer.rule), ("remedy", answer.remedy)):
        if not isinstance(value, str):
            raise TypeError(f"{type(answer).__name__}({name}) wants a str, not {type(value).__name__}")


def _signature(answer: Block | Ask) -> str:
    return f"{answer.by} ({answer.rule})" if answer.rule else answer.by


def _with_remedy(text: str, remedy: str) -> str:
    return f"{text}; {remedy}" if remedy else text


class AddContext(Answer, frozen=True):
    """Add a text to what the model sees; on `tool_result`, the result itself stays as it is.

    On `tool_result` the text comes after the result, on `agent_start` after the prompt, and on `session` after the next
    prompt, or in the next request if the agent works.  Set by the runner: `by`, the path of the hook.  Raises `TypeError`
    when `text` is blank.
    """

    text: str
    by: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise TypeError(f"AddContext(text) wants a text with words in it, not {shown(self.text)}")
        if len(self.text) > LONGEST_TEXT or not self.text.isascii():
            force_setattr(self, "text", capped(self.text))


class Replace(Answer, frozen=True, kw_only=True):
    """Change fields of a tool's result; a field that is left out stays, and `details=None` clears the details.

    Set by the runner, which combines all answers to a result in one `Replace`: `context`, the texts to add, and `stop`,
    if a hook ends the run.
    """

    content: Sequence[ContentBlock] | UnsetType = UNSET
    details: Any = UNSET
    is_error: bool | UnsetType = UNSET
    context: tuple[AddContext, ...] = ()
    stop: Stop | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | Sequence[ContentBlock | Mapping[str, object]] | UnsetType = UNSET,
            details: Any = UNSET,
            is_error: bool | UnsetType = UNSET,
            context: tuple[AddContext, ...] = (),
            stop: Stop | None = None,
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
        if self.reason is not None and (len(self.reason) > LONGEST_TEXT or not self.reason.isascii()):
            force_setattr(self, "reason", capped(self.reason))


class Continue(Answer, frozen=True):
    """On `agent_end`: the agent goes on, with `text` as its next message; at most `CONTINUE_LIMIT` times in a row.

    Set by the runner: `by`, the path of the hook.  Raises `TypeError` when `text` is blank.
    """

    text: str
    by: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise TypeError(f"Continue(text) wants a text with words in it, not {shown(self.text)}")


class SkipConversationRestore(Answer, frozen=True):
    """On `before_branch`: the file branches; `skip`: whether the conversation stays as it is."""

    skip: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.skip, bool):
            raise TypeError(f"SkipConversationRestore(skip) wants a bool, not {type(self.skip).__name__}")


class Compaction(Answer, frozen=True):
    """On `before_compact`: the summary to use instead of the default one.

    `first_kept_entry_index`: index of the first entry whose message is kept word for word, at most
    `len(event.entries)`, which keeps none; `tokens_before`: as in the event; `timestamp`: ISO 8601, set by the host when
    absent.
    """

    summary: str
    first_kept_entry_index: int
    tokens_before: int
    timestamp: str | None = None
