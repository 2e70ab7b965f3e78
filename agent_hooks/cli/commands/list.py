"""`agent-hooks list`: the hooks in the order in which they run and all else in force, or the points of interceptors."""

from __future__ import annotations

import json
from functools import partial

import anyio
import click
import msgspec

from agent_hooks.cli import remembered
from agent_hooks.cli.disabling import disabled_lines
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option, hook_option, json_option, without_option
from agent_hooks.cli.screen.in_force import (
    approval_notes,
    hooks_table,
    in_force,
    in_force_table,
    rows,
    untrusted_lines,
    untrusted_rows,
)
from agent_hooks.cli.screen.wording import NO_HOOKS, console, plain_table, short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import Setup, paths_without, set_up
from agent_hooks.cli.streams import ReservedStdout, echo, echo_json
from agent_hooks.cli.trusting import asked
from agent_hooks.dispatch.points import POINTS
from agent_hooks.hooks.offered import OfferedHook, offered_hooks
from agent_hooks.settings import agent_home, merge_settings
from agent_hooks.trees import SourceTree
from agent_hooks.trust.policy import Trust

KEPT = "a session that runs keeps the former version of such a hook; without one, every tool call is blocked"


@click.command("list")
@hook_option
@without_option
@cwd_option
@json_option
@click.option("--points", is_flag=True, help="List the points at which interceptors step in, instead.")
@click.option("--available", is_flag=True, help="List the hooks that installed packages offer, instead.")
@click.pass_context
def command(
    ctx: click.Context,
    hook_files: tuple[str, ...],
    without: tuple[str, ...],
    cwd: str,
    as_json: bool,
    points: bool,
    available: bool,
) -> None:
    """List the hooks in the order they run, guards, redaction and checkpoints; exit 1 when a hook cannot be loaded.

    Hooks that are not approved are not loaded; they are described from their text.
    """
    if points:
        _print_points(as_json=as_json)
        return
    if available:
        _print_available(as_json=as_json)
        return
    sources = asked(Trust(), cwd)
    with ReservedStdout(), working("loading hooks"):
        setup = anyio.run(partial(set_up, without=paths_without(without, cwd, sources)), cwd, hook_files, sources)
    store = remembered.store()
    answers = remembered.rows_at(setup.cwd, store, setup.settings, setup.loaded.hooks)
    if as_json:
        errors = [
            {"path": error.path, "file": error.file or error.path, "line": error.line, "error": error.error}
            for error in setup.errors
        ]
        found = {
            "handlers": rows(setup),
            "dependencies": _dependency_rows(setup),
            "errors": errors,
            "inForce": in_force(setup),
            "untrusted": untrusted_rows(sources),
            "disabled": [*setup.disabled],
            "answers": answers,
        }
        # `json` escapes the surrogates of names that are no UTF-8; msgspec refuses them.
        echo_json(json.dumps(found))
    else:
        _print(setup)
        if answers:
            echo(remembered.summary(answers))
            console().print(remembered.table(answers))
    for problem in store.find().problems:
        echo(f"warning: {problem}", err=True)
    for note in approval_notes(sources):
        echo(note, err=True)
    for text in setup.settings.ignored:
        echo(f"warning: {text}", err=True)
    for error in setup.errors:
        echo(f"not loaded: {error}", err=True)
    if setup.loaded.errors:
        echo(f"not loaded: {KEPT}", err=True)
    ctx.exit(FAILED if setup.errors else OK)


def _print(setup: Setup) -> None:
    table = hooks_table(setup)
    if table is not None:
        console().print(table)
    elif (
        not setup.errors
        and not (setup.disabled or setup.without)
        and not any(each.waits for each in setup.sources.projects)
    ):
        echo(NO_HOOKS)
    for hook in setup.loaded.hooks:
        if hook.dependencies is not None:
            echo(f"packages of {short(hook.path)}: {hook.dependencies}")
    for line in (*disabled_lines(setup.disabled, setup.without), *untrusted_lines(setup.sources)):
        echo(line)
    echo()
    console().print(in_force_table(setup))


def _dependency_rows(setup: Setup) -> list[dict[str, object]]:
    return [
        {"path": hook.path, "packages": list(found.header.dependencies), "lock": found.lock_file}
        for hook in setup.loaded.hooks
        if (found := hook.dependencies) is not None
    ]


def _print_points(*, as_json: bool) -> None:
    """Print the points: their input, the fields that an interceptor may change, and whether it may block."""
    found = [
        {
            "point": point.name,
            "when": point.when,
            "input": list(point.fields(point.input)),
            "output": list(point.fields(point.output)),
            "matcher": point.matched,
            "blocks": point.blocks,
        }
        for point in POINTS.values()
    ]
    if as_json:
        echo_json(msgspec.json.encode({"points": found}).decode())
        return
    table = plain_table("point", "when", "input", "output", "matcher", "blocks")
    for row in found:
        cells = (", ".join(cell) if isinstance(cell, list) else cell for cell in row.values())
        table.add_row(*("yes" if cell is True else "" if cell is False else str(cell) for cell in cells))
    console().print(table)


def _print_available(*, as_json: bool) -> None:
    """Print the hooks that packages offer.  Raises `SettingsError` when the user's settings cannot be read."""
    settings = merge_settings([SourceTree(agent_home())])
    offered = offered_hooks()
    used = {each.entry: each.path in settings.hooks and each.path not in settings.disabled_hooks for each in offered}
    if as_json:
        echo_json(json.dumps({"available": [_row(each, used=used[each.entry]) for each in offered]}))
        return
    if not offered:
        echo("no installed package offers hooks (entry-point group agent_hooks)")
        return
    table = plain_table("hook", "entry", "package", "state")
    for each in offered:
        state = "its module is missing" if each.path is None else "counts" if used[each.entry] else "not used"
        table.add_row(each.name, each.entry, f"{each.package} {each.version}", state)
    console().print(table)
    if not all(used.values()):
        echo(f"to use one, put its entry into hooks in {agent_home()}/settings.json")


def _row(hook: OfferedHook, *, used: bool) -> dict[str, object]:
    return {
        "hook": hook.name,
        "entry": hook.entry,
        "package": hook.package,
        "version": hook.version,
        "path": hook.path,
        "used": used,
    }
