"""Hashes without `hashlib`, whose import loads OpenSSL and takes longer than one event of another agent may cost."""

from __future__ import annotations

import sys
from _blake2 import blake2b

# Python's own implementation; its module has had two names.
if sys.version_info >= (3, 12):
    from _sha2 import sha256 as _sha256
else:
    from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]  # it has no stubs


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 hexadecimal digits."""
    digest: str = _sha256(data).hexdigest()
    return digest


def line_hash(line: bytes) -> str:
    """Return the BLAKE2b hash of a record's line without its newline, or of a file's name, as `b2sum -l 256` prints it.

    It is three times as fast as Python's own SHA-256.
    """
    digest: str = blake2b(line, digest_size=32).hexdigest()
    return digest
