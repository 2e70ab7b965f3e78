"""The places where each agent keeps hooks, plugins and the settings that decide which calls are allowed.

An agent that writes there changes the agent that runs next, or switches our hooks off.  The guards know these places by
their names, in any directory.  A variable may move a person's own directory; `moved` returns it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct


class AgentPlace(Struct, frozen=True):
    """A directory of an agent, in a project or in the home.

    `agent`: the agent's name; `folder`: the directory; `names`: the files and trees in it that decide; `variable`: the
    variable that moves the person's own directory, and `below`: the rest of the path behind the variable's value;
    `file`: the variable that names a settings file.
    """

    agent: str
    folder: str
    names: tuple[str, ...]
    variable: str = ""
    below: str = ""
    file: str = ""


_GEMINI = ("settings.json", "hooks", "extensions", "trustedFolders.json", "policies")
_OPENCODE = ("opencode.json", "opencode.jsonc", "config.json", "plugin", "plugins", "tool", "tools")
AGENT_PLACES = (
    AgentPlace(
        "claude-code",
        ".claude",
        ("settings.json", "settings.local.json", "hooks", "plugins", "dev-mods", "managed-settings.json"),
        "CLAUDE_CONFIG_DIR",
    ),
    AgentPlace(
        "codex",
        ".codex",
        ("config.toml", "hooks.json", "hooks", "rules", "managed_config.toml", "requirements.toml"),
        "CODEX_HOME",
    ),
    AgentPlace("gemini-cli", ".gemini", _GEMINI, "GEMINI_CLI_HOME", ".gemini"),
    AgentPlace("qwen-code", ".qwen", _GEMINI, "QWEN_HOME"),
    AgentPlace(
        "copilot-cli",
        ".copilot",
        (
            *("hooks", "config.json", "settings.json", "permissions-config.json", "plugins", "installed-plugins"),
            "extensions",
        ),
        "COPILOT_HOME",
    ),
    AgentPlace("copilot-cli", ".github", ("hooks", "copilot")),
    AgentPlace(
        "cursor",
        ".cursor",
        ("hooks.json", "hooks", "cli-config.json", "cli.json", "permissions.json", "plugins"),
        "CURSOR_CONFIG_DIR",
    ),
    AgentPlace("opencode", ".opencode", _OPENCODE, "OPENCODE_CONFIG_DIR", file="OPENCODE_CONFIG"),
    AgentPlace("opencode", ".config/opencode", _OPENCODE, "XDG_CONFIG_HOME", "opencode"),
    AgentPlace("opencode", "", ("opencode.json", "opencode.jsonc")),
    AgentPlace("pi", ".pi", ("settings.json", "extensions", "npm", "git")),
    AgentPlace(
        "pi", ".pi/agent", ("settings.json", "extensions", "npm", "git", "hooks", "trust.json"), "PI_CODING_AGENT_DIR"
    ),
    AgentPlace(
        "openclaw",
        ".openclaw",
        ("openclaw.json", "hooks", "extensions", "plugins", "exec-approvals.json"),
        "OPENCLAW_STATE_DIR",
        file="OPENCLAW_CONFIG_PATH",
    ),
)


def _pattern(place: AgentPlace) -> str:
    names = "|".join(map(re.escape, place.names))
    folder = f"{re.escape(place.folder)}/" if place.folder else ""
    return rf"{folder}(?:{names})(?:/.*)?".lower()


PATTERN = "|".join(map(_pattern, AGENT_PLACES))
"""Matches the end of a path, in small letters, from the agent's directory on."""


# More code that a client loads from a project on its own: a skill that is a plugin with hooks and servers, a plugin with
# its marketplace, and a package of tools.  The user may well want it.
_LOADED_CODE = (
    r"\.claude/skills/[^/]+/(?:hooks/.+|\.claude-plugin/.+|\.mcp\.json|\.lsp\.json)",
    r"skills/[^/]+/\.claude-plugin/.+",
    r"\.(?:gemini|qwen)/skills/[^/]+/hooks/.+",
    r"\.codex/(?:plugins|agents)/.+",
    r"\.agents/(?:plugins/.+|hooks\.json)",
    r"\.github/(?:extensions|plugin)/.+",
    r"\.opencode/(?:package\.json|node_modules/.+)",
    r"\.pi/(?:hooks|tools)/.+",
    r"\.openclaw/workspace/(?:hooks|\.openclaw-plugin)/.+",
)
CODE_PATTERN = "|".join(_LOADED_CODE)
"""Matches the end of a path, in small letters, from the directory with the client's code on."""
TEXT_PATTERN = r"\.(?:claude|codex|agents|gemini|qwen|pi|opencode)/(?:skills|agents?|commands?)/.+\.md"
"""Matches the end of a path to a text whose header may hold hooks: a skill, a sub-agent or a command."""
HOOKED_TEXT = r"^hooks[ \t]*:[ \t]*(?:\{.*)?\r?$"
"""Matches the line of such a header that begins its hooks."""


def moved(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the directories that variables name instead of the usual ones, each with the names in it that decide."""
    for place in AGENT_PLACES:
        if place.variable and (path := environment.get(place.variable)):
            yield posixpath.join(path, place.below) if place.below else path, place.names
        if place.file and (path := environment.get(place.file)):
            directory, name = posixpath.split(path)
            yield directory, (name,)


def usual(directories: Iterable[str], hooked: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the usual directories of the agents that run our hooks, each with the names in it that decide.

    `directories`: the projects and the home.  `hooked`: the settings files with entries of ours, by which such an agent
    is known; all are absolute paths.
    """
    places = [(each, posixpath.join(top, each.folder).rstrip("/")) for top in directories for each in AGENT_PLACES]
    files = [posixpath.split(path) for path in hooked]
    agents = {
        place.agent
        for place, folder in places
        for directory, name in files
        if (name in place.names and directory == folder)
        or any(f"{directory}/".startswith(f"{folder}/{each}/") for each in place.names)
    }
    yield from ((folder, place.names) for place, folder in places if place.agent in agents)
