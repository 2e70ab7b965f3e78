"""Rules that keep an agent from switching its hooks off: by our own commands, by ending their process, by a client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise

from agent_hooks.errors import HookUsageError
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.carriers import PREFIXES
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.names import DECISIONS, SHELLS, UNDOING, is_language
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Text, Word, marked
from agent_hooks.patterns import found_in

OURS = lazy_pattern(r"agent[-_.]?hooks", re.IGNORECASE)
# Marks a text with the number of a process that judges calls.
OWN_PROCESS = frozenset({"own-process"})


# ---- our own commands ------------------------------------------------------------------------------------------------


def own(command: Command) -> None:
    """`agent-hooks trust`, `undo` and others are a person's decisions; `records`, `why` and `look` show records."""
    words = command.argv[1:]
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    if at == len(words):
        return
    verb, rest = words[at], words[at + 1 :]
    if "--" not in rest and rest[-1:] in (["--help"], ["-h"]):
        return
    if "AGENT_HOME" in command.environment or "AGENT_HOME" in command.shell.variables.values:
        command.report("write-guard-settings", "runs without the person's own hooks and settings")
    if any(word.startswith("--allow-once") for word in rest):
        command.report("write-guard-settings", "lets a call pass that only a person allows")
    if any(word.startswith("--allow-remember") for word in rest):
        command.report("write-guard-settings", "lets a client answer for always in the place of a person")
    if any(word.startswith("--without") for word in rest):
        command.report("write-guard-settings", "leaves out hooks of a person")
    if verb in DECISIONS and not _only_shows(verb, rest):
        command.report("write-guard-settings", "only a person decides about hooks and their settings")
    if verb == "examples" and rest and rest[0] not in ("show", "--json"):
        command.report("write-guard-settings", "only a person decides about hooks and their settings")
    if verb == "doctor" and any(word.startswith("--clear") for word in rest):
        command.report("write-guard-settings", "lifts an alarm that only a person lifts")
    if verb == "guard" and rest[:1] == ["exceptions"] and any(word.startswith("--rev") for word in rest):
        command.report("write-guard-settings", "ends an answer that only a person ends")
    if verb in ("undo", "redo") or (verb == "checkpoints" and rest[:1] and (rest[0] in UNDOING or not rest[0].known)):
        command.report("write-guard-settings", "only a person takes turns of agents back, or forgets checkpoints")
    if verb == "bridge":
        reason = "gives the process that judges calls an event that no agent sent"
        command.interpreter.report("write-guard-settings", reason, command, undecidable=True)
    if verb == "serve" and "--stop" in rest:
        command.report("write-guard-settings", "stops the process that judges calls")
    if verb in ("why", "look", "stats") or (verb == "records" and rest[:1] != ["verify"]):
        command.report("read-records", "reads records of decisions")
    if not verb.known:
        reason = "the verb of a command that may be a person's decision is not known"
        command.interpreter.report("write-guard-settings", reason, command, undecidable=True)


def _only_shows(verb: str, rest: list[Word]) -> bool:
    shows = {"trust": "--list", "install": "--dry-run", "uninstall": "--dry-run", "new": "--list"}.get(verb)
    return shows in rest and "--yes" not in rest


def installed_client(command: Command) -> None:
    """`python3 ~/.agent/bridges/x.py EVENT` sends the process that judges calls a forged event."""
    programs = command.argv if is_language(command.name) or command.name in SHELLS else command.argv[:1]
    for word in programs:
        if re.search(r"/bridges/[^/]+$", word) and command.controls(word):
            reason = "gives the process that judges calls an event that no agent sent"
            command.interpreter.report("write-guard-settings", reason, word, undecidable=True)


def socket(command: Command) -> None:
    """`nc -U /tmp/agent-hooks-1000/x.socket` talks to the process that judges calls."""
    line = command.interpreter.line
    words = [*command.argv[1:], *(word for _, word in (line.redirects if line else ()))]
    named = [each for word in words for each in (word, *re.split(r"[:=,]", word))]
    hidden = any(UNKNOWN in word for word in words) and OURS.search(command.interpreter.text)
    local = any(re.search(r"^-\w*U|unix", word, re.IGNORECASE) for word in command.argv[1:])
    sockets = command.interpreter.control.is_socket
    if any("/" in each and sockets(command.path(each)) for each in named) or (hidden and local):
        reason = "talks to the process that judges calls"
        command.interpreter.report("write-guard-settings", reason, command, undecidable=True)


