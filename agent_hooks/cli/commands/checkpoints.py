"""`agent-hooks checkpoints`: list the checkpoints of a working tree, show, compare and restore them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import anyio
import click
import msgspec

from agent_hooks import checkpoints
from agent_hooks.checkpoints import Change, Checkpoint, CheckpointError, Restored, Turn, UndoPlan, printable
from agent_hooks.cli.common import WholeHelpGroup
from agent_hooks.cli.completing import checkpoint_names
from agent_hooks.cli.lifetime import FAILED
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.screen.turns import not_saved, report_undone, when
from agent_hooks.cli.screen.wording import console, plain_table
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.streams import can_show_question, echo, echo_data, echo_json, is_quiet, tell
from agent_hooks.cli.taking_back import agreed
from agent_hooks.errors import count, did_you_mean
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.values.wire import camel

_DAY = 24 * 60 * 60  # seconds
# Characters of a session id in the table.
_SHORT = 8
# The files that are named before a restore, of each kind.
_MOST_FILES = 20

session_option = click.option(
    "--session", "session", metavar="ID", help="Only this session; the beginning of its id is enough."
)


@click.group("checkpoints", cls=WholeHelpGroup)
def command() -> None:
    """List the checkpoints of a working tree, show and compare them, and restore one.

    One is made before each turn that changes files. To take turns back: agent-hooks undo
    """


@command.command("list")
@session_option
@cwd_option
@json_option
def list_command(session: str | None, cwd: str, as_json: bool) -> None:
    """List the checkpoints, the oldest first, one row for each different tree.

    The first column is the number of the turn, as `show` and `agent-hooks undo` count.
    """
    rows = anyio.run(_rows, cwd, session)
    if as_json:
        echo_json(msgspec.json.encode([row.plain() for row in rows]).decode())
    elif not rows:
        echo("no checkpoints; one is made before each turn of an agent that changes files in a git working tree")
    else:
        table = plain_table("turn", "session", "name", "made", "agent", "files", "prompt", "not saved")
        for row in rows:
            table.add_row(*row.cells())
        console().print(table)
        if ignored := anyio.run(checkpoints.ignored, cwd):
            echo(not_saved(ignored))


@command.command("show")
@click.argument("turn", type=click.IntRange(min=1), default=1, metavar="[N]")
@cwd_option
def show_command(turn: int, cwd: str) -> None:
    """Show what turn N changed, as `list` and `agent-hooks undo` count: 1 is the newest."""
    echo_data(anyio.run(checkpoints.turn_diff, cwd, turn))


@command.command("diff")
@click.argument("name", required=False, shell_complete=checkpoint_names)
@session_option
@cwd_option
def diff_command(name: str | None, session: str | None, cwd: str) -> None:
    """Show the changes since checkpoint NAME (as `list` shows it), or since the last one."""

    async def patch() -> str:
        return (await checkpoints.diff(cwd, await _chosen(cwd, session, name))).patch

    echo_data(anyio.run(patch))


@command.command("restore")
@click.argument("name", required=False, shell_complete=checkpoint_names)
@session_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Without NAME, take the last checkpoint.")
@cwd_option
@click.pass_context
def restore_command(ctx: click.Context, name: str | None, session: str | None, yes: bool, cwd: str) -> None:
    """Restore the files of checkpoint NAME, or choose a checkpoint from a list.

    Shows the files that change, and asks. Ignored files, the index, stash, HEAD and branches are not touched. To take a
    restore back: agent-hooks checkpoints undo
    """
    refuse_below_an_agent("checkpoints restore")
    if name is None and not yes and can_show_question():
        chosen = _picked(cwd, session)
    else:
        chosen = anyio.run(_chosen, cwd, session, name)
    with working("comparing the files with the checkpoint"):
        changes = (anyio.run(checkpoints.diff, cwd, chosen)).changes
    if not (yes and is_quiet()):
        _show_changes(changes)
    if changes and not yes and not agreed(f"Restore {_title(chosen)}?", f"restore {_title(chosen)}"):
        ctx.exit(FAILED)
    with working("restoring"):
        done = anyio.run(checkpoints.restore, cwd, chosen)
    _report(done)


def _picked(cwd: str, session: str | None) -> Checkpoint:
    """Return the checkpoint that the user chooses from a list, the newest first."""
    # Imported here, because they take long to import, and only this list needs them.
    from agent_hooks.ui.dialogs import Option
    from agent_hooks.ui.terminal import TerminalUI

    rows = anyio.run(_rows, cwd, session)[::-1]
    if not rows:
        raise CheckpointError("there are no checkpoints here")
    options = [Option(f"{_title(row.checkpoint)}  {when(row.checkpoint.created)}", row.cells()[-2]) for row in rows]
    index = anyio.run(partial(TerminalUI().choose, "Which checkpoint?", options, searches=True))
    if index is None:
        raise click.Abort
    return rows[index].checkpoint


def _show_changes(changes: Sequence[Change]) -> None:
    """Show the files that a restore would write and delete."""
    # The checkpoint comes first, so a file that was added since is deleted.
    for verb, paths in (
        ("write", [each.path for each in changes if each.kind != "A"]),
        ("delete", [each.path for each in changes if each.kind == "A"]),
    ):
        for path in paths[:_MOST_FILES]:
            echo(f"{verb}: {printable(path)}")
        if len(paths) > _MOST_FILES:
            echo(f"{verb}: {count(len(paths) - _MOST_FILES, 'more file')}")


def _title(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.name} of session {checkpoint.session_id[:_SHORT]}"


@command.command("undo")
@session_option
@cwd_option
def undo_command(session: str | None, cwd: str) -> None:
    """Take back the last restore, or the last `agent-hooks undo`; a second one brings that back again."""
    refuse_below_an_agent("checkpoints undo")
    found = anyio.run(_last_change, cwd, session)
    if isinstance(found, UndoPlan):
        if not report_undone(anyio.run(checkpoints.take_back, cwd, found)):
            click.get_current_context().exit(FAILED)
        return

    async def restored() -> Restored:
        return await checkpoints.undo(cwd, await _session_id(cwd, session))

    with working("restoring"):
        done = anyio.run(restored)
    _report(done)


async def _last_change(cwd: str, session: str | None) -> UndoPlan | None:
    """Return the plan that takes the last undo back, `None` if a restore came after it, or a session is named."""
    plan = None if session is not None else await checkpoints.plan_redo(cwd)
    restores = [each for each in await checkpoints.list(cwd) if each.entry_index is None]
    if plan is None or (restores and restores[-1].created > plan.turns[0].created):
        return None
    return plan


@command.command("prune")
@session_option
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Those made more than DAYS ago.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="All but the newest N of each session.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@cwd_option
def prune_command(session: str | None, older_than: float | None, keep: int | None, everything: bool, cwd: str) -> None:
    """Forget checkpoints, so that git can free their space."""
    refuse_below_an_agent("checkpoints prune")
    if older_than is None and keep is None and not everything:
        raise click.UsageError("which ones? Say --older-than DAYS, --keep N or --all")

    async def pruned() -> tuple[Checkpoint, ...]:
        seconds = None if older_than is None else older_than * _DAY
        return await checkpoints.prune(cwd, await _session_id(cwd, session), older_than=seconds, keep_last=keep or 0)

    tell(f"forgot {count(len(anyio.run(pruned)), 'checkpoint')}")


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


class _Row(NamedTuple):
    """A checkpoint, and the turn before which it was made."""

    checkpoint: Checkpoint
    turn: Turn | None

    def cells(self) -> list[str]:
        """Return the texts of the table's columns."""
        each, turn = self.checkpoint, self.turn
        made = when(each.created)
        skipped = "; ".join(map(str, each.skipped))
        if turn is None:
            return ["", each.session_id[:_SHORT], each.name, made, "", "", "", skipped]
        number = "undone" if turn.number is None else str(turn.number)
        files = count(len(turn.paths), "file")
        return [number, each.session_id[:_SHORT], each.name, made, turn.work.agent, files, turn.work.prompt, skipped]

    def plain(self) -> dict[str, object]:
        """Return the row for JSON."""
        each, turn = self.checkpoint, self.turn
        fields = {**msgspec.structs.asdict(each), "entry_index": each.entry_index}
        row: dict[str, object] = {camel(name): value for name, value in fields.items()}
        row["skipped"] = [{"path": printable(one.path), "reason": one.reason} for one in each.skipped]
        row["turn"] = None if turn is None else turn.number
        row["turnId"] = None if turn is None else turn.work.turn
        row["agent"] = None if turn is None else turn.work.agent
        row["prompt"] = None if turn is None else turn.work.prompt
        row["files"] = None if turn is None else [printable(path) for path in turn.paths]
        row["undone"] = turn is not None and turn.number is None
        return row


