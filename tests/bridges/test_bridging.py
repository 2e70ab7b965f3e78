"""Another agent's events go through the same steps as our own calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import from_thread

from agent_hooks import (
    AfterToolCall,
    AgentEnd,
    Ask,
    Attachment,
    BeforeToolCall,
    Block,
    Cancel,
    Compaction,
    Continue,
    HookAPI,
    HookContext,
    HookRunner,
    LoadedHook,
    Replace,
    Rewrite,
    ToolCall,
)
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.bridges.driver import (
    BridgeUI,
    Bridging,
    listened_to,
    needed_events,
    never_reached,
    wrong_matchers,
)
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import EVENT_NAMES
from agent_hooks.guards import builtin_guards
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.redaction import Redactor
from agent_hooks.testing import RecordedEvents, call_tool
from agent_hooks.transformers import builtin_transformer
from agent_hooks.transformers.base import ConfiguredTransformer
from agent_hooks.values.answers import CONTINUE_LIMIT, Answer
from support import ROOT, hook_of, hook_on

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "claude_code.json").read_text())
HOOKS = ROOT / "examples" / "hooks"
CLAUDE = ClaudeCode()


def asked(command: str = "ls", **fields: Any) -> Happening:
    """Return the happening of a call of Bash."""
    return CLAUDE.decode({**PAYLOADS["PreToolUse:Bash"], "tool_input": {"command": command}, **fields})


async def answer(*hooks: LoadedHook, happening: Happening | None = None, **options: Any) -> Verdict:
    """Return the verdict of hooks on a happening, by default a call of Bash."""
    return (await answer_and_runner(*hooks, happening=happening, **options))[0]


async def answer_and_runner(
    *hooks: LoadedHook, happening: Happening | None = None, attended: bool = True, allow: str = "", **options: Any
) -> tuple[Verdict, RecordedEvents]:
    """Return the runner's records too."""
    ui = BridgeUI(attended=attended)
    async with HookRunner(hooks, **{"cwd": "/w/proj", "ui": ui, "mode": "bridge", **options}) as runner:
        recorded = RecordedEvents(runner)
        bridging = Bridging(runner, ui, auto_allow={allow}, attended=attended)
        return await bridging.answer(happening or asked()), recorded


@pytest.mark.parametrize(
    ("hook", "tool", "input", "native"),
    [
        ("permission_gate.py", "bash", {"command": "sudo ls"}, {"tool_name": "Bash"}),
        ("protected_paths.py", "write", {"path": "/w/proj/.git/x", "content": ""}, {"tool_name": "Write"}),
        ("protected_paths.py", "edit", {"path": "/w/.env", "oldText": "a", "newText": "b"}, {"tool_name": "Edit"}),
    ],
)
async def test_the_same_file_blocks_the_same_call_in_both_worlds(
    hook: str, tool: str, input: dict[str, Any], native: dict[str, str]
) -> None:
    """The reason has the same text."""
    loaded = await load_hooks([HOOKS / hook], cwd="/w/proj")
    here = await call_tool(HookRunner(loaded, cwd="/w/proj"), tool, input)
    theirs = {
        {"path": "file_path", "oldText": "old_string", "newText": "new_string"}.get(k, k): v for k, v in input.items()
    }
    there = await answer(*loaded.hooks, happening=asked(tool_input=theirs, **native), attended=False)
    assert here.is_error
    assert there.block == here.text
    assert (await answer(*loaded.hooks, happening=asked("ls", tool_input={}, tool_name="Other"))) == Verdict()