def own_package(command: Command) -> None:
    """`pip uninstall agent-hooks`, `uv remove` and others remove or replace this package."""
    words = command.argv[1:]
    names = [word for word in words if re.match(r"agent[-_.]hooks(?!.*/)", word)]
    verbs = {"uninstall", "remove", "rm", "upgrade", "reinstall", "downgrade", "inject", "uninject"}
    replaces = "install" in words and (
        any(re.match(r"--force|--reinstall|--upgrade$|-\w*U|--target|--ignore-installed|-I$", word) for word in words)
        or any(re.search(r"[=<~@]", name) for name in names)
    )
    own = any(re.search(r"(?:^|/)agent[-_.]hooks[^/]*/?$", word) for word in words)
    if replaces and own:
        names = words
    forced = any(re.match(r"--force|--reinstall|--ignore-installed|-I$|-f$", word) for word in words)
    if "install" in words and forced and any(_of_unknown_name(words, at) for at in range(len(words))):
        reason = "the package of a directory may replace the one that judges calls"
        command.interpreter.report("write-guard-settings", reason, command, undecidable=True)
    if names and (verbs.intersection(words) or replaces):
        command.report("write-guard-settings", "removes or replaces the package that judges calls")
    own_environment(command)


# ---- the environment of our Python -----------------------------------------------------------------------------------

_INSTALLS = frozenset(("install", "add", "upgrade", "update", "inject", "reinstall"))
_REMOVES = frozenset(("uninstall", "remove", "rm", "downgrade", "uninject"))
_RENEWS = lazy_pattern(r"--force.*|--reinstall.*|--upgrade.*|--ignore-installed|-[a-zA-Z]*[UI]|--target.*|-t")
# Options whose value is an environment, and variables with one.
_PLACES = ("p", "t", "--python", "--prefix", "--target", "--root")
_ENVIRONMENTS = ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "PIP_TARGET", "PIP_PREFIX", "PIP_PYTHON")


def own_environment(command: Command) -> None:
    """Ask about `pip uninstall click` and `uv venv --clear` where they change what the Python that judges needs."""
    own = command.interpreter.control.python
    if not own.prefix:
        return
    words = command.argv[1:]
    options = ParsedOptions(command.argv, "ptrcei", (*_PLACES[2:], "--requirement", "--constraint", "--editable"))
    if command.name == "virtualenv" or words[:1] == ["venv"]:
        made = options.operands if command.name == "virtualenv" else options.operands[1:] or [Word(".venv")]
        if options.has("--clear", "--allow-existing") and any(_in_own(command, each) for each in made):
            _ask_environment(command)
        return
    if not {*words} & (_INSTALLS | _REMOVES) or not _acts_on_own(command, options):
        return
    removes = not _REMOVES.isdisjoint(words)
    renews = removes or any(_RENEWS.fullmatch(word) for word in words) or not {"upgrade", "update"}.isdisjoint(words)
    needed = own.required()
    for word in options.operands:
        name = _distribution(word)
        # A directory, an address and a file may hold a package of any name.
        source = bool(re.match(r"\.{0,2}/|~|\w+(?:\+\w+)?:", word) or word.endswith((".whl", ".gz", ".zip")))
        if source:
            needs = any(re.match(rf"{re.escape(each)}(?:\W|$)", name) for each in needed) or not own.usual
        else:
            needs = name in needed and (renews or bool(re.search(r"[=<>~@]", word)))
        if needs or name == "agent-hooks":
            _ask_environment(command)


def _distribution(word: str) -> str:
    """Return the name of a distribution as indexes spell it, from a requirement, a file or an address."""
    last = re.split(r"[\[=<>~!@;#]", word)[0].rstrip("/").rpartition("/")[2]
    return re.sub(r"[-_.]+", "-", last).lower()


