"""Install into one agent's settings, and take the entries out again: the edits are printed, then made."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import Address, Installed
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.streams import complain, echo, tell
from agent_hooks.errors import AgentHooksError, SettingsError, count
from agent_hooks.installs.edits import Edit
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.git_ignore import how_to_ignore
from agent_hooks.installs.places import (
    PROGRAM,
    Installation,
    at_target,
    doubled,
    installations,
    reading,
    runs_gates,
    targets,
    uninstall_line,
)
from agent_hooks.installs.plan import check_links, choose_address, diff_of, finish, installing, make_all, uninstalling
from agent_hooks.installs.registry import elsewhere, forget, generated_files, missing_directories, remember
from agent_hooks.installs.seat import unseating
from agent_hooks.server.control import refresh_ports
from agent_hooks.server.fixed import fixed_here, fixed_in
from agent_hooks.server.journal import forget_agent, forget_starts
from agent_hooks.server.mod_files import remove_mods, write_mod
from agent_hooks.server.stub import write_stub
from agent_hooks.storage.files import StorageError


class Wish(NamedTuple):
    """The wishes of the person for an installation, and the directory to install for.

    - `target`: the settings file
    - `prove`: show that a user wants to change or remove entries.  It gets the agent homes that they name
    - `by_http`: whether events are posted, `None` for no change
    - `listened`: the events that hooks listen to
    - `shows_diff`: print each change, as a dry run does too
    """

    cwd: str
    target: str | None
    prove: Callable[[tuple[str, ...]], None]
    listened: Collection[str] = ()
    dry_run: bool = False
    all_events: bool = False
    shows_diff: bool = False
    by_http: bool | None = None


def prove_once(command: str, *words: str) -> Callable[[tuple[str, ...]], None]:
    """Return the function that shows once that a user runs a command.  It raises `AgentHooksError`."""
    return cache(lambda homes: prove_loosening(command, *words, homes=homes))


def default_target(bridge: Bridge, cwd: str) -> str:
    """Return the settings file of an installation without an option: the person's own file of the project, if any."""
    known = targets(bridge, cwd)
    return "local" if "local" in known else "user"


def lacks(bridge: Bridge, wish: Wish) -> str | None:
    """Return the reason why an agent has no such settings file; `None` if it has."""
    if wish.target is None or wish.target in targets(bridge, wish.cwd):
        return None
    whose = {"local": "of a project for one person", "project": "that the people of a project share"}
    return f"{bridge.name} has no settings file {whose.get(wish.target, wish.target)}"


# ---- in --------------------------------------------------------------------------------------------------------------


def install(bridge: Bridge, wish: Wish) -> None:
    """Install into one settings file of an agent, and print each change.  Raises `SettingsError`."""
    cwd, name = wish.cwd, wish.target or default_target(bridge, wish.cwd)
    _finish(bridge, wish)
    known, before = targets(bridge, cwd), installations(bridge, cwd)
    if name == "local" and (shared := _shared_gates(bridge, wish.cwd, before)):
        tell(f"{short(shared.target.path)} already has entries that run your hooks, for all people of this project")
        tell("nothing was changed, because with entries in both files your hooks would run twice for each event")
        _warn_of_the_rest(bridge, cwd, before)
        return
    address = choose_address(at_target(before, known["local"]), wish.by_http) if name == "local" else None
    edits = installing(bridge, cwd, name, before, listened=wish.listened, address=address, all_events=wish.all_events)
    path = edits[0].path
    unignored = how_to_ignore(os.path.realpath(path), short) if name == "local" else None
    if address is not None and unignored is not None:
        raise SettingsError(f"{short(path)}: git would commit the port and the token; first run: {unignored}")
    _show(bridge, edits, wish)
    if not wish.dry_run:
        _prove_change(bridge, edits, wish, generated=name != "project")
        _make(bridge, edits, generated=name != "project")
        refresh_ports(cwd)
    _report(bridge, edits, address, dry_run=wish.dry_run)
    tell(f"to remove it: {uninstall_line(bridge, name)}")
    _warn_of_the_rest(bridge, cwd, before if wish.dry_run else installations(bridge, cwd))
    if bridge.is_untried:
        warn(f"no real {bridge.name} has tried these entries, which come from its documents")
    if name == "project" and shutil.which(PROGRAM) is None:
        warn(f"there is no {PROGRAM} on the PATH, so every tool call here is denied; each person here needs it there")
    if unignored is not None:
        warn(f"git does not ignore {short(path)}; to make it ignore the file: {unignored}")


