"""The program of grep's child process: `python search.py JOB`; the job is a JSON file.  It imports no module of ours.

Each line of its output begins with a letter: `S` for a match to show, `s` for a line around such a match, `R` and `r` for
matches past the limit and the lines around them.  Exit code 3 means a wrong pattern, and the output is the reason.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

WRONG_PATTERN = 3
"""The exit code for a wrong pattern; Python itself uses 1 and 2."""
LONGEST_LINE = 1024 * 1024
"""The bytes of a line that are searched."""
SHOWN = 500
"""The characters of a line that are shown."""
BINARY_PROBE = 8192
"""A file with a NUL in so many bytes at its start is binary."""


def main(job_path: str) -> int:
    """Run the search in the file `job_path`, print the found lines, and return the exit code."""
    with open(job_path, encoding="ascii") as file:
        job = json.load(file)
    write = sys.stdout.buffer.write
    try:
        pattern = re.compile(job["pattern"], re.IGNORECASE if job["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as exc:
        write(str(exc).encode("utf-8", "replace"))
        return WRONG_PATTERN
    for line in search(job["files"], pattern, job["context"], job["limit"]):
        write(line.encode("utf-8", "replace") + b"\n")
    return 0


def search(files: Iterable[tuple[str, str]], pattern: re.Pattern[str], context: int, limit: int) -> Iterator[str]:
    """Yield the marked lines for `files`, pairs of a path and a name for the output."""
    matches = 0
    for path, name in files:
        for kind, number, text in _search_file(path, pattern, context):
            if kind == "separator":
                # A separator belongs to the match after it.
                if matches and context:
                    yield "s--" if matches < limit else "r--"
                continue
            matches += kind == "match"
            mark = "S" if matches <= limit else "R"
            if kind == "match":
                yield f"{mark}{name}:{number}: {text}"
            else:
                # A line above a match comes before it: it belongs to the next match.
                beyond = matches > limit or (kind == "above" and matches == limit)
                yield f"{'r' if beyond else 's'}{name}-{number}- {text}"


def _search_file(path: str, pattern: re.Pattern[str], context: int) -> Iterator[tuple[str, int, str]]:
    above: deque[tuple[int, str]] = deque(maxlen=context)
    # The number of the last line that was yielded, and how many lines are still to yield after a match.
    last = below = 0
    for number, line in enumerate(_lines(path), 1):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if pattern.search(text):
            first = above[0][0] if above else number
            if last == 0 or first > last + 1:
                yield "separator", 0, ""
            yield from (("above", *each) for each in above)
            yield "match", number, shortened(text)
            above.clear()
            last, below = number, context
        elif below:
            yield "below", number, shortened(text)
            last, below = number, below - 1
        else:
            above.append((number, shortened(text)))


def shortened(text: str) -> str:
    """Return the beginning of a text that is too long to print."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a regular text file, with bounded memory; no lines of any other file."""
    try:
        with open(path, "rb", opener=_safely) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and b"\0" not in file.read(BINARY_PROBE):
                file.seek(0)
                yield from _bounded(file)
    # No permission, removed a moment ago, or a link; the other files are searched all the same.
    except OSError:
        return


def _safely(path: str, flags: int) -> int:
    """Open without following a link, and without waiting for the other end of a FIFO that replaced the file."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def _bounded(file: BinaryIO) -> Iterator[Any]:
    while line := file.readline(LONGEST_LINE):
        yield line
        while len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
