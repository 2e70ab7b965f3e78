"""Archives, patches and copies of trees that would write over hooks are stopped before they are unpacked."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_hooks.cli.protection import agent_guards
from agent_hooks.guards.base import NO_MACHINE
from agent_hooks.guards.config import GuardSettings
from agent_hooks.pipeline import archives
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.trust.place import find_place
from agent_hooks.values.answers import Block
from guard_corpus import rows

HOOK = ".agent/hooks/gate.py"
ROWS = [(row["command"], row["answer"]) for row in rows("unpacking.tsv")]


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, target, 1 if kind == tarfile.REGTYPE else 0
    return found


def tar(path: Path, *members: str | tarfile.TarInfo, mode: str = "w") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # the mode is a parameter
        for each in members:
            info = member(each) if isinstance(each, str) else each
            archive.addfile(info, io.BytesIO(b"x" * info.size))


def zipped(path: Path, *names: str, extra: bytes = b"") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.extra = extra
            archive.writestr(info, "x")


def hostile_archives(at: Path) -> None:
    tar(at / "evil.tar", "README.md", HOOK)
    tar(at / "evil.tgz", "README.md", f"./{HOOK}", mode="w:gz")
    tar(at / "evil.tar.xz", ".agent/settings.json", mode="w:xz")
    tar(at / "evil.tar.bz2", HOOK, mode="w:bz2")
    zipped(at / "evil.zip", "a.txt", "./.Agent/hooks/gate.py")
    zipped(at / "client.zip", ".claude/settings.json")
    tar(at / "deep.tar", "top/a.txt", f"top/{HOOK}")
    # A link of the archive leads to the hooks, and a link on the disk does.
    tar(at / "links.tar", member("docs", tarfile.SYMTYPE, ".agent"), "docs/hooks/gate.py")
    (at / "alias").symlink_to(".agent")
    tar(at / "alias.tar", "alias/hooks/gate.py")
    # After zeros and a header that is none, some programs go on.
    tar(at / "damaged.tar", "a.txt")
    whole = (at / "damaged.tar").read_bytes()
    (at / "damaged.tar").write_bytes(whole + b"?" * 512 + (at / "evil.tar").read_bytes())
    other = b"\0" * 5 + HOOK.encode()
    zipped(at / "renamed.zip", "a.txt", extra=b"\x75\x70" + len(other).to_bytes(2, "little") + other)


def unlisted_archives(at: Path) -> None:
    for name in ("unknown.bin", "unknown.7z"):
        (at / name).write_bytes(b"7z\xbc\xaf'\x1c" + b"x" * 2000)
    (at / "zstd.tar.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 2000)
    os.mkfifo(at / "fifo.tar")
    with gzip.open(at / "bomb.tgz", "wb", 1) as file:
        file.write((at / "clean.tar").read_bytes()[:1024] + b"\0" * (archives.MOST_BYTES + 4096))
    tar(at / "crowd.tar", *(f"f{number}" for number in range(archives.MOST_MEMBERS + 1)))
    tar(at / "inner.tar", "hooks/gate.py")
    (at / "polyglot.tar").write_bytes(b"7z\xbc\xaf'\x1c".ljust(512, b"x") + (at / "clean.tar").read_bytes())


def patches(at: Path) -> None:
    (at / "evil.patch").write_text(f"diff --git a/{HOOK} b/{HOOK}\n--- a/{HOOK}\n+++ b/{HOOK}\n@@ -1 +1 @@\n-a\n+b\n")
    (at / "quoted.patch").write_text('diff --git "a/.ag\\145nt/hooks/g\\303\\244te.py" b/x\ndeleted file mode 100644\n')
    (at / "context.patch").write_text(f"  *** {HOOK}\t2026\n  --- {HOOK}\t2026\n")
    (at / "up.patch").write_text(f"diff --git a/../{HOOK} b/x\nrename from ../{HOOK}\nrename to x\n")
    (at / "fix.patch").write_text("--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-.agent/hooks/gate.py\n+b\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a project with hooks, and archives of many kinds in it."""
    top = tmp_path_factory.mktemp("unpacking")
    at = top / "project"
    for folder in ("src", "vendor", "assets", "clean", "evil/.agent/hooks", ".agent/hooks", ".claude"):
        (at / folder).mkdir(parents=True)
    for name in (HOOK, f"evil/{HOOK}", ".agent/settings.json", ".claude/settings.json", "clean/a.txt"):
        (at / name).write_text("x")
    tar(at / "clean.tar", member(".agent", tarfile.DIRTYPE), "src/a.py", "b.txt", member("l", tarfile.SYMTYPE, "src"))
    tar(at / "clean.tgz", "src/a.py", mode="w:gz")
    tar(at / "node.tar.xz", "node-v22/bin/node", "node-v22/README.md", mode="w:xz")
    tar(at / "rules.tar", ".agent/rules/style.md")
    zipped(at / "fonts.zip", "fonts/", "fonts/a.ttf")
    hostile_archives(at)
    unlisted_archives(at)
    patches(at)
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("AGENT_HOME", raising=False)
        (top / "home").mkdir()
        patched.setenv("HOME", str(top / "home"))
        yield at


