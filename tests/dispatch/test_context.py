"""The second argument of a handler: the person, a way to run programs, and the place of the event."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_hooks import AgentStart, Block, ExecResult, HookContext, HookRunner, HookUsageError, TurnStart
from agent_hooks.dispatch.context import Awaited, Pending
from agent_hooks.testing import Asked, ScriptedUI
from support import call_of, hook_on, runner_of

LoadHook = Callable[..., Any]


async def context_of(*, event: Any = None, **options: Any) -> HookContext:
    """Return the context that a handler gets from a runner with these options."""
    contexts: list[HookContext] = []
    event = event or AgentStart()
    runner = HookRunner(
        [hook_on(event.type, lambda event, ctx: contexts.append(ctx), inline=True)], **{"cwd": "."} | options
    )
    await runner.emit(event)
    return contexts[0]


# ---- where it is -----------------------------------------------------------------------------------------------------


async def test_a_context_tells_where_the_handler_is(tmp_path: Path) -> None:
    """Paths are absolute; `session_key` is the session's id; `tool_name` is there on tool events only."""
    ctx = await context_of(
        cwd=tmp_path, mode="print", session_file=os.path.relpath(tmp_path / "s.jsonl"), session_id="abc"
    )
    assert ctx.cwd == str(tmp_path)
    assert ctx.session_file == str(tmp_path / "s.jsonl")
    assert (ctx.session_id, ctx.session_key, ctx.mode, ctx.agent_id) == ("abc", "abc", "print", "main")
    assert ctx.tool_name is None
    assert not ctx.has_ui
    ctx = await context_of(event=call_of(), ui=ScriptedUI())
    assert ctx.tool_name == "bash"
    assert ctx.has_ui
    assert ctx.session_file is None
    assert ctx.session_id


async def test_a_context_follows_the_session() -> None:
    """A handler that keeps it sees the new file and the new UI."""
    contexts: list[HookContext] = []
    runner, _ = runner_of(hook_on("agent_start", lambda event, ctx: contexts.append(ctx), inline=True))
    await runner.emit(AgentStart())
    runner.set_session_file("/tmp/new.jsonl", session_id="new")
    runner.set_ui(ScriptedUI())
    [ctx] = contexts
    assert (ctx.session_file, ctx.session_id, ctx.has_ui) == ("/tmp/new.jsonl", "new", True)
    runner.set_session_file("/tmp/other.jsonl")
    assert ctx.session_id == "new"


# ---- the person ------------------------------------------------------------------------------------------------------


async def test_with_nobody_there_every_dialog_answers_at_once_with_its_default(load_hook: LoadHook) -> None:
    """None, False, None, nothing; and `has_ui` is false."""
    hook = await load_hook("""
        seen = []
        def register(api):
            @api.on("agent_start")
            async def ask(event, ctx):
                seen.append(ctx.has_ui)
                seen.append(await ctx.ui.select("Which?", ["a", "b"]))
                seen.append(await ctx.ui.confirm("Sure?", "really"))
                seen.append(await ctx.ui.input("Name?", "Ada"))
                seen.append(ctx.ui.notify("hello", "warning"))
    """)
    runner, errors = runner_of(hook)
    await runner.emit(AgentStart())
    assert hook.module.seen == [False, None, False, None, None]
    assert not errors


async def test_dialogs_reach_the_ui_with_what_the_handler_said() -> None:
    """Options become a list; the defaults of the optional arguments are filled in."""
    seen: list[object] = []

    async def handler(event: AgentStart, ctx: HookContext) -> None:
        seen.append(await ctx.ui.select("Which?", ("a", "b")))
        seen.append(await ctx.ui.confirm("Sure?"))
        seen.append(await ctx.ui.input("Name?"))
        ctx.ui.notify("hello")

    ui = ScriptedUI("b", True, None)
    runner, errors = runner_of(hook_on("agent_start", handler), ui=ui)
    await runner.emit(AgentStart())
    assert seen == ["b", True, None]
    assert ui.asked == [
        Asked("select", "Which?", ["a", "b"]),
        Asked("confirm", "Sure?", ""),
        Asked("input", "Name?", None),
        Asked("notify", "hello", "info"),
    ]
    assert not errors


