"""The known kinds of credentials.

Speed and safety rest on three rules.

1. A pattern is tried only on a text that holds one of its literals (`ghp_`).
2. A match cannot begin in the middle of a longer word (`_not_within`), and every part of a pattern that can fail late is
   short.  So every text takes linear time.
3. A match takes the whole rest of its word, so that a second pass finds no more than the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from agent_hooks.redaction.rules import SecretRule, spans_of

_COLOURS = (r"\x1b\[m", r"\x1b\[K", r"\x1b\[\dm", r"\x1b\[\d\dm", r"\x1b\[\d;\d\dm", r"\x1b\[\d\d;\d\dm")
_WORD = r"[A-Za-z0-9_-]*+"
# Tokens differ from words of prose and code: they have a digit, and after "Basic" a digit or a capital inside.
_DIGIT = r"(?=[A-Za-z._~+/=-]{0,64}[0-9])"
_MIXED = r"(?=[A-Za-z._~+/=-]{0,64}(?:[0-9]|(?<=[a-z])[A-Z]))"
_URL_SAFE = "A-Za-z0-9_-"


def _tokens(kind: str, literals: Sequence[str], body: str, of: str = "A-Za-z0-9") -> SecretRule:
    """Return the rule for tokens that begin with a literal.

    `body`: the pattern of the rest, of 16 characters at least; `of`: the characters that the body may have.
    """
    escaped = [re.escape(literal) for literal in literals]
    find = spans_of(f"{literal}{_not_within(of, literal)}{body}{_WORD}" for literal in escaped)
    if (end := literals[0][-1]) not in "_-.":
        return SecretRule(kind, tuple(literals), find)
    here = "|".join(f"(?<={literal})" for literal in escaped)
    body = "A-Za-z0-9" if end == "_" else _URL_SAFE
    before = "".join(sorted({literal[-2] for literal in literals}))
    sign = f"(?<=[{before}]{re.escape(end)})(?=[{body}]{{16}})(?:{here})"
    return SecretRule(kind, tuple(literals), find, end, before, sign)


def _labelled(kind: str, literals: Sequence[str], rest: str, *sign: str) -> SecretRule:
    """Return the rule for secrets that follow a label, one of the literals; only the group in `rest` is hidden."""
    return SecretRule(kind, tuple(literals), spans_of(f"{re.escape(literal)}{rest}" for literal in literals), *sign)


def _not_within(kind: str, literal: str) -> str:
    """Return a pattern that matches behind `literal` when the literal begins a word.

    That is: before it stands no character of `kind`, or the end of a colour code.
    """
    before = "|".join(f"(?<={colour}{literal})" for colour in _COLOURS)
    return f"(?:(?<![{kind}]{literal})|{before})"


_KEY_TEXT = r"[A-Za-z0-9+/=\s\\]{40,}"
_KEY_BLOCK = (
    r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\s{0,9}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200}){0,9}"
    # The key ends at its END line, at a quote or bracket, or with the text.  A next line that continues with other
    # characters is left out, because it may hold another secret.
    rf"(?:{_KEY_TEXT}+(?:-----END [A-Z0-9 ]{{0,60}}-----|(?=[\"'`,<)\]}}\x1b]|-----|\Z))"
    rf"|{_KEY_TEXT}(?<=\s)(?=[A-Za-z0-9+/=\\]{{1,39}}[^A-Za-z0-9+/=\s\\])"
    rf"|{_KEY_TEXT}+)"
)
KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_IS = r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
_VALUE = r"[A-Za-z0-9._~+/=-]"


@cache
def builtin_rules() -> tuple[SecretRule, ...]:
    """Return the rules for all known kinds."""
    return (
        _labelled("private-key", ["-----BEGIN "], _KEY_BLOCK),
        _tokens("anthropic-key", ["sk-ant-"], r"[\w-]{20,}+", _URL_SAFE),
        _tokens("api-key", ["sk-"], rf"(?:{_DIGIT}[\w-]{{20,}}+|[A-Za-z]{{20,}}+)", _URL_SAFE),
        _tokens("github-token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], r"[A-Za-z0-9]{20,}+"),
        _tokens("gitlab-token", ["glpat-", "gldt-", "glptt-", "glrt-"], r"[\w-]{20,}+", _URL_SAFE),
        _tokens("aws-access-key", ["AKIA", "ASIA"], r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        _labelled(
            "aws-secret-key",
            ["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"],
            rf"{_IS}([A-Za-z0-9/+=]{{40,}}+)",
            "_",
            "tT",
            "(?:access_key|ACCESS_KEY)",
        ),
        _labelled("aws-secret-key", ["ecretAccessKey"], rf"{_IS}([A-Za-z0-9/+=]{{40,}}+)"),
        _tokens(
            "slack-token", ["xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], r"[\w-]{16,}+", _URL_SAFE
        ),
        _labelled("slack-webhook", ["hooks.slack.com/"], r"(?:services|workflows)/([\w/+-]{20,}+)"),
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
        _labelled("azure-key", ["ountKey=", "dAccessKey="], r"([A-Za-z0-9/+=]{40,}+)"),
        _labelled("url-password", ["://"], r"""[^\s/:@"'<>\[]{0,100}:([^\s/@"'<>${*%[][^\s/"'<>[]{0,200})@"""),
        _labelled(
            "authorization",
            ["uthorization", "UTHORIZATION"],
            rf"{_IS}(?:(?i:basic|bearer|digest|token)\s{{1,3}}{_MIXED}({_VALUE}{{8,}}+)|{_DIGIT}({_VALUE}{{12,}}+))",
        ),
        _labelled("authorization", ["earer ", "EARER "], rf"\s{{0,2}}{_DIGIT}({_VALUE}{{12,}}+)"),
        _labelled(
            "authorization",
            ["pi-key", "pi-Key", "PI-KEY"],
            rf"{_IS}{_DIGIT}({_VALUE}{{12,}}+)",
            "-",
            "iI",
            "(?:[kK]ey|KEY)",
        ),
        _labelled("npm-token", [":_authToken", "/_authToken"], rf"{_IS}({_VALUE}{{12,}}+)", "_", "/:", "authToken"),
    )


@cache
def signs() -> dict[str, re.Pattern[str]]:
    """Return, for each `end`, the pattern that finds a sign of any rule with that `end`.

    Each pattern begins with that one character, because `re` finds a single character fastest.
    """
    signs = {}
    for end in {rule.end for rule in builtin_rules()} - {""}:
        rules = [rule for rule in builtin_rules() if rule.end == end]
        before = "".join(sorted({char for rule in rules for char in rule.before}))
        here = "|".join(rule.sign for rule in rules)
        signs[end] = re.compile(f"{re.escape(end)}(?<=[{before}]{re.escape(end)})(?:{here})", re.ASCII)
    return signs
