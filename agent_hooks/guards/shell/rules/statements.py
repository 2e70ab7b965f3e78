"""Statements of SQL that lose data among the words of any program: in an option that nobody named, in a remote shell.

A client of a database has rows of its own in `databases`.  Words of a message, a search, or a test hold no such
statement, or belong to programs that only show or keep their words.
"""

from __future__ import annotations

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.readers import READERS, TEXT_OPTIONS, TEXT_PROGRAMS
from agent_hooks.guards.shell.rules.outside import names_test, on_test_data
from agent_hooks.guards.shell.rules.requests import local
from agent_hooks.guards.shell.sql import CLIENTS, IN_WORD, WHOLE, holds

_WHY = "drops or empties data"
# Programs that check, format or translate statements, and those that choose tests by their names.
_CHECKS_LINE = (
    "sqlfluff sqlfmt pg_format sqruff squawk sqlglot sql-formatter sqlint pgsanity sqllineage jest vitest mocha rspec "
    "phpunit ctest nosetests cargo go dotnet tsc prettier cspell codespell vale gum dialog whiptail zenity osascript"
)
# Programs that format, colour or check a text have such names.
_SHOWS = lazy_pattern(r".*(?:fmt|format|lint|pretty|check|parse|highlight|colou?r|diff|spell|test).*")
_SILENT = READERS - {"curl", "wget", "http", "https", "xh"} | TEXT_PROGRAMS | frozenset(_CHECKS_LINE.split()) | CLIENTS
_LONGEST = 8000


def any_program(command: Command) -> None:
    """`fly ssh console -C 'app rpc "query!(TRUNCATE x)"'`: a statement in a word, or on stdin."""
    if command.name in _SILENT:
        return
    words, stdin = command.argv, command.stdin.text
    texts = [str(word) for word in words[1:] if " " in word]
    if not texts and not stdin:
        return
    if stdin and len(stdin) < _LONGEST:
        texts.append(stdin)
    spoken = {words[at + 1] for at, word in enumerate(words[:-1]) if word in TEXT_OPTIONS}
    texts = [text for text in texts if text not in spoken and not text.startswith("--mess")]
    # The body of a request may hold such words as the value of a field.
    pattern = WHOLE if command.name in READERS else IN_WORD
    if not any(holds(pattern, text) for text in texts):
        return
    if _SHOWS.fullmatch(command.name):
        return
    addresses = [word for word in words[1:] if "://" in word]
    tests = any(names_test(word.rpartition("/")[2].partition("?")[0]) for word in addresses)
    here = command.name in READERS and all(map(local, addresses))
    if not (tests or here or on_test_data(command)):
        command.report("sql", _WHY)
