"""The texts of failures: their length, and the remedy for content that is read as a text."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import anyio
import pytest

from agent_hooks import (
    AgentHooksError,
    Ask,
    Block,
    Cancel,
    HookContext,
    Replace,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnStart,
    wrap_tool,
)
from agent_hooks.errors import LONGEST_TEXT, at, capped
from agent_hooks.testing import ScriptedUI
from agent_hooks.values.content import AssistantMessage, Message, ToolResultMessage, UserMessage
from running import Command
from support import EchoTool, call_of, hook_on, runner_of

HUGE = 20_000_000
MESSAGES: list[Message] = [
    UserMessage(content="asked", timestamp=1),
    AssistantMessage(content="answered", timestamp=1, provider="p", model="m"),
    ToolResultMessage(content="found", timestamp=1, tool_call_id="1", tool_name="bash"),
]


# ---- content that is read as a text


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(
    "read",
    [
        lambda content: content.strip(),
        lambda content: "".join([content]),
        lambda content: "text: " + content,
        lambda content: __import__("re").sub("a", "b", content),
    ],
)
async def test_a_compaction_that_reads_content_as_a_text_is_told_that_it_is_a_list(message: Message, read: Any) -> None:
    """The failure names `message.text`, which every message has."""

    def compact(event: SessionEvent, ctx: HookContext) -> None:
        for each in event.messages_to_summarize or ():
            read(each.content)

    runner, errors = runner_of(hook_on("session", compact, inline=True))
    await runner.emit(SessionEvent(reason="before_compact", messages_to_summarize=(message,)))
    [error] = errors
    assert error.error.endswith("the content of a message or a result is a list of blocks; its text is message.text")


def test_every_message_has_its_text() -> None:
    """The text is that of the text blocks."""
    assert [message.text for message in MESSAGES] == ["asked", "answered", "found"]


# ---- long texts


def test_a_long_text_keeps_both_ends_and_the_number_of_characters_between_them() -> None:
    """A text of the longest length stays as it is."""
    assert capped("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT
    cut = capped("a" + "x" * LONGEST_TEXT * 2 + "z")
    assert cut.startswith("ax")
    assert cut.endswith("xz")
    assert "…[20,002 characters cut]…" in cut


@pytest.mark.parametrize("kind", [RuntimeError, AgentHooksError])
async def test_a_huge_exception_of_a_gate_becomes_a_short_denial_and_report(kind: type[Exception]) -> None:
    """The call is blocked as with a short exception."""

    def fail(event: Any, ctx: HookContext) -> None:
        raise kind("x" * HUGE)

    runner, errors = runner_of(hook_on("tool_call", fail, inline=True))
    output = await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    assert output.is_error
    assert "characters cut" in output.text
    [error] = errors
    for text in (output.text, str(error), error.traceback):
        assert len(text) < 2 * LONGEST_TEXT


async def test_a_huge_reason_is_cut() -> None:
    """The reason of a block or of a cancellation is cut when the answer is made."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: {"block": True, "reason": "x" * HUGE}, inline=True))
    answer = await runner.emit(call_of())
    assert isinstance(answer, Block)
    for reason in (answer.reason, Cancel("x" * HUGE).reason or ""):
        assert len(reason) < LONGEST_TEXT + 100
        assert "characters cut" in reason


def test_a_huge_exception_is_short_in_the_host_in_bridges_and_in_records(command: Command) -> None:
    """Denial, report, stderr and records have the same cut text."""
    command.add_hook(f"""
        def register(api):
            @api.on("tool_call")
            def fail(event, ctx):
                raise ValueError("x" * {HUGE})
    """)
    ran = command("run", "--no-session", "@bash echo hi")
    payload = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(command.project),
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }
    said = command("bridge", "claude-code", stdin=json.dumps(payload))
    assert json.loads(said.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    records = command("records", "--json", code=None)
    for text in (ran.stdout, ran.stderr, said.stdout, said.stderr, records.stdout):
        assert len(text) < 10 * LONGEST_TEXT
    for text in (ran.stdout, ran.stderr, said.stdout):
        assert "characters cut" in text
    client = command.rpc("--no-session")
    client.send("prompt", id=1, message="@bash echo hi")
    error = client.expect("hook_error")
    client.end()
    assert "characters cut" in error["error"]
    assert len(json.dumps(error)) < 3 * LONGEST_TEXT


# ---- half of a surrogate pair


async def test_a_failure_with_half_a_surrogate_pair_can_be_passed_on() -> None:
    """The text of the failure, its traceback, and an answer's reason have a question mark in its place."""

    def broken(event: object, ctx: HookContext) -> None:
        raise ValueError("\ud800 and \udfff")

    def blocks(event: object, ctx: HookContext) -> Block:
        return Block("because \ud800")

    runner, errors = runner_of(hook_on("tool_call", broken, inline=True))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.reason == "ValueError: ? and ?"
    assert "ValueError: ? and ?" in errors[0].traceback
    runner, _ = runner_of(hook_on("tool_call", blocks, inline=True))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.reason == "because ?"
    assert Cancel("\ud800").reason == "?"


# ---- questions and notices


async def test_a_question_and_a_notice_are_cut_like_a_reason() -> None:
    """A person cannot read 20 MB, and a client would take minutes for them; the text says how much is cut."""
    ui = ScriptedUI(True, "a line", "one")

    async def asks(event: object, ctx: HookContext) -> Ask:
        await ctx.ui.confirm("t" * HUGE, "m" * HUGE)
        await ctx.ui.input("t" * HUGE)
        await ctx.ui.select("t" * HUGE, ["one"])
        ctx.ui.notify("n\ud800" * HUGE)
        return Ask("t" * HUGE, "m" * HUGE)

    runner, _ = runner_of(hook_on("tool_call", asks), ui=ui)
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Ask)
    texts = [verdict.title, verdict.message, *(asked.title for asked in ui.asked), str(ui.asked[0].more)]
    assert len(texts) == 7
    assert all(len(text) < LONGEST_TEXT + 100 and "characters cut" in text for text in texts)
    assert ui.asked[3].title.isascii() is False
    assert "\ud800" not in ui.asked[3].title


