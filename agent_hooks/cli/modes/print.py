"""Print mode: one prompt, its answer on stdout, and the end."""

from __future__ import annotations

from agent_hooks.cli.lifetime import FAILED, INTERRUPTED, OK, leave_soon
from agent_hooks.cli.modes.base import Start, until_signal
from agent_hooks.cli.screen.output import JsonScreen, QuietScreen, Screen
from agent_hooks.cli.streams import ReservedStdout, complain, is_quiet, watch_readers
from agent_hooks.errors import ModelError, RunStoppedError
from agent_hooks.host.models.puppet import Puppet, shown_beside


async def run(start: Start) -> int:
    """Work on one prompt; a signal cancels it; in every case, the session is shut down once."""
    with ReservedStdout() as stdout:
        watch_readers()
        kind = JsonScreen if start.as_json else QuietScreen if is_quiet() else Screen
        # The puppet quotes the results of tools as they are.
        code = await _run(start, kind(stdout, markdown=not isinstance(start.model, Puppet)))
    if stdout.broken:
        complain(f"the answer could not be written: {stdout.broken}")
        return FAILED
    return code


async def _run(start: Start, screen: Screen) -> int:
    assert start.prompt is not None
    if screen.one_reader:
        shown_beside.set("blocks")
    setup = await start.load(screen.warning, screen.error)
    runner = start.runner(setup, "print")
    runner.on_error(screen.hook_error)
    if isinstance(screen, JsonScreen):
        runner.observe(screen.event)
    code = OK
    async with runner:
        reloading = start.reloading(setup, runner, screen.warning)
        host = start.host(reloading, runner, screen)
        async with until_signal(reloading, host) as scope:
            try:
                async with host:
                    answer = await host.prompt(start.prompt)
                    screen.answer(answer.text)
            except ModelError as exc:
                screen.error(f"the model failed: {exc}")
                code = FAILED
            except RunStoppedError as exc:
                if exc.answer.text:
                    screen.answer(exc.answer.text)
                screen.error(str(exc))
                code = FAILED
            finally:
                screen.rest()
        if scope.cancelled_caught:
            screen.error("interrupted")
            code = INTERRUPTED
        leave_soon(code)
    return code