def answer(place: Path, command: str, **facts: object) -> str:
    guards = agent_guards(GuardSettings(), find_place(str(place)), sealed=[str(place / ".claude" / "settings.json")])
    call = replace(guarded_call("bash", {"command": command}, str(place)), **facts)
    found = ask_guards(guards, call, lambda error: pytest.fail(str(error)))
    return "block" if isinstance(found, Block) else "ask" if found else "pass"


@pytest.mark.parametrize(("command", "expected"), ROWS)
def test_what_would_be_unpacked_over_hooks_is_stopped_before(place: Path, command: str, expected: str) -> None:
    """A list without hooks passes; where no list can be had, the person is asked."""
    began = time.monotonic()
    assert answer(place, command) == expected
    # Twice the limit, because another process may have the processor.
    assert time.monotonic() - began < 4 * archives.MOST_SECONDS


def test_the_same_passes_where_the_person_has_unlocked_the_hooks(place: Path) -> None:
    """The client's own settings stay sealed."""
    unlocked = (str(place / ".agent"),)
    for command in ("tar xf evil.tar", "patch -p1 < evil.patch", "cp -r evil/. ."):
        assert answer(place, command, unlocked=unlocked) == "pass", command
    assert answer(place, "unzip client.zip", unlocked=unlocked) == "block"


def test_without_hooks_an_archive_that_cannot_be_listed_passes(place: Path) -> None:
    """Nothing is there that it could replace."""
    bare = place.parent / "bare"
    bare.mkdir()
    assert answer(bare, "curl -sL https://x.example/a.tgz | tar xz") == "pass"
    assert answer(place, "tar xf clean.tar", machine=NO_MACHINE) == "pass"


@pytest.mark.parametrize(("limit", "value"), [("MOST_SECONDS", -1), ("MOST_MEMBERS", 1), ("MOST_BYTES", 1000)])
def test_an_archive_beyond_a_limit_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    """Each limit counts alone: the time, the number of members, and the bytes."""
    path = tmp_path / "a.tar"
    tar(path, "a", "b")
    assert archives.list_archive(str(path)) == ("a", "b")
    monkeypatch.setattr(archives, limit, value)
    assert archives.list_archive(str(path)) is None


def test_links_of_a_zip_are_followed(tmp_path: Path) -> None:
    """The target of a link is its content."""
    path = tmp_path / "a.zip"
    link = zipfile.ZipInfo("sub/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "../.agent/hooks")
        archive.writestr("sub/link/gate.py", "x")
    assert HOOK in (archives.list_archive(str(path)) or ())


def test_links_of_an_archive_are_followed_to_an_end(tmp_path: Path) -> None:
    """A loop of links gives a name after a number of steps."""
    path = tmp_path / "a.tar"
    tar(path, member("a", tarfile.SYMTYPE, "b"), member("b", tarfile.SYMTYPE, "a"), "a/x")
    names = archives.list_archive(str(path))
    assert names is not None
    assert set(names) == {"a", "b", "a/x"}


def test_other_extra_fields_of_a_zip_are_passed_over(tmp_path: Path) -> None:
    """Only a field with a name in Unicode counts."""
    path = tmp_path / "a.zip"
    info = zipfile.ZipInfo("plain")
    unicode_path = b"\1" + bytes(4) + HOOK.encode()
    info.extra = b"\x99\x99\x02\x00zz" + b"\x75\x70" + len(unicode_path).to_bytes(2, "little") + unicode_path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "x")
    assert set(archives.list_archive(str(path)) or ()) == {"plain", HOOK}


def test_a_patch_that_cannot_be_opened_has_no_list(tmp_path: Path) -> None:
    """Neither has one that is too large."""
    assert archives.list_patch(str(tmp_path / "absent.patch")) is None


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_all_members_of_a_packed_archive_are_listed(tmp_path: Path, mode: str) -> None:
    """The first one too, whose header shows that it is a tar archive."""
    path = tmp_path / "a.tar"
    tar(path, "a", "b", mode=mode)
    assert archives.list_archive(str(path)) == ("a", "b")
