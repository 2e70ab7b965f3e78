"""The projects whose hooks and settings wait for approval, described from their syntax: nothing of them is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.trust_question import MOST_FILES, fact_lines
from agent_hooks.errors import count
from agent_hooks.trust.facts import FileFacts, set_facts
from agent_hooks.trust.policy import ProjectTrust, TrustedSources


def waiting_facts(project: ProjectTrust) -> tuple[FileFacts, ...]:
    """Return the facts about the files of a set that is not approved; of a changed set, about the changed files."""
    approved = {} if project.approval is None else project.approval.files
    names = [file.name for file in project.found.files if approved.get(file.name) != file.digest]
    return set_facts(project.found, names[:MOST_FILES])


def untrusted_lines(sources: TrustedSources) -> Iterator[str]:
    """Yield lines without harm about each project that waits, and each directory that does not apply."""
    if sources.problem is not None:
        yield one_line(sources.problem)
    for project in sources.projects:
        if project.message is None:
            continue
        yield f"not loaded: {one_line(project.message)}"
        for each in waiting_facts(project):
            yield f"  {one_line(each.name)} ({each.role})"
            yield from fact_lines(each.facts, one_line)
        left = len(project.found.files) - MOST_FILES
        if left > 0:
            yield f"  and {count(left, 'more file')}"
    for skipped in sources.place.skipped:
        yield one_line(str(skipped))


def approval_notes(sources: TrustedSources) -> Iterator[str]:
    """Yield a line for each project of which any content counts, or an older set than the last approved one."""
    for project in sources.projects:
        if project.state == "always":
            yield f"{one_line(project.directory)}: any content counts (trust --always); to end this: agent-hooks untrust"
        elif project.note is not None:
            yield one_line(project.note)


def untrusted_rows(sources: TrustedSources) -> list[dict[str, Any]]:
    """Return the same for programs."""
    return [
        {
            "project": project.project,
            "state": project.state,
            "digest": project.found.digest,
            "message": project.message,
            "files": [
                {
                    "name": each.name,
                    "role": each.role,
                    "facts": [{"kind": fact.kind, "text": fact.text, "lines": fact.lines} for fact in each.facts],
                }
                for each in waiting_facts(project)
            ],
        }
        for project in sources.projects
        if project.waits
    ]
