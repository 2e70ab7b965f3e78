"""The event loop of the server, which goes on until the server ends, against any act of the hooks in it.

A hook can stop the loop, and `SystemExit` in a task of a hook comes out of it.  Then the loop is started again, with all
of its tasks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine
from heapq import heapify
from typing import Any
from weakref import WeakKeyDictionary, ref

from agent_hooks.concurrency.numbers import high_numbers
from agent_hooks.concurrency.process_state import ProcessState
from agent_hooks.dispatch.loop import Dispatch, running
from agent_hooks.errors import log
from agent_hooks.hooks.forgetting import package_of_coroutine
from agent_hooks.runner.listeners import error_of


class Edge:
    """Restores the state of the process before and after each step of a task: `edge(after)`.

    `add_signal_handlers`: makes the event loop listen to signals again, after a hook has replaced its handlers.
    """

    def __init__(self, add_signal_handlers: Callable[[], object]) -> None:
        self._state = ProcessState()
        self._add_signal_handlers = add_signal_handlers
        # Each hook with each change that it was reported for.
        self._reported: set[tuple[str, str]] = set()

    def __call__(self, after: bool) -> None:
        """Restore the state after a step of a task, and report the handler that has changed it.

        Before a step only the recursion limit is restored, because the end of the step before has restored the rest.
        """
        if not after:
            self._state.restore_depth()
        elif changed := self._state.restore():
            self._report(changed)

    def restore(self) -> None:
        """Restore the state outside of a step, where only a task or a thread of a hook can have changed it."""
        changed = self._state.restore()
        if changed:
            self._listen_to_signals(changed)
            log().warning("restored after a task or a thread of a hook had changed it: %s", ", ".join(changed))

    def _listen_to_signals(self, changed: list[str]) -> None:
        if any(text.startswith("the handler of") for text in changed):
            self._add_signal_handlers()

    def _report(self, changed: list[str]) -> None:
        self._listen_to_signals(changed)
        dispatch = running.get()
        handler = getattr(dispatch, "handler", None)
        if dispatch is None or handler is None:
            log().warning("restored after a hook had changed it: %s", ", ".join(changed))
            return
        new = [text for text in changed if (handler.hook, text) not in self._reported]
        self._reported.update((handler.hook, text) for text in new)
        if new:
            _report(dispatch, ", ".join(new))


def _report(dispatch: Dispatch, changed: str) -> None:
    handler = dispatch.handler
    text = f"changed {changed} of the process, which the hooks of all sessions share; it was restored"
    dispatch.owner.report(error_of(dispatch, text, place=(handler.file, handler.line)))


# The tasks of hooks, each with the engine whose handler has started it, and with the package of its code.
_owners: WeakKeyDictionary[asyncio.Task[Any], tuple[Callable[[], Any], str | None]] = WeakKeyDictionary()
_FAULTS = 100
"""The number of failures of the loop in a row after which the process ends."""


def run_to_the_end(serve: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an async function in an event loop of its own, until the function has ended.

    Ends the process with exit code 1 when the loop cannot go on, because a hook has closed it or its descriptors.  A
    client that waits for an answer then refuses a gate, and the next event starts another server.
    """
    with high_numbers():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_task_factory(_create_task)
    serving = loop.create_task(serve())
    serving.add_done_callback(lambda _: loop.stop())
    faults = 0
    while not serving.done():
        turned: list[bool] = []
        try:
            loop.call_soon(turned.append, True)
            loop.run_forever()
        # `SystemExit` or `KeyboardInterrupt` of a hook's task; or the selector failed, and then fails again at once.
        except BaseException:
            faults = 0 if turned else faults + 1
            if faults > _FAULTS or loop.is_closed():
                _give_up()
            log().exception("a hook has raised this in the event loop, which goes on")
    serving.result()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def tasks_of(owner: object, packages: Collection[str]) -> list[asyncio.Task[Any]]:
    """Return the tasks that still run, and that handlers of a runner's engine or code of some hooks have started."""
    tasks = list(_owners.items())
    return [task for task, (each, package) in tasks if (each() is owner or package in packages) and not task.done()]


def forget_cancelled_timers() -> None:
    """Remove cancelled timers from the running loop, because their contexts keep the hooks that have set them.

    asyncio does the same when there are more than a hundred timers, and has no public name for it.  An event loop of
    another kind is left alone.
    """
    loop: Any = asyncio.get_running_loop()
    timers = getattr(loop, "_scheduled", None)
    if not isinstance(timers, list) or not hasattr(loop, "_timer_cancelled_count"):
        return
    left = []
    for timer in timers:
        if timer.cancelled():
            timer._scheduled = False
        else:
            left.append(timer)
    heapify(left)
    timers[:] = left
    loop._timer_cancelled_count = 0


def _create_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """Create a task; note the hook of its code, and the runner whose handler starts it, perhaps with other code."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    dispatch, package = running.get(), package_of_coroutine(coroutine)
    # The server's own tasks get a context.
    if options.get("context") is None and (dispatch is not None or package is not None):
        _owners[task] = _no_owner if dispatch is None else ref(dispatch.owner), package
    return task


def _no_owner() -> None:
    """Stand for a reference to no runner."""


def _give_up() -> None:
    try:
        log().exception("the event loop cannot go on; the next event starts another server")
    finally:
        os._exit(1)
