"""Judges the files and the code that a command line reaches, and keeps the findings.

The rules use the inspector.  Its subclass, the interpreter, follows the command line.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from agent_hooks.guards.base import Finding, GuardedCall, Level, plain
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.recorder import Recorder, as_pattern, is_no_file, is_pattern, spelled
from agent_hooks.guards.sensitive import (
    LONGEST_PATH,
    UNKNOWN,
    machine_file,
    normalise,
    other_terminal,
    raw_device,
    sensitive,
    sensitive_glob,
    system_path,
)
from agent_hooks.guards.shell.limit import Limit
from agent_hooks.guards.shell.line import Line
from agent_hooks.guards.shell.listings import EACH, EVERY, names_source
from agent_hooks.guards.shell.script import Node
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.targets import Directories
from agent_hooks.guards.shell.words import EMPTY, NOTHING, TYPED, Text, Word
from agent_hooks.values.effects import Access, Device, PathEffect

CONTROLS = "changes the hooks, or the settings of guards and hooks"
"""The reason of a finding about a file that controls the agent."""
CHANGES_PYTHON = "changes the Python that judges calls, or a library that it needs"
"""The reason of a finding about the Python that runs the guards."""
_DESTRUCTIVE = lazy_pattern(
    r"\b(rm|rmdir|unlink|dd|mkfs\S*|shred|chmod|chown|curl|wget|truncate|wipefs|rmtree|git\s+(reset|clean|push|checkout))\b"
    r"|\.agent/(hooks|transformers|settings|command_intercept|trust|records|unlock)|agent[-_]hooks\b"
)

# Findings of one command line, each about another program.
_MOST_FINDINGS = 200
# Paths of one command line whose links on the disk are followed.
_MOST_FOLLOWED = 200


# Files with secrets that are scripts of a shell: to run one is to use it.
_SCRIPTS = ("environment-file", "shell-profile")
# A name with an ending.
_FILE_NAME = lazy_pattern(r"[^.].*\.(?!d$|git$)\w{1,10}")
# Programs that write a text of the command line.
_WRITES_TEXT = ("echo", "printf", "cat", "tee", "")
_NO_CONTROL = ControlFiles()


class Inspector(ABC):
    """Judges files and code, and keeps `findings`.

    `call`: the tool call; `control`: the files that control the agent; `programs`: the names of all programs so far;
    `line`: the program that is being judged; `pipeline_words`: the words of the commands of the pipeline so far;
    `unread`: a part of the command line was not read; `recorder`: the effects so far; `running`: the program that is
    judged, and `via` the programs that carry it; `limit`: the time that is left; `judging`: files are judged, not only
    recorded; `text`: the present script; `flow`: where the output of the present program goes: `shown`, `pipe`, or
    `kept` in a word; `taken`: a word or a program that signs in takes the output of the whole pipeline; `elsewhere`: the
    present program runs on another machine or in a container, whose paths are not those of this machine.

    `followed` holds each script that was followed, with the name of its program.
    """

    def __init__(self, directories: Directories, level: Level, limit: Limit | None = None) -> None:
        self.directories = directories
        self.level = level
        self.call = GuardedCall(tool_name="bash", input={})
        self.control = _NO_CONTROL
        self.judging = True
        self.findings: list[Finding] = []
        self.line: Line | None = None
        # The programs that run the present script, outermost first.
        self.around: tuple[Line, ...] = ()
        self.programs: list[str] = []
        self.pipeline_words: list[str] = []
        self.unread = False
        self.flow = "shown"
        self.text = ""
        self.taken = False
        self.limit = limit or Limit()
        self.recorder = Recorder()
        self.running = ""
        self.via: tuple[str, ...] = ()
        self.elsewhere = False
        self.followed: set[tuple[str, str]] = set()
        self._reals: dict[str, str] = {}

    def report(
        self,
        rule: str,
        reason: str,
        culprit: object = "",
        *,
        undecidable: bool = False,
        unread: bool = False,
        wall: bool = False,
    ) -> None:
        """Keep a finding, unless one with the same rule about the same program is there already.

        `unread`: the rest of the command was not read, so the finding is about more programs than the present one;
        `wall`: the person is not asked, whatever the rule is.
        """
        if not self.judging:
            return
        subject, words = "", tuple[str, ...]()
        if self.line is not None:
            subject, words = self.line.text(self.directories.project), self.spelled(self.line)
        self.unread = self.unread or unread
        if unread or len(self.findings) >= _MOST_FINDINGS:
            # No pattern of an exception fits a program that is not known.
            subject, words = UNKNOWN, ()
        key = (rule, undecidable, subject, words, wall)
        if any((each.rule, each.undecidable, each.subject, each.words, each.wall) == key for each in self.findings):
            return
        text = str(culprit).replace(UNKNOWN, "…")
        found = Finding(rule, reason, text if len(text) <= 120 else text[:119] + "…", undecidable, subject, words, wall)
        self.findings.append(plain(found))

    def spelled(self, line: Line) -> tuple[str, ...]:
        """Return the words of a program, after those of the programs that run it, each spelled for a shell.

        `docker exec box sh -c 'rm -rf x'` removes another tree than `rm -rf x`.
        """
        words = line.spelled(self.directories.project)
        for each in reversed(self.around):
            outer = each.spelled(self.directories.project)
            words = (*outer, "->", *words) if outer and words else ()
        return words

    def enter(self) -> tuple[Line, ...]:
        """Let the program of this line be around the next ones; return those that were around it."""
        outer, line = self.around, self.line
        if line is not None and line.words and not line.is_plain_shell:
            self.around = (*outer, line)
        return outer

    # ---- following a command line: implemented by the interpreter

    @abstractmethod
    def script(self, text: str, shell: Shell, stdin: Text) -> Text:
        """Follow a script, and return the text that it prints."""

    @abstractmethod
    def command(self, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word] | None = None) -> Text:
        """Find the program that a command really runs, and judge it; `argv`: the expanded words."""

    def carried(self, argv: list[Word], shell: Shell, stdin: Text) -> Text:
        """Judge a command that another one starts."""
        around, outer = self.enter(), self.line
        self.line = Line(shell.cwd, stdin, argv)
        self.line.exports = shell.exports
        output = self.command(argv, shell, stdin)
        self.line, self.around = outer, around
        return output

    @abstractmethod
    def define(self, name: str, body: Node, shell: Shell) -> None:
        """Keep code that runs later: a function, an alias, a trap.  Code that is never called is followed at the end."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Follow code that runs on another machine or in a container."""
        former, self.elsewhere = self.elsewhere, True
        try:
            yield
        finally:
            self.elsewhere = former

    # ---- code

    def shell_code(self, word: Word | Text, shell: Shell, where: str, stdin: Text = EMPTY) -> Text:
        """Follow a text that a shell runs; `where`: the program that runs it, for the finding."""
        text = str(word) if isinstance(word, Word) else word.text
        if text is None or UNKNOWN in text:
            self._record_unknown_code(text, word.taint, where)
        if self.code_taint(word.taint, where):
            return Text(None, word.taint)
        if text is None or not text.strip(UNKNOWN + " \n"):
            return Text(None, word.taint)
        return self.script(text, shell, stdin)

    def _record_unknown_code(self, text: str | None, taint: frozenset[str], where: str) -> None:
        if text is None and "file" in taint:
            self.recorder.unknown("opaque", where, "runs a script that was not read")
        else:
            why = "runs text that is known only when the call runs"
            self.recorder.unknown("dynamic", where if text is None else text, why)

    def file_as_code(self, path: str, shell: Shell) -> None:
        """Judge a file that is run, if this command line has written it."""
        written = shell.files.get(path)
        if written is not None:
            self.shell_code(written, shell, path)

    def code_taint(self, taint: frozenset[str], where: str) -> bool:
        """Report code that was downloaded or decoded or may be typed, and return whether it was reported.

        `where`: the program that would run the code, for the finding.
        """
        if "download" in taint:
            self.report("download-exec", "downloaded text is run unseen", where)
            return True
        if "saved-download" in taint:
            self.report("download-exec", "a downloaded file is run unseen", where)
            return False
        if taint >= TYPED:
            self.report_typed(where)
            return True
        if "decoded" in taint:
            self.report("encoded-exec", "decoded text is run unseen", where)
            return True
        return False

    def report_typed(self, where: object) -> None:
        """Report a program that runs text which the agent may type later."""
        reason = "starts a program that runs the text that is typed into it later, which no hook sees"
        self.report("typed-commands", reason, where, undecidable=True)

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
        if (found := self._reals.get(path)) is not None:
            return found
        if path[:1] != "/" or len(path) > LONGEST_PATH or len(self._reals) >= _MOST_FOLLOWED:
            return path
        found = self._reals[path] = self._followed(path)
        return found

    def _followed(self, path: str) -> str:
        # A glob has no real path, but its directory has.
        at = next((at for at, char in enumerate(path) if char in f"*?[{UNKNOWN}"), len(path))
        known = path if at == len(path) else path[:at].rpartition("/")[0]
        if not known:
            return path
        return self.limit.look_up(self.call.machine.real, known) + path[len(known) :]

    def controls(self, word: str, shell: Shell) -> bool:
        """Return whether a word names a file that controls the agent, and that the agent may not change."""
        if not self.judging:
            return False
        if word.startswith(UNKNOWN) and self.control.stops_writing(shell.cwd):
            # The name is not known, but the directory is.
            return True
        path = self.path(word, shell)
        if self.control.stops_writing(path):
            return True
        real = self._real(path)
        return real != path and self.control.stops_writing(real)

    def changes_python(self, word: str, shell: Shell, *, removed: bool = False) -> bool:
        """Return whether a write to a file changes the Python that judges, or with `removed` its removal."""
        path = self.path(word, shell)
        if self.control.stops_changing_python(path, tree=removed):
            return True
        # To remove a link leaves its target alone.
        folder, _, name = path.rpartition("/")
        real = f"{self._real(folder)}/{name}" if removed else self._real(path)
        return real != path and self.control.stops_changing_python(real, tree=removed)

    def content(self, word: Word, shell: Shell) -> Text:
        """Return the known content of a file."""
        if word.startswith("/dev/fd/") and "process" in word.taint:
            text = word[8:]
            return Text(None if text == UNKNOWN else text, word.taint - {"process"})
        # The state of the process that judges may hold its number.
        own = {"own-process"} if self.controls(word, shell) else NOTHING
        return shell.files.get(self.path(word, shell)) or Text(None, word.taint | {"file"} | own)

    def secret(self, word: Word, shell: Shell, *, write: bool = False) -> str | None:
        """Return the kind of secret that a file holds, `None` for any other file; `write`: it would be written."""
        path = self.path(word, shell)
        if any(char in path for char in "*?[") and len(path) <= LONGEST_PATH:
            return sensitive_glob(path, home=self.directories.home, write=write)
        if (found := sensitive(path, write=write)) is not None or not self.judging:
            return found
        # A link to a secret is the secret.
        real = self._real(path)
        return sensitive(real, write=write) if real != path else None

    def effect(
        self, access: Access, word: Word, shell: Shell, *, tree: bool = False, generated: bool | None = None
    ) -> None:
        """Record an effect on a file, without judging it; `tree`: everything inside is meant too.

        `generated`: the tree is build output or temporary; by its place, when it is `None`.
        """
        if self.recorder.paused or is_no_file(word):
            return
        path = spelled(word, shell.cwd, self.directories.home)
        if word.unsure and access in ("write", "delete"):
            # The environment may have another value in the place of a default.
            self._keep(access, UNKNOWN, certain=False, tree=False, generated=False)
        if raw_device(path) and not self.elsewhere:
            self.recorder.device(Device(as_pattern(path), access, self.running))
        pattern = is_pattern(path, glob=word.pattern) or word.unsure
        tree = tree and (pattern or self._may_be_tree(path))
        if generated is None:
            generated = tree and self.directories.removable(path, "project")
        self._keep(access, path, certain=not pattern, tree=tree, generated=generated)

    def may_hold(self, word: Word, shell: Shell) -> bool:
        """Return whether the path before the name of a file may be a directory."""
        path = spelled(word, shell.cwd, self.directories.home).rpartition("/")[0]
        return UNKNOWN in path or self._may_be_tree(path) or self.recorder.may_have_made(path)

    def _may_be_tree(self, path: str) -> bool:
        """Return whether a known path may be a directory: it is one, or it is absent and its name has no ending."""
        found = self._looked_up(path)
        return found if found is not None else not _FILE_NAME.fullmatch(path.rpartition("/")[2])

    def _looked_up(self, path: str) -> bool | None:
        if self.elsewhere:
            return None
        return self.limit.look_up(self.call.machine.is_directory, path)

    def _keep(self, access: Access, path: str, *, certain: bool, tree: bool, generated: bool) -> None:
        apart = self.elsewhere
        real = self._real(path) if path[:1] == "/" and not apart else path
        effect = PathEffect(as_pattern(path), as_pattern(real), access, self.running, certain, tree, generated, apart)
        self.recorder.path(effect)

    def reads(self, word: Word, shell: Shell) -> None:
        """Record and judge a file whose content is read, copied or sent."""
        self.effect("read", word, shell)
        self.judge_read(word, shell)

    def judge_read(self, word: Word, shell: Shell) -> None:
        """Judge a file whose content is shown, copied or sent."""
        if self.judging and word and not self.judge_use(word, shell) and (rule := self.secret(word, shell)):
            path = self.path(word, shell)
            if (
                self._is_new_key(rule, path)
                and path in shell.files
                and not shell.files[path].taint & {"secret", "download"}
            ):
                return
            self.report(f"read-{rule}", "reads a file with secrets", word)

    def judge_use(self, word: Word, shell: Shell) -> bool:
        """Judge a file that a program uses and does not show, and return whether it was reported."""
        path = self.path(word, shell)
        real = self._real(path)
        stopped = self.control.stops_reading(path) or (real != path and self.control.stops_reading(real))
        if stopped:
            self.report("read-records", "reads records of decisions", word)
        return stopped

    def judge_run(self, word: Word, shell: Shell) -> None:
        """Judge a file that is run; a shell shows the lines of it that are no commands."""
        if self.secret(word, shell) not in _SCRIPTS:
            self.judge_read(word, shell)

    def writes(self, word: Word, shell: Shell, *, overwrite: bool = True, tree: bool = False) -> None:
        """Record and judge a file that is written; `tree`: everything inside may be written."""
        if not word:
            return
        self.effect("write", word, shell, tree=tree)
        self.judge_write(word, shell, overwrite=overwrite)

    def judge_write(self, word: Word, shell: Shell, *, overwrite: bool = True, removed: bool = False) -> None:
        """Judge a file that is written. Its content is lost with `overwrite`, and with `removed` the file goes away."""
        if not self.judging:
            return
        path = self.path(word, shell)
        if self.controls(word, shell):
            self.report("write-guard-settings", CONTROLS, word)
        elif self.changes_python(word, shell, removed=removed):
            self.report("write-guard-settings", CHANGES_PYTHON, word)
        elif other_terminal(path) and not self.elsewhere:
            reason = (
                "writes to a terminal or to a stream of another process, and may answer or hide a question about a call"
            )
            self.report("typed-commands", reason, word, undecidable=True)
        elif raw_device(path):
            self.report("disk", "writes to a device", word)
        elif machine_file(path, overwrite=overwrite):
            self.report("system-file", "writes to a file of accounts, login or boot", word)
        elif (rule := self.secret(word, shell, write=True)) == "client-code":
            if not removed:
                self.report(rule, "writes code or a hook that a client loads from the project on its own", word)
        elif rule and not self._is_new_key(rule, path):
            self.report(f"write-{rule}", "writes to a file of secrets, of settings, or of shell start-up", word)

        elif path.endswith(".pth") and UNKNOWN in path and self.running in _WRITES_TEXT:
            self.report("persistence", "writes a file that Python runs at its start", word)

    def _is_new_key(self, rule: str, path: str) -> bool:
        """Return whether a path is one of a key that is made in a temporary directory."""
        return rule == "private-key" and self.directories.in_temp(path)

    def deletes(self, word: Word, shell: Shell, *, tree: bool = False) -> None:
        """Record and judge one file that is removed, emptied or moved away; `tree`: and everything inside."""
        if not word:
            return
        self.effect("delete", word, shell, tree=tree)
        self.judge_delete(word, shell)

    def judge_delete(self, word: Word, shell: Shell) -> None:
        """Judge a file or a tree that is removed, emptied or moved away."""
        if not self.judging:
            return
        self.judge_write(word, shell, removed=True)
        path = self.path(word, shell)
        if self.control.stops_removing(path):
            self.report("write-guard-settings", CONTROLS, word)
        if system_path(path):
            self.report("system-file", "removes or empties a file of the system", word)

    def loses(self, word: Word, shell: Shell, *, tree: bool = False) -> None:
        """Record and judge one file that is lost, which may stand for every file that was listed."""
        if word.taint >= EVERY or (word.taint >= EACH and names_source(word)):
            self.report("find-delete", "removes all files that are listed", self.line_text())
        self.deletes(word, shell, tree=tree)

    def line_text(self) -> str:
        """Return the program that is being judged as a person reads it."""
        return "" if self.line is None else " ".join(self.line.words)

    def tree(self, word: Word, shell: Shell, *, rule: str = "rm-rf", verb: str = "removes a tree by force") -> None:
        """Record and judge a whole tree that is removed without a question."""
        self.effect("delete", word, shell, tree=True)
        if not self.judging:
            return
        path = self.path(word, shell)
        wall = self.is_machine(word, shell)
        if self.level == "strict":
            self.report(rule, verb, word, wall=wall)
        elif word.unsure or not self.directories.removable(path, self.level):
            why = f"{verb} that is neither temporary nor build output" if self.level == "project" else verb
            self.report(rule, why, word, wall=wall)

    def is_root(self, word: Word, shell: Shell) -> bool:
        """Return whether a word names a root: of the system, of a home or of the project."""
        path = self.path(word, shell)
        return UNKNOWN not in path and self.directories.root(path)

    def is_machine(self, word: Word, shell: Shell) -> bool:
        """Return whether a word names a root, other than the project, whose loss destroys the machine or a home."""
        path = self.path(word, shell)
        return UNKNOWN not in path and self.directories.machine(path)
