"""The adapter for the Claude Agent SDK, without a client: payloads of events go to the callbacks."""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import Any, cast

import anyio
import pytest

from agent_hooks import AddContext, AgentHooksError, Ask, Block, Continue, HookRunner, HookUsageError, Replace, Rewrite
from agent_hooks.adapters.claude_agent_sdk import hooks
from agent_hooks.bridges import open_bridge
from agent_hooks.hooks.loaded import LoadedHook
from support import ROOT, hook_on, runner_of

# Its import takes long on a busy machine, so it does not count to the time of a test.
pytest.importorskip("claude_agent_sdk")

CALL = {"tool_name": "Bash", "tool_input": {"command": "ls", "description": "x"}, "tool_use_id": "toolu_1"}
RESPONSE = {"stdout": "a secret", "stderr": "", "interrupted": False, "isImage": False}


class Client:
    """A client that calls a runner's callbacks."""

    def __init__(self, runner: HookRunner) -> None:
        self.entries = hooks(runner)

    async def send(self, event: str, **fields: Any) -> dict[str, Any]:
        """Send an event, and return the answer."""
        payload = {"hook_event_name": event, "session_id": "s", "cwd": "/", "transcript_path": "/t.jsonl", **fields}
        (entry,) = self.entries[event]  # type: ignore[index]  # the type of the SDK lacks some events
        (callback,) = entry.hooks
        return dict(await callback(payload, fields.get("tool_use_id"), {"signal": None}))  # type: ignore[arg-type]

    async def call(self, command: str = "ls", **fields: Any) -> dict[str, Any]:
        """Ask about a call of the shell, and return the part of the answer that is about it."""
        answer = await self.send("PreToolUse", **{**CALL, "tool_input": {"command": command}, **fields})
        return dict(answer.get("hookSpecificOutput", {}))


def client_of(*loaded: LoadedHook) -> Client:
    """Return the client of a runner with these hooks."""
    return Client(runner_of(*loaded)[0])


async def test_a_block_denies_the_call_with_its_reason() -> None:
    """A call that no hook blocks gets no opinion."""
    client = client_of(hook_on("tool_call", lambda event, ctx: Block("no") if event.input["command"] == "rm" else None))
    answer = await client.call("rm")
    assert answer["permissionDecision"] == "deny"
    assert answer["permissionDecisionReason"].startswith("no")
    assert await client.call("ls") == {}


async def test_a_question_goes_to_the_client() -> None:
    """`Ask` and `ctx.ui.confirm` of a gate are the same question.  The client puts it to `can_use_tool`."""

    async def confirming(event: Any, ctx: Any) -> Block | None:
        return None if await ctx.ui.confirm("Sure?", "about this") else Block("no")

    for gate in (lambda event, ctx: Ask("Sure?", "about this"), confirming):
        answer = await client_of(hook_on("tool_call", gate)).call()
        assert answer["permissionDecision"] == "ask"
        assert "Sure?" in answer["permissionDecisionReason"]


async def test_a_rewrite_is_in_the_words_of_the_client() -> None:
    """Hooks use the names of our tools and arguments."""
    rewrite = hook_on("before_tool_call", lambda event, ctx: Rewrite({**event.params, "path": "b.txt"}), tool="write")
    client = client_of(rewrite)
    answer = await client.call(tool_name="Write", tool_input={"file_path": "a.txt", "content": "x"})
    assert answer["updatedInput"] == {"file_path": "b.txt", "content": "x"}


async def test_a_result_is_replaced_in_its_own_shape() -> None:
    """The client drops a result of another shape."""
    hide = hook_on("tool_result", lambda event, ctx: Replace(content=event.text.replace("secret", "***")))
    answer = await client_of(hide).send("PostToolUse", **CALL, tool_response=RESPONSE)
    assert answer["hookSpecificOutput"]["updatedToolOutput"] == {**RESPONSE, "stdout": "a ***"}


