"""The api of `register(api)`: its uses, and the errors for wrong uses."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from agent_hooks import (
    Attachment,
    Block,
    HookAPI,
    HookRunner,
    HookUsageError,
    LoadedHook,
    ToolCall,
    ToolOutput,
    TurnStart,
    load_hooks,
    wrap_tool,
    wrap_tools,
)
from agent_hooks.dispatch.handlers import is_async, matches_tool
from agent_hooks.dispatch.stats import Stats
from agent_hooks.dispatch.table import EVENT_NAMES
from agent_hooks.testing import RecordedEvents
from support import PATIENCE

LoadHook = Callable[..., Awaitable[LoadedHook]]
TURN = TurnStart(turn_index=0, timestamp=0)


def call(name: str = "bash") -> ToolCall:
    """Return a call of a tool."""
    return ToolCall(tool_name=name, tool_call_id="1", input={})


def nothing(event: object, ctx: object) -> None:
    """Handle an event."""


async def nothing_async() -> None:
    """Run as a task."""


class Tool:
    """A tool that works."""

    name = "t"
    description = "d"
    input_schema: dict[str, Any] = {}  # noqa: RUF012  # as plain as an author writes it

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
        """Do nothing."""
        return ToolOutput("")


# ---- api.on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "near"),
    [("tool_cal", "tool_call"), ("ToolCall", "tool_call"), ("sesion", "session"), ("turn-end", "turn_end")],
)
def test_an_unknown_event_is_refused_with_the_nearest_name(event: str, near: str) -> None:
    """A call and a decorator both raise at once."""
    on: Any = HookAPI("h.py").on
    for arguments in ((event,), (event, nothing)):
        with pytest.raises(HookUsageError, match=f"unknown event {event!r}; did you mean {near!r}"):
            on(*arguments)


@pytest.mark.parametrize("event", ["zzz", "", 5, None, [3]])
def test_an_event_like_no_other_is_refused_with_all_names(event: Any) -> None:
    """The error for an unknown option lists the known ones."""
    on: Any = HookAPI("h.py").on
    with pytest.raises(HookUsageError, match=r"known are: after_tool_call, agent_end, .*turn_start"):
        on(event, nothing)


@pytest.mark.parametrize("handler", [5, "nothing", {"block": True}, False])
def test_a_handler_that_is_not_callable_is_refused_at_once(handler: Any) -> None:
    """A call and a decorator both raise."""
    api = HookAPI("h.py")
    on: Any = api.on
    with pytest.raises(HookUsageError, match="is not callable"):
        on("tool_call", handler)
    with pytest.raises(HookUsageError, match="is not callable"):
        on("tool_call")(handler)
    assert api.handlers == {}


class OneArgument:
    """A function that takes an event only is refused at once."""

    def __call__(self, event: object) -> None:
        """Take the event only."""


@pytest.mark.parametrize(
    "handler",
    [lambda: None, lambda event: None, lambda event, ctx, more: None, lambda event, ctx, *, more: None, OneArgument()],
)
def test_a_handler_that_cannot_take_event_and_context_is_refused_at_once(handler: Any) -> None:
    """`agent-hooks check` finds the mistake before the first call of a tool does."""
    api = HookAPI("h.py")
    on: Any = api.on
    with pytest.raises(HookUsageError, match=r"api.on\('tool_call'\): .* cannot be called with \(event, ctx\): "):
        on("tool_call", handler)
    assert api.handlers == {}


def one_more(function: Callable[..., object]) -> Callable[[object, object], object]:
    """Pass one more argument to a function, as many decorators do."""

    @wraps(function)
    def wrapper(event: object, ctx: object) -> object:
        return function(event, ctx, 1)

    return wrapper


@pytest.mark.parametrize(
    "handler",
    [
        lambda *args: None,
        lambda event, ctx, more=1: None,
        partial(lambda more, event, ctx: None, 1),
        one_more(lambda event, ctx, more: None),
        # Python knows no signature of `type`.
        type,
    ],
)
def test_a_handler_that_takes_more_than_event_and_context_by_itself_is_right(handler: Any) -> None:
    """Each callable that takes two arguments is a handler."""
    api = HookAPI("h.py")
    api.on("tool_call", handler)
    assert [each.function for each in api.handlers["tool_call"]] == [handler]


@pytest.mark.anyio
async def test_a_hook_that_subscribes_wrongly_fails_to_load_at_that_line(tmp_path: Any) -> None:
    """The mistake becomes an error entry with the line of `api.on`."""
    path = tmp_path / "h.py"
    path.write_text("def register(api):\n    api.on('tool_cal', print)\n")
    (error,) = (await load_hooks([path], cwd=tmp_path)).errors
    assert error.line == 2
    assert error.error.endswith("did you mean 'tool_call'?")


@pytest.mark.parametrize(
    ("event", "options", "told"),
    [
        ("tool_call", {"tools": "bash"}, r"unknown option 'tools'; did you mean 'tool'"),
        ("tool_call", {"priority": "high"}, "priority wants an int, not 'high'"),
        ("tool_call", {"priority": True}, "priority wants an int, not True"),
        ("tool_call", {"priority": 1.5}, "priority wants an int"),
        ("tool_call", {"on_error": "ignore"}, "on_error is"),
        ("turn_end", {"on_error": "block"}, "nothing can be blocked on turn_end"),
        ("tool_result", {"on_error": "block"}, "nothing can be blocked on tool_result"),
        ("turn_end", {"tool": "bash"}, "only tool events take tool="),
        ("session", {"tool": "bash"}, "only tool events take tool="),
        ("tool_call", {"tool": ""}, "tool= wants"),
        ("tool_call", {"tool": []}, "tool= wants"),
        ("tool_call", {"tool": ["bash", ""]}, "tool= wants"),
        ("tool_call", {"tool": ["bash", 5]}, "tool= wants"),
        ("tool_call", {"tool": {"bash"}}, "tool= wants"),
        ("tool_call", {"tool": b"bash"}, "tool= wants"),
        ("tool_call", {"tool": re.compile(b"bash")}, "tool= wants"),
        ("tool_call", {"tool": 5}, "tool= wants"),
    ],
)
def test_an_option_that_cannot_work_is_refused(event: str, options: dict[str, Any], told: str) -> None:
    """The error comes at once, with the expected and the found value."""
    api = HookAPI("h.py")
    on: Any = api.on
    with pytest.raises(HookUsageError, match=told):
        on(event, nothing, **options)
    assert api.handlers == {}


@pytest.mark.parametrize("event", EVENT_NAMES)
def test_every_event_can_be_subscribed_in_both_forms(event: str) -> None:
    """The decorator returns the function, the call returns an undo function."""
    api = HookAPI("h.py")
    on: Any = api.on
    assert on(event)(nothing) is nothing
    undo = on(event, nothing, priority=3, on_error=None, inline=True)
    assert [handler.name for handler in api.handlers[event]] == ["nothing", "nothing"]
    assert [handler.priority for handler in api.handlers[event]] == [0, 3]
    undo()
    undo()
    assert [handler.priority for handler in api.handlers[event]] == [0]


@pytest.mark.anyio
async def test_undoing_and_subscribing_count_from_the_next_event_on(load_hook: LoadHook, tmp_path: Any) -> None:
    """A runner that has planned its dispatch drops the plan each time."""
    hook = await load_hook("""
        def register(api):
            global undo, again
            block = lambda event, ctx: {"block": True}
            undo = api.on("tool_call", block, inline=True)
            again = lambda: api.on("tool_call", block, inline=True)
    """)
    runner = HookRunner([hook], cwd=tmp_path)
    module: Any = hook.module
    assert isinstance(await runner.emit(call()), Block)
    module.undo()
    assert await runner.emit(call()) is None
    module.again()
    assert isinstance(await runner.emit(call()), Block)


@pytest.mark.parametrize(
    ("matcher", "matched"),
    [
        ("bash", ["bash"]),
        (re.compile("^(ba|z)sh$"), ["bash", "zsh"]),
        (re.compile("sh"), ["bash", "zsh", "bashful"]),
        (["read", re.compile("^z")], ["read", "zsh"]),
        (("read",), ["read"]),
    ],
)
def test_a_matcher_is_a_name_a_pattern_or_a_list_of_both(matcher: Any, matched: list[str]) -> None:
    """Names are exact, patterns are searched."""
    tools = ["bash", "read", "zsh", "bashful"]
    assert sorted(name for name in tools if matches_tool(matcher, name)) == sorted(matched)
    api = HookAPI("h.py")
    api.on("tool_call", nothing, tool=matcher)
    (handler,) = api.handlers["tool_call"]
    assert [name for name in tools if handler.handles(name)] == [name for name in tools if name in matched]
    assert handler.handles(None)


def test_functions_known_to_be_async_are_seen_through_their_wrappings() -> None:
    """Partials, bound methods and objects with `async __call__` do not go to a thread."""

    class Callable_:
        async def __call__(self) -> None: ...

        async def method(self) -> None: ...

        def plain(self) -> None: ...

    assert all(map(is_async, (nothing_async, partial(partial(nothing_async)), Callable_(), Callable_().method)))
    assert not any(map(is_async, (nothing, partial(nothing), Callable_().plain, 5, None)))


# ---- send, tasks, tools, unloading -----------------------------------------------------------------------------------


def test_sending_before_a_runner_is_there_is_refused() -> None:
    """The error names the places from which `api.send` can be called."""
    with pytest.raises(HookUsageError, match=r"while hooks are loading.*from a handler"):
        HookAPI("h.py").send("hi")


@pytest.mark.anyio
async def test_sending_reaches_the_program_with_its_source(load_hook: LoadHook, tmp_path: Any) -> None:
    """The runner gets the text, the attachments as a tuple, and the path of the hook."""
    hook = await load_hook("def register(api): pass")
    runner = HookRunner([hook], cwd=tmp_path)
    sent: list[Any] = []
    runner.set_send_handler(lambda *message: sent.append(message))
    image = Attachment(kind="image", file_name="f", mime_type="image/png", content="")
    hook.api.send("hi")
    hook.api.send("look", [image])
    assert sent == [("hi", (), hook.path), ("look", (image,), hook.path)]
    wrong: Any = 5
    with pytest.raises(HookUsageError, match="wants a str, not int"):
        hook.api.send(wrong)
    with pytest.raises(HookUsageError, match=r"wants Attachment\(...\) values, not 'a.png'"):
        hook.api.send("look", ["a.png"])  # type: ignore[list-item]
    broken = Attachment(kind="image", file_name="f.png", mime_type="image/png", content="no base64!")
    with pytest.raises(HookUsageError, match=r"the content of f\.png is no base64"):
        hook.api.send("look", [broken])
    with pytest.raises(HookUsageError, match="the text is empty"):
        hook.api.send(" \n")
    hook.api.send("", iter([image]))  # type: ignore[arg-type]
    assert sent[2:] == [("", (image,), hook.path)]


@pytest.mark.parametrize("missing", ["name", "description", "input_schema", "execute"])
def test_a_tool_that_lacks_something_is_refused(missing: str) -> None:
    """The error names the missing attribute."""
    tool: Any = SimpleNamespace(name="t", description="d", input_schema={}, execute=Tool().execute)
    delattr(tool, missing)
    with pytest.raises(HookUsageError, match=f"a tool needs {missing!r}"):
        HookAPI("h.py").register_tool(tool)


def test_a_tool_is_an_object_with_an_async_execute() -> None:
    """A class and a plain `execute` are refused; an object with an async one is kept."""
    api = HookAPI("h.py")
    register: Any = api.register_tool
    with pytest.raises(HookUsageError, match=r"not a class; write Tool\(\)"):
        register(Tool)
    with pytest.raises(HookUsageError, match=r"t\.execute must be an `async def`"):
        register(SimpleNamespace(name="t", description="d", input_schema={}, execute=nothing))
    tool = Tool()
    register(tool)
    assert api.tools == [tool]


@pytest.mark.parametrize(
    ("execute", "problem"),
    [
        ("async def execute(self, input): ...", "too many positional arguments"),
        ("async def execute(self, tool_call_id, input): ...", "unexpected keyword argument 'on_update'"),
        ("async def execute(self, tool_call_id, input, signal, *, on_update=None): ...", "missing a required argument"),
        ("async def execute(tool_call_id, input, *, on_update=None): ...", "too many positional arguments"),
    ],
)
def test_an_execute_that_cannot_be_called_as_it_will_be_is_refused(execute: str, problem: str) -> None:
    """The error comes where the tool is given, with the reason and the right form; a program's tool is refused too."""
    scope: dict[str, Any] = {}
    exec(f"class T:\n    name, description, input_schema = 't', '', {{}}\n    {execute}", scope)
    form = r"write `async def execute\(self, tool_call_id, input, \*, on_update=None\)`"
    for offer in (HookAPI("h.py").register_tool, lambda tool: wrap_tool(tool, HookRunner([]))):
        with pytest.raises(HookUsageError, match=rf"t\.execute cannot be called with .*{problem}.*; {form}"):
            offer(scope["T"]())


