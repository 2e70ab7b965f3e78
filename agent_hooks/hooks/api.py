"""The api of a hook: `register(api)` subscribes handlers and interceptors, and registers tools and tasks.

The api knows the runner only as a `Binding`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import chain, count
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, Never, Protocol, Unpack, cast, overload
from weakref import WeakSet, ref

from msgspec.structs import replace

from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.dispatch.handlers import Handler, Undo, is_async, name_of, refuses_two
from agent_hooks.dispatch.interceptors import Interceptor, adopting
from agent_hooks.errors import HookUsageError, did_you_mean, shown
from agent_hooks.hooks.checks import are_options, check_attachments, check_on, check_point, refuse_more
from agent_hooks.hooks.offering import offered_tool
from agent_hooks.hooks.options import InterceptOptions, Options, ToolOptions
from agent_hooks.values.content import Attachment
from agent_hooks.values.near import add_near_misses
from agent_hooks.values.spellings import spelled
from agent_hooks.values.tool import Tool

if TYPE_CHECKING:
    from agent_hooks.hooks.options import (
        AfterToolCallFn,
        AfterToolCallHandler,
        AgentEndFn,
        AgentEndHandler,
        AgentStartFn,
        AgentStartHandler,
        BeforeToolCallFn,
        BeforeToolCallHandler,
        Fn,
        InterceptFn,
        Offered,
        SessionFn,
        SessionHandler,
        ToolCallFn,
        ToolCallHandler,
        ToolResultFn,
        ToolResultHandler,
        TurnEndFn,
        TurnEndHandler,
        TurnStartFn,
        TurnStartHandler,
        Unload,
    )


FORMER = "the former version of "
"""The first words of a former version's label."""


