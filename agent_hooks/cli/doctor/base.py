"""The cases that checks examine, their diagnoses, and how a check runs a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import Facts, Installed
from agent_hooks.bridges.driver import listened_to
from agent_hooks.cli.setup import Setup
from agent_hooks.errors import os_reason
from agent_hooks.installs.places import Installation, Target, targets
from agent_hooks.storage.programs import find_program
from agent_hooks.trust.policy import TrustedSources

Status = Literal["ok", "warning", "problem"]
# Seconds for a program or a server to answer.
PATIENCE = 60


class Diagnosis(NamedTuple):
    """The outcome of a check: its subject (`what`), a sentence on its state, and the remedy.

    `in_project`: the remedy is a command that has to run in the project directory.
    """

    status: Status
    what: str
    text: str
    remedy: str = ""
    in_project: bool = False


class Case(NamedTuple):
    """The directory to examine; `setup` is `None` when its settings cannot be read.

    `sources`: the source trees that count, `None` when the trust store or the person's settings cannot be used.
    """

    cwd: str
    setup: Setup | None
    sources: TrustedSources | None = None

    @property
    def listened(self) -> frozenset[str]:
        """The events that hooks and settings listen to."""
        if self.setup is None:
            return frozenset()
        return listened_to(
            self.setup.loaded.hooks,
            self.setup.transformers.configured,
            self.setup.redactor,
            checkpoints=self.setup.settings.checkpoints.enabled,
        )


class AgentCase(NamedTuple):
    """Another agent in the project; `asked`: the person named it; `found`: the diagnoses before."""

    case: Case
    bridge: Bridge
    asked: bool
    installations: list[Installation]
    facts: Facts
    found: Sequence[Diagnosis] = ()

    @property
    def targets(self) -> dict[str, Target]:
        """The settings files that the agent has, by name."""
        return targets(self.bridge, self.case.cwd)

    @property
    def entries(self) -> list[tuple[Installation, Installed]]:
        """Our entries, each with its installation."""
        return [(each, entry) for each in self.installations for entry in each.entries]

    def ok(self, text: str) -> Diagnosis:
        """Return a diagnosis of this agent without a problem."""
        return Diagnosis("ok", self.bridge.name, text)

    def warning(self, text: str, remedy: str = "", *, in_project: bool = False) -> Diagnosis:
        """Return a warning about this agent."""
        return Diagnosis("warning", self.bridge.name, text, remedy, in_project)

    def problem(self, text: str, remedy: str = "", *, in_project: bool = False) -> Diagnosis:
        """Return a problem of this agent."""
        return Diagnosis("problem", self.bridge.name, text, remedy, in_project)


def of_project(program: str, cwd: str) -> bool:
    """Tell whether the first program of that name on the PATH is one of the project, which no check may run."""
    first = shutil.which(program)
    # This Python's own environment may lie in the project: it runs already.
    ours = first is not None and os.path.dirname(first) == os.path.dirname(sys.executable)
    return first is not None and not ours and not os.path.isabs(program) and first != find_program(program, outside=cwd)


def run_program(
    line: Iterable[str], *, input: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str] | str:
    """Run a program to its end; return the reason as a text if that failed."""
    try:
        return subprocess.run(
            list(line),
            input=input,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {PATIENCE} s"
    except OSError as exc:
        return f"cannot be run: {os_reason(exc)}"
