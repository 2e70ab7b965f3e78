"""The path guard: other spellings, symlinks, what grep shows, and the guards' own settings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.paths import SecurityAudit
from agent_hooks.guards.sensitive import normalise, sensitive
from guard_corpus import call, path_rules


@pytest.mark.parametrize(
    ("tool", "path", "rule"),
    [
        ("read", "../../dev/.ssh/id_rsa", "ssh-keys"),
        ("read", "file://localhost/home/dev/%2Eaws/credentials", "cloud-credentials"),
        ("read", "/proc/123/root/etc/shadow", "account-file"),
        ("read", "config/service-account-prod.json", "cloud-credentials"),
        ("read", "~/.Cargo/Credentials.toml", "cloud-credentials"),
        ("write", "/usr/bin/env", "system-file"),
        ("write", "/usr/local/bin/tool", None),
        ("write", ".agent/hooks/x.py", "guard-settings"),
        ("edit", ".git/hooks/pre-commit", "guard-settings"),
        ("write", "~/.ssh/config", "ssh-keys"),
        ("read", "~/.ssh/config", None),
        ("read", ".agent/hooks/x.py", None),
        ("grep", "~/.aws", "cloud-credentials"),
        ("grep", "src", None),
        ("ls", "~/.ssh", None),
    ],
)
def test_a_path_meets_the_rule_that_is_meant(tool: str, path: str, rule: str | None) -> None:
    """`ls` is not asked: names are no secrets."""
    found = path_rules(tool, path) if tool in SecurityAudit.tools else set()
    assert found == ({rule} if rule else set())


def test_grep_is_judged_by_its_glob_too() -> None:
    """It shows what is in the files."""
    assert path_rules("grep", ".", glob="**/.env*") == {"environment-file"}
    assert path_rules("grep", ".", glob="*.py") == set()


def test_the_real_path_counts_beside_the_given_one() -> None:
    """A symlink is another name for it."""
    call = GuardedCall(tool_name="read", input={"path": "notes.txt"}, cwd="/p", home="/h", real_path="/h/.ssh/id_rsa")
    assert [finding.rule for finding in SecurityAudit().find(call)] == ["ssh-keys"]


def test_hooks_that_lie_elsewhere_are_protected_as_well() -> None:
    """AGENT_HOME may be anywhere."""
    guard = SecurityAudit(("/srv/agent/hooks",))
    assert guard.find(call("write", path="/srv/agent/hooks/x.py"))
    assert not guard.find(call("read", path="/srv/agent/hooks/x.py"))
    assert not guard.find(call("write", path="/srv/agent/hooks-old/x.py"))


def test_an_input_without_a_path_is_nothing_to_judge() -> None:
    """grep may go without."""
    assert path_rules("grep", "") == set()
    assert SecurityAudit().find(call("grep", pattern="x")) == []


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=500)
def test_no_path_crashes_the_guard(path: str) -> None:
    """Whatever a model writes."""
    for tool in SecurityAudit.tools:
        path_rules(tool, path)


@given(st.lists(st.sampled_from(["..", ".", "a", "node_modules", "fixtures"]), max_size=5))
@settings(deadline=None, max_examples=200)
def test_no_detour_hides_a_key(detour: list[str]) -> None:
    """However many directories it goes through and back."""
    path = "/".join(
        ["~", ".ssh", *detour, *[".."] * len([part for part in detour if part not in ("..", ".")]), "id_rsa"]
    )
    there = normalise(path, cwd="/home/dev/app", home="/home/dev")
    assert sensitive(there) == ("ssh-keys" if there.endswith("id_rsa") else None)
