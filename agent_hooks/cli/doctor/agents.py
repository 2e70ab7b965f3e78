"""What `agent-hooks doctor` looks at in an installation: a check is a function in `AGENT_CHECKS` that yields findings.

Above: doctor.  Below: checks, installation, bridges, server.stub.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from glob import glob
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import agent_hooks
from agent_hooks.bridges.base import LOOPBACK, OURS, Address, Bridge, Facts, Installed
from agent_hooks.bridges.driver import never_reached, wrong_matchers
from agent_hooks.cli.commands.install import twice_told
from agent_hooks.cli.commands.serve import let_look
from agent_hooks.cli.doctor.checks import Case, Finding, Status
from agent_hooks.cli.setup import short
from agent_hooks.errors import SettingsError, describe, os_reason, shown
from agent_hooks.installs.edits import read_settings
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.git_ignore import how_to_ignore
from agent_hooks.installs.places import PROGRAM, Place, entry_command, install_line, missing
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server import client
from agent_hooks.server.stub import config_of, stub_text
from agent_hooks.storage.files import others_may_read

DISTRIBUTION = "agent-hooks-runtime"  # what we are called in a package index
_PATIENCE = 60  # seconds for a program that is asked something
_SLOW = 5.0  # seconds for an event, with the start of a server
# prints where a Python has `agent_hooks` from, and which distributions bring one
_ASK_PYTHON = """
import importlib.metadata, importlib.util, json, re
spec = importlib.util.find_spec("agent_hooks")
found = []
for each in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", each.metadata["Name"] or "").lower()
    brings = any(str(file).startswith("agent_hooks/") for file in each.files or ())
    if brings or name in ("agent-hooks", "agent-hooks-runtime"):
        found.append([name, each.version, str(each.locate_file(""))])
print(json.dumps([spec and spec.origin, found]))
"""


class AgentCase(NamedTuple):
    """One other agent; `asked`: whether the person named it; `found`: what was found before."""

    case: Case
    bridge: Bridge
    asked: bool
    places: list[Place]
    facts: Facts
    found: Sequence[Finding] = ()

    @property
    def entries(self) -> list[tuple[Place, Installed]]:
        """Our entries, each with where it is."""
        return [(place, entry) for place in self.places for entry in place.entries]


def agent_version(case: AgentCase) -> Iterator[Finding]:
    """Name the agent's version, and the one that the bridge was tried with."""
    name, facts = case.bridge.name, case.facts
    path = shutil.which(facts.program)
    if path is None:
        if case.asked or case.entries:
            text = f"there is no `{facts.program}` on the PATH, so its version is unknown"
            remedy = "put it there, unless you start it in another way"
            yield Finding("warning", name, f"{text}; entries in its settings count all the same", remedy)
        return
    done = _run([path, "--version"])
    said = "" if isinstance(done, str) else done.stdout.strip()
    found = re.search(r"\d+(\.\d+)+", said)
    if found is None:
        why = done if isinstance(done, str) else shown(said or done.stderr)
        yield Finding("warning", name, f"{path} --version says no version: {why}")
    elif found[0] != facts.tested:
        yield Finding("ok", name, f"version {found[0]}; tested with {facts.tested}")
    else:
        yield Finding("ok", name, f"version {found[0]}, which this was tested with")


def installation(case: AgentCase) -> Iterator[Finding]:
    """Name the settings files that hold entries of ours."""
    for place in case.places:
        if place.problem:
            yield Finding("problem", case.bridge.name, place.problem)
        else:
            events = dict.fromkeys(entry.event for entry in place.entries)
            yield Finding("ok", case.bridge.name, f"{short(place.target.path)}: {', '.join(events)}")
    if not case.entries:
        status: Status = "problem" if case.asked else "ok"
        yield Finding(status, case.bridge.name, "not installed", install_line(case.bridge, "local"))


