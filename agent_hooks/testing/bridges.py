"""The conformance suite of bridges: the checks that every codec between another agent and our events must pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import product
from typing import Any

import msgspec

from agent_hooks.bridges import BRIDGES
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, EventsReported, Happening, PromptGiven
from agent_hooks.bridges.base.installation import PROCESS, Address, Power
from agent_hooks.bridges.base.verdicts import NOTHING, Reply, Verdict
from agent_hooks.bridges.base.words import BridgeError, to_ours, to_theirs
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import AgentEnd, SessionEvent
from agent_hooks.values.frozen import thaw

_WHY = "because the suite says so"
_FOR_MODEL = "for the model"
# Half of a surrogate pair: a file's name can hold one.
_HALF = "half \ud800"
_JUNK: tuple[object, ...] = (None, 1, "text", [], {}, {"x": 1}, {"tool_name": None})
_FOREIGN: dict[str, Any] = {
    "theme": "dark",
    "hooks": {"X": [{"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}]},
}


def check_bridge(
    bridge: Bridge,
    payloads: Iterable[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]],
    *,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Check a bridge; raises `AssertionError` with the first check that fails.

    `payloads`: payloads that the other agent sent, at least one before a tool call and one after a tool call.  Where they
    do not name their event, it is a mapping, and each key is the event's name, with a colon and any text after it.
    `environment`: the variables that the other agent gave the command of a hook.  With it, each variable that the bridge
    reads to know its agent, the project and the process must be one of them.

    A bridge that stands in `BRIDGES` must be known to the guards: they protect its settings and the like.
    The bridge is judged by its own table: a power that `Bridge.limits` names may be missing, and any other must be there.
    """
    kinds: set[type[Happening]] = set()
    for name, payload in _named(payloads):
        before = deepcopy(dict(payload))
        event = bridge.decode(before, name)
        kinds.add(type(event))
        _must(before == payload, f"{event.name}: decode changed the payload")
        _must(thaw(event.native) == before, f"{event.name}: native is not the whole payload")
        _check_event(bridge, event)
    _must({CallAsked, CallEnded} <= kinds, "give at least one payload before a tool call and one after a tool call")
    _check_junk(bridge)
    _check_tools(bridge)
    _check_facts(bridge)
    if environment is not None:
        _check_environment(bridge, environment)
    if bridge.name in BRIDGES:
        _check_places(bridge)
    if bridge.plugin:
        _check_plugin(bridge)
    elif bridge.settings_files({}):
        _check_settings(bridge)


def _named(
    payloads: Iterable[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]],
) -> Iterable[tuple[str | None, Mapping[str, Any]]]:
    if isinstance(payloads, Mapping):
        return [(key.partition(":")[0], payload) for key, payload in payloads.items()]
    return [(None, payload) for payload in payloads]


def _check_event(bridge: Bridge, event: Happening) -> None:
    _check_texts(bridge, event)
    match event:
        case CallAsked():
            _check_gate(bridge, event)
            _check_rewrite(bridge, event)
        case CallEnded():
            _check_result(bridge, event)
        case PromptGiven():
            _check_block(bridge, event, "block_prompt")
            _check_context(bridge, event, "prompt_context")
        case EventsReported():
            _check_reported(bridge, event)
    _check_refusal(bridge, event)


def _check_texts(bridge: Bridge, event: Happening) -> None:
    """An empty verdict has no text; a text for the model is never lost, and no text makes an answer unreadable."""
    silent = _decoded(bridge.encode(event, Verdict()), event.name)
    _must(not _texts(silent), f"{event.name}: an empty verdict has the text {silent}")
    _must(bridge.encode(event, Verdict()) == bridge.encode(event, Verdict()), f"{event.name}: two replies differ")
    if event.takes_context:
        _must(_FOR_MODEL in _all_texts(bridge, event, Verdict(context=(_FOR_MODEL,))), _lost(event, _FOR_MODEL))
    shows = "message" not in bridge.limits and isinstance(event, CallAsked | PromptGiven)
    _must(
        not shows or "for the person" in _all_texts(bridge, event, Verdict(messages=("for the person",))),
        _lost(event, "for the person"),
    )
    for half in (Verdict(block=_HALF), Verdict(context=(_HALF,)), Verdict(messages=(_HALF,)), Verdict(go_on=_HALF)):
        _decoded(bridge.encode(event, half), event.name)


