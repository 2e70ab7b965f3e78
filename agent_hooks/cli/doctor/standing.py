"""The checks of hooks and settings, of trust, of an agent's powers, and of the plugin that it has loaded."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator

import agent_hooks
from agent_hooks import __version__
from agent_hooks.bridges.base.installation import POWERS
from agent_hooks.cli.disabling import remedy
from agent_hooks.cli.doctor.base import AgentCase, Case, Diagnosis
from agent_hooks.cli.screen.in_force import waiting_facts
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.trusting import day
from agent_hooks.errors import SettingsError, count
from agent_hooks.installs.edits import read_settings
from agent_hooks.installs.generated import last_heartbeat, plugin_path
from agent_hooks.installs.places import Installation, entry_command, install_line, reading, same_command
from agent_hooks.installs.trusts import trust_path, untrusted
from agent_hooks.settings import agent_home
from agent_hooks.storage.rights import check_owner
from agent_hooks.trust.fact import KINDS
from agent_hooks.trust.facts import FileFacts
from agent_hooks.trust.policy import REMEDY, ProjectTrust
from agent_hooks.trust.store import STORE, TrustStore

_WHAT = "trust"
_END = "to end this: agent-hooks untrust"
_DENIED = "until then, the calls in each project with hooks or settings are denied"


def store(case: Case) -> Iterator[Diagnosis]:
    """Check that the trust store can be read, and that no other user can change it."""
    home = agent_home()
    for path in (home, os.path.join(home, STORE), os.path.join(home, "trust")):
        if (reason := check_owner(path)) is not None:
            yield Diagnosis("problem", _WHAT, reason, "until then no project is trusted")
    if (problem := TrustStore(home).problem) is not None:
        yield Diagnosis("problem", _WHAT, problem, _DENIED)
    for text in () if case.sources is None else case.sources.loosened:
        yield Diagnosis("warning", _WHAT, one_line(text.removesuffix(f": {REMEDY}")), REMEDY)


def projects(case: Case) -> Iterator[Diagnosis]:
    """Describe the state of each project here, and the files that wait for approval, from their syntax."""
    if case.sources is None:
        return
    for project in case.sources.projects:
        yield from _project(project)
    for skipped in case.sources.place.skipped:
        yield Diagnosis("warning", _WHAT, one_line(str(skipped)))


def _project(project: ProjectTrust) -> Iterator[Diagnosis]:
    if project.message is not None:
        text = project.message.rpartition("; ")[0]
        yield Diagnosis("problem" if project.blocks else "warning", _WHAT, one_line(text), REMEDY)
        yield from (Diagnosis("warning", "not loaded", one_line(_words(each))) for each in waiting_facts(project))
    elif project.state == "always":
        text = f"{one_line(project.directory)}: any content counts, on every branch that is checked out there"
        yield Diagnosis("ok", _WHAT, text, _END)
    elif project.approval is not None:
        text = f"approved on {day(project.approval.at)} (by {project.approval.by})"
        yield Diagnosis("ok", _WHAT, f"{one_line(project.directory)}: {text}")
        if project.note is not None:
            yield Diagnosis("warning", _WHAT, one_line(project.note.removesuffix(f": {REMEDY}")), REMEDY)
    if project.doubt is not None and not project.waits:
        yield Diagnosis("warning", _WHAT, one_line(project.doubt.removesuffix(f": {REMEDY}")), REMEDY)


def _words(facts: FileFacts) -> str:
    """Return the facts about a file as one text."""
    found = []
    for kind, heading in KINDS.items():
        texts = [fact.text for fact in facts.of(kind)]
        if texts:
            found.append(f"{heading} {', '.join(texts[:10])}{' …' * (len(texts) > 10)}")
    return f"{facts.name}: {'; '.join(found) or facts.role}"


def versions(case: Case) -> Iterator[Diagnosis]:
    """Name the running versions of agent_hooks and Python."""
    python = f"Python {platform.python_version()} ({sys.executable})"
    yield Diagnosis("ok", "agent_hooks", f"{agent_hooks.__version__}, {python}")


def hooks(case: Case) -> Iterator[Diagnosis]:
    """Report each hook that fails to load, by file and line."""
    if case.setup is not None:
        for error in case.setup.errors:
            yield Diagnosis("problem", "hooks", str(error), "mend or remove it; until then it blocks calls")
        loaded, steps = case.setup.loaded.hooks, case.setup.transformers.configured
        handlers = sum(len(each) for hook in loaded for each in hook.handlers.values())
        handlers += sum(len(hook.api.interceptors) for hook in loaded)
        text = f"{count(len(loaded), 'hook')}, {count(handlers, 'handler')}, {count(len(steps), 'transformer')}"
        yield Diagnosis("ok", "hooks", text)
        for path in case.setup.disabled:
            yield Diagnosis("warning", "hooks", f"{short(path)}: disabled, so it counts nowhere", remedy(path))
        for hook in loaded:
            if hook.dependencies is not None:
                yield Diagnosis("ok", "packages", f"{short(hook.path)}: {hook.dependencies}")


def guards(case: Case) -> Iterator[Diagnosis]:
    """Check the guards' section of the settings."""
    if case.setup is None:
        return
    try:
        _ = case.setup.guard_settings
    except SettingsError as exc:
        yield Diagnosis("problem", "guards", str(exc), "mend the file; until then every tool call is denied")
    else:
        redaction = "on" if case.setup.redactor is not None else "off"
        yield Diagnosis("ok", "settings", f"read; redaction is {redaction}")
    for text in case.setup.settings.ignored:
        yield Diagnosis("warning", "settings", text)