def what_entries_name(case: AgentCase) -> Iterator[Finding]:
    """Check that what entries run is there, and of today."""
    generated, of_today = stub_path(case.bridge), stub_text(config_of(case.bridge))
    for place, entry in _one_of_each_command(case):
        if entry.address is not None:
            continue
        remedy, where = install_line(case.bridge, place.target.name), short(place.target.path)
        program = shutil.which(entry.command[0])
        if program is None:
            how = "is not there" if os.path.isabs(entry.command[0]) else "is not on the PATH"
            yield Finding("problem", case.bridge.name, f"{where}: {entry.command[0]} {how}", remedy)
        elif entry.command[0] == PROGRAM:
            done = _run([program, "--version"])
            said = done if isinstance(done, str) else done.stdout.strip()
            if not said.endswith(f" {agent_hooks.__version__}"):
                text = f"{program} on the PATH is another version: {shown(said)}"
                yield Finding("warning", case.bridge.name, text, "put the one that you mean first on the PATH")
        elif str(generated) in entry.command:
            if not generated.is_file():
                yield Finding("problem", case.bridge.name, f"{generated} is not there", remedy)
            elif _read(generated) != of_today:
                text = f"{generated} is of another version, or of another Python"
                yield Finding("warning", case.bridge.name, text, remedy)
        for word in entry.command[1:-1]:
            if os.path.isabs(word) and word != str(generated) and not os.path.exists(word):
                yield Finding("problem", case.bridge.name, f"{where}: {word} is not there", remedy)


def what_entries_promise(case: AgentCase) -> Iterator[Finding]:
    """Check that a failure of a gate denies, and that the agent waits longer than we do."""
    rows = {row.name: row for row in case.bridge.describe()}
    for place, entry in case.entries:
        row, where = rows.get(entry.event), f"{short(place.target.path)}: {entry.event}"
        remedy = install_line(case.bridge, place.target.name)
        if row is None:
            continue
        if row.gate and not entry.fails_closed:
            yield Finding("problem", case.bridge.name, f"{where}: a failure of the command lets it pass", remedy)
        if row.timeout is not None and (entry.timeout or 0) < row.timeout:
            given = "the agent's own timeout" if entry.timeout is None else f"a timeout of {entry.timeout:g} s"
            yield Finding(
                "warning", case.bridge.name, f"{where} has {given}, which ends before ours: {row.timeout} s", remedy
            )


def events(case: AgentCase) -> Iterator[Finding]:
    """Name what hooks wait for in vain."""
    for text in missing(case.bridge, case.places, case.case.listened):
        said, _, remedy = text.rpartition(": ")
        yield Finding("problem", case.bridge.name, said, remedy)
    setup = case.case.setup
    if not case.entries or setup is None:
        return
    for name in never_reached(case.bridge.describe(), case.case.listened):
        yield Finding("warning", case.bridge.name, f"hooks listen to {name}, which this agent has nothing for")
    for text in wrong_matchers(HookRunner(setup.loaded.hooks, cwd=case.case.cwd), case.bridge.tools):
        yield Finding("problem", case.bridge.name, text, "name the tool as it is called here")


def twice(case: AgentCase) -> Iterator[Finding]:
    """Name what would fire twice."""
    for text in twice_told(case.bridge, case.places):
        said, _, remedy = text.partition("; take one out: ")
        yield Finding("warning", case.bridge.name, said, remedy)
    if not case.entries:
        return
    for pattern in case.facts.others:
        for path in sorted(glob(os.path.join(case.case.cwd, os.path.expanduser(pattern)))):
            text = _read(Path(path))
            if OURS in text or PROGRAM in text:
                yield Finding(
                    "warning",
                    case.bridge.name,
                    f"{short(path)} runs agent_hooks too, and its agent also reads the settings of {case.bridge.name}",
                    "keep one of the two",
                )


