"""Mistakes of authors: each way that a newcomer wrote has an error that names the right one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hooks import (
    Ask,
    BeforeToolCall,
    Block,
    Compaction,
    HookAPI,
    HookUsageError,
    Interceptor,
    Rewrite,
    ToolResult,
    TurnEnd,
    load_hooks,
)
from agent_hooks.concurrency.process import run
from agent_hooks.dispatch.mistakes import failure_text
from agent_hooks.dispatch.reading import read_answer
from agent_hooks.dispatch.table import SPECS
from agent_hooks.testing import call_tool
from agent_hooks.values.content import AssistantMessage
from support import call_of, hook_on, runner_of

pytestmark = pytest.mark.anyio
REWRITE = BeforeToolCall(tool_name="bash", tool_call_id="1", params={"command": "ls"})
RESULT = ToolResult(tool_name="bash", tool_call_id="1", input={"command": "ls"}, content="out")
TURN = TurnEnd(turn_index=0, message=AssistantMessage(content="x", timestamp=0, provider="p", model="m"))
ANSWERS: Any = {each.__name__: each for each in (Ask, Block, Compaction, Rewrite)}


@pytest.mark.parametrize(
    ("event", "wrong", "says"),
    [
        (call_of(), lambda event, ctx: event.input["cmd"], """the input of 'bash' has 'command': write ["command"]"""),
        (call_of(), lambda event, ctx: ANSWERS["Block"](message="x"), "; the answers are Block(reason), Ask(title, me"),
        (call_of(), lambda event, ctx: ANSWERS["Block"](zzz="x"), "; the answers are Block(reason), Ask(title, messag"),
        (
            call_of(),
            lambda event, ctx: ANSWERS["Ask"]("t", timeout=5),
            "a question waits for the person: leave timeout",
        ),
        (call_of(), lambda event, ctx: ANSWERS["Ask"](), "; write Ask(title, message)"),
        (call_of(), lambda event, ctx: AssistantMessage(), "Missing required argument 'content'"),  # type: ignore[call-arg]
        (REWRITE, lambda event, ctx: ANSWERS["Rewrite"](command="x"), 'write Rewrite({**event.params, "command": …})'),
        (
            call_of(),
            lambda event, ctx: ctx.ui.confirm("t", "m", timeout=5),
            "; write ctx.ui.confirm(title, message): the",
        ),
        (
            call_of(),
            lambda event, ctx: ctx.ui.confirm("t", "m", {"timeout": 5}),
            "; write ctx.ui.confirm(title, messag",
        ),
        (call_of(), lambda event, ctx: ctx.ui.notify("x", level="error"), "; write ctx.ui.notify(message, type)"),
        (
            call_of(),
            lambda event, ctx: ctx.exec("ls", shell=True),
            """a line of a shell, ctx.exec("bash", ["-c", line])""",
        ),
        (
            call_of(),
            lambda event, ctx: ctx.exec("ls", {"timeout": 5}),
            "write timeout=…, cwd=… in place of {'timeout': 5}",
        ),
        (call_of(), lambda event, ctx: ctx.exec(["ls", "-l"]), "wants the program apart: ctx.exec('ls', ['-l'])"),
        (call_of(), lambda event, ctx: ctx.exec([]), "wants the program apart: ctx.exec('PROGRAM', [])"),
        (call_of(), lambda event, ctx: ctx.exec("ls", None), "wants a list of arguments, not None"),
        (call_of(), lambda event, ctx: ctx.branch, "; ctx has agent_id, cwd, exec, has_ui, mode, "),
        (call_of(), lambda event, ctx: event.branch_of_it, "; its fields are .tool_name, "),
        (RESULT, lambda event, ctx: {**event.details}, "; event.details is None, because this tool gave none"),
        (RESULT, lambda event, ctx: event.content + "x", "; the content of a message or a result is a list of blocks"),
        (TURN, lambda event, ctx: event.message.usage["input"], "; the usage of this message is None, because its mod"),
    ],
)
async def test_a_mistake_of_a_newcomer_is_told_with_its_remedy(event: Any, wrong: Any, says: str) -> None:
    """The failure is the error of Python, and after it the line that mends it."""
    runner, errors = runner_of(hook_on(event.type, wrong, inline=True))
    await runner.emit(event)
    assert says in errors[0].error


def test_a_remedy_ends_with_the_right_form() -> None:
    """Nothing stands behind it where no more is to be said."""
    exc = TypeError("HookUI.notify() got an unexpected keyword argument 'level'")
    assert failure_text(exc).endswith("; write ctx.ui.notify(message, type)")


async def test_a_notice_that_is_awaited_is_told_not_to_be() -> None:
    """It returns nothing."""

    async def gate(event: Any, ctx: Any) -> None:
        await ctx.ui.notify("x")

    runner, errors = runner_of(hook_on("tool_call", gate))
    await runner.emit(call_of())
    assert errors[0].error.endswith("return nothing to wait for: call them without await")


def test_no_remedy_is_made_up() -> None:
    """For errors of the hook's own values, whatever the event has."""
    for exc in (
        TypeError("'NoneType' object is not iterable"),
        TypeError('can only concatenate list (not "str") to list'),
        TypeError("frob() got an unexpected keyword argument 'x'"),
        TypeError("Other.confirm() takes 1 positional argument but 2 were given"),
        TypeError("Missing required argument 'zzz'"),
        AttributeError("'Mine' object has no attribute 'x'"),
        AttributeError("x"),
        AttributeError("x", name="x", obj=object()),
        # Python suggests the near name of a foreign object itself.
        AttributeError("x", name="suffx", obj=Path()),
    ):
        assert failure_text(exc, call_of()) == f"{type(exc).__name__}: {exc}"


