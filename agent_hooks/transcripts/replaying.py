"""Replay recorded tool calls through today's gates: which calls they would block, ask about or rewrite.

A call goes through `pipeline.preflight`, the steps before the tool, with a stand-in for the tool: nothing is executed.
Each session gets a runner of its own, because hooks keep state for a session.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agent_hooks.bridges.driver import BridgeUI
from agent_hooks.bridges.judging import ForeignTool
from agent_hooks.errors import describe
from agent_hooks.pipeline.order import preflight
from agent_hooks.records.private import as_json
from agent_hooks.runner.runner import HookRunner
from agent_hooks.storage.digests import sha256
from agent_hooks.transcripts import BadLine, Transcript
from agent_hooks.transcripts.base import Reader, RecordedCall, RecordedEnd, Then, is_streamed_copy
from agent_hooks.ui.base import NO, Answer, NotifyType, Question
from agent_hooks.values.frozen import thaw
from agent_hooks.values.tool import NO_SCHEMA

Decision = Literal["block", "ask", "rewrite"]
VERDICTS: tuple[Decision, ...] = ("block", "ask", "rewrite")
"""All decisions, the severest first."""
# Calls without an end that wait for a fuller copy.
_MOST_UNJUDGED = 100


class ReplayUI(BridgeUI):
    """A UI without a person: a question is answered with no, so that it differs from a call that passes."""

    async def ask(self, question: Question) -> Answer:
        """Answer the pipeline's question with no."""
        return NO

    def notify(self, message: str, type: NotifyType) -> None:
        """Drop the message: there is no person."""


class Answered(Struct, frozen=True, kw_only=True):
    """A recorded call that today's gates would block, ask about or rewrite.

    `by`: the hooks, guards or transformers, separated by `, `, a guard with its rule; `why`: the sentence for a person;
    `brief`: the same without the remedy; `rewritten`: the input after the rewrites, if it differs from the recorded one;
    `then`: the end of the call when it was recorded.
    """

    verdict: Decision
    by: str
    why: str
    brief: str
    call: RecordedCall
    file: str
    line: int
    rewritten: Mapping[str, Any] | None = None
    rewritten_by: tuple[str, ...] = ()
    then: Then = "unknown"


class Tally(Struct, kw_only=True):
    """The sums of a replay.

    `calls`: without copies; `repeated`: copies; `blocked`, `asked`, `rewritten`, `passed`, `invalid`: the decisions about
    the calls, where `invalid` is an input that no tool takes, so no hook is asked; `unread`: lines; `skipped`: files;
    `ran`: the blocked calls that nothing stopped when they were recorded; `by`: for each hook, guard or transformer, how
    often it made each decision.
    """

    files: int = 0
    skipped: int = 0
    calls: int = 0
    blocked: int = 0
    asked: int = 0
    rewritten: int = 0
    passed: int = 0
    invalid: int = 0
    repeated: int = 0
    unread: int = 0
    ran: int = 0
    by: dict[str, dict[str, int]] = field(default_factory=dict)


class Gates(NamedTuple):
    """The gates for the calls of a session: a runner with a `ReplayUI`, and the schemas of tools, if known."""

    runner: HookRunner
    schemas: Mapping[str, Mapping[str, Any]] = {}


_Identity = tuple[object, str]
"""The key of a call, and its tool and input in short: agents that use an id twice may use the key twice."""


class _File(Struct, eq=False):
    """The calls of one file."""

    transcript: Transcript
    gates: Gates | None = None
    # The calls that may have a fuller copy, in order.
    unjudged: list[tuple[int, RecordedCall]] = []
    # The answers whose calls have no end yet, by the call's id.
    waiting: dict[str, Answered] = {}
    # The call that was judged last, by its id.
    identities: dict[str, _Identity] = {}

    def number_until(self, call_id: str) -> int:
        """Return the number of calls that are not judged, up to the last one with an id."""
        ids = [call.tool_call_id for _, call in self.unjudged]
        return len(ids) - ids[::-1].index(call_id) if call_id in ids else 0

    def has_copy(self, call: RecordedCall, line: int) -> bool:
        """Return whether a call that is not judged has a copy in another line, and keep the fuller text."""
        for at, (before, other) in enumerate(self.unjudged):
            if before != line and is_streamed_copy(call, other):
                return True
            if before != line and is_streamed_copy(other, call):
                self.unjudged[at] = line, call
                return True
        return False


