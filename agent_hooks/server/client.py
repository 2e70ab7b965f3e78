"""What another agent runs at each of its events: takes the event to the resident server and prints the answer.

This text is part of a generated file (see `stub`), which `python -I -S` runs: built-in and C modules only, for the start
of an interpreter is what an event costs.  Without a server it starts one; where none comes up, a process of its own
judges the event.  Whatever goes wrong, a gate is refused: a traceback or an exit code of 1 would let the call through.
Above: stub.  Below: nothing of the package.
"""

# no `from __future__ import annotations`, which is a module to load: names of types that are not there stand in quotes
import _imp
import _signal  # type: ignore[import-not-found]  # it is built in
import _socket
import posix
import sys
import time

TYPE_CHECKING = False  # `typing` alone would double the time
if TYPE_CHECKING:
    from typing import TypedDict

    class Config(TypedDict):
        """What is known at installation.

        `hello`: what a server of this version says first; `request`: how a request begins, up to its event; `home`: the
        agent home; `run`, `serve`: the arguments with which this Python runs `agent-hooks`, for one event and as a
        server; `environment`, `project`: names of variables; `events`: by event, `""` for any other, the seconds until
        we give up, and the refusal; `limit`: bytes of a payload; `patience`, `start`: seconds for a server to say
        hello, and to start.
        """

        agent: str
        hello: str
        request: str
        home: str
        run: list[str]
        serve: list[str]
        environment: list[str]
        project: str
        events: dict[str, tuple[float, str]]
        limit: int
        patience: float
        start: float
        remedy: str


CHUNK = 1 << 16  # bytes read at once
_ENDED = "the server ended while it judged this: agent-hooks serve --log"
REASON = "@reason@"  # stands for the reason in a refusal


class _FailedError(Exception):
    """Nobody judged the event, and why."""


def run(config: "Config") -> None:
    """Answer one event: `argv[1]` is its name, stdin its payload; never returns."""
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    limit, refusal = config["events"].get(event) or config["events"][""]
    code = 0
    # a project's settings may set these, and the person's gates would be gone, or bytecode of its own stand in for them
    posix.putenv(b"AGENT_HOME", _bytes(config["home"]))
    posix.putenv(b"AGENT_HOOKS_CACHE", _bytes(config["home"]) + b"/bridges")
    try:
        answer, code = ask(config, event, _payload(config["limit"]), time.monotonic() + limit)
    except BaseException as exc:
        why = str(exc) if isinstance(exc, _FailedError) else f"{type(exc).__name__}: {exc}"
        reason = f"agent-hooks could not judge this: {why}; {config['remedy']}"
        answer = refusal.replace(REASON, _quoted(reason)[1:-1]).encode()
    try:
        _write(1, answer)
    except BaseException as exc:
        _write(2, f"agent-hooks: the answer could not be written: {exc}\n".encode())
        code = 2 if REASON in refusal else 0  # every such agent takes 2 for a refusal
    posix._exit(code)


def ask(config: "Config", event: str, payload: bytes, deadline: float) -> tuple[bytes, int]:
    """Return what to print and the exit code, from the server or else from a process of this event's own.

    Where the server fails, a gate is refused: to judge again could do again what hooks have done.  Another event is
    judged again all the same, for a result that nobody looked at would show the model what redaction takes out.
    """
    _, refusal = config["events"].get(event) or config["events"][""]
    try:
        answer = _by_server(config, event, payload, deadline)
    except _FailedError:
        if REASON in refusal:
            raise
        answer = None
    return answer or _by_process(config, event, payload, deadline)


