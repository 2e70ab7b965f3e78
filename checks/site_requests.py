"""Check that a built site asks no other machine for anything: `python checks/site_requests.py DIRECTORY`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# The attributes that a browser fetches by itself; `href` of a link in the text is followed by a person only.
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
    """Print the requests, and return 1 if there are any."""
    directory = Path(sys.argv[1])
    found = list(requests(directory))
    pages = len(list(directory.rglob("*.html")))
    print("\n".join(found) or f"{directory}: {pages} pages, and no request leaves the site")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
