"""The diffs of a card: inputs before and after a rewrite, and the lines in which a secret was hidden."""

from __future__ import annotations

from agent_hooks.look import rungs
from agent_hooks.records.lines import Change


def test_a_changed_text_is_shown_with_three_lines_around_it() -> None:
    """Each line of a text of the input stands alone, and other values stand as JSON."""
    text = "\n".join(str(number) for number in range(20))
    before = {"path": "a", "content": text, "mode": [1, None]}
    after = {**before, "content": text.replace("\n10\n", "\nten\n")}
    lines = [line["op"] + line["text"] for line in rungs.diff_of_values(before, after)]
    assert lines == [" 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]
    assert rungs.diff_of_values(before, {**before, "mode": [2]}) == [
        {"op": " ", "text": "17"},
        {"op": " ", "text": "18"},
        {"op": " ", "text": "19"},
        {"op": "-", "text": "mode: [1, null]"},
        {"op": "+", "text": "mode: [2]"},
    ]


def test_inputs_of_any_form_have_a_diff() -> None:
    """A text is compared line by line; a number, a list and nothing are one line."""
    assert rungs.diff_of_values("a\nb", "a\nc") == [
        {"op": " ", "text": "a"},
        {"op": "-", "text": "b"},
        {"op": "+", "text": "c"},
    ]
    assert rungs.diff_of_values(None, [1]) == [{"op": "-", "text": "null"}, {"op": "+", "text": "[1]"}]
    assert rungs.diff_of_values(1, 1) == []


def test_a_patch_is_applied_as_far_as_it_fits() -> None:
    """The input of a record may have been cut, so a change may have no place in it."""
    given = {"a": {"b/c": 1, "~": 2}, "d": 3}
    changes = (
        Change(op="replace", path="/a/b~1c", value=4),
        Change(op="remove", path="/a/~0"),
        Change(op="add", path="/e", value=[5]),
        Change(op="remove", path="/none"),
        Change(op="add", path="/none/deep", value=6),
        Change(op="add", path="/d/deep", value=7),
    )
    assert rungs.applied(given, changes) == {"a": {"b/c": 4}, "d": 3, "e": [5]}
    assert given == {"a": {"b/c": 1, "~": 2}, "d": 3}
    assert rungs.applied("cut …", (Change(op="replace", path="", value={"x": 1}),)) == {"x": 1}


def test_a_long_list_of_hidden_secrets_is_cut() -> None:
    """A file of a million keys does not fill the card."""
    text = "\n".join(f"key {number} [redacted token]" for number in range(1000))
    found = rungs.diff_of_redaction(f"nothing here\n{text}")
    assert found[:2] == [{"op": "-", "text": "key 0 •••"}, {"op": "+", "text": "key 0 [redacted token]"}]
    assert len(found) == 400
