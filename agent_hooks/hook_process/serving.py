"""The work of a hook's process: load the hook, call its handlers, interceptors and tools, and run its tasks."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import Any

import anyio

from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.concurrency.threads import ThreadCall
from agent_hooks.dispatch.context import forgotten_await
from agent_hooks.dispatch.handlers import Handler, Undo, is_async, takes_context
from agent_hooks.dispatch.inside import enter
from agent_hooks.dispatch.interceptors import Interceptor
from agent_hooks.dispatch.mistakes import failure_text
from agent_hooks.effects import CallEffects
from agent_hooks.errors import (
    HookError,
    HookUsageError,
    place_of,
    shown,
    traceback_text,
)
from agent_hooks.hook_process.context import CallPlace, RemoteContext
from agent_hooks.hook_process.ending import end
from agent_hooks.hook_process.link import Link
from agent_hooks.hook_process.registered import changed_fields, registrations
from agent_hooks.hooks.api import HookAPI
from agent_hooks.hooks.imports import files_of
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.hooks.registering import failed_load, load_module
from agent_hooks.isolation.exact import Packer, packed_state
from agent_hooks.isolation.protocol import (
    Begin,
    Call,
    Cancel,
    Deaf,
    Execute,
    Failed,
    Failure,
    Frames,
    Imported,
    Load,
    Loaded,
    Message,
    ProtocolError,
    Reach,
    Reported,
    Result,
    Send,
    Unload,
    Update,
    plain,
)
from agent_hooks.runner.background import Background, Task
from agent_hooks.values.content import Attachment, ToolOutput
from agent_hooks.values.events import SessionEvent
from agent_hooks.values.frozen import freeze
from agent_hooks.values.tool import Tool


async def serve(connection: socket.socket, frames: Frames, waiting: list[bytes]) -> None:
    """Work for the agent until it closes the socket."""
    link = Link(connection, frames, waiting)
    async with anyio.create_task_group() as tasks:
        hook = Inside(link)
        tasks.start_soon(hook.live)

        def take(message: Any) -> None:
            if (work := hook.work(message)) is not None:
                # Its cancellation may come with the same bytes, before the task has taken a step.
                tasks.start_soon(hook.run, message.id, work, hook.scope_of(message.id))

        await link.read(take)
        # Handlers that run have no agent any more.
        end()


class Inside:
    """The hook of this process."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._scopes: dict[int, anyio.CancelScope] = {}
        # The events of the calls that run, for the texts of their failures.
        self._events: dict[int, object] = {}
        self._begun = anyio.Event()
        self._unloading = anyio.Event()
        self._unloaded = anyio.Event()
        self._api = HookAPI("")
        self._background: Background | None = None
        self._numbers: dict[int, Handler] = {}
        self._first = 1

    def work(self, message: Any) -> Callable[[], Awaitable[Message]] | None:
        """Return the function that carries a message out and returns the answer; `None` for no answer."""
        match message:
            case Call():
                return partial(self._call, message)
            case Reach():
                return partial(self._reach, message)
            case Execute():
                return partial(self._execute, message)
            case Load():
                return partial(self._load, message)
            case Unload():
                return partial(self._unload, message)
            case Cancel():
                if (scope := self._scopes.get(message.id)) is not None:
                    scope.cancel()
            case Begin():
                self._api.state.update(message.state)
                self._begun.set()
        return None

    def scope_of(self, id: int) -> anyio.CancelScope:
        """Return the scope of a new call, which `Cancel` cancels."""
        scope = self._scopes[id] = anyio.CancelScope()
        return scope

    async def run(self, id: int, work: Callable[[], Awaitable[Message]], scope: anyio.CancelScope) -> None:
        """Do a call and answer it, also when the code of the hook raises."""
        with scope:
            answer: Message = Failed(id, Failure("was cancelled", "", None, None))
            try:
                answer, failure = await attempt_async(work, cancelled=lambda: scope.cancel_called)
            except KeyboardInterrupt as exc:
                # The hook raised it: the keys of the person do not reach this process.
                failure = exc
            if failure is not None:
                answer = Failed(id, _failure(failure, self._events.get(id), self._api.path))
        self._events.pop(id, None)
        del self._scopes[id]
        if not self._link.hears:
            # The agent kills this process, and each of its calls fails.
            self._link.send(Deaf("the hook has removed the readers of its event loop"))
            return
        try:
            self._link.send(answer)
        except ProtocolError as exc:
            # The answer is too large.
            self._link.send(Failed(id, Failure(f"answered too much: {exc}", "", None, None)))

    # ---- lifetime

    async def live(self) -> None:
        """Run the background tasks of the hook, from `Begin` to `Unload`."""
        await self._begun.wait()
        if self._background is not None:
            await self._background.start()
        await self._unloading.wait()
        if self._background is not None:
            await self._background.end()
        self._unloaded.set()

    async def _load(self, message: Load) -> Message:
        enter(message.path)
        api = self._api = HookAPI(message.path, message.label)
        loaded = await load_module(api, message.resolved, message.sources, _Kept(self._link, message.kept))
        if loaded.failure is not None:
            error = failed_load(loaded.failure, message.path, message.resolved)
            return Failed(message.id, failure_of(error.error, error.traceback, error.file, error.line))
        assert loaded.module is not None
        hook = LoadedHook(message.path, message.resolved, PurePath(message.path).stem, api, loaded.module)
        self._background = Background([hook], self._report)
        self._number()
        self._first = message.first
        await self._warm()
        api.bind(self)
        return Loaded(message.id, registrations(api, self._numbers), files_of(loaded.module))

    async def _warm(self) -> None:
        """Start a thread, for which the first call would have to wait."""
        if any(handler.threaded for handler in self._numbers.values()):
            await ThreadCall(lambda: None).result()

    async def _unload(self, message: Unload) -> Message:
        self._begun.set()
        self._unloading.set()
        await self._unloaded.wait()
        return Result(message.id, self._state())

    def _state(self) -> Any:
        """Return the packed values of `api.state`; one that cannot cross is reported and left out."""
        state, left_out = packed_state(self._api.state)
        for each in left_out:
            self._link.send(Reported("api.state", "session", failure_of(str(each), "", None, None)))
        return state

    def _report(self, error: HookError) -> None:
        failure = failure_of(error.error, error.traceback, error.file, error.line)
        self._link.send(Reported(error.handler, error.event, failure))

    # ---- calls

    async def _call(self, message: Call) -> Message:
        handler = self._numbers.get(message.handler)
        if handler is None:
            raise HookUsageError("subscribed in an earlier run of its process, which has ended; load the hook again")
        event = self._events[message.id] = message.event
        if isinstance(event, SessionEvent):
            event.with_keys(_no_key)
        scene = message.place.scene
        if scene is not None:
            find = CallEffects(scene.cwd, home=scene.home, root=scene.root, stays_open=scene.stays_open)
            event.with_effects(find)
        context = RemoteContext(CallPlace(self._link, message.id, message.place))
        try:
            outcome = await attempt_async(handler.call, event, context)
        finally:
            await ended(handler.abandoned)
        if outcome.exception is not None:
            raise outcome.exception
        if context.unawaited:
            raise HookUsageError(forgotten_await(context.unawaited[0]))
        return Result(message.id, Packer().pack(freeze(outcome.value), "the answer"))

    async def _reach(self, message: Reach) -> Message:
        interceptor = next((each for each in self._api.interceptors if each.id == message.interceptor), None)
        if interceptor is None:
            raise HookUsageError("was registered in an earlier run of its process, which has ended")
        output = interceptor.point.copy(message.output)
        function = interceptor.handler
        context = RemoteContext(CallPlace(self._link, message.id, message.place))
        given = (message.input, output, context) if takes_context(function) else (message.input, output)
        if is_async(function):
            outcome = await attempt_async(function, *given)
        else:
            call = ThreadCall(function, *given)
            try:
                outcome = await attempt_async(call.result)
            finally:
                await ended(call)
        if outcome.exception is not None:
            raise outcome.exception
        if context.unawaited:
            raise HookUsageError(forgotten_await(context.unawaited[0]))
        if outcome.value is not None:
            raise TypeError(f"interceptors change `output` and return nothing, not {shown(outcome.value)}")
        return Result(message.id, changed_fields(message.output, output))

    async def _execute(self, message: Execute) -> Message:
        tool = next((each for each in self._api.tools if each.name == message.tool), None)
        if tool is None:
            raise HookUsageError(f"the hook offers no tool {message.tool!r} any more")

        def update(output: ToolOutput) -> None:
            self._link.send(Update(message.id, Packer([]).pack(output, "the progress")))

        output = await self._output_of(tool, message, update)
        return Result(message.id, Packer([]).pack(output, "the result"))

    async def _output_of(self, tool: Tool, message: Execute, update: Callable[[ToolOutput], None]) -> ToolOutput:
        output: object = await tool.execute(
            message.tool_call_id, message.input, on_update=update if message.updates else None
        )
        if not isinstance(output, ToolOutput):
            raise TypeError(f"{tool.name}.execute returned {shown(output)}; it must return ToolOutput(content)")
        return output

    # ---- the binding of the api

    def subscriptions_changed(self) -> None:
        """Send the agent the registrations of the hook as they are now."""
        self._number()
        self._link.send(registrations(self._api, self._numbers))

    def start_task(self, hook: str, function: Task) -> None:
        """Run a background task."""
        assert self._background is not None
        self._background.add(hook, function)

    def send(self, hook: str, text: str, attachments: Sequence[Attachment]) -> None:
        """Hand a message to the agent, which may refuse it."""
        pack = Packer().pack
        text, files = pack(text, "the text"), pack(list(attachments), "the attachments")
        self._link.request_now(lambda number: Send(number, text, files))

    def intercept(self, hook: str, interceptor: Interceptor) -> Undo:
        """Tell the agent of a new interceptor; the function that is returned tells it that the interceptor is gone."""
        self.subscriptions_changed()
        return self.subscriptions_changed

    def _number(self) -> None:
        """Give each new handler a number."""
        known = {id(handler) for handler in self._numbers.values()}
        for handlers in self._api.handlers.values():
            for handler in handlers:
                if id(handler) not in known:
                    number = max([self._first - 1, *self._numbers]) + 1
                    self._numbers[number] = handler


