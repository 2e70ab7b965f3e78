"""Print the result of a peer's script: its version, the floor of its process, and the medians."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version

from benchmarks.harness import FULL, QUICK, Side, bare_await, interleave


def measure(package: str, kinds: dict[str, dict[int, Side]]) -> None:
    """Run the sides beside a bare await, and print the medians in seconds as one JSON object."""
    sides = {f"{kind} {count}": side for kind, counts in kinds.items() for count, side in counts.items()}
    effort = QUICK if "--quick" in sys.argv else FULL
    rounds = asyncio.run(interleave({"floor": bare_await(), **sides}, effort))
    result = {
        "version": f"{package} {version(package)}",
        "floor": rounds.seconds("floor"),
        **{kind: {str(count): rounds.seconds(f"{kind} {count}") for count in counts} for kind, counts in kinds.items()},
    }
    print(json.dumps(result))
