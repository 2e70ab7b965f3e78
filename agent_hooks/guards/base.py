"""The protocol of guards.

A guard is a pure veto: it takes a call and returns a block, a question or nothing; it never allows.  Guards do no I/O:
every fact about the machine that they need is a field of `GuardedCall`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from agent_hooks.errors import printable
from agent_hooks.values.answers import Ask, Block

Level = Literal["project", "relative", "strict"]
Undecidable = Literal["ask", "block", "allow"]
LEVELS: tuple[Level, ...] = ("project", "relative", "strict")


class Machine:
    """Facts about files that a guard asks for while it reads a command; this one knows of no file.

    All paths are absolute.  The answers are made without blocking, and within limits of time and size.
    """

    def exists(self, path: str) -> bool:
        """Return whether a path is a file or a directory that is not empty."""
        return False

    def real(self, path: str) -> str:
        """Return a path with all links followed."""
        return path

    def is_directory(self, path: str) -> bool | None:
        """Return whether a path is a directory, `None` when it is absent or not known."""
        return None

    def members(self, archive: str) -> tuple[str, ...] | None:
        """Return the names of the files that an archive holds, `None` when they cannot be listed."""
        return None

    def patched(self, patch: str) -> tuple[str, ...] | None:
        """Return the names of the files that a patch changes, with their prefixes; `None` when it cannot be read."""
        return None


NO_MACHINE = Machine()


class GuardedCall(Struct, frozen=True, kw_only=True):
    """A tool call as it would run, and the facts that a guard may know about the machine.

    `cwd`, `home`: absolute paths; `temp`: the directories for temporary files, the preferred one first;
    `real_path`: the input's `path` with all symlinks followed, `None` when the input names none.
    `unlocked`: the directories whose hooks and settings a person lets the agent change at present; `process`: the number
    of the process that judges; `present`: the hooks and settings that exist in the project, when the command may find
    files or leave some out; `stash`: those of them that `git stash` would move away, and `stash -u` in the second place;
    `machine`: answers further questions about files; `stays_open`: the agent may type into the command while it runs, and
    no hook gets that text; `files`: the texts of files, by absolute path, as far as they are known; `attended`: a person
    can answer a question about the call.
    """

    tool_name: str
    input: Mapping[str, Any]
    cwd: str = "/"
    home: str = "/root"
    temp: tuple[str, ...] = ("/tmp",)  # noqa: S108  # only compared, never opened
    real_path: str | None = None
    unlocked: tuple[str, ...] = ()
    process: int = 0
    present: tuple[str, ...] = ()
    stash: tuple[bool, bool] = (False, False)
    machine: Machine = NO_MACHINE
    stays_open: bool = False
    files: Mapping[str, str] = {}
    attended: bool = False


class Guard(Protocol):
    """One veto.  A guard that raises blocks the call."""

    @property
    def name(self) -> str:
        """The guard's name, which blocks and questions bear; `builtin:…` for the guards of the package."""
        ...

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Return a block, a question for the person, or `None` for no opinion."""
        ...


class OwnPython(Struct, frozen=True, kw_only=True):
    """The Python that runs the guards. All paths are absolute.

    `prefix` is its environment, and `programs` are the directories with its executable and with links to it. `packages`
    are the directories with its packages, and `standard` the trees of its standard library that this user can write.
    `usual` says whether `pip` without a path changes this environment. `required` returns the distributions and modules
    that the guards need, by name and in small letters.
    """

    prefix: str = ""
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    standard: tuple[str, ...] = ()
    usual: bool = False
    required: Callable[[], frozenset[str]] = frozenset


class GuardOptions(Struct, frozen=True, kw_only=True):
    """The settings that every built-in guard is made with; each guard uses those that concern it.

    `level`: which trees may be removed; `protected`: absolute paths of hooks and settings that only a person may change,
    or the agent while they are unlocked; `sealed`: absolute paths that the agent never changes; `records`: those that it
    does not read either; `agent_home`: the person's own directory.

    `python` is the Python that runs the guards.
    """

    level: Level = "project"
    protected: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    agent_home: str = ""
    python: OwnPython = OwnPython()


class Run(Struct, frozen=True):
    """One program that a command would run.

    `words`: the program's name and its arguments; `cwd`: its directory; `stdin`: the text that it reads, `None` when
    that is not known; `file`: the path of the file on the disk that it reads; `files`: the known texts that the command
    line has written before, by path.  A part of a text that is not known is `sensitive.UNKNOWN`.
    """

    words: tuple[str, ...]
    cwd: str
    stdin: str | None
    file: str = ""
    files: Mapping[str, str] = {}


DEFAULT_OPTIONS = GuardOptions()
SELF_PROTECTION = ("guard-settings", "write-guard-settings")
"""The rules that keep an agent from changing its hooks."""
# The command that allows one call, and its option for each rule.
_RUN, _ONCE = "agent-hooks run", " --allow-once "


class Finding(Struct, frozen=True):
    """One reason to stop a call: the rule's id, the reason, and the part of the call that met the rule.

    `undecidable`: the guard cannot be sure, so the setting of that name decides; `subject`: the program with its words,
    or the path, that the patterns of exceptions have to fit, empty for the whole command or path of the call; `words`:
    the same program word by word, each spelled for a shell; empty when a word is not known; `wall`: this call destroys
    more than others that meet the rule, so the person is not asked.
    """

    rule: str
    reason: str
    culprit: str = ""
    undecidable: bool = False
    subject: str = ""
    words: tuple[str, ...] = ()
    wall: bool = False

    def __str__(self) -> str:
        """Return the sentence that a person reads, in one line: no part of a call can pass for another sentence."""
        return printable(f"{self.reason}: {self.culprit}" if self.culprit else self.reason)


# A word of a command is a `str` with marks of its origin.  Encoders refuse such a type, and pickle would write the marks.
# So effects, findings and runs leave the guards through `plain`.
_VALUE = TypeVar("_VALUE", bound=Struct)
_TEXTS = frozenset((str,))
_PLAIN = frozenset((str, bool, NoneType))


def plain(value: _VALUE) -> _VALUE:
    """Return a value whose texts are `str` itself, also the texts in its tuples and dicts."""
    fields = astuple(value)
    # Most values are plain, and this check takes a microsecond.
    return value if _PLAIN.issuperset(map(type, fields)) else type(value)(*map(_plain, fields))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return value if _TEXTS.issuperset(map(type, value)) else tuple(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return value


class Finder(Protocol):
    """A built-in guard, which lists all its findings; `PolicyGuard` turns them into an answer.

    `tools`: the names of the tools whose calls it judges; empty for all.
    """

    name: str
    tools: tuple[str, ...]

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return all findings, the gravest first."""
        ...


def path_of(input: Mapping[str, Any]) -> str | None:
    """Return the path of the file that an input names, `None` when it names none."""
    for key in ("path", "file_path"):
        if isinstance(value := input.get(key), str):
            return value
    return None


def remedy(*rules: str) -> str:
    """Return how a person allows the calls that some rules stop; the person reads it, and no model."""
    if set(rules) <= set(SELF_PROTECTION):
        return "only a person does this; to let the agent change hooks for a limited time: agent-hooks unlock 15m"
    options = "".join(f"{_ONCE}{rule}" for rule in dict.fromkeys(rules) if rule not in SELF_PROTECTION)
    always, once = "guards.exceptions in .agent/settings.json", f"{_RUN}{options}"
    return f"a person can allow it: {always}, or once: {once}"


def at_prompt(remedy: str) -> str:
    """Return a remedy as a person carries it out at the prompt of interactive mode, without leaving it."""
    before, run, options = remedy.rpartition(f"{_RUN}{_ONCE}")
    return f"{before}/allow {options.replace(_ONCE, ' ')}" if run else remedy
