"""The checks that try an installation out: other packages of the same name, a sample call, a post to the server."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import agent_hooks
from agent_hooks.bridges.base.installation import LOOPBACK, Address, Installed
from agent_hooks.bridges.base.verdicts import UNJUDGED, UNREADABLE
from agent_hooks.cli.answering import last_words
from agent_hooks.cli.doctor import base
from agent_hooks.cli.doctor.base import AgentCase, Diagnosis, of_project, run_program
from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import describe, shown
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.git_ignore import how_to_ignore
from agent_hooks.installs.places import PROGRAM, entry_command, install_line, same_command
from agent_hooks.server import client
from agent_hooks.server.control import place_of, refresh_ports
from agent_hooks.storage.files import others_may_read

# Our name in a package index.
DISTRIBUTION = "agent-hooks-runtime"
# Seconds for an event, with the start of a server.
SLOW = 5.0
# Prints the place that a Python imports `agent_hooks` from, and the distributions that contain an `agent_hooks`.
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


def distributions(case: AgentCase) -> Iterator[Diagnosis]:
    """Report another package that contains an `agent_hooks`, which would run in the place of this one."""
    ours = os.path.realpath(agent_hooks.__file__)
    done = run_program([sys.executable, "-P", "-c", _ASK_PYTHON])
    try:
        origin, found = json.loads("" if isinstance(done, str) else done.stdout)
    except ValueError:
        why = done if isinstance(done, str) else done.stderr
        yield Diagnosis("problem", "agent_hooks", f"{sys.executable} cannot list its packages: {shown(why)}")
        return
    if os.path.realpath(origin or "") != ours:
        yield Diagnosis("problem", "agent_hooks", f"{sys.executable} has agent_hooks from {origin}, not from {ours}")
    for name, version, place in found:
        if name != DISTRIBUTION:
            remedy = shlex.join([sys.executable, "-m", "pip", "uninstall", name])
            text = f"{name} {version} in {place} is another package, and contains an agent_hooks as well"
            yield Diagnosis("problem", "agent_hooks", text, remedy)


def server_directory(case: AgentCase) -> Iterator[Diagnosis]:
    """Check that the directory of the server belongs to this user alone: another user may have made it first."""
    folder = client.directory()
    if case.entries and not client.is_private(folder):
        text = f"{folder} is not yours alone: each event starts a process of its own, and hooks keep no state"
        yield case.warning(text, f"remove it, or find its owner: ls -ld {folder}")


# ---- a sample call ---------------------------------------------------------------------------------------------------


def call(case: AgentCase) -> Iterator[Diagnosis]:
    """Send a sample call through each installed command, as the agent does."""
    # A session of its own: an earlier one would still have its hooks, although their files are broken now.
    facts = case.facts
    sample = {**facts.sample, facts.session_field: f"{facts.sample[facts.session_field]} {os.getpid()}"}
    event = facts.event
    installed = dict.fromkeys(entry.command for _, entry in case.entries if entry.event == event)
    process = {case.bridge.process_variable: str(os.getpid())} if case.bridge.process_variable else {}
    environment = {**os.environ, **facts.environment, **process}
    for installed_line in installed:
        line = _tried(case, installed_line)
        # Only our own commands run: the settings of a project may name any program.
        if line is None:
            text = f"{event}: was not tried, because the entry runs another command: {shown(' '.join(installed_line))}"
            yield case.warning(text, "install again, if it is yours")
            continue
        if of_project(line[0], case.case.cwd):
            # `entries.commands` reports it.
            continue
        begun = time.monotonic()
        done = run_program(line, input=json.dumps(sample), environment=environment)
        yield _diagnosis(case, event, done, time.monotonic() - begun)


def variables(case: AgentCase) -> Iterator[Diagnosis]:
    """Name the variables that the sample call had, and without which an entry is silent: only the agent sets them."""
    given = case.facts.environment
    needed = [
        name for name in given if not case.bridge.runs_here({each: given[each] for each in given if each != name})
    ]
    if needed and case.entries:
        known = "its documents say so" if case.bridge.is_untried else f"version {case.facts.tested} does"
        name = case.bridge.name
        text = f"entries are silent unless {name} sets {', '.join(needed)}: {known}, and this trial set it itself"
        yield case.ok(text)


def _tried(case: AgentCase, installed: tuple[str, ...]) -> list[str] | None:
    """Return the command that tries an installed one out; `None` if that is not ours.

    A plugin runs in the agent only, so the command by which it reaches the server takes its place.
    """
    if case.bridge.plugin:
        command = [sys.executable, "-I", "-S", str(stub_path(case.bridge)), case.facts.event]
        return command if list(installed) == entry_command(case.bridge, "user") else None
    known = (entry_command(case.bridge, name) for name in case.targets)
    return list(installed) if any(same_command(installed[:-1], each) for each in known) else None


def _diagnosis(case: AgentCase, event: str, done: subprocess.CompletedProcess[str] | str, seconds: float) -> Diagnosis:
    """Return the diagnosis of a command that has answered the sample call."""
    if isinstance(done, str):
        return case.problem(f"{event}: {done}")
    try:
        answer: object = json.loads(done.stdout)
    except ValueError:
        answer = None
    if done.returncode != 0 or not isinstance(answer, dict):
        text = f"exit code {done.returncode}, printed {shown(done.stdout)}; {shown(done.stderr.strip())}"
        return case.problem(f"{event}: no answer: {text}")
    # The reply has the agent's form, which has no field for a failure of ours.  Its exit code is 0, because some versions
    # run the tool after any other.  So the beginning of the reason is the only fact there is.
    if any(line.startswith((UNJUDGED, UNREADABLE)) for line in _lines(answer)):
        return case.problem(f"{event}: {_news(case, event, answer)}")
    took = f"{event}: answered in {seconds:.2f} s"
    if seconds > SLOW:
        return case.warning(f"{took}, which is slow", f"{PROGRAM} serve --log", in_project=True)
    return case.ok(f"{took}{', by hooks: ' + _news(case, event, answer) if answer else ''}")


def _news(case: AgentCase, event: str, answer: object) -> str:
    """Return the texts of an answer, without those of the diagnoses before.

    Another process made the answer, and put the texts into sentences of its own, so only the texts can be compared.
    """
    known = [diagnosis.text for diagnosis in case.found if diagnosis.status != "ok"]
    lines = [line for line in _lines(answer) if line != event]
    news = [line for line in lines if not any(text in line for text in known)]
    return "; ".join(news if news == lines else [*news, "see above"])


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of all texts in JSON data."""
    if isinstance(value, str):
        yield from value.splitlines()
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _lines(item)


