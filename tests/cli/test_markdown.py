"""Markdown as lines of a terminal."""

from __future__ import annotations

import io
import re

import pytest

from agent_hooks.cli.screen.markdown import Rendered
from agent_hooks.cli.screen.paper import Paper


def shown(source: str, columns: int = 40) -> list[str]:
    """Return the lines of a Markdown text, without colours."""
    file = io.StringIO()
    Paper(force_terminal=True, highlight=False, width=columns, file=file).print(Rendered(source), end="")
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()


def test_markdown_is_shown_without_its_signs() -> None:
    """Headings, emphasis, lists, code and tables; line breaks stay."""
    assert shown("# One\ntwo *three* `four`\nfive") == ["One", "", "two three four", "five"]
    assert shown("- one\n- two") == [" • one", " • two"]
    assert shown("```python\nif x:\n    y()\n```") == ["if x:", "    y()"]
    assert [line.split() for line in shown("| a | b |\n|---|---|\n| 1 | 2 |")[::2]] == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize("source", ["[1]: http://example.com", "<thinking>why</thinking>", "List<String>", "&lt; a &b"])
def test_no_text_is_lost(source: str) -> None:
    """HTML and the definitions of links are text."""
    assert "".join(shown(source)).replace("&", "") in (source.replace("&", ""), "< a b")


@pytest.mark.parametrize("columns", [20, 37, 80])
def test_no_word_is_broken(columns: int) -> None:
    """At any width, lines fit and end at words; only a word that is wider than the terminal is broken."""
    words = [f"word{number}" for number in range(200)]
    for source in (
        " ".join(words),
        "- " + " ".join(words),
        "> " + " ".join(words),
        "```\n" + " ".join(words) + "\n```",
    ):
        lines = shown(source, columns)
        assert max(map(len, lines)) <= columns
        assert re.findall(r"word\d+", " ".join(lines)) == words


def test_escapes_of_a_model_do_nothing() -> None:
    """Its colours are dropped, and everything else is shown."""
    assert shown("\x1b[31mred\x1b[0m \x1b[2J") == [r"red \x1b[2J"]
    assert shown("```\n\x1b]0;x\x07\n```") == [r"\x1b]0;x\x07"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("see <https://a.de/b> now", "see https://a.de/b now"),
        ("[https://a.de](https://a.de)", "https://a.de"),
        ("<me@a.de>", "me@a.de"),
        ("[docs](https://a.de)", "docs (https://a.de)"),
    ],
)
def test_an_address_is_shown_once(source: str, line: str) -> None:
    """A link has its address behind its text, but not behind the address itself."""
    assert shown(source) == [line]
