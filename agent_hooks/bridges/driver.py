"""Take another agent's events through the runner and the pipeline: a `Happening` in, a `Verdict` out.

A tool call comes in two halves, before and after the other agent runs its tool.  Both halves go through the pipeline,
with a stand-in for the tool that returns the result of the other agent's tool.  So the order stands in one place.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from os.path import abspath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agent_hooks.bridges.base import (
    Bridge,
    Call,
    CallAsked,
    CallEnded,
    EventRow,
    EventsReported,
    Happening,
    PermissionAsked,
    PromptGiven,
    ToolWords,
    Verdict,
    our_name,
)
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.dispatch.points import (
    BusInput,
    MessageBeforeInput,
    MessageBeforeOutput,
    NoOutput,
    PermissionInput,
    PermissionOutput,
)
from agent_hooks.errors import HookError
from agent_hooks.hooks.loader import LoadedHook
from agent_hooks.pipeline.order import new_call, plan_of, preflight, run_tool
from agent_hooks.runner.runner import HookRunner
from agent_hooks.transformers.base import ConfiguredTransformer
from agent_hooks.ui.base import NotifyType, SilentUI
from agent_hooks.values.answers import CONTINUE_LIMIT, Ask, Block, Cancel, Compaction, Continue
from agent_hooks.values.content import Attachment, ToolOutput
from agent_hooks.values.events import AgentEnd, AgentStart, Event, ForeignEvent, TurnEnd, TurnStart
from agent_hooks.values.frozen import freeze, thaw
from agent_hooks.values.tool import NO_SCHEMA, OnUpdate

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor


class BridgeUI(SilentUI):
    """The person at the other agent: one question about a call is the agent's own permission prompt.

    `asked`: the pipeline's one question, if there is one; `messages`: the messages of hooks to the person.
    """

    def __init__(self, *, attended: bool = True) -> None:
        self.asked: str | None = None
        self.messages: list[str] = []
        self._attended = attended

    async def confirm(self, title: str, message: str) -> bool:
        """Hand the question of a gate over to the other agent.

        The gate ends here, and its question becomes an `Ask`.  Any other handler, task or thread gets `False`.
        """
        dispatch = current_dispatch()
        if dispatch is not None and self._attended and Ask in dispatch.plan.spec.answers:
            await dispatch.hand_over(Ask(title, message))
        return False

    async def confirm_call(self, title: str, message: str) -> bool:
        """Keep the pipeline's one question about a call; the other agent puts it to the person."""
        self.asked = f"{title}\n{message}"
        return True

    def notify(self, message: str, type: NotifyType) -> None:
        """Keep a message for the person."""
        self.messages.append(message if type == "info" else f"{type}: {message}")


class ForeignTool:
    """A stand-in for a tool that another agent runs: it returns the result that the other agent reported."""

    description = ""

    def __init__(
        self,
        name: str,
        output: ToolOutput | None = None,
        *,
        input_schema: Mapping[str, Any] = NO_SCHEMA,
        native_name: str = "",
    ) -> None:
        self.name = name
        self.native_name = native_name
        self.input_schema = input_schema
        self._output = output

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Return the result of the other agent's tool."""
        assert self._output is not None, "a call that is only asked for does not run here"
        return self._output


