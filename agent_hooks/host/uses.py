"""The uses of programs that one answer of a person covers: `npm run build`, `python -m unittest`, `git commit`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_hooks.host.looking import acting, reaches_out
from agent_hooks.values.effects import Effects, Program

# Programs that run another one on this machine, with the rights that they have themselves.
_CARRIERS = {"bash", "env", "nice", "npx", "pipenv", "poetry", "sh", "time", "timeout", "uv", "zsh"}
# Programs whose first operand, or the module after `-m`, is the program that they run.
_INTERPRETERS = {"bash", "node", "perl", "php", "python", "python3", "ruby", "sh", "tsx", "zsh"}
# Options before it that neither are code nor have a value.
_HARMLESS = {"-m", "-u", "-B", "-I"}
# Programs that do the same with whichever words.
_WITHOUT_VERBS = {"ctest", "jest", "mocha", "mypy", "phpunit", "pytest", "rspec", "tox", "tsc", "vitest"}
# Verbs after which the program to run stands: `npm run build`, `go run tool.go`.
_RUN = {"dlx", "exec", "run", "x"}
_PLAIN = re.compile(r"\w[\w:-]*")


def uses_of(effects: Effects) -> set[tuple[str, ...]]:
    """Return the uses of the programs that do more than read, if these are all that a command does; else none.

    A use is the program with its first plain words: `npm run build`, `python -m unittest`, `git commit`.
    """
    if effects.discards or effects.installs or effects.devices or effects.privileges or reaches_out(effects):
        return set()
    if any(each.access in ("write", "delete") for each in effects.paths):
        return set()
    programs = [*acting(effects)]
    for part in effects.unknown:
        # A text that is made when the command runs may name another program.
        found = [each for each in effects.programs if " ".join(each.argv) == part.text and "…" not in part.text]
        if part.kind != "opaque" or not found:
            return set()
        programs += found
    uses = {() if not _CARRIERS.issuperset(each.via) else tuple(_use(each)) for each in programs}
    return set() if () in uses else uses


def _use(program: Program) -> Sequence[str]:
    """Return the words that tell a use of a program from others; nothing where its code stands in the command."""
    name, *words = program.argv
    first = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    if program.name in _WITHOUT_VERBS:
        return (name,)
    if program.name in _INTERPRETERS:
        known = first < len(words) and _HARMLESS.issuperset(words[:first])
        return (name, *words[: first + 1]) if known else ()
    if first > 0:
        # The first word may be the value of an option, and the verb the next one.
        return (name, *words[: first + 2])
    verb, following = words[:1], words[1:2]
    if not (verb and _PLAIN.fullmatch(verb[0])):
        return (name, *verb)
    named = verb[0] in _RUN or (following and _PLAIN.fullmatch(following[0]))
    return (name, *verb, *(following if named else ()))
