"""A terminal for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tmux import Tmux


@pytest.fixture
def terminal(project: Path) -> Iterator[Callable[..., Tmux]]:
    """Return a function that opens a terminal in the project: `terminal(columns=20, rows=10)`."""
    with ExitStack() as stack:
        yield lambda **size: stack.enter_context(closing(Tmux(project, **size)))