_HEARTBEAT = "the plugin"


def powers(case: AgentCase) -> Iterator[Diagnosis]:
    """Name each thing that the agent does not let hooks do, with the reason."""
    if not (case.asked or case.entries):
        return
    for power, reason in case.bridge.limits.items():
        yield case.ok(f"hooks cannot {POWERS[power]}: {reason}")
    for power, exception in case.bridge.gaps.items():
        yield case.ok(f"hooks can {POWERS[power]}, except that {exception}")


def trusted_entries(case: AgentCase) -> Iterator[Diagnosis]:
    """Check that the agent trusts each entry of ours, and that no entry of others has taken its position."""
    path = trust_path(case.bridge)
    if path is None:
        return
    for each in case.installations:
        if not each.entries:
            continue
        remedy = install_line(case.bridge, each.target.name)
        try:
            settings = read_settings(each.target.path, each.target.format)[1]
            left = untrusted(case.bridge, each.target.path, settings)
        except SettingsError as exc:
            yield case.problem(str(exc))
            continue
        if left:
            runs = "does not run them, and says nothing about it"
            text = f"{case.bridge.name} does not trust these entries of ours, so it {runs}"
            yield case.problem(f"{short(path)}: {text}: {', '.join(left)}", remedy, in_project=True)
        elif _would_change(case, each, settings):
            text = "our entries are not the first ones, or not as install writes them"
            yield case.problem(f"{short(each.target.path)}: {text}", remedy, in_project=True)
        else:
            yield case.ok(f"{short(path)}: trusts each of our entries")


def _would_change(case: AgentCase, installation: Installation, settings: dict[str, object]) -> bool:
    """Return whether another installation of the same events would change the settings."""
    ours = entry_command(case.bridge, installation.target.name)
    events = {entry.event for entry in installation.entries}
    # The entries may name the same Python by another name.
    command = next((e.command[:-1] for e in installation.entries if same_command(e.command[:-1], ours)), ours)
    return case.bridge.install(settings, command, events) != settings


def plugin(case: AgentCase) -> Iterator[Diagnosis]:
    """Check the plugin's sign of life: an agent that cannot load a plugin goes on without it."""
    if not case.bridge.plugin or not case.entries:
        return
    name, beat = case.bridge.name, last_heartbeat(case.bridge)
    start = f"start {name} again"
    if beat is None:
        text = f"{_HEARTBEAT} has not been loaded yet, so no call of {name} is judged before that"
        yield case.warning(text, f"{start}; if this stays, look for an error of the plugin at its start")
    elif beat.error is not None:
        text = f"{_HEARTBEAT} could not connect itself with {name}, so no call is judged: {beat.error.splitlines()[-1]}"
        yield case.problem(text, f"{install_line(case.bridge, 'user')}, then {start}")
    elif beat.version != __version__:
        text = f"{_HEARTBEAT} that {name} has loaded is of agent-hooks {beat.version}, and this is {__version__}"
        yield case.warning(text, f"{install_line(case.bridge, 'user')}, then {start}")
    elif _is_older(beat.time, str(plugin_path(case.bridge))):
        yield case.warning(f"{_HEARTBEAT} was loaded before the last installation", start)
    else:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(beat.time))
        yield case.ok(f"{_HEARTBEAT} was loaded on {at}")


def _is_older(moment: float, path: str) -> bool:
    try:
        return moment < os.stat(path).st_mtime
    except OSError:
        # The check of the commands reports a plugin that is missing.
        return False


def entries_of_others(case: AgentCase) -> Iterator[Diagnosis]:
    """Name the settings of another agent whose entries of ours this agent runs too."""
    if case.asked or case.entries:
        for text in reading(case.bridge, case.case.cwd, short):
            yield case.ok(text)
