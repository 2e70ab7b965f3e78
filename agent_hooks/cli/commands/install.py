"""`agent-hooks install`: let other agents run our hooks, by entries in their settings files."""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio
import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.driver import listened_to, unsupported
from agent_hooks.cli.installing import Wish, failing, install, lacks, prove_once, warn
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import ALL, installation_options
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import set_up
from agent_hooks.cli.streams import ReservedStdout, complain, tell
from agent_hooks.errors import AgentHooksError, SettingsError
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.installs.places import presence
from agent_hooks.installs.told import untold
from agent_hooks.trust.policy import Trust


@click.command("install")
@installation_options
@click.option("--all-events", is_flag=True, help="Also install the events that none of your hooks listens to now.")
@click.option(
    "--http/--no-http",
    "by_http",
    default=None,
    help="With --local: post the events that decide nothing to the resident server, without a process for each.",
)
@click.pass_context
def command(
    ctx: click.Context,
    agents: tuple[str, ...],
    target: str | None,
    dry_run: bool,
    shows_diff: bool,
    all_events: bool,
    by_http: bool | None,
) -> None:
    """Let each AGENT run your hooks: adds entries to its settings, and keeps everything else that is there.

    `all` stands for each agent that is on this machine. Without an option, one agent is installed for this project and
    you only if it has such settings, and several are installed for you in every project. Gates are always installed,
    most other events only if a hook listens to them. Nothing is asked: the changes are made, and summed up.
    """
    cwd = os.getcwd()
    chosen = _here(cwd) if ALL in agents else list(dict.fromkeys(agents))
    several = ALL in agents or len(chosen) > 1
    if several and target is None:
        target = "user"
    # An agent without a settings file for one person and one project gets the person's own, for all projects.
    is_local = (
        not several and target in (None, "local") and "local" in open_bridge(chosen[0]).settings_files(os.environ)
    )
    if by_http and not is_local:
        raise click.UsageError("--http goes with --local: its port and token are those of one project and one person")
    prove = prove_once("install", *chosen)
    wish = Wish(cwd, target, prove, dry_run=dry_run, all_events=all_events, shows_diff=shows_diff, by_http=by_http)
    if not several and (reason := lacks(open_bridge(chosen[0]), wish)):
        raise click.UsageError(f"{reason}: use --user")
    sources = Trust().sources(cwd)
    for message in sources.messages:
        complain(one_line(message))
    with ReservedStdout(), working("loading hooks"):
        setup = anyio.run(set_up, cwd, (), sources)
    listened = listened_to(
        setup.loaded.hooks,
        setup.transformers.configured,
        setup.redactor,
        checkpoints=setup.settings.checkpoints.enabled,
    )
    wish = wish._replace(listened=listened)
    failed = [name for name in chosen if not _installed(name, wish, setup.loaded.hooks, several=several)]
    for error in setup.errors:
        warn(f"{error}; until it is mended, calls are denied")
    ctx.exit(FAILED if failed else OK)


def _here(cwd: str) -> list[str]:
    """Return the agents on this machine, and name the others.  Raises `SettingsError` if there is none."""
    found = {name: presence(open_bridge(name), cwd) for name in BRIDGES}
    for name, each in found.items():
        if not each:
            tell(f"{name} is not here: {each.absence()}")
    if not any(found.values()):
        raise SettingsError("none of these agents is on this machine; to install for one all the same, name it")
    return [name for name, each in found.items() if each]


def _installed(name: str, wish: Wish, hooks: Sequence[LoadedHook], *, several: bool) -> bool:
    """Install for one agent; of several, a failure is printed and the others follow."""
    bridge = open_bridge(name)
    if not several:
        install(bridge, wish)
        _warn_of_limits(bridge, wish, hooks)
        return True
    tell(f"\n== {name}")
    if reason := lacks(bridge, wish):
        tell(f"{reason}, so it was left out")
        return True
    try:
        install(bridge, wish)
    except AgentHooksError as exc:
        failing(bridge, exc)
        return False
    _warn_of_limits(bridge, wish, hooks)
    return True


def _warn_of_limits(bridge: Bridge, wish: Wish, hooks: Sequence[LoadedHook]) -> None:
    """Warn of hooks that ask for more than the agent has.  A session does not repeat the warning."""
    texts = [f"{short(path)} {text}" for path, text in unsupported(bridge.name, bridge.describe(), hooks)]
    for text in texts:
        warn(f"{text}; it works in agent-hooks run")
    if not wish.dry_run:
        untold(bridge, texts, afresh=True)
