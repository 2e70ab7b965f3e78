"""The version of the code that a cell runs on: a digest of the package, of the matrix, and of the cell's fault."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from chaos.faults import FAULTS

_CHAOS = Path(__file__).parent
# The writer of the page and the tests of the matrix change no cell, and another fault does not either.
_OTHER = ("page.py", "test_chaos.py", "__main__.py", "version.py")


@cache
def version(fault: str) -> str:
    """Return the digest of all that a cell of a fault runs."""
    return hashlib.sha256(f"{_shared()} {FAULTS[fault]!r}".encode()).hexdigest()[:12]


@cache
def _shared() -> str:
    digest = hashlib.sha256()
    own = [path for path in [*_CHAOS.glob("*.py"), *_CHAOS.glob("places/*.py")] if path.name not in _OTHER]
    for path in [*sorted((_CHAOS.parent.parent / "agent_hooks").rglob("*.py")), *sorted(own)]:
        digest.update(f"{path.relative_to(_CHAOS.parent.parent)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
