"""An OTLP endpoint on loopback, which decodes each request with opentelemetry-proto."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Endpoint:
    """The requests: `spans` and `logs` as messages of the protocol, `bodies` as bytes, `headers` of each request."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.logs: list[Any] = []
        self.resources: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.answer_headers: dict[str, str] = {}
        self.url = ""

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.headers.append(headers)
        self.bodies.append(body)
        if self.status != 200:
            return
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(plain(group.resource.attributes))
                self.spans += [span for scope in group.scope_spans for span in scope.spans]
        elif path == "/v1/logs":
            for logs in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.resources.append(plain(logs.resource.attributes))
                self.logs += [log for scope in logs.scope_logs for log in scope.log_records]
        else:
            raise AssertionError(path)

    def span(self, name: str) -> Any:
        """Return the only span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def named(self, event: str) -> list[Any]:
        """Return the logs of an event's name."""
        return [log for log in self.logs if log.event_name == event]


def plain(attributes: Any) -> dict[str, Any]:
    """Return attributes of the protocol as a dict."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)


def body(log: Any) -> dict[str, Any]:
    """Return the line in a log's body."""
    line: dict[str, Any] = json.loads(log.body.string_value)
    return line


@contextmanager
def otlp_endpoint() -> Iterator[Endpoint]:
    """Serve an endpoint on loopback."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            endpoint.take(
                self.path, {name.lower(): value for name, value in self.headers.items()}, self.rfile.read(size)
            )
            self.send_response(endpoint.status)
            for name, value in endpoint.answer_headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        endpoint.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
