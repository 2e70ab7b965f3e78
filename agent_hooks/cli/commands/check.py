"""`agent-hooks check`: load hook files and report their problems, without running an agent."""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio
import click

from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.setup import hiding, our_name_of
from agent_hooks.cli.streams import ReservedStdout, echo
from agent_hooks.cli.trusting import settle
from agent_hooks.errors import count
from agent_hooks.hooks.loaded import LoadError, LoadResult
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.host.tools import builtin_tools
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import merge_settings
from agent_hooks.transformers.command_intercept import Transformers, load_transformers
from agent_hooks.trees import SourceTree
from agent_hooks.trust.policy import Trust


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@cwd_option
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], cwd: str) -> None:
    """Load each FILE as a hook and report problems as file:line; exit 1 when there is one.

    A FILE that ends with .yaml is read as a command_intercept.yaml.
    """
    paths = [os.path.abspath(file) for file in files]
    intercepts = [path for path in paths if path.endswith(".yaml")]
    hooks = [path for path in paths if path not in intercepts]
    trees = settle(Trust(), cwd).trees
    with ReservedStdout():
        problems, loaded = anyio.run(_check, hooks, os.path.abspath(cwd), trees)
        read = [(path, _read(path, cwd)) for path in intercepts]
    problems += [str(error) for _, transformers in read for error in transformers.errors]
    for problem in map(hiding(merge_settings(trees)), problems):
        echo(problem)
    for hook in loaded.hooks:
        handlers = sum(len(each) for each in hook.handlers.values())
        echo(f"{short(hook.path)}: loaded, {count(handlers, 'handler')}, {count(len(hook.tools), 'tool')}")
        if hook.dependencies is not None:
            echo(f"  its packages: {hook.dependencies}")
    for path, transformers in read:
        steps = sum(step.problem is None for step in transformers.configured)
        echo(f"{short(path)}: read, {count(steps, 'transformer')}")
    ctx.exit(FAILED if problems else OK)


def _read(path: str, cwd: str) -> Transformers:
    # A link to nowhere is there, and blocks every call.
    if not os.path.lexists(path):
        return Transformers(errors=(LoadError(path, "no such file"),))
    return load_transformers(cwd=cwd, files=[path], our_name=our_name_of)


async def _check(files: list[str], cwd: str, trees: Sequence[SourceTree]) -> tuple[list[str], LoadResult]:
    settings = merge_settings(trees)
    loaded = await load_hooks(files, cwd=cwd, isolation=settings.isolation)
    problems = [str(error) for error in loaded.errors]
    runner = HookRunner(loaded.hooks, cwd=cwd)
    runner.on_error(lambda error: problems.append(str(error)))
    runner.know_tools(settings.known_tools)
    runner.know_tools(tool.name for tool in builtin_tools(cwd=cwd))
    runner.know_tools(tool.name for hook in loaded.hooks for tool in hook.tools)
    runner.check_matchers()
    return problems, loaded
