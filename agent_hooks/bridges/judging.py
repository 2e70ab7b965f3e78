"""Take a tool call of another agent through the pipeline, with its parts.

The other agent's call comes in two halves, before and after its tool runs.  Both halves go through the pipeline, with a
stand-in for the tool that returns the result of the other agent's tool.  So the order stands in one place.

A call may amount to several calls of our tools: a patch writes three files.  These are its parts:

1. The call itself is judged first.  If a hook rewrites it, the bridge divides the rewritten call anew, so the parts are
   always those of the input that would run.
2. Each part is judged as a call of its own, with the id of the call and a number: `ID#1`.
3. The strictest verdict counts.  One block refuses the call with all its parts.  All questions become one.  Only a call
   that is allowed with all its parts is allowed.
4. A part is never rewritten, because the other agent takes the input of the whole call only.  So a hook that changes a
   part blocks the call.
5. A part that is unread is no call: it is undecidable, if a handler or another gate of hooks takes its tool.
6. The result of the call is the result of each part.  A hook of one part may change it for the parts after it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import Call, CallAsked, CallEnded, Part
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.dispatch.context import Surroundings
from agent_hooks.dispatch.points import PermissionInput, PermissionOutput
from agent_hooks.guards import PolicyGuard
from agent_hooks.pipeline import asking
from agent_hooks.pipeline.call import get_running_call, set_running_call
from agent_hooks.pipeline.order import JudgedCall, new_call, plan_of, preflight, refuse, run_tool
from agent_hooks.runner.runner import HookRunner
from agent_hooks.values.answers import Ask, Block
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.frozen import freeze, thaw
from agent_hooks.values.tool import NO_SCHEMA, OnUpdate

C = TypeVar("C", bound=Call)
Divide = Callable[[str, Mapping[str, Any]], Sequence[Part]]
"""Returns the parts of a call of a tool with an input, both in our words; see `Bridge.parts`."""


class Asked(Protocol):
    """The person at the other agent.  `asked`: the pipeline's one question about the last call, if there is one."""

    asked: str | None


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
        stays_open: bool = False,
        overruled_by: tuple[str, ...] = (),
        origin: str = "",
    ) -> None:
        self.name = name
        self.native_name = native_name
        self.origin = origin
        self.input_schema = input_schema
        self.stays_open = stays_open
        self.overruled_by = overruled_by
        self._output = output
        # The texts of handlers for the model, which the other agent takes beside the result.
        self.context: list[str] = []

    def take_context(self, texts: Sequence[str]) -> None:
        """Keep the texts that handlers of `tool_result` add."""
        self.context += texts

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Return the result of the other agent's tool."""
        assert self._output is not None, "a call that is only asked for does not run here"
        return self._output


class _Judged(Struct, frozen=True):
    """A call or a part after its gates.  `asked`: the question about it; `allowed`: it needs no permission."""

    call: JudgedCall
    asked: str | None
    allowed: bool


