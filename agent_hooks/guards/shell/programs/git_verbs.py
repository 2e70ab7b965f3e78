"""The functions of git's rows: verbs whose words name a branch, a file or a remote, as it comes."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.programs.reading import Function, Manner, Reading, inside
from agent_hooks.guards.shell.words import Word, marked

# A word of `git checkout` that can be no branch.
_PATH = lazy_pattern(r"\.{1,2}(?:/.*)?|:[/(].*|.*[*?\[].*|/.*|~.*|.*/", re.DOTALL)
_UNCOMMITTED = "uncommitted changes"


def _paths(reading: Reading) -> list[Word] | None:
    """Return the words behind `--`, `None` when there is no `--`."""
    words = reading.words
    return words[words.index(Word("--")) + 1 :] if "--" in words else None


def _magic(word: Word) -> Word:
    """Return a pathspec as a path; one that counts from the top of the working tree may be anywhere."""
    plain = re.sub(r"^:(?:/|\((?:top|glob|icase|literal)[^)]*\))", f"{UNKNOWN}/", word)
    # Git reads the wildcards of a quoted word too, and its `*` matches a slash.
    return marked(plain if word.startswith(":(literal") else plain.replace("*", UNKNOWN), word)


def _overwrites(reading: Reading, paths: list[Word], *, lost: bool = True) -> None:
    """Add files of the working tree that get another content."""
    for word in paths:
        plain = word == ":/" or word.startswith((":!", ":^"))
        reading.add("write", Word(".") if plain else _magic(word), tree=True)
    if lost:
        reading.add("discard", _UNCOMMITTED)


def checkout(reading: Reading) -> bool:
    """`git checkout -- f` and `git checkout tree f` overwrite files; `git checkout branch` may change all of them."""
    if reading.has("b", "B", "--orphan"):
        if len(reading.given) > 0:
            _overwrites(reading, [Word(".")], lost=False)
        return True
    paths = _paths(reading)
    if paths is None:
        paths = reading.given[1:]
        if reading.given and _PATH.fullmatch(reading.given[0]):
            paths = list(reading.given)
    if paths:
        _overwrites(reading, paths)
    elif reading.values("--pathspec-from-file"):
        _overwrites(reading, [Word(".")])
    elif reading.given:
        forced = reading.has("f", "--force")
        _overwrites(reading, [Word(".")], lost=forced)
        # A word without anything else may be a file.
        _overwrites(reading, reading.given[:1], lost=False)
    elif reading.has("f", "--force"):
        _overwrites(reading, [Word(".")])
    return True


def switch(reading: Reading) -> bool:
    """`git switch branch` may change all files; a new branch alone changes none."""
    makes = reading.has("c", "C", "--create", "--force-create", "--orphan")
    if reading.given or not makes or reading.has("--orphan"):
        _overwrites(reading, [Word(".")], lost=False)
    return True


def restore(reading: Reading) -> bool:
    """`git restore f` overwrites files; with `--staged` alone, it changes the index only."""
    if reading.has("S", "--staged") and not reading.has("W", "--worktree"):
        return True
    _overwrites(reading, reading.given or [Word(".")])
    return True


def pathspecs(reading: Reading) -> bool:
    """Read the operands as git does, wildcards in quotes too."""
    reading.given = [_magic(word) for word in reading.given]
    return False


def clean(reading: Reading) -> bool:
    """`git clean -f` deletes untracked files."""
    if reading.has("f", "--force", "i", "--interactive") or "x" in reading.options.flags:
        for word in reading.given or [Word(".")]:
            reading.add("delete", _magic(word), tree=True)
        reading.add("discard", "untracked files")
    return True


def stash(reading: Reading) -> bool:
    """`git stash` puts the last commit's files in the place of changed ones."""
    verb = reading.given[:1]
    paths = _paths(reading) or (reading.given[1:] if verb == ["push"] else [])
    if reading.has("S", "--staged") and not paths:
        return True
    _overwrites(reading, paths or [Word(".")], lost=False)
    if reading.has("u", "a", "--include-untracked", "--all"):
        for word in paths or [Word(".")]:
            # A rule of git knows which files of the whole project it moves.
            reading.add("delete", _magic(word), tree=True, manner="" if paths else "own")
    return True


