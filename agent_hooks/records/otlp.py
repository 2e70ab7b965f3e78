"""Makes spans and logs of OpenTelemetry from the lines of records, as plain values, without the SDK.

    joiner = Joiner()
    logs = [joiner.add(line, path, digest) for line, path, digest in lines]
    spans = [*joiner.finished(), *joiner.rest()]

A session is one trace.  Each agent of it is a span `invoke_agent`, and each tool call a span `execute_tool` below the
span of its agent, or of the call that made it; steps, questions and answers are events of their span.  The ids of traces
and spans are digests of the ids in the lines, so the halves of a call join, and a line that is exported twice makes the
same span.  Each line is one log as well.

Without `inputs`, a span or log holds only the fields that `PUBLIC` names: no text of a model, a tool, a person or a hook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from agent_hooks.records.lines import (
    Answer,
    AnyLine,
    Decision,
    Observed,
    Question,
    Result,
    Session,
    Step,
    Turn,
    begins_call,
    numbered,
)
from agent_hooks.records.otlp_values import (
    ALSO,
    INFO,
    PREFIX,
    PUBLIC,
    WARN,
    Attributes,
    Log,
    Span,
    SpanEvent,
    agent_span_id,
    attributes_of,
    call_span_id,
    constant,
    gen_ai,
    is_warning,
    json_text,
    milliseconds,
    prefixed,
    public,
    time_of,
    trace_id,
)

CallLine = Decision | Result | Observed | Question | Answer
# Calls that wait for their result, and events of one agent's span.
_MOST_OPEN = 4096
# Ids of calls that are remembered, because a model may use them again.
_MOST_NUMBERED = 16_384
_MOST_EVENTS = 512


class Joiner:
    """Joins the lines of calls and agents to spans.

    `inputs`: spans and logs hold inputs, reasons and all other texts too; `started`: returns the time
    at which a session began, in nanoseconds since 1970, if its first lines are not here.
    """

    def __init__(self, *, inputs: bool = False, started: Callable[[str], int | None] = lambda session: None) -> None:
        self._inputs = inputs
        self._started = started
        # By session and name, which differs from the id where the id is used again.
        self._calls: dict[tuple[str, str], list[CallLine]] = {}
        # The number of the last call with an id, and whether it was judged.
        self._numbers: dict[tuple[str, str], tuple[int, bool]] = {}
        self._done: dict[tuple[str, str], None] = {}
        self._agents: dict[tuple[str, str], _Agent] = {}

    def add(self, line: AnyLine, file: str = "", digest: str = "") -> Log:
        """Take a line and return its log; `digest`: the hash of the line, which is the head of the chain there."""
        call = ""
        if isinstance(line, CallLine):
            key = line.session, (call := self._name(line))
            self._calls.setdefault(key, []).append(line)
            if isinstance(line, Result):
                self._done[key] = None
            self._note(line)
        else:
            self._note(line).add(line, self._values(line))
        return self._log(line, call, file, digest)

    def _name(self, line: CallLine) -> str:
        """Return the name of the call that a line belongs to."""
        key = line.session, line.id
        number, is_judged = self._numbers.pop(key, (1, False))
        if is_judged and begins_call(line):
            number, is_judged = number + 1, False
        self._numbers[key] = number, is_judged or isinstance(line, Decision)
        if len(self._numbers) > _MOST_NUMBERED:
            del self._numbers[next(iter(self._numbers))]
        return numbered(line.id, number)

    def finished(self) -> list[Span]:
        """Return the spans that are complete by now, each once."""
        spans = []
        for key in [*self._done, *list(self._calls)[: max(len(self._calls) - len(self._done) - _MOST_OPEN, 0)]]:
            spans += self._end_call(key)
        for key in [key for key, agent in self._agents.items() if agent.ended]:
            for call in [call for call in self._calls if call[0] == key[0]]:
                spans += self._end_call(call)
            spans.append(self._agents.pop(key).span(self._started))
        return spans

    def rest(self) -> list[Span]:
        """Return the spans of all calls without a result, and of all agents whose session did not end."""
        spans = [span for key in list(self._calls) for span in self._end_call(key)]
        spans += [agent.span(self._started) for agent in self._agents.values()]
        self._agents.clear()
        return spans

    def _note(self, line: AnyLine) -> _Agent:
        key = line.session, line.agent
        agent = self._agents.get(key)
        if agent is None:
            agent = self._agents[key] = _Agent(line)
        agent.note(line)
        return agent

    def _end_call(self, key: tuple[str, str]) -> list[Span]:
        self._done.pop(key, None)
        lines = self._calls.pop(key, None)
        if lines is None:
            return []
        if any(isinstance(line, Decision | Result) for line in lines):
            return [_call_span(key[1], lines, [self._values(line) for line in lines], self._inputs)]
        if not any(line.tool for line in lines):
            # The dialogs of a handler outside of every call.
            for line in lines:
                self._note(line).add(line, self._values(line))
        return []

    def _values(self, line: AnyLine) -> dict[str, Any]:
        values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(line))
        return values if self._inputs else public(values, PUBLIC | ALSO.get(values["kind"], set()))

    def _log(self, line: AnyLine, call: str, file: str, digest: str) -> Log:
        values = self._values(line)
        attributes = attributes_of(values) | {"record.n": line.n, "record.prev": line.prev}
        attributes |= {"record.file": file, "record.hash": digest}
        return Log(
            trace=trace_id(line.session),
            span=call_span_id(line.session, call) if call else agent_span_id(line.session, line.agent),
            time=time_of(line),
            name=PREFIX + values["kind"],
            body=msgspec.json.encode(values).decode(),
            severity=WARN if is_warning(values) else INFO,
            attributes=prefixed(attributes) | gen_ai(line),
        )


def head_log(session: str, file: str, lines: int, digest: str, time: int) -> Log:
    """Return the log that keeps the head of a record file: its number of lines and the hash of the last one."""
    attributes = {"record.file": file, "record.lines": lines, "record.head": digest}
    return Log(
        trace=trace_id(session),
        span=agent_span_id(session, "main"),
        time=time,
        name=PREFIX + "head",
        body=msgspec.json.encode({"file": file, "lines": lines, "head": digest}).decode(),
        severity=INFO,
        attributes=prefixed(attributes) | {"gen_ai.conversation.id": session},
    )


class _Agent:
    """The span of one agent, as far as its lines are known."""

    def __init__(self, line: AnyLine) -> None:
        self._first = self._last = time_of(line)
        self._line = line
        self._events: list[SpanEvent] = []
        self._left_out = 0
        self.ended = False

    def note(self, line: AnyLine) -> None:
        """Extend the span to a line."""
        self._first, self._last = min(self._first, time_of(line)), max(self._last, time_of(line))
        if line.client:
            self._line = line

    def add(self, line: AnyLine, values: dict[str, Any]) -> None:
        """Add a line and its steps as events."""
        self.ended = self.ended or (isinstance(line, Session) and line.event == "end")
        steps = getattr(line, "steps", ())
        events = [_event(line, values), *_steps(steps, time_of(line) - _longest(steps), values)]
        room = max(_MOST_EVENTS - len(self._events), 0)
        self._events += events[:room]
        self._left_out += len(events[room:])

    def span(self, started: Callable[[str], int | None]) -> Span:
        line = self._line
        name = line.client or "agent-hooks"
        attributes = gen_ai(line) | {"gen_ai.operation.name": "invoke_agent"}
        facts = {key: value for key, value in constant(line).items() if value}
        if self._left_out:
            facts["events_left_out"] = self._left_out
        return Span(
            trace=trace_id(line.session),
            id=agent_span_id(line.session, line.agent),
            parent=None if line.agent == "main" else agent_span_id(line.session, "main"),
            name=f"invoke_agent {name}",
            start=min(self._first, started(line.session) or self._first),
            end=self._last,
            attributes=attributes | prefixed(facts),
            events=tuple(self._events),
        )


def _call_span(call: str, lines: Sequence[CallLine], values: Sequence[dict[str, Any]], inputs: bool) -> Span:
    """Return the span of a call from all of its lines that are known."""
    first, last = lines[0], max(lines, key=time_of)
    decision = next((line for line in lines if isinstance(line, Decision)), None)
    result = next((line for line in lines if isinstance(line, Result)), None)
    begin = min(time_of(line) - milliseconds(_took(line)) for line in lines)
    end = max(time_of(last), begin)
    attributes = gen_ai(first) | {"gen_ai.operation.name": "execute_tool"}
    events: list[SpanEvent] = []
    facts: Attributes = {"call.id": call} | {key: value for key, value in constant(first).items() if value}
    for line, each in zip(lines, values, strict=True):
        attributes |= {key: value for key, value in gen_ai(line).items() if value}
        if isinstance(line, Question | Answer):
            events.append(_event(line, each))
            continue
        # The lines of a call share these two names.
        renamed = {"Result": {"ms": "tool_ms"}, "Decision": {"ms": "judged_ms"}}.get(type(line).__name__, {})
        facts |= {renamed.get(key, key): value for key, value in attributes_of(each).items() if key != "id"}
        events += _steps(line.steps, _base(line, decision), each)
    if inputs and decision is not None:
        attributes["gen_ai.tool.call.arguments"] = json_text(msgspec.to_builtins(decision.input))
    error = _error(decision, result)
    if error:
        attributes["error.type"] = error
    if decision is None or result is None:
        facts["incomplete"] = True
    return Span(
        trace=trace_id(first.session),
        id=call_span_id(first.session, call),
        parent=(
            agent_span_id(first.session, first.agent)
            if first.parent is None
            else call_span_id(first.session, first.parent)
        ),
        name=f"execute_tool {attributes.get('gen_ai.tool.name', '')}".rstrip(),
        start=begin,
        end=end,
        attributes=attributes | prefixed(facts),
        events=tuple(sorted(events, key=lambda event: event.time)),
        error=error,
    )


def _error(decision: Decision | None, result: Result | None) -> str:
    """Return why a call failed: `blocked`, `error`, or nothing."""
    if (result is not None and result.status == "blocked") or (decision is not None and decision.verdict == "block"):
        return "blocked"
    return "error" if result is not None and result.status == "error" else ""


def _base(line: AnyLine, decision: Decision | None) -> int:
    """Return the time that the offsets of a line's steps count from."""
    if isinstance(line, Decision):
        return time_of(line) - milliseconds(line.ms)
    if isinstance(line, Result | Observed) and decision is not None:
        return min(time_of(decision), time_of(line) - _longest(line.steps))
    return time_of(line) - _longest(getattr(line, "steps", ()))


def _took(line: AnyLine) -> float:
    return line.ms or 0.0 if isinstance(line, Decision | Result) else 0.0


def _longest(steps: Iterable[Step]) -> int:
    """Return the time from the beginning to the end of the last step, in nanoseconds."""
    return milliseconds(max((step.at + step.ms for step in steps), default=0.0))


def _steps(steps: Sequence[Step], base: int, values: Mapping[str, Any]) -> list[SpanEvent]:
    """Return an event for each step, at its offset; `values`: the line's, with the steps as they are exported."""
    named = values.get("steps", ())
    return [
        SpanEvent(PREFIX + "step", base + milliseconds(step.at), prefixed(attributes_of(each)))
        for step, each in zip(steps, named, strict=True)
    ]


def _event(line: AnyLine, values: Mapping[str, Any]) -> SpanEvent:
    """Return the event of a line that is no span of its own."""
    shared = constant(line).keys()
    attributes = {key: value for key, value in attributes_of(values).items() if key not in shared}
    if isinstance(line, Turn) and line.turn is not None:
        attributes["turn"] = line.turn
    return SpanEvent(PREFIX + str(values["kind"]), time_of(line), prefixed(attributes))
