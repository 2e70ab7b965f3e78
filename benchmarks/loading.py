"""The cost of hook files: to load them, and to keep them."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import shutil
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

from agent_hooks import load_hooks
from agent_hooks.hooks.bytecode import cache_directory
from benchmarks.harness import Effort, Rounds, Row, attempt
from benchmarks.peer_runs import Peers

FILES = 100
TO_IMPORTLIB = (1.2, 0.95)
SOURCE = '''"""Stop commands that need a person."""

from agent_hooks import Block, HookAPI, HookContext, ToolCall

WORDS = ("rm -rf", "git push --force", "sudo ")


def register(api: HookAPI) -> None:
    """Subscribe."""

    @api.on("tool_call", tool="bash")
    async def no_rm(event: ToolCall, ctx: HookContext) -> Block | None:
        command = event.input["command"]
        for word in WORDS:
            if word in command:
                return Block(f"{word} needs a person")
        return None
'''
TEN_HANDLERS = """from agent_hooks import HookAPI


def register(api: HookAPI) -> None:
    for number in range(10):

        async def handler(event, ctx):
            return None

        api.on("tool_call", handler, tool=f"tool_{number}")
"""


class Subscriptions:
    """The part of an api that a file needs when it is loaded without agent_hooks."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def on(self, event: str, handler: Any = None, **options: Any) -> Any:
        if handler is None:
            return self.handlers.append
        self.handlers.append(handler)
        return handler


def write(directory: Path, count: int, source: str) -> list[Path]:
    """Write `count` hook files, each with a different source."""
    paths = [directory / f"hook_{number:04}.py" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(f"{source}\n\nNUMBER = {number}\n")
    return paths


def with_agent_hooks(paths: list[Path]) -> list[Any]:
    """Load the files as a host does."""
    result = asyncio.run(load_hooks(paths, cwd=paths[0].parent))
    assert not result.errors, result.errors[0]
    return result.hooks


def with_importlib(paths: list[Path]) -> list[Any]:
    """Load the files as the smallest plugin system would; importlib caches the bytecode."""
    return asyncio.run(_with_importlib(paths))


async def _with_importlib(paths: list[Path]) -> list[Any]:
    loaded = []
    for path in paths:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        api = Subscriptions()
        module.register(api)
        loaded.append((module, api))
    return loaded


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure in temporary directories; the first round fills the cache, the others load from it."""
    directory = Path(tempfile.mkdtemp(prefix="bench-"))
    kept = sys.dont_write_bytecode, os.environ.get("XDG_CACHE_HOME")
    # Otherwise neither side would find anything in its cache.
    sys.dont_write_bytecode = False
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    cache_directory.cache_clear()
    try:
        return [
            *attempt(f"load {FILES} hook files again", lambda: [_cached(directory, effort)]),
            *attempt("many hooks", lambda: _many(directory, effort)),
        ]
    finally:
        sys.dont_write_bytecode = kept[0]
        os.environ.pop("XDG_CACHE_HOME")
        if kept[1] is not None:
            os.environ["XDG_CACHE_HOME"] = kept[1]
        cache_directory.cache_clear()
        shutil.rmtree(directory)


def _cached(directory: Path, effort: Effort) -> Row:
    paths = write(directory, FILES, SOURCE)
    rounds = _rounds({"ours": with_agent_hooks, "importlib": with_importlib}, paths, 3 if effort.quick else 31)
    must, goal = TO_IMPORTLIB
    took = rounds.seconds("ours") * 1e3
    note = f"to importlib with cached bytecode; {took:.0f} ms"
    return Row(f"load {FILES} hook files again", rounds.ratio("ours", "importlib"), must=must, goal=goal, note=note)


def _many(directory: Path, effort: Effort) -> list[Row]:
    count = 100 if effort.quick else 1000
    directory = directory / "many"
    directory.mkdir()
    paths = write(directory, count, TEN_HANDLERS)
    rounds = _rounds({"ours": with_agent_hooks, "importlib": with_importlib}, paths, 1 if effort.quick else 3)
    ours, theirs = _bytes(with_agent_hooks, paths), _bytes(with_importlib, paths)
    name = f"{count:,} hooks with 10 handlers"
    note = "{:.1f} with importlib alone"
    return [
        Row(f"{name}: load", rounds.seconds("ours") * 1e3, "ms", note=note.format(rounds.seconds("importlib") * 1e3)),
        Row(f"{name}: memory of one", ours / count / 1024, "KiB", note=note.format(theirs / count / 1024)),
    ]


def _rounds(loads: dict[str, Callable[[list[Path]], object]], paths: list[Path], count: int) -> Rounds:
    times: dict[str, list[float]] = {name: [] for name in loads}
    for number in range(count + 1):
        for name, load in loads.items():
            before = set(sys.modules)
            gc.collect()
            begin = thread_time()
            load(paths)
            took = thread_time() - begin
            # The first round fills the caches.
            if number:
                times[name].append(took)
            for module in set(sys.modules) - before:
                del sys.modules[module]
    return Rounds(times)


def _bytes(load: Callable[[list[Path]], object], paths: list[Path]) -> int:
    """Return the bytes that stay allocated while the result is held."""
    before = set(sys.modules)
    gc.collect()
    tracemalloc.start()
    try:
        kept = load(paths)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    del kept
    for module in set(sys.modules) - before:
        del sys.modules[module]
    return size
