"""The guards' section of settings: levels, own rules, exceptions, dates, and patterns that never end."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import Ask, Block, SettingsError
from agent_hooks.guards import BUILTIN, builtin_guards, shell
from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.config import (
    GuardException,
    GuardSettings,
    OwnRule,
    expired,
    read_sections,
    tight,
)
from agent_hooks.guards.paths import REASONS
from agent_hooks.guards.table import OUTSIDE, PACKS, RULES
from agent_hooks.patterns import compile_pattern
from guard_corpus import call, rows, rules

TODAY = date(2030, 5, 1)
ENDLESS = "(a|aa)+$"


def settings_of(**section: Any) -> GuardSettings:
    """Return the settings of one section."""
    return read_sections([("settings.json", section)], tuple(BUILTIN))


def verdict(settings: GuardSettings, call: GuardedCall) -> Block | Ask | None:
    """Return the first answer of all guards to a call."""
    guards = builtin_guards(settings, today=lambda: TODAY)
    return next((answer for guard in guards if (answer := guard.judge(call)) is not None), None)


def bash(command: str) -> GuardedCall:
    """Return a call of the shell."""
    return call("bash", command=command)


def test_without_a_section_the_defaults_apply() -> None:
    """The defaults are the level `project`, questions about the undecidable, and no packs."""
    assert read_sections([], ()) == GuardSettings(level="project", undecidable="ask")


def test_lists_of_all_files_apply_and_of_a_single_value_the_last_counts() -> None:
    """Sections are merged as all settings are."""
    rule = {"id": "a", "pattern": "x", "reason": "y"}
    settings = read_sections(
        [("1", {"level": "strict", "rules": [rule], "packs": ["sql"]}), ("2", {"level": "relative", "rules": [rule]})],
        (),
    )
    assert (settings.level, len(settings.rules), settings.packs) == ("relative", 2, ("sql",))


def test_the_level_reaches_the_guard() -> None:
    """Build output is fine at one level and not at the other."""
    assert verdict(settings_of(), bash("rm -rf build")) is None
    assert isinstance(verdict(settings_of(level="relative"), bash("rm -rf build")), Block)


def test_the_rules_of_packs_hold_without_a_setting() -> None:
    """A loss outside of the project is not let through, whether the settings name its pack or not."""
    assert isinstance(verdict(settings_of(), bash("dropdb app")), Block)
    assert isinstance(verdict(settings_of(packs=["sql"]), bash("dropdb app")), Block)


def test_a_guard_can_be_switched_off() -> None:
    """The settings name the guard; the other guard stays on."""
    settings = settings_of(disabled=["builtin:command-safety-guard"])
    assert verdict(settings, bash("rm -rf /")) is None
    assert isinstance(verdict(settings, call("read", path=".env")), Block)


@pytest.mark.parametrize(("setting", "kind"), [("ask", Ask), ("block", Block), ("allow", type(None))])
def test_the_undecidable_is_what_the_setting_says(setting: Any, kind: type) -> None:
    """The setting `undecidable` decides about a command whose program is unknown."""
    assert type(verdict(settings_of(undecidable=setting), bash("$X -rf /"))) is kind


def test_a_block_names_guard_rule_and_remedy() -> None:
    """The text of a block has all that a person needs to allow the call."""
    block = verdict(settings_of(), bash("git push -f"))
    assert isinstance(block, Block)
    assert (block.by, block.cause, block.rule) == ("builtin:command-safety-guard", "guard", "git-remote")
    assert block.reason == "overwrites or deletes published history: git push -f"
    assert block.remedy.endswith("agent-hooks run --allow-once git-remote")
    assert str(block) == f"{block.reason}; {block.remedy} (builtin:command-safety-guard (git-remote))"


def test_a_question_names_guard_rule_and_remedy() -> None:
    """The fields are those of a block, and the explanation for the person has the remedy."""
    ask = verdict(settings_of(), bash("$X -rf /"))
    assert isinstance(ask, Ask)
    assert (ask.by, ask.rule, ask.signature) == (
        "builtin:command-safety-guard",
        "rm-rf",
        "builtin:command-safety-guard (rm-rf)",
    )
    assert ask.explanation == f"{ask.title}; {ask.remedy}"
    assert ask.remedy.endswith("agent-hooks run --allow-once rm-rf")


def test_an_own_rule_blocks_what_its_pattern_is_found_in() -> None:
    """The pattern is searched in the command, the path, or else the input as JSON."""
    settings = settings_of(
        rules=[
            {"id": "no-prod", "pattern": r"\bprod\b", "reason": "production is for people", "tool": "bash"},
            {"id": "no-legacy", "pattern": "^legacy/", "reason": "frozen"},
            {"id": "no-mail", "pattern": '"to":"boss', "reason": "not him"},
        ]
    )
    blocked = verdict(settings, bash("deploy prod"))
    assert isinstance(blocked, Block)
    assert blocked.signature == "settings:guards.rules (no-prod)"
    assert "production is for people" in blocked.reason
    assert verdict(settings, bash("deploy production")) is None
    assert verdict(settings, call("write", path="legacy/a.py")) is not None
    assert verdict(settings, call("mail", to="boss@x")) is not None
    assert verdict(settings, call("mail", to="me")) is None


def test_a_pattern_that_never_ends_blocks() -> None:
    """The block names the time limit."""
    settings = settings_of(rules=[{"id": "slow", "pattern": ENDLESS, "reason": "x"}])
    blocked = verdict(settings, bash("a" * 60 + "!"))
    assert isinstance(blocked, Block)
    assert "took longer than 0.1 s" in blocked.reason


def test_an_exception_lifts_one_rule_for_a_whole_command() -> None:
    """The pattern has to match the whole command, and other rules stay."""
    settings = settings_of(
        exceptions=[{"id": "git-worktree", "pattern": "git reset --hard( HEAD)?", "reason": "throw-away clone"}]
    )
    assert verdict(settings, bash("git reset --hard HEAD")) is None
    assert verdict(settings, bash("git reset --hard HEAD; git clean -fd")) is not None
    assert verdict(settings, bash("git push -f")) is not None


def test_an_exception_may_be_for_one_tool_and_has_a_last_day() -> None:
    """For other tools, and after that day, the rule holds again."""
    other = settings_of(exceptions=[{"id": "git-remote", "reason": "x", "tool": "exec"}])
    assert verdict(other, bash("git push -f")) is not None
    for day, lifted in (("2030-05-01", True), ("2030-04-30", False)):
        settings = settings_of(exceptions=[{"id": "git-remote", "reason": "x", "expires": day}])
        assert (verdict(settings, bash("git push -f")) is None) is lifted
        assert bool(expired(settings, TODAY)) is not lifted


def test_an_own_rule_has_a_last_day_too() -> None:
    """An expired rule blocks nothing, and is reported."""
    settings = GuardSettings(rules=(OwnRule(id="old", pattern="x", reason="y", expires=date(2030, 4, 30)),))
    assert verdict(settings, bash("x")) is None
    assert "'old' has expired on 2030-04-30" in expired(settings, TODAY)[0]


def test_an_exception_whose_pattern_never_ends_allows_nothing() -> None:
    """A pattern that takes too long counts as no match."""
    settings = settings_of(exceptions=[{"id": "rm-rf", "pattern": f"rm -rf {ENDLESS}", "reason": "x"}])
    assert verdict(settings, bash("rm -rf " + "a" * 60 + "!")) is not None


def test_an_exception_for_one_call_is_used_up_by_the_call_that_it_lets_through() -> None:
    """A call that another rule stops does not use it up."""
    settings = GuardSettings(exceptions=(GuardException(id="git-remote", reason="x", once=True),))
    guard = builtin_guards(settings, today=lambda: TODAY)[0]
    assert guard.judge(bash("git push -f; git reset --hard")) is not None
    assert guard.judge(bash("git push -f")) is None
    assert guard.judge(bash("git push -f")) is not None


def test_an_exception_may_be_for_an_own_rule_of_any_file() -> None:
    """The rule may be in a file that is read later; an error names the file of the exception."""
    rule = {"id": "no-prod", "pattern": "prod", "reason": "x"}
    lifted = {"id": "no-prod", "pattern": "deploy prod", "reason": "x"}
    settings = read_sections([("1", {"exceptions": [lifted]}), ("2", {"rules": [rule]})], ())
    assert verdict(settings, bash("deploy prod")) is None
    assert verdict(settings, bash("drop prod")) is not None
    with pytest.raises(SettingsError, match=r"^1: key 'guards\.exceptions': unknown name 'no-prod'"):
        read_sections([("1", {"exceptions": [lifted]}), ("2", {})], ())


def test_the_rules_that_exceptions_may_name_are_those_that_the_guards_have() -> None:
    """The rows of the table list the ids of all rules in the guards' code."""
    reported = {
        call.args[0].value
        for path in Path(shell.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "report"
        if isinstance(call.args[0], ast.Constant)
    }
    files = REASONS.keys() - {"client-code", "guard-settings", "records", "system-file", "invisible-characters"}
    of_files = {f"{verb}-{each}" for verb in ("read", "write") for each in files}
    assert set(RULES) == {*reported, *PACKS, *REASONS, *of_files, *OUTSIDE}
    assert len(RULES) == len(set(RULES))
    met = {rule for row in rows("commands.tsv") for rule in rules(row["command"], "strict")}
    assert met <= set(RULES)


@pytest.mark.parametrize(
    ("section", "parts"),
    [
        ({"level": "loose"}, ["guards.level", "loose"]),
        ({"levl": "strict"}, ["guards", "levl"]),
        ({"packs": ["sq"]}, ["guards.packs", "did you mean 'sql'"]),
        ({"disabled": ["builtin:security"]}, ["guards.disabled", "did you mean 'builtin:security-audit'"]),
        (
            {"rules": [{"id": "a", "pattern": "(", "reason": "x"}]},
            ["guards.rules", "'a'", "regular expression '(' cannot be used"],
        ),
        (
            {"exceptions": [{"id": "a", "pattern": "[", "reason": "x"}]},
            ["guards.exceptions", "regular expression '[' cannot be used"],
        ),
        (
            {"exceptions": [{"id": "git-remot", "reason": "x"}]},
            ["guards.exceptions", "unknown name 'git-remot'", "did you mean 'git-remote'?"],
        ),
        (
            {
                "rules": [{"id": "no-prod", "pattern": "a", "reason": "x"}],
                "exceptions": [{"id": "prod", "reason": "x"}],
            },
            ["guards.exceptions", "unknown name 'prod'", "did you mean 'no-prod'?"],
        ),
        (
            {"exceptions": [{"id": "%", "reason": "x"}]},
            ["unknown name '%'; known are: access, account-file, agent-token, "],
        ),
        ({"rules": [{"id": "a", "pattern": "x"}]}, ["reason"]),
        ({"rules": [{"id": "a", "pattern": "x", "reason": "y", "expires": "soon"}]}, ["guards.rules[0].expires"]),
    ],
)
def test_a_wrong_section_names_file_and_key(section: Any, parts: list[str]) -> None:
    """The section is checked before anything runs."""
    with pytest.raises(SettingsError) as caught:
        settings_of(**section)
    for part in ("settings.json", *parts):
        assert part in str(caught.value)


def test_guards_are_off_only_when_there_is_nothing_to_ask() -> None:
    """One guard that is on, or one rule of the person's own, is enough."""
    rule = {"id": "mine", "pattern": "x", "reason": "no"}
    assert read_sections([("f", {"disabled": list(BUILTIN)})], tuple(BUILTIN)).are_off(BUILTIN)
    for left in ({"disabled": list(BUILTIN)[:1]}, {"disabled": list(BUILTIN), "rules": [rule]}, {}):
        assert not read_sections([("f", left)], tuple(BUILTIN)).are_off(BUILTIN)


ONLY_MINE = {"exceptions": [{"id": "git-remote", "pattern": r"git push --force origin me/\S+", "reason": "mine"}]}


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("git push --force origin me/x", True),
        ("git fetch && git push --force origin me/x 2>&1 | tail -3", True),
        ("for b in me/x me/y; do git push --force origin $b; done", True),
        ("sh -c 'git push --force origin me/x'", True),
        ("git push --force origin me/x; git push --force origin main", False),
        ("git push --force origin main; git push --force origin me/x", False),
        ("for b in me/x main; do git push --force origin $b; done", False),
        ("git push --force origin me/x main", False),
        ("git push --force origin 'me/x main'", False),
        ("git push --force origin me/$BRANCH", False),
        ("cd ../other && git push --force origin me/x", False),
        ("GIT_DIR=../other/.git git push --force origin me/x", False),
        ("(git push --force origin me/x; git push -f)", False),
        ("f() { git push -f; }; git push --force origin me/x; f", False),
        ("git push --force origin me/x $(git push -f)", False),
        ("ssh host 'git push --force origin me/x'", False),
        ("sudo git push --force origin me/x", False),
    ],
)
def test_an_exception_holds_for_the_program_that_its_pattern_fits(command: str, passes: bool) -> None:
    """The other programs of the line are judged; a program in another directory or with other words is another one."""
    assert (verdict(settings_of(**ONLY_MINE), bash(command)) is None) is passes


