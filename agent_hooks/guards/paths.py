"""`builtin:security-audit`: keeps file tools away from secrets, and from the settings of guards and hooks."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from agent_hooks.guards.agents import HOOKED_TEXT, TEXT_PATTERN
from agent_hooks.guards.base import DEFAULT_OPTIONS, Finding, GuardedCall, GuardOptions, path_of, plain
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.objects import Odd
from agent_hooks.guards.patches import patched_names
from agent_hooks.guards.path_arguments import is_elsewhere, paths_of
from agent_hooks.guards.sensitive import LONGEST_PATH, normalise, sensitive, sensitive_glob, system_path
from agent_hooks.guards.tools import Use, plain_tool, roles_of, use_of

REASONS = {
    "ssh-keys": "holds private SSH keys",
    "cloud-credentials": "holds credentials",
    "package-token": "holds tokens of a registry or a host",
    "agent-token": "holds tokens of a coding agent",
    "keyring": "is a key store",
    "private-key": "is a private key",
    "environment-file": "is an environment file, which holds secrets",
    "shell-profile": "is a shell profile or history, which holds exported keys",
    "account-file": "is an account file of the system",
    "process-memory": "shows the memory or the environment of a process",
    "guard-settings": "decides which calls are allowed; only a person changes it",
    "client-code": "is code or a hook that a client loads from the project on its own",
    "records": "is a record of decisions, which only a person reads",
    "system-file": "belongs to the operating system",
    "invisible-characters": "holds characters that cannot be seen, or that look like others",
}


# Formats, controls, separators and private characters; a blank is the only separator that a name may hold.
_HIDDEN = {"Cf", "Cc", "Zl", "Zp", "Co"}
# The joiner and the selectors of emoji and of scripts that need them.
_JOINING = lazy_pattern("[\u200c\u200d\ufe00-\ufe0f]")
# Blanks that systems put into names: before the half of the day in a screenshot's, and behind an ideograph.
_USUAL = lazy_pattern("(?<=[0-9])\u202f(?=[AaPp]\\.?[Mm])|(?<=[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])\u3000")
# Cyrillic and Greek letters that look like Latin ones.
_ALIKE = lazy_pattern(
    "[\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u0410\u0412\u0415\u041a\u041c"
    "\u041d\u041e\u0420\u0421\u0422\u0425\u03b1\u03bf\u03bd\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7]"
)


class SecurityAudit:
    """Judges the paths that a call names, each as given and with all symlinks followed.

    `tools` has the table of tools and arguments.
    """

    name = "builtin:security-audit"
    # Tools that are not known are judged by the paths among their values.
    tools: tuple[str, ...] = ()

    def __init__(self, options: GuardOptions = DEFAULT_OPTIONS) -> None:
        self._options = options

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return one finding for each path that must not be reached, the certain ones first."""
        if call.tool_name in _COMMANDS:
            return []
        audit = _Audit(call, ControlFiles(self._options, call.unlocked))
        odd: list[Finding] = []
        for judge in (audit.arguments,) if call.tool_name in _FILE_TOOLS else (audit.arguments, audit.values):
            try:
                judge()
            except Odd as exc:
                reason = f"the argument {exc.args[0]!r} cannot be read as a path"
                odd = [Finding("unreadable", reason, undecidable=True)]
        return sorted([*audit.findings, *odd], key=lambda finding: finding.undecidable)


# The tools whose commands another guard judges, and those whose input is known.
_COMMANDS = ("bash", "exec")
_FILE_TOOLS = ("read", "write", "edit", "grep")
# Names of tools that only read, of those that show only names, and of tools that change files.
_READS = lazy_pattern(r"(?:^|[_\-.])(?:read|get|list|ls|search|view|stat|find|glob|grep|tree|info|open|show|diff|cat)")
_LISTS = lazy_pattern(r"(?:^|[_\-.])(?:list|ls|tree|stat|info)(?:$|[_\-.])")
_CHANGES = lazy_pattern(r"write|edit|delete|remove|move|rename|create|patch|append|replace|insert|copy|save|put|chmod")
_MOVES = lazy_pattern(r"move|rename|(?:^|_)mv(?:$|_)")
# Keys of values that are texts, also when such a text looks like a path.
_TEXTS = {"content", "contents", "text", "query", "pattern", "body", "message", "prompt", "description", "title",
          "old_string", "new_string", "old_text", "new_text", "old_str", "new_str", "thought", "language"}  # fmt: skip
