"""The newest packages of the agents are compared with the tables of the bridges."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from agent_hooks.bridges import open_bridge
from checks import freshness
from checks.freshness import FreshnessError, Listing

TYPES = "export declare const HOOKS: readonly ['PreToolUse', 'BeforeTea'];\nexport type Tool = 'Bash' | 'Kettle';\n"
EVENTS = Listing("event", "tea", r"dist/types\.d\.ts", r"HOOKS: readonly \[(.*?)\]", whole=False)
TOOLS = Listing("tool", "tea", r"dist/types\.d\.ts", r"type Tool = (.*?);", whole=False)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Give a package on the disk, which npm packs without a network.  Its script must not run."""
    directory = tmp_path / "tea"
    (directory / "dist").mkdir(parents=True)
    (directory / "dist/types.d.ts").write_text(TYPES)
    manifest = {"name": "tea", "version": "2.0.0", "scripts": {"prepack": "touch it-ran", "prepare": "touch it-ran"}}
    (directory / "package.json").write_text(json.dumps(manifest))
    return directory


def test_a_package_is_packed_and_read_and_none_of_its_scripts_runs(package: Path, tmp_path: Path) -> None:
    """The archive that npm makes has the names and the version."""
    archive = freshness.pack(str(package), tmp_path)
    assert freshness.manifest_of(archive)["version"] == "2.0.0"
    assert EVENTS.names(archive) == {"PreToolUse", "BeforeTea"}
    assert not (package / "it-ran").exists()


def test_a_name_without_a_row_is_a_line_with_the_name_of_the_agent(package: Path, tmp_path: Path) -> None:
    """A name that the bridge has is not reported."""
    archive = freshness.pack(str(package), tmp_path)
    lines = [
        line for each in (EVENTS, TOOLS) for line in freshness.differences("claude-code", each, each.names(archive))
    ]
    assert lines == ["claude-code: new event BeforeTea", "claude-code: new tool Kettle"]


def test_a_name_of_the_bridge_that_is_missing_in_a_whole_list_is_gone() -> None:
    """A list of some names says nothing about the others."""
    found = {row.name for row in open_bridge("pi").describe()} - {"tool_call"}
    listing = Listing("event", "pi", "", "", whole=True)
    assert freshness.differences("pi", listing, found) == ["pi: event tool_call is gone"]
    assert freshness.differences("pi", Listing("event", "pi", "", "", whole=False), found) == []


@pytest.mark.parametrize(("file", "place"), [("other", "HOOKS(.*)"), (r"dist/types\.d\.ts", r"EVENTS: (\w+)")])
def test_a_package_of_another_form_is_an_error_that_names_the_row_to_mend(
    package: Path, tmp_path: Path, file: str, place: str
) -> None:
    """No names would look as if nothing was new."""
    archive = freshness.pack(str(package), tmp_path)
    with pytest.raises(FreshnessError, match="of tea has no list of events as before"):
        Listing("event", "tea", file, place).names(archive)


def test_a_package_that_npm_cannot_fetch_is_an_error_with_the_words_of_npm(tmp_path: Path) -> None:
    """The other agents are compared all the same."""
    with pytest.raises(FreshnessError, match=r"none cannot be fetched: (?s:.*)ENOENT"):
        freshness.pack(str(tmp_path / "none"), tmp_path)


@pytest.mark.parametrize(
    ("lines", "strict", "code"), [([], True, 0), (["pi: new event x"], False, 0), (["pi: new"], True, 1)]
)
def test_only_a_strict_run_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: list[str], strict: bool, code: int
) -> None:
    """A release of another project stops no change of this one."""
    monkeypatch.setattr(freshness, "lines_of", lambda name, directory: lines)
    assert freshness.main(["pi", *(["--strict"] if strict else [])]) == code
    assert capsys.readouterr().out == ("\n".join(lines) or "all agents are as the tables say") + "\n"


def test_the_known_names_are_those_of_agents_without_a_row() -> None:
    """Each agent has a listing, and a name with a row needs no reason."""
    known = tomllib.loads(freshness.KNOWN.read_text())
    assert {path.name for path in freshness.LOCKS.iterdir()} - {"node"} == set(freshness.LISTINGS) >= set(known)
    for name, kinds in known.items():
        rows = {row.name for row in open_bridge(name).describe()}
        assert [each for names in kinds.get("events", {}).values() for each in names if each in rows] == []