def _acts_on_own(command: Command, options: ParsedOptions) -> bool:
    """Return whether a program that installs packages changes the environment of the Python that judges."""
    interpreter = command.interpreter
    given = [
        *options.value(*_PLACES),
        *(command.environment[key] for key in _ENVIRONMENTS if key in command.environment),
    ]
    if paths := [word for word in given if "/" in word]:
        return any(_in_own(command, word) for word in paths)
    # `python -m pip` is `pip` here, and `python` is in the line around it.
    programs = [command.argv[0], *(line.words[0] for line in interpreter.around if line.words)]
    if paths := [word for word in programs if re.search(r"/(?:python|pypy|pip|uv|conda)[\d.]*$", word)]:
        return any(_in_own(command, word) for word in paths)
    active = re.findall(r"(\S+)/bin/activate\b", interpreter.text)
    if active:
        return any(_in_own(command, Word(each)) for each in active)
    return interpreter.control.python.usual


def _in_own(command: Command, word: Word) -> bool:
    """Return whether a path is the environment of the Python that judges, or in it."""
    own, path = command.interpreter.control.python, command.path(word)
    return f"{path}/".startswith(f"{own.prefix}/") or path.rpartition("/")[0] in own.programs


def _ask_environment(command: Command) -> None:
    reason = "may replace a package that the Python which judges calls needs"
    command.interpreter.report("write-guard-settings", reason, command, undecidable=True)


def _of_unknown_name(words: list[Word], at: int) -> bool:
    """Return whether a word is a directory or a repository, whose package may have any name."""
    after_file = at > 0 and words[at - 1] in ("-r", "-c", "--requirement", "--constraint", "-e", "--editable")
    return not after_file and bool(
        re.match(r"(?:\.{0,2}/|~/|\.\.$|git\+)", words[at]) and not re.search(r"\.(?:whl|gz|zip|txt)$", words[at])
    )


def pager(command: Command) -> None:
    """`man -P` runs a command."""
    options = ParsedOptions(command.argv, "PHMSsemrCLEpR", ("--pager", "--html", "--browser"))
    for word in options.value("P", "--pager"):
        command.shell_code(word)


def another_name(command: Command) -> None:
    """`ln -s /usr/bin/agent-hooks x` gives our command another name."""
    if any(re.search(r"(?:^|/)agent-hooks$", word) for word in command.argv[1:]):
        command.report("write-guard-settings", "gives the command of a person's decisions another name")


def terminal(command: Command) -> None:
    """`tmux send-keys`, `expect` and `script` type a command, or run it in a terminal."""
    words = command.argv[1:]
    if command.name == "expect":
        texts = [*ParsedOptions(command.argv, "cf").value("c"), Word(command.stdin.text or "")]
        for text in texts:
            for found in re.findall(r"\b(?:spawn|exec|system)\s+(?:-\w+\s+)*([^;\n\]]+)", text):
                command.shell_code(Word(found.replace("{", "").replace("}", "")))
    elif command.name == "script":
        options = ParsedOptions(command.argv, "cEImOoBTt", ("--command",), stop_early=True)
        if len(options.operands) > 1:
            command.runs(options.operands[1:])
    elif "send-keys" in words or "send" in words or "stuff" in words:
        typed = " ".join(word for word in words if word not in ("Enter", "C-m"))
        if found := re.search(r"\bagent-hooks\b.*", typed.replace(" Space ", " ")):
            command.shell_code(Word(re.sub(r"(?:\\[nr]|\^M|\\015)+$", "", found[0])))


# An option with the number of the process to attach to, and the same with the number in one word.
_ATTACHES = lazy_pattern(r"--?(?:pid|attach|attach-pid|attach-name|process|[A-Za-z]*p)")
_ATTACHED = lazy_pattern(r"--?(?:pid|attach|attach-pid|attach-name|process)=(.+)|-[A-Za-z]*p=?(\d.*)")
# Programs that take the number as their first or second operand.
_BY_NUMBER = frozenset(("gdb", "gcore", "gstack", "pstack", "eu-stack", "reptyr", "dlv", "pyrasite", "frida", "criu"))
_TYPED_ATTACH = lazy_pattern(r"\battach(?:\s+(?:-p|--pid))?\s+(\d+)")
_LIMITS = lazy_pattern(r"--(?!pid=)[a-z]+=.*|-[a-zA-Z]=?\d.*")


