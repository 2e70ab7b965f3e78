"""`agent-hooks checkpoints`: list the checkpoints of a working tree, compare them, and restore one."""

from __future__ import annotations

from datetime import datetime

import anyio
import click
import msgspec

from agent_hooks import checkpoints
from agent_hooks.checkpoints import Checkpoint, CheckpointError, Restored, printable
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.screen.wording import console, plain_table
from agent_hooks.errors import count, did_you_mean

_DAY = 24 * 60 * 60  # seconds
# Characters of a session id in the table.
_SHORT = 8

session_option = click.option(
    "--session", "session", metavar="ID", help="Only this session; the beginning of its id is enough."
)


@click.group("checkpoints")
def command() -> None:
    """List the checkpoints of a working tree, compare them, and restore one.

    The hook examples/hooks/git_checkpoint.py makes one before each turn.
    """


@command.command("list")
@session_option
@cwd_option
@json_option
def list_command(session: str | None, cwd: str, as_json: bool) -> None:
    """List the checkpoints, the oldest first."""
    found = anyio.run(_of_session, cwd, session)
    if as_json:
        rows = [{**msgspec.structs.asdict(each), "entry_index": each.entry_index} for each in found]
        for row in rows:
            row["skipped"] = [{"path": printable(one.path), "reason": one.reason} for one in row["skipped"]]
        click.echo(msgspec.json.encode(rows).decode())
    elif not found:
        click.echo("no checkpoints; the hook examples/hooks/git_checkpoint.py makes one before each turn")
    else:
        table = plain_table("session", "name", "made", "not saved")
        for each in found:
            made = datetime.fromtimestamp(each.created).astimezone().strftime("%Y-%m-%d %H:%M:%S")
            table.add_row(each.session_id[:_SHORT], each.name, made, "; ".join(map(str, each.skipped)))
        console().print(table)


@command.command("diff")
@click.argument("name", required=False)
@session_option
@cwd_option
def diff_command(name: str | None, session: str | None, cwd: str) -> None:
    """Show the changes since checkpoint NAME (as `list` shows it), or since the last one."""

    async def patch() -> str:
        return (await checkpoints.diff(cwd, await _chosen(cwd, session, name))).patch

    click.echo(anyio.run(patch), nl=False)


@command.command("restore")
@click.argument("name", required=False)
@session_option
@cwd_option
def restore_command(name: str | None, session: str | None, cwd: str) -> None:
    """Restore the files as they were at checkpoint NAME, or at the last one; `undo` takes that back.

    Ignored files, the index, stash, HEAD and branches are not touched.
    """

    async def restored() -> Restored:
        return await checkpoints.restore(cwd, await _chosen(cwd, session, name))

    _report(anyio.run(restored))


@command.command("undo")
@session_option
@cwd_option
def undo_command(session: str | None, cwd: str) -> None:
    """Undo the last restore; a second undo takes back the first."""

    async def restored() -> Restored:
        return await checkpoints.undo(cwd, await _session_id(cwd, session))

    _report(anyio.run(restored))


@command.command("prune")
@session_option
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Those made more than DAYS ago.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="All but the newest N of each session.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@cwd_option
def prune_command(session: str | None, older_than: float | None, keep: int | None, everything: bool, cwd: str) -> None:
    """Forget checkpoints, so that git can free their space."""
    if older_than is None and keep is None and not everything:
        raise click.UsageError("which ones? Say --older-than DAYS, --keep N or --all")

    async def pruned() -> tuple[Checkpoint, ...]:
        seconds = None if older_than is None else older_than * _DAY
        return await checkpoints.prune(cwd, await _session_id(cwd, session), older_than=seconds, keep_last=keep or 0)

    click.echo(f"forgot {count(len(anyio.run(pruned)), 'checkpoint')}")


async def _session_id(cwd: str, beginning: str | None) -> str | None:
    """Return the only session id with this beginning, `None` for `None`; raises `CheckpointError`."""
    if beginning is None:
        return None
    ids = sorted({each.session_id for each in await checkpoints.list(cwd)})
    matching = [each for each in ids if each.startswith(beginning)]
    if beginning in matching:
        return beginning
    if not matching:
        there = f"; there are: {', '.join(ids)}" if ids else ""
        raise CheckpointError(f"--session {beginning}: no session with checkpoints has an id that begins so{there}")
    if len(matching) > 1:
        raise CheckpointError(f"--session {beginning!r}: several sessions begin so: {', '.join(matching)}")
    return matching[0]


async def _of_session(cwd: str, session: str | None) -> tuple[Checkpoint, ...]:
    return await checkpoints.list(cwd, await _session_id(cwd, session))


async def _chosen(cwd: str, session: str | None, name: str | None) -> Checkpoint:
    """Return the checkpoint that a person names; without a session, the one with the newest checkpoint counts."""
    found = await _of_session(cwd, session)
    if not found:
        raise CheckpointError("there are no checkpoints here")
    mine = {each.name: each for each in found if each.session_id == found[-1].session_id}
    if name is None:
        return max(mine.values(), key=lambda each: (each.entry_index is not None, each.created))
    if name not in mine:
        short = found[-1].session_id[:_SHORT]
        raise CheckpointError(f"session {short} has no checkpoint {name!r}{did_you_mean(name, mine)}")
    return mine[name]


def _report(done: Restored) -> None:
    which = f"of session {done.checkpoint.session_id[:_SHORT]}"
    click.echo(f"restored {done.checkpoint.name} {which}: {_files(done.written, 'written')}, ", nl=False)
    click.echo(f"{_files(done.deleted, 'deleted')}; `agent-hooks checkpoints undo` takes it back")
    for each in done.left:
        click.echo(f"not restored: {each}", err=True)


def _files(paths: tuple[str, ...], done: str) -> str:
    return f"{count(len(paths), 'file')} {done}"
