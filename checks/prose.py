"""Count the sentences that hide their subject, and the comments that trail a line for too long.

A sentence is counted when it holds "what", "who", "whoever", "whatever" or "nobody" and is no question: those words stand
where a noun of the glossary should.  Read are docstrings, comments, the texts that the program prints, and the pages.
`python checks/prose.py` prints one row for each kind and fails above the limits; `--list [PATH …]` prints each sentence
with its place.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
CODE = ("agent_hooks", "examples", "benchmarks", "checks", "tests")
PAGES = ("README.md", "CONTRIBUTING.md", "docs")
LIMIT = 50
"""One sentence in so many may be counted, for each kind."""
TRAILING = 60
"""The longest comment behind code, in characters without directives such as `noqa`."""

_FREE = re.compile(r"\b(what|whatever|who|whoever|whom|nobody)\b", re.IGNORECASE)
_CODE = re.compile(r"`+[^`]*`+")
_END = re.compile(r"(?<=[.!?:;])[\"')\]]*\s+|\n\s*\n|\s\|\s")
_DIRECTIVE = re.compile(r"#\s*(noqa\b(: ?[A-Z0-9, ]+)?|type: ignore(\[[^\]]*\])?|pragma: no cover|fmt: \w+)\s*")


class Sentence(NamedTuple):
    """One sentence: its kind, the place where its text begins, and its words."""

    kind: str
    path: Path
    line: int
    text: str

    @property
    def counted(self) -> bool:
        """Whether the sentence hides its subject."""
        return not self.text.endswith("?") and _FREE.search(_CODE.sub("", self.text)) is not None


def sentences_of(kind: str, path: Path, line: int, text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text: parts of two words or more."""
    for part in _END.split(text):
        words = " ".join(part.split()).strip("|#*-> ")
        if words.count(" "):
            yield Sentence(kind, path, line, words)


def docstrings(tree: ast.Module, path: Path) -> tuple[list[Sentence], set[int]]:
    """Return the sentences of all docstrings, attributes' too, and the ids of the nodes that hold them."""
    found: list[Sentence] = []
    nodes: set[int] = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                nodes.add(id(value))
                found += sentences_of("docstrings", path, statement.lineno, value.value)
    return found, nodes


def printed(tree: ast.Module, path: Path, known: set[int]) -> Iterator[Sentence]:
    """Yield the sentences of string constants that are no docstrings: errors, help and other texts for people."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            known |= {id(part) for part in node.values}
            text = "".join(part.value if isinstance(part, ast.Constant) else "`x`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in known:
            text = node.value
        else:
            continue
        yield from sentences_of("printed texts", path, node.lineno, text)


def comments(source: str, path: Path) -> tuple[list[Sentence], list[Sentence]]:
    """Return the sentences of the comments, those in a block taken together, and the comments that trail too long."""
    found: list[Sentence] = []
    trailing: list[Sentence] = []
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = _DIRECTIVE.sub("", token.string).lstrip("# ").strip()
        line = token.start[0]
        alone = not token.line[: token.start[1]].strip()
        if not alone and len(text) > TRAILING:
            trailing.append(Sentence("trailing comments", path, line, text))
        if block and not (alone and line == last + 1):
            found += sentences_of("comments", path, start, " ".join(block))
            block = []
        if not block:
            start = line
        block.append(text)
        last = line
    found += sentences_of("comments", path, start, " ".join(block))
    return found, trailing


def page(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page, without its blocks of code."""
    lines: list[str] = []
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
            line = ""
        begins = re.match(r"\s*([-*#|>]|\d+\.)", line) or not line.strip()
        lines += [""] * bool(begins) + ["" if inside else line]
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        number = 1
        yield from sentences_of("pages", path, number, paragraph)


def read(paths: list[Path]) -> tuple[list[Sentence], list[Sentence]]:
    """Return all sentences of some files or folders, and the comments that trail too long."""
    sentences: list[Sentence] = []
    trailing: list[Sentence] = []
    for path in sorted(file for each in paths for file in ([each] if each.is_file() else each.rglob("*.*"))):
        if path.suffix == ".md":
            sentences += page(path)
        elif path.suffix == ".py":
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            found, known = docstrings(tree, path)
            sentences += found
            if "tests" not in path.relative_to(ROOT).parts:
                sentences += printed(tree, path, known)
            found, late = comments(source, path)
            sentences += found
            trailing += late
    return sentences, trailing


def main() -> int:
    """Print the table, or the list; return 1 above a limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="print each counted sentence with its place")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; all of the project unless given")
    options = parser.parse_args()
    paths = [path.resolve() for path in options.paths] or [ROOT / name for name in (*CODE, *PAGES)]
    sentences, trailing = read(paths)
    counted = [each for each in sentences if each.counted]
    if options.list:
        for each in (*counted, *trailing):
            print(f"{each.path.relative_to(ROOT)}:{each.line}: {each.kind}: {each.text}")
    totals, found = Counter(each.kind for each in sentences), Counter(each.kind for each in counted)
    for kind, total in totals.items():
        rate = f"1 in {total // found[kind]}" if found[kind] else "none"
        print(
            f"{kind:15} {found[kind]:5} of {total:6} sentences hang on what, who or nobody: {rate} (at most 1 in {LIMIT})"
        )
    print(f"{'trailing':15} {len(trailing):5} comments behind code are longer than {TRAILING} characters (none)")
    failed = bool(trailing) or any(found[kind] * LIMIT > total for kind, total in totals.items())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
