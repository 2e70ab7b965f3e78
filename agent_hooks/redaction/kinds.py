"""The known kinds of credentials.

Speed and safety rest on three rules.

1. A pattern is tried only on a text that holds one of its literals (`ghp_`).  In a long text, all literals that hold
   the same rare character, the anchor, are searched at once (`Sign`).
2. A match cannot begin in the middle of a longer word (`providers`), and every part of a pattern that can fail late is
   short.  So every text takes linear time.
3. A match takes the whole rest of its word, so that a second pass finds no more than the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from agent_hooks.redaction.formless import formless_rules
from agent_hooks.redaction.providers import BEFORE_AT, DIGIT, IS, URL_SAFE, found, labelled, provider_rules, tokens
from agent_hooks.redaction.signs import SecretRule, Sign, pattern_rule

SHORTEST_VALUE = 8
"""Characters of a secret value; shorter values would match by chance."""
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:api_?)?(?:key|keys|token|secret|password|passwd|passphrase|credential|credentials|pat|pwd)(?:_|\d*$)"
    r"|(?:token|secret|password|apikey|accesskey)$",
    re.IGNORECASE,
)
# These names only resemble those of secrets.
_NO_SECRETS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
_PLACEHOLDERS = frozenset(
    ("anonymous", "changeme", "development", "disabled", "localhost", "optional", "password", "production", "required")
)


def secret_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables with a secret name, each mapped to that name.

    Left out are values of less than 8 characters, paths, placeholders such as `changeme`, and repetitions of one
    character.
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


def environment_rules(environ: Mapping[str, str]) -> Iterator[SecretRule]:
    """Yield a rule for each secret value: as it is, and as JSON and URLs write it."""
    values = secret_values(environ)
    if not values:
        return
    # Imported here, because one event of another agent mostly has no such variable.
    import json
    from urllib.parse import quote

    for value, name in values.items():
        # The longest form comes first, because one form may begin another.
        forms = sorted({value, json.dumps(value)[1:-1], quote(value, safe="")}, key=lambda form: (-len(form), form))
        yield pattern_rule(f"env:{name}", tuple(forms), "|".join(map(re.escape, forms)))


_KEY_TEXT = r"[A-Za-z0-9+/=\s\\]{40,}"
_KEY_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BLOCK = (
    rf"{_KEY_LABEL}"
    r"(?:\s{0,9}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200}){0,9}"
    # The key ends at its END line, at a quote or bracket, or with the text.  A next line that continues with other
    # characters is left out, because it may hold another secret.
    rf"(?:{_KEY_TEXT}+(?:-----END [A-Z0-9 ]{{0,60}}-----|(?=[\"'`,<)\]}}\x1b]|-----|\Z))"
    rf"|{_KEY_TEXT}(?<=\s)(?=[A-Za-z0-9+/=\\]{{1,39}}[^A-Za-z0-9+/=\s\\])"
    rf"|{_KEY_TEXT}+)"
)
KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
# After "Basic", a token has a digit, or a capital inside.
_MIXED = r"(?=[A-Za-z._~+/=-]{0,64}(?:[0-9]|(?<=[a-z])[A-Z]))"
_VALUE = r"[A-Za-z0-9._~+/=-]"
# The text between a label and a credential, up to the place where the credential begins.
_CREDENTIAL = rf"{DIGIT}(?={_VALUE}{{12}})"
_HEADER = rf"{IS}(?:(?i:basic|bearer|digest|token)\s{{1,3}}{_MIXED}(?={_VALUE}{{8}})|{_CREDENTIAL})"
_TOKEN = rf"\s{{0,2}}{_CREDENTIAL}"
_URL = r"""://[^\s/:@"'<>\[]{0,100}:([^\s/@"'<>${*%[][^\s/"'<>[]{0,200})@"""
_GITLAB = (
    *("glpat-", "gldt-", "glptt-", "glrt-", "glcbt-", "glft-", "glffct-", "glimt-", "glagent-", "gloas-", "glsoat-"),
    *("glwt-", "glrtr-"),
)


@cache
def builtin_rules() -> tuple[SecretRule, ...]:
    """Return the rules for all known kinds, the narrower ones first."""
    return (*_first_rules(), *provider_rules(), *_general_rules())


