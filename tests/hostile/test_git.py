"""No program runs that a repository names in its git configuration, hooks, attributes or git directory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from agent_hooks import checkpoints
from agent_hooks.storage.git import NO_PROGRAMS, git_environment, without_hooks
from agent_hooks.turn_notes import store_of
from hostile.strangers import CLIENT, COMMANDS, WITH_CHECKPOINT, Stranger

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.com")
TOUCHING_GIT = [
    *(line for line in COMMANDS if line[0] in ("run", "checkpoints", "undo") and line[1] != "@bash true"),
    ("install", CLIENT, "--dry-run"),
]
HOOKS = ("reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc", "fsmonitor-watchman")
KEYS = (
    *("core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.alternateRefsCommand"),
    *("core.pager", "core.editor", "sequence.editor", "credential.helper", "gpg.program", "gpg.ssh.program"),
    *("diff.external", "interactive.diffFilter", "pager.ls-files", "pager.for-each-ref", "pager.config"),
    *("filter.any.clean", "filter.any.smudge", "filter.any.process", "diff.any.command", "diff.any.textconv"),
    *("merge.any.driver", "remote.origin.uploadpack", "remote.origin.receivepack", "uploadpack.packObjectsHook"),
    *("hook.evil=x.command", "alias.ls-files", "alias.rev-parse", "trailer.any.command", "submodule.inner.update"),
)


def git(top: Path, *args: str) -> str:
    """Run git as the stranger does, and return its output."""
    done = subprocess.run(["git", *IDENTITY, *args], cwd=top, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def a_repository(top: Path) -> None:
    """Make a repository with some files, and a submodule with a filter."""
    git(top, "init", "-q", "-b", "main")
    git(top, "init", "-q", "inner")
    for path in (top / "inner", top):
        (path / "file.txt").write_text("one\n")
        (path / ".gitattributes").write_text("* filter=any diff=any merge=any\n")
        git(path, "add", "-A")
        git(path, "commit", "-qm", "one")
    (top / "file.txt").write_text("two\n")
    (top / "inner" / "file.txt").write_text("two\n")


def arm(stranger: Stranger, top: Path, include: str) -> None:
    """Name a program at each key and each hook of a repository, by an included file and for the worktree too."""
    directory = Path(git(top, "rev-parse", "--absolute-git-dir"))
    for name in HOOKS:
        stranger.shell(f"hook-{name}", f"{directory}/hooks/{name}")
        stranger.shell(f"hook-{name}", f"programs/hooks/{name}")
    armed = {key: stranger.shell(f"key-{key}") for key in KEYS} | {"core.hooksPath": f"{stranger.top}/programs/hooks"}
    armed |= {"hook.evil=x.event": "reference-transaction", "extensions.worktreeConfig": "true"}
    armed |= {"core.attributesFile": f"{stranger.top}/.gitattributes", "protocol.ext.allow": "always"}
    for key, value in armed.items():
        for file in (directory / "config", directory / "config.worktree", stranger.top / include):
            git(top, "config", "--file", str(file), key, value)
    git(top, "config", "include.path", str(stranger.top / include))
    (directory / "info").mkdir(exist_ok=True)
    (directory / "info" / "attributes").write_text("* filter=any diff=any\n")


def test_no_program_of_the_configuration_runs(stranger: Stranger) -> None:
    """Hooks, filters, monitors, pagers and drivers: in the configuration, in an included file, and in a submodule."""
    a_repository(stranger.top)
    for top in (stranger.top, stranger.top / "inner"):
        arm(stranger, top, "included")
    done = {line: stranger.run(*line) for line in TOUCHING_GIT}
    assert stranger.ran == []
    for line in (WITH_CHECKPOINT, ("checkpoints", "show"), ("checkpoints", "restore", "--yes"), ("undo", "--yes")):
        assert done[line].returncode == 0, done[line].stderr


def test_checkpoints_run_no_filter_of_the_repository(stranger: Stranger) -> None:
    """A restore writes the bytes that were saved."""
    a_repository(stranger.top)
    arm(stranger, stranger.top, "included")
    assert stranger.run(*WITH_CHECKPOINT).returncode == 0
    (stranger.top / "file.txt").write_text("three\n")
    assert "-two" in stranger.run("checkpoints", "diff").stdout
    assert stranger.run("checkpoints", "restore", "--yes").returncode == 0
    assert (stranger.top / "file.txt").read_text() == "two\n"
    assert stranger.run("checkpoints", "undo").returncode == 0
    assert (stranger.top / "file.txt").read_text() == "three\n"
    assert stranger.ran == []


def test_a_missing_object_is_not_fetched(stranger: Stranger) -> None:
    """The objects of a partial clone come from a remote, which names the program that sends them."""
    top = stranger.top
    git(top, "init", "-q")
    (top / ".gitignore").write_text("ignored\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    git(top, "update-ref", "refs/agent-hooks/s/1", "HEAD")
    for name in ("HEAD:.gitignore", "HEAD^{tree}", "HEAD"):
        found = git(top, "rev-parse", name)
        (top / ".git" / "objects" / found[:2] / found[2:]).unlink()
    git(top, "update-index", "--skip-worktree", ".gitignore")
    (top / ".gitignore").unlink()
    evil = stranger.shell("fetched")
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(top),
        "remote.origin.uploadpack": f"{evil};",
        "remote.second.promisor": "true",
        "remote.second.url": f"ext::{evil}",
        "remote.third.promisor": "true",
        "remote.third.url": "ssh://example.invalid/x",
        "core.sshCommand": evil,
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }.items():
        git(top, "config", key, value)
    for line in TOUCHING_GIT:
        stranger.run(*line)
    assert stranger.ran == []


def test_a_private_directory_that_came_along_has_no_effect(stranger: Stranger) -> None:
    """The stranger prepared the configuration, attributes and links of the directory that checkpoints use."""
    a_repository(stranger.top)
    victim = stranger.marks.parent / "victim"
    victim.write_text("the person's own\n")
    own = stranger.top / ".git" / "agent-hooks"
    other = stranger.top / "other.git"
    git(stranger.top, "init", "-q", "--bare", str(other))
    own.mkdir()
    (own / "info").mkdir()
    (own / "info" / "attributes").write_text("* filter=any diff=any\n")
    for path in (own / "config", own / "config.worktree", other / "config"):
        for key in KEYS:
            git(stranger.top, "config", "--file", str(path), key, stranger.shell(f"own-{key}"))
    (own / "commondir").write_text(f"{other}\n")
    (own / "index").symlink_to(stranger.marks.parent / "index-of-the-person")
    (own / "HEAD").symlink_to(victim)
    for line in (
        WITH_CHECKPOINT,
        ("checkpoints", "diff"),
        ("checkpoints", "restore", "--yes"),
        ("checkpoints", "undo"),
    ):
        assert stranger.run(*line).returncode == 0
    assert stranger.ran == []
    assert victim.read_text() == "the person's own\n"
    assert not (stranger.marks.parent / "index-of-the-person").exists()
    assert (stranger.top / "file.txt").read_text() == "two\n"


async def test_a_private_directory_that_leads_elsewhere_is_not_written(stranger: Stranger) -> None:
    """It could be a link to the person's `~/.ssh`; checkpoints lie below the agent home."""
    a_repository(stranger.top)
    target = stranger.marks.parent / "ssh"
    target.mkdir()
    (target / "config").write_text("the person's own\n")
    (stranger.top / ".git" / "agent-hooks").symlink_to(target)
    await checkpoints.create(stranger.top, "s", 1)
    assert [each.name for each in target.iterdir()] == ["config"]
    assert (target / "config").read_text() == "the person's own\n"