def debugger(command: Command) -> None:
    """`gdb -p`, `strace -p` and `prlimit -p` read, change or end another process, perhaps our server."""
    words = command.argv[1:]
    if command.name == "prlimit" and not any(_LIMITS.fullmatch(word) and word[:2] != "-p" for word in words):
        return
    process, programs = str(command.interpreter.call.process), command.interpreter.programs
    for word in _processes(command, words):
        if word == process or word.taint >= OWN_PROCESS or OURS.search(word):
            command.report("write-guard-settings", "reads or stops the process that judges calls")
        elif word != "0" and (word.known or not {"pgrep", "pidof"} & set(programs)):
            # `$!` and `$$` are 0 here.  The pattern of `pgrep` was judged before.
            reason = "reads, changes or stops another process, perhaps the process that judges calls"
            command.interpreter.report("write-guard-settings", reason, command, undecidable=True)


def _processes(command: Command, words: list[Word]) -> Iterator[Word]:
    """Yield the numbers or names of the processes to which a program attaches itself."""
    if command.name in CARRIERS:
        # The words of the carried command are its own.
        options = ParsedOptions(command.argv, PREFIXES[command.name].short, ("--pid", "--attach"), stop_early=True)
        yield from options.value("p", "--pid", "--attach")
        return
    ends = next((at for at, word in enumerate(words) if word in ("--", "--args")), len(words))
    for at, word in enumerate(words[:ends]):
        if found := _ATTACHED.fullmatch(word):
            yield marked(found[1] or found[2], word)
        elif _ATTACHES.fullmatch(word):
            yield from words[at + 1 : at + 2]
        elif command.name in _BY_NUMBER and word.isdigit() and not (at and words[at - 1][:1] == "-"):
            yield word
        elif found := _TYPED_ATTACH.search(word):
            yield Word(found[1])
    if command.name in ("gdb", "lldb") and (found := _TYPED_ATTACH.search(command.stdin.text or "")):
        yield Word(found[1])


# ---- the process that judges -----------------------------------------------------------------------------------------


def kill(command: Command) -> None:
    """`kill` of the process that judges calls, or of all processes."""
    words = command.argv[1:]
    if words[:1] in (["-0"], ["-l"], ["-L"]) or words[:2] == ["-s", "0"]:
        return
    targets = words[1:] if words and re.fullmatch(r"-(?:[A-Z]\w*|[1-9]\d?)", words[0]) else words
    process = command.interpreter.call.process
    for word in targets:
        if (word == "0" and _own_group(command)) or re.search(r"[*?\[]", word):
            reason = "may stop the process that judges calls, with the others"
            command.interpreter.report("write-guard-settings", reason, command, undecidable=True)
        named = word == "-1" or (process and word in (str(process), f"-{process}"))
        if named or word.taint >= OWN_PROCESS or OURS.search(word) or _ABOVE.search(word):
            command.report("write-guard-settings", "stops the process that judges calls")


def _own_group(command: Command) -> bool:
    """Return whether the text of a call names the group 0; `$!` and `$$` stand for numbers that are not known."""
    text = str(command.interpreter.call.input.get("command", ""))
    # A shell that ends its own group when it exits is common.
    at_exit = re.search(r"\btrap\s+['\"][^'\"]*\bkill\b", text)
    return not at_exit and bool(re.search(r"kill\w*\b[^;&|\n$]*\b0\b", text))


def kill_all(command: Command) -> None:
    """`killall5` stops every process."""
    command.report("write-guard-settings", "stops the process that judges calls, with all others")


# The process or the group, in code of a language, that may be that of the process that judges.
_ABOVE = lazy_pattern(r"ppid|getpgrp|getpgid\(\s*(?:0|os\.getp?pid\(\))")


# The names and command lines of the processes that judge calls, for the patterns of `pkill`.
_NAMES = ("agent-hooks", "python", "python3", "python3.12")
_LINES = (
    "/usr/bin/python3 /usr/local/bin/agent-hooks run",
    "/usr/bin/python3 -P -E /usr/lib/python3/dist-packages/agent_hooks/__main__.py serve",
)


def kill_by_name(command: Command) -> None:
    """`pkill` and `killall` stop the processes whose name or command line fits."""
    options = ParsedOptions(command.argv, "gGPstuUFynoOJkZ" if command.name == "pkill" else "oysunZ", ("--signal",))
    if options.has("l", "--list", "V") or "-0" in command.argv:
        return
    by_pattern = command.name == "pkill" or options.has("r", "--regexp")
    patterns = [word for word in options.operands if not re.fullmatch(r"-?\d+", word)]
    if not patterns and (options.value("u", "U", "--user", "--euid", "s", "g") or options.has("--user")):
        command.report("write-guard-settings", "stops the process that judges calls, with all others of a user")
    for pattern in patterns:
        if _fits_ours(str(pattern), full=options.has("f", "--full"), by_pattern=by_pattern):
            command.report("write-guard-settings", "stops the process that judges calls")


