"""`check_bridge` demands more of a bridge than its answers: the variables of its agent, and guards of its places."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.gemini_cli import GeminiCli
from agent_hooks.guards.agents import AGENT_PLACES
from agent_hooks.testing import check_bridge

_HERE = Path(__file__).parent
ENVIRONMENTS: dict[str, dict[str, str]] = json.loads((_HERE / "environments.json").read_text())
COMMANDS = [name for name in BRIDGES if not open_bridge(name).plugin]


def payloads(name: str) -> Any:
    """Return the payloads that an agent sent."""
    return json.loads((_HERE / f"{name.replace('-', '_')}.json").read_text())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_bridge_reads_variables_that_its_agent_sets(name: str) -> None:
    """The file beside this one has the variables that the agent really gave a hook; a new bridge adds its own."""
    check_bridge(open_bridge(name), payloads(name), environment=ENVIRONMENTS[name])


class Misnamed(GeminiCli):
    """A bridge with a typo in the variable by which an entry knows its agent."""

    here = "GEMINI_SESION_ID"


class Elsewhere(GeminiCli):
    """A bridge with a typo in the variable that holds the project."""

    project_variable = "GEMINI_PROJECT"


class Nobody(GeminiCli):
    """A bridge that names a variable for the process, which the agent does not set."""

    process_variable = "GEMINI_PID"


@pytest.mark.parametrize(
    ("bridge", "text"),
    [
        (Misnamed(), "runs_here is false in the environment that the agent gave, so no hook would run"),
        (Elsewhere(), "the agent gave no variable GEMINI_PROJECT, which project_variable names"),
        (Nobody(), "the agent gave no variable GEMINI_PID, which process_variable names"),
    ],
)
def test_a_misnamed_variable_is_named(bridge: Bridge, text: str) -> None:
    """Only the environment of the real agent shows it: the sample call of `doctor` sets the variables of the table."""
    check_bridge(bridge, payloads("gemini-cli"))
    with pytest.raises(AssertionError, match=text):
        check_bridge(bridge, payloads("gemini-cli"), environment=ENVIRONMENTS["gemini-cli"])


class Unknown(GeminiCli):
    """A bridge whose agent has other directories than the guards know."""

    layout = replace(GeminiCli.layout, files={"user": "{home}/toy.json"}, home=("TOY_HOME", "~/.toy"))


class Moved(GeminiCli):
    """A bridge whose settings a variable moves that the guards do not know."""

    layout = replace(GeminiCli.layout, files={"user": "{home}/settings.json"}, home=("TOY_HOME", "~/.gemini"))


class Policies(GeminiCli):
    """A bridge with another file that decides."""

    files = ("~/.toyrc",)


class Trusting(GeminiCli):
    """A bridge whose agent trusts entries by a file that the guards do not know."""

    def trust_file(self, environment: Mapping[str, str]) -> str:
        return "~/.toy-trust.toml"


@pytest.mark.parametrize(
    ("bridge", "text"),
    [
        (Unknown(), r"no guard protects ~/\.toy/toy\.json: AGENT_PLACES in agent_hooks/guards/agents\.py"),
        (Moved(), r"no guard protects /elsewhere/of/you/settings\.json, to which the variable TOY_HOME moves"),
        (Policies(), r"no guard protects ~/\.toyrc"),
        (Trusting(), r"no guard protects ~/\.toy-trust\.toml"),
    ],
)
def test_a_place_that_no_guard_protects_is_named(bridge: Bridge, text: str) -> None:
    """Otherwise the agent could switch our hooks off by one write."""
    with pytest.raises(AssertionError, match=text):
        check_bridge(bridge, payloads("gemini-cli"))


def test_an_agent_that_the_guards_do_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row holds more than the settings: plugins, policies and rules."""
    others = tuple(each for each in AGENT_PLACES if each.agent != "pi")
    monkeypatch.setattr("agent_hooks.testing.protection.AGENT_PLACES", others)
    with pytest.raises(AssertionError, match=r"agents\.py has no row for pi"):
        check_bridge(open_bridge("pi"), payloads("pi"))
