"""Take another agent's events through the runner and the pipeline: a `Happening` in, a `Verdict` out.

The module `judging` takes the tool calls through the pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from os.path import abspath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import (
    Call,
    CallAsked,
    CallEnded,
    EventsReported,
    Happening,
    PermissionAsked,
    PromptGiven,
)
from agent_hooks.bridges.base.installation import EventRow
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.judging import Divide, Judging
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.dispatch.points import (
    BusInput,
    MessageBeforeInput,
    MessageBeforeOutput,
    NoOutput,
)
from agent_hooks.errors import HookError
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.pipeline.saving import begin_turn, end_turn, next_turn
from agent_hooks.runner.runner import HookRunner
from agent_hooks.transformers.base import ConfiguredTransformer
from agent_hooks.ui.base import ONCE, Answer, NotifyType, Question, SilentUI
from agent_hooks.values.answers import CONTINUE_LIMIT, AddContext, Ask, Block, Cancel, Compaction, Continue, Stop
from agent_hooks.values.content import Attachment
from agent_hooks.values.events import AgentEnd, AgentStart, Event, ForeignEvent, SessionEvent, TurnEnd, TurnStart

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor


MAIN = "main"
"""The id of the agent that is no sub-agent."""


class BridgeUI(SilentUI):
    """The person at the other agent: one question about a call is the agent's own permission prompt.

    `asked`: the pipeline's one question, if there is one; `messages`: the messages of hooks to the person.
    """

    # The other agent puts the question, and the answer is for that call only.
    hands_over = True

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

    async def ask(self, question: Question) -> Answer:
        """Keep the pipeline's one question about a call; the other agent puts it to the person."""
        self.asked = f"{question.title}\n{question.message}"
        return ONCE

    def notify(self, message: str, type: NotifyType) -> None:
        """Keep a message for the person."""
        self.messages.append(message if type == "info" else f"{type}: {message}")


