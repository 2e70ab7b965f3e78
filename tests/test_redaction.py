"""Redaction: the texts that count as secrets, the places that must not get them, and the cost."""

from __future__ import annotations

import json
import os
import re
import string
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks import (
    AgentEnd,
    BashToolDetails,
    Block,
    Cancel,
    Continue,
    HookError,
    HookRunner,
    HookUsageError,
    ImageContent,
    Interceptor,
    SessionEvent,
    ToolOutput,
    ToolResult,
    TurnStart,
    load_hooks,
    wrap_tool,
)
from agent_hooks.records.lines import Decision
from agent_hooks.redaction import RedactedStream, Redactor, Secret, redacting, redactor, secret_values
from agent_hooks.redaction.kinds import kinds
from agent_hooks.redaction.redacting import Search
from agent_hooks.testing import RecordedEvents, ScriptedUI
from agent_hooks.values.tool import OnUpdate
from recording import Recorded, facts
from running import Command
from support import EchoTool, hook_on, runner_of

GITHUB = "ghp_" + "0123456789abcdefghij" * 2
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIEabc+/==\n" * 9
    + "-----END RSA PRIVATE KEY-----"
)
ALNUM = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0fG" + "xR5uL8wD2kJ4hF6tY9qA3nM7cV1eS0iP"
HEX = "0123456789abcdef" * 4
UUID = "0a1b2c3d-4e5f-4a6b-8c7d-" + "0123456789ab"
# Secrets and their kinds, written in pieces so that no scanner takes this file for a leak.
SECRETS = {
    "sk-" + "abcdefghijklmnopqrstuvwxyz": "api-key",
    "sk-" + "proj-abc_DEF-0123456789ghijkl": "api-key",
    "sk-ant-" + "api03-abcdefghijklmnopqrstuv": "anthropic-key",
    GITHUB: "github-token",
    "github_pat_" + "11ABCDE0Y0abcdefghij12_abcdefghij": "github-token",
    "glpat-" + "abcdefghij0123456789": "gitlab-token",
    "AKIA" + "IOSFODNN7EXAMPLE": "aws-access-key",
    "xoxb-" + "123456789012-abcdefghij": "slack-token",
    "AIza" + "SyA0123456789abcdefghijklmnopqrstuv": "google-key",
    "ya29." + "a0AfH6SMBabcdefghijklmnop": "google-token",
    "GOCSPX-" + "abcdefghij0123456789abcd": "google-token",
    "sk_live_" + "abcdefghij0123456789": "stripe-key",
    "npm_" + "abcdefghij0123456789abcdefghij012345": "npm-token",
    "pypi-" + "AgEIcHlwaS5vcmcCJ" + "abcdefghij0123456789" * 3: "pypi-token",
    "hf_" + "abcdefghijABCDEFGHIJabcdefghijABCD": "huggingface-token",
    "gsk_" + "abcdefghijABCDEFGHIJabcdefghijABCD": "api-key",
    "dop_v1_" + "0123456789abcdef" * 4: "digitalocean-token",
    "shpat_" + "0123456789abcdef" * 2: "shopify-token",
    "hvs." + "CAESIabcdefghij0123456789": "vault-token",
    "AGE-SECRET-KEY-1" + "ABCDEFGHIJ" * 5: "age-key",
    "SG." + "abcdefghij0123456789ab.abcdefghij0123456789": "sendgrid-key",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P": "jwt",
    KEY: "private-key",
    # Tokens of providers, in the forms that they publish.
    "glcbt-" + "64_" + ALNUM[:20]: "gitlab-token",
    "glpat-" + ALNUM[:30] + ".01.0a1b2c3d4": "gitlab-token",
    "GR" + "1348941" + ALNUM[:20]: "gitlab-token",
    "rubygems_" + HEX[:48]: "rubygems-token",
    "dckr_pat_" + "Ab-" + ALNUM[:24]: "docker-token",
    "dckr_oat_" + ALNUM[:32]: "docker-token",
    "NRAK-" + "ABCDEFGHIJ" + "KLMNOPQRSTU123456": "newrelic-key",
    HEX[:32] + "FFFF" + "NRAL": "newrelic-key",
    "sntrys_" + "eyJpYXQiOjE2" + ALNUM * 2 + "=_" + ALNUM[:43]: "sentry-token",
    "sntryu_" + HEX: "sentry-token",
    "HRKU-" + "AA" + ALNUM[:58]: "heroku-key",
    "HRKU-" + UUID: "heroku-key",
    "mdb_sa_sk_" + ALNUM[:40]: "mongodb-atlas-secret",
    "pul-" + HEX[:40]: "pulumi-token",
    "dp.pt." + ALNUM[:43]: "doppler-token",
    "dp.st.dev_main." + ALNUM[:43]: "doppler-token",
    "ops_" + "eyJzaWduSW5BZGRyZXNzIjoi" + ALNUM * 4 + "==": "1password-token",
    "A3-" + "ABCDEF-ABCDEF-" + "ABCDE-ABCDE-ABCDE-ABCDE": "1password-token",
    "lin_api_" + ALNUM[:40]: "linear-key",
    "ntn_" + "12345678901" + ALNUM[:35]: "notion-token",
    "secret_" + ALNUM[:43]: "notion-token",
    "figd_" + "ab-c_" + ALNUM[:36]: "figma-token",
    "PMAK-" + HEX[:24] + "-" + HEX[:34]: "postman-key",
    "glsa_" + ALNUM[:32] + "_" + HEX[:8]: "grafana-token",
    "glc_" + "eyJvIjoi" + ALNUM + "==": "grafana-token",
    "eyJrIjoi" + ALNUM * 2 + "=": "grafana-token",
    "dapi" + HEX[:32] + "-2": "databricks-token",
    "sbp_" + HEX[:40]: "supabase-key",
    "sb_secret_" + ALNUM[:22] + "_" + ALNUM[:8]: "supabase-key",
    "pscale_tkn_" + ALNUM[:43]: "planetscale-token",
    "pscale_pw_" + ALNUM[:20] + "_" + ALNUM[:22]: "planetscale-token",
    "nfp_" + ALNUM[:36]: "netlify-token",
    "rnd_" + ALNUM[:32]: "render-key",
    "tskey-auth-" + "kAbCdEf1CNTRL-" + ALNUM[:32]: "tailscale-key",
    "AKCp" + ALNUM + ALNUM[:7]: "artifactory-token",
    "cmVmdGtu" + ALNUM[:56]: "artifactory-token",
    "squ_" + HEX[:40]: "sonarqube-token",
    "sqp_" + HEX[:40]: "sonarqube-token",
    "bkua_" + HEX[:40]: "buildkite-token",
    "CCIPAT_" + ALNUM[:22] + "_" + HEX[:40]: "circleci-token",
    "ATATT3" + "xFfGF0" + ALNUM * 3 + "=1A2B3C4D": "atlassian-token",
    "ATBB" + ALNUM[:32]: "atlassian-token",
    "123456789:" + "AA" + ALNUM[:30] + "-_x": "telegram-token",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4" + ".Gabc1_." + ALNUM[:38]: "discord-token",
    "1//0" + "gAbc-" + ALNUM[:60]: "google-token",
    "sq0atp-" + ALNUM[:22]: "square-token",
    "sq0csp-" + ALNUM[:43]: "square-token",
    "EAAA" + "Efgh" + ALNUM[:56]: "square-token",
    "a1~8" + "Q~" + ALNUM[:20] + "_.-~" + ALNUM[:10]: "azure-secret",
    "IQoJb3JpZ2luX2" + "VjEA" + ALNUM * 4 + "/+==": "aws-session-token",
    "$2b$" + "12$" + ALNUM[:53]: "password-hash",
    "$6$" + "rounds=5000$salt$" + (ALNUM * 2)[:86]: "password-hash",
    "$argon2id$" + "v=19$m=65536,t=3,p=4$" + "c29tZXNhbHRzYWx0$" + ALNUM[:43]: "password-hash",
    "$y$" + "j9T$" + ALNUM[:22] + "$" + ALNUM[:43]: "password-hash",
}
# A label before the secret identifies it.
LABELLED = {
    ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""): "aws-secret-key",
    ('"SecretAccessKey": "', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", '"'): "aws-secret-key",
    ("https://hooks.slack.com/services/", "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", " x"): "slack-webhook",
    ("AccountKey=", "abcdefghij0123456789abcdefghij0123456789==", ";"): "azure-key",
    ("postgres://bob:", "hunter2", "@db.example/x"): "url-password",
    ("redis://:", "p@ss-w:rd", "@cache"): "url-password",
    ("Authorization: Basic ", "dXNlcjpwYXNz", ""): "authorization",
    ("-H 'authorization: Bearer ", "abc123def456ghi", "'"): "authorization",
    ("BEARER ", "abc123def456ghi", "\n"): "authorization",
    ("X-Api-Key: ", "0123456789abcdef", ""): "authorization",
    ("//registry.npmjs.org/:_authToken=", "abcdefabcdefabcdef", ""): "npm-token",
    ("https://discord.com/api/webhooks/123456789012345678/", (ALNUM * 2)[:68], ""): "discord-webhook",
    (
        "https://x.webhook.office.com/webhookb2/",
        f"{UUID}@{UUID}/IncomingWebhook/{HEX[:32]}/{UUID}",
        "",
    ): "teams-webhook",
    ("https://a.blob.core.windows.net/c?sv=2022-11-02&se=2027&sig=", ALNUM[:43] + "%3D", ""): "azure-sas",
    ("aws_session_token = ", ALNUM * 4 + "==", ""): "aws-session-token",
    ("otpauth://totp/Shop:bob?issuer=Shop&secret=", "JBSWY3DPEHPK3PXP", "&digits=6"): "totp-secret",
    ("TOTP_SECRET=", "JBSWY3DPEHPK3PXP", ""): "totp-secret",
    ("https://api.render.com/deploy/srv-abcdefghij0123456789?key=", "aBc-123_xyz", ""): "render-key",
    ("pbkdf2_sha256$600000$saltsaltsalt$", ALNUM[:43] + "=", ""): "password-hash",
    ("machine git.example login bob password ", "hunter2", ""): "netrc-password",
    ("machine git.example\n  login bob\n  password ", "hunter2", "\n"): "netrc-password",
    ("db.example:5432:shop:bob:", "hunter2", ""): "pgpass-password",
    ("db.example:*:*:bob:", "hunter2", "\n"): "pgpass-password",
    ('{"auths": {"r.example": {"auth": "', "Ym9iOmh1bnRlcjI=", '"}}}'): "docker-auth",
    ("curl -u bob:", "hunter2", " https://example.com"): "cli-password",
    ("curl --user 'bob:", "hunter", "' https://example.com"): "cli-password",
    ("mysql -h db -p", "hunter2", " shop"): "cli-password",
    ("sshpass -p ", "hunter2", " ssh bob@host"): "cli-password",
    ("tool --password ", "hunter2", " x"): "cli-password",
    ("bob:", "hunter2", "@tcp(db:3306)/shop"): "dsn-password",
}
HARMLESS = [
    "the text sk-circle-fade-dot-animation-of-css and ghp_short",
    "x = '-----BEGIN PRIVATE KEY-----' in text and so on, until the very end of this line",
    "https://user:${TOKEN}@host/ https://u:{pw}@h http://a.b:80/x@y scp://host:/path mailto:a@b",
    "authorization = getAuthorizationHeader()\nBearer authentication is what the api-key: header replaces",
    "550e8400-e29b-41d4-a716-446655440000 da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "AKIA and eyJ and AKIAshort, a very_long_snake_case_name_of_a_function and-a-long-kebab-case-name",
    "",
]
EMPTY = Redactor(environ={})
# Only the name shows that the value is a secret.
NAMED = """
DB_PASSWORD=<correcthorse>
export API_TOKEN=<abc123def456>
password: <hunter2>
  - POSTGRES_PASSWORD=<sup3rs3cret>
    password: <correct-horse-battery>
"password": "<s3cr3t>",
{"password":"<hunter2>","user":"x"}
password = <hunter2>
const password = "<p4ss!>";
host=db user=bob password=<hunter2> dbname=x
Server=db;User Id=sa;Password=<hunter2>;Encrypt=true
mysql --password=<hunter2> -h x
https://x.example/?token=<abc123def456>&password=<hunter2>
<password><hunter2></password>
client_secret: <abcDEF0123456789>
apiKey: "<abcDEF0123456789>",
SECRET_KEY_BASE=<0123456789abcdef>
PGPASSWORD=<hunter2> psql
'passphrase' => '<open-s3same>'
SMTP_PASS=<letmein99>
\\"password\\": \\"<hunter22>\\"
config["api_key"] = "<abcDEF0123456789>"
"password": "<correcthorsebattery>"
HEROKU_API_KEY=<0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab>
"""
NO_VALUES = """
password: changeme
password: ${VAR}
PASSWORD=$(cat x)
PASSWORD=$PASSWORD1
token: <token>
password: xxxx
password: process.env.DB_PASSWORD1
password = os.environ["X1"]
password: str
password: str = "x"
password=get_password1()
f(password=password1, token=t2)
connect(password=pw1)
{"type": "password", "name": "token"}
"token": "identifier",
max_tokens: 4096
"eos_token": "<|im_end|>"
password: SecretStr
token: OAuth2Token
self.token = self.tokens[1]
token = tok2
"password": "Passwort"
passwd = base64
password: "********"
nextPageToken: "abcdef1234567"
{token:"punctuation"}
secretName: db-credentials
API_KEY=your_api_key_1
password == "hunter2"
the password is hunter2
uses: x@v3 with token: ${{ secrets.GITHUB_TOKEN }}
PASSWORD=%PASSWORD1%
SECRET_FILE=/run/secrets/x1
password: {{ vault_password1 }}
docker run -u 1000:1000 --user node:node image
docker run -u www-data:docker image
mkdir -p build/dir1
machine learning has a password
"auth": "c29tZXRoaW5n"
"""


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:20])
@pytest.mark.parametrize("around", ["{}", "a {} b", '"{}",', "X={}\n", "\x1b[01;31m\x1b[K{}\x1b[m", "é{}é"])
def test_a_credential_is_hidden_wherever_it_stands(secret: str, around: str) -> None:
    """The mark names the kind, the text around it stays, and the secret has its place in the text."""
    text = around.format(secret)
    redacted, [finding] = EMPTY.redact(text)
    assert redacted == around.format(f"[redacted {SECRETS[secret]}]")
    assert text[finding.start : finding.end] == secret
    assert finding.kind == SECRETS[secret]


