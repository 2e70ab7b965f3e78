"""Keyed digests: HMAC with BLAKE2b, and a key that only this user can read.

The plain hash of a short secret can be guessed by trying; that of one with a key cannot.  The key file is made once and
never changes, so that equal inputs have equal digests in all records of a person.
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from contextlib import suppress

from agent_hooks.storage.files import StorageError, create_atomically, open_regular, refusing

KEY_FILE = "key"
_BLOCK = 128
_SIZE = 32


class Keyed:
    """Makes digests with one key: `Keyed(key)(data)` is 64 hexadecimal digits."""

    def __init__(self, key: bytes) -> None:
        padded = (_hash(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner = _hash(bytes(byte ^ 0x36 for byte in padded))
        self._outer = _hash(bytes(byte ^ 0x5C for byte in padded))

    def __call__(self, data: bytes) -> str:
        """Return the HMAC of `data` as hexadecimal digits."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        digest: str = outer.hexdigest()
        return digest


def _hash(data: bytes) -> blake2b:
    return blake2b(data, digest_size=_SIZE)


def load_key(directory: str) -> bytes:
    """Return the key of a records directory; make it if there is none.  Raises `StorageError`."""
    path = os.path.join(directory, KEY_FILE)
    if not _exists(path):
        _make(path)
    return _read(path)


def _exists(path: str) -> bool:
    with refusing("read", path):
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        return True


def _read(path: str) -> bytes:
    with open_regular(path, path) as file, refusing("read", path):
        key = file.read(_SIZE + 1)
    if len(key) != _SIZE:
        raise StorageError(f"{path} does not hold a key of {_SIZE} bytes; remove it, and later records get a new key")
    return key


def _make(path: str) -> None:
    """Make the key file in one step; where two processes do so at once, the first one's key stays."""
    with suppress(FileExistsError):
        create_atomically(path, os.urandom(_SIZE), secret=True, durable=True)
