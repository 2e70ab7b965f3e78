"""A session's life: start, switch, clear, branch, compact, shutdown; cancelled and failed actions change nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import (
    Cancel,
    Compaction,
    HookAPI,
    MessageEntry,
    ModelError,
    SessionError,
    SessionHeader,
    SkipConversationRestore,
    UserMessage,
)
from agent_hooks.errors import HostBusyError
from agent_hooks.host.lifecycle import ActionOutcome, SessionHost
from agent_hooks.host.models import open_model
from agent_hooks.host.session import Session
from agent_hooks.settings import CompactionSettings, Settings
from agent_hooks.testing import ScriptedUI
from host.hosting import Stage, stage
from support import EchoTool, Endless, hook_on

pytestmark = pytest.mark.anyio

Register = Callable[[HookAPI], Any]


def on_session(reason: str, answer: object) -> Register:
    """Return a hook that gives this answer, or calls it with the event, for this reason of `session`."""

    def register(api: HookAPI) -> None:
        @api.on("session")
        async def handle(event: Any, ctx: Any) -> Any:
            if event.reason != reason:
                return None
            found = answer(event) if callable(answer) else answer
            return await found if hasattr(found, "__await__") else found

    return register


def saved(path: str | Path | None) -> list[dict[str, Any]]:
    """Return the entries of a file."""
    assert path is not None
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def texts(host: SessionHost) -> list[str]:
    """Return the texts of the person's messages in the conversation."""
    return [message.content[0].text for message in host.messages if isinstance(message, UserMessage)]  # type: ignore[union-attr]


def index_of(host: SessionHost, text: str) -> int:
    """Return the index of the entry with this user message."""
    for index, entry in enumerate(host.entries):
        message = entry.message if isinstance(entry, MessageEntry) else None
        if isinstance(message, UserMessage) and message.content[0].text == text:  # type: ignore[union-attr]
            return index
    raise AssertionError(text)


def another_session(project: Path, *prompts: str) -> Path:
    """Return the file of another session with these prompts."""
    session = Session.create(str(project))
    session.add_model("openai", "old-model")
    session.add_thinking_level("high")
    for number, text in enumerate(prompts):
        session.add_message(UserMessage(content=text, timestamp=number))
    session.close()
    assert session.path is not None
    return session.path


# ---- start and shutdown ----------------------------------------------------------------------------------------------


async def test_a_session_starts_before_its_first_prompt_and_ends_once(project: Path) -> None:
    """Handlers find file and id set, and the event has all entries so far."""
    found: list[Any] = []

    def register(api: HookAPI) -> None:
        api.on("session", lambda event, ctx: found.append((event.reason, ctx.session_file, ctx.session_id)))

    on = stage(project, register)
    async with on.host as host:
        await host.prompt("hello")
    file = str(on.path)
    assert found == [(reason, file, on.session.id) for reason in ("start", "shutdown")]
    start, end = on.events.of("session")
    assert (start.session_file, start.previous_session_file, len(start.entries)) == (file, None, 2)
    assert (end.session_file, len(end.entries)) == (file, 4)
    assert on.events.types == [
        "session:start",
        "agent_start",
        "turn_start",
        "turn_end",
        "agent_end",
        "session:shutdown",
    ]
    assert saved(on.path)[1]["type"] == "model_change"


async def test_a_session_that_is_cancelled_while_it_starts_still_ends(project: Path) -> None:
    """A signal during a slow `start` handler: one shutdown, the file is closed."""
    slow = Endless()
    on = stage(project, on_session("start", slow))

    async def live() -> None:
        async with on.host:
            raise AssertionError("did not start")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await slow.begun.wait()
        tasks.cancel_scope.cancel()
    assert [event.reason for event in on.events.of("session")] == ["shutdown"]
    Session.open(on.path, str(project)).close()


async def test_a_session_that_ends_stops_its_run_first(project: Path) -> None:
    """The tool is cancelled, the run's events come, then one shutdown; the file has the call's end."""
    long = Endless()
    on = stage(project, tool=EchoTool(body=long))
    async with on.host as host:
        host.submit("@bash long")
        await long.begun.wait()
        assert host.state().is_streaming
    assert on.events.types[-3:] == ["after_tool_call", "agent_end", "session:shutdown"]
    assert saved(on.path)[-1]["message"]["content"][0]["text"] == "aborted"
    assert on.view.seen[-1] == "ended None aborted=True"


