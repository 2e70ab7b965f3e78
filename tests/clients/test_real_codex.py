"""The real Codex as the judge of its bridge: its schemas, its trust, and its question after a rewrite."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import open_bridge
from clients.drivers import Codex
from clients.script import Calls, Shell, script
from clients.seat import Seat
from codex_judge import SCHEMAS
from tmux import MISSING

pytestmark = pytest.mark.client

REWRITE = """
    from agent_hooks import Rewrite

    def register(api):
        @api.on("before_tool_call", tool="bash")
        def change(event, ctx):
            return Rewrite({**event.params, "command": "touch rewritten"})
"""


@pytest.fixture
def seat(project: Path, home: Path) -> Iterator[Seat]:
    """Give Codex in a project."""
    with closing(Codex(project, home)) as codex:
        yield Seat(codex)


def program_of(codex: Codex) -> Path:
    """Return the program that the package of npm starts."""
    (found,) = codex.installed.glob("codex/node_modules/@openai/codex-*/vendor/*/bin/codex")
    return found


def schemas_in(program: Path) -> dict[str, Any]:
    """Return the schemas of answers to hooks that a program holds, by their titles."""
    data, begin, read = program.read_bytes(), b'{\n  "$schema"', json.JSONDecoder()
    found: dict[str, Any] = {}
    at = data.find(begin)
    while at >= 0:
        schema, _ = read.raw_decode(data[at : at + 20_000].decode(errors="replace"))
        if schema["title"].endswith(".command.output"):
            found[schema["title"]] = schema
        at = data.find(begin, at + 1)
    return found


def hooks_of(codex: Codex) -> list[dict[str, Any]]:
    """Return the hooks as Codex itself lists them."""
    lines: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "hooks/list", "params": {"cwds": [str(codex.project)]}},
    ]
    with subprocess.Popen(
        [str(codex.program), "app-server"],
        cwd=codex.project,
        env=codex.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        server.stdin.flush()
        answers = (json.loads(line) for line in server.stdout)
        listed = next(each for each in answers if each.get("id") == 1)
        server.terminate()
    (place,) = listed["result"]["data"]
    hooks: list[dict[str, Any]] = place["hooks"]
    return hooks


def test_the_schemas_of_the_judge_are_those_of_codex(seat: Seat) -> None:
    """The judge of all other tests has a copy; a newer Codex may change them."""
    assert isinstance(seat.client, Codex)
    assert schemas_in(program_of(seat.client)) == SCHEMAS


def test_codex_trusts_each_entry_after_an_installation(seat: Seat, home: Path) -> None:
    """Its own list has our keys and hashes, and our entries before all others."""
    assert isinstance(seat.client, Codex)
    file = home / ".codex/hooks.json"
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}
    seat.client.write(".codex/hooks.json", {"hooks": {"PreToolUse": [theirs]}})
    seat.ready()
    listed = {each["key"]: each for each in hooks_of(seat.client)}
    ours = open_bridge("codex").trust(str(file.resolve()), json.loads(file.read_text()))
    assert ours
    assert {key: listed[key]["currentHash"] for key in ours} == ours
    assert {listed[key]["trustStatus"] for key in ours} == {"trusted"}
    assert f"{file.resolve()}:pre_tool_use:0:0" in ours


@pytest.mark.skipif(MISSING, reason="tmux is missing")
def test_codex_asks_the_person_about_a_rewritten_call(seat: Seat, home: Path) -> None:
    """A rewrite stands beside the word `allow`, and still goes through the person's rules."""
    rules = home / ".codex/rules/default.rules"
    rules.parent.mkdir(parents=True)
    rules.write_text('prefix_rule(pattern=["touch"], decision="prompt")\n')
    seat.add_hook("rewrite.py", REWRITE)
    seat.trust()
    seat.client.install()
    steps = script(Calls(Shell("ls")), last="it is over")
    with seat.terminal(steps) as tmux:
        seat.prompt(tmux, steps, "go")
        # A dialog that was just drawn may lose its first key.
        assert "touch rewritten" in seat.answer(tmux, "Escape")
        tmux.sees("canceled the request")
    assert not seat.has("rewritten")