# A value that is a path of this machine, and nothing else.
_LOCAL = lazy_pattern(r"(?:~|\.{1,2})?/\S+|file://\S+")
# A path that leaves any repository, or that begins outside of one.
_NO_MEMBER = lazy_pattern(r"[/~]|file:|(?:.*/)?\.\.(?:/|$)", re.IGNORECASE)
# Servers of tools that keep repositories, buckets or pages on another machine.
_HOSTS = lazy_pattern(r"hub|gitlab|gitea|forgejo|bitbucket|codeberg|devops|s3|gcs|notion|confluence|supabase")
# The texts of one input, and those of them that may be paths.
_MOST_VALUES = 30_000
_MOST_PATHS = 3_000
_MOST_TEXT = 1024 * 1024


class _Verb(NamedTuple):
    """The facts that the name of a tool tells: `lists`: it shows only names; `patches`: its texts may be patches."""

    use: Use
    own: bool
    changes: bool
    reads: bool
    lists: bool
    moves: bool
    patches: bool


@lru_cache(1024)
def _verb(tool: str, verb: str) -> _Verb:
    changes = verb != "view" and bool(_CHANGES.search(verb))
    return _Verb(
        use=use_of(tool),
        own=tool in _FILE_TOOLS,
        changes=changes,
        reads=not changes and bool(_READS.search(verb)),
        lists=bool(_LISTS.search(verb)),
        moves=bool(_MOVES.search(verb)),
        patches="patch" in verb or "diff" in verb,
    )


def _verb_of(call: GuardedCall) -> _Verb:
    plain = plain_tool(call.tool_name)
    # The argument `command` of this tool is its verb.
    given = call.input.get("command") if plain.startswith("str_replace") else None
    return _verb(call.tool_name, "view" if given == "view" else plain)


def _directory_of(call: GuardedCall) -> str:
    """Return the directory in which a call applies a patch: an argument may name it."""
    given = next((value for key, value in call.input.items() if "directory" in roles_of(key)), None)
    return normalise(given, cwd=call.cwd, home=call.home) if isinstance(given, str) else call.cwd


