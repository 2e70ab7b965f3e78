"""How cautious the agent is: it works, asks before each change, accepts edits and asks about the rest, or only plans.

Some calls act although they change no file: on a repository's history, on a server, or on the machine.  `effects` name
files, processes and other machines only: `git commit` changes no file of the working tree, and a request to a server on
this machine sends nothing away.  So their programs are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias, get_args

from agent_hooks.effects import CallEffects
from agent_hooks.guards.base import GuardedCall
from agent_hooks.host.instructions import inside
from agent_hooks.pipeline.edits import SHOWN_BY_DIFF
from agent_hooks.pipeline.saving import READERS, may_change
from agent_hooks.settings_file import CautionLevel
from agent_hooks.values.answers import Ask, Block
from agent_hooks.values.effects import Effects, Program

Level: TypeAlias = CautionLevel
LEVELS: tuple[Level, ...] = get_args(Level)
BEGINS = (
    "The person has switched to planning. Look at all that you need, and change nothing: calls that may change anything "
    "are blocked. End with a plan of your changes."
)
ENDS = "The person has ended planning: you may change files again."
EDIT_QUESTION, COMMAND_QUESTION, CALL_QUESTION = "Make this edit?", "Run this command?", "Make this call?"
_PLAN = "the person wants a plan first, so only calls that just read run; write the plan as your answer"


class Caution:
    """The guard of the person's own level of caution: `caution.level = "plan"`.

    With `ask`, each call that may change files, end a process, send data or act on another thing that effects do not
    name is a question.  With `edits`, edits of the project's files are none.  With `plan`, each such call is blocked.
    """

    name = "builtin:caution"

    def __init__(self) -> None:
        self.level: Level = "work"

    @property
    def following(self) -> Level:
        """The level after this one, in a circle."""
        return LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Block or ask about a call that does more than read."""
        if self.level == "work" or call.tool_name in READERS:
            return None
        found = CallEffects(call.cwd)
        effects = found(call.tool_name, call.input)
        if not (may_change(effects) or reaches_out(effects) or any(acting(effects))):
            return None
        if self.level == "plan":
            return Block(_PLAN, rule="plan")
        command = call.input.get("command")
        if command is None:
            is_edit = call.tool_name in SHOWN_BY_DIFF
            if self.level == "edits" and is_edit and call.real_path is not None and inside(call.real_path, found.root):
                return None
            return _question(EDIT_QUESTION if is_edit else CALL_QUESTION, call.input.get("path"))
        if uses := sorted(" ".join(use) for use in uses_of(effects)):
            each = f"each {' with '.join(uses)}"
            return Ask(COMMAND_QUESTION, f"an answer that is kept counts for {each}", rule="ask", words=(each,))
        return _question(COMMAND_QUESTION, command)


def _question(title: str, subject: object) -> Ask:
    # An answer for the session or for always counts for the same command, or for the same file.
    return Ask(title, rule="ask", words=(subject,) if isinstance(subject, str) else ())


# Options of git before its verb, whose value is the next word.
_GIT_VALUES = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"}
_GIT_READS = re.compile(
    "annotate|archive|blame|cat-file|check-(attr|ignore|mailmap)|cherry|count-objects|describe|diff(-files|-index|-tree)?|"
    "for-each-ref|fsck|grep|help|log|ls-(files|remote|tree)|merge-(base|tree)|name-rev|range-diff|rev-(list|parse)|"
    "shortlog|show(-branch|-ref)?|status|var|verify-(commit|pack|tag)|version|whatchanged"
)
# The options with which a list is asked for, and its patterns.
_LISTS = r"(-l|--list|--contains|--no-contains|--merged|--no-merged|--points-at)( [^-\s]\S*)*|--(color|format|sort)=\S+"
# The words after a verb of git with which it only reads; effects know the settings that `git config` writes.
_GIT_LISTS = {
    "branch": rf"(({_LISTS}|-[avrq]+|--(all|remotes|verbose|show-current|no-color))( |$))*",
    "tag": rf"(({_LISTS}|-n\d*)( |$))*",
    "remote": r"(-v|--verbose)?|(-v )?(show|get-url)( .*)?",
    "stash": r"(list|show)( .*)?",
    "reflog": r"((show|exists) .*|show|-.*)?",
    "worktree": r"list( .*)?",
    "notes": r"((list|show)( .*)?)?",
    "submodule": r"((status|summary)( .*)?)?",
    "bisect": r"(log|view|visualize)( .*)?",
    "bundle": r"(verify|list-heads)( .*)?",
    "symbolic-ref": r"(-\S+ )*\S+",
    "sparse-checkout": r"list",
    "hash-object": r"(?!(.* )?-w).*",
    "replace": r"(-l.*|--list.*)?",
    "rerere": r"status|diff|remaining",
    "config": r".*",
    "lfs": r"(ls-files|status|env)( .*)?",
}
# The words of other programs with which they only read.
_READS = {
    "ip": r"(?!(.* )?(add|append|change|del|delete|exec|flush|replace|set)( |$)).*",
    "hostname": r"(-\S+ ?)*",
    "date": r"(?!(.* )?(-s|--set)).*",
    "ssh-add": r"-[lL].*",
    "gpg": r"(.* )?(--(list|verify|version|fingerprint|check|print)\S*|-[kK])( .*)?",
}
_LONGEST = 2_000
_CURL_VALUES = "AbCcDEeHhKmoPQrtUuwxYyz"
_CURL_ACTS = re.compile(r"--(data|form|upload-file|json)\b.*")
_WGET_ACTS = re.compile(r"--(post|body)-\S*|--method(=(?!get|head).*)?", re.IGNORECASE)
_ACTING_METHODS = re.compile("post|put|patch|delete", re.IGNORECASE)
_METHODS = re.compile("get|head|options", re.IGNORECASE)
_ITEM = re.compile(r"[^:/?=]*(:=|@|=(?!=)).*")


