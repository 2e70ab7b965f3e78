"""The path guard: spellings of paths, symlinks, globs of grep, and the settings of guards and hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.guards.base import GuardedCall, GuardOptions
from agent_hooks.guards.paths import SecurityAudit
from agent_hooks.guards.sensitive import normalise, sensitive
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.pipeline.guarding import guarded_call
from guard_corpus import call, path_rules
from support import examples


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
    """Each path meets its rule; `ls` shows only names, so it is not judged."""
    assert path_rules(tool, path) == ({rule} if rule else set())


def test_grep_is_judged_by_its_glob_too() -> None:
    """grep shows the content of the files that match its glob."""
    assert path_rules("grep", ".", glob="**/.env*") == {"environment-file"}
    assert path_rules("grep", ".", glob="*.py") == set()
    assert path_rules("grep", "~", glob=".ssh/*") == {"ssh-keys"}
    assert path_rules("grep", ".", glob="*.py .env") == {"environment-file"}
    assert path_rules("grep", ".", glob="{.env,*.py}") == {"environment-file"}
    assert path_rules("grep", ".", glob="*.py,!.env") == set()
    (found,) = SecurityAudit().find(call("grep", pattern="x", glob=".env"))
    assert found.rule == "environment-file"
    assert found.reason.startswith(".env is an environment file")


def test_the_real_path_counts_beside_the_given_one() -> None:
    """A symlink is another name for a secret file."""
    call = GuardedCall(tool_name="read", input={"path": "notes.txt"}, cwd="/p", home="/h", real_path="/h/.ssh/id_rsa")
    assert [finding.rule for finding in SecurityAudit().find(call)] == ["ssh-keys"]


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("cat notes.txt", "read-environment-file"),
        ("head -c 9 ./notes.txt", "read-environment-file"),
        ("base64 < notes.txt", "read-environment-file"),
        ("cat keys/id_rsa.txt", "read-ssh-keys"),
        ("cp keys/id_rsa.txt x", "read-ssh-keys"),
        ("echo x > start", "write-shell-profile"),
        ("cat again", "read-environment-file"),
        ("cat plain inside", ""),
        ("grep x public", ""),
    ],
)
def test_a_link_to_a_secret_is_the_secret_for_commands_too(command: str, rule: str, tmp_path: Path) -> None:
    """By a linked file, a linked directory, and a link to a link.  Links to other files change nothing."""
    place, secret = tmp_path / "place", tmp_path / ".ssh"
    for directory in (place, secret):
        directory.mkdir()
    links = {"notes.txt": ".env", "again": "notes.txt", "keys": "../.ssh", "start": "../.bashrc"}
    links |= {"plain": "text", "inside": "../.env.example", "public": "../.ssh/id_rsa.pub"}
    for name, target in links.items():
        (place / name).symlink_to(target)
    for path in (
        place / ".env",
        secret / "id_rsa.txt",
        secret / "id_rsa.pub",
        tmp_path / ".env.example",
        place / "text",
    ):
        path.write_text("x")
    found = CommandSafetyGuard().find(guarded_call("bash", {"command": command}, str(place)))
    assert rule in {each.rule for each in found} if rule else found == []


def test_hooks_that_lie_elsewhere_are_protected_as_well() -> None:
    """AGENT_HOME may be any directory."""
    guard = SecurityAudit(GuardOptions(protected=("/srv/agent/hooks",)))
    assert guard.find(call("write", path="/srv/agent/hooks/x.py"))
    assert not guard.find(call("read", path="/srv/agent/hooks/x.py"))
    assert not guard.find(call("write", path="/srv/agent/hooks-old/x.py"))


def test_the_shell_is_no_way_round_to_them() -> None:
    """A command may read protected files, but not change them or remove a directory that holds one."""
    guard = CommandSafetyGuard(GuardOptions(protected=("/srv/agent/hooks",)))
    for command in (
        "echo > /srv/agent/hooks/x.py",
        "cd /srv/agent; rm hooks/x.py",
        "rm -r /srv/agent",
        "mv /srv/agent x",
    ):
        found = guard.find(call("bash", command=command))
        assert "write-guard-settings" in {each.rule for each in found}, command
    for command in (
        "cat /srv/agent/hooks/x.py",
        "echo > /srv/agent/hooks-old",
        "echo > /srv/agent/notes",
        "rm /srv/x",
        "rm /srv/x/*",
    ):
        assert not guard.find(call("bash", command=command)), command


def test_a_star_does_not_reach_what_begins_with_a_dot() -> None:
    """`mv * x` leaves `.agent` alone, as in the shell."""
    guard = CommandSafetyGuard(GuardOptions(protected=("/p/.agent/hooks", "/p/tools/a.py")))
    assert not guard.find(
        GuardedCall(tool_name="bash", input={"command": "mv *.txt x; mv /p/s* x"}, cwd="/p", home="/h")
    )
    assert guard.find(GuardedCall(tool_name="bash", input={"command": "mv /p/t* x"}, cwd="/p", home="/h"))
    guard = CommandSafetyGuard(GuardOptions(protected=("/p/.agent/hooks",)))
    assert not guard.find(
        GuardedCall(tool_name="bash", input={"command": "mv lib/* x; rm ?agent"}, cwd="/p", home="/h")
    )
    assert guard.find(GuardedCall(tool_name="bash", input={"command": "mv .a* x"}, cwd="/p", home="/h"))


def test_an_input_without_a_path_is_nothing_to_judge() -> None:
    """A search of grep needs no path."""
    assert path_rules("grep", "") == set()
    assert SecurityAudit().find(call("grep", pattern="x")) == []


@given(st.text(max_size=60))
@examples(500)
def test_no_path_crashes_the_guard(path: str) -> None:
    """Any text may come as a path from a model."""
    for tool in ("read", "write", "edit", "grep"):
        path_rules(tool, path)


@given(st.lists(st.sampled_from(["..", ".", "a", "node_modules", "fixtures"]), max_size=5))
@examples(200)
def test_no_detour_hides_a_key(detour: list[str]) -> None:
    """A path may go through any number of directories and back."""
    path = "/".join(
        ["~", ".ssh", *detour, *[".."] * len([part for part in detour if part not in ("..", ".")]), "id_rsa"]
    )
    there = normalise(path, cwd="/home/dev/app", home="/home/dev")
    assert sensitive(there) == ("ssh-keys" if there.endswith("id_rsa") else None)
