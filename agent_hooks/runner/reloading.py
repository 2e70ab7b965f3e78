"""The change from one generation of hooks to the next, while the program goes on.

How hooks are loaded again.

 1. The caller has loaded the new generation, all of it: its tasks are queued, and nothing of it is in force.
 2. A hook whose new version could not be loaded stays: it hears nothing of the reload, and its tasks go on.
 3. Events of a lane wait from here on, until the new generation is in force.
 4. The old hooks hear `session` shutdown.  Their tasks are cancelled, and their `on_unload` functions are called; each
    of these steps has a deadline.
 5. The new hooks get a copy of `api.state`, and take the place of the old ones.
 6. The apis and modules of the old ones end.  The tasks of the new ones begin, and they hear `session` start.

 From step 4 to the beginning of the tasks nothing can cancel the change, so that no call is judged by half a generation.
 In step 6 the new generation is in force, and nothing that fails there takes it back.  A task that cannot begin is
 reported, a process that cannot be served lets its gates block, and a handler of the start fails like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from agent_hooks.dispatch.handlers import name_of
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.errors import HookUsageError, hook_error
from agent_hooks.guards import carry_over
from agent_hooks.hooks.forgetting import forget_hooks
from agent_hooks.hooks.loaded import LoadedHook, LoadError
from agent_hooks.runner.engine import LEFT, Engine
from agent_hooks.runner.generation import Generation, hand_over
from agent_hooks.runner.reloaded import Reloaded
from agent_hooks.values.content import Entry
from agent_hooks.values.events import SessionEvent, SessionReason


async def reload(
    engine: Engine, generation: Generation, errors: Sequence[LoadError], *, entries: Sequence[Entry] = ()
) -> Reloaded:
    """Put `generation` in force, and end the one before it; `entries`: those of the session, for its events.

    `generation.hooks` holds the hooks of the engine that stay.  Raises `HookUsageError` when nothing can be loaded again
    here; the new hooks are unloaded then.
    """
    old = list(engine.hooks)
    stay = {hook.path for hook in old if hook in generation.hooks}
    leaving = [hook for hook in old if hook.path not in stay]
    coming = [hook for hook in generation.hooks if hook.path not in stay]
    try:
        _check(engine, generation, leaving, coming)
        await engine.handlers_done()
        await engine.enter_lanes()
    # Ctrl-C, a cancellation or an error: nothing has changed, and the new hooks go.
    except BaseException:
        await discard(engine, coming)
        raise
    import anyio

    swapped = False
    try:
        with anyio.CancelScope(shield=True):
            engine.freeze()
            await engine.emit_reload(_event(engine, "shutdown", entries), stay)
            await engine.background.end_those_of(leaving)
            await engine.processes.end_those_of(leaving)
            if engine.left:
                raise HookUsageError(LEFT)
            left_out = (*engine.processes.take_lost(coming), *_hand_over(leaving, coming))
            # The program may have added an interceptor meanwhile, and a swap must not end halfway.
            _check_ids(engine, leaving, coming)
            if generation.guards is not engine.guards:
                carry_over(engine.guards, generation.guards)
            engine.swap(generation, leaving, coming)
            engine.thaw()
            swapped = True
            try:
                _free(engine, [hook for hook in leaving if not hook.api.bindings])
            finally:
                # A function of an old hook may raise KeyboardInterrupt at its end.
                await engine.processes.start_those_of(coming)
                engine.background.start_those_of(coming)
        left_out = (*left_out, *engine.processes.take_lost(coming))
        await engine.emit_reload(_event(engine, "start", entries), stay)
    finally:
        engine.leave_lanes()
        if not swapped:
            # The runner was left meanwhile, or a handler raised KeyboardInterrupt.  The old gates stay frozen, because
            # some may have unsubscribed already; the next reload thaws them.
            await discard(engine, coming)
    failed = tuple(error for error in errors if error.path not in stay)
    return Reloaded(tuple(error for error in errors if error.path in stay), failed, left_out)


async def discard(engine: Engine, hooks: Sequence[LoadedHook]) -> None:
    """Unload hooks that were loaded and never put in force."""
    import anyio

    with anyio.CancelScope(shield=True):
        await engine.background.end_those_of(hooks)
    _free(engine, hooks)


def _free(engine: Engine, hooks: Sequence[LoadedHook]) -> None:
    for hook in hooks:
        forget_hooks([hook], partial(_report, engine, hook.path))


def _report(engine: Engine, path: str, function: object, exc: BaseException) -> None:
    engine.report(hook_error(exc, hook=path, handler=name_of(function), event="end", outcome="continued"))


def _check(engine: Engine, generation: Generation, leaving: Sequence[LoadedHook], coming: Sequence[LoadedHook]) -> None:
    if engine.left:
        raise HookUsageError(LEFT)
    if not engine.background.started:
        raise HookUsageError(
            "only a runner that was entered can load hooks again: `async with HookRunner(...) as runner`"
        )
    if current_dispatch(engine) is not None:
        raise HookUsageError(
            "a handler cannot reload the hooks, because the reload waits for its end; do it between calls"
        )
    _check_ids(engine, leaving, coming)


def _check_ids(engine: Engine, leaving: Sequence[LoadedHook], coming: Sequence[LoadedHook]) -> None:
    taken = engine.ids_of_others([hook.path for hook in leaving])
    for interceptor in chain.from_iterable(hook.api.interceptors for hook in coming):
        if interceptor.id in taken:
            raise HookUsageError(f"there are two interceptors {interceptor.id!r}; give one of them another id")
        taken.add(interceptor.id)


def _hand_over(leaving: Sequence[LoadedHook], coming: Sequence[LoadedHook]) -> tuple[str, ...]:
    by_path = {hook.path: hook for hook in leaving}
    # A former version gets the state of the hook.
    pairs = [(by_path.get(hook.path) or by_path.get(hook.former_of), hook) for hook in coming if hook.error is None]
    return tuple(text for old, new in pairs if old is not None for text in hand_over(old, new))


def _event(engine: Engine, reason: SessionReason, entries: Sequence[Entry]) -> SessionEvent:
    file = engine.surroundings.session_file
    return SessionEvent(reason=reason, entries=tuple(entries), session_file=file, reload=True)
