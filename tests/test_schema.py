"""A tool's input against its schema: one line that says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks import schema
from agent_hooks.frozen import freeze
from agent_hooks.schema import schema_error

COMMAND = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "deep": {"type": "array", "items": {"type": "integer"}}},
    "required": ["command"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("input", [{"command": "ls"}, {"command": "ls", "deep": [1, 2]}, freeze({"command": "ls"})])
def test_an_input_that_fits_has_no_error(input: Any) -> None:
    """Frozen input too."""
    assert schema_error("bash", COMMAND, input) is None


@pytest.mark.parametrize(
    ("input", "error"),
    [
        ({}, "bash: input: 'command' is a required property"),
        ({"command": 5}, "bash: input 'command': 5 is not of type 'string'"),
        ({"command": "ls", "deep": [1, "x"]}, "bash: input 'deep.1': 'x' is not of type 'integer'"),
        (freeze({"command": "ls", "deep": [1, "x"]}), "bash: input 'deep.1': 'x' is not of type 'integer'"),
        ({"command": "ls", "x": 1}, "bash: input: Additional properties are not allowed ('x' was unexpected)"),
        ([], "bash: the input must be a JSON object, not []"),
        ("ls", "bash: the input must be a JSON object, not 'ls'"),
        (None, "bash: the input must be a JSON object, not None"),
    ],
)
def test_an_input_that_does_not_fit_is_told_with_its_place(input: Any, error: str) -> None:
    """Tool, place and what is wrong, in one line."""
    assert schema_error("bash", COMMAND, input) == error


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"type": "objekt"}, "objekt"),
        ({"properties": 5}, "5"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "127.0.0.1:9"),
        ({"properties": {"a": {"pattern": "("}}}, "("),
        (None, "NoneType"),
        (5, "int"),
    ],
)
def test_a_schema_that_cannot_be_used_is_an_error_too(bad: Any, told: str) -> None:
    """Nothing is fetched and nothing passes unjudged."""
    error = schema_error("bash", bad, {"a": "x"})
    assert error is not None
    assert error.startswith("bash: the tool's input_schema cannot be used: ")
    assert told in error


def test_a_long_value_does_not_make_a_long_error() -> None:
    """A megabyte in the wrong place is not sent back to the model."""
    error = schema_error("bash", COMMAND, {"command": ["x" * 1_000_000]})
    assert error is not None
    assert len(error) < 600
    assert error.endswith("is not of type 'string'")


def test_schemas_that_are_made_anew_for_each_call_do_not_pile_up() -> None:
    """The cache has a bound, and one schema is compiled once."""
    for _ in range(3):
        assert schema_error("bash", COMMAND, {"command": "ls"}) is None
    compiled = schema._validators[id(COMMAND)]
    assert schema_error("bash", COMMAND, {"command": "ls"}) is None
    assert schema._validators[id(COMMAND)] is compiled
    schema._validators.update({-number: ({}, None) for number in range(1, 2000)})
    assert schema_error("bash", {"type": "object"}, {}) is None
    assert len(schema._validators) == 1