def _check_context(bridge: Bridge, event: Happening, power: Power) -> None:
    """The event takes a text for the model, or the table says why not, or how else the model gets it."""
    known = event.takes_context or power in bridge.limits or power in bridge.gaps
    if event.takes_context:
        _must(power not in bridge.limits, f"{event.name} takes a text for the model, and limits[{power!r}] disagrees")
    _must(known, f"{event.name} takes no text for the model: limits[{power!r}], which says why, is missing")


def _check_gate(bridge: Bridge, event: CallAsked) -> None:
    """A block wins and has a reason; only an allow is an allow; a question that cannot be asked is a block."""
    name = event.name
    rewritten = {**event.input, "suite": "was here"}
    block, ask = (bridge.encode(event, verdict) for verdict in (Verdict(block=_WHY), Verdict(ask=_WHY)))
    allow = bridge.encode(event, Verdict(allow=True))
    _must(block not in (allow, bridge.encode(event, NOTHING)), f"{name}: a block looks like no opinion")
    _must((ask == block) == _lacks(bridge, name, "ask"), f"{name}: the reply to a question and limits['ask'] disagree")
    _must(ask not in (allow, bridge.encode(event, NOTHING)), f"{name}: a question looks like no opinion")
    everything = Verdict(block=_WHY, ask="?", allow=True, input=rewritten)
    _must(bridge.encode(event, everything) == block, f"{name}: a block is not alone")
    _check_stop(bridge, event, _decoded(block, name))
    for kind, reply in (("block", block), ("ask", ask)):
        _must(any(_WHY in text for text in _texts(_decoded(reply, name))), f"{name}: the reason of {kind} is lost")
        _must("allow" not in _texts(_decoded(reply, name)), f"{name}: {kind} says allow")
    nameless = _texts(_decoded(bridge.encode(event, Verdict(block=" ")), name))
    _must(len(nameless) >= len(_texts(_decoded(block, name))) and " " not in nameless, f"{name}: a block has no reason")
    _check_context(bridge, event, "context_before")


def _check_stop(bridge: Bridge, event: CallAsked, block: Any) -> None:
    """A stop has the whole denial in it, and more where the agent ends the run; only the table says where it does not."""
    stopped = _decoded(bridge.encode(event, Verdict(block=_WHY, stop="the run is over")), event.name)
    _must(_contains(stopped, block), f"{event.name}: a stop is not the denial, with more beside it")
    ends = stopped != block
    _must(ends or "stop" in bridge.limits, f"{event.name}: a stop does not end the run: limits['stop'] is missing")
    _must(not ends or "stop" not in bridge.limits, f"{event.name}: a stop ends the run, and limits['stop'] disagrees")


def _contains(value: Any, part: Any) -> bool:
    """Return whether JSON data has all of the data of another value."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(key in value and _contains(value[key], part[key]) for key in part)
    return bool(value == part)


def _check_rewrite(bridge: Bridge, event: CallAsked) -> None:
    """A rewrite is the whole input under the other agent's names, or a denial that has it in its reason."""
    name = event.name
    rewritten = _with_another_text(event.input)
    theirs = to_theirs(bridge.tools, event.native_name, rewritten)
    for verdict in (Verdict(input=rewritten), Verdict(ask=_WHY, input=rewritten)):
        decoded = _decoded(bridge.encode(event, verdict), name)
        if _lacks(bridge, name, "rewrite") or (verdict.ask is not None and _lacks(bridge, name, "ask")):
            denied = any("was here" in text or _WHY in text for text in _texts(decoded))
            _must(
                denied and theirs not in _objects(decoded),
                f"{name}: a rewrite that the agent does not take is no denial",
            )
        else:
            # An argument that the tool lacks is checked below.
            _must("suite" in rewritten or _has_input(decoded, theirs), f"{name}: the rewrite is not the whole input")
        says_allow = "allow" in _texts(decoded) and not bridge.rewrites_by_allow
        _must(not says_allow, f"{name}: rewrite says allow")
    more = {**event.input, "suite": "was here"}
    decoded = _decoded(bridge.encode(event, Verdict(input=more)), name)
    whole = _has_input(decoded, to_theirs(bridge.tools, event.native_name, more))
    _must(whole or any("was here" in text for text in _texts(decoded)), f"{name}: a new argument is lost")
    for key in event.input if bridge.merges else ():
        fewer = {each: value for each, value in event.input.items() if each != key}
        shorter = _objects(_decoded(bridge.encode(event, Verdict(input=fewer)), name))
        _must(
            to_theirs(bridge.tools, event.native_name, fewer) not in shorter,
            f"{name}: {key} comes back after a rewrite",
        )


def _lacks(bridge: Bridge, event_name: str, power: Power) -> bool:
    """Return whether hooks lack a power at an event, or at all events of the agent."""
    return power in bridge.limits or power in bridge.row(event_name).lacks


