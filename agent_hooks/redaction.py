"""Hide credentials in what tools return, before model, session file and screen see it.

    redacted, findings = Redactor().redact("token: ghp_0123456789abcdefghij0123456789abcdef")
    # 'token: [redacted github-token]', (Finding(kind='github-token', start=7, end=47),)

Two things are secrets: text of the form of a known kind of credential, and the exact values of environment variables
whose names say that they are secret.  What has no form, a password in a sentence, is not found.

Speed and safety rest on three rules.  A pattern is tried only when a text of its own (`ghp_`) is somewhere in the text.
A pattern cannot begin in the middle of what it would match (`_not_within`), and what can fail late is short, so every
text takes linear time.  Each match takes the whole rest of its word, so that no second pass finds more than the first.
Above: runner, pipeline.  Below: content, events, settings.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import asdict, replace

from agent_hooks.errors import HookUsageError
from agent_hooks.patterns import compile_pattern
from agent_hooks.settings import pattern_problem
from agent_hooks.values.content import TextContent, ToolOutput
from agent_hooks.values.events import ToolResult
from agent_hooks.values.tool import OnUpdate

SHORTEST_VALUE = 8  # characters of an environment variable's value; shorter ones would be found by chance
PATTERN_SECONDS = 1.0  # that a pattern of the person's own may take on one text
_CARRY = 64 * 1024  # characters of an unfinished line that are remembered between two progress updates


class Finding(Struct, frozen=True):
    """One hidden secret: its kind, and where it was in the text.  Never the secret itself."""

    kind: str
    start: int
    end: int


Span = tuple[int, int]
Finder = Callable[[str], Iterable[Span]]  # yields the spans of secrets, in order, that do not overlap


class _Rule(Struct, frozen=True):
    """One kind of secret: it can only be in a text that has one of `literals`.

    `end` is a rare character of each of them, `before` the characters that can stand before it, and `sign` what a pattern
    finds there: one quick look at the text for all rules with the same `end`.
    """

    kind: str
    literals: tuple[str, ...]
    find: Finder
    end: str = ""
    before: str = ""
    sign: str = ""


# ---- the kinds -------------------------------------------------------------------------------------------------------

_COLOURS = (r"\x1b\[m", r"\x1b\[K", r"\x1b\[\dm", r"\x1b\[\d\dm", r"\x1b\[\d;\d\dm", r"\x1b\[\d\d;\d\dm")
_WORD = r"[A-Za-z0-9_-]*+"
# what tells a token from a word of prose or code: a digit; and after "Basic" also a capital inside
_DIGIT = r"(?=[A-Za-z._~+/=-]{0,64}[0-9])"
_MIXED = r"(?=[A-Za-z._~+/=-]{0,64}(?:[0-9]|(?<=[a-z])[A-Z]))"
_URL_SAFE = "A-Za-z0-9_-"


def _pattern(kind: str, literals: tuple[str, ...], pattern: re.Pattern[str]) -> _Rule:
    """Return the rule for what a pattern matches as a whole."""
    return _Rule(kind, literals, lambda text: (match.span() for match in pattern.finditer(text)))


def _tokens(kind: str, literals: Sequence[str], body: str, of: str = "A-Za-z0-9") -> _Rule:
    """Return the rule for tokens that begin with a literal; `of`: the characters of their `body`, of 16 at least."""
    escaped = [re.escape(literal) for literal in literals]
    find = _spans(f"{literal}{_not_within(of, literal)}{body}{_WORD}" for literal in escaped)
    if (end := literals[0][-1]) not in "_-.":
        return _Rule(kind, tuple(literals), find)
    here = "|".join(f"(?<={literal})" for literal in escaped)
    body = "A-Za-z0-9" if end == "_" else _URL_SAFE
    before = "".join(sorted({literal[-2] for literal in literals}))
    sign = f"(?<=[{before}]{re.escape(end)})(?=[{body}]{{16}})(?:{here})"
    return _Rule(kind, tuple(literals), find, end, before, sign)


def _told(kind: str, literals: Sequence[str], rest: str, *sign: str) -> _Rule:
    """Return the rule for secrets that are told by the literal before them; only the group of `rest` is hidden."""
    return _Rule(kind, tuple(literals), _spans(f"{re.escape(literal)}{rest}" for literal in literals), *sign)


def _not_within(kind: str, literal: str) -> str:
    """Return what holds after `literal` when no character of `kind` stands before it, or the end of a colour code."""
    before = "|".join(f"(?<={colour}{literal})" for colour in _COLOURS)
    return f"(?:(?<![{kind}]{literal})|{before})"


def _spans(patterns: Iterable[str]) -> Finder:
    compiled = [re.compile(pattern, re.ASCII) for pattern in patterns]

    def find(text: str) -> list[Span]:
        return sorted(match.span(match.lastindex or 0) for pattern in compiled for match in pattern.finditer(text))

    return find


_KEY_TEXT = r"[A-Za-z0-9+/=\s\\]{40,}"
_KEY_BLOCK = (
    r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\s{0,9}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200}){0,9}"
    # to its end, or that of a text; what begins in the next line and goes on otherwise may be another secret
    rf"(?:{_KEY_TEXT}+(?:-----END [A-Z0-9 ]{{0,60}}-----|(?=[\"'`,<)\]}}\x1b]|-----|\Z))"
    rf"|{_KEY_TEXT}(?<=\s)(?=[A-Za-z0-9+/=\\]{{1,39}}[^A-Za-z0-9+/=\s\\])"
    rf"|{_KEY_TEXT}+)"
)
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_IS = r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
_VALUE = r"[A-Za-z0-9._~+/=-]"


@cache
def _builtin_rules() -> tuple[_Rule, ...]:
    return (
        _told("private-key", ["-----BEGIN "], _KEY_BLOCK),
        _tokens("anthropic-key", ["sk-ant-"], r"[\w-]{20,}+", _URL_SAFE),
        _tokens("api-key", ["sk-"], rf"(?:{_DIGIT}[\w-]{{20,}}+|[A-Za-z]{{20,}}+)", _URL_SAFE),
        _tokens("github-token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], r"[A-Za-z0-9]{20,}+"),
        _tokens("gitlab-token", ["glpat-", "gldt-", "glptt-", "glrt-"], r"[\w-]{20,}+", _URL_SAFE),
        _tokens("aws-access-key", ["AKIA", "ASIA"], r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        _told(
            "aws-secret-key",
            ["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"],
            rf"{_IS}([A-Za-z0-9/+=]{{40,}}+)",
            "_",
            "tT",
            "(?:access_key|ACCESS_KEY)",
        ),
        _told("aws-secret-key", ["ecretAccessKey"], rf"{_IS}([A-Za-z0-9/+=]{{40,}}+)"),
        _tokens(
            "slack-token", ["xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], r"[\w-]{16,}+", _URL_SAFE
        ),
        _told("slack-webhook", ["hooks.slack.com/"], r"(?:services|workflows)/([\w/+-]{20,}+)"),
        _tokens("google-key", ["AIza"], r"[\w-]{35,}+", _URL_SAFE),
        _tokens("google-token", ["ya29."], r"[\w-]{20,}+", _URL_SAFE),
        _tokens("google-token", ["GOCSPX-"], r"[\w-]{20,}+", _URL_SAFE),
        _tokens("stripe-key", ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"], r"[A-Za-z0-9]{16,}+"),
        _tokens("npm-token", ["npm_"], r"[A-Za-z0-9]{36,}+"),
        _tokens("pypi-token", ["pypi-"], r"[\w-]{50,}+", _URL_SAFE),
        _tokens("huggingface-token", ["hf_"], r"[A-Za-z0-9]{30,}+"),
        _tokens("api-key", ["gsk_", "r8_", "fw_"], r"[A-Za-z0-9]{30,}+"),
        _tokens("api-key", ["xai-", "pplx-", "nvapi-"], r"[\w-]{40,}+", _URL_SAFE),
        _tokens("digitalocean-token", ["dop_v1_", "doo_v1_", "dor_v1_"], r"[a-f0-9]{64,}+"),
        _tokens("shopify-token", ["shpat_", "shpss_", "shpca_", "shppa_"], r"[A-Fa-f0-9]{32,}+"),
        _tokens("vault-token", ["hvs.", "hvb."], r"[\w-]{24,}+", _URL_SAFE),
        _tokens("age-key", ["AGE-SECRET-KEY-1"], r"[A-Z0-9]{50,}+"),
        _tokens("sendgrid-key", ["SG."], r"[\w-]{16,64}\.[\w-]{16,}+", "A-Za-z0-9_.-"),
        _tokens("jwt", ["eyJ"], r"[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{10,}+", _URL_SAFE),
        _told("azure-key", ["ountKey=", "dAccessKey="], r"([A-Za-z0-9/+=]{40,}+)"),
        _told("url-password", ["://"], r"""[^\s/:@"'<>\[]{0,100}:([^\s/@"'<>${*%[][^\s/"'<>[]{0,200})@"""),
        _told(
            "authorization",
            ["uthorization", "UTHORIZATION"],
            rf"{_IS}(?:(?i:basic|bearer|digest|token)\s{{1,3}}{_MIXED}({_VALUE}{{8,}}+)|{_DIGIT}({_VALUE}{{12,}}+))",
        ),
        _told("authorization", ["earer ", "EARER "], rf"\s{{0,2}}{_DIGIT}({_VALUE}{{12,}}+)"),
        _told(
            "authorization",
            ["pi-key", "pi-Key", "PI-KEY"],
            rf"{_IS}{_DIGIT}({_VALUE}{{12,}}+)",
            "-",
            "iI",
            "(?:[kK]ey|KEY)",
        ),
        _told("npm-token", [":_authToken", "/_authToken"], rf"{_IS}({_VALUE}{{12,}}+)", "_", "/:", "authToken"),
    )


@cache
def _signs() -> dict[str, re.Pattern[str]]:
    """Return what finds a sign of any rule with that `end`; it begins with one character, which `re` finds quickest."""
    signs = {}
    for end in {rule.end for rule in _builtin_rules()} - {""}:
        rules = [rule for rule in _builtin_rules() if rule.end == end]
        before = "".join(sorted({char for rule in rules for char in rule.before}))
        here = "|".join(rule.sign for rule in rules)
        signs[end] = re.compile(f"{re.escape(end)}(?<=[{before}]{re.escape(end)})(?:{here})", re.ASCII)
    return signs


# ---- the environment -------------------------------------------------------------------------------------------------

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:api_?)?(?:key|keys|token|secret|password|passwd|passphrase|credential|credentials|pat|pwd)(?:_|\d*$)"
    r"|(?:token|secret|password|apikey|accesskey)$",
    re.IGNORECASE,
)
_NO_SECRETS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})  # names that only look so
_PLACEHOLDERS = frozenset(
    ("anonymous", "changeme", "development", "disabled", "localhost", "optional", "password", "production", "required")
)


def secret_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables whose name says that they are secret, each with the name.

    Left out are values of less than 8 characters, paths, placeholders such as `changeme`, and those of one character.
    """
    values: dict[str, str] = {}
    for name, value in environ.items():
        stripped = value.strip()
        if name in _NO_SECRETS or not _SECRET_NAME.search(name) or len(stripped) < SHORTEST_VALUE:
            continue
        if stripped.startswith(("/", "~/", "./")) or stripped.lower() in _PLACEHOLDERS or len(set(stripped)) == 1:
            continue
        if stripped not in f"[redacted env:{name}]":
            values.setdefault(stripped, name)
    return values


