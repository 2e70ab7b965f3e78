"""The client that another agent runs at each of its events: it sends the event to the server and prints the answer.

If no server runs, the client starts one.  If none can be started, the client lets a process of its own judge the event.
If anything fails, the client refuses a gate, because a traceback or an exit code of 1 would let the call through.

This text is a part of a generated file (see `stub`), which `python -I -S` runs.  It imports only built-in and C modules,
because the start of the interpreter is most of the time of an event.
"""

# There is no `from __future__ import annotations`, because that loads a module.  So types of other modules are in quotes.
import _signal  # type: ignore[import-not-found]  # a built-in module
import _socket
import posix
import sys
import time

# Python's own implementation; its module has had two names.
if sys.version_info >= (3, 12):
    from _sha2 import sha256
else:
    from _sha256 import sha256  # type: ignore[import-not-found]  # it has no stubs

# The import of `typing` would double the time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_hooks.server.client_config import ClientConfig

# The number of bytes to read at once.
CHUNK = 1 << 16
# The place of the reason in a refusal.  Only the refusal of a gate has one.
REASON = "@reason@"
# The word in place of an event with which a plugin asks for the path of the server's socket.
PLACE = "--place"
# The word in place of an event with which a mod asks for the port of the server, and for the beginning of a request.
SEAT = "--seat"
# The name in the agent home of the key by which clients know their server, and the number of its bytes.
KEY = "server.key"
KEY_SIZE = 32
# What some programs put before and after the JSON of a payload.  Cursor begins with the mark on Windows.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PADDING = b"\0 \t\r\n"
# The beginning of a request whose answer the server signs.
NONCE = '[{"nonce": "'
# The variable that tells a process that it judges an event because no server can be started.
ALONE = b"AGENT_HOOKS_ALONE"
_ENDED = "the server ended while it judged this: agent-hooks serve --log"


class _FailedError(Exception):
    """The event was not judged, for this reason."""


def run(config: "ClientConfig") -> None:
    """Answer one event and end the process: `argv[1]` is the event's name, stdin its payload.

    If `argv[1]` is `PLACE`, start the server instead, unless it runs, and print the path of its socket.  If it is `SEAT`,
    print the port for a mod.
    """
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    if event == PLACE:
        _write_place(config)
    if event == SEAT:
        _write_seat(config)
    limit, refusal = config["events"].get(event) or config["events"][""]
    code = 0
    try:
        _fill_standard_descriptors()
        deadline = time.monotonic() + limit
        # The agent may never end the payload.
        _signal.signal(_signal.SIGALRM, _end_reading)
        _signal.setitimer(_signal.ITIMER_REAL, limit)
        payload = _payload(config["limit"])
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        answer, code = ask(config, event, payload, deadline)
    except BaseException as exc:
        why = str(exc) if isinstance(exc, _FailedError) else f"{type(exc).__name__}: {exc}"
        # A path may hold half of a surrogate pair.  Some agents cannot read such an answer, and run the tool.
        reason = f"{_removed(config) or why}; {config['remedy']}".encode("utf-8", "replace").decode()
        answer = refusal.replace(REASON, _quoted(reason)[1:-1]).encode()
    try:
        _write(1, answer)
    except BaseException as exc:
        _write(2, f"agent-hooks: the answer could not be written: {exc}\n".encode())
        # Every agent with gates takes an exit code of 2 for a refusal.
        code = 2 if REASON in refusal else 0
    posix._exit(code)


def ask(config: "ClientConfig", event: str, payload: bytes, deadline: float) -> tuple[bytes, int]:
    """Return the text to print and the exit code, from the server or else from a process for this event only.

    If the server fails after it got the event, a gate is refused, because hooks that ran once must not run again.  Any
    other event is judged again, because a result without redaction would show the model its secrets.
    """
    _, refusal = config["events"].get(event) or config["events"][""]
    try:
        answer = _by_server(config, event, payload, deadline)
    except _FailedError:
        if REASON in refusal:
            raise
        answer = None
    return answer or _by_process(config, event, payload, deadline)


