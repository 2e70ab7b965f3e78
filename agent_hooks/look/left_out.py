"""The list of what the page does not show, or not as it was written, with the reasons and the places."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hooks.errors import count
from agent_hooks.look.hooks import is_gone
from agent_hooks.look.index import Index
from agent_hooks.look.index.files import Source
from agent_hooks.look.index.lines import DATABASE

# Entries of one kind; the rest is counted.
_MOST = 20


def left_out(index: Index) -> list[dict[str, str]]:
    """Return the entries, each with `what`, `why` and `place`."""
    entries = [*_about_index(index), *_about_files(index), *_about_hooks(index)]
    shown = entries[:_MOST]
    if len(entries) > _MOST:
        more = f"{len(entries) - _MOST} more"
        shown.append({"what": more, "why": "only the first are named", "place": ""})
    return shown


def _about_index(index: Index) -> Iterator[dict[str, str]]:
    if index.problem:
        yield {"what": "the index is not kept", "why": index.problem, "place": ""}


def _about_files(index: Index) -> Iterator[dict[str, str]]:
    for source in list(index.sources.by_path.values()):
        for what, why in _of_file(source):
            yield {"what": what, "why": why, "place": source.path}


def _of_file(source: Source) -> Iterator[tuple[str, str]]:
    if source.problem:
        yield "the rest of the file", source.problem
    elif source.kind != DATABASE and source.size > source.offset:
        yield f"the last {count(source.size - source.offset, 'byte')}", "the file ends in a part of a line"
    if source.bad:
        yield count(source.bad, "line"), "cannot be read"
    if source.newer:
        why = "a newer version of agent_hooks wrote them; update agent_hooks to see them"
        yield count(source.newer, "line"), why
    if source.ahead:
        why = "their time lies in the future, so they stand at the time at which their file was last written"
        yield f"the time of {count(source.ahead, 'line')}", why


def _about_hooks(index: Index) -> Iterator[dict[str, str]]:
    for (path,) in index.ask("SELECT DISTINCT path FROM figures WHERE path != ''"):
        if is_gone(path):
            why = (
                "the file is not there any more, so its code cannot be looked at; its answers are as they were recorded"
            )
            yield {"what": "the code of a hook", "why": why, "place": path}