@pytest.mark.parametrize("parts", LABELLED, ids=lambda parts: parts[0])
def test_a_secret_that_is_told_by_what_stands_before_it_is_hidden(parts: tuple[str, str, str]) -> None:
    """Only the secret is hidden, not the label before it."""
    before, secret, after = parts
    redacted, _ = EMPTY.redact(before + secret + after)
    assert redacted == f"{before}[redacted {LABELLED[parts]}]{after}"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_credential_stays(text: str) -> None:
    """The very same text comes back."""
    redacted, findings = EMPTY.redact(text)
    assert redacted is text
    assert findings == ()


@pytest.mark.parametrize("line", NAMED.strip().split("\n"))
def test_a_value_with_a_secrets_name_is_hidden(line: str) -> None:
    """The name, the signs and the text around the value stay."""
    values = re.findall(r"(?<=[=\"': >])<([^<>/]+)>", line)
    text = re.sub(r"(?<=[=\"': >])<([^<>/]+)>", r"\1", line)
    redacted, findings = EMPTY.redact(text)
    assert values
    assert [text[each.start : each.end] for each in findings] == values
    assert redacted == re.sub(r"(?<=[=\"': >])<([^<>/]+)>", "[redacted named-secret]", line)


@pytest.mark.parametrize("line", NO_VALUES.strip().split("\n"))
def test_a_placeholder_a_type_or_code_is_no_secret(line: str) -> None:
    """The very same text comes back."""
    assert EMPTY.redact(line) == (line, ())


