"""A project of a stranger."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile.strangers import Stranger


@pytest.fixture
def stranger(project: Path, tmp_path: Path) -> Stranger:
    """Return an empty project of a stranger."""
    return Stranger(project, tmp_path / "marks")
