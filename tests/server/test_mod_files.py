"""The files of a mod in the agent home."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.server.mod_files import mod_key, mod_problem, remove_mods, write_mod
from agent_hooks.storage.files import StorageError

CLAUDE = open_bridge("claude-code")


@pytest.fixture
def mods(home: Path) -> Path:
    """Give the directory with the files of a mod."""
    write_mod(CLAUDE)
    return home / ".agent/mods"


def names(mods: Path) -> list[str]:
    """Return the files, without the key."""
    return sorted(str(each.relative_to(mods)) for each in mods.rglob("*") if each.is_file() and each.name != "key")


def test_the_mod_has_its_module_its_place_and_a_marketplace(mods: Path) -> None:
    """The settings hook of the repository's plugin is not in it."""
    top = "claude-code"
    assert names(mods) == [
        ".claude-plugin/marketplace.json",
        f"{top}/.claude-plugin/plugin.json",
        f"{top}/hooks/hooks.json",
        f"{top}/hooks/place.ts",
        f"{top}/hooks/register.ts",
    ]
    assert json.loads((mods / top / "hooks/hooks.json").read_text()) == {"modules": ["./register.ts"]}
    assert mod_key().hex() in (mods / top / "hooks/place.ts").read_text()
    assert all(os.stat(mods / each).st_mode & 0o077 == 0 for each in names(mods))


def test_a_reader_finds_each_file_whole_while_it_is_written_again(mods: Path) -> None:
    """A client may start at any moment, and without the module it works without the mod."""
    module = mods / "claude-code/hooks/register.ts"
    text, key, ends, seen = module.read_bytes(), mod_key(), threading.Event(), set[bytes]()

    def read() -> None:
        while not ends.is_set():
            try:
                seen.add(module.read_bytes())
            except OSError as exc:
                seen.add(str(exc).encode())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            write_mod(CLAUDE)
    finally:
        ends.set()
        reader.join()
    assert seen == {text}
    assert mod_key() == key


def test_a_file_of_an_earlier_version_goes(mods: Path) -> None:
    """The client would load it."""
    before = names(mods)
    (mods / "claude-code/hooks/old.ts").write_text("old")
    write_mod(CLAUDE)
    assert names(mods) == before


def test_a_file_that_cannot_be_written_is_named(mods: Path) -> None:
    """The other files stay whole."""
    place = mods / "claude-code/hooks/place.ts"
    place.unlink()
    place.mkdir()
    with pytest.raises(StorageError, match=r"place\.ts"):
        write_mod(CLAUDE)
    assert (mods / "claude-code/hooks/register.ts").stat().st_size


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("key", "short", "holds no key"),
        ("key", None, "cannot read"),
        ("claude-code/hooks/register.ts", "old", "is of another version"),
        ("claude-code/hooks/place.ts", None, "cannot read"),
    ],
)
def test_a_mod_that_cannot_work_is_named(name: str, text: str | None, reason: str, mods: Path) -> None:
    """Another installation mends it."""
    assert mod_problem(CLAUDE) is None
    (mods / name).unlink()
    if text is not None:
        (mods / name).write_text(text)
    assert reason in str(mod_problem(CLAUDE))
    assert name in str(mod_problem(CLAUDE))
    write_mod(CLAUDE)
    assert mod_problem(CLAUDE) is None


def test_without_a_mod_nothing_is_removed(mods: Path) -> None:
    """The second removal finds nothing."""
    assert remove_mods()
    assert not remove_mods()
    assert not mods.exists()
