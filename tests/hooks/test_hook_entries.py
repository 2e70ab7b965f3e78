"""The entries of `hooks` in the settings: files, packages, directories, globs, and modules of installed packages."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agent_hooks import Trust, load_settings
from agent_hooks.cli.protection import agent_guards
from agent_hooks.cli.setup import find_sources, sources_of
from agent_hooks.cli.setup import set_up as load_all
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardSettings
from agent_hooks.hook_entries import module_path
from agent_hooks.hooks.offered import offered_hooks
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.place import find_place
from agent_hooks.trust.policy import judge
from agent_hooks.values.answers import Block
from running import Command
from support import approve

HOOK = "def register(api):\n    api.on('tool_call', lambda event, ctx: None)\n"
MARK = "from pathlib import Path\nPath(__file__).with_name('was imported').touch()\n"


def own_settings(home: Path, *hooks: str) -> Path:
    """Write the person's settings."""
    path = home / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks}))
    return path


def of_project(project: Path, *hooks: str) -> Path:
    """Write the settings of a project."""
    path = project / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks}))
    return path


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Give a directory of hooks: two files, a package, and names that are no hooks."""
    path = tmp_path / "team"
    (path / "big").mkdir(parents=True)
    (path / "plain").mkdir()
    for name in ("b.py", "a.py", "_helper.py", ".hidden.py", "big/__init__.py", "plain/x.py"):
        (path / name).write_text(HOOK)
    (path / "notes.txt").write_text("no hook")
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory of packages, with one that offers two hooks, as pip would write it."""
    site = tmp_path / "site"
    package = site / "acme_hooks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MARK + HOOK)
    (package / "gate.py").write_text(MARK + HOOK)
    info = site / "acme_hooks-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-hooks\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[agent_hooks]\ngate = acme_hooks.gate\nall = acme_hooks:register\ngone = acme_hooks.gone\n"
    )
    monkeypatch.syspath_prepend(str(site))
    return site


def names(paths: object) -> list[str]:
    """Return the names of files, without their directories."""
    assert isinstance(paths, tuple | list)
    return [os.path.basename(path) for path in paths]


