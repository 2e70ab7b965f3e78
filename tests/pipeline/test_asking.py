"""The question about a tool call: rules that ask and rules that block, the answers, and the answers that are kept."""

from __future__ import annotations

from pathlib import Path
from subprocess import run
from typing import Any

import anyio
import pytest

from agent_hooks import Ask, Block, Cancel, HookRunner, SilentUI
from agent_hooks.dispatch.context import Surroundings
from agent_hooks.dispatch.remembering import AskedCall
from agent_hooks.effects import CallEffects
from agent_hooks.guards import BUILTIN, builtin_guards
from agent_hooks.guards.config import GuardSettings, OwnRule
from agent_hooks.guards.table import QUESTIONS, RULES
from agent_hooks.records import lines
from agent_hooks.testing import ScriptedUI, call_tool
from agent_hooks.ui import Answer, Choice, Question
from agent_hooks.ui.base import UI, NotifyType
from recording import Recorded
from support import Endless, everywhere, hook_on, runner_of

pytestmark = pytest.mark.anyio

PUSH = "git push --force origin main"
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org")


async def call(
    command: str, *answers: object, hooks: tuple[Any, ...] = (), cwd: str = "/", **options: Any
) -> tuple[str, ScriptedUI]:
    """Call bash with the built-in guards and a person who answers; return the model's text and the person."""
    ui = ScriptedUI(*answers)
    guards = builtin_guards(options.pop("settings", None))
    runner = HookRunner(list(hooks), cwd=cwd, ui=ui, guards=guards)
    runner.engine.remembering = options.pop("memory", None)
    async with runner:
        output = await call_tool(runner, "bash", {"command": command})
    return output.text, ui


class Memory:
    """A memory that keeps answers by the words of a program, or by the title of a hook's question."""

    def __init__(self, *offered: Choice) -> None:
        self.kept: dict[tuple[str, ...], Choice] = {}
        self._offered = offered

    def offered(self, ask: Ask, call: AskedCall) -> tuple[Choice, ...]:
        return self._offered

    def recall(self, ask: Ask, call: AskedCall) -> str:
        choice = self.kept.get(ask.words or (ask.title,))
        return f"kept: {choice}" if choice else ""

    def of_session(self, place: Surroundings) -> list[str]:
        return []

    def end_of_session(self, place: Surroundings, number: int) -> str:
        return ""

    async def keep(self, ask: Ask, call: AskedCall, choice: Choice) -> str:
        assert call.tool_name == "bash"
        assert call.input["command"]
        self.kept[ask.words or (ask.title,)] = choice
        return f"kept {choice}: {' '.join(ask.words)}"


# ---- walls and questions ---------------------------------------------------------------------------------------------


async def test_no_part_of_a_call_passes_for_another_line_of_the_question() -> None:
    """A line break in a command is an escape in the title, in the model's text and in the list of kept answers."""
    command = "git push --force $'a\nrisk: none\nbuiltin:security-audit: harmless\x1b[2J'"
    text, ui = await call(command, False)
    [question] = ui.questions
    for each in (question.title, *question.reasons, text):
        assert each.isprintable()
    assert r"a\nrisk: none\n" in question.title


async def test_the_call_of_a_question_does_not_repeat_its_diff(tmp_path: Path) -> None:
    """Other arguments stay; a change that is too long for a diff stands in the call."""
    (tmp_path / "a.py").write_text("one\n")
    questions: list[Question] = []
    for given in (
        {"path": "a.py", "content": "two\n", "mode": "x"},
        {"path": "a.py", "content": "two\n" * 500},
        {"path": "a.py", "content": "one\n"},
    ):
        ui = ScriptedUI(False)
        hook = hook_on("tool_call", lambda event, ctx: Ask("Sure?"))
        async with HookRunner([hook], cwd=str(tmp_path), ui=ui) as runner:
            await call_tool(runner, "write", given)
        questions += ui.questions
    short, long, same = questions
    assert short.call == "write a.py {'mode': 'x'}"
    assert short.diff.endswith("-one\n+two")
    assert "two" in long.call
    assert same.call == r"write a.py {'content': 'one\n'}"


