"""The failures of a hook's process, as exceptions of the agent."""

from __future__ import annotations

from agent_hooks.errors import AgentHooksError
from agent_hooks.isolation.protocol import Failure


class HookProcessError(AgentHooksError):
    """The process of a hook has ended, cannot be started, or is not there."""


class OtherHandlersError(AgentHooksError):
    """A hook has registered other handlers, interceptors or tools after its restart than in its first run."""


class RemoteError(AgentHooksError):
    """A handler raised in its process; the text is that of its exception.

    `hook_place`: file and line in the hook, if they are known.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure
        self.hook_place = failure.file, failure.line
        if failure.traceback:
            self.__cause__ = RemoteTracebackError(failure.traceback)


class RemoteTracebackError(Exception):
    """The traceback of the process, shown above that of the agent."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def ending(code: int | None, cpu: int | None = None) -> str:
    """Return how a process ended, for a person; `cpu`: its limit of computing, in seconds."""
    if code is None:
        return "it cannot be collected"
    if code >= 0:
        return f"exit code {code}"
    import signal

    if code == -signal.SIGXCPU and cpu is not None:
        return f"used up its cpu limit of {cpu} s"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
