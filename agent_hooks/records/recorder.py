"""Writes the lines of one runner's calls and events.

    runner = HookRunner(hooks, cwd=cwd, records=Records())

The pipeline calls the recorder at fixed places: `decided` before the tool starts or the answer leaves, `ended` after the
tool, `asked` and `answered` around the question to the person.  A line that cannot be written neither stops the agent
nor opens a gate; it is reported once, and noted in the file as soon as a line can be written again.  With `required`,
a call whose decision cannot be written does not run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import wraps
from time import perf_counter
from typing import Any

from agent_hooks.dispatch.context import Surroundings
from agent_hooks.dispatch.loop import Dispatch
from agent_hooks.dispatch.recording import Recorder
from agent_hooks.errors import describe
from agent_hooks.records.lines import (
    Decision,
    Edit,
    Happened,
    HookFile,
    Line,
    Observed,
    Prompt,
    Remembered,
    Result,
    Run,
    Session,
    Turn,
)
from agent_hooks.records.options import Options
from agent_hooks.records.private import Cleaner, as_json
from agent_hooks.records.questions import Questions, login_name
from agent_hooks.records.sink import Sink
from agent_hooks.records.trail import RecordedDispatch, Trail, current
from agent_hooks.records.writer import RecordError
from agent_hooks.storage.digests import sha256
from agent_hooks.values.answers import Block, Cancel, Continue
from agent_hooks.values.events import AgentEnd, AgentStart, ForeignEvent, SessionEvent, TurnEnd, TurnStart

MOST_FILES = 200
"""The files of a turn that its line names."""
_get_trail, _set_trail = current.get, current.set


def _safely(write: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that reports its failures: a value that cannot be read costs a record, and never a call."""

    @wraps(write)
    def safe(self: CallRecorder, *args: Any, **options: Any) -> Any:
        try:
            return write(self, *args, **options)
        # A value of a hook, a tool or a client may raise anything when it is read.
        except Exception as exc:
            self.report(f"a record could not be made: {describe(exc)}")
            return None

    return safe


