"""Answers that count for later calls, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal


def answer(tmux: Tmux, downs: int, chosen: str) -> None:
    """Choose an answer of the dialog."""
    tmux.sees("> 1. No")
    for _ in range(downs):
        tmux.press("Down")
    tmux.sees(f"> {downs + 1}. {chosen}")
    tmux.press("Enter")


def test_a_person_gives_answers_sees_them_and_ends_them(terminal: Callable[..., Tmux], command: Command) -> None:
    """`/clear` ends the answer of the session; `/hooks` shows both kinds, and `/hooks revoke 1` ends one for always."""
    tmux = terminal(columns=150, rows=50)
    tmux.start_agent("--no-session")
    tmux.enter("@bash rm -rf dist2")
    answer(tmux, 2, "Yes, for this session")
    tmux.sees("until this session ends: rm -rf dist2 (rm-rf)")
    tmux.enter("@bash rm -rf dist2 #2")
    tmux.sees("rm -rf dist2 #2 → ok")
    tmux.enter("/hooks")
    tmux.sees("allowed until this session ends: rm -rf dist2 (rm-rf)")
    tmux.enter("/hooks revoke s2")
    tmux.sees("there is no such answer")
    tmux.enter("/hooks revoke s1")
    tmux.sees("ended: rm -rf dist2 (rm-rf)")
    tmux.enter("@bash rm -rf dist2 #2b")
    answer(tmux, 2, "Yes, for this session")
    tmux.sees("until this session ends: rm -rf dist2 (rm-rf)", times=2)
    tmux.command("/clear")
    tmux.sees("the conversation is forgotten")
    tmux.enter("@bash rm -rf dist2 #3")
    answer(tmux, 3, "Always")
    tmux.sees("to end it: /hooks revoke 1")
    tmux.command("/clear")
    tmux.enter("@bash rm -rf dist2 #4")
    tmux.sees("rm -rf dist2 #4 → ok")
    tmux.enter("/hooks")
    tmux.sees("to end one: /hooks revoke N")
    tmux.enter("/hooks revoke x")
    tmux.sees("say /hooks, or /hooks revoke N")
    tmux.enter("/hooks revoke 1")
    tmux.sees("ended: answer 1: rm -rf dist2 (rm-rf)")
    tmux.enter("@bash rm -rf dist2 #5")
    tmux.sees("> 1. No")