@pytest.mark.parametrize("taken", ["*args, **kwargs", "tool_call_id, input, on_update=None", "a, b, /, **more"])
def test_any_execute_that_takes_the_call_is_kept(taken: str) -> None:
    """The names of its parameters are free."""
    scope: dict[str, Any] = {}
    exec(
        f"class T:\n    name, description, input_schema = 't', '', {{}}\n    async def execute(self, {taken}): ...",
        scope,
    )
    api = HookAPI("h.py")
    assert api.register_tool(tool := scope["T"]()) is tool
    assert api.tools == [tool]


@pytest.mark.anyio
async def test_a_typed_function_is_a_tool_of_a_hook(load_hook: LoadHook, tmp_path: Any) -> None:
    """Its schema comes from the signature, as for `wrap_tools`; it is called with typed values, and is a decorator."""
    hook = await load_hook("""
        import enum
        from dataclasses import dataclass

        class Place(enum.Enum):
            PROD = "prod"

        @dataclass
        class Tag:
            name: str

        def register(api):
            @api.register_tool
            def deploy(place: Place, tags: list[Tag], dry: bool = True) -> str:
                \"\"\"Deploy the project.\"\"\"
                return f"{place.name} {tags[0].name} {dry}"

            async def status() -> str:
                return "up"

            api.register_tool(status)
            assert deploy.__name__ == "deploy"
    """)
    runner = HookRunner([hook], cwd=tmp_path)
    deploy, status = wrap_tools(hook.tools, runner)
    assert (deploy.name, deploy.description) == ("deploy", "Deploy the project.")
    assert deploy.input_schema["required"] == ["place", "tags"]
    output = await deploy.execute("1", {"place": "prod", "tags": [{"name": "v1"}]})
    assert output.text == "PROD v1 True"
    assert (await status.execute("2", {})).text == "up"
    assert "argument 'place'" in (await deploy.execute("3", {"place": "x", "tags": []})).text


