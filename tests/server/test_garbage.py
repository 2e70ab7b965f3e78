"""The memory of ended sessions is freed soon, also where Python's collector would wait for more objects."""

from __future__ import annotations

import gc
from weakref import ref

import pytest

from agent_hooks.server.garbage import MOST, free_ended, session_ended


class Module:
    """Something that refers to itself, as a module does by its functions."""

    def __init__(self) -> None:
        self.own = self


@pytest.mark.parametrize("count", [1, MOST])
def test_the_memory_of_ended_sessions_is_freed_after_many_ends_and_at_the_maintenance(count: int) -> None:
    """The collector is off meanwhile, so it is not the one that frees."""
    free_ended()
    gc.disable()
    try:
        kept = ref(Module())
        free_ended()
        assert kept() is not None, "no session has ended"
        for _ in range(count):
            session_ended()
        if count == 1:
            assert kept() is not None, "one session is not enough"
            free_ended()
        assert kept() is None
    finally:
        gc.enable()
