"""The protocol of a UI, and the UI for a program without a person."""

from __future__ import annotations

from typing import Literal, Protocol

NotifyType = Literal["info", "warning", "error"]


class UI(Protocol):
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

    def notify(self, message: str, type: NotifyType) -> None:
        """Do nothing."""