def _by_server(config: "Config", event: str, payload: bytes, deadline: float) -> "tuple[bytes, int] | None":
    """Ask a server of this version, started if there is none; `None` where none can be had."""
    project = posix.environ.get(config["project"].encode()) or posix.getcwdb()
    directory, name = place(config, _text(project))
    if not is_private(directory):
        return None
    path, patience = f"{directory}/{name}", config["patience"]
    try:
        server = _reach(path, patience) or _start(config, path, project, deadline)
        if server is None:
            return None
        server.sendall(_request(config, event, payload))
        said = _line(server, b"")
        hello, newline, said = said.partition(b"\n")
    except TimeoutError:
        raise _FailedError("the server does not answer: agent-hooks serve --log") from None
    except (OSError, _FailedError):  # it ended before it heard of the event
        return None
    if hello + newline != config["hello"].encode():  # one that is older or newer than this file judges nothing for it
        return None
    try:
        server.settimeout(max(deadline - time.monotonic(), 0.001))
        return _answer(_line(server, said))
    except TimeoutError:
        raise _FailedError("the server did not answer in time: agent-hooks serve --log") from None
    except OSError:
        raise _FailedError(_ENDED) from None
    finally:
        server.close()


def _request(config: "Config", event: str, payload: bytes) -> bytes:
    """Return the line for a server; the payload goes as it is, with one line break for the other.

    Between the words of JSON that is as good; inside a text neither may be, and a blank would make a command of two
    lines one of one.
    """
    values = [(name, posix.environ.get(name.encode())) for name in config["environment"]]
    said = ", ".join([f"{_quoted(name)}: {_quoted(_text(value))}" for name, value in values if value is not None])
    head = f'{config["request"]}{_quoted(event)}, "environment": {{{said}}}}}, '
    return head.encode() + payload.replace(b"\n", b"\r") + b"]\n"


def _answer(line: bytes) -> tuple[bytes, int]:
    """Return what to print and the exit code; raises `_FailedError` for what is no answer."""
    code, _, text = line[1:-2].partition(b", ")
    whole = line.startswith(b"[") and line.endswith(b"}]\n") and text.startswith(b"{") and line.count(b"\n") == 1
    if whole and code in (b"0", b"2"):
        return text + b"\n", int(code)
    import _json  # here, for it is rarely needed and a file to load

    start = b'{"error": "'
    if not line.startswith(start):
        raise _FailedError(f"the server said {line[:100]!r}")
    raise _FailedError(_json.scanstring(line.decode(), len(start))[0])


def _by_process(config: "Config", event: str, payload: bytes, deadline: float) -> tuple[bytes, int]:
    ours, theirs = _socket.socketpair()
    if not (child := _forked()):
        event_name = [event] if event else []
        _become([sys.executable, *config["run"], "bridge", config["agent"], *event_name], theirs.fileno(), None)
    theirs.close()
    answer = b""
    try:
        try:
            ours.settimeout(max(deadline - time.monotonic(), 0.001))
            ours.sendall(payload)
            ours.shutdown(_socket.SHUT_WR)
            # not to the end, for what a hook has started may hold the other side open
            while not answer.endswith(b"\n") and (data := ours.recv(CHUNK)):
                answer += data
        except ConnectionError:  # it has ended; its exit code tells more
            pass
        code = _exit_code(child, deadline)
    except TimeoutError:
        posix.kill(child, 9)
        raise _FailedError("a hook did not answer in time") from None
    finally:
        ours.close()
    if code or not answer.endswith(b"}\n"):
        raise _FailedError(f"the process that judges it ended with exit code {code} and without an answer")
    return answer, 0


def _exit_code(child: int, deadline: float) -> int:
    while not (ended := posix.waitpid(child, posix.WNOHANG))[0]:
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.001)
    return posix.waitstatus_to_exitcode(ended[1])


# ---- the server


def directory() -> str:
    """Return the directory of this user's servers."""
    return f"/tmp/agent-hooks-{posix.getuid()}"  # noqa: S108  # used only if it `is_private`


def place(config: "Config", project: str) -> tuple[str, str]:
    """Return the directory of a project's server, and the name of its files there, without a suffix.

    The name begins with what all servers of this home have in common, up to its hyphen.
    """
    homes = [config["home"], _text(posix.environ.get(b"HOME", b""))]
    return directory(), f"{_digest(homes, 1)}-{_digest([project, config['hello']], 2)}"


