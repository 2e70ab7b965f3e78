"""Globs as in `.gitignore`, compared with paths of which a part may be unknown.

A glob and a path with wildcards are both read as a list of `Step`s.  `meet` follows the two lists at the same time and
returns whether one text fits both, so `**` may be `uv.lock`, and `out-**.log` cannot.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# Characters of a class, and steps of a path; beyond them, a path may be any other.
_MOST_RANGE = 1024
_MOST_STEPS = 4096


class Step(NamedTuple):
    """The characters that may come next.

    `chars`: the characters, or with `negated` those that may not come; `loop`: any number of them may come; `skip`: the
    number of steps that may be left out from here.
    """

    chars: frozenset[str]
    negated: bool = False
    loop: bool = False
    skip: int = 0


Steps = tuple[Step, ...]
_SLASH = Step(frozenset("/"))
_ONE = Step(frozenset("/"), negated=True)
# In a shell, a glob matches no dot at the beginning of a name.
_FIRST = Step(frozenset("/."), negated=True)
_SOME = Step(frozenset("/"), negated=True, loop=True, skip=1)
_ALL = Step(frozenset(), negated=True, loop=True, skip=1)
_INSIDE: Steps = (_SLASH, _ALL)
_HERE_OR_INSIDE: Steps = (Step(frozenset("/"), skip=2), _ALL)
# Any number of directories, each with its slash.
_DIRECTORIES: Steps = (Step(frozenset(), negated=True, skip=3), _ALL, _SLASH)
# Unknown texts behind the beginning of a name, and between its beginning and its end.
_BEHIND, _BETWEEN = re.compile(r"(?<=[^/*])\*\*+"), re.compile(r"(?<=[^/*])\*\*+(?=[^/*])")
# A name with an ending is that of a file.  An unknown path may lie inside of any other name: `> $F.log` may write
# `node_modules/x.log`, and there is no directory `uv.lock`.
_FILE = re.compile(r"[^.].*\.(?!d$|git$)[\w*?]{1,10}")


class Glob(NamedTuple):
    """A glob that is ready to be compared.

    `steps`: up to the path itself; `whole`: also the paths inside of it; `pattern`: the same as a regular expression;
    `likely`: the steps for a path that is not known; `anywhere`: the glob counts at any depth.
    """

    steps: Steps
    whole: Steps
    likely: Steps
    pattern: re.Pattern[str]
    anywhere: bool


@lru_cache(512)
def glob_of(glob: str, root: str, home: str, *, folds: bool = False, below: bool = False) -> Glob:
    """Return a glob as in `.gitignore`, made absolute.

    Without a slash it counts at any depth, with one from `root`; `~` is `home`, and a leading slash the root of the file
    system.  A slash at the end means directories only.  `folds`: small and capital letters are the same; `below`: at any
    depth below `root`, for paths that lie there, so that the names of the directories above the project do not count.
    """
    text = glob.lower() if folds else glob
    inner = text.rstrip("/") or "/"
    top = ""
    anywhere = "/" not in inner or inner.startswith("**/")
    if inner == "~" or inner.startswith("~/"):
        top, inner, anywhere = home, inner[1:], False
    elif not inner.startswith("/") and not anywhere:
        top, inner = root, f"/{inner}"
    if anywhere:
        start = (root.lower() if folds else root).rstrip("/") if below else ""
        steps: Steps = (*_letters(start), _SLASH, *_DIRECTORIES, *_steps(inner.removeprefix("**/")))
    else:
        while "/./" in inner:
            inner = inner.replace("/./", "/")
        while (shorter := re.sub(r"/(?!\.\./)[^/]+/\.\.(?=/|$)", "", inner, count=1)) != inner:
            inner = shorter
        while top and inner.startswith("/../"):
            top, inner = top.rpartition("/")[0], inner[3:]
        top = (top.lower() if folds else top).rstrip("/")
        steps = (*_letters(top), *_steps(inner if inner != "/" or top else ""))
    whole = (*steps, *(_INSIDE if text.endswith("/") and len(text) > 1 else _HERE_OR_INSIDE))
    likely = steps if _FILE.fullmatch(inner.rpartition("/")[2]) and not text.endswith("/") else whole
    return Glob(steps, whole, likely, re.compile(_regex(whole), re.DOTALL), anywhere)


@lru_cache(1024)
def path_steps(
    path: str, *, tree: bool = False, folds: bool = False, literal: bool = False, named: bool = False
) -> Steps:
    """Return the steps of a path with wildcards; `tree`: and of all paths inside of it.

    `*`, `?` and classes are those of a shell, and `**` is any text; between the beginning and the end of a name, as in
    `out-**.log`, it holds no slash.  `literal`: the path has none of them; `named`: a `**` behind the beginning of a name
    stays within that name, whatever follows.
    """
    text = path.lower() if folds else path
    if not literal and "**" in text:
        text = (_BEHIND if named else _BETWEEN).sub("*", text)
    steps = _letters(text) if literal else _steps(text, posix=True)
    return (*steps, *_HERE_OR_INSIDE) if tree else steps


def meet(one: Steps, other: Steps) -> bool:
    """Return whether a text fits both."""
    if len(one) > _MOST_STEPS or len(other) > _MOST_STEPS:
        return True
    ends = len(one), len(other)
    waiting, seen = [(0, 0)], {(0, 0)}
    while waiting:
        at, there = waiting.pop()
        if (at, there) == ends:
            return True
        found = []
        left = one[at] if at < ends[0] else None
        right = other[there] if there < ends[1] else None
        if left is not None and left.skip:
            found.append((at + left.skip, there))
        if right is not None and right.skip:
            found.append((at, there + right.skip))
        if left is not None and right is not None and _share(left, right):
            found.append((at if left.loop else at + 1, there if right.loop else there + 1))
        for each in found:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return False


def _share(one: Step, other: Step) -> bool:
    """Return whether two steps have a character in common."""
    if one.negated:
        return other.negated or not other.chars <= one.chars
    return not one.chars <= other.chars if other.negated else not one.chars.isdisjoint(other.chars)


def _letters(text: str) -> Steps:
    return tuple(Step(frozenset(char)) for char in text)


def _steps(text: str, *, posix: bool = False) -> Steps:
    """Return the steps of a text with wildcards; `posix`: a path as a shell would expand it, else a glob."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        char, begins = text[at], at == 0 or text[at - 1] == "/"
        first = posix and begins
        if char == "*":
            end = at + len(text[at:]) - len(text[at:].lstrip("*"))
            steps += _stars(text, at, end, posix=posix, first=first)
            # `**/` has taken its slash.
            at = end + 1 if not posix and end - at > 1 and begins and text[end : end + 1] == "/" else end
            continue
        if char == "\\" and at + 1 < len(text):
            steps.append(Step(frozenset(text[at + 1])))
            at += 2
            continue
        if char == "[" and (found := _class(text, at)) is not None:
            step, at = found
            steps.append(step)
            continue
        steps.append((_FIRST if first else _ONE) if char == "?" else Step(frozenset(char)))
        at += 1
    return tuple(steps)


