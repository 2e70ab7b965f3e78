"""The steps of a tool call before the tool runs; `order` says in which order they come."""

from __future__ import annotations

from time import perf_counter

from msgspec.structs import replace

from agent_hooks.dispatch.points import AtPoint, ToolBeforeInput, ToolBeforeOutput
from agent_hooks.pipeline.call import JudgedCall
from agent_hooks.pipeline.schema import schema_error
from agent_hooks.transformers.base import TransformerError, transform
from agent_hooks.values.answers import Ask, Block, Rewrite
from agent_hooks.values.events import BeforeToolCall, ToolCall
from agent_hooks.values.frozen import thaw


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
    answer = await call.engine.emit(event.with_effects(call.effects), call.surroundings, in_lane=True)
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
    answer = await call.engine.emit(event.with_effects(call.effects), call.surroundings, in_lane=True)
    if answer is None:
        return call
    return call.blocked(answer) if isinstance(answer, Block) else call.asking(answer, *answer.also)
