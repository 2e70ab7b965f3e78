"""The questions to the person: each has a line when it is opened, and another when it is settled or expires.

A question about another agent's call is handed over to that agent, which reports no answer.  So the answer is concluded:
a tool that ran was allowed, and a question that is open when the run or the session ends has expired.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from agent_hooks.dispatch.context import Surroundings
from agent_hooks.errors import describe, text_of
from agent_hooks.records.lines import Answer, Question
from agent_hooks.records.private import as_json
from agent_hooks.records.sink import Sink
from agent_hooks.records.trail import Trail


class Questions:
    """Writes the questions of one runner and their answers."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        # Those that were handed over: the trail and the surroundings, by the call's id.
        self._open: dict[str, tuple[Trail, Surroundings]] = {}

    def asked(self, call: Any, title: str, message: str, by: str, *, handed_over: bool) -> int:
        """Write that the question about a call was opened, and return its number."""
        trail: Trail = call.trail
        trail.handed_over = handed_over
        about = "call" if by else "permission"
        to = "client" if handed_over else "person"
        return self._ask(trail, call.surroundings, about, title, message, by, to, call)

    def _ask(
        self, trail: Trail, place: Surroundings, about: str, title: str, message: str, by: str, to: str, call: Any
    ) -> int:
        cleaner, _ = self._sink.makers()
        trail.questions += 1
        trail.asked = perf_counter()
        fields = {
            "id": trail.id,
            "about": about,
            "number": trail.questions,
            "title": cleaner.text(title),
            "message": cleaner.text(message),
            "by": cleaner.text(by),
            "to": to,
        }
        if call is not None:
            fields |= self._sink.call_fields(trail, call)
            fields["digest"] = trail.digest = self._sink.digest(as_json(call.input))
        if to == "client":
            if trail.id in self._open:
                # The agent uses the id again, so it has left the call before.
                self.settle(trail.id, "expired")
            self._open[trail.id] = trail, place
        self._sink.write(Question, fields, place)
        return trail.questions

    def answered(
        self, call: Any, number: int, reply: str, *, who: str, text: str = "", ms: float | None = None
    ) -> None:
        """Write that a question about a call was settled."""
        self._answer(call.trail, call.surroundings, number, reply, who, text, ms, call)

    def _answer(
        self,
        trail: Trail,
        place: Surroundings,
        number: int,
        reply: str,
        who: str,
        text: str,
        ms: float | None,
        call: Any = None,
    ) -> None:
        cleaner, _ = self._sink.makers()
        fields: dict[str, Any] = {} if call is None else self._sink.call_fields(trail, call)
        took = (perf_counter() - trail.asked) * 1000 if ms is None else ms
        fields |= {"id": trail.id, "number": number, "reply": reply, "who": who, "ms": round(took, 3)}
        fields |= {"text": cleaner.text(text), "digest": trail.digest, "user": login_name()}
        self._open.pop(trail.id, None)
        self._sink.write(Answer, fields, place)

    def settle(self, id: str, reply: str = "yes") -> None:
        """Conclude the answer to a question that was handed over: its tool ran, or its turn is over."""
        trail, place = self._open.pop(id)
        self._answer(trail, place, trail.questions, reply, "client", "", None)

    async def dialog(self, dispatch: Any, title: str, message: str, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Open a dialog of a handler, and write the question and the answer.

        In another agent a gate's dialog becomes the question about the call, and others are not opened at all.
        """
        place = dispatch.surroundings
        if place.mode == "bridge" or not place.has_ui:
            return await ask()
        number = self._opened(dispatch, place, title, message)
        reply, text = "expired", ""
        try:
            answer = await ask()
            reply, text = _reply_of(answer)
        # A UI may raise anything; the handler hears of it.
        except Exception as exc:
            reply, text = "failed", describe(exc)
            raise
        finally:
            self._settled(dispatch.trail, place, number, reply, text)
        return answer

    def _opened(self, dispatch: Any, place: Surroundings, title: str, message: str) -> int:
        """Write the question of a dialog, and return its number."""
        trail = dispatch.trail
        try:
            trail.id = trail.id or self._sink.new_id(place)
            return self._ask(trail, place, "dialog", title, message, dispatch.handler.label, "person", None)
        # A handler may give any value as a title; a record that cannot be made never keeps a dialog from opening.
        except Exception as exc:
            self._sink.report(f"a record could not be made: {describe(exc)}")
            return 0

    def _settled(self, trail: Trail, place: Surroundings, number: int, reply: str, text: str) -> None:
        """Write the answer of a dialog."""
        try:
            self._answer(trail, place, number, reply, "person", text, None)
        # As in `_opened`.
        except Exception as exc:
            self._sink.report(f"a record could not be made: {describe(exc)}")

    def ran(self, trail: Trail) -> None:
        """Conclude that the question about a call was answered with yes, if one was handed over: its tool ran."""
        if trail.id in self._open:
            self.settle(trail.id)

    def expire(self, place: Surroundings) -> None:
        """Conclude that the questions of a session that are still open will get no answer."""
        for call, (_, asked_in) in list(self._open.items()):
            if (asked_in.session_id, asked_in.agent_id) == (place.session_id, place.agent_id):
                self.settle(call, "expired")

    def close(self) -> None:
        """Write that the answers to the open questions are not known."""
        for call in list(self._open):
            self.settle(call, "unknown")


def _reply_of(answer: object) -> tuple[str, str]:
    """Return the reply and the text of a dialog's answer."""
    if answer is None:
        return "cancelled", ""
    if isinstance(answer, bool):
        return ("yes" if answer else "no"), ""
    return "text", text_of(answer)


def login_name() -> str:
    """Return the login name of the process's user, or its number."""
    # Imported here, because few calls are asked about.
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
