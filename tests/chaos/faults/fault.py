"""A kind of fault: the wrong lines of a handler, as text, and the cells in which they may end the process."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

# Every cell whose hook runs in the process of the agent.
INLINE = ("*/inline/*/*",)


class Fault(NamedTuple):
    """One kind of fault.

    `code`: the lines that the broken handler runs when its call is in trouble.  `event`, `ctx` and `api` are there, and
    `answer(value)` puts a value where the handler's event takes one; see `hook_file`.
    `style`: whether the handler is an `async def`, which runs on the event loop, or a `def`, which gets a thread.
    `ends`: why no process survives it; then the cells that match a pattern of `where`
    (`kind/mode/backend/place`) only promise that no forbidden call runs.
    `waits`: the handler never ends by itself, so that a rewriter, which has no deadline, waits for an interrupt.
    `closes`: the broken hook may block its later calls; a handler that `waits` may too.
    `noisy`: Python itself prints a traceback, of the fault's own thread for example.
    `cold`: it may break imports, so the agent's process has not imported anything before.
    `leaves`: the fault starts programs that are meant to outlive the agent.
    """

    name: str
    code: str
    style: Literal["async", "def"] = "async"
    ends: str = ""
    where: tuple[str, ...] = INLINE
    waits: bool = False
    closes: bool = False
    noisy: bool = False
    leaves: bool = False
    cold: bool = False

    def ends_in(self, place: str) -> bool:
        """Tell whether the table says that no process survives this fault in `kind/mode/backend/place`."""
        return bool(self.ends) and any(fnmatchcase(place, pattern) for pattern in self.where)
