"""A model behind a real HTTP server on this machine: it speaks four wire formats, in small pieces, by a script.

    with ModelServer() as server:
        server.play(Say("Let me look.", calls=[("ls", {})]), Fail(529, "Overloaded"), Say("Done."))

Each request takes the next reply, in the format of the path it came on; `server.requests` keeps them.  A test that gives
`ModelServer` a function chooses each reply by the request.
"""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "sk-top-secret-4711"
# For each kind of model: the variable of its key, the variable of its address, and the path below the server.
ENVIRONMENT = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "openai-responses": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "google": ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", ""),
}
KINDS = tuple(ENVIRONMENT)
# Characters of each piece of a stream.
SIZE = 7
# For the ids of Anthropic's messages and calls, which must differ.
_numbers = itertools.count(1)

# The paths at which clients only count tokens.
_COUNTS = ("/count_tokens", ":countTokens")

Event = tuple[str, Any]  # its name, and its data


class Custom(str):
    """The input of a call of a custom tool of OpenAI's Responses: text instead of JSON."""

    __slots__ = ()


class InNamespace(str):
    """The name of a tool that the client offers in a namespace, which OpenAI's Responses repeat in the call."""

    namespace: str

    def __new__(cls, name: str, namespace: str) -> Self:
        self = super().__new__(cls, name)
        self.namespace = namespace
        return self


@dataclass
class Say:
    """A whole response; the arguments of a call are a dict, or text that is sent unchanged.

    `stop`: the stop reason in the provider's own word, if not the usual one; `cut_after`, `hang_after`: the connection
    breaks, or nothing more comes, after so many events; `ends_early`: with `cut_after`, the stream ends in good order;
    `id`: a word in the ids of the calls, for clients that get several responses with calls; `tokens`: the size of the
    prompt, as the provider counts it.
    """

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    stop: str = ""
    cut_after: int | None = None
    ends_early: bool = False
    hang_after: int | None = None
    id: str = ""
    tokens: int = 11


@dataclass
class Fail:
    """An HTTP error with the provider's usual body around `message`; status 0 closes the connection."""

    status: int
    message: str = "no"
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "api_error"
    code: str | None = None


@dataclass
class Raw:
    """A body that is wrong for the protocol, with status 200."""

    body: str


