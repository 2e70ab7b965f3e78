"""The generated plugin that another agent loads into its own process: the facts of the installation, the link, its part.

The link finds the resident server by the name of its socket.  It lets the generated Python file (see `stub`) start one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from agent_hooks import __version__
from agent_hooks.bridges import usable_bridges
from agent_hooks.bridges.base import Bridge
from agent_hooks.installs.generated import heartbeat_path, plugin_path
from agent_hooks.server.stub import config_of, text_of, write_stub

if TYPE_CHECKING:
    from agent_hooks.server.client_config import ClientConfig

_DIRECTORY = os.path.join(os.path.dirname(__file__), "plugins")
_CLIENT = b"  client: "


def plugin_text(bridge: Bridge, path: str, stub: str, config: ClientConfig) -> str:
    """Return the plugin of a bridge.

    `path`: the plugin's own path; `stub`: the path of the generated Python file, and `config` its configuration.
    """
    head = (
        f"// {bridge.name} loads this file.  It is of agent-hooks {__version__}.\n"
        f"// To update it: agent-hooks install {bridge.name}\n"
        f"// To do without: agent-hooks uninstall {bridge.name}, or remove this file from the agent's settings.\n\n"
    )
    known = "".join(f"  {key}: {json.dumps(value)},\n" for key, value in _known(bridge, path, stub, config).items())
    link, own = (text_of(os.path.join(_DIRECTORY, name)) for name in ("link.js", bridge.plugin))
    return f"{head}const KNOWN = {{\n{known}}};\n\n{link}\n{own}"


def _known(bridge: Bridge, path: str, stub: str, config: ClientConfig) -> dict[str, Any]:
    """Return the facts of an installation by the names that link.js uses."""
    install = f"agent-hooks install {bridge.name}"
    return {
        "agent": bridge.name,
        "version": __version__,
        "hello": config["hello"],
        "request": config["request"],
        "home": config["home"],
        "user": config["fixed"]["HOME"],
        "client": [_python(path), "-I", "-S", stub],
        "events": config["events"],
        "gates": [row.name for row in bridge.describe() if row.gate],
        "later": bridge.gives_later(),
        "limit": config["limit"],
        "patience": config["patience"],
        "start": config["start"],
        "file": path,
        "heartbeat": str(heartbeat_path(bridge)),
        "install": f"{install}, then start {bridge.name} again",
        "remedy": f"to check: agent-hooks doctor; to mend it: {install}; to do without: agent-hooks uninstall "
        f"{bridge.name}, or remove this file from the agent's settings: {path}",
    }


def _python(path: str) -> str:
    """Return this Python, by the name that the plugin at `path` has for it, if there is one."""
    # Imported here, because a process for one event writes no plugin.
    from agent_hooks.installs.places import same_program

    line = next((each for each in (_content(path) or b"").splitlines() if each.startswith(_CLIENT)), _CLIENT)
    try:
        found = json.loads(line.removeprefix(_CLIENT).rstrip(b","))
    except ValueError:
        return sys.executable
    known = found[0] if isinstance(found, list) and found and isinstance(found[0], str) else ""
    return known if same_program(known, sys.executable) else sys.executable


def write_plugin(bridge: Bridge, path: str | None = None, fixed: dict[str, str] | None = None) -> str:
    """Write the plugin and the Python file unless they are up to date; return the plugin's path.  Raises `StorageError`.

    `path`: an absolute path, by default the one in the agent home.
    `fixed`: the variables to fix, as for `write_stub`.
    """
    # Imported here, because a process for one event needs none of these.
    from agent_hooks.server.fixed import fixed_in
    from agent_hooks.storage.files import refusing, write_atomically

    stub = write_stub(bridge, fixed)
    path = path or str(plugin_path(bridge))
    text = plugin_text(bridge, path, stub, config_of(bridge, fixed=fixed_in(stub))).encode()
    if _content(path) != text:
        with refusing("write", path):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomically(path, text, durable=True)
    return path


def refresh_plugins() -> None:
    """Update the plugins that exist and that another version wrote."""
    for bridge in usable_bridges():
        if bridge.plugin and plugin_path(bridge).is_file():
            write_plugin(bridge)


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
