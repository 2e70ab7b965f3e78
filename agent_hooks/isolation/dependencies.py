"""The environment with the packages that a hook's header names: made once by uv, and kept in the agent home.

Why it is made this way:

1. uv gets a copy of the header in a directory of the agent home, and works there.  So nothing of a project counts for it:
   no `uv.toml`, `pyproject.toml`, `.python-version` or `.venv`; and of a project's hook, the approved bytes count.
2. The directory is named after the digest of header, lock file and Python.  A changed one gets another environment.
3. If no lock file lies beside the hook, uv writes one into that directory, where it stays: an environment that is made
   again gets the same versions.
4. The environment has the Python of the agent, because the hook's process loads the agent's own compiled packages.
5. Where another agent runs this program, nothing is fetched: the variables of the process may lead to any index, and an
   event has no time for it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.isolation.launch import Launch, Limits
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular, write_atomically
from agent_hooks.storage.git import FIXED
from agent_hooks.storage.locks import try_lock
from agent_hooks.storage.programs import find_program, safe_path
from agent_hooks.storage.rights import check_owner
from agent_hooks.trust.ancestors import agent_ancestor
from agent_hooks.trust.header import ENVIRONMENTS, LOCK, MADE, Header

TIMEOUT = 600.0
"""Seconds that uv gets to make an environment."""
_SCRIPT = "hook.py"
_READY = "ready"
_POLL = 0.05
# The end of uv's output, in an error.
_SHOWN = 1_500
# Where packages come from, and how they are fetched; every other UV_* is dropped.
_KEPT_UV = frozenset(
    f"UV_{name}"
    for name in (
        "CACHE_DIR",
        "DEFAULT_INDEX",
        "EXCLUDE_NEWER",
        "EXTRA_INDEX_URL",
        "FIND_LINKS",
        "HTTP_RETRIES",
        "HTTP_TIMEOUT",
        "INDEX",
        "INDEX_STRATEGY",
        "INDEX_URL",
        "KEYRING_PROVIDER",
        "NATIVE_TLS",
        "NO_BUILD",
        "NO_INDEX",
        "OFFLINE",
        "SYSTEM_CERTS",
    )
)
_KEPT = frozenset(
    (
        *("HOME", "LANG", "LC_ALL", "LOGNAME", "USER", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
        *("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE"),
        *("NETRC", "SSH_AUTH_SOCK"),
    )
)


class DependenciesError(AgentHooksError):
    """The packages of a hook are not there; the text names the reason and the remedy."""


class Dependencies(Struct, frozen=True):
    """The packages that a hook's header names, and the place of their environment.

    `file`: the real path of the hook; `lock`: the bytes of the lock file beside it, if there is one; `directory`: that of
    its environment; `home`: the agent home.
    """

    file: str
    header: Header
    lock: bytes | None
    directory: str
    home: str

    @property
    def python(self) -> str:
        """The path of the environment's Python."""
        return os.path.join(self.directory, "venv", "bin", "python")

    @property
    def is_ready(self) -> bool:
        """Whether the environment was made, and its Python is still there."""
        return os.path.isfile(os.path.join(self.directory, _READY)) and os.path.exists(self.python)

    @property
    def lock_file(self) -> str:
        """The path of the lock file that counts: the one beside the hook, or else the kept one."""
        return self.file + LOCK if self.lock is not None else os.path.join(self.directory, _SCRIPT + LOCK)

    def __str__(self) -> str:
        """Return the packages, and the file with their versions."""
        return f"{', '.join(self.header.dependencies) or 'none'}; versions: {self.lock_file}"


def dependencies_of(file: str, header: Header, lock: bytes | None, home: str) -> Dependencies:
    """Return the dependencies of the hook at the real path `file`; `home`: the agent home."""
    python = f"{sys.implementation.cache_tag} {sys.platform} {os.path.realpath(sys.base_prefix)}"
    parts = (header.text.encode(), b"" if lock is None else lock, os.fsencode(python))
    key = sha256(b"".join(b"%d %s" % (len(part), part) for part in parts))
    return Dependencies(file, header, lock, os.path.join(home, ENVIRONMENTS, key[:32]), home)


def lock_beside(file: str) -> bytes | None:
    """Return the lock file beside a hook on the disk, `None` without one.  Raises `StorageError`."""
    path = file + LOCK
    if not os.path.lexists(path):
        return None
    with open_regular(path, path) as opened:
        return opened.read()