def hindrances(case: AgentCase) -> Iterator[Finding]:
    """Name what switches hooks off."""
    if not case.entries:
        return
    posted = [entry.command[0] for _, entry in case.entries if entry.address is not None]
    names = [*case.bridge.settings_files(os.environ).values(), *case.facts.files]
    for path in dict.fromkeys(os.path.join(case.case.cwd, os.path.expanduser(name)) for name in names):
        try:
            found = read_settings(path)[1]
        except SettingsError:  # of ours, `installation` tells
            continue
        for each in case.bridge.hindrances(path, found, case.case.cwd, posted):
            text = f"{short(path)}: {each.text}"
            yield Finding("problem" if each.always else "warning", case.bridge.name, text, each.remedy)


def distributions(case: AgentCase) -> Iterator[Finding]:
    """Name another package called agent_hooks, which would run in the place of this one."""
    ours = os.path.realpath(agent_hooks.__file__)
    done = _run([sys.executable, "-P", "-c", _ASK_PYTHON])
    try:
        origin, found = json.loads("" if isinstance(done, str) else done.stdout)
    except ValueError:
        why = done if isinstance(done, str) else done.stderr
        yield Finding("problem", "agent_hooks", f"{sys.executable} does not say what is installed: {shown(why)}")
        return
    if os.path.realpath(origin or "") != ours:
        yield Finding("problem", "agent_hooks", f"{sys.executable} has agent_hooks from {origin}, not from {ours}")
    for name, version, place in found:
        if name != DISTRIBUTION:
            remedy = f"{sys.executable} -m pip uninstall {name}"
            text = f"{name} {version} in {place} is another package, and brings an agent_hooks as well"
            yield Finding("problem", "agent_hooks", text, remedy)


def server(case: AgentCase) -> Iterator[Finding]:
    """Check that a resident process can be asked; somebody else may have made its directory first."""
    folder = client.directory()
    if case.entries and not client.is_private(folder):
        text = f"{folder} is not yours alone: each event starts a process of its own, and hooks keep no state"
        yield Finding("warning", case.bridge.name, text, f"remove it, or ask whose it is: ls -ld {folder}")


def trial(case: AgentCase) -> Iterator[Finding]:
    """Take a call through what is installed, as the agent does."""
    sample = case.facts.sample
    event = sample["hook_event_name"]
    installed = dict.fromkeys(entry.command for _, entry in case.entries if entry.event == event)
    environment = {**os.environ, **case.facts.environment, case.bridge.process_variable: str(os.getpid())}
    written = [entry_command(case.bridge, name) for name in ("local", "project")]
    for line in installed:
        if list(line[:-1]) not in written:  # a project's file may name any program
            text = f"{event}: was not tried, for the entry runs something else: {shown(' '.join(line))}"
            yield Finding("warning", case.bridge.name, text, "install again, if it is yours")
            continue
        begun = time.monotonic()
        done = _run(line, input=json.dumps(sample), environment=environment)
        seconds = time.monotonic() - begun
        yield _judged(case, event, done, seconds)


def _judged(case: AgentCase, event: str, done: subprocess.CompletedProcess[str] | str, seconds: float) -> Finding:
    bridge = case.bridge
    if isinstance(done, str):
        return Finding("problem", bridge.name, f"{event}: {done}")
    try:
        said: object = json.loads(done.stdout)
    except ValueError:
        said = None
    if done.returncode != 0 or not isinstance(said, dict):
        text = f"exit code {done.returncode}, printed {shown(done.stdout)}; {shown(done.stderr.strip())}"
        return Finding("problem", bridge.name, f"{event}: no answer: {text}")
    if "agent-hooks could not" in done.stdout:
        return Finding("problem", bridge.name, f"{event}: {_news(case, event, said)}")
    took = f"{event}: answered in {seconds:.2f} s"
    if seconds > _SLOW:
        return Finding("warning", bridge.name, f"{took}, which is slow", f"{PROGRAM} serve --log")
    return Finding("ok", bridge.name, f"{took}{', by hooks: ' + _news(case, event, said) if said else ''}")


