"""The generated file that another agent runs: `starter`, then `client` with the facts that are known at installation."""

from __future__ import annotations

import marshal
import os
import sys
from typing import TYPE_CHECKING

import agent_hooks
from agent_hooks import __version__
from agent_hooks.bridges import usable_bridges
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.verdicts import UNJUDGED
from agent_hooks.installs.generated import stub_path
from agent_hooks.server import client
from agent_hooks.settings import agent_home

PROTOCOL = 3
HELLO = f'{{"agent_hooks": "{__version__}", "protocol": {PROTOCOL}}}\n'
"""The first line of a server."""
LIMIT = 32 * 1024 * 1024
"""The size of the largest payload, in bytes."""
PATIENCE = 5.0
"""Seconds in which a server must send its first line; a server that does not is stuck."""
START = 10.0
"""Seconds in which a server must start."""
MARGIN = 10
"""Seconds by which the client ends before the agent's deadline, after which the agent would let some calls through."""
_FIRST = "(__import__('atexit').register(__import__('posix')._exit, 2))\n"
"""The first line of the generated file: the end of the process without an answer, as after a cut file, is a refusal.

Without its last character, the line is an error of syntax.
"""
_MODULES = ("_socket", "_sha2" if sys.version_info >= (3, 12) else "_sha256")
"""The C modules of the client that are files in many builds of Python, in the order in which it imports them."""
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_hooks.server.client_config import ClientConfig


def config_of(
    bridge: Bridge, *, patience: float = PATIENCE, start: float = START, fixed: dict[str, str] | None = None
) -> ClientConfig:
    """Return the configuration of a bridge's client; `patience` and `start` are seconds.

    `fixed`: the variables of an earlier installation, in place of this process's.
    """
    # Imported here, because a process for one event needs only the constants of this module.
    from agent_hooks.server.fixed import REMOVED, fixed_here
    from agent_hooks.server.siteless import isolating, start_of

    file = os.path.join(os.path.dirname(agent_hooks.__file__), "__main__.py")
    rows = {row.name: row.timeout or bridge.timeout for row in bridge.describe()}
    refusal = f"{UNJUDGED}: {client.REASON}"
    events = {
        name: (float(max(seconds - MARGIN, seconds / 2)), bridge.refuse(name or None, refusal).stdout)
        for name, seconds in {**rows, "": bridge.timeout}.items()
    }
    return {
        "agent": bridge.name,
        "hello": HELLO,
        "request": f'[{HELLO[:-2]}, "do": "answer", "agent": "{bridge.name}", "event": ',
        "home": agent_home(),
        "fixed": fixed or fixed_here(),
        "removed": list(REMOVED),
        "run": start_of(file),
        # With `-m` instead of the file, Python would need two more milliseconds.
        "serve": [*isolating(), file],
        "environment": list(bridge.environment),
        "project": bridge.project_variable,
        "process": bridge.process_variable,
        "seat": dict(bridge.seat),
        "events": events,
        "limit": LIMIT,
        "patience": patience,
        "start": start,
        "remedy": f"to check: agent-hooks doctor; to do without: agent-hooks uninstall {bridge.name}, "
        f"or remove the entries that name this file from the agent's settings: {stub_path(bridge)}",
    }


def stub_text(config: ClientConfig) -> str:
    """Return the generated file."""
    # Imported here, as in `config_of`.
    from agent_hooks.server import preload, starter

    agent = config["agent"]
    head = (
        f"{_FIRST}# {agent} runs this file at its events.  It is of agent-hooks {__version__}.\n"
        f"# To update it: agent-hooks install {agent}\n"
        f"# To do without: agent-hooks uninstall {agent}, or remove the entries with this file from its settings.\n\n"
    )
    known = "".join(f"    {key!r}: {value!r},\n" for key, value in config.items())
    first = f"{text_of(preload.__file__)}\n\npreload({sys.version!r}, {_files_of(_MODULES)!r})\n"
    program = f"{first}\n{text_of(client.__file__)}\n\nrun({{\n{known}}})\n"
    mark = starter.MARK.decode()
    commented = f"{mark}{program.rstrip().replace(chr(10), mark)}\n"
    return f"{head}{text_of(starter.__file__)}\n\nexec(code_of(__file__))  # this ends the process\n{commented}"


def bytecode_of(text: bytes, path: str) -> bytes:
    """Return the content of the file beside a generated file, which holds its bytecode."""
    # Imported here, as in `config_of`.
    from types import CodeType

    from agent_hooks.server import starter

    made = starter.made(text, path)
    assert isinstance(made, CodeType), "`compile` returns code"
    code = marshal.dumps(made)
    return starter.digest(text, code) + code


def write_stub(bridge: Bridge, fixed: dict[str, str] | None = None) -> str:
    """Write the generated file and its bytecode unless they are up to date; return its path.  Raises `StorageError`.

    `fixed`: the variables to fix, by default those of the present file, or without one those of this process.
    """
    # Imported here, as in `config_of`.
    from agent_hooks.server.fixed import fixed_in
    from agent_hooks.storage.files import refusing, write_atomically

    path = stub_path(bridge)
    text = stub_text(config_of(bridge, fixed=fixed or fixed_in(str(path))))
    kept = path.with_suffix(".pyc")
    if not (path.is_file() and path.read_bytes() == text.encode() and kept.is_file()):
        with refusing("write", str(path)):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(str(kept), bytecode_of(text.encode(), str(path)), durable=True)
        write_atomically(str(path), text.encode(), durable=True)
    return str(path)


def _files_of(modules: Iterable[str]) -> dict[str, str]:
    """Return the files of those modules that this Python loads from a file."""
    from importlib.util import find_spec

    found = {name: find_spec(name) for name in modules}
    return {name: spec.origin for name, spec in found.items() if spec and spec.has_location and spec.origin}


def text_of(path: str) -> str:
    """Return the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def refresh_stubs() -> None:
    """Update the generated files that exist and that another version wrote."""
    for bridge in usable_bridges():
        if stub_path(bridge).is_file():
            write_stub(bridge)


def command_of(bridge: Bridge) -> list[str]:
    """Return the command line of an entry in the other agent's settings, after the file that it runs is written.

    The event's name comes after it.
    """
    return [sys.executable, "-I", "-S", write_stub(bridge)]
