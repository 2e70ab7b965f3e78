"""The page in a real browser: numbers that are filters, the ribbon, the list, the card, keys and addresses."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from look.browser import DESKTOP, PHONE, Visit, visiting
from look.made_up import MINUTE, NOW, MadeUpView
from look.serving import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[2] / ".bench" / "page" / "node_modules" / "axe-core" / "axe.min.js"

FRAMED = """url => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.onload = () => done(frame.contentDocument === null ? "kept out" : "framed");
  frame.src = url;
  document.body.append(frame);
})"""
"""Tells whether a page that frames an address gets hold of a document; a refused frame shows an error of the browser."""


@pytest.fixture
def view() -> MadeUpView:
    made = MadeUpView(3000)
    made.put(NOW + MINUTE, command="rm -rf build", verdict="block", flags=64)
    made.put(NOW + 2 * MINUTE, command="echo done")
    return made


@pytest.fixture
def server(view: MadeUpView, tmp_path: Path) -> Iterator[Served]:
    with served(view, tmp_path / "look") as running:
        yield running


def test_the_start_token_leaves_the_address_and_stays_in_the_tab(visit: Visit, server: Served) -> None:
    """The address has no token, there is no cookie, a reload shows the page, and another tab gets nothing."""
    start = server.path.read_text()
    visit.open(server.path)
    assert "3,002 calls" in visit.text("look-sentence")
    assert visit.page.url == f"{server.address}/"
    assert visit.context.cookies() == []
    visit.page.reload()
    visit.page.wait_for_selector("look-sentence button")
    other = server.path.with_name("again.html")
    other.write_text(start)
    with visiting(visit.context.browser) as second:  # type: ignore[arg-type]  # a context of a browser
        second.open(other)
        assert "used before" in second.text("[role=alert]")


def test_each_number_is_a_filter(visit: Visit, server: Served, view: MadeUpView) -> None:
    """The list shows as many calls as the number says, and the number again, or Escape, shows all."""
    visit.open(server.path)
    numbers = view.summary()
    for words, number in (
        ("stopped", numbers["stopped"]),
        ("questions", numbers["asked"]),
        ("sessions", numbers["sessions"]),
    ):
        visit.click(words)
        visit.until(lambda number=number: visit.text(".found") == f"{number:,} calls shown", words)  # type: ignore[misc]
        assert visit.page.locator("button[aria-pressed=true]").inner_text().endswith(words)
    visit.press("Escape")
    visit.until(lambda: visit.text(".found") == "", "all calls")


def test_a_search_finds_commands(visit: Visit, server: Served) -> None:
    """Slash goes to the search; the words that are typed leave the calls that have them."""
    visit.open(server.path)
    visit.press("/")
    visit.page.keyboard.type("rm build")
    visit.until(lambda: visit.text(".found") == "1 call shown", "one call")
    visit.press("Enter")
    assert "rm -rf build" in visit.text(".row:not([hidden])")


def test_the_keys_walk_and_each_call_has_an_address(visit: Visit, server: Served) -> None:
    """`j` and `k` walk, `b` and `f` go to the calls that were stopped or asked about, `?` shows the keys."""
    visit.open(server.path)
    visit.press("j")
    visit.until(lambda: visit.page.url.endswith("#call=call-3001"), "the newest call")
    visit.press("j")
    visit.until(lambda: visit.page.url.endswith("#call=call-3000"), "the call before")
    visit.press("k", "b")
    visit.until(lambda: visit.page.url.endswith("#call=call-3000"), "the stopped call")
    assert "✕ stopped" in visit.text("look-card h2")
    assert "deleting needs a person" in visit.text("look-card .verdict")
    visit.press("b")
    visit.until(lambda: not visit.page.url.endswith("#call=call-3000"), "an earlier one")
    visit.press("f")
    visit.until(lambda: visit.page.url.endswith("#call=call-3000"), "forward again")
    visit.press("?")
    assert "the next call of the list" in visit.text("dialog")
    visit.press("Escape")
    visit.page.goto(f"{server.address}/#call=call-12")
    visit.until(lambda: "call-12" in visit.text("look-card dl"), "the call of the address")
    visit.page.goto(f"{server.address}/#call=nowhere")
    visit.until(lambda: "no call nowhere" in visit.text("look-card"), "the word that it is missing")


def test_the_card_is_the_ladder_of_the_call(visit: Visit, server: Served, view: MadeUpView) -> None:
    """Each rung in order with its hook and line, its answer and time; then the model's view, and the way back."""
    row = view.put(NOW + 3 * MINUTE, command="git push", verdict="allow", flags=64)
    visit.open(server.path)
    visit.page.goto(f"{server.address}/#call=call-{row}")
    visit.page.wait_for_selector(".ladder")
    kinds = visit.page.locator(".rung .kind").all_inner_texts()
    assert kinds == ["transformer", "guard", "gate", "person", "tool", "result", "observer"]
    ladder = visit.text(".ladder")
    for part in (
        *(
            "add-default-excludes",
            "--exclude-dir=.git",
            "/home/dev/app/.agent/hooks/no_rm.py:12",
            "Push to the server?",
        ),
        *("12.4 s", "said yes", "deletes build/", "413 ms", "1 \u00d7 token", "this file is gone"),
    ):
        assert part in ladder
    assert "?? notes.txt" in visit.text("[aria-label='The model saw']")
    assert "src/app/models.py" in visit.text(".turn")
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.page.get_by_role("button", name="Copy").click()
    visit.until(lambda: visit.text(".copy") == "copied", "the word that it is copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == "agent-hooks undo --turn 3f9a1c2"


def test_in_the_ribbon_a_drag_zooms_and_a_click_jumps(visit: Visit, server: Served) -> None:
    """The numbers are those of the zoomed span; `0` shows all again."""
    visit.open(server.path)
    box = visit.page.locator("look-ribbon canvas").bounding_box()
    assert box is not None
    y = box["y"] + 30
    visit.page.mouse.move(box["x"] + 300, y)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 420, y, steps=4)
    visit.page.mouse.up()
    visit.until(lambda: " to " in visit.text("look-sentence .span"), "a span of time")
    visit.until(lambda: "3,002 calls" not in visit.text("look-sentence"), "fewer calls")
    visit.page.mouse.click(box["x"] + 500, y)
    visit.page.wait_for_selector(".ladder")
    visit.press("0")
    visit.until(lambda: "3,002 calls" in visit.text("look-sentence"), "all calls")


