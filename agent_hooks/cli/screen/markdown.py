"""Markdown at a terminal: wrapped at words, without boxes, and with no character of the source lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

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
