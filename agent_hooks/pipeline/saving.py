"""Save the working tree before the first call of a turn that may change files, and at the end of the turn.

A turn of reads costs nothing.  A checkpoint that cannot be made blocks no call: the user is warned once, and the call
continues, because no rule has stopped the agent.  If a checkpoint takes too long, a call that is known to delete,
overwrite or lose something becomes a question.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.dispatch.context import Surroundings
from agent_hooks.errors import AgentHooksError, describe, log
from agent_hooks.pipeline.asking import ask_person
from agent_hooks.pipeline.call import JudgedCall, ToolRun
from agent_hooks.turn_notes import (
    SessionNote,
    Work,
    note_open,
    open_turns,
    remove_session_note,
    session_note,
    store_of,
    sweep_session_notes,
    working_tree,
    write_session_note,
)
from agent_hooks.values.answers import Ask
from agent_hooks.values.effects import Effects
from agent_hooks.values.events import TRIAL

T = TypeVar("T")

# Characters of a prompt that are kept.
_SHOWN = 200
_NONE = "no checkpoint, so `agent-hooks undo` will not know this turn"
_LATE = "its checkpoint was not made in time: `agent-hooks undo` could not bring that back"
_NO_END = "no checkpoint at the end of the turn, so `agent-hooks undo` takes later edits for those of the agent"
# The note of a warning about a checkpoint that failed, of whatever kind.
_FAILED = "a checkpoint failed"
READERS = frozenset({"read", "ls", "find", "grep"})
"""Our tools that only read."""


def changes_files(call: JudgedCall) -> bool:
    """Return whether a call may write or delete files, or lose work; one whose effects are not known may."""
    if call.tool.name in READERS:
        return False
    effects, failure = attempt(call.effects, call.tool.name, call.input)
    return failure is not None or may_change(effects)


def may_change(effects: Effects) -> bool:
    """Return whether a call with these effects may write or delete files, or lose work; unknown ones may."""
    if effects.unknown or effects.discards or effects.installs:
        return True
    accesses = (*(each.access for each in effects.paths), *(each.access for each in effects.devices))
    return "write" in accesses or "delete" in accesses


def destroys(call: JudgedCall, top: str) -> bool:
    """Return whether a call is known to delete, overwrite or lose something in a working tree."""
    effects, failure = attempt(call.effects, call.tool.name, call.input)
    if failure is not None:
        return True
    if effects.discards or any(each.access == "write" for each in effects.devices):
        return True
    inside = f"{os.path.realpath(top)}{os.sep}"
    return any(
        each.access == "delete" or (each.access == "write" and (not each.certain or os.path.lexists(each.path)))
        for each in effects.paths
        if not each.elsewhere and (not each.certain or f"{each.real}{os.sep}".startswith(inside))
    )


class TurnKeeper:
    """Keeps the checkpoints of one runner's turns: `runner.engine.keeper = TurnKeeper("codex", hide, tell, record)`.

    `client`: the agent that the runner works for; `hide`: takes the secrets out of a prompt; `tell`: shows the person a
    warning; `record`: gets each turn that has ended with calls that may have changed files, the directory of the working
    tree, and the changed files.
    """

    def __init__(
        self,
        client: str,
        hide: Callable[[str], str],
        tell: Callable[[Surroundings, str], object],
        record: Callable[[Surroundings, Work, str, tuple[str, ...]], object],
    ) -> None:
        self._client = client
        self._hide = hide
        self._tell = tell
        self._record = record
        # The turns that go on, by session.
        self._notes: dict[str, SessionNote] = {}

    # ---- turns

    async def begin(self, prompt: str, place: Surroundings, entry_index: int) -> None:
        """Begin the first turn of a prompt; a turn before it that had no end ends now."""
        if place.agent_id != "main":
            # The work of a sub-agent belongs to the turn of its session.
            return
        former = self._note(place)
        if former is not None and not former.over:
            await self.end(place)
        text = " ".join(self._hide(prompt).split())
        text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        self._start(place, text, entry_index, () if former is None else former.warned)

    async def next(self, place: Surroundings, entry_index: int) -> None:
        """Begin the next turn of a prompt, if the one before has changed files."""
        former = self._note(place)
        if former is not None and former.trees and place.agent_id == "main":
            await self.end(place)
            self._start(place, former.work.prompt, entry_index, former.warned)
        elif former is not None and not former.over:
            former.work = replace(former.work, entry_index=entry_index)

    async def end(self, place: Surroundings) -> None:
        """End the turn of a session, and save the files if it changed some."""
        note = self._note(place)
        if note is None or note.over:
            return
        if note.trees:
            await event_loop()
            # Imported here, because a turn of reads never needs it.
            from agent_hooks.checkpoints.keeping import end

            for top in sorted(note.trees):
                files = await self._try(end(top, note.work), note, place, _NO_END)
                if files is not None:
                    self._record(place, note.work, top, files)
            sweep_session_notes()
        if note.warned:
            # The next turn of the session does not warn of the same again.
            note.trees, note.running, note.over = set(), [], True
            self._write(note)
        else:
            self._notes.pop(note.work.session_id, None)
            remove_session_note(note.work.session_id)

    # ---- calls

    def turn_of(self, place: Surroundings) -> tuple[str, str]:
        """Return the id of the turn that goes on, and the name of its checkpoint; empty texts where there is none."""
        note = self._note(place)
        if note is None or note.over:
            return "", ""
        return note.work.turn, str(note.work.entry_index) if note.trees else ""

    def tree_of(self, call: JudgedCall) -> str | None:
        """Return the working tree whose files a call may change, `None` if there is none or it changes no files."""
        place = call.surroundings
        top = None if place.session_id == TRIAL else working_tree(place.cwd)
        return top if top is not None and changes_files(call) else None

    def note_of(self, call: JudgedCall) -> SessionNote | None:
        """Return the note of the turn in which a call runs that may change files, `None` for any other call."""
        note = self._note(call.surroundings)
        return note if note is not None and call.tool_call_id in note.running else None

    async def before(self, call: JudgedCall, top: str) -> JudgedCall:
        """Save the files of the working tree `top` before a call, if it is the turn's first there that may change any."""
        place = call.surroundings
        note = self._note(place)
        if note is None or note.over:
            # Its prompt was not reported.
            note = self._start(place, "", int(time.time() * 1000), () if note is None else note.warned)
        note.running.append(call.tool_call_id)
        if top in note.trees:
            await self._between(top, note, place)
        else:
            await event_loop()
            from agent_hooks.checkpoints.keeping import begin  # here, as above

            if await self._try(begin(place.cwd, note.work), note, place):
                note.trees.add(top)
        self._write(note)
        if top not in note.trees and self._late and destroys(call, top):
            return await self._ask(call)
        return call

    async def _ask(self, call: JudgedCall) -> JudgedCall:
        """Put the question about a call whose changes undo could not take back."""
        ask = Ask(f"{call.tool.name} deletes, overwrites or loses something, and {_LATE}", self._late, by="checkpoints")
        asked = ask_person(replace(call, asks=(ask,)))
        asked = replace(asked if isinstance(asked, JudgedCall) else await asked, asks=(*call.asks, ask))
        if asked.block is not None and (note := self.note_of(call)) is not None:
            note.running.remove(call.tool_call_id)
            self._write(note)
        return asked

    async def after(self, run: ToolRun, note: SessionNote) -> ToolRun:
        """Note that a call of a turn has ended; while other turns go on here, the files are saved."""
        note.running.remove(run.call.tool_call_id)
        for top in sorted(note.trees):
            await self._between(top, note, run.call.surroundings)
        self._write(note)
        return run

    async def _between(self, top: str, note: SessionNote, place: Surroundings) -> None:
        store, turn = store_of(top), note.work.turn
        attempt(partial(note_open, store, turn, calls=len(note.running)))
        if set(open_turns(store)) - {turn}:
            await event_loop()
            from agent_hooks.checkpoints.keeping import between  # here, as above

            await self._try(between(top, note.work, len(note.running)), note, place)

    # ---- notes

    def _note(self, place: Surroundings) -> SessionNote | None:
        session = place.session_id
        if session not in self._notes and (found := session_note(session)) is not None:
            self._notes[session] = found
        return self._notes.get(session)

    def _start(
        self, place: Surroundings, prompt: str, entry_index: int, warned: tuple[str, ...] | list[str] = ()
    ) -> SessionNote:
        work = Work(
            turn=os.urandom(8).hex(),
            session_id=place.session_id,
            agent_id=place.agent_id,
            agent=self._client,
            prompt=prompt,
            entry_index=entry_index,
        )
        note = self._notes[place.session_id] = SessionNote(work=work, warned=list(warned))
        if working_tree(place.cwd) is not None:
            self._write(note)
        return note

    def _write(self, note: SessionNote) -> None:
        # Without the note, another process begins a turn of its own.
        attempt(write_session_note, note)

    async def _try(
        self, saving: Coroutine[Any, Any, T], note: SessionNote, place: Surroundings, text: str = _NONE
    ) -> T | None:
        """Await a checkpoint and return it, `None` if it was not made; the person hears once of the reason for that."""
        # Why this checkpoint was not made in time, empty when it was made or failed otherwise.
        self._late = ""
        try:
            made = await saving
        except AgentHooksError as exc:
            if isinstance(exc.__cause__, TimeoutError):
                self._late = str(exc)
            self._warn(text, str(exc), note, place)
            return None
        # Any other exception is a bug of ours.  A checkpoint blocks no call, so the call goes on; the log gets the
        # traceback, and the person hears of the error once.
        except Exception as exc:
            log().exception("a checkpoint failed")
            self._warn(text, describe(exc), note, place)
            return None
        for skipped in getattr(made, "skipped", ()):
            self._warn("not in the checkpoints", str(skipped), note, place)
        return made

    def _warn(self, text: str, why: str, note: SessionNote, place: Surroundings) -> None:
        # A checkpoint that fails has many texts on a full disk, and the person needs one of them in a session.
        known = f"{text}: {why}" if text not in (_NONE, _NO_END) else _FAILED
        if known not in note.warned:
            note.warned.append(known)
            attempt(self._tell, place, f"{text}: {why}")