class Binding(Protocol):
    """The methods of the runner that an api calls."""

    def subscriptions_changed(self) -> None:
        """Drop the plans that were made from the old handlers."""

    def start_task(self, hook: str, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `function` as a task of the hook."""

    def send(self, hook: str, text: str, attachments: Sequence[Attachment]) -> None:
        """Hand a message to the agent."""

    def intercept(self, hook: str, interceptor: Interceptor) -> Undo:
        """Register an interceptor of the hook."""
        ...


class HookAPI:
    """The argument of `register(api)`.

    All subscriptions, tools and tasks belong to the hook, and end when the hook is unloaded.
    """

    def __init__(self, path: str, label: str | None = None) -> None:
        self.path = path
        self.label = label or path
        self.handlers: dict[str, list[Handler]] = {}
        self.interceptors: list[Interceptor] = []
        self.tools: list[Tool] = []
        self.unload_callbacks: list[Callable[[], object]] = []
        # Whether the hook was loaded again: this api belongs to a former generation.
        self.ended = False
        self._state: dict[str, Any] = {}
        self.queued_tasks: list[Callable[[], Coroutine[Any, Any, object]]] = []
        # The runner that the hook was bound to last.
        self.binding: Binding | None = None
        self.bindings: WeakSet[Binding] = WeakSet()

    # ---- events

    @overload
    def on(self, event: Literal["session"], /, **options: Unpack[Options]) -> Callable[[SessionFn], SessionFn]: ...
    @overload
    def on(self, event: Literal["session"], handler: SessionHandler, /, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(
        self, event: Literal["agent_start"], /, **options: Unpack[Options]
    ) -> Callable[[AgentStartFn], AgentStartFn]: ...
    @overload
    def on(self, event: Literal["agent_start"], handler: AgentStartHandler, /, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(self, event: Literal["agent_end"], /, **options: Unpack[Options]) -> Callable[[AgentEndFn], AgentEndFn]: ...
    @overload
    def on(self, event: Literal["agent_end"], handler: AgentEndHandler, /, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(
        self, event: Literal["turn_start"], /, **options: Unpack[Options]
    ) -> Callable[[TurnStartFn], TurnStartFn]: ...
    @overload
    def on(self, event: Literal["turn_start"], handler: TurnStartHandler, /, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(self, event: Literal["turn_end"], /, **options: Unpack[Options]) -> Callable[[TurnEndFn], TurnEndFn]: ...
    @overload
    def on(self, event: Literal["turn_end"], handler: TurnEndHandler, /, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(
        self, event: Literal["before_tool_call"], /, **options: Unpack[ToolOptions]
    ) -> Callable[[BeforeToolCallFn], BeforeToolCallFn]: ...
    @overload
    def on(
        self, event: Literal["before_tool_call"], handler: BeforeToolCallHandler, /, **options: Unpack[ToolOptions]
    ) -> Undo: ...
    @overload
    def on(
        self, event: Literal["tool_call"], /, **options: Unpack[ToolOptions]
    ) -> Callable[[ToolCallFn], ToolCallFn]: ...
    @overload
    def on(self, event: Literal["tool_call"], handler: ToolCallHandler, /, **options: Unpack[ToolOptions]) -> Undo: ...
    @overload
    def on(
        self, event: Literal["tool_result"], /, **options: Unpack[ToolOptions]
    ) -> Callable[[ToolResultFn], ToolResultFn]: ...
    @overload
    def on(
        self, event: Literal["tool_result"], handler: ToolResultHandler, /, **options: Unpack[ToolOptions]
    ) -> Undo: ...
    @overload
    def on(
        self, event: Literal["after_tool_call"], /, **options: Unpack[ToolOptions]
    ) -> Callable[[AfterToolCallFn], AfterToolCallFn]: ...
    @overload
    def on(
        self, event: Literal["after_tool_call"], handler: AfterToolCallHandler, /, **options: Unpack[ToolOptions]
    ) -> Undo: ...

    def on(self, event: str, handler: Any = None, /, *wrong: Any, **options: Any) -> Any:
        """Subscribe a handler; call it with one, or use it as a decorator.

        `priority`: higher runs first, default 0.  `tool`: only events of these tools, as an exact name, a compiled
        regular expression that is searched in the name, or a list of both.  `on_error`: whether a failure of the handler
        means `"block"` or `"continue"`; each event has its default.  `inline`: run a quick plain `def` on the event loop,
        without a thread and without a deadline.

        A handler is `async def h(event, ctx)`, or a plain `def`, which runs in a thread.  Returns a function that undoes
        the subscription, or the handler itself when used as a decorator.  Raises `HookUsageError` for an unknown event,
        for an object that cannot be called with event and context, and for an option that cannot work.
        """
        self.refuse_when_ended("api.on")
        check_on(event, options)
        if wrong or (type(handler) is dict and are_options(handler)):
            more = wrong if callable(handler) else (handler, *wrong)
            refuse_more(f"api.on({event!r}, handler)", ToolOptions.__annotations__, more)
        if handler is not None:
            return self._subscribe(event, handler, options)

        def decorate(function: Fn) -> Fn:
            self._subscribe(event, function, options)
            return function

        return decorate

    def _subscribe(self, event: str, function: Any, options: dict[str, Any]) -> Undo:
        if not callable(function):
            form = f"; write api.on({event!r}, tool={function!r})" if isinstance(function, str | list) else ""
            raise HookUsageError(f"api.on({event!r}, …): {shown(function)} is not callable; give it a function{form}")
        if problem := refuses_two(function):
            raise HookUsageError(
                f"api.on({event!r}): {name_of(function)} cannot be called with (event, ctx): {problem}; "
                "a handler is `async def handler(event, ctx)`"
            )
        handler = Handler(function, hook=self.path, label=self.label, event=event, **options)
        handlers = self.handlers.setdefault(event, [])
        handlers.append(handler)
        self.changed()

        def undo() -> None:
            if handler in handlers:
                handlers.remove(handler)
                self.changed()

        return undo

    def changed(self) -> None:
        """Notify the runners of a change of the subscriptions."""
        # While a hook is loaded there is none, and to ask first saves 1 µs a subscription.
        if self.bindings:
            for binding in tuple(self.bindings):
                binding.subscriptions_changed()

    def bind(self, binding: Binding) -> None:
        """Connect the api to a runner.

        Each connected runner is notified of new subscriptions; only the last one gets tasks and messages.
        """
        self.binding = binding
        self.bindings.add(binding)

    # ---- interceptors

    @overload
    def intercept(self, point: str, /, **options: Unpack[InterceptOptions]) -> Callable[[Fn], Fn]: ...
    @overload
    def intercept(self, point: str, handler: InterceptFn, /, **options: Unpack[InterceptOptions]) -> Undo: ...

    def intercept(self, point: str, handler: Any = None, /, *wrong: Any, **options: Any) -> Any:
        """Register an interceptor at a point such as `"tool.before"`; call it with a handler, or use it as a decorator.

        The handler, `async def` or plain `def`, gets `(input, output)` and changes `output`; the table `POINTS` lists
        their fields.  A handler with a third parameter gets the context too: `(input, output, ctx)`.  `id`: unique, by
        default made of the file and the function's name; `priority`: higher runs first; `tool`, `agent`: regular
        expressions, searched in the tool's name or the agent's id.  Returns a function that undoes the registration, or
        the handler when used as a decorator.  Raises `HookUsageError` for arguments that cannot work.
        """
        check_point(point)
        if wrong:
            refuse_more(f"api.intercept({point!r}, handler)", InterceptOptions.__annotations__, wrong)
        if unknown := options.keys() - InterceptOptions.__annotations__.keys():
            option = min(unknown)
            near = did_you_mean(option, InterceptOptions.__annotations__)
            raise HookUsageError(f"api.intercept({point!r}): unknown option {option!r}{near}")
        if handler is not None:
            return self._intercept(point, handler, **options)

        def decorate(function: Fn) -> Fn:
            self._intercept(point, function, **options)
            return function

        return decorate

    def _intercept(
        self, point: str, handler: Any, id: str | None = None, priority: int = 0, tool: Any = None, agent: Any = None
    ) -> Undo:
        return self.adopt(Interceptor(id or self._new_id(handler), point, handler, priority, tool, agent))

    def adopt(self, interceptor: Interceptor) -> Undo:
        """Register an interceptor as one of this hook, and return a function that removes it again.

        Raises `HookUsageError` when the id is taken.
        """
        self.refuse_when_ended("api.intercept")
        if self.label.startswith(FORMER) and not interceptor.id.startswith(self.label):
            # The new version of the hook has the same id.
            interceptor = replace(interceptor, id=f"{self.label}:{interceptor.id}")
        if any(known.id == interceptor.id for known in self.interceptors):
            raise HookUsageError(f"there is an interceptor {interceptor.id!r} already; give this one another id")
        self.interceptors.append(interceptor)
        undos = [binding.intercept(self.path, interceptor) for binding in tuple(self.bindings)]

        def undo() -> None:
            if interceptor in self.interceptors:
                self.interceptors.remove(interceptor)
            for each in undos:
                each()

        return undo

    def _new_id(self, handler: object) -> str:
        """Return an id made of the file and the function's name, and the first free number if the name is taken."""
        base = f"{self.label}:{name_of(handler)}"
        taken = {each.id for each in self.interceptors}
        ids = chain([base], (f"{base}#{number}" for number in count(2)))
        return next(each for each in ids if each not in taken)

    # ---- the state

    @property
    def state(self) -> dict[str, Any]:
        """The values that the hook keeps when it is loaded again: a plain mapping, empty at first.

        A reload gives the next generation of the hook a deep copy, before its `session` start.  A value that cannot be
        copied is left out, and named.
        """
        self.refuse_when_ended("api.state")
        return self._state

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        self.refuse_when_ended("api.state")
        if not isinstance(values, Mapping):
            raise HookUsageError(f"api.state wants a mapping, not {shown(values)}")
        self._state = dict(values)

    # ---- the rest

    def send(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Send the agent a message, from any thread or task.

        While the agent works, the message waits for the next request to the model; otherwise it begins a new run.  Print
        mode takes no messages, and logs a warning.  Raises `HookUsageError` while the hook is loading and for wrong
        arguments, `SendError` if the message is too large, too many messages wait, or they come too fast.
        """
        self.refuse_when_ended("api.send")
        if not isinstance(text, str):
            raise HookUsageError(f"api.send(text) wants a str, not {type(text).__name__}")
        check_attachments(attachments := tuple(attachments))
        if not text.strip() and not attachments:
            raise HookUsageError("api.send(text): the text is empty, and there are no attachments")
        if self.binding is None:
            raise HookUsageError(
                "api.send(...) cannot be used while hooks are loading, because the agent cannot read it yet; "
                'call it from a handler, for example of "session" with reason "start"'
            )
        # The new version of the hook sends the same.
        if not self.label.startswith(FORMER):
            self.binding.send(self.path, text, attachments)

    def register_tool(self, tool: Offered, *wrong: Never) -> Offered:
        """Offer the agent a tool, and return what was given, so that it is a decorator too.

        `tool`: a typed function, `def` or `async def`, whose name, docstring and type hints describe it to the model; or
        an object with `name`, `description`, `input_schema` and `async execute(tool_call_id, input, *, on_update=None)`.
        Call it in `register`, or in a handler of `session` with the reason `start`, for tools that are known only then; a
        later one is not offered.  Raises `HookUsageError` for a function whose signature no model could fill in, and for
        an object that lacks one of these, has one of the wrong type, or whose `execute` cannot be called so.
        """
        self.refuse_when_ended("api.register_tool")
        if wrong:
            raise HookUsageError(
                "api.register_tool takes one tool: a typed function, whose name and docstring the model reads, or an "
                f"object; not {shown(wrong[0])} beside it"
            )
        self.tools.append(offered_tool(tool))
        try:
            # A process of its own tells the agent.
            self.changed()
        # A schema that cannot cross: it must not keep later registrations from the agent.
        except BaseException:
            self.tools.pop()
            raise
        return tool

    def start_task(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run an async function in the background, as a task that ends with the hook.

        Before the runner is entered, the task is queued; it starts when the runner is entered.  Raises `HookUsageError`
        for anything but an async function that has not been called yet.
        """
        self.refuse_when_ended("api.start_task")
        if not is_async(function):
            if isinstance(called := cast(object, function), CoroutineType):
                # Without this, Python warns later that it was never awaited, without the place.
                called.close()
            raise HookUsageError(f"api.start_task({shown(function)}) wants an async function, not called yet")
        if self.binding is None:
            self.queued_tasks.append(function)
        else:
            self.binding.start_task(self.path, function)

    def on_unload(self, function: Unload) -> Unload:
        """Call `function` (plain or async) when the hook is unloaded or the runner ends; also a decorator."""
        self.refuse_when_ended("api.on_unload")
        if not callable(function):
            raise HookUsageError(f"api.on_unload({shown(function)}) wants a function")
        self.unload_callbacks.append(function)
        return function

    # ---- for the loader and the runner

    def refuse_when_ended(self, call: str) -> None:
        """Raise `HookUsageError` when the hook was loaded again, so that old code cannot act for the new one."""
        if self.ended:
            raise HookUsageError(
                f"{call} is stale: {self.label} was loaded again, and this api belongs to a former generation of it; "
                "end threads in on_unload, and use the api that the latest register(api) got"
            )

    def adopting(self) -> Adopting:
        """Register interceptors that the code inside adds to the process-wide registry as this hook's own."""
        return Adopting(self)

    async def unload(
        self, report: Callable[[Callable[[], object], BaseException], object], *, deadline: float, seconds: float
    ) -> None:
        """Call the `on_unload` functions, the last one first, each once.

        `report` is called with each function that fails and with its exception.  `deadline`: the event loop's time by
        which all of them must end; `seconds`: the time that they got, for the error text.
        """
        if not self.unload_callbacks:
            return
        # Imported here, because few hooks have something to unload.
        import anyio

        callbacks, self.unload_callbacks[:] = self.unload_callbacks[::-1], []
        for callback in callbacks:
            failure: BaseException | None = None
            with anyio.CancelScope(deadline=deadline, shield=True) as scope:
                failure = (await attempt_async(callback, cancelled=lambda: scope.cancel_called)).exception
            if scope.cancelled_caught:
                failure = TimeoutError(
                    f"did not end within {seconds:g} s, the time for all on_unload functions of a hook"
                )
            if failure is not None:
                report(callback, failure)


add_near_misses(HookAPI, "api", spelled("api."))


class Adopting:
    """The block of `HookAPI.adopting`; a class, because a generator takes three times as long."""

    __slots__ = ("_api", "_before")

    def __init__(self, api: HookAPI) -> None:
        self._api = api

    def __enter__(self) -> None:
        self._before = adopting.get()
        adopting.set(ref(self._api))

    def __exit__(self, *_: object) -> None:
        adopting.set(self._before)
