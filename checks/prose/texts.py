"""Find the sentences of files and messages, each with its lines and with its code masked.

Left out are blocks of code, doctests, and printed texts that are code themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

TRAILING = 60
"""The longest comment behind code, in characters, without directives such as `noqa`."""

_CODE = re.compile(r"`+[^`]*`+|\]\([^)]*\)|<[\w./ -]+>|\{\w*\}")
_QUOTED = re.compile(r"(?<![\w`])\"(?=\S)[^\"]{1,300}(?<=\S)\"(?!\w)|“[^”]*”|(?<!\w)'\w+'(?!\w)")
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"')\]*_]*\s+|\s\|\s")
_CODE_MARK = re.compile(r"[{}$\\]|[\w)\]]\(\)| =|==|&&|\|\||</|;\s*$|->|=>")
_DIRECTIVE = re.compile(
    r"#\s*(noqa\b(: ?[A-Z]+\d+(, ?[A-Z]+\d+)*)?|type: ignore(\[[^\]]*\])?|pragma: [\w ]+|fmt: \w+)\s*"
)
_STRING_OR_COMMENT = re.compile(
    r"(?P<quotes>\"{3}|'{3})(?:\\.|.)*?(?P=quotes)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|(?P<comment>#[^\n]*)",
    re.DOTALL,
)
_BLOCK_START = re.compile(r"[#|>]|[-*]\s|\d+\.\s|:\w[\w ]*:|\.\. ")


class Sentence(NamedTuple):
    """One sentence, or one comment behind code that is too long: its kind, its lines and its words.

    `place` is a path or the name of a commit. In `masked`, each character of code, link targets and quotes is a backtick.
    """

    kind: str
    place: str
    line: int
    last: int
    text: str
    masked: str


def read(path: Path, root: Path) -> list[Sentence]:
    """Return the sentences and the long trailing comments of a file, by line. A file of another type has none."""
    place = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    if path.suffix == ".md":
        return list(sentences("pages", place, 1, path.read_text(encoding="utf-8")))
    if path.suffix == ".py":
        return sorted(_module(place, path.read_text(encoding="utf-8")), key=lambda each: each.line)
    return []


def _module(place: str, source: str) -> Iterator[Sentence]:
    """Yield the sentences of a Python file. The strings of tests are data, so they are left out."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = [
        node.value
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    for node in docstrings:
        yield from sentences("docstrings", place, node.lineno, str(node.value), node.end_lineno)
    if "tests" not in Path(place).parts:
        yield from _printed_texts(place, nodes, {id(node) for node in docstrings})
    yield from _comments(place, source)


def _printed_texts(place: str, nodes: Sequence[ast.AST], known: set[int]) -> Iterator[Sentence]:
    """Yield the sentences of each other string. A value in an f-string becomes `x`."""
    known = known | {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in known:
            text = node.value
        else:
            continue
        found = sentences("printed texts", place, node.lineno, text, node.end_lineno)
        yield from (each for each in found if not _CODE_MARK.search(each.masked))


def _comments(place: str, source: str) -> Iterator[Sentence]:
    """Yield the sentences of the comments, and the comments behind code that are too long.

    Comments above code on lines that follow one another are one text.
    """
    block: list[str] = []
    last = 0
    line = 1
    counted = 0
    # Four times as fast as `tokenize`. Exact for Python 3.11, whose f-strings cannot contain their own quotes.
    for found in _STRING_OR_COMMENT.finditer(source):
        if found["comment"] is None:
            continue
        line += source.count("\n", counted, found.start())
        counted = found.start()
        text = _DIRECTIVE.sub("", found[0]).removeprefix("#")
        if source[source.rfind("\n", 0, counted) + 1 : counted].strip():
            text = text.strip("# ")
            if len(text) > TRAILING:
                yield Sentence("trailing", place, line, line, text, text)
            yield from sentences("comments", place, line, text)
            continue
        if line != last + 1:
            yield from sentences("comments", place, last - len(block) + 1, "\n".join(block))
            block = []
        block.append(text)
        last = line
    yield from sentences("comments", place, last - len(block) + 1, "\n".join(block))


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, list item, heading and table row with the number of lines above it, without code.

    Code is between fences, in a doctest, or indented below a line that ends in `::` or begins with `..`.
    """
    block: list[str] = []
    start = 0
    fenced = doctest = False
    literal: int | None = None
    for number, line in enumerate(text.split("\n")):
        words = line.lstrip()
        indent = len(line) - len(words)
        fence = words.startswith(("```", "~~~"))
        if words and literal is not None and indent <= literal:
            literal = None
        doctest = bool(words) and (doctest or words.startswith(">>> "))
        code = fence or fenced or doctest or literal is not None
        if code or not words or _BLOCK_START.match(words):
            yield start, "\n".join(block)
            block, start = [], number
        if not code:
            block.append(line)
            if line.rstrip().endswith("::") or words.startswith(".. "):
                literal = indent
        fenced ^= fence
    yield start, "\n".join(block)


def sentences(kind: str, place: str, first: int, text: str, last: int | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a text: parts of two words or more.

    The text begins on line `first` of the source and ends on line `last`. If its line breaks are not the source's, as
    with escapes and implicit concatenation, each sentence gets all lines of the text.
    """
    exact = last is None or text.count("\n") == last - first
    for above, block in blocks(text):
        code_masked = _CODE.sub(_mask, block)
        masked = _QUOTED.sub(_mask, code_masked)
        begin = 0
        for end in [*_END.finditer(code_masked), None]:
            stop = end.start() if end else len(block)
            words = _joined(block[begin:stop])
            if " " in words:
                lead = len(block[begin:stop]) - len(block[begin:stop].lstrip())
                line = first + above + block.count("\n", 0, begin + lead) if exact else first
                end_line = (
                    first + above + block.count("\n", 0, begin + len(block[begin:stop].rstrip())) if exact else last
                )
                yield Sentence(kind, place, line, end_line or line, words, _joined(masked[begin:stop]))
            begin = end.end() if end else stop


def _joined(text: str) -> str:
    return " ".join(text.split()).strip("|#*-> ")


def _mask(found: re.Match[str]) -> str:
    return re.sub(r"\S", "`", found[0])
