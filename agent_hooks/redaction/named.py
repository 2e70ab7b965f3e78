"""Secrets without a form of their own, which only their name shows: `DB_PASSWORD=…`, `"password": "…"`, `api_key: …`.

The search goes from rare to common.  The words of names are found in the lower-case bytes of the text, where `=`, `:` or
`>` follows.  The few places that are left are judged: the name must be written as names are, and the value must look like
a secret, not like a placeholder, and not like code.

Every value is read once: a value is skipped as a whole, whether it is a secret or not, so every text takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from agent_hooks.redaction.signs import Span, searchable

NAMED = "named-secret"
"""The kind of these secrets."""
# Words before `key` that make a key secret.
_KEYS = (
    *("access", "account", "aes", "api", "app", "auth", "cookie", "deploy", "encryption", "hmac", "jwt", "license"),
    *("master", "private", "secret", "service", "session", "shared", "signing", "storage", "subscription", "webhook"),
)
_BETWEEN = ("", "_", "-", ".")
# A name ends here: digits, quotes, a bracket; then comes the sign between name and value.
_ENDS = r"""(?:_?\d{1,2})?\\?["'`\]]{0,2}(?=[ \t]{0,8}[:=](?![=:~])|>)"""
_END_OF_KEY = r"(?:_BASE|_base)?" + _ENDS


def _key_names() -> str:
    """Return a pattern that matches behind the `k` of `api_key`, `apiKey`, `API_KEY` and the like."""
    words = [
        f"{form}{between}" for word in _KEYS for form in (word, word.title(), word.upper()) for between in _BETWEEN
    ]
    by_length: dict[int, list[str]] = {}
    for word in words:
        by_length.setdefault(len(word), []).append(word)
    groups = "|".join(f"(?<=(?:{'|'.join(map(re.escape, group))})[kK]..)" for group in by_length.values())
    return f"(?:ey|EY)(?=[\\W_\\d])(?<=[A-Za-z_.-][kK]..)(?:{groups})"


@cache
def _beginnings() -> tuple[tuple[re.Pattern[bytes], int], ...]:
    """Return the patterns for the words of names in the lower-case bytes of a text.

    Each begins with a letter that is rarer than the first one of its word; with it stands the number of letters before.
    """
    return (
        (re.compile(rf"ke(?:n(?<=token)|y(?:_base)?){_ENDS}".encode()), 0),
        (re.compile(rf"pass(?:w(?:or)?d|phrase|(?<=[_.-]pass)){_ENDS}".encode()), 0),
        (re.compile(rf"cret(?<=secret)(?:_base)?{_ENDS}".encode()), 2),
        (re.compile(rf"wd(?<=pwd){_ENDS}".encode()), 1),
    )


@cache
def _exactly() -> re.Pattern[str]:
    """Return the pattern for the names, in the cases in which they are written, from the places of `_beginnings` on."""
    passwords = r"[Pp]assw(?:or)?d|PASSW(?:OR)?D|PassWord|[Pp]assphrase|PASSPHRASE|(?<=_)pass|(?<=[_.-])PASS|[Pp]wd|PWD"
    tokens = r"k(?<=[Tt]ok)en|K(?<=TOK)EN"
    return re.compile(
        rf"(?:(?:{passwords}|{tokens}){_ENDS}|(?:(?:[sS]ecret|SECRET)|[kK]{_key_names()}){_END_OF_KEY})", re.ASCII
    )


_NAME = re.compile(r"[A-Za-z0-9_.-]{0,80}\Z")
_VALUE = re.compile(
    r"""(?P<sign>[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}|>)"""
    r"""(?:\\?(?P<quote>["'`])(?P<quoted>(?:(?!(?P=quote))[^\0\s\\]|\\(?!(?P=quote))[^\0\s])*+)(?P<closed>\\?(?P=quote))?"""
    r"""|(?P<bare>[^\0\s"'`,;&<>()\[\]{}|\\]*+))"""
)
# The text that may follow a value without quotes: the end of its line, its statement, its parameter, its element.
_BEHIND = re.compile(r"""[ \t]*(?:\#.*|[,;\\]?)$|(?=[ \t;&"'`\\]|</)""", re.MULTILINE)
_WHOLE_LINE = re.compile(r"[ \t]*(?:[;\\]|[ \t]\#.*)?\r?$", re.MULTILINE)
# The beginning of a line on which a name stands first: blanks, a list's dash, the quote or the command before it.
_FIRST = re.compile(r"""[ \t]*(?:[-+>]\s+|export\s+|set\s+|ENV\s+|ARG\s+|\#\s*)?["']?\Z""")
_PREFIXES = re.compile(
    r"(?i)(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?:next|page|continuation|sync|resume|cancel|cancellation|pad|eos|bos|unk|sep|mask"
    r"|cls|image|public|publicKey|stop|start|end|first|last|bad|num|max|min|type)(?:[_.-]|(?=[TPSK]))(?:page[_.-]?)?"
    r"(?:token|secret|password|key)$"
)
_PLACEHOLDER = re.compile(
    r"(?i)change.?(?:me|it|this)|example|placeholder|your[-_]?|redacted|replace|insert|dummy|sample|x{4,}|\*{3,}|\.{3}|…|[<>]|"
    r"^(?:none|null|nil|undefined|true|false|yes|no|on|off|optional|required|default|test(?:ing|er)?|string|empty|unset"
    r"|password|passwd|secret|token|fake|todo|fixme|foo(?:bar)?|bar|baz|admin|root|guest|postgres|mysql|hidden|masked|secure|invalid|wrong|abc|123456"
    r"|foobarbaz)\d{0,3}$"
)
# A name in the place of a value: `password: "new_password"`, `token = csrf_token`.
_WORDS = re.compile(
    r"(?i)passw|passphrase|secret|token|credential|apikey|api[_-]key|(?:^|[_-])(?:key|pass|pwd|auth|login)"
)
_TYPE = re.compile(
    r"(?i)(?:u?int|float|double|utf|sha|md|base|bool|boolean|str|string|bytes?|char|varchar|number|text|object|blob|hash"
    r"|array|buffer|secretstr|any|optional|unicode|uuid|v|t|s|e|n|i|r|p|aes|hmac|rsa|es|hs|rs|ps)[_-]?\d{0,4}[\])!?*]*"
)
_CODE = re.compile(
    r"[A-Za-z_$@][\w$]*(?:(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)+"
    r"|(?:env|vault|op|arn|ssm|file|secret|sha\d+|ref\+\w+|sm|enc|kms|urn|https?|data|aws|gcp|azure)[:/].*|ENC\[.*"
    r"|0[xX][0-9a-fA-F]+|.*\$\w.*|[.~]{0,2}/[a-z0-9_./-]*|[A-Za-z]:\\.*|v?\d+(?:\.\d+)+"
)
# Names of classes with a number inside, and words with `_` or `-` between them.
_NAMES = re.compile(r"(?:[A-Z]{1,6}\d{0,3}[a-z]{2,}\d{0,2}|[A-Z]{2,6}\d{1,3}(?=[A-Z]))+\d{0,2}")
_WORDS_WITH_NUMBERS = re.compile(r"[a-z]+(?:[_-][a-z0-9]{1,12})+")
_IDENTIFIER = re.compile(r"([A-Za-z_$][A-Za-z_$]*)\d{0,2}")
# A value of letters that begins with one of these is a variable of the code.
_VARIABLES = re.compile(
    r"(?i)_*(?:my|the|new|old|this|self|user|db|tmp|temp|raw|plain|enc|dec|hashed|expected|actual|value|val|param|arg|str"
    r"|data|field|text|input|name|var|result|node|item|hash|foo|bar|baz|ptr|buf|len|pw|pass|opt|get|set|is|has)_*[a-z]*"
)
_SIGNS = re.compile(r"[!@#$%^&*+?~=]")
_LONGEST = 1000
_SHORTEST = 5
# Characters of a text that is searched for a hint first.
_SHORT = 2000


def is_placeholder(value: str) -> bool:
    """Tell whether a value stands for a secret: `changeme`, `${VAR}`, `<token>`, `xxxx`."""
    return not value or len(set(value)) <= 2 or value[0] in "${<[%*" or bool(_PLACEHOLDER.search(value))


def find_named(text: str) -> list[Span]:
    """Return the spans of the values that are secrets because of their names."""
    found: list[Span] = []
    end = 0
    for place in _places(text):
        if place < end or not (start := _exactly().match(text, place)):
            continue
        value = _value_at(text, start)
        if value is None:
            continue
        if value.is_secret():
            found.append((value.start, value.end))
        if value.end - value.start > _LONGEST:
            end = value.end
    return list(_without_overlaps(sorted(found)))


def _places(text: str) -> list[int]:
    """Return the places where a name may begin, in order."""
    data = searchable(text).lower()
    return sorted(match.start() - before for pattern, before in _beginnings() for match in pattern.finditer(data))


def may_hold_names(data: bytes) -> bool:
    """Tell whether a text may hold a name: it is long, or holds the end of one in front of a sign.

    `data`: the text, as `searchable` returns it.
    """
    if len(data) >= _SHORT:
        return True
    data = data.lower()
    # Most texts hold none of these words, and `in` is faster than the patterns.
    if b"key" in data or b"pass" in data or b"token" in data or b"secret" in data or b"pwd" in data:
        return any(pattern.search(data) for pattern, _ in _beginnings())
    return False


def _without_overlaps(spans: list[Span]) -> Iterator[Span]:
    last = 0
    for start, end in spans:
        if start >= last:
            yield start, end
            last = end


class _Value(Struct):
    """A value behind a name that may be secret.

    `name`: the whole name; `sign`: the text between name and value; `quoted`, `keyed`: whether value and name have
    quotes; `first`: the name is the first word of its line, and `whole`: the value the last; `text`: the value.
    """

    name: str
    sign: str
    text: str
    start: int
    end: int
    quoted: bool
    keyed: bool
    first: bool
    whole: bool
    before: str

    def is_secret(self) -> bool:
        """Tell whether the value looks like a secret, and neither like a placeholder nor like code."""
        text = self.text
        if len(set(text)) <= 2 or text[0] in "$%{<[(!@*\\^|:=?" or _no_secret(text):
            return False
        if self.before == ":" or _PREFIXES.search(self.name):
            return False
        letters, digits = any(map(str.isalpha, text)), any(map(str.isdigit, text))
        if not letters:
            return self.is_password and len(text) >= 8 and (self.quoted or self.is_variable)
        if not digits and not _SIGNS.search(text):
            return self._is_word_of_secret()
        if not digits and _WORDS.search(text):
            return False
        if not self.quoted and not self.is_variable and _IDENTIFIER.fullmatch(text):
            return self._is_no_identifier()
        if _NAMES.fullmatch(text) and not self.quoted:
            return False
        if self.is_password:
            return len(text) >= 6 or digits
        return digits and len(text) >= 10 and not re.fullmatch(r"[A-Za-z_-]+\d{0,3}", text) and not _is_words(text)

    def _is_word_of_secret(self) -> bool:
        """Tell whether a value of letters only, which may as well be a word of prose or code, is a secret."""
        text = self.text
        if _WORDS.search(text) or len(text) < 6:
            return False
        if self.is_variable and self.whole:
            return len(text) >= (6 if self.is_password else 12)
        if not self.is_password or len(text) < 10 or not text.islower() or "_" in text or "." in text:
            return False
        return (self.keyed if self.quoted else self.first and self.whole) and self.sign.strip() == ":"

    def _is_no_identifier(self) -> bool:
        """Tell whether letters with digits behind them, `hunter2`, are a password in a place where no code stands."""
        if not self.is_password or not self.text[-1].isdigit() or _WORDS.search(self.text):
            return False
        if _VARIABLES.fullmatch(self.text.rstrip("0123456789")):
            return False
        if self.sign == ">":
            return True
        return (self.first and self.whole) or (self.sign == "=" and self.before in "?&;-") or self._in_words()

    def _in_words(self) -> bool:
        return self.sign == "=" and self.before in " \"'" and not self.first

    @property
    def is_password(self) -> bool:
        """Whether the name says password, not token, secret or key."""
        return bool(re.search(r"(?i)pass|pwd", self.name[-14:]))

    @property
    def is_variable(self) -> bool:
        """Whether name and value are an assignment of a shell or an environment file: `DB_PASSWORD=…`."""
        return self.sign == "=" and self.name.isupper() and self.before in "\n \"'\t"


def _is_words(text: str) -> bool:
    """Tell whether a text is made of words, few of which hold digits: `cache_write_5m`."""
    if not _WORDS_WITH_NUMBERS.fullmatch(text):
        return False
    words = re.split("[_-]", text)
    return 2 * sum(map(str.isalpha, words)) >= len(words)


def _no_secret(text: str) -> bool:
    return bool(
        _PLACEHOLDER.search(text) or "${" in text or "{{" in text or "$(" in text or "%(" in text or "#{" in text
    ) or bool(_TYPE.fullmatch(text) or _CODE.fullmatch(text))


def _value_at(text: str, start: re.Match[str]) -> _Value | None:
    match = _VALUE.match(text, start.end())
    if match is None:
        return None
    which = "bare" if match["quote"] is None else "quoted"
    value, (begin, end), sign = match[which], match.span(which), match["sign"]
    if len(value) < _SHORTEST or (which == "quoted" and match["closed"] is None):
        return None
    if which == "bare" and not _BEHIND.match(text, end):
        return None
    line = max(text.rfind("\n", max(0, start.start() - 200), start.start()) + 1, start.start() - 200, 0)
    ahead = text[line : start.end()].rstrip("\"'`]\\")
    name_match = _NAME.search(ahead[-81:])
    name = name_match[0] if name_match else ""
    prefix = ahead[: len(ahead) - len(name)]
    if sign == ">" and not prefix.endswith("<"):
        return None
    before = "\n" if not prefix else prefix[-1]
    if name.startswith("-"):
        before = "-"
    return _Value(
        name=name.lstrip("-."),
        sign=sign,
        text=value,
        start=begin,
        end=end,
        quoted=which == "quoted",
        keyed=text[start.end() - 1] in "\"'`]",
        first=bool(_FIRST.fullmatch(prefix)),
        whole=bool(_WHOLE_LINE.match(text, match.end())),
        before=before,
    )