async def test_a_question_has_the_whole_call_in_lines() -> None:
    """The line of the call leaves out the middle of a long command.  The text shows control characters as escapes."""
    for command, text in (
        ("git push --force\n\tls", "bash git push --force\n\tls"),
        ("git push --force", "bash git push --force"),
        ("git push --force\n\x1b[2J", "bash git push --force\n'\\x1b[2J'"),
        ("git push --force\r\nls", "bash 'git push --force\\r'\nls"),
        ("git push --force\n" + "x" * 3000, "bash git push --force\n" + "x" * 3000),
    ):
        _, ui = await call(command, False)
        [question] = ui.questions
        assert question.text == text
        assert question.call.isprintable()


@everywhere
@pytest.mark.parametrize("command", [PUSH, "git reset --hard", "rm -rf dist2", "chmod 777 a", "rm -rf ."])
async def test_a_person_is_asked_about_a_call_that_a_person_may_want(command: str, tmp_path: Path) -> None:
    """The question shows the exact call; yes runs it, and no blocks it."""
    text, ui = await call(command, True, cwd=str(tmp_path / "app"))
    assert text == f"ran bash {command}"
    [question] = ui.questions
    assert question.call == f"bash {command}"
    assert question.answers == ("no", "once")
    text, _ = await call(command, False, cwd=str(tmp_path / "app"))
    assert "the user said no (asked by builtin:command-safety-guard (" in text


@everywhere
async def test_without_a_person_such_a_call_is_blocked() -> None:
    """No interceptor can lift the block, because there is no question."""
    runner, _ = runner_of(guards=builtin_guards())
    output = await call_tool(runner, "bash", {"command": PUSH})
    assert output.text == f"overwrites or deletes published history: {PUSH} (builtin:command-safety-guard (git-remote))"


@everywhere
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -rf ~",
        "rm -rf /etc/*",
        "rm -rf ..",
        "find / -delete",
        "mkfs.ext4 /dev/sda1",
        "cat ~/.ssh/id_rsa",
        "echo x > .agent/settings.json",
        f"{PUSH}; cat .env",
        f"{PUSH}; rm -rf /usr",
    ],
)
async def test_a_wall_blocks_with_a_person_too(command: str) -> None:
    """It destroys the machine or a home, hands out secrets, or changes the files that guard the agent."""
    text, ui = await call(command, cwd="/home/dev/code/app")
    assert not ui.questions
    assert text.endswith(")")
    assert "the user" not in text


def test_each_rule_is_either_a_wall_or_a_question() -> None:
    """The packs are questions."""
    for row in BUILTIN.values():
        assert not set(row.walls) & set(row.questions)
        assert set(row.packs) <= QUESTIONS
        assert set(row.walls) <= set(RULES)
    assert "git-remote" in QUESTIONS
    assert not {"disk", "read-ssh-keys", "write-guard-settings"} & QUESTIONS


@everywhere
async def test_all_questions_of_guards_and_hooks_become_one() -> None:
    """Each finding of a guard is named, so that no harmless part of a command hides another one."""
    hook = hook_on("tool_call", lambda event, ctx: Ask("Really?", "says the hook"), path="gate.py", inline=True)
    text, ui = await call(f"{PUSH} && rm -rf dist2", True, hooks=(hook,))
    assert text.startswith("ran ")
    [question] = ui.questions
    assert question.title.endswith("; Really?")
    assert [reason.partition(":")[0] for reason in question.reasons] == ["builtin", "builtin", "gate.py"]
    assert "git-remote" in question.message
    assert "dist2" in question.message


