"""`agent-hooks trust`: read the hooks and settings of a project, and approve them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

import click

from agent_hooks.cli.completing import file_names
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.proving import prove_user
from agent_hooks.cli.reports.approvals import print_approvals
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.trust_question import MOST_BYTES, MOST_FILES, is_large
from agent_hooks.cli.streams import is_quiet, tell
from agent_hooks.cli.trusting import (
    ask,
    can_ask,
    confirm,
    confirm_loosened,
    day,
    own_waiting,
    say,
    say_done,
    say_lines,
    show,
    take_up,
    tell_approved,
)
from agent_hooks.errors import count
from agent_hooks.storage.rights import check_owner
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.trust.manifest import DIRECTORIES, TrustError, absolute
from agent_hooks.trust.own import own_files
from agent_hooks.trust.policy import REMEDY, ProjectTrust, Trust, TrustedSources
from agent_hooks.trust.store import Entry, Origin, TrustStore

_NOT_HERE = (
    "no person can be asked here, because stdin and stderr are not both a terminal; run it in a terminal, or name the "
    "set that you have read: agent-hooks trust --digest HEX (agent-hooks trust --list prints it); --yes approves "
    "without reading"
)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_LONGEST = 12 * 3600
"""The most seconds of `--follow`."""


@click.command("trust")
@click.argument("files", nargs=-1, metavar="[FILE]...", shell_complete=file_names)
@cwd_option
@click.option("--yes", is_flag=True, help="Approve without a question. In CI this also runs the code of a fork.")
@click.option("--digest", metavar="HEX", help="Approve only the set of this digest, without a question; for CI.")
@click.option(
    "--follow", metavar="TIME", help="Approve each save for that time, 2h for example, and print its changes."
)
@click.option("--always", is_flag=True, help="Approve any content of your own repository, on every branch.")
@click.option(
    "--list", "as_list", is_flag=True, help="List the projects, their digests and approvals; approve nothing."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    cwd: str,
    yes: bool,
    digest: str | None,
    follow: str | None,
    always: bool,
    as_list: bool,
    as_json: bool,
) -> None:
    """Show the hooks and settings of the project, and approve them when you say yes.

    Until then nothing of them is run or obeyed. With FILE, only these files are shown in full, and the others in
    summary; a set of more than 200 files or 1 MiB is approved only when FILEs (or directories) name all of it.
    """
    _check_options(files, yes=yes, digest=digest, follow=follow, always=always, as_list=as_list, as_json=as_json)
    seconds = None if follow is None else _seconds(follow)
    trust = Trust()
    if as_list:
        # An agent could approve the set whose digest it reads here.
        refuse_below_an_agent("trust --list")
        ctx.exit(FAILED if print_approvals(trust, cwd, as_json=as_json) else OK)
    refuse_below_an_agent("trust")
    sources = trust.sources(cwd)
    if sources.problem is not None:
        if not _rebuild(trust.store()):
            ctx.exit(FAILED)
        sources = trust.sources(cwd)
    if digest is not None:
        _approve_digest(sources, trust.store(), digest)
        return
    told = not yes and can_ask() and confirm_loosened(trust.store())
    if told and not sources.projects and follow is None and own_waiting() is None:
        return
    if not always and not files and (own := own_waiting()) is not None:
        if not (yes or can_ask()):
            raise click.UsageError(_NOT_HERE)
        if not take_up(own, yes=yes):
            ctx.exit(FAILED)
        if not sources.projects and follow is None:
            return
    owns = follow is not None and not files and own_files(trust.agent_home).found.files
    chosen = [] if owns and not sources.projects else _chosen(sources, files)
    if not (yes or can_ask()) and (always or follow or any(each.waits for each in chosen)):
        raise click.UsageError(_NOT_HERE)
    if always:
        ctx.exit(_approve_always(chosen, trust, yes=yes))
    if not _approve(chosen, trust.store(), files, yes=yes):
        ctx.exit(FAILED)
    if seconds is not None:
        # The saves that follow are approved without another question.
        origin = None if any(each.waits for each in chosen) else prove_user("trust --follow")
        # Imported here, because only this option needs it.
        from agent_hooks.cli.following import follow_saves

        for project in chosen:
            # Saves are approved only as long as the project is, so an empty one is approved too.
            if project.state == "empty" or origin is not None:
                trust.store().approve(project.key, project.found, origin=origin)
        ctx.exit(follow_saves(trust, [each.project for each in chosen], seconds))


def _check_options(files: Sequence[str], *, as_list: bool, as_json: bool, **options: object) -> None:
    """Raise `click.UsageError` for options that exclude one another."""
    given = [f"--{name}" for name, value in options.items() if value]
    if as_json and not as_list:
        raise click.UsageError("--json goes with --list only")
    if as_list and (given or files):
        raise click.UsageError(
            f"--list approves nothing, so it takes neither FILE nor {given[0] if given else '--yes'}"
        )
    for name in ("digest", "always"):
        others = [each for each in given if each not in (f"--{name}", "--yes")]
        if options[name] and (others or files):
            raise click.UsageError(f"--{name} and {others[0] if others else 'FILE'} exclude one another")
    if options["digest"] and not re.fullmatch(r"[0-9a-fA-F]{64}", str(options["digest"])):
        raise click.UsageError("--digest wants the 64 hexadecimal digits that agent-hooks trust --list prints")


def _seconds(text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})([smh])", text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < seconds <= _LONGEST:
        raise click.UsageError(f"--follow wants a time such as 30m or 2h, at most 12h, not {text!r}")
    return seconds


# ---- a damaged store -------------------------------------------------------------------------------------------------


def _rebuild(store: TrustStore) -> bool:
    """Ask whether to rebuild a damaged store, and return whether it was; raises `TrustError` without a terminal."""
    if store.newer or not can_ask():
        raise TrustError(store.problem or "the trust store changed; try again")
    say(one_line(f"{store.problem}"))
    entries = store.restorable()
    if entries:
        say_lines(["", "These approvals are in its copy:", *(f"  {_approvals(each)}" for each in entries.values())])
        question = "Restore them?"
    else:
        say_lines(
            ["", "It has no copy, so all approvals are lost. The hooks of each project wait until you approve them."]
        )
        question = "Begin an empty store?"
    if not confirm(question):
        return False
    origin = prove_user("trust")
    store.rebuild(entries)
    if origin is not None:
        store.note("trust", origin)
    say_done("the trust store was rebuilt")
    return True


def _approvals(entry: Entry) -> str:
    last = f", the last on {day(entry.approved[-1].at)}" if entry.approved else ""
    number = "any content" if entry.always else count(len(entry.approved), "approved set")
    return f"{one_line(entry.root)}: {number}{last}"


# ---- which files -----------------------------------------------------------------------------------------------------


def _chosen(sources: TrustedSources, files: Sequence[str]) -> list[ProjectTrust]:
    """Return the projects that apply here, or those that the files belong to; raises `click.UsageError`."""
    if not sources.projects:
        raise TrustError(f"no directory from {sources.place.top} on has an .agent, so there is nothing to approve")
    if not files:
        return list(sources.projects)
    for file in files:
        if not any(_names(project, [file]) for project in sources.projects):
            known = ", ".join(each.directory for each in sources.projects)
            raise click.UsageError(f"{one_line(file)} belongs to no set that can be approved here: {one_line(known)}")
    return [project for project in sources.projects if _names(project, files)]


def _names(project: ProjectTrust, files: Sequence[str]) -> list[str]:
    """Return the names of the files in a set that `files`, also directories, stand for."""
    paths = {path for file in files for path in _spellings(file)}
    return [file.name for file in project.found.files if _is_below(absolute(project.project, file.name), paths)]


def _spellings(file: str) -> Iterator[str]:
    path = os.path.abspath(file)
    yield path
    yield os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _is_below(path: str, directories: set[str]) -> bool:
    while path not in directories:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


# ---- approving -------------------------------------------------------------------------------------------------------


def _approve(chosen: list[ProjectTrust], store: TrustStore, files: Sequence[str], *, yes: bool) -> bool:
    """Approve the sets that wait, and return whether all of them are approved now."""
    everything = True
    proofs = list[Origin | None]()
    asks = yes or can_ask()
    # A project above without any hook would hide the line of the one that the person has in mind.
    telling = [each for each in chosen if each.state != "empty"] or chosen
    for project in chosen:
        doubted = project.doubt is not None and can_ask()
        if not (project.waits or doubted or (project.note is not None and asks)):
            if project in telling:
                tell(f"{one_line(project.project)}: {_words(project)}")
            continue
        if project.found.problem is not None:
            raise TrustError(project.found.problem)
        named = _names(project, files) if files else None
        _check_size(project, named)
        if yes:
            # One code is enough for all of them.
            proofs = proofs or [prove_user("trust --yes")]
            if not is_quiet():
                # The changes of a set that was approved before are short enough for a log.
                show(project, store, named=[] if project.approval is None else None)
            store.approve(project.key, project.found, origin=proofs[0])
            tell_approved(project)
        else:
            everything &= ask(project, store, by="trust", named=_in_full(project, named, files))
    return everything


def _words(project: ProjectTrust) -> str:
    if (text := project.note or project.doubt) is not None:
        # No person can be asked here, and this command is the remedy of the note.
        note = text.removeprefix(f"{project.directory}: ").removesuffix(REMEDY)
        return f"approved already, digest {project.found.digest}; {note}{REMEDY}, at a terminal, or with --yes"
    words = {"always": "any content is approved (--always)", "empty": "nothing to approve"}
    return words.get(project.state, f"approved already, digest {project.found.digest}")


def _check_size(project: ProjectTrust, named: list[str] | None) -> None:
    """Raise `click.UsageError` for a large set of which not every file was named."""
    left = len(project.found.files) - len(named or ())
    if is_large(project.found) and left:
        size = f"{count(len(project.found.files), 'file')} of {project.found.size >> 10} KiB"
        limit = f"{MOST_FILES} files or {MOST_BYTES >> 20} MiB"
        remedy = f"agent-hooks trust {shlex.quote(one_line(project.directory))}"
        raise click.UsageError(
            f"{one_line(project.directory)} has {size}, and a set of more than {limit} is approved only by name; "
            f"{count(left, 'file')} not named; name files or directories, after you have read them: {remedy}"
        )


def _in_full(project: ProjectTrust, named: list[str] | None, files: Sequence[str]) -> list[str] | None:
    """Return the files to show in full; of a large set, those that were named themselves."""
    if named is None or not is_large(project.found):
        return named
    paths = {path for file in files for path in _spellings(file)}
    return [name for name in named if absolute(project.project, name) in paths]


def _approve_digest(sources: TrustedSources, store: TrustStore, digest: str) -> None:
    """Approve the set of a digest; raises `TrustError` when no project here has it."""
    origin = prove_user("trust --digest")
    digest = digest.lower()
    for project in sources.projects:
        if project.found.digest == digest and project.found.problem is None:
            if project.state not in ("approved", "always") or (project.doubt is not None and origin is None):
                store.approve(project.key, project.found, origin=origin)
            tell_approved(project)
            return
    found = ", ".join(f"{one_line(each.project)} has {each.found.digest}" for each in sources.projects)
    there = found or f"there is no .agent in {sources.place.top}"
    raise TrustError(f"no set here has the digest {digest}: {there}; nothing was approved")


def _approve_always(chosen: list[ProjectTrust], trust: Trust, *, yes: bool) -> int:
    """Approve any content of the innermost project; raises `TrustError` when others can write there."""
    project = chosen[-1]
    paths = [trust.agent_home, trust.store().path, project.project, project.directory]
    paths += [os.path.join(project.directory, name) for name in DIRECTORIES]
    paths += [absolute(project.project, file.name) for file in project.found.files]
    for path in paths:
        if (reason := check_owner(path)) is not None:
            raise TrustError(f"--always would run code of other users: {reason}")
    store = trust.store()
    if not yes:
        show(project, store)
        say("any content of this repository will count, on every branch that is checked out, without a question")
        if not confirm(f"{one_line(project.project)}\nIs it your own, and may it run any code from now on?"):
            return FAILED
    origin = prove_user("trust --always")
    if project.found.problem is None:
        store.approve(project.key, project.found, origin=origin)
    store.set_always(project.key, project.project, always=True)
    say_done(f"approved, with any content: {one_line(project.project)}; to end this: agent-hooks untrust")
    return OK