def test_the_values_of_secret_looking_variables_are_hidden() -> None:
    """They are hidden as they are, as JSON and as in URLs; of two that begin alike, the longer one."""
    values = {"DB_PASSWORD": 'pä"ss\nword', "A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefghijkl"}
    each = Redactor(environ=values)
    text = f"{values['DB_PASSWORD']} {json.dumps(values['DB_PASSWORD'])} p%C3%A4%22ss%0Aword abcdefghijkl abcdefgh"
    password = "[redacted env:DB_PASSWORD]"
    redacted, _ = each.redact(text)
    assert redacted == f'{password} "{password}" {password} [redacted env:B_TOKEN] [redacted env:A_TOKEN]'


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("GITHUB_TOKEN", "abcdefgh", True),
        ("API_KEY", "abcdefgh", True),
        ("OPENAI_APIKEY", "abcdefgh", True),
        ("AWS_SECRET_ACCESS_KEY", "abcdefgh", True),
        ("PGPASSWORD", "abcdefgh", True),
        ("SIGNING_KEY_2", "abcdefgh", True),
        ("MYSQL_PWD", "abcdefgh", True),
        ("A_TOKEN", "short", False),
        ("A_TOKEN", "changeme", False),
        ("A_TOKEN", "xxxxxxxxxxxx", False),
        ("A_TOKEN", "A_TOKEN", False),
        ("A_LONG_TOKEN", "env:A_LONG_TOKEN", False),
        ("SSH_KEY", "/home/me/.ssh/id", False),
        ("PWD", "abcdefgh", False),
        ("KEYBOARD", "abcdefgh", False),
        ("PATH", "abcdefgh", False),
        ("MONKEY", "abcdefgh", False),
    ],
)
def test_which_variables_look_secret(name: str, value: str, secret: bool) -> None:
    """The name decides; placeholders, paths and short values are no secrets."""
    assert (value in secret_values({name: value})) is secret


