"""Notify you when the agent is done: by a desktop notification if possible, else by the terminal's bell.

Try it:  agent-hooks emit agent_end --hook examples/hooks/notify_when_done.py
"""

import json
import shutil
import sys

from agent_hooks import AgentEnd, AssistantMessage, HookAPI, HookContext

TITLE = "The agent is done"


def register(api: HookAPI) -> None:
    @api.on("agent_end")
    async def notify(event: AgentEnd, ctx: HookContext) -> None:
        answers = [message.text for message in event.messages if isinstance(message, AssistantMessage)]
        program, *args = desktop_notification(answers[-1][:200] if answers else "")
        if not program or (await ctx.exec(program, args, timeout=5)).code != 0:
            ring()


def desktop_notification(text: str) -> list[str]:
    """Return the command that shows a notification, or `[""]` without such a program."""
    if shutil.which("notify-send"):
        return ["notify-send", "--", TITLE, text]
    if shutil.which("osascript"):
        return ["osascript", "-e", f"display notification {json.dumps(text)} with title {json.dumps(TITLE)}"]
    return [""]


def ring() -> None:
    """Ring the bell, if stderr is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\a")
        sys.stderr.flush()
