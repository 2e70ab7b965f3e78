"""The page of the matrix is up to date, and so are the lock files."""

from __future__ import annotations

import json
import re

import pytest

from clients import page
from clients.cases import CASES, Case
from clients.client import Client
from clients.drivers import DRIVERS
from clients.installing import LOCKS, NODE, PACKAGES

REMEDY = "docs/agents.md is stale: python -m checks.matrix"


def test_the_page_has_the_present_clients_and_versions() -> None:
    """A lock file that changes asks for another run of the matrix."""
    words = page.read_page()["version"]
    assert dict(zip(page.columns(), page.versions()[1:], strict=True)) == words, REMEDY


def test_the_page_has_the_present_cases() -> None:
    """Each case has a row, with a word in each column."""
    rows = page.read_page()
    assert [*rows][1:-1] == [case.title for case in CASES.values()], REMEDY
    for case in CASES.values():
        assert [*rows[case.title]] == page.columns(), REMEDY


def test_the_page_has_the_present_limits() -> None:
    """The numbers in the table are those of the limits that the bridges state, with the reasons below it."""
    below = re.findall(r"^(\d+)\. \*(\S+)\*: (.*)\.$", page.PAGE.read_text(), re.MULTILINE)
    assert [(name, reason) for _, name, reason in below] == page.notes(), REMEDY


@pytest.mark.parametrize("name", page.columns())
def test_each_cell_of_the_page_is_yes_or_has_its_reason(name: str) -> None:
    """A red cell, one that was not run, and a dash that the driver does not explain are not on the committed page."""
    rows = page.read_page()
    wrong = {title: rows[title][name] for title, known in words_of(name).items() if rows[title][name] not in known}
    assert wrong == {}, REMEDY


def words_of(name: str) -> dict[str, set[str]]:
    """Return the words that each cell of a column may have, by the title of its case."""
    if name == page.DOCUMENTED:
        return {case.title: {page.word(name, case.name, {})} for case in CASES.values()}
    limited = {(client, power) for client, power, _ in page.limits()}
    found = {}
    for case in CASES.values():
        kind = "limit" if (name, case.power) in limited else "yes"
        found[case.title] = {page.word(name, case.name, {(name, case.name): [{"kind": kind}]})}
        if kind == "yes" and is_lacking(DRIVERS[name], case):
            found[case.title].add(page.NONE)
    return found


def is_lacking(driver: type[Client], case: Case) -> bool:
    """Return whether a client has no such thing: a terminal of its own, or the tool of the case."""
    return case.name in driver.lacks or (case.terminal and driver.screen is None)


@pytest.mark.parametrize("name", [*PACKAGES, NODE])
def test_a_lock_file_names_no_host_and_has_a_hash_for_each_package(name: str) -> None:
    """npm takes the packages from the reader's registry, and refuses other bytes."""
    text = (LOCKS / name / "package-lock.json").read_text()
    assert "resolved" not in text
    packages = json.loads(text)["packages"]
    for path, package in packages.items():
        # The registry that wrote the file may lack the packages of other systems.
        elsewhere = package.get("optional") and package.get("os") not in (None, "linux", ["linux"])
        unusual = {"arm64", "musl"} & {*package.get("cpu", ()), *package.get("libc", ())}
        # A package in the archive of another is covered by the hash of that one.
        covered = "integrity" in package or package.get("inBundle")
        assert not path or covered or elsewhere or unusual, path
    wanted = json.loads((LOCKS / name / "package.json").read_text())
    for package, version in {**wanted.get("dependencies", {}), **wanted.get("optionalDependencies", {})}.items():
        assert packages[f"node_modules/{package}"]["version"] == version


def test_each_client_that_is_installed_has_a_driver() -> None:
    """The lock files, the drivers and the table name the same clients."""
    assert [*DRIVERS] == [*PACKAGES]
    assert sorted(each.name for each in LOCKS.iterdir()) == sorted([*PACKAGES, NODE])
