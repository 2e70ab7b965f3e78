"""The checks of trust: the store and its rights, and the state of each project here."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agent_hooks.cli.doctor.base import Case, Diagnosis
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.untrusted import waiting_facts
from agent_hooks.cli.trusting import day
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