@pytest.mark.parametrize("kind", kinds())
def test_each_kind_can_be_switched_off(kind: str) -> None:
    """A disabled kind is found nowhere, and the others as before."""
    others = Redactor(environ={}, disabled=[kind])
    for secret, each in [*SECRETS.items(), *(("".join(parts), each) for parts, each in LABELLED.items())]:
        found = {finding.kind for finding in others.redact(secret)[1]}
        assert kind not in found
        assert each == kind or each in found


def test_an_unknown_kind_cannot_be_switched_off() -> None:
    """The error names the kinds that there are."""
    with pytest.raises(
        HookUsageError, match="there is no kind 'nothing' of secrets; known are: 1password-token, age-key"
    ):
        Redactor(disabled=["nothing"])


def test_every_kind_has_a_test() -> None:
    """Each kind is in one of the tables above."""
    assert set(kinds()) == {*SECRETS.values(), *LABELLED.values(), "named-secret"}


def test_the_page_lists_every_kind() -> None:
    """The table of kinds in the page is that of the code, in alphabetical order."""
    page = (Path(__file__).parent.parent / "docs" / "redaction.md").read_text()
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE) == sorted(kinds())


def test_hashes_and_identifiers_are_no_secrets() -> None:
    """50,000 of them, as lock files, logs and manifests write them."""
    random = Random(5)

    def digits(of: str, count: int) -> str:
        return "".join(random.choices(of, k=count))

    base64 = string.ascii_letters + string.digits + "+/"
    lines = []
    for _ in range(4200):
        lines += [
            digits("0123456789abcdef", 40),
            digits("0123456789abcdef", 64),
            f"commit {digits('0123456789abcdef', 40)}",
            f"{digits('0123456789abcdef', 8)}-{digits('0123456789abcdef', 4)}-4abc-8def-{digits('0123456789abcdef', 12)}",
            f'"integrity": "sha512-{digits(base64, 86)}==",',
            f"    --hash=sha256:{digits('0123456789abcdef', 64)}",
            f"github.com/x/y v1.2.3 h1:{digits(base64, 43)}=",
            f"pod/web-{digits('bcdfghjklmnpqrstvwxz2456789', 10)}-{digits('bcdfghjklmnpqrstvwxz2456789', 5)} 1/1 Running",
            digits(base64, 22),
            digits(base64, 44),
            f"id={digits(string.ascii_letters + string.digits + '-_', 11)}",
            f"file.py,sha256={digits(string.ascii_letters + string.digits + '-_', 43)},1234",
        ]
    _, findings = EMPTY.redact("\n".join(lines))
    assert findings == ()


def test_the_standard_library_holds_nothing_but_examples() -> None:
    """Only passwords in the URLs of examples are found, as before, and the word behind one `authorization`."""
    found = []
    for path in sorted(Path(os.__file__).parent.rglob("*.py")):
        parts = path.relative_to(Path(os.__file__).parent).parts
        if not {"site-packages", "dist-packages", "test", "tests"}.intersection(parts):
            _, findings = EMPTY.redact(path.read_text(errors="replace"))
            found += [finding.kind for finding in findings]
    assert set(found) <= {"url-password", "authorization"}


def test_patterns_of_the_persons_own() -> None:
    """A wrong pattern or name is refused at once, and empty matches do not count."""
    each = Redactor(environ={}, patterns={"ticket": "INT-[0-9]+", "nothing": "x*"})
    assert each.redact("see INT-12, y")[0] == "see [redacted ticket], y"
    with pytest.raises(HookUsageError, match=r"bad: the regular expression '\(' cannot be used"):
        Redactor(patterns={"bad": "("})
    with pytest.raises(HookUsageError, match="the name 'a]b' may have letters"):
        Redactor(patterns={"a]b": "x"})