class Bridging:
    """Answers the happenings of one session of another agent, one after the other:
    `verdict = await Bridging(runner, ui).answer(happening)`.

    `runner` has to have been made with `ui`; `auto_allow`: tools, in our words, whose calls need no permission once a
    transformer has changed them; `attended`: whether a person is at the other agent; `divide`: the bridge's `parts`.
    `resident`: whether this object answers the whole session.  Then a message that cannot be passed on now is passed on
    later; each call after a `Stop` is denied until the next prompt, also where the agent goes on; and hooks may keep the
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
        divide: Divide | None = None,
    ) -> None:
        self._runner = runner
        self._engine = runner.engine
        self._ui = ui
        self._judging = Judging(runner, ui, auto_allow=auto_allow, divide=divide)
        self._resident = resident
        self._sent: list[str] = []
        # The texts of `AddContext` that no event has taken yet.
        self._context: list[str] = []
        # The `Stop` of the happening that is answered, and that of each session's run.
        self._stop: Stop | None = None
        self._stops: dict[str | None, Stop] = {}
        # The index of the current turn, by agent.
        self._turns: dict[str, int] = {}
        self._continue_limit = CONTINUE_LIMIT if resident else 1
        # How often hooks kept the agent going, in a row, by session and agent.
        self._continued: dict[tuple[str | None, str], int] = {}
        # The place of the last happening; a fact that the next happening lacks stays.
        self._place = replace(runner.engine.surroundings, ui=ui, has_ui=attended)
        # The facts from which it was made.
        self._facts: tuple[str | None, ...] = ()
        runner.set_send_handler(self._send)
        runner.on_error(self._report)
        runner.on_stop(self._take_stop)

    def renew(self, auto_allow: Collection[str]) -> None:
        """Go on with the hooks that the runner has loaded again, and with their transformers' `auto_allow`."""
        self._judging.auto_allow = auto_allow

    async def answer(self, happening: Happening) -> Verdict:
        """Call the hooks that a happening concerns, and return their verdict."""
        self._move(happening)
        self._stop = None
        if happening.starts or isinstance(happening, PromptGiven):
            self._stops.pop(happening.session_id, None)
        match happening:
            case CallAsked() if (stop := self._stops.get(happening.session_id)) is not None:
                self._stop = stop
                verdict = await self._judging.refuse(happening, self._place, stop.for_others())
            case CallAsked():
                verdict = await self._judging.judge(happening, self._place)
            case CallEnded():
                verdict = await self._judging.pass_result(happening, self._place)
            case PromptGiven():
                verdict = await self._prompt(happening)
            case PermissionAsked():
                verdict = await self._judging.settle(happening, self._place)
            case EventsReported():
                verdict = await self._emit_events(happening)
            case _:
                event = ForeignEvent(name=happening.name, native=happening.native)
                if self._engine.recorder is not None:
                    self._engine.recorder.happened(event, self._place, None)
                await self._engine.reach("event", BusInput(event=event), NoOutput(), self._place)
                verdict = Verdict()
        if self._stop is not None:
            self._stops.setdefault(happening.session_id, self._stop)
            verdict = replace(verdict, stop=self._engine.hide(f"the run was stopped: {self._stop}"))
        if self._context and (not self._resident or (happening.takes_context and not _is_end(happening))):
            added, self._context = self._context, []
            verdict = replace(verdict, context=(*verdict.context, *added))
        if self._sent and (happening.takes_context or not self._resident):
            sent, self._sent = self._sent, []
            verdict = replace(verdict, context=(*verdict.context, *sent))
        if not self._ui.messages:
            return verdict
        # The other agent keeps them in its transcript.
        messages, self._ui.messages = map(self._engine.hide, self._ui.messages), []
        return replace(verdict, messages=(*verdict.messages, *messages))

    async def refuse(self, happening: Happening, block: Block) -> Verdict:
        """Block a happening before any hook gets it; the observers of a call get its refusal."""
        self._move(happening)
        if isinstance(happening, CallAsked):
            return await self._judging.refuse(happening, self._place, block)
        return Verdict(block=str(block))

    def has_gates(self, call: Call) -> bool:
        """Return whether a guard, a handler or another gate judges calls of this tool."""
        return self._judging.has_gates(call)

    def _move(self, happening: Happening) -> None:
        """Let the next events come from the place of a happening; a fact that it lacks stays."""
        facts = (happening.agent_id, happening.cwd, happening.session_file, happening.session_id)
        if facts == self._facts:
            return
        self._facts, last = facts, self._place
        self._place = replace(
            last,
            agent_id=happening.agent_id,
            cwd=happening.cwd or last.cwd,
            session_file=abspath(happening.session_file) if happening.session_file else last.session_file,
            session_id=happening.session_id or last.session_id,
        )

    def _send(self, text: str, attachments: Sequence[Attachment], source: str) -> None:
        self._sent.append(text)
        if attachments:
            self._ui.notify(f"{source} sent a file, but this agent takes no files from hooks", "warning")

    def _take_stop(self, stop: Stop) -> None:
        """Take note that a hook ends the run; the first one counts."""
        self._stop = self._stop or stop

    def take(self, answer: object) -> None:
        """Take note of an answer that adds a text or ends the run."""
        if isinstance(answer, AddContext):
            self._context.append(answer.text)
        elif isinstance(answer, Stop):
            self._take_stop(answer)

    def _report(self, error: HookError) -> None:
        """Show the person a failure; the failure of a gate is the reason of its block already."""
        if error.outcome != "blocked":
            self._ui.notify(f"hook error: {error} ({error.outcome})", "error")

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
        # The time also serves as the `entry_index`, by which checkpoints are sorted: it only has to grow.
        now = int(time.time() * 1000)
        await begin_turn(self._engine, given.prompt, self._place, now)
        self.take(await self._engine.emit(AgentStart(prompt=output.message), self._place))
        await self._engine.emit(TurnStart(turn_index=0, timestamp=now, entry_index=now), self._place)
        context = tuple(output.context)
        if output.message == given.prompt:
            return Verdict(context=context)
        if given.rewritable:
            return Verdict(prompt=output.message, context=context)
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
            elif isinstance(event, TurnStart):
                await next_turn(self._engine, self._place, int(time.time() * 1000))
            elif isinstance(event, SessionEvent) and event.reason == "shutdown":
                # A turn that was broken off has no other end; its files belong before the end of the session's record.
                await end_turn(self._engine, self._place)
            answer: object = await self._engine.emit(self._numbered(event, happening.agent_id), self._place)
            self.take(answer)
            if isinstance(event, AgentEnd):
                go_on, texts = self._go_on(happening, event, answer)
                messages += texts
                if go_on is None and happening.agent_id == MAIN:
                    await end_turn(self._engine, self._place)
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
        if stop.session_id in self._stops or self._stop is not None:
            return None, (f"the agent stops here, because a hook has stopped the run; {answer.by} wants it to go on",)
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


def _is_end(happening: Happening) -> bool:
    """Return whether a text for the model would keep the agent going."""
    return isinstance(happening, EventsReported) and any(isinstance(event, AgentEnd) for event in happening.events)


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
    *,
    checkpoints: bool = False,
) -> frozenset[str]:
    """Return the names that hooks and settings listen to: events, points, `redaction`, `filter_output`, `undo`.

    `checkpoints`: they are made, and so the beginnings of turns are needed.
    """
    hooks = tuple(hooks)
    names = {event for hook in hooks for event, handlers in hook.handlers.items() if handlers}
    names |= {interceptor.name for hook in hooks for interceptor in hook.api.interceptors}
    filters = any(hasattr(step.transformer, "filter_output") for step in transformers)
    others = {"redaction": redactor is not None, "filter_output": filters, "undo": checkpoints}
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
    reached = {"event", "redaction", "filter_output", "undo"}.union(*(row.feeds for row in rows))
    return sorted(set(listened) - reached)


def unsupported(agent: str, rows: Sequence[EventRow], hooks: Iterable[LoadedHook]) -> list[tuple[str, str]]:
    """Return the path of each hook that asks for more than the other agent has, with the rest of the sentence.

    `agent`: the name of the other agent; `rows`: its events.
    """
    found = list[tuple[str, str]]()
    for hook in hooks:
        for name in never_reached(rows, listened_to([hook])):
            found.append((hook.path, f"listens to {name}, and {agent} has no such event"))
        for tool in hook.tools:
            found.append((hook.path, f"offers the tool {tool.name}, and {agent} takes no tools from hooks"))
    return found
