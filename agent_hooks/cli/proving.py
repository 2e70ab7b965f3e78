"""Find out that a user, and no agent, runs a command that loosens something.

While a judged session is open or recent, the command shows a code on the terminal itself and takes it typed there.
Redirected streams, options and variables answer nothing.  Without a terminal, the command is refused then.  A terminal
that nobody sees is none.
"""

from __future__ import annotations

import os
import secrets
import select
import shlex
import signal
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from agent_hooks.cli.streams import can_show_question
from agent_hooks.errors import AgentHooksError
from agent_hooks.settings import agent_home
from agent_hooks.trust.ancestors import ancestors, is_unattended, refuse_below_an_agent
from agent_hooks.trust.open_sessions import RECENT, Judged, open_session, process_start
from agent_hooks.trust.store import Above, Origin, TrustStore

LIMIT = 60.0
"""Seconds in which the code must be typed."""
_TERMINAL = "/dev/tty"
_ATTEMPTS = 3
# Without characters that look like others.
_CHARACTERS, _LENGTH = "abcdefghjkmnpqrstuvwxyz23456789", 4
# The processes that are noted of an approval, and the characters of each command line.
_MOST, _LONGEST = 12, 200


def prove_user(command: str, homes: Collection[str] = ()) -> Origin | None:
    """Return the origin of a command that an agent may have started, `None` after a user has run it.

    Raises `AgentHooksError` below an agent, and while a judged session is open or recent unless the code was typed.
    `command`: `trust` for example.  `homes`: further agent homes whose sessions matter.
    """
    refuse_below_an_agent(command)
    session = open_session(homes=homes)
    if session is not None:
        _ask_for_code(command, session)
    apart = session is not None and session.apart
    if apart or not (can_show_question() or _has_terminal()) or is_unattended():
        return _origin()
    return _origin(terminal=True) if session is not None and _is_younger(session) else None


def prove_loosening(command: str, *words: str, homes: Collection[str] = ()) -> None:
    """Do the same for a command that has no record of its own, and note it in the trust store if an agent may run it.

    Each session tells of it then until a user confirms it.  `words`: the rest of the command.  Raises `TrustError`, too.
    """
    if (origin := prove_user(command, homes)) is not None:
        for home in dict.fromkeys((agent_home(), *homes)):
            TrustStore(home).note(shlex.join((*command.split(), *words)), origin)


def _origin(*, terminal: bool = False) -> Origin:
    # Imported here, because few approvals have to be confirmed.
    from agent_hooks.redaction import Redactor

    # A token may be among the arguments of a program, or in the text of a shell.
    redactor = Redactor()
    found = []
    for each in list(ancestors(os.getppid()))[:_MOST]:
        text, _ = redactor.redact(" ".join(each.arguments).strip())
        found.append(Above(each.pid, each.name, text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"))
    return Origin(tuple(found), terminal)


def _is_younger(session: Judged) -> bool:
    """Return whether the terminal was opened after the first judged session began: an agent may have done so.

    The first process at a terminal leads the terminal's session, and no other process can take its place.
    """
    leader = process_start(os.getsid(0))
    # Nothing is known of a leader that has ended.
    return bool(session.began) and (leader is None or (leader != "" and int(leader) > session.began))


def _has_terminal() -> bool:
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _ask_for_code(command: str, session: Judged) -> None:
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise AgentHooksError(
            f"agent-hooks {command} needs a terminal, because {session}; run it in a terminal, or "
            f"{RECENT / 60:g} minutes after the end of the last session"
        ) from None
    try:
        with _in_background_too():
            _write(terminal, f"agent-hooks {command}: {session}, so type a code to show that you are there.\n")
            if any(_is_typed(terminal) for _ in range(_ATTEMPTS)):
                return
    except OSError:
        pass
    finally:
        os.close(terminal)
    raise AgentHooksError(f"agent-hooks {command}: the code was not typed, so nothing was changed; try again")


def _is_typed(terminal: int) -> bool:
    """Show a new code, and return whether the next line is the same."""
    # Imported here, because other systems lack it.
    import termios

    code = "".join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))
    # Keys that were pressed before the code was shown do not answer it.
    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)
    _write(terminal, f"Type {code} and Enter: ")
    end, typed = time.monotonic() + LIMIT, b""
    while not typed.endswith(b"\n"):
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        if not ready or not (piece := os.read(terminal, 256)):
            _write(terminal, "\n")
            raise TimeoutError
        typed += piece
    return typed.decode("utf-8", "replace").strip().lower() == code


def _write(terminal: int, text: str) -> None:
    os.write(terminal, text.encode())


@contextmanager
def _in_background_too() -> Iterator[None]:
    """Let a background process get an error from its terminal. The signals would stop it for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTTIN, signal.SIGTTOU)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
