"""One command on its way through its row: the roles of its words, and the deeds that follow from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.options import TAR_VALUES, ParsedOptions, spelled_out
from agent_hooks.guards.shell.programs.rows import Operand, Row, operand
from agent_hooks.guards.shell.words import EMPTY, Text, Word, marked

Kind = Literal["read", "write", "delete", "list", "execute", "in", "out", "install", "kill", "discard", "gain", "device",
               "code"]  # fmt: skip
_PATHS = frozenset(("read", "write", "delete", "list", "execute"))
_HARMLESS = frozenset(("read", "list", "in"))


Manner = Literal["", "used", "named", "added", "rights", "own", "made", "filled"]


class Deed(NamedTuple):
    """One effect of a program.

    `word`: the path, host, package, process, right or code, as it is written; `tree`: everything inside is meant too;
    `what`: the content of a transfer; `member`: the file is written only if the path before its name is a directory;
    `manner`: how the program treats the file, for the guards: `used` by the program, which shows and sends none of it;
    `named` by another name from now on; `added` to; only its `rights` change; the program's `own`, which no word names;
    a directory that is `made`, or that is `filled` with the files of another one.
    """

    kind: Kind
    word: Word
    tree: bool = False
    what: str = ""
    member: bool = False
    manner: Manner = ""


_MANNERS: dict[str, Manner] = {"u": "used", "U": "used", "n": "named", "A": "added", "M": "made"}
# The deeds of a role that concern files.
_OF_ROLE: dict[str, tuple[tuple[Kind, bool], ...]] = {
    "u": (("read", False),),
    "U": (("read", True),),
    "n": (("list", False),),
    "A": (("write", False),),
    "M": (("write", False),),
    "r": (("read", False),),
    "q": (("read", False),),
    "a": (("read", False),),
    "R": (("read", True),),
    "w": (("write", False),),
    "W": (("write", True),),
    "e": (("read", False), ("write", False)),
    "E": (("read", True), ("write", True)),
    "d": (("delete", False),),
    "D": (("delete", True),),
    "m": (("read", True), ("delete", True)),
    "l": (("list", False),),
    "x": (("execute", False),),
    "b": (("device", False),),
    "k": (("kill", False),),
    "c": (("code", False),),
}
_FACTS: dict[str, str] = {"r": "r", "w": "w", "e": "e", "d": "d"}
_REMOTE = lazy_pattern(r"(?:[\w+-]+://)?(?:[^/@:]*@)?([^/:]+)(?::.*)?(?:/.*)?", re.DOTALL)
_SCHEMES = {"s3": "s3.amazonaws.com", "gs": "storage.googleapis.com", "docker": "registry-1.docker.io"}
# Hosts that are this machine.
_HERE = lazy_pattern(r"localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[?::1\]?|.*\.localhost")


Function = Callable[["Reading"], bool]


class Reading:
    """One command on its way through its row.

    `words`: the program with its words behind the verb; `options`: these as the row parses them; `operands`: the roles of
    the operands; `known`: all effects are known; `fixed`: the paths among the row's facts; `sent`: the texts that are
    sent; `functions`: the functions that rows may name, each of which returns whether it has read the operands.
    """

    def __init__(
        self, name: str, words: Sequence[Word], row: Row, stdin: Text, functions: Mapping[str, Function]
    ) -> None:
        self.name, self.row, self.stdin, self.functions = name, row, stdin, functions
        self.words, pairs = _without_pairs(spelled_out(words, TAR_VALUES) if row.has("old") else list(words), row)
        self.options = ParsedOptions(
            self.words,
            row.short,
            row.long,
            optional=row.optional,
            known=row.flags,
            stop_early=row.has("early"),
            single_dash=row.has("dash"),
        )
        self.given = list(self.options.operands)
        self.operands = list(row.operands)
        self.facts = list(row.facts)
        self.deeds: list[Deed] = []
        self.sent: list[str] = []
        self.known = not row.has("opaque")
        self.keeps_all = self.keeps_paths = False
        self.renamed: dict[str, str] = {}
        self._stays: set[int] = set()
        self.directory: Word | None = None
        self.elsewhere: Word | None = None
        for option, word in pairs:
            self._play(row.roles[option], word)

    # ---- used by the functions of rows

    def add(self, kind: Kind, word: str, *, tree: bool = False, what: str = "", manner: Manner = "") -> None:
        self.deeds.append(Deed(kind, word if isinstance(word, Word) else Word(word), tree, what, manner=manner))

    def values(self, *names: str) -> list[Word]:
        return self.options.value(*names)

    def has(self, *names: str) -> bool:
        return self.options.has(*names)

    def opaque(self) -> None:
        """Take note that the program runs code that is not known."""
        self.known = False

    def sends(self, word: str, what: str = "") -> None:
        """Add content that goes to a host or URL."""
        if word.lower().startswith("file:"):
            self.add("read", word[5:].removeprefix("//"))
        elif not is_here(word):
            self.add("out", host_of(word), what=what or ", ".join(self.sent) or "a request")

    def gets(self, word: str) -> None:
        """Add content that comes from a host or URL."""
        if word.lower().startswith("file:"):
            self.add("read", word[5:].removeprefix("//"))
            return
        host = host_of(word)
        if not _HERE.fullmatch(host):
            self.add("in", host, what=str(word))
            if UNKNOWN in word.partition("?")[2] or (UNKNOWN in host and host.strip(UNKNOWN)):
                self.add("out", host, what="a part of the URL")

    def target(self, word: Word, sources: Sequence[Word]) -> None:
        """Add the file or directory that gets the sources."""
        whole = any(source.endswith(("/", "/.", "/*")) or source in (".", "..") for source in sources)
        alone = len(sources) == 1 and not word.endswith("/") and word in self.given
        for source in sources:
            if name := source.rstrip("/").rpartition("/")[2]:
                self.add("write", _member(word, name, source), tree=self._copies_trees)
                self.deeds[-1] = self.deeds[-1]._replace(member=alone)
        everything = whole or self.row.has("trees") or self._copies_trees
        self.add("write", word, tree=everything, manner="filled" if whole or _all_of(sources) else "")

    def _changes_rights(self) -> None:
        """Say of all written files that only their rights change."""
        for at, deed in enumerate(self.deeds):
            if deed.kind == "write":
                self.deeds[at] = deed._replace(manner="rights")

    @property
    def _copies_trees(self) -> bool:
        return self.renamed.get("r") == "R" or any(each.role in "mz" for each in self.operands)

    # ---- from the row to the deeds

    def read(self) -> list[Deed]:
        """Return the deeds."""
        if self.options.flags:
            for change in self.row.changes:
                if any(map(self._is_given, change.names)):
                    for each in change.changes:
                        self._change(each)
            self._values()
        own = len(self.deeds)
        done = [self.functions[value](self) for name, value in self.facts if name == "do"] if self.facts else ()
        if not any(done):
            self._operands()
        if self.facts:
            self._facts()
        if self.elsewhere is not None or self.directory is not None:
            self._inside(own)
        if self.keeps_all:
            self.deeds = [deed for deed in self.deeds if deed.kind in _HARMLESS]
            self.known = True
        return self.deeds

    def _is_given(self, name: str) -> bool:
        if "=" not in name:
            return name in self.options.flags or (name[:1] == "-" and self.has(name))
        plain, _, value = name.partition("=")
        return self.has(plain) and value in self.values(plain)

    def _change(self, change: str) -> None:
        if change == "!":
            self.keeps_all = True
        elif change == "^":
            self.keeps_paths = True
        elif change == "-1":
            self.operands = self.operands[1:]
        elif change == ".":
            self.operands = [each._replace(default=".") if each.number == "*" else each for each in self.operands]
        elif change[0] == "~":
            self.renamed[change[1]] = change[2]
        elif change[0] == "@":
            name, _, value = change[1:].partition("=")
            self.facts.append((name, value))
            self.known = self.known and name != "opaque"
        else:
            self.operands = [operand(word) for word in change.split("+")]

    def _values(self) -> None:
        for name, words in self.options.values.items():
            role = self.row.roles.get(name, "_")
            for word in words if role != "_" else ():
                if role == "/":
                    self.directory = word if self.directory is None else inside(self.directory, word)
                elif role == "C":
                    self.elsewhere = word
                else:
                    self._play(role, word)

    def _operands(self) -> None:
        """Give each operand its role: those before the `*` from the front, those behind it from the back."""
        given = [word for word in self.given if not self._is_pair(word)] if self.row.assigns else self.given
        many = next((at for at, each in enumerate(self.operands) if each.number == "*"), None)
        if many is None:
            parts = [(each, given[at : at + 1]) for at, each in enumerate(self.operands)]
        else:
            back = self.operands[many + 1 :]
            end = max(len(given) - len(back), min(many, len(given)))
            parts = [(each, given[at : at + 1]) for at, each in enumerate(self.operands[:many])]
            parts += [(self.operands[many], given[many:end])]
            parts += [(each, given[end + at : end + at + 1]) for at, each in enumerate(back)]
        before: list[Word] = []
        for each, words in parts:
            if each.role != "_":
                self._part(each, words, before)
            before += words

    def _part(self, part: Operand, words: list[Word], before: list[Word]) -> None:
        if not words and part.default and not (self.row.has("stdin") and self.stdin is not EMPTY):
            words = [Word(part.default)]
        if part.role == "t" and not words and before:
            words = [Word(".")]
        for word in words:
            if part.role == "t":
                self.target(word, before)
            elif part.role in "YZ":
                self._copied_to(word, before, remote=part.role == "Y")
            else:
                self._play(part.role, word)

    def _is_pair(self, word: Word) -> bool:
        key, equals, value = word.partition("=")
        role = self.row.assigns.get(key) if equals else None
        if role is not None:
            self._play(role, marked(value, word))
        return role is not None

    def _play(self, role: str, word: Word) -> None:
        """Add the deeds of a word in its role."""
        role = self.renamed.get(role, role)
        if deeds := _OF_ROLE.get(role):
            for kind, tree in deeds:
                if role in "aqu":
                    self._stays.add(len(self.deeds))
                self.add(kind, word, tree=tree, manner=_MANNERS.get(role, ""))
        elif role == "t":
            self.target(word, self.given)
        elif role == "h":
            self.gets(word)
        elif role == "H":
            self.sends(word)
        elif role == "@":
            self._text(word)
        elif role in "yz":
            self._copied(word, remote=role == "y")
        elif role == "i":
            is_path = word.startswith((".", "/", "~", "file:")) or word.endswith(
                (".whl", ".tgz", ".tar.gz", ".deb", ".rpm")
            )
            self.add("install", word)
            if is_path:
                self.add("read", word.removeprefix("file:"), tree=True)

    def _text(self, word: Word) -> None:
        """Take note of a text that is sent; `@file`, `name=@file` and `name=<file` are files."""
        head, at, path = word.partition("@")
        if not at or (head and not head.endswith("=")):
            head, at, path = word.partition("=<")
        if at and path:
            path = path.partition(";")[0]
            self.add("read", marked(path, word))
            self.sent.append(path)
        else:
            self.sent.append("a text")

    def _copied(self, word: Word, *, remote: bool) -> None:
        if not _is_remote(word):
            self.add("read", word, tree=True)
        elif remote:
            self.add("in", host_of(word), what=str(word))

    def _copied_to(self, word: Word, sources: Sequence[Word], *, remote: bool) -> None:
        if not _is_remote(word):
            for source in sources:
                name = (source.rpartition(":")[2] if _is_remote(source) else source).rstrip("/").rpartition("/")[2]
                if name and not source.endswith("/"):
                    self.add("write", _member(word, name, source), tree=True)
            self.add("write", word, tree=True, manner="filled" if _all_of(sources) else "")
        elif remote:
            self.add("out", host_of(word), what=", ".join(sources) or "files")

    def _facts(self) -> None:
        for name, value in self.facts:
            if name in _FACTS:
                if not self.keeps_paths:
                    tree = value.endswith("/") and len(value) > 1
                    path = Word("." if value == "./" else value.rstrip("/") if tree else value)
                    path.pattern = "*" in value
                    if "**" in value:
                        path = marked(value.replace("**", UNKNOWN + "*"), path)
                    for kind, _ in _OF_ROLE[_FACTS[name]]:
                        self.add(kind, path, tree=tree, manner="" if path in (".", "*") else "own")
            elif name == "rights":
                self._changes_rights()
            elif name in ("in", "out"):
                self.add("in" if name == "in" else "out", value or UNKNOWN, what=", ".join(self.sent) or self.name)
            elif name == "install" and not any(deed.kind == "install" for deed in self.deeds):
                self.add("install", "")
            elif name == "kill" and not any(deed.kind == "kill" for deed in self.deeds):
                self.add("kill", self.name)
            elif name == "root":
                self.add("gain", "root")
            elif name == "lose":
                self.add("discard", value.replace("-", " "))

    def _inside(self, own: int) -> None:
        """Put the paths into the directory that the program changes to; `own`: the number of deeds of option values."""
        for at, deed in enumerate(self.deeds):
            if deed.kind in _PATHS:
                word = deed.word
                if self.elsewhere is not None and at >= own and at not in self._stays:
                    word = inside(self.elsewhere, word)
                if self.directory is not None:
                    word = inside(self.directory, word)
                self.deeds[at] = deed._replace(word=word)


def _all_of(sources: Sequence[Word]) -> bool:
    """Return whether all files of a directory are among the sources, each with its own name."""
    return any(source.endswith(("/", "/.", "/*")) or source in (".", "*") for source in sources)


def _without_pairs(words: list[Word], row: Row) -> tuple[list[Word], list[tuple[str, Word]]]:
    """Return the words without the options that take two values, and each of these with its second value."""
    if not row.pairs:
        return words, []
    kept: list[Word] = []
    pairs: list[tuple[str, Word]] = []
    at = 0
    while at < len(words):
        if words[at] not in row.pairs:
            kept.append(words[at])
            at += 1
            continue
        pairs += [(str(words[at]), word) for word in words[at + 2 : at + 3]]
        at += 3
    return kept, pairs


def inside(directory: Word, word: Word) -> Word:
    """Return a word as a path in a directory."""
    if word.startswith(("/", "~", UNKNOWN)) or word in ("", "-"):
        return word
    if word == ".":
        return directory
    joined = Word(f"{directory.rstrip('/')}/{word}")
    joined.taint, joined.unsure = word.taint | directory.taint, word.unsure or directory.unsure
    joined.pattern = word.pattern or directory.pattern
    return joined


def _member(directory: Word, name: str, source: Word) -> Word:
    """Return the path that a source gets in a directory."""
    joined = marked(f"{directory.rstrip('/')}/{name}", source)
    joined.unsure = source.unsure or directory.unsure
    joined.pattern = source.pattern or directory.pattern
    return joined


def _is_remote(word: Word) -> bool:
    """Return whether a word of `scp` or `docker cp` names a file of another machine."""
    head, colon, _ = word.partition(":")
    return bool(colon and head) and "/" not in head


def is_here(word: str) -> bool:
    """Return whether a word names this machine, as a host or in a URL."""
    return _HERE.fullmatch(host_of(word)) is not None


def host_of(word: str) -> Word:
    """Return the host of a URL, of `user@host:path` or of `host:port`; `UNKNOWN` when it is not known."""
    scheme, found, _ = word.partition("://")
    if found and scheme.lower() in _SCHEMES:
        return Word(_SCHEMES[scheme.lower()])
    rest = word.partition("://")[2] if found else word
    place = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    host = place if place.startswith("[") else place.partition(":")[0]
    return Word(host.lower() or UNKNOWN)
