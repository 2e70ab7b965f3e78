"""The steps of a tool call from when it runs: the tool, and whoever may change what it returned.

Their order is the pipeline's.  Above: pipeline, wrapping.  Below: judging, runner.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from agent_hooks.dispatch.points import ToolAfterInput, ToolAfterOutput
from agent_hooks.errors import HookError, describe, shown
from agent_hooks.pipeline.before import JudgedCall
from agent_hooks.runner.runner import HookRunner
from agent_hooks.transformers.base import TransformerError, filter_output, with_notes
from agent_hooks.values.answers import Block
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import AfterToolCall, ToolResult
from agent_hooks.values.tool import OnUpdate

# makes the calls that a tool makes know which call they are part of
running_call: ContextVar[str | None] = ContextVar("agent_hooks running tool call", default=None)
# Bound once: a method of an imported name is bound anew at each call.
get_running_call, set_running_call = running_call.get, running_call.set


def refused(call: JudgedCall, block: Block, runner: HookRunner) -> tuple[ToolOutput, AfterToolCall]:
    """Return the result that a blocked call has instead, and what observers are told of it."""
    name = call.tool.name
    reason = _hidden(str(block), runner)
    details = {"status": "blocked", "tool": name, "reason": reason}
    text = reason
    if block.cause == "interceptor":
        import json  # here, for it is not loaded by all who import the package

        text = json.dumps(details, ensure_ascii=False)
    after = AfterToolCall(
        tool_name=name,
        params=call.input if isinstance(call.input, dict) else {},
        tool_call_id=call.tool_call_id,
        error=reason,
        blocked=True,
        block_reason=_hidden(block.reason, runner) or reason,
    )
    return redact_result(call, ToolOutput(text, details, is_error=True), runner), after


def _hidden(text: str, runner: HookRunner) -> str:
    return text if runner.redactor is None else runner.redactor.redact(text)[0]


async def execute(call: JudgedCall, runner: HookRunner, on_update: OnUpdate | None) -> ToolOutput:
    """Step 6: run the tool; one that raises, or returns what is none, gives an error result."""
    cancellations = runner.onlooker()
    outer = set_running_call(call.tool_call_id)
    try:
        output: object = await call.tool.execute(call.tool_call_id, call.arguments, on_update=on_update)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # a failing tool is a result; the agent decides what to make of it
        if (cancelled := cancellations.foreign(exc)) is not None:
            raise cancelled from None
        cancellations.settle(exc)  # raises a cancellation that the tool made something else of
        return ToolOutput(describe(exc), is_error=True)
    finally:
        running_call.reset(outer)
    if isinstance(output, ToolOutput):
        return output
    return ToolOutput(
        f"{call.tool.name}.execute returned {shown(output)}; it must return ToolOutput(content)", is_error=True
    )


def filter_result(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
    """The end of step 6: let the transformers filter what the tool returned, and say below it what they did."""
    name, schema = call.tool.name, call.tool.input_schema
    notes = list(call.notes)
    for step in runner.audience(name).transformers:
        try:
            output, note = filter_output(step, name, schema, call.input, output)
        except TransformerError as exc:  # the tool has run: its result is not lost, and who failed is said
            runner.report(exc.failure("filter_output", "tool_result", "continued"))
            note = f"[transformer {exc.by} failed on this result, so it took nothing out: {exc}]"
        notes += [note] if note else []
    return with_notes(output, notes)


async def pass_result(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
    """Step 7: let handlers change the result, each what the one before left."""
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
    answer = await runner.emit(event)
    if answer is None:
        return output
    changed: dict[str, Any] = {
        "content": output.content,
        "details": output.details,
        "is_error": output.is_error,
    } | answer.changes()
    return ToolOutput(**changed)


async def intercept_result(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
    """Step 8: let interceptors change the result."""
    name = call.tool.name
    answer = await runner.reach(
        "tool.after",
        ToolAfterInput(tool_name=name, tool_call_id=call.tool_call_id, is_error=output.is_error),
        ToolAfterOutput(output),
        key=name,
    )
    if not isinstance(answer, ToolAfterOutput):
        return output
    changed = ToolOutput(answer.result.content, answer.result.details, answer.result.is_error)
    return output if changed == output else changed


def redact_result(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
    """The last step: hide secrets, or in report-only mode say which ones would be hidden."""
    if runner.redactor is None:
        return output
    redacted, findings = runner.redactor.output(output)
    if findings and runner.redactor.report_only:
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in findings))
        text = f"the result of {call.tool.name} holds what redaction would hide: {kinds}"
        failure = HookError(
            hook_path="redaction", handler="redactor", event="tool_result", error=text, outcome="continued"
        )
        runner.report(failure)
    return redacted
