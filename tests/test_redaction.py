"""Redaction: the texts that count as secrets, the places that must not get them, and the cost."""

from __future__ import annotations

import json
import re
import string
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks import (
    BashToolDetails,
    Block,
    HookUsageError,
    ImageContent,
    Interceptor,
    ToolOutput,
    ToolResult,
    wrap_tool,
)
from agent_hooks.redaction import Redactor, redacting, redactor, secret_values
from agent_hooks.testing import RecordedEvents
from agent_hooks.values.tool import OnUpdate
from running import Command
from support import EchoTool, hook_on, runner_of

GITHUB = "ghp_" + "0123456789abcdefghij" * 2
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIEabc+/==\n" * 9
    + "-----END RSA PRIVATE KEY-----"
)
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
    "[redacted github-token]",
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


@pytest.mark.parametrize("secret", [*SECRETS, *map("".join, LABELLED)], ids=lambda secret: secret[:20])
def test_a_secret_in_a_short_text_has_a_hint(secret: str) -> None:
    """Only a text without any hint is left out of the search."""
    assert Redactor(environ={})._hinted(f"x {secret} y")


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
        ({"enabled": "no"}, "key 'redaction.enabled': expected true or false, found 'no'"),
    ):
        path.write_text(json.dumps({"redaction": value}))
        done = command("run", "x", code=1)
        assert re.search(f"{re.escape(str(path))}: {re.escape(text)}", done.stderr)
