"""Sessions in the real Claude Code: texts for the model and the person, state, prompts and compaction."""

from __future__ import annotations

import pytest

from clients.claude_seat import ClaudeSeat, bash
from model_server import Say

pytestmark = pytest.mark.client


def test_what_hooks_say_reaches_the_model_and_the_person(claude: ClaudeSeat) -> None:
    """At the start, at the prompt, before and after a call."""
    claude.hook("""
        def register(api):
            @api.on("session")
            def start(event, ctx):
                if event.reason == "start":
                    api.send("from the start")

            @api.intercept("message.before")
            def prompt(input, output):
                output.context.append("from the prompt")

            @api.on("tool_call")
            def before(event, ctx):
                api.send("from the call")
                ctx.ui.notify("a call of " + event.tool_name)

            @api.on("tool_result")
            def after(event, ctx):
                api.send("from the result")

            @api.on("turn_end")
            def batch(event, ctx):
                api.send(f"from the turn, {len(event.tool_results)} result")
    """)
    run = claude.play(Say(calls=[bash("true")]), Say("done"))
    for words in ("the start", "the prompt", "the call", "the result", "the turn, 1 result"):
        assert run.context.count(f"from {words}") == 1, words
    assert "PreToolUse:Bash says: a call of bash" in run.notices


def test_a_text_sent_at_the_end_keeps_the_agent_going_once(claude: ClaudeSeat) -> None:
    """The second text waits for the next prompt, which does not come here."""
    claude.hook("""
        def register(api):
            @api.on("agent_end")
            def more(event, ctx):
                api.send("go on")
    """)
    run = claude.play(Say("first"), Say("second"))
    assert run.answer == "second"
    assert run.context.count("go on") == 1


def test_hooks_keep_their_state_over_a_session(claude: ClaudeSeat) -> None:
    """One process answers all events of the session, and another session has hooks of its own."""
    claude.hook("""
        def register(api):
            seen = []

            @api.on("tool_call", tool="bash")
            def count(event, ctx):
                seen.append(event.input["command"])
                api.send(f"seen: {len(seen)}")

            @api.on("session")
            def note(event, ctx):
                with open("log", "a") as log:
                    log.write(f"{event.reason} {ctx.session_id}\\n")
    """)
    run = claude.play(Say(calls=[bash("true")]), Say(calls=[bash("true ")]), Say("done"))
    assert "seen: 2" in run.context
    (server,) = claude.client.servers()
    again = claude.play(Say(calls=[bash("true")]), Say("done"))
    assert "seen: 1" in again.context
    assert claude.client.servers() == [server]
    sessions = [run.session_id, again.session_id]
    assert claude.lines() == [f"{reason} {session}" for session in sessions for reason in ("start", "shutdown")]


def test_a_rewritten_prompt_is_added_to_what_was_said(claude: ClaudeSeat) -> None:
    """Claude Code lets no hook change a prompt, and a message tells the person so."""
    claude.hook("""
        def register(api):
            @api.intercept("message.before")
            def polite(input, output):
                output.message += ", please"
    """)
    run = claude.play(Say("done"), prompt="build it")
    assert "Read it as:\nbuild it, please" in run.context
    assert any("a hook rewrote the prompt" in notice for notice in run.notices)


def test_hooks_get_the_words_and_the_summary_of_a_compaction(claude: ClaudeSeat) -> None:
    """A hook cancels by the words of `/compact`, and gets the summary of a compaction that runs."""
    hook = """
        from agent_hooks import Cancel

        def register(api):
            @api.on("session")
            def compaction(event, ctx):
                if event.reason == "before_compact" and "cancel" in (event.custom_instructions or ""):
                    return Cancel("not now")
                if event.reason == "compact":
                    open("log", "w").write(event.compaction_entry.summary)
    """
    claude.hook(hook)
    first = claude.play(Say("one"), prompt="hello")
    again = claude.play(Say("two"), prompt="hello again", args=["--resume", first.session_id])
    cancelled = claude.play(prompt="/compact cancel it", args=["--resume", again.session_id])
    assert "not now" in cancelled.answer
    assert cancelled.requests == []
    done = claude.play(Say("<summary>all of it</summary>"), prompt="/compact", args=["--resume", again.session_id])
    assert len(done.requests) == 1
    assert any("all of it" in line for line in claude.lines())