class _Kept(dict[str, bytes]):
    """The bytes that the hook is loaded from; the agent hears of each file that is read from the disk."""

    def __init__(self, link: Link, kept: Mapping[str, bytes]) -> None:
        super().__init__(kept)
        self._link = link

    def __setitem__(self, path: str, data: bytes) -> None:
        super().__setitem__(path, data)
        # A forked copy has no connection, and a file that is too large for a message is read from the disk again.
        with suppress(OSError, ProtocolError):
            self._link.send(Imported(Packer().pack(path, "path"), data))


async def ended(call: ThreadCall | None) -> None:
    """Wait for the end of a thread whose call was cancelled; the agent kills this process if it takes too long."""
    if call is not None and call.running:
        with anyio.CancelScope(shield=True):
            await call.end()


def _no_key(provider: str) -> str | None:
    raise HookUsageError(
        "event.resolve_api_key(...) gives no key to a hook that runs in a process of its own: no key leaves the agent"
    )


def _failure(exc: BaseException, event: object, hook: str) -> Failure:
    file, line = place_of(exc)
    return failure_of(failure_text(exc, event, hook), traceback_text(exc), file, line)


def failure_of(text: str, traceback: str, file: str | None, line: int | None) -> Failure:
    """Return a failure in the form in which it crosses."""
    return Failure(plain(text), plain(traceback), None if file is None else plain(file), line)
