"""`agent-hooks trust --follow`: approve each save of the author's day, and print its changes.

An editor replaces a file, or writes it in several pieces.  A change counts as a save when the set has been the same for
a while; a file that is no Python yet gets a little longer, because its writer may not be done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.trust_question import changes_text
from agent_hooks.cli.trusting import bytes_of, look, say, say_lines
from agent_hooks.concurrency.numbers import identity
from agent_hooks.errors import count
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.trust.facts import set_facts
from agent_hooks.trust.manifest import ProjectSet, TrustError, read_set
from agent_hooks.trust.policy import Trust, judge

QUIET = 0.3
"""Seconds without a change after which a set counts as saved."""
UNFINISHED = 2.0
"""Seconds that a save may take whose files cannot be read as Python yet."""
_WAKE = 0.5
# Files that only a link or the settings name lie in directories that are not watched, so the sets are read now and then.
_POLL = 2.0
# Seconds that an `.agent` may be missing, while git changes the branch for example.
_MISSING = 1.5


def follow_saves(trust: Trust, projects: Sequence[str], seconds: float) -> int:
    """Approve each save in the projects for a time, and return the exit code; Ctrl-C ends it too."""
    following = _Following(trust, projects, time.monotonic() + seconds)
    minutes = count(round(seconds / 60), "minute") if seconds >= 60 else f"{seconds:g} s"
    say(f"each save counts for {minutes}, also that of an agent; Ctrl-C ends this")
    try:
        code = following.run()
    except KeyboardInterrupt:
        say_lines([""])
        code = OK
    say(f"no longer followed; {count(following.saves, 'save')} approved")
    return code


class _Gone(Exception):  # noqa: N818  # ends the following, and is no error of the program
    """A project is no longer there, or no longer approved; the text says so."""


class _Following:
    """The sets as they were approved last, and the number of saves."""

    def __init__(self, trust: Trust, projects: Sequence[str], end: float) -> None:
        self.saves = 0
        self._trust = trust
        self._end = end
        self._sets = {project: read_set(project) for project in projects}
        self._problems: dict[str, str | None] = {}

    def run(self) -> int:
        """Follow until the time is over; return the exit code."""
        try:
            while time.monotonic() < self._end:
                self._watch()
        except _Gone as exc:
            say(str(exc))
            return FAILED
        return OK

    def _watch(self) -> None:
        """Approve each save until the time is over, or until other directories have to be watched."""
        # Imported here, because it is large.
        from watchfiles import watch

        directories = [self._directory(project) for project in self._sets]
        identities = [identity(each) for each in directories]
        polled = time.monotonic()
        self._check_all()
        changes = watch(
            *directories,
            watch_filter=None,
            step=int(QUIET * 1000),
            debounce=int(UNFINISHED * 1000),
            rust_timeout=int(_WAKE * 1000),
            yield_on_timeout=True,
        )
        try:
            for changed in changes:
                if time.monotonic() >= self._end:
                    return
                if changed or time.monotonic() - polled > _POLL:
                    self._check_all()
                    polled = time.monotonic()
                # A directory that was replaced is another one, of which the watcher hears nothing.
                if [identity(each) for each in directories] != identities:
                    return
        # A directory has vanished just before the watcher began; the next round waits for it.
        except FileNotFoundError:
            return

    def _directory(self, project: str) -> str:
        """Return the `.agent` of a project; raises `_Gone` when it stays away."""
        directory = os.path.join(project, PROJECT_DIRECTORY)
        end = time.monotonic() + _MISSING
        while not os.path.isdir(directory):
            if time.monotonic() > end:
                raise _Gone(f"{one_line(directory)} is gone")
            time.sleep(0.05)
        return directory

    def _check_all(self) -> None:
        for project in self._sets:
            self._check(project)

    def _check(self, project: str) -> None:
        """Approve the set of a project if it was saved since."""
        found = self._settled(project)
        before = self._sets[project]
        if found.problem != self._problems.get(project):
            self._problems[project] = found.problem
            if found.problem is not None:
                say(one_line(found.problem))
        if found.problem is not None or found.digest == before.digest:
            return
        store = self._trust.store()
        if store.problem is not None:
            raise TrustError(store.problem)
        key = judge(store, project).key
        entry = store.entries.get(key)
        if entry is None or not entry.approved:
            raise _Gone(f"{one_line(project)} is no longer approved")
        self._sets[project] = found
        say_lines(["", *changes_text(found, bytes_of(before), look())])
        if entry.approval(found.digest) is None:
            store.approve(key, found, by="follow")
            self.saves += 1
            say(f"approved: {one_line(project)}, digest {found.digest}")
        else:
            say(f"approved before: {one_line(project)}, digest {found.digest}")

    def _settled(self, project: str) -> ProjectSet:
        """Return the set of a project once it stays the same."""
        self._directory(project)
        found, since, begun = read_set(project), time.monotonic(), time.monotonic()
        while found.digest != self._sets[project].digest or found.problem is not None:
            quiet = UNFINISHED if self._is_unfinished(project, found) else QUIET
            if time.monotonic() - since > quiet or time.monotonic() - begun > 10 * UNFINISHED:
                break
            time.sleep(0.1)
            self._directory(project)
            again = read_set(project)
            if again.digest != found.digest:
                found, since = again, time.monotonic()
        return found

    def _is_unfinished(self, project: str, found: ProjectSet) -> bool:
        """Tell whether a changed file cannot be read as Python, or is empty."""
        before = bytes_of(self._sets[project])
        changed = {file.name: file.data for file in found.files if before.get(file.name) != file.data}
        if any(not data and before.get(name) for name, data in changed.items()):
            return True
        return any(each.of("refused") for each in set_facts(found, changed))
