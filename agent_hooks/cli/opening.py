"""Load the hooks of a project for one session of another agent.

This module loads neither click nor an event loop, because each event that has a process of its own pays for the imports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.driver import BridgeUI, Bridging, listened_to, unsupported, wrong_matchers
from agent_hooks.cli.setup import Setup, find_watched, load, make_runner, put_in_force, records_of, sources_of
from agent_hooks.cli.streams import complain
from agent_hooks.errors import AgentHooksError, HookError, log
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.base import Guard
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.session import LOAD_TIMEOUT, Opened
from agent_hooks.trust.open_sessions import OpenSession
from agent_hooks.trust.policy import Trust
from agent_hooks.ui.harmless import harmless

if TYPE_CHECKING:
    from agent_hooks.hooks.loaded import LoadedHook
    from agent_hooks.installs.places import MissingEvent
    from agent_hooks.records import Records


_PROC = "/proc"
# The programs of macOS; the paths are fixed, so that no other program of such a name runs.
_LSOF, _PS = "/usr/sbin/lsof", "/bin/ps"
# Seconds for one of them.
_PATIENCE = 5
_TERMINAL = re.compile(r"/dev/(?:pts/[0-9]+|tty[A-Za-z]*[0-9]*|console)")


class Opening:
    """The hooks that were found for a session: `opened = await Opening(bridge, happening, environment).open()`.

    They belong to the project that the other agent was started in.  `plain`: no hook was found, so `open` needs no
    event loop; `resident`: this process answers all events of the session.  Raises `SettingsError`.
    """

    def __init__(
        self, bridge: Bridge, happening: Happening, environment: Mapping[str, str], *, resident: bool = True
    ) -> None:
        # Where no variable holds the project, the agent runs hooks in it, and so does the server.  The directory of a
        # payload may be one that the model has chosen for a command.
        project = environment.get(bridge.project_variable) or os.getcwd()
        # The agent may work in another directory than that of its project; the hooks of both count.
        places = dict.fromkeys((project, happening.cwd or project))
        sources = Trust().sources(*places)
        self._found = find_watched(project, (), sources, takes_up=_takes_up(bridge, happening, environment))
        self.plain = not (self._found.hooks.paths or self._found.hooks.errors)
        self._bridge = bridge
        self._happening = happening
        self._environment = environment
        self._resident = resident

    async def open(self) -> Opened:
        """Load the hooks, and return them with their runner."""
        bridge, happening = self._bridge, self._happening
        setup = await load(self._found)
        attended = is_attended(bridge, self._environment)
        ui = BridgeUI(attended=attended)
        runner = make_runner(
            setup,
            "bridge",
            ui=ui,
            guards=self._guards(setup),
            redactor=setup.redactor,
            cwd=happening.cwd or setup.cwd,
            session_file=happening.session_file,
            session_id=happening.session_id,
            records=self._records(setup),
            client=bridge.name,
        )
        runner.on_error(_log if self._resident else _print)
        bridging = Bridging(
            runner,
            ui,
            auto_allow=setup.transformers.auto_allow,
            attended=attended,
            resident=self._resident,
            divide=bridge.parts,
        )
        return self._opened(setup, runner, bridging, setup.errors)

    async def renew(self, opened: Opened) -> Opened:
        """Load the hooks of a session again; where one cannot be loaded, its former version stays.

        Raises `AgentHooksError` when nothing has changed, because two hooks do not go together.
        """
        # Imported here, because a process of one event never comes here.
        import anyio

        # Wrong settings of guards are found before any code of a hook runs.
        self._found.check()
        setup = None
        with anyio.move_on_after(LOAD_TIMEOUT):
            setup = await load(self._found)
        if setup is None:
            raise AgentHooksError(f"the hooks did not load within {LOAD_TIMEOUT:g} s: agent-hooks check tells which")
        setup, reloaded = await put_in_force(
            setup, opened.runner, guards=self._guards, client=self._bridge.name, lasting=self._resident
        )
        opened.bridging.renew(setup.transformers.auto_allow)
        return self._opened(setup, opened.runner, opened.bridging, [*reloaded.messages, *setup.transformers.errors])

    def _records(self, setup: Setup) -> Records | None:
        return records_of(setup, self._bridge.name, lasting=self._resident)

    def _opened(self, setup: Setup, runner: HookRunner, bridging: Bridging, problems: Iterable[object]) -> Opened:
        news = [*map(str, problems)]
        for problem in news:
            complain(problem)
        # A process of one event would repeat these at each event, so it gives them at the start of a session only.
        if self._resident or self._happening.starts:
            news += [*setup.messages, *self._idle_handlers(setup, runner)]
        return Opened(
            runner,
            bridging,
            sources_of(setup),
            setup.sources.place,
            tuple(f"agent_hooks: {text}" for text in news),
            self._resident,
            tuple(f"agent_hooks: {text}" for text in setup.notes),
        )

    def _idle_handlers(self, setup: Setup, runner: HookRunner) -> list[str]:
        """Return a sentence for each matcher that fits no tool, and for each needed event that is not installed.

        A hook that was added after the installation must not stay silent without a word.  What the installation or the
        agent lacks is said once, and that no gate is asked at each session.
        """
        # Imported here, because most events need no settings.
        from agent_hooks.cli.screen.wording import short
        from agent_hooks.installs.places import installations, missing
        from agent_hooks.installs.told import untold

        listened = listened_to(
            setup.loaded.hooks,
            setup.transformers.configured,
            setup.redactor,
            checkpoints=setup.settings.checkpoints.enabled,
        )
        lacking = unsupported(self._bridge.name, self._bridge.describe(), setup.loaded.hooks)
        idle = missing(self._bridge, installations(self._bridge, setup.cwd, self._environment), listened)
        gates = {row.name for row in self._bridge.describe() if row.gate}
        texts = {each.event: f"{_named(each, setup.loaded.hooks)}: {each.remedy}" for each in idle}
        return [
            *wrong_matchers(runner, self._bridge.tools),
            *(text for event, text in texts.items() if event in gates),
            *untold(
                self._bridge,
                [
                    *(text for event, text in texts.items() if event not in gates),
                    *(f"{short(path)} {text}" for path, text in lacking),
                ],
            ),
        ]

    def _guards(self, setup: Setup) -> list[Guard]:
        settings = setup.guard_settings
        if settings.are_off(BUILTIN) and setup.guards_before is None:
            return []
        from agent_hooks.installs.places import targets  # here, as above

        # The agent must not change the entries that run its hooks.
        # A project's settings may set a variable that moves the agent's own settings, so both places are protected.
        found = [targets(self._bridge, setup.cwd, each) for each in (self._environment, {})]
        own = list(dict.fromkeys(target.path for each in found for target in each.values()))
        return setup.guards(settings, own)


def _takes_up(bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> bool:
    """Return whether a user starts this session just now."""
    sign = OpenSession(bridge.name, happening.session_id or "")
    if not (happening.starts and sign.path):
        return False
    # Imported here, because most events start nothing.
    from agent_hooks.cli.starting import is_users_start

    process = environment.get(bridge.process_variable, "")
    number = int(process) if process.isdecimal() else None
    return is_users_start(number, sign, at_terminal=is_attended(bridge, environment))


def _named(missing: MissingEvent, hooks: Sequence[LoadedHook]) -> str:
    """Return the sentence on an event that is not installed, with the hooks that need it."""
    # Imported here, because most events need no settings.
    from agent_hooks.cli.screen.wording import short

    needed = set(missing.listeners)
    paths = [short(hook.path) for hook in hooks if needed & set(listened_to([hook]))]
    return f"{', '.join(paths)}: {missing}" if paths else str(missing)


def _log(error: HookError) -> None:
    log().error("hook error: %s (%s)\n%s", harmless(str(error)), error.outcome, harmless(error.traceback))


def _print(error: HookError) -> None:
    complain(f"hook error: {error} ({error.outcome})")


# ---- whether a user is at the agent ----------------------------------------------------------------------------------
#
# Some agents wait for ever when a hook asks a question and nobody is there, and tell their hooks nothing about it.  Then
# the agent's process tells: a user is there if its input and output are terminals and no argument says otherwise.


def is_attended(bridge: Bridge, environment: Mapping[str, str]) -> bool:
    """Return whether a user can answer a question in the agent, `False` if that is unknown."""
    if not bridge.is_attended(environment):
        return False
    return bridge.headless is None or _is_person_at(environment.get(bridge.process_variable, ""), bridge.headless)


def _is_person_at(pid: str, headless: tuple[str, ...]) -> bool:
    if not pid.isdecimal():
        return False
    try:
        ends, arguments = (_in_proc if os.path.isdir(f"{_PROC}/self") else _by_programs)(pid)
    except OSError:
        # The process has ended, or this system has neither these files nor these programs.
        return False
    is_terminal = len(ends) == 2 and all(map(_TERMINAL.fullmatch, ends))  # input and output
    return is_terminal and not any(each in headless for each in arguments)


def _in_proc(pid: str) -> tuple[list[str], list[str]]:
    """Return the input and the output of a process, and its arguments.  Raises `OSError`."""
    ends = [os.readlink(f"{_PROC}/{pid}/fd/{number}") for number in (0, 1)]
    with open(f"{_PROC}/{pid}/cmdline", "rb") as file:
        return ends, file.read().decode(errors="replace").split("\0")


def _by_programs(pid: str) -> tuple[list[str], list[str]]:
    """Return the same on macOS, which has no `/proc`; words of a prompt count as arguments there.  Raises `OSError`."""
    # Imported here, because most systems have `/proc`.
    import subprocess

    def lines(*command: str) -> list[str]:
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired as exc:
            raise TimeoutError(str(exc)) from None
        return done.stdout.decode(errors="replace").splitlines()

    ends = [line[1:] for line in lines(_LSOF, "-a", "-p", pid, "-d", "0,1", "-F", "fn") if line.startswith("n")]
    arguments = " ".join(lines(_PS, "-ww", "-o", "args=", "-p", pid)).split()
    # Without arguments, `-p` could stand among them.
    return (ends, arguments) if arguments else ([], [])