def _fits_ours(pattern: str, *, full: bool, by_pattern: bool) -> bool:
    if OURS.search(pattern):
        return True
    if not by_pattern:
        return pattern in _NAMES
    try:
        return any(found_in(pattern, text) for text in (_LINES if full else _NAMES))
    except HookUsageError:
        return False


def listing(command: Command) -> None:
    """`pgrep`, `lsof -t` and `grep` print the numbers of processes."""
    words = command.argv[1:]
    ours = any(OURS.search(word) or command.controls(word) for word in words if not word.startswith("-"))
    if command.name in ("pgrep", "pidof"):
        options = ParsedOptions(command.argv, "gGPstuUFyO")
        full = options.has("f", "--full")
        # `pidof -x` finds the scripts of an interpreter too.
        scripts = command.name == "pidof" and options.has("x")
        ours = ours or any(
            _fits_ours(str(word), full=full or scripts, by_pattern=command.name == "pgrep" or scripts)
            for word in options.operands
        )
    elif any(re.match(r"/proc/.*(?:cmdline|comm|stat|environ|exe)", word) for word in words):
        # The command lines of all processes, with their numbers in the names of the files.
        ours = ours or any(
            _fits_ours(str(word), full=True, by_pattern=True) for word in words if not re.match(r"-|/proc/", word)
        )
    if ours or (command.name == "ps" and any("ppid" in word for word in words)):
        taint = command.stdin.taint | OWN_PROCESS
        command.output = Text(None, taint)


def fuser(command: Command) -> None:
    """`fuser -k` stops the processes that use a file."""
    options = ParsedOptions(command.argv, "n")
    if options.has("k", "--kill") and any(command.controls(word) for word in options.operands):
        command.report("write-guard-settings", "stops the process that judges calls")


# ---- the flags and settings of a client ------------------------------------------------------------------------------

# Variables with which a client reads other settings, and so other hooks.
_ELSEWHERE = {
    "claude": ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_MANAGED_SETTINGS_PATH"),
    "codex": ("CODEX_HOME",),
    "gemini": ("GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"),
    "qwen": ("QWEN_HOME", "QWEN_CODE_SYSTEM_SETTINGS_PATH"),
    "copilot": ("COPILOT_HOME",),
    "opencode": ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_PURE"),
    "pi": ("PI_CODING_AGENT_DIR",),
    "openclaw": ("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"),
    "cursor-agent": ("CURSOR_CONFIG_DIR",),
}
# Flags with which a client runs without hooks.
_WITHOUT = {
    "claude": r"--bare|--safe-mode",
    "codex": r"--disable[= ]\S*hooks|.*hooks[^=]*=\s*(?:false|\[|\{).*|--ignore-user-config",
    "pi": r"--no-extensions|-ne",
    "opencode": r"--pure",
    "copilot": r"--config-dir(?:=.*)?",
    "gemini": r"hooks",
    "qwen": r"hooks",
}
_SOURCES = {"user", "project", "local"}
# Commands of a client, each as words in a row, with which plugins, extensions and servers become a part of it.
_PLUGINS = ("plugin", "plugins", "marketplace", "extensions", "extension", "hooks", "mcp")
_ADDING = (
    "install",
    "i",
    "add",
    "enable",
    "link",
    "init",
    "new",
    "update",
    "add-json",
    "add-from-claude-desktop",
    "set",
)
_ADDS = {
    **dict.fromkeys(("claude", "codex", "copilot", "openclaw"), (_PLUGINS, _ADDING)),
    **dict.fromkeys(("gemini", "qwen"), (("extensions", "extension", "mcp"), _ADDING)),
    "opencode": (("mcp", "agent"), ("add", "create")),
}
# Commands of one word.
_ADDS_ALONE = {"pi": ("install", "update"), "opencode": ("plugin",)}
# Flags with which a client loads plugins, extensions, sub-agents or servers for one run.
_LOADS = {
    "claude": r"--(?:plugin-dir|mcp-config|agents)(?:=.*)?",
    "codex": r"(?:--config=)?mcp_servers\..*",
    "copilot": r"--(?:plugin-dir|additional-mcp-config)(?:=.*)?",
    "pi": r"(?:-e|--extension)(?:=.*)?",
}