@everywhere
async def test_an_own_rule_blocks_unless_it_asks() -> None:
    """A pattern that takes too long blocks in both cases."""
    rules = (
        OwnRule(id="no-prod", pattern="prod", reason="production is for people"),
        OwnRule(id="stage", pattern="stage", reason="ask Ann first", ask=True),
    )
    settings = GuardSettings(rules=rules)
    text, ui = await call("deploy prod", settings=settings)
    assert (text, ui.questions) == ("production is for people (settings:guards.rules (no-prod))", [])
    text, ui = await call("deploy stage", True, settings=settings)
    assert (text, [each.title for each in ui.questions]) == ("ran bash deploy stage", ["ask Ann first"])
    text, ui = await call("deploy stage prod", settings=settings)
    assert (text[:10], ui.questions) == ("production", [])


@everywhere
async def test_an_own_rule_that_asks_blocks_without_a_person() -> None:
    """The text is that of a rule that blocks."""
    settings = GuardSettings(rules=(OwnRule(id="stage", pattern="stage", reason="ask Ann first", ask=True),))
    runner, _ = runner_of(guards=builtin_guards(settings))
    assert (await call_tool(runner, "bash", {"command": "deploy stage"})).text == (
        "ask Ann first (settings:guards.rules (stage))"
    )


# ---- UIs and answers -------------------------------------------------------------------------------------------------


class Plain:
    """A UI of an embedding program from before `ask`."""

    def __init__(self, answer: object) -> None:
        self.said = answer
        self.seen: list[tuple[str, str]] = []

    async def select(self, title: str, options: list[str]) -> str | None:
        return None

    async def confirm(self, title: str, message: str) -> bool:
        self.seen.append((title, message))
        return self.said  # type: ignore[return-value]  # from a careless UI

    async def input(self, title: str, placeholder: str | None) -> str | None:
        return None

    def notify(self, message: str, type: NotifyType) -> None:
        """Show nothing."""


class Derived(Plain, UI):
    """A UI that inherits `ask` of the protocol."""


class Silent(SilentUI):
    """A UI that overrides one method."""

    def __init__(self, answer: object) -> None:
        self.said = answer

    async def confirm(self, title: str, message: str) -> bool:
        return self.said  # type: ignore[return-value]  # from a careless UI


class Scripted(ScriptedUI):
    """A scripted person with a `confirm` of its own."""

    async def confirm(self, title: str, message: str) -> bool:
        return self._answers[0]  # type: ignore[return-value]  # from a careless UI


@everywhere
@pytest.mark.parametrize("kind", [Plain, Derived, Silent, Scripted])
@pytest.mark.parametrize(("answer", "runs"), [(True, True), (False, False), (None, False), ("yes", False), (1, False)])
async def test_a_ui_without_an_ask_of_its_own_confirms(kind: Any, answer: object, runs: bool) -> None:
    """Only `True` is yes, and it counts once."""
    ui = kind(answer)
    runner, _ = runner_of(ui=ui, guards=builtin_guards())
    output = await call_tool(runner, "bash", {"command": PUSH})
    assert (output.text == f"ran bash {PUSH}") is runs
    if isinstance(ui, Plain):
        [(title, message)] = ui.seen
        assert title == f"overwrites or deletes published history: {PUSH}"
        assert message.splitlines()[:2] == [
            f"bash {PUSH}",
            "risk: discards published history and sends commits to another machine",
        ]


@everywhere
@pytest.mark.parametrize("answer", [True, None, "once", Answer("always"), Cancel()])
async def test_an_answer_that_was_not_offered_blocks(answer: object) -> None:
    """So does a value that is no answer."""

    class OddUI(SilentUI):
        async def ask(self, question: Question) -> Answer:
            return answer  # type: ignore[return-value]  # from a careless UI

    runner, _ = runner_of(ui=OddUI(), guards=builtin_guards())
    output = await call_tool(runner, "bash", {"command": PUSH})
    assert "the question could not be shown: TypeError: ui.ask(question) returns an Answer with one of" in output.text


def test_an_answer_is_one_of_four() -> None:
    """The error names them."""
    with pytest.raises(ValueError, match="no, once, session, always, not 'yes'"):
        Answer("yes")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="Answer\\(text\\) wants a str"):
        Answer("no", 1)  # type: ignore[arg-type]  # the mistake


