"""A Claude agent in 40 lines that obeys the hooks that you have approved, whatever settings its client reads.

Try it:  python examples/claude_sdk.py 'remove the directory build'

It needs the extra `claude-sdk`, and a key or a login of Claude Code.  A question of a hook is put at the terminal.
"""

import asyncio
import sys
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
)

from agent_hooks import HookRunner, SessionEvent, Trust, discover_and_load_hooks
from agent_hooks.adapters.claude_agent_sdk import hooks


async def ask(
    name: str, input: dict[str, Any], context: ToolPermissionContext
) -> PermissionResultAllow | PermissionResultDeny:
    """Ask the user about a call.  `context.decision_reason` is a hook's question."""
    print(f"{name} {input}\n{context.decision_reason or ''}\nRun it? [y/N]")
    answer = await asyncio.to_thread(sys.stdin.readline)
    return PermissionResultAllow() if answer.strip() == "y" else PermissionResultDeny(message="the user said no")


async def main(prompt: str) -> None:
    """Give the agent one prompt, and print its answer."""
    loaded = await discover_and_load_hooks(cwd=".", trust=Trust())
    async with HookRunner(loaded, cwd=".") as runner:
        options = ClaudeAgentOptions(hooks=hooks(runner), can_use_tool=ask, setting_sources=[])
        async with ClaudeSDKClient(options) as client:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    print(message.result)
        await runner.emit(SessionEvent(reason="shutdown"))


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "say hello"))
