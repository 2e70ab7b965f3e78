"""A program's arguments as GNU programs read them: permuted, clustered, abbreviated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent_hooks.guards.sensitive import LONGEST_PATH
from agent_hooks.guards.shell.words import Word, marked

# Letters that an abbreviated long option must have; a shorter one, such as `--f`, may stand for several.
_SHORTEST = 3
TAR_VALUES = "fCbTXKNVHILgF"
"""The letters of options of tar that take a value."""
# A short option with a value that could name such a file.
_SHORTEST_VALUE = 5


class ParsedOptions:
    """The options and operands of one command.

    `with_value`: letters of short options that take a value; `long_with_value`: long options that take a value as the
    next word; `stop_early`: the first operand ends the options, as in `sudo ls -l`; `single_dash`: long options begin
    with one dash; `optional`: letters whose value, if there is one, is the rest of the word, as in `sed -i.bak`; `known`:
    long options without a value, so that others can be told apart when they are abbreviated.
    """

    def __init__(
        self,
        argv: Sequence[Word],
        with_value: str = "",
        long_with_value: Sequence[str] = (),
        *,
        stop_early: bool = False,
        single_dash: bool = False,
        optional: str = "",
        known: Sequence[str] | None = None,
    ) -> None:
        self._optional = optional
        self.flags: list[str] = []
        self.values: dict[str, list[Word]] = {}
        self.operands: list[Word] = []
        at = 1
        while at < len(argv):
            word = argv[at]
            at += 1
            if word == "--":
                self.operands += argv[at:]
                break
            if len(word) < 2 or word[0] != "-":
                if stop_early:
                    self.operands += argv[at - 1 :]
                    break
                self.operands.append(word)
            elif word[1] == "-" or single_dash:
                name, equals, value = word.partition("=")
                if single_dash and word[1] != "-":
                    name = f"-{name}"
                elif known is not None and name not in long_with_value and name not in known:
                    name = _whole(name, [*long_with_value, *known])
                self.flags.append(name)
                if equals:
                    self._value(name, value, word)
                elif at < len(argv) and (
                    name in long_with_value
                    or (len(name) > _SHORTEST + 3 and any(each.startswith(name) for each in long_with_value))
                ):
                    self._value(name, argv[at], argv[at])
                    at += 1
            else:
                at = self._cluster(word, argv, at, with_value)

    def _cluster(self, word: Word, argv: Sequence[Word], at: int, with_value: str) -> int:
        for index, letter in enumerate(word[1:], 1):
            self.flags.append(letter)
            if letter in self._optional:
                if rest := word[index + 1 :]:
                    self._value(letter, rest, word)
                break
            if letter in with_value:
                rest = word[index + 1 :]
                if rest:
                    self._value(letter, rest, word)
                elif at < len(argv):
                    self._value(letter, argv[at], argv[at])
                    at += 1
                break
        return at

    def _value(self, name: str, text: str, origin: Word) -> None:
        self.values.setdefault(name, []).append(marked(text, origin))

    def has(self, *names: str) -> bool:
        """Return whether one of the options is given; `names`: letters, or long names with their two dashes.

        A long option may be given abbreviated.
        """
        for name in names:
            if name in self.flags:
                return True
            if name.startswith("--"):
                for flag in self.flags:
                    if name.startswith(flag) and len(flag) >= 2 + _SHORTEST:
                        return True
        return False

    def value(self, *names: str) -> list[Word]:
        """Return the values of these options."""
        found = [word for name in names for word in self.values.get(name, ())]
        if any(len(name) > 1 for name in names):
            for given, words in self.values.items():
                short = len(given) > _SHORTEST + 3 and given not in names
                if short and any(name.startswith(given) for name in names):
                    found += words
        return found


def _whole(name: str, longs: Sequence[str]) -> str:
    """Return the long option that a name abbreviates, or the name if that may be several."""
    found = [each for each in longs if each.startswith(name)] if len(name) >= 2 + _SHORTEST else []
    return found[0] if len(found) == 1 else name


def spelled_out(argv: Sequence[Word], with_value: str) -> list[Word]:
    """Return the words of `tar` with the letters of the old style as options, each before its value."""
    if len(argv) < 2 or argv[1][:1] == "-":
        return list(argv)
    # The values of the letters come after them, in their order.
    words, rest = [argv[0]], list(argv[2:])
    for letter in argv[1]:
        words.append(Word(f"-{letter}"))
        if letter in with_value and rest:
            words.append(rest.pop(0))
    return words + rest


def named_files(words: Iterable[Word]) -> Iterator[Word]:
    """Yield the words that may name files: operands, and the values of options and assignments."""
    for word in words:
        if not word or len(word) > LONGEST_PATH or "\n" in word:
            continue
        if not word.startswith("-"):
            yield word
        for mark in "=:,":
            before, found, value = word.partition(mark)
            if found and value and "/" not in before.lstrip("-"):
                yield marked(value, word)
        if word[:1] == "-" and word[1:2] not in ("-", "") and len(word) > _SHORTEST_VALUE:
            # The value of a short option, as in `-o.agent`.
            yield marked(word[2:], word)
