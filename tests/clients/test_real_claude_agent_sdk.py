"""The real Claude Agent SDK, with the client that it bundles: a runner of the program judges its calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, ResultMessage, ToolPermissionContext

from agent_hooks import AddContext, Ask, Block, Continue, HookAPI, Replace, Rewrite, Stop
from clients.claude_seat import bash
from clients.client import PATIENCE
from clients.sdk_seat import SdkSeat
from model_server import Say
from support import ROOT, hook_of, hook_on, runner_of

pytestmark = [
    pytest.mark.client,
    # The SDK warns that `allowed_tools` and modes need no permission.  Hooks ask all the same.
    pytest.mark.filterwarnings("ignore::claude_agent_sdk.types.CanUseToolShadowedWarning"),
]

SOURCES: list[dict[str, Any]] = [{}, {"setting_sources": []}, {"setting_sources": ["user", "project"]}]
NAMES = ["absent", "none", "user-and-project"]


@pytest.fixture
def sdk(project: Path, home: Path) -> Iterator[SdkSeat]:
    """Give the SDK in an empty project."""
    sdk = SdkSeat(project, home)
    with closing(sdk.client):
        yield sdk


def blocking(word: str, seen: list[str] | None = None) -> Callable[[Any, Any], Block | None]:
    """Return a gate that blocks the commands with a word, and writes down all commands."""

    def gate(event: Any, ctx: Any) -> Block | None:
        if seen is not None:
            seen.append(event.input["command"])
        return Block(f"no {word} here") if word in event.input["command"] else None

    return gate


@pytest.mark.parametrize("sources", SOURCES, ids=NAMES)
async def test_a_block_holds_whatever_settings_the_client_reads(sdk: SdkSeat, sources: dict[str, Any]) -> None:
    """The model reads the reason, and each call is judged once."""
    seen: list[str] = []
    runner, _ = runner_of(hook_on("tool_call", blocking("first", seen), tool="bash"))
    run = await sdk.judge(
        runner, Say(calls=[bash("touch first")]), Say(calls=[bash("touch second")]), Say("done"), **sources
    )
    assert seen == ["touch first", "touch second"]
    assert run.results[0].is_error
    assert "no first here" in run.results[0].text
    assert (sdk.has("first"), sdk.has("second")) == (False, True)


# The hooks of the project, which are installed in the client.
THEIRS = """
    from agent_hooks import Block, Rewrite

    def register(api):
        @api.on("before_tool_call", tool="bash")
        def rewrite(event, ctx):
            return Rewrite({**event.params, "command": event.params["command"].replace("become", "made")})

        @api.on("tool_call", tool="bash")
        def gate(event, ctx):
            with open("log", "a") as log:
                log.write(event.input["command"] + "\\n")
            return Block("the project says no") if "theirs" in event.input["command"] else None
"""


@pytest.mark.parametrize("sources", SOURCES, ids=NAMES)
async def test_the_stricter_of_the_runner_and_the_installed_hooks_holds(sdk: SdkSeat, sources: dict[str, Any]) -> None:
    """The runner always judges.  The entries of an installation do so too, where the client reads the user's settings."""
    sdk.hook(THEIRS)
    seen: list[str] = []
    runner, _ = runner_of(hook_on("tool_call", blocking("ours", seen), tool="bash"))
    names = ("ours", "theirs", "fine")
    calls = [Say(calls=[bash(f"touch {name}")]) for name in names]
    run = await sdk.judge(runner, *calls, Say("done"), **sources)
    are_read = sources != {"setting_sources": []}
    assert [sdk.has(name) for name in names] == [False, not are_read, True]
    assert "no ours here" in run.results[0].text
    assert ("the project says no" in run.results[1].text) == are_read
    # A call that the installed hooks block does not come to the runner's gates.
    assert seen == ["touch ours", *([] if are_read else ["touch theirs"]), "touch fine"]
    assert sdk.lines() == ([f"touch {name}" for name in names] if are_read else [])


# With these, the client reads the entries of an installation. With the last ones, it reads no mod of the user.
WITH_ENTRIES: list[dict[str, Any]] = [{}, {"setting_sources": ["user", "project"]}, {"setting_sources": ["local"]}]