def test_news_arrive_without_a_reload(visit: Visit, server: Served, view: MadeUpView) -> None:
    """A call that is recorded while the page is open appears; when the server ends, the page says so."""
    visit.open(server.path)
    view.put(NOW + 9 * MINUTE, command="touch now", verdict="block")
    visit.until(lambda: "3,003 calls" in visit.text("look-sentence"), "the new call")
    visit.until(lambda: "touch now" in visit.text("look-list"), "its command")


def test_the_page_says_that_the_server_has_ended(visit: Visit, view: MadeUpView, tmp_path: Path) -> None:
    """The state above the ribbon has the remedy, and the calls stay readable."""
    with served(view, tmp_path / "other") as running:
        visit.open(running.path)
        visit.page.wait_for_selector(".row.pass")
    visit.until(lambda: "run agent-hooks look again" in visit.text(".state").lower(), "the end")
    assert "3,002 calls" in visit.text("look-sentence")


def test_the_page_says_what_was_left_out(visit: Visit, server: Served, view: MadeUpView) -> None:
    """Each thing that could not be read has its reason and its place."""
    view.left_out.append({"what": "a record of a newer version", "why": "v 9 is newer than 1", "place": "s.1.jsonl:4"})
    visit.open(server.path)
    visit.page.get_by_text("1 left out").click()
    assert visit.text(".left-out li") == "a record of a newer version: v 9 is newer than 1 (s.1.jsonl:4)"


def test_a_page_of_another_port_cannot_read(visit: Visit, server: Served) -> None:
    """The browser and the server both keep a foreign page out, also where it guesses the port."""

    class Evil(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>evil</title>")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    visit.open(server.path)
    with HTTPServer(("127.0.0.1", 0), Evil) as evil:
        Thread(target=evil.serve_forever).start()
        try:
            page = visit.context.new_page()
            page.goto(f"http://127.0.0.1:{evil.server_port}/")
            script = "url => fetch(url).then(r => r.status, () => 'kept out')"
            assert page.evaluate(script, f"{server.address}/api/summary") == "kept out"
            assert page.evaluate("sessionStorage.length") == 0
            assert page.evaluate(FRAMED, f"{server.address}/") == "kept out"
        finally:
            evil.shutdown()
    visit.asked[:] = [url for url in visit.asked if f":{evil.server_port}" not in url]


@pytest.mark.skipif(not AXE.exists(), reason="python -m checks.page installs axe")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, pytest.param(PHONE, marks=pytest.mark.slow)], ids=["desktop", "phone"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    browser: Browser, server: Served, size: dict[str, int], dark: bool
) -> None:
    """In both themes and both widths, with a list, a card and the keys."""
    with visiting(browser, size=size, dark=dark) as visit:
        visit.open(server.path)
        visit.page.wait_for_selector(".row.pass")
        found = axe(visit)
        visit.press("b")
        visit.page.wait_for_selector(".ladder")
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found += axe(visit)
        visit.press("?")
        assert found + axe(visit) == []


def axe(visit: Visit) -> list[str]:
    """Return the findings of axe, with the elements."""
    visit.page.evaluate(AXE.read_text())
    found = visit.page.evaluate("axe.run()")
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found["violations"]]


def test_a_person_with_a_keyboard_reads_a_card(visit: Visit, server: Served) -> None:
    """The list takes the focus, arrows walk in it, its active option is named, and Enter goes to the card."""
    visit.open(server.path)
    visit.page.wait_for_selector(".row.pass")
    visit.page.locator(".box").focus()
    visit.press("ArrowDown", "ArrowDown")

    def active_option_is_selected() -> bool:
        # The list is drawn after the key, so its option is asked for anew each time.
        active = visit.page.locator(".box").get_attribute("aria-activedescendant")
        option = visit.page.locator(f"#{active}")
        return bool(active and option.count()) and option.get_attribute("aria-selected") == "true"

    visit.until(active_option_is_selected, "the active option")
    visit.page.wait_for_selector(".ladder")
    visit.press("Enter")
    assert visit.page.evaluate("document.activeElement.tagName") == "H2"
