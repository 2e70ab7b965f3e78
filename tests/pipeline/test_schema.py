"""The check of a tool's input against its schema: the error is one line that a model can act on."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.pipeline import schema
from agent_hooks.pipeline.schema import InputCheck, schema_error
from agent_hooks.values.frozen import freeze
from agent_hooks.values.tool import NO_SCHEMA

DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]
NAMES = st.sampled_from("abc")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 1e300, 10**30])
    | st.text("aé😀", max_size=3)
)
JSON = st.recursive(
    LEAVES, lambda some: st.lists(some, max_size=3) | st.dictionaries(NAMES, some, max_size=3), max_leaves=8
)
JSON_OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LIMITS = st.integers(0, 3)


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(JSON, min_size=1, max_size=3, unique_by=repr),
        "const": JSON,
        "minimum": LIMITS,
        "maximum": LIMITS,
        "multipleOf": st.integers(1, 3),
        "minLength": LIMITS,
        "maxLength": LIMITS,
        "pattern": st.sampled_from(["^a", "é$", "aa+"]),
        "minItems": LIMITS,
        "uniqueItems": st.booleans(),
        "items": inner,
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=2),
        "additionalProperties": st.booleans() | inner,
        "required": st.lists(NAMES, min_size=1, unique=True),
        "minProperties": LIMITS,
        "anyOf": some,
        "oneOf": some,
        "allOf": some,
        "not": inner,
    }
    return st.fixed_dictionaries({}, optional=keywords)


SCHEMAS = st.recursive(st.fixed_dictionaries({"type": TYPES}), schemas, max_leaves=6)

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
        ({}, 'bash: input: "command" is a required property'),
        ({"command": 5}, "bash: input 'command': 5 is not of type \"string\""),
        ({"command": "ls", "deep": [1, "x"]}, 'bash: input \'deep.1\': "x" is not of type "integer"'),
        (freeze({"command": "ls", "deep": [1, "x"]}), 'bash: input \'deep.1\': "x" is not of type "integer"'),
        ({"command": "ls", "x": 1}, "bash: input: Additional properties are not allowed ('x' was unexpected)"),
        ([], "bash: the input must be a JSON object, not []"),
        ("ls", "bash: the input must be a JSON object, not 'ls'"),
        (None, "bash: the input must be a JSON object, not None"),
    ],
)
def test_an_input_that_does_not_fit_is_told_with_its_place(input: Any, error: str) -> None:
    """One line names the tool, the place and the mistake."""
    assert schema_error("bash", COMMAND, input) == error


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"type": "objekt"}, "objekt"),
        ({"properties": 5}, "5"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "127.0.0.1:9"),
        ({"properties": {"a": {"pattern": "("}}}, "("),
        (None, "not None"),
        (5, "not 5"),
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
    assert error.endswith('is not of type "string"')


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            '\'a\': 5 is not of type "string" and 5 is not of type "null"',
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"b": {"enum": ["x"]}}}]},
            "'a.b': 5 is not one of \"x\"",
        ),
        ({"oneOf": [{}, {"type": ["integer", "object"]}]}, "is valid under more than one of the schemas"),
    ],
)
def test_an_input_that_fits_no_alternative_is_told_what_they_want(wanted: Any, error: str) -> None:
    """The nearest one where one fits further than the others, else all."""
    value = {"b": 5} if "b" in str(wanted) else 5
    told = schema_error("tool", {"properties": {"a": wanted}}, {"a": value})
    assert told is not None
    assert error in told


class Text(str):
    """Not a plain one."""


class Number(int):
    """Not a plain one."""


class Fraction(float):
    """Not a plain one."""


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("integer", 10**400, True),
        ("integer", 3.0, True),
        ("integer", 3.5, False),
        ("integer", True, False),
        ("number", Decimal("1.5"), True),
        ("number", math.nan, False),
        ("number", math.inf, False),
        ("null", math.nan, False),
        ("string", Text("x"), True),
        ("integer", Text("x"), False),
        ("integer", Number(3), True),
        ("number", Fraction(1.5), True),
        ("string", "half a pair: \ud800", True),
        ("string", Path("x"), False),
        ("string", b"x", False),
        ("object", {1: 2}, True),
        ("object", {"1": 2}, True),
        ("object", MappingProxyType({"1": 2}), True),
        ("array", [], True),
        ("array", freeze([1, {"a": [None]}]), True),
        ("object", freeze({"a": [None]}), True),
        ("object", freeze([]), False),
    ],
)
def test_a_value_of_any_class_is_judged_for_what_it_is(kind: str, value: object, fits: bool) -> None:
    """The first check compiles, the second does not.  A value that is no JSON fits no schema that wants JSON."""
    numbers = {"properties": {"a": {"type": kind}}}
    for given_input in ({"a": value}, {"a": value}, freeze({"a": value}), MappingProxyType({"a": value})):
        assert (schema_error("tool", numbers, given_input) is None) is fits


def test_an_unknown_field_may_hold_anything() -> None:
    """A program may hand its own objects through."""
    for value in (Path("x"), b"x", object(), {1: 2}, math.nan):
        assert schema_error("tool", COMMAND | {"additionalProperties": True}, {"command": "ls", "more": value}) is None


@pytest.mark.parametrize("value", [math.inf, {1: 2}, Path("x")])
def test_what_is_no_json_is_told_with_its_place(value: object) -> None:
    """Not as the `null` that other libraries make of it."""
    error = schema_error("tool", {"properties": {"a": {"type": "integer"}}}, {"a": value})
    assert error is not None
    assert error.startswith("tool: input.a: ")


def test_an_input_that_holds_itself_is_an_error() -> None:
    """Where the schema looks at it; the pipeline refuses it earlier."""
    cycle: dict[str, Any] = {}
    cycle["a"] = cycle
    error = schema_error("tool", {"properties": {"a": {"$ref": "#"}}, "required": ["b"]}, cycle)
    assert error is not None
    assert error.startswith("tool: the input cannot be checked: RecursionError")


@pytest.mark.parametrize(
    ("schema", "input", "fits"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 1, False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "exclusiveMinimum": 1}, 1, False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, [1], False),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]}, [1], False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}, [1], True),
        ({"$schema": "http://json-schema.org/schema#", "type": "string"}, 1, False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "format": "email"}, "nobody", True),
        ({"format": "email"}, "nobody", True),
        ({"pattern": r"^\p{L}+$"}, "é", True),
        ({"pattern": r"^\d+$"}, "٣", False),
    ],
)
def test_the_schema_says_which_draft_counts(schema: dict[str, Any], input: object, fits: bool) -> None:
    """The newest without a word; formats are hints; patterns are those of JavaScript, as JSON Schema wants them."""
    draft = {"$schema": schema.pop("$schema")} if "$schema" in schema else {}
    assert (schema_error("tool", draft | {"properties": {"a": schema}}, {"a": input}) is None) is fits


@pytest.mark.parametrize("place", ["$ref", "$schema", "$dynamicRef", "$id"])
def test_nothing_is_fetched(place: str) -> None:
    """The author of a tool writes its schema; an address in it must not become a request from this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        schema = {place: address, "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
        error = schema_error("tool", schema, {"a": 1})
        assert error is not None
        assert schema_error("tool", schema, {"a": 2}) is not None
        if place in ("$ref", "$dynamicRef"):
            assert error.startswith("tool: the tool's input_schema cannot be used: ")
            assert address in error
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@given(SCHEMAS, JSON_OBJECTS, st.sampled_from([None, *DRAFTS]))
def test_another_library_gives_the_same_verdict(
    schema: dict[str, Any], input: dict[str, Any], draft: str | None
) -> None:
    """On random schemas and inputs, frozen or not, of every draft."""
    if draft is not None:
        schema = {"$schema": draft, **schema}
    fits = jsonschema.validators.validator_for(schema)(schema).is_valid(input)
    errors = [schema_error("t", schema, given) for given in (input, input, freeze(input))]
    errors += [InputCheck(schema).error("t", input), schema_error("t", freeze(schema), input)]
    assert [error is None for error in errors] == [fits] * 5, errors


def test_schemas_that_are_made_anew_for_each_call_do_not_pile_up() -> None:
    """The cache has a bound, and one schema is compiled once."""
    for _ in range(3):
        assert schema_error("bash", COMMAND, {"command": "ls"}) is None
    kept = schema._checks[id(COMMAND)]
    assert schema_error("bash", COMMAND, {"command": "ls"}) is None
    assert schema._checks[id(COMMAND)] is kept
    schema._checks.update({-number: InputCheck({}) for number in range(1, 2000)})
    assert schema_error("bash", {"type": "object"}, {}) is None
    assert len(schema._checks) == 1


def test_everything_fits_where_no_schema_is_known_and_no_library_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another agent's tools come without a schema, each under a name of its own."""
    monkeypatch.setattr(schema, "_compile", None)
    assert schema_error("Bash", NO_SCHEMA, {"command": "ls"}) is None
    assert schema_error("Read", NO_SCHEMA, freeze({"path": "x"})) is None
    assert schema_error("Bash", NO_SCHEMA, ["ls"]) == "Bash: the input must be a JSON object, not ['ls']"


def test_a_schema_is_compiled_once_and_no_input_that_fits_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each copy begins at a place with the name of the copied value."""
    copied: list[str] = []
    compiled: list[object] = []
    as_json, compile_schema = schema._as_json, schema._compile

    def copy(value: Any, place: str, odd: list[str]) -> Any:
        if "." not in place:
            copied.append(place)
        return as_json(value, place, odd)

    def compile_once(given: Mapping[str, Any]) -> Any:
        compiled.append(given)
        return compile_schema(given)

    monkeypatch.setattr(schema, "_as_json", copy)
    monkeypatch.setattr(schema, "_compile", compile_once)
    required = {"type": "object", "required": ["a"]}
    assert [schema_error("bash", required, {"a": number}) for number in range(3)] == [None] * 3
    assert len(compiled) == 1
    assert "input" not in copied
    copied.clear()
    assert schema_error("bash", required, []) is not None
    assert schema_error("bash", required, {}) is not None
    assert copied == ["input"]
    assert len(compiled) == 1


def test_an_input_that_does_not_fit_never_passes_for_lack_of_a_reason() -> None:
    """The library gives a reason for every input that does not fit; this is the answer if it does not."""
    assert schema._error_text([]) == "input: does not fit the tool's input_schema"
