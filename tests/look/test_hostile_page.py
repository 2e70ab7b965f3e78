"""A hostile transcript does not run, freeze the page, break its layout, or make it ask for anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from agent_hooks.look.saved import compose
from look.browser import Visit
from look.made_up import MINUTE, NOW, MadeUpView, rung
from look.serving import Served, served

pytestmark = pytest.mark.browser
TEXTS = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>",
    "ansi": "\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b[0m\x00\x08",
    "direction": "rm \u202etxt.exe\u2066 \u200fabc\u200b\ufeff",
    "image": "![x](http://evil.example/x.png) data:image/png;base64," + "iVBORw0KGgo" * 2000,
    "long": "x" * 10_000_000,
    "half": "\ud800 half " + "a b " * 200_000,
}


@pytest.fixture(scope="module")
def view() -> MadeUpView:
    made = MadeUpView(50)
    for at, text in enumerate(TEXTS.values()):
        made.lanes[0]["label"] = text[:100_000]
        made.tools[0] = text[:100_000]
        made.left_out.append({"what": text[:100_000], "why": text[:100_000], "place": text[:100_000]})
        made.put(
            NOW + at * MINUTE,
            command=text[:200],
            verdict="block",
            reason=text[:200_000],
            id=f"{text[:50]}-{at}",
            rungs=[
                rung(
                    "gate",
                    text[:2000],
                    "block",
                    handler=text[:2000],
                    file=text[:2000],
                    line=1,
                    reason=text[:200_000],
                    rule=text[:2000],
                    programs=[text[:2000]] * 3,
                    diff=[{"op": "+", "text": text[:200_000]}] * 3,
                ),
            ],
            input={"command": text},
            saw={"text": text, "cut": False},
            turn={
                "index": 1,
                "checkpoint": text[:500],
                "files": [text[:2000]] * 500,
                "more": 7,
                "ended": True,
                "mayBeIts": True,
                "bringBack": text[:2000],
            },
        )
    return made


@pytest.fixture(scope="module")
def server(view: MadeUpView, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(view, tmp_path_factory.mktemp("look")) as running:
        yield running


def read_all(visit: Visit) -> None:
    """Open each hostile card, and check the page after each."""
    visit.page.get_by_text("left out").click()
    for _ in TEXTS:
        begin = monotonic()
        visit.press("j")
        visit.page.wait_for_selector(".rung")
        visit.page.locator("details").last.evaluate("each => each.open = true")
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the layout keeps its width"
        assert monotonic() - begin < 10, "the page answers"
    assert visit.page.locator("look-app :is(img, svg, script, iframe)").count() == 0


def test_a_hostile_transcript_stays_text(visit: Visit, server: Served, tmp_path: Path) -> None:
    """No script of it runs, no image loads, and invisible characters have marks with their numbers."""
    visit.open(server.path)
    read_all(visit)
    visit.page.set_viewport_size({"width": 390, "height": 800})
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    marks = set(visit.page.locator(".odd").all_inner_texts())
    assert {"1B", "202E"} <= set(" ".join(marks).split())
    visit.page.screenshot(path=tmp_path / "hostile.png")


def test_a_hostile_transcript_stays_text_in_a_saved_file(visit: Visit, view: MadeUpView, tmp_path: Path) -> None:
    """The data is escaped, and the file asks for nothing."""
    path = tmp_path / "session.html"
    path.write_bytes(compose(view).content)
    visit.open(path)
    read_all(visit)
