"""The base class of bridges: the defaults that a new bridge starts from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.installation import Address, EventRow, Facts, Installed
from agent_hooks.bridges.base.verdicts import SILENCE, Reply, Verdict
from agent_hooks.bridges.base.words import BridgeError, object_field, text_field
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.server.stub import config_of

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "claude_code.json").read_text())


class Smallest(Bridge):
    """A bridge that defines only the required members."""

    name = "smallest"
    events = (EventRow("Call", gate=True, timeout=30), EventRow("Note"))

    def decode(self, payload: object, event_name: str | None = None) -> Happening:
        return Happening(name="Note", native={})

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        return SILENCE

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        return SILENCE

    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        return {}

    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        return dict(settings)

    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return dict(settings)

    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        return ()

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        return Facts("smallest", "1", (), {}, {})


def test_a_bridge_that_overrides_no_default_runs_everywhere_attended_and_unhindered() -> None:
    """The defaults assume an ordinary agent at which a person works."""
    bridge = Smallest()
    assert bridge.runs_here({})
    assert bridge.is_attended({})
    assert bridge.hindrances("/settings.json", {}, "/project") == ()
    assert bridge.describe() == Smallest.events
    assert (bridge.tools, bridge.environment, bridge.project_variable, bridge.process_variable) == ((), (), "", "")


def test_an_event_without_a_timeout_has_that_of_its_agent() -> None:
    """The client gives up some seconds before the agent does."""
    bridge = Smallest()
    bridge.timeout = 100
    limits = {event: seconds for event, (seconds, _) in config_of(bridge)["events"].items()}
    assert limits == {"Call": 20.0, "Note": 90.0, "": 90.0}


def test_an_unknown_event_has_a_row_that_is_no_gate() -> None:
    """The row of a known event is the one in the table."""
    bridge = Smallest()
    assert bridge.row("Call").gate
    assert bridge.row("Other") == EventRow("Other")
    assert bridge.row(None) == EventRow("")


def test_a_field_of_a_wrong_kind_is_named_with_its_value() -> None:
    """A field without a default must be there."""
    assert text_field({"a": "x"}, "a") == "x"
    assert text_field({}, "a", "default") == "default"
    assert object_field({"a": {}}, "a") == {}
    for read in (text_field, object_field):
        with pytest.raises(BridgeError, match=r"a must be a .*3"):
            read({"a": 3}, "a")
        with pytest.raises(BridgeError, match="a must be a "):
            read({}, "a")


def test_an_entry_names_the_settings_that_limit_it() -> None:
    """They are a field, by key."""
    bridge = ClaudeCode()
    settings = bridge.install({}, ["/py"], ["PreToolUse"])
    [whole] = bridge.installed(settings)
    assert whole.limits == {}
    settings["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["once"] = True
    [limited] = bridge.installed(settings)
    assert limited.limits == {"matcher": "Bash", "once": True}


@pytest.mark.parametrize("name", PAYLOADS)
def test_each_text_for_the_model_goes_where_the_row_of_its_event_says(name: str) -> None:
    """Claude Code reads `additionalContext` of some events only, and of a stop before hooks keep the agent going."""
    bridge = ClaudeCode()
    happening = bridge.decode(PAYLOADS[name])
    said = json.loads(bridge.encode(happening, Verdict(context=("for the model",))).stdout)
    takes = bridge.row(happening.name).takes_context or happening.name in ("Stop", "SubagentStop")
    assert happening.takes_context == takes
    assert ("additionalContext" in said.get("hookSpecificOutput", {})) == takes


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("\ud800", "\ufffd"),
        ("a\udcffb", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\U0001f600", "\U0001f600"),
        ("\\ud800", "\\ud800"),
    ],
)
def test_half_of_a_surrogate_pair_does_not_make_a_reply_unreadable(text: str, printed: str) -> None:
    """Some agents cannot read such an answer, and then run the tool; a file's name in a reason is enough."""
    reply = Reply.of({text: [text, {"why": (text,)}]})
    assert msgspec.json.decode(reply.stdout) == {printed: [printed, {"why": [printed]}]}
    denial = ClaudeCode().refuse("PreToolUse", text).stdout
    assert printed in str(msgspec.json.decode(denial))


def test_the_name_of_an_event_is_found_in_a_broken_payload() -> None:
    """An entry may name no event, and a payload that is cut off still names it."""
    claude, nameless = ClaudeCode(), Smallest()
    assert claude.name_in(b'{"x": 1, "hook_event_name" : "PreToolUse", "tool_in') == "PreToolUse"
    assert claude.name_in(b'{"hook_event_name": "\xff"}') is None
    assert claude.name_in(b"") is None
    assert nameless.name_in(b'{"hook_event_name": "PreToolUse"}') is None