def test_a_matcher_in_the_place_of_the_handler_is_told_of_its_option() -> None:
    """Elsewhere the matcher is the second argument; and points have the names of other agents' events."""
    api: Any = HookAPI("h.py")
    with pytest.raises(HookUsageError, match=r"write api\.on\('tool_call', tool='bash'\)"):
        api.on("tool_call", "bash")
    with pytest.raises(HookUsageError, match=r'there is no point \'PreToolUse\'; write api\.on\("tool_call"\)'):
        api.intercept("PreToolUse", print)


def test_a_tool_that_is_a_mapping_or_another_callable_is_told_of_the_typed_function() -> None:
    """Other agents take a mapping."""
    register: Any = HookAPI("h.py").register_tool
    for wrong in ({"name": "t", "execute": nothing}, partial(nothing)):
        with pytest.raises(
            HookUsageError, match=r"a tool needs 'name'; or write a typed function, `def name\(argument"
        ):
            register(wrong)


def test_a_function_that_no_model_can_fill_in_is_no_tool() -> None:
    """A parameter without a type is named, at once."""

    def f(x):  # type: ignore[no-untyped-def]  # the mistake
        return x

    with pytest.raises(
        HookUsageError, match="f cannot be a tool: parameter 'x' has no type; annotate it, such as `x: str`"
    ):
        HookAPI("h.py").register_tool(f)


