"""The `.agent` directories that apply to a working directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks.trust.place import Place, find_place
from agent_hooks.trust.policy import Trust
from trust.approving import agent_file, approve, state

SOMEBODY = 54_321
"""A user of the machine that is neither root nor the one that runs the tests."""


def place(*directories: Path) -> Place:
    """Return the place of directories."""
    return find_place(*map(str, directories))


def working_tree(path: Path) -> Path:
    """Make a directory the top of a git working tree."""
    (path / ".git").mkdir(parents=True)
    return path


def test_every_agent_directory_up_to_the_outermost_working_tree_applies_outermost_first(project: Path) -> None:
    """A repository inside of another one, and a subdirectory without an `.agent`, end nothing."""
    outer = working_tree(project / "outer")
    inner = working_tree(outer / "vendor" / "inner")
    for each in (project, outer, inner):
        agent_file(each)
    (inner / "src").mkdir()
    found = place(inner / "src")
    assert found.projects == (str(outer), str(inner))
    assert found.top == str(outer)


def test_without_git_the_walk_ends_below_the_home_directory(home: Path) -> None:
    """The home directory is no project, and neither is a directory above it."""
    agent_file(home)
    agent_file(home.parent)
    agent_file(home / "code")
    agent_file(home / "code" / "app")
    assert place(home / "code" / "app").projects == (str(home / "code"), str(home / "code" / "app"))
    assert place(home).projects == ()


def test_the_home_directory_is_never_a_project_even_as_a_working_tree(home: Path, tmp_path: Path) -> None:
    """Neither directly, nor through a link, nor from a directory in it."""
    working_tree(home)
    agent_file(home)
    (home / "src").mkdir()
    (tmp_path / "link").symlink_to(home)
    for each in (home, home / "src", tmp_path / "link", tmp_path / "link" / "src"):
        assert place(each).projects == ()


def test_an_agent_home_elsewhere_is_no_project_and_neither_is_the_home_directory(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`AGENT_HOME` may lie in a working tree, and may be reached by a link."""
    agent_file(home)
    agent_file(project)
    (project / "alias").mkdir()
    (project / "alias" / ".agent").symlink_to(project / ".agent")
    monkeypatch.setenv("AGENT_HOME", str(project / ".agent"))
    assert place(home).projects == ()
    assert place(project / "alias").projects == ()


def test_the_directory_of_another_user_is_left_out_and_named(project: Path) -> None:
    """Outside of git, as in `/tmp/.agent`; its owner could change it at any time."""
    agent_file(project)
    (project / "mine").mkdir()
    os.chown(project / ".agent", SOMEBODY, SOMEBODY)
    found = place(project / "mine")
    assert found.projects == ()
    assert [str(each) for each in found.skipped] == [
        f"{project / '.agent'} is not used: it belongs to another user, and is in no git working tree"
    ]
    assert str(found.skipped[0]) in Trust().sources(project / "mine").messages


def test_a_link_of_another_user_to_a_directory_of_this_one_is_left_out(project: Path, tmp_path: Path) -> None:
    """The owner of the link decides where it leads."""
    agent_file(tmp_path / "own")
    (project / ".agent").symlink_to(tmp_path / "own" / ".agent")
    os.chown(project / ".agent", SOMEBODY, SOMEBODY, follow_symlinks=False)
    assert place(project).projects == ()


def test_another_user_s_git_directory_above_makes_no_working_tree(project: Path) -> None:
    """Otherwise `/tmp/.git` would make `/tmp` the top of everybody's directories there."""
    working_tree(project)
    agent_file(project)
    mine = project / "mine"
    mine.mkdir()
    for each in (".git", ".agent"):
        os.chown(project / each, SOMEBODY, SOMEBODY)
    found = place(mine)
    assert (found.top, found.projects) == (str(mine), ())


def test_a_repository_that_belongs_to_another_user_as_a_whole_is_a_working_tree(project: Path) -> None:
    """As one that is mounted into a container."""
    working_tree(project)
    agent_file(project)
    for each in (project, project / ".git", project / ".agent"):
        os.chown(each, SOMEBODY, SOMEBODY)
    assert place(project).projects == (str(project),)


def test_all_directories_that_an_agent_works_in_count(project: Path, tmp_path: Path) -> None:
    """`cd` to another directory loses no gate of the project that the agent was started in."""
    other = working_tree(tmp_path / "other")
    working_tree(project)
    agent_file(project)
    agent_file(other)
    found = place(project, other)
    assert (found.top, set(found.projects)) == (str(project), {str(project), str(other)})
    approve(project)
    assert state(other, other).state == "new"
    sources = Trust().sources(project, str(other))
    assert {each.project: each.state for each in sources.projects} == {str(project): "approved", str(other): "new"}


def test_a_directory_that_is_gone_or_cannot_be_one_is_no_traceback(project: Path) -> None:
    """The error names the directory."""
    from agent_hooks.trust.manifest import TrustError

    with pytest.raises(TrustError, match=r"cannot find the project of 'a\\x00b': embedded null byte"):
        Trust().sources("a\0b")
    assert Trust().sources(project / "gone").projects == ()


def test_a_loop_of_links_is_a_directory_without_a_project(project: Path) -> None:
    """The walk ends."""
    (project / "loop").symlink_to("loop")
    assert place(project / "loop").projects == ()
