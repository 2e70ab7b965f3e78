"""The process of one hook, as the agent uses it: started, asked, cancelled, restarted and ended.

How a call travels.

 1. A stand-in in the agent awaits `HookProcess.ask`.  The call gets a number, and goes out as one message.
 2. The process works on all of its calls at once.  Its messages carry the number of their call, and wake the stand-in.
 3. Dialogs and programs that the handler asks for run in the agent, inside of the stand-in: so the clock of the handler
    stands during a dialog, and a cancelled handler takes its dialog with it.
 4. A call that is cancelled, by its deadline for example, sends `Cancel` and waits for the end of the handler.  After
    `STOP_GRACE` seconds the whole process group is killed.
 5. A call that has to wait for the start of the process waits `START_PATIENCE` seconds.  Its clock stands meanwhile.
 6. When the process ends, each call that it worked on fails, and the policy of each applies.  The process
    starts again, unless it has ended too often within a minute.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import Any

import anyio

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.concurrency.reading import read_with
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.errors import HookUsageError, describe, os_reason
from agent_hooks.isolation.conversation import NOT_STOPPED, Services, converse, stop
from agent_hooks.isolation.exact import packed_state
from agent_hooks.isolation.failures import HookProcessError, OtherHandlersError, RemoteError, ending
from agent_hooks.isolation.incoming import Incoming, Serving
from agent_hooks.isolation.launch import Launch, launch
from agent_hooks.isolation.loading import Source, load_into
from agent_hooks.isolation.output import Output
from agent_hooks.isolation.protocol import (
    Ask,
    Begin,
    Failed,
    Loaded,
    Message,
    ProtocolError,
    Registrations,
    Result,
)
from agent_hooks.isolation.running import Pending, Running, is_last

# Seconds that a call waits for the start of the process, while the clock of its handler stands.
START_PATIENCE = 10.0
# Restarts within a minute; after one more crash, the hook is not started again.
MOST_RESTARTS = 5
MINUTE = 60.0
OTHER_HANDLERS = (
    "registered other handlers after its restart than before, so its stand-ins could call the wrong ones; load it again"
)


class HookProcess:
    """The process of one hook, over all of its runs.

    `registered` is called with the registrations of the hook, at once when it is loaded and again when they change.
    """

    def __init__(self, how: Launch, source: Source, registered: Callable[[Registrations], object]) -> None:
        self.how = how
        self.source = source
        # The files that the hook was loaded from.
        self.files: tuple[str, ...] = ()
        # The number of runs so far.
        self.run = 0
        # The smallest number of a handler that subscribes after the hook was loaded.
        self.first = 1
        self._registered = registered
        self._incoming = Incoming(registered)
        # The seed of the hashes in each run: 1 to 2**32 - 1, because 0 turns the random hashes off.
        self._seed = int.from_bytes(os.urandom(4)) or 1
        # The registrations of the first run, which those of each later run have to equal.
        self._first_run: Registrations | None = None
        self._running: Running | None = None
        self._starting: anyio.Event | None = None
        # Why the last start failed, if it did.
        self._problem: BaseException | None = None
        # Why the process cannot be served, if it cannot.
        self.unserved: BaseException | None = None
        self._crashes: deque[float] = deque(maxlen=MOST_RESTARTS + 1)
        self._numbers = 0
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        """The process's id, `None` while none runs."""
        running = self._running
        return None if running is None or not running.alive else running.started.pid

    @property
    def sources(self) -> dict[str, bytes]:
        """The bytes that the hook was loaded from, by path."""
        files = self._incoming.kept if self.source.sources is None else self.source.sources
        return {path: files[path] for path in self.files if path in files}

    @property
    def _serving(self) -> Serving | None:
        """The functions of the agent, while the process is served."""
        return self._incoming.serving

    # ---- lifetime

    async def load(self) -> None:
        """Start the process and load the hook; raises the exception with which the loading failed."""
        loaded = False
        try:
            async with anyio.create_task_group() as tasks:
                self._incoming.tasks = tasks
                await self._start()
                loaded = self._problem is None
                tasks.cancel_scope.cancel()
        finally:
            self._incoming.tasks = None
            if not loaded:
                await self._end()
        if self._problem is not None:
            raise self._problem

    async def serve(self, serving: Serving, started: Callable[[], object]) -> None:
        """Start the background tasks of the hook and take its messages, until cancelled; then end the process.

        `started`: called when calls can be sent.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._incoming.tasks, self._incoming.serving = tasks, serving
                running = self._running
                if running is not None and running.alive:
                    tasks.start_soon(self._read, running)
                    self._let_begin(running)
                else:
                    self._restart()
                started()
                await anyio.sleep_forever()
        finally:
            self._incoming.tasks = self._incoming.serving = None
            await self._end()

    def abandon(self) -> None:
        """Kill the process, if it runs: its hook is not needed any more."""
        running, self._running = self._running, None
        if running is not None:
            running.expected, running.alive = True, False
            running.started.end()

    async def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            # No answer is read any more.
            _fail(running, "the agent has ended it")
            with anyio.CancelScope(shield=True):
                await running.close()

    def _restart(self) -> anyio.Event:
        """Start the process and load the hook; return the event of its end."""
        assert self._incoming.tasks is not None, "the process is started while it is served"
        if self._starting is None:
            self._starting = anyio.Event()
            self._incoming.tasks.start_soon(self._start_again, self._starting)
        return self._starting

    async def _start_again(self, started: anyio.Event) -> None:
        try:
            again = True
            while again:
                await self._start()
                if self._problem is not None and self._serving is not None:
                    self._serving.report("its process", "restart", self._problem)
                again = isinstance(self._problem, HookProcessError) and not self._is_given_up()
        finally:
            self._starting = None
            started.set()

    async def _start(self) -> None:
        """Start the process and load the hook; a failure stays in `_problem`."""
        assert self._incoming.tasks is not None, "the process is started while it is served"
        self._problem = None
        try:
            running = Running(launch(self.how, self._seed), Output(self.source.label))
        except OSError as exc:
            self._problem = HookProcessError(f"its process cannot be started: {self.how.interpreter}: {os_reason(exc)}")
            self._crashes.append(monotonic())
            return
        if self._running is not None:
            self._running.replaced = True
        self._running = running
        self.run += 1
        self._incoming.tasks.start_soon(self._read, running)
        try:
            loaded = await load_into(running, self._begin(running), self.source, self.first, self._incoming.kept)
            self._problem = self._take_loaded(running, loaded)
        finally:
            if self._problem is not None:
                self._crashes.append(monotonic())
                running.expected = True
                running.kill("")

    def _take_loaded(self, running: Running, message: Loaded | BaseException) -> BaseException | None:
        """Take the answer to `Load`; return the reason why the hook is not loaded, if it is not."""
        if isinstance(message, BaseException):
            return message
        if self._first_run is not None and message.registrations != self._first_run:
            # A stand-in knows its handler by its place in this list only.
            return OtherHandlersError(OTHER_HANDLERS)
        self.files = tuple(message.files)
        # The registrations are the hook's: an id of an interceptor may be taken, for example.
        failure = attempt(self._registered, message.registrations).exception
        running.loaded = failure is None
        if failure is None:
            self._first_run = message.registrations
            if self._serving is not None:
                self._let_begin(running)
        return failure

    def _let_begin(self, running: Running) -> None:
        """Hand the state of a former generation over, and let the background tasks begin."""
        assert self._serving is not None, "tasks begin in a process that is served"
        state, left_out = packed_state(self._serving.state())
        for each in left_out:
            self._serving.report("api.state", "session", each)
        running.send(Begin(state))

    # ---- messages

    def _begin(self, running: Running) -> Pending:
        self._numbers += 1
        pending = running.calls[self._numbers] = Pending(self._numbers)
        return pending

    async def _read(self, running: Running) -> None:
        """Take the messages of a process until it ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.write)
            tasks.start_soon(running.read_output)
            try:
                await read_with(running.started.socket, partial(self._incoming.take_all, running))
            except ProtocolError as exc:
                running.kill(str(exc))
            tasks.cancel_scope.cancel()
        await self._has_ended(running)

    async def _has_ended(self, running: Running) -> None:
        """Fail the calls of a process that has ended, and start it again."""
        with anyio.CancelScope(shield=True):
            code = await running.collect()
        idle = not running.calls
        running.stop_late(*running.late)
        error = _fail(running, running.killed or ending(code, self.how.limits.cpu))
        if running.expected or not running.loaded:
            return
        self._crashes.append(monotonic())
        if self._serving is None:
            return
        if idle:
            self._serving.report("its process", "exit", error)
        if self._running is running and not self._is_given_up():
            self._restart()

    def _is_given_up(self) -> bool:
        crashes = self._crashes
        return len(crashes) > MOST_RESTARTS and crashes[-1] - crashes[0] <= MINUTE

    # ---- calls

    async def ask(
        self,
        make: Callable[[int], Message],
        answer_request: Callable[[Ask], Awaitable[Any]] | None = None,
        *,
        notify: Callable[[str, Any], object] | None = None,
        on_update: Callable[[Any], object] | None = None,
    ) -> Any:
        """Send the message of a call and return its value.

        `make`: returns the message, given the number of the call; the other functions are those of `Services`.  Raises
        `RemoteError` when the call failed, and `HookProcessError` when the process ended.
        """
        running = await self._ready()
        pending = self._begin(running)
        try:
            running.send(make(pending.id))
        # A value that cannot be sent: the process knows nothing of the call.
        except BaseException:
            del running.calls[pending.id]
            raise
        try:
            message = await pending.next()
            if not is_last(message):
                shown = None if notify is None else partial(self._incoming.notify, notify)
                message = await converse(running, pending, message, Services(answer_request, shown, on_update))
        # The clock has given the call up, and nothing can be awaited any more.
        except GeneratorExit:
            running.kill(NOT_STOPPED)
            raise
        # A cancellation, or the failure of a listener to the progress of a tool.  It goes on when the handler has ended.
        except BaseException:
            if not pending.ended:
                await stop(running, pending)
            raise
        finally:
            running.calls.pop(pending.id, None)
        if isinstance(message, Result):
            return message.value
        raise RemoteError(message.failure) if isinstance(message, Failed) else message

    async def _ready(self) -> Running:
        if self._serving is None and self.unserved is not None:
            raise HookProcessError(f"its process is not served: {describe(self.unserved)}; load the hook again")
        if self._serving is None:
            raise HookUsageError("runs in a process of its own: use `async with HookRunner(...) as runner:`")
        if os.getpid() != self._owner:
            raise HookProcessError("its process belongs to another agent, of which this one is a fork")
        running = self._running
        if running is None or not running.alive or self._starting is not None:
            if isinstance(self._problem, OtherHandlersError):
                # A further run could register the handlers in any order again.
                raise OtherHandlersError(OTHER_HANDLERS)
            if self._is_given_up():
                raise HookProcessError(
                    f"its process ended {len(self._crashes)} times within a minute, and is not started again"
                    f"{self._because()}; mend the hook, and load it again"
                )
            await self._until_started()
            running = self._running
        if running is None or not running.alive or self._problem is not None:
            raise HookProcessError(f"its process does not run{self._because()}")
        return running

    async def _until_started(self) -> None:
        """Wait for the start, while the handler's clock stands.  Raises `HookProcessError` when it takes too long."""
        started = self._restart()
        dispatch = current_dispatch()
        clock = None if dispatch is None else dispatch.need_clock()
        if clock is not None:
            clock.pause()
        try:
            with anyio.move_on_after(START_PATIENCE):
                await started.wait()
        finally:
            if clock is not None:
                clock.resume()
        if not started.is_set():
            raise HookProcessError(f"its process did not start within {START_PATIENCE:g} s; the start goes on")

    def _because(self) -> str:
        return "" if self._problem is None else f": {describe(self._problem)}"


def _fail(running: Running, why: str) -> HookProcessError:
    """End all calls of a process that has ended, and return their failure."""
    error = HookProcessError(f"its process ended ({why})")
    for pending in tuple(running.calls.values()):
        pending.put(HookProcessError(str(error)))
    return error