def test_a_task_is_an_async_function_that_was_not_called_yet() -> None:
    """A plain function, a coroutine and a value are refused without a warning of a coroutine never awaited."""
    api = HookAPI("h.py")
    start: Any = api.start_task
    for wrong in (nothing, 5, nothing_async()):
        with pytest.raises(HookUsageError, match="wants an async function, not called yet"):
            start(wrong)
    api.start_task(nothing_async)
    assert api.queued_tasks == [nothing_async]


@pytest.mark.anyio
async def test_tasks_start_with_the_runner_and_end_with_it(load_hook: LoadHook, tmp_path: Any) -> None:
    """A task is queued while the hook loads, starts at once later, and is cancelled before `on_unload` is called."""
    hook = await load_hook("""
        import anyio
        log = []

        async def task(name):
            log.append(name)
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                log.append("end of " + name)

        async def queued(): await task("queued")
        async def late(): await task("late")

        def register(api):
            global started
            started = anyio.Event()
            api.start_task(queued)

            @api.on_unload
            async def unload():
                log.append("unloaded")
    """)
    module: Any = hook.module
    with anyio.fail_after(PATIENCE):
        async with HookRunner([hook], cwd=tmp_path):
            await module.started.wait()
            module.started = anyio.Event()
            hook.api.start_task(module.late)
            await module.started.wait()
    assert module.log[:2] == ["queued", "late"]
    assert sorted(module.log[2:4]) == ["end of late", "end of queued"]
    assert module.log[4:] == ["unloaded"]