class Bridging:
    """Answers the happenings of one session of another agent, one after the other:
    `verdict = await Bridging(runner, ui).answer(happening)`.

    `runner` has to have been made with `ui`; `auto_allow`: tools, in our words, whose calls need no permission once a
    transformer has changed them; `attended`: whether a person is at the other agent; `resident`: whether this object
    answers the whole session: then a message that cannot be passed on now is passed on later, and hooks may keep the
    agent going `CONTINUE_LIMIT` times in a row, otherwise once.
    """

    def __init__(
        self,
        runner: HookRunner,
        ui: BridgeUI,
        *,
        auto_allow: Collection[str] = (),
        attended: bool = True,
        resident: bool = False,
    ) -> None:
        self._runner = runner
        self._engine = runner.engine
        self._ui = ui
        self._auto_allow = auto_allow
        self._resident = resident
        self._sent: list[str] = []
        # The index of the current turn, by agent.
        self._turns: dict[str, int] = {}
        self._continue_limit = CONTINUE_LIMIT if resident else 1
        # How often hooks kept the agent going, in a row, by session and agent.
        self._continued: dict[tuple[str | None, str], int] = {}
        # The place of the last happening; a fact that the next happening lacks stays.
        self._place = replace(runner.engine.surroundings, ui=ui, has_ui=attended)
        runner.set_send_handler(self._send)
        runner.on_error(self._report)

    async def answer(self, happening: Happening) -> Verdict:
        """Call the hooks that a happening concerns, and return their verdict."""
        last = self._place
        self._place = replace(
            last,
            agent_id=happening.agent_id,
            cwd=happening.cwd or last.cwd,
            session_file=abspath(happening.session_file) if happening.session_file else last.session_file,
            session_id=happening.session_id or last.session_id,
        )
        match happening:
            case CallAsked():
                verdict = await self._judge(happening)
            case CallEnded():
                verdict = await self._pass_result(happening)
            case PromptGiven():
                verdict = await self._prompt(happening)
            case PermissionAsked():
                verdict = await self._permission(happening)
            case EventsReported():
                verdict = await self._emit_events(happening)
            case _:
                event = ForeignEvent(name=happening.name, native=happening.native)
                if self._engine.recorder is not None:
                    self._engine.recorder.happened(event, self._place, None)
                await self._engine.reach("event", BusInput(event=event), NoOutput(), self._place)
                verdict = Verdict()
        if self._sent and (happening.takes_context or not self._resident):
            sent, self._sent = self._sent, []
            verdict = replace(verdict, context=(*verdict.context, *sent))
        messages, self._ui.messages = self._ui.messages, []
        return replace(verdict, messages=(*verdict.messages, *messages))

    def _send(self, text: str, attachments: Sequence[Attachment], source: str) -> None:
        self._sent.append(text)
        if attachments:
            self._ui.notify(f"{source} sent a file, but this agent takes no files from hooks", "warning")

    def _report(self, error: HookError) -> None:
        """Show the person a failure; the failure of a gate is the reason of its block already."""
        if error.outcome != "blocked":
            self._ui.notify(f"hook error: {error} ({error.outcome})", "error")

    # ---- a tool call

    async def _judge(self, call: CallAsked) -> Verdict:
        """Judge a call."""
        if not plan_of(self._engine, call.tool_name).concerned:
            return Verdict()
        self._ui.asked = None
        tool = ForeignTool(call.tool_name, input_schema=call.input_schema, native_name=call.native_name)
        judged = await preflight(
            tool,
            call.tool_call_id,
            thaw(call.input),
            runner=self._runner,
            native=call.native,
            surroundings=self._place,
        )
        if judged.block is not None:
            # No tool runs: this makes the result of the refusal, and passes it to the observers.
            refusal = await run_tool(judged)
            remedy = refusal.details.get("remedy")
            messages = (f"{judged.block.signature}: {remedy}",) if remedy else ()
            return Verdict(block=str(refusal.details["reason"]), messages=messages)
        changed = judged.input != call.input
        asked = self._ui.asked
        return Verdict(
            ask=asked,
            allow=judged.allowed or (asked is None and bool(judged.notes) and call.tool_name in self._auto_allow),
            input=judged.arguments if changed else None,
            context=judged.notes,
        )

    async def _pass_result(self, call: CallEnded) -> Verdict:
        """Take the result of a call through the steps after `execute`."""
        if not plan_of(self._engine, call.tool_name).concerned:
            return Verdict()
        judged = new_call(
            ForeignTool(call.tool_name, call.output, native_name=call.native_name),
            call.tool_call_id,
            call.input,
            runner=self._runner,
            native=call.native,
            surroundings=self._place,
        )
        output = await run_tool(judged, duration_ms=call.duration_ms)
        return Verdict(output=None if output.content == call.output.content else output)

    async def _permission(self, call: Call) -> Verdict:
        """Let the interceptors of `permission.ask` settle a question that the other agent is about to ask."""
        recorder = self._engine.recorder
        if recorder is None:
            return (await self._settle(call))[0]
        tool = ForeignTool(call.tool_name, native_name=call.native_name)
        asked = new_call(
            tool,
            call.tool_call_id,
            call.input,
            runner=self._runner,
            native=call.native,
            surroundings=self._place,
        )
        asked = replace(asked, trail=recorder.begin(asked))
        number = recorder.asked(asked, call.name, "", "", handed_over=True)
        verdict, by = await self._settle(call)
        if verdict.allow or verdict.block:
            recorder.answered(asked, number, "yes" if verdict.allow else "no", who=by)
        return verdict

    async def _settle(self, call: Call) -> tuple[Verdict, str]:
        """Return the verdict of the interceptors of `permission.ask`, and the names of those that settled it."""
        output = await self._engine.reach(
            "permission.ask",
            PermissionInput(
                **self._agent(),
                tool_name=call.tool_name,
                tool_call_id=call.tool_call_id,
                args=freeze(call.input),
                reason=call.name,
            ),
            PermissionOutput(),
            self._place,
        )
        status = output.status if isinstance(output, PermissionOutput) else "ask"
        block = "denied by permission.ask" if status == "deny" else None
        return Verdict(allow=status == "allow", block=block), "permission.ask"

    # ---- the rest

    async def _prompt(self, given: PromptGiven) -> Verdict:
        output = await self._engine.pass_message(
            MessageBeforeInput(**self._agent(), provider="", model=""),
            MessageBeforeOutput(given.prompt),
            self._place,
        )
        if isinstance(output, Block):
            return Verdict(block=str(output))
        self._turns[given.agent_id] = 0
        await self._engine.emit(AgentStart(), self._place)
        # The time also serves as the `entry_index`, by which checkpoints are sorted: it only has to grow.
        now = int(time.time() * 1000)
        await self._engine.emit(TurnStart(turn_index=0, timestamp=now, entry_index=now), self._place)
        context = tuple(output.context)
        if output.message == given.prompt:
            return Verdict(context=context)
        rewritten = f"A hook rewrote the prompt. Read it as:\n{output.message}"
        return Verdict(
            context=(rewritten, *context),
            messages=(
                "a hook rewrote the prompt; the model was shown both, because this agent lets no hook change a prompt",
            ),
        )

    async def _emit_events(self, happening: EventsReported) -> Verdict:
        block, go_on = None, None
        messages: list[str] = []
        for event in happening.events:
            if isinstance(event, AgentEnd):
                event = self._counted(happening, event)
            answer: object = await self._engine.emit(self._numbered(event, happening.agent_id), self._place)
            if isinstance(event, AgentEnd):
                go_on, texts = self._go_on(happening, event, answer)
                messages += texts
            elif isinstance(answer, Cancel):
                block = answer.reason or "cancelled by a hook"
            elif isinstance(answer, Compaction):
                messages.append("a hook's summary was not used: this agent writes its own")
        return Verdict(block=block, go_on=go_on, messages=tuple(messages))

    def _counted(self, stop: EventsReported, event: AgentEnd) -> AgentEnd:
        """Return the end with the counted number of continues; an agent may report only whether there was one."""
        known = self._continued.get((stop.session_id, stop.agent_id), 0)
        return replace(event, continued=max(event.continued, known)) if event.continued else event

    def _go_on(self, stop: EventsReported, event: AgentEnd, answer: object) -> tuple[str | None, tuple[str, ...]]:
        """Return the text with which the agent goes on, up to the limit, and the messages to the person."""
        key = (stop.session_id, stop.agent_id)
        self._continued.pop(key, None)
        if not isinstance(answer, Continue):
            return None, ()
        self._continued[key] = min(event.continued + 1, self._continue_limit)
        if event.continued < self._continue_limit:
            return answer.text, ()
        times = "once" if self._continue_limit == 1 else f"{self._continue_limit} times"
        return None, (f"the agent stops here: hooks may keep it going {times} in a row; {answer.by} wants it to go on",)

    def _numbered(self, event: Event[Any], agent_id: str) -> Event[Any]:
        """Return a turn's event with its index, which other agents do not send."""
        turn = self._turns.get(agent_id, 0)
        if isinstance(event, TurnEnd):
            self._turns[agent_id] = turn + 1
        return replace(event, turn_index=turn) if isinstance(event, TurnEnd | TurnStart) else event

    def _agent(self) -> dict[str, str]:
        return {"agent_id": self._place.agent_id, "session_key": self._place.session_id}


