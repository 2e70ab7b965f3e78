"""The answers that count for later calls, from the question to the call that needs none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from agent_hooks import Ask, HookRunner, SessionEvent, ToolOutput, load_hooks
from agent_hooks.dispatch.remembering import AskedCall
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.config import GuardSettings, OwnRule
from agent_hooks.pipeline.order import preflight
from agent_hooks.pipeline.wrapping import wrap_tool
from agent_hooks.records import Records
from agent_hooks.remembering import FILE, LOCK
from agent_hooks.remembering import store as store_of_answers
from agent_hooks.storage.locks import try_lock, wait_for_lock
from agent_hooks.testing import ScriptedUI
from agent_hooks.values.tool import Tool

pytestmark = pytest.mark.anyio
PUSH, REMOVE = "git push --force origin me/x", "rm -rf dist2"
ASKING = """
from agent_hooks import Ask


def register(api):
    @api.on("tool_call", tool="bash")
    def gate(event, ctx):
        return Ask("Deploy?", "to production")
"""


class Bash:
    """A tool that notes the commands which run."""

    name = "bash"
    description = "runs a command"
    input_schema: ClassVar[Any] = {"type": "object", "properties": {"command": {"type": "string"}}}

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
        self.ran.append(input["command"])
        return ToolOutput("done")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The agent home; it exists."""
    path = tmp_path / "home" / ".agent"
    path.mkdir(parents=True)
    monkeypatch.setenv("AGENT_HOME", str(path))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository."""
    path = tmp_path / "app"
    path.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=path, check=True)
    return path


class Seat:
    """An agent with guards in a project: `await seat.call(command)` tells whether the command ran."""

    def __init__(self, project: Path, home: Path | None, *answers: object, **options: Any) -> None:
        self.ui = ScriptedUI(*answers)
        self.runner = HookRunner(
            options.pop("hooks", []),
            cwd=project,
            ui=options.pop("ui", self.ui),
            guards=options.pop("guards", builtin_guards()),
            answers_home=home,
            **options,
        )
        self.bash = Bash()
        self.tool: Tool = wrap_tool(self.bash, self.runner)

    async def call(self, command: str) -> bool:
        before = len(self.bash.ran)
        await self.tool.execute("1", {"command": command})
        return len(self.bash.ran) > before

    @property
    def offered(self) -> list[tuple[str, ...]]:
        return [each.answers for each in self.ui.questions]


async def test_always_is_written_shown_and_asks_no_more(project: Path, home: Path) -> None:
    """Another process of another session runs the same command unasked, and any other command is asked about."""
    first = Seat(project, home, "always")
    assert await first.call(PUSH)
    assert await first.call(PUSH)
    (line,) = (each.title for each in first.ui.asked if each.method == "notify")
    assert line.startswith("answer 1, until ")
    assert line.endswith(f"{PUSH} (git-remote); to end it: agent-hooks guard exceptions --revoke 1")
    later = Seat(project, home, False)
    assert await later.call(PUSH)
    assert later.ui.questions == []
    assert not await later.call("git push --force origin main")
    assert later.offered == [("no", "once", "session", "always")]


async def test_one_kept_answer_never_excuses_another_program(project: Path, home: Path) -> None:
    """Of `git push --force && rm -rf x`, the kept push covers its program, and the person is asked about the other."""
    seat = Seat(project, home, "always", False, "always")
    assert await seat.call(PUSH)
    assert not await seat.call(f"{PUSH} && {REMOVE}")
    assert "dist2" in seat.ui.questions[1].title
    assert "push" not in seat.ui.questions[1].title
    assert await seat.call(REMOVE)
    assert await seat.call(f"{PUSH} && {REMOVE}")
    assert len(seat.ui.questions) == 3


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf dist2 src",
        "cd src && rm -rf dist2",
        "rm -rf 'dist2 '",
        "rm -rf dist?",
        "sudo rm -rf dist2",
        "docker exec box sh -c 'rm -rf dist2'",
        "DIR=/etc; rm -rf dist2",
        "rm -rf dist2 > src/a.py",
    ],
)
async def test_a_kept_answer_fits_its_exact_words_only(project: Path, home: Path, command: str) -> None:
    """Another word, directory, user, container, variable or file is another program."""
    (project / "src").mkdir()
    seat = Seat(project, home, "always", False)
    assert await seat.call(REMOVE)
    assert not await seat.call(command)
    assert len(seat.ui.questions) == 2


@pytest.mark.parametrize(
    "command",
    [
        f"export https_proxy=evil; {PUSH}",
        f"https_proxy=evil; export https_proxy; {PUSH}",
        f"declare -x https_proxy=evil; {PUSH}",
        f"export https_proxy; https_proxy=evil; {PUSH}",
        f"set -a; https_proxy=evil; {PUSH}",
        f"set -o allexport; https_proxy=evil; {PUSH}",
        f"export $(cat names); {PUSH}",
        f"read GIT_DIR <<< x; {PUSH}",
        f"unset GIT_DIR; {PUSH}",
        f"push() {{ {PUSH}; }}; GIT_DIR=x push",
    ],
)
async def test_a_program_with_another_environment_is_another_program(project: Path, home: Path, command: str) -> None:
    """The command line can send the same words to another place by a variable, in small letters too."""
    seat = Seat(project, home, "always", False)
    assert await seat.call(PUSH)
    assert not await seat.call(command)


@pytest.mark.parametrize("command", [f"declare n=1; {PUSH}", f"n=1; {PUSH}", f"set -e; {PUSH}", f"export -p; {PUSH}"])
async def test_a_variable_that_no_program_gets_changes_nothing(project: Path, home: Path, command: str) -> None:
    """A variable in small letters that is not exported belongs to the shell alone."""
    seat = Seat(project, home, "always")
    assert await seat.call(PUSH)
    assert await seat.call(command)


async def test_other_arguments_of_the_call_belong_to_the_answer(project: Path, home: Path) -> None:
    """An argument may send the command to another machine; a description and a time limit change nothing."""
    ran: list[bool] = []
    seat = Seat(project, home, "always", *[False] * 3)
    for more in (
        {},
        {"description": "push it", "timeout": 5, "run_in_background": True},
        {"host": "node2"},
        {"elevated": True},
        {"sandbox_permissions": ["require_escalated"]},
    ):
        before = len(seat.bash.ran)
        await seat.tool.execute("1", {"command": PUSH, **more})
        ran.append(len(seat.bash.ran) > before)
    assert ran == [True, True, False, False, False]


async def test_the_same_program_in_other_words_of_a_shell_is_the_same(project: Path, home: Path) -> None:
    """Quotes and a shell around it change nothing about the program."""
    seat = Seat(project, home, "always")
    assert await seat.call(REMOVE)
    assert await seat.call('''r''m  -rf "dist2"''')
    assert await seat.call("bash -c 'rm -rf dist2'; echo done")


@pytest.mark.parametrize("command", ["$CMD -rf /x", "rm -rf d*", "git push --force origin $BRANCH"])
async def test_no_answer_is_kept_for_a_call_that_cannot_be_read(project: Path, home: Path, command: str) -> None:
    """Only No and Yes once are offered for an undecidable call, an unknown word and a glob."""
    seat = Seat(project, home, False)
    assert not await seat.call(command)
    assert seat.offered == [("no", "once")]


async def test_no_answer_lifts_a_wall(project: Path, home: Path) -> None:
    """A wall asks nothing, so nothing about it can be kept, also beside a kept answer."""
    seat = Seat(project, home, "always")
    assert await seat.call(REMOVE)
    assert not await seat.call(f"{REMOVE}; rm -rf /")
    assert len(seat.ui.questions) == 1


async def test_an_answer_for_good_replaces_a_person_who_is_there_and_no_other(project: Path, home: Path) -> None:
    """Without a person, the call is blocked as before."""
    assert await Seat(project, home, "always").call(PUSH)
    assert not await Seat(project, home, ui=None).call(PUSH)


async def test_an_answer_for_the_session_ends_with_it(project: Path, home: Path) -> None:
    """It is in no file, and another runner does not know it."""
    seat = Seat(project, home, "session")
    assert await seat.call(PUSH)
    assert await seat.call(PUSH)
    assert not (home / FILE).exists()
    other = Seat(project, home, False)
    assert not await other.call(PUSH)


@pytest.mark.parametrize("reason", ["clear", "switch", "branch", "shutdown"])
async def test_a_clear_ends_the_answers_of_the_session(project: Path, reason: Any) -> None:
    """So do a switch to another session, a branch and the end; a reload does not."""
    seat = Seat(project, None, "session", False)
    assert await seat.call(PUSH)
    await seat.runner.emit(SessionEvent(reason="shutdown", reload=True))
    assert await seat.call(PUSH)
    await seat.runner.emit(SessionEvent(reason=reason))
    assert not await seat.call(PUSH)
    assert seat.offered[0] == ("no", "once", "session")


async def test_an_answer_for_the_session_counts_for_its_session_and_agent(project: Path) -> None:
    """A sub-agent is asked about again, and so is another session of the same runner."""
    seat = Seat(project, None, "session", False, False)
    assert await seat.call(PUSH)
    for change in ({"agent_id": "helper"}, {"session_id": "other"}):
        place = replace(seat.runner.engine.surroundings, **change)
        judged = await preflight(seat.bash, "2", {"command": PUSH}, runner=seat.runner, surroundings=place)
        assert judged.block is not None
    assert await seat.call(PUSH)


async def test_no_answer_is_kept_in_another_agent(project: Path, home: Path) -> None:
    """Its own question is for that call; an answer that was given for always elsewhere counts there."""
    seat = Seat(project, home, "always")
    assert await seat.call(PUSH)
    place = replace(seat.runner.engine.surroundings, mode="bridge")
    call, memory = AskedCall(tool_name="bash", input={}, surroundings=place), seat.runner.engine.remembering
    ask = Ask("x", by="builtin:command-safety-guard", rule="git-remote", words=tuple(PUSH.split()))
    assert memory.offered(ask, call) == ()
    assert memory.recall(ask, call).startswith("answer 1 of ")


async def hooked(project: Path, home: Path, *answers: object, text: str = ASKING, **options: Any) -> Seat:
    """Return an agent with a hook that asks."""
    file = project.parent / "deploy.py"
    file.write_text(text)
    return Seat(project, home, *answers, hooks=await load_hooks([str(file)], cwd=project), guards=[], **options)


async def test_always_for_a_hook_counts_for_the_same_hook_title_tool_and_input(project: Path, home: Path) -> None:
    """Another input is asked about, and the file has the hook's path and SHA-256, the title, the tool and a digest."""
    assert await (await hooked(project, home, "always")).call("deploy")
    later = await hooked(project, home, False, False)
    assert await later.call("deploy")
    assert not await later.call("deploy all")
    (kept,) = json.loads((home / FILE).read_text())["answers"]
    assert (kept["hook"], kept["title"], kept["tool"]) == (str(project.parent / "deploy.py"), "Deploy?", "bash")
    assert kept["words"] == ["bash deploy"]
    assert len(kept["sha256"]) == len(kept["input"]) == 64
    assert "deploy all" not in (home / FILE).read_text()


