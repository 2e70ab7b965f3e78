"""Nothing is written through the links of a project to a file elsewhere."""

from __future__ import annotations

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import rmtree
from types import ModuleType

import pytest

from agent_hooks.errors import SessionError
from agent_hooks.host.session import Session
from agent_hooks.storage.files import StorageError
from agent_hooks.storage.links import inside_tree
from running import Command
from support import ROOT

EXAMPLES = ROOT / "examples/hooks"
MINE = "mine"


@pytest.fixture(autouse=True)
def _no_agent(no_agent_around: None) -> None:
    """The tests themselves may run inside an agent."""


@pytest.fixture
def outside(home: Path) -> Path:
    """Return a directory of the user with one file."""
    directory = home / "own"
    directory.mkdir(parents=True)
    (directory / "file").write_text(MINE)
    return directory


def untouched(directory: Path) -> bool:
    """Return whether the user's directory is as it was."""
    return os.listdir(directory) == ["file"] and (directory / "file").read_text() == MINE


# ---- where a path leads


def test_a_path_that_enters_the_tree_has_to_stay_in_it(project: Path, outside: Path) -> None:
    """The error names the link and its target, whatever part of the path the link is."""
    (project / ".git").mkdir()
    (project / "src").mkdir()
    (project / "src" / "deep").symlink_to(outside)
    (project / "git").symlink_to(".git")
    for path in ("src/deep/file", "src/deep/new/file", "git/hooks/x", str(project / "src/deep/file")):
        with pytest.raises(StorageError, match=r"is a link to .*\. Remove the link, or name another file"):
            inside_tree(path, str(project))
    with pytest.raises(StorageError, match=r"src/deep is a link"):
        inside_tree("deep/file", str(project / "src"))


def test_other_links_are_followed(project: Path, outside: Path, tmp_path: Path) -> None:
    """A link inside of the tree, a link to the tree, and your own links outside of it lead where they lead."""
    (project / ".git").mkdir()
    (project / "src").mkdir()
    (project / "code").symlink_to("src")
    (tmp_path / "way").symlink_to(project)
    (tmp_path / "mine").symlink_to(outside)
    for path in ("code/a", str(tmp_path / "way" / "code" / "a"), str(tmp_path / "mine" / "a"), "../mine/a", "src/a"):
        assert inside_tree(path, str(project)) == os.path.abspath(project / path)
    assert inside_tree("code/a", str(tmp_path / "way")) == str(tmp_path / "way" / "code" / "a")


# ---- commands


@pytest.mark.parametrize("link", ["page.html", "folder"])
def test_the_saved_page_replaces_no_file_elsewhere(command: Command, outside: Path, link: str) -> None:
    """Neither by a link with the name of the page, nor by a linked directory."""
    command("run", "@ls", code=None)
    (command.project / "page.html").symlink_to(outside / "file")
    (command.project / "folder").symlink_to(outside)
    done = command("look", "--save", "page.html" if link == "page.html" else "folder/file", code=1)
    assert "is a link to" in done.stderr
    assert untouched(outside)


def test_the_saved_page_replaces_no_other_file_of_the_project(command: Command) -> None:
    """A link of a checkout may lead to a file that you made there."""
    (command.project / ".env").write_text(MINE)
    (command.project / "page.html").symlink_to(".env")
    assert "is a link to .env" in command("look", "--save", "page.html", code=1).stderr
    assert (command.project / ".env").read_text() == MINE


@pytest.mark.parametrize("link", [".agent", ".agent/hooks"])
@pytest.mark.parametrize("args", [("new", "starter"), ("examples", "add", "audit_log")])
def test_no_hook_is_added_elsewhere(command: Command, outside: Path, link: str, args: tuple[str, ...]) -> None:
    """In the agent home, it would count in all projects."""
    (command.project / ".git").mkdir()
    (command.project / link).parent.mkdir(exist_ok=True)
    (command.project / link).symlink_to(outside)
    assert f"{link} is a link to {outside}" in command(*args, code=1).stderr
    assert untouched(outside)


@pytest.mark.parametrize("target", ["local", "project"])
def test_an_installation_changes_no_file_elsewhere(command: Command, outside: Path, target: str) -> None:
    """A file that is not the agent's own stays too, and so do its entries at an uninstall."""
    (outside / "file").write_text("{}")
    (command.project / ".claude").mkdir()
    for name in ("settings.json", "settings.local.json"):
        (command.project / ".claude" / name).symlink_to(outside / "file")
    done = command("install", "claude-code", f"--{target}", code=1)
    assert "is a link to" in done.stderr
    assert "nothing was changed" in done.stderr
    assert (outside / "file").read_text() == "{}"
    assert os.listdir(outside) == ["file"]


def test_no_directory_of_sessions_is_made_elsewhere(project: Path, outside: Path) -> None:
    """The refusal comes before the directory is made."""
    (project / ".agent").symlink_to(outside)
    with pytest.raises(SessionError, match="is a link out of"):
        Session.create(str(project))
    assert untouched(outside)


# ---- examples


def linked(project: Path, outside: Path, name: str) -> None:
    """Make a file in the directory of the project's hooks a link."""
    (project / ".agent" / name).parent.mkdir(parents=True)
    (project / ".agent" / name).symlink_to(outside / "file")


def module_of(name: str) -> ModuleType:
    """Import an example as a module."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["audit_log", "everywhere"])
def test_no_example_writes_its_lines_elsewhere(command: Command, outside: Path, name: str) -> None:
    """A linked file and a linked directory are refused, and the failure names them."""
    file = {"audit_log": "audit.jsonl"}.get(name, f"{name}.jsonl")
    run = ("run", "--no-session", "--hook", str(EXAMPLES / f"{name}.py"), "@ls")
    linked(command.project, outside, file)
    assert f"{file} is a link, or its directory is: remove the link" in command(*run, code=None).stderr
    rmtree(command.project / ".agent")
    (command.project / ".agent").symlink_to(outside)
    assert f"{file} is a link, or its directory is: remove the link" in command(*run, code=None).stderr
    assert untouched(outside)


@pytest.mark.parametrize("link", [".agent", ".agent/webhook"])
def test_the_token_of_the_webhook_goes_to_no_other_directory(project: Path, outside: Path, link: str) -> None:
    """A file `token` there may be one of another program."""
    own = outside / "webhook" if link == ".agent" else outside
    own.mkdir(exist_ok=True)
    (own / "token").write_text(MINE)
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(outside)
    with pytest.raises(OSError, match="is a link, so no token is written there"):
        module_of("webhook").new_token(project / ".agent" / "webhook" / "token")
    assert {name: (own / name).exists() for name in ("token", ".gitignore")} == {"token": True, ".gitignore": False}
    assert (own / "token").read_text() == MINE


def test_the_trigger_file_is_no_other_file(project: Path, outside: Path) -> None:
    """Its text would go to the model, and the file would be emptied."""
    linked(project, outside, "trigger.txt")
    with pytest.raises(OSError, match="is a link"):
        module_of("file_trigger").text_in(project / ".agent" / "trigger.txt")
    assert untouched(outside)
