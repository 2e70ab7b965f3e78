"""One program as a line of text: the text that the pattern of an exception has to fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.names import SHELLS, plain_name
from agent_hooks.guards.shell.words import EMPTY, TYPED, Text, Word

# The targets of redirections that write no file.
_NO_FILE = lazy_pattern(r"\d|-|/dev/(?:null|stdout|stderr)")
# A word that needs no quotes.
_PLAIN = lazy_pattern(r"[\w@%+:,./-][\w@%+=:,./-]*", re.ASCII)
# Programs that read nothing from stdin.
_DEAF = frozenset({"git", "rm", "chmod", "chown", "find", "rsync", "docker"})


class Line(Struct, eq=False):
    """One program as it would run: its assignments, words and redirections, its directory, and the text that it reads.

    `exports`: the assignments before it on the command line that it may see in its environment.
    """

    cwd: str
    stdin: Text = EMPTY
    words: Sequence[Word] = ()
    assigns: Mapping[str, Word] = {}
    exports: Mapping[str, Word] = {}
    # Each with its operator, in the order of the script.
    redirects: list[tuple[str, Word]] = []

    def text(self, project: str) -> str:
        """Return the program as one line, with `UNKNOWN` where a part of it is not known before it runs.

        A program that runs in another directory than `project` has a `cd` in front of it.
        """
        parts = [f"{name}={_known(value)}" for name, value in self.assigns.items()]
        parts += map(_known, self.words)
        parts += [f"{operator} {_known(word)}" for operator, word in self.redirects if not _NO_FILE.fullmatch(word)]
        if self._reads():
            parts.append(f"<<< {UNKNOWN if self.stdin.text is None else self.stdin.text}")
        elsewhere = [] if self.cwd == project else [f"cd {_below(self.cwd, project)} &&"]
        return " ".join([*elsewhere, *parts])

    def spelled(self, project: str) -> tuple[str, ...]:
        """Return the words of `text`, each spelled for a shell, so that two programs never have the same words.

        Empty when a part is not known before it runs, or is a glob, which may name other files the next time.
        """
        given = [*self.exports.values(), *self.assigns.values(), *self.words]
        if UNKNOWN in self.text(project) or any(word.pattern or not word.known for word in given):
            return ()
        words = [f"{name}={quoted(value)}" for name, value in {**self.exports, **self.assigns}.items()]
        words += map(quoted, self.words)
        for operator, word in self.redirects:
            words += [] if _NO_FILE.fullmatch(word) else [operator, quoted(word)]
        if self._reads():
            words += ["<<<", quoted(self.stdin.text or "")]
        return (*([] if self.cwd == project else ["cd", quoted(_below(self.cwd, project)), "&&"]), *words)

    @property
    def is_plain_shell(self) -> bool:
        """Whether the program only runs a script, as the shell around it would."""
        if not self.words or self.assigns or self.redirects:
            return False
        return plain_name(self.words[0])[0] in (*SHELLS, "eval")

    def _reads(self) -> bool:
        """Return whether the program reads a text of this command line."""
        if self.stdin is EMPTY or self.stdin.taint >= TYPED:
            return False
        return not self.words or plain_name(self.words[0])[0] not in _DEAF


def quoted(text: str) -> str:
    """Return a word as a shell reads it back."""
    if _PLAIN.fullmatch(text):
        return str(text)
    mark = "'"
    return mark + text.replace(mark, "'\"'\"'") + mark


def _known(word: Word) -> str:
    return str(word) if word.known else UNKNOWN


def _below(path: str, project: str) -> str:
    inside = path.startswith(f"{project.rstrip('/')}/")
    return path[len(project.rstrip("/")) + 1 :] if inside else path