async def test_an_answer_without_the_line_of_its_call_counts_too(project: Path, home: Path) -> None:
    """Version 0.1 kept none; the question names the call where there is one."""
    await (await hooked(project, home, "always")).call("deploy")
    store = store_of_answers.Store(str(home))
    [kept] = store.find().kept
    assert str(kept.about) == "Deploy?: bash deploy (" + kept.by + ")"
    about = replace(kept.about, words=())
    assert str(about) == f"Deploy? ({kept.by})"
    store.revoke(kept.number)
    store.add(about, kept.place)
    seat = await hooked(project, home)
    assert await seat.call("deploy")
    assert seat.ui.questions == []


@pytest.mark.parametrize("mode", ["", 'ISOLATION = "process"\n'])
async def test_a_changed_hook_voids_its_answers(project: Path, home: Path, mode: str) -> None:
    """One byte is enough, in a process of its own too; the unchanged hook has its answer again."""
    async with (await hooked(project, home, "always", text=mode + ASKING)).runner:
        pass
    for text, answers, ran in ((ASKING, ("always",), True), (ASKING + "#", (False,), False), (ASKING, (), True)):
        seat = await hooked(project, home, *answers, text=mode + text)
        async with seat.runner:
            assert await seat.call("deploy") is ran


async def test_a_changed_module_beside_a_hook_voids_its_answers(project: Path, home: Path) -> None:
    """The hook may decide by it."""
    text = "import limits\n" + ASKING
    (project.parent / "limits.py").write_text("MOST = 1\n")
    assert await (await hooked(project, home, "always", text=text)).call("deploy")
    (project.parent / "limits.py").write_text("MOST = 2\n")
    assert not await (await hooked(project, home, False, text=text)).call("deploy")


