"""The conformance suite of bridges: the checks that every codec between another agent and our events must pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from agent_hooks.bridges.base import (
    Address,
    Bridge,
    BridgeError,
    CallAsked,
    CallEnded,
    EventsReported,
    Happening,
    Reply,
    Verdict,
    to_ours,
    to_theirs,
)
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import AgentEnd
from agent_hooks.values.frozen import thaw

_WHY = "because the suite says so"
_JUNK: tuple[object, ...] = (None, 1, "text", [], {}, {"x": 1}, {"hook_event_name": 3}, {"tool_name": None})
_FOREIGN = {"theme": "dark", "hooks": {"X": [{"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}]}}


def check_bridge(bridge: Bridge, payloads: Iterable[Mapping[str, Any]]) -> None:
    """Check a bridge; raises `AssertionError` with the first check that fails.

    `payloads`: payloads that the other agent sent, at least one before a tool call and one after a tool call.
    """
    kinds: set[type[Happening]] = set()
    for payload in payloads:
        before = deepcopy(dict(payload))
        event = bridge.decode(before)
        kinds.add(type(event))
        _must(before == payload, f"{event.name}: decode changed the payload")
        _must(thaw(event.native) == before, f"{event.name}: native is not the whole payload")
        _check_texts(bridge, event)
        if isinstance(event, CallAsked):
            _check_gate(bridge, event)
        if isinstance(event, CallEnded):
            _check_result(bridge, event)
        if isinstance(event, EventsReported) and any(isinstance(each, AgentEnd) for each in event.events):
            _check_end(bridge, event)
        _check_refusal(bridge, event)
    _must({CallAsked, CallEnded} <= kinds, "give at least one payload before a tool call and one after a tool call")
    _check_junk(bridge)
    _check_tools(bridge)
    _check_settings(bridge)


def _check_texts(bridge: Bridge, event: Happening) -> None:
    """An empty verdict has no text; a text for the model or the person is never lost."""
    silent = _decoded(bridge.encode(event, Verdict()), event.name)
    _must(not _texts(silent), f"{event.name}: an empty verdict has the text {silent}")
    _must(bridge.encode(event, Verdict()) == bridge.encode(event, Verdict()), f"{event.name}: two replies differ")
    for verdict in (Verdict(context=("for the model",)), Verdict(messages=("for the person",))):
        text = (*verdict.context, *verdict.messages)[0]
        texts = _texts(_decoded(bridge.encode(event, verdict), event.name))
        _must(any(text in each for each in texts), f"{event.name}: the text {text!r} is lost")


def _check_gate(bridge: Bridge, event: CallAsked) -> None:
    """A block wins; only an allow is an allow; a rewrite is the whole input under the other agent's names."""
    name = event.name
    rewritten = {**event.input, "suite": "was here"}
    replies = {
        "block": bridge.encode(event, Verdict(block=_WHY)),
        "ask": bridge.encode(event, Verdict(ask=_WHY)),
        "rewrite": bridge.encode(event, Verdict(input=rewritten)),
        "allow": bridge.encode(event, Verdict(allow=True)),
    }
    decoded = {kind: _decoded(reply, name) for kind, reply in replies.items()}
    _must(len({reply.stdout for reply in replies.values()}) == len(replies), f"{name}: two verdicts look the same")
    everything = Verdict(block=_WHY, ask="?", allow=True, input=rewritten)
    _must(bridge.encode(event, everything) == replies["block"], f"{name}: a block is not alone")
    for kind in ("block", "ask"):
        _must(any(_WHY in text for text in _texts(decoded[kind])), f"{name}: the reason of {kind} is lost")
    for kind in ("block", "ask", "rewrite"):
        _must("allow" not in _texts(decoded[kind]), f"{name}: {kind} says allow")
    theirs = to_theirs(bridge.tools, event.native_name, rewritten)
    _must(any(each == theirs for each in _objects(decoded["rewrite"])), f"{name}: the rewrite is not the whole input")
    asked = _decoded(bridge.encode(event, Verdict(ask=_WHY, input=rewritten)), name)
    _must(any(each == theirs for each in _objects(asked)), f"{name}: a question loses the rewrite")


def _check_result(bridge: Bridge, event: CallEnded) -> None:
    """The text of a changed result reaches the model."""
    output = ToolOutput("changed by the suite", is_error=event.output.is_error)
    texts = _texts(_decoded(bridge.encode(event, Verdict(output=output)), event.name))
    _must(any("changed by the suite" in text for text in texts), f"{event.name}: a changed result is lost")


