"""ask: asks you before the agent publishes anything."""

from __future__ import annotations

from agent_hooks import Ask, HookAPI, HookContext, ToolCall

# The programs that you want to be asked about, however the command is spelled.
PROGRAMS = ("twine", "docker", "ssh")


def register(api: HookAPI) -> None:
    """Subscribe the handlers."""

    @api.on("tool_call")
    async def ask(event: ToolCall, ctx: HookContext) -> Ask | None:
        """Ask before the call runs; without a person to answer, it does not run."""
        for program in PROGRAMS:
            if event.effects.runs(program):
                return Ask(f"Run {program}?")
        return None