async def test_a_call_passes_the_steps_in_their_order() -> None:
    """The rewriters come first, the gates judge the input that would run, and `native` is the payload as it came."""
    seen: list[Any] = []

    def register(api: HookAPI) -> None:
        @api.intercept("tool.before")
        def point(input: Any, output: Any) -> None:
            output.args["command"] += " 2"

        @api.on("before_tool_call")
        async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
            return Rewrite({"command": f"{event.params['command']} 3"})

        @api.on("tool_call", tool="bash")
        async def judge(event: ToolCall, ctx: HookContext) -> None:
            assert event.native
            seen.extend([event.input["command"], event.native["tool_input"]["command"], ctx.mode, ctx.agent_id])
            api.send("for the model")
            ctx.ui.notify("for the person", "warning")

    steps = [
        ConfiguredTransformer(
            tool="bash",
            name="default_args",
            transformer=builtin_transformer("default_args"),
            config={"append": {"command": " 1"}},
        )
    ]
    verdict = await answer(hook_of(register), happening=asked("0", agent_id="a7"), transformers=steps, allow="bash")
    assert seen == [verdict.input and verdict.input["command"], "0", "bridge", "a7"]
    assert verdict.input == {"command": "0 1 2 3"}
    assert verdict.allow
    assert verdict.context[-1] == "for the model"
    assert "[default_args changed this call of bash" in verdict.context[0]
    assert verdict.messages == ("warning: for the person",)


