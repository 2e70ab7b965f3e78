"""The output of harmless programs, as far as it can be known, so that `echo … | base64 -d | sh` can be followed."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.listings import EVERY, keeps_every, lists_here
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import NOTHING, TYPED, Text, Word, decode_ansi

DECODED = frozenset({"decoded"})
DOWNLOADED = frozenset({"download"})
_FILTERS = {"cat", "tee", "head", "tail", "sort", "uniq", "nl", "pv", "sponge", "less", "more", "column", "fold", "tac"}

# Programs that print the text that they read, at least changed.
_PASSING = _FILTERS | {"sed", "awk", "gawk", "mawk", "grep", "egrep", "cut", "tr", "rev", "base64", "xxd", "line", "jq"}


def taint_of(argv: list[Word]) -> frozenset[str]:
    """Return the taint of all words of a command together."""
    taint = NOTHING
    for word in argv:
        taint |= word.taint
    return taint


def printed(name: str, argv: list[Word], stdin: Text) -> Text:
    """Return the text that a command prints; for most commands it is unknown, but has its taint."""
    taint = (stdin.taint if name in _PASSING else stdin.taint - TYPED) | taint_of(argv)
    if taint >= EVERY and not keeps_every(name, argv):
        taint -= EVERY
    if name == "ls" and lists_here(argv):
        taint |= EVERY
    if name in _OUTPUTS:
        text = _OUTPUTS[name](argv, stdin)
        return Text(text, taint | (DECODED if _decodes(name, argv) else NOTHING))
    if name in _FILTERS and all(word.startswith("-") for word in argv[1:]):
        return Text(stdin.text, taint)
    if name == "tee":
        return Text(stdin.text, taint)
    return Text(None, (taint - {"file"}) | (DECODED if _decodes(name, argv) else NOTHING))


def _decodes(name: str, argv: list[Word]) -> bool:
    if name in ("base64", "base32", "gbase64", "basenc"):
        return ParsedOptions(argv, "wi").has("d", "D", "--decode")
    if name == "openssl":
        return "-d" in argv and any(word.lstrip("-") in ("base64", "enc", "a") for word in argv[1:])
    if name == "xxd":
        return any(word.startswith("-") and "r" in word for word in argv[1:])
    return name in ("rev", "uudecode", "tr", "rot13", "ascii2uni")


def _echo(argv: list[Word], stdin: Text) -> str | None:
    words: list[str] = list(argv[1:])
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes = "e" in words.pop(0)
    text = " ".join(words) + "\n"
    return decode_ansi(text) if escapes else text


def _printf(argv: list[Word], stdin: Text) -> str | None:
    words = [str(word) for word in argv[1:]]
    if len(words) > 1 and words[0] == "-v":
        return ""
    if words and words[0] == "--":
        words.pop(0)
    if not words:
        return ""
    layout, rest = decode_ansi(words[0]), words[1:]
    printed: list[str] = []
    for _ in range(len(rest) + 1):

        def one(match: re.Match[str]) -> str:
            if match[0] == "%%":
                return "%"
            value = rest.pop(0) if rest else ""
            return decode_ansi(value) if match[0][-1] == "b" else value

        printed.append(re.sub(r"%%|%[-+ #0]*[\d*]*(?:\.\d+)?[a-zA-Z]", one, layout))
        if not rest or "%" not in layout:
            break
    return "".join(printed)


def _base64(argv: list[Word], stdin: Text) -> str | None:
    if not _decodes("base64", argv):
        return None
    return _decode64(stdin.text) if stdin.text is not None and UNKNOWN not in stdin.text else None


def _decode64(text: str) -> str | None:
    try:
        return base64.b64decode(re.sub(r"\s", "", text) + "==").decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def _openssl(argv: list[Word], stdin: Text) -> str | None:
    return _decode64(stdin.text) if _decodes("openssl", argv) and stdin.text else None


def _xxd(argv: list[Word], stdin: Text) -> str | None:
    if not _decodes("xxd", argv) or stdin.text is None:
        return None
    try:
        return bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", stdin.text)).decode("utf-8", "replace")
    except ValueError:
        return None


def _rev(argv: list[Word], stdin: Text) -> str | None:
    return None if stdin.text is None else "\n".join(line[::-1] for line in stdin.text.split("\n"))


def _tr(argv: list[Word], stdin: Text) -> str | None:
    sets = [str(word) for word in argv[1:] if not word.startswith("-")]
    # Only `tr SET1 SET2` is known.
    if stdin.text is None or len(sets) != 2:
        return None
    old, new = (_tr_set(each) for each in sets)
    if "".join(old[:26]).lower() == "abcdefghijklmnopqrstuvwxyz" and new[0] in "nN":
        return codecs.encode(stdin.text, "rot13")
    table = {ord(char): new[min(at, len(new) - 1)] for at, char in enumerate(old)} if new else {}
    return stdin.text.translate(table)


def _tr_set(text: str) -> str:
    text = decode_ansi(text)
    return re.sub(r"(.)-(.)", lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1))), text)


def _which(argv: list[Word], stdin: Text) -> str | None:
    names = [word for word in argv[1:] if not word.startswith("-")]
    return f"{names[0]}\n" if len(names) == 1 else None


def _ls(argv: list[Word], stdin: Text) -> str | None:
    """Return the operands of `ls`, when all of them are globs for files."""
    names = [word for word in argv[1:] if not word.startswith("-")]
    return "".join(f"{name}\n" for name in names) if names and all(name.pattern for name in names) else None


def _mktemp(argv: list[Word], stdin: Text) -> str | None:
    operands = ParsedOptions(argv, "p", ("--suffix", "--tmpdir")).operands
    if operands and "/" in operands[0]:
        return str(operands[0])
    return f"{TEMP_FILE}\n"


# Stands for the file that `mktemp` will make.
TEMP_FILE = "/tmp/mktemp.agent-hooks"  # noqa: S108  # never opened
_OUTPUTS: dict[str, Callable[[list[Word], Text], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "base64": _base64,
    "gbase64": _base64,
    "openssl": _openssl,
    "xxd": _xxd,
    "rev": _rev,
    "tr": _tr,
    "mktemp": _mktemp,
    "which": _which,
    "ls": _ls,
}
