"""Ask before dangerous commands; without a person, the command does not run.

Try it:  agent-hooks run --hook examples/hooks/permission_gate.py '@bash sudo rm -rf build'

`make` and other programs that may do anything stand in `event.effects.unknown`; this gate lets them pass.
"""

from agent_hooks import Ask, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    @api.on("tool_call")
    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        effects = event.effects
        if effects.runs("sudo") or effects.runs("doas"):
            return Ask("Run sudo?")
        if any(each.tree and each.access == "delete" and each.program != "mv" for each in effects.paths):
            return Ask("Run a recursive rm?")
        if any(each.what == "world-writable" for each in effects.privileges):
            return Ask("Let everybody write?")
        return None