def _environment_rules(environ: Mapping[str, str]) -> Iterator[_Rule]:
    for value, name in secret_values(environ).items():
        # as it is, and as JSON and URLs write it; the longest first, for one may begin another
        forms = sorted({value, json.dumps(value)[1:-1], quote(value, safe="")}, key=lambda form: (-len(form), form))
        yield _pattern(f"env:{name}", tuple(forms), re.compile("|".join(map(re.escape, forms))))


# ---- the person's own patterns ---------------------------------------------------------------------------------------


class _TooSlowError(Exception):
    """A pattern of the person's own took too long."""


def _own_rule(kind: str, pattern: str) -> _Rule:
    if problem := pattern_problem(kind, pattern):
        raise HookUsageError(problem)
    compiled = compile_pattern(pattern)

    def find(text: str) -> Iterator[Span]:
        try:
            for match in compiled.finditer(text, timeout=PATTERN_SECONDS):
                if match.end() > match.start():
                    yield match.span()
        except TimeoutError:
            raise _TooSlowError(kind) from None

    return _Rule(kind, (), find)


# ---- the redactor ----------------------------------------------------------------------------------------------------


class Redactor:
    """Finds secrets and puts `[redacted KIND]` in their place.

    `patterns`: regular expressions of your own, by the kind's name; `environ`: where the values of secret-looking
    variables come from, this process's environment by default; `report_only`: find, but change nothing.
    Raises `HookUsageError` for a pattern that is none.
    """

    def __init__(
        self,
        *,
        patterns: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        report_only: bool = False,
    ) -> None:
        self.report_only = report_only
        own = [_own_rule(kind, pattern) for kind, pattern in (patterns or {}).items()]
        values = sorted(_environment_rules(os.environ if environ is None else environ), key=_longest_first)
        self._rules = (*values, *_builtin_rules(), *own)
        self._several_lines = [form for rule in values for form in rule.literals if "\n" in form]
        kinds = "|".join(re.escape(kind) for kind in {rule.kind for rule in self._rules})
        self._marks = _pattern("", ("[redacted ",), re.compile(rf"\[redacted (?:{kinds})\]"))

    def redact(self, text: str) -> tuple[str, tuple[Finding, ...]]:
        """Return the text without secrets, and what was found; the very same text when that is nothing.

        A text on which a pattern of your own takes longer than a second is withheld.
        """
        try:
            findings = self._find(text)
        except _TooSlowError as exc:
            withheld = f"[withheld: the redaction pattern {exc} took more than {PATTERN_SECONDS:g} s]"
            kept = text if self.report_only else withheld
            return kept, (Finding(str(exc), 0, len(text)),)
        if not findings or self.report_only:
            return text, findings
        parts, end = [], 0
        for finding in findings:
            parts += [text[end : finding.start], f"[redacted {finding.kind}]"]
            end = finding.end
        return "".join([*parts, text[end:]]), findings

    def output(self, output: ToolOutput) -> tuple[ToolOutput, tuple[Finding, ...]]:
        """Do the same for a tool's output: its text blocks, and every text in its details."""
        findings: list[Finding] = []
        content = [self._block(block, findings) for block in output.content]
        details = self._everywhere(output.details, findings)
        if not findings or self.report_only:
            return output, tuple(findings)
        return ToolOutput(content, details, output.is_error), tuple(findings)

    def event(self, event: ToolResult) -> ToolResult:
        """Return the event with a redacted result."""
        output, _ = self.output(ToolOutput(event.content, event.details, event.is_error))
        return replace(event, content=output.content, details=output.details)

    def progress(self, on_update: OnUpdate) -> OnUpdate:
        """Return what passes the updates of one tool call on, redacted.

        A line that has no end yet is held back, and so is the beginning of a private key: the secret may go on in the
        next update.  Updates may hold all the text so far, or only what is new.
        """
        return on_update if self.report_only else _Progress(self, on_update)

    # ---- finding

    def _find(self, text: str) -> tuple[Finding, ...]:
        findings: list[Finding] = []
        pieces = list(_cut(self._marks, [(0, text)], [])) if "[redacted " in text else [(0, text)]
        absent = {end for end, sign in _signs().items() if sign.search(text) is None}
        for rule in self._rules:
            if rule.end in absent:
                continue
            if not rule.literals or any(literal in text for literal in rule.literals):
                pieces = list(_cut(rule, pieces, findings))
        return tuple(sorted(findings, key=lambda finding: finding.start))

    def _block(self, block: Any, findings: list[Finding]) -> Any:
        return TextContent(self._text(block.text, findings)) if isinstance(block, TextContent) else block

    def _text(self, text: str, findings: list[Finding]) -> str:
        redacted, found = self.redact(text)
        findings += found
        return redacted

    def _everywhere(self, value: Any, findings: list[Finding]) -> Any:
        if isinstance(value, str):
            return self._text(value, findings)
        if isinstance(value, Mapping):
            return {self._key(key, findings): self._everywhere(item, findings) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._everywhere(item, findings) for item in value]
        if isinstance(value, Struct):
            fields = {name: self._everywhere(item, findings) for name, item in asdict(value).items()}
            return replace(value, **fields)
        return value

    def _key(self, key: Any, findings: list[Finding]) -> Any:
        return self._text(key, findings) if isinstance(key, str) else key

    def unfinished(self, text: str) -> int:
        """Return where the end of a text begins that may be the beginning of a secret."""
        start = max(text.rfind("\n"), text.rfind("\r")) + 1
        begin = text.rfind("-----BEGIN ")
        if begin >= 0 and "PRIVATE KEY" in text[begin : begin + 100] and not _KEY_END.search(text, begin, start):
            start = min(start, begin)
        for value in self._several_lines:
            for length in range(min(len(value), len(text)), 0, -1):
                if text.endswith(value[:length]):
                    start = min(start, len(text) - length)
                    break
        return start


