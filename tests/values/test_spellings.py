"""Each spelling of another agent gets an error that names ours, and our own names stay as fast as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

import agent_hooks
from agent_hooks import (
    BashToolDetails,
    ExecResult,
    HookAPI,
    HookContext,
    HookRunner,
    HookUI,
    HookUsageError,
    ToolCall,
    ToolOutput,
)
from agent_hooks.dispatch.points import POINTS
from agent_hooks.dispatch.reading import read_answer
from agent_hooks.dispatch.table import SPECS
from agent_hooks.testing import call_tool
from agent_hooks.values.content import Value
from agent_hooks.values.events import EVENTS
from agent_hooks.values.near import NearMiss, camel_case
from agent_hooks.values.spellings import SPELLINGS, parted
from support import hook_on, runner_of

CALL = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
OPTIONS: Any = HookAPI("h.py").on
# Type checkers reject these uses.
DETAILS: Any = BashToolDetails()
ANY_CALL: Any = CALL
DONE: Any = ExecResult("", "", 0)
OUTPUT: Any = ToolOutput("x")
KINDS: dict[str, tuple[type, ...]] = {
    "event.": EVENTS,
    "ctx.": (HookContext,),
    "ctx.ui.": (HookUI,),
    "api.": (HookAPI,),
    "result.": (ExecResult,),
    "input.": tuple(point.input for point in POINTS.values()),
    "output.": tuple(point.output for point in POINTS.values()),
}
"""The classes of each place where a name may be met."""


def texts_at(place: str, name: str) -> list[str]:
    """Return the errors for a spelling, in each way in which a hook can come upon it."""
    answers = [
        row for row in SPECS if row in ("tool_call", "tool_result", "before_tool_call", "session:before_compact")
    ]
    at_place: dict[str, list[Callable[[], object]]] = {
        'api.on("': [lambda: OPTIONS(name, print)],
        "api.on(…, ": [lambda: OPTIONS("tool_call", **{name: "x"})],
        'return {"': [partial(read_answer, row, SPECS[row], {name: "x"}) for row in answers],
        "from agent_hooks import ": [lambda: exec(f"from agent_hooks import {name}")],
    }
    kinds = [kind for kind in KINDS.get(place, ()) if not hasattr(kind, name)]
    tries = at_place.get(place) or [partial(getattr, kind, name) for kind in kinds]
    texts = []
    for attempt in tries:
        with pytest.raises((AttributeError, TypeError, ImportError)) as caught:
            attempt()
        texts.append(str(caught.value))
    return texts


@pytest.mark.parametrize(("theirs", "ours"), [(theirs, ours) for _, theirs, ours in SPELLINGS])
def test_each_spelling_of_another_agent_is_answered_with_ours(theirs: str, ours: str) -> None:
    """Whichever event, point or answer the name is met at."""
    texts = texts_at(*parted(theirs))
    assert texts
    assert [text for text in texts if f"write {ours}" not in text] == []


def test_no_spelling_stands_twice() -> None:
    """The table is also a page."""
    assert len({theirs for _, theirs, _ in SPELLINGS}) == len(SPELLINGS)


@pytest.mark.parametrize("kind", [*EVENTS, *Value.__subclasses__(), HookContext, HookAPI, HookRunner, HookUI], ids=repr)
def test_each_name_of_ours_in_camel_case_is_answered_with_ours(kind: type) -> None:
    """Fields, properties and methods alike; a class asks for no row in a table."""
    if kind.__module__ == "agent_hooks.values.content" or kind in EVENTS or not issubclass(kind, Value):
        for name in [name for name in vars(kind) if "_" in name.strip("_") and not name.startswith("_")]:
            with pytest.raises(AttributeError, match=rf"write [\w.]*\b{name}"):
                getattr(kind, camel_case(name))


def test_each_exported_name_in_camel_case_is_answered_with_ours() -> None:
    """Other names raise the error of any module, so that `hasattr` works."""
    for name in agent_hooks.__all__:
        if "_" in name.strip("_"):
            with pytest.raises(ImportError, match=f"write {name}$"):
                exec(f"from agent_hooks import {camel_case(name)}")
    assert not hasattr(agent_hooks, "nothing_like_it")
    with pytest.raises(ImportError, match="cannot import name 'nothing_like_it'"):
        exec("from agent_hooks import nothing_like_it")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: {**DETAILS}, "BashToolDetails is a value, not a mapping: its fields are .truncation, "),
        (lambda: dict(DETAILS), "to change one in a copy, write msgspec.structs.replace(value, field=…)"),
        (lambda: DETAILS["truncation"], "write .truncation in place of ['truncation']"),
        (lambda: DETAILS["fullOutputPath"], "write event.details.full_output_path"),
        (lambda: ANY_CALL["tool_name"], "write .tool_name in place of ['tool_name']"),
        (lambda: ANY_CALL["tool_input"], "write event.input"),
        (lambda: ANY_CALL["nothing"], "its fields are .tool_name, "),
        (lambda: DONE["stdout"], "write .stdout in place of ['stdout']"),
        (lambda: OUTPUT["is_error"], "write .is_error in place of ['is_error']"),
        (lambda: ANY_CALL.input.command, 'write input["command"]'),
    ],
)
def test_a_value_is_no_mapping_and_a_mapping_is_no_value(wrong: Any, says: str) -> None:
    """The error names the other form; a hook may still ask for either."""
    with pytest.raises((TypeError, AttributeError)) as caught:
        wrong()
    assert says in str(caught.value)


def test_near_misses_leave_our_names_as_they_are() -> None:
    """No class gets a `__getattr__`, completion shows our names only, and values are copied and written as before."""
    for kind in (*EVENTS, *Value.__subclasses__(), HookContext, HookAPI, HookRunner, HookUI, ExecResult):
        assert not hasattr(kind, "__getattr__"), kind
    assert not [name for name in dir(CALL) if isinstance(vars(type(CALL).__mro__[1]).get(name), NearMiss)]
    assert "toolName" not in dir(CALL)
    assert not hasattr(CALL, "toolName")
    assert msgspec.to_builtins(CALL)["toolName"] == "bash"
    assert msgspec.convert(msgspec.to_builtins(CALL), ToolCall) == CALL


async def test_a_timeout_counts_in_seconds(tmp_path: Any) -> None:
    """Thousands are milliseconds of another agent; options are no mapping as a third argument."""
    said: list[str] = []

    async def wrong(event: ToolCall, ctx: HookContext) -> None:
        run: Any = ctx.exec
        for args, options in (([[]], {"timeout": 5000}), ([[], {"timeout": 5000}], {}), (["x"], {})):
            with pytest.raises(HookUsageError) as caught:
                run("true", *args, **options)
            said.append(str(caught.value))
        said.append(str((await ctx.exec("true", timeout=5000.0)).code))

    runner, errors = runner_of(hook_on("tool_call", wrong))
    await call_tool(runner, "bash", {"command": "ls"})
    assert errors == []
    seconds, by_name, listed, code = said
    assert seconds == "ctx.exec(timeout=…): 5000 seconds are 83 min; for 5 s write 5, and for 5000 s 5000.0"
    assert by_name.endswith("the timeout in seconds: write timeout=…, cwd=… in place of {'timeout': 5000}")
    assert listed == "ctx.exec(command, args) wants a list of arguments: ctx.exec('true', ['x'])"
    assert code == "0"
    with pytest.raises(ValueError, match=r"for 30 s write 30, and for 30000 s 30000\.0"):
        HookRunner([], timeout=30000)
