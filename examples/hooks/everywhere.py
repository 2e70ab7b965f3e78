"""Each thing that a hook can do, once, in a file that works unchanged in every agent.

Try it:  agent-hooks run --hook examples/hooks/everywhere.py '@bash ./deploy'
In your agents:  cp examples/hooks/everywhere.py .agent/hooks/ && agent-hooks trust && agent-hooks install all

The rules are simple words in commands and prompts, so that each is easy to try by hand.  docs/agents.md shows which of
them hold in which agent; the page is made by running this file in all of them.  Every event becomes a line of
.agent/everywhere.jsonl.
"""

import json
import re
from pathlib import Path

from agent_hooks import (
    AddContext,
    AgentEnd,
    AgentStart,
    Ask,
    BeforeToolCall,
    Block,
    Cancel,
    Continue,
    HookAPI,
    HookContext,
    MessageBeforeInput,
    MessageBeforeOutput,
    Replace,
    Rewrite,
    SessionEvent,
    Stop,
    TextContent,
    ToolCall,
    ToolResult,
    TurnStart,
    checkpoints,
)

CUSTOMER = re.compile(r"\bcus_\w{8,}")
# The tools of agent_hooks itself; the names of other tools are the agent's own.
BUILT_IN = {"bash", "read", "write", "edit", "ls", "find", "grep"}


def register(api: HookAPI) -> None:
    def log(ctx: HookContext, event: str, **facts: object) -> None:
        path = Path(ctx.cwd, ".agent", "everywhere.jsonl")
        # A checkout may bring links to other files.
        if path.parent.is_symlink() or path.is_symlink():
            raise OSError(f"{path} is a link, or its directory is: remove the link")
        path.parent.mkdir(exist_ok=True)
        line = {"event": event, "session": ctx.session_id, "agent": ctx.agent_id, **facts}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    # ---- before a tool call

    @api.on("tool_call")
    async def keep_secret(event: ToolCall, ctx: HookContext) -> Block | None:
        """A tool of an MCP server, under any name."""
        log(ctx, "tool_call", tool=event.tool_name, id=event.tool_call_id)
        text = json.dumps(dict(event.input), default=str)
        if event.tool_name not in BUILT_IN and "confidential" in text:
            return Block("confidential texts stay here")
        return None

    @api.on("before_tool_call", tool="bash")
    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite | None:
        """Install by the lock file; `tidy-home` is a short word for a command that the guards block."""
        command = event.params["command"]
        better = command.replace("npm install", "npm ci").replace("tidy-home", "rm -rf ~")
        return None if better == command else Rewrite({**event.params, "command": better})

    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Block | Ask | Stop | None:
        command = event.input["command"]
        if "overheat" in command:
            return Stop("let it cool down")
        if "deploy" in command:
            return Block("deploying is for people")
        if "git push" in command:
            return Ask("Shall it push?", command)
        if "publish" in command and not await ctx.ui.confirm("Shall it publish?", command):
            return Block("publishing needs a yes")
        if "backup" in command:
            ctx.ui.notify("The backup is from Friday.")
        if "migrate" in command:
            api.send("Before a migration, read MIGRATIONS.md.")
        return None

    @api.on("tool_call", tool=["write", "edit"])
    async def keep_prices(event: ToolCall, ctx: HookContext) -> Block | None:
        """A patch of several files comes here once for each file."""
        return Block("prices are for people") if Path(event.input["path"]).name == "prices.txt" else None

    # ---- after a tool call

    @api.on("tool_result")
    async def hide_customers(event: ToolResult, ctx: HookContext) -> Replace | None:
        log(ctx, "tool_result", tool=event.tool_name, id=event.tool_call_id, failed=event.is_error)
        content = [
            TextContent(CUSTOMER.sub("cus_***", block.text)) if isinstance(block, TextContent) else block
            for block in event.content
        ]
        return None if content == event.content else Replace(content=content)

    @api.on("tool_result")
    async def warn(event: ToolResult, ctx: HookContext) -> AddContext | None:
        """The text comes beside the result, which stays as it is."""
        if "deprecated" not in event.text:
            return None
        return AddContext("Something in this result is deprecated: ask before you build on it.")

    # ---- prompts, sessions, the end of the work

    @api.intercept("message.before")
    def prompt(input: MessageBeforeInput, output: MessageBeforeOutput) -> None:
        if "password" in output.message:
            output.block = True
            output.block_reason = "no passwords in prompts"
        output.context.append("House rule: small commits.")

    @api.on("session")
    async def session(event: SessionEvent, ctx: HookContext) -> Cancel | AddContext | None:
        if event.reason == "before_compact" and Path(ctx.cwd, "keep-everything").exists():
            log(ctx, "kept everything")
            return Cancel("keep-everything is here")
        summary = event.compaction_entry.summary if event.compaction_entry else None
        log(ctx, f"session {event.reason}", summary=summary)
        return AddContext("The build server is called greenhouse.") if event.reason == "start" else None

    @api.on("agent_start")
    async def start(event: AgentStart, ctx: HookContext) -> None:
        log(ctx, "agent_start", prompt=event.prompt)

    @api.on("turn_start")
    async def save(event: TurnStart, ctx: HookContext) -> None:
        """`agent-hooks checkpoints restore` brings the files from before the prompt back."""
        if event.turn_index > 0 or ctx.agent_id != "main":
            return
        try:
            await checkpoints.create(ctx.cwd, ctx.session_id, event.entry_index)
        except checkpoints.CheckpointError as exc:
            log(ctx, "no checkpoint", reason=str(exc))

    @api.on("agent_end")
    async def finish(event: AgentEnd, ctx: HookContext) -> Continue | None:
        log(ctx, "agent_end", continued=event.continued)
        unfinished = Path(ctx.cwd, "unfinished").exists()
        return Continue("Go on until it is done.") if unfinished and ctx.agent_id == "main" else None
