"""A real browser for tests: Debian's chromium, driven by Playwright, with nothing of its own on the network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_BROWSER = (
    "chromium IS MISSING (apt-get install chromium)"
    if CHROMIUM is None
    else "playwright IS MISSING (pip install playwright)"
    if find_spec("playwright") is None
    else ""
)
"""The reason why no test can drive a browser here, or nothing."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
DESKTOP, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 800}
PATIENCE = 20_000.0
"""Milliseconds that a step of a test waits."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with an empty directory of user data."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One tab with its own profile: the page, the addresses that it asked for, and its complaints."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.asked: list[str] = []
        self.complaints: list[str] = []
        context.on("request", lambda request: self.asked.append(request.url))
        context.set_default_timeout(PATIENCE)
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._refuse)

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: Path) -> None:
        """Open a file, and wait until the page shows its numbers."""
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("look-sentence button, .refused")

    def text(self, selector: str) -> str:
        """Return the text of an element as a person sees it."""
        return self.page.locator(selector).inner_text()

    def click(self, name: str) -> None:
        """Click the button with this name."""
        self.page.get_by_role("button", name=name).first.click()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, condition: Callable[[], object], meaning: str) -> None:
        """Wait for a condition of the page."""
        for _ in range(int(PATIENCE / 20)):
            if condition():
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"never came: {meaning}")

    @property
    def strange(self) -> list[str]:
        """The addresses that lead elsewhere than to the page's server, to its files or to its own data."""
        own = {url.split("/")[2] for url in self.asked if url.startswith("http://127.0.0.1:")}
        allowed = ("file://", "data:", *(f"http://{host}/" for host in own))
        return [url for url in self.asked if not url.startswith(allowed)] + (sorted(own) if len(own) > 1 else [])


@contextmanager
def visiting(browser: Browser, *, size: dict[str, int] = DESKTOP, dark: bool = False) -> Iterator[Visit]:
    """Open a tab with an empty profile."""
    theme: Any = "dark" if dark else "light"
    viewport: Any = size
    context = browser.new_context(viewport=viewport, color_scheme=theme, timezone_id="UTC", locale="en-GB")
    try:
        yield Visit(context)
    finally:
        context.close()
