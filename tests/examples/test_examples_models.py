"""The example hooks that summarise: without a model, and with a cheaper one behind a real HTTP server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Attachment, CompactionEntry, HookError, ImageContent, TextContent, UserMessage
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.models import open_model
from agent_hooks.host.session import Session, now_iso
from agent_hooks.testing import MakeRunner
from agent_hooks.values.content import MessageEntry
from model_server import KEY, KINDS, Fail, ModelServer, Say
from running import Command
from support import ROOT, EchoTool, SilentView

pytestmark = pytest.mark.anyio

EXAMPLES = ROOT / "examples" / "hooks"
CUSTOM = "examples/hooks/custom_compaction.py"
FULL = "examples/hooks/full_compaction.py"
CHEAP = {"anthropic": "claude-haiku", "openai": "gpt-5-mini", "openai-responses": "gpt-5-mini", "google": "gemini"}

Begin = Callable[..., Any]


@pytest.fixture
def begin(project: Path, hook_runner: MakeRunner) -> Begin:
    """Begin a session with one example hook."""

    @asynccontextmanager
    async def begin(hook: str, model: str = "puppet", *before: UserMessage) -> AsyncIterator[Any]:
        errors: list[HookError] = []
        session = Session.create(str(project))
        for message in before:
            session.append(MessageEntry(timestamp=now_iso(), message=message))
        async with await hook_runner(hook, cwd=project) as runner:
            runner.on_error(errors.append)
            async with SessionHost(
                runner=runner, model=open_model(model), tools=[EchoTool()], session=session, view=SilentView()
            ) as host:
                yield host, errors

    return begin


def entry_of(outcome: Any) -> CompactionEntry:
    assert isinstance(outcome.entry, CompactionEntry)
    return outcome.entry


async def test_custom_compaction_has_a_line_for_each_thing_the_person_said(begin: Begin) -> None:
    """A line has a hundred characters and a mark for each image or file; the last prompt stays word for word; twice."""
    png = Attachment(kind="image", file_name="shot.png", mime_type="image/png", content="aGkh")
    look = UserMessage(
        content=[TextContent("look\nat  this"), ImageContent("aGkh", "image/png")], timestamp=0, attachments=(png,)
    )
    long = UserMessage(content="y" * 101, timestamp=0)
    async with begin(CUSTOM, "puppet", look, long) as (host, errors):
        await host.prompt("@bash one")
        await host.prompt("the last")
        entry = entry_of(await host.compact())
        assert entry.from_hook
        assert entry.summary.splitlines() == [
            "The person said:",
            "- look at this [image] [shot.png]",
            f"- {'y' * 100}…",
            "- @bash one",
        ]
        assert [message.role for message in host.messages[1:]] == ["user", "assistant"]
        await host.prompt("and more")
        assert entry_of(await host.compact()).summary.splitlines() == [*entry.summary.splitlines(), "- the last"]
    assert errors == []


async def test_full_compaction_keeps_nothing_and_needs_no_key(begin: Begin) -> None:
    """The puppet has no key: then the summary is the list of the person's messages."""
    async with begin(FULL) as (host, errors):
        await host.prompt("@bash one")
        await host.prompt("the last")
        entry = entry_of(await host.compact())
        assert entry.summary == "The person said:\nPerson: @bash one\nPerson: the last"
        assert len(host.messages) == 1
        await host.prompt("more")
        assert entry_of(await host.compact()).summary == f"{entry.summary}\nPerson: more"
    assert errors == []


@pytest.mark.parametrize("kind", KINDS)
async def test_full_compaction_asks_a_cheaper_model_of_the_same_provider(
    begin: Begin, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key that the event resolves, which is written nowhere, and with the person's instructions."""
    with ModelServer() as server:
        for name, value in server.environment(kind).items():
            monkeypatch.setenv(name, value)
        server.play(Say("Hello."), Say("They said hello."), Say("Going on."))
        async with begin(FULL, f"{kind}:big-model") as (host, errors):
            await host.prompt("hello there")
            entry = entry_of(await host.compact("mention the weather"))
            assert (entry.summary, entry.from_hook, errors) == ("They said hello.", True, [])
            await host.prompt("go on")
            file = Path(host.state().session_file)
        asked = server.requests[1]
        assert CHEAP[kind] in asked.path + json.dumps(asked.body)
        assert KEY in str(asked.headers)
        for words in ("Person: hello there", "Agent: Hello.", "mention the weather"):
            assert words in json.dumps(asked.body)
        assert "They said hello." in json.dumps(server.requests[2].body)
        assert "hello there" not in json.dumps(server.requests[2].body)
        assert KEY not in file.read_text()


async def test_a_cheap_model_that_fails_is_reported_and_the_default_is_used(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conversation is compacted all the same; the key is in no report."""
    with ModelServer() as server:
        for name, value in server.environment("openai").items():
            monkeypatch.setenv(name, value)
        server.play(Say("Hello."), Fail(404, "no such model"), Say("The default summary."))
        async with begin(FULL, "openai:big-model") as (host, errors):
            await host.prompt("hello there")
            entry = entry_of(await host.compact())
        assert (entry.summary, entry.from_hook) == ("The default summary.", False)
        assert "no such model" in errors[0].error
        assert KEY not in str(errors)


@pytest.mark.parametrize("name", ["custom_compaction.py", "full_compaction.py"])
def test_what_they_answer_can_be_seen_without_an_agent(command: Command, name: str) -> None:
    """`agent-hooks emit` asks about a conversation of two prompts."""
    done = command("emit", "session:before_compact", "--hook", str(EXAMPLES / name), "--json")
    outcome = json.loads(done.stdout)["outcome"]
    assert "What is in this directory?" in outcome["summary"]
    assert outcome["firstKeptEntryIndex"] == {"custom_compaction.py": 3, "full_compaction.py": 5}[name]
