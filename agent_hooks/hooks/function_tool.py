"""A plain typed Python function as a tool: its name, description and JSON Schema come from the function.

A parameter may have any type that msgspec can express and convert: dataclasses, enums, TypedDicts, dates, unions,
`Literal`, `Annotated[str, msgspec.Meta(description=…)]`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, get_type_hints

import msgspec

from agent_hooks.errors import HookUsageError, describe, shown
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate

# Some models refuse an empty text.
NO_OUTPUT = "(no output)"
_WITHOUT_NAME: dict[object, str] = {
    Parameter.POSITIONAL_ONLY: "is positional-only, and a model names its arguments; remove the `/`",
    Parameter.VAR_POSITIONAL: "takes any number of arguments, and a model names each; use a list parameter",
    Parameter.VAR_KEYWORD: "takes any argument, so that a model cannot know which; name them, or use a dict parameter",
}


class FunctionTool:
    """A tool that calls a function.

    The name is the function's, the description its docstring's first paragraph, the schema comes from the type hints.
    An `async def` runs on the event loop, a plain `def` in a worker thread.  Python cannot stop a thread, so a cancelled
    call waits until the function is done: nothing goes on behind the agent's back.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name: str = function.__name__
        if not self.name.isidentifier():
            raise HookUsageError(f"{self.name} cannot be a tool: it has no name for a model; use `def name(...)`")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise HookUsageError(
                f"{self.name} cannot be a tool: it is a generator; return one value, a list for example"
            )
        self.description = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
        self._function = function
        self._parameters = _parameters(function)
        self._hints = _hints(function, self._parameters)
        self._required = [each.name for each in self._parameters if each.default is Parameter.empty]
        self.input_schema = self._schema()

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Call the function; arguments that do not fit and a value that cannot be shown are error results."""
        try:
            arguments = self._arguments(input)
        except msgspec.ValidationError as exc:
            return ToolOutput(f"{self.name}: {exc}", is_error=True)
        if inspect.iscoroutinefunction(self._function):
            value = await self._function(**arguments)
        else:
            from anyio import to_thread

            # trio refuses a bare coroutine.
            (value,) = await to_thread.run_sync(lambda: (self._function(**arguments),))
            # A decorator may put a plain def around an async def.
            if inspect.isawaitable(value):
                value = await value
        return self._output(value)

    def _schema(self) -> dict[str, Any]:
        schemas, components = msgspec.json.schema_components(list(self._hints.values()), ref_template="#/$defs/{name}")
        properties = dict(zip(self._hints, schemas, strict=True))
        for parameter in self._parameters:
            if parameter.default is not Parameter.empty:
                from json import dumps

                try:
                    default = msgspec.to_builtins(parameter.default, str_keys=True, order="deterministic")
                    dumps(default, allow_nan=False)
                except Exception:  # noqa: S112  # the schema goes without it
                    # The default is no JSON: infinity, or an object that stands for "not given".
                    continue
                properties[parameter.name] = {**properties[parameter.name], "default": default}
        schema = {
            "type": "object",
            "properties": properties,
            "required": self._required,
            "additionalProperties": False,
        }
        return {**schema, "$defs": components} if components else schema

    def _arguments(self, input: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments in the types of the hints; an argument that is left out keeps the function's default."""
        if not isinstance(input, dict):
            raise msgspec.ValidationError(f"the input must be a JSON object, not {shown(input)}")
        if unknown := [name for name in input if name not in self._hints]:
            known = ", ".join(self._hints) or "none"
            raise msgspec.ValidationError(f"there is no argument {shown(unknown[0])}; there are: {known}")
        if missing := [name for name in self._required if name not in input]:
            raise msgspec.ValidationError(f"argument {missing[0]!r} is missing")
        arguments = {}
        for name, value in input.items():
            try:
                arguments[name] = msgspec.convert(value, self._hints[name])
            except msgspec.ValidationError as exc:
                raise msgspec.ValidationError(f"argument {name!r}: {exc}") from None
        return arguments

    def _output(self, value: object) -> ToolOutput:
        if isinstance(value, ToolOutput):
            return value
        if value is None or isinstance(value, str):
            return ToolOutput(value or NO_OUTPUT)
        try:
            details = msgspec.to_builtins(value, str_keys=True, order="deterministic")
            return ToolOutput(msgspec.json.encode(details).decode(), details)
        except Exception as exc:
            # A foreign object may fail in any way.  The function has run, so the model gets an error result.
            text = f"{self.name} ran, but returned {shown(value)}, which is no JSON ({describe(exc)})"
            return ToolOutput(f"{text}; return a str, JSON data, a dataclass or ToolOutput", is_error=True)


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters:
        if problem := _WITHOUT_NAME.get(parameter.kind):
            raise _unfit(function, parameter.name, problem)
        if parameter.annotation is Parameter.empty:
            raise _unfit(function, parameter.name, f"has no type; annotate it, such as `{parameter.name}: str`")
    return parameters


def _hints(function: Callable[..., Any], parameters: list[Parameter]) -> dict[str, Any]:
    try:
        found = get_type_hints(function, include_extras=True)
    except Exception as exc:
        # Evaluating annotations runs foreign code.
        raise HookUsageError(
            f"{function.__name__} cannot be a tool: its type hints cannot be read ({describe(exc)}); "
            "import or define the types at the module's top level, not under TYPE_CHECKING"
        ) from exc
    hints = {}
    for parameter in parameters:
        hint = found.get(parameter.name, parameter.annotation)
        try:
            msgspec.json.schema(hint)
        except Exception as exc:
            # msgspec raises TypeError and others for types that it does not know.
            problem = f"has a type that JSON Schema cannot express: {shown(hint)}"
            remedy = "use str, int, float, bool, list, dict, a dataclass, an enum, or a union of those"
            raise _unfit(function, parameter.name, f"{problem}; {remedy}") from exc
        hints[parameter.name] = hint
    return hints


def _unfit(function: Callable[..., Any], parameter: str, problem: str) -> HookUsageError:
    return HookUsageError(f"{function.__name__} cannot be a tool: parameter {parameter!r} {problem}")
