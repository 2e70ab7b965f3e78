"""A typed Python function is a tool: its description for the model, its arguments, and its result."""

from __future__ import annotations

import enum
import functools
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import pytest
from anyio import from_thread
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, to_builtins

from agent_hooks import Block, HookRunner, HookUsageError, Tool, ToolCall, ToolOutput, wrap_tool, wrap_tools
from agent_hooks.hooks.function_tool import FunctionTool
from agent_hooks.pipeline.schema import schema_error
from support import PATIENCE, hook_on, runner_of

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.5


class Tree(Struct):
    value: int
    children: list[Tree] = []


@dataclass
class Everything:
    number: int
    ratio: float
    text: str
    flag: bool
    colour: Colour
    day: date
    points: list[Point] = field(default_factory=list)
    by_name: dict[str, Point] = field(default_factory=dict)
    maybe: int | None = None


def bare(function: Callable[..., Any]) -> Tool:
    """Return the tool of a function, with a runner of no hooks around it."""
    return wrap_tool(function, HookRunner([], cwd="."))


async def result_of(function: Callable[..., Any], **arguments: Any) -> ToolOutput:
    """Call the tool of a function."""
    return await bare(function).execute("1", arguments)


# ---- the texts for the model -----------------------------------------------------------------------------------------


def test_name_description_and_schema_are_read_off_the_function() -> None:
    """The first paragraph becomes one line, parameters without a default are required, and descriptions are kept."""

    def deploy(
        target: Annotated[str, Meta(description="where to")],
        retries: int = 3,
        mode: Literal["fast", "safe"] = "safe",
        *,
        dry: bool = False,
        tag: str | None = None,
    ) -> str:
        """Deploy the thing
        that was built.

        More that only people read.
        """
        return target

    tool = bare(deploy)
    assert isinstance(tool, Tool)
    assert (tool.name, tool.description) == ("deploy", "Deploy the thing that was built.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "target": {"type": "string", "description": "where to"},
            "retries": {"type": "integer", "default": 3},
            "mode": {"enum": ["fast", "safe"], "default": "safe"},
            "dry": {"type": "boolean", "default": False},
            "tag": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["target"],
        "additionalProperties": False,
    }


def test_named_types_are_definitions_at_the_top_of_the_schema() -> None:
    """Also one that contains itself; jsonschema can follow the references."""

    def plant(tree: Tree, where: Point, colour: Colour = Colour.RED) -> None: ...

    schema = bare(plant).input_schema
    assert set(schema["$defs"]) == {"Tree", "Point", "Colour"}
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert schema["properties"]["colour"] == {"$ref": "#/$defs/Colour", "default": "red"}
    good = {"tree": {"value": 1, "children": [{"value": 2}]}, "where": {"x": 1}}
    assert schema_error("plant", schema, good) is None
    assert "input 'tree.children.0.value'" in str(
        schema_error("plant", schema, {**good, "tree": {"value": 1, "children": [{"value": "two"}]}})
    )


def test_a_function_without_docstring_and_parameters_is_a_tool_too() -> None:
    """And a default that is no JSON is one that the model just leaves out."""

    def ping() -> str:
        return "pong"

    def pong(n: int = object(), limit: float = float("inf")) -> None: ...  # type: ignore[assignment]  # "not given"

    assert (bare(ping).description, bare(ping).input_schema["properties"]) == ("", {})
    assert bare(pong).input_schema["properties"] == {"n": {"type": "integer"}, "limit": {"type": "number"}}
    assert bare(pong).input_schema["required"] == []


# ---- functions that are no tool --------------------------------------------------------------------------------------


def no_hint(a: int, b) -> None: ...  # type: ignore[no-untyped-def]  # the mistake
def positional(a: int, /) -> None: ...
def any_number(*parts: str) -> None: ...
def any_name(**options: str) -> None: ...
def opaque(target: object) -> None: ...
def a_path(target: Path) -> None: ...
def a_callback(done: Callable[[], None]) -> None: ...
def unresolved(amount: OnlyForCheckers) -> None: ...
def generator(n: int) -> Iterator[int]:
    yield n