async def test_a_text_reaches_the_model_with_the_prompt() -> None:
    """`AddContext` at the start of a run."""
    client = client_of(hook_on("agent_start", lambda event, ctx: AddContext(f"about {event.prompt}")))
    answer = await client.send("UserPromptSubmit", prompt="this")
    assert answer["hookSpecificOutput"]["additionalContext"] == "about this"


async def test_a_hook_keeps_the_agent_going() -> None:
    """The stop is blocked with the text for the model."""
    client = client_of(hook_on("agent_end", lambda event, ctx: None if event.continued else Continue("test it")))
    assert await client.send("Stop", stop_hook_active=False) == {"decision": "block", "reason": "test it"}
    assert await client.send("Stop", stop_hook_active=True) == {}


async def test_the_hooks_hear_the_start_of_a_session_once() -> None:
    """The SDK does not report it, so it comes before the first event of each session."""
    seen: list[str] = []

    def start(event: Any, ctx: Any) -> None:
        seen.append(f"start of {ctx.session_id}")
        ctx.ui.notify("hello")

    client = client_of(
        hook_on("session", start), hook_on("tool_call", lambda event, ctx: seen.append("call"), path="b.py")
    )
    answers = [await client.send("PreToolUse", **CALL, session_id=session) for session in ("a", "a", "b")]
    assert seen == ["start of a", "call", "call", "start of b", "call"]
    assert [answer.get("systemMessage") for answer in answers] == ["hello", None, "hello"]


async def test_calls_of_one_message_are_judged_one_after_the_other() -> None:
    """The client asks about them at the same time."""
    running, most = 0, 0

    async def gate(event: Any, ctx: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1

    client = client_of(hook_on("tool_call", gate))
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(partial(client.call, tool_use_id=f"toolu_{number}"))
    assert most == 1


async def test_a_payload_that_cannot_be_read_is_denied() -> None:
    """So is a call whose hook raises."""
    answer = await client_of().call(tool_input=7)
    assert answer["permissionDecision"] == "deny"
    assert "tool_input must be a JSON object" in answer["permissionDecisionReason"]

    def broken(event: Any, ctx: Any) -> None:
        raise ValueError("broken")

    answer = await client_of(hook_on("tool_call", broken)).call()
    assert answer["permissionDecision"] == "deny"
    assert "broken" in answer["permissionDecisionReason"]


async def test_a_runner_that_was_left_denies() -> None:
    """The program has ended its hooks, and the client still asks."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None))
    client = Client(runner)
    async with runner:
        assert await client.call() == {}
    assert (await client.call())["permissionDecision"] == "deny"


def test_each_event_has_an_entry_and_a_failing_gate_blocks() -> None:
    """The client waits for hooks as long as for hooks in its settings."""
    entries = cast("dict[str, Any]", client_of().entries)
    rows = {row.name: row for row in open_bridge("claude-code").describe()}
    assert entries.keys() == rows.keys()
    for name, (entry,) in entries.items():
        assert entry.matcher is None
        assert entry.timeout == (rows[name].timeout or 600)
        assert entry.on_failure == ("block" if rows[name].gate else None)


def test_a_hook_that_names_a_tool_of_the_client_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Such a handler would never run."""
    with caplog.at_level(logging.WARNING, "agent_hooks"):
        client_of(hook_on("tool_call", lambda event, ctx: None, tool="Bash"))
    assert "never runs: the tool 'Bash' is 'bash' here" in caplog.text


def test_the_error_without_the_sdk_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK is an extra."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(AgentHooksError, match=r"pip install 'agent-hooks-runtime\[claude-sdk\]'"):
        client_of()


def test_only_a_runner_has_hooks() -> None:
    """The result of loading is easily given instead."""
    with pytest.raises(HookUsageError, match="wants a HookRunner"):
        hooks([])  # type: ignore[arg-type]


def test_the_page_shows_the_example() -> None:
    """The tests with real clients run it."""
    source = (ROOT / "examples" / "claude_sdk.py").read_text()
    assert f"```python file=claude_sdk.py\n{source}```" in (ROOT / "docs" / "claude-agent-sdk.md").read_text()
