"""The protocol of a UI, the question about a tool call with its answers, and the UI for a program without a person.

A UI needs four methods, the `Dialogs`.  One with `ask` also takes every answer to a question about a tool call; without
it, the pipeline asks by `confirm`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from agent_hooks.errors import capped, shown
from agent_hooks.values.frozen import thaw
from agent_hooks.values.tool import MAIN_ARGUMENT

NotifyType = Literal["info", "warning", "error"]
Choice = Literal["no", "once", "session", "always"]
"""An answer to a question about a tool call: No, Yes once, Yes for this session, Always this."""
CHOICES: tuple[Choice, ...] = ("no", "once", "session", "always")


class Question(Struct, frozen=True, kw_only=True):
    """The one question about a tool call, with all that guards and hooks ask about it.

    - `title`: the questions of all that ask.
    - `call`: the call in one line, with both ends of its long texts, without the texts of `diff`.
    - `text`: the call in as many lines as it has, with nothing left out.
    - `risk`: one plain line about the effect of the call, empty when it is not known.
    - `diff`: the unified diff of an edit, else empty.
    - `reasons`: one line for each that asks, with its name and its explanation.
    - `answers`: the possible answers, No first.  No may come with a text.
    """

    title: str
    call: str
    text: str = ""
    risk: str = ""
    diff: str = ""
    reasons: tuple[str, ...] = ()
    answers: tuple[Choice, ...] = ("no", "once")

    @property
    def message(self) -> str:
        """The text below the title, for a UI that only confirms."""
        return f"{self.about}\n{self.diff}" if self.diff else self.about

    @property
    def about(self) -> str:
        """The call and the grounds, one below the other."""
        return "\n".join((self.call, *self.grounds))

    @property
    def grounds(self) -> tuple[str, ...]:
        """The risk where the title does not name it, and the reasons."""
        risk = [] if not self.risk or self.risk in self.title else [f"risk: {self.risk}"]
        return (*risk, *self.reasons)


class Asker(Struct, frozen=True):
    """The hook that opens a dialog, and the whole text of the call that it judges, empty at other events."""

    hook: str = ""
    call: str = ""


class Answer(Struct, frozen=True):
    """The person's answer to a `Question`.

    `choice`: `no`, `once`, `session` or `always`; `text`: the reason for No, which the model reads; `stops`: with No, the
    agent's run ends too, as after a hook's `Stop`.  Raises `ValueError` for any other choice and for a Yes that stops,
    and `TypeError` for a text that is none.
    """

    choice: Choice
    text: str = ""
    stops: bool = False

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise ValueError(f"Answer(choice) is one of {', '.join(CHOICES)}, not {shown(self.choice)}")
        if self.stops and self.allows:
            raise ValueError(f"Answer(stops=True) goes with 'no', not with {self.choice!r}")
        if not isinstance(self.text, str):
            raise TypeError(f"Answer(text) wants a str, not {type(self.text).__name__}")
        force_setattr(self, "text", capped(self.text))

    @property
    def allows(self) -> bool:
        """Whether the call may run."""
        return self.choice != "no"


NO = Answer("no")
NO_AND_STOP = Answer("no", stops=True)
ONCE = Answer("once")


class Dialogs(Protocol):
    """Asks the person; `notify` may be called from any thread and returns at once."""

    async def select(self, title: str, options: list[str]) -> str | None:
        """Let the person choose one of `options`; `None` when they cancel."""

    async def confirm(self, title: str, message: str) -> bool:
        """Ask yes or no; `False` when they cancel."""
        ...

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Ask for a line of text; `None` when they cancel."""

    def notify(self, message: str, type: NotifyType) -> None:
        """Tell the person something."""


class UI(Dialogs, Protocol):
    """Asks the person, also about a tool call; a UI that derives from it inherits an `ask` that confirms."""

    async def ask(self, question: Question) -> Answer:
        """Ask about a tool call; the answer is one of `question.answers`."""
        return await confirmed(self, question)


async def confirmed(ui: Dialogs, question: Question) -> Answer:
    """Ask by `confirm`: yes is Yes once, and anything else is No."""
    return ONCE if await ui.confirm(question.title, question.message) is True else NO


def takes_questions(ui: Dialogs) -> bool:
    """Return whether a UI is asked by `ask`; a class that overrides only `confirm` of its base is asked by that one."""
    for kind in type(ui).__mro__:
        if "ask" in vars(kind):
            return True
        if "confirm" in vars(kind):
            return False
    return hasattr(ui, "ask")


class SilentUI:
    """The UI without a person: every dialog is answered at once with its default.

    A UI of your own may derive from it and override only some of the methods.
    """

    async def select(self, title: str, options: list[str]) -> str | None:
        """Return `None`."""
        return None

    async def confirm(self, title: str, message: str) -> bool:
        """Return `False`."""
        return False

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Return `None`."""
        return None

    async def ask(self, question: Question) -> Answer:
        """Return the answer of `confirm`, which a UI of your own may have overridden."""
        return await confirmed(self, question)

    def notify(self, message: str, type: NotifyType) -> None:
        """Do nothing."""


def call_text(tool: str, arguments: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """Return the whole call, in as many lines as its texts have.

    The tool and its short arguments come first, then the tool's main argument, then each other argument of several lines
    below its name.  A line with characters that no terminal shows is a literal of Python.  `without`: the arguments that
    are shown elsewhere.
    """
    short = {key: value for key, value in thaw(arguments).items() if key not in without}
    main = MAIN_ARGUMENT.get(tool, "")
    text = short.pop(main) if isinstance(short.get(main), str) else None
    long = {key: short.pop(key) for key in [*short] if isinstance(short[key], str) and "\n" in short[key]}
    head = _shown(tool)
    if short or (text is None and not long):
        head = f"{head} {short!r}"
    lines = [head]
    if text is not None:
        first, *others = _lines(text)
        lines = [head, first, *others] if short else [f"{head} {first}", *others]
    for key, value in long.items():
        lines += [f"{_shown(key)}:", *(f"  {line}" for line in _lines(value))]
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    return [_shown(line) for line in text.split("\n")]


def _shown(line: str) -> str:
    return line if line.expandtabs().isprintable() else repr(line)
