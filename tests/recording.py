"""A home with records, for tests: the runners that write them, and the lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from agent_hooks import Ask, HookContext, HookRunner, LoadedHook, ToolCall
from agent_hooks.records import Records
from agent_hooks.records.lines import Line, Step
from agent_hooks.records.reading import check_chain, read_lines, record_files

L = TypeVar("L", bound=Line)
TOKEN = "ghp_" + "0123456789abcdefghij" * 2


class Recorded:
    """A home with records, the runners that write them, and the lines."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "records"

    def runner(self, *hooks: LoadedHook, records: dict[str, Any] | None = None, **options: Any) -> HookRunner:
        """Return a runner of hooks that writes records."""
        wish = Records(home=str(self.home), **(records or {}))
        return HookRunner(list(hooks), cwd=str(self.home), records=wish, **options)

    def lines(self, kind: type[L]) -> list[L]:
        """Return all lines of a kind; the chains are checked."""
        paths = record_files(str(self.directory))
        assert [check_chain(path) for path in paths] == [None] * len(paths)
        return [line for path in paths for line in read_lines(path) if isinstance(line, kind)]

    def line(self, kind: type[L]) -> L:
        """Return the only line of a kind."""
        (line,) = self.lines(kind)
        return line


def facts(step: Step) -> tuple[str, ...]:
    """Return the stage, the name, the answer and the outcome of a step."""
    return (step.stage, step.by, step.answer, step.outcome)


async def asking(event: ToolCall, ctx: HookContext) -> Ask:
    """Ask the person."""
    return Ask("Sure?", f"with {TOKEN}", rule="r1")
