"""Statements of SQL that lose data, wherever a text holds them.

A statement counts only as a whole: it begins the text, or follows a quote or a semicolon, and its object ends it.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import LazyPattern, lazy_pattern

# Statements that lose a table or a database with the name of test data, and texts that a column is compared with.
TEST_DATA = (
    r"(?:[=<>,]|\blike|\bin\s*\(|\bvalues\s*\()\s*'(?:[^']|'')*'|"
    r"\b(?:drop\s+(?:table|database|schema|view|index)(?:\s+if\s+exists)?|truncate(?:\s+table)?|delete\s+from)\s+"
    r"[\"'`\[]?(?:\w+\.)?(?:(?:tests?|tmp|temp|scratch|sandbox)(?:_\w+)?|\w+_(?:tests?|tmp|temp|scratch|sandbox)(?:_?\d+)?)"
    r"[\"'`\]]?(?=\s*(?:cascade)?\s*(?:[;'\"\n]|$))"
)
CLIENTS_LINE = (
    "psql mysql mariadb sqlite sqlite3 sqlcmd osql sqlplus clickhouse-client clickhouse cqlsh duckdb "
    "cypher-shell snowsql bq cockroach "
    "ysqlsh usql mycli pgcli litecli trino presto beeline hive impala-shell spark-sql isql fbsql db2 "
    "vsql tsql nzsql influx questdb "
    "rqlite turso wrangler dolt libsql surreal arangosh mongosh mongo snow databricks athena steampipe "
    "edgedb gel mssql-cli tiup"
)
CLIENTS = frozenset(CLIENTS_LINE.split())
"""The programs whose words are statements."""
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
IN_WORD = lazy_pattern(rf"(?:^|[;(\"'`\n>=:])\s{{0,40}}{_STATEMENT}")
WHOLE = lazy_pattern(rf"^\s*{_STATEMENT}")
_IN_CODE = lazy_pattern(rf"(?:[\"'`;|\n]|\[\[)\s{{0,40}}{_STATEMENT}")
_TESTS = lazy_pattern(TEST_DATA, re.IGNORECASE)
# A call, or a comparison, that only shows, keeps or searches the text behind it.
_SAYS = lazy_pattern(
    r"(?:\b(?:print\w*|puts|echo|say|cat|log|info|debug|warn\w*|error|message|write\w*|append\w*|assert\w*|expect|"
    r"includes?|contains|match\w*|test|search|replace\w*|sub|gsub|grep\w*|startswith|endswith|split|count|in|putStr\w*|"
    r"inspect|dump|display|format|words|lines|length|len)[!?]?\s*[(\s]\s*(?:[\w.]+\s*,\s*)?|[=!]=\s*)[furbFRB$@]{0,2}[\"'`]{0,3}$"
)


def in_code(source: str) -> bool:
    """Return whether code hands a statement that loses data to a call other than one that shows or keeps texts."""
    return holds(_IN_CODE, source)


def holds(pattern: LazyPattern, text: str) -> bool:
    """Return whether a text has a statement at a place that the pattern wants, with no call around it that shows it."""
    if not _QUICK.search(text):
        return False
    text = _TESTS.sub(" ", text)
    return any(not _SAYS.search(text, max(0, found.start() - 60), found.start()) for found in pattern.finditer(text))
