"""The question about a tool call: one for all guards and handlers that ask, and the answer of the person.

1. `permission.ask` may settle the question.
2. Without a person, the call is blocked.
3. A question that a kept answer covers is not put again.
4. The UI shows the others as one question.  Any answer but yes blocks, and so does a UI that fails.
5. An answer for the session, or for always, is kept for each of the questions.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Sequence
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from agent_hooks.concurrency.foreign import Outcome, attempt
from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.dispatch.points import PermissionInput, PermissionOutput
from agent_hooks.dispatch.remembering import AskedCall
from agent_hooks.errors import describe, hook_error, shown
from agent_hooks.guards.base import remedy
from agent_hooks.pipeline.call import AbortedCallError, JudgedCall
from agent_hooks.pipeline.edits import SHOWN_BY_DIFF, diff_of, is_whole
from agent_hooks.pipeline.risks import risk_of
from agent_hooks.ui.base import CHOICES, NO, ONCE, Answer, Choice, Question, call_text, takes_questions
from agent_hooks.values.answers import Ask, Block, Stop
from agent_hooks.values.frozen import thaw
from agent_hooks.values.tool import MAIN_ARGUMENT

# Characters of an argument that a question shows.
_SHOWN = 2000


def ask_person(call: JudgedCall) -> JudgedCall | Coroutine[Any, Any, JudgedCall]:
    """Put all questions about the call to the person as one; the call is blocked unless the answer is yes."""
    return _ask(call) if call.asks else call


async def _ask(call: JudgedCall) -> JudgedCall:
    """Ask all questions as one; a UI that fails counts as no answer, and no answer blocks."""
    title, by, rule, allowing = _asked(call.asks)
    match await _permission(title, call):
        case "allow":
            return replace(call, allowed=True)
        case "deny":
            return call.blocked(Block(f"{title}: denied by permission.ask", by, rule=rule))
    if not call.surroundings.has_ui:
        return call.blocked(Block(title, by, "nobody", rule, allowing))
    asks = _left_to_ask(call)
    if not asks:
        return call
    title, by, rule, allowing = _asked(asks)
    question = await _with_effects(_question(title, asks, call), asks[0].signature, call)
    answer, failure = await (_put if call.trail is None else _put_and_record)(question, asks, call)
    if failure is not None:
        text = f"{title}: the question could not be shown: {describe(failure)}"
        return call.blocked(Block(text, by, "nobody", rule, allowing))
    if not answer.allows:
        kind = Stop if answer.stops else Block
        return call.blocked(kind(title, by, "user", rule, said=answer.text))
    if answer.choice != "once":
        await _keep(answer.choice, asks, call)
    return call


def _asked(asks: Sequence[Ask]) -> tuple[str, str, str, str]:
    """Return the title of these questions, and the `by`, `rule` and `remedy` of a block after them.

    Several askers are listed with their rules.
    """
    title = "; ".join(dict.fromkeys(ask.title for ask in asks))
    allowing = "; ".join(dict.fromkeys(ask.remedy for ask in asks if ask.remedy))
    askers = {ask.signature: (ask.by, ask.rule) for ask in asks}
    by, rule = next(iter(askers.values())) if len(askers) == 1 else (", ".join(askers), "")
    return title, by, rule, allowing


# ---- kept answers ----------------------------------------------------------------------------------------------------


def _left_to_ask(call: JudgedCall) -> tuple[Ask, ...]:
    """Return the questions that no kept answer covers; the records name the answers that do."""
    kept = [(ask, _recalled(ask, call) if ask.remember else "") for ask in call.asks]
    covered = tuple(ask for ask, line in kept if line)
    if covered and call.trail is not None:
        recorder = call.engine.recorder
        assert recorder is not None, "a call has a trail only where there is a recorder"
        title, by, *_ = _asked(covered)
        number = recorder.asked(call, title, _question(title, covered, call).message, by, handed_over=False)
        text = "; ".join(dict.fromkeys(line for _, line in kept if line))
        recorder.answered(call, number, "yes", who="remembered", text=text)
    return tuple(ask for ask, line in kept if not line)


def _recalled(ask: Ask, call: JudgedCall) -> str:
    line, failure = attempt(call.engine.remembering.recall, ask, _asked_call(call))
    if failure is not None:
        _report(failure, "recall", call)
    return line if failure is None and isinstance(line, str) else ""


async def _keep(choice: Choice, asks: Sequence[Ask], call: JudgedCall) -> None:
    """Keep an answer for each question, and show the person the kept answers."""
    memory, ui = call.engine.remembering, call.surroundings.ui
    for ask in asks:
        line, failure = await attempt_async(memory.keep, ask, _asked_call(call), choice)
        if failure is not None:
            _report(failure, "keep", call)
            attempt(ui.notify, f"the answer counts for this call only: {describe(failure)}", "warning")
        elif line:
            attempt(ui.notify, line, "info")


def _answers(asks: Sequence[Ask], call: JudgedCall) -> tuple[Choice, ...]:
    """Return the answers that count: those beside No and Yes once can be kept for each of the questions."""
    memory = call.engine.remembering
    offered = {"no", "once", "session", "always"}
    for ask in asks:
        if not ask.remember:
            return ("no", "once")
        choices, failure = attempt(memory.offered, ask, _asked_call(call))
        if failure is not None:
            _report(failure, "offered", call)
            return ("no", "once")
        offered &= {"no", "once", *choices}
    return tuple(choice for choice in CHOICES if choice in offered)


def _asked_call(call: JudgedCall) -> AskedCall:
    return AskedCall(tool_name=call.tool.name, input=call.input, surroundings=call.surroundings)


def _report(failure: BaseException, method: str, call: JudgedCall) -> None:
    """Report a failure of the memory: the person is asked, and the answer counts once."""
    error = f"the memory of answers failed: {describe(failure)}"
    report = hook_error(
        failure, hook="remembering", handler=method, event="tool_call", outcome="continued", error=error
    )
    call.engine.report(report)


# ---- the question ----------------------------------------------------------------------------------------------------


def _without_settings(ask: Ask) -> Ask:
    """Return a question without the remedy of our guards: the person who answers needs no exception for the call.

    The remedy of another guard may be anything, a person to talk to for example.
    """
    return replace(ask, remedy="") if ask.rule and ask.remedy == remedy(ask.rule) else ask


def _question(title: str, asks: Sequence[Ask], call: JudgedCall) -> Question:
    handed_over = _handed_over(call)
    told = [_without_settings(ask) for ask in asks]
    return Question(
        title=title,
        call=_call_line(call),
        text=call_text(call.tool.name, call.arguments),
        reasons=tuple(
            _reason(
                ask, title, remedied=bool(ask.remedy) and ask.remedy not in [each.remedy for each in told[at + 1 :]]
            )
            for at, ask in enumerate(told)
        ),
        answers=("no", "once") if handed_over else _answers(asks, call),
    )


def _reason(ask: Ask, title: str, *, remedied: bool) -> str:
    """Return the line of one that asks, which does not repeat the title.

    `remedied`: the remedy follows; the last of several askers with the same one has it.
    """
    text = ask.explanation if remedied else ask.message or ask.title
    if not ask.message and ask.title == title:
        text = ask.remedy if remedied else ""
    return f"{ask.signature}: {text}" if text else f"asked by {ask.signature}"


async def _with_effects(question: Question, by: str, call: JudgedCall) -> Question:
    """Return the question with the risk of the call and the diff of an edit; without a known risk, the title is the risk.

    `by`: the first that asks.  Both only help the person: a failure is reported, and the question is put without them.
    """
    place = call.surroundings
    effects, failure = attempt(call.effects, call.tool.name, call.input)
    risk = question.title
    if effects is not None:
        found, failure = await attempt_async(risk_of, effects, place.cwd)
        risk = found or risk
    diff = ""
    if not _handed_over(call):
        found, failed = attempt(diff_of, call.tool.name, call.input, place.cwd)
        diff, failure = found or "", failure or failed
    if failure is not None:
        error = f"the risk of the call is not known: {describe(failure)}"
        call.engine.report(
            hook_error(failure, hook=by, handler="ask", event="tool_call", outcome="continued", error=error)
        )
    if is_whole(diff):
        without = SHOWN_BY_DIFF[call.tool.name]
        text = call_text(call.tool.name, call.arguments, without)
        question = replace(question, call=_call_line(call, without), text=text)
    return replace(question, risk=" ".join(call.engine.hide(risk).split()), diff=call.engine.hide(diff))


def _handed_over(call: JudgedCall) -> bool:
    """Return whether another agent puts the question to the person, for this call only."""
    return bool(getattr(call.surroundings.ui, "hands_over", False))


async def _put_and_record(question: Question, asks: Sequence[Ask], call: JudgedCall) -> Outcome:
    """Show the question, and write the question and the answer into the records."""
    recorder = call.engine.recorder
    assert recorder is not None, "a call has a trail only where there is a recorder"
    began = perf_counter()
    handed_over = _handed_over(call)
    by = ", ".join(dict.fromkeys(ask.signature for ask in asks))
    number = recorder.asked(call, question.title, question.message, by, handed_over=handed_over)
    reply, text = "expired", ""
    try:
        answer, failure = outcome = await _put(question, asks, call)
        if failure is not None:
            reply, text = "failed", describe(failure)
        else:
            reply, text = ("yes" if answer.allows else "no"), _extent(answer)
    finally:
        # A question that was handed over is answered later, by the other agent.
        if not handed_over:
            recorder.answered(call, number, reply, who="person", text=text, ms=(perf_counter() - began) * 1000)
    return outcome


def _extent(answer: Answer) -> str:
    """Return the text of an answer for the records: the reason for No, or how long a Yes counts."""
    if answer.stops:
        return answer.text or "and the run ends"
    return {"session": "for this session", "always": "always"}.get(answer.choice, answer.text)


async def _put(question: Question, asks: Sequence[Ask], call: JudgedCall) -> Outcome:
    """Show the question; the clock of an outer handler, which called a wrapped tool, stands meanwhile.

    The value of the outcome is an `Answer` that the question offers.  Raises `AbortedCallError` when the runner is left
    meanwhile.
    """
    outer = current_dispatch()
    if outer is not None:
        outer.need_clock().pause()
    watch = call.engine.watch_call()
    try:
        return await _reply(call.surroundings.ui, question)
    except BaseException as exc:
        # Only Ctrl-C and a cancellation come here: one of ours ends the call, any other goes on.
        if watch.settle(exc):
            raise AbortedCallError from None
        raise
    finally:
        watch.close()
        if outer is not None:
            outer.need_clock().resume()


async def _reply(ui: Any, question: Question) -> Outcome:
    """Ask by `ui.ask`, or by `confirm` where a UI has no more than that; then yes is Yes once."""
    if not takes_questions(ui):
        value, failure = await attempt_async(ui.confirm, question.title, question.message)
        return Outcome(ONCE if value is True else NO, failure)
    value, failure = await attempt_async(ui.ask, question)
    if failure is None and not (isinstance(value, Answer) and value.choice in question.answers):
        offered = ", ".join(repr(choice) for choice in question.answers)
        failure = TypeError(f"ui.ask(question) returns an Answer with one of {offered}, not {shown(value)}")
    return Outcome(value, failure)


def _call_line(call: JudgedCall, shown: Collection[str] = ()) -> str:
    """Return the call for the person to judge, in one line, so that no argument can pass for another part of it.

    `shown`: the arguments that stand in the diff.
    """
    name = call.tool.name
    rest = {key: value for key, value in thaw(call.arguments).items() if key not in shown}
    main = rest.pop(MAIN_ARGUMENT[name], None) if name in MAIN_ARGUMENT else None
    words = [name]
    if main is not None:
        plain = isinstance(main, str) and main.isprintable() and not (rest and "{" in main)
        words.append(_excerpt(main if plain else repr(main)))
    return " ".join([*words, *([_excerpt(repr(rest))] if rest or main is None else [])])


def _excerpt(text: str) -> str:
    """Return a text, or both of its ends when it is too long: the end of a command must not be out of sight."""
    left_out = len(text) - _SHOWN
    if left_out <= 0:
        return text
    half = _SHOWN // 2
    return f"{text[:half]} …[{left_out} characters left out]… {text[-half:]}"


async def _permission(question: str, call: JudgedCall) -> str:
    """Return `allow`, `deny` or `ask`: the interceptors of `permission.ask` may settle a question before the person."""
    place = call.surroundings
    asked = PermissionInput(
        agent_id=place.agent_id,
        session_key=place.session_id,
        tool_name=call.tool.name,
        tool_call_id=call.tool_call_id,
        args=call.input,
        reason=question,
    )
    output = await call.engine.reach("permission.ask", asked, PermissionOutput(), place)
    return output.status if isinstance(output, PermissionOutput) else "ask"
