"""The browser of the page's tests, one for a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from look.browser import Visit, chromium, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give a real browser."""
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Give a tab; at its end, no script has failed, nothing has popped up, and no request has left the page."""
    with visiting(browser) as tab:
        yield tab
        assert tab.complaints == []
        assert tab.strange == []