class Replay:
    """Replays transcripts, one after another: `await Replay(open_gates, on_answer, on_bad_line).run(transcripts)`.

    `open_gates(reader)` loads the hooks for a session of that reader; `on_answer` gets each call that is blocked, asked
    about or rewritten, when the end of the call is known; `on_bad_line` gets file, line and reason.  `tally`: the sums so
    far; `place`: file and line of the call that is judged now.
    """

    def __init__(
        self,
        open_gates: Callable[[Reader], Awaitable[Gates]],
        on_answer: Callable[[Answered], object],
        on_bad_line: Callable[[str, int, str], object],
    ) -> None:
        self.tally = Tally()
        self.place = ("", 0)
        self._open_gates = open_gates
        self._on_answer = on_answer
        self._on_bad_line = on_bad_line
        self._judged: set[_Identity] = set()
        self._invalid: set[_Identity] = set()
        self._gates: Gates | None = None
        self._session: tuple[str, str | None] | None = None
        self._schemas: dict[str, Mapping[str, Any]] = {}

    async def run(self, transcripts: Iterable[Transcript]) -> Tally:
        """Take every call through the gates; raises `TranscriptError` for a file that stops being readable."""
        async with AsyncExitStack() as stack:
            for transcript in transcripts:
                with transcript:
                    self.tally.files += 1
                    await self._file(transcript, stack)
        return self.tally

    async def _file(self, transcript: Transcript, stack: AsyncExitStack) -> None:
        file = _File(transcript)
        for line, found in transcript:
            if isinstance(found, BadLine):
                self.tally.unread += 1
                self._on_bad_line(transcript.path, line, found.error)
            elif isinstance(found, RecordedEnd):
                # A call that has ended gets no fuller copy.
                await self._judge_first(file, file.number_until(found.tool_call_id), stack)
                self._end(file, found)
            elif file.has_copy(found, line):
                self.tally.repeated += 1
            else:
                file.unjudged.append((line, found))
                await self._judge_first(file, len(file.unjudged) - _MOST_UNJUDGED, stack)
        await self._judge_first(file, len(file.unjudged), stack)
        for answered in file.waiting.values():
            self._report(answered, "unknown")

    async def _judge_first(self, file: _File, number: int, stack: AsyncExitStack) -> None:
        """Judge the first calls of a file that are not judged yet."""
        for _ in range(number):
            line, call = file.unjudged.pop(0)
            call_id = call.tool_call_id
            identity = file.identities[call_id] = _identity(call)
            if call.key is not None and identity in self._judged:
                self.tally.repeated += 1
                continue
            self._judged.add(identity)
            self.tally.calls += 1
            file.gates = file.gates or await self._gates_of(file.transcript, call, stack)
            if (answered := await self._judge(file.gates, call, file.transcript.path, line)) is not None:
                if (before := file.waiting.pop(call_id, None)) is not None:
                    self._report(before, "unknown")
                file.waiting[call_id] = answered

    def _end(self, file: _File, end: RecordedEnd) -> None:
        answered = file.waiting.pop(end.tool_call_id, None)
        if end.then != "invalid":
            if answered is not None:
                self._report(answered, end.then)
        # A copy of the call has an end too.
        elif (identity := file.identities.get(end.tool_call_id)) is not None and identity not in self._invalid:
            self._count_as_invalid(identity)
            self.tally.passed -= answered is None

    def _count_as_invalid(self, identity: _Identity) -> None:
        """Count a call that no hook got."""
        self._invalid.add(identity)
        self.tally.invalid += 1

    async def _gates_of(self, transcript: Transcript, call: RecordedCall, stack: AsyncExitStack) -> Gates:
        """Return the gates for the session of a file's first call; they stay open for the next file of that session."""
        session = (transcript.reader.name, call.session_id)
        if self._gates is None or call.session_id is None or session != self._session:
            await stack.aclose()
            self._gates = await self._open_gates(transcript.reader)
            self._schemas = dict(self._gates.schemas)
            # There is no agent to send messages to.
            self._gates.runner.set_send_handler(lambda text, attachments, source: None)
            await stack.enter_async_context(self._gates.runner)
            self._session = session
        return self._gates

    async def _judge(self, gates: Gates, call: RecordedCall, file: str, line: int) -> Answered | None:
        """Take a call through the steps 0 to 5 of the pipeline; return the answer, `None` when the call passes."""
        tally = self.tally
        if call.invalid:
            self._count_as_invalid(_identity(call))
            return None
        about: dict[str, Any] = {"call": call, "file": file, "line": line}
        if call.refused is not None:
            return _answered("block", "the bridge", f"{call.refused} (the bridge)", **about)
        self.place = file, line
        runner = gates.runner
        own = runner.engine.surroundings
        place = replace(
            own,
            agent_id=call.agent_id,
            cwd=call.cwd or own.cwd,
            session_file=os.path.abspath(file),
            session_id=call.session_id or own.session_id,
        )
        tool = ForeignTool(call.tool_name, input_schema=self._schemas.get(call.tool_name, NO_SCHEMA))
        try:
            judged = await preflight(
                tool, call.tool_call_id, thaw(call.input), runner=runner, native=call.native, surroundings=place
            )
        # An unforeseen error in the pipeline blocks a call in every host.  Here it becomes a block with its text, and
        # the replay goes on.
        except Exception as exc:
            return _answered("block", "agent-hooks", f"could not be judged: {describe(exc)}", **about)
        block = judged.block
        if judged.rewritten_by and judged.input != call.input:
            about |= {"rewritten": judged.arguments, "rewritten_by": judged.rewritten_by}
        if block is None:
            if "rewritten" in about:
                by = ", ".join(judged.rewritten_by)
                return _answered("rewrite", by, f"rewritten by {by}", **about)
            tally.passed += 1
            return None
        # `ReplayUI` has answered the pipeline's question with no.
        if block.cause == "user":
            return _answered("ask", block.signature, f"{block.reason} ({block.signature})", **about)
        if block.cause == "schema" and not judged.rewritten_by:
            self._count_as_invalid(_identity(call))
            return None
        brief = str(replace(block, remedy=""))
        return Answered(verdict="block", by=block.signature, why=str(block), brief=brief, **about)

    def _report(self, answered: Answered, then: Then) -> None:
        tally = self.tally
        match answered.verdict:
            case "block":
                tally.blocked += 1
                tally.ran += then in ("ran", "failed")
            case "ask":
                tally.asked += 1
            case "rewrite":
                tally.rewritten += 1
        counts = tally.by.setdefault(answered.by, dict.fromkeys(VERDICTS, 0))
        counts[answered.verdict] += 1
        self._on_answer(replace(answered, then=then))


def _identity(call: RecordedCall) -> _Identity:
    return call.key, sha256(as_json([call.tool_name, dict(call.input)]))[:32]


def _answered(verdict: Decision, by: str, why: str, **about: Any) -> Answered:
    """Return an answer without a remedy."""
    return Answered(verdict=verdict, by=by, why=why, brief=why, **about)
