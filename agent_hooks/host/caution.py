"""How cautious the agent is: it works, asks before each change, accepts edits and asks about the rest, or only plans."""

from __future__ import annotations

from typing import TypeAlias, get_args

from agent_hooks.effects import CallEffects
from agent_hooks.guards.base import GuardedCall
from agent_hooks.host.kept_texts import inside
from agent_hooks.host.looking import acting, reaches_out, uses_of
from agent_hooks.pipeline.edits import SHOWN_BY_DIFF
from agent_hooks.pipeline.saving import READERS, may_change
from agent_hooks.settings_file import CautionLevel
from agent_hooks.values.answers import Ask, Block

Level: TypeAlias = CautionLevel
LEVELS: tuple[Level, ...] = get_args(Level)
BEGINS = (
    "The person has switched to planning. Look at all that you need, and change nothing: calls that may change anything "
    "are blocked. End with a plan of your changes."
)
ENDS = "The person has ended planning: you may change files again."
EDIT_QUESTION, COMMAND_QUESTION, CALL_QUESTION = "Make this edit?", "Run this command?", "Make this call?"
_PLAN = "the person wants a plan first, so only calls that just read run; write the plan as your answer"


class Caution:
    """The guard of the person's own level of caution: `caution.level = "plan"`.

    With `ask`, each call that may change files, end a process, send data or act on another thing that effects do not
    name is a question.  With `edits`, edits of the project's files are none.  With `plan`, each such call is blocked.
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
        if not (may_change(effects) or reaches_out(effects) or any(acting(effects))):
            return None
        if self.level == "plan":
            return Block(_PLAN, rule="plan")
        command = call.input.get("command")
        if command is None:
            is_edit = call.tool_name in SHOWN_BY_DIFF
            if self.level == "edits" and is_edit and call.real_path is not None and inside(call.real_path, found.root):
                return None
            return _question(EDIT_QUESTION if is_edit else CALL_QUESTION, call.input.get("path"))
        if uses := sorted(" ".join(use) for use in uses_of(effects)):
            each = f"each {' with '.join(uses)}"
            return Ask(COMMAND_QUESTION, f"an answer that is kept counts for {each}", rule="ask", words=(each,))
        return _question(COMMAND_QUESTION, command)


def _question(title: str, subject: object) -> Ask:
    # An answer for the session or for always counts for the same command, or for the same file.
    return Ask(title, rule="ask", words=(subject,) if isinstance(subject, str) else ())