class _Audit:
    """Judges one call; its findings are about different paths."""

    def __init__(self, call: GuardedCall, control: ControlFiles) -> None:
        self.findings: list[Finding] = []
        self._call = call
        self._control = control
        self._verb = _verb_of(call)
        # The paths mean something else, or the tool shows only their names.
        self._spared = not self._verb.own and (self._verb.lists or self._verb.use in ("names", "nothing"))
        self._elsewhere = is_elsewhere(call.input)
        self._hosted = bool(_HOSTS.search(call.tool_name.lower()))
        self._directory = _directory_of(call)

    def arguments(self) -> None:
        """Judge the arguments that are paths.  Raises `Odd` if one cannot be read."""
        call = self._call
        if self._spared:
            return
        named = paths_of(call.tool_name, call.input)
        for each in named:
            write = self._verb.changes and (not each.source or self._verb.moves)
            self._judge(each.path, write=write, source=each.source, elsewhere=each.elsewhere)
            if write and not each.elsewhere:
                self._judge_text(each.path)
        glob = call.input.get("glob")
        if call.tool_name == "grep" and isinstance(glob, str):
            # A search that names no directory begins in the current one.
            for directory in [each.path for each in named] or ["."]:
                top = normalise(directory, cwd=call.cwd, home=call.home)
                for path in _globbed(glob, top, call.home):
                    self._find(path, glob, write=False, glob="*" in path)

    def _judge_text(self, given: str) -> None:
        """Judge a skill, a sub-agent or a command whose new text has hooks in its header."""
        path = normalise(given, cwd=self._call.cwd, home=self._call.home).lower()
        texts = (self._call.input.get(name) for name in ("content", "newText"))
        if _TEXT.fullmatch(path) and any(_HOOKED.search(text) for text in texts if isinstance(text, str)):
            self._keep("client-code", given, given)

    def values(self) -> None:
        """Judge the values of a tool that is not known, a tool of an MCP server for example.

        A record stops every tool.  A file that controls the agent stops a tool whose name says that it changes files;
        the person is asked about other tools, unless the name says that they only read.  Raises `Odd` if there are too
        many values.
        """
        call, control = self._call, self._control
        paths_left = _MOST_PATHS
        for key, text in _strings(call.input):
            if self._opens(key, text):
                self._judge(text, write=False, elsewhere=self._elsewhere)
            for path, patch in _named(key, text):
                paths_left -= 1
                if not paths_left:
                    raise Odd(key)
                paths = [normalise(path, cwd=self._directory if patch else call.cwd, home=call.home)]
                paths += [] if _GLOBS.search(path) else [call.machine.real(paths[0])]
                if not self._verb.lists and any(map(control.stops_reading, paths)):
                    self._keep("records", path, path)
                elif not self._verb.reads and any(map(control.stops_writing, paths)):
                    self._keep("guard-settings", path, path, undecidable=not (self._verb.changes or patch))
                elif self._verb.changes and any(map(control.stops_changing_python, paths)):
                    self._keep("guard-settings", path, path)
                elif patch and self._verb.patches and (rule := _rule(paths[0], control, write=True)):
                    self._keep(rule, path, path)

    def _opens(self, key: str, text: str) -> bool:
        """Return whether a value is a path of this machine that the tool may open, under a name that is not known."""
        if text[:7].lower() == "file://":
            return True
        if self._spared or roles_of(key) or len(text) > LONGEST_PATH:
            return False
        return bool(_LOCAL.fullmatch(text))

    def _judge(self, given: str, *, write: bool, source: bool = False, elsewhere: bool = False) -> None:
        """Judge one path, as given and with its symlinks followed.

        `source`: of a file that is copied or moved away; `elsewhere`: it may lie in a repository on another machine.
        """
        call, unsure = self._call, False
        if elsewhere and not self._verb.own and not _NO_MEMBER.match(given):
            if self._hosted:
                return
            unsure = True
        if disguised(given) and len(given) <= LONGEST_PATH:
            known = self._verb.own or self._verb.changes or self._verb.reads
            self._keep("invisible-characters", ascii(given)[1:-1], given, undecidable=unsure or not known)
        path = normalise(given, cwd=call.cwd, home=call.home)
        if source and write:
            self._judge(given, write=False, elsewhere=elsewhere)
        self._find(path, given, write=write, glob="*" in path and not self._verb.own, unsure=unsure)
        real = call.real_path if given == path_of(call.input) else None if "\0" in path else call.machine.real(path)
        if real and real != path:
            there = normalise(real, cwd=call.cwd, home=call.home)
            self._find(there, given, write=write, glob="*" in there, real=True, unsure=unsure)

    def _find(
        self, path: str, given: str, *, write: bool, glob: bool, real: bool = False, unsure: bool = False
    ) -> None:
        """Keep the finding about a normalised path.

        `given`: its name in the call; `real`: links were followed; `unsure`: the path may lie on another machine.
        """
        reached = sensitive_glob(path, home=self._call.home, write=write) if glob else None
        rule = reached or _rule(path, self._control, write=write)
        # Beside the tools of files, a tool may mean the path of a web page.
        if rule and (rule != "system-file" or self._verb.own or self._verb.use == "file"):
            subject = self._beyond(path, given) if real else given
            known = self._verb.own or self._verb.changes or self._verb.reads
            self._keep(rule, given, subject, undecidable=unsure or not known)

    def _beyond(self, real: str, given: str) -> str:
        """Return the path that an exception has to fit for a real path: the given one, unless a link leads elsewhere."""
        call = self._call
        path, cwd = normalise(given, cwd=call.cwd, home=call.home), call.machine.real(call.cwd)
        if real.startswith(f"{cwd}/"):
            inside = real[len(cwd) + 1 :]
            return given if path == f"{call.cwd}/{inside}" else inside
        return real

    def _keep(self, rule: str, path: str, subject: str, *, undecidable: bool = False) -> None:
        if ".." in subject:
            # A pattern for a directory must not fit a path that leaves it.
            subject = posixpath.normpath(subject)
        same = [each for each in self.findings if (each.rule, each.subject) == (rule, subject)]
        # A certain finding takes the place of one that is not.
        if all(each.undecidable and not undecidable for each in same):
            self.findings = [each for each in self.findings if each not in same]
            found = Finding(rule, f"{path} {REASONS[rule]}", undecidable=undecidable, subject=subject)
            self.findings.append(plain(found))