def _by_server(config: "ClientConfig", event: str, payload: bytes, deadline: float) -> "tuple[bytes, int] | None":
    """Return the answer of a server of this version; `None` if there is none and none can be started."""
    try:
        path, server = _server(config, deadline)
        if server is None:
            return None
        # The server has made the key, at the latest at its start.
        key = key_in(config["home"])
        request = _request(config, event, payload)
        server.sendall(request)
        received = _line(server, b"")
        hello, newline, received = received.partition(b"\n")
    except TimeoutError:
        raise _FailedError("the server does not answer: agent-hooks serve --log") from None
    except (OSError, _FailedError):
        # The server ended before it got the event.
        return None
    # A server that is older or newer than this file judges nothing for it.
    if hello + newline != config["hello"].encode():
        return None
    try:
        server.settimeout(max(deadline - time.monotonic(), 0.001))
        signed, _, answer = _line(server, received).partition(b" ")
    except TimeoutError:
        raise _FailedError("the server did not answer in time: agent-hooks serve --log") from None
    except OSError:
        raise _FailedError(_ENDED) from None
    finally:
        server.close()
    if signed != signature(key, digest_of(request), answer):
        raise _FailedError(f"another program answers in the server's place: find it, and remove {path}.socket")
    return _answer(answer)


def _server(config: "ClientConfig", deadline: float) -> "tuple[str, _socket.socket | None]":
    """Return the path of the project's server, and a connection to it; start it unless it runs.

    The connection is `None` if no server can be started.  Raises `TimeoutError` if the server is stuck.
    """
    project = posix.environ.get(config["project"].encode()) or posix.getcwdb()
    directory, name = place(config, _text(project))
    path = f"{directory}/{name}"
    if not is_private(directory):
        posix.putenv(ALONE, b"1")
        return path, None
    return path, _reach(path, config["patience"]) or _start(config, path, project, deadline)


def _write_place(config: "ClientConfig") -> None:
    """Print the path of the server's socket and end the process, with exit code 1 if no server can be started."""
    try:
        path, server = _server(config, time.monotonic() + config["start"])
    except OSError:
        # The server is stuck, or the directory of the servers cannot be used.
        posix._exit(1)
    if server is not None:
        _write(1, _bytes(f"{path}.socket\n"))
    posix._exit(1 if server is None else 0)


def _write_seat(config: "ClientConfig") -> None:
    """Print a line with the port for a mod and the beginning of its requests, and end the process.

    The exit code is 1 if no server can be started.  The process that runs this one is the agent.
    """
    for name, value in {config["process"]: str(posix.getppid()), **config["seat"]}.items():
        if name.encode() not in posix.environ:
            posix.environ[name.encode()] = value.encode()
    deadline = time.monotonic() + config["start"]
    try:
        server = _server(config, deadline)[1]
        if server is None:
            posix._exit(1)
        request = f'{NONCE}{posix.urandom(16).hex()}", {config["hello"][1:-2]}, "do": "seat"}}, null]\n'.encode()
        server.sendall(request)
        server.settimeout(max(deadline - time.monotonic(), 0.001))
        _, _, received = _line(server, b"").partition(b"\n")
        signed, _, answer = _line(server, received).partition(b" ")
        if signed != signature(key_in(config["home"]), digest_of(request), answer):
            posix._exit(1)
    except (OSError, _FailedError):
        posix._exit(1)
    head = _request(config, "@event@", b"").removesuffix(b"]\n")
    _write(1, b'{"status": ' + answer.rstrip() + b', "head": ' + _quoted(head.decode()).encode() + b"}\n")
    posix._exit(0)


def _request(config: "ClientConfig", event: str, payload: bytes) -> bytes:
    """Return the line for a server, which holds the payload as it came, with a carriage return for each line feed.

    Between the tokens of JSON both are blanks.  Inside a text both are errors, while a real blank there would join two
    lines of a command.
    """
    values = [(name, posix.environ.get(name.encode())) for name in config["environment"]]
    given = ", ".join([f"{_quoted(name)}: {_quoted(_text(value))}" for name, value in values if value is not None])
    nonce = f'{NONCE}{posix.urandom(16).hex()}", '
    # The configured request begins with an array and an object too.
    head = f'{nonce}{config["request"][2:]}{_quoted(event)}, "environment": {{{given}}}}}, '
    return head.encode() + payload.replace(b"\n", b"\r") + b"]\n"


def _answer(line: bytes) -> tuple[bytes, int]:
    """Return the text to print and the exit code.  Raises `_FailedError` for a line that is no answer."""
    code, _, text = line[1:-2].partition(b", ")
    whole = line.startswith(b"[") and line.endswith(b"}]\n") and text.startswith(b"{") and line.count(b"\n") == 1
    if whole and code in (b"0", b"2"):
        return text + b"\n", int(code)
    # Imported here, because this module is a file to load, and is rarely needed.
    import _json

    start = b'{"error": "'
    try:
        reason = _json.scanstring(line.decode(), len(start))[0] if line.startswith(start) else ""
    except ValueError:
        reason = ""
    raise _FailedError(reason or f"the server answered {line[:100]!r}")


