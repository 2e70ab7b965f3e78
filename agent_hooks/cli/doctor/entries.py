"""The checks of installed entries: their commands, timeouts and events, and the settings that disable them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import agent_hooks
from agent_hooks.bridges.base.installation import Installed
from agent_hooks.bridges.driver import unsupported, wrong_matchers
from agent_hooks.cli.doctor.base import AgentCase, Diagnosis, of_project, run_program
from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import SettingsError, shown
from agent_hooks.installs.edits import Format, read_settings
from agent_hooks.installs.generated import plugin_path, stub_path
from agent_hooks.installs.mods import loaded_mods
from agent_hooks.installs.places import PROGRAM, Installation, doubled, install_line, missing
from agent_hooks.installs.trusts import trust_path
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.fixed import fixed_in
from agent_hooks.server.stub import config_of, stub_text
from agent_hooks.storage.programs import find_program
from agent_hooks.trust.ancestors import running

# The system loads the libraries in these variables into every program.
_LOADED = ("LD_", "DYLD_")


def agent_version(case: AgentCase) -> Iterator[Diagnosis]:
    """Name the agent's version, and the version that the bridge was tested with."""
    facts = case.facts
    if case.bridge.is_untried and (case.asked or case.entries):
        text = f"the bridge comes from the documents of version {facts.tested}, and was never tried with a real one"
        yield case.warning(text, "try each hook that must hold")
    path = find_program(facts.program, outside=case.case.cwd)
    if path is None:
        if case.asked or case.entries:
            text = f"there is no `{facts.program}` on the PATH, so its version is unknown"
            remedy = "put it there, unless you start it in another way"
            yield case.warning(f"{text}; entries in its settings count all the same", remedy)
        return
    done = run_program([path, "--version"])
    output = "" if isinstance(done, str) else done.stdout.strip()
    version = re.search(r"\d+(\.\d+)+", output)
    if version is None:
        why = done if isinstance(done, str) else shown(output or done.stderr)
        yield case.warning(f"{path} --version prints no version: {why}")
    elif version[0] != facts.tested:
        known = "known from the documents is" if case.bridge.is_untried else "tested with"
        yield case.ok(f"version {version[0]}; {known} {facts.tested}")
    elif case.bridge.is_untried:
        yield case.ok(f"version {version[0]}, whose documents are known")
    else:
        yield case.ok(f"version {version[0]}, which this was tested with")


def settings_files(case: AgentCase) -> Iterator[Diagnosis]:
    """Name the settings files that hold entries of ours."""
    for each in case.installations:
        if each.problem:
            yield case.problem(each.problem)
        else:
            installed = dict.fromkeys(entry.event for entry in each.entries)
            yield case.ok(f"{short(each.target.path)}: {', '.join(installed)}")
    if not case.entries:
        target = "local" if "local" in case.targets else "user"
        remedy = install_line(case.bridge, target)
        yield Diagnosis("problem" if case.asked else "ok", case.bridge.name, "not installed", remedy, in_project=True)


def commands(case: AgentCase) -> Iterator[Diagnosis]:
    """Check that the programs and files in the commands of entries exist and are of this version."""
    for installation, entry in _one_of_each_command(case):
        if case.bridge.plugin:
            yield from _plugin(case, installation, entry)
        elif entry.address is None:
            yield from _program(case, installation, entry)
            yield from _files(case, installation, entry)


def _plugin(case: AgentCase, installation: Installation, entry: Installed) -> Iterator[Diagnosis]:
    """Check the file that the agent loads into its own process, and the file that starts the server for it."""
    path, remedy = entry.command[0], install_line(case.bridge, installation.target.name)
    stub = stub_path(case.bridge)
    if path != str(plugin_path(case.bridge)):
        text = f"{short(installation.target.path)}: names {path}, which is not the plugin of this home"
        yield case.problem(text, remedy, in_project=True)
    elif not os.path.isfile(path) or not stub.is_file():
        yield case.problem(f"{stub if os.path.isfile(path) else path} is not there", remedy, in_project=True)
    else:
        # Imported here, because most agents run a command.
        from agent_hooks.server.plugin_file import plugin_text

        config = config_of(case.bridge, fixed=fixed_in(str(stub)))
        if _text_of(stub) != stub_text(config) or _text_of(Path(path)) != plugin_text(
            case.bridge, path, str(stub), config
        ):
            text = f"{path} is of another version, or of another Python"
            yield case.warning(text, remedy, in_project=True)


def _program(case: AgentCase, installation: Installation, entry: Installed) -> Iterator[Diagnosis]:
    name = entry.command[0]
    program = shutil.which(name)
    if program is None:
        missing = "is not there" if os.path.isabs(name) else "is not on the PATH"
        remedy = install_line(case.bridge, installation.target.name)
        yield case.problem(f"{short(installation.target.path)}: {name} {missing}", remedy, in_project=True)
    elif of_project(name, case.case.cwd):
        text = f"{program} is a program of this project, and the agent runs it, because it is first on the PATH"
        yield case.problem(text, "put the one that you mean first on the PATH")
    elif name == PROGRAM:
        remedy = "put the one that you mean first on the PATH"
        done = run_program([program, "--version"])
        if isinstance(done, str):
            yield case.warning(f"{program} on the PATH {done}", remedy)
        elif not (output := done.stdout.strip()).endswith(f" {agent_hooks.__version__}"):
            yield case.warning(f"{program} on the PATH is another version: {shown(output)}", remedy)


