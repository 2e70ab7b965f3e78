"""Interceptors with a third parameter get the context; the signature decides, when they are registered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest

from agent_hooks import HookAPI, HookContext, HookRunner, Interceptor
from agent_hooks.dispatch.handlers import takes_context
from agent_hooks.testing import ScriptedUI, call_tool
from support import hook_of


class Steps:
    """Handlers as methods, and an object that can be called."""

    def two(self, input: Any, output: Any) -> None: ...
    def three(self, input: Any, output: Any, ctx: Any) -> None: ...
    async def waiting(self, input: Any, output: Any, ctx: Any) -> None: ...

    @staticmethod
    def fixed(input: Any, output: Any, context: Any) -> None: ...

    @classmethod
    def of_class(cls, input: Any, output: Any, ctx: Any) -> None: ...

    def __call__(self, input: Any, output: Any, ctx: Any) -> None: ...


def two(input: Any, output: Any) -> None: ...
def three(input: Any, output: Any, anything: Any) -> None: ...
async def waiting(input: Any, output: Any, ctx: Any) -> None: ...
def four(first: Any, input: Any, output: Any, ctx: Any) -> None: ...
def with_default(input: Any, output: Any, limit: int = 3) -> None: ...
def with_ctx(input: Any, output: Any, ctx: Any = None) -> None: ...
def with_more(input: Any, output: Any, ctx: Any, limit: int = 3) -> None: ...
def rest(*args: Any) -> None: ...
def two_and_rest(input: Any, output: Any, *args: Any) -> None: ...
def three_and_rest(input: Any, output: Any, ctx: Any, *args: Any) -> None: ...
def keywords(input: Any, output: Any, **options: Any) -> None: ...
def by_keyword(input: Any, output: Any, *, ctx: Any = None) -> None: ...


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass all arguments on."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return call


def injecting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass a third argument of its own on."""

    @wraps(function)
    def call(input: Any, output: Any) -> Any:
        return function(input, output, "own")

    return call


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (two, False),
        (three, True),
        (waiting, True),
        (with_default, False),
        (with_ctx, True),
        (with_more, True),
        (rest, False),
        (two_and_rest, False),
        (three_and_rest, True),
        (keywords, False),
        (by_keyword, False),
        (lambda given, output, name="x": None, False),
        (Steps().two, False),
        (Steps().three, True),
        (Steps().waiting, True),
        (Steps.fixed, True),
        (Steps.of_class, True),
        (Steps(), True),
        (partial(four, "first"), True),
        (partial(three, anything="given"), False),
        (partial(with_ctx, ctx="given"), False),
        (partial(partial(four, "first"), ctx="given"), False),
        (decorated(three), False),
        (decorated(with_ctx), True),
        (decorated(waiting), True),
        (injecting(three), False),
        (injecting(with_ctx), False),
        (print, False),
    ],
)
def test_the_signature_of_an_interceptor_decides_whether_it_gets_the_context(
    function: Callable[..., Any], takes: bool
) -> None:
    """A third parameter that is needed or named `ctx` gets the context; a default of any other name stays."""
    assert takes_context(function) is takes


@pytest.mark.anyio
async def test_the_context_is_that_of_handlers() -> None:
    """It knows the tool and the directory, and asks the person."""
    seen: list[Any] = []

    def register(api: HookAPI) -> None:
        @api.intercept("tool.before")
        async def step(input: Any, output: Any, ctx: HookContext) -> None:
            seen.append((ctx.tool_name, ctx.cwd, ctx.has_ui))
            output.block = not await ctx.ui.confirm("Shall it run?")
            output.block_reason = "the person said no"

        @api.intercept("tool.after")
        def after(input: Any, output: Any, ctx: HookContext) -> None:
            seen.append(ctx.tool_name)

    ui = ScriptedUI(True, False)
    runner = HookRunner([hook_of(register)], cwd="/w", ui=ui)
    assert not (await call_tool(runner, "bash", {"command": "ls"})).is_error
    assert "the person said no" in (await call_tool(runner, "bash", {"command": "ls"})).text
    assert seen == [("bash", "/w", True), "bash", ("bash", "/w", True)]


@pytest.mark.anyio
async def test_a_dialog_without_await_is_a_failure_that_blocks() -> None:
    """An interceptor that forgets the `await` opens no gate."""

    def register(api: HookAPI) -> None:
        @api.intercept("tool.before")
        async def step(input: Any, output: Any, ctx: HookContext) -> None:
            ctx.ui.confirm("Shall it run?")

    runner = HookRunner([hook_of(register)], cwd="/w", ui=ScriptedUI(True))
    assert "was not awaited" in (await call_tool(runner, "bash", {"command": "ls"})).text


@pytest.mark.anyio
async def test_a_program_registers_such_an_interceptor_too() -> None:
    """`Interceptor(...)` in a registry follows the same rule."""
    runner = HookRunner([], cwd="/w")
    contexts: list[Any] = []
    runner.interceptors.add(Interceptor("a", "tool.before", lambda given, output, ctx: contexts.append(ctx.mode)))
    await call_tool(runner, "bash", {"command": "ls"})
    assert contexts == ["embedded"]
