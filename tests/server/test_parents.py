"""The sessions of sub-agents, and a start that the prompt overtakes, in the server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.server.calls import MOST_PARENTS, Parents
from agent_hooks.server.sessions import Sessions
from agent_hooks.server.tasks import Tasks
from server.test_sessions import CLAUDE, LoadingOpener, happening, marks, opener, started

__all__ = ["marks", "opener"]


def event(session: str, **fields: Any) -> Happening:
    """Return an event of a session without a word of ours."""
    return Happening(name="x", native={}, session_id=session, **fields)


def test_a_sub_agent_that_its_parent_names_belongs_to_its_session() -> None:
    """Its id then stands in the place of the session."""
    parents = Parents()
    parents.resolve("a", event("root", agent_id="child"))
    found = parents.resolve("a", event("child"))
    assert (found.session_id, found.agent_id) == ("root", "child")
    other = event("child")
    assert parents.resolve("b", other) is other


def test_a_sub_agent_that_names_its_parent_belongs_to_its_session() -> None:
    """So do its own sub-agents, and its later events, which do not name the parent."""
    parents = Parents()
    parents.resolve("a", event("child", parent_session="root"))
    parents.resolve("a", event("grandchild", parent_session="child"))
    for name in ("child", "grandchild"):
        found = parents.resolve("a", event(name))
        assert (found.session_id, found.agent_id) == ("root", name)


def test_sessions_that_name_each_other_as_parents_are_no_trap() -> None:
    """Wrong facts of an agent cost nothing but the grouping; the number of known sub-agents is bounded."""
    parents = Parents()
    parents.resolve("a", event("one", parent_session="two"))
    parents.resolve("a", event("two", parent_session="one"))
    assert parents.resolve("a", event("one")).session_id in ("one", "two")
    for number in range(MOST_PARENTS + 10):
        parents.resolve("a", event("root", agent_id=f"child {number}"))
    assert parents.resolve("a", event("child 0")).session_id == "child 0"
    assert parents.resolve("a", event(f"child {MOST_PARENTS}")).session_id == "root"


class TestInTheServer:
    """In a task group of the server's event loop."""

    async def test_the_end_of_a_sub_agent_ends_no_session(self, opener: LoadingOpener, marks: Path) -> None:
        """Its start and its end are no events of the parent's session, whose hooks judge its calls."""
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        alive = {"CLAUDE_PID": str(os.getpid())}
        async with started(tasks):
            await sessions.answer(CLAUDE, happening("SessionStart", "root", source="startup"), alive)
            child = replace(happening("SessionStart", "child", source="startup"), parent_session="root")
            await sessions.answer(CLAUDE, child, alive)
            await sessions.answer(CLAUDE, happening("PreToolUse", "child"), alive)
            await sessions.answer(CLAUDE, happening("SessionEnd", "child", reason="other"), alive)
            assert len(sessions) == 1
            assert marks.read_text() == "root start\n"
            sessions.end()

    async def test_a_start_that_the_prompt_overtakes_is_told_once(self, opener: LoadingOpener, marks: Path) -> None:
        """The hooks were loaded for the prompt, and had a start then."""
        tasks = Tasks()
        sessions = Sessions(opener, tasks)
        alive = {"CLAUDE_PID": str(os.getpid())}
        async with started(tasks):
            await sessions.answer(CLAUDE, happening("UserPromptSubmit", "s", prompt="go"), alive)
            for _ in range(2):
                await sessions.answer(CLAUDE, happening("SessionStart", "s", source="startup"), alive)
            assert marks.read_text() == "s start\n" * 2
            sessions.end()
