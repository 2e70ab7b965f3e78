"""`agent-hooks stats`: how often each hook and guard judged, stopped, asked, rewrote and failed, and how long it took."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from agent_hooks.cli.options import json_option
from agent_hooks.cli.reports.recorded import cell, moment, warn
from agent_hooks.cli.screen.wording import console, plain_table, short
from agent_hooks.cli.streams import echo, echo_json
from agent_hooks.errors import count
from agent_hooks.look.index.figures import COUNTS
from agent_hooks.look.view import View
from agent_hooks.settings import agent_home
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.ui.harmless import harmless

_HEADINGS = ("hook", "judged", "stopped", "asked", "rewrote", "failed", "timed out", "p50 ms", "p99 ms", "")


@click.command("stats")
@click.option(
    "--since", metavar="TIME", help="Only since then, to the hour: 12h, 7d, 2w, or a date such as 2026-01-31."
)
@json_option
def command(since: str | None, as_json: bool) -> None:
    """Show for each hook and guard how often it judged, stopped, asked, rewrote and failed, and how long it took.

    Half of the steps of a hook took at most the time of p50, and all but one in a hundred that of p99. Hooks that
    sessions loaded and that never ran are named too.
    """
    refuse_below_an_agent("stats")
    start = moment(since)
    # Records alone have steps, so the transcripts of other agents are not read.
    view = View(agent_home(), user="")
    view.refresh()
    since_ms = 0.0 if start is None else start.timestamp() * 1000
    figures = view.hooks(since_ms)
    if as_json:
        for each in figures:
            echo_json(json.dumps(each))
        return
    _print(figures)
    if overruled := view.overruled(since_ms):
        warn(
            f"overruled: {count(overruled, 'call')} ran although a hook had blocked it; "
            "agent-hooks records --verdict overruled"
        )
    for entry in view.summary()["left_out"]:
        place = f" ({entry['place']})" if entry["place"] else ""
        echo(harmless(f"left out: {entry['what']}: {entry['why']}{place}"))


def _print(figures: list[dict[str, Any]]) -> None:
    ran = [each for each in figures if not each["neverRan"]]
    if ran:
        table = plain_table(*_HEADINGS)
        for column in table.columns[1:-1]:
            column.justify = "right"
        for each in ran:
            counts = (str(each[name] or "") for name in COUNTS)
            table.add_row(cell(_name(each)), *counts, _ms(each["p50"]), _ms(each["p99"]), _note(each))
        console().print(table)
    for each in figures:
        if each["neverRan"]:
            gone = ", and its file is gone" if each["gone"] else ""
            echo(harmless(f"never ran: {_name(each)}{gone}"))
    echo(f"{count(len(ran), 'hook')} judged calls or saw events" if ran else "no hook has judged a call yet")


def _name(each: dict[str, Any]) -> str:
    # The steps of a hook that could not be loaded have its name, and the file of the function that stands in for it.
    name, path = str(each["hook"]), each["file"]
    path = path if os.path.basename(path) == os.path.basename(name) else name
    return short(path) if os.path.isabs(path) else name


def _ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _note(each: dict[str, Any]) -> str:
    return "the file is gone" if each["gone"] else ""