def _by_process(config: "ClientConfig", event: str, payload: bytes, deadline: float) -> tuple[bytes, int]:
    """Return the answer of a new process, and the exit code 0.  Raises `_FailedError`."""
    ours, theirs = _socket.socketpair()
    if not (child := _forked()):
        event_name = [event] if event else []
        run = [sys.executable, *config["run"], "bridge", config["agent"], *event_name]
        _become(config, run, theirs.fileno(), None)
    theirs.close()
    answer = b""
    try:
        try:
            ours.settimeout(max(deadline - time.monotonic(), 0.001))
            ours.sendall(payload)
            ours.shutdown(_socket.SHUT_WR)
            # This does not read to the end, because a program that a hook has started may hold the other side open.
            while not answer.endswith(b"\n") and (data := ours.recv(CHUNK)):
                answer += data
        except ConnectionError:
            # The process has ended.  Its exit code says more.
            pass
        code = _exit_code(child, deadline)
    except TimeoutError:
        posix.kill(child, 9)
        raise _FailedError("a hook did not answer in time") from None
    finally:
        ours.close()
    if code or not answer.endswith(b"}\n"):
        raise _FailedError(f"the process that judged it ended with exit code {code} and without an answer")
    return answer, 0


def _exit_code(child: int, deadline: float) -> int:
    while not (ended := posix.waitpid(child, posix.WNOHANG))[0]:
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.001)
    return posix.waitstatus_to_exitcode(ended[1])


# ---- the server


def directory() -> str:
    """Return the directory of this user's servers, which is used only if it `is_private`."""
    return f"/tmp/agent-hooks-{posix.getuid()}"  # noqa: S108  # see the docstring


def place(config: "ClientConfig", project: str) -> tuple[str, str]:
    """Return the directory of a project's server, and the name of its files there, without a suffix.

    All servers of one home have the same name up to the hyphen.
    """
    homes = [config["home"], config["fixed"]["HOME"]]
    return directory(), f"{_digest(homes)[:16]}-{_digest([project, config['hello']])[:32]}"


def is_private(path: str) -> bool:
    """Return whether only this user can read a directory; make it if it does not exist."""
    try:
        posix.mkdir(path, 0o700)
    except OSError:
        # It exists or cannot be made, which `lstat` finds out.
        pass
    try:
        state = posix.lstat(path)
    except OSError:
        return False
    return state.st_mode & 0o170077 == 0o040000 and state.st_uid == posix.getuid()


def key_in(home: str) -> bytes:
    """Return the key by which the servers of an agent home sign their answers.

    Raises `OSError` if there is none, or if it is not a private file of this user.
    """
    file = posix.open(_bytes(f"{home}/{KEY}"), posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK)
    try:
        state = posix.fstat(file)
        key = posix.read(file, KEY_SIZE + 1)
    finally:
        posix.close(file)
    if state.st_mode & 0o170077 != 0o100000 or state.st_uid != posix.getuid() or len(key) != KEY_SIZE:
        raise OSError(
            f"{home}/{KEY} is not a private file with a key: remove it, and the next server makes another one"
        )
    return key


def digest_of(request: bytes) -> bytes:
    """Return the SHA-256 of a request without the end of its line."""
    digest: bytes = sha256(request.removesuffix(b"\n")).digest()
    return digest


def signature(key: bytes, request: bytes, answer: bytes) -> bytes:
    """Return the HMAC-SHA-256 of a request's digest and its answer, in hexadecimal digits.  The request holds the nonce.

    It is written out here, because the import of `hmac` takes longer than the rest of the client.
    """
    block = key.ljust(64, b"\0")
    inner = sha256(bytes([each ^ 0x36 for each in block]) + request + answer).digest()
    digits: str = sha256(bytes([each ^ 0x5C for each in block]) + inner).hexdigest()
    return digits.encode()


def _start(config: "ClientConfig", path: str, project: bytes, deadline: float) -> "_socket.socket | None":
    """Start a server, and return a connection to it, or to the one that another client has started meanwhile.

    Of all clients that are here at once, the one that has locked the file `starting` starts the server.
    """
    until = min(deadline, time.monotonic() + config["start"])
    starting = posix.open(f"{path}.start", posix.O_RDWR | posix.O_CREAT, 0o600)
    child = 0
    while time.monotonic() < until:
        if child:
            ended, status = posix.waitpid(child, posix.WNOHANG)
            if ended and status:
                posix.close(starting)
                break
            if ended:
                # Exit code 0 means that another process serves this project, or did until now.
                child = 0
        is_locked = _lock(starting)
        if (server := _reach(path, config["patience"])) is not None:
            return server
        if is_locked and not child and not (child := _forked()):
            posix.setsid()
            run = [sys.executable, *config["serve"], "serve", "--at", path, "--cwd", _text(project)]
            _become(config, run, None, f"{path}.log")
        time.sleep(0.01)
    if child:
        posix.putenv(ALONE, b"1")
    return None


