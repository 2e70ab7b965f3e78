"""The file of the answers for good."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.remembering import FILE, LOCK
from agent_hooks.remembering import store as store_module
from agent_hooks.remembering.kept import LIFETIME, About, Project, project_of
from agent_hooks.remembering.store import RememberingError, Store

PUSH = About(tool="bash", by="builtin:command-safety-guard", rule="git-remote", words=("git", "push", "--force"))
TODAY = date(2026, 11, 23)


def git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    path = tmp_path / "app"
    path.mkdir()
    git("init", "-q", cwd=path)
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    git(*identity, "commit", "-q", "--allow-empty", "-m", "x", cwd=path)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def store_at(home: Path, today: date = TODAY) -> Store:
    return Store(str(home), lambda: today)


def edit(home: Path, change: Callable[[Any], object]) -> None:
    """Change the JSON of the file by hand."""
    path = home / FILE
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))


def test_an_answer_for_good_counts_for_the_same_question_in_another_process(project: Path, home: Path) -> None:
    """The file has the rule, the exact words, the tool, the project and the date, and only the person may read it."""
    kept = store_at(home).add(PUSH, project_of(str(project)))
    assert store_at(home).recall(PUSH, project_of(str(project))) == kept
    raw = json.loads((home / FILE).read_text())["answers"][0]
    assert raw["words"] == ["git", "push", "--force"]
    assert (raw["rule"], raw["tool"], raw["written"]) == ("git-remote", "bash", "2026-11-23")
    assert raw["project"] == str(project / ".git")
    assert os.stat(home / FILE).st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "other",
    [
        {"words": ("git", "push", "--force", "origin")},
        {"words": ("git", "push")},
        {"words": ("git push --force",)},
        {"rule": "git-history"},
        {"tool": "exec"},
        {"by": "settings:guards.rules"},
    ],
)
def test_an_answer_counts_for_no_other_question(project: Path, home: Path, other: dict[str, Any]) -> None:
    """Other words, another rule, another tool and another guard are each another question."""
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    about = About(**{"tool": PUSH.tool, "by": PUSH.by, "rule": PUSH.rule, "words": PUSH.words} | other)
    assert store.recall(about, project_of(str(project))) is None


def test_all_worktrees_of_a_repository_share_an_answer(project: Path, home: Path) -> None:
    """A linked worktree has the same common directory; a clone has another one."""
    git("worktree", "add", "-q", "../tree", cwd=project)
    git("clone", "-q", ".", "../clone", cwd=project)
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    assert store.recall(PUSH, project_of(str(project.parent / "tree"))) is not None
    assert store.recall(PUSH, project_of(str(project.parent / "clone"))) is None


def test_an_answer_counts_in_its_directory_only(project: Path, home: Path) -> None:
    """`rm -rf dist2` in another directory removes another tree."""
    (project / "sub").mkdir()
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    assert store.recall(PUSH, project_of(str(project / "sub"))) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["answers"][0].update(words=["git", "push"]),
        lambda raw: raw["answers"][0].update(expires="2099-01-01"),
        lambda raw: raw["answers"][0].update(project="/"),
        lambda raw: raw["answers"][0].update(more=1),
        lambda raw: raw["answers"][0].pop("digest"),
        lambda raw: raw["answers"][0].update(words="git push"),
        lambda raw: raw["answers"][0].update(expires="never"),
    ],
)
def test_an_answer_that_was_edited_by_hand_does_not_count(
    project: Path, home: Path, change: Callable[[Any], object]
) -> None:
    """It stays in the file, the message names it and its end, and a later answer gets another number."""
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    edit(home, change)
    assert store.recall(PUSH, project_of(str(project))) is None
    (problem,) = store.find().problems
    assert "answer 1 in" in problem
    assert "changed by hand" in problem
    assert "agent-hooks guard exceptions --revoke 1" in problem
    assert store.add(PUSH, project_of(str(project))).number == 2
    assert len(json.loads((home / FILE).read_text())["answers"]) == 2
    store.revoke(1)
    assert store.find().problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "next": 1, "answers": []}',
        '{"version": 1, "next": "x", "answers": []}',
        '{"version": 1, "next": 1, "answers": {}}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_file_that_cannot_be_used_counts_as_no_answer(project: Path, home: Path, text: str) -> None:
    """The message names the file and the remedy, and no later answer overwrites the file."""
    home.mkdir()
    (home / FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    (home / FILE).chmod(0o600)
    store = store_at(home)
    assert store.recall(PUSH, project_of(str(project))) is None
    (problem,) = store.find().problems
    assert problem.startswith(str(home / FILE))
    assert problem.endswith("no remembered answer counts until you mend or remove the file")
    with pytest.raises(RememberingError):
        store.add(PUSH, project_of(str(project)))
    assert (home / FILE).read_bytes() == text.encode("utf-8", "surrogateescape")


def test_a_file_that_others_can_write_and_a_link_count_as_no_answer(project: Path, home: Path) -> None:
    """Another user could have put the answer there."""
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    (home / FILE).chmod(0o666)
    assert store.recall(PUSH, project_of(str(project))) is None
    assert "other users" in store.find().problems[0]
    (home / FILE).chmod(0o600)
    assert store.recall(PUSH, project_of(str(project))) is not None
    (home / FILE).rename(home / "elsewhere.json")
    (home / FILE).symlink_to(home / "elsewhere.json")
    assert store.recall(PUSH, project_of(str(project))) is None
    assert store.find().problems


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 30)


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, make_huge])
def test_an_object_in_the_place_of_the_file_counts_as_no_answer(
    project: Path, home: Path, put: Callable[[Path], object]
) -> None:
    """A pipe would keep the reader waiting, and a huge file would fill the memory."""
    home.mkdir()
    put(home / FILE)
    store = store_at(home)
    assert store.recall(PUSH, project_of(str(project))) is None
    assert "is no regular file of a usual size" in store.find().problems[0]
    with pytest.raises(RememberingError, match="is no regular file of a usual size"):
        store.add(PUSH, project_of(str(project)))


def test_a_full_file_takes_no_answer(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the remedy, and the answers that are there stay."""
    monkeypatch.setattr(store_module, "MOST", 1)
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    with pytest.raises(RememberingError, match="holds 1 answers; revoke some: agent-hooks guard exceptions"):
        store.add(PUSH, project_of(str(project)))
    assert len(store.find().kept) == 1


