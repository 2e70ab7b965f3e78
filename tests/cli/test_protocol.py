"""The wire of RPC mode: its JSON Schema, and the reader of its lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent_hooks.cli.rpc import protocol
from agent_hooks.cli.rpc.protocol import Request, UnreadableLine, parse
from agent_hooks.ui.rpc import HookUiResponse
from running import Command as CommandLine
from running import RpcClient

SCHEMA = protocol.schema()
COMMAND = Draft202012Validator({"$ref": "#/$defs/Command", "$defs": SCHEMA["$defs"]})
ATTACHMENT = {"kind": "document", "fileName": "a.txt", "mimeType": "text/plain", "content": "aGk="}
GOOD: list[dict[str, Any]] = [
    {"type": "prompt", "message": "hello"},
    {"type": "prompt", "id": "7", "message": "hello", "attachments": [ATTACHMENT]},
    {"type": "abort", "id": 7},
    {"type": "shutdown"},
    {"type": "get_state", "id": None},
    {"type": "new_session"},
    {"type": "switch_session", "sessionFile": "/a/b.jsonl"},
    {"type": "clear"},
    {"type": "branch", "entryIndex": 3},
    {"type": "compact"},
    {"type": "compact", "customInstructions": "names only"},
    {"type": "hook_ui_response", "id": "a", "value": "x"},
    {"type": "hook_ui_response", "id": "a", "confirmed": True, "value": None},
    {"type": "hook_ui_response", "id": "a", "cancelled": True},
]
BAD: list[tuple[Any, str, str]] = [
    ({"type": "prompt"}, "prompt", "missing required field `message`"),
    ({"type": "prompt", "message": 5}, "prompt", "Expected `str`, got `int` - at `$.message`"),
    ({"type": "prompt", "message": "x", "attachments": [{}]}, "prompt", "- at `$.attachments[0]`"),
    ({"type": "prompt", "message": "x", "Message": "x"}, "prompt", "unknown field `Message`"),
    ({"type": "branch", "entryIndex": "3"}, "branch", "Expected `int`, got `str`"),
    ({"type": "branch", "entryIndex": True}, "branch", "Expected `int`, got `bool`"),
    ({"type": "switch_session"}, "switch_session", "`sessionFile`"),
    ({"type": "get_state", "id": 1.5}, "get_state", "got `float`"),
    ({"type": "hook_ui_response", "value": "x"}, "hook_ui_response", "`id`"),
    ({"type": "hook_ui_response", "id": "a", "confirmed": "yes"}, "hook_ui_response", "Expected `bool | null`"),
    ({"type": "response"}, "parse", "there is no command 'response'"),
    ({"type": 5}, "parse", 'no "type"'),
    ({"id": 5}, "parse", 'no "type"'),
    ([], "parse", "a JSON object, not []"),
    (None, "parse", "a JSON object, not None"),
]


@pytest.mark.parametrize("command", GOOD, ids=str)
def test_a_command_is_read_as_the_schema_says(command: dict[str, Any]) -> None:
    """Both accept it."""
    COMMAND.validate(command)
    read = parse(json.dumps(command).encode())
    assert isinstance(read, Request | HookUiResponse)
    assert (read.type, read.id) == (command["type"], command.get("id"))


@pytest.mark.parametrize(("command", "name", "error"), BAD, ids=str)
def test_what_is_no_command_is_told_with_its_place(command: Any, name: str, error: str) -> None:
    """Both refuse it."""
    assert not COMMAND.is_valid(command)
    read = parse(json.dumps(command).encode())
    assert isinstance(read, UnreadableLine)
    assert read.command == name
    assert error in read.error


@pytest.mark.parametrize("id", ["x", 5])
def test_an_error_comes_back_with_the_id_that_could_be_read(id: str | int) -> None:
    """The client needs the id to find its request."""
    for command in ({"type": "prompt", "id": id}, {"type": "nonsense", "id": id}, {"id": id}):
        read = parse(json.dumps(command).encode())
        assert isinstance(read, UnreadableLine)
        assert read.id == id


@given(st.one_of(st.binary(), st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists).map(str)))
def test_reading_never_raises(line: str | bytes) -> None:
    """Any bytes that a client sends get a result."""
    assert isinstance(parse(line if isinstance(line, bytes) else line.encode()), UnreadableLine)


@given(st.dictionaries(st.sampled_from(["type", "id", "message", "value", "entryIndex"]), st.text() | st.integers()))
def test_the_schema_and_the_reader_agree(command: dict[str, Any]) -> None:
    """They agree on any object, with integers of up to 64 bits."""
    if all(isinstance(value, str) or abs(value) < 2**62 for value in command.values()):
        read = parse(json.dumps(command).encode())
        assert isinstance(read, UnreadableLine) is not COMMAND.is_valid(command)


def test_the_schema_is_printed(command: CommandLine) -> None:
    """It is a valid schema, and it distinguishes the kinds of records."""
    schema = json.loads(command("schema", "rpc").stdout)
    Draft202012Validator.check_schema(schema)
    assert schema["$defs"] == json.loads(json.dumps(SCHEMA["$defs"]))
    record = RpcClient.validator
    assert record.is_valid({"type": "hook_ui_cancel", "id": "a", "reason": "aborted"})
    assert not record.is_valid({"type": "hook_ui_cancel", "id": "a", "reason": "bored"})
    assert not record.is_valid({"type": "hook_ui_request", "id": "a", "method": "select", "title": "t"})
    assert not record.is_valid({"type": "hook_ui_request", "id": "a", "title": "t", "message": "m"})
    assert not record.is_valid({"type": "nonsense"})
