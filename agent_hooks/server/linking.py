"""Another judge of a session asks the resident server about a call.

A program that judges the calls of an agent in its own process may meet our entries in the agent's settings.  The program
reports a call to the server as one more link (see `links`).  So the installed hooks judge it once, and each side knows
the verdict of the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.verdicts import Reply, Verdict
from agent_hooks.errors import AgentHooksError, describe
from agent_hooks.server.client import NONCE, digest_of, directory, is_private, key_in, signature
from agent_hooks.server.links import FIELD
from agent_hooks.server.stub import HELLO
from agent_hooks.settings import agent_home
from agent_hooks.values.frozen import thaw

# The longest answer, in bytes.
_LONGEST = 256 * 1024 * 1024


class LinkVerdict(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The verdict of the installed hooks on a call.  `Verdict` has the same fields.  `input` is in our words.

    The first link that reports a call gets the texts, and passes them on.
    """

    block: str | None = None
    ask: str | None = None
    input: dict[str, Any] | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def reply_to_link(verdict: Verdict) -> Reply:
    """Return the server's reply to another judge."""
    given = None if verdict.input is None else thaw(verdict.input)
    told = LinkVerdict(verdict.block, verdict.ask, given, verdict.context, verdict.messages)
    return Reply.of(msgspec.to_builtins(told))


async def ask_server(path: str, bridge: Bridge, payload: Mapping[str, Any], event: str, link: str) -> LinkVerdict:
    """Return the verdict of the installed hooks on a call, no opinion if they do not judge its session.

    `path`: the path of the server's files, without a suffix.  `link`: this judge's name.
    Raises `AgentHooksError` if the server got the call and does not answer it, because its hooks may have blocked the
    call.
    """
    # Imported here, because the server's own process may have no event loop.
    import anyio
    from anyio.streams.buffered import BufferedByteReceiveStream

    if not (os.path.lexists(f"{path}.socket") and is_private(directory())):
        return LinkVerdict()
    known = {**json.loads(HELLO), "do": "link", "agent": bridge.name, "event": event}
    head = f'{NONCE}{os.urandom(16).hex()}", {json.dumps(known)[1:]}'
    request = f"{head}, {json.dumps({**payload, FIELD: link})}]\n".encode()
    try:
        connection = await anyio.connect_unix(f"{path}.socket")
    except OSError:
        # The server has just ended, and the next event of the agent starts another one.
        return LinkVerdict()
    try:
        async with connection:
            await connection.send(request)
            lines = BufferedByteReceiveStream(connection)
            await lines.receive_until(b"\n", _LONGEST)
            signed, _, answer = (await lines.receive_until(b"\n", _LONGEST)).partition(b" ")
        if signed != signature(key_in(agent_home()), digest_of(request), answer + b"\n"):
            raise AgentHooksError(f"another program answers in the server's place: find it, and remove {path}.socket")
        return msgspec.json.decode(answer, type=tuple[int, LinkVerdict])[1]
    except (
        OSError,
        anyio.EndOfStream,
        anyio.BrokenResourceError,
        anyio.IncompleteRead,
        anyio.DelimiterNotFound,
    ) as exc:
        raise AgentHooksError(f"the server did not answer: {describe(exc)}: agent-hooks serve --log") from exc
    except msgspec.MsgspecError as exc:
        raise AgentHooksError(f"the server could not judge this: {describe(exc)}: agent-hooks serve --log") from exc
