"""Rules about git: work that is thrown away, history that is lost, hooks that are skipped."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_hooks.guards.shell.builtins import switches_off_hooks
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.options import ParsedOptions, named_files
from agent_hooks.guards.shell.words import Word, marked

_GLOBAL_WITH_VALUE = {
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--exec-path",
}
_PROTECTED = re.compile(r"(refs/heads/)?(main|master|trunk|develop|production|release([/-].*)?)")


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


def git(command: Command) -> None:
    """Find the verb behind git's own options, and judge it."""
    words = command.argv
    at = 1
    aliases: dict[str, Word] = {}
    while at < len(words) and words[at].startswith("-"):
        name, _, value = words[at].partition("=")
        if name in _GLOBAL_WITH_VALUE and not (value and name.startswith("--")):
            at += 1
            setting = words[at] if at < len(words) else Word("")
            if name in ("-C", "--work-tree"):
                command = command.inside(setting)
            if name == "-c":
                _setting(command, setting, aliases)
        # `-ckey=value`
        elif name.startswith("-c") and len(name) > 2 and name[2] != "-":
            _setting(command, Word(words[at][2:]), aliases)
        elif name == "--work-tree":
            command = command.inside(Word(value))
        elif name == "--config-env" or value.lower() == "core.hookspath":
            _setting(command, Word(value), aliases)
        at += 1
    if at >= len(words):
        return
    for name, value in command.environment.items():
        switches_off_hooks(command, name, value)
    for name in ("HUSKY", "SKIP", "LEFTHOOK"):
        if name in command.environment and command.level == "strict":
            command.report("git-hooks", "skips a check of the repository", f"{name}={command.environment[name]}")
    verb = str(words[at])
    if verb in aliases:
        body = aliases[verb]
        if body.startswith("!"):
            command.shell_code(Word(body[1:] + " " + " ".join(words[at + 1 :])))
        else:
            command.runs([Word("git"), *(Word(each) for each in body.split()), *words[at + 1 :]])
        return
    # `-h` alone prints help; with more words it may mean something else.
    if words[at + 1 :] == ["-h"]:
        return
    _own_files(command, verb, words[at + 1 :])
    if judge := _VERBS.get(verb):
        judge(Git(command, verb, words[at:]))
    if verb in _CARRY_HOOKS:
        options = Git(command, verb, words[at:]).options(
            "mFCctuSsXo", "--message", "--file", "--author", "--date", "--strategy"
        )
        if options.has("--no-verify") or (verb in ("commit", "am") and "n" in options.flags):
            command.report("git-hooks", "skips the repository's own hooks")


# Verbs that change no file of the working tree, or only such files as `_own_files` cannot know.
_KEEP_FILES = {
    *("status", "diff", "log", "show", "add", "commit", "blame", "annotate", "grep", "ls-files", "ls-tree", "cat-file"),
    *("check-ignore", "check-attr", "rev-parse", "rev-list", "branch", "tag", "push", "fetch", "remote", "reflog"),
    *(
        "shortlog",
        "describe",
        "diff-tree",
        "diff-files",
        "diff-index",
        "hash-object",
        "whatchanged",
        "difftool",
        "note",
    ),
    *("name-rev", "merge-base", "range-diff", "cherry", "count-objects", "fsck", "config", "update-index", "reset"),
    *("help", "version", "var", "stage", "archive", "format-patch", "bundle", "interpret-trailers"),
}


def _own_files(command: Command, verb: str, words: list[Word]) -> None:
    """Report a path of a hook or of settings, given to a verb that changes files; `git stash` moves all changes away."""
    if verb == "stash" and words[:1] not in ([], ["push"], ["save"]) and not words[0].startswith("-"):
        return
    only_index = {"rm": "--cached", "restore": "--staged"}.get(verb)
    if verb in _KEEP_FILES or (only_index in words and "--worktree" not in words):
        return
    for word in named_files(words):
        plain = marked(_MAGIC.sub("", word), word)
        if not plain.startswith(":") and command.controls(plain):
            command.report("write-guard-settings", CONTROLS, word)
            return
    if verb == "stash" and _stashes_control_files(command, words):
        command.report("write-guard-settings", f"moves changed files away: {CONTROLS}")


# The beginning of a path that counts from the top of the working tree.
_MAGIC = re.compile(r"^:(?:/|\((?:top|glob|icase|literal)[^)]*\))")


def _stashes_control_files(command: Command, words: list[Word]) -> bool:
    """Return whether a stash of all changes would move hooks or settings away."""
    changed, untracked = command.interpreter.call.stash
    options = ParsedOptions([Word("stash"), *words], "m", ("--message",))
    operands = [word for word in options.operands if word not in ("push", "save")]
    if operands and words[:1] != ["save"]:
        return False
    return changed or (untracked and options.has("u", "a", "--include-untracked", "--all"))


_CARRY_HOOKS = {"commit", "push", "merge", "rebase", "am", "pull", "cherry-pick", "revert"}


def _setting(command: Command, setting: Word, aliases: dict[str, Word]) -> None:
    key, _, value = setting.partition("=")
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
        _setting(git.command, setting, {})


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
    reading = git.options("f", "--file", "--type", "--default").has(
        "--get", "--get-all", "--get-regexp", "l", "--list", "--unset"
    )
    if reading or not words or words[0] in ("get", "list", "unset"):
        return
    key = words[0].lower()
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
    """`git show HEAD:.env` and `git diff .env` show the content of a file."""
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


_VERBS: dict[str, Callable[[Git], None]] = {
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
}
RULES = {"git": (git,), "g": (git,)}
