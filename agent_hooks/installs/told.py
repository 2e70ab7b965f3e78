"""The notices that the users of an agent get once, and not at each session.

They are kept next to the generated files of the agent, and go with them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from agent_hooks.bridges.base import Bridge
from agent_hooks.installs.generated import stub_path
from agent_hooks.storage.files import StorageError, write_atomically

# The newest notices that are remembered.
_MOST = 500


def untold(bridge: Bridge, texts: Iterable[str], *, afresh: bool = False) -> list[str]:
    """Return the notices that were not given before, and remember them.

    `afresh`: all that were given are forgotten.  A notice that cannot be remembered is given again.
    """
    path = os.fspath(stub_path(bridge).with_suffix(".told"))
    known = list[str]()
    if not afresh:
        with suppress(OSError, msgspec.DecodeError), open(path, "rb") as file:
            known = msgspec.json.decode(file.read(), type=list[str])
    new = [each for each in dict.fromkeys(texts) if each not in known]
    if new:
        with suppress(StorageError):
            write_atomically(path, msgspec.json.encode([*known, *new][-_MOST:]))
    return new
