"""Plan mode: while it is on, the agent may look, and every call that may change anything is blocked."""

from __future__ import annotations

from agent_hooks.effects import effects_of
from agent_hooks.guards.base import GuardedCall
from agent_hooks.pipeline.saving import READERS, may_change
from agent_hooks.values.answers import Block

RULE = "plan"
_REASON = "the person wants a plan first, so only calls that just read run; write the plan as your answer"
BEGINS = (
    "The person has switched to planning. Look at all that you need, and change nothing: calls that may change anything "
    "are blocked. End with a plan of your changes."
)
ENDS = "The person has ended planning: you may change files again."


class Planning:
    """The guard of plan mode; `on`: whether it is in force."""

    name = "builtin:plan"

    def __init__(self) -> None:
        self.on = False

    def judge(self, call: GuardedCall) -> Block | None:
        """Block a call that may change files, end a process, or send data to another machine."""
        if not self.on or call.tool_name in READERS:
            return None
        effects = effects_of(call.tool_name, call.input, cwd=call.cwd)
        sends = any(each.direction == "out" for each in effects.transfers)
        return Block(_REASON, rule=RULE) if may_change(effects) or effects.kills or sends else None
