"""Rules about git: its own options and settings, the files that control the agent, and then its verb."""

from __future__ import annotations

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.builtins import switches_off_hooks
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.git_verbs import GLOBAL_WITH_VALUE, VERBS, Git, judge_setting
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.options import ParsedOptions, named_files
from agent_hooks.guards.shell.words import Word, marked


def git(command: Command) -> None:
    """Find the verb behind git's own options, and judge it."""
    outer, words = command, command.argv
    at = 1
    aliases: dict[str, Word] = {}
    while at < len(words) and words[at].startswith("-"):
        name, _, value = words[at].partition("=")
        if name in GLOBAL_WITH_VALUE and not (value and name.startswith("--")):
            at += 1
            setting = words[at] if at < len(words) else Word("")
            if name in ("-C", "--work-tree"):
                command = command.inside(setting)
            if name == "-c":
                judge_setting(command, setting, aliases)
        # `-ckey=value`
        elif name.startswith("-c") and len(name) > 2 and name[2] != "-":
            judge_setting(command, Word(words[at][2:]), aliases)
        elif name == "--work-tree":
            command = command.inside(Word(value))
        elif name == "--config-env" or value.lower() == "core.hookspath":
            judge_setting(command, Word(value), aliases)
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
    if judge := VERBS.get(verb):
        judge(Git(command, verb, words[at:]))
        outer.output = command.output
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
        if verb == "sparse-checkout" and not word.startswith(("!", "-")):
            # Such a word names a directory that stays.
            continue
        plain = marked(_MAGIC.sub("", word), word)
        if not plain.startswith(":") and command.controls(plain):
            command.report("write-guard-settings", CONTROLS, word)
            return
    if verb == "stash" and _stashes_control_files(command, words):
        command.report("write-guard-settings", f"moves changed files away: {CONTROLS}")


# The beginning of a path that counts from the top of the working tree.
_MAGIC = lazy_pattern(r"^:(?:/|\((?:top|glob|icase|literal)[^)]*\))")


def _stashes_control_files(command: Command, words: list[Word]) -> bool:
    """Return whether a stash of all changes would move hooks or settings away."""
    changed, untracked = command.interpreter.call.stash
    options = ParsedOptions([Word("stash"), *words], "m", ("--message",))
    operands = [word for word in options.operands if word not in ("push", "save")]
    if operands and words[:1] != ["save"]:
        return False
    return changed or (untracked and options.has("u", "a", "--include-untracked", "--all"))


_CARRY_HOOKS = {"commit", "push", "merge", "rebase", "am", "pull", "cherry-pick", "revert"}


RULES = {"git": (git,), "g": (git,)}
