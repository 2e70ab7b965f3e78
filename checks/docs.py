"""`python -m checks.docs`: build README and docs/ as a site in `.bench/site`.

A broken link is an error, and so is a page that asks another machine for anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from checks.environments import BENCH, ROOT, python

MKDOCS = "mkdocs-material>=9.6,<10"
SITE = BENCH / "site"

# The attributes that a browser fetches without a click.
_FETCHED = {
    ("link", "href"),
    *((tag, "src") for tag in ("audio", "embed", "iframe", "img", "script", "source", "video")),
}
_OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class Requests(HTMLParser):
    """Collects the addresses outside of the site that a page lets the browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in _FETCHED and value and _OUTSIDE.match(value):
                self.found.append(value)
            if name == "style":
                self.found += _IN_STYLE.findall(value or "")
            # Its script would load a program from elsewhere to draw this.
            if name == "class" and "mermaid" in (value or "").split():
                self.found.append("a mermaid drawing")


def requests(directory: Path) -> Iterator[str]:
    """Yield a line for each request that leaves the site."""
    for path in sorted(directory.rglob("*")):
        if path.suffix == ".html":
            page = Requests()
            page.feed(path.read_text())
            yield from (f"{path.relative_to(directory)}: {each}" for each in page.found)
        if path.suffix in (".html", ".css", ".svg"):
            yield from (f"{path.relative_to(directory)}: {each}" for each in _IN_STYLE.findall(path.read_text()))


def main() -> int:
    """Build the site, and return 1 for a broken link or a request to another machine."""
    build = [str(python("docs", MKDOCS)), "-m", "mkdocs", "build", "--strict", "--site-dir", str(SITE)]
    # The variable silences an advertisement of the theme.
    if subprocess.run(build, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode:
        return 1
    found = list(requests(SITE))
    pages = len(list(SITE.rglob("*.html")))
    print("\n".join(found) or f"{SITE}: {pages} pages, and no request leaves the site")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
