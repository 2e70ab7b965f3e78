"""A call that a mod and a settings hook both report is judged once, and a call that differs is judged again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Block, Replace, Rewrite
from agent_hooks.server.links import FIELD
from server.test_server_protocol import CALL, request, serving, stdout_of
from support import hook_on

pytestmark = pytest.mark.usefixtures("home")
RESULT = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "1", "session_id": "s"}


def call(command: str = "ls", link: str = "", identity: str = "1") -> bytes:
    """Return a report of a call by a link; a settings hook has no name."""
    named = {FIELD: link} if link else {}
    return request({**CALL, "session_id": "s", "tool_use_id": identity, "tool_input": {"command": command}, **named})


def result(text: str, link: str = "", command: str = "ls", identity: str = "1") -> bytes:
    """Return a report of a result by a link."""
    named = {FIELD: link} if link else {}
    response = {"stdout": text, "stderr": "", "interrupted": False}
    facts = {"tool_use_id": identity, "tool_input": {"command": command}, "tool_response": response}
    return request({**RESULT, **facts, **named}, "PostToolUse")


class TestLinks:
    """With a server in the loop."""

    async def test_a_call_is_judged_once_for_all_links(self, tmp_path: Path) -> None:
        """Each link gets the verdict, and the user and the model get the texts once."""
        seen: list[str] = []

        def gate(event: Any, ctx: Any) -> Block:
            seen.append(event.input["command"])
            ctx.ui.notify("news")
            return Block("not this one")

        async with serving(tmp_path, hook_on("tool_call", gate)) as server:
            answers = [stdout_of(await server.handle(call(link=link))) for link in ("call", "check", "")]
        assert seen == ["ls"]
        for answer in answers:
            assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert ["news" in str(answer) for answer in answers] == [True, False, False]

    async def test_a_call_that_was_rewritten_below_a_link_is_judged_again(self, tmp_path: Path) -> None:
        """A later mod may turn a harmless call into a forbidden one."""

        def gate(event: Any, ctx: Any) -> Block | None:
            return Block("not this one") if event.input["command"] == "rm" else None

        async with serving(tmp_path, hook_on("tool_call", gate)) as server:
            assert stdout_of(await server.handle(call("ls", "call"))) == {}
            assert "deny" in str(stdout_of(await server.handle(call("rm", "check"))))
            assert "deny" in str(stdout_of(await server.handle(call("rm"))))

    async def test_a_repeated_id_of_the_same_link_is_another_call(self, tmp_path: Path) -> None:
        """Some models begin with `call_0` in each message."""
        seen: list[str] = []
        async with serving(tmp_path, hook_on("tool_call", lambda event, ctx: seen.append("call"))) as server:
            for _ in range(2):
                for link in ("call", "check", ""):
                    await server.handle(call(link=link))
            await server.handle(call())
        assert len(seen) == 3

    async def test_a_repeated_id_of_a_later_turn_is_another_call(self, tmp_path: Path) -> None:
        """Each prompt begins a turn, also where another link reports first then."""
        seen: list[str] = []
        prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go on"}
        async with serving(tmp_path, hook_on("tool_call", lambda event, ctx: seen.append("call"))) as server:
            await server.handle(call())
            await server.handle(request(prompt, "UserPromptSubmit"))
            await server.handle(call(link="call"))
        assert len(seen) == 2

    async def test_each_form_of_a_call_is_judged_once(self, tmp_path: Path) -> None:
        """A judge reports a call, and again after its own change, before the settings hook reports it."""
        seen: list[str] = []
        gate = hook_on("tool_call", lambda event, ctx: seen.append(event.input["command"]))
        async with serving(tmp_path, gate) as server:
            for command, link in (("ls", "sdk"), ("ls -l", "sdk, changed"), ("ls", ""), ("ls -l", "check")):
                await server.handle(call(command, link))
        assert seen == ["ls", "ls -l"]

    async def test_a_rewrite_of_ours_is_the_same_call_below(self, tmp_path: Path) -> None:
        """The settings hook sees the call as our mod has passed it on."""
        seen: list[str] = []

        def rewriting(event: Any, ctx: Any) -> None:
            seen.append(event.input["command"])

        async with serving(
            tmp_path,
            hook_on("tool_call", rewriting),
            hook_on("before_tool_call", lambda event, ctx: Rewrite({**event.input, "command": "ls -l"}), path="b.py"),
        ) as server:
            first = stdout_of(await server.handle(call(link="call")))
            assert first["hookSpecificOutput"]["updatedInput"]["command"] == "ls -l"
            assert "updatedInput" not in str(stdout_of(await server.handle(call("ls -l"))))
        assert seen == ["ls -l"]

    async def test_a_result_is_redacted_for_each_link(self, tmp_path: Path) -> None:
        """A result that another mod has replaced is another result."""
        seen: list[str] = []

        def hide(event: Any, ctx: Any) -> Replace | None:
            seen.append(event.text)
            return Replace(content=event.text.replace("secret", "***")) if "secret" in event.text else None

        async with serving(tmp_path, hook_on("tool_result", hide)) as server:
            await server.handle(call())
            assert "***" in str(stdout_of(await server.handle(result("a secret"))))
            assert stdout_of(await server.handle(result("a ***", "check"))) == {}
            # A mod has put the text back.
            assert "***" in str(stdout_of(await server.handle(result("a secret", "call"))))
            assert "***" in str(stdout_of(await server.handle(result("another secret", "call"))))
        assert seen == ["a secret", "another secret"]

    async def test_a_blocked_call_that_ran_is_an_alarm(self, home: Path, tmp_path: Path) -> None:
        """A mod has let it run: the user is told which mods are loaded, and the session is stopped."""
        (home / ".claude").mkdir()
        (home / ".claude" / "settings.json").write_text(json.dumps({"enabledPlugins": {"sly@far": True}}))
        gate = hook_on(
            "tool_call", lambda event, ctx: Block("not this one") if event.input["command"] == "rm" else None
        )
        start = {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}
        async with serving(tmp_path, gate) as server:
            await server.handle(request(start, "SessionStart"))
            assert "deny" in str(stdout_of(await server.handle(call("rm"))))
            told = stdout_of(await server.handle(result("gone", command="rm")))
            assert "Bash ran although it was blocked" in told["systemMessage"]
            assert "a mod may have overruled your hooks (sly@far (user): its files were not found)" in str(told)
            assert "the tripwire has stopped this session" in str(
                stdout_of(await server.handle(call("ls", identity="2")))
            )

    async def test_a_mod_that_falls_silent_is_an_alarm(self, tmp_path: Path) -> None:
        """Another mod can overrule the hooks then.  A session that never had the mod continues."""
        gate = hook_on("tool_call", lambda event, ctx: None)
        start = {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}
        async with serving(tmp_path, gate) as server:
            await server.handle(request(start, "SessionStart"))
            await server.handle(call())
            assert stdout_of(await server.handle(result("listed"))) == {}
            for link in ("call", "check", ""):
                await server.handle(call(link=link, identity="2"))
            for link in ("", "check", "call"):
                assert stdout_of(await server.handle(result("listed", link, identity="2"))) == {}
            await server.handle(call(identity="3"))
            told = stdout_of(await server.handle(result("listed", identity="3")))
            assert "the mod of agent_hooks no longer reports calls, such as Bash" in told["systemMessage"]
            stopped = stdout_of(await server.handle(call(identity="4")))
        assert "the tripwire has stopped this session" in str(stopped)

    async def test_a_call_that_a_mod_rewrites_is_reported_by_all_links(self, tmp_path: Path) -> None:
        """The call is judged again, without an alarm."""
        gate = hook_on("tool_call", lambda event, ctx: None)
        async with serving(tmp_path, gate) as server:
            await server.handle(call("ls", "call"))
            for link in ("check", ""):
                await server.handle(call("ls -l", link))
            for link in ("", "check", "call"):
                command = "ls" if link == "call" else "ls -l"
                assert stdout_of(await server.handle(result("listed", link, command=command))) == {}

    async def test_settings_hooks_that_are_silent_are_told_once(self, tmp_path: Path) -> None:
        """Another mod answers their events, so agent_hooks' mod judges alone."""
        gate = hook_on(
            "tool_call", lambda event, ctx: Block("not this one") if event.input["command"] == "rm" else None
        )
        texts = []
        async with serving(tmp_path, gate) as server:
            for identity in "12":
                await server.handle(call(link="call", identity=identity))
                texts.append(str(stdout_of(await server.handle(result("listed", "call", identity=identity)))))
            assert "deny" in str(stdout_of(await server.handle(call("rm", "call", "3"))))
        assert ["the settings hooks report no calls" in text for text in texts] == [True, False]
