"""The protocol of a memory for the person's answers: the pipeline asks it before the person, and tells it the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from agent_hooks.dispatch.context import Surroundings
from agent_hooks.ui.base import Choice
from agent_hooks.values.answers import Ask


class AskedCall(Struct, frozen=True, kw_only=True):
    """The tool call that a question is about.

    `input`: the input that would run; `surroundings`: the place that the call comes from, with its directory, session and
    agent.
    """

    tool_name: str
    input: Mapping[str, Any]
    surroundings: Surroundings


class Remembering(Protocol):
    """Keeps the person's answers for later calls.

    Each method gets one question at a time.  A call runs unasked only if each of its questions is recalled.  No method
    is called for a question with `remember=False`.  A method that raises has kept nothing, and the failure is reported.
    """

    def offered(self, ask: Ask, call: AskedCall) -> tuple[Choice, ...]:
        """Return the answers among `session` and `always` that can be kept for this question."""
        ...

    def recall(self, ask: Ask, call: AskedCall) -> str:
        """Return a line that names the kept answer which allows this call, empty when there is none."""
        ...

    async def keep(self, ask: Ask, call: AskedCall, choice: Choice) -> str:
        """Keep the answer `session` or `always`; return a line for the person about the kept answer."""
        ...

    def of_session(self, place: Surroundings) -> list[str]:
        """Return the questions whose answers count until the session of a place ends, in the order of the answers."""
        ...

    def end_of_session(self, place: Surroundings, number: int) -> str:
        """End the answer with this number among these, from 1, and return its question; empty without such an answer."""
        ...
