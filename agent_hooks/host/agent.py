"""The agent loop: prompts, turns, tool calls, and the events around them.

    agent_start → [turn_start → (tool_call → tool → tool_result)* → turn_end]* → agent_end

A hook that answers `Continue` at `agent_end` begins another round of turns and another `agent_end`.  After a `Stop`, no
call of the turn begins any more; the results of those that run are kept, and `turn_end` and `agent_end` come as always.
The calls of one turn are judged one after another, in the model's order, and then run in parallel; the model gets their
results in its own order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint_if_cancelled

from agent_hooks.errors import MessageBlockedError, RunStoppedError, did_you_mean
from agent_hooks.host.model import (
    BrokenResponseError,
    Model,
    ModelRequest,
    ThinkingLevel,
    ToolOffer,
    collect,
    now_ms,
)
from agent_hooks.host.models import model_for
from agent_hooks.host.session import Session
from agent_hooks.host.steering import Params, Steering
from agent_hooks.host.view import View
from agent_hooks.pipeline.order import JudgedCall, new_call, preflight, refuse, run_tool
from agent_hooks.pipeline.saving import begin_turn, end_turn, next_turn
from agent_hooks.runner.runner import HookRunner
from agent_hooks.values.answers import CONTINUE_LIMIT, AddContext, Continue, Stop
from agent_hooks.values.content import (
    AssistantMessage,
    Attachment,
    Message,
    TextContent,
    ToolCallContent,
    ToolOutput,
    ToolResultMessage,
    UserMessage,
)
from agent_hooks.values.events import AgentEnd, AgentStart, TurnEnd, TurnStart
from agent_hooks.values.tool import OnUpdate, Tool

SYSTEM = "You are a coding agent. You work in {cwd}. Use the tools to look and to act; report your work plainly."
ABORTED = "aborted"
"""The status in the details of the result of an aborted call."""
END_GRACE = 5.0
"""Seconds that all events after an abort get together."""


class MissingTool:
    """A stand-in for a tool that the model invented: hooks get the call, and it fails."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.description = ""
        self.input_schema: dict[str, Any] = {}
        self._hint = did_you_mean(name, known)

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Return the error result."""
        return ToolOutput(f"there is no tool {self.name!r}{self._hint}", is_error=True)


class Agent:
    """Works on one prompt after another, in the session that the host gives it.

    A change of `model` or `thinking_level` takes effect with the next request.  `messages`: the conversation as the
    model gets it; `turns`: for every turn of the session, the number of entries when it began.  `before_run` is awaited
    before each run, `before_turn` before each turn; messages that it adds to the conversation are in the next request.
    `instructions` is called before each run, and returns texts for the model.
    """

    def __init__(
        self,
        *,
        runner: HookRunner,
        model: Model,
        tools: Sequence[Tool],
        session: Session,
        view: View,
        thinking_level: ThinkingLevel = "off",
        before_run: Callable[[], Awaitable[object]] | None = None,
        before_turn: Callable[[], Awaitable[None]] | None = None,
        instructions: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.model = model
        self.thinking_level = thinking_level
        self.session = session
        self.messages: list[Message] = []
        self.turns: list[int] = []
        self._runner = runner
        self._view = view
        self._before_run = before_run
        self._before_turn = before_turn
        self._read_instructions = instructions
        # The instructions of this run, which stay the same for all its requests.
        self._instructions: tuple[str, ...] = ()
        self.steering = Steering(runner)
        # The run's parameters, if they are not the agent's own.
        self._params: Params | None = None
        # The messages of this prompt.
        self._new: list[Message] = []
        # The first answer with which a hook has ended this run.
        self._stop: Stop | None = None
        self._working = False
        # The texts of hooks that come after the next prompt.
        self._context: list[AddContext] = []
        # The texts about the person's own acts, which came before it.
        self._notes: list[str] = []
        runner.on_stop(self._take_stop)
        self.use_tools(tools)

    def use_tools(self, tools: Sequence[Tool]) -> None:
        """Offer these tools from the next request on."""
        self._tools = {tool.name: tool for tool in tools}
        self._runner.know_tools(self._tools)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered."""
        return tuple(self._tools.values())

    async def prompt(
        self, text: str, attachments: Sequence[Attachment] = (), source: str | None = None
    ) -> AssistantMessage:
        """Work on one prompt until a response calls no tool and no hook continues the run, and return that response.

        `source`: the hook that sent it, `None` for the person.
        Raises `ModelError` when the model cannot answer, `MessageBlockedError` when an interceptor blocks the prompt, and
        `RunStoppedError` when a hook ends the run; the agent can take another prompt then.
        """
        self._new, self._stop = [], None
        if self._before_run is not None:
            await self._before_run()
        self._instructions = tuple(self._read_instructions())
        passed = await self.steering.message(self.model, text, attachments, source)
        own = Params(self.model, self.thinking_level)
        params = await self.steering.params(passed, own)
        self._params = None if params == own else params
        self.keep_notes()
        self.add(passed.message)
        continued, ended = 0, False
        engine = self._runner.engine
        await begin_turn(engine, text, engine.surroundings, len(self.session))
        self._working = True
        try:
            waiting, self._context = self._context, []
            for each in waiting:
                self.add_context(each)
            self.add_context(await self._runner.emit(AgentStart(prompt=passed.text)))
            while True:
                message = await self._turns()
                ended = True
                answer = await self._end(continued)
                if self._stop is not None:
                    raise self._stopped(self._stop, message, answer)
                if answer is None or not await self._go_on(answer, continued):
                    return message
                continued, ended = continued + 1, False
        finally:
            self._params, self._working = None, False
            if not ended:
                with anyio.CancelScope(shield=True), anyio.move_on_after(END_GRACE):
                    await self._runner.emit(AgentEnd(messages=tuple(self._new), continued=continued))
            with anyio.CancelScope(shield=True):
                await end_turn(engine, engine.surroundings)

    def add_context(self, found: AddContext | None) -> None:
        """Give the model a text of hooks: in the next request while the agent works, else after the next prompt."""
        if found is None:
            return
        if not self._working:
            self._context.append(found)
            return
        self._view.injected(found.text, found.by)
        text = [TextContent(found.text)]
        self.add(UserMessage(content=text, timestamp=now_ms(), source=found.by, is_context=True))

    def note(self, text: str) -> None:
        """Give the model a text before the next prompt, about an act that the person knows already."""
        self._notes.append(text)

    def has_note(self, text: str) -> bool:
        """Tell whether a text waits for the next prompt."""
        return text in self._notes

    def forget_note(self, text: str) -> bool:
        """Forget a text that waits; return whether there was one."""
        there = self.has_note(text)
        self._notes = [each for each in self._notes if each != text]
        return there

    def keep_notes(self) -> None:
        """Put these texts into the conversation."""
        notes, self._notes = self._notes, []
        for note in notes:
            self.add(UserMessage(content=note, timestamp=now_ms(), is_context=True))

    def drop_context(self) -> None:
        """Drop the texts that wait for a prompt, because they are about another session."""
        self._context.clear()
        self._notes.clear()

    def _take_stop(self, stop: Stop) -> None:
        """Take note that a hook ends the run; the first one counts."""
        self._stop = self._stop or stop

    def _stopped(self, stop: Stop, last: AssistantMessage, answer: Continue | None) -> RunStoppedError:
        """Return the error of a run that a hook has ended; a `Continue` of another hook does not count."""
        if answer is not None:
            self._view.warning(
                f"the agent stops here, because a hook has stopped the run; {answer.by} wants to continue it"
            )
        # The refusal of the call has the reason already.
        why = " by your No" if stop.cause == "user" else f": {stop}"
        error = RunStoppedError(f"the run was stopped{why}")
        error.answer = last
        return error

    async def _end(self, continued: int) -> Continue | None:
        """Emit `agent_end` and return the hooks' answer.

        The event reaches all hooks: an abort meanwhile leaves their handlers `END_GRACE` seconds.
        """
        answer = None
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope(shield=True) as scope:
                tasks.start_soon(_limit_when_cancelled, scope)
                answer = await self._runner.emit(AgentEnd(messages=tuple(self._new), continued=continued))
            tasks.cancel_scope.cancel()
        # On asyncio the shield has kept the cancellation back until here.
        await checkpoint_if_cancelled()
        return answer

    async def _go_on(self, answer: Continue, continued: int) -> bool:
        """Add the text of a hook's `Continue` to the conversation; return `False` when the run ends all the same."""
        if continued == CONTINUE_LIMIT:
            self._view.warning(
                f"the agent stops here: hooks have continued the run {CONTINUE_LIMIT} times in a row, "
                f"which is the limit; {answer.by} wants to continue it"
            )
            return False
        self._view.injected(answer.text, answer.by)
        try:
            await self.inject(answer.text, source=answer.by)
        except MessageBlockedError as exc:
            self._view.warning(str(exc))
            return False
        return True

    async def inject(self, text: str, attachments: Sequence[Attachment] = (), source: str | None = None) -> None:
        """Add a user message to the conversation; it is in the next request.

        Raises `MessageBlockedError` when an interceptor blocks it.
        """
        self.add((await self.steering.message(self.model, text, attachments, source)).message)

    def add(self, message: Message) -> None:
        """Add a message to the conversation and to the session."""
        self._new.append(message)
        self.messages.append(message)
        self.session.add_message(message)

    async def _turns(self) -> AssistantMessage:
        """Take turns until a response calls no tool or a hook ends the run, and return the last response."""
        while (message := await self._turn()).tool_calls and self._stop is None:
            pass
        return message

    async def _turn(self) -> AssistantMessage:
        if self._before_turn is not None:
            await self._before_turn()
        index, entries = len(self.turns), len(self.session)
        self.turns.append(entries)
        engine = self._runner.engine
        await next_turn(engine, engine.surroundings, entries)
        await self._runner.emit(TurnStart(turn_index=index, timestamp=now_ms(), entry_index=entries))
        try:
            model, request = await self._request()
            message = await collect(
                model, request, self._view.text, self._view.warning, self.add, on_thinking=self._view.thinking
            )
        except BrokenResponseError as exc:
            # The person has read this part, so the conversation keeps it for the model.
            self.add(exc.partial)
            raise
        self.add(message)
        results = await self._run_calls(message.tool_calls)
        stop = await self._runner.emit(TurnEnd(turn_index=index, message=message, tool_results=tuple(results)))
        if stop is not None:
            self._take_stop(stop)
        return message

    async def _request(self) -> tuple[Model, ModelRequest]:
        offers = tuple(ToolOffer(tool.name, tool.description, tool.input_schema) for tool in self._tools.values())
        model, level, sampling = self._params or Params(self.model, self.thinking_level)
        model = model_for(model, self.messages, self._tools)
        request = ModelRequest(
            system=(SYSTEM.format(cwd=self._runner.cwd), *self._instructions),
            messages=tuple(self.messages),
            tools=offers,
            thinking_level=level,
            sampling=sampling,
        )
        return model, await self.steering.request(model, request)

    # ---- tool calls

    async def _run_calls(self, calls: Sequence[ToolCallContent]) -> list[ToolResultMessage]:
        """Judge the calls in order, run them in parallel, return their results in the model's order.

        Each result is saved at once; an aborted call gets one too.
        """
        results: dict[str, ToolResultMessage] = {}
        # The outputs so far, and those at the end.
        outputs: dict[str, ToolOutput] = {}

        def settle(call: ToolCallContent, output: ToolOutput) -> None:
            outputs[call.id] = output
            results[call.id] = ToolResultMessage(
                tool_call_id=call.id,
                tool_name=call.name,
                content=output.content,
                timestamp=now_ms(),
                details=output.details,
                is_error=output.is_error,
            )
            self.session.add_message(results[call.id])

        async def run(call: ToolCallContent, judged: JudgedCall) -> None:
            def progress(partial: ToolOutput) -> None:
                outputs[call.id] = partial
                self._view.tool_progress(call, partial)

            started = perf_counter()
            self._view.tool_runs(call, judged)
            try:
                output = await run_tool(judged, on_update=progress, on_result=lambda result: settle(call, result))
            except get_cancelled_exc_class():
                if call.id not in results:
                    settle(call, aborted_output(call.name, outputs.get(call.id)))
                self._view.tool_ended(call, judged, outputs[call.id], perf_counter() - started)
                raise
            self._view.tool_ended(call, judged, output, perf_counter() - started)

        try:
            judged_calls = [(call, await self._judge(call)) for call in calls]
            if (stop := self._stop) is not None:
                judged_calls = [(call, _with_stop(judged, stop)) for call, judged in judged_calls]
            async with anyio.create_task_group() as tasks:
                for call, judged in judged_calls:
                    tasks.start_soon(run, call, judged)
        finally:
            for call in calls:
                if call.id not in results:
                    settle(call, aborted_output(call.name))
            ordered = [results[call.id] for call in calls]
            self._new += ordered
            self.messages += ordered
        return ordered

    async def _judge(self, call: ToolCallContent) -> JudgedCall:
        self._view.tool_judged(call)
        tool = self._tools.get(call.name) or MissingTool(call.name, self._tools)
        arguments = call.arguments if call.invalid is None else call.invalid
        if self._stop is not None:
            return refuse(new_call(tool, call.id, arguments, runner=self._runner), self._stop.for_others())
        return await preflight(tool, call.id, arguments, runner=self._runner)


def _with_stop(judged: JudgedCall, stop: Stop) -> JudgedCall:
    """Return a judged call of a turn in which a hook has ended the run: it does not begin any more."""
    return judged if judged.block is not None else judged.blocked(stop.for_others())


def aborted_output(tool: str, partial: ToolOutput | None = None) -> ToolOutput:
    """Return the result of an aborted call of a tool, with its output so far.

    Like those of a block, its details distinguish it from a tool's failure.
    """
    text = (
        f"aborted; the output until then:\n{partial.text.rstrip()}" if partial is not None and partial.text else ABORTED
    )
    return ToolOutput(text, {"status": ABORTED, "tool": tool}, is_error=True)


def is_aborted(output: ToolOutput) -> bool:
    """Tell whether a result is that of an aborted call."""
    return isinstance(output.details, Mapping) and output.details.get("status") == ABORTED


async def _limit_when_cancelled(scope: anyio.CancelScope) -> None:
    """Give a shielded scope a deadline once this task is cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        scope.deadline = anyio.current_time() + END_GRACE
