"""Self-protection: the agent neither changes what controls it nor decides in the place of the person."""

from __future__ import annotations

import pytest

from agent_hooks.guards.base import Finding, GuardedCall, GuardOptions
from agent_hooks.guards.shell import CommandSafetyGuard
from guard_corpus import rows

PROJECT, HOME = "/home/dev/app", "/home/dev"
OPTIONS = GuardOptions(
    protected=tuple(
        f"{folder}/.agent/{name}"
        for folder in (HOME, PROJECT)
        for name in ("hooks", "transformers", "settings.json", "command_intercept.yaml")
    ),
    sealed=(
        *(f"{HOME}/.agent/{name}" for name in ("trust.json", "trust", "unlock.json", "bridges")),
        *(f"{HOME}/.claude/settings.json", f"{HOME}/.cache/agent-hooks", "/tmp/agent-hooks-0"),
    ),
    records=(f"{HOME}/.agent/records",),
    agent_home=f"{HOME}/.agent",
)
PRESENT = (f"{PROJECT}/.agent/hooks/gate.py", f"{PROJECT}/.agent/settings.json")


def call(tool: str, **more: object) -> GuardedCall:
    """Return a call in a project with a hook, judged by the process 4242."""
    facts = {"unlocked": more.pop("unlocked", ()), "stash": more.pop("stash", (False, False))}
    return GuardedCall(tool_name=tool, input=more, cwd=PROJECT, home=HOME, process=4242, present=PRESENT, **facts)  # type: ignore[arg-type]


def findings(command: str, **facts: object) -> list[Finding]:
    return CommandSafetyGuard(OPTIONS).find(call("bash", command=command, **facts))


def answer(command: str, **facts: object) -> str:
    found = findings(command, **facts)
    return "pass" if not found else "ask" if found[0].undecidable else "block"


def of(expected: str) -> list[tuple[str, str]]:
    return [(row["command"], row["answer"]) for row in rows("self_protection.tsv") if row["expected"] == expected]


@pytest.mark.parametrize(("command", "expected"), of("deny"))
def test_every_known_way_around_the_hooks_is_stopped(command: str, expected: str) -> None:
    """A way that can be read is blocked, and the person is asked about the others."""
    assert answer(command) == expected, findings(command)


@pytest.mark.parametrize(("command", "expected"), of("allow"))
def test_reading_hooks_and_everyday_work_pass(command: str, expected: str) -> None:
    """No question and no block hinders work that leaves the hooks alone."""
    assert answer(command) == expected, findings(command)