_GLOBS = lazy_pattern(r"[*?\[]")
_TEXT = lazy_pattern(rf"(.*/)?{TEXT_PATTERN}")
_HOOKED = lazy_pattern(HOOKED_TEXT, re.MULTILINE)


def _strings(input: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts in an input, with the key that each stands under.  Raises `Odd` if there are too many values."""
    waiting: list[tuple[str, object]] = [("", input)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, Mapping):
            waiting += ((str(name), each) for name, each in list(value.items())[::-1])
        elif isinstance(value, list | tuple):
            waiting += ((key, each) for each in reversed(value))
    raise Odd(waiting[-1][0] if waiting else "")


def _named(key: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths that a value names, and whether it is a patch that changes them."""
    if "\n" in text:
        if len(text) <= _MOST_TEXT and re.search(r"^(?:\*\*\* |\+\+\+ )", text, re.MULTILINE):
            yield from ((name, True) for name in patched_names(text))
    elif 0 < len(text) <= LONGEST_PATH and "\0" not in text and key.lower() not in _TEXTS and "/" in text:
        yield text, False


def _rule(path: str, control: ControlFiles, *, write: bool) -> str | None:
    """Return the rule that a normalised path meets, if any."""
    if write and (control.stops_writing(path) or control.stops_changing_python(path)):
        return "guard-settings"
    if not write and control.stops_reading(path):
        return "records"
    if rule := sensitive(path, write=write):
        return rule
    return "system-file" if write and system_path(path) else None


def _globbed(glob: str, directory: str, home: str) -> Iterator[str]:
    """Yield the normalised paths of a search's globs: agents give several at once, and alternatives in braces."""
    for each in re.split(r"[\s,{}]+", glob):
        if each and not each.startswith("!"):
            for end in dict.fromkeys((each, each.rpartition("/")[2])):
                if end:
                    yield normalise(end, cwd=directory, home=home)


def disguised(path: str) -> bool:
    """Return whether a path holds a character that cannot be seen, or a letter that only looks like a Latin one."""
    if path.isascii():
        return any((char < " " and char != "\n") or char == "\x7f" for char in path)
    path = _USUAL.sub("", path)
    if any(_is_hidden(char, path[at - 1] if at else "") for at, char in enumerate(path)):
        return True
    return any(_ALIKE.search(word) and re.search("[A-Za-z]", word) for word in re.findall(r"\w+", path))


def _is_hidden(char: str, before: str) -> bool:
    if char.isascii():
        return char < " " or char == "\x7f"
    kind = unicodedata.category(char)
    if _JOINING.match(char):
        return before.isascii()
    if kind in _HIDDEN or kind == "Zs":
        return True
    # A full-width or a mathematical letter is another one's double.
    return kind[0] == "L" and unicodedata.normalize("NFKC", char).isascii() and kind != "Lm"
