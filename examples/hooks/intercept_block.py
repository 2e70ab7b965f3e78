"""Block a tool by the text of its command; the agent is told in words it can act on.

Try it:  agent-hooks run --hook examples/hooks/intercept_block.py '@bash npm publish'
"""

from agent_hooks import HookAPI, ToolBeforeInput, ToolBeforeOutput


def register(api: HookAPI) -> None:
    @api.intercept("tool.before", priority=100, tool="^bash$")
    async def no_publishing(input: ToolBeforeInput, output: ToolBeforeOutput) -> None:
        if "npm publish" in output.args["command"]:
            output.block = True
            output.block_reason = "publishing is done by CI; open a pull request instead"
