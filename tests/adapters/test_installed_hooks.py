"""The adapter for the Claude Agent SDK where hooks are installed too: a resident server judges too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.test_claude_agent_sdk import CALL, Client
from agent_hooks import Ask, Block, LoadedHook, Rewrite
from agent_hooks.server.client import directory, is_private
from agent_hooks.server.control import place_of
from server.test_server_protocol import request, serving, stdout_of
from support import hook_on, runner_of


class Sides:
    """The two sides of a session: `runner` has the callbacks, and `installed` are the reports of a settings hook."""

    def __init__(self, project: Path, handle: Callable[[bytes], Any], *ours: LoadedHook) -> None:
        self._handle = handle
        self._fields = {"session_id": "s", "cwd": str(project), "transcript_path": "/t.jsonl"}
        self._client = Client(runner_of(*ours)[0])

    async def begin(self) -> None:
        """Start the session at the settings hook."""
        await self.installed("SessionStart", source="startup")

    async def runner(self, command: str = "ls") -> dict[str, Any]:
        """Return the runner's answer to a call."""
        return await self._client.send("PreToolUse", **{**CALL, **self._fields, "tool_input": {"command": command}})

    async def installed(self, event: str = "PreToolUse", command: str = "ls", **fields: Any) -> dict[str, Any]:
        """Return the answer of the installed hooks to an event."""
        payload = {"hook_event_name": event, **CALL, "tool_input": {"command": command}, **self._fields, **fields}
        return dict(stdout_of(await self._handle(request(payload, event))))


@asynccontextmanager
async def both(project: Path, theirs: list[LoadedHook], *ours: LoadedHook) -> AsyncIterator[Sides]:
    """Start a server with the hooks `theirs` and a runner with `ours`, in one session."""
    assert is_private(directory())
    async with serving(project, *theirs, at=place_of(str(project))) as server:
        sides = Sides(project, server.handle, *ours)
        await sides.begin()
        yield sides


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an answer that is about the call."""
    return dict(answer.get("hookSpecificOutput", {}))


async def test_a_call_that_both_report_is_judged_once_on_each_side(project: Path) -> None:
    """Whoever reports first."""
    ours: list[str] = []
    theirs: list[str] = []
    installed = hook_on("tool_call", lambda event, ctx: theirs.append(event.input["command"]))
    own = hook_on("tool_call", lambda event, ctx: ours.append(event.input["command"]))
    async with both(project, [installed], own) as sides:
        await sides.runner("a")
        await sides.installed(command="a")
        assert (ours, theirs) == (["a"], ["a"])
        await sides.installed(command="b")
        await sides.runner("b")
        assert (ours, theirs) == (["a", "b"], ["a", "b"])
        # The same id once more is another call.
        await sides.runner("b")
    assert (ours, theirs) == (["a", "b", "b"], ["a", "b", "b"])


async def test_a_block_of_the_installed_hooks_is_the_answer_of_both(project: Path) -> None:
    """The runner's gates are not asked any more."""
    asked: list[str] = []
    async with both(
        project,
        [hook_on("tool_call", lambda event, ctx: Block("theirs"))],
        hook_on("tool_call", lambda event, ctx: asked.append("call")),
    ) as sides:
        answers = [said(await sides.runner()), said(await sides.installed())]
    assert [answer["permissionDecision"] for answer in answers] == ["deny", "deny"]
    assert all("theirs" in answer["permissionDecisionReason"] for answer in answers)
    assert asked == []


async def test_a_change_of_the_runner_is_judged_by_the_installed_hooks(project: Path) -> None:
    """They block the changed call, though the call as it came is harmless."""

    def gate(event: Any, ctx: Any) -> Block | None:
        return Block("theirs") if event.input["command"] == "rm" else None

    def rewrite(event: Any, ctx: Any) -> Rewrite:
        return Rewrite({**event.params, "command": event.params["command"].replace("ls", "rm")})

    async with both(project, [hook_on("tool_call", gate)], hook_on("before_tool_call", rewrite)) as sides:
        assert said(await sides.runner("ls"))["permissionDecision"] == "deny"
        assert said(await sides.runner("make lsp"))["updatedInput"] == {"command": "make rmp"}


