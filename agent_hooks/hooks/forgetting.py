"""Free a hook that has ended: its modules, and the registrations by which the process would keep them for ever.

A resident process loads hooks again and again, each time as new modules.  A registration that is meant to last as long as
the process would keep them in memory: an exit function, a finalizer, a logger, a logging handler.  For a hook the end of
the process is its own end, so its exit functions and finalizers are called then.

A thread that a hook has left behind cannot be freed; `threads_of` names it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FrameType, FunctionType, MethodType
from typing import Any

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.hooks.imports import files_of, forget_module, package_of
from agent_hooks.hooks.loaded import LoadedHook

Report = Callable[[object, BaseException], object]

# The exit functions of hooks with their arguments, by private package; `None` as long as Python's own `atexit` has them.
_exits: dict[str, list[partial[Any]]] | None = None


def adopt_exit_functions() -> None:
    """Let `atexit.register` keep the functions of hooks for the end of their hook, from now on.

    To be called by a process that outlives its hooks.
    """
    global _exits
    import atexit

    _exits = {}
    python_register, python_unregister = atexit.register, atexit.unregister

    def register(function: Callable[..., Any], /, *args: Any, **options: Any) -> Callable[..., Any]:
        package = _owner_of(function)
        if package is None or _exits is None:
            return python_register(function, *args, **options)
        _exits.setdefault(package, []).append(partial(function, *args, **options))
        return function

    def unregister(function: Callable[..., Any], /) -> None:
        python_unregister(function)
        for kept in (_exits or {}).values():
            kept[:] = [each for each in kept if each.func != function]

    atexit.register, atexit.unregister = register, unregister


def forget_hooks(hooks: Iterable[LoadedHook], report: Report) -> None:
    """Call the exit functions and finalizers of hooks that have ended, and forget their modules.

    `report` is called with each function that fails and with its exception.  Objects of the hooks that a thread still
    holds raise `HookUsageError` from then on.
    """
    for hook in hooks:
        hook.api.ended = True
        if hook.process is not None:
            hook.process.abandon()
        if hook.module is None:
            continue
        package = package_of(hook.module.__name__)
        for function in reversed((_exits or {}).pop(package, [])):
            _call(function, report)
        for finalizer in _finalizers_of(package):
            _call(finalizer, report)
        _forget_logging(package)
        _forget_lines(files_of(hook.module))
        forget_module(hook.module)
    # A hook that puts its directory on the path does so at each load.
    sys.path[:] = dict.fromkeys(sys.path)
    # These caches keep the classes of a hook that are named in its annotations.
    for clear in getattr(sys.modules.get("typing"), "_cleanups", ()):
        clear()


def threads_of(hooks: Iterable[LoadedHook]) -> dict[str, list[str]]:
    """Return a text for each thread that runs code of these hooks, by the path of the hook."""
    owners = {package_of(hook.module.__name__): hook.path for hook in hooks if hook.module is not None}
    found: dict[str, list[str]] = {}
    for package, text in _threads():
        if package in owners:
            found.setdefault(owners[package], []).append(text)
    return found


# ---- registrations


def _call(function: Callable[[], Any], report: Report) -> None:
    exception = attempt(function).exception
    if exception is not None:
        report(function.func if isinstance(function, partial) else function, exception)


def _owner_of(function: object) -> str | None:
    """Return the private package of the hook that has defined a function, `None` for a function of other code."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, MethodType):
        owner = _owner_of(function.__func__)
        return owner or _owner_of(type(function.__self__))
    name = function.__globals__.get("__name__") if isinstance(function, FunctionType) else None
    name = name or getattr(function, "__module__", None) or getattr(type(function), "__module__", None)
    return package_of(name) or None if isinstance(name, str) else None


def _finalizers_of(package: str) -> list[Callable[[], Any]]:
    weakref = sys.modules["weakref"]
    # weakref has no public list of its finalizers.
    registry = getattr(weakref.finalize, "_registry", {})
    return [each for each, info in list(registry.items()) if _is_of(getattr(info, "func", None), package)]


def _is_of(function: object, package: str) -> bool:
    """Tell whether a function belongs to a hook; faster than `_owner_of`, because there may be many."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__module__", None)
    return isinstance(name, str) and name.startswith(package) and package_of(name) == package


def _forget_logging(package: str) -> None:
    """Remove the loggers that are named after a hook's modules, and its own logging handlers at other loggers."""
    if "logging" not in sys.modules:
        return
    import logging

    loggers = logging.Logger.manager.loggerDict
    for name in [name for name in list(loggers) if name.startswith(package) and package_of(name) == package]:
        del loggers[name]
    for logger in (logging.getLogger(), *loggers.values()):
        for handler in getattr(logger, "handlers", ())[:]:
            if _owner_of(handler) == package:
                logger.removeHandler(handler)  # type: ignore[union-attr]  # a placeholder has no handlers


def _forget_lines(files: Iterable[str]) -> None:
    """Forget the lines that tracebacks have read, which keep the loader of a module."""
    lines = getattr(sys.modules.get("linecache"), "cache", {})
    for file in files:
        lines.pop(file, None)


# ---- threads


def _threads() -> Iterator[tuple[str, str]]:
    """Yield the private package of the hook that a thread runs, and a text about the thread."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        package, place = _in_frames(frames.get(thread.ident or 0))
        # A timer that waits, for example, has no frame of the hook yet.
        targets = [getattr(thread, name, None) for name in ("_target", "function")]
        owner = package or next((each for target in targets if (each := _owner_of(target))), None) or _owner_of(thread)
        if owner is not None:
            yield owner, f"the thread {thread.name!r}{place}"


def _in_frames(frame: FrameType | None) -> tuple[str | None, str]:
    """Return the private package of the innermost frame that runs a hook's code, and its place."""
    while frame is not None:
        if package := package_of(str(frame.f_globals.get("__name__"))):
            return package, f" at {frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None, ""


def package_of_coroutine(coroutine: object) -> str | None:
    """Return the private package of the hook that has defined a coroutine, `None` for one of other code."""
    frame = getattr(coroutine, "cr_frame", None)
    return None if frame is None else package_of(str(frame.f_globals.get("__name__"))) or None
