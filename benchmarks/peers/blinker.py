"""blinker: sends a signal to async receivers, without deadlines, and collects their results."""

from __future__ import annotations

import blinker

from benchmarks.harness import Side, unrolled
from benchmarks.peers.common import measure

# Blinker holds them weakly.
_receivers = []


def side(count: int) -> Side:
    """Return a side that sends to that many receivers."""
    signal = blinker.Signal()
    for _ in range(count):

        async def receiver(sender, **kwargs):
            return None

        _receivers.append(receiver)
        signal.connect(receiver)
    return unrolled("await send(s, event=e)", send=signal.send_async, s="runner", e=object())


measure("blinker", {"dispatch": {1: side(1), 10: side(10)}})
