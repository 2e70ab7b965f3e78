"""Keyed digests: HMAC-SHA-256 with a key that only this user can read.

The plain hash of a short secret can be guessed by trying; that of one with a key cannot.  The key file is made once and
never changes, so that equal inputs have equal digests in all records of a person.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent_hooks.storage.files import StorageError, open_regular, refusing

# As in `storage.digests`: nothing here loads OpenSSL.
if sys.version_info >= (3, 12):
    from _sha2 import sha256 as _sha256
else:
    from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]  # it has no stubs

KEY_FILE = "key"
_BLOCK = 64
_SIZE = 32


def fastest_sha256() -> Callable[[bytes], Any]:
    """Return OpenSSL's SHA-256 if the process has loaded it anyway, else Python's own, which takes three times longer."""
    loaded = sys.modules.get("_hashlib")
    fastest: Callable[[bytes], Any] = getattr(loaded, "openssl_sha256", _sha256)
    return fastest


class Keyed:
    """Makes digests with one key: `Keyed(key)(data)` is 64 hexadecimal digits."""

    def __init__(self, key: bytes) -> None:
        sha256 = fastest_sha256()
        padded = (sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in padded))

    def __call__(self, data: bytes) -> str:
        """Return the HMAC-SHA-256 of `data` as hexadecimal digits."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        digest: str = outer.hexdigest()
        return digest


def load_key(directory: str) -> bytes:
    """Return the key of a records directory; make it if there is none.  Raises `StorageError`."""
    path = os.path.join(directory, KEY_FILE)
    with suppress(FileNotFoundError):
        os.stat(path)
        return _read(path)
    _make(path)
    return _read(path)


def _read(path: str) -> bytes:
    with open_regular(path, path) as file, refusing("read", path):
        key = file.read(_SIZE + 1)
    if len(key) != _SIZE:
        raise StorageError(f"{path} does not hold a key of {_SIZE} bytes; remove it, and later records get a new key")
    return key


def _make(path: str) -> None:
    """Make the key file in one step; where two processes do so at once, the first one's key stays."""
    draft = f"{path}.{os.urandom(8).hex()}.tmp"
    with refusing("write", path):
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(os.urandom(_SIZE))
            # A link, unlike a rename, never replaces a file that is there.
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            os.unlink(draft)
