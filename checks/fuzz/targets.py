"""The fuzzed readers: each takes any bytes, and raises for a finding only.

A reader may refuse bytes with the errors that its docstring names; a target passes over these.  Any other exception is a
finding, and so is a broken promise: a payload at a gate that is not denied, for example.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from agent_hooks import Block, HookAPI, HookRunner, LoadedHook, SessionError
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallAsked, EventsReported
from agent_hooks.bridges.base.verdicts import Reply
from agent_hooks.bridges.base.words import BridgeError, parse_payload
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.cli.rpc.protocol import UnreadableLine, parse
from agent_hooks.concurrency.stepping import run
from agent_hooks.errors import SettingsError
from agent_hooks.guards.base import GuardedCall, GuardOptions
from agent_hooks.guards.patches import patched_names
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.host.session import Session
from agent_hooks.installs import edits
from agent_hooks.installs.edits import Format
from agent_hooks.pipeline.archives import list_archive
from agent_hooks.records.joining import Reader
from agent_hooks.records.verifying import verify
from agent_hooks.server import client
from agent_hooks.settings import SETTINGS_FILE, merge_settings
from agent_hooks.storage.files import StorageError
from agent_hooks.transcripts import Transcript
from agent_hooks.transcripts.base import TranscriptError
from agent_hooks.transformers.command_intercept import INTERCEPT_FILE, load_transformers
from agent_hooks.trees import ApprovedFile, SourceTree
from agent_hooks.trust.python_facts import python_facts
from agent_hooks.trust.settings_facts import intercept_facts, settings_facts
from checks.fuzz import seeds

# Seconds that a guard may take for one command; `docs/guards.md` promises that its time grows with the length only.
SLOWEST = 5.0
_AGENT = "/home/dev/.agent"


class Finding(Exception):  # noqa: N818  # it is the outcome of a run, not an error of this module
    """A promise that was broken, in one sentence."""


class Target(NamedTuple):
    """One fuzzed reader.

    `read`: takes bytes, and raises for a finding; `seeds`: returns well-formed inputs, which the fuzzers change; `words`:
    pieces that the fuzzers insert.
    """

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()


def _tree(name: str, data: bytes) -> SourceTree:
    """Return an approved tree with one file."""
    path = f"{_AGENT}/{name}"
    return SourceTree(_AGENT, "/home/dev", {path: ApprovedFile(data, path)})


def _file(name: str, data: bytes) -> str:
    """Write a file of the working directory and return its path."""
    path = os.path.join(_directory(), name)
    Path(path).write_bytes(data)
    return path


@cache
def _directory() -> str:
    memory = "/dev/shm"  # noqa: S108  # a new directory is made below it
    return tempfile.mkdtemp(prefix="agent-hooks-fuzz-", dir=memory if os.path.isdir(memory) else None)


def _settings(data: bytes) -> None:
    """Settings are read, or refused with their place."""
    with suppress(SettingsError):
        merge_settings([_tree(SETTINGS_FILE, data)])
    settings_facts(data)


def _intercept(data: bytes) -> None:
    """Transformers are configured, or the file has an error; nothing raises."""
    load_transformers(cwd="/home/dev", trees=[_tree(INTERCEPT_FILE, data)])
    intercept_facts(data)


def _request(data: bytes) -> None:
    """Each line is a request, an answer to a dialog, or an error with a text."""
    for line in data.splitlines():
        found = parse(line)
        if isinstance(found, UnreadableLine) and not found.error:
            raise Finding("a line is refused without a reason")


def _session(data: bytes) -> None:
    """A session is opened with all its whole lines, or refused; it can be written on, and opened again."""
    path = _file("session.jsonl", data)
    with suppress(SessionError):
        session = Session.open(path, "/home/dev")
        try:
            session.add_model("puppet", "puppet")
            count = len(session)
        finally:
            session.close()
        again = Session.open(path, "/home/dev")
        again.close()
        if len(again) != count:
            raise Finding(f"{count} entries were written and {len(again)} read")


def _records(data: bytes) -> None:
    """Records are verified and joined; a changed byte of a chain is a problem or a note, never an exception."""
    directory = os.path.join(_directory(), "records")
    os.makedirs(directory, exist_ok=True)
    Path(directory, "20261122-s1-0011aabb.jsonl").write_bytes(data)
    Path(directory, "index.jsonl").write_bytes(data[: len(data) // 2])
    with suppress(StorageError):
        verify(directory)
        list(Reader(directory).records())


def _transcript(data: bytes) -> None:
    """A recorded session is read line by line, or refused."""
    with suppress(TranscriptError), Transcript(_file("transcript.jsonl", data)) as transcript:
        list(transcript)


def _command(data: bytes) -> None:
    """The command guard answers each command, and soon."""
    text = data.decode("utf-8", "surrogateescape")
    began = time.monotonic()
    call = GuardedCall(tool_name="bash", input={"command": text}, cwd="/home/dev/app", home="/home/dev")
    _guard().find(call)
    if (took := time.monotonic() - began) > SLOWEST:
        raise Finding(f"the guard took {took:.1f} s for {len(data)} bytes")


@cache
def _guard() -> CommandSafetyGuard:
    return CommandSafetyGuard(GuardOptions())


def _patch(data: bytes) -> None:
    """The names of a patch are found, or there are none."""
    patched_names(data.decode("utf-8", "surrogateescape"))


def _archive(data: bytes) -> None:
    """The members of an archive are listed, or the archive has no list."""
    list_archive(_file("archive", data))


def _python(data: bytes) -> None:
    """The facts of a file are found; one that is not Python is refused."""
    python_facts(data, hook=True)


_OURS: dict[str, Any] = {"ours": {"Stop": [{"hooks": []}]}}
_FORMATS: dict[Format, dict[str, Any]] = {
    "json": _OURS,
    "jsonc": _OURS,
    "json5": _OURS,
    "toml": {"ours": {"state": {"x:0": {"trusted_hash": "y"}}}},
}
"""The formats of settings, each with members to add."""


def _edited_settings(data: bytes) -> None:
    """The settings of another agent keep their text in each format; only our member differs, and goes again."""
    for kind, ours in _FORMATS.items():
        with suppress(RecursionError):
            try:
                text = data.decode()
                before = edits.parse(text, kind)
            except ValueError:
                continue
            if isinstance(before, dict) and "ours" not in before:
                _check_edit(text, before, {**before, **ours}, kind)


def _check_edit(text: str, before: dict[str, Any], after: dict[str, Any], kind: Format) -> None:
    try:
        changed = edits.edited(text, after, kind)
        back = edits.edited(changed, before, kind)
    except ValueError as exc:
        # A table of TOML may have a form that is not edited.
        if kind == "toml":
            return
        raise Finding(f"the text cannot be edited: {exc}") from None
    # The representation also compares numbers that equal no number.
    if repr(edits.parse(changed, kind)) != repr(after) or repr(edits.parse(back, kind)) != repr(before):
        raise Finding("the edited text has other values")


# ---- payloads of other agents, and replies to them -------------------------------------------------------------------


def _payload_of(name: str) -> Callable[[bytes], None]:
    """Return the target for one agent: where a gate blocks everything, no payload of the gate's event passes."""

    def read(data: bytes) -> None:
        bridge = open_bridge(name)
        run(_check_payload(bridge, data))

    return read