def _longest_first(rule: _Rule) -> tuple[int, str]:
    return -len(rule.literals[0]), rule.kind


def _cut(rule: _Rule, pieces: Iterable[tuple[int, str]], findings: list[Finding]) -> Iterator[tuple[int, str]]:
    """Yield what a rule leaves of the pieces, each with its place in the text; what it finds goes to `findings`."""
    for offset, piece in pieces:
        if rule.literals and not any(literal in piece for literal in rule.literals):
            yield offset, piece
            continue
        end = 0
        for start, stop in rule.find(piece):
            if start < end:  # two literals of one rule, one inside of what the other begins
                continue
            findings.append(Finding(rule.kind, offset + start, offset + stop))
            if start > end:
                yield offset + end, piece[end:start]
            end = stop
        if end < len(piece):
            yield offset + end, piece[end:] if end else piece


class _Progress:
    """Passes progress updates on, without secrets and without what may be the beginning of one."""

    def __init__(self, redactor: Redactor, on_update: OnUpdate) -> None:
        self._redactor = redactor
        self._on_update = on_update
        self._last = ""  # the end of what the tool sent
        self._held = ""  # what was held back of it

    def __call__(self, update: ToolOutput) -> None:
        content = list(update.content)
        texts = [index for index, block in enumerate(content) if isinstance(block, TextContent)]
        if texts:
            first, last = texts[0], texts[-1]
            whole = update.text
            if self._held and self._last not in whole:  # only what is new: it goes on where the last one was cut
                content[first] = TextContent(self._held + _text(content[first]))
            text = _text(content[last])
            at = self._redactor.unfinished(text)
            self._held, self._last = text[at:][-_CARRY:], whole[-200:]
            content[last] = TextContent(text[:at])
        redacted, _ = self._redactor.output(ToolOutput(content, update.details, update.is_error))
        if redacted.text or redacted.details is not None or len(texts) < len(content):
            self._on_update(redacted)


def _text(block: Any) -> str:
    return str(block.text)


@cache
def _default() -> Redactor:
    return Redactor()


def redactor(input: Any, output: Any) -> None:
    """Redact `output.result`: a ready-made interceptor for `tool.after`."""
    output.result, _ = _default().output(output.result)