# ---- switch, new, clear ----------------------------------------------------------------------------------------------


async def test_switching_replaces_file_and_conversation_before_the_after_event(project: Path) -> None:
    """The handler of `switch` gets the other session; its thinking level is used, and a warning names its model."""
    other = another_session(project, "yesterday")
    seen: list[Any] = []
    on: Stage

    def look(event: Any) -> None:
        seen.append((texts(on.host), on.runner.session_file))

    on = stage(project, on_session("switch", look))
    async with on.host as host:
        await host.prompt("today")
        assert await host.switch_session(other) == ActionOutcome(model="openai:old-model")
        assert seen == [(["yesterday"], str(other))]
        assert host.state().thinking_level == "high"
        assert host.state().session_file == str(other)
        await host.prompt("more")
    before, after = on.events.of("session")[1:3]
    assert (before.reason, before.session_file, before.previous_session_file) == ("before_switch", str(on.path), None)
    assert (after.reason, after.session_file, after.previous_session_file) == ("switch", str(other), str(on.path))
    assert len(before.entries) == 4
    assert [entry.type for entry in after.entries][-1] == "model_change"
    assert on.view.warnings == ["this session was last used with openai:old-model; it goes on with puppet:puppet"]
    assert [entry["type"] for entry in saved(other)][-3:] == ["model_change", "message", "message"]
    assert len(saved(on.path)) == 4


@pytest.mark.parametrize(
    ("act", "reasons"),
    [
        (lambda host: host.new_session(), ["before_switch", "switch"]),
        (lambda host: host.clear(), ["before_clear", "clear"]),
    ],
)
async def test_a_new_session_begins_with_nothing(
    project: Path, act: Callable[[SessionHost], Awaitable[ActionOutcome]], reasons: list[str]
) -> None:
    """It has a file of its own; the old file stays unchanged, and turns count from 0."""
    on = stage(project)
    async with on.host as host:
        await host.prompt("old")
        left = on.path.read_bytes()
        await act(host)
        assert host.messages == ()
        assert host.state().session_file not in (None, str(on.path))
        await host.prompt("new")
        new = host.state().session_file
    assert [event.reason for event in on.events.of("session")] == ["start", *reasons, "shutdown"]
    after = on.events.of("session")[2]
    assert (after.session_file, after.previous_session_file) == (new, str(on.path))
    assert on.path.read_bytes() == left
    assert [event.turn_index for event in on.events.of("turn_start")] == [0, 0]
    assert len(saved(new)) == 4


async def test_without_a_file_every_action_stays_in_memory(project: Path) -> None:
    """With `--no-session`, no action writes a file."""
    on = stage(project, session=Session(cwd=str(project)))
    async with on.host as host:
        await host.prompt("one")
        await host.branch(index_of(host, "one"))
        await host.clear()
        await host.new_session()
        assert host.state().session_file is None
    assert not (project / ".agent").exists()
    assert on.events.of("session")[2].previous_session_file is None


# ---- branch ----------------------------------------------------------------------------------------------------------


async def test_a_branch_ends_before_the_message_and_offers_its_text(project: Path) -> None:
    """The events have the entry and its turn; the old file is unchanged, and turns count on."""
    on = stage(project)
    async with on.host as host:
        await host.prompt("@bash one")
        await host.prompt("two")
        await host.prompt("three")
        left = on.path.read_bytes()
        at = index_of(host, "two")
        outcome = await host.branch(at)
        assert outcome == ActionOutcome(text="two")
        assert texts(host) == ["@bash one"]
        assert len(host.entries) == at
        await host.prompt("other")
        branched = host.state().session_file
    before, after = on.events.of("session")[1:3]
    assert (before.reason, before.target_turn_index, before.target_turn) == ("before_branch", at, 2)
    assert (after.reason, after.target_turn_index, after.target_turn) == ("branch", at, 2)
    assert (len(before.entries), len(after.entries)) == (10, at)
    assert (after.session_file, after.previous_session_file) == (branched, str(on.path))
    assert before.entries[at].message.content[0].text == "two"
    assert on.path.read_bytes() == left
    header, *entries = saved(branched)
    assert header["branchedFrom"] == str(on.path)
    assert entries[: at - 1] == saved(on.path)[1:at]
    turns = [(event.turn_index, event.entry_index) for event in on.events.of("turn_start")]
    assert turns == [(0, 3), (1, 5), (2, 7), (3, 9), (2, 7)]


