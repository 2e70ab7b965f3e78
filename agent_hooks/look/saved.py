"""The static files of the page, and the page composed as one file.

One file has the modules as one script, the style sheet, and the data as text.  Its policy has the hashes of script and
style sheet, so that nothing else in it runs and nothing in it can connect.  Every `<` of the data is escaped, so that no
text of it can end the element that holds it.

The modules become one script by leaving out the import and export words.  A test holds that no two of them define one
name.  All calls are in the file with time, lane, tool, verdict and command.  The newest calls have their cards.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from time import time
from typing import Any

from msgspec import Struct

from agent_hooks.errors import AgentHooksError
from agent_hooks.look.index.columns import GONE
from agent_hooks.look.viewing import Viewing

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


MOST_CARDS = 10_000
"""The newest calls that have their cards in the file."""
MOST_BYTES = 20_000_000
"""The largest file."""
_BLOCK, _CARD_BLOCK = 20_000, 250
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)
_DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>look · agent-hooks</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


class Saved(Struct, frozen=True):
    """A composed file, and the numbers of the things in it."""

    content: bytes
    calls: int
    sessions: int
    cards: int
    removed: int = 0

    @property
    def note(self) -> str:
        """The contents in one sentence, and a second one about removed calls."""
        return note(self.calls, self.cards, self.removed)


def note(calls: int, cards: int, removed: int = 0) -> str:
    """Return the contents of a file in one sentence, and a second one if calls were removed."""
    plural = "call" if calls == 1 else "calls"
    rest = f" and the cards of the newest {cards:,}" if cards < calls else ", each with its card"
    held = f"This file holds time, lane, tool, verdict and command of {calls:,} {plural}{rest}, with secrets hidden."
    if not removed:
        return held
    gone = "1 call is" if removed == 1 else f"{removed:,} calls are"
    return f"{held} {gone} left out, because the record or the session file was removed or replaced."


def compose(view: Viewing, cards: int = MOST_CARDS) -> Saved:
    """Return the page with its data as one file; raises `AgentHooksError` where it would be larger than `MOST_BYTES`."""
    data = _data(view, cards)
    script, style = one_script(), text_of(STYLE)
    document = _DOCUMENT.format(
        policy=saved_policy(_hash(script), _hash(style)),
        style=style,
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        script=script,
    )
    content = document.encode()
    if len(content) > MOST_BYTES:
        if cards > _CARD_BLOCK:
            # Long cards: the newest half of them may fit.
            return compose(view, cards // 2)
        raise AgentHooksError(f"the file would have {len(content):,} bytes, and {MOST_BYTES:,} are allowed")
    saved = data["saved"]
    return Saved(content, saved["calls"], data["summary"]["sessions"], saved["cards"], saved["removed"])


def _data(view: Viewing, most_cards: int) -> dict[str, Any]:
    summary, columns = view.summary(), view.columns()
    header = columns.header()
    arrays, rows_in_all = bytearray(columns.to_bytes()), int(header["count"])
    lines = list(_blocks(view.command, range(rows_in_all), _BLOCK))
    verdicts, times = _column(header, arrays, "verdict", 1), _column(header, arrays, "time", 8).cast("d")
    rows, cards = _cards(view, _newest(times), verdicts, most_cards)
    removed = bytes(verdicts).count(GONE)
    calls = rows_in_all - removed
    return {
        "saved": {
            "at": time() * 1000,
            "cards": len(cards),
            "calls": calls,
            "removed": removed,
            "note": note(calls, len(cards), removed),
        },
        "summary": summary,
        "hooks": view.hooks(),
        "header": header,
        "columns": _packed(bytes(arrays)),
        "block": _BLOCK,
        "commands": [_packed_json(block) for block in lines],
        "cardBlock": _CARD_BLOCK,
        "cardRows": rows,
        "cards": [_packed_json(cards[at : at + _CARD_BLOCK]) for at in range(0, len(cards), _CARD_BLOCK)],
        "ids": {str(card["id"]): row for card, row in zip(cards, rows, strict=True)},
    }


def _blocks(command: Callable[[Sequence[int]], list[str]], rows: Sequence[int], size: int) -> Iterator[list[str]]:
    for at in range(0, len(rows), size):
        yield command(rows[at : at + size])


def _column(header: dict[str, Any], arrays: bytearray, name: str, size: int) -> memoryview:
    """Return the bytes of one array, which can be changed. `size`: the bytes of a number."""
    begin = next(each["offset"] for each in header["columns"] if each["name"] == name)
    return memoryview(arrays)[begin : begin + size * header["count"]]


def _newest(times: memoryview[float]) -> list[int]:
    """Return all rows, the newest first."""
    return sorted(range(len(times)), key=lambda row: (times[row], row), reverse=True)


def _cards(
    view: Viewing, rows: Iterable[int], verdicts: memoryview, most: int
) -> tuple[list[int], list[dict[str, Any]]]:
    """Return the first rows whose calls are there, and their cards. Any other row gets the verdict `GONE`."""
    found: list[int] = []
    cards: list[dict[str, Any]] = []
    for row in rows:
        if len(cards) >= most:
            break
        if verdicts[row] == GONE:
            continue
        try:
            cards.append(view.card(row))
        except IndexError:
            # Another process has removed the call from the index since the columns were read.
            verdicts[row] = GONE
        else:
            found.append(row)
    return found, cards


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def _packed_json(value: Any) -> str:
    return _packed(json.dumps(value, separators=(",", ":")).encode())


def _hash(text: str) -> str:
    """Return the hash of an inline script or style as a policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def one_script() -> str:
    """Return all modules as one script, each after those that it imports."""
    parts: dict[str, str] = {}

    def take(name: str) -> None:
        if name in parts:
            return
        text = text_of(name)
        # Holds the place, so that a circle of imports ends.
        parts[name] = ""
        for imported in _IMPORT.findall(text):
            take(imported)
        # The order is that of the ends: a module stands behind those that it imports.
        del parts[name]
        parts[name] = _EXPORT.sub("", _IMPORT.sub("", text))

    take(ENTRY)
    script = "\n".join(parts.values())
    if "</script" in script or "<!--" in script:
        raise AgentHooksError("a module of the page has a text that would end its element")
    return script
