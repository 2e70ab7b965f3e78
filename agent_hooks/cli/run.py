"""`agent-hooks run`: a small real agent on one prompt, with the hooks of the place it works in."""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import date

import anyio
import click
from msgspec.structs import replace

from agent_hooks.cli.common import Setup, agent_guards, cwd_option, hook_option, set_up, short, unused_hooks
from agent_hooks.cli.main import FAILED, INTERRUPTED, OK, complain
from agent_hooks.cli.output import JsonScreen, ReservedStdout, Screen
from agent_hooks.errors import ModelError, SessionError
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardException, expired, read_sections
from agent_hooks.host.agent import Agent
from agent_hooks.host.model import THINKING_LEVELS, Model, ThinkingLevel
from agent_hooks.host.models import open_model
from agent_hooks.host.session import Session
from agent_hooks.host.tools import builtin_tools
from agent_hooks.loader import LoadedHook
from agent_hooks.runner import HookRunner
from agent_hooks.tool import Tool

END_GRACE = 10.0  # seconds that hooks get to end their tasks and to unload, after the session


@click.command("run")
@click.argument("prompt", required=False)
@click.option("-p", "--print", "print_mode", is_flag=True, help="Print the answer and end (the only mode so far).")
@hook_option
@click.option(
    "--model",
    "model_name",
    metavar="M",
    default="puppet",
    show_default=True,
    help="puppet, script:FILE, or a real one: anthropic:NAME, openai:NAME, openai-responses:NAME, google:NAME.",
)
@click.option(
    "--thinking",
    "thinking_level",
    metavar="LEVEL",
    type=click.Choice(THINKING_LEVELS),
    default="off",
    show_default=True,
    help="How much a real model thinks: off, low, medium or high.",
)
@cwd_option
@click.option("--no-session", is_flag=True, help="Do not save the session.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line instead of the answer.")
@click.option(
    "--allow-once",
    multiple=True,
    metavar="RULE",
    help="Let one call pass that this rule of a guard would stop; repeatable.",
)
@click.pass_context
def command(
    ctx: click.Context,
    prompt: str | None,
    print_mode: bool,
    hook_files: tuple[str, ...],
    model_name: str,
    thinking_level: ThinkingLevel,
    cwd: str,
    no_session: bool,
    as_json: bool,
    allow_once: tuple[str, ...],
) -> None:
    """Run an agent on PROMPT (or on what stdin says), with your hooks.

    The default model needs no key: it is a puppet that does what the prompt says. A line "@bash ls -la" calls a tool,
    lines of one block are one turn, a line "---" starts the next turn.

    A blocked call is a normal outcome: the run exits 0.
    """
    text = _prompt(prompt)
    try:
        model = open_model(model_name)
    except ModelError as exc:
        raise click.UsageError(f"--model {model_name}: {exc}") from None
    with ReservedStdout() as stdout:
        screen = JsonScreen(stdout) if as_json else Screen(stdout)
        code = anyio.run(_run, text, screen, hook_files, model, thinking_level, cwd, no_session, allow_once)
    if stdout.broken:
        complain(f"the answer could not be written: {stdout.broken}")
        code = FAILED
    ctx.exit(code)


def _prompt(prompt: str | None) -> str:
    if prompt is None or prompt == "-":
        piped = sys.stdin is not None and not sys.stdin.isatty()
        prompt = sys.stdin.buffer.read().decode("utf-8", "replace") if piped else ""
    if not prompt.strip():
        raise click.UsageError("give a prompt, as an argument or on stdin:  agent-hooks run '@bash ls'")
    return prompt.encode("utf-8", "replace").decode()  # an argument may hold bytes that are no text


async def _run(
    prompt: str,
    screen: Screen,
    hook_files: tuple[str, ...],
    model: Model,
    thinking_level: ThinkingLevel,
    cwd: str,
    no_session: bool,
    allow_once: tuple[str, ...],
) -> int:
    setup = await set_up(cwd, hook_files)
    if warning := unused_hooks(setup.cwd):
        screen.warning(warning)
    for error in setup.loaded.errors:
        screen.error(f"hook not loaded, so every tool call is blocked: {error}")
    runner = HookRunner(
        setup.loaded.fail_closed(),
        cwd=setup.cwd,
        timeout=setup.settings.hook_timeout,
        tool_call_timeout=setup.settings.tool_call_timeout,
        mode="print",
        guards=_guards(setup, allow_once, screen),
    )
    runner.on_error(screen.hook_error)
    if isinstance(screen, JsonScreen):
        runner.observe(screen.event)
    async with runner:
        agent = Agent(
            runner=runner,
            model=model,
            tools=_tools(setup.cwd, setup.loaded.hooks, screen),
            session=_session(setup.cwd, no_session, screen),
            view=screen,
            thinking_level=thinking_level,
        )
        return await _supervise(agent, prompt, screen)


async def _supervise(agent: Agent, prompt: str, screen: Screen) -> int:
    """Run one prompt; a signal cancels it; whatever happens, the session is shut down once."""
    code = OK
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as run:
            tasks.start_soon(_cancel_on_signal, run)
            try:
                await agent.start()
                answer = await agent.prompt(prompt)
                screen.answer(answer.text)
            except ModelError as exc:
                screen.error(f"the model failed: {exc}")
                code = FAILED
            finally:
                screen.rest()
                await agent.shut_down()
        if run.cancelled_caught:
            screen.error("interrupted")
            code = INTERRUPTED
        tasks.cancel_scope.cancel()
    _leave_soon(code)
    return code


def _leave_soon(code: int) -> None:
    """See to it that the process ends, also when a hook's background task does not let itself be cancelled."""

    def leave() -> None:
        complain(f"a hook's background task did not stop within {END_GRACE:g} s; leaving without it")
        os._exit(code)

    timer = threading.Timer(END_GRACE, leave)
    timer.daemon = True
    timer.start()


async def _cancel_on_signal(run: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for _ in signals:
            if run.cancel_called:  # once more: somebody is in a hurry, or a tool does not let itself be cancelled
                complain("interrupted again; leaving at once")
                os._exit(INTERRUPTED)
            run.cancel()


def _guards(setup: Setup, allow_once: tuple[str, ...], screen: Screen) -> list[Guard]:
    """Return the guards that the settings ask for; `allow_once`: the rules of which one veto is lifted."""
    settings = read_sections(setup.settings.guards, tuple(BUILTIN))
    for sentence in expired(settings, date.today()):
        screen.warning(sentence)
    once = tuple(GuardException(id=rule, reason="allowed for one call", once=True) for rule in allow_once)
    return agent_guards(replace(settings, exceptions=(*once, *settings.exceptions)), setup.cwd)


def _tools(cwd: str, hooks: list[LoadedHook], screen: Screen) -> list[Tool]:
    """Return the built-in tools and those of the hooks, which may replace a built-in one but not each other."""
    tools = {tool.name: tool for tool in builtin_tools(cwd=cwd)}
    owners: dict[str, str] = {}
    for hook in hooks:
        for tool in hook.tools:
            if tool.name in owners:
                screen.warning(f"{short(hook.path)}: tool {tool.name!r} is left out; {owners[tool.name]} has one too")
            else:
                tools[tool.name], owners[tool.name] = tool, short(hook.path)
    return list(tools.values())


def _session(cwd: str, no_session: bool, screen: Screen) -> Session:
    if no_session:
        return Session(cwd=cwd)
    try:
        return Session.create(cwd)
    except SessionError as exc:
        screen.warning(f"{exc}; going on without saving")
        return Session(cwd=cwd)
