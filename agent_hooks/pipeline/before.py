"""The steps of a tool call before it runs: who may rewrite its input, and the one question to the person.

Their order, and the steps that are an event each, are the pipeline's.  Above: pipeline, results.  Below: runner, schema.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.dispatch.points import AtPoint, PermissionInput, PermissionOutput, ToolBeforeInput, ToolBeforeOutput
from agent_hooks.errors import describe, shown
from agent_hooks.pipeline.schema import schema_error
from agent_hooks.runner.runner import HookRunner
from agent_hooks.transformers.base import TransformerError, transform
from agent_hooks.values.answers import Ask, Block
from agent_hooks.values.frozen import freeze, thaw
from agent_hooks.values.tool import MAIN_ARGUMENT, Tool

_SHOWN = 2000  # characters of an argument in a question


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

    def blocked(self, block: Block) -> JudgedCall:
        """Return the call, stopped."""
        return replace(self, block=block)

    def rewritten(self, input: Any, *by: str) -> JudgedCall:
        """Return the call with another input; blocked, when that breaks the tool's schema."""
        call = replace(self, input=freeze(input), arguments=thaw(input), rewritten_by=(*self.rewritten_by, *by))
        if error := schema_error(call.tool.name, call.tool.input_schema, call.input):
            names = ", ".join(by)
            return call.blocked(Block(f"{error} (rewritten by {names})", names, "schema"))
        return call


def transform_input(call: JudgedCall, runner: HookRunner) -> JudgedCall:
    """Step 1: let the configured transformers rewrite the input; one that fails blocks the call."""
    name, schema = call.tool.name, call.tool.input_schema
    try:
        done = transform(runner.audience(name).transformers, name, schema, call.input)
    except TransformerError as exc:
        # A mistake in the configuration was reported when it was read.
        if not exc.misconfigured:
            runner.report(exc.failure("transform", "tool_call", "blocked"))
        return call.blocked(Block(str(exc), exc.by, "transformer"))
    if not done.by:
        return call
    return replace(call, notes=done.notes).rewritten(done.input, *done.by)


async def intercept_input(call: JudgedCall, runner: HookRunner) -> JudgedCall:
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
        return call.blocked(answer)
    return call if answer is None else call.rewritten(answer.output.args, answer.by)


async def ask_person(asks: list[Ask], call: JudgedCall, runner: HookRunner) -> JudgedCall:
    """Put all questions about one call as one; the call is blocked unless the answer is yes."""
    title = "; ".join(dict.fromkeys(ask.title for ask in asks))
    by = ", ".join(dict.fromkeys(ask.by for ask in asks))
    match await _permission(title, call, runner):
        case "allow":
            return replace(call, allowed=True)
        case "deny":
            return call.blocked(Block(f"{title}: denied by permission.ask", by))
    if not runner.has_ui:
        return call.blocked(Block(title, by, "nobody"))
    lines = [_asked_about(call.tool.name, thaw(call.input))]
    lines += [f"{ask.by}: {ask.message or ask.title}" for ask in asks]
    outer = current_dispatch()  # of a handler that called a wrapped tool: its time stands too
    if outer is not None:
        outer.need_clock().pause()
    try:
        answer = await runner.ui.confirm(title, "\n".join(lines))
    except Exception as exc:  # a broken UI is nobody who said yes
        return call.blocked(Block(f"{title}: the question could not be shown: {describe(exc)}", by, "nobody"))
    finally:
        if outer is not None:
            outer.need_clock().resume()
    return call if answer is True else call.blocked(Block(title, by, "user"))


def _asked_about(name: str, input: dict[str, Any]) -> str:
    """Return a call for the person to judge; in one line, so that no argument can pass for another part of it."""
    main = input.pop(MAIN_ARGUMENT[name], None) if name in MAIN_ARGUMENT else None
    words = [name]
    if main is not None:
        plain = isinstance(main, str) and main.isprintable() and len(main) <= _SHOWN
        words.append(main if plain else shown(main, _SHOWN))
    return " ".join([*words, *([shown(input, _SHOWN)] if input or main is None else [])])


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