class Judging:
    """Takes the calls of one session of another agent through the pipeline: `await Judging(…).judge(call, place)`.

    `divide`: the bridge's `parts`.  Without it, a call with parts cannot be rewritten.
    `auto_allow`: tools, in our words, whose calls need no permission once a transformer has changed them.
    """

    def __init__(
        self, runner: HookRunner, ui: Asked, *, auto_allow: Collection[str] = (), divide: Divide | None = None
    ) -> None:
        self.auto_allow = auto_allow
        self._runner = runner
        self._engine = runner.engine
        self._ui = ui
        self._divide = divide

    # ---- before the tool runs

    async def judge(self, call: CallAsked, place: Surroundings) -> Verdict:
        """Return the strictest verdict on a call and its parts."""
        if not self._concerns(call):
            return Verdict()
        whole = await self._preflight(call, None, place)
        parts = self._read(self._parts(call, whole), whole, place)
        if parts is None:
            whole = replace(whole, call=whole.call.blocked(_undivided(call, whole.call)))
        judged = [whole]
        for number, part in enumerate(parts or (), 1):
            if not part.unread:
                judged.append(await self._judge_part(call, part, number, whole, place))
        if parts:
            judged += await self._judge_unread(call, parts, place)
        if any(each.call.block is not None for each in judged):
            return await self._refuse(judged)
        questions = [each.asked for each in judged if each.asked is not None]
        return Verdict(
            ask="\n\n".join(dict.fromkeys(questions)) if questions else None,
            allow=all(each.allowed for each in judged),
            input=whole.call.arguments if whole.call.input != call.input else None,
            context=whole.call.notes,
        )

    async def refuse(self, call: CallAsked, place: Surroundings, block: Block) -> Verdict:
        """Refuse a call before any gate has judged it; its observers and the records get the refusal."""
        new = self._new(ForeignTool(call.tool_name, native_name=call.native_name, origin=call.origin), call, place)
        return await self._refuse([_Judged(refuse(new, block), None, allowed=False)])

    def has_gates(self, call: Call) -> bool:
        """Return whether a guard, a handler or another gate takes part in the judgement of such a call."""
        if not call.parts:
            return plan_of(self._engine, call.tool_name).gated
        names = (call.tool_name, *(part.tool_name for part in call.parts))
        return any(plan_of(self._engine, name).gated for name in names)

    def _parts(self, call: Call, whole: _Judged) -> Sequence[Part] | None:
        """Return the parts of the input that would run; `None` if they are not known."""
        if whole.call.input == call.input or whole.call.block is not None:
            return call.parts
        if self._divide is None:
            return None if call.parts else ()
        return self._divide(call.tool_name, whole.call.arguments)

    def _read(self, parts: Sequence[Part] | None, whole: _Judged, place: Surroundings) -> Sequence[Part] | None:
        """Return the parts with those in the place of unread ones that a file on the disk tells, if hooks judge them."""
        files = {part.file for part in parts or () if part.file and self._is_gated(part)}
        if not files or whole.call.block is not None:
            return parts
        # Imported here, because few calls apply a patch.
        from agent_hooks.bridges.patch import parts_of_call
        from agent_hooks.pipeline.archives import read_patch

        texts = {file: read_patch(posixpath.join(place.cwd, file)) for file in files}
        known = {file: text for file, text in texts.items() if text}
        return parts_of_call(whole.call.tool.name, whole.call.arguments, files=known) if known else parts

    async def _judge_part(
        self, call: CallAsked, part: Part, number: int, whole: _Judged, place: Surroundings
    ) -> _Judged:
        """Judge a part; its records and its id name the call that it belongs to."""
        recorder = self._engine.recorder
        outer = recorder.enter(whole.call.trail) if recorder is not None else None
        try:
            judged = await self._preflight(_as_call(call, part, number), call.tool_call_id, place)
        finally:
            if recorder is not None:
                recorder.enter(outer)
        if judged.call.block is None and judged.call.input != part.input:
            return replace(judged, call=judged.call.blocked(_changed_part(call, judged.call)))
        return judged

    async def _judge_unread(self, call: CallAsked, parts: Sequence[Part], place: Surroundings) -> Sequence[_Judged]:
        """Judge the parts that are unread, as one question; the setting `guards.undecidable` decides."""
        concerned = [part for part in parts if self._is_gated(part)]
        undecidable = next((each.undecidable for each in self._engine.guards if isinstance(each, PolicyGuard)), "ask")
        if not concerned or undecidable == "allow":
            return []
        reason = "; ".join(dict.fromkeys(part.unread for part in concerned))
        tools = " and ".join(dict.fromkeys(part.tool_name for part in concerned))
        text = f"{call.native_name} may change any file, and hooks judge the calls of {tools}: {reason}"
        recorder = self._engine.recorder
        self._ui.asked = None
        number = len(parts) - len(concerned) + 1
        each = _as_call(call, Part(call.tool_name, call.input), number)
        judged = self._new(ForeignTool(each.tool_name, native_name=each.native_name, origin=each.origin), each, place)
        if recorder is not None:
            judged = replace(judged, trail=recorder.begin(judged))
        if undecidable == "block":
            judged = judged.blocked(Block(text, cause="guard"))
        else:
            question = Ask("Apply a patch that no hook can read before?", text, by="bridge")
            asked = asking.ask_person(judged.asking(question))
            judged = asked if isinstance(asked, JudgedCall) else await asked
        if recorder is not None:
            recorder.decided(judged)
        return [_Judged(judged, self._ui.asked, judged.allowed)]

    def _is_gated(self, part: Part) -> bool:
        """Return whether a part is unread, and hooks judge or change calls of its tool."""
        gates = ("tool.before", "before_tool_call", "tool_call", "transform")
        return bool(part.unread) and any(step.name in gates for step in plan_of(self._engine, part.tool_name).judge)

    async def _preflight(self, call: CallAsked, parent: str | None, place: Surroundings) -> _Judged:
        """Judge one call, or one part of the call with the id `parent`."""
        self._ui.asked = None
        tool = ForeignTool(
            call.tool_name,
            input_schema=call.input_schema,
            native_name=call.native_name,
            stays_open=call.stays_open,
            origin=call.origin,
        )
        outer = get_running_call()
        set_running_call(parent or outer)
        # The coroutine keeps the parent, so this needs no token, which only its own context could take back.
        judging = preflight(
            tool,
            call.tool_call_id,
            thaw(call.input),
            runner=self._runner,
            native=call.native,
            surroundings=place,
        )
        set_running_call(outer)
        judged = await judging
        asked = self._ui.asked
        freed = asked is None and bool(judged.notes) and call.tool_name in self.auto_allow
        return _Judged(judged, asked, judged.allowed or freed)

    async def _refuse(self, judged: Sequence[_Judged]) -> Verdict:
        """Return the block of a call, one of whose parts is blocked; each observer gets its own refusal."""
        reasons, remedies = list[str](), list[str]()
        for each in judged:
            block = each.call.block
            if block is None:
                continue
            # No tool runs: this makes the result of the refusal, and passes it to the observers.
            refusal = await run_tool(each.call)
            reasons.append(str(refusal.details["reason"]))
            if remedy := refusal.details.get("remedy"):
                remedies.append(f"{block.signature}: {remedy}")
        reason = "\n".join(dict.fromkeys(reasons))
        for each in judged:
            if each.call.block is None:
                text = f"{each.call.tool.name} was not run, because the call that it belongs to was blocked: {reason}"
                await run_tool(each.call.blocked(Block(text, cause="failed")))
        return Verdict(block=reason, messages=tuple(dict.fromkeys(remedies)))

    # ---- after the tool ran

    async def pass_result(self, call: CallEnded, place: Surroundings) -> Verdict:
        """Take the result of a call through the steps after `execute`, for the call itself and then for each part."""
        output, context = call.output, list[str]()
        parts = [_as_call(call, part, number) for number, part in enumerate(call.parts, 1) if not part.unread]
        for each in (call, *parts):
            if plan_of(self._engine, each.tool_name).concerned:
                tool = ForeignTool(each.tool_name, output, native_name=each.native_name, overruled_by=call.overruled_by)
                output = await run_tool(self._new(tool, each, place), duration_ms=call.duration_ms)
                context += tool.context
        changed = None if output.content == call.output.content else output
        return Verdict(output=changed, context=tuple(dict.fromkeys(context)))

    # ---- the question of the other agent

    async def settle(self, call: Call, place: Surroundings) -> Verdict:
        """Let the interceptors of `permission.ask` settle a question that the other agent is about to ask.

        A call with parts is allowed only if each part is allowed too.
        """
        parts = [_as_call(call, part, number) for number, part in enumerate(call.parts, 1) if not part.unread]
        statuses = [await self._settle(each, place) for each in (call, *parts)]
        statuses += ["ask" for part in call.parts if self._is_gated(part)]
        block = "denied by permission.ask" if "deny" in statuses else None
        return Verdict(allow=set(statuses) == {"allow"}, block=block)

    async def _settle(self, call: Call, place: Surroundings) -> str:
        """Return the status of one question, which is recorded if there are records."""
        recorder = self._engine.recorder
        if recorder is None:
            return await self._permission(call, place)
        asked = self._new(ForeignTool(call.tool_name, native_name=call.native_name), call, place)
        asked = replace(asked, trail=recorder.begin(asked))
        number = recorder.asked(asked, call.name, "", "", handed_over=True)
        status = await self._permission(call, place)
        if status != "ask":
            recorder.answered(asked, number, "yes" if status == "allow" else "no", who="permission.ask")
        return status

    async def _permission(self, call: Call, place: Surroundings) -> str:
        output = await self._engine.reach(
            "permission.ask",
            PermissionInput(
                agent_id=place.agent_id,
                session_key=place.session_id,
                tool_name=call.tool_name,
                tool_call_id=call.tool_call_id,
                args=freeze(call.input),
                reason=call.name,
            ),
            PermissionOutput(),
            place,
        )
        return output.status if isinstance(output, PermissionOutput) else "ask"

    # ---- small things

    def _new(self, tool: ForeignTool, call: Call, place: Surroundings) -> JudgedCall:
        return new_call(
            tool,
            call.tool_call_id,
            call.input,
            runner=self._runner,
            native=call.native,
            surroundings=place,
        )

    def _concerns(self, call: Call) -> bool:
        """Return whether hooks take part in calls of the tool, or of a tool of its parts."""
        if not call.parts:
            return plan_of(self._engine, call.tool_name).concerned
        names = (call.tool_name, *(part.tool_name for part in call.parts))
        return any(plan_of(self._engine, name).concerned for name in names)


def _as_call(call: C, part: Part, number: int) -> C:
    """Return a part as a call of its own."""
    identity = f"{call.tool_call_id}#{number}" if call.tool_call_id else ""
    return replace(call, tool_name=part.tool_name, input=part.input, tool_call_id=identity, parts=(), stays_open=False)


def _undivided(call: CallAsked, whole: JudgedCall) -> Block:
    by = ", ".join(whole.rewritten_by)
    return Block(f"{by or 'a hook'} changed {call.native_name}, which then cannot be divided again", by, cause="failed")


def _changed_part(call: CallAsked, part: JudgedCall) -> Block:
    by = ", ".join(part.rewritten_by)
    whole = call.native_name
    text = (
        f"{by or 'a hook'} changed the call of {part.tool.name} that {whole} amounts to, but {whole} can be changed as "
        f"a whole only"
    )
    return Block(text, by, cause="failed")
