"""Command lines of `agent-hooks` in processes that share their imports.

A server imports the command line once and forks for each command. An environment with other variables that the
interpreter reads at its start has a server of its own. So each command is a process of its own, with its
arguments, directory, environment and standard streams, but it does not spend 0.3 s on imports.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import pkgutil
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

# The interpreter and its libraries read these when they start: with other values, a command cannot be a fork.
_AT_START = ("LANG", "LC_", "LD_", "PYTHON", "TZ")
_ENVIRONMENT = dict(os.environ)
# The variables of the measurement of coverage, for a server whose forks are measured; their own children are not.
_COVERAGE = {name: value for name, value in _ENVIRONMENT.items() if name.startswith("COVERAGE")}
# Modules of others that commands import late.
_LATE = (
    "anyio._backends._asyncio",
    "anyio._core._subprocesses",
    "jsonschema_rs",
    "rich._emoji_codes",
    "rich.live",
    "rich.table",
)
# Modules with large packages of others, which few commands need.
_LARGE = (
    "agent_hooks.host.models.",
    "agent_hooks.look.",
    "agent_hooks.records.otlp",
    "agent_hooks.testing",
    "agent_hooks.concurrency.deadlines.trio",
)
# The commands of which a user shows at a terminal that no agent runs them.
_DECISIONS = ("trust", "untrust", "unlock", "disable", "enable", "install", "uninstall", "new", "examples")
NO_TERMINAL = "TESTS_WITHOUT_TERMINAL"
"""A variable with which such a command has no terminal."""
# Bytes of the length that begins a request.
_HEAD = 8


def fits(environment: Mapping[str, str]) -> bool:
    """Return whether a command with this environment may be a fork of the server."""
    return _read_at_start(environment) == _read_at_start(_ENVIRONMENT)


def run(
    args: tuple[str, ...],
    cwd: Path,
    stdin: str,
    timeout: float,
    first: str = "",
    environment: Mapping[str, str] | None = None,
    *,
    measured: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end, with an environment or that of this process, after the Python code `first`.

    The modules of the command line are imported before that code runs.  `measured`: for coverage.  Raise
    `subprocess.TimeoutExpired` after `timeout` seconds.
    """
    environment = dict(os.environ if environment is None else environment)
    request = json.dumps([args, str(cwd), environment, first]).encode()
    given, written, failed = os.pipe(), os.pipe(), os.pipe()
    with socket.socket(socket.AF_UNIX) as client, ThreadPoolExecutor(3) as pool:
        client.settimeout(timeout)
        client.connect(_server(_read_at_start(environment), measured))
        theirs = [given[0], written[1], failed[1]]
        socket.send_fds(client, [len(request).to_bytes(_HEAD, "big")], theirs)
        for fd in theirs:
            os.close(fd)
        client.sendall(request)
        pool.submit(_write, given[1], stdin)
        outputs = [pool.submit(_read, fd) for fd in (written[0], failed[0])]
        with client.makefile() as answer:
            pid = int(answer.readline())
            try:
                code = int(answer.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(args), timeout) from None
        return subprocess.CompletedProcess(list(args), code, *(each.result() for each in outputs))


# A program that needs no imports of ours: it asks the server to fork, with its own standard streams.
_CLIENT = """\
#!{python} -IS
import json, os, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect({path!r})
request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), ""]).encode()
socket.send_fds(client, [len(request).to_bytes({head}, "big")], [0, 1, 2])
client.sendall(request)
sys.exit(int(client.makefile().read().split()[1]))
"""


@cache
def command_directory() -> str:
    """Return a directory for the PATH, whose program `agent-hooks` is a fork of the server; signals do not reach it."""
    path = _server(_read_at_start(_ENVIRONMENT), False)
    program = Path(path).with_name("agent-hooks")
    program.write_text(_CLIENT.format(python=sys.executable, path=path, head=_HEAD))
    program.chmod(0o755)
    return str(program.parent)


def _read_at_start(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in environment.items() if name.startswith(_AT_START)))