def _place(reading: Reading, word: Word | None) -> None:
    """Add the transfer to a remote: its name tells no host, and a path is a repository on this machine."""
    if word is None or (word.known and re.fullmatch(r"[\w.-]+", word)):
        reading.add("out", UNKNOWN, what="commits")
    elif word.startswith(("/", "./", "../", "~", "file://")):
        reading.add("write", word.removeprefix("file://"), tree=True)
    else:
        reading.sends(word, "commits")


def push(reading: Reading) -> bool:
    """`git push` sends commits; a refspec with `+` overwrites, and one with `:` in front deletes."""
    given = reading.given
    named = reading.values("--repo")
    _place(reading, given[0] if given else named[0] if named else None)
    if any(spec.startswith("+") for spec in given[1:]):
        reading.add("discard", "published history")
    if any(re.match(r":.", spec) for spec in given[1:]):
        reading.add("discard", "published branches")
    return True


def fetch(reading: Reading) -> bool:
    """`git fetch` and `git pull` get commits."""
    for word in reading.given[:1] or [Word("")]:
        if not word or re.fullmatch(r"[\w.-]+", word):
            reading.add("in", UNKNOWN, what="commits")
        elif word.startswith(("/", "./", "../", "~")):
            reading.add("read", word, tree=True)
        else:
            reading.gets(word)
    return True


def clone(reading: Reading) -> bool:
    """`git clone url dir` gets a repository and writes a tree."""
    for word in reading.given[:1]:
        if word.startswith(("/", "./", "../", "~")):
            reading.add("read", word, tree=True)
        elif ":" in word or reading.name.startswith("gh"):
            reading.gets(word if ":" in word else Word("https://github.com"))
        else:
            reading.add("read", word, tree=True)
        name = re.sub(r"(?:\.git)?/*$", "", word).replace(":", "/").rpartition("/")[2]
        target = reading.given[1] if len(reading.given) > 1 else Word(name or UNKNOWN)
        reading.add("write", target, tree=True)
    return True


def shown(reading: Reading) -> bool:
    """`git show HEAD:.env` and `git diff .env` show the content of files."""
    brief = {
        "--stat",
        "--name-only",
        "--name-status",
        "--oneline",
        "--shortstat",
        "--numstat",
        "--summary",
        "-s",
        "--no-patch",
    }
    if reading.has("--no-index"):
        return False
    if brief.intersection(reading.words):
        return True
    paths = _paths(reading)
    for word in reading.given if paths is None else paths:
        _, colon, path = word.rpartition(":")
        if path and (colon or paths is not None or re.search(r"\w\.\w|/", word)) and ".." not in word:
            reading.add("read", marked(path, word), tree=True)
    if not reading.given and reading.name == "git diff":
        reading.add("read", ".", tree=True)
    return True


def config(reading: Reading) -> bool:
    """`git config name value` writes the settings of the repository, or with `--global` the person's."""
    words = [word for word in reading.given if word not in ("set", "unset", "get", "list", "edit")]
    verb = reading.given[0] if reading.given else ""
    writes = reading.has(
        "--unset", "--unset-all", "--add", "--replace-all", "--rename-section", "--remove-section", "e", "--edit"
    )
    writes = (
        writes or verb in ("set", "unset", "edit") or (len(words) > 1 and not str(verb).startswith(("get", "list")))
    )
    if reading.has("--get", "--get-all", "--get-regexp", "l", "--list", "--get-urlmatch") or not writes:
        return True
    files = reading.values("f", "--file")
    if not files:
        files = [
            Word(
                "~/.gitconfig"
                if reading.has("--global")
                else "/etc/gitconfig"
                if reading.has("--system")
                else ".git/config"
            )
        ]
    manner: Manner = "" if reading.has("f", "--file") else "own"
    for file in files:
        reading.add("read", file, manner=manner)
        reading.add("write", file, manner=manner)
    return True


def series(reading: Reading) -> bool:
    """`git format-patch` writes a file for each commit."""
    if not reading.has("--stdout", "--output", "o", "--output-directory"):
        word = Word(f"{UNKNOWN}.patch")
        reading.add("write", inside(Word("."), Word(f"0{UNKNOWN}.patch")) if word else word)
    return True


FUNCTIONS: dict[str, Function] = {
    each.__name__: each
    for each in (checkout, switch, restore, pathspecs, clean, stash, push, fetch, clone, shown, config, series)
}