class CallRecorder(Recorder):
    """Writes the records of one engine; see `dispatch.recording.Recorder`."""

    dispatch_type: type[Dispatch] = RecordedDispatch

    def __init__(self, records: Options, engine: Any) -> None:
        self._required = records.required
        self._engine = engine
        self._sink = Sink(records, engine)
        self._questions = Questions(self._sink)
        # The number of calls in the turn that is going on, by session and agent.
        self._calls: dict[tuple[str, str], int] = {}

    # ---- the trail of a call

    def begin(self, call: Any) -> Trail:
        """Return the trail of a call that begins.

        Another agent's call has its two halves in two processes, perhaps; so its id is made of the agent's own ids.
        """
        place, outer = call.surroundings, _get_trail()
        parent = None if outer is None else outer.id
        if place.mode == "bridge" and call.tool_call_id:
            own = f"{place.session_id}\0{call.tool_call_id}".encode("utf-8", "surrogatepass")
            return Trail(sha256(own)[:18], call.input, perf_counter(), parent)
        return Trail(self._sink.new_id(place), call.input, perf_counter(), parent)

    def begin_run(self, call: Any) -> Trail:
        """Return the trail of the second half of a call; another process may have judged it."""
        judged: Trail | None = call.trail
        if judged is None:
            return self.begin(call)
        judged.began = perf_counter()
        judged.input = call.input
        judged.passed = []
        return judged

    def enter(self, trail: Any) -> Any:
        """Let the dispatches of this task add their steps to a trail; return the trail before, to enter that again.

        There is no token, because the rest of a coroutine that began without an event loop runs in another context.
        """
        outer = _get_trail()
        _set_trail(trail)
        return outer

    # ---- a call

    def decided(self, call: Any) -> str | None:
        """Write a decision; return why the call must not run, if records are required and it cannot be written."""
        trail: Trail = call.trail
        block = call.block
        if block is not None:
            verdict = "block"
        elif trail.handed_over:
            verdict = "ask"
        else:
            verdict = "allow" if call.asks else "pass"
        return self._decide(call, verdict, block)

    def aborted(self, call: Any) -> None:
        """Write that a call was left before it was judged."""
        self._decide(call, "aborted", None)

    def _decide(self, call: Any, verdict: str, block: Any) -> str | None:
        try:
            failure = self._sink.write(Decision, self._decision(call, verdict, block), call.surroundings)
            if self._calls:
                key = (call.surroundings.session_id, call.surroundings.agent_id)
                self._calls[key] = self._calls.get(key, 0) + 1
        except RecordError as exc:
            # There is no key; the sink has reported that.
            failure = str(exc)
        # As in `_safely`; where records are required, the call does not run.
        except Exception as exc:
            failure = f"a record could not be made: {describe(exc)}"
            self.report(failure)
        return f"records.required is set, and {failure}" if failure and self._required else None

    def _decision(self, call: Any, verdict: str, block: Any) -> bytes:
        """Return the fields of a decision as JSON without braces; the common ones are formatted by hand, for speed."""
        trail: Trail = call.trail
        sink = self._sink
        cleaner, maker = sink.makers()
        whole = as_json(trail.input)
        shown, cut = cleaner.json(trail.input, whole)
        size, more = len(whole), b""
        origin = getattr(call.tool, "origin", "")
        if cut or call.rewrites or block is not None or call.asks or trail.may_change or origin:
            fields = _reasons(cleaner, block, call.asks)
            if origin:
                fields["origin"] = cleaner.text(origin)
            if trail.may_change:
                fields["mayChange"] = True
            if cut:
                fields["inputCut"] = True
            if call.rewrites:
                fields["rewrite"] = cleaner.patch(trail.input, call.input)
                fields["rewrittenBy"] = call.rewritten_by
                whole = as_json(call.input)
            more = b"," + as_json(fields)[1:-1]
        digest = trail.digest = sink.digest(whole, required=self._required)
        steps = maker.json(trail) if trail.passed else b""
        return _DECISION % (
            trail.fields or sink.call_json(trail, call),
            verdict.encode(),
            shown,
            size,
            digest.encode(),
            more,
            steps,
            (perf_counter() - trail.began) * 1000,
        )

    @_safely
    def ended(self, call: Any, output: Any, ms: float | None) -> None:
        """Write the result of a call; without an `output` it was aborted."""
        trail: Trail = call.trail
        self._questions.ran(trail)
        cleaner, maker = self._sink.makers()
        status = trail.status if output is not None else "aborted"
        size = 0
        fields: dict[str, Any] = {}
        if output is not None:
            text = output.text
            size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
            if output.is_error:
                status = "error" if status == "ok" else status
                fields["error"] = cleaner.text(text)
        if mods := getattr(call.tool, "overruled_by", ()):
            fields["mods"] = mods
        if trail.kinds:
            fields["redacted"] = {kind: trail.kinds.count(kind) for kind in dict.fromkeys(trail.kinds)}
        if ms is None and call.surroundings.mode != "bridge":
            # Another agent's tool is only a stand-in here.
            ms = trail.took
        if call.surroundings.session_file is not None and call.tool_call_id:
            fields["reference"] = call.tool_call_id
        if checkpoint := self._sink.turn_of(call.surroundings)[1]:
            fields["checkpoint"] = checkpoint
        more = b"," + as_json(fields)[1:-1] if fields else b""
        if trail.passed:
            more += maker.json(trail)
            trail.passed = []
        if status != "blocked" and ms is not None:
            more += b',"ms":%.3f' % ms
        call_json = trail.fields or self._sink.call_json(trail, call)
        line = b'%b,"status":"%b","size":%d%b' % (call_json, status.encode(), size, more)
        self._sink.write(Result, line, call.surroundings)

    @_safely
    def observed(self, call: Any) -> None:
        """Write the steps of a call's observers."""
        trail: Trail = call.trail
        _, maker = self._sink.makers()
        fields = self._sink.call_fields(trail, call) | {"steps": maker.steps(trail)}
        self._sink.write(Observed, fields, call.surroundings)

    # ---- questions

    def asked(self, call: Any, title: str, message: str, by: str, *, handed_over: bool) -> int:
        """Write that the question about a call was opened, and return its number."""
        try:
            return self._questions.asked(call, title, message, by, handed_over=handed_over)
        # As in `_safely`.
        except Exception as exc:
            self.report(f"a record could not be made: {describe(exc)}")
            return 0

    @_safely
    def answered(
        self, call: Any, number: int, reply: str, *, who: str, text: str = "", ms: float | None = None
    ) -> None:
        """Write that a question about a call was settled."""
        self._questions.answered(call, number, reply, who=who, text=text, ms=ms)

    async def dialog(self, dispatch: Any, title: str, message: str, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Open a dialog of a handler, and write the question and the answer."""
        return await self._questions.dialog(dispatch, title, message, ask)

    # ---- events

    @_safely
    def happened(self, event: Any, surroundings: Surroundings, dispatch: Any) -> None:
        """Write an event of a session, a run, a turn or another agent."""
        make = _EVENTS.get(type(event))
        if make is None:
            return
        trail = getattr(dispatch, "trail", None) or Trail("")
        fields: dict[str, Any] = {"id": trail.id or self._sink.new_id(surroundings)}
        kind = make(self, event, surroundings, None if dispatch is None else dispatch.outcome, fields)
        if trail.passed:
            fields["steps"] = self._sink.makers()[1].steps(trail)
        self._sink.write(kind, fields, surroundings)
        if isinstance(event, SessionEvent) and event.reason == "shutdown" and not event.reload:
            self._sink.close_session(surroundings.session_id)

    def _session(self, event: SessionEvent, place: Surroundings, outcome: Any, fields: dict[str, Any]) -> type[Line]:
        cleaner, maker = self._sink.makers()
        fields["event"] = _event_of(event)
        if event.reason == "start":
            hooks = [hook for hook in self._engine.hooks if os.path.isfile(hook.path)]
            fields["hooks"] = tuple(
                HookFile(path=cleaner.text(hook.path), sha256=maker.digest(hook.path)) for hook in hooks
            )
            fields["guards"] = tuple(guard.name for guard in self._engine.guards)
        elif event.reason == "shutdown" and not event.reload:
            self._questions.expire(place)
        if isinstance(outcome, Cancel):
            fields |= {"verdict": "cancelled", "reason": cleaner.text(outcome.reason or "")}
        return Session

    def _run(self, event: Any, place: Surroundings, outcome: Any, fields: dict[str, Any]) -> type[Line]:
        fields["event"] = "start" if isinstance(event, AgentStart) else "end"
        if isinstance(outcome, Continue):
            fields |= {"go_on": self._sink.makers()[0].text(outcome.text), "by": outcome.by}
        if fields["event"] == "end":
            self._questions.expire(place)
        return Run

    def _turn(self, event: Any, place: Surroundings, outcome: Any, fields: dict[str, Any]) -> type[Line]:
        key = (place.session_id, place.agent_id)
        self._sink.turns[key] = fields["turn"] = event.turn_index
        if isinstance(event, TurnStart):
            self._calls[key] = 0
            fields["event"] = "start"
        else:
            fields |= {"event": "end", "calls": self._calls.get(key, 0)}
        if turn_id := self._sink.turn_of(place)[0]:
            fields["turn_id"] = turn_id
        return Turn

    def _foreign(self, event: ForeignEvent, place: Surroundings, outcome: Any, fields: dict[str, Any]) -> type[Line]:
        fields["event"] = event.name
        return Happened

    def prompt(self, text: str) -> Trail:
        """Return the trail of a prompt that begins."""
        return Trail("", text)

    @_safely
    def prompted(self, trail: Any, output: Any, surroundings: Surroundings | None) -> None:
        """Write a prompt; `output`: that of `message.before`, or its block."""
        place = surroundings or self._engine.surroundings
        cleaner, maker = self._sink.makers()
        text, trail.input = trail.input, None
        whole = text.encode("utf-8", "replace")
        fields: dict[str, Any] = {
            "id": self._sink.new_id(place),
            "text": cleaner.text(text, cleaner.limit),
            "size": len(whole),
            "cut": len(text) > cleaner.limit,
            "digest": self._sink.digest(whole),
            "steps": maker.steps(trail),
        }
        if isinstance(output, Block):
            fields |= {"verdict": "block", "reason": cleaner.text(output.reason), "by": output.by}
        elif output.message != text:
            fields["verdict"] = "rewrite"
        self._sink.write(Prompt, fields, place)

    def line(self, kind: type[Line], fields: dict[str, Any], surroundings: Surroundings | None = None) -> None:
        """Write a line of any other kind: `Edit`, `Unlock`, `Note`.  The caller redacts its texts."""
        place = surroundings or self._engine.surroundings
        self._sink.write(kind, {"id": self._sink.new_id(place)} | fields, place)

    @_safely
    def remembered(self, fields: dict[str, Any], surroundings: Surroundings) -> None:
        """Write that an answer of the person was kept, allowed a call, or ended."""
        cleaner, trail = self._sink.makers()[0], _get_trail()
        given = {name: cleaner.text(each) if isinstance(each, str) else each for name, each in fields.items()}
        more = {"parent": None if trail is None else trail.id, "user": login_name()}
        self.line(Remembered, given | more, surroundings)

    @_safely
    def saved(self, work: Any, top: str, files: tuple[str, ...], surroundings: Surroundings) -> None:
        """Write that the files of a working tree were saved after a turn, with those that it has changed."""
        cleaner = self._sink.makers()[0]
        fields: dict[str, Any] = {
            "event": "saved",
            "turn_id": work.turn,
            "tree": cleaner.text(top),
            "checkpoint": str(work.entry_index),
            "files": tuple(cleaner.text(each) for each in files[:MOST_FILES]),
            "more": max(len(files) - MOST_FILES, 0),
            "marked": True,
        }
        if (turn := self._sink.turns.get((surroundings.session_id, surroundings.agent_id))) is not None:
            fields["turn"] = turn
        self.line(Turn, fields, surroundings)

    @_safely
    def edited(self, edits: Iterable[Any], unlocked: Sequence[str]) -> None:
        """Write the edits of files that control the agent; `unlocked`: the directories that the person has unlocked."""
        cleaner = self._sink.makers()[0]
        for each in edits:
            self.line(
                Edit,
                {
                    "path": cleaner.text(each.path),
                    "what": each.what,
                    "before": each.before,
                    "after": each.after,
                    "diff": cleaner.text(each.diff, cleaner.limit),
                    "unlocked": any(each.path.startswith(f"{root}{os.sep}") for root in unlocked),
                },
            )

    def report(self, text: str) -> None:
        """Report the first of several failures in a row."""
        self._sink.report(text)

    def renew(self, records: Any, kept: Sequence[str]) -> None:
        """Forget the digests of hooks that were loaded again, and use other options if there are some."""
        if isinstance(records, Options):
            self._required = records.required
            self._sink.records = records
        self._sink.renew(kept)

    def close(self) -> None:
        """Write the last heads and close the files."""
        self._questions.close()
        self._sink.close()


# The fields of a decision.
_DECISION = b'%b,"verdict":"%b","input":%b,"inputSize":%d,"digest":"%b"%b%b,"ms":%.3f'


def _event_of(event: SessionEvent) -> str:
    if event.reload:
        return "before_reload" if event.reason == "shutdown" else "reload"
    return "end" if event.reason == "shutdown" else event.reason


def _reasons(cleaner: Cleaner, block: Any, asks: Any) -> dict[str, Any]:
    """Return the fields that say why a call is blocked or asked about."""
    if block is not None:
        reason, remedy = cleaner.text(block.reason), cleaner.text(block.remedy)
        fields = {
            "reason": reason,
            "by": block.by,
            "cause": block.cause,
            "rule": cleaner.text(block.rule),
            "remedy": remedy,
        }
    else:
        fields = {
            "reason": cleaner.text("; ".join(dict.fromkeys(ask.title for ask in asks))),
            "by": ", ".join(dict.fromkeys(ask.by for ask in asks)),
            "rule": cleaner.text(", ".join(dict.fromkeys(ask.rule for ask in asks if ask.rule))),
        }
    return {name: value for name, value in fields.items() if value}


_EVENTS: dict[type[Any], Callable[..., type[Line]]] = {
    SessionEvent: CallRecorder._session,
    AgentStart: CallRecorder._run,
    AgentEnd: CallRecorder._run,
    TurnStart: CallRecorder._turn,
    TurnEnd: CallRecorder._turn,
    ForeignEvent: CallRecorder._foreign,
}
"""The kind of line of each event, and the function that fills it in."""


class Records(Options, frozen=True):
    """The wish for records, for `HookRunner(records=…)`; see `Options`."""

    def recorder(self, engine: Any) -> CallRecorder:
        """Return the recorder of a runner's engine."""
        return CallRecorder(self, engine)