@pytest.mark.parametrize("sources", WITH_ENTRIES, ids=["absent", "user-and-project", "local"])
async def test_a_call_that_one_side_changes_is_judged_by_the_other(sdk: SdkSeat, sources: dict[str, Any]) -> None:
    """A rewrite must not lead past a gate: of the runner, or of the project."""
    sdk.hook(THEIRS)

    def rewrite(event: Any, ctx: Any) -> Rewrite:
        return Rewrite({**event.params, "command": event.params["command"].replace("pass", "theirs")})

    seen: list[str] = []
    runner, _ = runner_of(
        hook_on("before_tool_call", rewrite, tool="bash"),
        hook_on("tool_call", blocking("made-ours", seen), path="b.py"),
    )
    calls = [Say(calls=[bash(f"touch {name}")]) for name in ("become-ours", "pass", "fine")]
    run = await sdk.judge(runner, *calls, Say("done"), **sources)
    assert [sdk.has(name) for name in ("made-ours", "theirs", "fine")] == [False, False, True]
    assert "no made-ours here" in run.results[0].text
    assert "the project says no" in run.results[1].text
    # Each form of a call is judged once on each side.
    assert seen == ["touch made-ours", "touch theirs", "touch fine"]
    assert sdk.lines() == ["touch made-ours", "touch pass", "touch theirs", "touch fine"]


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "dontAsk"])
async def test_a_question_goes_to_can_use_tool_in_each_mode(sdk: SdkSeat, mode: str) -> None:
    """The function gets the reason and decides.  No rule of the client answers before it."""
    asked: list[str | None] = []

    async def can_use_tool(
        name: str, input: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        asked.append(context.decision_reason)
        return PermissionResultAllow() if "yes" in input["command"] else PermissionResultDeny(message="I said no")

    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Ask("Sure?", "it writes"), tool="bash"))
    calls = [Say(calls=[bash(f"touch {name}")]) for name in ("yes", "no")]
    run = await sdk.judge(runner, *calls, Say("done"), permission_mode=mode, can_use_tool=can_use_tool)
    assert (sdk.has("yes"), sdk.has("no")) == (True, False)
    assert [result.is_error for result in run.results] == [False, True]
    assert run.results[1].text == "I said no"
    assert len(asked) == 2
    assert all(reason and "Sure?" in reason for reason in asked)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "dontAsk"])
async def test_a_question_without_can_use_tool_denies(sdk: SdkSeat, mode: str) -> None:
    """Nobody can be asked."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Ask("Sure?", "it writes"), tool="bash"))
    run = await sdk.judge(runner, Say(calls=[bash("touch made")]), Say("done"), permission_mode=mode)
    assert run.results[0].is_error
    assert "Sure?" in run.results[0].text
    assert not sdk.has("made")


async def test_a_rewritten_call_is_what_runs(sdk: SdkSeat) -> None:
    """The hook uses our words, and the client gets its own."""

    def rewrite(event: Any, ctx: Any) -> Rewrite:
        return Rewrite({**event.params, "path": event.params["path"].replace("old", "new")})

    runner, _ = runner_of(hook_on("before_tool_call", rewrite, tool="write"))
    file = {"file_path": str(sdk.project / "old.txt"), "content": "text"}
    await sdk.judge(runner, Say(calls=[("Write", file)]), Say("done"), setting_sources=[])
    assert (sdk.project / "new.txt").read_text() == "text"
    assert not sdk.has("old.txt")


async def test_a_secret_in_a_result_does_not_reach_the_model(sdk: SdkSeat) -> None:
    """A hook replaces the text, in a shell's output and in a file."""
    (sdk.project / "a.txt").write_text("token = hush-4711\n")
    replace = hook_on("tool_result", lambda event, ctx: Replace(content=event.text.replace("hush-4711", "***")))
    runner, _ = runner_of(replace)
    calls = [bash("cat a.txt"), ("Read", {"file_path": str(sdk.project / "a.txt")})]
    run = await sdk.judge(runner, *(Say(calls=[call]) for call in calls), Say("done"), setting_sources=[])
    assert ["token = ***" in result.text for result in run.results] == [True, True]
    assert "hush-4711" not in str([request.body for request in run.requests])


async def test_texts_for_the_model_come_with_a_prompt_a_call_and_a_result(sdk: SdkSeat) -> None:
    """`AddContext` at each of these events."""
    runner, _ = runner_of(
        hook_on("agent_start", lambda event, ctx: AddContext("with the prompt")),
        hook_on("tool_result", lambda event, ctx: AddContext("with the result"), path="b.py"),
    )
    run = await sdk.judge(runner, Say(calls=[bash("true")]), Say("done"), setting_sources=[])
    assert "with the prompt" in str(run.requests[0].body)
    assert "with the result" in str(run.requests[1].body)
    assert "with the result" not in str(run.requests[0].body)


async def test_a_blocked_prompt_does_not_reach_the_model(sdk: SdkSeat) -> None:
    """The next one does."""

    def register(api: HookAPI) -> None:
        @api.intercept("message.before")
        def gate(input: Any, output: Any) -> None:
            if "forbidden" in output.message:
                output.blocked, output.reason = True, "not this prompt"

    runner, _ = runner_of(hook_of(register))
    run = await sdk.judge(runner, Say("done"), prompts=["the forbidden one", "hello"], setting_sources=[])
    assert len(run.requests) == 1
    assert "hello" in str(run.requests[0].body)
    assert "forbidden" not in str(run.requests[0].body)


