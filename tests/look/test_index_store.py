"""The file of the index: private, replaced when it is damaged, and shared by two processes."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from agent_hooks.look.index.store import NAME, VERSION, Store
from agent_hooks.look.view import View
from agent_hooks.testing import call_tool
from recording import Recorded

pytestmark = pytest.mark.anyio
PAGE = 4096


async def record(recorded: Recorded, session: str, *commands: str) -> None:
    """Record calls in a file of their own."""
    runner = recorded.runner(session_id=session)
    for command in commands:
        await call_tool(runner, "bash", {"command": command})
    runner.end_records()


@pytest.fixture
async def index(recorded: Recorded) -> Path:
    """Give the file of an index that knows two calls, and that no process has open."""
    await record(recorded, "s1", "ls", "date")
    view = View(recorded.home)
    assert view.refresh().total == 2
    view.close()
    return recorded.home / "look" / NAME


def damage(index: Path) -> None:
    """Overwrite all but the first page, so that the file still opens as an index."""
    data = index.read_bytes()
    assert len(data) > 2 * PAGE
    index.write_bytes(data[:PAGE] + b"\xa5" * (len(data) - PAGE))


async def test_an_index_that_others_can_read_becomes_private(recorded: Recorded, index: Path) -> None:
    """The directory too; its calls stay."""
    index.chmod(0o644)
    index.parent.chmod(0o755)
    view = View(recorded.home)
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    assert stat.S_IMODE(index.parent.stat().st_mode) == 0o700
    assert view.refresh().total == 2
    view.close()


async def test_an_index_of_another_version_is_built_again(recorded: Recorded, index: Path) -> None:
    """An older one, and one of a newer version of agent_hooks, whose tables are unknown here."""
    for version in (VERSION - 1, VERSION + 1):
        with sqlite3.connect(index) as connection:
            connection.execute(f"PRAGMA user_version={version}")
            connection.execute("DELETE FROM calls")
        connection.close()
        view = View(recorded.home)
        assert view.refresh().total == 2
        assert view.command([0, 1]) == ["bash ls", "bash date"]
        assert view.summary()["left_out"] == []
        view.close()


async def test_damage_that_shows_during_a_refresh_builds_the_index_again(recorded: Recorded, index: Path) -> None:
    """The file opens, and its pages cannot be read."""
    damage(index)
    view = View(recorded.home)
    assert view.refresh().total == 2
    assert view.summary()["left_out"] == []
    view.close()
    again = View(recorded.home)
    assert again.search("date") == [1]
    again.close()


async def test_a_damaged_index_that_cannot_be_removed_gives_way_to_one_in_memory(
    recorded: Recorded, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page has all calls, also later ones, and says why they are not kept."""
    damage(index)
    view = View(recorded.home)

    def refuse(path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(os, "unlink", refuse)
    assert view.refresh().total == 2
    (entry,) = view.summary()["left_out"]
    assert entry["what"] == "the index is not kept"
    assert f"{index} cannot be written: Read-only file system" in entry["why"]
    await record(recorded, "s2", "pwd")
    assert view.refresh().total == 3
    view.close()


async def test_while_another_process_writes_a_refresh_shows_the_state_before(recorded: Recorded, index: Path) -> None:
    """It does not wait, says that more is to come, and takes the new call as soon as the other has ended."""
    view = View(recorded.home)
    assert view.refresh().total == 2
    await record(recorded, "s2", "pwd")
    other = sqlite3.connect(index, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    changes = view.refresh()
    assert (changes.total, changes.more) == (2, True)
    other.execute("ROLLBACK")
    other.close()
    changes = view.refresh()
    assert (changes.total, changes.more) == (3, False)
    view.close()


def test_a_transaction_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Also when the person presses Ctrl-C within it."""
    store = Store(str(tmp_path / "look"))

    def write_and_fail(failure: type[BaseException]) -> None:
        with store.writing() as mine:
            assert mine
            store.connection.execute("INSERT INTO tools VALUES (0, 'bash')")
            raise failure

    for failure in (KeyboardInterrupt, ValueError):
        with pytest.raises(failure):
            write_and_fail(failure)
    with store.writing():
        assert store.connection.execute("SELECT count(*) FROM tools").fetchone() == (0,)
    store.close()


def test_a_failure_that_is_no_wait_for_another_process_goes_on(tmp_path: Path) -> None:
    """Only a busy index is read as it was; a transaction within a transaction is a mistake of ours."""
    store = Store(str(tmp_path / "look"))
    with store.writing(), pytest.raises(sqlite3.OperationalError, match="within a transaction"), store.writing():
        pass
    store.close()


def test_a_link_in_the_place_of_the_index_is_not_followed(tmp_path: Path) -> None:
    """The file that it leads to stays as it is, and the index is in memory."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "look").mkdir()
    (tmp_path / "look" / NAME).symlink_to(other)
    store = Store(str(tmp_path / "look"))
    assert store.in_memory
    assert not store.is_gone
    assert other.read_text() == "mine"
    store.close()


async def test_an_index_that_another_process_has_replaced_is_opened_anew(recorded: Recorded, index: Path) -> None:
    """The view goes on with the new file, and reports its calls."""
    view = View(recorded.home)
    assert view.refresh().total == 2
    index.unlink()
    other = View(recorded.home)
    assert other.refresh().total == 2
    assert list(view.refresh().calls) == [0, 1]
    await record(recorded, "s2", "pwd")
    assert other.refresh().total == 3
    assert view.refresh().total == 3
    assert view.command([2]) == ["bash pwd"]
    view.close()
    other.close()
