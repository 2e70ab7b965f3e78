"""The test doubles keep their promises to the authors of hooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_hooks import AgentEnd, AgentStart, HookContext, HookUsageError, SessionEvent, ToolOutput
from agent_hooks.testing import (
    Asked,
    LoadHook,
    MakeRunner,
    RecordedEvents,
    ScriptedUI,
    StandInTool,
    StepClock,
    call_tool,
    gate_event,
)
from agent_hooks.ui import Answer, Question
from support import call_of, hook_on, runner_of


async def test_a_scripted_ui_answers_from_its_list() -> None:
    """Values, functions of the dialog and async functions; everything asked is kept."""

    async def slowly(asked: Asked) -> str:
        await checkpoint()
        return asked.title.upper()

    ui = ScriptedUI("b", False, None, lambda asked: asked.more[0], slowly, "typed", None)
    assert await ui.select("which", ["a", "b"]) == "b"
    assert await ui.confirm("sure", "") is False
    assert await ui.select("which", ["a"]) is None
    assert await ui.select("which", ["first", "second"]) == "first"
    assert await ui.input("name", None) == "NAME"
    assert await ui.input("name", None) == "typed"
    assert await ui.input("name", "hint") is None
    ui.notify("hello", "info")
    assert [asked.method for asked in ui.asked] == ["select", "confirm", "select", "select", *["input"] * 3, "notify"]
    assert ui.asked[-2:] == [Asked("input", "name", "hint"), Asked("notify", "hello", "info")]


async def test_a_scripted_ui_without_an_answer_left_raises_and_names_the_dialog() -> None:
    """A dialog the test did not expect must not pass as a no."""
    with pytest.raises(AssertionError, match=r"no answer to Asked.*Sure"):
        await ScriptedUI().confirm("Sure?", "")


async def test_a_scripted_ui_takes_only_true_or_false_for_a_confirm() -> None:
    """A script that is out of step with the dialogs must not pass as a yes or a no."""
    with pytest.raises(TypeError, match=r"confirm\('Sure\?'\) with 'b'; use True or False"):
        await ScriptedUI("b").confirm("Sure?", "")


async def test_a_scripted_ui_answers_a_question_about_a_call_and_keeps_it() -> None:
    """`True` is Yes once, `False` is No; the name of an answer and an `Answer` count too, and nothing else."""
    question = Question(title="Push?", call="bash git push", answers=("no", "once", "session"))
    ui = ScriptedUI(True, False, "session", Answer("no", "use a branch"), "perhaps")
    assert [await ui.ask(question) for _ in range(4)] == [
        Answer("once"),
        Answer("no"),
        Answer("session"),
        Answer("no", "use a branch"),
    ]
    with pytest.raises(TypeError, match="answers the question 'Push\\?' with 'perhaps'; use True, False, an Answer"):
        await ui.ask(question)
    assert ui.questions == [question] * 5
    assert ui.asked == [Asked("confirm", "Push?", question.message)] * 5


def test_the_event_of_a_gate_has_the_effects_of_its_call(tmp_path: Path) -> None:
    """A handler can be tested without a runner: the relative paths of the call begin at the directory of the test."""
    effects = gate_event("bash", {"command": "rm x && mv a b"}, tmp_path).effects
    assert effects.deletes(str(tmp_path / "x"))
    assert effects.deletes("a")
    assert effects.writes("b")
    assert not effects.unknown


async def test_recorded_events_keep_what_was_emitted_and_what_failed() -> None:
    """`types` names the reason of a session event; `of` picks one type."""
    runner, _ = runner_of(hook_on("agent_start", lambda event, ctx: 1 / 0, inline=True))
    recorded = RecordedEvents(runner)
    await runner.emit(SessionEvent(reason="start"))
    await runner.emit(AgentStart())
    await runner.emit(call_of())
    assert recorded.types == ["session:start", "agent_start", "tool_call"]
    assert recorded.of("tool_call") == [call_of()]
    assert [error.error for error in recorded.errors] == ["ZeroDivisionError: division by zero"]


async def test_a_step_clock_moves_deadlines_and_nothing_else() -> None:
    """It waits until a handler's time runs; `skip` does not wait."""
    ended: list[str] = []

    async def slow(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")

    runner, errors = runner_of(hook_on("agent_start", slow), hook_on("agent_end", slow))
    clock = StepClock(runner)
    clock.skip(1000)
    assert clock.now() == 1000
    for event in (AgentStart(), AgentEnd()):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.emit, event)
            await clock.advance(29)
            assert len(ended) == len(errors)
            await clock.advance(1)
    assert ended == ["slow", "slow"]
    assert [error.error for error in errors] == ["timed out after 30 s"] * 2
    assert clock.now() == 1060


# ---- tool calls and fixtures -----------------------------------------------------------------------------------------

