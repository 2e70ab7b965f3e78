"""The agent loop: prompts, turns, tool calls, and the events around them.

    session(start) → agent_start → [turn_start → (tool_call → tool → tool_result)* → turn_end]* → agent_end
    → session(shutdown)

The calls of one turn are judged one after another, in the model's order, and then run in parallel; the model sees their
results in its own order.  Above: cli.  Below: pipeline, model, session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Protocol

import anyio

from agent_hooks.content import (
    AssistantMessage,
    Message,
    ToolCallContent,
    ToolOutput,
    ToolResultMessage,
    UserMessage,
)
from agent_hooks.errors import SessionError, did_you_mean
from agent_hooks.events import AgentEnd, AgentStart, SessionEvent, TurnEnd, TurnStart
from agent_hooks.host.model import (
    BrokenResponseError,
    Model,
    ModelRequest,
    ThinkingLevel,
    ToolOffer,
    collect,
    now_ms,
)
from agent_hooks.host.session import Session
from agent_hooks.pipeline import JudgedCall, preflight, run_tool
from agent_hooks.runner import HookRunner
from agent_hooks.tool import OnUpdate, Tool

SYSTEM = "You are a coding agent. You work in {cwd}. Use the tools to look and to act; say plainly what you did."
END_GRACE = 5.0  # seconds that events after an abort get in all


class View(Protocol):
    """What shows a person how the agent gets on."""

    def text(self, delta: str) -> None:
        """Show more of the model's words."""

    def tool_judged(self, call: ToolCallContent) -> None:
        """Show that hooks begin to judge a tool call."""

    def tool_runs(self, call: ToolCallContent) -> None:
        """Show that a tool begins to run."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show what a tool has printed so far."""

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Show what came of a tool call."""

    def warning(self, text: str) -> None:
        """Show that something is not as it should be."""


class MissingTool:
    """Stands in for a tool that the model invented: hooks see the call, and it fails."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.description = ""
        self.input_schema: dict[str, Any] = {}
        self._hint = did_you_mean(name, known)

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Say that there is no such tool."""
        return ToolOutput(f"there is no tool {self.name!r}{self._hint}", is_error=True)


class Agent:
    """A coding agent with one session: `start`, then `prompt` as often as you like, then `shut_down`."""

    def __init__(
        self,
        *,
        runner: HookRunner,
        model: Model,
        tools: Sequence[Tool],
        session: Session,
        view: View,
        thinking_level: ThinkingLevel = "off",
    ) -> None:
        self._runner = runner
        self._model = model
        self._thinking_level = thinking_level
        self._tools = {tool.name: tool for tool in tools}
        self._session = session
        self._view = view
        self._messages: list[Message] = []
        self._turn_index = 0
        runner.know_tools(self._tools)

    async def start(self) -> None:
        """Tell the hooks that the session starts."""
        self.set_model(self._model)
        if self._thinking_level != "off":
            self.set_thinking_level(self._thinking_level)
        self._runner.set_session_file(self._session.path, session_id=self._session.id)
        self._runner.check_matchers()
        await self._emit_session("start")

    def set_model(self, model: Model) -> None:
        """Let `model` answer from here on, also in the middle of a prompt: from the next request."""
        self._model = model
        self._save(lambda: self._session.add_model(model.provider, model.id))

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Let the model think as much as `level` says from here on: from the next request."""
        self._thinking_level = level
        self._save(lambda: self._session.add_thinking_level(level))

    async def shut_down(self) -> None:
        """Tell the hooks that the session ends, also when the task is being cancelled; close the file."""
        with anyio.CancelScope(shield=True):
            await self._emit_session("shutdown")
        self._session.close()

    async def prompt(self, text: str) -> AssistantMessage:
        """Work on one prompt until a response calls no tool, and return that response.

        Raises `ModelError` when the model cannot answer; another prompt may follow.
        """
        first = len(self._messages)
        self._add(UserMessage(content=text, timestamp=now_ms()))
        await self._runner.emit(AgentStart())
        try:
            while True:
                message = await self._turn()
                if not message.tool_calls:
                    return message
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(END_GRACE):
                await self._runner.emit(AgentEnd(messages=tuple(self._messages[first:])))

    async def _turn(self) -> AssistantMessage:
        index, self._turn_index = self._turn_index, self._turn_index + 1
        entries = len(self._session.entries)
        await self._runner.emit(TurnStart(turn_index=index, timestamp=now_ms(), entry_index=entries))
        try:
            message = await collect(self._model, self._request(), self._view.text, self._view.warning)
        except BrokenResponseError as exc:  # the person has read it, so the model should know of it
            self._add(exc.partial)
            raise
        self._add(message)
        results = await self._run_calls(message.tool_calls)
        await self._runner.emit(TurnEnd(turn_index=index, message=message, tool_results=tuple(results)))
        return message

    def _request(self) -> ModelRequest:
        offers = tuple(ToolOffer(tool.name, tool.description, tool.input_schema) for tool in self._tools.values())
        return ModelRequest(
            system=(SYSTEM.format(cwd=self._runner.cwd),),
            messages=tuple(self._messages),
            tools=offers,
            thinking_level=self._thinking_level,
        )

    # ---- tool calls

    async def _run_calls(self, calls: Sequence[ToolCallContent]) -> list[ToolResultMessage]:
        """Judge the calls in order, run them in parallel, return their results in the model's order.

        A result is saved as soon as it is there; a call that is aborted gets one too.
        """
        results: dict[str, ToolResultMessage] = {}

        def settle(call: ToolCallContent, output: ToolOutput) -> None:
            results[call.id] = ToolResultMessage(
                tool_call_id=call.id,
                tool_name=call.name,
                content=output.content,
                timestamp=now_ms(),
                details=output.details,
                is_error=output.is_error,
            )
            self._save(lambda: self._session.add_message(results[call.id]))

        async def run(call: ToolCallContent, judged: JudgedCall) -> None:
            started = perf_counter()
            self._view.tool_runs(call)
            output = await run_tool(
                judged,
                runner=self._runner,
                on_update=lambda partial: self._view.tool_progress(call, partial),
                on_result=lambda result: settle(call, result),
            )
            self._view.tool_ended(call, judged, output, perf_counter() - started)

        try:
            judged_calls = [(call, await self._judge(call)) for call in calls]
            async with anyio.create_task_group() as tasks:
                for call, judged in judged_calls:
                    tasks.start_soon(run, call, judged)
        finally:
            for call in calls:
                if call.id not in results:
                    settle(call, ToolOutput("aborted", is_error=True))
            self._messages += [results[call.id] for call in calls]
        return [results[call.id] for call in calls]

    async def _judge(self, call: ToolCallContent) -> JudgedCall:
        self._view.tool_judged(call)
        tool = self._tools.get(call.name) or MissingTool(call.name, self._tools)
        arguments = call.arguments if call.invalid is None else call.invalid
        return await preflight(tool, call.id, arguments, runner=self._runner)

    # ---- the session

    async def _emit_session(self, reason: Any) -> None:
        path = None if self._session.path is None else str(self._session.path)
        await self._runner.emit(SessionEvent(reason=reason, entries=self._session.entries, session_file=path))

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self._save(lambda: self._session.add_message(message))

    def _save(self, write: Callable[[], None]) -> None:
        """Write to the session file; when it cannot be written, say so once and go on without it."""
        try:
            write()
        except SessionError as exc:
            self._view.warning(f"{exc}; going on without saving")
            self._session.stop_saving()
            self._runner.set_session_file(None)