def test_a_text_on_which_an_own_pattern_is_too_slow_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that could not be searched is hidden as a whole, except in report-only mode."""
    monkeypatch.setattr(redacting, "PATTERN_SECONDS", 0.01)
    patterns = {"slow": "(a+)+[^a]c"}
    text = "a" * 200 + "b"
    redacted, [finding] = Redactor(environ={}, patterns=patterns).redact(text)
    assert redacted == "[withheld: the redaction pattern slow took more than 0.01 s]"
    assert finding.kind == "slow"
    assert Redactor(environ={}, patterns=patterns, report_only=True).redact(text)[0] == text


def test_report_only_finds_and_changes_nothing() -> None:
    """The very same output comes back."""
    output = ToolOutput(GITHUB)
    same, findings = Redactor(environ={}, report_only=True).output(output)
    assert same is output
    assert [finding.kind for finding in findings] == ["github-token"]


def test_all_of_a_tools_output_is_redacted() -> None:
    """Blocks, and keys and values of the details at any depth, are redacted; images and other values stay."""
    image = ImageContent("aGk=", "image/png")
    details = {"a": [{"b": (GITHUB, 5)}], GITHUB: BashToolDetails(full_output_path=f"/tmp/{GITHUB}")}
    output = ToolOutput([*ToolOutput(GITHUB).content, image], details, is_error=True)
    redacted, findings = EMPTY.output(output)
    mark = "[redacted github-token]"
    assert redacted.details == {
        "a": [{"b": [mark, 5]}],
        mark: BashToolDetails(full_output_path=f"/tmp/{mark}"),
    }
    assert redacted.text == mark
    assert redacted.content[1] == image
    assert redacted.is_error
    assert len(findings) == 4
    harmless = ToolOutput("fine", {"a": [1]})
    assert EMPTY.output(harmless)[0] is harmless


def test_the_ready_made_interceptor_redacts_the_result() -> None:
    """It is called with `(input, output)`, as every interceptor."""
    output: Any = SimpleNamespace(result=ToolOutput(GITHUB))
    redactor(SimpleNamespace(tool_name="bash"), output)
    assert output.result.text == "[redacted github-token]"


# ---- properties

VALUES = {
    "DB_PASSWORD": "hunter2-hunter2",
    "A_TOKEN": 'a"b\\c]d[e',
    "B_TOKEN": "sk-abc123",
    "C_KEY": "line one\nline two",
}
FULL = Redactor(environ=VALUES)
PIECES = [
    *SECRETS,
    *VALUES.values(),
    *("".join(parts) for parts in LABELLED),
    *HARMLESS,
    *(line.replace("<", "").replace(">", "") for line in NAMED.strip().split("\n")),
    "[redacted github-token]",
    "password=",
    "token: ",
    "=",
    "machine a login b password ",
    " -u a:",
    "$2b$12$",
    "[redacted ",
    "Authorization: ",
    "-----BEGIN PRIVATE KEY-----",
    "eyJ",
    "://",
    "@",
    "-",
    "_",
    "\n",
    "\x1b[0m",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(string.printable, max_size=12), max_size=8).map("".join)


@given(TEXTS)
def test_redacting_again_changes_nothing(text: str) -> None:
    """A mark is no secret, and makes no secret of the text beside it."""
    redacted, _ = FULL.redact(text)
    assert FULL.redact(redacted) == (redacted, ())


@example("task-list of the sk-abcdefghijklmnopqrstuvwxyz")
@given(TEXTS | TEXTS.map(lambda text: text * 30))
def test_a_short_text_is_searched_as_thoroughly_as_a_long_one(text: str) -> None:
    """A short text is searched for the literals of the rules, a long one for their signs first."""
    found = FULL.redact(text)
    with pytest.MonkeyPatch.context() as patch:
        for limit in (-1, len(text)):
            patch.setattr(redacting, "_SHORT", limit)
            assert FULL.redact(text) == found


def _by_every_rule(each: Redactor, text: str) -> tuple[Secret, ...]:
    """Return the secrets that are found when no rule is left out."""
    search = Search(text, each._marks.find(text))
    for rule in each._rules:
        search.add(rule)
    return search.secrets()


@given(TEXTS | TEXTS.map(lambda text: text + "x = y\n" * 500))
def test_a_rule_that_is_left_out_would_have_found_nothing(text: str) -> None:
    """A text is searched as if each rule were tried on it."""
    assert FULL.redact(text)[1] == _by_every_rule(FULL, text)


def test_in_files_too_a_rule_that_is_left_out_would_have_found_nothing() -> None:
    """A sample of the standard library, each file with a secret in its middle."""
    secrets = list(SECRETS)
    for number, path in enumerate(sorted(Path(os.__file__).parent.glob("*.py"))[::3]):
        text = path.read_text(errors="replace")[:50_000]
        middle = text.find("\n", len(text) // 2) + 1
        text = f"{text[:middle]}{secrets[number % len(secrets)]}\n{text[middle:]}"
        assert EMPTY.redact(text)[1] == _by_every_rule(EMPTY, text), path


@pytest.mark.parametrize("secret", [*SECRETS, *map("".join, LABELLED)], ids=lambda secret: secret[:20])
def test_a_secret_in_a_short_text_has_a_hint(secret: str) -> None:
    """Only a text without any hint is left out of the search."""
    each = Redactor(environ={})
    assert len(each._wanted(f"x {secret} y")) > len(each._always)


@given(TEXTS)
def test_text_without_findings_stays_and_findings_are_what_was_taken_out(text: str) -> None:
    """The text between the secrets stays, in its order."""
    redacted, findings = FULL.redact(text)
    end, expected = 0, ""
    for finding in findings:
        assert end <= finding.start < finding.end
        expected += f"{text[end : finding.start]}[redacted {finding.kind}]"
        end = finding.end
    assert redacted == expected + text[end:]


@example("-----BEGIN PRIVATE KEY-----" + "MIIEvQIBADANBgkqhkiG9w0BAQEF" * 2, "sk-abcdefghijklmnopqrstuvwxyz")
@given(TEXTS, st.sampled_from([*SECRETS, *VALUES.values()]))
def test_findings_never_hold_a_secret(text: str, secret: str) -> None:
    """A secret that begins a word is hidden, with any text before it."""
    redacted, findings = FULL.redact(f"{text}\n{secret}\n")
    assert secret not in repr(findings)
    assert findings[-1].end >= len(f"{text}\n{secret}")
    assert redacted.rstrip().endswith("]")


@pytest.mark.parametrize("piece", [*filter(None, PIECES), "a" * 64, "eyJa.", "sk-0"], ids=repr)
@pytest.mark.slow
def test_every_text_takes_linear_time(piece: str) -> None:
    """A pattern that searched the same text again and again would take too long here."""
    for glue in ("", " ", "-", "\x1b[0m"):
        redacted, _ = FULL.redact((piece + glue) * (50_000 // len(piece + glue)))
        assert FULL.redact(redacted) == (redacted, ())


# ---- progress


def shown(updates: list[str], each: Redactor = FULL) -> list[str]:
    """Return the text that a screen gets from these updates."""
    seen: list[str] = []
    on_update = each.progress(lambda update: seen.append(update.text))
    for update in updates:
        on_update(ToolOutput(update))
    return seen


@given(st.sampled_from([*SECRETS, *VALUES.values()]), st.data())
def test_a_secret_that_is_split_over_updates_is_never_shown(secret: str, data: Any) -> None:
    """Updates may hold all of the text so far or only the new part; no half of the secret is shown."""
    text = f"1\n2 {secret}\nthree\n"
    at = data.draw(st.integers(0, len(text)))
    for updates in ([text[:at], text], [text[:at], text[at:]]):
        seen = shown(updates)
        assert re.search(r"2 \[redacted [\w:-]+\]\n(three\n)?$", "".join(seen).removesuffix("three\n"))
        # The kind's name in the mark may be a part of the secret.
        seen = [re.sub(r"\[redacted [\w:-]+\]", "", text) for text in seen]
        assert not any(secret[i : i + 8] in text for i in range(max(1, len(secret) - 8)) for text in seen)


def test_a_private_key_whose_last_line_has_no_end_yet_is_held_back_as_a_whole() -> None:
    """Otherwise its end would follow the mark as if it were another text."""
    assert shown([f"1\n{KEY}", "\nthree\n"]) == ["1\n", "[redacted private-key]\nthree\n"]


def test_whole_lines_are_shown_at_once_and_the_rest_when_it_is_whole() -> None:
    """An update without new text is dropped; a progress line that ends with a carriage return is a line."""
    assert shown(["one\ntw", "one\ntwo\nth", "one\ntwo\nthree\n"]) == ["one\n", "one\ntwo\n", "one\ntwo\nthree\n"]
    assert shown(["10 %\r20 %", "30 %\r"]) == ["10 %\r", "20 %30 %\r"]
    assert shown(["no end"]) == []
    assert shown([GITHUB], Redactor(environ={}, report_only=True)) == [GITHUB]


def test_an_update_without_text_is_passed_on() -> None:
    """It may hold an image, or details."""
    seen: list[ToolOutput] = []
    on_update = FULL.progress(seen.append)
    on_update(ToolOutput([ImageContent("aGk=", "image/png")]))
    on_update(ToolOutput("", {"percent": 5}))
    assert [len(update.content) for update in seen] == [1, 1]


# ---- in the pipeline


class Leaking(EchoTool):
    """A tool that puts a secret into its progress and its result."""

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Put the secret into progress and result."""
        if on_update is not None:
            on_update(ToolOutput(f"{GITHUB}\n"))
        if input["command"] == "raise":
            raise ValueError(GITHUB)
        return ToolOutput(GITHUB, {"token": GITHUB})