# ---- events by HTTP --------------------------------------------------------------------------------------------------


def posts(case: AgentCase) -> Iterator[Diagnosis]:
    """Check that a posted event arrives at this project's server and nowhere else."""
    without = f"{install_line(case.bridge, 'local')} --no-http"
    posted = {entry.address: (installation.target.path, entry) for installation, entry in case.entries}
    for address, (path, entry) in posted.items():
        if address is None:
            continue
        yield from _token(case, path)
        if getproxies_environment().get("http") and not proxy_bypass(LOOPBACK):
            text = "HTTP_PROXY is set: posted events go there, with the token, and not to the server"
            yield case.problem(text, f"NO_PROXY={LOOPBACK} in the environment of the agent, or {without}")
        yield _post_diagnosis(case, entry, address, without)


def _token(case: AgentCase, path: str) -> Iterator[Diagnosis]:
    """Check that other people cannot read the token in a settings file."""
    if ignore := how_to_ignore(os.path.realpath(path), short):
        yield case.problem(f"{short(path)}: git would commit the port and the token", ignore)
    # The file may have gone meanwhile.
    with suppress(OSError):
        if others_may_read(path):
            text = f"{short(path)}: others can read the port and the token"
            yield case.problem(text, f"chmod go= {shlex.quote(short(path))}")


def _post_diagnosis(case: AgentCase, entry: Installed, address: Address, without: str) -> Diagnosis:
    try:
        status = _post(case, entry, address)
    except (OSError, HTTPException) as exc:
        text = f"{entry.event}: no server answers at port {address.port}: {describe(exc)}"
        remedy = f"{PROGRAM} serve --log shows the reason; to do without HTTP: {without}"
        return case.problem(text, remedy, in_project=True)
    if status != HTTPStatus.OK:
        text = f"{entry.event}: the program at port {address.port} is not this project's server: HTTP status {status}"
        return case.problem(text, f"to do without HTTP: {without}")
    if address.port not in refresh_ports(case.case.cwd):
        text = f"{entry.event}: the server at port {address.port} is that of another project"
        again = f"{without} && {install_line(case.bridge, 'local')} --http"
        return case.problem(text, f"a copy of the settings has the port of the first; choose another: {again}")
    return case.ok(f"{entry.event}: heard by HTTP at port {address.port}")


def _post(case: AgentCase, entry: Installed, address: Address) -> int:
    """Post an event of an unknown session, which reaches no hook, and return the HTTP status."""
    names = {case.bridge.event_field: entry.event, case.facts.session_field: f"{PROGRAM} doctor, by HTTP"}
    payload = {**case.facts.sample, **names}
    headers = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
    with closing(HTTPConnection(LOOPBACK, address.port, timeout=base.PATIENCE)) as connection:
        connection.request("POST", urlsplit(entry.command[0]).path, json.dumps(payload), headers)
        return connection.getresponse().status


def running(case: AgentCase) -> Iterator[Diagnosis]:
    """Report a server that cannot start: then hooks keep no state, and each event takes as long as a whole process."""
    ours = entry_command(case.bridge, "local")
    commands = [entry.command for _, entry in case.entries if entry.event == case.facts.event]
    # The command of a plugin does not end with the event's name.
    tried = any(same_command(command if case.bridge.plugin else command[:-1], ours) for command in commands)
    if not tried or not client.is_private(client.directory()):
        # `trial.server_directory` reports a directory of another user.
        return
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{place_of(case.case.cwd)}.socket")
    except OSError:
        text = f"no resident server can be started, so hooks keep no state: {last_words(case.case.cwd)}"
        yield case.problem(text, f"{PROGRAM} serve", in_project=True)