def _finish(bridge: Bridge, wish: Wish) -> None:
    """Finish the changes of a command that was killed; a dry run changes nothing."""
    for path in [] if wish.dry_run else finish(bridge):
        tell(f"{short(path)}: changed, to finish a command that was interrupted")


def _prove_change(bridge: Bridge, edits: Iterable[Edit], wish: Wish, *, generated: bool) -> None:
    """Show that a user wants to change or remove entries, or the variables with which they run.

    A first installation does neither, and an installation that only adds events does neither.  Raises `AgentHooksError`.
    """
    before, after = list[Installed](), list[Installed]()
    for each in edits:
        if each.format == bridge.settings_format:
            for found, settings in zip((before, after), each.settings(), strict=True):
                found += bridge.installed(settings)
    moves = generated and fixed_in(str(stub_path(bridge))) not in (None, fixed_here())
    if moves or any(each not in after for each in before):
        wish.prove(_homes(bridge, before))


def _homes(bridge: Bridge, entries: Iterable[Installed]) -> tuple[str, ...]:
    """Return the agent homes that entries name, which need not be the one of this process."""
    named = (os.path.split(word) for each in entries for word in each.command)
    directories = (path for path, name in named if name.startswith(stub_path(bridge).stem + "."))
    return tuple(sorted({home for path in directories if os.path.isdir(home := os.path.dirname(path))}))


def _shared_gates(bridge: Bridge, cwd: str, before: Sequence[Installation]) -> Installation | None:
    """Return the file that people share, if it runs our command at every gate."""
    project = targets(bridge, cwd).get("project")
    shared = at_target(before, project) if project is not None else None
    return shared if shared is not None and runs_gates(bridge, shared) else None


def _show(bridge: Bridge, edits: Iterable[Edit], wish: Wish) -> None:
    """Print the changes as diffs, if the person wants to see them; trust that is taken in their name always is."""
    for each in edits:
        if each.changes and (wish.shows_diff or wish.dry_run or each.format == "toml"):
            echo(f"{diff_of(bridge, each)}\n")


def _make(bridge: Bridge, edits: Sequence[Edit], *, generated: bool) -> None:
    """Write the generated files, then the settings that name them, and then the trust in the entries."""
    made = missing_directories([str(stub_path(bridge)), *(each.path for each in edits)])
    try:
        if generated:
            write_generated(bridge)
    except StorageError as exc:
        raise SettingsError(f"{exc}; nothing was changed") from None
    remember(bridge, edits[0].path, made)
    make_all(bridge, edits)
    if edits[0].changes:
        forget_starts(bridge.name)


def write_generated(bridge: Bridge) -> None:
    """Write the files that entries name, unless they are up to date.  Raises `StorageError`."""
    if bridge.plugin:
        # Imported here, because most agents run a command.
        from agent_hooks.server.plugin_file import write_plugin

        write_plugin(bridge, fixed=fixed_here())
    else:
        write_stub(bridge, fixed_here())
    if bridge.mod:
        write_mod(bridge)


def _report(bridge: Bridge, edits: Sequence[Edit], address: Address | None, *, dry_run: bool) -> None:
    """Print a line for each changed file and each backup, and one for the events by HTTP."""
    first, would_be = edits[0], "would be " * dry_run
    tell(f"{short(first.path)}: {_outcome(bridge, first, would_be)}")
    for each in edits:
        if each is not first and each.changes:
            tell(f"{short(each.path)}: {would_be}{_other_outcome(each)}")
        if each.keep and each.changes:
            tell(f"{short(each.backup)}: {would_be}written, with the old text of the file")
    if address is not None:
        tell(_posted_events(bridge, first, address))


def _outcome(bridge: Bridge, planned: Edit, would_be: str) -> str:
    """Return in words how an edit changes our entries."""
    if not planned.changes:
        return "is installed already"
    before, after = ({entry.event for entry in bridge.installed(settings)} for settings in planned.settings())
    added, removed = after - before, before - after
    done = f"{would_be}installed, {count(len(added), 'event')} added, {len(removed)} removed"
    return done if added or removed else f"{done}, the entries brought up to date"


def _other_outcome(planned: Edit) -> str:
    """Return in words the purpose of an edit beside that of the settings."""
    if planned.format == "toml":
        return "changed, so that the entries are trusted"
    if set(planned.settings()[1]) - set(planned.settings()[0]):
        return "changed, so that no other mod overrules the entries"
    return "taken out, because each event would fire twice"


