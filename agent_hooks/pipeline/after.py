"""The steps of a tool call from the tool on; `order` says in which order they come."""

from __future__ import annotations

import types
from collections.abc import Generator
from time import perf_counter
from types import CoroutineType
from typing import Any

from msgspec.structs import replace

from agent_hooks.concurrency.deadlines import CallWatch, deliver_cancellation
from agent_hooks.concurrency.stepping import resume
from agent_hooks.dispatch.loop import await_any
from agent_hooks.dispatch.points import ResultDraft, ToolAfterInput, ToolAfterOutput
from agent_hooks.errors import describe, hook_error, shown
from agent_hooks.pipeline.call import AbortedCallError, JudgedCall, ToolRun, running_call, set_running_call
from agent_hooks.transformers.base import TransformerError, filter_output, with_notes
from agent_hooks.values.answers import Block
from agent_hooks.values.content import TextContent, ToolOutput
from agent_hooks.values.events import AfterToolCall, ToolResult
from agent_hooks.values.tool import OnUpdate


def refuse(call: JudgedCall, block: Block) -> ToolRun:
    """Make the block the result of the call: an error result with the reason and the name of the blocker.

    The model does not read how a person would allow the call; that stands in the details.
    """
    name = call.tool.name
    if call.trail is not None:
        call.trail.status = "blocked"
    reason = _redacted(block.model_text, call)
    details = {"status": "blocked", "tool": name, "reason": reason}
    text = reason
    if block.cause == "interceptor":
        # Imported here, because few programs need it.
        from json import dumps

        text = dumps(details, ensure_ascii=False)
    if block.remedy:
        # Details are for the person and for programs; no model reads them.
        details["remedy"] = _redacted(block.remedy, call)
    if block.cause == "schema":
        # No hook or guard blocked the call.
        details["cause"] = block.cause
    return redact_result(ToolRun(call, ToolOutput(text, details, is_error=True), block=block))


async def execute(run: ToolRun) -> ToolRun:
    """Run the tool; one that raises, or returns no `ToolOutput`, gives an error result.

    Raises `AbortedCallError` when the runner is left meanwhile.
    """
    call = run.call
    engine = call.engine
    on_update = run.on_update
    if engine.redactor is not None and on_update is not None:
        on_update = engine.redactor.progress(on_update)
    # A call is watched from its first suspension on, because nothing can cancel it before: saves 0.5 of 8 µs.  trio's
    # watch is a scope around the whole call.
    watch = engine.watch_call() if engine.watches_early else None
    outer = set_running_call(call.tool_call_id)
    returned: list[object] = []
    try:
        if watch is not None:
            await deliver_cancellation()
        steps = _call_tool(call, on_update, returned)
        for waiting in steps:
            watch = watch or engine.watch_call()
            await resume(steps, waiting)
        output = returned[0]
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        # A tool may raise anything.  Its failure is a result, which the agent reads; a cancellation goes on.
        if watch is not None:
            _pass_on(exc, watch)
        output = ToolOutput(describe(exc), is_error=True)
    else:
        if watch is not None and engine.left:
            # The tool swallowed its cancellation.  The handlers that its result would pass are unloaded.
            watch.settle(None)
            raise AbortedCallError
    finally:
        running_call.reset(outer)
        if watch is not None:
            watch.close()
    took = run.elapsed_ms() if run.duration_ms is None else run.duration_ms
    if call.trail is not None:
        call.trail.took = took
    if not isinstance(output, ToolOutput):
        text = f"{call.tool.name}.execute returned {shown(output)}; it must return ToolOutput(content)"
        output = ToolOutput(text, is_error=True)
    return ToolRun(call, output, took, on_update)


@types.coroutine
def _call_tool(call: JudgedCall, on_update: OnUpdate | None, returned: list[object]) -> Generator[Any, Any, None]:
    """Await the tool and put its output into `returned`.

    This is a generator, because a `for` takes its first step without the exception that ends a coroutine.
    """
    awaitable = call.tool.execute(call.tool_call_id, call.arguments, on_update=on_update)
    coroutine = awaitable if type(awaitable) is CoroutineType else await_any(awaitable)
    returned.append((yield from coroutine))


def _pass_on(exc: BaseException, watch: CallWatch) -> None:
    """Raise `AbortedCallError` if leaving the runner has cancelled the call, and somebody else's cancellation."""
    if watch.settle(exc):
        raise AbortedCallError from None
    if (cancelled := watch.foreign(exc)) is not None:
        raise cancelled from None


