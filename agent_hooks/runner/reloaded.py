"""The outcome of a reload, for the program that asked for it."""

from __future__ import annotations

from msgspec import Struct

from agent_hooks.hooks.loaded import LoadError


class Reloaded(Struct, frozen=True):
    """The outcome of a reload.

    `kept`: the errors of hooks whose former version stays in force; `failed`: the errors of hooks without one, which
    block every tool call; `left_out`: a sentence for each value of `api.state` that could not be copied.
    """

    kept: tuple[LoadError, ...] = ()
    failed: tuple[LoadError, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def messages(self) -> list[str]:
        """Sentences for the person about everything that did not go well."""
        return [
            *(f"hook not loaded again, so its former version stays in force: {error}" for error in self.kept),
            *(f"hook not loaded, so every tool call is blocked: {error}" for error in self.failed),
            *self.left_out,
        ]