async def _check_payload(bridge: Bridge, data: bytes) -> None:
    gate = next(row.name for row in bridge.describe() if row.gate)
    try:
        # Where payloads name no event, the entry of the gate does.
        happening = bridge.decode_as(None if bridge.event_field else gate, parse_payload(data))
    except BridgeError as exc:
        _check_denial(bridge.refuse(gate, str(exc)), refused=True)
        return
    runner = _blocking()
    async with runner:
        reply = bridge.encode(happening, await Bridging(runner, BridgeUI()).answer(happening))
    _check_denial(reply, refused=isinstance(happening, CallAsked))
    if isinstance(happening, EventsReported):
        json.loads(reply.stdout or "{}")


_DENIALS = ("deny", '"throw"', '"block": true')
"""The words of a denial, for the agents that run commands and for those that load a plugin."""


def _check_denial(reply: Reply, *, refused: bool) -> None:
    """The reply is one line of JSON in UTF-8, and denies if it has to."""
    value = json.loads(reply.stdout.encode() or b"{}")
    if refused and reply.exit_code != 2 and not any(word in json.dumps(value) for word in _DENIALS):
        raise Finding(f"a gate's event is not denied: {reply.stdout[:200]}")


def _blocking() -> HookRunner:
    """Return a runner with one hook, which blocks every call."""
    api = HookAPI("fuzz.py")

    @api.on("tool_call")
    async def block(event: Any, ctx: Any) -> Block:
        return Block("the fuzzer blocks all calls")

    return HookRunner([LoadedHook("fuzz.py", "fuzz.py", "fuzz", api)], cwd="/home/dev")


def _reply(data: bytes) -> None:
    """The client prints one whole object of the server, or fails, which denies."""
    try:
        text, code = client._answer(data)
    except client._FailedError:
        return
    if code not in (0, 2) or not (text.startswith(b"{") and text.endswith(b"}\n") and text.count(b"\n") == 1):
        raise Finding(f"the client would print {text[:200]!r} with exit code {code}")


# ---- the table -------------------------------------------------------------------------------------------------------


_SHELL = (b"$(", b"`", b"<<", b"${", b"eval ", b"rm -rf / ", b"\\", b"'", b'"', b";", b"|", b"&", b"\n", b"\0", b"*")
_JSON = (b"{", b"}", b"[", b"]", b'"', b"\\ud800", b"null", b"1e999", b"\xff", b",", b":", b"-0", b"\0")
_YAML = (b"&a ", b"*a", b"!!", b"? ", b"- ", b"<<: ", b": ", b"on", b"~", b"|\n", b"{", b"[", b"\t", b"#", b"---\n")

TARGETS: dict[str, Target] = {
    "settings": Target(_settings, seeds.settings, _JSON),
    "intercept": Target(_intercept, seeds.intercept, _YAML),
    "requests": Target(_request, seeds.requests, _JSON),
    "sessions": Target(_session, seeds.sessions, _JSON),
    "records": Target(_records, seeds.records, _JSON),
    "transcripts": Target(_transcript, seeds.transcripts, _JSON),
    **{f"payloads-{name}": Target(_payload_of(name), partial(seeds.payloads, name), _JSON) for name in BRIDGES},
    "replies": Target(_reply, seeds.replies, _JSON),
    "commands": Target(_command, seeds.commands, _SHELL),
    "patches": Target(_patch, seeds.patches, (b"--- ", b"diff --git ", b'"', b"\\", b"\r")),
    "archives": Target(_archive, seeds.archives),
    "python": Target(_python, seeds.hooks, (b"register", b"api.", b"(", b"\n", b"    ", b"\\", b"\0", b"lambda: ")),
    "foreign-settings": Target(_edited_settings, seeds.foreign_settings, _JSON),
}
"""All targets by name."""