def _write(fd: int, text: str) -> None:
    with suppress(BrokenPipeError), os.fdopen(fd, "w") as file:
        file.write(text)


def _read(fd: int) -> str:
    with os.fdopen(fd) as file:
        return file.read()


@cache
def _server(at_start: tuple[tuple[str, str], ...], measured: bool) -> str:
    """Start a server of this process, which ends with it, and return the path of its socket.

    `at_start`: the variables that the interpreter reads when it starts; `measured`: whether its forks are, for coverage.
    """
    others = {name: value for name, value in _ENVIRONMENT.items() if not name.startswith((*_AT_START, "COVERAGE"))}
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = os.path.join(directory, "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        # The end of this pipe ends the server.
        alive, held = os.pipe()
        server = subprocess.Popen(
            [sys.executable, "-P", __file__, str(listener.fileno())],
            stdin=alive,
            env={**others, **dict(at_start), **(_COVERAGE if measured else {})},
            pass_fds=[listener.fileno()],
        )
        os.close(alive)

    def end() -> None:
        os.close(held)
        server.wait()

    atexit.register(end)
    return path


def _serve(listener: socket.socket) -> None:
    """Fork for each connection until stdin ends; return in the process of each command too, which goes on with `main`."""
    while 0 not in select.select([listener.fileno(), 0], [], [])[0]:
        client, _ = listener.accept()
        if not os.fork():
            listener.close()
            _run_below(client)
            return
        client.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    sys.exit()


def _run_below(client: socket.socket) -> None:
    """Fork for the command, and tell its pid and its exit code; return in its process only, which is prepared for it."""
    head, streams, _, _ = socket.recv_fds(client, _HEAD, 3)
    with client.makefile("rb") as file:
        args, cwd, environment, first = json.loads(file.read(int.from_bytes(head, "big")))
    if child := os.fork():
        for fd in streams:
            os.close(fd)
        client.sendall(f"{child}\n".encode())
        client.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
        os._exit(0)
    client.close()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["agent-hooks", *args]
    if ((args and args[0] in _DECISIONS) or "--stop" in args) and NO_TERMINAL not in environment:
        sit_at_a_terminal()
    exec(first, {})


def sit_at_a_terminal() -> None:
    """Give this process a terminal of its own, at which a user types each code that a command shows there.

    The user had opened it before any session began.
    """
    # Imported here, because the client of the server does without.
    from agent_hooks.cli import proving

    proving._is_younger = lambda session: False
    ours, theirs = pty.openpty()
    os.setsid()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    def type_codes() -> None:
        seen = b""
        with suppress(OSError):
            while piece := os.read(ours, 4096):
                seen += piece
                if found := re.search(rb"Type (\w+) and Enter: ", seen):
                    os.write(ours, found[1] + b"\n")
                    seen = b""

    threading.Thread(target=type_codes, daemon=True).start()


def _end(main: Callable[[], object]) -> NoReturn:
    """Run the command, and end its process as the interpreter does, but without freeing the memory of all modules."""
    code: object = 0
    try:
        main()
    except SystemExit as exc:
        code = exc.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # the interpreter's own step, which waits for threads
    atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        # The command sets a stream that a hook has broken to `None`.
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def warm() -> None:
    """Import the modules that commands import late, and compile the patterns that most of them need to judge a call."""
    import agent_hooks
    from agent_hooks.guards.lazy import LazyPattern
    from agent_hooks.redaction.kinds import builtin_rules

    for name in _LATE:
        import_module(name)
    for module in pkgutil.walk_packages(agent_hooks.__path__, "agent_hooks."):
        if not module.name.startswith(_LARGE) and not module.name.endswith("__main__"):
            import_module(module.name)
    builtin_rules()
    for each in gc.get_objects():
        if isinstance(each, LazyPattern):
            each.compile()
    gc.freeze()


if __name__ == "__main__":
    # Ctrl-C ends the tests, and their end ends the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from agent_hooks.__main__ import main

    warm()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _end(main)
