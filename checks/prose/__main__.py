"""Report the patterns: in new text by default, in the whole tree or in some files where asked."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from checks.prose.changes import NoBaseError, added_lines, base_of, messages, resolved
from checks.prose.patterns import PATTERNS, SEMICOLON, TOGETHER, Hit, hits
from checks.prose.subjects import LENGTH, faults
from checks.prose.texts import Sentence, read, sentences

ROOT = Path(__file__).parent.parent.parent
PATHS = (
    *("agent_hooks", "benchmarks", "checks", "examples", "tests"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "docs"),
)
_LIMITS = {pattern.name: pattern.limit for pattern in PATTERNS}
TOTAL = "all patterns"
_LIMIT = 200
"""The limit for each fault of commit subjects, which are not rows of the table."""


class Found(NamedTuple):
    """The sentences that were read, and the hits in them."""

    sentences: list[Sentence]
    hits: list[Hit]


def new_text(root: Path, base: str) -> Found:
    """Return the sentences with a line added since the base, and the sentences of the later commit messages."""
    found: list[Sentence] = []
    for name, lines in added_lines(root, base, PATHS).items():
        added = (each for each in _read(root / name, root) if any(n in lines for n in range(each.line, each.last + 1)))
        found.extend(added)
    found_hits = [hit for each in found for hit in hits(each)]
    for name, message in messages(root, base):
        text = list(sentences("commit messages", f"commit {name}", 1, message))
        subject = message.partition("\n")[0]
        whole = Sentence("commit messages", f"commit {name}", 1, 1, subject, subject)
        found += text
        found_hits += [Hit(fault, whole, instead) for fault, instead in faults(subject)]
        found_hits += [hit for each in text for hit in hits(each) if (hit.name, each.line) != (SEMICOLON, 1)]
    return Found(_prose(found), found_hits)


def in_files(paths: Iterable[Path], root: Path) -> Found:
    """Return all sentences of some files and folders."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.*")))]
    found = [each for file in files for each in _read(file, root)]
    return Found(_prose(found), [hit for each in found for hit in hits(each)])


def _prose(found: Iterable[Sentence]) -> list[Sentence]:
    return [each for each in found if each.kind != "trailing"]


def _read(path: Path, root: Path) -> list[Sentence]:
    try:
        return read(path, root)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path}: {error}") from None


def excesses(found: Found) -> dict[str, str]:
    """Return each limit that the hits exceed, as a text, by the name of the pattern or `TOTAL`."""
    total = len(found.sentences)
    exceeded: dict[str, str] = {}
    for name, count in Counter(hit.name for hit in found.hits).items():
        if name == "trailing":
            exceeded[name] = f"trailing: {count}, and none is allowed"
        elif count * _LIMITS.get(name, _LIMIT) > total:
            limit = _LIMITS.get(name, _LIMIT)
            exceeded[name] = f"{name}: {count} of {total} sentences, at most 1 in {limit} may have it"
    together = len({hit.sentence for hit in found.hits if hit.name not in (SEMICOLON, "trailing")})
    if together * TOGETHER > total:
        exceeded[TOTAL] = f"all patterns: {together} of {total} sentences, at most 1 in {TOGETHER} may have one"
    return exceeded


def listed(hits: Iterable[Hit]) -> Iterator[str]:
    """Yield two lines for each hit: the place with the sentence, and the words to write instead."""
    for hit in hits:
        each = hit.sentence
        yield f"{each.place}:{each.line}: {hit.name}: {each.text}"
        yield f"    write: {hit.instead}"


def by_file(found: Found) -> Iterator[str]:
    """Yield a line for each file with hits, the most hits first. Then come the rates by pattern and by kind."""
    files: dict[str, Counter[str]] = {}
    for hit in found.hits:
        files.setdefault(hit.sentence.place, Counter())[hit.name] += 1
    sizes = Counter(each.place for each in found.sentences)
    for place, counts in sorted(files.items(), key=lambda item: (-item[1].total(), item[0])):
        names = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        yield f"{place}: {counts.total()} in {sizes[place]} sentences: {names}"
    total = len(found.sentences)
    counts = Counter(hit.name for hit in found.hits)
    yield ""
    for name, limit in _LIMITS.items():
        yield f"{name:16} {counts[name]:6} {_rate(counts[name], total)}, at most {1000 / limit:g}"
    yield f"{'trailing':16} {counts['trailing']:6} comments behind code, none is allowed"
    yield ""
    kinds = Counter(each.kind for each in found.sentences)
    hit_kinds = Counter(each.kind for each in {hit.sentence for hit in found.hits if hit.name != SEMICOLON})
    for kind, size in sorted(kinds.items()):
        yield f"{kind:16} {hit_kinds[kind]:6} {_rate(hit_kinds[kind], size)} have a hit, semicolons left out"


def table() -> Iterator[str]:
    """Yield a line for each pattern, with an example, and their limits."""
    for row in PATTERNS:
        yield f"{row.name:14} 1 in {row.limit:<4} {row.wrong.strip('`'):41} write: {row.instead}"
    yield f"{'together':14} 1 in {TOGETHER:<4} without {SEMICOLON}"
    rules = f"at most {LENGTH} characters, `area: what changes`, the imperative, no semicolon"
    yield f"{'subject-…':14} 1 in {_LIMIT:<4} commit subjects: {rules}"


def _rate(count: int, total: int) -> str:
    return f"of {total} sentences: {count * 1000 / total:.1f} per 1,000" if total else "of 0 sentences"


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command. Return 1 if new text exceeds a limit, 2 if git cannot tell which text is new."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.prose",
        description="Find constructions that plain English avoids in the text that is new since the check was added.",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--all", action="store_true", help="report all text by file, without failing")
    modes.add_argument("--list", action="store_true", help="print each hit in the files or folders")
    modes.add_argument("--since", metavar="COMMIT", help="judge text that is new since a commit, HEAD~1 for example")
    modes.add_argument("--patterns", action="store_true", help="print the table of patterns and their limits")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="for --all and --list")
    options = parser.parse_args(arguments)
    if options.paths and not (options.all or options.list):
        parser.error("PATH needs --all or --list")
    if options.patterns:
        print("\n".join(table()))
        return 0
    if options.all or options.list:
        found = in_files([path.resolve() for path in options.paths] or [root / name for name in PATHS], root)
        print("\n".join(by_file(found) if options.all else listed(found.hits)))
        return 0
    return _judge(root, options.since)


def _judge(root: Path, since: str | None) -> int:
    try:
        base = base_of(root) if since is None else resolved(root, since)
        found = new_text(root, base)
    except NoBaseError as error:
        print(f"prose: {error}\n`python -m checks.prose --all` needs no history.", file=sys.stderr)
        return 2
    exceeded = excesses(found)
    failing = [hit for hit in found.hits if hit.name in exceeded or (TOTAL in exceeded and hit.name != SEMICOLON)]
    allowed = [hit for hit in found.hits if hit not in failing]
    if allowed:
        print("\n".join(["Within the limits:", *listed(allowed)]))
    if failing:
        print("\n".join(["Beyond the limits:", *listed(failing)]))
    print(f"prose: {len(found.hits)} hits in {len(found.sentences)} sentences that are new since {base[:9]}")
    for text in exceeded.values():
        print(f"  {text}")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