async def test_a_change_of_the_installed_hooks_is_judged_by_the_runner(project: Path) -> None:
    """Both answer with the same change."""
    seen: list[str] = []

    def gate(event: Any, ctx: Any) -> Block | None:
        seen.append(event.input["command"])
        return Block("ours") if event.input["command"] == "rm" else None

    def rewrite(event: Any, ctx: Any) -> Rewrite:
        return Rewrite({**event.params, "command": event.params["command"].replace("ls", "rm")})

    async with both(project, [hook_on("before_tool_call", rewrite)], hook_on("tool_call", gate)) as sides:
        assert said(await sides.runner("ls"))["permissionDecision"] == "deny"
        answers = [said(await sides.runner("lsp")), said(await sides.installed(command="lsp"))]
    assert [answer["updatedInput"] for answer in answers] == [{"command": "rmp"}] * 2
    assert seen == ["rm", "rmp"]


async def test_a_call_that_both_change_is_denied_with_the_call_that_was_meant(project: Path) -> None:
    """The client would take one change and drop the other."""

    def adding(word: str) -> LoadedHook:
        def rewrite(event: Any, ctx: Any) -> Rewrite | None:
            command = event.params["command"]
            return None if word in command else Rewrite({**event.params, "command": f"{command} {word}"})

        return hook_on("before_tool_call", rewrite)

    async with both(project, [adding("--theirs")], adding("--ours")) as sides:
        answer = said(await sides.runner("ls"))
        assert answer["permissionDecision"] == "deny"
        assert 'call this instead: Bash {"command": "ls --theirs --ours"}' in answer["permissionDecisionReason"]
        assert said(await sides.runner("ls --theirs --ours")) == {}


async def test_questions_of_both_sides_are_one_question(project: Path) -> None:
    """The function `can_use_tool` gets both reasons."""
    async with both(
        project,
        [hook_on("tool_call", lambda event, ctx: Ask("Theirs?", ""))],
        hook_on("tool_call", lambda event, ctx: Ask("Ours?", "")),
    ) as sides:
        answer = said(await sides.runner())
    assert answer["permissionDecision"] == "ask"
    assert all(word in answer["permissionDecisionReason"] for word in ("Theirs?", "Ours?"))


async def test_texts_of_the_installed_hooks_are_given_once(project: Path) -> None:
    """The side that reports first passes them on."""

    installed = hook_on("tool_call", lambda event, ctx: ctx.ui.notify("for you"))
    async with both(project, [installed]) as sides:
        answers = [await sides.runner(), await sides.installed()]
    assert answers == [{"systemMessage": "for you"}, {}]


async def test_a_session_without_a_settings_hook_is_judged_by_the_runner_alone(project: Path) -> None:
    """The server of the project serves other sessions."""
    seen: list[str] = []
    installed = hook_on("tool_call", lambda event, ctx: seen.append("call"))
    async with serving(project, installed, at=place_of(str(project))) as server:
        sides = Sides(project, server.handle, hook_on("tool_call", lambda event, ctx: None))
        assert await sides.runner() == {}
    assert seen == []


async def test_a_server_without_the_key_is_not_believed(project: Path, home: Path) -> None:
    """Another program may listen under the name of the socket."""
    async with both(project, []) as sides:
        (home / ".agent/server.key").write_bytes(b"another key, of 32 bytes as well")
        answer = said(await sides.runner())
    assert answer["permissionDecision"] == "deny"
    assert "another program answers in the server's place" in answer["permissionDecisionReason"]


async def test_a_failure_of_the_server_denies(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hooks may have blocked the call."""
    async with both(project, [hook_on("tool_call", lambda event, ctx: Block("theirs"))]) as sides:

        async def failing(*args: Any) -> Any:
            raise RuntimeError("a fault")

        monkeypatch.setattr("agent_hooks.server.sessions.Sessions.answer", failing)
        answer = said(await sides.runner())
    assert answer["permissionDecision"] == "deny"
    assert "the server could not judge this" in answer["permissionDecisionReason"]
