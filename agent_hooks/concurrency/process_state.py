"""The state of the process that all hooks share: it is kept once, and restored after a hook has changed it.

A hook that runs inline can change the working directory, close `stdout`, or lower the recursion limit.  That would
concern the hooks of all other sessions, and the process itself.  So a process that serves several sessions restores this
state between the steps of its tasks.  The comparison takes some microseconds, and no handler pays for it.

Replaced streams are left alone, because `contextlib.redirect_stdout` in a thread would lose its text; closed ones are
not.
"""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]  # a built-in module
import gc
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, TypeVar

from agent_hooks.concurrency.numbers import high, identity

T = TypeVar("T")

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2")
]
# Functions of the standard library that the server itself calls, and that hooks replace.
_FUNCTIONS = {
    "time": ("sleep", "time", "monotonic", "perf_counter"),
    "json": ("dumps", "loads"),
    "asyncio": ("sleep", "wait", "current_task", "get_running_loop", "create_task"),
}
_HOOKS = ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook"))


class ProcessState:
    """The state of this process at the moment of its construction: `for change in state.restore(): …`.

    To be used by the main thread only, because only that can set the handlers of signals.
    """

    def __init__(self) -> None:
        self._limit = sys.getrecursionlimit()
        self._directory = high(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._place = identity(self._directory)
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._signals = [_signal.getsignal(number) for number in _SIGNALS]
        self._collects = gc.isenabled()
        self._callbacks = list(gc.callbacks)
        # By the lists of `sys`, the entries with which imports find modules.
        self._finders = [(name, list(getattr(sys, name))) for name in ("path", "meta_path", "path_hooks")]
        # Each replaceable name with its module and its value.
        self._values = [(module, name, getattr(module, name)) for module, name in _HOOKS]
        for module_name, names in _FUNCTIONS.items():
            if module := sys.modules.get(module_name):
                self._values += [(module, name, getattr(module, name)) for name in names]
        self._standard = [(number, *_kept(number)) for number in (0, 1, 2)]
        self._locale = _locale.setlocale(_locale.LC_ALL)

    def restore(self) -> list[str]:
        """Restore the state, and return a text for each part that had changed."""
        changed = []
        # The rest needs some depth.
        if self.restore_depth():
            changed.append("the recursion limit")
        if (umask := os.umask(self._umask)) != self._umask:
            changed.append(f"the umask ({umask:03o})")
        if not self._is_in_place():
            with suppress(OSError):
                os.fchdir(self._directory)
            changed.append("the working directory")
        if [_signal.getsignal(number) for number in _SIGNALS] != self._signals:
            changed += self._restore_signals()
        if gc.isenabled() != self._collects:
            (gc.enable if self._collects else gc.disable)()
            changed.append("the garbage collector")
        if gc.callbacks != self._callbacks:
            gc.callbacks[:] = self._callbacks
            changed.append("the callbacks of the garbage collector")
        # A hook may add an entry; without ours, the modules that are imported later would be missing.
        for name, entries in self._finders:
            if missing := [each for each in entries if each not in getattr(sys, name)]:
                getattr(sys, name).extend(missing)
                changed.append(f"sys.{name}")
        for module, name, value in self._values:
            if getattr(module, name, None) is not value:
                setattr(module, name, value)
                changed.append(f"{module.__name__}.{name}")
        changed += self._restore_standard()
        if _locale.setlocale(_locale.LC_ALL) != self._locale:
            _locale.setlocale(_locale.LC_ALL, self._locale)
            changed.append("the locale")
        return changed

    def restore_depth(self) -> bool:
        """Restore the recursion limit, and return whether it had changed."""
        if sys.getrecursionlimit() == self._limit:
            return False
        sys.setrecursionlimit(self._limit)
        return True

    def _is_in_place(self) -> bool:
        try:
            state = os.stat(".")
        except OSError:
            # The directory was removed, by the project's person too.
            return True
        return (state.st_dev, state.st_ino) == self._place

    def _restore_signals(self) -> list[str]:
        changed = []
        for number, value in zip(_SIGNALS, self._signals, strict=True):
            if _signal.getsignal(number) != value and value is not None:
                signal.signal(number, value)
                changed.append(f"the handler of {number.name}")
        return changed

    def _restore_standard(self) -> list[str]:
        changed = []
        for number, copy, before in self._standard:
            if identity(number) != before:
                os.dup2(copy, number)
                changed.append(f"the descriptor {number}")
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            stream = getattr(sys, name)
            if _is_closed(stream):
                new = open(number, mode, closefd=False, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
                setattr(sys, name, new)
                changed.append(f"sys.{name}")
        return changed


def _is_closed(stream: object) -> bool:
    try:
        return bool(getattr(stream, "closed", False))
    # A hook may have put an object there that raises anything.  Nothing can be printed on it, so it counts as closed, and
    # nobody hears of the exception.
    except Exception:
        return True


def _kept(number: int) -> tuple[int, tuple[int, int] | None]:
    return high(os.dup(number)), identity(number)


@types.coroutine
def restoring(coroutine: Coroutine[Any, Any, T], restore: Callable[[bool], object]) -> Generator[Any, Any, T]:
    """Await a coroutine, and call `restore` before each of its steps with `False`, and after each with `True`."""
    failure: BaseException | None = None
    while True:
        restore(False)
        try:
            waiting = coroutine.send(None) if failure is None else coroutine.throw(failure)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            failure = None
            restore(True)
        try:
            yield waiting
        except GeneratorExit:
            # The awaiting coroutine is closed.
            coroutine.close()
            raise
        # The exception is thrown into the coroutine, which decides.
        except BaseException as exc:
            failure = exc
