"""The digest that trust and records use."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from agent_hooks.storage.digests import sha256
from support import unmeasured


def test_the_digest_is_that_of_hashlib() -> None:
    """Other programs can compute it."""
    assert sha256(b"hook") == hashlib.sha256(b"hook").hexdigest()


def test_the_digest_loads_no_openssl() -> None:
    """`hashlib` would load it."""
    code = "import agent_hooks.storage.digests, sys; print('_hashlib' in sys.modules, 'hashlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=unmeasured())
    assert found.stdout == "False False\n"
