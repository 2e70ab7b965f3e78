"""The steps of a tool call before the tool runs; `order` says in which order they come."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from agent_hooks.concurrency.foreign import Outcome
from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.dispatch.points import AtPoint, PermissionInput, PermissionOutput, ToolBeforeInput, ToolBeforeOutput
from agent_hooks.errors import describe
from agent_hooks.pipeline.call import AbortedCallError, JudgedCall
from agent_hooks.pipeline.schema import schema_error
from agent_hooks.transformers.base import TransformerError, transform
from agent_hooks.values.answers import Ask, Block, Rewrite
from agent_hooks.values.events import BeforeToolCall, ToolCall
from agent_hooks.values.frozen import thaw
from agent_hooks.values.tool import MAIN_ARGUMENT

# Characters of an argument that a question shows.
_SHOWN = 2000


def validate(call: JudgedCall) -> JudgedCall:
    """Check the input against the tool's schema."""
    error = schema_error(call.tool.name, call.tool.input_schema, call.input)
    return call.blocked(Block(error, cause="schema")) if error else call


def transform_input(call: JudgedCall) -> JudgedCall:
    """Let the configured transformers rewrite the input; one that fails blocks the call."""
    name, schema = call.tool.name, call.tool.input_schema
    began = perf_counter()
    try:
        done = transform(call.engine.transformers_of(name), name, schema, call.input)
    except TransformerError as exc:
        # A mistake in the configuration was reported when it was read.
        if not exc.misconfigured:
            call.engine.report(exc.failure("transform", "tool_call", "blocked"))
        if call.trail is not None:
            call.trail.add("transform", exc.by, began, failure="failed", text=str(exc), blocked=True)
        return call.blocked(Block(str(exc), exc.by, "transformer"))
    if not done.by:
        return call
    if call.trail is not None:
        by = ", ".join(done.by)
        call.trail.add("transform", by, began, "rewrite", before=call.input, after=done.input)
    return replace(call, notes=done.notes).rewritten(done.input, done.by)


async def intercept_input(call: JudgedCall) -> JudgedCall:
    """Let the interceptors of `tool.before` rewrite the input or block."""
    name = call.tool.name
    event = AtPoint(
        point="tool.before",
        key=name,
        input=ToolBeforeInput(tool_name=name, tool_call_id=call.tool_call_id),
        output=ToolBeforeOutput(thaw(call.input)),
    )
    answer = await call.engine.emit(event, call.surroundings, in_lane=True)
    if isinstance(answer, Block):
        return call.blocked(answer)
    return call if answer is None else call.rewritten(answer.output.args, answer.by)


async def ask_rewriters(call: JudgedCall) -> JudgedCall:
    """Let the handlers of `before_tool_call` rewrite the input, block or ask."""
    event = BeforeToolCall(tool_name=call.tool.name, params=call.input, tool_call_id=call.tool_call_id)
    answer = await call.engine.emit(event, call.surroundings, in_lane=True)
    if isinstance(answer, Ask):
        call = call.asking(answer, *answer.also)
        answer = answer.rewrite
    if isinstance(answer, Block):
        return call.blocked(answer)
    return call.rewritten(answer.input, answer.by) if isinstance(answer, Rewrite) else call


def validate_again(call: JudgedCall) -> JudgedCall:
    """Check a rewritten input against the schema; the error names the rewriter that broke it."""
    if not call.rewrites:
        return call
    name, schema = call.tool.name, call.tool.input_schema
    if not (error := schema_error(name, schema, call.input)):
        return call
    culprit = call.rewrites[-1]
    for rewriting in reversed(call.rewrites):
        if not schema_error(name, schema, rewriting.input):
            break
        culprit = rewriting
    by = ", ".join(culprit.by)
    return call.blocked(Block(f"{error} (rewritten by {by})", by, "schema"))


