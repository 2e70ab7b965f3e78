"""Lines of records become spans: their parents, events, times and errors, also if only some lines of a call are known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from agent_hooks.records.lines import (
    Answer,
    AnyLine,
    Decision,
    Line,
    Observed,
    Prompt,
    Question,
    Result,
    Session,
    Step,
)
from agent_hooks.records.otlp import Joiner
from agent_hooks.records.otlp_values import Span, agent_span_id, call_span_id

L = TypeVar("L", bound=Line)
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = int(START.timestamp()) * 1_000_000_000


def line(kind: type[L], when: int, id: str = "c", /, **fields: Any) -> L:
    """Return a line of session `s`, so many milliseconds after the start."""
    common: dict[str, Any] = {
        "v": 1,
        "prev": "",
        "n": 1,
        "clock": 1,
        "session": "s",
        "time": START + timedelta(milliseconds=when),
    }
    return kind(**(common | {"id": id} | fields))


def spans_of(*lines: AnyLine) -> dict[str, Span]:
    """Return the spans of lines, by name."""
    joiner = Joiner()
    for each in lines:
        joiner.add(each)
    found = joiner.rest()
    assert len({span.name for span in found}) == len(found)
    return {span.name: span for span in found}


def events_of(span: Span) -> list[tuple[str, float]]:
    """Return the names of a span's events, with their milliseconds after the start."""
    return [(event.name.removeprefix("agent_hooks."), (event.time - AT) / 1_000_000) for event in span.events]


def test_a_call_has_its_steps_its_question_and_its_answer_at_their_times() -> None:
    """The span begins with the request and ends with the result; the steps after the tool count from the decision."""
    call = spans_of(
        line(Question, 20, tool="bash", title="Sure?", by="gate"),
        line(Answer, 90, tool="bash", reply="yes", who="person", ms=70.0),
        line(
            Decision,
            100,
            tool="bash",
            verdict="allow",
            ms=100.0,
            steps=(Step(stage="tool_call", at=5.0, ms=1.0), Step(stage="ask", at=15.0, ms=80.0)),
        ),
        line(Result, 150, tool="bash", status="ok", ms=40.0, steps=(Step(stage="tool_result", at=45.0, ms=1.0),)),
        line(Observed, 152, tool="bash", steps=(Step(stage="after_tool_call", at=50.0, ms=1.0),)),
    )["execute_tool bash"]
    assert (call.start, call.end) == (AT, AT + 152_000_000)
    steps = [("step", 5.0), ("step", 15.0), ("question", 20.0), ("answer", 90.0), ("step", 145.0), ("step", 150.0)]
    assert events_of(call) == steps
    answer = next(event.attributes for event in call.events if event.name == "agent_hooks.answer")
    assert (answer["agent_hooks.reply"], answer["agent_hooks.who"]) == ("yes", "person")
    assert (call.attributes["agent_hooks.judged_ms"], call.attributes["agent_hooks.tool_ms"]) == (100.0, 40.0)
    assert "Sure?" not in repr(call)


def test_a_call_of_a_sub_agent_or_of_another_call_is_below_it() -> None:
    """The span of a sub-agent is below that of the main agent."""
    spans = spans_of(
        line(Session, 0, "1", event="start", client="host"),
        line(Decision, 1, "a", tool="outer", verdict="pass", client="host"),
        line(Decision, 2, "b", tool="inner", verdict="pass", parent="a", client="host"),
        line(Decision, 3, "d", tool="sub", verdict="pass", agent="helper", client="other"),
    )
    assert spans["invoke_agent host"].parent is None
    assert spans["invoke_agent other"].parent == agent_span_id("s", "main") == spans["invoke_agent host"].id
    assert spans["execute_tool outer"].parent == agent_span_id("s", "main")
    assert spans["execute_tool inner"].parent == call_span_id("s", "a") == spans["execute_tool outer"].id
    assert spans["execute_tool sub"].parent == agent_span_id("s", "helper")


