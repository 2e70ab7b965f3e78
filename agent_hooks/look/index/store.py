"""The file of the index: opened, made anew, or kept in memory where it cannot be written.

Two processes may use the file at once.  One of them writes at a time; the other reads the state before, and refreshes
later.  A file that is damaged, of another version, or not only the person's own is removed and built again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agent_hooks.errors import os_reason

VERSION = 6
"""The version of the tables; an index of another version is built again."""
NAME = "index.sqlite"
_SIDES = ("-wal", "-shm", "-journal")
_WORDS_IN_MEMORY = 16 << 20
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE TABLE files (file INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT, device INTEGER, inode INTEGER,
    offset INTEGER, line INTEGER, size INTEGER, bad INTEGER, newer INTEGER, ahead INTEGER, problem TEXT, state TEXT,
    written REAL, mark TEXT);
CREATE TABLE lanes (lane INTEGER PRIMARY KEY, client TEXT, session TEXT, agent TEXT, project TEXT,
    first REAL, last REAL, calls INTEGER, low INTEGER, high INTEGER);
CREATE TABLE tools (tool INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE calls (row INTEGER PRIMARY KEY, id TEXT, lane INTEGER, call TEXT, digest INTEGER, command TEXT, more TEXT,
    file INTEGER, at INTEGER, end_file INTEGER, end_at INTEGER);
CREATE INDEX calls_by_id ON calls (id);
CREATE INDEX calls_alone ON calls (lane) WHERE file = 0;
CREATE TABLE places (row INTEGER, file INTEGER, at INTEGER, kind TEXT, line INTEGER);
CREATE INDEX places_by_row ON places (row);
CREATE TABLE chunks (chunk INTEGER PRIMARY KEY, version INTEGER, time BLOB, lane BLOB, tool BLOB, verdict BLOB,
    hook_ms BLOB, wait_ms BLOB, flags BLOB, turn BLOB);
CREATE TABLE turns (turn INTEGER PRIMARY KEY, id TEXT UNIQUE, low INTEGER, high INTEGER, changed INTEGER,
    marked INTEGER);
CREATE TABLE saved (turn INTEGER, file INTEGER, at INTEGER);
CREATE INDEX saved_by_turn ON saved (turn);
CREATE TABLE figures (hook TEXT, path TEXT, hour INTEGER, counts BLOB, PRIMARY KEY (hook, path, hour)) WITHOUT ROWID;
CREATE TABLE hooks (hook TEXT, path TEXT, last REAL, PRIMARY KEY (hook, path)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content='', columnsize=0, detail=none, tokenize='trigram');
"""


class Store:
    """The connection to one index.  `problem`: why the index is kept in memory, empty for one in a file."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, NAME)
        self.problem = ""
        self._inode = 0
        try:
            self.connection = self._opened(directory)
        except (OSError, sqlite3.Error) as exc:
            self.to_memory(exc)

    @property
    def in_memory(self) -> bool:
        """Whether the index ends with this process."""
        return bool(self.problem)

    def to_memory(self, exc: Exception) -> None:
        """Go on with an empty index in memory, because the file cannot be used."""
        reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
        self.problem = (
            f"{self.path} cannot be written: {reason}; the index is kept in memory, and built again next time"
        )
        with suppress(AttributeError, sqlite3.Error):
            self.connection.close()
        self.connection = _connected(":memory:")
        _make_tables(self.connection)

    def renew(self) -> None:
        """Remove the file and begin again, because it is damaged; in memory where it cannot be removed."""
        with suppress(sqlite3.Error):
            self.connection.close()
        try:
            self._remove()
            self.connection = self._opened(os.path.dirname(self.path))
        except (OSError, sqlite3.Error) as exc:
            self.to_memory(exc)

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted, or another one is in its place."""
        if self.in_memory:
            return False
        try:
            return os.stat(self.path).st_ino != self._inode
        except OSError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Write in one transaction; the value tells whether this process may, as no other one writes now."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as exc:
            if not _is_busy(exc):
                raise
            yield False
            return
        try:
            yield True
        # The transaction is undone, and the exception goes on to the caller.
        except BaseException:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def _opened(self, directory: str) -> sqlite3.Connection:
        _make_directory(directory)
        try:
            return self._whole()
        except sqlite3.DatabaseError as exc:
            if no_place(exc):
                raise
            # It is no index, or a damaged one.
            self._remove()
            return self._whole()

    def _whole(self) -> sqlite3.Connection:
        # Made here, so that it never has other rights.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path, flags, 0o600)
        try:
            if os.fstat(fd).st_mode & 0o077:
                os.fchmod(fd, 0o600)
            self._inode = os.fstat(fd).st_ino
        finally:
            os.close(fd)
        connection = _connected(self.path)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_size_limit=16777216")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables unless they are there; raises `DatabaseError` for those of another version."""
        connection.execute("PRAGMA busy_timeout=2000")
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                _make_tables(connection)
            elif version != VERSION:
                raise sqlite3.DatabaseError(f"the index has the version {version}")
        finally:
            connection.execute("COMMIT")
        connection.execute("PRAGMA busy_timeout=0")

    def _remove(self) -> None:
        for end in ("", *_SIDES):
            with suppress(FileNotFoundError):
                os.unlink(self.path + end)


def _connected(path: str) -> sqlite3.Connection:
    # The view has a lock of its own, and transactions are begun by hand.
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    # A power cut may cost the index, which is built again.
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute("PRAGMA cache_size=-65536")
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    # Groups of letters that wait in memory, in bytes: fewer parts of the search have to be joined later.
    connection.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (_WORDS_IN_MEMORY,))
    connection.execute(f"PRAGMA user_version={VERSION}")


def _make_directory(directory: str) -> None:
    os.makedirs(directory, 0o700, exist_ok=True)
    if os.stat(directory).st_mode & 0o077:
        os.chmod(directory, 0o700)


def no_place(exc: sqlite3.Error) -> bool:
    """Tell whether an error says that the file cannot be written now, and not that its content is wrong."""
    return isinstance(exc, sqlite3.OperationalError) and exc.sqlite_errorcode & 0xFF in _NO_PLACE


_NO_PLACE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
)


def _is_busy(exc: sqlite3.OperationalError) -> bool:
    return exc.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
