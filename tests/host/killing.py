"""Kill a host at every write of its session file: `python -m host.killing BACKEND DIRECTORY`.

Plays one scenario again and again, each time in a process of its own that kills itself (SIGKILL) before, in the middle of
or after one write.  `DIRECTORY/<write>-<moment>` is then the project of that run, and `DIRECTORY/whole` the project of a
run without a kill; its file `writes` has, for each write, the number of entries in each session after it.

"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from agent_hooks.host.session import Session
from host.hosting import stage

MOMENTS = ("before", "middle", "after")


async def scenario(project: Path) -> None:
    """Do every action that writes: talk, call tools, change settings, compact, branch, clear."""
    on = stage(project)
    async with on.host as host:
        # One call at a time, because parallel calls end in any order.
        await host.prompt("@bash one\n---\n@bash two")
        host.set_thinking_level("low")
        await host.prompt("more")
        await host.compact()
        await host.prompt("still more")
        await host.branch(2)
        await host.prompt("@bash branched")
        await host.clear()
        await host.prompt("cleared")


def noting(project: Path, create: Any) -> Any:
    """Return `Session.create` with a record: a file of the project gets the id of each new session, in order."""

    def create_and_note(*args: Any, **options: Any) -> Session:
        session: Session = create(*args, **options)
        assert session.path is not None
        with (project / "sessions").open("a") as file:  # not by os.write
            file.write(f"{session.path.name}\n")
        return session

    return create_and_note


def play(backend: str, project: Path, number: int, moment: str) -> None:
    """Play the scenario; kill the process at write `number`."""
    project.mkdir()
    real, create, done = os.write, Session.create, count(1)
    files: list[int] = []
    counts: list[int] = []  # of entries in each file
    states: list[list[int]] = []

    def write(file: int, data: bytes) -> int:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return real(file, data)
        if next(done) == number:
            real(file, {"before": b"", "middle": data[: len(data) // 2], "after": data}[moment])
            os.kill(os.getpid(), signal.SIGKILL)
        inode = os.fstat(file).st_ino
        if inode not in files:
            files.append(inode)
            counts.append(0)
        counts[files.index(inode)] += data.count(b"\n")
        states.append(list(counts))
        return real(file, data)

    Session.create = noting(project, create)  # type: ignore[method-assign]  # the same, and noted
    os.write = write  # type: ignore[assignment]  # the same but for dying
    try:
        anyio.run(scenario, project, backend=backend)
    finally:
        os.write, Session.create = real, create  # type: ignore[method-assign]  # as they were
    (project / "writes").write_text(json.dumps(states))


def main(backend: str, root: Path) -> None:
    """Play the scenario without a kill, then once for every write and moment."""
    play(backend, root / "whole", 0, "")
    writes = json.loads((root / "whole" / "writes").read_text())
    for number in range(1, len(writes) + 1):
        for moment in MOMENTS:
            child = os.fork()
            if child == 0:
                play(backend, root / f"{number}-{moment}", number, moment)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), f"{number}-{moment} came to its end"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