def test_an_assignment_to_a_missing_field_names_the_fields() -> None:
    """Of a point, of the api, and of a mapping."""
    for kind, says in (
        ("ToolBeforeOutput", "; its fields are .args, .block, .block_reason"),
        ("HookAPI", "; api has on, intercept, register_tool, send, state, start_task and on_unload"),
        ("dict", '; it is a dict: write ["x"] in place of .x'),
    ):
        assert failure_text(AttributeError(f"'{kind}' object has no attribute 'x'")).endswith(says)


@pytest.mark.parametrize(
    ("row", "answer", "says"),
    [
        ("agent_end", {"decision": "block", "reason": "go on"}, "; write return Continue(text)"),
        ("agent_start", {"systemPrompt": "x"}, '; write output.system in api.intercept("chat.system.transform")'),
        ("session:before_clear", {"cancel": True, "message": "x"}, '; write "reason" in place of "message"'),
        ("tool_call", {"block": True, "reson": "x"}, '; did you mean "reason"?'),
        ("tool_call", {"zzz": 1}, "or None"),
    ],
)
def test_a_wrong_key_of_an_answer_is_told_with_the_right_one(row: str, answer: dict[str, Any], says: str) -> None:
    """Also where the same key means another thing at another event."""
    with pytest.raises(TypeError) as caught:
        read_answer(row, SPECS[row], answer)
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda api: api.on("tool_call", print, {"timeout": 5}),
            "in place of {'timeout': 5}; write hookTimeout in the",
        ),
        (
            lambda api: api.on("tool_call", {"tool": "bash"}),
            "write priority=…, on_error=…, inline=…, tool=… in place of",
        ),
        (
            lambda api: api.on(["tool_call", "tool_result"], print),
            "takes one event: subscribe to each of them by a call",
        ),
        (
            lambda api: api.on("session:before_clear", print),
            'write api.on("session"), with event.reason == "before_clear"',
        ),
        (
            lambda api: api.intercept("tool.before", print, {"tool": "bash"}),
            "api.intercept('tool.before', handler) takes",
        ),
        (lambda api: api.intercept("tool_call", print), "'tool_call' is an event, not a point: api.on('tool_call', …)"),
        (lambda api: api.intercept("session:start", print), "is an event, not a point"),
        (lambda api: api.intercept("tool.execute.befor", print), "did you mean 'tool.execute.before'?"),
        (lambda api: api.intercept("tool.befor", print), "did you mean 'tool.before'?"),
        (lambda api: api.intercept("zzz", print), "known are: chat.headers, "),
        (lambda api: api.register_tool("x", print), "takes one tool: a typed function, whose name and docstring"),
    ],
)
def test_a_wrong_subscription_is_told_with_the_right_one(wrong: Any, says: str) -> None:
    """At the line of the hook that made it."""
    with pytest.raises(HookUsageError) as caught:
        wrong(HookAPI("h.py"))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("from agent_hooks import Blok", "; did you mean Block?"),
        ("from agent_hooks import zzzzzz", "; docs/reference.md has its names"),
        (
            "from agent_hooks.events import ToolCall",
            "; all names for hooks are in one module: from agent_hooks import …",
        ),
        ("import agent_hook", "; did you mean agent_hooks?"),
        ("def register(): ...", ": a hook defines `def register(api): ...`"),
        ("def register(api, ctx): ...", ": a hook defines `def register(api): ...`"),
        ("def register(api): api.state.count = 1", '; it is a dict: write ["count"] in place of .count'),
        ("def register(api): api.log('x')", "; api has on, intercept, register_tool, "),
        ("def transform(tool_input, config): ...", "; a transformer belongs in .agent/transformers"),
        (
            "class T:\n    def transform(self, tool_input, config): ...",
            "; a transformer belongs in .agent/transformers",
        ),
        (
            "import json\njson.loads('')",
            "; and there is no register: a hook is no program, it defines `def register(api)",
        ),
    ],
)
async def test_a_hook_that_cannot_be_loaded_is_told_with_the_right_form(tmp_path: Path, source: str, says: str) -> None:
    """The text of the `LoadError` ends with it."""
    (tmp_path / "hook.py").write_text(source)
    (error,) = (await load_hooks(["hook.py"], cwd=tmp_path)).errors
    assert says in error.error