@everywhere
async def test_the_model_reads_the_reason_for_no_and_never_how_to_allow_the_call() -> None:
    """Nor does the person in the question, which is the way to allow it."""
    text, ui = await call(PUSH, Answer("no", "use a branch of your own"))
    assert text == (
        f"overwrites or deletes published history: {PUSH}: the user said no: use a branch of your own "
        "(asked by builtin:command-safety-guard (git-remote))"
    )
    assert "--allow-once" not in ui.questions[0].message


@everywhere
async def test_the_persons_copy_of_a_block_without_a_person_has_the_remedy() -> None:
    """The model's copy has none."""
    after: list[Any] = []
    runner, _ = runner_of(hook_on("after_tool_call", lambda event, ctx: after.append(event)), guards=builtin_guards())
    output = await call_tool(runner, "bash", {"command": "$CMD -rf /"})
    assert "guards.exceptions" not in output.text
    assert output.text.endswith("no person is here to answer (asked by builtin:command-safety-guard (rm-rf))")
    assert after[0].block_reason.endswith("--allow-once rm-rf")


# ---- risk and diff ---------------------------------------------------------------------------------------------------


@everywhere
async def test_the_risk_counts_the_files_whose_changes_are_lost(tmp_path: Path) -> None:
    """git counts them without reading their content, so no filter of the repository runs."""
    _repository(tmp_path)
    _, ui = await call("git reset --hard", False, cwd=str(tmp_path))
    assert ui.questions[0].risk == "discards uncommitted changes in 3 files"
    _, ui = await call("git checkout -- a b", False, cwd=str(tmp_path))
    assert ui.questions[0].risk == "discards uncommitted changes in 2 files"
    _, ui = await call("git clean -fd", False, cwd=str(tmp_path))
    assert ui.questions[0].risk == "deletes 1 file that git does not know"
    assert not (tmp_path / "filtered").exists()


def _repository(path: Path) -> None:
    """Make a repository with three changed files, one unknown file, and a filter that leaves a trace."""
    for name in "abc":
        (path / name).write_text("old")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        run([*GIT, *words], cwd=path, check=True)
    run([*GIT, "config", "filter.x.clean", f"touch {path / 'filtered'}"], cwd=path, check=True)
    (path / ".git/info/attributes").write_text("* filter=x\n")
    for name in "abc":
        (path / name).write_text("newer")
    (path / "unknown").write_text("x")


