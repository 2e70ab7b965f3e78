"""The hooks of the project that another agent works in, loaded for one session of it.

Above: answering, serve.  Below: bridging, runner, common, installation; no click and no event loop, for every event that
is judged by a process of its own pays for what this imports.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from agent_hooks.bridges.base import Bridge, Happening
from agent_hooks.bridges.driver import BridgeUI, Bridging, in_our_words, listened_to, wrong_matchers
from agent_hooks.cli.setup import Setup, agent_guards, find, load, sources_at, sources_of
from agent_hooks.cli.stderr import complain
from agent_hooks.errors import HookError, log
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import read_sections
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.client import directory
from agent_hooks.server.opened import Opened
from agent_hooks.ui.harmless import harmless


class Opening:
    """The hooks that were found for a session: `opened = await Opening(bridge, happening, environment).open()`.

    They are those of the project that the other agent was started in.  `plain`: there are none, so that `open` needs no
    event loop; `resident`: whether this process answers all of the session.  Raises `SettingsError`.
    """

    def __init__(
        self, bridge: Bridge, happening: Happening, environment: Mapping[str, str], *, resident: bool = True
    ) -> None:
        project = environment.get(bridge.project_variable) or happening.cwd or os.getcwd()
        self._before = sources_at(os.path.abspath(project))
        self._found = find(project, ())
        self.plain = not (self._found.hooks.paths or self._found.hooks.errors)
        self._bridge = bridge
        self._happening = happening
        self._environment = environment
        self._resident = resident

    async def open(self) -> Opened:
        """Load them."""
        bridge, happening, environment = self._bridge, self._happening, self._environment
        setup = await load(self._found)
        attended = bridge.is_attended(environment)
        ui = BridgeUI(attended=attended)
        steps, allowed = in_our_words(bridge, setup.transformers.configured, setup.transformers.auto_allow)
        runner = HookRunner(
            setup.loaded,
            cwd=happening.cwd or setup.cwd,
            timeout=setup.settings.hook_timeout,
            tool_call_timeout=setup.settings.tool_call_timeout,
            ui=ui,
            mode="bridge",
            session_file=happening.session_file,
            session_id=happening.session_id,
            guards=self._guards(setup),
            transformers=steps,
            redactor=setup.redactor,
        )
        runner.on_error(_log if self._resident else _complain_of)
        bridging = Bridging(runner, ui, auto_allow=allowed, attended=attended, resident=self._resident)
        for failure in setup.errors:
            complain(harmless(str(failure)))
        news = [*map(str, setup.errors)]
        if self._resident or happening.name == "SessionStart":  # a process of one event tells it only then
            from agent_hooks.installs.places import missing, places

            # a hook that was dropped in later must not fail to fire in silence
            listened = listened_to(setup.loaded.hooks, setup.transformers.configured, setup.redactor)
            vain = missing(bridge, places(bridge, setup.cwd, environment), listened)
            news += [*wrong_matchers(runner, bridge.tools), *vain]
        sources = sources_of(setup).since(self._before)
        return Opened(runner, bridging, sources, tuple(f"agent_hooks: {text}" for text in news))

    def _guards(self, setup: Setup) -> list[Guard]:
        settings = read_sections(setup.settings.guards, tuple(BUILTIN))
        if settings.are_off(BUILTIN):
            return []
        from agent_hooks.installs.places import targets

        # the agent must not end what judges it: neither the entries nor the process
        own = [*(target.path for target in targets(self._bridge, setup.cwd, self._environment).values()), directory()]
        return agent_guards(settings, setup.cwd, own, hooks=setup.settings.hooks)


def _log(error: HookError) -> None:
    log().error("hook error: %s (%s)\n%s", harmless(str(error)), error.outcome, harmless(error.traceback))


def _complain_of(error: HookError) -> None:
    complain(harmless(f"hook error: {error} ({error.outcome})"))
