"""The files of a server in the directory of this user's servers: its socket, its lock and its log."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from time import monotonic

from agent_hooks.server.client import KEY, KEY_SIZE, NONCE, digest_of, key_in, signature
from agent_hooks.settings import agent_home
from agent_hooks.storage.files import create_atomically

_LIMIT = 1 << 20
"""The size from which a log is shortened, in bytes."""


def shorten(path: str) -> None:
    """Keep the last half MiB of a log that is larger than one MiB, in whole lines if it has any.

    The file is shortened in place and then appended to, so that lines which other processes write meanwhile come behind
    it.  A log that cannot be shortened stays as it is.
    """
    with suppress(OSError):
        if os.path.getsize(path) <= _LIMIT:
            return
        with open(path, "a+b") as log:
            log.seek(-_LIMIT // 2, os.SEEK_END)
            end = log.read()
            log.truncate(0)
            log.write(end.partition(b"\n")[2] or end)


def reopen_if_removed(path: str) -> None:
    """Continue in a new log if the log behind stdout was removed, as an earlier server does at its end."""
    with suppress(OSError):
        state = os.fstat(1)
        if stat.S_ISREG(state.st_mode) and state.st_nlink == 0:
            new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(new, 1)
            os.dup2(new, 2)
            os.close(new)


_BACKLOG = 100
"""The number of clients that wait to be accepted."""

Identity = tuple[int, int] | None
"""The inode of a file and the time of its last change, because an inode is used again; `None` if there is no file."""


def server_key() -> bytes:
    """Return the key by which clients know the servers of this agent home, and make it if there is none.

    Raises `OSError` and `StorageError`.
    """
    home = agent_home()
    with suppress(FileNotFoundError):
        return key_in(home)
    os.makedirs(home, exist_ok=True)
    # Another server may make it at the same time.
    with suppress(FileExistsError):
        create_atomically(os.path.join(home, KEY), os.urandom(KEY_SIZE), secret=True, durable=True)
    return key_in(home)


def is_server(path: str, key: bytes) -> bool:
    """Return whether a server with this key answers at a socket, within a second."""
    request = f'{NONCE}{os.urandom(16).hex()}", "do": "status"}}, null]\n'.encode()
    received, until = b"", monotonic() + 1
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(path)
        connection.sendall(request)
        while received.count(b"\n") < 2 and monotonic() < until and (data := connection.recv(65536)):
            received += data
    signed, _, answer = received.partition(b"\n")[2].partition(b" ")
    return signed == signature(key, digest_of(request), answer)


class ServerFiles:
    """The files of one server; `path` is their common path without a suffix.

    Programs empty the temporary directory, and a second server may have started since.  So a server compares the files
    with its own before it removes them.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._socket: Identity = None

    def listen(self) -> socket.socket:
        """Return a listening socket; call `publish` when clients can be served."""
        new = f"{self.path}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # On Linux, the file of the socket has these rights from its first moment; elsewhere those of its directory count.
        with suppress(OSError):
            os.fchmod(listener.fileno(), 0o600)
        listener.bind(new)
        listener.listen(_BACKLOG)
        return listener

    def publish(self) -> None:
        """Give the socket the name under which clients find it."""
        os.rename(f"{self.path}.new", f"{self.path}.socket")
        self._socket = _identity(f"{self.path}.socket")

    def is_published(self) -> bool:
        """Return whether clients still find this server's socket."""
        return self._socket is not None and _identity(f"{self.path}.socket") == self._socket

    def is_replaced(self) -> bool:
        """Return whether another file has the name of this server's socket."""
        return not self.is_published() and os.path.lexists(f"{self.path}.socket")

    def unpublish(self) -> None:
        """Remove the socket's name, so that the next event starts another server."""
        if self.is_published():
            os.unlink(f"{self.path}.socket")

    def is_locked_by(self, lock: int) -> bool:
        """Return whether the lock file is the one with this descriptor; an earlier server may just have removed it."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(lock), os.stat(f"{self.path}.lock"))
        return False

    def remove(self, lock: int) -> None:
        """Remove the files of a server that has ended in order, while it holds the lock with this descriptor.

        A log that holds text stays, together with the lock, by which a later server finds both and removes them after a
        day.  The lock is removed last, so that a server that gets a new lock also finds a new log.
        """
        if not self.is_locked_by(lock):
            return
        with suppress(OSError):
            os.unlink(f"{self.path}.start")
        with suppress(OSError):
            if os.path.getsize(f"{self.path}.log"):
                return
            os.unlink(f"{self.path}.log")
        with suppress(OSError):
            os.unlink(f"{self.path}.lock")


def _identity(path: str) -> Identity:
    with suppress(OSError):
        state = os.stat(path)
        return state.st_ino, state.st_ctime_ns
    return None
