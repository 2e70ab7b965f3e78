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
parallel.  Above: host, testing.  Below: runner, schema, function_tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from time import perf_counter
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.answers import Ask, Block, Rewrite
from agent_hooks.content import ToolOutput
from agent_hooks.deadlines import INF
from agent_hooks.dispatch import current_dispatch
from agent_hooks.errors import HookError, Outcome, describe, shown
from agent_hooks.events import AfterToolCall, BeforeToolCall, ToolCall, ToolResult
from agent_hooks.frozen import freeze, thaw
from agent_hooks.function_tool import as_tool
from agent_hooks.guarding import ask_guards, guarded_call
from agent_hooks.points import (
    AtPoint,
    PermissionInput,
    PermissionOutput,
    ToolAfterInput,
    ToolAfterOutput,
    ToolBeforeInput,
    ToolBeforeOutput,
)
from agent_hooks.runner import HookRunner
from agent_hooks.schema import schema_error
from agent_hooks.threads import in_handler_thread, while_wanted
from agent_hooks.tool import OnUpdate, Tool
from agent_hooks.transformers.base import TransformerError, filter_output, transform, with_notes

ABORT_GRACE = 2.0  # seconds that after_tool_call handlers get when the turn is aborted
# makes the calls that a tool makes know which call they are part of
_running_call: ContextVar[str | None] = ContextVar("agent_hooks running tool call", default=None)


class JudgedCall(Struct, frozen=True):
    """A tool call after step 5: what would run, and the block if it must not."""

    tool: Tool
    tool_call_id: str
    input: Any
    arguments: Any  # the same, plain: what runs is in nobody's hands
    parent_tool_call_id: str | None = None
    block: Block | None = None
    native: Any = None  # the payload of the agent that a bridge speaks for
    allowed: bool = False  # whether permission.ask settled a question about it
    notes: tuple[str, ...] = ()  # what transformers changed; the model reads it below the result
    rewritten_by: tuple[str, ...] = ()  # who changed the input, in their order


def wrap_tool(tool: Tool | Callable[..., Any], runner: HookRunner) -> Tool:
    """Return a tool that does what `tool` does, with the runner's hooks around it.

    `tool` may be a typed function, `def` or `async def`: its name, docstring and type hints tell the model what it needs.
    A blocked call is a result with `is_error=True` whose text is the reason and who blocked; a tool that raises gives an
    error result.  With no hook that listens, the call goes straight through and the very same result comes back.
    """
    tool = as_tool(tool)
    runner.know_tools([tool.name])
    return WrappedTool(FixedTool(tool), runner)


def wrap_tools(tools: Iterable[Tool | Callable[..., Any]], runner: HookRunner) -> list[Tool]:
    """Wrap each of `tools`; see `wrap_tool`."""
    return [wrap_tool(tool, runner) for tool in tools]


class FixedTool:
    """A tool whose name and schema stay what they were: gates must not be asked about another name than was offered."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema
        self.execute = tool.execute


class WrappedTool:
    """A tool with hooks around it."""

    def __init__(self, tool: Tool, runner: HookRunner) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema
        self._tool = tool
        self._runner = runner

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Run the tool as `call_tool` does, if anybody listens."""
        runner = self._runner
        if not runner.matchers_checked:
            runner.check_matchers()
        audience = runner.audience(self.name)
        if not audience.anybody:
            return await self._tool.execute(tool_call_id, input, on_update=on_update)
        if not audience.nobody:
            return await call_tool(self._tool, tool_call_id, input, runner=runner, on_update=on_update)
        outer = _running_call.set(tool_call_id)
        try:
            return await self._tool.execute(tool_call_id, input, on_update=on_update)
        finally:
            _running_call.reset(outer)


async def call_tool(
    tool: Tool, tool_call_id: str, input: Any, *, runner: HookRunner, on_update: OnUpdate | None = None
) -> ToolOutput:
    """Run one tool call through all steps and return what the agent is shown."""
    return await run_tool(await preflight(tool, tool_call_id, input, runner=runner), runner=runner, on_update=on_update)


# ---- steps 0 to 5 ----------------------------------------------------------------------------------------------------


async def preflight(tool: Tool, tool_call_id: str, input: Any, *, runner: HookRunner, native: Any = None) -> JudgedCall:
    """Judge a call: whoever may rewrite, then whoever judges, then one question to the person.

    Calls are judged one after another, first in, first out; one from within a handler is judged at once.  `native`: the
    payload of the agent that a bridge speaks for.
    """
    parent = _running_call.get()
    try:
        frozen = freeze(input)
        call = JudgedCall(tool, tool_call_id, frozen, thaw(frozen), parent, native=native)
    except RecursionError:
        text = f"{tool.name}: the input is nested too deeply, or holds itself"
        return JudgedCall(tool, tool_call_id, {}, {}, parent, Block(text, cause="schema"))
    try:
        if in_handler_thread():
            return await while_wanted(lambda: _judge_in_turn(call, runner))
        return await _judge_in_turn(call, runner)
    except anyio.get_cancelled_exc_class():
        await _report_abort(call, runner)
        raise


