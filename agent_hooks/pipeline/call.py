"""A tool call on its way through the steps of the pipeline: first a `JudgedCall`, then a `ToolRun`."""

from __future__ import annotations

from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.dispatch.context import Surroundings
from agent_hooks.effects import CallEffects
from agent_hooks.runner.engine import Engine
from agent_hooks.values.answers import Ask, Block
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.frozen import frozen_and_plain
from agent_hooks.values.tool import OnUpdate, Tool

if TYPE_CHECKING:
    from agent_hooks.dispatch.recording import CallTrail

# The id of the tool call that runs in this task; calls that its tool makes name it as their parent.
running_call: ContextVar[str | None] = ContextVar("agent_hooks running tool call", default=None)
get_running_call, set_running_call = running_call.get, running_call.set


class AbortedCallError(Exception):
    """The runner was left while a call was judged, asked about or run."""


class Rewriting(Struct, frozen=True):
    """One rewrite of the input: the new input, and the names of the rewriters."""

    input: Any
    by: tuple[str, ...]


class JudgedCall(Struct, frozen=True):
    """A tool call until its tool runs: a step gets it and returns it, with a block, a question or another input.

    `input`: the input that would run, frozen; `arguments`: the same as plain builtins, which no handler ever holds;
    `surroundings`: the place the call comes from; `effects`: finds the effects of the call, also after a rewrite;
    `parent_tool_call_id`: the call whose tool makes this one; `native`: the payload of the agent that a bridge speaks
    for.
    """

    tool: Tool
    tool_call_id: str
    input: Any
    arguments: Any
    engine: Engine
    surroundings: Surroundings
    effects: CallEffects
    parent_tool_call_id: str | None = None
    native: Any = None
    # Set when the tool must not run.
    block: Block | None = None
    # The questions of guards and handlers, for the person.
    asks: tuple[Ask, ...] = ()
    # Whether `permission.ask` settled the question.
    allowed: bool = False
    # A line for each change by a transformer; the model reads them below the result.
    notes: tuple[str, ...] = ()
    # The facts for the records of this call, where there are records.
    trail: CallTrail | None = None
    rewrites: tuple[Rewriting, ...] = ()

    @property
    def rewritten_by(self) -> tuple[str, ...]:
        """The names of all rewriters, each once, in order."""
        return tuple(dict.fromkeys(name for rewriting in self.rewrites for name in rewriting.by))

    def blocked(self, block: Block) -> JudgedCall:
        """Return the call with a block."""
        return replace(self, block=block)

    def asking(self, *asks: Ask) -> JudgedCall:
        """Return the call with more questions for the person."""
        return replace(self, asks=(*self.asks, *asks))

    def rewritten(self, input: Any, by: tuple[str, ...]) -> JudgedCall:
        """Return the call with another input."""
        frozen, plain = frozen_and_plain(input)
        return replace(self, input=frozen, arguments=plain, rewrites=(*self.rewrites, Rewriting(frozen, by)))


class ToolRun(Struct, frozen=True):
    """A judged call from `execute` on: a step gets it and returns it, with another output.

    `output`: the result so far; `duration_ms`: how long the tool took, set by the caller if another agent ran it;
    `block`: set when the tool did not run, and `output` is the refusal; `context`: the texts that handlers add for the
    model.
    """

    call: JudgedCall
    # A `ToolOutput` from `execute` on.
    output: Any = None
    duration_ms: float | None = None
    on_update: OnUpdate | None = None
    block: Block | None = None
    # The time at which the tool began.
    began: float = 0.0
    context: tuple[str, ...] = ()

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the tool began."""
        return (perf_counter() - self.began) * 1000

    def returned(self, output: ToolOutput) -> ToolRun:
        """Return the run with another output."""
        return ToolRun(self.call, output, self.duration_ms, self.on_update, self.block, context=self.context)
