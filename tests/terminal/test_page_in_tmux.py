"""docs/interactive.md, typed and read in a real terminal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent_hooks.cli.interactive.vocabulary import COMMANDS, KEYS
from support import approve
from test_docs import ROOT, blocks, without
from tmux import Tmux

PAGE = ROOT / "docs" / "interactive.md"


@pytest.mark.terminal
def test_what_the_page_shows_is_what_a_person_sees(terminal: Callable[..., Tmux], project: Path) -> None:
    """A block's `> …` is typed, the rest must come; where that ends in a dialog, the answer is yes."""
    for block in blocks(PAGE):
        if block.kind == "python":
            path = project / str(block.file)
            path.parent.mkdir(parents=True)
            path.write_text(block.text)
    approve(project)
    tmux = terminal()
    tmux.start_agent("--no-session")
    for block in blocks(PAGE):
        if block.kind == "text":
            shown = block.text.splitlines()
            if shown[0].startswith("> "):
                tmux.enter(shown[0].removeprefix("> "))
            tmux.until(partial(shows, shown), block.text)
            if shown[-1].endswith("stops the agent"):
                tmux.press("2")


def shows(lines: list[str], screen: str) -> bool:
    """Tell whether all lines are on screen."""
    return not without(lines, screen)


def test_the_page_has_every_key_and_command() -> None:
    """The page describes keys in the words of /help."""
    page = PAGE.read_text()
    assert [key for key, does in KEYS.items() if f"| {key} | {does} |" not in page] == []
    assert [command for command in COMMANDS if f"| `{command}" not in page] == []
