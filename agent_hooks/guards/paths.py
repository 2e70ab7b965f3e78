"""`builtin:security-audit`: keeps file tools away from secrets, and from the settings of guards and hooks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from agent_hooks.guards.base import DEFAULT_OPTIONS, Finding, GuardedCall, GuardOptions, path_of
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.patches import patched_names
from agent_hooks.guards.sensitive import normalise, sensitive, sensitive_glob, system_path

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
    "records": "is a record of decisions, which only a person reads",
    "system-file": "belongs to the operating system",
}


class SecurityAudit:
    """Judges the path of a file tool, both as given and with all symlinks followed."""

    name = "builtin:security-audit"
    # Tools that are not known are judged by the paths among their values.
    tools: tuple[str, ...] = ()

    def __init__(self, options: GuardOptions = DEFAULT_OPTIONS) -> None:
        self._options = options

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return one finding at most."""
        if call.tool_name in _COMMANDS:
            return []
        if call.tool_name not in _FILE_TOOLS:
            return _of_other_tool(call, ControlFiles(self._options, call.unlocked))
        given = path_of(call.input)
        glob = call.input.get("glob") if call.tool_name == "grep" else None
        if given is None and isinstance(glob, str):
            # A search that names no directory begins in the current one.
            given = "."
        if given is None:
            return []
        paths = [normalise(given, cwd=call.cwd, home=call.home)]
        if call.real_path and call.real_path != paths[0]:
            paths.append(normalise(call.real_path, cwd=call.cwd, home=call.home))
        globbed = list(_globbed(glob, paths[0], call.home)) if isinstance(glob, str) else []
        control = ControlFiles(self._options, call.unlocked)
        write = call.tool_name in ("write", "edit")
        for path in [*paths, *globbed]:
            reached = sensitive_glob(path, home=call.home) if path is not paths[0] and "*" in path else None
            if rule := reached or _rule(path, control, write=write):
                return [Finding(rule, f"{glob if path in globbed else given} {REASONS[rule]}")]
        return []


# The tools whose commands another guard judges, and those whose input is known.
_COMMANDS = ("bash", "exec")
_FILE_TOOLS = ("read", "write", "edit", "grep")
# Names of tools that only read, of those that show only names, and of tools that change files.
_READS = re.compile(r"(?:^|[_\-.])(?:read|get|list|ls|search|view|stat|find|glob|grep|tree|info|open|show|diff)")
_LISTS = re.compile(r"(?:^|[_\-.])(?:list|ls|tree|stat|info)(?:$|[_\-.])")
_CHANGES = re.compile(r"write|edit|delete|remove|move|rename|create|patch|append|replace|insert|copy|save|put|chmod")
# Keys of values that are texts, also when such a text looks like a path.
_TEXTS = {"content", "contents", "text", "query", "pattern", "body", "message", "prompt", "description", "title",
          "old_string", "new_string", "old_text", "new_text", "old_str", "new_str", "thought", "language"}  # fmt: skip
_MOST_VALUES = 500
_MOST_TEXT = 1024 * 1024


def _of_other_tool(call: GuardedCall, control: ControlFiles) -> list[Finding]:
    """Judge the values of a tool that is not known, a tool of an MCP server for example.

    A record stops every tool.  A file that controls the agent stops a tool whose name says that it changes files; the
    person is asked about other tools, unless the name says that they only read.
    """
    verb = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call.tool_name).rpartition("__")[2].lower()
    changes = bool(_CHANGES.search(verb))
    reads = not changes and bool(_READS.search(verb))
    for key, text in islice(_strings(call.input), _MOST_VALUES):
        for path, patch in _named(key, text):
            paths = [normalise(path, cwd=call.cwd, home=call.home)]
            paths += [] if _GLOBS.search(path) else [call.machine.real(paths[0])]
            if not _LISTS.search(verb) and any(map(control.stops_reading, paths)):
                return [Finding("records", f"{path} {REASONS['records']}")]
            if not reads and any(map(control.stops_writing, paths)):
                reason = f"{path} {REASONS['guard-settings']}"
                return [Finding("guard-settings", reason, undecidable=not (changes or patch))]
    return []


_GLOBS = re.compile(r"[*?\[]")


def _strings(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in an input, with the key that each stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping) and depth < 8:
        for name, each in value.items():
            yield from _strings(each, str(name), depth + 1)
    elif isinstance(value, list | tuple) and depth < 8:
        for each in value:
            yield from _strings(each, key, depth + 1)


def _named(key: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths that a value names, and whether it is a patch that changes them."""
    if "\n" in text:
        if len(text) <= _MOST_TEXT and re.search(r"^(?:\*\*\* |\+\+\+ )", text, re.MULTILINE):
            yield from ((name, True) for name in patched_names(text))
    # No path of the system is longer than this.
    elif 0 < len(text) < 4096 and "\0" not in text and key.lower() not in _TEXTS and "/" in text:
        yield text, False


def _rule(path: str, control: ControlFiles, *, write: bool) -> str | None:
    """Return the rule that a normalised path meets, if any."""
    if write and control.stops_writing(path):
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