async def test_an_error_of_a_hook_that_is_gone_meanwhile_is_told_as_it_is(tmp_path: Path) -> None:
    """Its text cannot be read again."""
    (tmp_path / "hook.py").write_text("import os\nos.unlink(__file__)\n1 / 0\n")
    (error,) = (await load_hooks(["hook.py"], cwd=tmp_path)).errors
    assert error.error == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ("*", "leave tool= out for every tool"),
        ("mcp__*", "write re.compile('mcp__.*')"),
        ("edit|write", "a list of names"),
    ],
)
async def test_a_matcher_that_is_a_pattern_elsewhere_is_told_in_our_form(tool: str, says: str) -> None:
    """A text is one exact name."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None, tool=tool, inline=True))
    runner.know_tools(["bash", "edit", "write"])
    (error,) = runner.check_matchers()
    assert says in error.error


async def test_an_interceptor_that_returns_its_block_is_told_to_write_it() -> None:
    """At a point that can block nothing, it is told that it returns nothing."""
    mapping = {"block": True}
    for point, says in (
        ("tool.before", ": write output.block = True, and output.block_reason = …"),
        ("tool.after", ""),
    ):
        runner, errors = runner_of()
        runner.interceptors.add(Interceptor("mine", point, lambda *_: mapping))
        await call_tool(runner, "bash", {"command": "ls"})
        assert errors[0].error.endswith(f"return nothing, not {mapping}{says}")


async def test_a_program_with_its_arguments_in_one_text_is_told_to_have_them_apart() -> None:
    """There is no program of that name, as its result says; a missing program alone needs no remedy."""
    for command, says in (("ls -la /", "; the arguments are apart: ctx.exec('ls', ['-la', …])"), ("nope", "directory")):
        assert (await run(command, [], cwd="/")).stderr.endswith(says)