def _files(case: AgentCase, installation: Installation, entry: Installed) -> Iterator[Diagnosis]:
    generated = stub_path(case.bridge)
    remedy = install_line(case.bridge, installation.target.name)
    if str(generated) in entry.command and shutil.which(entry.command[0]) is not None:
        if not generated.is_file():
            yield case.problem(f"{generated} is not there", remedy, in_project=True)
        elif _text_of(generated) != stub_text(config_of(case.bridge, fixed=fixed_in(str(generated)))):
            text = f"{generated} is of another version, or of another Python"
            yield case.warning(text, remedy, in_project=True)
    for word in entry.command[1:-1]:
        if os.path.isabs(word) and word != str(generated) and not os.path.exists(word):
            yield case.problem(f"{short(installation.target.path)}: {word} is not there", remedy, in_project=True)


def shared_entries(case: AgentCase) -> Iterator[Diagnosis]:
    """Tell the power that a project keeps over entries which name no path."""
    for each in case.installations:
        if each.target.name == "project" and each.entries:
            text = (
                f"{short(each.target.path)} names no path of this machine: `env` there may set PATH, so that another "
                "program answers, and `disableAllHooks` switches all hooks off"
            )
            remedy = f"entries that hold in every project: {install_line(case.bridge, 'user')}"
            yield case.ok(text)._replace(remedy=remedy)


def environment(case: AgentCase) -> Iterator[Diagnosis]:
    """Report the variables in the project's settings that lead a command of an entry elsewhere."""
    shared = any(each.target.name == "project" and each.entries for each in case.installations)
    if not case.entries:
        return
    for target in (case.targets[name] for name in ("project", "local") if name in case.targets):
        path = target.path
        try:
            found = case.bridge.variables(read_settings(path, target.format)[1])
        except SettingsError:
            # `settings_files` reports it.
            continue
        leading = [each for each in found if each.startswith(_LOADED) or each in case.bridge.environment]
        leading += [each for each in found if shared and (each == "PATH" or each.startswith("PYTHON"))]
        if leading:
            text = (
                f"{short(path)}: `env` sets {', '.join(leading)}, by which another program may run or no hook may count"
            )
            yield case.warning(text, "read the file, and remove them unless they are yours")


def failures_and_timeouts(case: AgentCase) -> Iterator[Diagnosis]:
    """Check that a failure of a gate denies, and that the agent waits longer than our own deadline."""
    rows = {row.name: row for row in case.bridge.describe()}
    for installation, entry in case.entries:
        row, where = rows.get(entry.event), f"{short(installation.target.path)}: {entry.event}"
        remedy = install_line(case.bridge, installation.target.name)
        if row is None:
            continue
        if row.gate and not entry.fails_closed:
            yield case.problem(f"{where}: a failure of the command lets the call pass", remedy, in_project=True)
        # A plugin waits as long as it is asked to.
        if not case.bridge.plugin and row.timeout is not None and (entry.timeout or 0) < row.timeout:
            given = "the agent's own timeout" if entry.timeout is None else f"a timeout of {entry.timeout:g} s"
            text = f"{where} has {given}, which ends before ours: {row.timeout} s"
            yield case.warning(text, remedy, in_project=True)


def events(case: AgentCase) -> Iterator[Diagnosis]:
    """Report handlers that wait for an event that never comes."""
    for each in missing(case.bridge, case.installations, case.case.listened):
        yield case.problem(str(each), each.remedy, in_project=True)
    setup = case.case.setup
    if not case.entries or setup is None:
        return
    for path, text in unsupported(case.bridge.name, case.bridge.describe(), setup.loaded.hooks):
        yield case.warning(f"{short(path)} {text}", "it works in agent-hooks run")
    for text in wrong_matchers(HookRunner(setup.loaded.hooks, cwd=case.case.cwd), case.bridge.tools):
        yield case.problem(text, "name the tool as this agent does")


def doubled_entries(case: AgentCase) -> Iterator[Diagnosis]:
    """Report events that fire twice, by two settings files."""
    for each in doubled(case.bridge, case.installations):
        yield case.warning(each.text(short), each.remedy, in_project=True)


def hindrances(case: AgentCase) -> Iterator[Diagnosis]:
    """Report the agent's own settings that disable hooks."""
    if not case.entries:
        return
    posted = [entry.command[0] for _, entry in case.entries if entry.address is not None]
    files: dict[str, Format] = {target.path: target.format for target in case.targets.values()}
    for name in case.facts.files:
        files[os.path.join(case.case.cwd, os.path.expanduser(name))] = "json"
    if (trusted := trust_path(case.bridge)) is not None:
        files[trusted] = "toml"
    for path, kind in files.items():
        try:
            settings = read_settings(path, kind)[1]
        except SettingsError:
            # `settings_files` reports it.
            continue
        for each in case.bridge.hindrances(path, settings, case.case.cwd, posted):
            text = f"{short(path)}: {each.text}"
            yield Diagnosis("problem" if each.always else "warning", case.bridge.name, text, each.remedy)


def mods(case: AgentCase) -> Iterator[Diagnosis]:
    """List the other mods that the agent loads, each with its tier and its events."""
    if not case.entries:
        return
    for each in loaded_mods(case.bridge, case.case.cwd):
        yield Diagnosis("ok", case.bridge.name, f"mod {each}")


def hookless(case: AgentCase) -> Iterator[Diagnosis]:
    """Report each running session in which the agent runs no hook, because of an option."""
    if not case.entries or not case.facts.hookless:
        return
    for process in running(case.facts.program):
        if option := next((each for each in process.arguments if each in case.facts.hookless), None):
            text = f"process {process.pid} was started with {option}, so it runs no hook"
            yield case.warning(text, f"end it, and start {case.facts.program} without {option}")


def _one_of_each_command(case: AgentCase) -> Iterable[tuple[Installation, Installed]]:
    """Return an entry for each command that differs in more than the event."""
    return {(each.target.path, entry.command[:-1]): (each, entry) for each, entry in case.entries}.values()


def _text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
