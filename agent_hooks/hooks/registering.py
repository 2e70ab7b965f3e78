"""Import one hook and call its `register(api)`, or take all of it back.

A file loads whole or not at all: one that fails leaves no handler, task or module behind, only an error with file, line
and traceback.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, MutableMapping
from types import ModuleType
from typing import Any, NamedTuple

from agent_hooks.concurrency.deadlines import cancelled_class
from agent_hooks.concurrency.forks import await_in_parent, end_child_of, forks
from agent_hooks.dispatch.mistakes import failure_text
from agent_hooks.errors import HookUsageError, describe, honest, place_in, shown, traceback_text
from agent_hooks.hook_packages import INIT
from agent_hooks.hooks.api import HookAPI
from agent_hooks.hooks.bytecode import contents
from agent_hooks.hooks.imports import forget_module, import_hook
from agent_hooks.hooks.loaded import LoadError
from agent_hooks.settings import DEFAULT_TIMEOUT

# Seconds for all `on_unload` functions of a hook that could not be loaded.
UNDO_TIMEOUT = 5.0


class LoadedModule(NamedTuple):
    """The module of a hook, or the exception with which it failed to load."""

    module: ModuleType | None = None
    failure: BaseException | None = None


async def load_module(
    api: HookAPI, resolved: str, files: Mapping[str, bytes] | None, kept: MutableMapping[str, bytes] | None = None
) -> LoadedModule:
    """Import the hook at the real path `resolved`, and register it; nothing of one that fails stays behind.

    `files`, `kept`: see `import_hook`.
    """
    module: ModuleType | None = None
    before = forks()

    def name() -> str:
        return f"hook {api.path}"

    try:
        with api.adopting():
            module = import_hook(resolved, files, kept)
            end_child_of(name, before)
            await _register(_register_of(module), api, name)
        end_child_of(name, before)
    # A hook may raise anything, and its author reads of it in the `LoadError`; SystemExit must not end the agent.
    except BaseException as exc:
        end_child_of(name, before, exc)
        exc = honest(exc)
        await take_back(api, module)
        if isinstance(exc, cancelled_class()) or (isinstance(exc, KeyboardInterrupt) and not _is_raised(exc)):
            raise
        return LoadedModule(failure=exc)
    return LoadedModule(module)


def failed_load(exc: BaseException, path: str, resolved: str) -> LoadError:
    """Return the error of the hook at `path` that could not be loaded from `resolved`."""
    package = os.path.basename(resolved) == INIT
    file, line = place_in(exc, os.path.dirname(resolved) if package else resolved)
    text = _load_text(exc, resolved)
    # A script for another agent reads stdin while it is imported, or ends the process.
    if isinstance(exc, Exception | SystemExit) and line is not None and not package and _has_no_register(resolved):
        text += "; and there is no register: a hook is no program, it defines `def register(api): ...`"
    return LoadError(path, text, line, traceback_text(exc), file if package else None)


def _register_of(module: ModuleType) -> Callable[[HookAPI], Any]:
    register = getattr(module, "register", None)
    if callable(register):
        return register  # type: ignore[no-any-return]  # `_register` checks the result
    found = "register is not callable" if hasattr(module, "register") else "there is no register"
    parts = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    other = any(hasattr(each, name) for each in parts for name in ("transform", "filter_output"))
    hint = "; a transformer belongs in .agent/transformers (see docs/transformers.md)" if other else ""
    raise HookUsageError(f"{found}: a hook defines `def register(api): ...`{hint}")


def _has_no_register(path: str) -> bool:
    """Tell whether the text of a hook has no `register`, as that of a script for another agent."""
    try:
        return b"register" not in contents(path)
    except OSError:
        return False


async def _register(register: Callable[[HookAPI], Any], api: HookAPI, name: Callable[[], str]) -> None:
    result = register(api)
    if result is None or not inspect.isawaitable(result):
        _refuse_mapping(result)
        return
    # Imported here, because it is large, and few hooks have anything to wait for.
    import anyio

    with anyio.move_on_after(DEFAULT_TIMEOUT) as deadline:
        _refuse_mapping(await await_in_parent(name, result))
    if deadline.cancelled_caught:
        raise HookUsageError(f"register did not end within {DEFAULT_TIMEOUT:g} s; start long work with api.start_task")


def _refuse_mapping(result: object) -> None:
    """Raise `HookUsageError` for handlers that `register` returns: they would never be called."""
    if isinstance(result, Mapping) and result:
        # The names of a stranger's mapping may be anything.
        name = shown(next(iter(result)))
        raise HookUsageError(
            f"register returned a mapping with {name}, and nothing reads it: write api.on(event, handler) for an event, "
            "and api.intercept(point, handler) for a point"
        )


async def take_back(api: HookAPI, module: ModuleType | None) -> None:
    """Remove everything that a failed hook had set up."""
    api.handlers.clear()
    api.queued_tasks.clear()
    if api.unload_callbacks:
        # Imported here, as in `_register`.
        import anyio

        # The author reads only the first failure, the one that made the hook fail.
        await api.unload(_ignore, deadline=anyio.current_time() + UNDO_TIMEOUT, seconds=UNDO_TIMEOUT)
    if module is not None:
        forget_module(module)


def _ignore(callback: object, failure: BaseException) -> None:
    """Ignore a failure while a hook is taken back."""


def _is_raised(exc: KeyboardInterrupt) -> bool:
    """Tell whether a `raise` in the code of a hook raised this, and not Ctrl-C, which interrupts any instruction.

    An event loop turns Ctrl-C into a `raise` of its own.
    """
    # Imported here, because this is rare.
    from opcode import opmap

    last = exc.__traceback__
    if last is None:
        return False
    while last.tb_next is not None:
        last = last.tb_next
    frame = last.tb_frame
    room = str(frame.f_globals.get("__name__")).partition(".")[0]
    by_raise = frame.f_code.co_code[last.tb_lasti] in (opmap["RAISE_VARARGS"], opmap["RERAISE"])
    return by_raise and room not in ("asyncio", "trio", "anyio", "signal")


def _load_text(exc: BaseException, path: str) -> str:
    if isinstance(exc, SyntaxError):
        return f"{type(exc).__name__}: {exc.msg}"
    if isinstance(exc, SystemExit):
        code = "" if exc.code is None else shown(exc.code)
        return f"called sys.exit({code}) while loading; a hook must not end the agent"
    if isinstance(exc, KeyboardInterrupt):
        return "raised KeyboardInterrupt while loading; a hook must not end the agent"
    if isinstance(exc, TypeError) and re.match(r"register\(\) (takes|missing) ", str(exc)):
        return f"{describe(exc)}: a hook defines `def register(api): ...`"
    return failure_text(exc, hook=path)