async def async_generator(n: int) -> AsyncIterator[int]:
    yield n


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (no_hint, "no_hint cannot be a tool: parameter 'b' has no type; annotate it, such as `b: str`"),
        (positional, "parameter 'a' is positional-only.*remove the `/`"),
        (any_number, "parameter 'parts' takes any number.*use a list parameter"),
        (any_name, "parameter 'options' takes any argument.*use a dict parameter"),
        (opaque, "parameter 'target' has a type that JSON Schema cannot express: <class 'object'>; use str"),
        (a_path, "a_path cannot be a tool: parameter 'target' has a type.*Path.*use str"),
        (a_callback, "parameter 'done' has a type.*Callable"),
        (unresolved, "unresolved cannot be a tool: its type hints cannot be read.*OnlyForCheckers.*TYPE_CHECKING"),
        (generator, "generator cannot be a tool: it is a generator; return one value"),
        (async_generator, "async_generator cannot be a tool: it is a generator"),
        (lambda: None, "<lambda> cannot be a tool: it has no name for a model; use `def"),
        (functools.partial(a_path), "or a typed function; not functools.partial"),
        (Point, "wrap_tool wants a tool.*not <class"),
    ],
)
def test_a_function_that_no_model_could_call_is_refused_with_the_remedy(
    function: Callable[..., Any], words: str
) -> None:
    """At once, and by the names of function and parameter."""
    with pytest.raises(HookUsageError, match=words):
        bare(function)


# ---- the arguments of the function -----------------------------------------------------------------------------------


ratios = st.floats(allow_nan=False, allow_infinity=False)
points = st.builds(Point, x=st.integers(), y=ratios)
everything = st.builds(
    Everything,
    ratio=ratios,
    points=st.lists(points),
    by_name=st.dictionaries(st.text(), points),
    maybe=st.none() | st.integers(),
)


@given(value=everything, colours=st.lists(st.sampled_from(Colour)))
def test_what_goes_in_as_json_reaches_the_function_as_its_types(value: Everything, colours: list[Colour]) -> None:
    """The returned values come out as the same JSON, and the input fits the schema."""
    seen: list[object] = []

    async def keep(value: Everything, colours: list[Colour]) -> Everything:
        seen.extend([value, colours])
        return value

    tool = FunctionTool(keep)
    wire = json.loads(json.dumps(to_builtins({"value": value, "colours": colours})))
    assert schema_error("keep", tool.input_schema, wire) is None
    output = anyio.run(tool.execute, "1", wire)
    assert seen == [value, colours]
    assert not output.is_error
    assert json.loads(output.text) == wire["value"]
    assert output.details == wire["value"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"point": {"x": "far"}}, "move: argument 'point': Expected `int`, got `str` - at `$.x`"),
        ({"point": {"x": 1}, "steps": "3"}, "move: argument 'steps': Expected `int`, got `str`"),
        ({"point": {"x": 1}, "colour": "green"}, "move: argument 'colour': Invalid enum value 'green'"),
        ({"steps": 3}, "move: argument 'point' is missing"),
        ({"point": {"x": 1}, "setps": 3}, "move: there is no argument 'setps'; there are: point, steps, colour"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_result(arguments: dict[str, Any], words: str) -> None:
    """The function is not called.  Without a hook around it, the tool itself checks the schema."""

    def move(point: Point, steps: int = 1, colour: Colour = Colour.RED) -> None:
        raise AssertionError("never called")

    output = await result_of(move, **arguments)
    assert (output.is_error, output.text) == (True, words)
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None, inline=True))
    assert (await wrap_tool(move, runner).execute("1", arguments)).is_error


async def test_an_input_that_is_no_object_is_an_error_result() -> None:
    """A model may write anything."""

    def ping() -> str:
        raise AssertionError("never called")

    wrong: Any = ["x"]
    output = await bare(ping).execute("1", wrong)
    assert (output.is_error, output.text) == (True, "ping: the input must be a JSON object, not ['x']")


async def test_what_the_model_leaves_out_keeps_the_functions_own_default() -> None:
    """The very object, not a copy by way of JSON."""
    mark = Point(1)

    def same(point: Point = mark) -> bool:
        return point is mark

    assert (await result_of(same)).text == "true"
    assert (await result_of(same, point={"x": 1})).text == "false"


