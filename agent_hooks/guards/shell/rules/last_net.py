"""The last net under the other rules: texts that name a file which controls the agent.

The other rules know what a program does with the words that are paths.  A path may be hidden from them: within a text
that some program takes as code, on stdin, in the environment, in the parts of a joined text.

1. Each constant text of a program is searched: its words, its stdin, its variables, and the files that it takes from
   this command line.  Quotes, escapes, braces and globs in a text are undone, and constants in code are joined.
2. If a text names such a file, the program has to be a proven reader: it takes texts as data (`DATA`), or each name in
   its code only reads.  Any other program is a question.
3. Messages and bodies name nothing, and neither do texts that are shown or are written to other files.
4. A program in the directory of such files has to be a proven reader too.
5. A substitution in a text that the shell may evaluate later is followed as if it ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from agent_hooks.guards.base import SELF_PROTECTION
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import LONGEST_PATH
from agent_hooks.guards.shell.braces import braces
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import CONTROLS, Inspector
from agent_hooks.guards.shell.names import SHELLS, is_language
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.programs import deeds_of
from agent_hooks.guards.shell.proven import AWKS, code_of, is_python, python_texts, reads_only
from agent_hooks.guards.shell.readers import DATA, MESSENGERS, READERS, TEXT_OPTIONS, TEXT_PROGRAMS
from agent_hooks.guards.shell.scan import substitutions
from agent_hooks.guards.shell.script import Unreadable
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.words import EMPTY, Word, decode_ansi

_QUOTES = lazy_pattern(r"['\"\\]")
_QUOTED = lazy_pattern(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")
_TOKEN = lazy_pattern(r"(?:\{[^\s{}'\"]*\}|[^\s'\"`<>|&;(),=:$])+")
_WILD = lazy_pattern(r"[*?\[{]")
# A glob that matches `.agent` by some of its letters.  `.*` alone is a part of many patterns.
_FOLDER = lazy_pattern(r"(?:^|/)\.(?:[^/]*\w[^/]*\w|[^/]*/(?:hooks|transf|settings|command|trust|records|unlock))")
# A word that is more than a path.
_EMBEDDED = lazy_pattern(r"[\s'\"`()<>|;&{}$\\]")
_MOST_TOKENS = 2000


# ---- texts -----------------------------------------------------------------------------------------------------------


def named(inspector: Inspector, shell: Shell, *texts: str) -> str:
    """Return the first part of the texts that names a file which controls the agent, empty for none."""
    for text in texts:
        if not mentions(inspector, text):
            continue
        for token in _tokens(text):
            if _is_likely(inspector, token) and inspector.controls(Word(token), shell):
                return token
    return ""


def mentions(inspector: Inspector, text: str) -> bool:
    """Return whether a text may name a file that controls the agent, quickly."""
    text = text.lower()
    # A generator takes twice the time.
    for name in inspector.control.names:
        if name in text:
            return True
    return ".a" in text and _WILD.search(text) is not None


@lru_cache(64)
def _is_near(names: tuple[str, ...], directory: str) -> bool:
    return any(name in directory.lower() for name in names)


def _tokens(text: str) -> Iterator[str]:
    for number, match in enumerate(_TOKEN.finditer(text)):
        token = match[0].rstrip(".!?") or match[0]
        if number >= _MOST_TOKENS or len(token) > LONGEST_PATH:
            continue
        try:
            yield from braces(token) if "{" in token and "}" in token else (token,)
        except Unreadable:
            yield token


def _is_likely(inspector: Inspector, token: str) -> bool:
    if _WILD.search(token):
        return bool(_FOLDER.search(token))
    return mentions(inspector, token)


def variants(text: str, *, code: bool = False) -> tuple[str, ...]:
    """Return a text, the same without quotes and escapes, and for code its constants joined."""
    found = [text]
    if "\\" in text:
        found.append(decode_ansi(text))
    if _QUOTES.search(text):
        found.append(_QUOTES.sub("", text))
    if "[" in text:
        found.append(re.sub(r"[][]", " ", text))
    if code and len(constants := [one or two for one, two in _QUOTED.findall(text)]) > 1:
        found += ["".join(constants), "/".join(constants)]
    return tuple(found)


# ---- programs --------------------------------------------------------------------------------------------------------


def judge(command: Command) -> None:
    """Ask about a program that gets a text which names a file that controls the agent, unless it only reads."""
    inspector, shell, name = command.interpreter, command.shell, command.name
    if inspector.elsewhere:
        return
    if (
        _is_near(inspector.control.names, shell.cwd)
        and inspector.control.stops_writing(shell.cwd)
        and not _stays_out(command)
    ):
        _ask(command, f"runs in a directory of files that control the agent, and may change them: {CONTROLS}", name)
    if name in _EVALUATING and (name != "printf" or "-v" in command.argv):
        for word in command.argv[1:]:
            if "$(" in word or "`" in word:
                evaluated(inspector, word, shell)
    if name in DATA:
        return
    texts = [
        text for text in _texts(command) if mentions(inspector, text) or "\\" in text or "'" in text or '"' in text
    ]
    if not texts:
        return
    code = (is_language(name) and not is_python(name)) or name in AWKS
    found = named(inspector, shell, *(each for text in texts for each in variants(text, code=code)))
    if found and not _only_reads(command):
        _ask(command, f"a text names such a file, and the program may do anything with it: {CONTROLS}", found)


def evaluated(inspector: Inspector, text: str, shell: Shell) -> None:
    """Follow the substitutions in a text that the shell may evaluate later, as `((x))` and `PS4` do."""
    if not mentions(inspector, text):
        return
    kept, inspector.findings, programs = inspector.findings, [], len(inspector.programs)
    try:
        for script in substitutions(text):
            inspector.script(script, shell.copy(), EMPTY)
    finally:
        found, inspector.findings = inspector.findings, kept
        del inspector.programs[programs:]
    for each in found:
        if each.rule in SELF_PROTECTION:
            reason = f"a text that the shell may run later: {each.reason}"
            inspector.report(each.rule, reason, each.culprit, undecidable=True)


def _ask(command: Command, reason: str, culprit: str) -> None:
    inspector = command.interpreter
    if not any(each.rule in SELF_PROTECTION for each in inspector.findings):
        inspector.report("write-guard-settings", reason, culprit, undecidable=True)


# Builtins that evaluate the subscript of a variable's name.
_EVALUATING_TEXT = "export declare typeset local readonly read let printf test [ unset mapfile readarray wait getopts"
_EVALUATING = frozenset(_EVALUATING_TEXT.split())
# Programs that write files into their directory without naming them.
_FILLS_TEXT = (
    "tar bsdtar zip unzip 7z 7za 7zz rar unrar ar cpio pax patch split csplit script tmux screen make gmake ninja tox "
    "nox curl wget http https xh fetch docker podman scp rsync npm npx pnpm yarn bun uv uvx poetry parallel entr expect "
    "ssh su runuser watch"
)
_FILLS = frozenset(_FILLS_TEXT.split())


def _stays_out(command: Command) -> bool:
    name = command.name
    if is_language(name) or name in AWKS or name == "sed":
        return _only_reads(command)
    return name in DATA or name in SHELLS or (name in READERS and name not in _FILLS)


# ---- the texts of a program ------------------------------------------------------------------------------------------


def _texts(command: Command) -> Iterator[str]:
    """Yield the texts of a program that may be code or arguments of code."""
    name, shell = command.name, command.shell
    runs = is_language(name) or name in AWKS
    yield from _words(command)
    if runs or name not in READERS:
        yield from command.environment.values()
    if runs:
        yield from shell.exports.values()
    stdin = command.stdin.text
    known = name in MESSENGERS or name in SHELLS or (name, stdin) in command.interpreter.followed
    if stdin and not known and not _sends_stdin(command):
        yield from _of_python(command, stdin) if is_python(name) and not code_of(name, command.argv)[0] else (stdin,)
    for option, word in zip(command.argv, command.argv[1:], strict=False) if shell.files else ():
        if _FILE_OPTION.fullmatch(option) and (file := shell.files.get(command.path(word))) is not None and file.text:
            yield file.text


# The options whose value is a file with code or settings of the program.
_FILE_OPTION = lazy_pattern(r"-[fKsxcbB]|--(?:file|config|script|makefile|rcfile|batch\w*|commands?(?:-file)?)")


def _words(command: Command) -> Iterator[str]:
    name, words = command.name, command.argv[1:]
    if name in SHELLS:
        # The script is followed.  Its arguments are known there, unless it is a file.
        options = ParsedOptions(command.argv, "oO", stop_early=True)
        yield from () if "c" in options.flags or "s" in options.flags else options.operands[1:]
    elif is_language(name) or name in AWKS or name == "sed":
        yield from _arguments(command)
    elif name in ("docker", "podman", "nerdctl") and not any(
        word.startswith(("-v", "--volume", "--mount")) for word in words
    ):
        return
    elif name not in TEXT_PROGRAMS:
        for at, word in enumerate(words):
            if _EMBEDDED.search(word):
                if not _is_message(name, words[:at], word) and (name, word) not in command.interpreter.followed:
                    yield word
            elif (
                command.told
                and name not in READERS
                and mentions(command.interpreter, word)
                and _is_untold(command, word)
            ):
                yield word


def _arguments(command: Command) -> Iterator[str]:
    """Yield the code and the arguments of a language."""
    name, argv = command.name, command.argv
    if name in AWKS or name == "sed":
        scripts = set(map(str, ParsedOptions(argv, "f", ("--file",)).value("f", "--file")))
        yield from (word for word in argv[1:] if word not in scripts or "process" in word.taint)
        return
    codes, options = code_of(name, argv)
    if not codes:
        # The file of a script, which the user wrote or which is judged where the command line writes it.
        yield from options.operands[0 if "m" in options.flags else 1 :]
        return
    yield from options.operands
    if not is_python(name):
        yield from codes
    for code in codes if is_python(name) else ():
        yield from _of_python(command, code)


def _of_python(command: Command, code: str) -> Iterator[str]:
    # The syntax tree costs more than a look at the text.
    if any(mentions(command.interpreter, each) for each in variants(code, code=True)):
        yield from python_texts(code)


def _is_untold(command: Command, word: Word) -> bool:
    """Return whether the table of programs, which knows all files of a program, says nothing about a word of it."""
    found = deeds_of(command.name, command.argv, command.stdin)
    return found is not None and all(deed.word != word for deed in found[0])


# The verbs of git whose words are paths, revisions and messages.
_GIT_VERBS_TEXT = (
    "commit tag merge notes stash revert cherry-pick log show grep blame shortlog diff add rm mv restore status"
)
_GIT_VERBS = frozenset(_GIT_VERBS_TEXT.split())
_BODIES_TEXT = (
    "-d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F --form -H --header -A --user-agent -e "
    "--referer --url"
)
_BODIES = frozenset(_BODIES_TEXT.split())


def _is_message(name: str, before: list[Word], word: Word) -> bool:
    """Return whether a word is a message or a body, by the program and the words before it."""
    option = before[-1] if before else ""
    if word.partition("=")[0] in TEXT_OPTIONS or (option in TEXT_OPTIONS and option.startswith("--")):
        return True
    if name in ("git", "g"):
        return any(each in _GIT_VERBS for each in before) and option not in ("-c", "--exec", "-x")
    if name in ("gh", "hub", "glab"):
        return before[:1] != ["alias"]
    if name == "curl":
        return option in _BODIES or word.startswith(tuple(f"{each}=" for each in _BODIES if each[:2] == "--"))
    return name in MESSENGERS and (option in TEXT_OPTIONS or re.match(r"-\w*m", word) is not None)


def _sends_stdin(command: Command) -> bool:
    """Return whether the text on stdin is sent as it is."""
    words = set(command.argv[1:])
    return command.name == "curl" and not words & {"-K", "--config", "-K-"}


def _only_reads(command: Command) -> bool:
    return reads_only(command.name, command.argv, command.stdin, command.shell.files, command.path)