def in_our_words(
    bridge: Bridge, transformers: Iterable[ConfiguredTransformer], names: Iterable[str] = ()
) -> tuple[tuple[ConfiguredTransformer, ...], frozenset[str]]:
    """Return transformers and names of tools in our vocabulary, whichever they were configured in."""
    steps = tuple(replace(step, tool=our_name(bridge.tools, step.tool)) for step in transformers)
    return steps, frozenset(our_name(bridge.tools, name) for name in names)


def wrong_matchers(runner: HookRunner, tools: Iterable[ToolWords]) -> list[str]:
    """Return a sentence for each handler that names a tool as the other agent does, and so would never run."""
    found: dict[tuple[str, str], str] = {}
    for hook in runner.hooks:
        for handlers in hook.handlers.values():
            for handler in handlers:
                for words in tools:
                    if handler.tool is not None and handler.handles(words.theirs) and not handler.handles(words.ours):
                        text = f"{handler.label} never runs: the tool {words.theirs!r} is {words.ours!r} here"
                        found.setdefault((handler.label, handler.event), text)
    return list(found.values())


def listened_to(
    hooks: Iterable[LoadedHook],
    transformers: Iterable[ConfiguredTransformer] = (),
    redactor: Redactor | None = None,
) -> frozenset[str]:
    """Return the names that hooks and settings listen to: events, points, `redaction`, `filter_output`."""
    hooks = tuple(hooks)
    names = {event for hook in hooks for event, handlers in hook.handlers.items() if handlers}
    names |= {interceptor.name for hook in hooks for interceptor in hook.api.interceptors}
    filters = any(hasattr(step.transformer, "filter_output") for step in transformers)
    others = {"redaction": redactor is not None, "filter_output": filters}
    return frozenset(names | {name for name, there in others.items() if there})


def needed_events(rows: Iterable[EventRow], listened: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the other agent's events that have to be installed, each with the listeners that need it.

    Gates are always needed, so that a hook that is added later never fails to fire.  All events are needed where the
    point `event` is intercepted, because its interceptors see every event.
    """
    feeds = {row: tuple(name for name in (*row.feeds, "event") if name in listened) for row in rows}
    return {row.name: by for row, by in feeds.items() if by or row.gate or row.always}


def never_reached(rows: Iterable[EventRow], listened: Collection[str]) -> list[str]:
    """Return the events and points that hooks listen to, and that no event of the other agent reaches."""
    reached = {"event", "redaction", "filter_output"}.union(*(row.feeds for row in rows))
    return sorted(set(listened) - reached)
