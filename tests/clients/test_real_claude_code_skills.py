"""Commands in the text of a skill, in the real Claude Code: they are judged and recorded as calls of the skill."""

from __future__ import annotations

import json
import re

import pytest

from clients.claude_seat import ClaudeSeat
from clients.test_real_claude_code_mods import SECRET
from model_server import Say

pytestmark = pytest.mark.client
# The first version with the event.
SINCE = (2, 1, 332)


@pytest.fixture(autouse=True)
def _has_the_event(claude: ClaudeSeat) -> None:
    output, _ = claude.client.execute([str(claude.client.program), "--version"])
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", output)
    assert found, output
    if tuple(map(int, found.groups())) < SINCE:
        pytest.skip(f"Claude Code {found[0]} has no event PreSkillShellCommand")


def add_skill(claude: ClaudeSeat, name: str, command: str) -> None:
    """Put a skill with a command in its text into the project."""
    path = claude.project / f".claude/skills/{name}/SKILL.md"
    path.parent.mkdir(parents=True)
    header = f"---\nname: {name}\ndescription: Shows the state.\nallowed-tools: Bash\n---\n"
    path.write_text(f"{header}The state:\n\n!`{command}`\n")


def decisions(claude: ClaudeSeat) -> list[tuple[str, str, str]]:
    """Return the command, the verdict and the origin of each recorded call."""
    done = claude.client.hooks("records", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        (str(each["input"].get("command")), each["verdict"], each.get("origin", ""))
        for each in found
        if each["type"] == "call"
    ]


def test_a_command_of_a_skill_that_reads_secrets_does_not_run(claude: ClaudeSeat) -> None:
    """Its record, and `why`, name the skill."""
    (claude.project / ".env").write_text(f"PASSWORD={SECRET}\n")
    add_skill(claude, "status", "cat .env")
    claude.install()
    run = claude.play(Say(calls=[("Skill", {"skill": "status"})]), Say("done"), allow=("Bash", "Skill"))
    assert not any(SECRET in json.dumps(request.body) for request in run.requests)
    assert ("cat .env", "block", "skill status") in decisions(claude)
    assert "(skill status) bash cat .env was blocked" in claude.client.hooks("why").stdout


def test_a_harmless_command_of_a_skill_runs(claude: ClaudeSeat) -> None:
    """Its output reaches the model."""
    add_skill(claude, "status", "echo all is $((20 + 22))")
    claude.install()
    run = claude.play(Say(calls=[("Skill", {"skill": "status"})]), Say("done"), allow=("Bash", "Skill"))
    assert "all is 42" in json.dumps(run.requests[-1].body)
    assert ("echo all is $((20 + 22))", "pass", "skill status") in decisions(claude)
