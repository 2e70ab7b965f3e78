"""The Claude Agent SDK in a test: its bundled client runs in the project, and a runner of this process judges it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message

from agent_hooks import HookRunner
from agent_hooks.adapters.claude_agent_sdk import hooks
from clients.claude_seat import ClaudeSeat, Played
from clients.client import PATIENCE
from model_server import Reply


class SdkSeat(ClaudeSeat):
    """The client that the SDK bundles.  `said` has its messages of the last run."""

    def __init__(self, project: Path, home: Path) -> None:
        super().__init__(project, home)
        self.said: list[Message] = []

    async def judge(
        self,
        runner: HookRunner,
        *replies: Reply,
        prompts: Sequence[str] = ("go",),
        allow: Sequence[str] = ("Bash", "Read", "Write", "Agent", "Skill"),
        **options: Any,
    ) -> Played:
        """Give it prompts, and the model exactly these replies.  `allow`: tools that need no permission."""
        left, requests = self.script(*replies)
        self.said = []
        # The client inherits this process's environment, and these variables override it.
        given = {"cwd": str(self.project), "env": self.client.environment(), "allowed_tools": [*allow], **options}
        with anyio.fail_after(PATIENCE):
            async with ClaudeSDKClient(ClaudeAgentOptions(hooks=hooks(runner), **given)) as client:
                for prompt in prompts:
                    await client.query(prompt)
                    self.said += [message async for message in client.receive_response()]
        assert not left, f"the model was not asked for {left}\n{self.said}"
        return Played([], requests)


__all__ = ["SdkSeat"]