@pytest.mark.parametrize("command", ["return", "raise"])
async def test_redaction_is_the_last_step_of_a_call(command: str) -> None:
    """Handlers of `tool_result` get the secret; result, progress, observers and `after_tool_call` do not."""
    seen: list[str] = []

    async def look(event: ToolResult, ctx: object) -> None:
        seen.append(str(event))

    runner, errors = runner_of(hook_on("tool_result", look), redactor=EMPTY)
    recorded = RecordedEvents(runner)
    updates: list[ToolOutput] = []
    output = await wrap_tool(Leaking(), runner).execute("1", {"command": command}, on_update=updates.append)
    assert GITHUB in seen[0]
    everything = repr([output, updates, recorded.of("tool_result"), recorded.of("after_tool_call")])
    assert GITHUB not in everything
    assert everything.count("[redacted github-token]") >= 4
    assert errors == []


async def test_the_interceptor_works_where_no_redactor_is_the_last_step() -> None:
    """It is registered for one tool, and the results of others stay."""
    runner, errors = runner_of()
    runner.interceptors.add(Interceptor("redact", "tool.after", redactor, tool_matcher="^bash$"))
    output = await wrap_tool(Leaking(), runner).execute("1", {"command": "return"})
    assert (output.text, output.details) == ("[redacted github-token]", {"token": "[redacted github-token]"})
    output = await wrap_tool(Leaking("other"), runner).execute("1", {"command": "return"})
    assert output.text == GITHUB
    assert errors == []


