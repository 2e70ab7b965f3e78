"""Prompts and sessions: context, messages for the person, the end of a run, and compaction."""

from __future__ import annotations

from typing import Any

from clients.cases.table import case
from clients.client import Run
from clients.script import Calls, Script, Shell, Step, Text, script
from clients.seat import Seat

MESSAGE = "The backup is from Friday."
"""The message of everywhere.py to the person."""


@case("blocks a prompt", "block_prompt", terminal=True)
def prompt_blocked(seat: Seat) -> bool:
    seat.ready()
    prompt, reason = "my password is 1234", "no passwords in prompts"
    run = seat.run(Text("done"), prompt=prompt)
    if run.asked:
        return False
    assert seat.told_of_block(reason) in run.output, run.output[-2000:]
    # The gap is that a run without a terminal prints no reason.  A gap that has gone away is red.
    assert (reason in run.output) == ("block_prompt" not in seat.gaps), run.output[-2000:]
    if "block_prompt" in seat.gaps and seat.client.screen:
        steps = script()
        with seat.terminal(steps) as tmux:
            tmux.enter(prompt)
            tmux.sees(reason)
            assert not steps.seen
    return True


@case("adds context to a prompt", "prompt_context", together=True)
def prompt_context(seat: Seat) -> bool:
    seat.ready()
    run = seat.run(Text("done"))
    return "House rule: small commits." in run.context


@case("adds context at the start of a session", "session_context", together=True)
def session_context(seat: Seat) -> bool:
    seat.ready()
    run = seat.run(Text("done"))
    return "called greenhouse" in run.context


@case("shows the user a message", "message", terminal=True)
def message(seat: Seat) -> bool:
    seat.ready()
    if seat.client.screen is None:
        return MESSAGE in seat.shell("echo backup").output
    shown = _is_message_on_screen(seat)
    if "message" not in seat.gaps:
        return shown
    # The gap is that only a run without a screen shows it.  A gap that has gone away is red.
    assert not shown
    return MESSAGE in seat.shell("echo backup").output


def _is_message_on_screen(seat: Seat) -> bool:
    steps = script(Calls(Shell("echo backup")), last="it is over")
    with seat.terminal(steps) as tmux:
        seat.prompt(tmux, steps, "go")
        # Some clients show it for some seconds only.
        first = tmux.until(lambda screen: MESSAGE in screen or "it is over" in screen, "the message")
        return MESSAGE in first or MESSAGE in tmux.sees("it is over")


ENDS = """
from agent_hooks import Stop

def register(api):
    api.on("tool_result", lambda event, ctx: Stop("let it cool down") if "boiling" in event.text else None)
"""


@case("ends the run, and no later call of it runs", "stop")
def stop(seat: Seat) -> bool:
    seat.add_hook("ends.py", ENDS)
    seat.ready()
    before = _ends(seat, "echo overheat; touch denied", shown="let it cool down")
    assert not seat.has("denied")
    # The next prompt begins another run.
    after = _ends(seat, "touch next", "touch ran; echo boiling", resume=True)
    assert seat.has("next")
    assert seat.has("ran")
    failed = _ends(seat, "touch failed; echo boiling; exit 3")
    assert seat.has("failed")
    assert before == after
    # The exception, where a client has one: after a tool that failed, the run ends at the next call.
    assert failed == (before and "stop" not in seat.gaps)
    return before


def _ends(seat: Seat, *commands: str, shown: str = "", resume: bool = False) -> bool:
    """Return whether the model is not asked again after the last command, which hooks stop; no later call may run.

    `shown`: words that the person or the model reads.
    """
    run = seat.shell(*commands, "touch later", resume=resume)
    assert not seat.has("later"), "\n".join(run.results)
    assert shown in run.output + "\n".join(run.results), run.output[-2000:]
    return len(run.script.seen) == len(commands)


@case("keeps the agent going, up to a cap", "continue")
def go_on(seat: Seat) -> bool:
    seat.ready()
    (seat.project / "unfinished").touch()
    run = seat.run(Text("I stop"), Calls(Shell("mv unfinished finished")), Text("done"))
    went_on = seat.has("finished")
    assert ("Go on until it is done." in run.context) == went_on
    (seat.project / "unfinished").touch()
    never = script(last="I stop again")
    seat.client.run(never)
    assert len(never.seen) <= 10, f"{len(never.seen)} requests"
    assert (len(never.seen) > 1) == went_on
    # The exception, where a client has one: it ends a run in which a tool may have changed something.
    seat.run(Calls(Shell("touch changed")), Text("I stop"), Calls(Shell("mv unfinished finished")), Text("done"))
    assert seat.has("changed")
    assert seat.has("unfinished") == (not went_on or "continue" in seat.gaps)
    return went_on


@case("sees a compaction", "compaction")
def compaction(seat: Seat) -> bool:
    seat.ready()
    seat.client.compact(seat.run)
    # Some clients tell hooks of the beginning only.
    return bool({"session before_compact", "session compact"} & {*seat.events()})


@case("cancels a compaction", "cancel_compaction")
def compaction_cancelled(seat: Seat) -> bool:
    seat.ready()
    (seat.project / "keep-everything").touch()
    kept = _requests_of_compaction(seat)
    if "kept everything" not in seat.events() or "session compact" in seat.events():
        return False
    # Not every client tells hooks that it has compacted, but each asks its model for the summary.
    (seat.project / "keep-everything").unlink()
    return kept < _requests_of_compaction(seat)


def _requests_of_compaction(seat: Seat) -> int:
    """Let the client compact a conversation, and return how often it asked the model in all."""
    scripts: list[Script] = []

    def run(*steps: Step, **options: Any) -> Run:
        done = seat.run(*steps, **options)
        scripts.append(done.script)
        return done

    seat.client.compact(run)
    return sum(each.requests for each in scripts)
