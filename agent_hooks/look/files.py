"""The static files of the page, read from the package once; a request names one of them, or gets nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

PAGE = Path(__file__).parent / "page"
"""The folder of the page's files."""
INDEX = "index.html"
"""The name of the document."""
ENTRY = "main.js"
"""The module that the document loads first."""
STYLE = "look.css"
"""The one style sheet."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


class PageFile(Struct, frozen=True):
    """One file of the page."""

    content: bytes
    media_type: str


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files by name."""
    return {
        path.name: PageFile(path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(PAGE.iterdir())
        if path.suffix in _TYPES
    }


def text_of(name: str) -> str:
    """Return the text of one file."""
    return page_files()[name].content.decode()


LIVE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)
"""The Content-Security-Policy of the server's responses."""
SAFE_HEADERS = {
    "content-security-policy": LIVE_POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""The headers that every response has."""


def saved_policy(script: str, style: str) -> str:
    """Return the policy of a saved file: the hashes of its one script and its one style sheet, and no connection at all.

    A meta tag cannot forbid frames, so `frame-ancestors` is left out.
    """
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
