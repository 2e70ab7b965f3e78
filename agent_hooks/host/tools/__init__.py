"""The built-in tools; one module for each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent_hooks.host.tools.base import BuiltinTool
from agent_hooks.host.tools.bash import BashTool
from agent_hooks.host.tools.edit import EditTool
from agent_hooks.host.tools.find import FindTool
from agent_hooks.host.tools.grep import GrepTool
from agent_hooks.host.tools.ls import LsTool
from agent_hooks.host.tools.read import ReadTool
from agent_hooks.host.tools.write import WriteTool
from agent_hooks.values.tool import Tool

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor

__all__ = ["TOOLS", "builtin_tools"]

TOOLS: tuple[type[BuiltinTool], ...] = (BashTool, ReadTool, WriteTool, EditTool, LsTool, FindTool, GrepTool)


def builtin_tools(
    *, cwd: str, output_directory: Callable[[], Path] | None = None, redactor: Redactor | None = None
) -> list[Tool]:
    """Return the seven built-in tools, working in `cwd`.

    `output_directory` returns the folder for the full text of cut output; it is called, and the folder made, only when
    there is a text to keep.  Without it, a temporary folder is made, which is not deleted.  `redactor`: hides the secrets
    in these texts; the results themselves are redacted by the runner.
    """
    keep = output_directory or cache(_temporary)
    return [tool(cwd, keep, redactor) for tool in TOOLS]


def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="agent-hooks-"))
