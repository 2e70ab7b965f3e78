"""Statements of SQL that lose data, among the words of any program and in the code of any language.

A client of a database has rows of its own in `databases`.  This module finds the same statements where no row looks: in
an option of a program that nobody named, in a remote shell, in a text between quotes of some code.  A statement counts
only as a whole: it begins the text, or follows a quote or a semicolon, and its object ends it.  Words of a message, a
search, or a test hold no such statement, or belong to programs that only show or keep their words.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import LazyPattern, lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.rules.databases import CLIENTS, TEST_DATA
from agent_hooks.guards.shell.rules.outside import names_test, on_test_data
from agent_hooks.guards.shell.rules.own_files import READERS, TEXT_OPTIONS, TEXT_PROGRAMS
from agent_hooks.guards.shell.rules.requests import local

_WHY = "drops or empties data"
_NAME = r"[\w.$`\"'\[\]{}<>%#:-]+?"
_CLOSE = r"(?=\s*(?:;|$|,|\)|\\?[\"'`]|\}|(?i:cascade|restrict|purge|sync|delete\s+topic|restart)\b))"
_STATEMENT = (
    r"(?:(?i:drop\s+(?:(?:external|dynamic|foreign|temporary|transient|continuous|materialized|virtual)\s+)?"
    r"(?:table|database|schema|keyspace|view|collection|catalog|warehouse|stream|pipe|user|role|tablespace|index|volume)\s+"
    rf"(?:if\s+exists\s+)?){_NAME}(?:\s*,\s*{_NAME})*{_CLOSE}|"
    rf"(?i:truncate\s+table\s+){_NAME}|TRUNCATE\s+{_NAME}(?:\s*,\s*{_NAME})*{_CLOSE}|"
    rf"(?i:delete\s+from\s+){_NAME}(?:(?i:\s+where\s+(?:true|1|1\s*=\s*1)(?!\w))|(?=\s*(?:;|$|\)|\\?[\"'`])))|"
    rf"(?i:alter\s+table\s+){_NAME}(?i:\s+drop\s+(?:column|partition)\s)|"
    r"(?i:create\s+or\s+replace\s+(?:transient\s+)?(?:database|schema)\s)|(?i:match\s*\(\w*\)\s*detach\s+delete\b))"
)
_QUICK = lazy_pattern(r"(?i)\b(?:drop|truncate|delete\s+from|or\s+replace|detach)\s")
_IN_WORD = lazy_pattern(rf"(?:^|[;(\"'`\n>=:])\s*{_STATEMENT}")
_WHOLE = lazy_pattern(rf"^\s*{_STATEMENT}")
_IN_CODE = lazy_pattern(rf"(?:[\"'`;|\n]|\[\[)\s*{_STATEMENT}")
_TESTS = lazy_pattern(TEST_DATA, re.IGNORECASE)
# A call, or a comparison, that only shows, keeps or searches the text behind it.
_SAYS = lazy_pattern(
    r"(?:\b(?:print\w*|puts|echo|say|cat|log|info|debug|warn\w*|error|message|write\w*|append\w*|assert\w*|expect|"
    r"includes?|contains|match\w*|test|search|replace\w*|sub|gsub|grep\w*|startswith|endswith|split|count|in|putStr\w*|"
    r"inspect|dump|display|format|words|lines|length|len)[!?]?\s*[(\s]\s*(?:[\w.]+\s*,\s*)?|[=!]=\s*)[furbFRB$@]{0,2}[\"'`]{0,3}$"
)
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
    if not any(" " in word for word in command.argv) and not command.stdin.text:
        return
    words, texts = command.argv, list[str]()
    for at, word in enumerate(words):
        if " " in word and at and words[at - 1] not in TEXT_OPTIONS and not word.startswith("--mess"):
            texts.append(word)
    if command.stdin.text and len(command.stdin.text) < _LONGEST:
        texts.append(command.stdin.text)
    # The body of a request may hold such words as the value of a field.
    pattern = _WHOLE if command.name in READERS else _IN_WORD
    if not any(_holds(pattern, text) for text in texts):
        return
    if _SHOWS.fullmatch(command.name):
        return
    addresses = [word for word in words[1:] if "://" in word]
    tests = any(names_test(word.rpartition("/")[2].partition("?")[0]) for word in addresses)
    here = command.name in READERS and all(map(local, addresses))
    if not (tests or here or on_test_data(command)):
        command.report("sql", _WHY)


def in_code(source: str) -> bool:
    """Return whether code hands a statement that loses data to a call other than one that shows or keeps texts."""
    return _holds(_IN_CODE, source)


def _holds(pattern: LazyPattern, text: str) -> bool:
    if not _QUICK.search(text):
        return False
    text = _TESTS.sub(" ", text)
    return any(not _SAYS.search(text, max(0, found.start() - 60), found.start()) for found in pattern.finditer(text))