def client(command: Command) -> None:
    """A client's flags and variables that switch hooks off, or lead it to other settings."""
    name = command.name.removesuffix("-code")
    words = command.argv[1:]
    if words in (["--version"], ["--help"], ["-h"], ["-v"]):
        return
    variables = command.shell.variables.values
    exported = {key for key in variables if key not in ("HOME",)}
    for key in _ELSEWHERE.get(name, ()):
        if key in command.environment or key in exported:
            _report(command, f"{key}=")
    if "HOME" in command.environment or "XDG_CONFIG_HOME" in command.environment:
        _report(command, "HOME=")
    pairs = [f"{word} {words[at + 1] if at + 1 < len(words) else ''}" for at, word in enumerate(words)]
    pattern = _WITHOUT.get(name, r"(?!)")
    if name in ("gemini", "qwen"):
        if words[:1] == ["hooks"] and any(word.startswith("disable") for word in words):
            _report(command)
    elif any(re.fullmatch(pattern, text) for text in (*words, *pairs)):
        _report(command)
    if name == "claude":
        _claude(command, words)
    if _adds(name, words):
        reason = "adds code to a client, whose hooks do not judge it"
        command.interpreter.report("write-guard-settings", reason, None, undecidable=True)


def _adds(name: str, words: list[Word]) -> bool:
    """Return whether a client gets more plugins, extensions, sub-agents or servers."""
    what, adding = _ADDS.get(name, ((), ()))
    return (
        any(one in what and two in adding for one, two in pairwise(words))
        or (words[:1] and words[0] in _ADDS_ALONE.get(name, ()))
        or any(re.fullmatch(_LOADS.get(name, r"(?!)"), word) for word in words)
    )


def _claude(command: Command, words: list[Word]) -> None:
    options = ParsedOptions(command.argv, "", ("--settings", "--setting-sources"))
    for value in options.value("--settings"):
        _claude_settings(command, value)
    for value in options.value("--setting-sources"):
        if not {part.strip() for part in value.split(",")} >= _SOURCES:
            _report(command)
    # An empty value leaves every source out.
    if any(word == "--setting-sources=" for word in words):
        _report(command)
    if words[:2] == ["config", "set"] and any("hooks" in word.lower() for word in words):
        _report(command)


def _claude_settings(command: Command, value: Word) -> None:
    text = value.strip()
    if not text.startswith("{"):
        written = command.interpreter.content(value, command.shell).text
        if written is None:
            reason = "a client's settings that cannot be read may switch hooks off"
            command.interpreter.report("write-guard-settings", reason, value, undecidable=True)
            return
        text = written
    try:
        keys = set(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        keys = {"hooks"}
    if keys & {"disableAllHooks", "hooks", "allowManagedHooksOnly", "env"}:
        _report(command)


def _report(command: Command, culprit: object = None) -> None:
    command.report("write-guard-settings", "starts a client without its hooks", culprit)


_DEBUGGERS = (
    "gdb lldb gcore gstack pstack eu-stack py-spy austin rbspy pyrasite reptyr dlv frida frida-trace gdbserver uftrace "
    "criu nsenter"
)
# They carry a command too.
CARRIERS: dict[str, Rule] = dict.fromkeys(("strace", "ltrace", "prlimit"), debugger)
RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("agent-hooks", own),
    **rules_of("pip pip3 pipx uv poetry pdm hatch rye conda", own_package),
    "virtualenv": (own_environment,),
    **rules_of("nc ncat netcat socat curl websocat nmap-ncat nc.openbsd", socket),
    **rules_of("ln cp mv install hash", another_name),
    **rules_of("expect script tmux screen wezterm kitty zellij", terminal),
    "kill": (kill,),
    "killall5": (kill_all,),
    **rules_of("pkill killall", kill_by_name),
    **rules_of("pgrep pidof ps lsof grep egrep rg awk gawk mawk", listing),
    "fuser": (fuser,),
    "man": (pager,),
    **rules_of(_DEBUGGERS, debugger),
    **rules_of("claude claude-code codex gemini gemini-cli qwen qwen-code", client),
    **rules_of("copilot opencode pi openclaw cursor-agent", client),
}