def posts(case: AgentCase) -> Iterator[Finding]:
    """Check that what is posted would arrive, and nowhere else; after `trial`, which has started the server."""
    without = f"{install_line(case.bridge, 'local')} --no-http"
    posted = {entry.address: (place.target.path, entry) for place, entry in case.entries}
    for address, (path, entry) in posted.items():
        if address is not None:
            yield from _kept(case, path)
            if getproxies_environment().get("http") and not proxy_bypass(LOOPBACK):
                text = "HTTP_PROXY is set: what is posted goes there, with the token, and not to the server"
                remedy = f"NO_PROXY={LOOPBACK} in the environment of the agent, or {without}"
                yield Finding("problem", case.bridge.name, text, remedy)
            yield _heard(case, entry, address, without)


def _kept(case: AgentCase, path: str) -> Iterator[Finding]:
    """Check that nobody else gets at the token in a file."""
    if ignore := how_to_ignore(os.path.realpath(path), short):
        text = f"{short(path)}: git would take the port and the token along"
        yield Finding("problem", case.bridge.name, text, ignore)
    with suppress(OSError):  # it was there just now
        if others_may_read(path):
            text = f"{short(path)}: others can read the port and the token"
            yield Finding("problem", case.bridge.name, text, f"chmod go= {shlex.quote(short(path))}")


def _heard(case: AgentCase, entry: Installed, address: Address, without: str) -> Finding:
    name = case.bridge.name
    try:
        status = _posted(case, entry, address)
    except (OSError, HTTPException) as exc:
        text = f"{entry.event}: nobody hears it at port {address.port}: {describe(exc)}"
        return Finding("problem", name, text, f"{PROGRAM} serve --log tells why; to do without: {without}")
    if status != HTTPStatus.OK:
        text = f"{entry.event}: what listens at port {address.port} is not this project's server: HTTP status {status}"
        return Finding("problem", name, text, f"to do without: {without}")
    if address.port not in let_look(case.case.cwd):
        text = f"{entry.event}: it is another project's server that listens at port {address.port}"
        again = f"{without} && {install_line(case.bridge, 'local')} --http"
        return Finding("problem", name, text, f"give each its own, for a copy has those of the first: {again}")
    return Finding("ok", name, f"{entry.event}: heard by HTTP at port {address.port}")


def _posted(case: AgentCase, entry: Installed, address: Address) -> int:
    """Post an event of a session that nobody knows, so that no hook hears of it, and return the status."""
    payload = {**case.facts.sample, "hook_event_name": entry.event, "session_id": f"{PROGRAM} doctor, by HTTP"}
    headers = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
    with closing(HTTPConnection(LOOPBACK, address.port, timeout=_PATIENCE)) as connection:
        connection.request("POST", urlsplit(entry.command[0]).path, json.dumps(payload), headers)
        return connection.getresponse().status


AGENT_CHECKS: tuple[Callable[[AgentCase], Iterable[Finding]], ...] = (
    agent_version,
    distributions,
    installation,
    what_entries_name,
    what_entries_promise,
    events,
    twice,
    hindrances,
    server,
    trial,
    posts,
)


def _one_of_each_command(case: AgentCase) -> Iterable[tuple[Place, Installed]]:
    """Return an entry for each command that differs in more than the event."""
    return {(place.target.path, entry.command[:-1]): (place, entry) for place, entry in case.entries}.values()


def _run(
    line: Iterable[str], *, input: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str] | str:
    """Run a program to its end; a text says why that was not possible."""
    try:
        return subprocess.run(
            list(line),
            input=input,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {_PATIENCE} s"
    except OSError as exc:
        return f"cannot be run: {os_reason(exc)}"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _news(case: AgentCase, event: str, said: object) -> str:
    """Return what an answer says, for a person, without what was found before."""
    known = [finding.text for finding in case.found if finding.status != "ok"]
    lines = [line for line in _lines(said) if line != event]
    news = [line for line in lines if not any(text in line for text in known)]
    return "; ".join(news if news == lines else [*news, "see above"])


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of all texts in JSON data."""
    if isinstance(value, str):
        yield from value.splitlines()
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _lines(item)