def _stars(text: str, at: int, end: int, *, posix: bool, first: bool) -> Steps:
    """Return the steps of the stars between two places of a text."""
    if posix:
        if end - at > 1:
            return (_ALL,)
        return (_FIRST._replace(skip=2), _SOME) if first else (_SOME,)
    if end - at > 1 and (at == 0 or text[at - 1] == "/") and text[end : end + 1] in ("/", ""):
        return _DIRECTORIES if text[end : end + 1] else (_ALL,)
    return (_SOME,)


def _class(text: str, at: int) -> tuple[Step, int] | None:
    """Return the step of a class in brackets and the place behind it; `None` when the bracket is a letter."""
    start = at + 2 if text[at + 1 : at + 2] in ("!", "^") else at + 1
    end = text.find("]", start + 1)
    if end < 0:
        return None
    negated, inner, chars = start > at + 1, text[start:end], set[str]()
    while inner:
        if len(inner) > 2 and inner[1] == "-":
            first, last = ord(inner[0]), ord(inner[2])
            if last - first > _MOST_RANGE:
                return _ONE, end + 1
            chars.update(map(chr, range(first, last + 1)))
            inner = inner[3:]
        else:
            chars.add(inner[0])
            inner = inner[1:]
    return Step(frozenset(chars | {"/"} if negated else chars - {"/"}), negated), end + 1


def _regex(steps: Steps) -> str:
    """Return steps as a regular expression."""
    parts: list[str] = []
    closes: list[int] = []
    for at, step in enumerate(steps):
        if step.skip > 1:
            parts.append("(?:")
            closes.append(at + step.skip)
        parts.append(_characters(step) + ("*" if step.loop else ""))
        while closes and closes[-1] == at + 1:
            closes.pop()
            parts.append(")?")
    return "".join(parts)


def _characters(step: Step) -> str:
    if not step.chars:
        return "." if step.negated else "(?!)"
    inside = "".join(map(re.escape, sorted(step.chars)))
    return f"[^{inside}]" if step.negated else re.escape(inside) if inside == "/" else f"[{inside}]"