def test_on_unload_wants_a_function() -> None:
    """As a decorator `on_unload` returns the function."""
    api = HookAPI("h.py")
    wrong: Any = 5
    with pytest.raises(HookUsageError, match="wants a function"):
        api.on_unload(wrong)
    assert api.on_unload(nothing_async) is nothing_async
    assert api.unload_callbacks == [nothing_async]


# ---- statistics ------------------------------------------------------------------------------------------------------


def test_statistics_keep_the_last_durations_and_the_longest_ever() -> None:
    """The median is of the last 64 durations, the maximum of all."""
    stats = Stats()
    assert (stats.p50, stats.max) == (None, None)
    stats.add(9.0)
    for _ in range(64):
        stats.add(2.0)
    stats.add(1.0)
    assert (stats.p50, stats.max) == (2.0, 9.0)


@pytest.mark.anyio
async def test_counts_and_failures_are_exact(load_hook: LoadHook, tmp_path: Any) -> None:
    """Each call is counted, also one whose duration is not taken."""
    hook = await load_hook("""
        def fails(event, ctx): raise ValueError("no")
        def register(api):
            api.on("turn_start", fails, inline=True)
    """)
    runner = HookRunner([hook], cwd=tmp_path)
    recorded = RecordedEvents(runner)
    for _ in range(20):
        await runner.emit(TURN)
    (row,) = runner.stats()
    assert (row.hook, row.event, row.handler, row.count, row.failures) == (hook.path, "turn_start", "fails", 20, 20)
    assert len(recorded.errors) == 20


def test_an_interceptor_without_an_id_gets_one_that_is_free() -> None:
    """After an undo, the next interceptor of that function may be registered, under the free number."""
    api = HookAPI("/hook.py", "hook.py")

    def add(input: Any, output: Any) -> None:
        return None

    first = api.intercept("tool.before", add)
    api.intercept("tool.before", add)
    first()
    api.intercept("tool.before", add)
    api.intercept("tool.before", add)
    assert [each.id.rpartition(":")[2] for each in api.interceptors] == ["add#2", "add", "add#3"]
