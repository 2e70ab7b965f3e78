"""The facts that are known at installation, and that the client gets with its text.

They are a module of their own, because only `stub` makes them: the generated file holds them as a plain dictionary.
"""

from __future__ import annotations

from typing import TypedDict


class ClientConfig(TypedDict):
    """The facts about one agent and this machine that `run` gets.

    `hello`: the first line of a server of this version.
    `request`: the beginning of a request, up to its event.
    `home`: the agent home.
    `fixed`: the variables of the processes that judge; an empty value stands for a variable that is not set.
    `removed`: the beginnings of the names of variables that those processes do not get.
    `run`, `serve`: the arguments with which this Python runs `agent-hooks` for one event, and as a server.
    `environment`, `project`: the names of the variables to send, and of the one that holds the project.
    `process`, `seat`: the name of the variable with the agent's process id, and the variables to send for a mod.
    `events`: the seconds until the client gives up, and the refusal, by event; `""` stands for any other event.
    `limit`: the size of the largest payload, in bytes.
    `patience`, `start`: the seconds in which a server must send its first line, and must start.
    `remedy`: the end of each reason of a refusal.
    """

    agent: str
    hello: str
    request: str
    home: str
    fixed: dict[str, str]
    removed: list[str]
    run: list[str]
    serve: list[str]
    environment: list[str]
    project: str
    process: str
    seat: dict[str, str]
    events: dict[str, tuple[float, str]]
    limit: int
    patience: float
    start: float
    remedy: str
