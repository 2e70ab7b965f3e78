"""The clocks of a runner's handlers and the watches over its calls: how those that run are waited for and stopped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

from agent_hooks.concurrency.deadlines import CallWatch, Clock, StillClock, Timer, clock_type
from agent_hooks.dispatch.loop import current_dispatch

# Seconds that a shutdown waits for the handlers that it cancelled.
DRAIN_TIMEOUT = 1.5
# Seconds that running calls get to end, and to be reported, when the runner is left.
ABORT_GRACE = 2.0


class Clocks:
    """The part of an engine that knows the handlers and calls that run.

    `suspended`: the clocks of handlers that have suspended; `running_calls`: the watches over calls.
    """

    def __init__(self) -> None:
        # The event loop's, unless a test steps time by hand.
        self.timer: Timer | None = None
        self.suspended: set[Clock] = set()
        self.running_calls: set[CallWatch] = set()
        self._clock_type: type[Clock] | None = None
        # Returns the watch over a call that begins now, or has just suspended for the first time.  Leaving the runner
        # cancels the call.  The caller closes the watch.
        self.watch_call: Callable[[], CallWatch] = self._watch_first_call
        # trio needs a clock or a watch before the first step of foreign code; the first dispatch or call finds out.
        self.watches_early = True

    def make_clock(self, limit: float, parent: Clock | None) -> Clock:
        """Return a clock of the running backend, nested in `parent`; `limit` in seconds."""
        kind = self._clock_type or self._find_clock_type()
        return kind(limit, self.suspended, parent, self.timer)

    def _watch_first_call(self) -> CallWatch:
        """Find out the backend, then watch a call."""
        return self._find_clock_type().watch_call(self.running_calls)

    def _find_clock_type(self) -> type[Clock]:
        kind = clock_type()
        if kind is not StillClock:
            # Without an event loop the next dispatch asks again: it may have one.
            self._clock_type, self.watches_early = kind, kind.early
            self.watch_call = partial(kind.watch_call, self.running_calls)
        return kind

    async def stop_handlers(self) -> float:
        """Cancel the handlers that run, wait `DRAIN_TIMEOUT` for them to end, and return the seconds that took."""
        begun = perf_counter()
        own = self.own_clocks()
        if self.suspended - own:
            # Imported here, because nothing is suspended where no event loop runs.
            import anyio

            with anyio.move_on_after(DRAIN_TIMEOUT):
                while running := self.suspended - own:
                    for clock in running:
                        clock.shut_down()
                    await anyio.sleep(0.005)
        return perf_counter() - begun

    def own_clocks(self) -> set[Clock | None]:
        """Return the clocks of the dispatches that this code runs in."""
        own = set()
        dispatch = current_dispatch()
        while dispatch is not None:
            own.add(dispatch.clock)
            dispatch = dispatch.parent
        return own

    async def abort(self) -> None:
        """Stop the handlers and calls that run, and wait `ABORT_GRACE` seconds for them at most."""
        handlers = self.suspended - self.own_clocks()
        if not (handlers or self.running_calls):
            return
        import anyio

        with anyio.CancelScope(shield=True), anyio.move_on_after(ABORT_GRACE):
            for clock in handlers:
                clock.shut_down()
            while self.running_calls or handlers & self.suspended:
                for watch in tuple(self.running_calls):
                    watch.cancel()
                await anyio.sleep(0.005)

    async def handlers_done(self) -> None:
        """Wait for the handlers that run now; those that begin meanwhile do not count."""
        running = self.suspended - self.own_clocks()
        if not running:
            return
        import anyio

        while running & self.suspended:
            await anyio.sleep(0.005)
