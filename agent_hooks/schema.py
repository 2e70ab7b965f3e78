"""Check a tool's input against its JSON Schema.  Above: pipeline.  Below: jsonschema, imported at the first check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.errors import describe, shown

_MANY = 1024  # a tool may make its schema anew for each call; past this many the cache starts anew
_LONG = 500  # characters of an error: jsonschema's holds the whole wrong value
_validators: dict[int, tuple[Mapping[str, Any], Any]] = {}


def schema_error(name: str, schema: Mapping[str, Any], input: object) -> str | None:
    """Return what is wrong with `input`, in one line, or `None`.

    A schema that cannot be used, or that points to another document, is an error too: nothing is fetched.
    """
    if not isinstance(input, Mapping):
        return f"{name}: the input must be a JSON object, not {shown(input)}"
    try:
        error = _best_error(schema, input)
    except Exception as exc:  # jsonschema raises many kinds for a bad schema; each means "cannot be judged"
        return f"{name}: the tool's input_schema cannot be used: {describe(exc)}"
    if error is None:
        return None
    place = ".".join(str(part) for part in error.absolute_path)
    message: str = error.message
    if len(message) > _LONG:
        message = f"{message[: _LONG // 2]} … {message[-_LONG // 2 :]}"
    return f"{name}: input{f' {place!r}' if place else ''}: {message}"


def _best_error(schema: Mapping[str, Any], input: object) -> Any:
    from jsonschema.exceptions import best_match

    return best_match(_validator(schema).iter_errors(input))


def _validator(schema: Mapping[str, Any]) -> Any:
    known = _validators.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = validator_for(schema)
    kind.check_schema(dict(schema))
    validator = kind(
        dict(schema), registry=Registry()
    )  # an empty registry: the default one would fetch from the network
    if len(_validators) >= _MANY:
        _validators.clear()
    _validators[id(schema)] = schema, validator
    return validator