async def launch_with(needed: Dependencies, *, limits: Limits, cwd: str) -> Launch:
    """Return the launch of a hook with its packages, which are fetched if they are not there yet.

    `cwd`: the working directory of the agent; no uv of a project there is used.  Raises `DependenciesError`.
    """
    above = os.path.dirname(needed.directory)
    if (reason := check_owner(above)) is not None:
        raise DependenciesError(f"its packages are not used, because another user could change them: {reason}")
    if not needed.is_ready:
        await _make(needed, cwd)
    return Launch(needed.python, limits=limits, search=tuple(sys.path), own_first=True)


def uv_program(cwd: str) -> str | None:
    """Return the path of uv, `None` without one: beside this Python or on the PATH, and never in a project."""
    beside = os.path.dirname(sys.executable)
    path = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    return find_program("uv", outside=cwd, path=path)


async def _make(needed: Dependencies, cwd: str) -> None:
    # An installation sets the variable; it stays when the processes in between have ended.
    if os.environ.get(FIXED) or agent_ancestor() is not None:
        raise DependenciesError(
            f"{_packages(needed)} are not there yet, and nothing is fetched while another agent runs the hooks; "
            "a person fetches them in a terminal: agent-hooks list"
        )
    uv = uv_program(cwd)
    if uv is None:
        raise DependenciesError(
            f"{_packages(needed)} are fetched by uv, which is not installed here; install it: pip install uv"
        )
    try:
        os.makedirs(needed.directory, mode=0o700, exist_ok=True)
        async with _alone(needed.directory + LOCK):
            # Another process may have made it meanwhile.
            if not needed.is_ready:
                await _make_with(uv, needed, cwd)
    except (OSError, StorageError) as exc:
        reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
        raise DependenciesError(f"the environment of its packages cannot be made: {reason}") from None


async def _make_with(uv: str, needed: Dependencies, cwd: str) -> None:
    script = os.path.join(needed.directory, _SCRIPT)
    write_atomically(script, needed.header.text.encode())
    if needed.lock is not None:
        write_atomically(script + LOCK, needed.lock)
    environment = _environment(needed, cwd)
    if not os.path.exists(script + LOCK):
        await _run(uv, "lock", needed, environment)
    await _run(uv, "sync", needed, environment, "--active", "--locked")
    write_atomically(os.path.join(needed.directory, _READY), b"")
    # A server that could not load the hook tries again.
    write_atomically(os.path.join(needed.home, MADE), os.fsencode(needed.directory))


async def _run(uv: str, verb: str, needed: Dependencies, environment: dict[str, str], *options: str) -> None:
    # Imported here, because most hooks that run in a process are made ready already.
    from agent_hooks.concurrency.process import Capture, stream

    fixed = ("--no-config", "--no-python-downloads", "--no-progress", "--color", "never", "--python", sys.executable)
    printed = Capture()
    code, killed = await stream(
        [uv, verb, "--script", _SCRIPT, *fixed, *options],
        cwd=needed.directory,
        timeout=TIMEOUT,
        stdout=printed,
        env=environment,
    )
    if code == 0:
        return
    text = printed.text().strip()[-_SHOWN:]
    if killed:
        text += f"\nuv did not end within {TIMEOUT:g} s"
    raise DependenciesError(f"{_packages(needed)} cannot be fetched: {text}\n{_remedy(needed, text)}")


def _remedy(needed: Dependencies, text: str) -> str:
    name = os.path.basename(needed.file)
    if "--locked" in text:
        return f"{name}{LOCK} does not fit the header; write it again: uv lock --script {shlex.quote(name)}"
    if "Python" in text and "not compatible" in text:
        version = ".".join(map(str, sys.version_info[:2]))
        return (
            f"the hook gets the agent's Python, {version}; change requires-python, or run the agent with another Python"
        )
    return f"mend the header, or the connection to the package index; then: agent-hooks check {shlex.quote(name)}"


def _packages(needed: Dependencies) -> str:
    names = ", ".join(needed.header.dependencies)
    return f"the packages of its header ({names})" if names else "the packages of its header"


def _environment(needed: Dependencies, cwd: str) -> dict[str, str]:
    """Return the variables that uv gets: no variable of Python, and of its own only those of the index."""

    def counts(name: str) -> bool:
        index = name.startswith("UV_INDEX_") and name.endswith(("_USERNAME", "_PASSWORD"))
        return name in _KEPT_UV or name.upper() in _KEPT or index

    kept = {name: value for name, value in os.environ.items() if counts(name)}
    return {**kept, "PATH": safe_path(cwd), "VIRTUAL_ENV": os.path.join(needed.directory, "venv")}


@asynccontextmanager
async def _alone(path: str) -> AsyncIterator[None]:
    """Wait until no other process makes this environment, and keep the others waiting meanwhile."""
    # Imported here, as above.
    import anyio

    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not try_lock(file):
            await anyio.sleep(_POLL)
        yield
    finally:
        os.close(file)