async def test_a_rewrite_into_something_a_guard_denies_is_denied() -> None:
    """The observers get the denied call."""

    async def worse(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
        return Rewrite({"command": "rm -rf /"})

    verdict, recorded = await answer_and_runner(hook_on("before_tool_call", worse), guards=builtin_guards())
    assert verdict.block
    assert "rm" in verdict.block
    assert verdict.input is None
    (after,) = recorded.of("after_tool_call")
    assert isinstance(after, AfterToolCall)
    assert after.blocked


async def test_questions_go_to_the_agents_own_prompt_as_one() -> None:
    """The prompt has the question of each gate; without a person, the call is denied."""

    async def ask(event: ToolCall, ctx: HookContext) -> Ask:
        return Ask("Really?", "it is late")

    async def too(event: ToolCall, ctx: HookContext) -> Ask:
        return Ask("Twice?")

    verdict = await answer(hook_on("tool_call", ask, too))
    assert verdict == Verdict(ask="Really?; Twice?\nbash ls\nhook.py: it is late\nhook.py: Twice?")
    denied = await answer(hook_on("tool_call", ask), attended=False)
    assert denied.block == "Really?: no person is here to answer (asked by hook.py)"


async def test_a_dialog_of_a_gate_becomes_the_agents_own_prompt() -> None:
    """The handler ends at the dialog; the gates after it still judge."""
    ran: list[str] = []

    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        try:
            if await ctx.ui.confirm("Sure?", "it is late"):
                ran.append("yes")
            ran.append("after the dialog")
        finally:
            ran.append("cleaned up")
        return Block("the person said no")

    async def later(event: ToolCall, ctx: HookContext) -> None:
        ran.append("later")

    async def no(event: ToolCall, ctx: HookContext) -> Block:
        return Block("no")

    verdict, recorded = await answer_and_runner(hook_on("tool_call", gate, later))
    assert verdict.ask == "Sure?\nbash ls\nhook.py: it is late"
    assert ran == ["cleaned up", "later"]
    assert recorded.errors == []
    assert (await answer(hook_on("tool_call", gate, no))).block == "no (hook.py)"
    assert (await answer(hook_on("before_tool_call", gate))).ask
    assert (await answer(hook_on("tool_call", gate), attended=False)).block == "the person said no (hook.py)"


async def test_a_dialog_ends_the_handler_wherever_it_is_opened() -> None:
    """This holds in a task group, for two dialogs at once, from a thread, and when a handler swallows its
    cancellation.
    """

    async def group(event: ToolCall, ctx: HookContext) -> Block:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(confirm, ctx)
            tasks.start_soon(confirm, ctx)
        return Block("it went on")

    async def confirm(ctx: HookContext) -> None:
        await ctx.ui.confirm("Sure?", "")

    def thread(event: ToolCall, ctx: HookContext) -> None:
        from_thread.run(confirm, ctx)

    async def stubborn(event: ToolCall, ctx: HookContext) -> None:
        try:
            await ctx.ui.confirm("Sure?", "")
        except BaseException:
            pass

    for handler in (group, thread, stubborn):
        verdict = await answer(hook_on("tool_call", handler))
        assert verdict.ask
        assert verdict.ask.startswith("Sure?"), handler
        assert verdict.block is None


async def test_other_dialogs_answer_as_when_nobody_is_there() -> None:
    """So does a `confirm` of a handler without a call to ask about."""
    got: list[object] = []

    async def choose(event: ToolCall, ctx: HookContext) -> None:
        got.extend([await ctx.ui.select("which", ["a"]), await ctx.ui.input("what")])

    async def end(event: object, ctx: HookContext) -> None:
        got.append(await ctx.ui.confirm("again?", ""))

    assert await answer(hook_on("tool_call", choose)) == Verdict()
    await answer(hook_on("agent_end", end), happening=CLAUDE.decode(PAYLOADS["Stop"]))
    assert got == [None, None, False]


@pytest.mark.parametrize("status", ["allow", "deny", "ask"])
async def test_only_permission_ask_allows(status: str) -> None:
    """It settles questions of the runtime and those of the agent."""

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> Ask:
            return Ask("Really?")

        @api.intercept("permission.ask")
        def settle(input: Any, output: Any) -> None:
            output.status = status

    ours = await answer(hook_of(register))
    theirs = await answer(hook_of(register), happening=CLAUDE.decode(PAYLOADS["PermissionRequest:Bash"]))
    assert ours.allow == theirs.allow == (status == "allow")
    assert bool(ours.block) == bool(theirs.block) == (status == "deny")
    assert bool(ours.ask) == (status == "ask")


@pytest.mark.parametrize("payload", ["PostToolUse:Bash", "PostToolUseFailure:Bash"])
async def test_a_result_passes_the_hooks_and_is_redacted(payload: str) -> None:
    """Redaction comes last, and the observers get the agent's own duration."""
    key = "sk-" + "a1B2" * 8

    async def chatty(event: Any, ctx: HookContext) -> Replace:
        assert event.native == PAYLOADS[payload]
        return Replace(content=f"{event.content[0].text} {key}")

    happening = CLAUDE.decode(PAYLOADS[payload])
    verdict, recorded = await answer_and_runner(
        hook_on("tool_result", chatty), happening=happening, redactor=Redactor()
    )
    assert verdict.output
    assert "ORIG-OUT" in verdict.output.text
    assert key not in verdict.output.text
    assert recorded.of("after_tool_call")[0].duration_ms == PAYLOADS[payload]["duration_ms"]
    assert (await answer(happening=happening)) == Verdict()


async def test_a_message_of_a_hook_to_the_person_is_redacted() -> None:
    """The other agent keeps it in its transcript, beside the results."""
    key = "sk-" + "a1B2" * 8

    async def chatty(event: Any, ctx: HookContext) -> None:
        ctx.ui.notify(f"the key is {key}", "info")

    verdict = await answer(hook_on("tool_call", chatty), redactor=Redactor())
    (message,) = verdict.messages
    assert message.startswith("the key is [redacted ")
    assert key not in message


async def test_a_prompt_passes_message_before() -> None:
    """A blocked prompt starts no run.  A rewritten one becomes context, because the agent keeps the original."""

    def register(api: HookAPI) -> None:
        @api.intercept("message.before")
        def point(input: Any, output: Any) -> None:
            if "secret" in output.message:
                output.block, output.block_reason = True, "no secrets"
            elif "colour" in output.message:
                output.message = "color"
            output.context.append("it is late")

    prompt = PAYLOADS["UserPromptSubmit"]
    verdict, recorded = await answer_and_runner(hook_of(register), happening=CLAUDE.decode(prompt))
    assert verdict == Verdict(context=("it is late",))
    assert recorded.types == ["agent_start", "turn_start"]
    happening = CLAUDE.decode({**prompt, "prompt": "a secret"})
    verdict, recorded = await answer_and_runner(hook_of(register), happening=happening)
    assert verdict.block
    assert "no secrets" in verdict.block
    assert recorded.types == []
    verdict = await answer(hook_of(register), happening=CLAUDE.decode({**prompt, "prompt": "colour"}))
    assert verdict.context[0] == "A hook rewrote the prompt. Read it as:\ncolor"
    assert verdict.messages


async def test_a_compaction_can_be_cancelled_but_not_written() -> None:
    """The agent writes its own summary, and the person gets a message."""
    given: list[Answer] = [Cancel(), Cancel("not now"), Compaction("x", 1, 0)]

    async def decide(event: object, ctx: HookContext) -> Answer:
        return given.pop(0)

    hook, happening = hook_on("session", decide), CLAUDE.decode(PAYLOADS["PreCompact"])
    assert (await answer(hook, happening=happening)).block == "cancelled by a hook"
    assert (await answer(hook, happening=happening)).block == "not now"
    assert (await answer(hook, happening=happening)).messages


async def test_what_we_have_no_word_for_is_seen_on_the_bus() -> None:
    """It arrives at the point `event` with its name and payload."""
    seen: list[Any] = []

    def register(api: HookAPI) -> None:
        @api.intercept("event")
        def bus(input: Any, output: Any) -> None:
            seen.append(input.event)

    await answer(hook_of(register), happening=CLAUDE.decode(PAYLOADS["SubagentStart"]))
    assert [(event.name, event.native["agent_type"]) for event in seen] == [("SubagentStart", "general-purpose")]


async def more(event: AgentEnd, ctx: HookContext) -> Continue:
    return Continue(f"after {event.continued}")


def stopped(active: bool, **fields: Any) -> Happening:
    """Return a Stop; `active`: a hook keeps the agent going already."""
    return CLAUDE.decode({**PAYLOADS["Stop"], "stop_hook_active": active, **fields})


async def test_a_bridge_for_one_event_keeps_an_agent_going_once_in_a_row() -> None:
    """It does not know the events before; a message gives the person the reason for the end."""
    assert await answer(hook_on("agent_end", more), happening=stopped(False)) == Verdict(go_on="after 0")
    verdict = await answer(hook_on("agent_end", more), happening=stopped(True))
    assert verdict == Verdict(
        messages=("the agent stops here: hooks may keep it going once in a row; hook.py wants it to go on",)
    )


async def test_a_resident_bridge_counts_for_each_session_and_agent() -> None:
    """Handlers get the count.  An end without `Continue`, or a stop of the agent's own, sets it to 0."""
    done = False

    async def maybe(event: AgentEnd, ctx: HookContext) -> Continue | None:
        return None if done else await more(event, ctx)

    ui = BridgeUI()
    async with HookRunner([hook_on("agent_end", maybe)], cwd="/w/proj", ui=ui, mode="bridge") as runner:
        bridging = Bridging(runner, ui, resident=True)

        async def stop(active: bool, **fields: Any) -> Verdict:
            return await bridging.answer(stopped(active, **fields))

        assert (await stop(False)).go_on == "after 0"
        for count in range(1, CONTINUE_LIMIT):
            assert (await stop(True)).go_on == f"after {count}"
        assert (await stop(False, session_id="another")).go_on == "after 0"
        assert (await stop(True, agent_id="sub")).go_on == "after 1"
        for _ in range(2):
            capped = await stop(True)
            assert capped.go_on is None
            assert "8 times in a row; hook.py wants" in capped.messages[0]
        assert (await stop(False)).go_on == "after 0"
        assert (await stop(True)).go_on == "after 1"
        done = True
        assert await stop(True) == Verdict()
        done = False
        # Another program's hook keeps it going.
        assert (await stop(True)).go_on == "after 1"


async def test_a_sent_file_is_told() -> None:
    """A message says that the file cannot be passed on."""

    def register(api: HookAPI) -> None:
        @api.on("agent_end")
        async def end(event: object, ctx: HookContext) -> None:
            picture = Attachment(kind="image", file_name="a.png", mime_type="image/png", content="aGk=")
            api.send("go on", [picture])

    verdict = await answer(hook_of(register), happening=CLAUDE.decode(PAYLOADS["Stop"]))
    assert verdict.context == ("go on",)
    assert "sent a file" in verdict.messages[0]


def test_a_handler_that_names_a_tool_in_foreign_words_is_told() -> None:
    """The message names the tool in our words, because the handler would never run."""

    async def gate(event: ToolCall, ctx: HookContext) -> None: ...

    runner = HookRunner([hook_on("tool_call", gate, tool="Bash"), hook_on("tool_call", gate, tool="bash")], cwd=".")
    assert wrong_matchers(runner, CLAUDE.tools) == ["hook.py never runs: the tool 'Bash' is 'bash' here"]


# ---- which events have to be installed -------------------------------------------------------------------------------


def nothing(*given: object) -> None:
    """Listen."""


@pytest.mark.parametrize(
    ("listens", "events"),
    [
        ("tool_call", {}),
        ("agent_start", {}),
        ("turn_start", {"PostToolBatch": ("turn_start",)}),
        ("turn_end", {"PostToolBatch": ("turn_end",)}),
        ("agent_end", {"SubagentStop": ("agent_end",)}),
        ("session", {"PreCompact": ("session",), "PostCompact": ("session",)}),
        ("after_tool_call", {"PostToolUse": ("after_tool_call",), "PostToolUseFailure": ("after_tool_call",)}),
        ("permission.ask", {"PermissionRequest": ("permission.ask",)}),
        ("event", {row.name: ("event",) for row in CLAUDE.describe()}),
    ],
)
def test_an_event_is_needed_where_somebody_listens_to_what_it_becomes(listens: str, events: dict[str, Any]) -> None:
    """The gates are needed always."""
    rows = CLAUDE.describe()
    always = {row.name for row in rows if row.gate or row.always}
    assert always == {"PreToolUse", "PreSkillShellCommand", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"}

    def register(api: HookAPI) -> None:
        if "." in listens or listens == "event":
            api.intercept(listens, nothing)
        else:
            api.on(listens, nothing)  # type: ignore[call-overload]  # any of them

    found = needed_events(rows, listened_to([hook_of(register)]))
    assert found.keys() == always | events.keys()
    assert {name: by for name, by in found.items() if name in events} == events


def test_settings_need_events_too() -> None:
    """Redaction needs results, and so does a transformer that filters them; a transformer that only rewrites calls does
    not.
    """
    steps = {
        name: ConfiguredTransformer(tool="find", name=name, transformer=builtin_transformer(name))
        for name in ("exclude_directories", "default_args")
    }
    assert listened_to([]) == frozenset()
    assert listened_to([], redactor=Redactor()) == {"redaction"}
    assert listened_to([], [steps["exclude_directories"]]) == {"filter_output"}
    assert listened_to([], [steps["default_args"]]) == frozenset()
    rows = CLAUDE.describe()
    assert {"PostToolUse", "PostToolUseFailure"} <= needed_events(rows, {"redaction"}).keys()
    assert "PostToolUseFailure" not in needed_events(rows, {"filter_output"})


def test_every_event_of_ours_is_reached_or_told_of() -> None:
    """Each name in the table is one of our events or points."""
    rows = CLAUDE.describe()
    known = {*EVENT_NAMES, *POINTS, "redaction", "filter_output", "undo"}
    assert {name for row in rows for name in row.feeds} <= known
    assert never_reached(rows, known) == [
        "chat.headers",
        "chat.messages.transform",
        "chat.system.transform",
        "command.execute.before",
        "config",
        "params.before",
        "session.compacting",
    ]
