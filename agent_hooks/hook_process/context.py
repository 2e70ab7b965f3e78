"""The context of a handler in a hook's own process: dialogs and programs are requests to the agent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Never, cast

from agent_hooks.concurrency.deadlines import Clock
from agent_hooks.dispatch.context import EXEC, HookContext, Mode, Pending, Surroundings, check_exec
from agent_hooks.hook_process.link import Link
from agent_hooks.isolation.exact import Packer
from agent_hooks.isolation.protocol import Notify, Place
from agent_hooks.ui.base import Asker, NotifyType
from agent_hooks.values.content import ExecResult


class RemoteUI:
    """Asks the person through the agent, for call `call`."""

    def __init__(self, link: Link, call: int) -> None:
        self._link = link
        self._call = call

    async def select(self, title: str, options: list[str]) -> str | None:
        """Let the person choose."""
        return await self._ask("select", [title, options])  # type: ignore[no-any-return]  # as the agent's UI does

    async def confirm(self, title: str, message: str) -> bool:
        """Ask yes or no."""
        return await self._ask("confirm", [title, message])  # type: ignore[no-any-return]  # as above

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Ask for a line."""
        return await self._ask("input", [title, placeholder])  # type: ignore[no-any-return]  # as above

    def notify(self, message: str, type: NotifyType) -> None:
        """Show a message."""
        pack = Packer().pack
        self._link.send(Notify(self._call, pack(message, "the message"), pack(type, "the type")))

    async def _ask(self, method: str, arguments: list[Any]) -> Any:
        return await self._link.request(self._call, method, Packer().pack(arguments, f"ctx.ui.{method}(...)"))


class _StillClock:
    """The clock stands in the agent while a dialog is open there."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""


class CallPlace:
    """The place of one call, as its context sees it."""

    # A hook that is loaded again gets another process.
    ended = False
    # The agent names the hook and the call.
    asker = Asker()

    def __init__(self, link: Link, call: int, place: Place) -> None:
        self.link = link
        self.call = call
        self.tool_name = place.tool_name
        self.surroundings = Surroundings(
            cwd=place.cwd,
            ui=RemoteUI(link, call),
            has_ui=place.has_ui,
            mode=cast("Mode", place.mode),
            session_id=place.session_id,
            session_file=place.session_file,
            agent_id=place.agent_id,
        )

    def need_clock(self) -> Clock:
        """Return a clock that a dialog may stop and start."""
        return cast("Clock", _StillClock())

    async def dialog(self, title: str, message: str, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Open a dialog."""
        return await ask()


class RemoteContext(HookContext):
    """The context of a handler; the agent runs its programs."""

    def exec(
        self,
        command: str,
        args: Sequence[str] = (),
        *wrong: Never,
        timeout: float | None = None,
        cwd: str | None = None,
    ) -> Pending[ExecResult]:
        """Run a program, as `HookContext.exec` does."""
        check_exec(command, args, wrong, timeout)
        place = cast("CallPlace", self._timed)

        async def run() -> ExecResult:
            arguments = Packer().pack([command, list(args), timeout, cwd], "ctx.exec(...)")
            return await place.link.request(place.call, "exec", arguments)  # type: ignore[no-any-return]  # as above

        return Pending(EXEC, run, self._asked_for())
