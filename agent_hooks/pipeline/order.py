"""The order of one tool call; the only place that knows it.

    0 validate            the input against the tool's schema
    1 transformers        rewrite, as configured per tool; the input is validated again
    2 tool.before         interceptors: rewrite or block
    3 before_tool_call    rewrite or block
      validate again      if 2 or 3 changed it; the error names who did
    4 guards              block or ask; pure
    5 tool_call           block or ask: every judge sees exactly what would run
      one question        for all asks together; anything but yes blocks
    6 execute             a raised error becomes an error result; transformers filter what the tool returned
    7 tool_result         chain
    8 tool.after          interceptors: chain
      redaction           secrets leave the result, as the last step, and every progress update
    9 after_tool_call     observers, also after a block and after an abort

First whoever may rewrite, then whoever judges.
`preflight` is 0 to 5, `run_tool` is 6 to 9: a host judges the calls of a turn one after another and then runs them in
parallel.  Above: host, bridging, wrapping.  Below: judging and results, which hold the steps; runner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from agent_hooks.concurrency.deadlines import cancelled_class
from agent_hooks.concurrency.threads import in_handler_thread, while_wanted
from agent_hooks.pipeline.after import (
    execute,
    filter_result,
    get_running_call,
    intercept_result,
    pass_result,
    redact_result,
    refused,
)
from agent_hooks.pipeline.before import JudgedCall, ask_person, intercept_input, transform_input
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.pipeline.schema import schema_error
from agent_hooks.runner.runner import HookRunner
from agent_hooks.values.answers import Ask, Block, Rewrite
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import AfterToolCall, BeforeToolCall, ToolCall
from agent_hooks.values.frozen import freeze, thaw
from agent_hooks.values.tool import OnUpdate, Tool

__all__ = ["JudgedCall", "call_tool", "preflight", "run_tool"]

ABORT_GRACE = 2.0  # seconds that after_tool_call handlers get when the turn is aborted


async def call_tool(
    tool: Tool, tool_call_id: str, input: Any, *, runner: HookRunner, on_update: OnUpdate | None = None
) -> ToolOutput:
    """Run one tool call through all steps and return what the agent is shown."""
    call = await preflight(tool, tool_call_id, input, runner=runner)
    return await run_tool(call, runner=runner, on_update=on_update)


# ---- steps 0 to 5 ----------------------------------------------------------------------------------------------------


async def preflight(tool: Tool, tool_call_id: str, input: Any, *, runner: HookRunner, native: Any = None) -> JudgedCall:
    """Judge a call: whoever may rewrite, then whoever judges, then one question to the person.

    Calls are judged one after another, first in, first out; one from within a handler is judged at once.  `native`: the
    payload of the agent that a bridge speaks for.
    """
    parent = get_running_call()
    try:
        frozen = freeze(input)
        call = JudgedCall(tool, tool_call_id, frozen, thaw(frozen), parent, native=native)
    except RecursionError:
        text = f"{tool.name}: the input is nested too deeply, or holds itself"
        return JudgedCall(tool, tool_call_id, {}, {}, parent, Block(text, cause="schema"))
    try:
        if in_handler_thread():
            return await while_wanted(partial(_judge_in_turn, call, runner))
        return await _judge_in_turn(call, runner)
    except cancelled_class():
        await _report_abort(call, runner)
        raise


async def _judge_in_turn(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    if error := schema_error(call.tool.name, call.tool.input_schema, call.input):
        return call.blocked(Block(error, cause="schema"))
    lane = runner.calls_lane()
    if lane is None:
        return await _judge(call, runner)
    if lane.busy:
        await lane.enter()
    else:
        lane.busy = True
    try:
        return await _judge(call, runner)
    finally:
        if lane.waiting:
            lane.leave()
        else:
            lane.busy = False


async def _judge(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    name, tool_call_id = call.tool.name, call.tool_call_id
    asks: list[Ask] = []
    # who listens is asked again after each step: one may have subscribed in it
    audience = runner.audience(name)
    if audience.transformers:
        call = transform_input(call, runner)
        if call.block is not None:
            return call
        audience = runner.audience(name)
    if audience.before_point:
        call = await intercept_input(call, runner)
        if call.block is not None:
            return call
        audience = runner.audience(name)
    if audience.before_tool_call:
        answer = await runner.emit(
            BeforeToolCall(tool_name=name, params=call.input, tool_call_id=tool_call_id), in_lane=True
        )
        if call.input != call.arguments:
            return call.blocked(_tampered(name))
        if isinstance(answer, Ask):
            asks += [answer, *answer.also]
            answer = answer.rewrite
        if isinstance(answer, Block):
            return call.blocked(answer)
        if isinstance(answer, Rewrite):
            call = call.rewritten(answer.input, answer.by)
            if call.block is not None:
                return call
        audience = runner.audience(name)
    if runner.guards:
        found = ask_guards(runner.guards, guarded_call(name, call.input, runner.cwd), runner.report)
        if isinstance(found, Block):
            return call.blocked(found)
        asks += found
        audience = runner.audience(name)
    if audience.tool_call:
        verdict = await runner.emit(
            ToolCall(
                tool_name=name,
                tool_call_id=tool_call_id,
                input=call.input,
                parent_tool_call_id=call.parent_tool_call_id,
                native=call.native,
            ),
            in_lane=True,
        )
        if call.input != call.arguments:
            return call.blocked(_tampered(name))
        if verdict is None:
            pass
        elif isinstance(verdict, Block):
            return call.blocked(verdict)
        elif isinstance(verdict, Ask):
            asks += [verdict, *verdict.also]
    return await ask_person(asks, call, runner) if asks else call


def _tampered(tool_name: str) -> Block:
    """Return the block for an event that was changed in place: C functions, heapq's for example, can do that."""
    return Block("a handler changed event.input in place; the input is read-only", tool_name, "failed")