def is_private(path: str) -> bool:
    """Tell whether a directory is this user's, and nobody else can look into it; makes it if it is not there."""
    try:
        posix.mkdir(path, 0o700)
    except OSError:  # it is there, or cannot be: the next step tells
        pass
    try:
        state = posix.lstat(path)
    except OSError:
        return False
    return state.st_mode & 0o170077 == 0o040000 and state.st_uid == posix.getuid()


def _start(config: "Config", path: str, project: bytes, deadline: float) -> "_socket.socket | None":
    """Start the server, and return a connection to it or to one that somebody else starts just now."""
    import fcntl  # here, for it is rarely needed and a file to load

    until = min(deadline, time.monotonic() + config["start"])
    starting = posix.open(f"{path}.start", posix.O_RDWR | posix.O_CREAT, 0o600)
    child = 0
    while time.monotonic() < until:
        if child:
            ended, status = posix.waitpid(child, posix.WNOHANG)
            if ended and status:
                posix.close(starting)
                return None
            if ended:  # well: another one serves, or did until just now
                child = 0
        try:
            fcntl.flock(starting, fcntl.LOCK_EX | fcntl.LOCK_NB)  # many may be here at once: one of them starts it
        except BlockingIOError:
            mine = False
        else:
            mine = True
        if (server := _reach(path, config["patience"])) is not None:
            return server
        if mine and not child and not (child := _forked()):
            posix.setsid()
            run = [sys.executable, *config["serve"], "serve", "--at", path, "--cwd", _text(project)]
            _become(run, None, f"{path}.log")
        time.sleep(0.01)
    return None


def _reach(path: str, patience: float) -> "_socket.socket | None":
    """Return a connection to a server that listens there; raises `TimeoutError` when too many wait for it already."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.settimeout(patience)
    until = time.monotonic() + patience
    while True:
        try:
            server.connect(f"{path}.socket")
        except BlockingIOError:  # its queue is full
            if time.monotonic() > until:
                raise TimeoutError from None
            time.sleep(0.01)
        except OSError:
            server.close()
            return None
        else:
            return server


def _forked() -> int:
    """Fork.  Who runs us may ignore how its children end, and so would we."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    return posix.fork()


def _become(args: list[str], stdio: "int | None", log: "str | None") -> None:
    """Turn a forked child into a program: `stdio` for its stdin and stdout, or `log` for what it says."""
    try:
        if log is not None:
            stdin = posix.open("/dev/null", posix.O_RDONLY)
            out = posix.open(log, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
            posix.dup2(stdin, 0)
            posix.dup2(out, 1)
            posix.dup2(out, 2)
        elif stdio is not None:
            posix.dup2(stdio, 0)
            posix.dup2(stdio, 1)
        posix.execv(args[0], args)
    finally:
        posix._exit(127)


# ---- small things


def _payload(limit: int) -> bytes:
    """Return what is on stdin; read to its end, for the writer must not be cut off."""
    parts, size = [], 0
    while data := posix.read(0, CHUNK):
        size += len(data)
        if size <= limit:
            parts.append(data)
    if size > limit:
        raise _FailedError(f"the payload is larger than {limit >> 20} MiB")
    return b"".join(parts)


def _line(server: _socket.socket, said: bytes) -> bytes:
    """Return what the server says up to the end of a line, `said` being what it said already."""
    while not said.endswith(b"\n"):
        data = server.recv(CHUNK)
        if not data:
            raise _FailedError(_ENDED)
        said += data
    return said


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[posix.write(descriptor, data) :]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _digest(texts: list[str], size: int) -> str:
    """Return 16 hexadecimal digits for each of `size` words; by what Python has built in for its own bytecode."""
    data = _bytes("\0".join(texts))
    return b"".join([_imp.source_hash(word, data) for word in range(size)]).hex()


def _quoted(text: str) -> str:
    """Return a text as JSON."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    import _json  # here, for it is rarely needed and a file to load

    return _json.encode_basestring_ascii(text)