def test_a_directory_and_a_glob_stand_for_their_hooks(home: Path, project: Path, team: Path) -> None:
    """As in a hook directory: by name, packages with `register` too, and no name that begins with `.` or `_`."""
    own_settings(home, str(team))
    assert names(load_settings(cwd=project).hooks) == ["a.py", "b.py", "big"]
    own_settings(home, "../../team/?.py")
    assert names(load_settings(cwd=project).hooks) == ["a.py", "b.py"]
    own_settings(home, f"{team}/*/x.py", f"{team}/[ab].py", f"{team}/b*")
    assert names(load_settings(cwd=project).hooks) == ["x.py", "a.py", "b.py", "b.py", "big"]
    own_settings(home, f"{team}/_*.py", f"{team}/big")
    assert names(load_settings(cwd=project).hooks)[1:] == ["big"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(home: Path, project: Path, team: Path) -> None:
    """And a directory above with such a name is not one either."""
    odd = team / "[x]"
    odd.mkdir()
    (odd / "a.py").write_text(HOOK)
    (odd / "[1].py").write_text(HOOK)
    own_settings(home, f"{odd}/[1].py", str(odd))
    assert names(load_settings(cwd=project).hooks) == ["[1].py", "[1].py", "a.py"]


@pytest.mark.anyio
async def test_an_entry_that_stands_for_no_hook_is_an_error(home: Path, project: Path, team: Path) -> None:
    """Every tool call is blocked then, as for a missing file: the hook may have been a gate."""
    own_settings(home, f"{team}/x*.py", str(team / "empty"), "module:acme.gone", "module:a b")
    (team / "empty").mkdir()
    errors = [error.error for error in (await load_all(str(project), ())).errors]
    assert errors[0] == "no hook fits this pattern"
    assert errors[1].startswith("is a directory; a hook is a .py file")
    assert errors[2] == (
        f"no module 'acme.gone' is installed for {sys.executable}; install its package there, or remove the entry"
    )
    assert len(errors) == 4


@pytest.mark.anyio
async def test_a_new_file_of_a_directory_or_a_glob_counts_from_the_next_event(
    home: Path, project: Path, team: Path
) -> None:
    """The directories in which one may appear are watched."""
    own_settings(home, str(team), f"{team}/plain/*.py", f"{team}/[p]*/*.py")
    sources = sources_of(await load_all(str(project), ()))
    assert not sources.changed()
    (team / "plain" / "new.py").write_text(HOOK)
    assert sources.changed()
    (team / "c.py").write_text(HOOK)
    assert sources.changed()


def test_each_file_of_a_projects_directory_or_glob_is_approved(project: Path, home: Path) -> None:
    """What was not approved does not count: a new match waits, and the approved ones go on."""
    gates = project / "gates"
    gates.mkdir()
    for name in ("one.py", "two.py", "_beside.py"):
        (gates / name).write_text(HOOK)
    (project / "dir").mkdir()
    (project / "dir" / "three.py").write_text(HOOK)
    of_project(project, "../gates/*.py", "../dir")
    found = read_set(str(project))
    assert [file.name for file in found.files] == [
        ".agent/settings.json",
        "dir/three.py",
        "gates/_beside.py",
        "gates/one.py",
        "gates/two.py",
    ]
    trust = Trust()
    store = trust.store()
    store.approve(judge(store, str(project)).key, found, by="test")
    assert names(load_settings(cwd=project, trust=trust).hooks) == ["one.py", "two.py", "three.py"]
    (gates / "zero.py").write_text(HOOK)
    (gates / "one.py").write_text("raise SystemExit")
    (state,) = trust.sources(project).projects
    assert state.state == "changed"
    assert names(load_settings(cwd=project, trust=trust).hooks) == ["one.py", "two.py", "three.py"]
    approved = find_sources(str(project), ()).sources.trees[1].files
    assert approved is not None
    assert approved[str(gates / "one.py")].data == HOOK.encode()


def test_a_strangers_glob_over_the_whole_disk_is_a_problem_of_the_set(project: Path) -> None:
    """It ends after a number of names, and before any file of it is read."""
    of_project(project, "/*/*/*/*/*/*.py")
    found = read_set(str(project))
    assert found.problem is not None
    assert "more than 20000 entries" in found.problem


@pytest.mark.parametrize("path", ["new.py", "a.py", "big/new.py", "plain/x.py"])
def test_no_agent_writes_a_file_that_fits_a_pattern(home: Path, project: Path, team: Path, path: str) -> None:
    """A new file there would be a hook from the next event on."""
    own_settings(home, str(team), f"{team}/*/x.py")
    guards = find_and_guard(project)
    for tool, given in (
        ("write", {"path": str(team / path), "content": "x"}),
        ("bash", {"command": f"echo x > {team / path}"}),
    ):
        found = ask_guards(guards, guarded_call(tool, given, str(project)), lambda error: pytest.fail(str(error)))
        assert isinstance(found, Block), tool
    given = {"path": str(team / "plain" / "y.py"), "content": "x"}
    own_settings(home, f"{team}/*/x.py")
    call = guarded_call("write", given, str(project))
    assert ask_guards(find_and_guard(project), call, lambda error: pytest.fail(str(error))) == []


def find_and_guard(project: Path) -> list[Guard]:
    """Return the guards of an agent that works in a project, as a run makes them."""
    settings = load_settings(cwd=project)
    own = [*settings.hooks, *settings.hook_patterns]
    return agent_guards(GuardSettings(), find_place(str(project)), own)


@pytest.mark.anyio
async def test_a_module_of_an_installed_package_is_a_hook(home: Path, project: Path, installed: Path) -> None:
    """By its dotted name; a package is one too, and nothing is imported to find it."""
    own_settings(home, "module:acme_hooks.gate", "module:acme_hooks")
    assert load_settings(cwd=project).hooks == (
        str(installed / "acme_hooks" / "gate.py"),
        str(installed / "acme_hooks"),
    )
    assert not (installed / "acme_hooks" / "was imported").exists()
    assert "acme_hooks" not in sys.modules
    setup = await load_all(str(project), ())
    assert setup.errors == []
    assert len(setup.loaded.hooks) == 2


def test_a_module_in_the_current_directory_is_none(
    project: Path, monkeypatch: pytest.MonkeyPatch, installed: Path
) -> None:
    """It may be a stranger's; a name of Python's own, of no Python file or of no form is none either."""
    (project / "theirs.py").write_text(MARK)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    assert module_path("acme_hooks.gate") is not None
    for name in ("theirs", "sys", "acme_hooks.gone", "acme_hooks.gate.inner", "a b", "", "..x", "math"):
        assert module_path(name) is None


@pytest.mark.anyio
async def test_a_projects_module_counts_only_if_the_person_names_it_too(
    home: Path, project: Path, installed: Path
) -> None:
    """Until then every tool call is blocked, because it may be a gate; the error has the remedy."""
    of_project(project, "module:acme_hooks.gate")
    approve(project)
    (error,) = (await load_all(str(project), ())).errors
    assert 'add "module:acme_hooks.gate" to hooks in ~/.agent/settings.json' in error.error
    own_settings(home, "module:acme_hooks.gate")
    setup = await load_all(str(project), ())
    assert (setup.errors, len(setup.loaded.hooks)) == ([], 1)


def test_the_hooks_of_packages_are_listed_without_an_import(
    command: Command, home: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the entry for the settings, the package, and whether they count."""
    monkeypatch.setenv("PYTHONPATH", str(installed))
    own_settings(home, "module:acme_hooks.gate")
    assert [(each.name, each.entry) for each in offered_hooks() if each.package == "acme-hooks"] == [
        ("all", "module:acme_hooks"),
        ("gate", "module:acme_hooks.gate"),
        ("gone", "module:acme_hooks.gone"),
    ]
    rows = json.loads(command("list", "--available", "--json").stdout)["available"]
    assert [(row["hook"], row["used"], row["version"]) for row in rows if row["package"] == "acme-hooks"] == [
        ("all", False, "1.2"),
        ("gate", True, "1.2"),
        ("gone", False, "1.2"),
    ]
    shown = command("list", "--available").stdout
    assert "its module is missing" in shown
    assert "counts" in shown
    assert not (installed / "acme_hooks" / "was imported").exists()
