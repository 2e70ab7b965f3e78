"""A person finds the call that cost files, the reason for which it ran, and the way back, with the page alone."""

from __future__ import annotations

import json
import shlex
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent_hooks.look.view import View
from look.browser import Visit
from look.serving import served
from running import Command
from support import approve

pytestmark = pytest.mark.browser
GATE = """
from agent_hooks import Block

def register(api):
    @api.on("tool_call", tool="bash")
    def gate(event, ctx):
        if "rm -rf" in event.input["command"]:
            return Block("deleting needs a person")
"""
WEEK = (
    (
        '@write {"path": "notes/plan.md", "content": "the plan\\n"}\n'
        '@write {"path": "notes/list.md", "content": "a list\\n"}'
    ),
    "@bash ls\n@read notes/plan.md",
    "@bash rm -rf build\n@bash echo built",
    "@bash rm notes/plan.md notes/list.md\n@bash echo tidy",
    "@bash git status --short\n@bash ls notes",
    "@bash curl --version\n@bash rm -rf notes",
)

LOSS = 3
"""The session of the week that removes two files."""


@pytest.fixture
def week(command: Command, home: Path) -> Command:
    """Give a project with six sessions; the first three were on earlier days, and the fourth has removed two files.

    The store of checkpoints has times of its own, so the later sessions stay on this day.
    """
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    (command.project / "gate.py").write_text(GATE)
    records = home / ".agent" / "records"
    seen: set[Path] = set()
    for day, prompt in enumerate(WEEK):
        command("run", "--hook", "gate.py", prompt, code=None)
        new = {path for path in records.glob("*.jsonl") if path.name != "index.jsonl"} - seen
        for path in new if day < LOSS else ():
            date_back(path, timedelta(days=len(WEEK) - day))
        seen |= new
    return command


def date_back(path: Path, span: timedelta) -> None:
    """Write a record file anew, as of an earlier day."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["time"] = (datetime.fromisoformat(line["time"]) - span).isoformat()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_from_the_numbers_to_the_call_that_cost_the_files_and_back(
    visit: Visit, week: Command, home: Path, tmp_path: Path
) -> None:
    """The number of calls in turns that changed files, the call, its card, the copied command: the files are there."""
    view = View(home / ".agent")
    view.refresh()
    try:
        with served(view, tmp_path / "look") as running:
            visit.open(running.path)
            assert "12 calls, 2 stopped" in visit.text("look-sentence")
            assert "3 that may have changed files" in visit.text("look-sentence")
            visit.click("that may have changed files")
            visit.until(lambda: visit.text(".found") == "3 calls shown", "the calls that may have changed files")
            visit.until(lambda: visit.page.locator(".row", has_text="rm notes/plan.md").count() == 1, "the call")
            visit.page.locator(".row", has_text="rm notes/plan.md").click()
            visit.page.wait_for_selector(".ladder")
            assert "Let through: " in visit.text("look-card .verdict")
            assert "had no objection" in visit.text("look-card .verdict")
            assert "gate.py" in visit.text(".ladder")
            assert "Its turn changed 2 files." in visit.text("look-card header")
            visit.page.get_by_role("button", name="the way back").click()
            visit.until(
                lambda: visit.page.locator(".turn .copy").is_visible(), "the command that brings the files back"
            )
            files = visit.page.locator(".files li").all_inner_texts()
            assert {"notes/plan.md", "notes/list.md"} <= set(files)
            visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
            visit.page.get_by_role("button", name="Copy").click()
            visit.until(lambda: visit.text(".copy") == "copied", "the copy")
            copied = visit.page.evaluate("navigator.clipboard.readText()")
    finally:
        view.close()
    words = shlex.split(copied)
    assert words[0] == "agent-hooks"
    assert not (week.project / "notes" / "plan.md").exists()
    # At a terminal it asks.
    week(*words[1:], "--yes")
    assert (week.project / "notes" / "plan.md").read_text() == "the plan\n"


def test_a_project_is_chosen_and_that_of_the_current_directory_comes_first(
    visit: Visit, command: Command, home: Path, tmp_path: Path
) -> None:
    """The numbers and the list are about its calls alone; two hooks of one name are told apart by their files."""
    projects = [tmp_path / "work" / name for name in ("apples", "pears")]
    for at, project in enumerate(projects):
        hook = project / ".agent" / "hooks" / "gate.py"
        hook.parent.mkdir(parents=True)
        hook.write_text(GATE)
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        approve(project)
        command("run", "--cwd", str(project), "\n".join(["@bash ls"] * (at + 1)))
    view = View(home / ".agent", cwd=projects[1])
    view.refresh()
    try:
        with served(view, tmp_path / "look") as running:
            visit.open(running.path)
            assert "1 session, 2 calls" in visit.text("look-sentence")
            select = visit.page.locator("look-projects select")
            assert select.locator("option").all_inner_texts() == ["all projects", "pears (here)", "apples"]
            select.select_option(label="apples")
            visit.until(lambda: visit.text(".found") == "1 call shown", "the call of the other project")
            assert "1 session, 1 call, 0 stopped" in visit.text("look-sentence")
            select.select_option(label="all projects")
            visit.until(lambda: visit.text(".found") == "", "all calls")
            assert "2 sessions, 3 calls" in visit.text("look-sentence")
            places = visit.page.locator("look-hooks .place").all_inner_texts()
            assert places == [str(project / ".agent" / "hooks" / "gate.py") for project in reversed(projects)]
            assert visit.complaints == []
    finally:
        view.close()