def _check_end(bridge: Bridge, event: Happening) -> None:
    """The text of a `Continue` reaches the agent, and so does a text that a hook sent."""
    texts = _texts(_decoded(bridge.encode(event, Verdict(go_on=_WHY, context=("for the model",))), event.name))
    for text in (_WHY, "for the model"):
        _must(any(text in each for each in texts), f"{event.name}: {text!r} is lost when the agent goes on")


def _check_refusal(bridge: Bridge, event: Happening) -> None:
    rows = {row.name: row for row in bridge.describe()}
    reply = bridge.refuse(event.name, _WHY)
    refused = any(_WHY in text for text in _texts(_decoded(reply, event.name)))
    gate = isinstance(event, CallAsked) or (event.name in rows and rows[event.name].gate)
    _must(refused or not gate, f"{event.name}: a failure of the bridge lets it pass without a text")
    if isinstance(event, CallAsked):
        _must(event.name in rows and rows[event.name].gate, f"{event.name}: describe does not call it a gate")
        _must(bridge.refuse(None, _WHY) == reply, "a failure at an unknown event does not deny a tool call")


def _check_junk(bridge: Bridge) -> None:
    for junk in _JUNK:
        try:
            bridge.decode(junk)
        except BridgeError as exc:
            _must(bool(str(exc)), f"decode({junk!r}) raises an error without a text")
        else:
            raise AssertionError(f"decode({junk!r}) raises no BridgeError")


def _check_tools(bridge: Bridge) -> None:
    for words in bridge.tools:
        sample = {**dict.fromkeys(words.arguments, "x"), **dict.fromkeys(words.milliseconds, 1500), "other": [1]}
        sample |= {words.needs: "x"} if words.needs else {}
        name, ours = to_ours(bridge.tools, words.theirs, sample)
        _must(name == words.ours, f"{words.theirs} is {name}, not {words.ours}")
        _must(set(words.arguments.values()) <= ours.keys(), f"{words.theirs}: an argument is lost")
        _must(
            to_theirs(bridge.tools, words.theirs, ours) == sample,
            f"{words.theirs}: to_theirs does not give the input back",
        )


def _check_settings(bridge: Bridge) -> None:
    command = ["/usr/bin/python3", "-m", "agent_hooks", "bridge", bridge.name]
    events = [row.name for row in bridge.describe()]
    for settings in ({}, _FOREIGN):
        before = deepcopy(settings)
        installed = bridge.install(settings, command, events)
        text = json.dumps(installed)
        _must(settings == before, "install changes its argument")
        there = {entry.event: entry for entry in bridge.installed(installed)}
        _must(list(there) == [each for each in there if each in events], "installed returns entries of other programs")
        for row in bridge.describe():
            _must(row.name in there, f"install leaves {row.name} out")
            _must(there[row.name].command == (*command, row.name), f"{row.name}: another command is installed")
            _must(there[row.name].fails_closed or not row.gate, f"{row.name}: a failure of the command lets it pass")
        one = bridge.installed(bridge.install(settings, command, events[:1]))
        _must([entry.event for entry in one] == events[:1], "install takes more events than it was asked for")
        for foreign in ("dark", "theirs"):
            _must(foreign in text or not settings, "install loses the settings of other programs")
        _must(json.dumps(bridge.install(installed, command, events)) == text, "installing twice is not installing once")
        _must(bridge.uninstall(installed) == before, "uninstall does not give the settings before install back")
        posting = bridge.install(installed, command, events, Address(20000, "token"))
        posted = {entry.event for entry in bridge.installed(posting) if entry.address is not None}
        for row in bridge.describe():
            _must(not (row.gate and row.decides_nothing), f"{row.name}: describe calls it a gate and decides_nothing")
            _must(
                row.decides_nothing or row.name not in posted, f"{row.name}: an event that decides something is posted"
            )
        _must(bridge.uninstall(posting) == before, "uninstall does not find posted entries")
        _must(json.dumps(bridge.install(posting, command, events)) == text, "without an address, events are posted")
        _must(bridge.uninstall(before) == before, "uninstall removes entries of other programs")


def _decoded(reply: Reply, name: str) -> Any:
    """Return the one JSON object that a reply prints."""
    _must(reply.exit_code in (0, 2), f"{name}: exit code {reply.exit_code} lets calls pass in some agents")
    try:
        decoded = json.loads(reply.stdout)
    except ValueError:
        raise AssertionError(f"{name}: {reply.stdout!r} is not one JSON object") from None
    _must(isinstance(decoded, dict), f"{name}: {reply.stdout!r} is not a JSON object")
    return decoded


def _texts(value: Any) -> list[str]:
    """Return all texts in JSON data."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return all objects in JSON data."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [each for item in items for each in _objects(item)]


def _must(holds: bool, text: str) -> None:
    if not holds:
        raise AssertionError(text)