async def test_a_hook_can_forbid_remembering(project: Path, home: Path) -> None:
    """`Ask(remember=False)` offers No and Yes once."""
    seat = await hooked(project, home, True, text=ASKING.replace('"to production"', '"to production", remember=False'))
    assert await seat.call("deploy")
    assert seat.offered == [("no", "once")]


async def test_a_hook_cannot_pass_its_question_for_one_of_a_guard(project: Path, home: Path) -> None:
    """The words and the path of an `Ask` are set by the runner."""
    assert await Seat(project, home, "always").call(PUSH)
    forged = (
        'Ask("Push?", by="builtin:command-safety-guard", rule="git-remote", '
        'words=("git", "push", "--force", "origin", "me/x"))'
    )
    seat = await hooked(project, home, False, text=ASKING.replace('Ask("Deploy?", "to production")', forged))
    assert not await seat.call("deploy")


async def test_a_kept_answer_has_records_of_its_writing_and_its_use(project: Path, home: Path) -> None:
    """The line of a use names the answer and the call that it allowed."""
    seat = Seat(project, home, "always", records=Records(client="test"), session_id="s1")
    async with seat.runner:
        assert await seat.call(PUSH)
        assert await seat.call(PUSH)
    lines = [
        json.loads(line) for file in (home / "records").glob("s1.*.jsonl") for line in file.read_text().splitlines()
    ]
    found = [each for each in lines if each["kind"] == "remembered"]
    assert [each["event"] for each in found] == ["written", "used"]
    assert {(each["number"], each["rule"], each["program"]) for each in found} == {(1, "git-remote", PUSH)}
    (second,) = [each["id"] for each in lines if each["kind"] == "decision"][1:]
    assert found[1]["parent"] == second
    decisions = [each["verdict"] for each in lines if each["kind"] == "decision"]
    assert decisions == ["allow", "allow"]