def _lock(file: int) -> bool:
    """Return whether this process has the lock of a file now."""
    # Imported here, because this module is a file to load, and is rarely needed.
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reach(path: str, patience: float) -> "_socket.socket | None":
    """Return a connection to the server at a path, or `None`.  Raises `TimeoutError` if its queue stays full."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.settimeout(patience)
    until = time.monotonic() + patience
    while True:
        try:
            server.connect(f"{path}.socket")
        except BlockingIOError:
            # The server's queue is full.
            if time.monotonic() > until:
                raise TimeoutError from None
            time.sleep(0.01)
        except OSError:
            server.close()
            return None
        else:
            return server


def _forked() -> int:
    """Fork.  The agent may ignore SIGCHLD, which this process inherits and which would lose the child's exit code."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    return posix.fork()


def _become(config: "ClientConfig", args: list[str], stdio: "int | None", log: "str | None") -> None:
    """Turn a forked child into a program, with `stdio` as its stdin and stdout, or with `log` as stdout and stderr."""
    try:
        _fix_environment(config)
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


def _fix_environment(config: "ClientConfig") -> None:
    """Set and remove the variables by which the settings of a project could replace the person's gates or git."""
    for name in [*posix.environ]:
        if _text(name).startswith(tuple(config["removed"])):
            posix.unsetenv(name)
    for key, value in config["fixed"].items():
        if value:
            posix.putenv(_bytes(key), _bytes(value))
        else:
            posix.unsetenv(_bytes(key))


# ---- a removed package


def _removed(config: "ClientConfig") -> str:
    """Return a text with the lines of the settings to remove by hand if the package is gone, else an empty text."""
    main = config["serve"][-1]
    try:
        if main.endswith("/__main__.py"):
            posix.stat(main)
    except FileNotFoundError:
        return f"agent_hooks was removed, {main} is gone{_entries(config)}"
    return ""


def _entries(config: "ClientConfig") -> str:
    """Return the lines with our entries in the settings files that the register of the installations names."""
    # Imported here, because it takes as long as the rest of the client, and is rarely needed.
    import json

    found = ""
    try:
        with open(f"{config['home']}/bridges/installed.json", encoding="utf-8") as file:
            paths = json.load(file)["settings"][config["agent"]]
        for path in paths:
            with open(path, encoding="utf-8") as file:
                lines = [
                    str(number) for number, line in enumerate(file, 1) if f"agent-hooks-{config['agent']}." in line
                ]
            found += f"; remove by hand: {path}, lines {', '.join(lines)}" if lines else ""
    except (OSError, ValueError, LookupError, TypeError):
        # The register or the settings are gone too.  The remedy names the generated file.
        pass
    return found


# ---- small things


def _fill_standard_descriptors() -> None:
    """Open `/dev/null` for each of stdin, stdout and stderr that is closed, so that no other file gets its number.

    Nothing can be written there, so an answer for a closed stdout fails, and the exit code refuses.
    """
    for descriptor in (0, 1, 2):
        try:
            posix.fstat(descriptor)
        except OSError:
            posix.open("/dev/null", posix.O_RDONLY)


def _payload(limit: int) -> bytes:
    """Return the payload from stdin.

    A larger one is read up to twice the limit, so that the agent's write does not fail.  An endless payload is refused.
    """
    parts, size = [], 0
    while size <= 2 * limit and (data := posix.read(0, CHUNK)):
        size += len(data)
        if size <= limit:
            parts.append(data)
    if size > limit:
        raise _FailedError(f"the payload is larger than {limit >> 20} MiB")
    return b"".join(parts).removeprefix(_BYTE_ORDER_MARK).rstrip(_PADDING)


def _end_reading(number: int, frame: object) -> None:
    raise _FailedError("the payload has no end")


def _line(server: _socket.socket, received: bytes) -> bytes:
    """Return the bytes from the server up to the end of a line; `received` are those that have arrived already."""
    while not received.endswith(b"\n"):
        data = server.recv(CHUNK)
        if not data:
            raise _FailedError(_ENDED)
        received += data
    return received


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[posix.write(descriptor, data) :]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _digest(texts: list[str]) -> str:
    """Return the SHA-256 of texts in hexadecimal digits; plugins compute it in their own languages."""
    digits: str = sha256(_bytes("\0".join(texts))).hexdigest()
    return digits


def _quoted(text: str) -> str:
    """Return a text as JSON."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    # Imported here, because this module is a file to load, and is rarely needed.
    import _json

    return _json.encode_basestring_ascii(text)