# ---- where it runs ---------------------------------------------------------------------------------------------------


async def test_a_plain_def_runs_in_a_worker_thread_and_an_async_def_on_the_loop() -> None:
    """The thread may call back into the loop, as anyio's do; a method and a decorated function are functions."""

    def blocking() -> bool:
        from_thread.run(anyio.sleep, 0)
        return threading.current_thread() is threading.main_thread()

    async def suspending() -> bool:
        await anyio.sleep(0)
        return threading.current_thread() is threading.main_thread()

    @functools.wraps(suspending)
    def decorated() -> Awaitable[bool]:
        return suspending()

    class Desk:
        def note(self, text: str) -> str:
            return f"noted {text}"

    assert (await result_of(blocking)).text == "false"
    assert (await result_of(suspending)).text == "true"
    assert (await result_of(decorated)).text == "true"
    assert (await result_of(Desk().note, text="it")).text == "noted it"


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration("no"), SystemExit("no")])
async def test_a_function_that_raises_is_an_error_result_where_a_hook_listens(error: BaseException) -> None:
    """As with any tool, from a thread as well as from the loop."""

    def in_a_thread() -> None:
        raise error

    async def on_the_loop() -> None:
        raise error

    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None, inline=True))
    for tool in wrap_tools([in_a_thread, on_the_loop], runner):
        output = await tool.execute("1", {})
        assert output.is_error
        assert type(error).__name__ in output.text


async def test_a_cancelled_call_of_a_plain_def_waits_until_the_function_is_done() -> None:
    """Python cannot stop a thread, so nothing goes on behind the agent's back."""
    begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def write() -> None:
        begun.set()
        go_on.wait(PATIENCE)
        done.append("written")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bare(write).execute, "1", {})
        await anyio.to_thread.run_sync(begun.wait, 10)
        tasks.cancel_scope.cancel()
        go_on.set()
    assert done == ["written"]


async def test_hooks_see_and_stop_the_call_of_a_function() -> None:
    """The gate sees the JSON input; a blocked function is not called."""
    seen: list[object] = []

    async def gate(event: ToolCall, ctx: object) -> Block:
        seen.append(event.input)
        return Block("not there")

    def move(point: Point) -> None:
        raise AssertionError("never called")

    runner, errors = runner_of(hook_on("tool_call", gate, tool="move"))
    output = await wrap_tool(move, runner).execute("1", {"point": {"x": 1}})
    assert (output.is_error, output.text) == (True, "not there (hook.py)")
    assert seen == [{"point": {"x": 1}}]
    assert errors == []


# ---- the result ------------------------------------------------------------------------------------------------------

READY = ToolOutput("as it is", {"a": 1}, is_error=True)


@pytest.mark.parametrize(
    ("value", "text", "details"),
    [
        ("text", "text", None),
        ("", "(no output)", None),
        (None, "(no output)", None),
        (7, "7", 7),
        ([Point(1), Colour.BLUE], '[{"x":1,"y":0.5},"blue"]', [{"x": 1, "y": 0.5}, "blue"]),
        ({date(2025, 1, 2): {3, 1, 2}}, '{"2025-01-02":[1,2,3]}', {"2025-01-02": [1, 2, 3]}),
    ],
)
async def test_what_a_function_returns_is_shown_as_text_or_json(value: object, text: str, details: object) -> None:
    """A str as it is; JSON is in the details too, for hooks and screens."""

    async def give() -> Any:
        return value

    output = await result_of(give)
    assert (output.text, output.details, output.is_error) == (text, details, False)


async def test_a_tool_output_comes_back_as_it_is() -> None:
    """The very same object."""

    def give() -> ToolOutput:
        return READY

    assert await result_of(give) is READY


async def test_a_value_that_is_no_json_is_an_error_that_says_that_the_function_ran() -> None:
    """A model that thinks it did not run would run it again."""

    def connect() -> object:
        return threading.Lock()

    output = await result_of(connect)
    assert output.is_error
    assert output.text.startswith("connect ran, but returned <unlocked _thread.lock")
    assert output.text.endswith("return a str, JSON data, a dataclass or ToolOutput")
