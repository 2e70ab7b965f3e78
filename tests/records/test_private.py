"""The texts of a record: without secrets, cut at a limit, and any value that a tool or a model may give."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.records.lines import Change
from agent_hooks.records.private import TEXT_LIMIT, Cleaner, as_json
from agent_hooks.redaction import Redactor

TOKEN = "ghp_" + "0123456789abcdefghij" * 2
REDACTED = "[redacted github-token]"
CLEAN = Cleaner(Redactor(environ={"API_TOKEN": "hunter2hunter2hunter2"}))
PLAIN = Cleaner(None)
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA\n" * 4000 + "-----END RSA PRIVATE KEY-----"

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


def test_secrets_are_hidden_everywhere_in_a_value() -> None:
    """In keys, in lists, in nested objects, and by the values of the environment."""
    value = {"a": [f"x {TOKEN}"], TOKEN: {"b": "hunter2hunter2hunter2"}, "n": 1, "t": True}
    cleaned, cut = CLEAN.value(value)
    assert cleaned == {"a": [f"x {REDACTED}"], REDACTED: {"b": "[redacted env:API_TOKEN]"}, "n": 1, "t": True}
    assert not cut


@pytest.mark.parametrize("before", [0, TEXT_LIMIT - 60, TEXT_LIMIT - 45, TEXT_LIMIT - 20, TEXT_LIMIT - 1, TEXT_LIMIT])
def test_no_part_of_a_secret_is_left_at_the_cut(before: int) -> None:
    """A secret that crosses the limit is hidden whole."""
    text = "x" * (before - 1) + " " + TOKEN + " " + "y" * 5000 if before else TOKEN + "y" * 5000
    cleaned = CLEAN.text(text)
    assert "ghp_" not in cleaned
    assert len(cleaned) <= TEXT_LIMIT + 40
    assert cleaned.endswith("…")


def test_a_key_whose_end_is_out_of_sight_is_left_out() -> None:
    """The text ends before it."""
    cleaned = CLEAN.text("before\n" + KEY + "\nafter")
    assert "MII" not in cleaned
    assert cleaned.startswith("before\n")


def test_an_input_of_ten_megabytes_is_cut() -> None:
    """The redactor sees little of it."""
    cleaned, cut = CLEAN.value({"command": "x" * 10_000_000, "more": {"deep": ["y"] * 100_000}})
    assert cut
    assert len(json.dumps(cleaned)) < 3 * CLEAN.limit
    cleaned, cut = CLEAN.value(["y" * 100] * 100_000)
    assert cut
    assert len(json.dumps(cleaned)) < 3 * CLEAN.limit


def test_odd_values_become_text() -> None:
    """Half of a surrogate pair, an object, a value that holds itself, and one whose text raises."""

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    circle: list[Any] = []
    circle.append(circle)
    value = {"\ud800": "\udfff", "o": Odd(), "c": circle, 1: object, "f": 1.5}
    cleaned, _ = CLEAN.value(value)
    assert json.loads(as_json(cleaned)) == json.loads(json.dumps(cleaned))
    assert b"\\ud" not in as_json(value)
    assert PLAIN.text("\ud800a") == "?a"
    assert PLAIN.text("x" * 9, 4) == "xxxx…"
    assert PLAIN.text("") == ""


def applied(value: Any, changes: tuple[Change, ...]) -> Any:
    """Return a value with a patch applied, as RFC 6902 has it."""
    for change in changes:
        if not change.path:
            value = change.value
            continue
        *parents, last = [each.replace("~1", "/").replace("~0", "~") for each in change.path.split("/")[1:]]
        inner = value
        for each in parents:
            inner = inner[each]
        if change.op == "remove":
            del inner[last]
        else:
            inner[last] = change.value
    return value


@given(before=json_values, after=json_values)
def test_a_patch_makes_the_new_value_of_the_old(before: Any, after: Any) -> None:
    """Keys with slashes and tildes as well."""
    changes = PLAIN.patch(before, after)
    assert applied(json.loads(json.dumps(before)), changes) == after


def test_a_patch_is_redacted_and_bounded() -> None:
    """Values and paths, and no more operations than a person reads."""
    (change,) = CLEAN.patch({"a/b": 1}, {"a/b": TOKEN})
    assert (change.op, change.path, change.value) == ("replace", "/a~1b", REDACTED)
    many = CLEAN.patch({}, {str(number): number for number in range(1000)})
    assert len(many) == 51
    assert many[-1].value == "…"


AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize(
    "value",
    [
        {"env": {"AWS_SECRET_ACCESS_KEY": AWS}},
        {"AWS_SECRET_ACCESS_KEY": AWS},
        {"headers": {"Authorization": f"Basic {AWS}", "X-Api-Key": AWS}},
        {"lines": ["before", "-----BEGIN RSA PRIVATE KEY-----", AWS, AWS, "-----END RSA PRIVATE KEY-----", "after"]},
        {"lines": ["-----BEGIN RSA PRIVATE KEY-----", *[AWS] * 3000, "x"]},
    ],
)
def test_a_secret_that_only_its_neighbour_shows_is_hidden(value: dict[str, Any]) -> None:
    """The name of an entry, or the lines around it; also with patterns of the person's own, and in a rewrite."""
    for cleaner in (CLEAN, Cleaner(Redactor(patterns={"mine": "^hunter2"}), own=True)):
        cleaned, _ = cleaner.value(value)
        assert AWS not in as_json(cleaned).decode()
        assert "redacted" in as_json(cleaned).decode()
        assert AWS not in as_json(cleaner.patch({}, value)).decode()
    assert PLAIN.value(value)[0].keys() == value.keys()


def test_a_list_keeps_the_texts_around_a_secret_of_several_lines() -> None:
    """Each line of the secret becomes a mark."""
    key = ["a -----BEGIN RSA PRIVATE KEY-----", AWS, AWS, "-----END RSA PRIVATE KEY----- b"]
    cleaned, _ = CLEAN.value({"lines": ["first", *key, "last"], "n": [1, None]})
    first, begin, *_, end, last = cleaned["lines"]
    assert (first, begin[:12], end[-2:], last) == ("first", "a [redacted ", " b", "last")


def test_patterns_of_the_persons_own_may_begin_a_text() -> None:
    """The name of the entry does not hide that."""
    cleaner = Cleaner(Redactor(patterns={"mine": "^hunter"}), own=True)
    assert cleaner.value({"password": "hunter"})[0] == {"password": "[redacted mine]"}


@pytest.mark.parametrize("odd", [5, None, b"x", ["a"]])
def test_any_value_has_a_text(odd: Any) -> None:
    """As `str` makes it."""
    assert CLEAN.text(odd) == str(odd)


def test_keys_of_inputs_are_redacted_each_time() -> None:
    """Only keys without a secret are remembered, and not too many of them."""
    cleaner = Cleaner(Redactor(environ={}))
    secret = "ghp_" + "a1B2" * 9
    for _ in range(2):
        assert cleaner.value({secret: "x"}) == ({"[redacted github-token]": "x"}, False)
    for number in range(1000):
        assert cleaner.value({f"key {number}": "x"}) == ({f"key {number}": "x"}, False)
    assert len(cleaner._keys) == 256
