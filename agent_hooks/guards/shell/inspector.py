"""Judges the files and the code that a command line reaches, and keeps the findings.

The rules use the inspector.  Its subclass, the interpreter, follows the command line.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod

from agent_hooks.guards.base import Finding, GuardedCall, Level
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.sensitive import (
    UNKNOWN,
    machine_file,
    normalise,
    raw_device,
    sensitive,
    sensitive_glob,
    system_path,
)
from agent_hooks.guards.shell.script import Node
from agent_hooks.guards.shell.targets import Directories
from agent_hooks.guards.shell.words import EMPTY, Text, Variables, Word

CONTROLS = "changes the hooks, or the settings of guards and hooks"
"""The reason of a finding about a file that controls the agent."""
_DESTRUCTIVE = re.compile(
    r"\b(rm|rmdir|unlink|dd|mkfs\S*|shred|chmod|chown|curl|wget|truncate|wipefs|rmtree|git\s+(reset|clean|push|checkout))\b"
    r"|\.agent/(hooks|transformers|settings|command_intercept|trust|records|unlock)|agent[-_]hooks\b"
)

# No path of the system is longer than this.
_LONGEST_PATH = 4096
# Paths of one command line whose links on the disk are followed.
_MOST_FOLLOWED = 200


class Shell:
    """The known state of one shell.

    `cwd`: the current directory, `UNKNOWN` when it is not known; `files`: the texts that this command line has written,
    by path; `links`: the targets of the links that it has made to files which control the agent, by path; `stack`: the
    directories of `pushd`.
    """

    __slots__ = ("cwd", "files", "functions", "links", "stack", "variables")

    def __init__(self, variables: Variables, cwd: str) -> None:
        self.variables = variables
        self.cwd = cwd
        self.functions: dict[str, Node] = {}
        self.files: dict[str, Text] = {}
        self.links: dict[str, str] = {}
        self.stack: list[str] = []

    def copy(self) -> Shell:
        """Return the state of a new subshell; all shells share the files and links."""
        shell = Shell(self.variables.copy(), self.cwd)
        shell.links = self.links
        shell.functions, shell.files, shell.stack = dict(self.functions), self.files, list(self.stack)
        return shell

    def set(self, name: str, value: Word) -> None:
        """Assign a variable."""
        self.variables.arrays.pop(name, None)
        self.variables.values[name] = Text(str(value), value.taint, unsure=value.unsure)


class Inspector(ABC):
    """Judges files and code, and keeps `findings`.

    `call`: the tool call; `control`: the files that control the agent;
    `programs`: the names of all programs so far; `pipeline_words`: the words of the commands of the pipeline so far.
    """

    def __init__(self, directories: Directories, level: Level, packs: frozenset[str]) -> None:
        self.directories = directories
        self.level = level
        self.packs = packs
        self.call = GuardedCall(tool_name="bash", input={})
        self.control = ControlFiles()
        self.findings: list[Finding] = []
        self.programs: list[str] = []
        self.pipeline_words: list[str] = []
        self._followed = 0

    def report(self, rule: str, reason: str, culprit: object = "", *, undecidable: bool = False) -> None:
        """Keep a finding, unless one with the same rule is there already."""
        text = str(culprit).replace(UNKNOWN, "…")
        finding = Finding(rule, reason, text if len(text) <= 120 else text[:119] + "…", undecidable)
        if all((each.rule, each.undecidable) != (rule, undecidable) for each in self.findings):
            self.findings.append(finding)

    # ---- following a command line: implemented by the interpreter

    @abstractmethod
    def script(self, text: str, shell: Shell, stdin: Text) -> Text:
        """Follow a script, and return the text that it prints."""

    @abstractmethod
    def command(self, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word] | None = None) -> Text:
        """Find the program that a command really runs, and judge it; `argv`: the expanded words."""

    @abstractmethod
    def define(self, name: str, body: Node, shell: Shell) -> None:
        """Keep code that runs later: a function, an alias, a trap.  Code that is never called is followed at the end."""

    # ---- code

    def shell_code(self, word: Word | Text, shell: Shell, where: str, stdin: Text = EMPTY) -> Text:
        """Follow a text that a shell runs; `where`: the program that runs it, for the finding."""
        text = str(word) if isinstance(word, Word) else word.text
        if self.code_taint(word.taint, where):
            return Text(None, word.taint)
        if text is None or not text.strip(UNKNOWN + " \n"):
            return Text(None, word.taint)
        return self.script(text, shell, stdin)

    def file_as_code(self, path: str, shell: Shell) -> None:
        """Judge a file that is run, if this command line has written it."""
        written = shell.files.get(path)
        if written is not None:
            self.shell_code(written, shell, path)

    def code_taint(self, taint: frozenset[str], where: str) -> bool:
        """Report code that was downloaded or decoded, and return whether it was reported.

        `where`: the program that would run the code, for the finding.
        """
        if "download" in taint:
            self.report("download-exec", "downloaded text is run unseen", where)
            return True
        if "saved-download" in taint:
            if self.level == "strict":
                self.report("download-exec", "a downloaded file is run unseen", where)
            return False
        if "decoded" in taint:
            self.report("encoded-exec", "decoded text is run unseen", where)
            return True
        return False

    def report_generated_code(self, where: str) -> None:
        """Report code that a program generates, when the words of that program name something destructive."""
        if _DESTRUCTIVE.search(where):
            self.report("dynamic-code", "generated text is run as code", where, undecidable=True)

    # ---- files

    def path(self, word: str, shell: Shell) -> str:
        """Return a word as a normalised path; a word that begins with unknown text stays relative."""
        if word.startswith(UNKNOWN):
            return posixpath.normpath(word)
        path = normalise(word, cwd=shell.cwd, home=self.directories.home) if word else shell.cwd
        for link, target in shell.links.items():
            if path == link or path.startswith(f"{link}/"):
                return target + path[len(link) :]
        return path

    def _real(self, path: str) -> str:
        """Return a path with the links on the disk followed, as far as it is known."""
        if path[:1] != "/" or len(path) > _LONGEST_PATH or self._followed >= _MOST_FOLLOWED:
            return path
        self._followed += 1
        # A glob has no real path, but its directory has.
        at = next((at for at, char in enumerate(path) if char in f"*?[{UNKNOWN}"), len(path))
        known = path if at == len(path) else path[:at].rpartition("/")[0]
        return self.call.machine.real(known) + path[len(known) :] if known else path

    def controls(self, word: str, shell: Shell) -> bool:
        """Return whether a word names a file that controls the agent, and that the agent may not change."""
        if word.startswith(UNKNOWN) and self.control.stops_writing(shell.cwd):
            # The name is not known, but the directory is.
            return True
        path = self.path(word, shell)
        return self.control.stops_writing(path) or self.control.stops_writing(self._real(path))

    def content(self, word: Word, shell: Shell) -> Text:
        """Return the known content of a file."""
        if word.startswith("/dev/fd/") and "process" in word.taint:
            text = word[8:]
            return Text(None if text == UNKNOWN else text, word.taint - {"process"})
        return shell.files.get(self.path(word, shell)) or Text(None, word.taint | {"file"})

    def _sensitive(self, word: Word, shell: Shell, *, write: bool = False) -> str | None:
        path = self.path(word, shell)
        # No path of the system is longer than this.
        if any(char in path for char in "*?[") and len(path) < 4096:
            return sensitive_glob(path, home=self.directories.home, write=write)
        return sensitive(path, write=write)

    def reads(self, word: Word, shell: Shell) -> None:
        """Judge a file whose content is read, copied or sent."""
        path = self.path(word, shell) if word else ""
        if word and (self.control.stops_reading(path) or self.control.stops_reading(self._real(path))):
            self.report("read-records", "reads records of decisions", word)
        elif word and (rule := self._sensitive(word, shell)):
            self.report(f"read-{rule}", "reads a file with secrets", word)

    def writes(self, word: Word, shell: Shell, *, overwrite: bool = True) -> None:
        """Judge a file that is written."""
        if not word:
            return
        path = self.path(word, shell)
        if self.controls(word, shell):
            self.report("write-guard-settings", CONTROLS, word)
        elif raw_device(path):
            self.report("disk", "writes to a device", word)
        elif machine_file(path, overwrite=overwrite):
            self.report("system-file", "writes to a file of accounts, login or boot", word)
        elif rule := self._sensitive(word, shell, write=True):
            self.report(f"write-{rule}", "writes to a file of secrets, of settings, or of shell start-up", word)

    def deletes(self, word: Word, shell: Shell) -> None:
        """Judge one file that is removed or emptied."""
        self.writes(word, shell)
        path = self.path(word, shell)
        if self.control.stops_removing(path):
            self.report("write-guard-settings", CONTROLS, word)
        if system_path(path):
            self.report("system-file", "removes or empties a file of the system", word)

    def tree(self, word: Word, shell: Shell, *, rule: str = "rm-rf", verb: str = "removes a tree by force") -> None:
        """Judge a whole tree that is removed without a question."""
        path = self.path(word, shell)
        if self.level == "strict":
            self.report(rule, verb, word)
        elif word.unsure or not self.directories.removable(path, self.level):
            self.report(
                rule, f"{verb} that is neither temporary nor build output" if self.level == "project" else verb, word
            )

    def is_root(self, word: Word, shell: Shell) -> bool:
        """Return whether a word names a root: of the system, of a home or of the project."""
        path = self.path(word, shell)
        return UNKNOWN not in path and self.directories.root(path)
