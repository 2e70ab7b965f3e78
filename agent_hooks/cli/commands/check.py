"""`agent-hooks check`: load hooks and transformers and report their problems, without running an agent."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable

import anyio
import click
from msgspec import Struct

from agent_hooks.cli.completing import file_names
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.screen.wording import NO_HOOKS, short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import find_sources, hiding, load, our_name_of
from agent_hooks.cli.streams import ReservedStdout, echo
from agent_hooks.cli.trusting import settle
from agent_hooks.errors import count
from agent_hooks.hook_packages import is_package
from agent_hooks.hooks.finding import HOOKS_DIRECTORY, hooks_in
from agent_hooks.hooks.loaded import LoadedHook, LoadError, LoadResult
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.host.tools import builtin_tools
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings, merge_settings
from agent_hooks.transformers.command_intercept import (
    INTERCEPT_FILE,
    TRANSFORMERS_DIRECTORY,
    Transformers,
    check_transformer,
    load_transformers,
)
from agent_hooks.trees import SourceTree
from agent_hooks.trust.policy import ProjectTrust, Trust, TrustedSources

HOME = ".agent"


class Checked(Struct):
    """The problems, and a line for each file without one, in the order in which they were found."""

    problems: list[str]
    lines: list[str]


@click.command("check")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=file_names)
@cwd_option
@click.pass_context
def command(ctx: click.Context, paths: tuple[str, ...], cwd: str) -> None:
    """Load each PATH and report problems as file:line; exit 1 when there is one.

    A PATH is a hook, a transformer in a directory named transformers, a command_intercept.yaml, or a directory of these,
    for example .agent.  Without a PATH, the hooks, settings and transformers that count here are checked; those that wait
    for approval are named, and the exit code is 1.
    """
    sources = settle(Trust(), cwd)
    settings = merge_settings(sources.trees)
    with ReservedStdout(), working("loading hooks"):
        if paths:
            checked = anyio.run(_check_named, [os.path.abspath(path) for path in paths], os.path.abspath(cwd), settings)
        else:
            checked = anyio.run(_check_here, cwd, sources)
    for problem in map(hiding(settings), checked.problems):
        echo(problem)
    for line in checked.lines:
        echo(line)
    unchecked = [] if paths else [_unchecked(each) for each in sources.projects if each.waits]
    if not paths and not checked.problems and not checked.lines and not unchecked:
        echo(NO_HOOKS)
    for line in unchecked:
        echo(line, err=True)
    ctx.exit(FAILED if checked.problems or unchecked else OK)


def _unchecked(project: ProjectTrust) -> str:
    """Return the line about a project whose files, as they are now, were not checked because they wait for approval."""
    place = short(project.directory)
    if project.files is None:
        told = "waits for approval, and nothing of it was checked; to check its files"
    else:
        told = "was changed, and the approved files were checked; to check those on the disk"
    return f"{place} {told}: agent-hooks check {shlex.quote(place)}"


async def _check_here(cwd: str, sources: TrustedSources) -> Checked:
    """Check the sources that count for a directory."""
    setup = await load(find_sources(cwd, (), sources))
    # The approved text counts there, and the files on the disk are others.
    changed = tuple(os.path.join(each.directory, "") for each in sources.projects if each.waits)

    def name(path: str) -> str:
        return f"{short(path)}, as approved" if path.startswith(changed) else short(path)

    checked = _checked(setup.loaded, setup.cwd, setup.settings, name)
    checked.problems += [str(error) for error in setup.transformers.errors]
    for path in dict.fromkeys(each.settings_file for each in setup.transformers.configured if each.settings_file):
        checked.lines.append(f"{name(path)}: {_read_steps(path, setup.transformers)}")
    return checked


async def _check_named(paths: list[str], cwd: str, settings: Settings) -> Checked:
    """Check files and directories that a person has named; these need no approval."""
    files, empty = _files(paths)
    intercepts = [path for path in files if path.endswith(".yaml")]
    transformers = [path for path in files if os.path.basename(os.path.dirname(path)) == TRANSFORMERS_DIRECTORY]
    hooks = [path for path in files if path not in (*intercepts, *transformers)]
    checked = _checked(await load_hooks(hooks, cwd=cwd, isolation=settings.isolation), cwd, settings)
    for path in transformers:
        if (mistake := check_transformer(path)) is not None:
            checked.problems.append(str(mistake))
        else:
            checked.lines.append(f"{short(path)}: loaded, 1 transformer")
    for path in intercepts:
        found = _read(path, cwd)
        checked.problems += [str(error) for error in found.errors]
        checked.lines.append(f"{short(path)}: {_read_steps(path, found)}")
    checked.problems += empty
    return checked


def _files(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files and packages to check, and a problem for each directory that has none."""
    files: dict[str, None] = {}
    problems: list[str] = []
    for path in paths:
        if not os.path.isdir(path) or is_package(path) or path.endswith(".yaml"):
            files[path] = None
            continue
        errors: list[LoadError] = []
        found = _files_in(path, errors)
        problems += map(str, errors)
        if not found and not errors:
            problems.append(f"{short(path)}: no hooks here; a hook is a .py file whose name begins with no . and no _")
        files.update(dict.fromkeys(found))
    return list(files), problems


