"""Count the sentences that hide their subject, and the long comments behind code.

A sentence is counted when it uses "what", "who", "whoever", "whatever", "whom" or "nobody" in place of a noun. Not
counted are questions, `code`, quoted words, and "who" right behind a noun for persons ("the person who installed it").
A colon or semicolon ends a sentence too.

The texts are docstrings, comments, printed texts (string constants outside tests) and pages. `python checks/prose.py`
prints one row for each kind and exits with 1 above a limit. `--list [PATH …]` prints each counted sentence with its
place.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PATHS = (
    *("agent_hooks", "benchmarks", "checks", "examples", "tests"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "docs"),
)
LIMIT = 50
"""One sentence in so many may be counted, for each kind."""
TRAILING = 60
"""The longest comment behind code, in characters, without directives such as `noqa`."""

_FREE = re.compile(r"\b(what|whatever|who|whoever|whom|nobody)\b", re.IGNORECASE)
_PERSON_WHO = re.compile(r"\b(person|people|(user|author|reader|attacker)s?)\s+who\b", re.IGNORECASE)
_CODE = re.compile(r"`+[^`]*`+")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")
_QUOTED_WORD = re.compile(r"\"\w+\"|“\w+”")
_END = re.compile(r"(?<=[.!?:;])[\"')\]*_]*\s+|\n\s*\n|\s\|\s")
_DIRECTIVE = re.compile(
    r"#\s*(noqa\b(: ?[A-Z]+\d+(, ?[A-Z]+\d+)*)?|type: ignore(\[[^\]]*\])?|pragma: [\w ]+|fmt: \w+)\s*"
)
_BLOCK_START = re.compile(r"\s*([-*#|>]|\d+\.)")


class Sentence(NamedTuple):
    """One sentence, or one comment behind code: its kind, its place, its words, and whether it is counted."""

    kind: str
    path: Path
    line: int
    text: str
    counted: bool


def read(paths: Sequence[Path]) -> Iterator[Sentence]:
    """Yield the sentences and the long trailing comments of some files or folders."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.*")))]
    for file in files:
        if file.suffix == ".md":
            yield from page(file)
        elif file.suffix == ".py":
            yield from sorted(module(file), key=lambda each: each.line)


def module(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Python file; texts that a test prints or compares are left out."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstrings = list(docstrings_of(tree))
    for node in docstrings:
        yield from sentences("docstrings", path, node.lineno, str(node.value), node.end_lineno)
    if "tests" not in place(path).parts:
        for text, line, last in printed_texts(tree, docstrings):
            yield from sentences("printed texts", path, line, text, last)
    yield from comments(path, source)


def docstrings_of(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the strings that stand alone as a statement: docstrings, those of attributes too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def printed_texts(tree: ast.Module, docstrings: Sequence[ast.Constant]) -> Iterator[tuple[str, int, int | None]]:
    """Yield each other string with its first and last line; a value in an f-string becomes `x`."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    known = parts | {id(node) for node in docstrings}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(_part, node.values)), node.lineno, node.end_lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in known:
            yield node.value, node.lineno, node.end_lineno


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "`x`"


def comments(path: Path, source: str) -> Iterator[Sentence]:
    """Yield the sentences of the comments, and the comments behind code that are too long.

    Comments above code on lines that follow one another are one text.
    """
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        text = _DIRECTIVE.sub("", token.string).strip("# ")
        if token.line[:column].strip():
            if len(text) > TRAILING:
                yield Sentence("trailing", path, line, text, counted=True)
            yield from sentences("comments", path, line, text)
            continue
        if line != last + 1:
            yield from sentences("comments", path, last - len(block) + 1, "\n".join(block))
            block = []
        block.append(text)
        last = line
    yield from sentences("comments", path, last - len(block) + 1, "\n".join(block))


def page(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page, without its blocks of code; a list item, a table row and a heading begin a text."""
    block: list[str] = []
    start = 1
    in_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = line.lstrip().startswith("```")
        if fence or in_code or not line.strip() or _BLOCK_START.match(line):
            yield from sentences("pages", path, start, "\n".join(block))
            block, start = [], number
        in_code ^= fence
        if not (fence or in_code):
            block.append(line)
    yield from sentences("pages", path, start, "\n".join(block))


def sentences(kind: str, path: Path, line: int, text: str, last: int | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a text: parts of two words or more.

    The text begins on `line`. It ends on `last` at the latest, since a line break may be an escape within one line.
    """
    masked = _QUOTED_WORD.sub(_mask, _LINK_TARGET.sub(_mask, _CODE.sub(_mask, text)))
    begin = 0
    for end in [*_END.finditer(masked), None]:
        stop = end.start() if end else len(text)
        words = " ".join(text[begin:stop].split()).strip("|#*-> ")
        if " " in words:
            lead = len(text[begin:stop]) - len(text[begin:stop].lstrip())
            number = line + text.count("\n", 0, begin + lead)
            yield Sentence(kind, path, min(number, last or number), words, hides_its_subject(masked[begin:stop]))
        begin = end.end() if end else stop


def hides_its_subject(sentence: str) -> bool:
    """Return whether a sentence, its code masked, uses a free pronoun and is no question."""
    question = sentence.rstrip(" \n\"')]*_|").endswith("?")
    return not question and _FREE.search(_PERSON_WHO.sub("", sentence)) is not None


def _mask(found: re.Match[str]) -> str:
    return re.sub(r"\S", "`", found[0])


def place(path: Path) -> Path:
    """Return a path as seen from the project's root, or the path itself outside."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def table(found: Sequence[Sentence]) -> tuple[list[str], bool]:
    """Return one row for each kind, and whether all are within their limits."""
    rows: list[str] = []
    within = True
    totals = Counter(each.kind for each in found)
    counts = Counter(each.kind for each in found if each.counted)
    for kind in ("docstrings", "comments", "printed texts", "pages"):
        count, total = counts[kind], totals[kind]
        share = f"1 in {total // count}" if count else "none"
        rows.append(f"{kind:13} {count:5} of {total:6} sentences hide their subject: {share} (at most 1 in {LIMIT})")
        within &= count * LIMIT <= total
    rows.append(f"{'trailing':13} {counts['trailing']:5} comments behind code exceed {TRAILING} characters (none may)")
    return rows, within and not counts["trailing"]


def main() -> int:
    """Print the table, and the list where asked; return 1 above a limit."""
    parser = argparse.ArgumentParser(description="Count the sentences that hide their subject.")
    parser.add_argument("--list", action="store_true", help="print each counted sentence with its place")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; the whole project unless given")
    options = parser.parse_args()
    found = list(read([path.resolve() for path in options.paths] or [ROOT / name for name in PATHS]))
    if options.list:
        for each in found:
            if each.counted:
                print(f"{place(each.path)}:{each.line}: {each.kind}: {each.text}")
    rows, within = table(found)
    print("\n".join(rows))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