# ---- the forgotten await ---------------------------------------------------------------------------------------------

FORGOTTEN: list[Callable[[Any], object]] = [
    lambda pending: not pending,
    bool,
    lambda pending: pending == "yes",
    lambda pending: pending != "yes",
    lambda pending: pending in ["yes"],
    lambda pending: "y" in pending,
    list,
    len,
    lambda pending: pending[0],
    lambda pending: pending > 1,
    lambda pending: pending.strip(),
    lambda pending: None,
]


@pytest.mark.parametrize("misuse", FORGOTTEN)
@pytest.mark.parametrize("what", ["confirm", "select", "input", "exec"])
@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_a_forgotten_await_blocks_and_is_named(kind: str, what: str, misuse: Callable[[Any], object]) -> None:
    """No gate opens when a handler tests, compares, uses or drops a dialog in place of awaiting it."""

    def use(ctx: HookContext) -> None:
        match what:
            case "exec":
                pending: Any = ctx.exec("true")
            case "select":
                pending = ctx.ui.select("Which?", [])
            case _:
                pending = getattr(ctx.ui, what)("Sure?")
        misuse(pending)

    async def gate(event: object, ctx: HookContext) -> None:
        use(ctx)

    def plain_gate(event: object, ctx: HookContext) -> None:
        use(ctx)

    ui = ScriptedUI()
    runner, errors = runner_of(hook_on("tool_call", gate if kind == "async def" else plain_gate), ui=ui)
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.cause == "failed"
    name = "ctx.exec(...)" if what == "exec" else f"ctx.ui.{what}(...)"
    assert f"`{name}` was not awaited: write `await {name}`" in verdict.reason
    assert len(errors) == 1
    assert not ui.asked


async def test_a_forgotten_await_is_held_against_its_own_handler_only() -> None:
    """The next handler starts with a clean slate, also in the same dispatch."""
    seen: list[str] = []
    runner, errors = runner_of(
        hook_on("agent_start", lambda event, ctx: ctx.ui.confirm("?") and None, inline=True),
        hook_on("agent_start", lambda event, ctx: seen.append("fine"), path="b.py", inline=True),
    )
    await runner.emit(AgentStart())
    assert seen == ["fine"]
    assert [error.hook_path for error in errors] == ["hook.py"]


async def test_a_dialog_may_be_kept_awaited_in_a_task_or_returned() -> None:
    """It is a coroutine like any other, and its truth is asked for once it is awaited."""
    seen: list[object] = []

    async def handler(event: object, ctx: HookContext) -> None:
        async def wait(pending: Any) -> None:
            seen.append(await pending)

        pending = ctx.ui.confirm("first")
        assert pending in {pending}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, pending)

    runner, errors = runner_of(
        hook_on("turn_start", handler, lambda event, ctx: ctx.ui.confirm("second")), ui=ScriptedUI(True, True)
    )
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    assert seen == [True]
    assert ["returned True" in error.error for error in errors] == [True]  # awaited, and then an answer to nothing


async def test_a_dialog_that_is_awaited_too_late_has_been_reported_and_still_works() -> None:
    """A handler that ends before its task began to ask has forgotten to wait for it."""
    seen: list[object] = []
    async with anyio.create_task_group() as tasks:

        async def wait(pending: Any) -> None:
            seen.append(await pending)

        async def handler(event: object, ctx: HookContext) -> None:
            tasks.start_soon(wait, ctx.ui.confirm("?"))

        runner, errors = runner_of(hook_on("agent_start", handler), ui=ScriptedUI(True))
        await runner.emit(AgentStart())
    assert seen == [True]
    assert ["was not awaited" in error.error for error in errors] == [True]


