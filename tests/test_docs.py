"""Every code block of README and docs is run.

A block's first line may name a file: `python file=.agent/hooks/x.py`. Each page has a project of its own. Blocks with a
file are written into it, and `console` blocks are run in it, in order. Each output line of a `console` block must match a
printed line: `…` stands for any text, and a time for any time.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import forking
from isolation.packages import use_installed

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
DECISIONS, DECISION_WORDS = 60, 4000
# CI runs these in a fresh clone, since they install their own environment.
RUN_BY_CI = ("make demo", "make test", "pip install .")
# The first pages of a newcomer. The others are slow, and `.ci/run` runs them too.
FIRST = {"README.md", "CONTRIBUTING.md"}
LONG = [pytest.mark.slow, pytest.mark.core]


class Fence(NamedTuple):
    """One fenced block of a page."""

    kind: str
    file: str | None
    text: str


def blocks(page: Path) -> list[Fence]:
    """Return the fenced blocks of a page."""
    found = re.findall(r"^```(\S*)(?: file=(\S+))?\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [Fence(kind, file or None, text) for kind, file, text in found]


@pytest.mark.usefixtures("no_agent_around")
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page.name in FIRST else LONG, id=page.name) for page in PAGES]
)
def test_the_blocks_of_a_page_work(page: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copied blocks of a page give the output that the page shows."""
    if page.name == "mcp.md":
        use_installed(monkeypatch, tmp_path / "wheels", "mcp", "httpx2", "jsonschema")
    (project / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page):
        if block.kind in ("python", "json", "toml") or block.file is not None:
            path = project / (block.file or "no_file.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
            if block.kind == "python" and block.file is None:
                subprocess.run([sys.executable, str(path)], cwd=project, check=True, timeout=60)
        elif block.kind == "console":
            for line, shown in commands(block.text):
                if not line.startswith(RUN_BY_CI):
                    check(line, shown, project)
        else:
            assert block.kind == "text", f"{page.name}: no test runs a {block.kind!r} block; use 'text'"


@pytest.mark.slow
@pytest.mark.core
def test_the_programs_of_the_embedding_page_are_short_well_typed_and_run_on_trio(project: Path) -> None:
    """Each has under 40 lines; mypy accepts those without pydantic-ai."""
    programs = [block for block in blocks(ROOT / "docs" / "embedding.md") if block.kind == "python" and block.file]
    for block in programs:
        assert block.text.count("\n") < 40, block.file
        assert block.file
        path = project / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text.replace("anyio.run(main)", "anyio.run(main, backend='trio')"))
    files = [str(block.file) for block in programs if "pydantic_ai" not in block.text]
    subprocess.run([sys.executable, "-m", "mypy", "--strict", *files], cwd=project, check=True, timeout=300)
    check("echo y | python agent.py", ["cat note.txt → hello", "turn 1: 1 calls"], project)


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with its output lines; `> ` continues a command."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            found[-1][1].append(line)
    return found


def check(line: str, shown: list[str], project: Path) -> None:
    """Run a command and find each line of `shown` in its output."""
    path = f"{forking.command_directory()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", line], cwd=project, env=environment, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr
    for stream in (done.stdout, done.stderr):
        shown = without(shown, stream)
    assert shown == [], f"$ {line}\nprinted\n{done.stdout}\n{done.stderr}"


def without(shown: list[str], printed: str) -> list[str]:
    """Return the lines of `shown` that are not in `printed`."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    return [line for line in shown if not any(pattern(line).fullmatch(each) for each in lines)]


def pattern(line: str) -> re.Pattern[str]:
    """Return a pattern for an output line of a page."""
    text = re.escape(" ".join(line.split()))
    text = re.sub(r"\d+\\\.\d\\ (s|ms)", r"[\\d.]+\\ \1", text)
    return re.compile(text.replace("…", ".*"))


def test_links_between_pages_lead_somewhere() -> None:
    """A link to a moved page is updated with the page."""
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert missing == []


def test_ci_runs_the_commands_of_the_readme_that_no_test_runs() -> None:
    """A step of `.ci/run` runs each."""
    readme, ci = ((ROOT / name).read_text() for name in ("README.md", ".ci/run"))
    for line in RUN_BY_CI:
        assert f"\n$ {line}" in readme
        assert re.search(rf"\b{re.escape(line).replace('make', 'make_?')}", ci), line


def test_the_recording_shows_the_hook_of_the_readme_and_loads_nothing() -> None:
    """`python -m checks.recording` runs it in a real terminal."""
    svg = (ROOT / "docs" / "assets" / "demo.svg").read_text()
    shown = html.unescape(re.sub(r"<[^>]+>", "", svg)).replace("\xa0", " ")
    hook = next(block.text for block in blocks(ROOT / "README.md") if block.file == ".agent/hooks/lock.py")
    assert all(line in shown for line in hook.splitlines())
    assert "blocked: only uv changes uv.lock (.agent/hooks/lock.py)" in shown
    assert re.findall(r"https?://[^\s\"')]+", svg) == ["http://www.w3.org/2000/svg"]


def test_the_design_page_describes_each_room() -> None:
    """A new folder of the package gets its paragraph."""
    rooms = {path.parent.name for path in (ROOT / "agent_hooks").glob("*/__init__.py")}
    described = re.findall(r"^\*\*(\w+)\*\* ", (ROOT / "docs" / "design.md").read_text(), re.MULTILINE)
    assert rooms - set(described) == set()


def test_files_of_the_package_that_pages_name_exist() -> None:
    """A page is updated when a module moves."""
    missing = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in re.findall(r"\b((?:agent_hooks|checks)/[\w/]+\.py)\b", page.read_text())
        if not (ROOT / name).exists()
    ]
    assert missing == []


def test_the_decisions_stay_few_and_short() -> None:
    """Each paragraph is one decision, and a new decision replaces a less useful one."""
    text = (ROOT / "docs" / "decisions.md").read_text()
    _, *paragraphs = [each for each in text.split("\n\n") if not each.startswith("#")]
    assert [each for each in paragraphs if not re.match(r"\*\*.+?\*\* \S", each, re.DOTALL)] == []
    assert len(paragraphs) <= DECISIONS
    assert len(text.split()) <= DECISION_WORDS