async def test_the_reason_of_a_block_is_redacted() -> None:
    """Neither the result nor the observers get the secret."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Block(f"no {GITHUB}")), redactor=EMPTY)
    recorded = RecordedEvents(runner)
    output = await wrap_tool(Leaking(), runner).execute("1", {"command": "return"})
    assert output.text.startswith("no [redacted github-token]")
    assert GITHUB not in repr([output, recorded.of("after_tool_call")])


async def test_report_only_is_reported_without_the_secret() -> None:
    """The result stays, and error listeners get the kinds that would be hidden."""
    runner, errors = runner_of(redactor=Redactor(environ={}, report_only=True))
    output = await wrap_tool(Leaking(), runner).execute("1", {"command": "return"})
    assert output.text == GITHUB
    [error] = errors
    assert error.error == "the result of bash holds secrets that redaction would hide: github-token"


class AnyTool(EchoTool):
    """A tool that takes any input."""

    def __init__(self, name: str) -> None:
        super().__init__(name, self._done)
        self.input_schema = {"type": "object"}

    async def _done(self, input: dict[str, Any]) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("tool", "input", "disk", "asked"),
    [
        ("write", {"path": "f", "content": "a [redacted github-token]"}, None, True),
        ("write", {"path": "f", "content": "a [redacted env:DB_PASSWORD]"}, "token = x", True),
        ("write", {"path": "f", "content": "a [redacted github-token]"}, "the mark [redacted github-token]", False),
        ("write", {"path": "f", "content": "[redacted jwt] [redacted jwt]"}, "[redacted jwt]", True),
        ("write", {"path": "f", "content": "a [redacted text"}, None, False),
        ("edit", {"path": "f", "old_string": "a", "new_string": "[redacted jwt]"}, "a [redacted jwt]", True),
        (
            "edit",
            {"path": "f", "old_string": "[redacted jwt]", "new_string": "b [redacted jwt]"},
            "[redacted jwt]",
            False,
        ),
        ("edit", {"path": "f", "old_string": "[redacted jwt]", "new_string": "b [redacted jwt]"}, "secret", True),
        ("edit", {"path": "f", "old_string": "[redacted jwt]", "new_string": "b"}, "secret", False),
        ("MultiEdit", {"file_path": "f", "edits": [{"old_string": "a", "new_string": "[redacted jwt]"}]}, "a", True),
        ("mcp__fs__write_file", {"path": "f", "text": "[redacted jwt]"}, None, True),
        ("apply_patch", {"input": "*** Begin Patch\n+x [redacted jwt]\n*** End Patch"}, None, True),
        ("apply_patch", {"input": "*** Begin Patch\n [redacted jwt]\n+x\n*** End Patch"}, None, False),
        ("apply_patch", {"input": "*** Begin Patch\n-[redacted jwt]\n+[redacted jwt]s\n*** End Patch"}, None, False),
        ("bash", {"command": "cat > f <<'E'\n[redacted jwt]\nE"}, None, True),
        ("bash", {"command": "echo '[redacted jwt]' | tee f"}, None, True),
        ("bash", {"command": "sed -i 's/a/[redacted jwt]/' f"}, None, True),
        ("bash", {"command": "grep -rn '[redacted jwt]' . 2>/dev/null"}, None, False),
        ("read", {"path": "[redacted jwt]"}, None, False),
        ("grep", {"pattern": "[redacted jwt]"}, None, False),
    ],
)
async def test_a_tool_that_would_write_a_mark_is_asked(
    tmp_path: Path, tool: str, input: dict[str, Any], disk: str | None, asked: bool
) -> None:
    """Without a person the call is blocked; a mark that the file holds at that place may be written again."""
    if disk is not None:
        (tmp_path / "f").write_text(disk)
    runner = HookRunner([], cwd=str(tmp_path), redactor=EMPTY)
    errors: list[HookError] = []
    runner.on_error(errors.append)
    output = await wrap_tool(AnyTool(tool), runner).execute("1", input)
    assert output.is_error is asked
    if asked:
        assert "over a secret" in output.text
        assert "change only the text around it" in output.text
        assert "redaction-mark" in str(output.details) or "redaction" in output.text
    assert errors == []


async def test_a_person_may_allow_a_mark() -> None:
    """The question names the tool and the mark; yes lets the call run."""
    ui = ScriptedUI(True)
    runner, _ = runner_of(redactor=EMPTY, ui=ui)
    output = await wrap_tool(AnyTool("write"), runner).execute("1", {"path": "f", "content": "[redacted jwt]"})
    assert not output.is_error


async def test_the_question_about_a_mark_is_recorded(recorded: Recorded) -> None:
    """As a step of the guards."""
    runner = recorded.runner(redactor=EMPTY, ui=ScriptedUI(True))
    await wrap_tool(AnyTool("write"), runner).execute("1", {"path": "f", "content": "[redacted jwt]"})
    runner.end_records()
    assert ("guards", "redaction", "ask") in [facts(step)[:3] for step in recorded.line(Decision).steps]


async def test_marks_are_no_concern_without_redaction() -> None:
    """A redactor that only reports puts no mark into any text."""
    for redactor_ in (None, Redactor(environ={}, report_only=True)):
        runner, _ = runner_of(redactor=redactor_)
        output = await wrap_tool(AnyTool("write"), runner).execute("1", {"path": "f", "content": "[redacted jwt]"})
        assert not output.is_error


async def test_the_texts_of_hooks_are_redacted() -> None:
    """A message that is sent, the text of a `Continue`, the reason of a cancel, and a failure with its traceback."""

    def fail(event: object, ctx: object) -> None:
        raise ValueError(f"no {GITHUB}")

    runner, errors = runner_of(
        hook_on("agent_end", lambda event, ctx: Continue(f"go {GITHUB}")),
        hook_on("session", lambda event, ctx: Cancel(f"no {GITHUB}")),
        hook_on("turn_start", fail),
        redactor=EMPTY,
    )
    sent: list[str] = []
    runner.engine.set_send_handler(lambda text, attachments, hook: sent.append(text))
    runner.engine.send("hook", f"hello {GITHUB}", ())
    assert sent == ["hello [redacted github-token]"]
    cancel = await runner.emit(SessionEvent(reason="before_clear"))
    assert isinstance(cancel, Cancel)
    assert cancel.reason == "no [redacted github-token]"
    answer = await runner.emit(AgentEnd(messages=()))
    assert isinstance(answer, Continue)
    assert answer.text == "go [redacted github-token]"
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    [error] = errors
    assert GITHUB not in error.error + error.traceback
    assert "no [redacted github-token]" in error.error


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("check", ".agent/hooks/broken.py"), 1),
        (("list",), None),
        (("run", "@read config"), None),
        (("emit", "turn_start", "--hook", ".agent/hooks/broken.py"), None),
        (("replay", ".agent/sessions"), None),
        (("bridge", "claude-code"), None),
    ],
)
def test_the_error_of_a_hook_that_fails_to_load_is_redacted(
    command: Command, args: tuple[str, ...], code: int | None
) -> None:
    """Each command that shows the error hides the secret in it."""
    (command.project / ".agent" / "hooks").mkdir(parents=True)
    (command.project / ".agent" / "hooks" / "broken.py").write_text("raise ValueError('no postgres://a:hunter2@db')\n")
    (command.project / "config").write_text("x")
    if args[0] == "replay":
        command("run", "@read config", code=None)
    call = {"session_id": "s", "cwd": str(command.project), "tool_name": "Bash", "tool_input": {"command": "ls"}}
    done = command(*args, code=code, stdin=json.dumps({"hook_event_name": "PreToolUse", **call}))
    shown = done.stdout + done.stderr
    assert "hunter2" not in shown
    assert "[redacted url-password]" in shown


async def test_the_error_of_a_reload_is_redacted(tmp_path: Path) -> None:
    """The gate of a hook that fails to load, and the outcome of a reload, hold no secret of its exception."""
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError('no postgres://a:hunter2@db')\n")
    loaded = await load_hooks([broken], cwd=str(tmp_path))
    async with HookRunner(loaded, cwd=str(tmp_path), redactor=EMPTY) as runner:
        output = await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
        reloaded = await runner.reload(await load_hooks([broken], cwd=str(tmp_path)))
    [failed] = reloaded.failed
    for text in (output.text, str(output.details), failed.error, failed.traceback, *reloaded.messages):
        assert "hunter2" not in text
    assert "[redacted url-password]" in output.text
    assert "[redacted url-password]" in failed.error


def test_the_file_of_a_cut_output_is_redacted(command: Command) -> None:
    """For any tool, the program's output is redacted while it is written."""
    (command.project / "secret").write_text(f"token {GITHUB}\n")
    done = command("run", "--no-session", "@bash cat secret; seq 5000; cat secret")
    [path] = re.findall(r"the full text is in (\S+?)\]", done.stdout)
    text = Path(path).read_text()
    assert text.count("token [redacted github-token]\n") == 2
    assert "\n4321\n" in text
    assert GITHUB not in text


