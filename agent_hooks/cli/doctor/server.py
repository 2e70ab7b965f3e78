"""The check of the resident server, which the sample call has started."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from agent_hooks.cli.alone import last_words
from agent_hooks.cli.doctor.base import AgentCase, Diagnosis
from agent_hooks.installs.places import PROGRAM, entry_command, same_command
from agent_hooks.server import client
from agent_hooks.server.control import place_of


def running(case: AgentCase) -> Iterator[Diagnosis]:
    """Report a server that cannot start: then hooks keep no state, and each event takes as long as a whole process."""
    ours = entry_command(case.bridge, "local")
    commands = [entry.command for _, entry in case.entries if entry.event == case.facts.event]
    # The command of a plugin does not end with the event's name.
    tried = any(same_command(command if case.bridge.plugin else command[:-1], ours) for command in commands)
    if not tried or not client.is_private(client.directory()):
        # `trial.server_directory` reports a directory of another user.
        return
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{place_of(case.case.cwd)}.socket")
    except OSError:
        text = f"no resident server can be started, so hooks keep no state: {last_words(case.case.cwd)}"
        yield case.problem(text, f"{PROGRAM} serve", in_project=True)
