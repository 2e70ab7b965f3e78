"""The matrix: every case in every real client.

A cell is `yes`, a limit with its reason from `Bridge.limits`, or red.  A limit that has gone away is red too.  Each cell
leaves a file in .bench/matrix, from which `python -m checks.matrix` writes docs/agents.md.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from agent_hooks.bridges import BRIDGES
from clients.cases import CASES, Case, NothingHereError
from clients.drivers import DRIVERS
from clients.installing import LATEST, PINNED, ROOT, installed_version
from clients.seat import Seat
from clients.together import play_together

pytestmark = pytest.mark.client
# Where each cell is written, and whether the newest versions run, which `python -m checks.matrix --latest` sets.
OUT = Path(os.environ.get("MATRIX_OUT", ROOT / ".bench/matrix/pinned"))
INSTALLED = LATEST if os.environ.get("MATRIX_LATEST") else PINNED
# The clients that run; `python -m checks.matrix --only pi` sets it.
ONLY = os.environ.get("MATRIX_ONLY", "").split()
# Some cases share a run of their client, but not where the page is written, which has the seconds of a cell.
TOGETHER = "MATRIX_OUT" not in os.environ
# The outcomes of the cases that shared a run, by client and model.
played: dict[tuple[str, str], dict[str, bool]] = {}


@dataclass(frozen=True)
class Cell:
    """The outcome of a case in a client.  `kind`: yes, limit, none (the client has no such thing) or red."""

    client: str
    model: str
    case: str
    kind: str
    why: str
    seconds: float
    version: str


def cells() -> Iterator[object]:
    """Yield the parameters of all cells: a case that depends on the tools runs with each of the client's models."""
    for name, driver in DRIVERS.items():
        if name not in BRIDGES or (ONLY and name not in ONLY):
            continue
        for number, model in enumerate(driver.models):
            for case in CASES.values():
                if number and not case.models:
                    continue
                marks = [pytest.mark.terminal] if case.terminal else []
                if case.together and TOGETHER:
                    marks.append(pytest.mark.xdist_group(f"{name} {model}"))
                if not driver.fast and (number or not case.core):
                    marks.append(pytest.mark.slow)
                word = f"{name}-{case.name}" + (f"-{model}" if number else "")
                yield pytest.param(name, model, case, id=word, marks=marks)


@pytest.mark.parametrize(("name", "model", "case"), list(cells()))
def test_a_case_holds_in_a_client_unless_a_limit_says_why_not(
    name: str, model: str, case: Case, project: Path, home: Path
) -> None:
    """The case holds in the client, or the client's own limit is the reason why not."""
    began = time.monotonic()
    kind, why = "red", ""
    try:
        with closing(DRIVERS[name](project, home, model, INSTALLED)) as client:
            seat = Seat(client)
            limit = seat.limits.get(case.power or "")
            if case.together and TOGETHER:
                kind, why = outcome_together(case, seat, limit)
            if kind == "red":
                kind, why = outcome(case, seat, limit)
    except BaseException as exc:
        why = f"{type(exc).__name__}: {exc}".splitlines()[0][:300]
        raise
    finally:
        seconds = round(time.monotonic() - began, 1)
        keep(Cell(name, model, case.name, kind, why, seconds, installed_version(name, INSTALLED)))
    assert kind != "red", why


def outcome_together(case: Case, seat: Seat, limit: str | None) -> tuple[str, str]:
    """Return the outcome of a case in the common run of its client; a red one only means that it needs its own run."""
    key = seat.client.name, seat.client.model
    if key not in played:
        is_first, is_fast = seat.client.model == seat.client.models[0], seat.client.fast
        cases = [
            each for each in CASES.values() if each.together and (is_first or each.models) and (is_fast or each.core)
        ]
        played[key] = {}
        played[key] = play_together(cases, seat)
    works = played[key].get(case.name)
    if works is None or works == bool(limit):
        return "red", ""
    return ("yes", "") if works else ("limit", limit or "")


def outcome(case: Case, seat: Seat, limit: str | None) -> tuple[str, str]:
    """Run a case, and return the kind of its cell with the reason."""
    try:
        works = case.run(seat)
    except NothingHereError as exc:
        return "none", str(exc)
    if works and limit:
        return "red", f"the limit has gone away: hooks can do this, though Bridge.limits says {limit!r}"
    if not works and not limit:
        return "red", "hooks cannot do this, and Bridge.limits states no reason"
    return ("yes", "") if works else ("limit", limit or "")


def keep(cell: Cell) -> None:
    """Write a cell's outcome."""
    path = OUT / cell.client / f"{cell.case}@{cell.model}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(cell)))
