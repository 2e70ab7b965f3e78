"""A model behind a real HTTP server on this machine: it speaks four wire formats, in small pieces, by a script.

    with ModelServer() as server:
        server.play(Say("Let me look.", calls=[("ls", {})]), Fail(529, "Overloaded"), Say("Done."))

Each request takes the next reply, in the format of the path it came on; `server.requests` keeps them.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
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

Event = tuple[str, Any]  # its name, and its data


@dataclass
class Say:
    """A whole response; the arguments of a call are a dict, or text that is sent unchanged.

    `stop`: the stop reason in the provider's own word, if not the usual one; `cut_after`, `hang_after`: the connection
    breaks, or nothing more comes, after so many events; `ends_early`: with `cut_after`, the stream ends in good order.
    """

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    stop: str = ""
    cut_after: int | None = None
    ends_early: bool = False
    hang_after: int | None = None


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
    """The server; `url` is its address, `hanging` is set when a reply hangs, `gone` when a client hangs up."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.replies: deque[Reply] = deque()
        self.hanging = threading.Event()
        self.gone = threading.Event()
        self._http = _Server(self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def play(self, *replies: Reply) -> None:
        """Answer the next requests with these replies."""
        self.replies.extend(replies)

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

    def do_POST(self) -> None:
        script = self.server.script
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        script.requests.append(Recorded(self.path, headers, body))
        self.close_connection = True
        match script.replies.popleft() if script.replies else Fail(418, "the script has ended"):
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
                    self._say(say)
                except ConnectionError:
                    script.gone.set()

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
    usage = {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
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
        yield chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]})
        rest.append(deque(pieces(arguments_of(arguments))))
    while any(rest):
        for index, parts in enumerate(rest):
            if parts:
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": parts.popleft()}}]})
    yield chunk({}, say.stop or ("tool_calls" if say.calls else "stop"))
    yield "", {**base, "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 22, "total_tokens": 33}}
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
        index = len(output)
        text = arguments_of(arguments)
        item = {"type": "function_call", "id": f"fc_{count}", "call_id": f"call_{count}", "name": name}
        item |= {"arguments": "", "status": "in_progress"}
        yield event("response.output_item.added", output_index=index, item=item)
        for piece in pieces(text):
            yield event(
                "response.function_call_arguments.delta", item_id=f"fc_{count}", output_index=index, delta=piece
            )
        yield event(
            "response.function_call_arguments.done",
            item_id=f"fc_{count}",
            output_index=index,
            name=name,
            arguments=text,
        )
        item = {**item, "arguments": text, "status": "completed"}
        yield event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 33,
    }
    if say.stop:
        end = {"status": "incomplete", "incomplete_details": {"reason": say.stop}}
        yield event("response.incomplete", response={**response, **end, "output": output, "usage": usage})
    else:
        yield event(
            "response.completed", response={**response, "status": "completed", "output": output, "usage": usage}
        )


def gemini(say: Say) -> Iterator[Event]:
    """Gemini: each event is a whole candidate with more parts; a call comes in one piece, signed."""
    found = [{"text": piece, "thought": True} for piece in pieces(say.thinking)]
    found += [{"text": piece} for piece in pieces(say.text)]
    for name, arguments in say.calls:
        call = {"functionCall": {"name": name, "args": arguments}}
        found.append({**call, "thoughtSignature": "c2lnbmVkLWJ5LWdlbWluaQ=="})
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 22, "totalTokenCount": 33}
    for part in found:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        yield "", {"candidates": [candidate], "modelVersion": "gemini-test", "responseId": "r1"}
    candidate = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": say.stop or "STOP", "index": 0}
    yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-test", "responseId": "r1"}
