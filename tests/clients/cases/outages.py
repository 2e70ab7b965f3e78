"""A server of hooks that dies, and a Python that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from clients.cases.table import case, told
from clients.installing import ROOT
from clients.seat import EVERYWHERE, Seat


@case("a server killed between two events leaves no gap", core=True)
def killed_between(seat: Seat) -> bool:
    seat.ready()
    # The guards keep the agent from the process that judges, so the test kills it at a sign.
    with _KillAt(seat, "sign"):
        run = seat.shell("touch sign; while [ -e sign ]; do sleep 0.1; done", "echo deploy; touch denied", "touch fine")
    assert not seat.has("denied")
    assert seat.has("fine"), run.output[-2000:]
    told(run, "deploying is for people")
    return True


class _KillAt:
    """Kill the server of our hooks when a file appears, and then remove the file."""

    def __init__(self, seat: Seat, name: str) -> None:
        self.seat, self.file = seat, seat.project / name
        self.over = False
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self.over:
            if self.file.exists():
                for pid in self.seat.client.servers():
                    os.kill(pid, signal.SIGKILL)
                self.file.unlink()
                return
            time.sleep(0.05)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.thread.join(60)


@case("a server that dies while it judges denies")
def killed_during(seat: Seat) -> bool:
    seat.add_hook(
        "leaves.py",
        """
        import os

        def register(api):
            @api.on("tool_call", tool="bash")
            def leave(event, ctx):
                if "leave" in event.input["command"]:
                    os._exit(0)
        """,
    )
    seat.ready()
    run = seat.shell("touch leave", "echo deploy; touch denied", "touch fine")
    assert not seat.has("leave")
    assert not seat.has("denied")
    assert seat.has("fine"), run.output[-2000:]
    return True


@case("a Python that is gone denies, and says so")
def python_gone(seat: Seat) -> bool:
    # The hooks are installed by a Python in a directory that is moved away.
    python = seat.client.home / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python)], check=True)
    (place,) = python.glob("lib/python*/site-packages")
    (place / "ours.pth").write_text(
        "\n".join(each for each in sys.path if each.endswith("site-packages") or each == str(ROOT))
    )
    seat.add_hook("everywhere.py", EVERYWHERE.read_text())
    seat.trust()
    seat.client.hooks("install", seat.client.name, python=str(python / "bin/python"))
    python.rename(seat.client.home / "elsewhere")
    run = seat.shell("touch made")
    assert not seat.has("made")
    told_words = run.output + "\n".join(run.results if run.asked else [])
    assert seat.told_of_block("agent-hooks") in told_words, run.output[-2000:]
    return True