async def test_a_hook_ends_the_run(sdk: SdkSeat) -> None:
    """The model is not asked again, and the next prompt begins another run."""
    stopping = hook_on("tool_result", lambda event, ctx: Stop("enough") if "x" in event.text else None)
    runner, _ = runner_of(stopping)
    run = await sdk.judge(
        runner,
        Say(calls=[bash("echo x")]),
        Say(calls=[bash("touch next")]),
        Say("done"),
        prompts=["go", "go on"],
        setting_sources=[],
    )
    assert len(run.requests) == 3
    assert sdk.has("next")


async def test_a_hook_keeps_the_agent_going(sdk: SdkSeat) -> None:
    """The model gets the text, once."""
    runner, _ = runner_of(hook_on("agent_end", lambda event, ctx: None if event.continued else Continue("now test it")))
    run = await sdk.judge(runner, Say("I am done"), Say("tested"), setting_sources=[])
    assert len(run.requests) == 2
    assert "now test it" in str(run.requests[1].body)
    assert isinstance(sdk.said[-1], ResultMessage)
    assert sdk.said[-1].result == "tested"


async def test_calls_of_a_sub_agent_are_judged_and_known_as_such(sdk: SdkSeat) -> None:
    """They have an `agent_id`, and so does the sub-agent's end."""
    seen: list[tuple[str, str]] = []

    def gate(event: Any, ctx: Any) -> Block | None:
        seen.append((ctx.agent_id, event.tool_name))
        return Block("not for a helper") if "deny" in event.input.get("command", "") else None

    runner, _ = runner_of(
        hook_on("tool_call", gate),
        hook_on("agent_end", lambda event, ctx: seen.append((ctx.agent_id, "end")), path="b.py"),
    )
    task = {"description": "look", "prompt": "look around", "run_in_background": False}
    await sdk.judge(
        runner,
        Say(calls=[("Agent", task)]),
        Say(calls=[bash("touch deny")]),
        Say(calls=[bash("touch fine")]),
        Say("I looked"),
        Say("done"),
        setting_sources=[],
    )
    assert (sdk.has("deny"), sdk.has("fine")) == (False, True)
    helper = seen[1][0]
    assert helper != "main"
    assert seen == [("main", "Agent"), (helper, "bash"), (helper, "bash"), (helper, "end"), ("main", "end")]


async def test_a_command_in_the_text_of_a_skill_is_judged(sdk: SdkSeat) -> None:
    """It has an event of its own."""
    for name in ("known", "unknown"):
        skill = sdk.project / f".claude/skills/{name}/SKILL.md"
        skill.parent.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {name}\nallowed-tools: Bash(touch:*)\n---\n"
        skill.write_text(f"{head}Result: !`touch made-{name}`\n")
    runner, _ = runner_of(hook_on("tool_call", blocking("unknown"), tool="bash"))
    calls = [Say(calls=[("Skill", {"skill": name})]) for name in ("known", "unknown")]
    await sdk.judge(runner, *calls, Say("done"), setting_sources=["project"])
    assert (sdk.has("made-known"), sdk.has("made-unknown")) == (True, False)


async def test_calls_of_one_message_are_each_judged(sdk: SdkSeat) -> None:
    """The client asks about them at the same time."""
    seen: list[str] = []
    runner, _ = runner_of(hook_on("tool_call", blocking("2", seen), tool="bash"))
    run = await sdk.judge(
        runner, Say(calls=[bash(f"touch {number}") for number in range(4)]), Say("done"), setting_sources=[]
    )
    assert sorted(seen) == [f"touch {number}" for number in range(4)]
    assert [result.is_error for result in run.results] == [False, False, True, False]
    assert [sdk.has(str(number)) for number in range(4)] == [True, True, False, True]


def test_the_example_obeys_the_hooks_that_are_approved(sdk: SdkSeat) -> None:
    """It asks at the terminal."""
    sdk.add_hook(
        "gate.py",
        """
        from agent_hooks import Ask, Block

        def register(api):
            @api.on("tool_call", tool="bash")
            def gate(event, ctx):
                return Block("not this one") if "first" in event.input["command"] else Ask("Sure?", "it writes")
        """,
    )
    sdk.trust()
    left, _ = sdk.script(*(Say(calls=[bash(f"touch {name}")]) for name in ("first", "second", "third")), Say("done"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/claude_sdk.py"), "go"],
        cwd=sdk.project,
        env=sdk.client.environment(),
        input="y\nn\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr
    assert done.stdout.count("Sure?") == 2
    assert [sdk.has(name) for name in ("first", "second", "third")] == [False, True, False]
    assert not left
    assert "Traceback" not in done.stderr