def test_a_lock_that_another_process_holds_ends_the_wait(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written, and the error says so."""
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT", 0.05)
    home.mkdir()
    with (home / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RememberingError, match=r"another process holds the lock of .*; try again"):
            store_at(home).add(PUSH, project_of(str(project)))
    assert not (home / FILE).exists()


def test_an_answer_expires_after_a_year(project: Path, home: Path) -> None:
    """The last day counts; an answer from the future does not."""
    store_at(home).add(PUSH, project_of(str(project)))
    place = project_of(str(project))
    assert store_at(home, TODAY + LIFETIME).recall(PUSH, place) is not None
    late, early = store_at(home, TODAY + LIFETIME + timedelta(1)), store_at(home, TODAY - timedelta(1))
    assert late.recall(PUSH, place) is None
    assert late.find().kept[0].idle(late.today()) == f"it expired on {TODAY + LIFETIME}"
    assert early.recall(PUSH, place) is None


def test_an_answer_for_a_project_that_moved_does_not_count(project: Path, home: Path) -> None:
    """Neither at the new path, nor for another project at the old path."""
    store = store_at(home)
    store.add(PUSH, project_of(str(project)))
    project.rename(project.parent / "moved")
    assert store.recall(PUSH, project_of(str(project.parent / "moved"))) is None
    assert store.find().kept[0].idle(TODAY) == "its project was moved or removed"
    git("clone", "-q", "moved", "app", cwd=project.parent)
    assert store.recall(PUSH, project_of(str(project))) is None
    assert store.find().kept[0].idle(TODAY) == "another project is at the path of its project now"


def test_a_revoked_answer_no_longer_counts_and_its_number_is_not_used_again(project: Path, home: Path) -> None:
    """A person who notes a number never ends another answer by it."""
    store = store_at(home)
    first = store.add(PUSH, project_of(str(project)))
    assert store.revoke(first.number) == first
    assert store.recall(PUSH, project_of(str(project))) is None
    with pytest.raises(RememberingError, match="there is no answer 1"):
        store.revoke(1)
    assert store.add(PUSH, project_of(str(project))).number == 2


def test_an_agent_home_that_cannot_be_written_gives_a_clear_error(project: Path, tmp_path: Path) -> None:
    """The file, and the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RememberingError, match=r"cannot write .*remembered\.json: "):
        Store(str(tmp_path / "file" / "home")).add(PUSH, project_of(str(project)))


def test_two_processes_lose_no_answer(project: Path, home: Path) -> None:
    """Each reads the file under the lock before it writes."""
    code = (
        "import sys; from agent_hooks.remembering.kept import About; from agent_hooks.remembering.store import Store\n"
        "from agent_hooks.remembering.kept import project_of\n"
        "store = Store(sys.argv[1]); place = project_of(sys.argv[2])\n"
        "for n in range(10): store.add(About(tool='bash', by=sys.argv[3], rule='r', words=(str(n),)), place)\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(home), str(project), name]) for name in ("one", "two")]
    assert [each.wait(60) for each in started] == [0, 0]
    found = Store(str(home)).find()
    assert [each.number for each in found.kept] == list(range(1, 21))


def test_a_directory_without_a_repository_is_a_project(tmp_path: Path) -> None:
    """Its own path stands for it."""
    place = project_of(str(tmp_path))
    assert place == Project(str(tmp_path), os.stat(tmp_path).st_ino, ".")


def test_the_question_of_an_answer_is_one_line() -> None:
    """The words of a program control no terminal and pass for no other answer."""
    for about in (
        About(tool="bash", by="x", rule="r", words=("rm", "a\n\x1b[2J")),
        About(tool="b", by="x", title="\n"),
    ):
        assert str(about).isprintable()