def test_a_repository_does_not_name_another_directory_as_its_working_tree(stranger: Stranger) -> None:
    """A restore of a checkpoint that the stranger prepared would write into the home directory."""
    home = Path(stranger.environment["HOME"])
    clone = home / "clone"
    shutil.move(stranger.top, clone)
    stranger.top.mkdir()
    a_repository(clone)
    assert stranger.run(*WITH_CHECKPOINT, cwd=clone).returncode == 0
    git(clone, "config", "core.worktree", str(home))
    (home / "file.txt").write_text("the person's own\n")
    for line in (("list",), ("restore", "--yes")):
        assert stranger.run("checkpoints", *line, cwd=clone).returncode == 0
    assert (home / "file.txt").read_text() == "the person's own\n"


def test_a_bare_repository_in_a_working_tree_is_no_repository(stranger: Stranger) -> None:
    """A directory with the files of a bare repository can be committed anywhere in a project."""
    git(stranger.top, "init", "-q", "--bare", "docs")
    for key in ("core.fsmonitor", "core.hooksPath"):
        git(stranger.top / "docs", "config", key, stranger.shell(f"bare-{key}"))
    git(stranger.top / "docs", "config", "core.bare", "false")
    git(stranger.top / "docs", "config", "core.worktree", "..")
    done = stranger.run("checkpoints", "list", cwd=stranger.top / "docs")
    assert done.returncode == 1
    assert "has no working tree (a bare repository" in done.stderr
    assert stranger.ran == []