async def test_turns_count_on_over_a_resume_and_a_failed_turn_counts(project: Path) -> None:
    """`target_turn` is the first turn after the message, or None when none has begun."""
    (project / "s.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    on = stage(project, model=open_model(f"script:{project}/s.jsonl"))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        with pytest.raises(ModelError):
            await host.prompt("fails")
        await host.branch(index_of(host, "fails"))
    assert on.events.of("session")[1].target_turn == 2

    again = stage(project, session=Session.open(on.path, str(project)))
    async with again.host as host:
        assert texts(host) == ["one", "two", "fails"]
        await host.prompt("three")
        await host.branch(index_of(host, "one"))
    assert [event.turn_index for event in again.events.of("turn_start")] == [2]
    assert again.events.of("session")[1].target_turn == 0


async def test_a_message_that_no_turn_followed_has_no_target_turn(project: Path) -> None:
    """It was aborted before the request, or comes from a file."""
    on = stage(project, session=Session.open(another_session(project, "unanswered"), str(project)))
    async with on.host as host:
        await host.branch(index_of(host, "unanswered"))
    assert on.events.of("session")[1].target_turn is None


async def test_a_branch_may_leave_the_conversation_as_it_is(project: Path) -> None:
    """The file branches, and the model still gets the whole conversation."""
    on = stage(project, on_session("before_branch", SkipConversationRestore()))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        before = host.messages
        at = index_of(host, "two")
        assert (await host.branch(at)).text == "two"
        assert host.messages == before
        assert len(host.entries) == at
        assert host.state().session_file != str(on.path)
        await host.prompt("three")
    assert len(on.model.requests[-1].messages) == len(before) + 1
    assert "two" not in Path(str(on.runner.session_file)).read_text()


@pytest.mark.parametrize(
    ("first", "second", "conflicts", "restored"),
    [
        ({"cancel": False}, {"skipConversationRestore": True}, 0, False),
        ({"skipConversationRestore": False}, {"skipConversationRestore": True}, 1, False),
        (SkipConversationRestore(), SkipConversationRestore(False), 1, True),
    ],
)
async def test_of_two_hooks_that_differ_the_later_one_counts(
    project: Path, first: object, second: object, conflicts: int, restored: bool
) -> None:
    """The difference is reported."""
    on = stage(project, on_session("before_branch", first), on_session("before_branch", second))
    async with on.host as host:
        await host.prompt("one")
        await host.branch(index_of(host, "one"))
        assert (host.messages == ()) is restored
    assert len(on.events.errors) == conflicts
    assert all("the later one counts" in error.error for error in on.events.errors)


# ---- cancelled actions -----------------------------------------------------------------------------------------------

ACTIONS: list[Any] = [
    pytest.param("before_switch", lambda host, other: host.new_session(), id="new"),
    pytest.param("before_switch", lambda host, other: host.switch_session(other), id="switch"),
    pytest.param("before_clear", lambda host, other: host.clear(), id="clear"),
    pytest.param("before_branch", lambda host, other: host.branch(index_of(host, "one")), id="branch"),
    pytest.param("before_compact", lambda host, other: host.compact(), id="compact"),
]
Act = Callable[[SessionHost, Path], Awaitable[ActionOutcome]]


async def unchanged_by(on: Stage, host: SessionHost, other: Path, act: Act) -> ActionOutcome:
    """Run an action, and check that state, entries, conversation and files are unchanged."""

    def all_there_is() -> tuple[Any, ...]:
        files = {path: path.read_bytes() for path in on.path.parent.iterdir()}
        return host.state(), host.entries, host.messages, on.runner.session_file, files

    before = all_there_is()
    outcome = await act(host, other)
    assert all_there_is() == before
    return outcome


@pytest.mark.parametrize(("reason", "act"), ACTIONS)
async def test_a_cancelled_action_changes_nothing_and_says_who(project: Path, reason: str, act: Act) -> None:
    """The first cancel ends it: the next hook is not asked, and there is no after-event."""
    asked: list[Any] = []
    other = another_session(project, "yesterday")
    on = stage(project, on_session(reason, Cancel("not today")), on_session(reason, asked.append))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        outcome = await unchanged_by(on, host, other, act)
        assert outcome == ActionOutcome(cancelled=True, reason="cancelled by hook0.py: not today")
        await host.prompt("goes on")
    assert asked == []
    assert [event.reason for event in on.events.of("session")] == ["start", reason, "shutdown"]
    Session.open(other, str(project)).close()


async def test_a_cancel_without_a_reason_still_has_a_name(project: Path) -> None:
    """So has a cancel in its mapping form."""
    on = stage(project, on_session("before_clear", {"cancel": True}))
    async with on.host as host:
        assert (await host.clear()).reason == "cancelled by hook0.py"


@pytest.mark.parametrize(("reason", "act"), ACTIONS)
async def test_a_failing_handler_stops_an_action_only_if_it_says_so(project: Path, reason: str, act: Act) -> None:
    """By default it is reported and the action goes on; with on_error="block" it is cancelled, naming the hook."""

    async def fail(event: Any, ctx: Any) -> None:
        if event.reason == reason:
            raise ValueError("boom")

    other = another_session(project, "yesterday")
    on = stage(project, hook_on("session", fail, on_error="block"))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        outcome = await unchanged_by(on, host, other, act)
    assert outcome == ActionOutcome(cancelled=True, reason="hook hook.py: ValueError: boom")

    on = stage(project, hook_on("session", fail))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")
        assert not (await act(host, other)).cancelled
    assert [error.outcome for error in on.events.errors] == ["continued"]


@pytest.mark.parametrize(("reason", "act"), ACTIONS)
async def test_an_abort_takes_the_question_away_and_the_action_with_it(project: Path, reason: str, act: Act) -> None:
    """Esc in a dialog of a before-event cancels the action."""
    never = Endless()
    outcomes: list[ActionOutcome] = []

    def register(api: HookAPI) -> None:
        @api.on("session")
        async def ask(event: Any, ctx: Any) -> Any:
            return {"cancel": not await ctx.ui.confirm("Sure?")} if event.reason == reason else None

    other = another_session(project, "yesterday")
    on = stage(project, register, ui=ScriptedUI(never))
    async with on.host as host:
        await host.prompt("one")
        await host.prompt("two")

        async def run() -> None:
            outcomes.append(await unchanged_by(on, host, other, act))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await never.begun.wait()
            with pytest.raises(HostBusyError, match="is being changed"):
                await host.new_session()
            with pytest.raises(HostBusyError, match="is being changed"):
                await host.prompt("now")
            assert host.abort()
        assert not host.abort()
        await host.prompt("goes on")
    assert outcomes == [ActionOutcome(cancelled=True, reason="aborted")]


async def test_a_session_that_ends_while_a_question_is_open_leaves_the_other_file(project: Path) -> None:
    """The file that was to be opened is not locked any more."""
    other = another_session(project, "yesterday")
    never = Endless()
    on = stage(project, on_session("before_switch", never))
    async with on.host as host, anyio.create_task_group() as tasks:
        tasks.start_soon(host.switch_session, other)
        await never.begun.wait()
        tasks.cancel_scope.cancel()
    Session.open(other, str(project)).close()
    assert on.events.types[-1] == "session:shutdown"


# ---- refused actions -------------------------------------------------------------------------------------------------


async def test_no_action_while_the_agent_works(project: Path) -> None:
    """Each error has the remedy; no state changes, and no hook is asked."""
    running, go_on = anyio.Event(), anyio.Event()

    async def body(input: dict[str, Any]) -> None:
        running.set()
        await go_on.wait()

    other = another_session(project, "yesterday")
    on = stage(project, tool=EchoTool(body=body))
    async with on.host as host:
        host.submit("@bash x")
        await running.wait()
        for _, act in [each.values for each in ACTIONS[:3]]:
            with pytest.raises(HostBusyError, match="abort it first"):
                await act(host, other)
        for refused in (host.branch(2), host.compact(), host.prompt("me too")):
            with pytest.raises(HostBusyError, match="abort it first"):
                await refused
        go_on.set()
        await host.wait_idle()
    assert [event.reason for event in on.events.of("session")] == ["start", "shutdown"]


@pytest.mark.parametrize("index", [-1, 0, 1, 3, 99])
async def test_a_branch_begins_before_a_message_of_a_person(project: Path, index: int) -> None:
    """Any other entry is an error, and no hook is asked."""
    on = stage(project)
    async with on.host as host:
        await host.prompt("one")
        with pytest.raises(SessionError, match=f"entry {index} is not a user message"):
            await host.branch(index)
    assert [event.reason for event in on.events.of("session")] == ["start", "shutdown"]


async def test_a_file_that_cannot_be_read_is_told_before_any_hook_is_asked(project: Path) -> None:
    """A missing or foreign file, the open session itself, or another process's; the session goes on."""
    (project / "foreign.jsonl").write_text('{"a": 1}\n')
    busy = Session.create(str(project))
    on = stage(project)
    async with on.host as host:
        for path, text in [
            ("missing.jsonl", "No such file"),
            ("foreign.jsonl", r"foreign\.jsonl:1: is not an entry"),
            ("no\0name.jsonl", "null"),
            (on.path, "already open"),
            (busy.path, "another process works on this session"),
        ]:
            with pytest.raises(SessionError, match=text):
                await host.switch_session(str(path))
        await host.prompt("goes on")
    busy.close()
    assert [event.reason for event in on.events.of("session")] == ["start", "shutdown"]


async def test_a_new_session_that_cannot_be_written_leaves_the_old_one(project: Path) -> None:
    """Here the directory of sessions has become a file."""
    on = stage(project)
    async with on.host as host:
        await host.prompt("one")
        directory = on.path.parent
        directory.rename(project / "elsewhere")
        directory.write_text("in the way")
        for act in (host.new_session, host.clear):
            with pytest.raises(SessionError, match="cannot be saved"):
                await act()
        assert texts(host) == ["one"]
        await host.prompt("two")
    assert len((project / "elsewhere" / on.path.name).read_text().splitlines()) == 6


# ---- model and thinking level ----------------------------------------------------------------------------------------


async def test_the_thinking_level_stays_in_other_sessions(project: Path) -> None:
    """A session that was used before has its own."""
    on = stage(project)
    async with on.host as host:
        await host.prompt("one")
        first = host.state().session_file
        host.set_thinking_level("high")
        await host.prompt("two")
        await host.new_session()
        assert host.state().thinking_level == "high"
        host.set_thinking_level("low")
        await host.clear()
        assert host.state().thinking_level == "low"
        await host.switch_session(str(first))
        assert host.state().thinking_level == "high"
        host.set_thinking_level("medium")
        await host.branch(next(at for at, each in enumerate(host.entries) if isinstance(each, MessageEntry)))
        assert host.state().thinking_level == "medium"


async def test_model_and_thinking_level_are_entries_and_come_back(project: Path) -> None:
    """A resumed session has its thinking level unless another is given, and a warning names its former model."""
    (project / "s.jsonl").write_text('{"text": "a"}\n')
    on = stage(project)
    async with on.host as host:
        host.set_model(open_model(f"script:{project}/s.jsonl"))
        host.set_thinking_level("medium")
        await host.prompt("one")
        assert host.state().model.id == "s.jsonl"
    kinds = [entry["type"] for entry in saved(on.path)]
    assert kinds == ["session", "model_change", "model_change", "thinking_level_change", "message", "message"]

    again = stage(project, session=Session.open(on.path, str(project)))
    async with again.host as host:
        assert host.state().thinking_level == "medium"
        await host.prompt("two")
    assert again.model.requests[0].thinking_level == "medium"
    assert again.view.warnings == ["this session was last used with script:s.jsonl; it goes on with puppet:puppet"]

    told = stage(project, session=Session.open(on.path, str(project)), thinking_level="low")
    async with told.host as host:
        assert host.state().thinking_level == "low"
    assert told.view.warnings == []
    assert saved(on.path)[-1]["thinkingLevel"] == "low"


# ---- compaction ------------------------------------------------------------------------------------------------------


async def talk(host: SessionHost) -> None:
    """Prompt the agent with texts to summarise."""
    await host.prompt("one")
    await host.prompt("two")


async def test_a_compaction_is_one_more_entry_and_the_conversation_is_shorter(project: Path) -> None:
    """The model's summary replaces the messages before the cut, and the file keeps every entry."""
    on = stage(project)
    async with on.host as host:
        await talk(host)
        left = on.path.read_bytes()
        outcome = await host.compact("mind the names")
        assert outcome.entry is not None
        assert on.path.read_bytes().startswith(left)
        assert saved(on.path)[-1] | {"timestamp": ""} == {
            "type": "compaction",
            "timestamp": "",
            "summary": outcome.entry.summary,
            "firstKeptEntryIndex": 4,
            "tokensBefore": outcome.entry.tokens_before,
            "provider": "puppet",
            "model": "puppet",
        }
        assert len(host.messages) == 3
        assert texts(host)[1:] == ["two"]
        compacted = host.messages
        await host.prompt("three")
        assert [event.turn_index for event in on.events.of("turn_start")] == [0, 1, 2]
    before, after = on.events.of("session")[1:3]
    assert (before.reason, before.custom_instructions) == ("before_compact", "mind the names")
    assert (after.reason, after.compaction_entry, after.from_hook) == ("compact", outcome.entry, False)
    assert after.tokens_before == before.tokens_before == outcome.entry.tokens_before
    assert after.entries[-1] == outcome.entry

    again = stage(project, session=Session.open(on.path, str(project)))
    async with again.host as host:
        assert host.messages[:3] == compacted
        assert len(host.messages) == 5


async def test_a_hook_may_supply_the_entry(project: Path) -> None:
    """`from_hook` says so, and the model is not asked."""

    def answer(event: Any) -> Compaction:
        return Compaction("all of it", len(event.entries), event.tokens_before)

    on = stage(project, on_session("before_compact", answer))
    async with on.host as host:
        await talk(host)
        asked = len(on.model.requests)
        outcome = await host.compact()
        assert outcome.entry is not None
        assert outcome.entry.from_hook
        assert len(on.model.requests) == asked
        [message] = host.messages
        assert "all of it" in message.content[0].text  # type: ignore[union-attr]
    assert on.events.of("session")[2].from_hook is True


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda event: 1 / 0, "ZeroDivisionError"),
        (lambda event: Compaction("", 1, 1), "summary"),
        (lambda event: Compaction("x", len(event.entries) + 1, 1), "first_kept_entry_index"),
        (lambda event: Compaction("x", 1, -1), "tokens_before"),
    ],
)
async def test_with_a_failing_hook_or_a_bad_entry_the_default_summary_is_used(
    project: Path, answer: Callable[[Any], object], says: str
) -> None:
    """The failure is reported, with the field's name."""
    on = stage(project, on_session("before_compact", answer))
    async with on.host as host:
        await talk(host)
        outcome = await host.compact()
        assert outcome.entry is not None
        assert not outcome.entry.from_hook
    [error] = on.events.errors
    assert says in error.error


