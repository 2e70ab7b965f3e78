"""What a guard is: a pure veto.  A call in; a block, a question or nothing out; never "allow".

Guards do no I/O: what they must know of the machine is handed to them in `GuardedCall`.
Above: the guards, runner, pipeline.  Below: answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from agent_hooks.values.answers import Ask, Block

Level = Literal["project", "relative", "strict"]
Undecidable = Literal["ask", "block", "allow"]
LEVELS: tuple[Level, ...] = ("project", "relative", "strict")


class GuardedCall(Struct, frozen=True, kw_only=True):
    """A tool call as it would run, and what a guard may know about the place it runs in.

    `cwd`, `home`: absolute paths; `temp`: the directories for temporary files, the preferred one first;
    `real_path`: what the input's `path` is with all symlinks followed, `None` when it names none.
    """

    tool_name: str
    input: Mapping[str, Any]
    cwd: str = "/"
    home: str = "/root"
    temp: tuple[str, ...] = ("/tmp",)  # noqa: S108  # a name to compare with, nothing is opened
    real_path: str | None = None


class Guard(Protocol):
    """One veto; `name` is what refusals are signed with.  A guard that raises blocks the call."""

    @property
    def name(self) -> str:
        """The guard's name, `builtin:…` for those that come with the package."""
        ...

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Return a block, a question for the person, or `None` for no opinion."""
        ...


class Finding(Struct, frozen=True):
    """One thing a guard found: the rule's id, why it matters, and what it was about.

    `undecidable`: the guard cannot know, and the setting of that name decides.
    """

    rule: str
    reason: str
    culprit: str = ""
    undecidable: bool = False

    def __str__(self) -> str:
        """Return the sentence a person reads."""
        return f"{self.reason}: {self.culprit}" if self.culprit else self.reason


class Finder(Protocol):
    """A guard that lists everything it finds; `Policy` makes an answer of it."""

    name: str
    tools: tuple[str, ...]

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return what is wrong with the call, the gravest first."""
        ...


def path_of(input: Mapping[str, Any]) -> str | None:
    """Return the file a call is about, if its input names one."""
    for key in ("path", "file_path"):
        if isinstance(value := input.get(key), str):
            return value
    return None


def subject(call: GuardedCall) -> str:
    """Return the text of a call that patterns are searched in: its command, or the path it is about."""
    command = call.input.get("command")
    if isinstance(command, str):
        return command
    return path_of(call.input) or ""


def remedy(rule: str) -> str:
    """Return how a person allows what a rule stops; the agent reads it as well."""
    always, once = "guards.exceptions in .agent/settings.json", f"agent-hooks run --allow-once {rule}"
    return f"a person can allow it: {always}, or once: {once}"


def rule_of(by: str) -> str:
    """Return the rule that a guard's answer is signed with, `guard (rule)`; a signature without a rule as it is."""
    return by.partition("(")[2].rstrip(")") or by


def without_remedy(reason: str, by: str) -> str:
    """Return the reason of a guard's answer without the sentence on how to allow it."""
    return reason.replace(f"; {remedy(rule_of(by))}", "")