def reaches_out(effects: Effects) -> bool:
    """Return whether a call ends a process, or sends content to another machine."""
    return bool(effects.kills) or any(each.direction == "out" for each in effects.transfers)


def acting(effects: Effects) -> Iterator[Program]:
    """Yield the programs that act on something that effects do not name."""
    return (program for program in effects.programs if _acts(program.name, program.argv))


def _acts(name: str, argv: Sequence[str]) -> bool:
    rest = argv[1:]
    match name:
        case "git":
            return _git_acts(rest)
        case "curl":
            return any(_curl_acts(word, after) for word, after in pairwise([*rest, ""]))
        case "wget":
            return any(_WGET_ACTS.fullmatch(word) for word in rest)
        case "http" | "https" | "xh" | "xhs" | "curlie":
            words = [word for word in rest if not word.startswith("-")]
            acts = bool(words) and _ACTING_METHODS.fullmatch(words[0]) is not None
            return acts or any(_ITEM.fullmatch(word) for word in words[1:])
        case _:
            return name in _READS and not _fits(_READS[name], rest)


def _git_acts(words: Sequence[str]) -> bool:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUES else 1
    if at >= len(words):
        # `git --version`
        return False
    verb = words[at]
    return not (_GIT_READS.fullmatch(verb) or (verb in _GIT_LISTS and _fits(_GIT_LISTS[verb], words[at + 1 :])))


def _fits(pattern: str, words: Sequence[str]) -> bool:
    text = " ".join(words)
    # The time of the patterns grows with the square of the length.
    return len(text) <= _LONGEST and re.fullmatch(pattern, text) is not None


def _curl_acts(word: str, after: str) -> bool:
    """Return whether one word of curl sends something, or says so by its method; `after`: the next word."""
    if word.startswith("--"):
        name, _, value = word.partition("=")
        return bool(_CURL_ACTS.fullmatch(name)) or (name == "--request" and not _METHODS.fullmatch(value or after))
    if not word.startswith("-"):
        return False
    for at, letter in enumerate(word[1:], 2):
        if letter in "dFT":
            return True
        if letter == "X":
            return not _METHODS.fullmatch(word[at:] or after)
        if letter in _CURL_VALUES:
            return False
    return False


# ---- the uses of programs that one answer covers -----------------------------------------------------------------------

# Programs that run another one on this machine, with the rights that they have themselves.
_CARRIERS = {"bash", "env", "nice", "npx", "pipenv", "poetry", "sh", "time", "timeout", "uv", "zsh"}
# Programs whose first operand, or the module after `-m`, is the program that they run.
_INTERPRETERS = {"bash", "node", "perl", "php", "python", "python3", "ruby", "sh", "tsx", "zsh"}
# Options before it that neither are code nor have a value.
_HARMLESS = {"-m", "-u", "-B", "-I"}
# Programs that do the same with whichever words.
_WITHOUT_VERBS = {"ctest", "jest", "mocha", "mypy", "phpunit", "pytest", "rspec", "tox", "tsc", "vitest"}
# Verbs after which the program to run stands: `npm run build`, `go run tool.go`.
_RUN = {"dlx", "exec", "run", "x"}
_PLAIN = re.compile(r"\w[\w:-]*")


def uses_of(effects: Effects) -> set[tuple[str, ...]]:
    """Return the uses of the programs that do more than read, if these are all that a command does; else none.

    A use is the program with its first plain words: `npm run build`, `python -m unittest`, `git commit`.
    """
    if effects.discards or effects.installs or effects.devices or effects.privileges or reaches_out(effects):
        return set()
    if any(each.access in ("write", "delete") for each in effects.paths):
        return set()
    programs = [*acting(effects)]
    for part in effects.unknown:
        # A text that is made when the command runs may name another program.
        found = [each for each in effects.programs if " ".join(each.argv) == part.text and "…" not in part.text]
        if part.kind != "opaque" or not found:
            return set()
        programs += found
    uses = {() if not _CARRIERS.issuperset(each.via) else tuple(_use(each)) for each in programs}
    return set() if () in uses else uses


def _use(program: Program) -> Sequence[str]:
    """Return the words that tell a use of a program from others; nothing where its code stands in the command."""
    name, *words = program.argv
    first = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    if program.name in _WITHOUT_VERBS:
        return (name,)
    if program.name in _INTERPRETERS:
        known = first < len(words) and _HARMLESS.issuperset(words[:first])
        return (name, *words[: first + 1]) if known else ()
    if first > 0:
        # The first word may be the value of an option, and the verb the next one.
        return (name, *words[: first + 2])
    verb, following = words[:1], words[1:2]
    if not (verb and _PLAIN.fullmatch(verb[0])):
        return (name, *verb)
    named = verb[0] in _RUN or (following and _PLAIN.fullmatch(following[0]))
    return (name, *verb, *(following if named else ()))
