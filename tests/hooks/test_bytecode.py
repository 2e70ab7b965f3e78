"""Bytecode of hooks is cached, and runs only for the source that it was made from."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from agent_hooks import load_hooks
from agent_hooks.hooks.bytecode import cache_directory, compiled

HOOK = "WORD = {!r}\n\n\ndef register(api):\n    pass\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the directory of an empty, writable cache."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_directory.cache_clear()
    yield tmp_path / "cache" / "agent-hooks" / "bytecode"
    cache_directory.cache_clear()


async def word_of(hook: Path) -> str:
    """Load a hook, and return its WORD."""
    result = await load_hooks([hook], cwd="/")
    assert not result.errors, result.errors[0].traceback
    word: str = result.hooks[0].module.WORD  # type: ignore[union-attr]
    return word


async def test_bytecode_is_kept_in_the_persons_own_cache_and_used(cache: Path, tmp_path: Path) -> None:
    """Nothing is written beside the hook, and nothing is compiled the second time."""
    hook = tmp_path / "hooks" / "hook.py"
    hook.parent.mkdir()
    hook.write_text(HOOK.format("one"))
    assert await word_of(hook) == "one"
    assert os.listdir(hook.parent) == ["hook.py"]
    assert len(os.listdir(cache)) == 1
    for directory in (cache, *cache.glob("*")):
        assert not directory.stat().st_mode & 0o022
    assert cache.stat().st_mode & 0o777 == 0o700
    code = compiled(hook.read_bytes(), str(hook), compile=not_needed)
    assert code.co_filename == str(hook)
    assert await word_of(hook) == "one"


def not_needed() -> CodeType:
    """Stand in for a compiler that must not be called."""
    raise AssertionError


async def test_two_edits_of_one_size_within_a_second_both_count(cache: Path, tmp_path: Path) -> None:
    """Times and sizes do not matter, for a hook and for a module beside it."""
    hook, helper = tmp_path / "hook.py", tmp_path / "helper.py"
    hook.write_text("from helper import WORD\n\n\ndef register(api):\n    pass\n")
    for word in ("one", "two", "six"):
        helper.write_text(f"WORD = {word!r}\n")
        os.utime(helper, (1_000_000_000, 1_000_000_000))
        assert await word_of(hook) == word
    for word in ("one", "two", "six"):
        hook.write_text(HOOK.format(word))
        os.utime(hook, (1_000_000_000, 1_000_000_000))
        assert await word_of(hook) == word
    # The code of an edit replaces the code of the edit before.
    assert len(os.listdir(cache)) == 2


async def test_bytecode_that_lies_beside_a_hook_is_not_run(cache: Path, tmp_path: Path) -> None:
    """A project could bring along bytecode that differs from its sources, with the date that Python expects."""
    for name in ("hook", "helper"):
        evil = tmp_path / f"{name}.py"
        evil.write_text(HOOK.format("bad"))
        py_compile.compile(str(evil), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    (tmp_path / "helper.py").write_text(HOOK.format("good"))
    (tmp_path / "hook.py").write_text("import helper\n\n" + HOOK.format("good") + "\n\nassert helper.WORD == 'good'\n")
    assert await word_of(tmp_path / "hook.py") == "good"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "of another", "directory"])
async def test_a_damaged_entry_is_compiled_anew(cache: Path, tmp_path: Path, damage: str) -> None:
    """A damaged entry is replaced if it can be."""
    hook, other = tmp_path / "hook.py", tmp_path / "other.py"
    hook.write_text(HOOK.format("one"))
    other.write_text(HOOK.format("two"))
    await word_of(hook)
    (entry,) = cache.iterdir()
    await word_of(other)
    (of_another,) = set(cache.iterdir()) - {entry}
    whole = entry.read_bytes()
    if damage == "directory":
        entry.unlink()
        entry.mkdir()
    else:
        entry.write_bytes(
            {
                "cut": whole[:-10],
                "flipped": whole[:-10] + bytes([whole[-10] ^ 1]) + whole[-9:],
                "empty": b"",
                "of another": of_another.read_bytes(),
            }[damage]
        )
    assert await word_of(hook) == "one"
    assert entry.is_dir() or entry.read_bytes() == whole


@pytest.mark.parametrize("mode", [0o777, 0o770])
async def test_a_cache_that_others_can_write_is_not_used(cache: Path, tmp_path: Path, mode: int) -> None:
    """Other users could put code into it."""
    cache.mkdir(parents=True)
    cache.chmod(mode)
    hook = tmp_path / "hook.py"
    hook.write_text(HOOK.format("one"))
    assert await word_of(hook) == "one"
    assert os.listdir(cache) == []


@pytest.mark.parametrize("where", ["a file", "nowhere", "relative"])
async def test_without_a_cache_hooks_load_all_the_same(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Hooks load without a cache, only slower."""
    (tmp_path / "a file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "XDG_CACHE_HOME", {"a file": str(tmp_path / "a file"), "nowhere": "/proc/none"}.get(where, "here")
    )
    cache_directory.cache_clear()
    hook = tmp_path / "hook.py"
    hook.write_text(HOOK.format("one"))
    assert [await word_of(hook), await word_of(hook)] == ["one", "one"]
    assert not (tmp_path / "here").exists()


async def test_a_cache_that_cannot_be_written_any_more_is_no_error(cache: Path, tmp_path: Path) -> None:
    """A cache that disappears while the program runs is no error."""
    hook = tmp_path / "hook.py"
    hook.write_text(HOOK.format("one"))
    assert cache_directory() == str(cache)
    cache.rmdir()
    assert await word_of(hook) == "one"


def test_python_is_told_not_to_write_bytecode(cache: Path, tmp_path: Path) -> None:
    """`PYTHONDONTWRITEBYTECODE` counts here too."""
    hook = tmp_path / "hook.py"
    hook.write_text(HOOK.format("one"))
    program = f"import anyio, agent_hooks; print(anyio.run(lambda: agent_hooks.load_hooks([{str(hook)!r}], cwd='/')))"
    for value, count in (("1", 0), ("", 1)):
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": value}
        output = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
        assert "LoadedHook(" in output
        assert len(os.listdir(cache)) == count
