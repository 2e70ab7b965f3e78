"""How cautious the agent is: it works, asks before each change, accepts edits and asks about the rest, or only plans."""

from __future__ import annotations

from typing import Literal

from agent_hooks.effects import CallEffects
from agent_hooks.guards.base import GuardedCall
from agent_hooks.host.instructions import inside
from agent_hooks.pipeline.edits import SHOWN_BY_DIFF
from agent_hooks.pipeline.saving import READERS, may_change
from agent_hooks.values.answers import Ask, Block

Level = Literal["work", "ask", "edits", "plan"]
LEVELS: tuple[Level, ...] = ("work", "ask", "edits", "plan")
BEGINS = (
    "The person has switched to planning. Look at all that you need, and change nothing: calls that may change anything "
    "are blocked. End with a plan of your changes."
)
ENDS = "The person has ended planning: you may change files again."
EDIT_QUESTION = "Make this edit?"
_PLAN = "the person wants a plan first, so only calls that just read run; write the plan as your answer"


class Caution:
    """The guard of the person's own level of caution: `caution.level = "plan"`.

    With `ask`, each call that may change files, end a process or send data to another machine is a question.  With
    `edits`, edits of the project's files are none.  With `plan`, each such call is blocked.
    """

    name = "builtin:caution"

    def __init__(self) -> None:
        self.level: Level = "work"

    @property
    def following(self) -> Level:
        """The level after this one, in a circle."""
        return LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Block or ask about a call that does more than read."""
        if self.level == "work" or call.tool_name in READERS:
            return None
        found = CallEffects(call.cwd)
        effects = found(call.tool_name, call.input)
        if not (may_change(effects) or effects.kills or any(each.direction == "out" for each in effects.transfers)):
            return None
        if self.level == "plan":
            return Block(_PLAN, rule="plan")
        is_edit = call.tool_name in SHOWN_BY_DIFF
        if self.level == "edits" and is_edit and call.real_path is not None and inside(call.real_path, found.root):
            return None
        command = call.input.get("command")
        # An answer for the session or for always counts for the same command, or for the same file.
        subject = call.input.get("path") if command is None else command
        title = EDIT_QUESTION if is_edit else "Make this call?" if command is None else "Run this command?"
        return Ask(title, rule="ask", words=(subject,) if isinstance(subject, str) else ())
