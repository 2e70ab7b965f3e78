"""The processes of a runner's isolated hooks: served from its entry, or from their reload, to their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.dispatch.context import Surroundings
from agent_hooks.errors import HookError, HookUsageError, describe, hook_error
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.runner.group import LongGroup

if TYPE_CHECKING:
    import anyio

    from agent_hooks.isolation.incoming import Serving
    from agent_hooks.isolation.process import HookProcess

# Seconds in which a process ends its tasks and calls its `on_unload` functions, which have 5 s in it.
UNLOAD_TIMEOUT = 7.0


class Owner(Protocol):
    """The engine, as far as the processes use it."""

    surroundings: Surroundings

    def report(self, error: HookError) -> None:
        """Take note of a failure."""


class _Served:
    """A process that is served; `ended` is set when it has ended."""

    def __init__(self, hook: LoadedHook, scope: anyio.CancelScope, ended: anyio.Event) -> None:
        self.hook = hook
        self.scope = scope
        self.ended = ended
        # The number of runs of the process that have got the state of the former generation.
        self.begun = 0


class Processes:
    """The processes of some hooks; without an isolated hook, this does nothing.

    `waiting`: the paths of the isolated hooks, until `start`.
    """

    def __init__(self, owner: Owner, hooks: Sequence[LoadedHook]) -> None:
        self._owner = owner
        self._hooks = hooks
        self._tasks = LongGroup()
        self._served: dict[str, _Served] = {}
        # The hooks and the sentences about values of `api.state` that were lost since `take_lost`.
        self._lost: list[tuple[str, str]] = []
        self.waiting = tuple(hook.path for hook in hooks if hook.process is not None)

    async def start(self) -> None:
        """Serve the processes, and let their background tasks begin."""
        self.waiting = ()
        isolated = [hook for hook in self._hooks if hook.process is not None]
        await self._tasks.open(needed=bool(isolated))
        await self.start_those_of(isolated)

    async def start_those_of(self, hooks: Sequence[LoadedHook]) -> None:
        """Serve the processes of these hooks, in a runner that was entered.

        The gates of a hook whose process cannot be served block, and the failure is reported.
        """
        for hook in hooks:
            if hook.process is not None:
                await self._start_one(hook, hook.process)

    async def _start_one(self, hook: LoadedHook, process: HookProcess) -> None:
        try:
            await self._tasks.start(self._serve, hook)
            if (served := self._served.get(hook.path)) is None or served.hook is not hook:
                raise HookUsageError("the task that serves it was cancelled before it began")
        # Something of the agent fails, the memory for example: one hook blocks, and the others go on.
        except Exception as exc:
            self._give_up(hook, process, exc)

    def _give_up(self, hook: LoadedHook, process: HookProcess, exc: BaseException) -> None:
        """Let the gates of a hook block, because its process cannot be served."""
        while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
            exc = exc.exceptions[0]
        process.unserved = exc
        process.abandon()
        self._owner.report(hook_error(exc, hook=hook.path, handler="its process", event="exit", outcome="continued"))

    async def unload(self, hook: LoadedHook) -> None:
        """Let a process end its tasks and call its `on_unload` functions, and keep the state that it leaves."""
        served = self._served.get(hook.path)
        if served is None or served.hook is not hook:
            return
        process: Any = hook.process
        has_ended = process.pid is None
        if not has_ended and (failure := await self._ask_to_unload(hook)) is not None:
            self._owner.report(
                hook_error(failure, hook=hook.path, handler="its process", event="on_unload", outcome="continued")
            )
            self._lose(hook, f"api.state was lost when the hook was loaded again: {describe(failure)}")
        elif served.begun > 1 or (served.begun and has_ended):
            self._lose(hook, "the values that api.state got before its process ended were lost with the process")

    async def _ask_to_unload(self, hook: LoadedHook) -> BaseException | None:
        """Return the failure of the unloading, if it fails."""
        import anyio

        from agent_hooks.isolation.proxies import unload

        process: Any = hook.process
        failure: BaseException | None = None
        with anyio.CancelScope(deadline=anyio.current_time() + UNLOAD_TIMEOUT, shield=True) as scope:
            outcome = await attempt_async(unload, process, hook.api, cancelled=lambda: scope.cancel_called)
            failure = outcome.exception
        if scope.cancelled_caught:
            return TimeoutError(f"its process did not end its on_unload functions within {UNLOAD_TIMEOUT:g} s")
        return failure

    def _lose(self, hook: LoadedHook, text: str) -> None:
        found = hook.path, f"{hook.api.label}: {text}"
        # A process that starts again leaves the same values out again.
        if found not in self._lost:
            self._lost.append(found)

    def take_lost(self, hooks: Sequence[LoadedHook]) -> tuple[str, ...]:
        """Return a sentence for each loss of `api.state` of these hooks, and forget all losses."""
        lost, self._lost = self._lost, []
        paths = {hook.path for hook in hooks}
        return tuple(text for path, text in lost if path in paths)

    async def end_those_of(self, hooks: Sequence[LoadedHook]) -> None:
        """End the processes of these hooks."""
        for hook in hooks:
            if (served := self._served.pop(hook.path, None)) is not None:
                served.scope.cancel()
                await served.ended.wait()

    async def end(self) -> None:
        """End all processes."""
        await self._tasks.end()

    async def _serve(self, hook: LoadedHook, started: anyio.Event) -> None:
        import anyio

        process: Any = hook.process
        ended = anyio.Event()
        with anyio.CancelScope() as scope:
            served = self._served[hook.path] = _Served(hook, scope, ended)
            try:
                await process.serve(self._serving(served), started.set)
            # As in `_start_one`: a failure here must not end the program through the task group.
            except Exception as exc:
                self._give_up(hook, process, exc)
            finally:
                if not scope.cancel_called and process.unserved is None:
                    process.unserved = HookUsageError("the task that serves it was cancelled")
                started.set()
                ended.set()

    def _serving(self, served: _Served) -> Serving:
        from agent_hooks.isolation.incoming import Serving
        from agent_hooks.isolation.proxies import answered_late

        hook = served.hook

        def state() -> dict[str, Any]:
            served.begun += 1
            return hook.api.state

        def report(handler: str, event: str, exc: BaseException) -> None:
            if handler == "api.state":
                self._lose(hook, describe(exc))
            self._owner.report(hook_error(exc, hook=hook.path, handler=handler, event=event, outcome="continued"))

        return Serving(
            state=state,
            answer=lambda request: answered_late(request, self._owner.surroundings),
            # The new version of the hook tells the user the same.
            notify=lambda text, kind: None if hook.former_of else self._owner.surroundings.ui.notify(text, kind),
            send=hook.api.send,
            report=report,
        )
