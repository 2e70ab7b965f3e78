"""The uses of programs that a person may accept as a whole: `npm run build`, `python -m unittest`, `git commit`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from agent_hooks.host.looking import acting, reaches_out
from agent_hooks.values.effects import Effects, Program

# Programs that run another one on this machine, with the rights that they have themselves.
_CARRIERS = {"bash", "env", "nice", "npx", "pipenv", "poetry", "sh", "time", "timeout", "uv", "zsh"}
# Programs whose first operand, or the module after `-m`, is the program that they run.
_INTERPRETERS = {"bash", "bun", "deno", "node", "perl", "php", "python", "python3", "ruby", "sh", "tsx", "zsh"}
# Programs that do the same with whichever words.
_WITHOUT_VERBS = {"ctest", "jest", "mocha", "mypy", "phpunit", "pytest", "rspec", "tox", "tsc", "vitest"}
# The words behind the program that tell one use of it from another, as `run build`.
_MOST_WORDS = 2
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


def _use(program: Program) -> Iterator[str]:
    """Yield the words that tell a use of a program from others; nothing where its code stands in the command."""
    name, *words = program.argv
    first = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    if program.name in _INTERPRETERS:
        if first < len(words) and not any(word[:2] in ("-c", "-e", "-r", "--") for word in words[:first]):
            yield from (name, *words[: first + 1])
        return
    yield name
    if program.name not in _WITHOUT_VERBS:
        yield from takewhile(_PLAIN.fullmatch, words[first : first + _MOST_WORDS])
