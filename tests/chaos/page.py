"""Writes the outcomes of all faults into `results.json`, and their numbers into docs/reliability.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from chaos.cells import BACKENDS, KINDS, MODES, PLACES, Cell
from chaos.faults import FAMILIES
from chaos.faults.fault import Fault

PAGE = Path(__file__).parent.parent.parent / "docs" / "reliability.md"
RESULTS = Path(__file__).parent / "results.json"
BEGIN, END = "<!-- last run -->", "<!-- end -->"


def write(results: Mapping[str, Mapping[str, Any]], version: Callable[[str], str]) -> None:
    """Write a run of all cells.

    `results` has a result by the name of each cell. `version` returns the present version of the code for a fault.
    """
    run = run_of(results, version)
    faults = ",\n".join(json.dumps(fault) for fault in run["faults"])
    head = json.dumps({**run, "faults": []}).removesuffix("[]}")
    RESULTS.write_text(f"{head}[\n{faults}\n]}}\n")
    PAGE.write_text(written(PAGE.read_text(), run))


def run_of(results: Mapping[str, Mapping[str, Any]], version: Callable[[str], str]) -> dict[str, Any]:
    """Return the days and the numbers of a run, and for each fault its outcomes by mode and place.

    `no_process_survives` is the reason, and is empty if the agent's process survives the fault everywhere.
    """
    return {
        "days": sorted({result["day"] for result in results.values()}),
        "cells": len(results),
        "red": sum(bool(result["wrong"]) for result in results.values()),
        "on_older_code": sum(result["version"] != version(cell.partition("/")[0]) for cell, result in results.items()),
        "faults": [
            {
                "family": family,
                "fault": fault.name,
                **{mode: {place: _words(fault, mode, place, results) for place in PLACES} for mode in MODES},
                "no_process_survives": reason(fault),
            }
            for family, faults in FAMILIES.items()
            for fault in faults
        ],
    }


def written(page: str, run: Mapping[str, Any]) -> str:
    """Return a page with the table of a run between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no table to replace: it lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{_section(run)}\n\n{END}{after}"


def reason(fault: Fault) -> str:
    """Return why no process survives a fault, and the backend, kind or place that this is limited to."""
    if not fault.ends:
        return ""
    limits = {part for pattern in fault.where for part in pattern.split("/")} - {"*", "inline", "wrapped"}
    return f"{fault.ends} ({', '.join(sorted(limits))})" if limits else fault.ends


def _section(run: Mapping[str, Any]) -> str:
    days = " to ".join(dict.fromkeys([run["days"][0], run["days"][-1]]))
    faults = run["faults"]
    families = {family: [fault for fault in faults if fault["family"] == family] for family in FAMILIES}
    return "\n".join(
        [
            f"{days}: {run['cells']:,} cells, {run['red']:,} red. {run['on_older_code']:,} ran on older code.",
            "",
            "| faults | all | inside | own process | not survived |",
            "|---|---|---|---|---|",
            *(_line(family, members) for family, members in families.items()),
            _line("all", faults),
        ]
    )


def _line(name: str, faults: list[Mapping[str, Any]]) -> str:
    lost = sum(bool(fault["no_process_survives"]) for fault in faults)
    inside = sum(_is_green(fault["inline"]) and not fault["no_process_survives"] for fault in faults)
    own = sum(_is_green(fault["process"]) for fault in faults)
    return f"| {name} | {len(faults)} | {inside} | {own} | {lost} |"


def _is_green(places: Mapping[str, str]) -> bool:
    return not any("RED" in words for words in places.values())


def _words(fault: Fault, mode: str, place: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the usual outcome of a fault in a mode and a place, and the handlers with another outcome."""
    outcomes: dict[str, list[tuple[str, str]]] = {}
    for backend in BACKENDS if place != "server" else BACKENDS[:1]:
        for kind in KINDS:
            result = results[Cell(fault.name, kind, mode, backend, place).name]
            outcomes.setdefault("RED" if result["wrong"] else result["outcome"], []).append((backend, kind))
    usual = max(outcomes, key=lambda word: len(outcomes[word]))
    others = [f"{_names(where, place)} {word}" for word, where in outcomes.items() if word != usual]
    return "; ".join([usual, *others])


def _names(where: Iterable[tuple[str, str]], place: str) -> str:
    """Return the kinds, with the backend if it is only one of the two: `gate, rewriter on trio`."""
    by_backend: dict[str, list[str]] = {}
    for backend, kind in where:
        by_backend.setdefault(backend, []).append(kind)
    if place == "server" or len(set(map(tuple, by_backend.values()))) == 1 < len(by_backend):
        return ", ".join(next(iter(by_backend.values())))
    return " and ".join(
        f"{backend}" if len(kinds) == len(KINDS) else f"{', '.join(kinds)} on {backend}"
        for backend, kinds in by_backend.items()
    )
