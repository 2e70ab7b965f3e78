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
from agent_hooks.guards.commands import NO_COMMANDS, commands_of
from agent_hooks.guards.objects import Odd
from agent_hooks.pipeline.call import JudgedCall
from agent_hooks.pipeline.machine import RealMachine
from agent_hooks.trust.unlocked import unlocked_directories
from agent_hooks.values.answers import Ask, Block

if TYPE_CHECKING:
    from agent_hooks.dispatch.recording import CallTrail


def pass_guards(call: JudgedCall) -> JudgedCall:
    """Let the guards block or ask."""
    stays_open = getattr(call.tool, "stays_open", False)
    place = call.surroundings
    # No person answers a replay, which shows the calls that the guards stop.
    attended = place.has_ui and place.mode != "replay"
    guarded, failure = attempt(
        partial(guarded_call, call.tool.name, call.input, place.cwd, stays_open=stays_open, attended=attended)
    )
    if failure is not None:
        return call.blocked(_failed(failure, "guards", call.engine.report))
    trail = call.trail
    if trail is None:
        found = ask_guards(call.engine.guards, guarded, call.engine.report)
    else:
        found = ask_guards(call.engine.guards, guarded, call.engine.report, partial(_note, trail))
    if isinstance(found, Block):
        return call.blocked(found)
    return call.asking(*(each for ask in found for each in (ask, *ask.also))) if found else call


def guarded_call(
    tool_name: str, input: Mapping[str, Any], cwd: str, *, stays_open: bool = False, attended: bool = False
) -> GuardedCall:
    """Return a call with the facts of the place that it would run in.

    `stays_open`: the agent may type into the command while it runs; `attended`: a person can answer a question.
    """
    home = os.path.expanduser("~")
    path = path_of(input)
    machine = RealMachine(cwd, home)
    real = None
    if path is not None and "\0" not in path:
        real = machine.real(os.path.join(cwd, os.path.expanduser(path)))
    temp = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # compared with paths, never opened
    text = _commands(tool_name, input)
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
        machine=machine,
        stays_open=stays_open,
        attended=attended,
    )


def _commands(tool_name: str, input: Mapping[str, Any]) -> str:
    """Return the texts of all commands of a call, empty for a call without any."""
    try:
        commands = commands_of(tool_name, input)
    except Odd:
        return ""
    return "\n".join((*commands.run, *commands.typed)) if commands is not NO_COMMANDS else ""


def _present(command: str, cwd: str) -> tuple[str, ...]:
    """Return the hooks and settings that exist around `cwd`, for a command that may find files or leave some out."""
    if "find" not in command and "sparse" not in command:
        return ()
    # Imported here, because few commands do.
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
            block = _failed(failure, guard.name, report)
            note(guard, began, None, block.reason)
            return block
        note(guard, began, verdict, "")
        if isinstance(verdict, Block):
            return replace(verdict, by=verdict.by or guard.name, cause="guard")
        if verdict is not None:
            asks.append(verdict if verdict.by else replace(verdict, by=guard.name))
    return asks


def _failed(failure: BaseException, name: str, report: Callable[[HookError], None]) -> Block:
    """Report the failure of a guard, and return the block that follows from it."""
    error = f"the guard failed: {describe(failure)}"
    report(hook_error(failure, hook=name, handler="judge", event="tool_call", outcome="blocked", error=error))
    return Block(error, name, "guard")
