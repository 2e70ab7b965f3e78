"""The scenarios: a state, the command that is killed, and the promises that hold afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from checks.crash.place import Place

_GATE = """
from agent_hooks import Block

def register(api):
    @api.on("tool_call", tool="bash")
    async def gate(event, ctx):
        if "forbidden" in event.input["command"]:
            return Block("forbidden")
"""
_FOREIGN = '{\n    "theme": "dark",\n    "permissions": {"allow": ["Bash(ls)"]}\n}\n'
_FILES = 40


class Scenario(NamedTuple):
    """`prepare` makes the state, `line` is the command, and `check` yields a sentence for each broken promise."""

    prepare: Callable[[Place], None]
    line: tuple[str, ...]
    check: Callable[[Place], Iterator[str]]


def _must_run(place: Place, *args: str) -> Iterator[str]:
    """The command ends with exit code 0 and without a traceback."""
    done = place.agent_hooks(*args)
    if done.returncode or "Traceback" in done.stderr:
        yield f"afterwards `agent-hooks {' '.join(args)}` exits {done.returncode}: {done.stderr.strip()[-300:]}"


def _add_hook(place: Place, source: str, name: str) -> None:
    directory = place.home / ".agent" / "hooks"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(source)


# ---- sessions and records --------------------------------------------------------------------------------------------


def _prepare_session(place: Place) -> None:
    _add_hook(place, _GATE, "gate.py")


_TURNS = "@bash echo one >> done.txt\n@bash echo forbidden >> done.txt\n---\n@write notes.txt two"


def _check_session(place: Place) -> Iterator[str]:
    """No forbidden call ran, the session goes on, and its directory stays out of git."""
    done = place.project / "done.txt"
    if done.exists() and "forbidden" in done.read_text():
        yield "the forbidden call ran"
    ignore = place.project / ".agent" / "sessions" / ".gitignore"
    if ignore.exists() and not ignore.read_text().strip():
        yield ".agent/sessions/.gitignore is empty"
    sessions = (place.project / ".agent" / "sessions").glob("*.jsonl")
    # Before its first message there is no session to go on with.
    if any('"role":"user"' in path.read_text() for path in sessions):
        yield from _must_run(place, "run", "--continue", "@bash echo again")


def _check_records(place: Place) -> Iterator[str]:
    """The chain holds, and each command that ran has its decision."""
    yield from _must_run(place, "records", "verify")
    if (place.project / "done.txt").exists():
        shown = place.agent_hooks("records", "--json").stdout
        if "done.txt" not in shown:
            yield "a command ran, and no record tells of it"
    yield from _must_run(place, "run", "--no-session", "@bash echo again")
    yield from _must_run(place, "records", "verify")


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def _prepare_files(place: Place) -> None:
    place.git("init", "-q")
    for number in range(_FILES):
        (place.project / f"f{number}.txt").write_text(f"old {number}\n" * 50)
    place.git("add", "-A")
    place.git("commit", "-qm", "first")
    (place.project / "f0.txt").write_text("staged\n")
    place.git("add", "f0.txt")
    (place.project / "f0.txt").write_text("old 0\n" * 50)


def _check_repository(place: Place) -> Iterator[str]:
    """The person's index is as it was, and git finds no damage."""
    if (place.project / ".git" / "index.lock").exists():
        yield "the person's index is locked"
    if "-staged\n" not in (staged := place.git("diff", "--cached").stdout) and "+staged\n" not in staged:
        yield "the person's index changed"
    found = place.git("fsck", "--no-dangling")
    if found.returncode or "error" in found.stderr:
        yield f"git finds damage: {found.stderr.strip()[-300:]}"


def _check_checkpoint(place: Place) -> Iterator[str]:
    """The next checkpoint is made as if nothing had happened, and its turn can be undone."""
    yield from _check_repository(place)
    yield from _must_run(place, "checkpoints", "list")
    done = place.agent_hooks("run", "@bash touch again.txt")
    if "no checkpoint" in done.stderr or done.returncode:
        yield f"the next turn has no checkpoint: {done.stderr.strip()[-300:]}"
    yield from _must_run(place, "undo", "--yes")
    if (place.project / "again.txt").exists():
        yield "undo did not take the next turn back"


def _prepare_restore(place: Place) -> None:
    _prepare_files(place)
    # The guards cannot tell that this writes nothing, so a checkpoint is made before it.
    place.agent_hooks("run", "@bash touch -c f1.txt")
    for number in range(1, _FILES):
        (place.project / f"f{number}.txt").write_text(f"new {number}\n" * 50)
    (place.project / "added.txt").write_text("added\n")