def filter_result(run: ToolRun) -> ToolRun:
    """Let the transformers filter the tool's result, and add a line below it for each that changed something."""
    call, output = run.call, run.output
    name, schema = call.tool.name, call.tool.input_schema
    notes = list(call.notes)
    for step in call.engine.transformers_of(name):
        began = perf_counter()
        try:
            output, note = filter_output(step, name, schema, call.input, output)
        except TransformerError as exc:
            # The tool has run, so its result is kept, and the model reads which transformer failed.
            call.engine.report(exc.failure("filter_output", "tool_result", "continued"))
            note = f"[transformer {exc.by} failed on this result, so it took nothing out: {exc}]"
            if call.trail is not None:
                call.trail.add("filter", exc.by, began, failure="failed", text=str(exc))
        else:
            if call.trail is not None and note:
                call.trail.add("filter", step.name, began, "replace", changed=("content",))
        notes += [note] if note else []
    return run.returned(with_notes(output, notes))


async def pass_result(run: ToolRun) -> ToolRun:
    """Let the handlers of `tool_result` change the result, each after the one before."""
    call, output = run.call, run.output
    event = ToolResult(
        tool_name=call.tool.name,
        tool_call_id=call.tool_call_id,
        input=call.input,
        content=output.content,
        details=output.details,
        is_error=output.is_error,
        parent_tool_call_id=call.parent_tool_call_id,
        native=call.native,
    )
    answer = await call.engine.emit(event, call.surroundings)
    if answer is None:
        return run
    if answer.stop is not None:
        call.engine.stopped(answer.stop)
    fields: dict[str, Any] = {"content": output.content, "details": output.details, "is_error": output.is_error}
    if changes := answer.changes():
        run = run.returned(ToolOutput(**(fields | changes)))
    return replace(run, context=tuple(each.text for each in answer.context)) if answer.context else run


async def intercept_result(run: ToolRun) -> ToolRun:
    """Let the interceptors of `tool.after` change the result."""
    call, output = run.call, run.output
    name = call.tool.name
    answer = await call.engine.reach(
        "tool.after",
        ToolAfterInput(tool_name=name, tool_call_id=call.tool_call_id, is_error=output.is_error),
        # A draft, as interceptors get it: one that changes nothing then leaves an equal output, which is no answer.
        ToolAfterOutput(ResultDraft(output.content, output.details, output.is_error)),
        call.surroundings,
        key=name,
    )
    if not isinstance(answer, ToolAfterOutput):
        return run
    changed = ToolOutput(answer.result.content, answer.result.details, answer.result.is_error)
    return run if changed == output else run.returned(changed)


def redact_result(run: ToolRun) -> ToolRun:
    """Hide secrets in the result, or report their kinds where the redactor only reports."""
    call = run.call
    redactor = call.engine.redactor
    if redactor is None:
        return run
    redacted, findings = redactor.output(run.output)
    if findings and call.trail is not None and not redactor.report_only:
        call.trail.redacted([finding.kind for finding in findings])
    if findings and redactor.report_only:
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in findings))
        text = f"the result of {call.tool.name} holds secrets that redaction would hide: {kinds}"
        error = hook_error(
            None, hook="redaction", handler="redactor", event="tool_result", outcome="continued", error=text
        )
        call.engine.report(error)
    return run.returned(redacted)


def add_context(run: ToolRun) -> ToolRun:
    """Put the texts that handlers add below the result, or give them to the stand-in for another agent's tool.

    The other agent takes them beside the result, which then stays as it was.
    """
    if not run.context:
        return run
    if (take := getattr(run.call.tool, "take_context", None)) is not None:
        take(run.context)
        return run
    output: ToolOutput = run.output
    content = [*output.content, *map(TextContent, run.context)]
    return run.returned(ToolOutput(content, output.details, output.is_error))


async def observe(run: ToolRun) -> ToolRun:
    """Tell the observers of `after_tool_call` how the call ended."""
    await run.call.engine.emit(_after(run), run.call.surroundings)
    return run


async def observe_abort(call: JudgedCall, duration_ms: float | None = None) -> None:
    """Tell the observers that the call was aborted; `duration_ms`: how long the tool had run."""
    event = AfterToolCall(
        tool_name=call.tool.name,
        params=call.input if isinstance(call.input, dict) else {},
        tool_call_id=call.tool_call_id,
        error="aborted",
        duration_ms=duration_ms,
    )
    await call.engine.emit(event, call.surroundings)


def _after(run: ToolRun) -> AfterToolCall:
    call, output, block = run.call, run.output, run.block
    if block is not None:
        reason = _redacted(str(block), call)
        return AfterToolCall(
            tool_name=call.tool.name,
            params=call.input if isinstance(call.input, dict) else {},
            tool_call_id=call.tool_call_id,
            error=reason,
            blocked=True,
            block_reason=_redacted(block.explanation, call) if block.reason else reason,
        )
    return AfterToolCall(
        tool_name=call.tool.name,
        params=call.input,
        tool_call_id=call.tool_call_id,
        result=output,
        error=output.text if output.is_error else None,
        duration_ms=run.duration_ms,
    )


def _redacted(text: str, call: JudgedCall) -> str:
    redactor = call.engine.redactor
    return text if redactor is None else redactor.redact(text)[0]