def test_a_filter_of_the_persons_own_configuration_changes_nothing(stranger: Stranger) -> None:
    """A checkpoint of a file that git-lfs keeps elsewhere holds the bytes on the disk, and the filter does not run."""
    home = Path(stranger.environment["HOME"])
    (home / ".gitconfig").write_text('[filter "lfs"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n')
    git(stranger.top, "init", "-q")
    (stranger.top / ".gitattributes").write_text("*.big filter=lfs diff=lfs merge=lfs -text\n")
    (stranger.top / "one.big").write_text("Mixed\n")
    assert stranger.run(*WITH_CHECKPOINT).returncode == 0
    (stranger.top / "one.big").write_text("Other\n")
    assert stranger.run("checkpoints", "restore", "--yes").returncode == 0
    assert (stranger.top / "one.big").read_text() == "Mixed\n"


def test_a_submodule_of_a_prepared_checkpoint_is_not_asked_for_its_changes(stranger: Stranger) -> None:
    """git would run `git status` in it, with the filters of the submodule."""
    a_repository(stranger.top)
    arm(stranger, stranger.top / "inner", "included")
    tree = git(stranger.top, "rev-parse", "HEAD^{tree}")
    facts = f'{{"top": "{stranger.top}", "created": 9e9, "skipped": []}}'
    assert stranger.run(*WITH_CHECKPOINT).returncode == 0
    store = Path(store_of(str(stranger.top)))
    (store / "objects" / "info").mkdir(exist_ok=True)
    (store / "objects" / "info" / "alternates").write_text(f"{stranger.top / '.git' / 'objects'}\n")
    message = ("-m", "agent_hooks checkpoint", "-m", facts)
    commit = git(stranger.top, "--git-dir", str(store), "commit-tree", tree, *message)
    git(stranger.top, "--git-dir", str(store), "update-ref", "refs/agent-hooks/s/1", commit)
    for line in (("checkpoints", "diff"), ("checkpoints", "restore", "--yes"), ("checkpoints", "undo")):
        assert stranger.run(*line).returncode == 0
    assert stranger.ran == []


def test_the_hooks_of_a_configuration_are_switched_off_by_name() -> None:
    """A name with an equals sign cannot be given on the command line; these reach git 2.54 and later."""
    found = without_hooks(["core.bare", "hook.a.command", "hook.a.event", "hook.b=c.d.command"])
    assert found == {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "hook.a.enabled",
        "GIT_CONFIG_VALUE_0": "false",
        "GIT_CONFIG_KEY_1": "hook.b=c.d.enabled",
        "GIT_CONFIG_VALUE_1": "false",
    }
    assert without_hooks(["core.bare"]) == {}


def test_git_takes_the_settings_of_the_command_line_before_those_of_a_worktree(stranger: Stranger) -> None:
    """The settings hold for included files and for `config.worktree` as well."""
    a_repository(stranger.top)
    arm(stranger, stranger.top, "included")
    ask = ["git", *NO_PROGRAMS, "config", "--get"]
    for key, value in (("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null"), ("diff.external", "false")):
        env = git_environment(str(stranger.top))
        done = subprocess.run([*ask, key], cwd=stranger.top, env=env, capture_output=True, text=True)
        assert done.stdout.strip() == value
