"""Hooks that the settings of an approved project name are loaded from the approved bytes, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent_hooks import AgentHooksError, discover_and_load_hooks, load_settings
from agent_hooks.hooks.loaded import LoadResult
from agent_hooks.trust.policy import Trust
from running import Command
from trust.approving import agent_file, approve, state

pytestmark = pytest.mark.anyio
MARK = "from pathlib import Path\nPath({!r}).touch()\ndef register(api): ...\n"


async def load(project: Path) -> LoadResult:
    """Load the hooks of a project as a command does."""
    settings = load_settings(cwd=project, trust=Trust())
    return await discover_and_load_hooks(settings.hooks, cwd=project, trust=Trust())


async def test_a_hook_that_was_missing_when_the_settings_were_approved_never_runs_from_the_disk(project: Path) -> None:
    """Somebody may write it later; until its approval, calls are blocked."""
    agent_file(project, "settings.json", '{"hooks": ["../later.py"]}')
    approve(project)
    (project / "later.py").write_text(MARK.format(str(project / "ran")))
    loaded = await load(project)
    assert loaded.hooks == []
    assert "not among the approved files; read and approve: agent-hooks trust" in str(loaded.errors[0])
    assert not (project / "ran").exists()
    approve(project)
    assert (await load(project)).errors == []
    assert (project / "ran").exists()


@pytest.mark.parametrize("named", ["../my gate.py", "../my\u00a0gate.py", "../pkg"])
async def test_a_named_hook_that_was_changed_runs_as_it_was_approved(project: Path, named: str) -> None:
    """However its name is spelled, and in a package too."""
    for name in ("my gate.py", "pkg/__init__.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(MARK.format(str(project / "approved")))
    agent_file(project, "settings.json", f'{{"hooks": ["{named}"]}}')
    approve(project)
    for name in ("my gate.py", "pkg/__init__.py"):
        (project / name).write_text(MARK.format(str(project / "changed")))
    loaded = await load(project)
    assert (len(loaded.hooks), loaded.errors) == (1, [])
    assert (project / "approved").exists()
    assert not (project / "changed").exists()


async def test_an_embedding_program_gets_an_error_where_no_call_may_run(project: Path, home: Path) -> None:
    """Hooks without the project's gates would let the calls through that these stop."""
    agent_file(project)
    assert (await discover_and_load_hooks(cwd=project, trust=Trust())).hooks == []
    with pytest.raises(AgentHooksError, match="every tool call is blocked; read and approve: agent-hooks trust"):
        await discover_and_load_hooks(cwd=project, trust=Trust(required=True))
    approve(project)
    assert len((await discover_and_load_hooks(cwd=project, trust=Trust(required=True))).hooks) == 1
    shutil.rmtree(home / ".agent" / "trust" / "sets")
    agent_file(project, text="changed")
    with pytest.raises(AgentHooksError, match="the approved ones are gone"):
        load_settings(cwd=project, trust=Trust())


@pytest.mark.parametrize("name", ["settings.json", "command_intercept.yaml"])
@pytest.mark.parametrize("kind", ["a directory", "a link to nowhere", "a FIFO"])
@pytest.mark.parametrize("alone", [True, False])
def test_settings_that_are_no_file_block_once_they_are_approved(
    command: Command, name: str, kind: str, *, alone: bool
) -> None:
    """As an unreadable file does; before, they wait as every other change of a project does."""
    command.trusted = False
    if not alone:
        agent_file(command.project)
        approve(command.project)
    path = command.project / ".agent" / name
    path.parent.mkdir(exist_ok=True)
    make = {"a directory": path.mkdir, "a link to nowhere": lambda: path.symlink_to("nowhere")}
    make.get(kind, lambda: os.mkfifo(path))()
    assert state(command.project).state == ("new" if alone else "changed")
    assert "1. bash echo ran\n   ran" in command("run", "--no-session", "@bash echo ran").stdout
    asked = command("trust", "--yes")
    assert "once it is approved, it blocks every tool call" in asked.stdout + asked.stderr
    done = command("run", "--no-session", "@bash echo ran", code=None)
    assert "   ran" not in done.stdout
    assert name in done.stdout + done.stderr
    assert "regular file" in done.stdout + done.stderr or "missing file" in done.stdout + done.stderr