def _posted_events(bridge: Bridge, planned: Edit, address: Address) -> str:
    """Return in words which events come by HTTP from now on."""
    if posted := [entry.event for entry in bridge.installed(planned.settings()[1]) if entry.address is not None]:
        return f"by HTTP, to port {address.port} of this machine: {', '.join(posted)}"
    again = f"{PROGRAM} install {bridge.name} --http"
    return f"by HTTP: no event so far; once hooks listen to one that may be posted, again: {again}"


def _warn_of_the_rest(bridge: Bridge, cwd: str, found: Sequence[Installation]) -> None:
    """Warn of unreadable settings files, and of events that fire twice; name the entries that another agent runs too."""
    for each in found:
        if each.problem:
            warn(each.problem)
    for pair in doubled(bridge, found):
        warn(f"{pair.text(short)}; take one out: {pair.remedy}")
    for text in reading(bridge, cwd, short):
        tell(text)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    echo(f"warning: {text}", err=True)


# ---- out -------------------------------------------------------------------------------------------------------------


def uninstall(bridge: Bridge, wish: Wish) -> bool:
    """Take our entries out of an agent's settings, and print each change; return whether that was possible.

    The generated files go with the last entry that names them.  Raises `SettingsError`.
    """
    known = targets(bridge, wish.cwd)
    asked = [known[name].path for name in known if wish.target in (None, name)]
    found = _found(bridge, wish)
    entries = [entry for each in found for entry in each.entries]
    if not wish.dry_run:
        if entries or generated_files(bridge):
            wish.prove(_homes(bridge, entries))
        _finish(bridge, wish)
        found = _found(bridge, wish)
    done = [each.target.path for each in found if not each.problem]
    kept, others = _remaining(bridge, wish, done)
    for each in found:
        if each.problem:
            complain(each.problem)
        else:
            _take_out(bridge, each, wish, unseats=each.target.name == "user" and not (kept or others))
    if not found:
        tell(f"{', '.join(map(short, asked))}: nothing of agent_hooks is there")
    for path in others:
        tell(f"{path}: is installed too; the generated file stays for it")
    if not (kept or others):
        _clean_up(bridge, wish)
    return not any(each.problem for each in found)


def _found(bridge: Bridge, wish: Wish) -> list[Installation]:
    return [each for each in installations(bridge, wish.cwd) if wish.target in (None, each.target.name)]


def _remaining(bridge: Bridge, wish: Wish, done: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return this project's and other projects' settings files with agent_hooks entries, without the files in `done`."""
    here = [each.target.path for each in installations(bridge, wish.cwd) if each.target.path not in done]
    return here, elsewhere(bridge, [*here, *done])


def _take_out(bridge: Bridge, installation: Installation, wish: Wish, *, unseats: bool) -> None:
    check_links(installation.target, wish.cwd)
    edits = uninstalling(bridge, installation, unseats=unseats)
    _show(bridge, edits, wish)
    if not wish.dry_run:
        make_all(bridge, edits)
        refresh_ports(wish.cwd)
    for planned in edits:
        if planned.changes:
            gone = "; the file held nothing else, so it is removed" if planned.after is None else ""
            tell(f"{short(planned.path)}: {'would be ' * wish.dry_run}uninstalled{gone}")
        _tell_backup(planned)


def _tell_backup(planned: Edit) -> None:
    """Name a backup that stays, because the user has changed the file since the installation."""
    if planned.changes and os.path.lexists(planned.backup) and not planned.spent:
        text = "the file was changed since, and keeps these changes; its text from before the installation is in"
        tell(f"{text} {short(planned.backup)}; if you do not need that: rm {shlex.quote(planned.backup)}")


def _unseat(bridge: Bridge, wish: Wish) -> None:
    """Take the mod out of the user's settings, and remove its files."""
    planned = unseating(bridge, wish.cwd)
    _show(bridge, [planned], wish)
    if not wish.dry_run:
        make_all(bridge, [planned])
        remove_mods()
    if planned.changes:
        tell(f"{short(planned.path)}: the mod {'would be ' * wish.dry_run}taken out")
        _tell_backup(planned)


def _clean_up(bridge: Bridge, wish: Wish) -> None:
    """Remove the generated files, which no entry names any more."""
    if bridge.mod:
        _unseat(bridge, wish)
    if wish.dry_run:
        gone = generated_files(bridge)
    else:
        forget_agent(bridge.name)
        gone = forget(bridge)
    for path in gone:
        tell(f"{short(path)}: {'would be ' * wish.dry_run}removed")


def failing(bridge: Bridge, exc: AgentHooksError) -> None:
    """Print the failure of one agent, after which the others follow."""
    complain(f"{bridge.name}: {exc}")
