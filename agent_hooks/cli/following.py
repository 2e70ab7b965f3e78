"""`agent-hooks trust --follow`: approve each save of the author's day, and print its changes.

An editor replaces a file, or writes it in several pieces.  A change counts as a save when the set has been the same for
a while; a file that is no Python yet gets a little longer, because its writer may not be done.  A save during a call
that may write is a question, because the call may have made it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from msgspec.structs import replace

from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.trust_question import changes_text
from agent_hooks.cli.trusting import bytes_of, can_ask, confirm, look, say, say_lines
from agent_hooks.concurrency.numbers import identity
from agent_hooks.errors import count
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.trust.facts import set_facts
from agent_hooks.trust.manifest import DIRECTORIES, ProjectSet, TrustError, read_set
from agent_hooks.trust.open_sessions import may_run
from agent_hooks.trust.own import own_files
from agent_hooks.trust.policy import REMEDY, Trust, judge
from agent_hooks.turn_notes import writing_turns

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
    """Approve each save in the projects and of the user's own files for a time, and return the exit code.

    Ctrl-C ends it too.
    """
    following = _Following(trust, projects, time.monotonic() + seconds)
    minutes = count(round(seconds / 60), "minute") if seconds >= 60 else f"{seconds:g} s"
    say(f"each save counts for {minutes}, except during a call of an agent that may write. Ctrl-C ends this")
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
    """The sets as they were approved last, by the project or the agent home, and the number of saves."""

    def __init__(self, trust: Trust, projects: Sequence[str], end: float) -> None:
        self.saves = 0
        self._trust = trust
        self._end = end
        self._home = trust.agent_home
        self._sets = {each: self._read(each) for each in (*projects, self._home)}
        self._problems: dict[str, str | None] = {}
        # The time of the last look that found no change.
        self._calm = dict.fromkeys(self._sets, time.time())
        # The digests of sets that an agent may have changed.
        self._held: dict[str, str] = {}

    def _read(self, place: str) -> ProjectSet:
        return own_files(place).found if place == self._home else read_set(place)

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

        directories = [each for place in self._sets for each in self._directories(place)]
        identities = [identity(each) for each in directories]
        polled = time.monotonic()
        self._check_all()
        if not directories:
            # The user has removed the last own hook.
            time.sleep(_WAKE)
            return
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

    def _directories(self, place: str) -> list[str]:
        """Return the directories to watch.  Raises `_Gone` when a project's stays away."""
        if place == self._home:
            # Sessions write to its other files all the time.
            return [path for name in DIRECTORIES if os.path.isdir(path := os.path.join(place, name))]
        directory = os.path.join(place, PROJECT_DIRECTORY)
        end = time.monotonic() + _MISSING
        while not os.path.isdir(directory):
            if time.monotonic() > end:
                raise _Gone(f"{one_line(directory)} is gone")
            time.sleep(0.05)
        return [directory]

    def _check_all(self) -> None:
        for place in self._sets:
            self._check(place)

    def _check(self, place: str) -> None:
        """Approve a set if it was saved since."""
        looked = time.time()
        found = self._settled(place)
        before = self._sets[place]
        if found.problem != self._problems.get(place):
            self._problems[place] = found.problem
            if found.problem is not None:
                say(one_line(found.problem))
        if found.problem is not None or found.digest == before.digest:
            if found.problem is None:
                self._calm[place] = looked
                self._held.pop(place, None)
            return
        # The changes of a save include those before it.
        running = self._is_writing(self._calm[place])
        if running or place in self._held:
            self._hold(place, found, running=running)
            return
        self._take(place, found)

    @staticmethod
    def _is_writing(since: float) -> bool:
        """Return whether a judged call that may write is open, or was since a time."""
        return any(not work.turn or may_run(work.agent, work.session_id) for work in writing_turns(since))

    def _hold(self, place: str, found: ProjectSet, *, running: bool) -> None:
        """Ask about a save that an agent may have made, once its call has ended."""
        if self._held.get(place) == found.digest:
            return
        if running and place not in self._held:
            say(f"{one_line(place)}: saved while a call that may write was open, so you are asked when it has ended")
        self._held[place] = "" if running else found.digest
        # The next look finds whether the call still runs.
        self._calm[place] = time.time()
        if running:
            return
        say_lines(["", *changes_text(found, bytes_of(self._sets[place]), look())])
        if not can_ask():
            say(f"not approved: {REMEDY}")
        elif confirm("Do these changes count?"):
            prove_loosening("trust --follow")
            self._take(place, found, shown=True)
        else:
            say(f"not approved, until the next save; {REMEDY}")

    def _take(self, place: str, found: ProjectSet, *, shown: bool = False) -> None:
        """Approve a set, or take it up."""
        before, self._sets[place] = self._sets[place], found
        self._held.pop(place, None)
        self._calm[place] = time.time()
        if not shown:
            say_lines(["", *changes_text(found, bytes_of(before), look())])
        if place != self._home:
            self._approve(place, found)
            return
        own = replace(own_files(place), found=found)
        # Before the first session, there is no former version.
        if own.taken is not None and own.changed:
            own.take_up()
        self.saves += 1
        say(f"taken up: {one_line(place)}")

    def _approve(self, project: str, found: ProjectSet) -> None:
        store = self._trust.store()
        if store.problem is not None:
            raise TrustError(store.problem)
        key = judge(store, project).key
        entry = store.entries.get(key)
        if entry is None or not entry.approved:
            raise _Gone(f"{one_line(project)} is no longer approved")
        if entry.approval(found.digest) is None:
            store.approve(key, found, by="follow")
            self.saves += 1
            say(f"approved: {one_line(project)}, digest {found.digest}")
        else:
            say(f"approved before: {one_line(project)}, digest {found.digest}")

    def _settled(self, project: str) -> ProjectSet:
        """Return a set once it stays the same."""
        self._directories(project)
        found, since, begun = self._read(project), time.monotonic(), time.monotonic()
        while found.digest != self._sets[project].digest or found.problem is not None:
            quiet = UNFINISHED if self._is_unfinished(project, found) else QUIET
            if time.monotonic() - since > quiet or time.monotonic() - begun > 10 * UNFINISHED:
                break
            time.sleep(0.1)
            self._directories(project)
            again = self._read(project)
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