async def test_a_model_that_fails_while_it_summarises_leaves_the_session_as_it_was(project: Path) -> None:
    """The action raises the model's error."""
    (project / "s.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    on = stage(project, model=open_model(f"script:{project}/s.jsonl"))
    async with on.host as host:
        await talk(host)

        async def act(host: SessionHost, other: Path) -> ActionOutcome:
            with pytest.raises(ModelError, match=r"all 2 responses are played"):
                await host.compact()
            return ActionOutcome()

        await unchanged_by(on, host, project, act)
        with pytest.raises(ModelError):
            await host.prompt("goes on")
    assert [event.reason for event in on.events.of("session")] == ["start", "before_compact", "shutdown"]


async def test_there_may_be_nothing_to_compact(project: Path) -> None:
    """It is an error, and no hook is asked."""
    on = stage(project)
    async with on.host as host:
        with pytest.raises(SessionError, match="nothing to compact"):
            await host.compact()
    assert [event.reason for event in on.events.of("session")] == ["start", "shutdown"]


async def test_a_long_conversation_is_compacted_before_the_next_request(project: Path) -> None:
    """It happens between turns; the run goes on, and its next turn has the new number of entries."""

    def answer(event: Any) -> Compaction:
        return Compaction("x", event.cut_point.first_kept_entry_index, event.tokens_before)

    settings = CompactionSettings(threshold_tokens=200, keep_recent_tokens=100)
    on = stage(project, on_session("before_compact", answer), settings=Settings(compaction=settings))
    async with on.host as host:
        await host.prompt("x" * 600)
        assert "session:compact" not in on.events.types
        await host.prompt("@bash one")
    at = on.events.types.index("session:before_compact")
    assert on.events.types[at - 1 : at + 3] == [
        "agent_start",
        "session:before_compact",
        "session:compact",
        "turn_start",
    ]
    assert on.events.types.count("session:compact") == 1
    assert [event.entry_index for event in on.events.of("turn_start")] == [3, 6, 8]
    assert "@bash one" in str(on.model.requests[-1].messages)
    assert on.view.warnings == []


async def test_a_compaction_that_does_not_come_about_is_told_once_in_a_run(project: Path) -> None:
    """There is one warning, the conversation goes on unchanged, and the next prompt tries again."""
    on = stage(
        project,
        on_session("before_compact", Cancel("never")),
        settings=Settings(compaction=CompactionSettings(threshold_tokens=10, keep_recent_tokens=5)),
    )
    async with on.host as host:
        await host.prompt("x" * 100 + "\n@bash one\n---\n@bash two")
        await host.prompt("more")
    text = "the conversation was not compacted: cancelled by hook0.py: never"
    assert on.view.warnings == [text, text]
    assert "session:compact" not in on.events.types


async def test_an_automatic_compaction_that_fails_does_not_stop_the_run(project: Path) -> None:
    """There is nothing to summarise yet, or the summary is as long as the messages, like the puppet's."""
    on = stage(project, settings=Settings(compaction=CompactionSettings(threshold_tokens=0, keep_recent_tokens=0)))
    async with on.host as host:
        await host.prompt("hello")
        await host.prompt("@bash one\n---\n@bash two")
    nothing, long = on.view.warnings
    assert "the conversation was not compacted: there is nothing to compact" in nothing
    assert long == "the conversation is longer than 0 tokens also after it was compacted"
    assert on.events.types.count("session:compact") == 1


@pytest.mark.parametrize(
    ("settings", "window", "limit"),
    [
        (CompactionSettings(), None, None),
        (CompactionSettings(), 200_000, 183_616),
        (CompactionSettings(threshold_tokens=5), 200_000, 5),
        (CompactionSettings(threshold_tokens=5), None, 5),
        (CompactionSettings(enabled=False, threshold_tokens=5), 200_000, None),
    ],
)
def test_when_a_conversation_is_too_long(settings: CompactionSettings, window: int | None, limit: int | None) -> None:
    """A threshold counts, or the model's window, if it is known."""
    assert settings.limit(window) == limit


async def test_a_summary_that_takes_too_long_can_be_aborted(project: Path) -> None:
    """No entry is saved."""
    asked = anyio.Event()

    class Slow:
        provider = id = "slow"

        async def stream(self, request: Any) -> Any:
            asked.set()
            await anyio.sleep_forever()
            yield None

    on = stage(project)
    async with on.host as host:
        await talk(host)
        host.set_model(Slow())
        entries = host.entries
        outcomes: list[ActionOutcome] = []

        async def compact() -> None:
            outcomes.append(await host.compact())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact)
            await asked.wait()
            assert host.abort()
        assert outcomes == [ActionOutcome(cancelled=True, reason="aborted")]
        assert host.entries == entries