@given(st.sampled_from([*SECRETS, *VALUES.values()]), st.data())
def test_a_stream_shows_no_half_of_a_secret(secret: str, data: Any) -> None:
    """The pieces may be cut anywhere, also within a character."""
    text = f"é1\n2 {secret}\nthree é\n".encode()
    at = data.draw(st.integers(0, len(text)))
    stream = RedactedStream(FULL)
    parts = [stream.feed(text[:at]), stream.feed(text[at:]), stream.feed(b"\xff", final=True)]
    assert b"".join(parts) == FULL.redact(text.decode())[0].encode() + b"\xff"


def test_a_stream_holds_a_long_line_back_within_a_limit() -> None:
    """A secret that would cross the place of the cut is held back as a whole."""
    stream = RedactedStream(EMPTY)
    whole = ("x " * 500_000 + GITHUB + " ").encode() + b"y " * 32_000
    parts = [stream.feed(whole), stream.feed(b"z" * 100), stream.feed(b"", final=True)]
    assert parts[0]
    assert GITHUB.encode() not in b"".join(parts)
    assert b"[redacted github-token]" in b"".join(parts)


def test_in_the_host_a_secret_reaches_neither_model_nor_session_nor_screen(command: Command) -> None:
    """By default, values of variables and secrets in files are hidden."""
    (command.project / "config").write_text(f"token: {GITHUB}\n")
    (command.project / ".agent").mkdir()
    for args in ((), ("--json",)):
        done = command("run", *args, "@read config\n@bash cat config; sleep 0.3; echo done")
        [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
        for text in (done.stdout, done.stderr, session.read_text()):
            assert GITHUB not in text
        assert "token: [redacted github-token]" in done.stdout
        assert "token: [redacted github-token]" in session.read_text()
        session.unlink()


@pytest.mark.parametrize(
    ("settings", "shows", "says"),
    [
        ({"enabled": False}, True, False),
        ({"reportOnly": True}, True, True),
        ({"patterns": {"ticket": "T-[0-9]+"}}, False, False),
        ({"disabled": ["github-token"]}, True, False),
        ({"disabled": ["jwt"]}, False, False),
    ],
)
def test_the_settings_of_redaction(command: Command, settings: dict[str, Any], shows: bool, says: bool) -> None:
    """Redaction can be off, report only, or have patterns of the person's own."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text(json.dumps({"redaction": settings}))
    (command.project / "config").write_text(f"{GITHUB} T-12\n")
    done = command("run", "--no-session", "@read config")
    assert (GITHUB in done.stdout) is shows
    assert ("[redacted ticket]" in done.stdout) is ("patterns" in settings)
    assert ("the result of read holds secrets that redaction would hide: github-token" in done.stderr) is says


def test_wrong_settings_of_redaction_name_file_and_key(command: Command) -> None:
    """The settings are checked before anything runs."""
    path = command.project / ".agent" / "settings.json"
    path.parent.mkdir()
    for value, text in (
        ({"patterns": {"a": "("}}, "key 'redaction.patterns': a: the regular expression '(' cannot be used: "),
        ({"patterns": {"a b": "x"}}, "key 'redaction.patterns': the name 'a b' may have letters"),
        ({"pattern": {}}, "unknown key 'redaction.pattern'; did you mean 'patterns'?"),
        (
            {"disabled": ["gh"]},
            "key 'redaction.disabled': there is no kind 'gh' of secrets; known are: 1password-token, ",
        ),
        ({"enabled": "no"}, "key 'redaction.enabled': expected true or false, found 'no'"),
    ):
        path.write_text(json.dumps({"redaction": value}))
        done = command("run", "x", code=1)
        assert re.search(f"{re.escape(str(path))}: {re.escape(text)}", done.stderr)
