"""The table of docs/records.md has a row for each field of each line."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import get_args

from agent_hooks.records.lines import AnyLine, Line, Step

PAGE = Path(__file__).parents[2] / "docs" / "records.md"


def test_the_page_explains_each_field_of_each_line() -> None:
    """A new field of a line, or a renamed one, gets its row; a removed one loses it."""
    explained: defaultdict[str, list[str]] = defaultdict(list)
    for line, name in re.findall(
        r"^\| (all|`\w+`|each of `steps`) \| `(\w+)` \| .+ \|$", PAGE.read_text(), re.MULTILINE
    ):
        explained[line.strip("`")].append(name)
    common = Line.__struct_encode_fields__
    fields = {"all": {"kind", *common}, "each of `steps": {*Step.__struct_encode_fields__}}
    for kind in get_args(AnyLine):
        fields[kind.__struct_config__.tag] = {*kind.__struct_encode_fields__} - {*common}
    assert {line: {*names} for line, names in explained.items()} == fields
    assert all(len(names) == len({*names}) for names in explained.values())
