"""Questions about a call: at a terminal a person answers, and without a person each one is a denial."""

from __future__ import annotations

from clients.cases.table import NothingHereError, case, told
from clients.script import Calls, Shell, Text, script
from clients.seat import Seat


@case("a question is a denial where no person is", core=True, together=True)
def ask_headless(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo git push; touch denied-ask_headless", "touch fine-ask_headless")
    assert not seat.has("denied-ask_headless")
    assert seat.has("fine-ask_headless"), run.output[-2000:]
    told(run, "Shall it push?")
    return True


@case("a dialog is a no where no person is", together=True)
def dialog_headless(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo publish; touch denied-dialog_headless", "touch fine-dialog_headless")
    assert not seat.has("denied-dialog_headless")
    assert seat.has("fine-dialog_headless"), run.output[-2000:]
    results = "\n".join(run.results)
    assert "publishing needs a yes" in results or "Shall it publish?" in results, results
    return True


@case("asks at a terminal: yes runs, no does not", "ask", terminal=True)
def ask_terminal(seat: Seat) -> bool:
    return _asked_at_terminal(seat, "git push", "Shall it push?")


@case("a dialog at a terminal: yes runs, no does not", "ask", terminal=True)
def dialog_terminal(seat: Seat) -> bool:
    return _asked_at_terminal(seat, "publish", "Shall it publish?")


def _asked_at_terminal(seat: Seat, words: str, question: str) -> bool:
    seat.ready()
    steps = script(
        Calls(Shell(f"echo {words}; touch agreed")),
        Text("the first is over"),
        Calls(Shell(f"echo {words}; touch refused")),
        last="the second is over",
    )
    screen = seat.client.screen
    if screen is None:
        raise NothingHereError(f"{seat.client.name} has no terminal of its own")
    with seat.terminal(steps) as tmux:
        seat.prompt(tmux, steps, "first")
        if "ask" in seat.limits:
            tmux.sees("the first is over")
            assert not seat.has("agreed")
            assert any(question in result for result in steps.seen[-1].results) or words == "publish"
            return False
        # Some clients show a question of their own instead of ours.
        shown = question if "ask" not in seat.gaps else ""
        assert shown in seat.answer(tmux, screen.yes)
        tmux.sees("the first is over")
        assert seat.has("agreed")
        tmux.sees(screen.idle)
        seat.prompt(tmux, steps, "second")
        assert shown in seat.answer(tmux, screen.no)
        tmux.sees(screen.idle)
    assert not seat.has("refused")
    return True


@case("the client's automatic mode answers no question of ours", terminal=True)
def automatic(seat: Seat) -> bool:
    seat.ready()
    steps = script(Calls(Shell("touch fine")), Calls(Shell("echo git push; touch asked")), last="it is over")
    screen = seat.client.screen
    if screen is None:
        raise NothingHereError(f"{seat.client.name} has no terminal of its own")
    with seat.terminal(steps, automatic=True) as tmux:
        seat.prompt(tmux, steps, "go")
        if "ask" in seat.limits:
            tmux.sees("it is over")
        else:
            shown = "Shall it push?" if "ask" not in seat.gaps else ""
            assert shown in seat.answer(tmux, screen.no)
            tmux.sees(screen.idle)
    assert seat.has("fine")
    assert not seat.has("asked")
    return True
