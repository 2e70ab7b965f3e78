"""Nothing of a hook that has ended stays in memory, although it has registered functions with the process."""

from __future__ import annotations

import atexit
import gc
import logging
import sys
import threading
import weakref
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_hooks.hooks import forgetting
from agent_hooks.hooks.forgetting import adopt_exit_functions, forget_hooks, threads_of
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.hooks.loader import load_hooks

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
REGISTERING = """
    import atexit, functools, logging, sys, typing, weakref
    import helpers
    from helpers import calls

    log = logging.getLogger(__name__)
    logging.getLogger(__name__ + ".inner").debug("x")
    sys.path.insert(0, "/nowhere")

    class Kept:
        pass

    class Handler(logging.Handler):
        def emit(self, record): pass

    kept = Kept()
    weakref.finalize(kept, lambda: calls.append("finalizer"))
    atexit.register(calls.append, "not a function of the hook")
    atexit.register(lambda text: calls.append(text), "first")
    atexit.register(functools.partial(lambda text: calls.append(text), "second"))
    atexit.unregister(atexit.register(lambda: calls.append("never")))
    logging.getLogger().addHandler(Handler())

    @functools.lru_cache
    def cached(value):
        return value

    def annotated(value: typing.Optional[Kept]) -> typing.Dict[str, Kept]:
        return {}

    def register(api):
        cached(Kept())
        api.kept = kept
"""


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `atexit` keep the functions of hooks for their end, as the server does."""
    monkeypatch.setattr(atexit, "register", atexit.register)
    monkeypatch.setattr(atexit, "unregister", atexit.unregister)
    monkeypatch.setattr(forgetting, "_exits", None)
    adopt_exit_functions()


async def load(folder: Path, source: str, **others: str) -> LoadedHook:
    """Load one hook, with modules beside it."""
    for name, text in {"hook": source, **others}.items():
        (folder / f"{name}.py").write_text(dedent(text))
    loaded = await load_hooks([folder / "hook.py"], cwd=folder)
    assert not loaded.errors, loaded.errors
    return loaded.hooks[0]


def fail(function: object, exc: BaseException) -> None:
    """Raise the failure of an exit function."""
    raise exc


@pytest.mark.usefixtures("exits")
async def test_nothing_of_a_hook_that_was_forgotten_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules leave `sys.modules`, and its exit functions and finalizers are called, the last one first."""
    before, path = set(sys.modules), list(sys.path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    handlers = logging.getLogger().handlers[:]
    hook = await load(tmp_path, REGISTERING, helpers="calls = []")
    module: Any = hook.module
    calls: list[str] = module.calls
    alive = [weakref.ref(each) for each in (module, module.kept, module.annotated, module.helpers, module.Handler)]
    forget_hooks([hook], fail)
    assert calls == ["second", "first", "finalizer"]
    assert not [name for name in set(sys.modules) - before if name.startswith("_agent_hooks_")]
    assert not [name for name in logging.Logger.manager.loggerDict if name.startswith("_agent_hooks_")]
    assert logging.getLogger().handlers == handlers
    assert sys.path == list(dict.fromkeys(["/nowhere", *path]))
    del hook, module
    gc.collect()
    assert [each() for each in alive] == [None] * 5


@pytest.mark.usefixtures("exits")
async def test_an_exit_function_that_fails_is_reported_and_the_others_are_called(tmp_path: Path) -> None:
    """A hook may raise anything there."""
    source = """
        import atexit, sys
        calls = []
        atexit.register(lambda: calls.append("called"))
        atexit.register(sys.exit, 3)
        @atexit.register
        def fails():
            sys.exit(4)
        def register(api): pass
    """
    hook = await load(tmp_path, source)
    module: Any = hook.module
    failures: list[str] = []
    forget_hooks([hook], lambda function, exc: failures.append(f"{function.__name__} {exc!r}"))  # type: ignore[attr-defined]
    atexit.unregister(sys.exit)
    assert failures == ["fails SystemExit(4)"]
    assert module.calls == ["called"]


async def test_threads_that_a_hook_leaves_behind_are_named(tmp_path: Path) -> None:
    """A running thread by its place, one that waits for its time by its function."""
    source = """
        import threading
        over = threading.Event()

        def work():
            over.wait()

        class Own(threading.Thread):
            def run(self):
                over.wait()

        def register(api):
            for thread in (threading.Thread(target=work, name="worker"), threading.Timer(3600, work), Own(name="own")):
                thread.daemon = True
                thread.start()
    """
    hook = await load(tmp_path, source)
    module: Any = hook.module
    [(path, texts)] = threads_of([hook]).items()
    module.over.set()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    assert path == hook.path
    assert len(texts) == 3, texts
    named = " ".join(texts)
    for part in ("the thread 'worker'", f"{tmp_path}/hook.py:", "the thread 'own'"):
        assert part in named
