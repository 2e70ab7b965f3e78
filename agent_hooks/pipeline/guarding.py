"""The guards' step of a tool call, and the facts of the machine that guards need.

Guards do no I/O.  This module finds out the few facts that need some: the real path of a file, the home directory, the
temporary directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.errors import HookError, describe, hook_error, shown
from agent_hooks.guards.base import Guard, GuardedCall, path_of
from agent_hooks.pipeline.call import JudgedCall
from agent_hooks.pipeline.machine import MACHINE
from agent_hooks.trust.unlocked import unlocked_directories
from agent_hooks.values.answers import Ask, Block

if TYPE_CHECKING:
    from agent_hooks.dispatch.recording import CallTrail


def pass_guards(call: JudgedCall) -> JudgedCall:
    """Let the guards block or ask."""
    guarded = guarded_call(call.tool.name, call.input, call.surroundings.cwd)
    trail = call.trail
    if trail is None:
        found = ask_guards(call.engine.guards, guarded, call.engine.report)
    else:
        found = ask_guards(call.engine.guards, guarded, call.engine.report, partial(_note, trail))
    if isinstance(found, Block):
        return call.blocked(found)
    return call.asking(*found) if found else call


def guarded_call(tool_name: str, input: Mapping[str, Any], cwd: str) -> GuardedCall:
    """Return a call with the facts of the place that it would run in."""
    home = os.path.expanduser("~")
    path = path_of(input)
    real = None
    if path is not None and "\0" not in path:
        real = os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))
    temp = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # compared with paths, never opened
    command = input.get("command")
    text = command if isinstance(command, str) else ""
    return GuardedCall(
        tool_name=tool_name,
        input=input,
        cwd=cwd,
        home=home,
        temp=(temp,),
        real_path=real,
        unlocked=unlocked_directories(),
        process=os.getpid(),
        present=_present(text, cwd),
        stash=_stash(text, cwd),
        machine=MACHINE,
    )


def _present(command: str, cwd: str) -> tuple[str, ...]:
    """Return the hooks and settings that exist around `cwd`, for a command that may search for files."""
    if "find" not in command:
        return ()
    # Imported here, because few commands search for files.
    from agent_hooks.pipeline.present import control_files

    return control_files(cwd)


def _stash(command: str, cwd: str) -> tuple[bool, bool]:
    """Return whether a stash would move hooks away, without and with untracked files, for a command that stashes."""
    if "stash" not in command:
        return False, False
    from agent_hooks.pipeline.present import stash_moves  # here, as above

    return stash_moves(cwd)


def _note(trail: CallTrail, guard: Guard, began: float, verdict: object, failure: str) -> None:
    """Add a guard's step to the records of a call."""
    programs = getattr(guard, "programs", ())
    if failure:
        trail.add("guards", guard.name, began, failure="failed", text=failure, blocked=True, programs=programs)
    else:
        trail.add("guards", guard.name, began, verdict, programs=programs)


def _ignore(guard: Guard, began: float, verdict: object, failure: str) -> None:
    """Keep no step."""


def ask_guards(
    guards: Sequence[Guard],
    call: GuardedCall,
    report: Callable[[HookError], None],
    note: Callable[[Guard, float, object, str], None] = _ignore,
) -> Block | list[Ask]:
    """Return the first block of a guard, or the questions of all.

    A guard that raises, or answers anything else, blocks the call, and the failure is reported.  `note` gets each guard
    with the time at which it began, its verdict, and the text of its failure.
    """
    asks: list[Ask] = []
    for guard in guards:
        began = perf_counter()
        verdict, failure = attempt(guard.judge, call)
        if failure is None and verdict is not None and not isinstance(verdict, Block | Ask):
            failure = TypeError(f"a guard answers Block, Ask or None, not {shown(verdict)}")
        if failure is not None:
            error = f"the guard failed: {describe(failure)}"
            note(guard, began, None, error)
            report(
                hook_error(failure, hook=guard.name, handler="judge", event="tool_call", outcome="blocked", error=error)
            )
            return Block(error, guard.name, "guard")
        note(guard, began, verdict, "")
        if isinstance(verdict, Block):
            return replace(verdict, by=verdict.by or guard.name, cause="guard")
        if verdict is not None:
            asks.append(verdict if verdict.by else replace(verdict, by=guard.name))
    return asks