@everywhere
async def test_a_question_about_an_edit_has_its_diff(tmp_path: Path) -> None:
    """A new file has lines that are added only; a file that is no text is not shown."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "blob").write_bytes(b"\xff\xfe")
    hook = hook_on("tool_call", lambda event, ctx: Ask("Change it?"), path="gate.py")
    diffs = []
    calls = [
        ("write", {"path": "a.txt", "content": "one\nthree\n"}),
        ("write", {"path": "new.txt", "content": "x\n"}),
        ("write", {"path": "blob", "content": "x\n"}),
        ("edit", {"path": "a.txt", "oldText": "two", "newText": "2"}),
        ("read", {"path": "a.txt"}),
    ]
    for tool, given in calls:
        ui = ScriptedUI(False)
        runner = HookRunner([hook], ui=ui, cwd=tmp_path)
        await call_tool(runner, tool, given)
        diffs.append([line for line in ui.questions[0].diff.splitlines() if line[:3] not in ("---", "+++")])
    assert diffs[0] == ["@@ -1,2 +1,2 @@", " one", "-two", "+three"]
    assert diffs[1] == ["@@ -0,0 +1 @@", "+x"]
    assert diffs[2] == []
    assert diffs[3] == ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert diffs[4] == []


# ---- kept answers ----------------------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("choice", ["session", "always"])
async def test_a_kept_answer_lets_the_same_call_run_unasked(choice: Choice) -> None:
    """The person is told of the kept answer; another program in the line is asked about."""
    memory = Memory("session", "always")
    text, ui = await call(PUSH, choice, memory=memory)
    assert text == f"ran bash {PUSH}"
    assert ui.questions[0].answers == ("no", "once", "session", "always")
    assert ui.asked[-1].title == f"kept {choice}: {PUSH}"
    text, ui = await call(PUSH, memory=memory)
    assert (text, ui.questions) == (f"ran bash {PUSH}", [])
    _, ui = await call(f"{PUSH} && rm -rf dist2", False, memory=memory)
    [question] = ui.questions
    assert "git-remote" not in question.message
    _, ui = await call("git push --force origin 'main x'", False, memory=memory)
    assert len(ui.questions) == 1


@everywhere
@pytest.mark.parametrize("command", ["$CMD -rf x", "rm -rf $DIR/x", f"{PUSH}; $CMD -rf x", "rm -rf 'unclosed"])
async def test_no_answer_is_kept_for_a_call_that_cannot_be_decided(command: str) -> None:
    """Nor for one whose words are not all known."""
    _, ui = await call(command, False, memory=Memory("session", "always"))
    assert ui.questions[0].answers == ("no", "once")


@everywhere
@pytest.mark.parametrize("answer", [Ask("Sure?", remember=False), {"ask": {"title": "Sure?", "remember": False}}])
async def test_a_hook_forbids_that_an_answer_is_kept(answer: Any) -> None:
    """The memory is not even asked for one."""
    memory = Memory("session", "always")
    memory.kept["Sure?",] = "always"
    hook = hook_on("tool_call", lambda event, ctx: answer, path="gate.py", inline=True)
    _, ui = await call("ls", False, hooks=(hook,), memory=memory)
    assert ui.questions[0].answers == ("no", "once")
    hook = hook_on("tool_call", lambda event, ctx: Ask("Sure?"), path="gate.py", inline=True)
    text, ui = await call("ls", hooks=(hook,), memory=memory)
    assert (text, ui.questions) == ("ran bash ls", [])


@everywhere
async def test_only_answers_that_can_be_kept_for_every_question_are_offered() -> None:
    """One question of several that can be kept for a session only limits them all."""

    class Half(Memory):
        def offered(self, ask: Ask, call: AskedCall) -> tuple[Choice, ...]:
            return ("session",) if ask.title == "Sure?" else ("session", "always")

    hook = hook_on("tool_call", lambda event, ctx: Ask("Sure?"), path="gate.py", inline=True)
    _, ui = await call(PUSH, False, hooks=(hook,), memory=Half())
    assert ui.questions[0].answers == ("no", "once", "session")


@everywhere
@pytest.mark.parametrize("method", ["offered", "recall", "keep"])
async def test_a_memory_that_fails_keeps_nothing(method: str) -> None:
    """The failure is reported, and the person is asked each time."""

    def fail(*_: object) -> Any:
        raise OSError("disk full")

    memory = Memory("session", "always")
    setattr(memory, method, fail)
    ui = ScriptedUI("once" if method == "offered" else "always", False)
    runner, errors = runner_of(ui=ui, guards=builtin_guards())
    runner.engine.remembering = memory
    assert (await call_tool(runner, "bash", {"command": PUSH})).text == f"ran bash {PUSH}"
    assert "the user said no" in (await call_tool(runner, "bash", {"command": PUSH})).text
    assert {error.handler for error in errors} == {method}
    assert "disk full" in errors[0].error


@everywhere
async def test_a_kept_answer_never_lifts_a_denial_nor_helps_without_a_person() -> None:
    """Interceptors of `permission.ask` still deny, and a call without a person is blocked."""
    memory = Memory("session", "always")
    memory.kept["Sure?",] = "always"
    hook = hook_on("tool_call", lambda event, ctx: Ask("Sure?"), path="gate.py", inline=True)
    runner, _ = runner_of(hook)
    runner.engine.remembering = memory
    output = await call_tool(runner, "bash", {"command": "ls"})
    assert output.text == "Sure?: no person is here to answer (asked by gate.py)"


@everywhere
async def test_a_kept_answer_that_lets_a_call_run_is_in_the_records(recorded: Recorded) -> None:
    """The question has all that was asked, and the answer names the kept one."""
    memory = Memory("session", "always")
    memory.kept[tuple(PUSH.split())] = memory.kept["Sure?",] = "always"
    ui = ScriptedUI()
    hook = hook_on("tool_call", lambda event, ctx: Ask("Sure?"), path="gate.py", inline=True)
    async with recorded.runner(hook, ui=ui, guards=builtin_guards()) as runner:
        runner.engine.remembering = memory
        output = await call_tool(runner, "bash", {"command": PUSH})
    assert (output.text, ui.questions) == (f"ran bash {PUSH}", [])
    asked, answer = recorded.line(lines.Question), recorded.line(lines.Answer)
    assert asked.title == f"overwrites or deletes published history: {PUSH}; Sure?"
    assert asked.by == "builtin:command-safety-guard (git-remote), gate.py"
    assert (answer.reply, answer.who, answer.text) == ("yes", "remembered", "kept: always")


@everywhere
async def test_a_memory_without_a_line_for_the_person_shows_none() -> None:
    """The answer is kept all the same."""

    class Quiet(Memory):
        async def keep(self, ask: Ask, call: AskedCall, choice: Choice) -> str:
            await super().keep(ask, call, choice)
            return ""

    memory = Quiet("session")
    _, ui = await call(PUSH, "session", memory=memory)
    assert [asked.method for asked in ui.asked] == ["confirm"]
    assert memory.kept == {tuple(PUSH.split()): "session"}


@everywhere
async def test_effects_that_cannot_be_found_leave_the_question_without_a_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is reported, and the title is the risk."""

    def fail(*_: object) -> None:
        raise OSError("no such mount")

    monkeypatch.setattr(CallEffects, "_effects", fail)
    ui = ScriptedUI(True)
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: Ask("Sure?"), path="gate.py"), ui=ui)
    assert (await call_tool(runner, "bash", {"command": "ls"})).text == "ran bash ls"
    [question] = ui.questions
    assert (question.title, question.risk) == ("Sure?", "Sure?")
    [error] = errors
    assert (error.hook_path, error.handler, error.outcome) == ("gate.py", "ask", "continued")
    assert error.error == "the risk of the call is not known: OSError: no such mount"