@dataclass
class Recorded:
    """A request that the server got."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Reply = Say | Fail | Raw


class ModelServer:
    """The server; `url` is its address, `hanging` is set when a reply hangs, `gone` when a client hangs up.

    `choose`: returns the reply to a request; without it, requests take the replies of `play` in turn.
    """

    def __init__(self, choose: Callable[[Recorded], Reply] | None = None) -> None:
        self.choose = choose or self._next
        self.choosing = threading.Lock()
        self.requests: list[Recorded] = []
        self.replies: deque[Reply] = deque()
        self.hanging = threading.Event()
        self.gone = threading.Event()
        self._http = _Server(self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def play(self, *replies: Reply) -> None:
        """Answer the next requests with these replies."""
        self.replies.extend(replies)

    def _next(self, _: Recorded) -> Reply:
        return self.replies.popleft() if self.replies else Fail(418, "the script has ended")

    def environment(self, kind: str) -> dict[str, str]:
        """Return the variables that point a kind of model to this server."""
        key, url, path = ENVIRONMENT[kind]
        return {key: KEY, url: self.url + path, "NO_PROXY": "127.0.0.1"}

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ModelServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """Print no traceback for clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        """List the models; clients ask before the first prompt."""
        model = {"id": "fake-model", "object": "model", "created": 1, "owned_by": "test"}
        self._json({"object": "list", "data": [model]})

    def do_POST(self) -> None:
        script = self.server.script
        self.close_connection = True
        body = json.loads(self._body() or b"{}")
        if self.path.partition("?")[0].endswith(_COUNTS):
            self._json({"input_tokens": 11, "totalTokens": 11})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(self.path, headers, body)
        with script.choosing:
            script.requests.append(request)
            reply = script.choose(request)
        match reply:
            case Fail(status=0):
                self._break()
            case Fail() as fail:
                self._fail(fail)
            case Raw(body=text):
                self._open()
                self._chunk(text)
                self._chunk("")
            case Say() as say:
                try:
                    if is_streamed(request):
                        self._say(say)
                    else:
                        self._json(whole(self.path, say))
                except ConnectionError:
                    script.gone.set()

    def _body(self) -> bytes:
        data = b"".join(self._chunks()) if "chunked" in self.headers.get("transfer-encoding", "") else self._sized()
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _sized(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _json(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _fail(self, fail: Fail) -> None:
        body = json.dumps(error_body(self.path, fail)).encode()
        self.send_response(fail.status)
        for name, value in {"content-type": "application/json", "content-length": len(body), **fail.headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def _say(self, say: Say) -> None:
        self._open()
        for number, (name, data) in enumerate(events(self.path, say)):
            if number == say.hang_after:
                return self._hang()
            if number == say.cut_after:
                return self._chunk("") if say.ends_early else self._break()
            text = data if isinstance(data, str) else json.dumps(data)
            self._chunk((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
        self._chunk("")
        return None

    def _open(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _break(self) -> None:
        """Break the connection as a failing network does: with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _hang(self) -> None:
        """Send no more, and wait until the client hangs up."""
        self.server.script.hanging.set()
        self.connection.settimeout(30)
        if self.connection.recv(1) == b"":
            self.server.script.gone.set()


# ---- the four formats ------------------------------------------------------------------------------------------------


def events(path: str, say: Say) -> Iterator[Event]:
    """Yield the events of a response in the format that `path` asks for."""
    if path.endswith("/messages") or "/messages?" in path:
        return anthropic(say)
    if path.endswith("/chat/completions"):
        return chat(say)
    if path.endswith("/responses"):
        return responses(say)
    assert ":streamGenerateContent" in path, path
    return gemini(say)


def is_streamed(request: Recorded) -> bool:
    """Return whether the client reads the response in pieces."""
    return ":streamGenerateContent" in request.path or bool(request.body.get("stream"))


def whole(path: str, say: Say) -> Any:
    """Return a response in one piece: the pieces of the stream, put together."""
    head: dict[str, Any]
    if "/messages" in path:
        content: list[Any] = [{"type": "text", "text": say.text}] if say.text else []
        content += [
            {"type": "tool_use", "id": f"toolu_{next(_numbers):04}", "name": name, "input": arguments}
            for name, arguments in say.calls
        ]
        stop = say.stop or ("tool_use" if say.calls else "end_turn")
        head = {"id": f"msg_{next(_numbers):04}", "type": "message", "role": "assistant", "model": "claude-test"}
        usage = {"input_tokens": say.tokens, "output_tokens": 22}
        return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    if path.endswith("/chat/completions"):
        calls = [
            {
                "id": f"call_{say.id}{index}",
                "type": "function",
                "function": {"name": name, "arguments": arguments_of(arguments)},
            }
            for index, (name, arguments) in enumerate(say.calls)
        ]
        message = {"role": "assistant", "content": say.text, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": say.stop or ("tool_calls" if calls else "stop")}
        usage = {"prompt_tokens": say.tokens, "completion_tokens": 22, "total_tokens": say.tokens + 22}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-test"}
        return {**head, "choices": [choice], "usage": usage}
    if path.endswith("/responses"):
        return list(responses(say))[-1][1]["response"]
    parts: list[Any] = [{"text": say.text}] if say.text or not say.calls else []
    parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in say.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "modelVersion": "gemini-test", "responseId": "r1"}


def error_body(path: str, fail: Fail) -> Any:
    """Return the body of an error in the format that `path` asks for."""
    if "/messages" in path:
        return {"type": "error", "error": {"type": fail.kind, "message": fail.message}}
    if "Content" in path:
        return {"error": {"code": fail.status, "message": fail.message, "status": fail.code or "UNKNOWN"}}
    return {"error": {"message": fail.message, "type": fail.kind, "code": fail.code, "param": None}}


def pieces(text: str) -> list[str]:
    """Cut a text into small pieces."""
    return [text[start : start + SIZE] for start in range(0, len(text), SIZE)]


def arguments_of(arguments: Any) -> str:
    """Return the arguments of a call as the text that a model writes."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def anthropic(say: Say) -> Iterator[Event]:
    """Anthropic Messages: blocks one after another, each with start, deltas and stop."""
    message: dict[str, Any] = {
        "id": f"msg_{next(_numbers):04}",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
    }
    usage = {
        "input_tokens": say.tokens,
        "output_tokens": 1,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }
    yield "message_start", {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    yield "ping", {"type": "ping"}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if say.thinking:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(say.thinking)]
        signature = {"type": "signature_delta", "signature": "signed-by-claude"}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]))
    if say.text:
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(say.text)])
        )
    for name, arguments in say.calls:
        deltas = [
            {"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(arguments_of(arguments))]
        ]
        blocks.append(({"type": "tool_use", "id": f"toolu_{next(_numbers):04}", "name": name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}
        for piece in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": piece}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    stop = say.stop or ("tool_use" if say.calls else "end_turn")
    delta: dict[str, Any] = {"stop_reason": stop, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 22}}
    yield "message_stop", {"type": "message_stop"}


def chat(say: Say) -> Iterator[Event]:
    """OpenAI chat completions: deltas of one message; the pieces of parallel calls come mixed."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(say.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(say.text):
        yield chunk({"content": piece})
    rest: list[deque[str]] = []
    for index, (name, arguments) in enumerate(say.calls):
        function = {"name": name, "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": index, "id": f"call_{say.id}{index}", "type": "function", "function": function}]}
        )
        rest.append(deque(pieces(arguments_of(arguments))))
    while any(rest):
        for index, parts in enumerate(rest):
            if parts:
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": parts.popleft()}}]})
    yield chunk({}, say.stop or ("tool_calls" if say.calls else "stop"))
    yield (
        "",
        {
            **base,
            "choices": [],
            "usage": {"prompt_tokens": say.tokens, "completion_tokens": 22, "total_tokens": say.tokens + 22},
        },
    )
    yield "", "[DONE]"


def responses(say: Say) -> Iterator[Event]:
    """OpenAI Responses: items one after another, each with added, deltas and done."""
    number = -1
    response: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-test",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress",
    }

    def event(kind: str, **data: Any) -> Event:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **data}

    yield event("response.created", response=response)
    output: list[dict[str, Any]] = []
    if say.thinking:
        place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
        item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
        yield event("response.output_item.added", output_index=0, item=item)
        part: dict[str, Any] = {"type": "summary_text", "text": ""}
        yield event("response.reasoning_summary_part.added", **place, part=part)
        for piece in pieces(say.thinking):
            yield event("response.reasoning_summary_text.delta", **place, delta=piece)
        part = {"type": "summary_text", "text": say.thinking}
        yield event("response.reasoning_summary_text.done", **place, text=say.thinking)
        yield event("response.reasoning_summary_part.done", **place, part=part)
        item = {**item, "summary": [part], "encrypted_content": "sealed-by-openai"}
        yield event("response.output_item.done", output_index=0, item=item)
        output.append(item)
    if say.text:
        index = len(output)
        place = {"item_id": "msg_1", "output_index": index, "content_index": 0}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        yield event("response.output_item.added", output_index=index, item=item)
        part = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **place, part=part)
        for piece in pieces(say.text):
            yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield event("response.output_text.done", **place, text=say.text, logprobs=[])
        yield event("response.content_part.done", **place, part={**part, "text": say.text})
        item = {**item, "status": "completed", "content": [{**part, "text": say.text}]}
        yield event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    for count, (name, arguments) in enumerate(say.calls):
        place = {"item_id": f"fc_{say.id}{count}", "output_index": len(output)}
        item = call_item(say, count, name, arguments)
        key = "input" if isinstance(arguments, Custom) else "arguments"
        kind = (
            "response.custom_tool_call_input" if isinstance(arguments, Custom) else "response.function_call_arguments"
        )
        index = len(output)
        yield event("response.output_item.added", output_index=index, item={**item, key: "", "status": "in_progress"})
        for piece in pieces(item[key]):
            yield event(f"{kind}.delta", **place, delta=piece)
        yield event(f"{kind}.done", **place, name=name, **{key: item[key]})
        yield event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    usage = {
        "input_tokens": say.tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": say.tokens + 22,
    }
    if say.stop:
        end = {"status": "incomplete", "incomplete_details": {"reason": say.stop}}
        yield event("response.incomplete", response={**response, **end, "output": output, "usage": usage})
    else:
        yield event(
            "response.completed", response={**response, "status": "completed", "output": output, "usage": usage}
        )


def call_item(say: Say, count: int, name: str, arguments: Any) -> dict[str, Any]:
    """Return the item of a call in OpenAI's Responses: of a function, or of a custom tool."""
    item = {"id": f"fc_{say.id}{count}", "call_id": f"call_{say.id}{count}", "name": str(name), "status": "completed"}
    if isinstance(name, InNamespace):
        item["namespace"] = name.namespace
    if isinstance(arguments, Custom):
        return {"type": "custom_tool_call", **item, "input": str(arguments)}
    return {"type": "function_call", **item, "arguments": arguments_of(arguments)}


def gemini(say: Say) -> Iterator[Event]:
    """Gemini: each event is a whole candidate with more parts; a call comes in one piece, signed."""
    found = [{"text": piece, "thought": True} for piece in pieces(say.thinking)]
    found += [{"text": piece} for piece in pieces(say.text)]
    for name, arguments in say.calls:
        call = {"functionCall": {"name": name, "args": arguments}}
        found.append({**call, "thoughtSignature": "c2lnbmVkLWJ5LWdlbWluaQ=="})
    usage = {"promptTokenCount": say.tokens, "candidatesTokenCount": 22, "totalTokenCount": say.tokens + 22}
    for part in found:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        yield "", {"candidates": [candidate], "modelVersion": "gemini-test", "responseId": "r1"}
    candidate = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": say.stop or "STOP", "index": 0}
    yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-test", "responseId": "r1"}
