"""The forms of credentials, the tokens of providers in the forms that they publish, and the hashes of passwords."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from agent_hooks.redaction.signs import SecretRule, spans_of

_COLOURS = (r"\x1b\[m", r"\x1b\[K", r"\x1b\[\dm", r"\x1b\[\d\dm", r"\x1b\[\d;\d\dm", r"\x1b\[\d\d;\d\dm")
_WORD = r"[A-Za-z0-9_-]*+"
# Tokens differ from words of prose and code: they have a digit.
DIGIT = r"(?=[A-Za-z._~+/=-]{0,64}[0-9])"
URL_SAFE = "A-Za-z0-9_-"
BASE64 = r"[A-Za-z0-9+/_=-]*+"
# The sign between a name and a value.
IS = r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
# An `@` with a password before it.  All rules for such passwords have this sign, so its first place shows them all.
BEFORE_AT = r"""(?<=[^\s/"']@)"""
# The secret of an example: `ghp_xxxxxxxx`.
_NO_MASK = "(?!x{8}|X{8})"
# The next characters of a token, which is long in all its forms.
_LONG = r"(?=[\w+/=%@.~-]{16})"


def tokens(
    kind: str, literals: Sequence[str], body: str, of: str = "", *, anchor: str = "", rest: str = _WORD
) -> SecretRule:
    """Return the rule for tokens that begin with a literal.

    `body`: the pattern of the rest; `of`: the characters that the body may have, letters and digits unless given;
    `anchor`: the rare character or text that each literal holds, its last character unless given; `rest`: the rest of the
    token's word, which is hidden too.  Behind an anchor that is the last character, the body has 16 characters of `of`.
    """
    characters = of or "A-Za-z0-9"
    patterns = (
        f"{re.escape(each)}{_not_within(characters, re.escape(each))}{_NO_MASK}{body}{rest}" for each in literals
    )
    rule = SecretRule(kind, tuple(literals), spans_of(patterns))
    if anchor or literals[0][-1] not in "_-.":
        return anchored(rule, anchor, _LONG)
    end = literals[0][-1]
    ahead = f"[{of or ('A-Za-z0-9' if end == '_' else URL_SAFE)}]{{16}}"
    return replace(rule, end=end, ahead=ahead)


def anchored(rule: SecretRule, anchor: str, sign: str = "") -> SecretRule:
    """Return the rule, whose literals are found at their first `anchor`, with `sign` behind; the same without one."""
    return replace(rule, end=anchor, sign=sign) if anchor else rule


def labelled(kind: str, literals: Sequence[str], rest: str, *, anchor: str, sign: str = "") -> SecretRule:
    """Return the rule for secrets that follow a label, one of the literals; only the group in `rest` is hidden.

    `anchor`: the rare character or text that each literal holds; `sign`: the first part of `rest`, where labels without
    a secret are common.
    """
    find = spans_of(f"{re.escape(literal)}{rest}" for literal in literals)
    return anchored(SecretRule(kind, tuple(literals), find), anchor, sign)


def found(kind: str, literals: Sequence[str], pattern: str, anchor: str, ahead: str = "", sign: str = "") -> SecretRule:
    """Return the rule for secrets whose form has no fixed beginning.

    `ahead`: the pattern for the text behind the `anchor`, empty where each literal holds the anchor; `sign`: a pattern
    for the text around.
    """
    return SecretRule(kind, tuple(literals), spans_of([pattern]), anchor, "", ahead, sign)


def begins(characters: str) -> str:
    """Return a pattern that matches where a word of some characters begins: also behind the end of a colour code."""
    return f"(?:(?<![{characters}])|{'|'.join(f'(?<={colour})' for colour in _COLOURS)})"


def _not_within(kind: str, literal: str) -> str:
    """Return a pattern that matches behind `literal` when the literal begins a word.

    That is: before it stands no character of `kind`, or the end of a colour code.
    """
    before = "|".join(f"(?<={colour}{literal})" for colour in _COLOURS)
    return f"(?:(?<![{kind}]{literal})|{before})"


# A number in base64, as Discord writes a bot's number; the token's time and signature follow.
_DIGITS = "[MNO][DTjz][AEIMQUYcgk][w-z0-5]"
_DISCORD = rf"{begins(URL_SAFE)}(?:{_DIGITS}){{5,6}}(?:[MNO][DTjz][AEIMQUYcgk]|[MNO][AQgw])?\.[\w-]{{6}}\.[\w-]{{27,}}+"
_IN_DISCORD = r"(?=[\w-]{6}\.[\w-]{27})(?<=[\w-]{20}\.)"
_CRYPT = (
    r"(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"
    r"|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    r"|5\$(?:rounds=\d{1,9}\$)?[^\s$:'\"]{1,16}\$[./A-Za-z0-9]{43}"
    r"|6\$(?:rounds=\d{1,9}\$)?[^\s$:'\"]{1,16}\$[./A-Za-z0-9]{86}"
    r"|g?y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
    r"|7\$[./A-Za-z0-9]{11,97}\$[./A-Za-z0-9]{43}"
    r"|argon2(?:id|i|d)\$(?:v=\d{1,3}\$)?[mtp=,\d]{5,40}\$[A-Za-z0-9+/]{8,88}\$[A-Za-z0-9+/]{16,}"
    r"|scrypt\$[lnrp=,\d]{5,40}\$[A-Za-z0-9+/]{8,88}\$[A-Za-z0-9+/=]{16,}"
    r"|pbkdf2-sha\d{1,3}\$\d{1,9}\$[./A-Za-z0-9]{8,88}\$[./A-Za-z0-9]{27,})[./A-Za-z0-9+=]*+(?![\w$])"
)
_SESSION = r"[A-Za-z0-9+/=%]{60,}+"
_CRYPTS = ("$1$", "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2")


def provider_rules() -> tuple[SecretRule, ...]:
    """Return the rules for the tokens of providers, in the forms that the providers publish."""
    return (
        tokens("rubygems-token", ["rubygems_"], r"[a-f0-9]{48}"),
        tokens("docker-token", ["dckr_pat_", "dckr_oat_"], r"[\w-]{27,}+", URL_SAFE),
        tokens("newrelic-key", ["NRAK-", "NRII-", "NRIQ-", "NRRA-", "NRBR-"], r"[\w-]{19,}+", URL_SAFE),
        found(
            "newrelic-key",
            ["FFFFNRAL"],
            rf"{begins(URL_SAFE)}(?:[0-9a-f]{{32}}|eu01xx[0-9a-f]{{26}})FFFFNRAL(?!\w)",
            "A",
        ),
        tokens("sentry-token", ["sntrys_", "sntryu_", "sntrya_"], r"[A-Za-z0-9+/=]{60,}+", rest=BASE64),
        tokens("heroku-key", ["HRKU-"], r"[\w-]{36,}+", URL_SAFE),
        tokens("mongodb-atlas-secret", ["mdb_sa_sk_"], r"[\w-]{30,}+", URL_SAFE),
        tokens("pulumi-token", ["pul-"], r"[a-f0-9]{40}", URL_SAFE),
        tokens(
            "doppler-token",
            ["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
            r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+",
            "A-Za-z0-9_.-",
        ),
        tokens("1password-token", ["ops_eyJ"], r"[A-Za-z0-9+/_-]{60,}+", anchor="J", rest=BASE64),
        tokens(
            "1password-token",
            ["A3-"],
            r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9-])",
            URL_SAFE,
            anchor="A",
        ),
        tokens("linear-key", ["lin_api_", "lin_oauth_"], r"[A-Za-z0-9]{40,}+"),
        tokens("notion-token", ["ntn_"], r"[0-9]{8,}[A-Za-z0-9]{32,}+"),
        tokens("notion-token", ["secret_"], rf"{DIGIT}[A-Za-z0-9]{{43}}(?![\w-])"),
        tokens(
            "figma-token",
            ["figd_", "figu_", "figo_", "figp_", "figur_", "figor_", "figuh_", "figoh_"],
            r"[\w-]{40,}+",
            URL_SAFE,
        ),
        tokens("postman-key", ["PMAK-"], r"[a-f0-9]{24}-[a-f0-9]{34}", URL_SAFE),
        tokens("grafana-token", ["glsa_"], r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
        tokens("grafana-token", ["glc_"], r"[A-Za-z0-9+/]{32,}+", rest=BASE64),
        tokens("grafana-token", ["eyJrIjoi"], r"[A-Za-z0-9]{60,}+", "A-Za-z0-9_.-", anchor="J", rest=BASE64),
        tokens("databricks-token", ["dapi"], r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])", URL_SAFE, anchor="dapi"),
        tokens("supabase-key", ["sbp_"], r"(?:v\d_|oauth_)?[a-f0-9]{40}", URL_SAFE),
        tokens("supabase-key", ["sb_secret_"], r"[\w-]{30,}+", URL_SAFE),
        tokens("planetscale-token", ["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], r"[\w.=-]{32,}+", URL_SAFE),
        tokens("netlify-token", ["nfp_", "nfc_", "nfo_", "nfu_", "nfb_"], r"[A-Za-z0-9]{36,}+"),
        tokens("render-key", ["rnd_"], r"[A-Za-z0-9]{28,}+"),
        labelled("render-key", ["api.render.com/deploy/"], r"srv-[a-z0-9]{10,40}\?key=([\w-]{8,}+)", anchor="."),
        tokens(
            "tailscale-key",
            ["tskey-auth-", "tskey-api-", "tskey-client-", "tskey-scim-", "tskey-webhook-"],
            r"[A-Za-z0-9]{8,40}-[A-Za-z0-9]{16,}+",
            URL_SAFE,
        ),
        tokens("artifactory-token", ["AKCp"], r"[A-Za-z0-9]{60,}+", "A-Za-z0-9+/_-", anchor="A"),
        tokens("artifactory-token", ["cmVmdGtu"], r"[A-Za-z0-9]{56}(?![A-Za-z0-9+/=])", "A-Za-z0-9+/_-", anchor="G"),
        tokens("sonarqube-token", ["squ_", "sqp_", "sqa_", "sqco_"], r"[a-zA-Z0-9]{40,}+"),
        tokens("buildkite-token", ["bkua_", "bkct_", "bkat_", "bkaj_"], r"[A-Za-z0-9]{40,}+"),
        tokens("circleci-token", ["CCIPAT_", "CCIPRJ_"], r"[A-Za-z0-9]{20,24}_[a-fA-F0-9]{40}"),
        tokens("atlassian-token", ["ATATT3", "ATCTT3"], r"[\w=+/-]{60,}+", "A-Za-z0-9+/_-", anchor="A", rest=BASE64),
        tokens("atlassian-token", ["ATBB"], r"[A-Za-z0-9]{32}(?![A-Za-z0-9+/=])", "A-Za-z0-9+/_-", anchor="A"),
        tokens("atlassian-token", ["BBDC-"], r"[A-Za-z0-9+/@_-]{40,}+", URL_SAFE, anchor="-", rest=BASE64),
        found(
            "telegram-token",
            [":AA"],
            rf"{begins(URL_SAFE)}\d{{8,10}}:AA[\w-]{{33}}(?![\w-])",
            "A",
            sign=r"(?=[\w-]{33})",
        ),
        found("discord-token", ["."], _DISCORD, ".", "[A-Za-z0-9_.-]{16}", _IN_DISCORD),
        labelled(
            "discord-webhook",
            ["discord.com/api/", "discordapp.com/api/"],
            r"(?:v\d{1,2}/)?webhooks/\d{15,21}/([\w-]{60,}+)",
            anchor=".",
        ),
        labelled(
            "teams-webhook",
            [".webhook.office.com/"],
            r"webhook(?:b2)?/([\w@-]{36,80}/[A-Za-z]{5,30}/[\w/-]{32,}+)",
            anchor=".",
        ),
        tokens("google-token", ["1//0"], r"[\w-]{40,}+", "A-Za-z0-9_/.-", anchor="1//0"),
        tokens("square-token", ["sq0atp-", "sq0csp-", "sq0isp-"], r"[\w-]{22,}+", URL_SAFE),
        tokens("square-token", ["EAAA"], r"(?!AA)[\w+=-]{60}(?![\w+/=-])", "A-Za-z0-9+/_-", anchor="A"),
        found(
            "azure-secret",
            ["Q~"],
            rf"{begins('A-Za-z0-9_.~-')}[\w.~]{{3}}\dQ~[\w.~-]{{31,34}}(?![\w.~-])",
            "~",
            r"[\w.~-]{31}",
            r"(?<=\dQ~)",
        ),
        labelled(
            "azure-sas", ["sig="], r"([A-Za-z0-9%+/_-]{40,}+=?)(?![\w-])", anchor="g=", sign="(?=[A-Za-z0-9%+/_-]{40})"
        ),
        tokens("aws-session-token", ["IQoJb3JpZ2luX2"], _SESSION, anchor="J", rest=""),
        tokens("aws-session-token", ["FwoGZXIvYXdz", "FQoGZXIvYXdz"], _SESSION, anchor="G", rest=""),
        labelled(
            "aws-session-token",
            ["aws_session_token", "AWS_SESSION_TOKEN"],
            rf"{IS}([A-Za-z0-9/+=]{{40,}}+)",
            anchor="_",
        ),
        labelled(
            "totp-secret", ["otpauth://"], r"[^\s\"'<>]{0,300}?[?&]secret=([A-Za-z2-7]{8,}+)(?![\w-])", anchor="uth"
        ),
        labelled(
            "totp-secret",
            [
                "totp_secret",
                "TOTP_SECRET",
                "otp_secret",
                "OTP_SECRET",
                "mfa_secret",
                "MFA_SECRET",
                "2fa_secret",
                "2FA_SECRET",
            ],
            rf"{IS}([A-Z2-7]{{16,}}+)(?![\w-])",
            anchor="_",
        ),
        found(
            "password-hash",
            _CRYPTS,
            rf"{begins('A-Za-z0-9_$')}\${_CRYPT}",
            "$",
            r"(?=[12567yga]|scr|pbk)(?=[a-z0-9-]{1,14}\$[^\s$]{1,40}\$)",
        ),
        labelled(
            "password-hash",
            ["pbkdf2_sha"],
            r"(?:1|256|512)\$\d{1,9}\$[A-Za-z0-9]{8,40}\$([A-Za-z0-9+/=]{20,}+)(?![\w-])",
            anchor="_",
        ),
    )
