"""The verbs of git: work that is thrown away, history that is lost, hooks that are skipped."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_hooks.guards.control import FOLDER
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.listings import EVERY, all_sources
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Text, Word

GLOBAL_WITH_VALUE = {
    *("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--exec-path"),
}
"""The options before the verb whose value is the next word."""
_PROTECTED = lazy_pattern(
    r"(refs/heads/)?(main|master|trunk|develop|production|prod|staging|stable|(release|hotfix|support)([/-].*)?)|refs/tags/.*|v\d+\.\d[\w.-]*"
)


class Git:
    """One git command: its verb, and the words from the verb on."""

    def __init__(self, command: Command, verb: str, argv: list[Word]) -> None:
        self.command = command
        self.verb = verb
        self.argv = argv

    def options(self, with_value: str = "", *long: str) -> ParsedOptions:
        return ParsedOptions(self.argv, with_value, long)

    def report(self, rule: str, reason: str) -> None:
        self.command.report(rule, reason)


def judge_setting(command: Command, setting: Word, aliases: dict[str, Word]) -> None:
    """Judge `NAME=value`; an alias is added to `aliases`."""
    key, _, value = setting.partition("=")
    if re.fullmatch(r"remote\.[^=]*\.(?:push=[+:].*|mirror=true)", setting, re.IGNORECASE):
        command.report("git-remote", "overwrites or deletes published history")
    if key.lower() == "core.hookspath":
        command.report("git-hooks", "skips the repository's own hooks")
    elif key.lower().startswith("alias."):
        aliases[key[6:]] = Word(value)
    elif key.lower() in (
        "core.sshcommand",
        "core.editor",
        "core.pager",
        "sequence.editor",
        "core.fsmonitor",
        "diff.external",
    ):
        command.shell_code(Word(value))


def _reset(git: Git) -> None:
    if git.options().has("--hard", "--merge"):
        git.report("git-worktree", "throws uncommitted work away")


def _checkout(git: Git) -> None:
    if any(word in ("-p", "--patch", "--ours", "--theirs") for word in git.argv):
        return
    options = git.options("bB", "--orphan", "--conflict")
    words = git.argv[1:]
    makes = options.has("b", "B", "--orphan", "--track", "t", "--detach", "d")
    paths = words[words.index(Word("--")) + 1 :] if "--" in words else []
    named = [
        word for word in options.operands if word in (".", "*", ":/") or word.startswith(("./", ":/", ":(", "../"))
    ]
    if options.has("f", "--force") or paths or named or (len(options.operands) > 1 and not makes):
        git.report("git-worktree", "throws uncommitted work away")


def _switch(git: Git) -> None:
    if git.options("cC", "--orphan").has("f", "--force", "--discard-changes"):
        git.report("git-worktree", "throws uncommitted work away")


def _restore(git: Git) -> None:
    options = git.options("s", "--source")
    staged = options.has("S", "--staged")
    if not options.has("p", "--patch") and (not staged or options.has("W", "--worktree")):
        git.report("git-worktree", "throws uncommitted work away")


def _clean(git: Git) -> None:
    options = git.options("e", "--exclude")
    forced = options.has("f", "--force") or "clean.requireForce=false" in git.command.argv
    if forced and not options.has("n", "--dry-run", "i", "--interactive"):
        git.report("git-worktree", "removes files that git does not know")


def _push(git: Git) -> None:
    options = git.options("o", "--push-option", "--repo", "--receive-pack", "--exec")
    if options.has("n", "--dry-run"):
        return
    flags = [flag for flag in options.flags if not flag.startswith(("--force-w", "--force-i", "--no-force"))]
    # `--fo` is the shortest abbreviation of `--force` that git takes.
    forced = "f" in flags or any("--force".startswith(flag) and len(flag) > 4 for flag in flags)
    specs = options.operands[1:]
    if forced or "--mirror" in flags or "--prune" in flags or any(spec.startswith("+") for spec in specs):
        git.report("git-remote", "overwrites or deletes published history")
    gone = specs if options.has("d", "--delete") else [spec[1:] for spec in specs if spec.startswith(":")]
    if any(_PROTECTED.fullmatch(name) for name in gone):
        git.report("git-remote", "deletes a protected branch that is published")


def _branch(git: Git) -> None:
    options = git.options("u", "--set-upstream-to", "--contains", "--sort", "--format")
    forced = options.has("D") or (options.has("d", "--delete") and options.has("f", "--force"))
    if forced and (git.command.level == "strict" or any(_PROTECTED.fullmatch(name) for name in options.operands)):
        git.report("git-history", "drops commits that exist nowhere else")


def _stash(git: Git) -> None:
    if "clear" in git.argv[1:2] or ("drop" in git.argv[1:2] and git.command.level == "strict"):
        git.report("git-history", "drops work that exists nowhere else")


def _reflog(git: Git) -> None:
    if git.argv[1:2] in (["expire"], ["delete"]) and not git.options().has("n", "--dry-run"):
        git.report("git-history", "drops the record of former states")


def _gc(git: Git) -> None:
    if any(re.fullmatch(r"--prune=(now|all)", word) for word in git.argv):
        git.report("git-history", "drops commits that exist nowhere else")


def _prune(git: Git) -> None:
    if not git.options().has("n", "--dry-run"):
        git.report("git-history", "drops commits that exist nowhere else")


def _filter(git: Git) -> None:
    git.report("git-history", "rewrites the whole history")


def _update_ref(git: Git) -> None:
    if git.options("m").has("d"):
        git.report("git-history", "drops a branch")


def _worktree(git: Git) -> None:
    if "remove" in git.argv[1:2] and git.options().has("f", "--force"):
        git.report("git-worktree", "throws uncommitted work away")


def _submodule(git: Git) -> None:
    if "foreach" in git.argv:
        words = [word for word in git.argv[git.argv.index(Word("foreach")) + 1 :] if not word.startswith("--")]
        git.command.shell_code(Word(" ".join(words)))
    if "deinit" in git.argv[1:3] and git.options().has("f", "--force"):
        git.report("git-worktree", "throws uncommitted work away")


def _remove(git: Git) -> None:
    options = git.options()
    if options.has("--cached", "n", "--dry-run"):
        return
    git.command.deletes(*options.operands)
    if options.has("f", "--force"):
        git.report("git-worktree", "removes files with uncommitted work")


def _transport(git: Git) -> None:
    """`git clone -c` has settings, and `git fetch --upload-pack` runs a program."""
    options = git.options("cobj", "--config", "--upload-pack", "--origin", "--branch", "--depth")
    for script in options.value("--upload-pack"):
        git.command.shell_code(script)
    for setting in options.value("c", "--config") if git.verb == "clone" else ():
        judge_setting(git.command, setting, {})


def _move(git: Git) -> None:
    git.command.deletes(*git.options().operands[:-1])
    git.command.writes(*git.options().operands[-1:])


def _grep(git: Git) -> None:
    """`git grep x -- .env` shows the content of the files behind `--`."""
    words = [str(word) for word in git.argv]
    if "--" in words:
        git.command.reads(*git.argv[words.index("--") + 1 :])


def _config(git: Git) -> None:
    words = [word for word in git.argv[1:] if not word.startswith("-") and word != "set"]
    options = git.options("f", "--file", "--type", "--default")
    reading = options.has("--get", "--get-all", "--get-regexp", "l", "--list", "--unset")
    files = options.value("f", "--file")
    if options.has("--unset") or len([word for word in words if word not in files]) > 1:
        git.command.writes(*files)
    if reading or not words or words[0] in ("get", "list", "unset"):
        return
    key = words[0].lower()
    if key == "core.sparsecheckout" and words[1:2] not in (["false"], []):
        _leaves_out_own_files(git)
    if key == "core.hookspath" and len(words) > 1:
        git.report("git-hooks", "skips the repository's own hooks")
    elif key.startswith("alias.") and len(words) > 1:
        body = words[1]
        if body.startswith("!"):
            git.command.shell_code(Word(body[1:]))
        else:
            git.command.runs([Word("git"), *(Word(each) for each in body.split())])


def _run(git: Git) -> None:
    """`git rebase --exec`, `git bisect run` and `git difftool -x` run a command."""
    options = git.options("xsX", "--exec", "--extcmd", "--onto")
    for text in options.value("x", "--exec", "--extcmd"):
        git.command.shell_code(text)
    if git.verb == "bisect" and "run" in git.argv[1:2]:
        git.command.runs(git.argv[2:])


def _show(git: Git) -> None:
    """`git show HEAD:.env` and `git diff .env` show the content of a file; `git diff --name-only` lists changed files."""
    names = "--name-only" in git.argv and not any(word.startswith("--diff-filter") for word in git.argv)
    if git.verb == "diff" and names and "--" not in git.argv:
        git.command.output = Text(None, EVERY)
    if any(word in ("--stat", "--name-only", "--name-status", "--oneline", "--format=%h") for word in git.argv):
        return
    for word in git.argv[1:]:
        if not word.startswith("-"):
            git.command.reads(Word(word.rpartition(":")[2]))


def _read_tree(git: Git) -> None:
    if git.options().has("--reset") and git.options().has("u"):
        git.report("git-worktree", "throws uncommitted work away")


def _checkout_index(git: Git) -> None:
    if git.options().has("f", "--force"):
        git.report("git-worktree", "throws uncommitted work away")


def _sparse(git: Git) -> None:
    """`git sparse-checkout set src` removes every other tracked file from the working tree."""
    verb = git.argv[1] if len(git.argv) > 1 else ""
    kept = any(word.strip("/").split("/")[0] == FOLDER for word in git.argv[2:])
    if verb in ("init", "set") and not kept:
        _leaves_out_own_files(git)


def _leaves_out_own_files(git: Git) -> None:
    if git.command.interpreter.call.present:
        reason = f"may leave them out of the working tree: {CONTROLS}"
        git.command.interpreter.report("write-guard-settings", reason, git.command, undecidable=True)


def _ls_files(git: Git) -> None:
    """`git ls-files | xargs rm` removes every file; a pathspec narrows the list, and so do most options."""
    options = git.options("xX", "--exclude", "--exclude-from", "--format", "--with-tree", "--abbrev")
    operands = options.operands if git.verb == "ls-files" else options.operands[1:]
    whole = all(word in (".", "./", "*", ":/", ":", "**") for word in operands) or all_sources(operands)
    few = options.has("d", "i", "u", "--deleted", "--ignored", "--unmerged")
    if git.verb == "ls-tree":
        few = not options.has("r", "--name-only")
    if whole and not few:
        git.command.output = Text(None, EVERY)


VERBS: dict[str, Callable[[Git], None]] = {
    "reset": _reset,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "clean": _clean,
    "push": _push,
    "branch": _branch,
    "stash": _stash,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _prune,
    "filter-branch": _filter,
    "filter-repo": _filter,
    "update-ref": _update_ref,
    "worktree": _worktree,
    "submodule": _submodule,
    "rm": _remove,
    "mv": _move,
    "grep": _grep,
    **dict.fromkeys(("clone", "fetch", "pull", "ls-remote"), _transport),
    "config": _config,
    **dict.fromkeys(("rebase", "bisect", "difftool"), _run),
    **dict.fromkeys(("show", "diff", "blame", "cat-file", "log"), _show),
    "read-tree": _read_tree,
    "checkout-index": _checkout_index,
    "sparse-checkout": _sparse,
    **dict.fromkeys(("ls-files", "ls-tree"), _ls_files),
}
