"""Where a text comes from: marks for the content of files, encoded texts, facts about the machine, and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.words import NOTHING

SECRET = frozenset({"secret"})
"""The mark of a variable whose name tells that it holds a secret."""
_MARKS: dict[str, str] = {
    **dict.fromkeys(
        ("cat", "tac", "head", "tail", "grep", "sed", "awk", "tar", "zip", "strings", "find", "gpg", "dd"), "content"
    ),
    **dict.fromkeys(
        ("env", "printenv", "pg_dump", "mysqldump", "export", "history", "crontab", "kubectl", "ps"), "content"
    ),
    **dict.fromkeys(("base64", "base32", "xxd", "od", "hexdump", "openssl", "gzip", "uuencode", "basenc"), "encoded"),
    **dict.fromkeys(("whoami", "hostname", "id", "uname"), "host"),
}
_SECRET_NAME = lazy_pattern(
    (
        r"\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|_PWD|_PAT|_DSN|"
        r"DATABASE_URL|CONNECTION_STRING|_KEY)\w*"
    ),
    re.IGNORECASE,
)
_PLAIN_NAME = lazy_pattern(
    (
        r"PUBLIC|SSH_AUTH_SOCK|_ID$|KEY_?(?:NAME|FILE|PATH|BOARD)|TOKEN_?(?:COUNT|LIMIT|IZER|S)|TOKENIZERS|"
        r"CACHE_KEY|OLD_?PWD"
    ),
    re.IGNORECASE,
)


def names_secret(name: str) -> bool:
    """Return whether a variable of this name holds a secret."""
    return bool(_SECRET_NAME.fullmatch(name)) and not _PLAIN_NAME.search(name)


def marks_of(programs: Iterable[str]) -> frozenset[str]:
    """Return the marks of a text that some programs have made."""
    return frozenset(_MARKS[name] for name in programs if name in _MARKS) or NOTHING