@pytest.mark.parametrize(
    ("verdict", "status", "error"),
    [
        ("pass", "ok", ""),
        ("pass", "error", "error"),
        ("pass", "aborted", ""),
        ("block", "blocked", "blocked"),
        ("block", None, "blocked"),
    ],
)
def test_a_blocked_or_failed_call_has_the_status_error(verdict: Any, status: Any, error: str) -> None:
    """An aborted call is no failure."""
    lines: list[AnyLine] = [line(Decision, 1, tool="bash", verdict=verdict)]
    if status is not None:
        lines.append(line(Result, 2, tool="bash", status=status))
    span = spans_of(*lines)["execute_tool bash"]
    assert (span.error, span.attributes.get("error.type", "")) == (error, error)


def test_a_half_that_comes_late_makes_no_second_span() -> None:
    """The observers of a finished call, or the answer to an old question, are logs only."""
    joiner = Joiner()
    joiner.add(line(Decision, 1, tool="bash", verdict="pass"))
    assert joiner.finished() == []
    joiner.add(line(Result, 2, tool="bash", status="ok"))
    assert [span.name for span in joiner.finished()] == ["execute_tool bash"]
    joiner.add(line(Observed, 3, tool="bash"))
    joiner.add(line(Answer, 4, "old", tool="bash", reply="expired"))
    assert [span.name for span in [*joiner.finished(), *joiner.rest()]] == ["invoke_agent agent-hooks"]


def test_the_end_of_a_session_completes_its_spans() -> None:
    """A call without a result is incomplete; a handler's dialog outside of every call is an event of the agent."""
    joiner = Joiner(started=lambda session: AT - 5)
    joiner.add(line(Question, 1, "d", about="dialog", title="Which?"))
    joiner.add(line(Answer, 2, "d", reply="text", text="this"))
    joiner.add(line(Prompt, 3, "p", text="do it"))
    joiner.add(line(Decision, 4, tool="bash", verdict="ask"))
    joiner.add(line(Session, 5, "e", event="end"))
    call, agent = joiner.finished()
    assert call.attributes["agent_hooks.incomplete"] is True
    assert (agent.start, agent.end) == (AT - 5, AT + 5_000_000)
    assert sorted(events_of(agent)) == [("answer", 2.0), ("prompt", 3.0), ("question", 1.0), ("session", 5.0)]
    assert joiner.rest() == []


def test_calls_that_never_end_and_events_of_an_agent_are_bounded() -> None:
    """A resident server runs for days; the logs have everything."""
    joiner = Joiner()
    for number in range(5000):
        joiner.add(line(Decision, number, f"c{number}", tool="bash", verdict="pass"))
        joiner.add(line(Prompt, number, f"p{number}"))
    assert len(joiner.finished()) == 5000 - 4096
    agent = joiner.rest()[-1]
    assert len(agent.events) == 512
    assert agent.attributes["agent_hooks.events_left_out"] == 5000 - 512


@pytest.mark.parametrize("is_live", [True, False])
def test_two_calls_with_one_id_have_two_spans(is_live: bool) -> None:
    """Also where the first was exported before.  The question before the second decision belongs to the second."""
    joiner = Joiner()
    spans = []
    for each in (
        line(Decision, 0, tool="bash", verdict="pass"),
        line(Result, 10, tool="bash", status="ok"),
        line(Question, 20, tool="bash", title="Sure?", to="client"),
        line(Decision, 30, tool="bash", verdict="block"),
    ):
        joiner.add(each)
        spans += joiner.finished() if is_live else []
    spans += joiner.rest()
    calls = [span for span in spans if span.name.startswith("execute_tool")]
    assert [span.id for span in calls] == [call_span_id("s", "c"), call_span_id("s", "c.2")]
    assert [span.attributes["agent_hooks.verdict"] for span in calls] == ["pass", "block"]
    assert [len(span.events) for span in calls] == [0, 1]