async def _judge_in_turn(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    if error := schema_error(call.tool.name, call.tool.input_schema, call.input):
        return _blocked(call, Block(error, cause="schema"))
    lane = runner.calls_lane()
    if lane is None:
        return await _judge(call, runner)
    await lane.enter()
    try:
        return await _judge(call, runner)
    finally:
        lane.leave()


async def _judge(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    name, tool_call_id = call.tool.name, call.tool_call_id
    asks: list[Ask] = []
    # who listens is asked at each step: one may have subscribed in the step before
    if runner.audience(name).transformers:
        call = _transform(call, runner)
        if call.block is not None:
            return call
    if runner.audience(name).before_point:
        call = await _intercept(call, runner)
        if call.block is not None:
            return call
    if runner.audience(name).before_tool_call:
        answer = await runner.emit(
            BeforeToolCall(tool_name=name, params=call.input, tool_call_id=tool_call_id), in_lane=True
        )
        if call.input != call.arguments:
            return _blocked(call, _tampered(name))
        if isinstance(answer, Ask):
            asks += [answer, *answer.also]
            answer = answer.rewrite
        if isinstance(answer, Block):
            return _blocked(call, answer)
        if isinstance(answer, Rewrite):
            call = _rewritten(call, answer.input, answer.by)
            if call.block is not None:
                return call
    if runner.guards:
        found = ask_guards(runner.guards, guarded_call(name, call.input, runner.cwd), runner.report)
        if isinstance(found, Block):
            return _blocked(call, found)
        asks += found
    if runner.audience(name).tool_call:
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
            return _blocked(call, _tampered(name))
        if isinstance(verdict, Block):
            return _blocked(call, verdict)
        if isinstance(verdict, Ask):
            asks += [verdict, *verdict.also]
    return await _ask_person(asks, call, runner) if asks else call


def _transform(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    """Step 1: let the configured transformers rewrite the input; one that fails blocks the call."""
    name, schema = call.tool.name, call.tool.input_schema
    try:
        done = transform(runner.audience(name).transformers, name, schema, call.input)
    except TransformerError as exc:
        if exc.by:  # a mistake of the configuration is told when it is read
            runner.report(_failure(exc, "transform", "tool_call", "blocked"))
        return _blocked(call, Block(str(exc), exc.by, "transformer"))
    if not done.by:
        return call
    return _rewritten(replace(call, notes=done.notes), done.input, done.by)


def _failure(exc: TransformerError, function: str, event: str, outcome: Outcome) -> HookError:
    return HookError(
        hook_path=exc.path,
        handler=function,
        event=event,
        error=str(exc),
        exception=exc.__cause__ or exc,
        traceback=exc.traceback,
        line=exc.line,
        outcome=outcome,
    )


async def _intercept(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    """Step 2: let interceptors rewrite or block."""
    name = call.tool.name
    answer = await runner.emit(
        AtPoint(
            point="tool.before",
            key=name,
            input=ToolBeforeInput(tool_name=name, tool_call_id=call.tool_call_id),
            output=ToolBeforeOutput(thaw(call.input)),
        ),
        in_lane=True,
    )
    if isinstance(answer, Block):
        return _blocked(call, answer)
    return call if answer is None else _rewritten(call, answer.output.args, answer.by)


def _rewritten(call: JudgedCall, input: Any, by: str) -> JudgedCall:
    """Return the call with another input; blocked, when that breaks the tool's schema."""
    call = replace(call, input=freeze(input), arguments=thaw(input), rewritten_by=(*call.rewritten_by, by))
    if error := schema_error(call.tool.name, call.tool.input_schema, call.input):
        return _blocked(call, Block(f"{error} (rewritten by {by})", by, "schema"))
    return call


def _tampered(tool_name: str) -> Block:
    """Return the block for an event that was changed in place: C functions, heapq's for example, can do that."""
    return Block("a handler changed event.input in place; the input is read-only", tool_name, "failed")


def _blocked(call: JudgedCall, block: Block) -> JudgedCall:
    return replace(call, block=block)


async def _ask_person(asks: list[Ask], call: JudgedCall, runner: HookRunner) -> JudgedCall:
    """Put all questions about one call as one; the call is blocked unless the answer is yes."""
    title = "; ".join(dict.fromkeys(ask.title for ask in asks))
    by = ", ".join(dict.fromkeys(ask.by for ask in asks))
    match await _permission(title, call, runner):
        case "allow":
            return replace(call, allowed=True)
        case "deny":
            return _blocked(call, Block(f"{title}: denied by permission.ask", by))
    if not runner.has_ui:
        return _blocked(call, Block(title, by, "nobody"))
    lines = [f"{call.tool.name} {shown(thaw(call.input), 2000)}"]
    lines += [f"{ask.by}: {ask.message or ask.title}" for ask in asks]
    outer = current_dispatch()  # of a handler that called a wrapped tool: its time stands too
    if outer is not None:
        outer.need_clock().pause()
    try:
        answer = await runner.ui.confirm(title, "\n".join(lines))
    except Exception as exc:  # a broken UI is nobody who said yes
        return _blocked(call, Block(f"{title}: the question could not be shown: {describe(exc)}", by, "nobody"))
    finally:
        if outer is not None:
            outer.need_clock().resume()
    return call if answer is True else _blocked(call, Block(title, by, "user"))


async def _permission(question: str, call: JudgedCall, runner: HookRunner) -> str:
    """Let interceptors settle a question before the person is asked; one that fails leaves it to the person."""
    output = await runner.reach(
        "permission.ask",
        PermissionInput(
            agent_id=runner.agent_id,
            session_key=runner.session_id,
            tool_name=call.tool.name,
            tool_call_id=call.tool_call_id,
            args=call.input,
            reason=question,
        ),
        PermissionOutput(),
    )
    return output.status if isinstance(output, PermissionOutput) else "ask"


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
        reason = _hidden(str(call.block), runner)
        details = {"status": "blocked", "tool": name, "reason": reason}
        text = json.dumps(details, ensure_ascii=False) if call.block.cause == "interceptor" else reason
        after = AfterToolCall(
            tool_name=name,
            params=call.input if isinstance(call.input, dict) else {},
            tool_call_id=call.tool_call_id,
            error=reason,
            blocked=True,
            block_reason=_hidden(call.block.reason, runner) or reason,
        )
        refusal = _redact(ToolOutput(text, details, is_error=True), call, runner)
        if on_result is not None:
            on_result(refusal)
        await runner.emit(after)
        return refusal
    if runner.redactor is not None and on_update is not None:
        on_update = runner.redactor.progress(on_update)
    started = perf_counter()
    try:
        output = await _execute(call, runner, on_update)
        duration = (perf_counter() - started) * 1000
        if runner.audience(name).transformers:
            output = _filter(call, output, runner)
        if runner.audience(name).tool_result:
            output = await _pass_result(call, output, runner)
        if runner.audience(name).after_point:
            output = await _intercept_result(call, output, runner)
        output = _redact(output, call, runner)
    except anyio.get_cancelled_exc_class():
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


async def _execute(call: JudgedCall, runner: HookRunner, on_update: OnUpdate | None) -> ToolOutput:
    clock = runner.make_clock(INF, None)
    clock.attach()  # knows which cancellations are somebody else's; it is never armed
    outer = _running_call.set(call.tool_call_id)
    try:
        output: object = await call.tool.execute(call.tool_call_id, call.arguments, on_update=on_update)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # a failing tool is a result; the agent decides what to make of it
        if (cancelled := clock.foreign(exc)) is not None:
            raise cancelled from None
        clock.settle(exc)  # raises a cancellation that the tool made something else of
        return ToolOutput(describe(exc), is_error=True)
    finally:
        _running_call.reset(outer)
    if isinstance(output, ToolOutput):
        return output
    return ToolOutput(
        f"{call.tool.name}.execute returned {shown(output)}; it must return ToolOutput(content)", is_error=True
    )


def _filter(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
    """Let the transformers filter what the tool returned, and say below it what they did."""
    name, schema = call.tool.name, call.tool.input_schema
    notes = list(call.notes)
    for step in runner.audience(name).transformers:
        try:
            output, note = filter_output(step, name, schema, call.input, output)
        except TransformerError as exc:  # the tool has run: its result is not lost, and who failed is said
            runner.report(_failure(exc, "filter_output", "tool_result", "continued"))
            note = f"[transformer {exc.by} failed on this result, so it took nothing out: {exc}]"
        notes += [note] if note else []
    return with_notes(output, notes)


def _hidden(text: str, runner: HookRunner) -> str:
    return text if runner.redactor is None else runner.redactor.redact(text)[0]


def _redact(output: ToolOutput, call: JudgedCall, runner: HookRunner) -> ToolOutput:
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


async def _pass_result(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
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


async def _intercept_result(call: JudgedCall, output: ToolOutput, runner: HookRunner) -> ToolOutput:
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


async def _report_abort(call: JudgedCall, runner: HookRunner, duration: float | None = None) -> None:
    """Tell the observers of a call that was aborted, although the task is being cancelled."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(ABORT_GRACE):
        event = AfterToolCall(
            tool_name=call.tool.name,
            params=call.input if isinstance(call.input, dict) else {},
            tool_call_id=call.tool_call_id,
            error="aborted",
            duration_ms=duration,
        )
        await runner.emit(event)