async def test_an_answer_that_cannot_be_written_counts_once_and_the_person_is_told(project: Path, home: Path) -> None:
    """The call runs, because the person allowed it, and the next one is asked about."""
    (home / LOCK).mkdir()
    seat = Seat(project, home, "always", False)
    assert await seat.call(PUSH)
    (line,) = (each.title for each in seat.ui.asked if each.method == "notify")
    assert line.startswith("the answer counts for this call only: ")
    assert not await seat.call(PUSH)


async def test_a_damaged_file_opens_nothing(project: Path, home: Path) -> None:
    """The person is asked, with and without a person any call that was allowed is not, and Always is not offered."""
    assert await Seat(project, home, "always").call(PUSH)
    (home / FILE).write_text("{")
    seat = Seat(project, home, False)
    assert not await seat.call(PUSH)
    assert seat.offered == [("no", "once", "session")]
    assert not await Seat(project, home, ui=None).call(PUSH)


async def test_questions_of_a_guard_and_a_hook_need_an_answer_each(project: Path, home: Path) -> None:
    """An answer for the guard's question leaves the hook's."""
    assert await Seat(project, home, "always").call(PUSH)
    file = project.parent / "deploy.py"
    file.write_text(ASKING)
    both = Seat(project, home, False, hooks=await load_hooks([str(file)], cwd=project))
    assert not await both.call(PUSH)
    assert both.ui.questions[0].title == "Deploy?"


async def test_a_rule_of_ones_own_that_asks_is_remembered_too(project: Path, home: Path) -> None:
    """Its question has the words of the program that meets the pattern."""
    rule = OwnRule(id="no-prod", pattern="prod", reason="production is for people", ask=True)
    guards = builtin_guards(GuardSettings(rules=(rule,)))
    seat = Seat(project, home, "always", False, guards=guards)
    assert await seat.call("deploy prod")
    assert await seat.call("ls; deploy prod")
    assert not await seat.call("deploy prod; deploy prod --all")
    assert seat.offered[0] == ("no", "once", "session", "always")


async def test_the_event_loop_runs_while_an_answer_waits_for_the_lock(project: Path, home: Path) -> None:
    """Another process holds the lock of the file until the loop has run; the answer is kept then."""
    held = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    assert try_lock(held)
    seat, waits = Seat(project, home, "always"), Event()
    assert seat.runner.engine.remembering is not None

    def noted(lock: int, patience: float) -> bool:
        waits.set()
        return wait_for_lock(lock, patience)

    ran: list[bool] = []

    async def call() -> None:
        ran.append(await seat.call(PUSH))

    with pytest.MonkeyPatch.context() as patch, anyio.fail_after(60):
        patch.setattr(store_of_answers, "wait_for_lock", noted)
        patch.setattr(store_of_answers, "LOCK_TIMEOUT", 60.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            while not waits.is_set():
                await anyio.lowlevel.checkpoint()
            assert ran == []
            os.close(held)
    assert ran == [True]
    assert len(json.loads((home / FILE).read_text())["answers"]) == 1
