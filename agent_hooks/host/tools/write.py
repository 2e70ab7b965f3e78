"""The `write` tool: write a text file in one step."""

from __future__ import annotations

from typing import Any

from anyio import to_thread

from agent_hooks.host.tools.base import BuiltinTool, Refused, object_schema, text_schema
from agent_hooks.storage.files import write_atomically
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate


class WriteTool(BuiltinTool):
    """Writes a whole text file."""

    name = "write"
    description = "Write a text to a file: creates the file and its directories, or replaces the whole file."
    input_schema = object_schema(
        ["path", "content"],
        path=text_schema("The file, absolute or relative to the working directory"),
        content={"type": "string", "description": "The whole new text"},
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        path = input["path"]
        try:
            data = input["content"].encode()
        except UnicodeEncodeError:
            raise Refused("the content contains half a surrogate pair; write the whole character") from None
        await to_thread.run_sync(write_atomically, self.resolve(path), data, path)
        return ToolOutput(f"wrote {len(data)} bytes to {path}")
