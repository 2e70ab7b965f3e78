"""Whether this process is the own process of a hook, where the agent's runner, tools and interceptors do not exist."""

from __future__ import annotations

from agent_hooks.errors import HookUsageError

_hook: str | None = None


def enter(hook: str) -> None:
    """Note that this process belongs to the hook at the path `hook`."""
    global _hook
    _hook = hook


def refuse_inside(call: str) -> None:
    """Raise `HookUsageError` in a hook's own process: `call` would reach nothing of the agent there."""
    if _hook is not None:
        raise HookUsageError(
            f"{call} cannot be used here: {_hook} runs in a process of its own, which shares no runner, tool or "
            'interceptor with the agent; remove ISOLATION = "process" (and "isolation" in the settings) to run it '
            "inside of the agent"
        )
