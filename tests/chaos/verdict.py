"""The verdict on a cell: no forbidden call ran, no result is lost, the agent goes on."""

from __future__ import annotations

import signal
from typing import Any, NamedTuple

from chaos.cells import Cell
from chaos.scene import calls_of

# The most characters that a refusal may have.
LONGEST = 60_000
# The exit codes of a host that a person interrupted: its own, and the one of a second Ctrl-C while it leaves.
INTERRUPTED = (130, -signal.SIGINT)
# The calls that may wait for an interrupt: the handler answers the first one, and hears of no other then, for example.
WAITS = ("trouble", "banned")


class Observation(NamedTuple):
    """The facts of one cell.

    `ran`: the words of the tools that ran; `results`: the results by call, with `end` when all calls were made;
    `began`: whether the broken handler has run; `code`: the exit code of the agent, `None` if it had to be killed;
    `left`: the command lines of processes that outlived it.
    """

    ran: list[str]
    results: dict[str, Any]
    code: int | None
    stderr: str
    left: list[str]
    began: bool = True
    server_ended: bool = True


def judge(cell: Cell, seen: Observation) -> tuple[str, list[str]]:
    """Return the outcome in a word, and a sentence for each promise that was broken."""
    wrong = [f"a forbidden call ran: {word}" for word in seen.ran if "forbidden" in word or "banned" in word]
    if not cell.is_named:
        wrong += _lost(cell, seen) + _stuck(cell, seen) + _untidy(cell, seen)
    return _outcome(cell, seen), wrong


def _lost(cell: Cell, seen: Observation) -> list[str]:
    """Return a sentence for each result that is lost or unreadable."""
    wrong = []
    words = {word.partition("-")[0]: word for word in seen.ran}
    for name, result in seen.results.items():
        text = result.get("text", "")
        if name in words and words[name] not in text:
            wrong.append(f"the result of {name} is lost: {text[:200]!r}")
        if name not in words and name in ("trouble", "banned", "again") and "text" in result and not result["error"]:
            wrong.append(f"{name} did not run, and its result is no error: {text[:200]!r}")
        if len(text) > LONGEST:
            wrong.append(f"the text of {name} has {len(text)} characters")
    if "session" in seen.results:
        wrong.append(seen.results["session"]["text"])
    wrong += [f"{name} ran without a result" for name in words if name not in seen.results]
    return wrong


def _stuck(cell: Cell, seen: Observation) -> list[str]:
    """Return a sentence for each call after which the agent did not go on."""
    if cell.is_interrupted and cell.place == "host" and seen.code in INTERRUPTED:
        return []
    wrong = [f"{call.id} has no result" for call in calls_of(cell) if call.id not in seen.results]
    for name, result in seen.results.items():
        if result.get("cancelled") and not (cell.is_interrupted and name in WAITS):
            wrong.append(f"{name} did not end")
    if seen.results.get("other", {}).get("error", True):
        wrong.append(f"a call of another tool fails: {str(seen.results.get('other', {}).get('text'))[:300]!r}")
    if not cell.judges and seen.results.get("after", {}).get("error", True):
        wrong.append(f"a harmless call fails: {str(seen.results.get('after', {}).get('text'))[:300]!r}")
    if cell.judges and not _may_close(cell) and seen.results.get("after", {}).get("error", True):
        wrong.append(f"the broken hook stays closed: {str(seen.results.get('after', {}).get('text'))[:300]!r}")
    if not seen.began:
        wrong.append("the broken handler did not run")
    if "end" not in seen.results:
        wrong.append("the agent did not come to its end")
    if seen.code != 0:
        wrong.append(f"the agent ended with {seen.code}: {seen.stderr[-500:]!r}")
    if not seen.server_ended:
        wrong.append("the server does not end")
    return wrong


def _may_close(cell: Cell) -> bool:
    return cell.details.closes or cell.details.waits


def _untidy(cell: Cell, seen: Observation) -> list[str]:
    """Return a sentence for a traceback on stderr, and for each process that is left."""
    wrong = []
    if cell.place == "host" and "Traceback" in seen.stderr and not cell.details.noisy:
        at = seen.stderr.index("Traceback")
        wrong.append(f"a traceback on stderr: {seen.stderr[max(0, at - 200) : at + 600]}")
    if seen.left and not cell.details.leaves:
        wrong.append(f"left behind: {[line[:100] for line in seen.left]}")
    return wrong


def _outcome(cell: Cell, seen: Observation) -> str:
    """Return a word for the page.

    `holds`: the failure stays with its call; `closed`: so it does, and the broken hook blocks its later calls;
    `interrupted`: the call waits for an interrupt; `restarted`: there is another server; `denied`: every later call is
    denied; `ends`, `hangs`: the agent.
    """
    after, other = (seen.results.get(name, {}) for name in ("after", "other"))
    if seen.code is None:
        return "hangs"
    cancelled = any(seen.results.get(name, {}).get("cancelled") for name in WAITS)
    if cell.is_interrupted and (seen.code in INTERRUPTED or cancelled):
        return "interrupted"
    if "end" not in seen.results or seen.code != 0:
        return "ends"
    if other.get("error", True):
        return "denied"
    if len({result["server"] for result in seen.results.values() if result.get("server")}) > 1:
        return "restarted"
    return "closed" if after.get("error", True) else "holds"
