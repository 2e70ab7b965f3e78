"""Secrets without a form that only their place shows: in `.netrc`, `.pgpass`, Docker's settings, and commands."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from msgspec.structs import replace

from agent_hooks.redaction.named import NAMED, find_named, is_placeholder
from agent_hooks.redaction.providers import BEFORE_AT
from agent_hooks.redaction.signs import EDGE, SecretRule, Span

NETRC = re.compile(
    r"machine\s{1,9}[^\0\s]{1,255}\s{1,20}(?:login\s{1,9}[^\0\s]{1,255}\s{1,20})?(?:account\s{1,9}[^\0\s]{1,255}\s{1,20})?"
    r"password\s{1,9}([^\0\s]+)"
)
"""An entry of `.netrc`, on one line or several."""
_NETRC_AHEAD = r"\s{1,9}[^\0\s]{1,255}\s{1,20}(?:login|account|password)\s"
NETRC_OPEN = re.compile(
    r"machine\s{1,9}\S{0,255}(?:\s{1,20}(?:login|account)\s{1,9}\S{0,255}){0,2}\s{0,20}(?:password\s{0,9}\S{0,255})?\Z"
)
"""The beginning of such an entry, whose password may follow."""
# host:port:database:user:password
_PGPASS = re.compile(
    r"^(?![#\s])[\w.*-]{1,255}:(?:\d{4,5}|\*):[^\0\s:]{1,63}:[^\0\s:]{1,63}:((?:\\[^\0]|[^\0\s:\\]){3,})[ \t]*\r?$",
    re.MULTILINE,
)
_DOCKER = re.compile(r'"auth"[ \t]{0,9}:\s{0,9}"([A-Za-z0-9+/]{8,1000}={0,2})"')
_USER = re.compile(
    r"-(?<= -)(?:u|U|-user|-proxy-user)(?:[ \t]{1,9}|=|(?<=-u))(?P<quote>[\"']?)"
    r"(?P<user>[\w.@%+-]{1,100}):(?P<password>[^\0\s\"':/$<{(]{3,200})(?P=quote)(?=\s|\Z|[\"';|&)])"
)
_USER_AHEAD = r"(?:u|U|-user|-proxy-user)[ \t=]{0,9}[\"']?[\w.@%+-]{1,100}:[^\0\s/]"
_OPTION = re.compile(
    r"-(?<= -)p[ \t]?(?P<quote>[\"']?)(?P<password>[^\0\s\"'$<{(-][^\0\s\"'<]{3,200})(?P=quote)(?=\s|\Z|[\"';|&)])"
)
_OPTION_NAME = "(?:[a-z]{1,15}-){0,3}(?:password|passwd|passphrase|token|secret|api-?key|secret-key|access-key)"
# The end of a password: a blank, the end of its quotes, of its command or of the text.
_END = r"(?P=quote)(?=\s|\Z|[\"';|&)])"
_LONG_OPTION = re.compile(
    rf"-(?<= -)-{_OPTION_NAME}[ \t]{{1,3}}(?P<quote>[\"']?)"
    rf"(?P<password>[^\0\s\"'`$<>{{(|;&-][^\0\s\"'`<>|;&]{{4,1000}}){_END}"
)
_DRIVER = re.compile(r"@(?:tcp|unix|udp)\(")
_BEFORE_DRIVER = re.compile(r"(?<![\w:@/])[\w.-]{1,100}:([^\0\s:@/\"'`]{3,100})\Z")
# Programs whose option `-u` takes a user and a password, and those whose option `-p` takes a password.
_CLIENTS = re.compile(r"\b(?:curl|wget|http|https|xh|lftp)\b[^\n|;&]*\Z")
_DATABASES = re.compile(r"\b(?:sshpass|mysql(?:dump|admin|import)?)\b[^\n|;&]*\Z")


def formless_rules() -> tuple[SecretRule, ...]:
    """Return the rules, each with a kind of its own, that can be switched off."""
    rules = (
        SecretRule("netrc-password", ("machine",), _groups(NETRC), "machine", "", _NETRC_AHEAD),
        SecretRule("pgpass-password", (":543",), _groups(_PGPASS), ":543", "", r"\d:"),
        SecretRule("pgpass-password", (":*:",), _groups(_PGPASS), "*", ":", ":"),
        SecretRule("docker-auth", ('"auth"',), _groups(_DOCKER, _is_docker_auth), "uth"),
        SecretRule("cli-password", (" -u", " -U", " --user", " --proxy-user"), _of_users, "-", " ", _USER_AHEAD),
        SecretRule("cli-password", ("mysql",), _of_programs, "q", "s", "l", "(?<=mysq)"),
        SecretRule("cli-password", ("sshpass -p",), _of_programs, "-", " ", "p", "(?<=sshpass -)"),
        SecretRule("cli-password", (" --",), _of_options, "-", " ", rf"-{_OPTION_NAME}[ \t]"),
        SecretRule("cli-password", (" -p",), _of_programs, "-", " ", "p[^a-z-]"),
        SecretRule("dsn-password", ("@",), _of_drivers, "@", "", ".", BEFORE_AT),
        SecretRule(NAMED, (), find_named),
    )
    return tuple(replace(rule, framed=True) for rule in rules)


def _groups(pattern: re.Pattern[str], accepts: Callable[[str], bool] | None = None) -> Callable[[str], Iterable[Span]]:
    """Return the finder for the last group of a pattern; placeholders are left out."""

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            value = match[match.lastindex or 0]
            if is_placeholder(value) or not (accepts is None or accepts(value)):
                continue
            yield match.span(match.lastindex or 0)

    return find


@cache
def _is_docker_auth(value: str) -> bool:
    """Tell whether a text is a user and a password in base64."""
    try:
        return b":" in a2b_base64(value)
    except Error:
        return False


def _of_drivers(text: str) -> Iterator[Span]:
    """Yield the passwords of `user:password@tcp(host)`."""
    for driver in _DRIVER.finditer(text):
        begin = max(0, driver.start() - 210)
        match = _BEFORE_DRIVER.search(text[begin : driver.start()])
        if match and not is_placeholder(match[1]):
            yield begin + match.start(1), begin + match.end(1)


def _of_users(text: str) -> Iterator[Span]:
    """Yield the passwords of `-u user:password`."""
    for match in _USER.finditer(text):
        user, password = match["user"], match["password"]
        if password == user or password.isdigit() or is_placeholder(password):
            continue
        # `docker run -u www-data:docker` names a group.
        if not password.replace("-", "").isalpha() or _CLIENTS.search(_line_before(text, match.start())):
            yield match.span("password")


def _of_programs(text: str) -> Iterator[Span]:
    """Yield the passwords of `mysql -ppassword` and the like."""
    for match in _OPTION.finditer(text):
        if not is_placeholder(match["password"]) and _DATABASES.search(_line_before(text, match.start())):
            yield match.span("password")


def _of_options(text: str) -> Iterator[Span]:
    """Yield the values of options such as `--password`; a word of letters only may be prose."""
    for match in _LONG_OPTION.finditer(text):
        value = match["password"]
        if any(map(str.isdigit, value)) and not is_placeholder(value):
            yield match.span("password")


def _line_before(text: str, index: int) -> str:
    """Return the text before an index, back to the line's beginning or another secret, 300 characters at most."""
    return text[max(0, index - 300) : index].rpartition("\n")[2].rpartition(EDGE)[2]
