"""Markdown at a terminal: wrapped at words, without boxes, and with no character of the source lost.

The blocks of a Markdown text that is still being written, without I/O.

A finished block is never changed again, so it can be printed; the unfinished one is shown until it is finished.

1. A line without indent that opens a fence of code ends the block before it; the closing fence ends the block of code.
2. A blank line ends a block.  A list, or indented code, goes on after it with an indent or another item.
3. A block that gets longer than a limit is finished as far as it goes, at the end of a line.  The next part is joined
   to it without a blank line, and in a block of code the fence is opened again.  So an unclosed fence stops nothing.
4. A line beyond the limit is no Markdown: it is given out in verbatim pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from agent_hooks.ui.harmless import uncoloured

_TAB = 4
# Only the colours of the person's terminal: a theme with a background would be wrong on the other half of them.
_CODE_THEME = "ansi_dark"
_THEME = Theme({"markdown.code": "cyan", "markdown.item.number": "bold"})


class _Heading(Heading):
    """A heading without a box, at the left."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield text


class _Code(CodeBlock):
    """A block of code without a background, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        yield Syntax(
            code, self.lexer_name, theme=_CODE_THEME, word_wrap=True, background_color="default", tab_size=_TAB
        )


class PlainMarkdown(Markdown):
    """Markdown whose line breaks are kept, and whose HTML is text."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.markup, self.parsed = source, parser.parse(source)
        for token in self.parsed:
            if token.children:
                token.children = [*_without_bare_links(token.children)]
            for child in token.children or ():
                if child.type == "softbreak":
                    child.type = "hardbreak"


def _without_bare_links(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield inline tokens, without the marks of a link whose text is its address, which would be shown twice."""
    skipped = -1
    for at, token in enumerate(tokens):
        if token.type == "link_open" and at + 2 < len(tokens) and tokens[at + 2].type == "link_close":
            text = tokens[at + 1].content
            if token.attrs.get("href") in (text, f"mailto:{text}"):
                skipped = at + 2
                continue
        if at != skipped:
            yield token


class Rendered:
    """The lines of a Markdown text, without blank lines around them and without spaces at their ends."""

    def __init__(self, source: str) -> None:
        self._source = uncoloured(source)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(_THEME):
            rendered = console.render_lines(PlainMarkdown(self._source), options, pad=False)
        lines = [_stripped(line) for line in rendered]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        if not lines:
            # The definition of a link, for example, shows nothing; but the person should see it.
            yield Text(self._source.strip())
            return
        for line in lines:
            yield from line
            yield Segment.line()


def _stripped(line: Iterable[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.rstrip():
        kept.pop()
    if kept:
        last = kept[-1]
        kept[-1] = Segment(last.text.rstrip(), last.style, last.control)
    return kept


LONGEST_BLOCK = 8_000  # characters
MOST_LINES = 60
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^\n]*)")
_ITEM = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])(\s|$)")


class Block(NamedTuple):
    """A part of a Markdown text that can be shown by itself.

    `joined`: it goes on with the block before; `verbatim`: it is a part of a line that is too long for Markdown.
    """

    text: str
    joined: bool = False
    verbatim: bool = False


class MarkdownBlocks:
    """Splits the parts of a text, as they come, into blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        # The beginning of a line.
        self._partial = ""
        # The fence that is open, with its info text, and the pattern of the line that closes it.
        self._fence = ""
        self._closing: re.Pattern[str] | None = None
        self._joined = False
        # Inside of a line that is longer than the limit.
        self._overlong = False

    def feed(self, delta: str) -> list[Block]:
        """Take the next part of the text, and return the blocks that it finishes."""
        found: list[Block] = []
        *lines, rest = delta.split("\n")
        for line in lines:
            self._add(line, found)
            self._end_line(found)
        self._add(rest, found)
        return found

    @property
    def unfinished(self) -> Block | None:
        """The block that is being written."""
        lines = [*self._lines, *([self._partial] if self._partial else [])]
        if not any(line.strip() for line in lines):
            return None
        return Block("\n".join(lines), self._joined)

    def pause(self) -> list[Block]:
        """Return the unfinished block, because something else is printed; a fence stays open."""
        found: list[Block] = []
        if self._partial:
            self._end_line(found)
        self._finish(found, joined=bool(self._fence))
        return found

    def end(self) -> list[Block]:
        """Return the last block; the next text is another one."""
        found = self.pause()
        self.__init__()  # type: ignore[misc]  # the beginning is the only other state
        return found

    def _add(self, text: str, found: list[Block]) -> None:
        """Add a text without a newline to the last line."""
        self._partial += text
        if not self._overlong and len(self._partial) <= LONGEST_BLOCK:
            return
        if not self._overlong:
            self._finish(found, joined=False)
            self._overlong = True
        while len(self._partial) > LONGEST_BLOCK:
            found.append(Block(self._partial[:LONGEST_BLOCK], joined=True, verbatim=True))
            self._partial = self._partial[LONGEST_BLOCK:]

    def _end_line(self, found: list[Block]) -> None:
        line, self._partial = self._partial, ""
        if self._overlong:
            found.append(Block(f"{line}\n", joined=True, verbatim=True))
            self._overlong, self._joined = False, True
            return
        if self._closing is not None:
            self._take(line)
            if self._closing.fullmatch(line):
                self._closing, self._fence = None, ""
                self._finish(found, joined=False)
        elif (fence := _FENCE.fullmatch(line)) and self._begins_fence(fence):
            self._finish(found, joined=False)
            self._fence = line
            mark = re.escape(fence[2][0])
            self._closing = re.compile(rf" {{0,3}}{mark}{{{len(fence[2])},}}\s*")
            self._take(line)
        elif not line.strip() and self._lines and not self._is_open():
            self._finish(found, joined=False)
        else:
            if line.strip() and self._lines and not self._lines[-1].strip() and not self._goes_on(line):
                self._finish(found, joined=False)
            self._take(line)
        if self._size > LONGEST_BLOCK or len(self._lines) > MOST_LINES:
            self._finish(found, joined=True)

    def _begins_fence(self, fence: re.Match[str]) -> bool:
        # A fence of back-quotes has none in its info text.  A fence with an indent may belong to an item of a list.
        quotes = fence[2][0] == "`" and "`" in fence[3]
        return not quotes and (not fence[1] or not any(line.strip() for line in self._lines))

    def _is_open(self) -> bool:
        """Tell whether the block may go on after a blank line, as lists and indented code do."""
        return any(line[:1].isspace() or _ITEM.match(line) for line in self._lines)

    def _goes_on(self, line: str) -> bool:
        """Tell whether a line after a blank one belongs to the same block."""
        return line[0].isspace() or bool(_ITEM.match(line))

    def _take(self, line: str) -> None:
        if line.strip() or any(each.strip() for each in self._lines):
            self._lines.append(line)
            self._size += len(line)

    def _finish(self, found: list[Block], *, joined: bool) -> None:
        """Finish the block; `joined`: the next one goes on with it."""
        if any(line.strip() for line in self._lines) and self._lines != [self._fence]:
            found.append(Block("\n".join(self._lines), self._joined))
            self._joined = joined
        self._lines = [self._fence] if self._fence else []
        self._size = sum(map(len, self._lines))
