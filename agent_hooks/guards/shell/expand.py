"""Expansion of words: quotes, escapes, tildes, variables, substitutions, and splitting into fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.braces import braces, extended
from agent_hooks.guards.shell.origins import SECRET, names_secret
from agent_hooks.guards.shell.scan import (
    backtick_end,
    balanced,
    dollar_end,
    string_end,
    substitutions,
    unescape_backticks,
)
from agent_hooks.guards.shell.words import NOTHING, Text, Variables, Word, decode_ansi

_PLAIN = lazy_pattern(r"[\w./:@%+,=^-]*", re.ASCII)
_EXTENDED = lazy_pattern(r"[@?+*!]\(")
_COMMAND_LIKE = lazy_pattern(r"[a-z'\"\\]\s+[-\w'\"$\\/.]")
_NUMERIC = {
    "$",
    "?",
    "#",
    "RANDOM",
    "SRANDOM",
    "BASHPID",
    "PPID",
    "UID",
    "EUID",
    "SECONDS",
    "LINENO",
    "EPOCHSECONDS",
    "!",
}
_NAMED = lazy_pattern(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_PARAMETER = lazy_pattern(r"(!?)([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(\[[^]]*\])?(.*)", re.DOTALL)
Run = Callable[[str, bool], Text]
"""Takes the script of a substitution, and whether it is a `<(…)`; returns the text that the script prints."""


class Expander:
    """Expands words with the variables of one shell; `run` is called with the script of every substitution."""

    def __init__(self, variables: Variables, run: Run, home: str) -> None:
        self._variables = variables
        self._run = run
        self._home = home

    def words(self, raw: str) -> list[Word]:
        """Return the words, none or more, that one word as written becomes."""
        if _PLAIN.fullmatch(raw):
            return [Word(raw)]
        if "(" in raw and _EXTENDED.search(raw):
            raw = extended(raw)
        found: list[Word] = []
        for each in braces(raw) if "{" in raw else [raw]:
            # `{,}` expands to two empty texts, which are no words.
            if each:
                found += self._fields(each)
        return found

    def text(self, raw: str) -> Word:
        """Return one text that is not split, as in an assignment or behind a redirection."""
        if _PLAIN.fullmatch(raw):
            return Word(raw)
        fields = self._fields(raw, split=False)
        return fields[0] if fields else Word("")

    def document(self, body: str) -> Word:
        """Return the text of a here-document whose delimiter is not quoted."""
        if "$" not in body and "`" not in body and "\\" not in body:
            return Word(body)
        fields = self._fields('"' + body.replace('"', '\\"') + '"', split=False)
        return fields[0] if fields else Word("")

    # ---- one word

    def _fields(self, raw: str, *, split: bool = True) -> list[Word]:
        state = _Fields(self._ifs() if split else "")
        at = 0
        if raw[0] == "~" and (match := re.match(r"~(\+|-|[\w.-]*)(?=/|:|$)", raw)):
            state.add({"": self._home, "+": self._value("PWD").text or UNKNOWN}.get(match[1], f"/home/{match[1]}"))
            if match[1] == "root":
                state.replace("/root")
            at = match.end()
        while at < len(raw):
            char = raw[at]
            if char == "\\":
                if raw[at + 1 : at + 2] != "\n":
                    state.add(raw[at + 1 : at + 2])
                at += 2
            elif char == "'":
                end = raw.find("'", at + 1)
                end = len(raw) if end < 0 else end
                state.add(raw[at + 1 : end])
                at = end + 1
            elif char == '"':
                end = string_end(raw, at)
                self._quoted(raw[at + 1 : end - 1], state)
                at = end
            elif char == "`":
                end = backtick_end(raw, at)
                state.expand(self._run(unescape_backticks(raw[at + 1 : end - 1]), False))
                at = end
            elif char == "$":
                at = self._dollar(raw, at, state, quoted=False)
            elif char in "<>" and raw.startswith("(", at + 1):
                end = balanced(raw, at + 1)
                state.file(self._run(raw[at + 2 : end - 1], True), reads=char == "<")
                at = end
            else:
                if char in "*?[":
                    state.pattern = True
                state.plain(char)
                at += 1
        return state.end()

    def _quoted(self, raw: str, state: _Fields) -> None:
        state.add("")
        at = 0
        while at < len(raw):
            char = raw[at]
            if char == "\\":
                following = raw[at + 1 : at + 2]
                state.add(following if following in '$`"\\' else f"\\{following}" if following != "\n" else "")
                at += 2
            elif char == "`":
                end = backtick_end(raw, at)
                state.expand(self._run(unescape_backticks(raw[at + 1 : end - 1]), False), quoted=True)
                at = end
            elif char == "$":
                at = self._dollar(raw, at, state, quoted=True)
            else:
                end = at + 1
                while end < len(raw) and raw[end] not in "\\`$":
                    end += 1
                state.add(raw[at:end])
                at = end

    def _dollar(self, raw: str, at: int, state: _Fields, *, quoted: bool) -> int:
        following = raw[at + 1 : at + 2]
        if following == "'" and not quoted:
            end = dollar_end(raw, at)
            state.add(decode_ansi(raw[at + 2 : end - 1]))
            return end
        if following == '"' and not quoted:
            end = string_end(raw, at + 1)
            self._quoted(raw[at + 2 : end - 1], state)
            return end
        if following == "(":
            end = balanced(raw, at + 1)
            if raw.startswith("((", at + 1) and raw[end - 2] == ")":
                inner = raw[at + 3 : end - 2]
                self.run_all(inner)
                if _COMMAND_LIKE.search(inner):
                    # It may be a subshell in a substitution, not arithmetic.
                    self._run(inner, False)
                state.add("0")
            else:
                state.expand(self._run(raw[at + 2 : end - 1], False), quoted=quoted)
            return end
        if following == "{":
            end = dollar_end(raw, at)
            self._parameter(raw[at + 2 : end - 1], state, quoted=quoted)
            return end
        if match := _NAMED.match(raw, at + 1):
            self._parameter(match[0], state, quoted=quoted)
            return match.end()
        state.add("$")
        return at + 1

    # ---- variables

    def _ifs(self) -> str:
        value = self._variables.values.get("IFS")
        return " \t\n" if value is None or value.text is None else value.text

    def _value(self, name: str) -> Text:
        if name in _NUMERIC and name not in self._variables.values:
            return Text("0")
        return self._variables.values.get(name) or Text(None, SECRET if names_secret(name) else NOTHING)

    def _parameter(self, body: str, state: _Fields, *, quoted: bool) -> None:
        match = _PARAMETER.fullmatch(body)
        if match is None or (body[0] == "#" and len(body) > 1):
            state.add("0" if body[:1] == "#" else UNKNOWN)
            self.run_all(body)
            return
        indirect, name, index, rest = match.groups()
        self.run_all(index or "")
        if name in ("@", "*") or (index and index[1:-1] in ("@", "*")):
            values = self._variables.arrays.get("@" if name in "@*" else name)
            if values is not None and not rest and not indirect:
                state.array(values, quoted=quoted and (name == "@" or index == "[@]"))
                return
            self.run_all(rest)
            state.expand(Text(None), quoted=quoted)
            return
        if index and (items := self._variables.arrays.get(name)) is not None:
            number = index[1:-1]
            known = re.fullmatch("[0-9]{1,18}", number) is not None and int(number) < len(items)
            value = _element(items[int(number)]) if known else Text(None, _taint_in(items))
        elif name in self._variables.arrays and not index:
            items = self._variables.arrays[name]
            value = _element(items[0]) if items else Text("")
        else:
            value = self._value(name)
        if indirect:
            named = bool(value.text) and UNKNOWN not in (value.text or "")
            # After a file with secrets, any variable may hold one of them.
            value = self._value(value.text or "") if named else Text(None, self._variables.sourced)
        if rest:
            value = self._modified(name, value, rest)
        state.expand(value, quoted=quoted)

    def _modified(self, name: str, value: Text, rest: str) -> Text:
        """Return the value of `${name…}`; `rest`: the text behind the name."""
        if match := re.match(r":?([-=+?])", rest):
            word = (
                self.text(f'"{rest[match.end() :]}"')
                if '"' not in rest and "'" not in rest
                else self.text(rest[match.end() :])
            )
            if match[1] == "+":
                return Text(str(word), word.taint, unsure=value.text is None)
            if value.text or (value.text == "" and rest[0] != ":"):
                return value
            default = Text(str(word), word.taint, unsure=value.text is None)
            if match[1] == "=":
                self._variables.values[name] = default
            return Text(None) if match[1] == "?" else default
        self.run_all(rest)
        text = value.text
        if text is None or UNKNOWN in text:
            return Text(None, value.taint)
        return Text(_cut(text, rest, self), value.taint, unsure=value.unsure)

    def run_all(self, rest: str) -> None:
        """Run the substitutions in a part of a word whose text is not needed."""
        for script in substitutions(rest):
            self._run(script, False)


def _cut(text: str, rest: str, expander: Expander) -> str | None:
    """Apply `${x%…}`, `${x#…}`, `${x/…/…}`, `${x:1:2}` or `${x^^}` to a known text; `None` for another form."""
    if match := re.fullmatch(r"(%%?|##?)(.*)", rest, re.DOTALL):
        pattern = str(expander.text(match[2])) if match[2] else ""
        lengths = range(len(text) + 1) if len(match[1]) == 1 else range(len(text), -1, -1)
        for length in lengths:
            at = len(text) - length
            piece = text[at:] if match[1][0] == "%" else text[:length]
            if fnmatchcase(piece, pattern):
                return text[:at] if match[1][0] == "%" else text[length:]
        return text
    if match := re.fullmatch(r"//?([^/]+)(?:/(.*))?", rest, re.DOTALL):
        old, new = str(expander.text(match[1])), str(expander.text(match[2] or '""'))
        return text.replace(old, new, -1 if rest.startswith("//") else 1)
    if match := re.fullmatch(r":\s*(-?\d+)(?::\s*(-?\d+))?", rest):
        start = int(match[1])
        end = None if match[2] is None else start + int(match[2]) if int(match[2]) >= 0 else int(match[2])
        return text[start:end]
    if rest in ("^^", ",,", "^", ","):
        return {
            "^^": text.upper(),
            ",,": text.lower(),
            "^": text[:1].upper() + text[1:],
            ",": text[:1].lower() + text[1:],
        }[rest]
    return text if rest in ("@Q", "@E", "@P") else None


class _Fields:
    """Collects the fields of one word."""

    def __init__(self, ifs: str) -> None:
        self._ifs = ifs
        self._words: list[Word] = []
        self._open: list[str] | None = None
        self._taint = NOTHING
        self._unsure = False
        self.pattern = False

    def add(self, text: str) -> None:
        """Add text that is not split."""
        if self._open is None:
            self._open = []
        self._open.append(text)

    plain = add

    def replace(self, text: str) -> None:
        """Replace the field so far with `text`."""
        self._open = [text]

    def file(self, content: Text, *, reads: bool) -> None:
        """Add the file name of a process substitution, with the text that can be read from it in the name."""
        self._taint |= content.taint | {"process"}
        self.add(f"/dev/fd/{content.text or UNKNOWN}" if reads else "/dev/fd/0")

    def array(self, values: list[str], *, quoted: bool) -> None:
        """Add the elements of an array: quoted, one field each; else split again."""
        for value in values:
            # An element may keep the marks of the word that it was made from.
            self._taint |= value.taint if isinstance(value, Word) else NOTHING
        if not quoted:
            self.expand(Text(" ".join(values)))
            return
        for number, value in enumerate(values):
            if number:
                self._close()
            self.add(value)

    def expand(self, value: Text, *, quoted: bool = False) -> None:
        """Add the value of an expansion; it is split unless quoted."""
        self._taint |= value.taint
        self._unsure |= value.unsure
        text = UNKNOWN if value.text is None else value.text
        if quoted or not self._ifs:
            self.add(text)
            return
        if any(char in text for char in "*?["):
            self.pattern = True
        start = 0
        for at, char in enumerate(text):
            if char in self._ifs:
                if at > start:
                    self.add(text[start:at])
                self._close()
                start = at + 1
        if start < len(text):
            self.add(text[start:])

    def _close(self) -> None:
        if self._open is None:
            return
        word = Word("".join(self._open))
        if self._taint:
            word.taint = self._taint
        if self._unsure:
            word.unsure = True
        if self.pattern:
            word.pattern = True
        self._words.append(word)
        self._open = None

    def end(self) -> list[Word]:
        """Return all fields."""
        self._close()
        return self._words


def _element(item: str) -> Text:
    """Return an element of an array; a word in it keeps its taint."""
    return Text(item, _taint_in([item]))


def _taint_in(items: list[str]) -> frozenset[str]:
    return NOTHING.union(*(item.taint for item in items if isinstance(item, Word)))
