"""Write values as JSON.  A path may hold bytes that are not UTF-8, and only `json` can escape these."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def encoded(value: object) -> bytes:
    """Return a value as JSON."""
    # Imported here, because most processes write no such value.
    import json

    return json.dumps(msgspec.to_builtins(value), sort_keys=True).encode()


def decoded(data: bytes, kind: type[T]) -> T:
    """Read a value from JSON.  Raises `ValueError` or `RecursionError`."""
    import json  # here, as above

    return msgspec.convert(json.loads(data), kind)