def _files_in(directory: str, errors: list[LoadError]) -> list[str]:
    """Return the hooks of a directory; of a project or an `.agent`, also its transformers and their settings."""
    if os.path.isdir(agent := os.path.join(directory, HOME)):
        directory = agent
    tree = SourceTree(directory)
    parts = [os.path.join(directory, name) for name in (HOOKS_DIRECTORY, TRANSFORMERS_DIRECTORY)]
    intercept = os.path.join(directory, INTERCEPT_FILE)
    if not any(map(os.path.isdir, parts)) and not os.path.lexists(intercept):
        return hooks_in(directory, tree, errors)
    found = [path for part in parts for path in hooks_in(part, tree, errors)]
    return [*found, intercept] if os.path.lexists(intercept) else found


def _read(path: str, cwd: str) -> Transformers:
    # A link to nowhere is there, and blocks every call.
    if not os.path.lexists(path):
        return Transformers(errors=(LoadError(path, "no such file"),))
    return load_transformers(cwd=cwd, files=[path], our_name=our_name_of)


def _read_steps(path: str, found: Transformers) -> str:
    """Return the number of transformers that were read from a file, for a person."""
    steps = sum(step.problem is None and step.settings_file == path for step in found.configured)
    return f"read, {count(steps, 'transformer')}"


def _checked(loaded: LoadResult, cwd: str, settings: Settings, name: Callable[[str], str] = short) -> Checked:
    """Return the problems of hooks and of their matchers, and the lines of the hooks that were loaded.

    `name`: gives the name of a path for a person.
    """
    checked = Checked([str(error) for error in loaded.errors], [])
    for hook in loaded.hooks:
        checked.lines.append(f"{name(hook.path)}: {_registered(hook)}")
        if hook.dependencies is not None:
            checked.lines.append(f"  its packages: {hook.dependencies}")
    # The runner takes the tasks of the hooks over.
    runner = HookRunner(loaded.hooks, cwd=cwd)
    runner.on_error(lambda error: checked.problems.append(str(error)))
    runner.know_tools(settings.known_tools)
    runner.know_tools(tool.name for tool in builtin_tools(cwd=cwd))
    runner.know_tools(tool.name for hook in loaded.hooks for tool in hook.tools)
    runner.check_matchers()
    return checked


def _registered(hook: LoadedHook) -> str:
    """Return what a hook has registered, for a person: `loaded, 1 handler, 2 tools`."""
    numbers = {
        "handler": sum(len(each) for each in hook.handlers.values()),
        "interceptor": len(hook.api.interceptors),
        "tool": len(hook.tools),
        "task": len(hook.api.queued_tasks),
    }
    return ", ".join(["loaded", *(count(number, thing) for thing, number in numbers.items() if number)])