async def _rows(cwd: str, session: str | None) -> list[_Row]:
    """Return a row for each checkpoint, the oldest first; those of turns that changed nothing are left out."""
    found = await _of_session(cwd, session)
    turns = {turn.work.turn: turn for turn in await checkpoints.turns(cwd)} if found else {}
    rows: list[_Row] = []
    for each in found:
        if each.turn and each.turn not in turns:
            continue
        row = _Row(each, turns.get(each.turn))
        # A hook of one's own may have saved the same tree; the row of the turn says more.
        if rows and row.turn is not None and rows[-1].turn is None and _same(rows[-1].checkpoint, each):
            rows.pop()
        rows.append(row)
    return rows


def _same(one: Checkpoint, other: Checkpoint) -> bool:
    return (one.session_id, one.tree) == (other.session_id, other.tree)


async def _of_session(cwd: str, session: str | None) -> tuple[Checkpoint, ...]:
    return await checkpoints.list(cwd, await _session_id(cwd, session))


async def _chosen(cwd: str, session: str | None, name: str | None) -> Checkpoint:
    """Return the named checkpoint, or by default the latest one of the last session."""
    found = await _of_session(cwd, session)
    if not found:
        raise CheckpointError("there are no checkpoints here")
    if name is None:
        mine = [each for each in found if each.session_id == found[-1].session_id]
        return max(mine, key=lambda each: (each.entry_index is not None, each.created))
    named = [each for each in found if each.name == name]
    if not named:
        raise CheckpointError(
            f"there is no checkpoint {name!r} here{did_you_mean(name, {each.name for each in found})}"
        )
    if len(named) > 1:
        sessions = ", ".join(each.session_id for each in named)
        raise CheckpointError(f"several sessions have a checkpoint {name!r}. Say --session with one of: {sessions}")
    return named[0]


def _report(done: Restored) -> None:
    which = _title(done.checkpoint)
    failed = f", {_files(done.failed, 'failed')}" if done.failed else ""
    restored = "restored a part of" if failed else "restored"
    files = f"{_files(done.written, 'written')}, {_files(done.deleted, 'deleted')}{failed}"
    tell(f"{restored} {which}: {files}; `agent-hooks checkpoints undo` takes it back")
    for each in done.kept:
        echo(f"kept: {each}", err=True)
    for left in done.left:
        echo(f"not restored: {left}", err=True)
    for one in done.failed:
        echo(f"failed: {one}", err=True)
    if failed:
        click.get_current_context().exit(FAILED)


def _files(paths: Sequence[object], done: str) -> str:
    return f"{count(len(paths), 'file')} {done}"