# ---- mistakes of authors who come from elsewhere


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda event, ctx: event.input.nothing, 'it is a dict: write ["nothing"] in place of .nothing'),
        (lambda event, ctx: {"a": 1}.a, 'it is a dict: write ["a"] in place of .a'),  # type: ignore[attr-defined]
        (lambda event, ctx: event.tool_nam, "did you mean .tool_name?"),
        (lambda event, ctx: ctx.sesion_file, "did you mean .session_file?"),
        (lambda event, ctx: Block(blockReason="x"), "write reason="),  # type: ignore[call-arg]
        (lambda event, ctx: Replace(isError=True), "write is_error="),  # type: ignore[call-arg]
        (lambda event, ctx: Replace("x"), "write Replace(content=…) for example"),  # type: ignore[call-arg]
        (
            lambda event, ctx: event.input["path"],
            """the input of 'bash' has 'command'; for the calls of one tool only, """,
        ),
        (lambda event, ctx: dict[str, int]()["path"], "KeyError: 'path'; the input of 'bash' has 'command'; "),
        (lambda event, ctx: sys.exit(2), "a hook has no exit code: to stop the call, write return Block(reason)"),
        (lambda event, ctx: "- " + event.content[:9], "its text is message.text"),
        (lambda event, ctx: re.sub("a", "b", event.content[:9]), "its text is message.text"),
    ],
)
async def test_a_mistake_in_a_handler_is_told_with_its_remedy(wrong: Any, says: str) -> None:
    """The failure is the error of Python, and after it the line that mends it."""
    runner, errors = runner_of(hook_on("tool_result", wrong, inline=True))
    await runner.emit(ToolResult(tool_name="bash", tool_call_id="1", input={"command": "ls"}, content="out"))
    [error] = errors
    assert says in error.error


async def test_an_answer_that_is_raised_is_told_to_be_returned() -> None:
    """The call is blocked all the same."""

    def gate(event: Any, ctx: HookContext) -> None:
        raise Block("no")  # type: ignore[misc]  # the mistake

    runner, errors = runner_of(hook_on("tool_call", gate, inline=True))
    assert isinstance(await runner.emit(call_of()), Block)
    assert errors[0].error.endswith("an answer is returned: write return, not raise")


async def test_a_gate_that_reads_the_input_of_another_tool_is_told_of_the_matcher() -> None:
    """It would block every call of the other tools."""
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: event.input["command"] and None, inline=True))
    await runner.emit(ToolCall(tool_name="read", tool_call_id="1", input={"path": "a"}))
    [error] = errors
    assert error.error.startswith("KeyError: 'command'; the input of 'read' has 'path'; ")
    assert error.error.endswith('for the calls of one tool only, write api.on(…, tool="bash")')


async def test_an_error_of_the_hook_itself_is_told_as_it_is() -> None:
    """No remedy is made up for it."""
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: [][1], inline=True))
    await runner.emit(call_of())
    assert [error.error for error in errors] == ["IndexError: list index out of range"]


async def test_a_key_that_no_input_could_have_gets_no_remedy() -> None:
    """The event has no input, or the input has the key."""
    runner, errors = runner_of(
        hook_on("tool_call", lambda event, ctx: dict[str, int]()["command"], inline=True),
        hook_on("session", lambda event, ctx: dict[str, int]()["command"], inline=True),
    )
    await runner.emit(ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"}))
    await runner.emit(SessionEvent(reason="start"))
    assert [error.error for error in errors] == ["KeyError: 'command'"] * 2


# ---- the place of a failure


async def test_a_wrong_answer_is_reported_with_the_place_of_the_handler() -> None:
    """No line of the hook raised it, so the report names the line where the handler begins."""

    def wrong(event: ToolCall, ctx: HookContext) -> int:
        return 7

    async def hangs(event: ToolCall, ctx: HookContext) -> None:
        await anyio.sleep_forever()

    def useless(event: TurnStart, ctx: HookContext) -> int:
        return 7

    runner, errors = runner_of(
        hook_on("tool_call", wrong, path=__file__, inline=True, on_error="continue"),
        hook_on("tool_call", hangs, path=__file__, on_error="continue"),
        hook_on("turn_start", useless, path=__file__, inline=True),
        tool_call_timeout=0.01,
    )
    await runner.emit(call_of(command="ls"))
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    lines = [function.__code__.co_firstlineno for function in (wrong, hangs, useless)]
    assert [(error.file, error.line) for error in errors] == [(__file__, line) for line in lines]
    assert str(errors[0]).startswith(f"{__file__}:{lines[0]}: wrong on tool_call: TypeError: wrong answer 7")


async def test_a_failure_of_a_function_without_a_line_names_the_hook_alone() -> None:
    """A function of C has none, and a line of ours is no place for its author to look."""
    runner, errors = runner_of(hook_on("turn_start", max, at, inline=True))
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    assert [(error.handler, error.file, error.line) for error in errors] == [("max", None, None), ("at", None, None)]