GATE = """
    from agent_hooks import Ask, Block, Rewrite

    def register(api):
        @api.on("before_tool_call", tool="bash")
        async def quietly(event, ctx):
            return Rewrite({**event.params, "timeout": 5})

        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            if "rm" in event.input["command"]:
                return Block("no deleting")
            return Ask("Sure?") if "push" in event.input["command"] else None
"""


async def test_a_gate_is_tested_with_one_call(hook_runner: MakeRunner) -> None:
    """The call is blocked with reason and hook, or asked about, or reaches a stand-in that shows its input."""
    runner = await hook_runner(GATE, ui=ScriptedUI(True, False))
    blocked = await call_tool(runner, "bash", {"command": "rm x"})
    assert (blocked.is_error, blocked.text) == (True, "no deleting (hooks/hook.py)")
    assert not (await call_tool(runner, "bash", {"command": "push"})).is_error
    assert (await call_tool(runner, "bash", {"command": "push"})).is_error
    passed = await call_tool(runner, "bash", {"command": "ls"})
    assert (passed.text, passed.details) == ('ran bash ls {"timeout":5}', {"command": "ls", "timeout": 5})


async def test_a_stand_in_answers_what_the_test_needs_and_keeps_its_inputs(hook_runner: MakeRunner) -> None:
    """Text, an output, a function, an async one, or one that raises, which is an error result."""

    async def slowly(tool_input: dict[str, Any]) -> str:
        await checkpoint()
        return str(tool_input["n"])

    def fail(tool_input: dict[str, Any]) -> None:
        raise OSError("disk full")

    runner = await hook_runner()
    answers: list[tuple[Any, str, bool]] = [
        ("text", "text", False),
        (ToolOutput("bad", is_error=True), "bad", True),
        (lambda tool_input: f"got {tool_input['n']}", "got 1", False),
        (slowly, "1", False),
        (fail, "OSError: disk full", True),
    ]
    for answer, text, is_error in answers:
        tool = StandInTool("count", answer)
        output = await call_tool(runner, "count", {"n": 1}, tool)
        assert (output.text, output.is_error) == (text, is_error)
        assert tool.inputs == [{"n": 1}]


async def test_a_tool_of_another_name_is_refused(hook_runner: MakeRunner) -> None:
    """Or a gate of `bash` would be tested with a call of `sh`."""
    with pytest.raises(HookUsageError, match="calls 'bash', but its tool is named 'sh'"):
        await call_tool(await hook_runner(), "bash", {}, StandInTool("sh"))


async def test_a_runner_takes_files_source_and_loaded_hooks(
    hook_runner: MakeRunner, load_hook: LoadHook, tmp_path: Path
) -> None:
    """In the order given; each source is a file of its own, and options go to the runner."""
    source = "def register(api): api.on('agent_start', lambda event, ctx: None)"
    (tmp_path / "file.py").write_text(source)
    loaded = await load_hook(source, "loaded.py")
    runner = await hook_runner(source, tmp_path / "file.py", str(tmp_path / "file.py"), source, loaded, mode="print")
    assert [hook.name for hook in runner.hooks] == ["hook", "file", "file", "hook4", "loaded"]
    assert (runner.mode, runner.cwd, runner.engine.surroundings.has_ui) == ("print", str(tmp_path), False)
    assert (await hook_runner(cwd="/")).cwd == "/"


async def test_a_path_is_looked_for_from_the_root_directory(
    load_hook: LoadHook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The directory in which pytest was started does not matter."""
    monkeypatch.chdir(tmp_path)
    hook = await load_hook("examples/hooks/permission_gate.py")
    assert hook.handlers["tool_call"]


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ("nowhere.py", "nowhere.py: no such file"),
        ("def register(api):\n    oops", r"hook\.py:2: NameError(.|\n)*Traceback"),
    ],
)
async def test_a_hook_that_cannot_be_loaded_fails_the_test_with_the_reason(
    hook_runner: MakeRunner, hook: str, words: str
) -> None:
    """With the traceback, if there is one."""
    with pytest.raises(AssertionError, match=words):
        await hook_runner(hook)


async def test_a_hook_with_a_background_task_runs_in_an_entered_runner(hook_runner: MakeRunner) -> None:
    """The fixture leaves entering to the test, which knows when it wants the task to end."""
    source = """
        import anyio

        def register(api):
            @api.start_task
            async def watch():
                api.send("watching")
                await anyio.sleep_forever()
    """
    heard: list[str] = []
    told = anyio.Event()

    def hear(text: str, attachments: object, hook: str) -> None:
        heard.append(text)
        told.set()

    runner = await hook_runner(source)
    runner.set_send_handler(hear)
    async with runner:
        await told.wait()
    assert heard == ["watching"]


def test_the_test_doubles_do_without_pytest() -> None:
    """Only the fixtures need pytest; other test runners can use the other doubles."""
    code = "import sys, agent_hooks.testing; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
