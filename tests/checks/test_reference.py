"""The reference: written from the docstrings, complete, and never stale."""

from __future__ import annotations

import re

import pytest
from msgspec import Struct

import agent_hooks
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.table import SPECS
from checks import reference

PAGE = reference.REFERENCE.read_text()


def test_the_pages_are_those_that_the_docstrings_give() -> None:
    """After a change of a docstring or a spelling: python -m checks.reference."""
    assert reference.stale() == []


def test_every_event_answer_point_and_exported_name_is_on_the_page() -> None:
    """Each public name has a heading of its own."""
    headings = set(re.findall(r"^#{3,4} .*?(\w+)(?:\(.*\))?`?$", PAGE, re.MULTILINE))
    assert set(agent_hooks.__all__) - headings - {"__version__"} == set()
    assert [name for name in SPECS if f"| `{name.replace(':', '` `')}` |" not in PAGE] == []
    assert [name for name in POINTS if f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize("name", [each for each in agent_hooks.__all__ if isinstance(getattr(agent_hooks, each), type)])
def test_every_field_and_method_of_a_class_is_on_the_page_and_explained(name: str) -> None:
    """A field is explained by the docstring of its class or of a base, or in the table of common fields."""
    kind = getattr(agent_hooks, name)
    begin = re.search(rf"^### `?(?:\w+`: )?{name}`?$", PAGE, re.MULTILINE)
    assert begin is not None
    section = re.split(r"^###? ", PAGE[begin.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    for member in reference.public_members(name, kind):
        assert re.search(rf"\b{member}\b", section), f"{name}.{member} is not there"
    if issubclass(kind, Struct):
        explained = " ".join(each.__doc__ or "" for each in kind.__mro__ if each.__module__.startswith("agent_hooks"))
        for field in kind.__struct_fields__:
            if not field.startswith("_") and field != "unawaited":
                assert f"| `{field}` |" in section
                known = field in reference.COMMON or f"`{field}`" in explained or f"`{field}" in explained
                assert known, f"the docstring of {name} does not explain {field}"


def test_a_page_that_differs_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check exits with 1 and names the command."""
    monkeypatch.setattr(reference, "reference", lambda: "another")
    assert reference.stale() == ["reference.md"]
    assert reference.main(["--check"]) == 1
