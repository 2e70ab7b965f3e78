"""Files that a call writes: by a tool, a patch or the shell, and their checkpoints."""

from __future__ import annotations

import json

from clients.cases.table import NothingHereError, case, offers_none, told
from clients.script import Calls, Patch, Text, Write
from clients.seat import Seat

PATCH = "*** Begin Patch\n*** Add File: {0}\n+{1}\n*** End Patch\n"
SEVERAL = "*** Begin Patch\n*** Add File: fine.txt\n+fine\n*** Add File: prices.txt\n+0\n*** End Patch\n"


@case("judges each file of a patch", "patch", models=True)
def patch(seat: Seat) -> bool:
    seat.ready()
    evil = PATCH.format(".agent/hooks/evil.py", "pass")
    run = seat.run(
        Calls(Patch(SEVERAL)), Calls(Patch(evil)), Calls(Patch(PATCH.format("made.txt", "made"))), Text("done")
    )
    if run.script.missing:
        return offers_none(seat, "patch", "no tool that applies patches")
    assert not seat.has("prices.txt")
    assert not seat.has("fine.txt")
    assert not seat.has(".agent/hooks/evil.py")
    assert seat.has("made.txt"), "\n".join(run.results)
    told(run, "prices are for people", "builtin:")
    return True


@case("judges a patch that is typed into the shell", models=True, together=True)
def patch_shell(seat: Seat) -> bool:
    seat.ready()
    lines = f"apply_patch <<'EOF'\n{SEVERAL}EOF"
    run = seat.shell(lines, "touch fine-patch_shell")
    assert not seat.has("prices.txt")
    assert not seat.has("fine.txt")
    assert seat.has("fine-patch_shell")
    told(run, "prices are for people")
    return True


@case("judges `git apply`", models=True, together=True)
def git_apply(seat: Seat) -> bool:
    seat.ready()
    (seat.project / "a.diff").write_text("--- /dev/null\n+++ b/.agent/hooks/evil.py\n@@ -0,0 +1 @@\n+pass\n")
    run = seat.shell("git apply a.diff", "touch fine-git_apply")
    assert not seat.has(".agent/hooks/evil.py")
    assert seat.has("fine-git_apply")
    told(run, "builtin:")
    return True


@case("judges a file that the shell writes", models=True, together=True)
def shell_write(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo pass > .agent/hooks/evil.py", "touch fine-shell_write")
    assert not seat.has(".agent/hooks/evil.py")
    assert seat.has("fine-shell_write")
    told(run, "builtin:")
    return True


@case("judges a file that a tool writes", models=True, core=True)
def write(seat: Seat) -> bool:
    seat.ready()
    prices, notes = (str(seat.project / name) for name in ("prices.txt", "notes.txt"))
    run = seat.run(Calls(Write(prices, "0")), Calls(Write(notes, "text")), Text("done"))
    if run.script.missing:
        raise NothingHereError(
            f"{seat.client.name} offers no tool that writes a file with the model {seat.client.model}"
        )
    assert not seat.has("prices.txt")
    assert seat.has("notes.txt"), "\n".join(run.results)
    told(run, "prices are for people")
    return True


@case("checkpoints, and `undo`")
def checkpoint(seat: Seat) -> bool:
    # Each agent has checkpoints without a hook file.
    seat.client.install()
    file = seat.project / "a.txt"
    file.write_text("mine\n")
    seat.shell("echo theirs > a.txt")
    assert file.read_text() == "theirs\n"
    kept = json.loads(seat.client.hooks("checkpoints", "list", "--json").stdout)
    turns = [(each["turn"], each["agent"], "a.txt" in each["files"]) for each in kept if each["agent"]]
    assert turns == [(1, seat.client.name, True)], kept
    seat.client.hooks("undo", "--yes")
    assert file.read_text() == "mine\n"
    seat.client.hooks("checkpoints", "undo")
    assert file.read_text() == "theirs\n"
    return True
