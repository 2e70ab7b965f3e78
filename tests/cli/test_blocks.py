"""The blocks of a Markdown text that is still being written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.cli.screen.markdown import LONGEST_BLOCK, MOST_LINES, Block, MarkdownBlocks

TEXT = """# Title
Text.

- one
- two

  more of two
- three

```python
a = 1

b = 2
```
After.
"""


def pieces(text: str, size: int) -> Iterator[str]:
    """Yield a text in parts."""
    yield from (text[at : at + size] for at in range(0, len(text), size))


def fed(text: str, size: int) -> list[Block]:
    """Return the blocks of a text that comes in parts."""
    blocks = MarkdownBlocks()
    return [block for part in pieces(text, size) for block in blocks.feed(part)] + blocks.end()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_blocks_are_the_same_however_the_text_comes(size: int) -> None:
    """Paragraphs, lists with blank lines in them, and code are blocks."""
    assert [block.text for block in fed(TEXT, size)] == [
        "# Title\nText.",
        "- one\n- two\n\n  more of two\n- three\n",
        "```python\na = 1\n\nb = 2\n```",
        "After.",
    ]


def test_a_paragraph_is_finished_by_the_blank_line_after_it() -> None:
    """It does not wait for the next one."""
    blocks = MarkdownBlocks()
    assert blocks.feed("one\ntwo\n") == []
    assert blocks.unfinished == Block("one\ntwo")
    assert blocks.feed("\n") == [Block("one\ntwo")]
    assert blocks.unfinished is None


def test_code_that_never_ends_is_printed_as_it_comes() -> None:
    """Each part is a block of code by itself, and only a bounded part of it waits."""
    blocks = MarkdownBlocks()
    found: list[Block] = []
    for number in range(1000):
        found += blocks.feed(f"line {number}\n" if number else "~~~~js extra\n")
        assert blocks.unfinished is None or len(blocks.unfinished.text.splitlines()) <= MOST_LINES + 1
    found += blocks.end()
    assert all(block.text.startswith("~~~~js extra\nline ") for block in found)
    assert [block.joined for block in found] == [False, *[True] * (len(found) - 1)]
    assert [line for block in found for line in block.text.splitlines()[1:]] == [f"line {n}" for n in range(1, 1000)]


def test_a_fence_stays_open_while_something_else_is_printed() -> None:
    """A notice in the middle of a block of code does not turn the rest of it into text."""
    blocks = MarkdownBlocks()
    assert blocks.feed("```\none\n") == []
    assert blocks.pause() == [Block("```\none")]
    assert blocks.feed("# two\n```\n") == [Block("```\n# two\n```", joined=True)]
    assert blocks.feed("```\n") == blocks.end() == []


def test_a_line_of_10_mb_comes_in_verbatim_pieces() -> None:
    """No part of it is lost, and the text after it is Markdown again."""
    line = "x" * 10_000_000
    found = fed(f"before\n{line}\n\nafter\n", 100_000)
    assert "".join(block.text for block in found if block.verbatim) == f"{line}\n"
    assert max(len(block.text) for block in found) <= LONGEST_BLOCK + 1
    assert [block.text for block in found if not block.verbatim] == ["before", "after"]


@given(st.text(alphabet="`~#-* \n1.ab>|", max_size=200), st.integers(1, 9))
def test_no_word_is_lost(text: str, size: int) -> None:
    """Whatever a model writes, each of its letters is in a block."""
    shown = "".join(block.text for block in fed(text, size))
    assert shown.count("a") >= text.count("a")
    assert shown.count("b") >= text.count("b")
