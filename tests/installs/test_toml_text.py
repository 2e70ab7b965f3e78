"""Edits of TOML texts: tables come and go, and each other line stays."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.installs.toml_text import edited, parse

KEY = "/home/you/.codex/hooks.json:pre_tool_use:0:0"
OURS: dict[str, object] = {
    "hooks": {"state": {KEY: {"trusted_hash": "sha256:ab"}, f"{KEY}1": {"trusted_hash": 'q"\\'}}}
}
# Parts of a file that are whole in any order; `%` becomes a number, so that no table stands twice.
PARTS = st.sampled_from(
    [
        "# a comment\n",
        "\n",
        '[t%]\na = 1 # one\nb = "x"\n',
        "[t%.sub]\r\n\r\n  c = [1,\r\n 2]\r\n# below\r\n",
        '[hooks.state."other:%"]\ntrusted_hash = "sha256:00"\nenabled = false\n',
        '[[hooks.Stop%]]\nmatcher = ""\n[[hooks.Stop%.hooks]]\ncommand = "x"\n',
        "[l%]\ntext = '''\none [two]\n'''\n",
        "['quoted %']\nd = 2026-11-23\n",
    ]
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw the text of a file."""
    head = draw(st.sampled_from(["", 'model = "gpt"\n', '# first\nmodel="gpt" # which\n\n']))
    parts = draw(st.lists(PARTS, max_size=5))
    return head + "".join(part.replace("%", str(number)) for number, part in enumerate(parts))


def merged(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Return two values as one."""
    result = dict(one)
    for key, value in other.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


@given(files())
def test_tables_come_and_go_without_a_trace(text: str) -> None:
    """The file is the same to the byte afterwards, and begins with the same bytes in between."""
    old = parse(text)
    new = merged(old, OURS)
    written = edited(text, new)
    assert tomllib.loads(written) == new
    assert written.startswith(text)
    assert edited(written, new) == written
    assert edited(written, old) == text


@given(files(), files())
def test_a_changed_value_changes_its_line(text: str, more: str) -> None:
    """Lines before and behind the table stay, also those of another program that wrote there since."""
    more = more.replace("[t", "[u").replace("[l", "[m").replace("other", "another").replace("Stop", "Start")
    more = more.replace("model", "u").replace("quoted", "more") if not more.startswith(("m", "#")) else ""
    written = edited(text, merged(parse(text), OURS)) + more
    state: dict[str, object] = {KEY: {"trusted_hash": "sha256:cd", "enabled": True}}
    new = merged(parse(written), {"hooks": {"state": state}})
    changed = edited(written, new)
    assert tomllib.loads(changed) == new
    lines = written.splitlines()
    assert [line for line in changed.splitlines() if line in lines] == [
        line for line in lines if "sha256:ab" not in line
    ]


@pytest.mark.parametrize(
    "text",
    [
        f'hooks = {{ state = {{ "{KEY}" = {{ trusted_hash = "a" }} }} }}\n',
        'hooks.state."x".trusted_hash = "a"\n',
    ],
)
def test_a_table_in_another_form_is_an_error(text: str) -> None:
    """Nothing is guessed: the person gets the error, and the file stays."""
    new = merged({key: value for key, value in parse(text).items() if key != "hooks"}, OURS)
    with pytest.raises(ValueError, match=r"form|header"):
        edited(text, new)
