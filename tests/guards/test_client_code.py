"""Code that a client loads from a project on its own: a user confirms what an agent writes there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_hooks.cli.protection import agent_guards
from agent_hooks.guards.config import GuardSettings
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.trust.place import find_place
from agent_hooks.values.answers import Block
from guard_corpus import rows

HOOKED = "---\nname: release\nhooks:\n  PreToolUse: []\n---\nTag it.\n"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """Give a project with a hook."""
    at = tmp_path / "project"
    (at / ".agent/hooks").mkdir(parents=True)
    (at / ".agent/hooks/gate.py").write_text("x")
    return at


def answer(project: Path, tool: str, **input: object) -> str:
    """Return the answer of the guards of an agent in the project."""
    guards = agent_guards(GuardSettings(), find_place(str(project)))
    found = ask_guards(
        guards, guarded_call(tool, input, str(project), attended=True), lambda error: pytest.fail(str(error))
    )
    return "block" if isinstance(found, Block) else "ask" if found else "pass"


@pytest.mark.parametrize("row", rows("client_code.tsv"), ids=lambda row: f"{row['tool']} {row['input']}")
def test_a_write_to_code_that_a_client_loads_is_a_question(project: Path, row: dict[str, str]) -> None:
    """The places that were kept before stay walls.  Reading, and the texts of skills, pass."""
    assert answer(project, row["tool"], **json.loads(row["input"])) == row["answer"]


@pytest.mark.parametrize("folder", [".claude/skills/release/SKILL.md", ".claude/agents/a.md", ".qwen/commands/b.md"])
@pytest.mark.parametrize(("tool", "field"), [("write", "content"), ("edit", "newText")])
def test_hooks_in_the_header_of_a_text_are_a_question(project: Path, folder: str, tool: str, field: str) -> None:
    """A client runs them as long as the skill is active."""
    assert answer(project, tool, path=folder, **{field: HOOKED}) == "ask"
    assert answer(project, tool, path=folder, **{field: HOOKED.replace("hooks:", "notes:")}) == "pass"
    assert answer(project, tool, path="docs/release.md", **{field: HOOKED}) == "pass"
