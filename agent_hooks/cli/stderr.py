"""Stderr: what went wrong, for a person.  Above: the other modules of cli.  Below: nothing."""

from __future__ import annotations

import sys
from contextlib import suppress


def complain(text: str) -> None:
    """Print an error."""
    if sys.stderr is not None:  # closed by whoever started us
        with suppress(OSError):  # the reader has gone: nobody is left to tell
            sys.stderr.write(f"agent-hooks: {text}\n")
            sys.stderr.flush()
