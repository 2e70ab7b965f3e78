"""A program with an agent loop of its own, whose tools are wrapped."""

from __future__ import annotations

import os
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import Any

import anyio
import msgspec

from agent_hooks import HookRunner, ToolOutput, discover_and_load_hooks, wrap_tools
from agent_hooks.hooks.offering import as_tool
from chaos.cells import Cell
from chaos.scene import DEADLINE, IMPATIENCE, PATIENCE, Call, Scene, calls_of

# Bound before a fault patches them: this program stands for one that does not use the patched names.
_encode, _write, _exit, _scope = msgspec.json.encode, os.write, os._exit, anyio.move_on_after
# The lowest number of the descriptors of this program, so that a hook which closes low ones does not close them.
_HIGH = 8000


class _Program:
    """Calls wrapped tools, and writes the results down."""

    def __init__(self, cell: Cell, scene: Scene) -> None:
        self._cell, self._scene = cell, scene
        self._ran = _opened(str(scene.ran))
        self._results = _opened(str(scene.results))

    async def run(self) -> None:
        """Load the hooks and make the calls."""
        loaded = await discover_and_load_hooks(cwd=self._scene.project, home=self._scene.home)
        assert not loaded.errors, loaded.errors
        limit = DEADLINE / 1000
        async with HookRunner(loaded, cwd=self._scene.project, timeout=limit, tool_call_timeout=limit) as runner:
            runner.on_error(lambda error: None)
            tools = {tool.name: tool for tool in wrap_tools([as_tool(self.bash), as_tool(self.read)], runner)}
            for call in calls_of(self._cell):
                self._note(call, await self._call(tools[call.tool], call))
        self._put({"end": True})

    async def bash(self, command: str) -> str:
        """Write the word of a command down, and return it."""
        word = command.split()[1]
        _write(self._ran, f"{word}\n".encode())
        return word

    async def read(self, path: str) -> str:
        """Return the notes."""
        return "notes"

    async def _call(self, tool: Any, call: Call) -> ToolOutput | None:
        with _scope(IMPATIENCE if self._cell.is_interrupted and call.id == "trouble" else PATIENCE):
            output: ToolOutput = await tool.execute(call.id, self._scene.input(call))
            return output
        return None

    def _note(self, call: Call, output: ToolOutput | None) -> None:
        if output is None:
            self._put({"id": call.id, "cancelled": True})
        else:
            text = "".join(getattr(block, "text", "") for block in output.content)
            self._put({"id": call.id, "text": text.encode("utf-8", "replace").decode(), "error": output.is_error})

    def _put(self, line: dict[str, Any]) -> None:
        _write(self._results, _encode(line) + b"\n")


def _opened(path: str) -> int:
    return fcntl(os.open(path, os.O_WRONLY | os.O_APPEND), F_DUPFD_CLOEXEC, _HIGH)


def run(cell: Cell, scene: Scene) -> None:
    """Run the program and end the process; when it ends is the program's own affair, not that of a hook's threads."""
    anyio.run(_Program(cell, scene).run, backend=cell.backend)
    _exit(0)