@pytest.mark.parametrize(
    ("rule", "pattern", "command", "passes"),
    [
        ("rm-rf", "rm -rf generated", "rm -rf generated", True),
        ("rm-rf", "rm -rf generated", "cd / && rm -rf generated", False),
        ("rm-rf", "rm -rf generated", "rm -rf generated /", False),
        ("rm-rf", "rm -rf generated", "cd sub; rm -rf generated", False),
        ("rm-rf", "cd sub && rm -rf generated", "cd sub; ls; rm -rf generated", True),
        ("rm-rf", ".*", "rm -rf $UNKNOWN", False),
        ("rm-rf", r"rm -rf \$UNKNOWN", "rm -rf $UNKNOWN", True),
        ("rm-rf", r"rm -rf \$UNKNOWN", "rm -rf $UNKNOWN; rm -rf /", False),
        ("rm-rf", "xargs rm -rf", "echo / | xargs rm -rf", False),
        ("rm-rf", "rm -rf gen", "echo gen | xargs rm -rf", True),
        ("rm-rf", "python3", "echo 'import shutil; shutil.rmtree(\"/x\")' | python3", False),
        ("write-environment-file", "echo a", "echo a > .env", False),
        ("write-environment-file", r"echo a > \.env", "echo a > .env", True),
        ("write-environment-file", "echo a", "{ echo a; } > .env", False),
    ],
)
def test_the_pattern_of_an_exception_fits_a_program_with_its_directory_files_and_input(
    rule: str, pattern: str, command: str, passes: bool
) -> None:
    """A program whose words are not known fits no pattern, but a whole command may be spelled letter by letter."""
    settings = settings_of(exceptions=[{"id": rule, "pattern": pattern, "reason": "x"}])
    assert (verdict(settings, bash(command)) is None) is passes