# ---- the steps of a call


def save_files(call: JudgedCall) -> JudgedCall | Coroutine[Any, Any, JudgedCall]:
    """Save the files before a call that may change some."""
    keeper: TurnKeeper | None = call.engine.keeper
    top = None if keeper is None else keeper.tree_of(call)
    if keeper is None or top is None:
        return call
    if call.trail is not None:
        call.trail.may_change = True
    return keeper.before(call, top)


def note_end(run: ToolRun) -> ToolRun | Coroutine[Any, Any, ToolRun]:
    """Note the end of a call that may have changed files."""
    keeper: TurnKeeper | None = run.call.engine.keeper
    note = None if keeper is None else keeper.note_of(run.call)
    return run if keeper is None or note is None else keeper.after(run, note)


async def begin_turn(engine: Any, prompt: str, place: Surroundings, entry_index: int) -> None:
    """Begin the turn of a prompt, where checkpoints are made."""
    if engine.keeper is not None:
        await engine.keeper.begin(prompt, place, entry_index)


async def next_turn(engine: Any, place: Surroundings, entry_index: int) -> None:
    """Begin the next turn of a prompt, where checkpoints are made."""
    if engine.keeper is not None:
        await engine.keeper.next(place, entry_index)


async def end_turn(engine: Any, place: Surroundings) -> None:
    """End the turn of a session, where checkpoints are made."""
    if engine.keeper is not None:
        await engine.keeper.end(place)


def keep_turns(engine: Any, client: str) -> None:
    """Make checkpoints of the turns of a client from now on."""

    def record(place: Surroundings, work: Work, top: str, files: tuple[str, ...]) -> None:
        if engine.recorder is not None:
            engine.recorder.saved(work, top, files, place)

    engine.keeper = TurnKeeper(client, engine.hide, engine.tell, record)
    engine.subscriptions_changed()


def forget_turns(engine: Any) -> None:
    """Make no checkpoints from now on."""
    if engine.keeper is not None:
        engine.keeper = None
        engine.subscriptions_changed()
