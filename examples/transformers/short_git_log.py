"""A transformer: it gives a `git log` without a limit the option `-n`.

Put it into `.agent/transformers/` and name it in `.agent/command_intercept.yaml`:

    version: 1
    tools:
      bash:
        transformers:
          - name: short_git_log
            config: {commits: 20}
"""

from typing import Any

from msgspec import Struct


class Config(Struct):
    """The keys of `config`; they are checked when the file is read."""

    commits: int = 50


def transform(tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return the whole new input."""
    command = tool_input["command"]
    if command.split() != ["git", "log"]:
        return tool_input
    return {**tool_input, "command": f"git log -n {config.get('commits', 50)}"}