# ---- steps 6 to 9 ----------------------------------------------------------------------------------------------------


async def run_tool(
    call: JudgedCall,
    *,
    runner: HookRunner,
    on_update: OnUpdate | None = None,
    on_result: Callable[[ToolOutput], None] | None = None,
    duration_ms: float | None = None,
) -> ToolOutput:
    """Run a judged call and return what the agent is shown; a blocked one gives its reason.

    `on_result` hears of that as soon as it is final, before the observers: an abort while they run must not lose it.
    `duration_ms`: how long the tool took, where it ran in another agent and `call.tool` only hands its result over.
    """
    name = call.tool.name
    if call.block is not None:
        refusal, after = refused(call, call.block, runner)
        if on_result is not None:
            on_result(refusal)
        await runner.emit(after)
        return refusal
    if runner.redactor is not None and on_update is not None:
        on_update = runner.redactor.progress(on_update)
    started = perf_counter()
    try:
        output = await execute(call, runner, on_update)
        duration = (perf_counter() - started) * 1000
        audience = runner.audience(name)
        if audience.transformers:
            output = filter_result(call, output, runner)
            audience = runner.audience(name)
        if audience.tool_result:
            output = await pass_result(call, output, runner)
            audience = runner.audience(name)
        if audience.after_point:
            output = await intercept_result(call, output, runner)
        if runner.redactor is not None:
            output = redact_result(call, output, runner)
    except cancelled_class():
        await _report_abort(call, runner, (perf_counter() - started) * 1000)
        raise
    if on_result is not None:
        on_result(output)
    if runner.audience(name).after_tool_call:
        after = AfterToolCall(
            tool_name=name,
            params=call.input,
            tool_call_id=call.tool_call_id,
            result=output,
            error=output.text if output.is_error else None,
            duration_ms=duration if duration_ms is None else duration_ms,
        )
        await runner.emit(after)
    return output


async def _report_abort(call: JudgedCall, runner: HookRunner, duration: float | None = None) -> None:
    """Tell the observers of a call that was aborted, although the task is being cancelled."""
    import anyio  # here, as in `cancelled_class`

    with anyio.CancelScope(shield=True), anyio.move_on_after(ABORT_GRACE):
        event = AfterToolCall(
            tool_name=call.tool.name,
            params=call.input if isinstance(call.input, dict) else {},
            tool_call_id=call.tool_call_id,
            error="aborted",
            duration_ms=duration,
        )
        await runner.emit(event)
