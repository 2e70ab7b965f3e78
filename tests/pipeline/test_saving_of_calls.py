"""Which calls may change files, and so need a checkpoint before them; where turns begin and end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_hooks import HookRunner, checkpoints
from agent_hooks.checkpoints import keeping
from agent_hooks.checkpoints.store import MAX_FILE_SIZE
from agent_hooks.effects import CallEffects
from agent_hooks.host.tools import builtin_tools
from agent_hooks.pipeline import saving
from agent_hooks.pipeline.order import new_call
from agent_hooks.pipeline.saving import changes_files
from agent_hooks.testing import ScriptedUI
from agent_hooks.turn_notes import open_turns, session_note, store_of, stores_directory
from agent_hooks.values.events import TRIAL
from working import Agent, git, repository

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.fixture
def repo(project: Path) -> Path:
    """Give a repository."""
    return repository(project)


async def turns(repo: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return the prompts and files of the turns, the oldest first."""
    return [(turn.work.prompt, turn.paths) for turn in reversed(await checkpoints.turns(repo))]


@pytest.mark.parametrize(
    ("tool", "input", "changes"),
    [
        ("read", {"path": "a"}, False),
        ("grep", {"pattern": "a"}, False),
        ("bash", {"command": "cat a | grep b | sort"}, False),
        ("bash", {"command": "git status"}, False),
        ("write", {"path": "a", "content": "b"}, True),
        ("edit", {"path": "a", "oldText": "b", "newText": "c"}, True),
        ("bash", {"command": "echo b > a"}, True),
        ("bash", {"command": "sed -i s/a/b/ a"}, True),
        ("bash", {"command": "rm a"}, True),
        ("bash", {"command": "make"}, True),
        ("bash", {"command": "git reset --hard"}, True),
        ("bash", {"command": "unfinished 'quote"}, True),
        ("bash", {"command": "git stash drop"}, True),
        ("bash", {"command": "pip install six"}, True),
    ],
)
async def test_a_call_that_writes_or_deletes_or_is_not_known_needs_a_checkpoint(
    project: Path, tool: str, input: dict[str, Any], changes: bool
) -> None:
    """A shell command that only reads needs none."""
    found = next(each for each in builtin_tools(cwd=str(project)) if each.name == tool)
    assert changes_files(new_call(found, "1", input, runner=HookRunner([], cwd=project))) is changes


