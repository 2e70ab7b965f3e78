"""Rules for programs that type into a terminal or draw on one, and so may answer a question about a call.

1. A program that types is a question, unless its target is a session of tmux, screen or zellij with a name of its own.
   Agents start their servers there, and the text that is typed is judged as a script.
2. A target that is a number, an id, the current pane or not known may be the terminal in which the user is asked.  This
   also applies to a number that the call makes a session of: with such a session there already, the call makes none.
3. A digit alone chooses an answer, so it is a question in each session.
4. Writes to a terminal are judged with the other writes (`Inspector.judge_write`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN, other_terminal
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word

_TYPES = "types into a terminal, and may answer a question about a call there"
_DRAWS = "changes a terminal, and may hide or resize a question about a call there"
# Commands of tmux that type, and commands that draw or resize.  Their names may be abbreviated.
_TMUX_TYPES = ("send-keys", "send-prefix", "paste-buffer", "pasteb", "pipe-pane", "pipep")
_TMUX_DRAWS_TEXT = (
    "display-popup popup display-menu menu command-prompt confirm-before resize-window resizew resize-pane resizep "
    "refresh-client"
)
_TMUX_DRAWS = tuple(_TMUX_DRAWS_TEXT.split())
# A variable with the pane or session that the call makes, and its use as a target.
_MADE = lazy_pattern(
    r"\b(\w+)=[\"']?\$\(\s*tmux\b[^()]*\b(?:new-session|new|new-window|neww|split-window|splitw)\b[^()]*\)"
    r"(?s:.*)-t\s*[\"']?\$\{?\1\b"
)
_VIRTUAL_SCREEN = lazy_pattern(r"(?i)\b(?:xvfb|xephyr|xvnc|weston|cage)\b|xvfb-run")
_OPTIONS = ("--help", "-h", "--version", "-V")


def _ask(command: Command, reason: str) -> None:
    command.interpreter.report("typed-commands", reason, command, undecidable=True)


def _call_text(command: Command) -> str:
    return str(command.interpreter.call.input.get("command") or command.interpreter.text)


def _is_own_session(command: Command, target: str, keys: list[Word]) -> bool:
    """Return whether a target is a session of the agent, as far as its name tells."""
    if re.fullmatch(r"\d\s*", "".join(word for word in keys if word not in ("Enter", "C-m"))):
        return False
    if UNKNOWN in target:
        return _MADE.search(_call_text(command)) is not None
    return re.fullmatch(r"=?[A-Za-z_][\w -]*(?:[:.].*)?", target) is not None


# ---- terminal multiplexers -------------------------------------------------------------------------------------------


def tmux(command: Command) -> None:
    """`tmux send-keys 2` types into the current pane, and `tmux display-popup` draws over it."""
    if command.interpreter.elsewhere:
        return
    options = ParsedOptions(command.argv, "cfLST", stop_early=True)
    if options.has("C"):
        # Control mode takes commands from stdin.
        _ask(command, _TYPES)
        return
    for words in _commands(command, options.operands):
        verb, own = words[0], ParsedOptions(words, "tbscNRxyeFwhTS")
        target = "".join(own.value("t")[-1:])
        types = _is_verb(verb, _TMUX_TYPES) and (not _is_verb(verb, ("pipe-pane", "pipep")) or own.has("I"))
        draws = _is_verb(verb, _TMUX_DRAWS)
        if (types or draws) and not _is_own_session(command, target, own.operands):
            _ask(command, _TYPES if types else _DRAWS)


def _commands(command: Command, words: list[Word]) -> Iterator[list[Word]]:
    """Yield the commands in the words of tmux, and in a file that this command line writes."""
    found: list[Word] = []
    for word in [*words, Word(";")]:
        if word.endswith(";") and found:
            found += [Word(word[:-1])] if len(word) > 1 else []
            if found[0] in ("source", "source-file") and (
                text := command.interpreter.content(found[-1], command.shell).text
            ):
                yield from (list(map(Word, line.split())) for line in text.splitlines() if line.strip())
            yield found
            found = []
        elif word != ";":
            found.append(word)


def _is_verb(word: str, verbs: tuple[str, ...]) -> bool:
    return any(verb == word or (len(word) > 3 and verb.startswith(word)) for verb in verbs)


def screen(command: Command) -> None:
    """`screen -X stuff 2` types into the current session."""
    options = ParsedOptions(command.argv, "SpcehsTt")
    at = next((at for at, word in enumerate(command.argv) if re.fullmatch(r"-\w*X", word)), None)
    verbs = command.argv[at + 1 :] if at is not None else []
    if verbs[:1] and verbs[0] in ("stuff", "paste", "process", "exec", "eval", "width", "height"):
        target = "".join(options.value("S")[-1:])
        if not command.interpreter.elsewhere and not _is_own_session(command, target, verbs[1:]):
            _ask(command, _TYPES)


def zellij(command: Command) -> None:
    """`zellij action write-chars 2` types into the current pane."""
    words = command.argv[1:]
    options = ParsedOptions(command.argv, "s", ("--session",))
    types = any(word in ("write", "write-chars", "paste") for word in words)
    if ({"action", "ac"} & {*words} and types) and not _is_own_session(
        command, "".join(options.value("s", "--session")[-1:]), words[-1:]
    ):
        _ask(command, _TYPES)


def emulator(command: Command) -> None:
    """`kitty @ send-text`, `wezterm cli send-text` and `dtach -p` type into a window."""
    if {"send-text", "send-key", "-p" if command.name == "dtach" else ""}.intersection(command.argv[1:]):
        _ask(command, _TYPES)


# ---- the desktop -----------------------------------------------------------------------------------------------------


def desktop(command: Command) -> None:
    """`xdotool key 2` types into the window that has the focus. On a virtual screen that is a test."""
    words = {*command.argv[1:]}
    typing = {"key", "keydown", "keyup", "type", "click", "mousedown", "mouseup"}
    if command.name in ("xdotool", "ydotool") and not words & typing:
        return
    if not words.intersection(_OPTIONS) and not _VIRTUAL_SCREEN.search(_call_text(command)):
        _ask(command, _TYPES)


def code(command: Command) -> None:
    """`osascript -e '… keystroke "2"'` and code with `TIOCSTI` type into a terminal."""
    texts = [*command.argv[1:], command.stdin.text or ""]
    texts += [
        file.text for word in command.argv[1:] if (file := command.shell.files.get(command.path(word))) and file.text
    ]
    pattern = _KEYSTROKE if command.name == "osascript" else _INJECTS
    if any(pattern.search(text) for text in texts):
        _ask(command, _TYPES)


_KEYSTROKE = lazy_pattern(r"(?i)\bkeystroke\b|\bkey code\b|\bwrite text\b|\bdo script\b.*\bin\b")
_INJECTS = lazy_pattern(r"\bTIOCSTI\b|(?s:\bioctl\b.*\b(?:0x5412|21522|0x80017472)\b)")


# ---- drawing ---------------------------------------------------------------------------------------------------------


def stty(command: Command) -> None:
    """`stty -F /dev/pts/3 rows 500` changes another terminal."""
    options = ParsedOptions(command.argv, "F", ("--file",))
    line = command.interpreter.line
    named = [
        *options.value("F", "--file"),
        *(word for operator, word in (line.redirects if line else ()) if "<" in operator),
    ]
    changes = any(word not in ("size", "speed") for word in options.operands) or options.has("g")
    if changes and any(other_terminal(command.path(word)) for word in named):
        _ask(command, _DRAWS)


def draws(command: Command) -> None:
    """`wall`, `write` and `setterm` draw on terminals."""
    if not {*command.argv[1:]}.intersection(_OPTIONS):
        _ask(command, _DRAWS)


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("tmux byobu", tmux),
    "screen": (screen,),
    "zellij": (zellij,),
    **rules_of("kitten wezterm dtach", emulator),
    **rules_of("xdotool wtype ydotool dotool xte xvkbd cliclick", desktop),
    "stty": (stty,),
    **rules_of("wall write setterm", draws),
}
# `kitty` carries a command too.
CARRIERS: dict[str, Rule] = {"kitty": emulator}
