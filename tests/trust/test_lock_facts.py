"""The facts about the lock file of a hook, which the trust question shows."""

from __future__ import annotations

from textwrap import dedent

import pytest

from agent_hooks.trust.fact import Fact
from agent_hooks.trust.lock_facts import lock_facts


def texts(toml: str) -> list[str]:
    """Return the texts of the facts, all of which name a need."""
    found = list(lock_facts(dedent(toml).encode()))
    assert {fact.kind for fact in found} <= {"needs"}
    return [fact.text for fact in found]


def test_each_package_has_its_version_and_the_place_it_comes_from() -> None:
    """A person sees a package that comes from another index, a repository or a directory."""
    assert texts("""
        [[package]]
        name = "rich"
        version = "14.0.0"
        source = { registry = "https://pypi.org/simple" }

        [[package]]
        name = "odd"
        version = "1"
        source = { git = "https://git.example/odd?rev=main#abc" }

        [[package]]
        name = "local"
        source = { directory = "../local" }
    """) == [
        "rich 14.0.0 from https://pypi.org/simple (lock file)",
        "odd 1 from https://git.example/odd?rev=main#abc (lock file)",
        "local  from ../local (lock file)",
    ]


@pytest.mark.parametrize(
    ("toml", "shown"),
    [
        ("", []),
        ("package = 'rich'", ["rich"]),
        ("package = ['rich', 3]", ["rich", "3"]),
        ("[[package]]\nname = 'x'\nsource = 'registry'", ["x  from registry (lock file)"]),
    ],
    ids=["empty", "a text", "a list of texts", "a source without a table"],
)
def test_odd_lock_files_show_all_that_they_name(toml: str, shown: list[str]) -> None:
    """A file that another program has written hides no package."""
    assert texts(toml) == shown


def test_a_package_cannot_fill_the_screen() -> None:
    """A long name is cut."""
    (text,) = texts(f"[[package]]\nname = '{'x' * 5000}'")
    assert len(text) <= 200


@pytest.mark.parametrize("data", [b"\xff", b"[[package", b"a = " + b"[" * 5000], ids=["bytes", "half", "deep"])
def test_a_lock_file_that_cannot_be_read_says_so(data: bytes) -> None:
    """Its packages are not known, which the person is told."""
    assert list(lock_facts(data)) == [Fact("unknown", "its packages: it is no TOML")]
