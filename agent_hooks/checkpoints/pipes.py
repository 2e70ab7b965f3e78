"""Let git pass pipes that have the name of an ignore file, so that no checkpoint hangs.

git opens each `.gitignore` and `.gitattributes` that it meets, whatever kind of file that is.  Opening a named pipe
blocks until a writer opens it too.  So when git takes long, the working tree is searched for such files.  Each pipe is
then opened for writing and closed again: git reads an empty file, and continues.  Quick checkpoints pay nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

T = TypeVar("T")
_NAMES = frozenset({".gitignore", ".gitattributes"})
# Seconds after which git takes long.
_SLOW = 0.5
# Seconds between two openings.
_POLL = 0.02


class Pipes:
    """The ignore files and attribute files of a working tree that are not regular files.

    `irregular`: the files that were found, relative to the working tree.  `others`: paths of more files that git may
    open.
    """

    def __init__(self, top: str, *others: str) -> None:
        self.irregular: list[str] = []
        self._top = top
        self._others = others
        self._searched = False

    async def passed(self, run: Callable[[], Awaitable[T]]) -> T:
        """Await a run of git, and let it pass the pipes."""
        ended, slow = anyio.Event(), anyio.CancelScope()
        # An exception of the body would leave the task group as a group.
        results: list[T] = []
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._let_pass, ended, slow)
            # The exception is raised again below.
            try:
                results.append(await run())
            except Exception as exc:
                failure = exc
            # A quick run cancels no task: Python 3.11 drops the trace function of coverage and debuggers at that.
            ended.set()
            slow.cancel()
        if failure is not None:
            raise failure
        return results[0]

    async def search(self) -> None:
        """Search the working tree once."""
        if not self._searched:
            # Two runs of git may search at the same time, and each may end in the middle of its search.
            found = await anyio.to_thread.run_sync(lambda: list(_irregular(self._top)), abandon_on_cancel=True)
            found += (path for path in self._others if os.path.exists(path) and not os.path.isfile(path))
            self.irregular = sorted({*self.irregular, *(path.removeprefix(f"{self._top}/") for path in found)})
            self._searched = True

    async def _let_pass(self, ended: anyio.Event, slow: anyio.CancelScope) -> None:
        if not self.irregular:
            with anyio.move_on_after(_SLOW):
                await ended.wait()
                return
        with slow:
            if not self.irregular:
                await self.search()
            while self.irregular:
                for path in self.irregular:
                    _open_and_close(os.path.join(self._top, path))
                await anyio.sleep(_POLL)


def _irregular(top: str) -> Iterator[str]:
    """Yield the files with one of the names that are neither regular nor links, relative to `top`."""
    left = [top]
    while left:
        anyio.from_thread.check_cancelled()
        with suppress(OSError):
            for entry in os.scandir(left.pop()):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git":
                        left.append(entry.path)
                elif entry.name in _NAMES and not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    yield os.path.relpath(entry.path, top)


def _open_and_close(path: str) -> None:
    """Open a pipe for writing and close it, if a program reads it.  Leave every other file closed."""
    with suppress(OSError):
        if stat.S_ISFIFO(os.lstat(path).st_mode):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
