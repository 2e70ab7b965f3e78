"""A command event of each agent that runs commands: the entry as an installation writes it, run as the agent runs it.

An entry with arguments is a program; any other entry is a line for a shell.  Beside it stand a bare interpreter and
`/bin/true`, each run in the same way.  The event is the bridge's own sample, and all agents ask one server.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.command_settings import CommandSettings
from agent_hooks.installs.generated import stub_path
from benchmarks.bridge_projects import BASE, Project
from benchmarks.harness import Effort, Row, interleave

TRUE = ["/bin/true"]
SHELL = ["/bin/sh", "-c"]
WRITE = "from agent_hooks.bridges import open_bridge; from agent_hooks.server.stub import write_stub; "


def command_bridges() -> list[Bridge]:
    """Return the bridges to agents that run a command for each event."""
    return [bridge for bridge in map(open_bridge, BRIDGES) if not bridge.plugin]


@dataclass
class Started:
    """A side that starts a command for each event; `processor` holds the processor time of one start, for each round."""

    command: list[str]
    project: Project
    payload: Path
    environment: dict[str, str]
    processor: list[float] = field(default_factory=list)

    async def __call__(self, loops: int) -> float:
        """Start the command, and return the seconds that it took."""
        before, begin = _processor(), perf_counter()
        for _ in range(loops):
            self.run()
        took = (perf_counter() - begin) / loops
        self.processor.append((_processor() - before) / loops)
        return took

    def run(self, stdout: int = subprocess.DEVNULL) -> bytes:
        """Start the command, and return its output."""
        with self.payload.open("rb") as payload:
            done = subprocess.run(
                self.command, stdin=payload, stdout=stdout, env=self.environment, cwd=self.project.folder, check=True
            )
        return done.stdout


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def command_events(project: Project, effort: Effort) -> list[Row]:
    """Compare the entry of each agent with a bare interpreter and with `/bin/true`."""
    bridges = command_bridges()
    ours = {bridge.name: _ours(bridge, project) for bridge in bridges}
    # The agents that run commands in the same way share the sides to compare with.
    shells = {bridge.name: _is_line(ours[bridge.name].command) for bridge in bridges}
    sides = dict(ours)
    for name, in_shell in shells.items():
        for what, words in (("base", BASE), ("true", TRUE)):
            command = [*SHELL, shlex.join(words)] if in_shell else words
            sides[f"{what} {in_shell}"] = Started(command, project, project.payload, ours[name].environment)
    rounds = await interleave(dict(sides), effort)
    rows = []
    for name, in_shell in shells.items():
        base, true = f"base {in_shell}", f"true {in_shell}"
        processor = median(sides[name].processor) / median(sides[base].processor)
        how = "run by a shell" if in_shell else "run without a shell"
        note = f"to base, {how}; {rounds.seconds(name) * 1e3:.1f} ms; {processor:.3g} of its processor time"
        beside = {"/bin/true": rounds.ratio(true, base)}
        rows.append(
            Row(f"a command event of {name}, bare", rounds.ratio(name, base), must=1.1, peers=beside, note=note)
        )
    return rows


def _ours(bridge: Bridge, project: Project) -> Started:
    """Return the side of an agent's installed entry, after its file is written and a first event is answered."""
    project.run([sys.executable, "-c", f"{WRITE}write_stub(open_bridge({bridge.name!r}))"])
    payload = project.folder / f"{bridge.name}.json"
    facts = bridge.facts(str(project.folder), project.environment)
    payload.write_text(json.dumps(facts.sample))
    process = {bridge.process_variable: str(os.getpid())} if bridge.process_variable else {}
    known = {name: project.environment[name] for name in ("HOME", "PATH")}
    command = [sys.executable, "-I", "-S", str(stub_path(bridge, project.home))]
    started = Started(entry(bridge, command, facts.event), project, payload, {**known, **facts.environment, **process})
    for _ in range(2):
        assert isinstance(json.loads(output := started.run(subprocess.PIPE)), dict), output
    assert json.loads(output) == {}, output
    return started


def entry(bridge: Bridge, command: list[str], event: str) -> list[str]:
    """Return the words with which an agent runs the entry that an installation writes for an event."""
    assert isinstance(bridge, CommandSettings), bridge.name
    settings = bridge.install({}, command, [event])
    found = next(each.entry for each in bridge.found(settings) if each.event == event)
    words = str(found[bridge.layout.command])
    args = found.get(bridge.layout.args) if bridge.layout.args else None
    return [*SHELL, words] if args is None else [words, *args]


def _is_line(command: list[str]) -> bool:
    return command[: len(SHELL)] == SHELL
