"""The recorder of a runner, as the rooms below the records see it.

A runner without records has none, and pays one comparison a call for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from agent_hooks.dispatch.context import Surroundings
from agent_hooks.dispatch.loop import Dispatch


class CallTrail(Protocol):
    """The facts of one half of a call that steps add while it is on its way.

    `status`: `ok` until a step knows better; `took`: milliseconds that the tool ran; `may_change`: whether the call may
    change files of a working tree.
    """

    id: str
    status: str
    took: float | None
    may_change: bool
    passed: list[Any]

    def add(self, stage: str, by: str, began: float, answer: Any = None, **facts: Any) -> None:
        """Add a step that is no handler: its stage, its name, the time at which it began, and its answer."""

    def redacted(self, kinds: list[str]) -> None:
        """Add the kinds of the secrets that redaction hid in the result."""


class Recorder(Protocol):
    """Writes the records of one runner.

    `dispatch_type`: the class of dispatch that notes its handlers' steps.
    """

    dispatch_type: type[Dispatch]

    def begin(self, call: Any) -> CallTrail:
        """Return the trail of a call that begins."""
        ...

    def begin_run(self, call: Any) -> CallTrail:
        """Return the trail of the second half of a call; another process may have judged it."""
        ...

    def enter(self, trail: Any) -> Any:
        """Let the dispatches of this task add their steps to a trail; return the trail before, to enter that again."""
        ...

    def decided(self, call: Any) -> str | None:
        """Write that a call is judged; return why it must not run, when records are required and cannot be written."""
        ...

    def aborted(self, call: Any) -> None:
        """Write that a call was left before it was judged."""

    def ended(self, call: Any, output: Any, ms: float | None) -> None:
        """Write the result of a call; without an `output` it was aborted."""

    def observed(self, call: Any) -> None:
        """Write the steps of a call's observers."""

    def asked(self, call: Any, title: str, message: str, by: str, *, handed_over: bool) -> int:
        """Write that the question about a call was opened, and return its number."""
        ...

    def answered(
        self, call: Any, number: int, reply: str, *, who: str, text: str = "", ms: float | None = None
    ) -> None:
        """Write that a question was settled."""

    def remembered(self, fields: dict[str, Any], surroundings: Surroundings) -> None:
        """Write that an answer of the person was kept, allowed a call, or ended; `fields`: see `lines.Remembered`."""

    def prompt(self, text: str) -> Any:
        """Return the trail of a prompt that begins."""
        ...

    def prompted(self, trail: Any, output: Any, surroundings: Surroundings | None) -> None:
        """Write a prompt; `output`: that of `message.before`, or its block."""

    def happened(self, event: Any, surroundings: Surroundings, dispatch: Dispatch | None) -> None:
        """Write an event of a session, a run or a turn; `dispatch`: it has the steps of the handlers."""

    def saved(self, work: Any, top: str, files: tuple[str, ...], surroundings: Surroundings) -> None:
        """Write that the files of the working tree `top` were saved after a turn; `work`: a `turn_notes.Work`."""

    def edited(self, edits: Iterable[Any], unlocked: Sequence[str]) -> None:
        """Write the edits of files that control the agent; `unlocked`: the directories that the person has unlocked."""

    def renew(self, records: Any, kept: Sequence[str]) -> None:
        """Take note that hooks were loaded again, all but those whose paths are `kept`.

        `records`: the wish for records from now on, `None` if it is the same.
        """

    def close(self) -> None:
        """Write the last heads and close the files."""


class Records(Protocol):
    """The wish for records: makes the recorder of each runner."""

    def recorder(self, engine: Any) -> Recorder:
        """Return the recorder of a runner's engine."""
        ...
