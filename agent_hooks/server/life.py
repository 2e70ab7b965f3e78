"""The life of a session's hooks: a task holds their runner open until the session ends, and then all of them is freed."""

from __future__ import annotations

import math

from agent_hooks.errors import describe, hook_error, log
from agent_hooks.hooks.forgetting import forget_hooks, threads_of
from agent_hooks.hooks.imports import package_of
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.endless import forget_cancelled_timers, tasks_of
from agent_hooks.server.garbage import session_ended
from agent_hooks.server.tasks import Tasks

FAREWELL = 8.0
"""Seconds in which the hooks' tasks and `on_unload` functions end; threads and tasks that go on are named then."""


class Life:
    """The hooks of one runner, from `begin` to `end`.

    `broken`: the reason why the hooks ended too early; a hook ended the task that holds its runner.
    """

    def __init__(self, runner: HookRunner, tasks: Tasks) -> None:
        # Imported here, because a server without hooks needs no event loop.
        import asyncio

        self.broken: str | None = None
        self._runner = runner
        self._tasks = tasks
        self._entered = asyncio.Event()
        self._ending = asyncio.Event()
        self._left = asyncio.Event()

    async def begin(self) -> None:
        """Start the hooks' tasks."""
        self._tasks.later(self._hold)
        await self._entered.wait()

    def end(self) -> None:
        """End the hooks' tasks, unload the hooks and free them; this does not wait for that."""
        if not self._ending.is_set():
            self._ending.set()
            self._tasks.later(self._see_off)

    async def _hold(self) -> None:
        try:
            async with self._runner:
                self._entered.set()
                await self._until_the_end()
        # A task of a hook raised SystemExit, or left a scope open.  The next event of the session loads its hooks again.
        except BaseException as exc:
            log().exception("the hooks of a session ended too early")
            self.broken = describe(exc)
            raise
        finally:
            if not self._ending.is_set():
                self.broken = self.broken or "a hook ended the task that holds its runner"
            self._entered.set()
            self._left.set()

    async def _until_the_end(self) -> None:
        import asyncio

        import anyio

        while not self._ending.is_set():
            try:
                await self._ending.wait()
            except asyncio.CancelledError:
                # A failed task of a hook cancels the scope of the runner.  Otherwise a hook has cancelled all tasks.
                if anyio.current_effective_deadline() == -math.inf:
                    raise

    async def _see_off(self) -> None:
        """Wait for the end of the hooks, name the threads and tasks that they leave behind, and free the hooks."""
        import asyncio

        try:
            async with asyncio.timeout(FAREWELL):
                await self._left.wait()
        except TimeoutError:
            log().warning("the hooks of a session did not end within %g s", FAREWELL)
        # The log gets these names, because no event comes any more whose answer could show them to the person.
        for path, texts in threads_of(self._runner.hooks).items():
            log().warning("%s left behind %s; end them in a function for api.on_unload", path, ", ".join(texts))
        packages = {package_of(hook.module.__name__) for hook in self._runner.hooks if hook.module is not None}
        for task in tasks_of(self._runner.engine, packages):
            paths = ", ".join(hook.path for hook in self._runner.hooks)
            log().warning("one of %s left behind the task %r; start it with api.start_task", paths, task.get_name())
            task.cancel("its hook has ended")
        # The cancelled tasks get one turn of the loop to end.
        await asyncio.sleep(0)
        forget_cancelled_timers()
        forget_hooks(self._runner.hooks, _report)
        session_ended()


def _report(function: object, exc: BaseException) -> None:
    name = getattr(function, "__qualname__", repr(function))
    error = hook_error(exc, hook=getattr(function, "__module__", "?"), handler=name, event="end", outcome="continued")
    log().error("%s\n%s", error, error.traceback)
