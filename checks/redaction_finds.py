"""Prints the secrets that redaction finds in the files of some directories, by kind and by extension.

    python -m checks.redaction_finds DIRECTORY… [--most 1000] [--names '*.yml' '*.env'] [--show]

In files that hold no secrets, each of them is a false positive.  Values are masked: the first three characters stay, and
the length; `--show` prints the line as redaction would show it, with the values.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch

from agent_hooks.redaction import Redactor

_LARGEST = 8_000_000
"""Bytes of a file that is searched."""
_SKIPPED = {".git", "__pycache__", ".mypy_cache", ".ruff_cache"}


def files_below(directory: str, names: list[str]) -> Iterator[str]:
    """Yield the files below a directory, in order of their names, that fit one of some patterns."""
    for place, directories, found in os.walk(directory):
        directories[:] = sorted(each for each in directories if each not in _SKIPPED)
        for name in sorted(found):
            if not names or any(fnmatch(name, each) for each in names):
                yield os.path.join(place, name)


def text_of_file(path: str) -> str | None:
    """Return the text of a file; `None` for one that is large, binary or cannot be read."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    return None if b"\0" in data[:4096] else data.decode("utf-8", "replace")


def main() -> None:
    """Search the files and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--most", type=int, default=0, help="files that are searched, all unless given")
    parser.add_argument("--names", nargs="*", default=[], help="patterns of the files' names")
    parser.add_argument("--show", action="store_true", help="print the values")
    options = parser.parse_args()
    redactor = Redactor(environ={})
    kinds: Counter[str] = Counter()
    extensions: Counter[str] = Counter()
    files = characters = holding = 0
    for directory in options.directories:
        for path in files_below(directory, options.names):
            if options.most and files >= options.most:
                break
            if (text := text_of_file(path)) is None:
                continue
            files, characters = files + 1, characters + len(text)
            _, secrets = redactor.redact(text)
            holding += bool(secrets)
            for secret in secrets:
                kinds[secret.kind] += 1
                extensions[os.path.splitext(path)[1] or os.path.basename(path)] += 1
                value = text[secret.start : secret.end]
                line = text.count("\n", 0, secret.start) + 1
                shown = value if options.show else f"{value[:3]}… ({len(value)} characters)"
                before = text[max(0, secret.start - 40) : secret.start].rpartition("\n")[2]
                print(f"{path}:{line}: {secret.kind}: {before}{shown}")
    print(f"\n{files} files, {characters} characters: {kinds.total()} secrets in {holding} files")
    for name, counted in (("kind", kinds), ("extension", extensions)):
        print(f"by {name}: " + ", ".join(f"{each} {count}" for each, count in counted.most_common()))


if __name__ == "__main__":
    main()