def _first_rules() -> tuple[SecretRule, ...]:
    return (
        labelled("private-key", ["-----BEGIN "], _KEY_BLOCK, anchor="G", sign=_KEY_LABEL),
        tokens("anthropic-key", ["sk-ant-"], r"[\w-]{20,}+", URL_SAFE),
        tokens("api-key", ["sk-"], rf"(?<!sha256=sk-)(?:{DIGIT}[\w-]{{20,}}+|[A-Za-z]{{20,}}+)", URL_SAFE),
        tokens("github-token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], r"[A-Za-z0-9]{20,}+"),
        # A routable token has a second part.
        tokens("gitlab-token", _GITLAB, r"[\w-]{20,}+(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?", URL_SAFE),
        tokens("gitlab-token", ["GR1348941"], r"[\w-]{20}", URL_SAFE, anchor="G"),
        tokens("aws-access-key", ["AKIA", "ASIA", "ABIA", "ACCA"], r"[A-Z0-9]{16}(?![A-Za-z0-9])", anchor="A"),
        labelled(
            "aws-secret-key",
            ["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"],
            rf"{IS}([A-Za-z0-9/+=]{{40,}}+)",
            anchor="_",
        ),
        labelled("aws-secret-key", ["ecretAccessKey"], rf"{IS}([A-Za-z0-9/+=]{{40,}}+)", anchor="A"),
        tokens(
            "slack-token", ["xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], r"[\w-]{16,}+", URL_SAFE
        ),
        labelled("slack-webhook", ["hooks.slack.com/"], r"(?:services|workflows)/([\w/+-]{20,}+)", anchor="."),
        tokens("google-key", ["AIza"], r"[\w-]{35,}+", URL_SAFE, anchor="A"),
        tokens("google-token", ["ya29."], r"[\w-]{20,}+", URL_SAFE),
        tokens("google-token", ["GOCSPX-"], r"[\w-]{20,}+", URL_SAFE),
        tokens("stripe-key", ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"], r"[A-Za-z0-9]{16,}+"),
        tokens("npm-token", ["npm_"], r"[A-Za-z0-9]{36,}+"),
        tokens("pypi-token", ["pypi-"], r"[\w-]{50,}+", URL_SAFE),
        tokens("huggingface-token", ["hf_"], r"[A-Za-z0-9]{30,}+"),
        tokens("api-key", ["gsk_", "r8_", "fw_"], r"[A-Za-z0-9]{30,}+"),
        tokens("api-key", ["xai-", "pplx-", "nvapi-"], r"[\w-]{40,}+", URL_SAFE),
        tokens("digitalocean-token", ["dop_v1_", "doo_v1_", "dor_v1_"], r"[a-f0-9]{64,}+"),
        tokens("shopify-token", ["shpat_", "shpss_", "shpca_", "shppa_"], r"[A-Fa-f0-9]{32,}+"),
        tokens("vault-token", ["hvs.", "hvb."], r"[\w-]{24,}+", URL_SAFE),
        tokens("age-key", ["AGE-SECRET-KEY-1"], r"[A-Z0-9]{50,}+", anchor="A"),
        tokens("sendgrid-key", ["SG."], r"[\w-]{16,64}\.[\w-]{16,}+", "A-Za-z0-9_.-"),
    )


def _general_rules() -> tuple[SecretRule, ...]:
    return (
        tokens("jwt", ["eyJ"], r"[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{10,}+", URL_SAFE, anchor="J"),
        labelled("azure-key", ["ountKey=", "dAccessKey="], r"([A-Za-z0-9/+=]{40,}+)", anchor="K"),
        found("url-password", ["://"], _URL, "@", ".", BEFORE_AT),
        labelled("authorization", ["uthorization"], rf"{_HEADER}({_VALUE}++)", anchor="uth", sign=_HEADER),
        labelled("authorization", ["UTHORIZATION"], rf"{_HEADER}({_VALUE}++)", anchor="A", sign=_HEADER),
        labelled("authorization", ["earer "], rf"{_TOKEN}({_VALUE}++)", anchor="rer ", sign=_TOKEN),
        labelled("authorization", ["BEARER "], rf"{_TOKEN}({_VALUE}++)", anchor="A", sign=_TOKEN),
        labelled("authorization", ["pi-key", "pi-Key", "PI-KEY"], rf"{IS}{_CREDENTIAL}({_VALUE}++)", anchor="-"),
        labelled("npm-token", [":_authToken", "/_authToken"], rf"{IS}({_VALUE}{{12,}}+)", anchor="_"),
        *formless_rules(),
    )


@cache
def kinds() -> tuple[str, ...]:
    """Return the names of all known kinds."""
    return tuple(dict.fromkeys(rule.kind for rule in builtin_rules()))


def kinds_problem(names: Iterable[str]) -> str | None:
    """Return why names cannot switch kinds off: the first unknown one, with the known kinds; else `None`."""
    unknown = next((name for name in sorted(names) if name not in kinds()), None)
    if unknown is None:
        return None
    return f"there is no kind {unknown!r} of secrets; known are: {', '.join(sorted(kinds()))}"


@cache
def signs() -> tuple[Sign, ...]:
    """Return the signs of each anchor."""
    rules = builtin_rules()
    return tuple(Sign(end, rules) for end in sorted({rule.end for rule in rules} - {""}))


@cache
def any_sign() -> re.Pattern[bytes]:
    """Return the pattern for the signs of all anchors."""
    return re.compile("|".join(sign.source for sign in signs()).encode())