def _states(place: Place) -> set[str]:
    """Return the states of the files: old, new, cut; and aside for one that has only its other name at this moment."""
    found = set()
    for number in range(1, _FILES):
        path = place.project / f"f{number}.txt"
        text = path.read_text() if path.exists() else ""
        kinds = [kind for kind in ("old", "new") if text == f"{kind} {number}\n" * 50]
        asides = [] if path.exists() else list(place.project.glob(f"{path.name}.*-*-*-*"))
        if any(aside.read_text() == f"new {number}\n" * 50 for aside in asides):
            kinds.append("aside")
        found.add(kinds[0] if kinds else f"cut ({path.name})")
    return found


def _check_repeated(place: Place, words: Sequence[str]) -> Iterator[str]:
    """Each file is whole; a begun command can be taken back, and the repeated command ends the work."""
    yield from _check_repository(place)
    if wrong := _states(place) - {"old", "new", "aside"}:
        yield f"files are neither old nor new: {sorted(wrong)}"
    begun = {"old", "aside"} & _states(place) or not (place.project / "added.txt").exists()
    yield from _must_run(place, "checkpoints", "list")
    if begun:
        yield from _must_run(place, "checkpoints", "undo")
        if _states(place) != {"new"} or not (place.project / "added.txt").exists():
            yield f"{' '.join(words)} was not taken back: {sorted(_states(place))}"
    yield from _must_run(place, *words)
    if _states(place) != {"old"}:
        yield f"a repeated {' '.join(words)} left files: {sorted(_states(place))}"


def _check_restore(place: Place) -> Iterator[str]:
    """Each file is whole; a repeated restore ends the work, and the person's own state can be had again.

    A restore renames a file before the new one gets its name: a kill between the two leaves the renamed file.
    """
    yield from _check_repeated(place, _RESTORE)


_RESTORE = ("checkpoints", "restore", "--yes")


def _prepare_undo(place: Place) -> None:
    _prepare_files(place)
    place.agent_hooks(
        "run", "@bash for f in f*.txt; do [ $f = f0.txt ] || sed -i s/old/new/ $f; done; echo added > added.txt"
    )


def _check_undo(place: Place) -> Iterator[str]:
    """No file is lost or cut; a begun undo can be taken back, and it can be repeated."""
    yield from _check_repeated(place, _UNDO)


_UNDO = ("undo", "--yes")


# ---- other agents' settings, and trust -------------------------------------------------------------------------------


def _prepare_install(place: Place) -> None:
    _add_hook(place, _GATE, "gate.py")
    (place.project / ".claude").mkdir()
    (place.project / ".claude" / "settings.local.json").write_text(_FOREIGN)


def _check_install(place: Place) -> Iterator[str]:
    """The settings file is the old or the new one; installing again works, and uninstalling brings the old bytes back."""
    path = place.project / ".claude" / "settings.local.json"
    try:
        if json.loads(path.read_text())["theme"] != "dark":
            yield "the person's settings changed"
    except (OSError, ValueError, KeyError) as exc:
        yield f"the settings file is damaged: {exc!r}"
    yield from _must_run(place, *_INSTALL)
    yield from _must_run(place, "uninstall", "claude-code", "--local")
    if path.read_text() != _FOREIGN:
        yield "after uninstall the settings differ from those before install"


_INSTALL = ("install", "claude-code", "--local")


def _prepare_trust(place: Place) -> None:
    place.git("init", "-q")
    hooks = place.project / ".agent" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "gate.py").write_text(_GATE)
    (hooks / "helper.py").write_text("x = 1\n\ndef register(api): pass\n")


def _check_trust(place: Place) -> Iterator[str]:
    """The set is approved or not; the gate holds once it is approved."""
    yield from _must_run(place, "trust", "--list")
    yield from _must_run(place, *_TRUST)
    done = place.agent_hooks("run", "--no-session", "@bash echo forbidden > done.txt")
    if (place.project / "done.txt").exists() or done.returncode:
        yield f"after the approval the gate does not hold: {done.stderr.strip()[-300:]}"


_TRUST = ("trust", "--yes")

SCENARIOS = {
    "session": Scenario(_prepare_session, ("run", _TURNS), _check_session),
    "records": Scenario(_prepare_session, ("run", "--no-session", _TURNS), _check_records),
    "checkpoint": Scenario(_prepare_files, ("run", "@write notes.txt two"), _check_checkpoint),
    "restore": Scenario(_prepare_restore, _RESTORE, _check_restore),
    "undo": Scenario(_prepare_undo, _UNDO, _check_undo),
    "install": Scenario(_prepare_install, _INSTALL, _check_install),
    "trust": Scenario(_prepare_trust, _TRUST, _check_trust),
}
"""All scenarios by name."""