async def test_a_call_whose_effects_cannot_be_found_needs_a_checkpoint(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may change any file."""

    def fail(*_: object) -> None:
        raise RecursionError

    call = new_call(builtin_tools(cwd=str(project))[0], "1", {"command": "ls"}, runner=HookRunner([], cwd=project))
    assert not changes_files(call)
    monkeypatch.setattr(CallEffects, "_effects", fail)
    call = new_call(call.tool, "1", {"command": "ls"}, runner=HookRunner([], cwd=project))
    assert changes_files(call)


async def test_which_calls_are_known_to_destroy_something(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the effects cannot be found, it may be anything."""

    def fail(*_: object) -> None:
        raise RecursionError

    bash = next(each for each in builtin_tools(cwd=str(repo)) if each.name == "bash")
    (repo / "one").write_text("mine")

    def found(command: str) -> bool:
        call = new_call(bash, "1", {"command": command}, runner=HookRunner([], cwd=repo))
        return saving.destroys(call, str(repo))

    destroying = ("git reset --hard", "git stash drop", "mkfs.ext4 /dev/sda1", "rm one", "echo 2 > one")
    assert [found(command) for command in destroying] == [True] * 5
    assert [found(command) for command in ("echo 2 > two", "cat one", "touch /elsewhere/three")] == [False] * 3
    monkeypatch.setattr(CallEffects, "_effects", fail)
    assert found("ls")


# ---- turns -----------------------------------------------------------------------------------------------------------


async def test_a_prompt_ends_a_turn_that_had_no_end_and_a_long_one_is_cut(repo: Path) -> None:
    """Its files are those of the turn before, and the list shows the beginning of a prompt in one line."""
    agent = Agent(repo)
    await agent.begin("first\n  line")
    await agent.shell("echo 1 > one")
    await agent.turn("x" * 500, "echo 2 > two")
    assert await turns(repo) == [("first line", ("one",)), ("x" * 199 + "…", ("two",))]
    assert session_note("one") is None


async def test_each_response_that_changed_files_is_a_turn_of_the_same_prompt(repo: Path) -> None:
    """A response of reads is none."""
    agent = Agent(repo)
    engine = agent.runner.engine
    await saving.next_turn(engine, agent.place, 1)
    await agent.begin("do it")
    await saving.next_turn(engine, agent.place, 3)
    await agent.shell("echo 1 > one")
    await saving.next_turn(engine, agent.place, 5)
    await agent.shell("echo 2 > two")
    await agent.end()
    assert await turns(repo) == [("do it", ("one",)), ("do it", ("two",))]
    assert [each.entry_index for each in await checkpoints.list(repo)] == [3, 5]
    await agent.end()
    await saving.next_turn(engine, agent.place, 7)
    assert session_note("one") is None


async def test_a_call_without_a_prompt_begins_a_turn(repo: Path) -> None:
    """An agent may not report its prompts; a sub-agent's prompt begins no turn, and its calls belong to the session's."""
    agent = Agent(repo)
    engine = agent.runner.engine
    sub = replace(agent.place, agent_id="sub")
    await saving.begin_turn(engine, "for the sub-agent", sub, 1)
    assert session_note("one") is None
    await agent.shell("echo 1 > one")
    await saving.begin_turn(engine, "for the sub-agent", sub, 1)
    await saving.next_turn(engine, sub, 2)
    await agent.shell("echo 2 > two")
    await agent.end()
    assert await turns(repo) == [("", ("one", "two"))]


async def test_a_file_that_is_too_large_is_named_once(repo: Path) -> None:
    """The other files are saved."""
    agent = Agent(repo)
    with (repo / "large").open("wb") as file:
        file.truncate(MAX_FILE_SIZE + 1)
    for number in range(2):
        await agent.turn("do it", f"echo {number} > one")
    [warning] = [asked.title for asked in agent.ui.asked if "not in the checkpoints" in asked.title]
    assert "large" in warning


async def test_calls_at_the_same_time_are_marked_while_another_turn_goes_on(repo: Path) -> None:
    """Without another turn, the note counts the calls that run, and no tree is saved."""
    one, two = Agent(repo, "one"), Agent(repo, "two")
    store = store_of(str(repo))
    await one.begin()
    await one.shell("echo 1 > one")
    assert list(open_turns(store).values()) == [0]
    await two.begin()
    await two.shell("echo 2 > two")
    await one.shell("echo 1 > more")
    await two.end()
    await one.end()
    assert open_turns(store) == {}
    assert [paths for _, paths in await turns(repo)] == [("more", "one"), ("two",)]


async def test_the_trial_of_an_installation_saves_nothing(repo: Path) -> None:
    """`doctor` sends an event of its own through the bridge."""
    agent = Agent(repo, TRIAL)
    await agent.shell("echo 1 > one")
    assert not Path(store_of(str(repo))).exists()


async def test_where_checkpoints_end_no_turn_is_kept_any_more(repo: Path) -> None:
    """The settings may change in the middle of a run."""
    agent = Agent(repo)
    for _ in range(2):
        saving.forget_turns(agent.runner.engine)
    await agent.turn("do it", "echo 1 > one")
    await saving.next_turn(agent.runner.engine, agent.place, 1)
    assert not Path(stores_directory()).exists()
    saving.keep_turns(agent.runner.engine, "pi")
    await agent.turn("do more", "echo 2 > two")
    assert await turns(repo) == [("do more", ("two",))]


async def test_a_fault_in_a_checkpoint_warns_once_and_the_calls_go_on(
    repo: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next call tries again; the next turn of the session does not warn again."""
    begin = keeping.begin

    async def fail(cwd: str, work: object) -> object:
        raise ZeroDivisionError("a fault")

    agent = Agent(repo)
    monkeypatch.setattr(keeping, "begin", fail)
    await agent.turn("one", "echo 1 > one", "echo 2 > two")
    await agent.turn("two", "echo 3 > three")
    [warning] = agent.warnings
    assert warning.endswith("will not know this turn: ZeroDivisionError: a fault")
    assert (repo / "three").read_text() == "3\n"
    assert len(caplog.records) == 3
    monkeypatch.setattr(keeping, "begin", begin)
    await agent.turn("three", "echo 4 > four")
    assert await turns(repo) == [("three", ("four",))]


async def test_a_call_that_destroys_something_is_a_question_when_its_checkpoint_takes_too_long(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other calls continue with a warning. A new file destroys nothing."""
    monkeypatch.setattr(keeping, "BEFORE_A_CALL", 0.0)
    (repo / "one").write_text("mine")
    agent = Agent(repo)
    agent.ui = ScriptedUI(False, True)
    agent.runner.set_ui(agent.ui)
    await agent.begin()
    await agent.shell("echo 2 > two")
    assert "it took longer than 0 s" in agent.warnings[0]
    with pytest.raises(AssertionError, match="could not bring that back"):
        await agent.shell("rm one")
    assert (repo / "one").exists()
    note = session_note("one")
    assert note is not None
    assert note.running == []
    await agent.shell("rm one")
    assert not (repo / "one").exists()
    assert "its checkpoint was not made in time" in agent.ui.questions[0].title
    assert len(agent.ui.questions) == 2


async def test_a_turn_in_two_working_trees_saves_each_before_its_first_change(repo: Path, tmp_path: Path) -> None:
    """The directory of an agent may change in the middle of a turn."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    agent = Agent(repo)
    await agent.begin("do it")
    await agent.shell("echo 1 > one")
    second = Agent(other)
    second.runner.engine.keeper = agent.runner.engine.keeper
    await second.shell("echo 2 > two")
    await agent.end()
    assert await turns(repo) == [("do it", ("one",))]
    assert await turns(other) == [("do it", ("two",))]
