"""Let the process of a hook load it, under a deadline."""

from __future__ import annotations

from typing import Any

import anyio
from msgspec import Struct

from agent_hooks.errors import HookUsageError
from agent_hooks.isolation.exact import Packer
from agent_hooks.isolation.failures import RemoteError
from agent_hooks.isolation.protocol import Failed, Load, Loaded, ProtocolError
from agent_hooks.isolation.running import Pending, Running

# Seconds in which a hook must be loaded.
LOAD_TIMEOUT = 30.0


class Source(Struct, frozen=True):
    """The hook to load: `path` as given, its real path, its label, and the approved bytes if those count."""

    path: str
    resolved: str
    label: str
    sources: dict[str, bytes] | None


async def load_into(
    running: Running, pending: Pending, source: Source, first: int, kept: dict[str, bytes]
) -> Loaded | BaseException:
    """Let a process load the hook; return its answer, or the reason why the hook is not loaded.

    `first`, `kept`: see `Load`.
    """
    message = await _answer(running, pending, source, first, kept)
    if isinstance(message, Loaded | BaseException):
        return message
    if isinstance(message, Failed):
        return RemoteError(message.failure)
    return HookUsageError(f"register did not end within {LOAD_TIMEOUT:g} s; start long work with api.start_task")


async def _answer(running: Running, pending: Pending, source: Source, first: int, kept: dict[str, bytes]) -> Any:
    """Return the answer to `Load`, an exception, or `None` after the deadline."""
    pack = Packer().pack
    path, resolved, label = (pack(each, "path") for each in (source.path, source.resolved, source.label))
    try:
        running.send(
            Load(
                pending.id,
                path,
                resolved,
                label,
                pack(source.sources, "sources"),
                first,
                pack(kept, "kept"),
            )
        )
        with anyio.move_on_after(LOAD_TIMEOUT):
            return await pending.next()
    except ProtocolError as exc:
        return exc
    # The load is cancelled, and a process that is half loaded is of no use.
    except BaseException:
        running.expected = True
        running.kill("")
        raise
    finally:
        running.calls.pop(pending.id, None)
    return None
