"""The protocol of a UI, and the one of nobody.  Above: context, runner, the members of this family.  Below: nothing."""

from __future__ import annotations

from typing import Literal, Protocol

NotifyType = Literal["info", "warning", "error"]


class UI(Protocol):
    """How a handler asks the person; `notify` may be called from any thread and returns at once."""

    async def select(self, title: str, options: list[str]) -> str | None:
        """Let the person choose one of `options`; `None` when they cancel."""

    async def confirm(self, title: str, message: str) -> bool:
        """Ask yes or no."""
        ...

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Ask for a line of text; `None` when they cancel."""

    def notify(self, message: str, type: NotifyType) -> None:
        """Tell the person something."""


class SilentUI:
    """Nobody is there: every dialog answers at once with its default.

    A UI of your own may derive from it, and answers what it overrides.
    """

    async def select(self, title: str, options: list[str]) -> str | None:
        """Answer that nothing was chosen."""
        return None

    async def confirm(self, title: str, message: str) -> bool:
        """Answer no."""
        return False

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Answer that nothing was typed."""
        return None

    def notify(self, message: str, type: NotifyType) -> None:
        """Do nothing."""