@everywhere
async def test_a_cancellation_while_the_person_thinks_goes_on_to_the_caller() -> None:
    """The tool does not run."""
    thinking = Endless()

    class Slow(SilentUI):
        async def ask(self, question: Question) -> Answer:
            return await thinking()  # type: ignore[no-any-return]  # it never returns

    runner, errors = runner_of(ui=Slow(), guards=builtin_guards())
    outputs: list[Any] = []

    async def calls() -> None:
        outputs.append(await call_tool(runner, "bash", {"command": PUSH}))

    async with anyio.create_task_group() as group:
        group.start_soon(calls)
        await thinking.begun.wait()
        group.cancel_scope.cancel()
    assert (outputs, errors) == ([], [])


# ---- the scripted person ---------------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize(
    ("scripted", "runs"),
    [(True, True), (False, False), ("once", True), ("no", False), (Answer("once"), True), (Answer("no", "x"), False)],
)
async def test_a_scripted_person_answers_a_question(scripted: object, runs: bool) -> None:
    """`True` is Yes once and `False` is No; an answer and its name are taken too."""
    text, ui = await call(PUSH, scripted)
    assert text.startswith("ran ") is runs
    assert [asked.method for asked in ui.asked] == ["confirm"]


@everywhere
async def test_a_scripted_answer_of_a_wrong_kind_is_named() -> None:
    """The call is blocked."""
    text, _ = await call(PUSH, "perhaps")
    assert "use True, False, an Answer, or one of 'no', 'once', 'session', 'always'" in text


def test_a_block_of_a_hook_says_nothing_for_the_person() -> None:
    """Only the runner puts the person's words into a block."""
    assert Block("x", cause="user", by="a.py", said="why").model_text == "x: the user said no: why (asked by a.py)"