async def test_an_abort_in_an_automatic_compaction_stops_the_run(project: Path) -> None:
    """The person aborts the agent, not only its open question."""
    never = Endless()
    settings = CompactionSettings(threshold_tokens=1, keep_recent_tokens=1)
    on = stage(project, on_session("before_compact", never), settings=Settings(compaction=settings))
    async with on.host as host:
        host.submit("hello")
        await never.begun.wait()
        assert host.abort()
        await host.wait_idle()
    assert on.view.seen == ["started hello by None", "ended None aborted=True"]
    assert on.model.requests == []


async def test_a_path_may_begin_with_a_tilde(project: Path, home: Path) -> None:
    """Any other path is relative to the agent's directory, not to the process's."""
    other = another_session(project, "yesterday")
    other.rename(home / "s.jsonl")
    on = stage(project)
    async with on.host as host:
        await host.switch_session("~/s.jsonl")
        assert texts(host) == ["yesterday"]
        await host.switch_session(os.path.relpath(on.path, project))
        assert texts(host) == []


async def test_the_header_of_a_session_is_its_first_entry(project: Path) -> None:
    """Of a branch too: hooks may rely on it."""
    on = stage(project)
    async with on.host as host:
        await host.prompt("one")
        await host.branch(2)
        assert isinstance(host.entries[0], SessionHeader)
        assert host.entries[0].id == host.state().session_id == on.runner.session_id