@pytest.mark.parametrize("tail", ["", "; rm -rf ~"])
def test_an_exception_fits_no_program_of_a_command_that_was_not_read_to_its_end(tail: str) -> None:
    """The program where the reader stops is not the whole command; the rest of it is judged by nothing."""
    command = f"bash -c 'echo ( (('{tail}"
    for pattern, passes in (("bash -c 'echo \\( \\(\\('", tail == ""), ("bash -c .*", False), (tight(command), True)):
        settings = settings_of(exceptions=[{"id": "unreadable", "pattern": pattern, "reason": "x"}])
        assert (verdict(settings, bash(command)) is None) is passes, pattern


@pytest.mark.parametrize(
    ("command", "passes"),
    [("deploy prod --dry", True), ("deploy prod --dry; drop prod", False), ("ls; deploy prod --dry | tail -1", True)],
)
def test_an_exception_of_an_own_rule_holds_for_one_program_too(command: str, passes: bool) -> None:
    """The rule's pattern is searched in each program."""
    settings = settings_of(
        rules=[{"id": "no-prod", "pattern": "prod", "reason": "x"}],
        exceptions=[{"id": "no-prod", "pattern": "deploy prod.*", "reason": "x"}],
    )
    assert (verdict(settings, bash(command)) is None) is passes


@given(st.text(max_size=30))
def test_the_pattern_that_explain_prints_fits_its_text_only(text: str) -> None:
    """Each character with a meaning has a backslash."""
    assert compile_pattern(tight(text)).fullmatch(text)
    assert not compile_pattern(tight(text)).fullmatch(f"{text}x")