def _has_input(decoded: Any, theirs: Mapping[str, Any]) -> bool:
    """Return whether an answer has an input: as an object, or as the text that is its only argument."""
    return theirs in _objects(decoded) or (len(theirs) == 1 and next(iter(theirs.values())) in _texts(decoded))


def _with_another_text(input: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input with another text; an input without a text gets an argument that it lacks."""
    name = next((name for name, value in input.items() if isinstance(value, str)), "suite")
    return {**input, name: "was here"}


def _check_block(bridge: Bridge, event: Happening, power: Power) -> None:
    """A block stops the event: its reason is in another place than a message to the person."""
    block, message = (
        _decoded(bridge.encode(event, verdict), event.name)
        for verdict in (Verdict(block=_WHY), Verdict(messages=(_WHY,)))
    )
    stops = any(_WHY in text for text in _texts(block)) and _keys(block) != _keys(message)
    _must(stops or power in bridge.limits, f"{event.name}: the reason of a block is lost")


def _check_result(bridge: Bridge, event: CallEnded) -> None:
    """The text of a changed result reaches the model, if the agent takes any text there."""
    output = ToolOutput("changed by the suite", is_error=event.output.is_error)
    reaches = "changed by the suite" in _all_texts(bridge, event, Verdict(output=output))
    _must(
        reaches or ("replace" in bridge.limits and not event.takes_context), f"{event.name}: a changed result is lost"
    )
    if not event.output.is_error:
        _check_context(bridge, event, "context_after")


def _check_reported(bridge: Bridge, event: EventsReported) -> None:
    for each in event.events:
        match each:
            case AgentEnd():
                _check_end(bridge, event)
            case SessionEvent(reason="start"):
                _check_context(bridge, event, "session_context")
            case SessionEvent(reason="before_compact"):
                _check_block(bridge, event, "cancel_compaction")


def _check_end(bridge: Bridge, event: Happening) -> None:
    """The text of a `Continue` reaches the agent, and so does a text that a hook sent."""
    texts = _all_texts(bridge, event, Verdict(go_on=_WHY, context=(_FOR_MODEL,)))
    if "continue" in bridge.limits:
        # An agent may take the text in some of its modes.
        return
    for text in (_WHY, _FOR_MODEL):
        _must(text in texts, f"{event.name}: {text!r} is lost when the agent goes on")


def _check_refusal(bridge: Bridge, event: Happening) -> None:
    rows = {row.name: row for row in bridge.describe()}
    reply = bridge.refuse(event.name, _WHY)
    refused = any(_WHY in text for text in _texts(_decoded(reply, event.name)))
    gate = isinstance(event, CallAsked) or (event.name in rows and rows[event.name].gate)
    _must(refused or not gate, f"{event.name}: a failure of the bridge lets it pass without a text")
    if isinstance(event, CallAsked):
        _must(event.name in rows and rows[event.name].gate, f"{event.name}: describe does not call it a gate")
        unknown = _texts(_decoded(bridge.refuse(None, _WHY), event.name))
        _must(any(_WHY in text for text in unknown), "a failure at an unknown event does not deny a tool call")


def _check_junk(bridge: Bridge) -> None:
    gate = next((row.name for row in bridge.describe() if row.gate), None)
    for junk in (*_JUNK, {bridge.event_field: 3}):
        try:
            bridge.decode(junk, gate)
        except BridgeError as exc:
            _must(bool(str(exc)), f"decode({junk!r}) raises an error without a text")
        else:
            raise AssertionError(f"decode({junk!r}) raises no BridgeError")


def _check_facts(bridge: Bridge) -> None:
    """The sample call of `agent-hooks doctor` is a tool call of a session, in an environment in which hooks run."""
    facts = bridge.facts("/project", {})
    call = bridge.decode_as(facts.event, dict(facts.sample))
    _must(isinstance(call, CallAsked), "facts: the sample is no tool call")
    _must(call.session_id == facts.sample.get(facts.session_field), "facts: session_field does not hold the session")
    _must(bridge.runs_here(facts.environment), "facts: in this environment, no hook runs")
    # The resident process gets no other variables.
    sent = {name: value for name, value in facts.environment.items() if name in bridge.environment}
    _must(bridge.runs_here(sent), "runs_here reads a variable that environment lacks, so no hook would run")


def _check_environment(bridge: Bridge, environment: Mapping[str, str]) -> None:
    """The agent sets the variables that the bridge reads; the sample call has those of the table, also a wrong one."""
    for field in ("project_variable", "process_variable"):
        variable = getattr(bridge, field)
        # The entry sets this one.
        given = variable in ("", PROCESS, *environment)
        _must(given, f"the agent gave no variable {variable}, which {field} names")
    runs = bridge.runs_here(environment)
    _must(runs, "runs_here is false in the environment that the agent gave, so no hook would run")


def _check_places(bridge: Bridge) -> None:
    """The guards protect the files by which the agent would switch our hooks off."""
    # Imported here, because the guards are large.
    from agent_hooks.testing.protection import unprotected

    for text in unprotected(bridge):
        raise AssertionError(text)


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
    own = ["/usr/bin/python3", "-m", "agent_hooks", "bridge", bridge.name]
    for command, settings in product((own, ["agent-hooks", "bridge", bridge.name]), ({}, _FOREIGN)):
        _check_install(bridge, command, settings)


def _check_plugin(bridge: Bridge) -> None:
    """Settings name the plugin once, and it gets all events."""
    path = f"/agent-home/bridges/agent-hooks-{bridge.name}.mjs"
    for settings in ({}, _FOREIGN):
        before = deepcopy(settings)
        installed = bridge.install(settings, [path], [])
        _must(settings == before, "install changes its argument")
        _must(json.dumps(installed).count(path) == 1, "install does not name the plugin once")
        _must(bridge.install(installed, [path], []) == installed, "installing twice is not installing once")
        events = [entry.event for entry in bridge.installed(installed)]
        _must(events == [row.name for row in bridge.describe()], "installed does not return each event of the plugin")
        _must(bridge.uninstall(installed) == before, "uninstall does not give the settings before install back")
        _must(not bridge.installed(before), "installed returns entries of other programs")


def _check_install(bridge: Bridge, command: list[str], settings: dict[str, Any]) -> None:
    events = [row.name for row in bridge.describe()]
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
        waits = row.timeout in (None, there[row.name].timeout)
        _must(waits, f"{row.name}: the entry waits {there[row.name].timeout} s, and not {row.timeout} s")
    one = bridge.installed(bridge.install(settings, command, events[:1]))
    _must([entry.event for entry in one] == events[:1], "install takes more events than it was asked for")
    for foreign in ("dark", "theirs"):
        _must(foreign in text or not settings, "install loses the settings of other programs")
    _must(json.dumps(bridge.install(installed, command, events)) == text, "installing twice is not installing once")
    # Keys that the agent demands of each file may stay in a file of others.
    left = bridge.uninstall(installed)
    kept = {key: value for key, value in left.items() if key in before or not before}
    _must(kept == before, "uninstall does not give the settings before install back")
    posting = bridge.install(installed, command, events, Address(20000, "token"))
    posted = {entry.event for entry in bridge.installed(posting) if entry.address is not None}
    for row in bridge.describe():
        _must(not (row.gate and row.decides_nothing), f"{row.name}: describe calls it a gate and decides_nothing")
        _must(row.decides_nothing or row.name not in posted, f"{row.name}: an event that decides something is posted")
    _must(bridge.uninstall(posting) == left, "uninstall does not find posted entries")
    _must(json.dumps(bridge.install(posting, command, events)) == text, "without an address, events are posted")
    _must(bridge.uninstall(before) == before, "uninstall removes entries of other programs")


def _decoded(reply: Reply, name: str) -> Any:
    """Return the one JSON object that a reply prints; half of a surrogate pair is no JSON to some agents."""
    _must(reply.exit_code in (0, 2), f"{name}: exit code {reply.exit_code} lets calls pass in some agents")
    try:
        decoded = msgspec.json.decode(reply.stdout)
    except (ValueError, UnicodeError):
        raise AssertionError(f"{name}: {reply.stdout!r} is not one JSON object") from None
    _must(isinstance(decoded, dict), f"{name}: {reply.stdout!r} is not a JSON object")
    return decoded


def _all_texts(bridge: Bridge, event: Happening, verdict: Verdict) -> str:
    """Return all texts of the reply to an event, in one."""
    return "\n".join(_texts(_decoded(bridge.encode(event, verdict), event.name)))


def _lost(event: Happening, text: str) -> str:
    return f"{event.name}: the text {text!r} is lost"


def _texts(value: Any) -> list[str]:
    """Return all texts in JSON data."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _keys(value: Any) -> Any:
    """Return JSON data without its values."""
    return {key: _keys(each) for key, each in value.items()} if isinstance(value, dict) else None


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return all objects in JSON data."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [each for item in items for each in _objects(item)]


def _must(holds: bool, text: str) -> None:
    if not holds:
        raise AssertionError(text)
