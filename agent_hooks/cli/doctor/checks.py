"""What `agent-hooks doctor` looks at in hooks and settings: a check is a function in `CHECKS` that yields findings.

Above: doctor, agent_checks.  Below: common, guards.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import agent_hooks
from agent_hooks.bridges.driver import listened_to
from agent_hooks.cli.setup import Setup, count, unused_hooks
from agent_hooks.errors import SettingsError
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.config import read_sections

Status = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """What a check found: `what` was looked at, `text` says how it is, `remedy` what to do."""

    status: Status
    what: str
    text: str
    remedy: str = ""


class Case(NamedTuple):
    """What there is to examine; `setup` is `None` where settings cannot be read."""

    cwd: str
    setup: Setup | None

    @property
    def listened(self) -> frozenset[str]:
        """What hooks and settings listen to."""
        if self.setup is None:
            return frozenset()
        return listened_to(self.setup.loaded.hooks, self.setup.transformers.configured, self.setup.redactor)


def versions(case: Case) -> Iterator[Finding]:
    """Name what runs."""
    python = f"Python {platform.python_version()} ({sys.executable})"
    yield Finding("ok", "agent_hooks", f"{agent_hooks.__version__}, {python}")


def hooks(case: Case) -> Iterator[Finding]:
    """Name what cannot be loaded, by file and line, and what lies where nobody looks."""
    if case.setup is not None:
        for error in case.setup.errors:
            yield Finding("problem", "hooks", str(error), "mend or remove it; until then it blocks calls")
        loaded, steps = case.setup.loaded.hooks, case.setup.transformers.configured
        handlers = sum(len(each) for hook in loaded for each in hook.handlers.values())
        handlers += sum(len(hook.api.interceptors) for hook in loaded)
        text = f"{count(len(loaded), 'hook')}, {count(handlers, 'handler')}, {count(len(steps), 'transformer')}"
        yield Finding("ok", "hooks", text)
    if (text := unused_hooks(case.cwd) or "") != "":
        yield Finding("warning", "hooks", text)


def guards(case: Case) -> Iterator[Finding]:
    """Check the guards' section of the settings."""
    if case.setup is not None:
        try:
            read_sections(case.setup.settings.guards, tuple(BUILTIN))
        except SettingsError as exc:
            yield Finding("problem", "guards", str(exc), "mend the file; until then every tool call is denied")
        else:
            redaction = "on" if case.setup.redactor is not None else "off"
            yield Finding("ok", "settings", f"read; redaction is {redaction}")


CHECKS: tuple[Callable[[Case], Iterable[Finding]], ...] = (versions, hooks, guards)
