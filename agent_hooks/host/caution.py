"""How cautious the agent is: it works, asks before each change, accepts edits and asks about the rest, or only plans."""

from __future__ import annotations

from typing import TypeAlias, get_args

from agent_hooks.effects import CallEffects
from agent_hooks.guards.base import GuardedCall
from agent_hooks.host.instructions import inside
from agent_hooks.host.looking import acting, reaches_out
from agent_hooks.host.uses import uses_of
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
# The commands that were asked about, whose programs are known.
_MOST_KEPT = 50


class Caution:
    """The guard of the person's own level of caution: `caution.level = "plan"`.

    With `ask`, each call that may change files, end a process, send data or act on another thing that effects do not
    name is a question.  With `edits`, edits of the project's files are none.  With `plan`, each such call is blocked.
    `accepted`: the uses of programs, `("npm", "test")` for example, that are no question until the level is `work` again.
    """

    name = "builtin:caution"

    def __init__(self) -> None:
        self._level: Level = "work"
        self.accepted: set[tuple[str, ...]] = set()
        # Command → the use of a program that an answer may accept.
        self._asked: dict[str, tuple[str, ...]] = {}

    @property
    def level(self) -> Level:
        """The level in force."""
        return self._level

    @level.setter
    def level(self, level: Level) -> None:
        self._level = level
        if level == "work":
            self.accepted.clear()

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
        uses = uses_of(effects)
        if uses and self.accepted.issuperset(uses):
            return None
        if len(uses) == 1 and isinstance(command, str):
            self._asked = dict([*self._asked.items()][1 - _MOST_KEPT :])
            [self._asked[command]] = uses
        return _question(COMMAND_QUESTION, command)

    def use_in(self, call: str) -> tuple[str, ...]:
        """Return the use of a program that an answer to the question about a call may accept; empty without one.

        `call`: the call as the question shows it.
        """
        for command, use in reversed(self._asked.items()):
            head, command_shown, rest = call.partition(f" {command}")
            if command_shown and " " not in head and (not rest or rest.startswith(" {")):
                return use
        return ()


def _question(title: str, subject: object) -> Ask:
    # An answer for the session or for always counts for the same command, or for the same file.
    return Ask(title, rule="ask", words=(subject,) if isinstance(subject, str) else ())
