"""The page as one file: everything in it, nothing that connects, and readable by its owner only."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from agent_hooks.errors import AgentHooksError
from agent_hooks.look import saved
from agent_hooks.look.saved import PAGE, compose, one_script
from look.browser import Visit
from look.made_up import MINUTE, NOW, MadeUpView

NAMES = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (?:(\w+)|\[([^\]]+)\])", re.MULTILINE)


def parts(content: bytes) -> dict[str, str]:
    """Return the policy, the style, the data and the script of a saved file."""
    found = re.search(
        r'Policy" content="(?P<policy>[^"]+)".*<style>(?P<style>.*)</style>.*id="data">(?P<data>[^<]*)</script>\n'
        r'<script type="module">(?P<script>.*)</script>',
        content.decode(),
        re.DOTALL,
    )
    assert found is not None
    return found.groupdict()


def test_the_policy_of_the_file_names_its_script_and_style_by_their_hashes() -> None:
    """Nothing else runs, and nothing connects."""
    found = parts(compose(MadeUpView(50)).content)
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(found[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in found["policy"]
    assert found["policy"].startswith("default-src 'none'; ")
    assert "require-trusted-types-for 'script'" in found["policy"]
    assert "connect-src" not in found["policy"]


def test_no_text_ends_the_element_that_holds_it() -> None:
    """Each `<` of the data is escaped, also in names, which are not packed."""
    view = MadeUpView(5)
    view.lanes[0]["label"] = "</script><script>alert(1)</script><!--"
    view.put(NOW, command="</script><b>")
    content = compose(view).content
    assert "<" not in parts(content)["data"]
    assert (
        json.loads(parts(content)["data"])["summary"]["lanes"][0]["label"] == "</script><script>alert(1)</script><!--"
    )


def test_only_the_newest_have_cards_and_the_file_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The note has both numbers; a file that would be too large gets fewer cards, or is an error."""
    found = compose(MadeUpView(3000), cards=300)
    assert (found.calls, found.cards) == (3000, 300)
    assert found.note == (
        "This file holds time, lane, tool, verdict and command of 3,000 calls and the cards of the newest 300, "
        "with secrets hidden."
    )
    assert parts(found.content)["data"].count("with secrets hidden") == 1
    whole = compose(MadeUpView(3000))
    # The time in the file has a few digits more or less.
    monkeypatch.setattr(saved, "MOST_BYTES", len(whole.content) - 1000)
    assert compose(MadeUpView(3000), cards=3000).cards == 1500
    monkeypatch.setattr(saved, "MOST_BYTES", 1000)
    with pytest.raises(AgentHooksError, match="1,000 are allowed"):
        compose(MadeUpView(30))


def test_the_modules_fit_into_one_script() -> None:
    """No two modules define one name at their top, and each import is on one line of the known form."""
    seen: dict[str, str] = {}
    for path in sorted(PAGE.glob("*.js")):
        for single, several in NAMES.findall(path.read_text()):
            for name in re.findall(r"\w+", single or several):
                assert name not in seen, f"{name} is in {seen[name]} and in {path.name}"
                seen[name] = path.name
    script = one_script()
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)


def test_the_document_asks_for_all_modules_at_once() -> None:
    """Otherwise the browser would find each module only in the one that imports it."""
    text = (PAGE / "index.html").read_text()
    assert sorted(re.findall(r'"/page/(\w+\.js)"', text)) == sorted(path.name for path in PAGE.glob("*.js"))


def test_no_module_makes_markup_of_text() -> None:
    """Text becomes text nodes; the policy forbids the rest, and no module tries."""
    words = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc"
    assert [path.name for path in PAGE.glob("*.js") if re.search(words, path.read_text())] == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    view = MadeUpView(2000)
    view.put(NOW + MINUTE, command="rm -rf build", verdict="block")
    path = tmp_path / "session.html"
    path.write_bytes(compose(view, cards=100).content)
    return path


@pytest.mark.browser
def test_a_saved_file_works_without_a_server(visit: Visit, file: Path) -> None:
    """Numbers, filters, search, cards and addresses work; it asks for nothing but itself; an older call has no card."""
    visit.open(file)
    assert "2,001 calls" in visit.text("look-sentence")
    assert "the cards of the newest 100" in visit.text(".state")
    visit.press("/")
    visit.page.keyboard.type("rm -rf")
    visit.until(lambda: visit.text(".found") == "1 call shown", "one call")
    visit.press("Enter", "Escape")
    visit.page.goto(f"{file.as_uri()}#call=call-2000")
    visit.until(lambda: "deleting needs a person" in visit.text("look-card"), "the card")
    visit.page.locator(".box").focus()
    visit.press("End")
    visit.page.evaluate("document.querySelector('.box').scrollTop = 1e9")
    visit.until(
        lambda: not visit.page.evaluate("document.querySelector('.box').scrollTop === 0"), "the end of the list"
    )
    visit.page.locator(".row:not([hidden])").last.click()
    visit.until(lambda: "this one is older" in visit.text("look-card"), "the word that it has no card")
    assert {url.partition("#")[0] for url in visit.asked if not url.startswith("data:")} == {file.as_uri()}
