"""SHA-256 without `hashlib`, whose import loads OpenSSL and takes longer than one event of another agent may cost."""

from __future__ import annotations

import sys

# Python's own implementation; its module has had two names.
if sys.version_info >= (3, 12):
    from _sha2 import sha256 as _sha256
else:
    from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]  # it has no stubs


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 hexadecimal digits."""
    digest: str = _sha256(data).hexdigest()
    return digest
