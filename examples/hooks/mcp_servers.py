# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp>=2.3,<3", "httpx2", "jsonschema"]
# ///
"""Give the agent the tools of your MCP servers, each as mcp__SERVER__TOOL.  Needs: uv, which fetches the packages.

Try it:  agent-hooks run --hook examples/hooks/mcp_servers.py '@mcp__time__get_current_time {"timezone": "UTC"}'

Your file ~/.agent/mcp.json names the servers, in the form that other agents know:

    {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TOKEN": "${MY_TOKEN}"}},
                    "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}}}}

`${NAME}` stands for your environment variable, and `${PROJECT}` for the directory of the session.  A server works in
~/.agent or in its `cwd`, because `npx` and `python -m` may run code of the directory that they work in.  The .mcp.json of
a project is not read: it could start any program of a stranger.
"""

import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio

from agent_hooks import HookAPI, HookContext, SessionEvent, ToolOutput

FILE = Path(os.environ.get("AGENT_HOME") or Path.home() / ".agent", "mcp.json")
# Seconds in which a server lists its tools: a handler of the event gets 30.
START = 25
# The characters of a result that the model gets.
SHOWN = 50_000
# Runs a server, and ends it with all its processes when this process has ended, also by a crash.
KEEPER = """
import os, subprocess, sys
try:
    server = subprocess.Popen(sys.argv[2:])
except OSError as exc:
    sys.exit(exc)
while server.poll() is None and os.getppid() == int(sys.argv[1]):
    try:
        server.wait(1)
    except subprocess.TimeoutExpired:
        pass
os.killpg(0, 9)
"""


def register(api: HookAPI) -> None:
    @api.on("session")
    async def start(event: SessionEvent, ctx: HookContext) -> None:
        # Other agents start their MCP servers themselves.
        if event.reason != "start" or ctx.mode not in ("interactive", "print", "rpc"):
            return
        warn: Callable[[str], None] = partial(ctx.ui.notify, type="warning") if ctx.has_ui else print
        values = {**os.environ, "PROJECT": ctx.cwd}
        servers = []
        try:
            text = re.sub(r"\$\{(\w+)}", lambda at: json.dumps(values.get(at[1], at[0]))[1:-1], FILE.read_text("utf-8"))
            servers = [Server(name, entry) for name, entry in json.loads(text)["mcpServers"].items()]
        except FileNotFoundError:
            warn(f"{FILE} does not exist, so there are no MCP servers; the first lines of the hook show its form")
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as exc:
            warn(f'{FILE} is no JSON {{"mcpServers": {{…}}}}, so no MCP server is started; mend it: {exc!r}')
        taken: set[str] = set()
        for server in servers:
            api.start_task(partial(server.live, warn, taken))
        for server in servers:
            await server.ready.wait()
            for tool in server.tools:
                api.register_tool(tool)


class Server:
    """A server of the file; its `log` is its stderr."""

    def __init__(self, name: str, entry: Any) -> None:
        self.name, self.entry = name, entry if isinstance(entry, dict) else {}
        self.ready, self.tools = anyio.Event(), list[Tool]()
        self.log: Any = TemporaryFile("w+", errors="replace")  # noqa: SIM115  # as long as the session

    async def live(self, warn: Callable[[str], None], taken: set[str]) -> None:
        """Start the server, list its tools, and keep it until the session ends; `taken`: the names of tools so far."""
        # Imported here, because it takes a second, and other agents load this hook too.
        from mcp import Client

        problem, remedy = f"no answer within {START} s", f"mend or remove its entry in {FILE}, then /reload"
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + START) as scope:
                async with Client(self.connection()) as client:
                    page = await client.list_tools()
                    tools = [*page.tools]
                    while page.next_cursor:
                        page = await client.list_tools(cursor=page.next_cursor)
                        tools += page.tools
                    scope.deadline = math.inf
                    if wrong := [f"{each.name}: {why}" for each in tools if (why := self.offer(taken, client, each))]:
                        warn(f"MCP server {self.name!r}: left out: {'; '.join(wrong)[:SHOWN]}; {remedy}")
                    self.ready.set()
                    await anyio.sleep_forever()
        except Exception as exc:
            failed: BaseException = exc
            while isinstance(failed, BaseExceptionGroup):
                failed = failed.exceptions[0]
            problem = " ".join(str(failed).split())[:300] or type(failed).__name__
        if not self.ready.is_set():
            self.log.seek(0)
            said = " ".join(self.log.read().split())[-300:]
            warn(f"MCP server {self.name!r} has no tools: {problem}; {remedy}{said and f'; it said: {said}'}")
            self.ready.set()

    def connection(self) -> Any:
        """Return the connection, which `Client` opens."""
        if isinstance(url := self.entry.get("url"), str):
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            http = httpx2.AsyncClient(headers=self.entry.get("headers"), timeout=300)
            return streamable_http_client(url, http_client=http)
        from mcp.client.stdio import StdioServerParameters, stdio_client

        # Each line that is no message would be a traceback.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        command, args, env = self.entry.get("command"), self.entry.get("args", []), self.entry.get("env", {})
        if not all(isinstance(each, str) for each in (command, *args, *env.values())):
            raise TypeError('its entry needs a text "command" or "url"; "args" and the values of "env" are texts')
        keeper, cwd = ["-I", "-c", KEEPER, str(os.getpid()), command, *args], self.entry.get("cwd", FILE.parent)
        return stdio_client(StdioServerParameters(command=sys.executable, args=keeper, env=env, cwd=cwd), self.log)

    def offer(self, taken: set[str], client: Any, tool: Any) -> str | None:
        """Take a tool, or return why it cannot be one."""
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for

        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp__{self.name}__{tool.name}")
        if len(name) > 64 or name in taken:
            return f"the name {name} has more than 64 characters, or is taken"
        try:
            validator_for(tool.input_schema).check_schema(tool.input_schema)
        except SchemaError as exc:
            return f"its schema is wrong: {exc.message}"
        taken.add(name)
        self.tools.append(Tool(name, tool, self.name, client))
        return None


class Tool:
    """A tool of a server."""

    def __init__(self, name: str, tool: Any, server: str, client: Any) -> None:
        self.name, self.description, self.input_schema = name, tool.description or "", tool.input_schema
        self.server, self.call = server, partial(client.call_tool, tool.name)

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: object = None) -> ToolOutput:
        """Call the tool; the server hears of a call that is cancelled."""
        try:
            result = await self.call(input)
        # The server has ended, refuses the call, or answers with nonsense.
        except Exception as exc:
            text = f"MCP server {self.server!r}: {str(exc)[:SHOWN]}; if it has ended, /reload starts it again"
            return ToolOutput(text, is_error=True)
        # An embedded file has a text too; images and other blocks are named.
        blocks = [getattr(getattr(each, "resource", each), "text", f"[{each.type}]") for each in result.content]
        text = "\n".join(blocks)
        cut = f"\n[cut: {len(text) - SHOWN} more characters]" if len(text) > SHOWN else ""
        return ToolOutput(text[:SHOWN] + cut, is_error=result.is_error)