async def ask_gates(call: JudgedCall) -> JudgedCall:
    """Let the handlers of `tool_call` block or ask; they see exactly the input that would run."""
    event = ToolCall(
        tool_name=call.tool.name,
        tool_call_id=call.tool_call_id,
        input=call.input,
        parent_tool_call_id=call.parent_tool_call_id,
        native=call.native,
    )
    answer = await call.engine.emit(event, call.surroundings, in_lane=True)
    if answer is None:
        return call
    return call.blocked(answer) if isinstance(answer, Block) else call.asking(answer, *answer.also)


def ask_person(call: JudgedCall) -> JudgedCall | Coroutine[Any, Any, JudgedCall]:
    """Put all questions about the call to the person as one; the call is blocked unless the answer is yes."""
    return _ask(call) if call.asks else call


async def _ask(call: JudgedCall) -> JudgedCall:
    """Ask all questions as one; a UI that fails counts as no answer, and no answer blocks."""
    title = "; ".join(dict.fromkeys(ask.title for ask in call.asks))
    by, rule = _askers(call.asks)
    match await _permission(title, call):
        case "allow":
            return replace(call, allowed=True)
        case "deny":
            return call.blocked(Block(f"{title}: denied by permission.ask", by, rule=rule))
    if not call.surroundings.has_ui:
        return call.blocked(Block(title, by, "nobody", rule))
    answer, failure = await (_confirm if call.trail is None else _record_question)(title, call)
    if failure is not None:
        text = f"{title}: the question could not be shown: {describe(failure)}"
        return call.blocked(Block(text, by, "nobody", rule))
    return call if answer is True else call.blocked(Block(title, by, "user", rule))


def _askers(asks: Sequence[Ask]) -> tuple[str, str]:
    """Return the `by` and the `rule` of a block after these questions; several askers are listed with their rules."""
    askers = {ask.signature: (ask.by, ask.rule) for ask in asks}
    return next(iter(askers.values())) if len(askers) == 1 else (", ".join(askers), "")


async def _record_question(title: str, call: JudgedCall) -> Outcome:
    """Show the question, and write the question and the answer into the records."""
    recorder, place = call.engine.recorder, call.surroundings
    assert recorder is not None, "a call has a trail only where there is a recorder"
    began = perf_counter()
    handed_over = hasattr(place.ui, "confirm_call")
    by = ", ".join(dict.fromkeys(ask.signature for ask in call.asks))
    number = recorder.asked(call, title, _message(call), by, handed_over=handed_over)
    reply, text = "expired", ""
    try:
        answer, failure = outcome = await _confirm(title, call)
        reply, text = ("yes" if answer is True else "no"), ""
        if failure is not None:
            reply, text = "failed", describe(failure)
    finally:
        # A question that was handed over is answered later, by the other agent.
        if not handed_over:
            recorder.answered(call, number, reply, who="person", text=text, ms=(perf_counter() - began) * 1000)
    return outcome


def _message(call: JudgedCall) -> str:
    """Return the text below the question: the call, and the explanations of all that ask."""
    return "\n".join([_question(call), *(f"{ask.signature}: {ask.explanation}" for ask in call.asks)])


async def _confirm(title: str, call: JudgedCall) -> Outcome:
    """Show the question with the call; the clock of an outer handler, which called a wrapped tool, stands meanwhile.

    Raises `AbortedCallError` when the runner is left meanwhile.
    """
    message = _message(call)
    outer = current_dispatch()
    if outer is not None:
        outer.need_clock().pause()
    watch = call.engine.watch_call()
    try:
        ui = call.surroundings.ui
        # The UI of a bridge tells the pipeline's question from the question of a handler.
        outcome = await attempt_async(getattr(ui, "confirm_call", ui.confirm), title, message)
    except BaseException as exc:
        # Only Ctrl-C and a cancellation come here: one of ours ends the call, any other goes on.
        if watch.settle(exc):
            raise AbortedCallError from None
        raise
    finally:
        watch.close()
        if outer is not None:
            outer.need_clock().resume()
    return outcome


def _question(call: JudgedCall) -> str:
    """Return the call for the person to judge, in one line, so that no argument can pass for another part of it."""
    name, rest = call.tool.name, thaw(call.arguments)
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
