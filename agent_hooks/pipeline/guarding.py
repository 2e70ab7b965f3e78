"""Step 4 of a tool call: what the guards say, and what they are told of the machine.

Guards do no I/O; the few facts that need some (the real path of a file, home, temporary directories) are found here.
Above: pipeline, cli.  Below: guards.base, answers, errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_hooks.errors import HookError, describe, shown, traceback_text
from agent_hooks.guards.base import Guard, GuardedCall, path_of
from agent_hooks.values.answers import Ask, Block


def guarded_call(tool_name: str, input: Mapping[str, Any], cwd: str) -> GuardedCall:
    """Return a call with what guards may know of the place it runs in."""
    home = os.path.expanduser("~")
    path = path_of(input)
    real = None
    if path is not None and "\0" not in path:
        real = os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))
    temp = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # a name to compare with, nothing is opened
    return GuardedCall(tool_name=tool_name, input=input, cwd=cwd, home=home, temp=(temp,), real_path=real)


def ask_guards(guards: Sequence[Guard], call: GuardedCall, report: Callable[[HookError], None]) -> Block | list[Ask]:
    """Let the guards judge a call: the first block ends it, questions are collected; a guard that raises blocks."""
    asks: list[Ask] = []
    for guard in guards:
        try:
            verdict = guard.judge(call)
            if verdict is not None and not isinstance(verdict, Block | Ask):
                raise TypeError(f"a guard answers Block, Ask or None, not {shown(verdict)}")
        except KeyboardInterrupt:
            raise
        except (
            BaseException
        ) as exc:  # a guard that cannot judge has not let the call through; nor does it end the agent
            error = f"the guard failed: {describe(exc)}"
            report(
                HookError(
                    hook_path=guard.name,
                    handler="judge",
                    event="tool_call",
                    error=error,
                    exception=exc,
                    traceback=traceback_text(exc),
                    outcome="blocked",
                )
            )
            return Block(error, guard.name, "guard")
        if isinstance(verdict, Block):
            return Block(verdict.reason, verdict.by or guard.name, "guard")
        if verdict is not None:
            asks.append(verdict if verdict.by else Ask(verdict.title, verdict.message, guard.name))
    return asks