async def test_a_dialog_can_be_driven_thrown_into_and_closed_by_hand() -> None:
    """As event loops do with coroutines."""
    seen: list[object] = []

    async def slow(asked: object) -> bool:
        try:
            await checkpoint()
        except ValueError:
            seen.append("thrown")
        return True

    def drive(event: object, ctx: HookContext) -> None:
        pending = ctx.ui.confirm("thrown into")
        pending.send(None)
        with pytest.raises(StopIteration) as result:
            pending.throw(ValueError())
        seen.append(result.value.value)
        pending = ctx.ui.confirm("closed")
        pending.send(None)
        pending.close()

    runner, errors = runner_of(hook_on("agent_start", drive, inline=True), ui=ScriptedUI(slow, slow))
    await runner.emit(AgentStart())
    assert seen == ["thrown", True]
    assert not errors
    unbegun = (await context_of()).ui.confirm("never begun")
    unbegun.close()


# ---- programs --------------------------------------------------------------------------------------------------------


async def test_exec_runs_a_program_in_the_agents_directory(tmp_path: Path) -> None:
    """Unless another one is given; a missing program is a result."""
    results: list[ExecResult] = []
    code = "import os, sys; print(os.getcwd()); print('err', file=sys.stderr); sys.exit(3)"
    (tmp_path / "inner").mkdir()

    async def handler(event: object, ctx: HookContext) -> None:
        results.append(await ctx.exec(sys.executable, ["-c", code]))
        results.append(await ctx.exec(sys.executable, ["-c", code], cwd=str(tmp_path / "inner")))
        results.append(await ctx.exec("no-such-program"))
        results.append(await ctx.exec("sleep", ["1000"], timeout=0.02))

    runner = HookRunner([hook_on("agent_start", handler)], cwd=tmp_path)
    await runner.emit(AgentStart())
    here, inner, missing, late = results
    assert here == ExecResult(f"{tmp_path}\n", "err\n", 3)
    assert inner.stdout == f"{tmp_path / 'inner'}\n"
    assert missing.code == 127
    assert late.killed


async def test_exec_wants_a_list_of_arguments() -> None:
    """One string would be taken apart letter by letter; the error shows the right form."""
    ctx = await context_of()
    wrong: Any = "status"
    with pytest.raises(HookUsageError, match=r"ctx\.exec\('git', \['status'\]\)"):
        ctx.exec("git", wrong)


def test_a_dialog_works_after_the_list_of_forgotten_ones_was_emptied() -> None:
    """The list belongs to the context, and the dialog to the handler."""
    forgotten: list[Awaited] = []
    confirm = Awaited("ctx.ui.confirm(...)", "")

    async def dialog() -> bool:
        return True

    answer: Pending[bool] = Pending(confirm, dialog, forgotten)
    assert forgotten == [confirm]
    forgotten.clear()
    with pytest.raises(StopIteration) as ended:
        answer.send(None)
    assert ended.value.value is True


# ---- wrong arguments of dialogs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("notify('x', 'warn')", "there is no type 'warn'; did you mean 'warning'?"),
        ("notify('x', None)", "type is a text, not None; write str(...) around it"),
        ("notify(ValueError('x'))", "message is a text, not ValueError('x'); write str(...) around it"),
        ("select('Which?', 'abc')", "options is a list of texts, not 'abc'"),
        ("select('Which?', None)", "options is a list of texts, not None"),
        ("select('Which?', ['a', 5])", "option is a text, not 5; write str(...) around it"),
        ("select(5, ['a'])", "title is a text, not 5; write str(...) around it"),
        ("confirm('x', 5)", "message is a text, not 5; write str(...) around it"),
        ("input('x', 5)", "placeholder is a text, not 5; write str(...) around it"),
    ],
)
async def test_a_wrong_argument_of_a_dialog_is_named_at_its_call(load_hook: LoadHook, call: str, text: str) -> None:
    """The error has the file and the line of the hook, and nothing reaches the UI."""
    hook = await load_hook(f"""
        def register(api):
            @api.on("agent_start")
            async def start(event, ctx):
                ctx.ui.{call}
    """)
    ui = ScriptedUI()
    runner, errors = runner_of(hook, ui=ui)
    await runner.emit(AgentStart())
    [error] = errors
    assert text in error.error
    assert error.error.startswith("ctx.ui.")
    assert error.file == hook.path
    assert error.line == 5
    assert ui.asked == []
