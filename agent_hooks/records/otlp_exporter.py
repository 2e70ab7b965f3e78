"""Sends spans and logs to an OTLP endpoint with the SDK of OpenTelemetry, which the extra `otel` installs.

This module imports the SDK, so `exporting` imports it when there is something to send.  The environment of the process
may be that of another agent, whose project may set it.  So nothing of it is obeyed: the endpoint, the headers, the
certificates and the proxy of a request are set here, at the lowest place before it leaves.
"""

from __future__ import annotations

import logging
import ssl
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import requests
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from agent_hooks.errors import describe
from agent_hooks.records.otlp_values import WARN, Log, Span

BATCH = 512
"""Spans, or logs, of one request."""
_ERROR = 300
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
)


class Exporter:
    """Sends spans and logs: `problem = exporter.send(spans, logs)`.

    `endpoint`: the base URL, to which `/v1/traces` and `/v1/logs` are added; `headers`: of every request; `timeout`:
    seconds for one request with its repetitions.  A thread has an exporter of its own.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str] | None = None, timeout: float = 5.0) -> None:
        self._session = _Session(headers or {}, is_secure=endpoint.startswith("https:"))
        options: dict[str, Any] = {
            "headers": dict(headers or {}) or {"user-agent": "agent-hooks"},
            "timeout": timeout,
            "compression": Compression.NoCompression,
            "session": self._session,
        }
        base = endpoint.rstrip("/")
        self._spans = OTLPSpanExporter(f"{base}/v1/traces", **options)
        self._logs = OTLPLogExporter(f"{base}/v1/logs", **options)
        version = str(getattr(sys.modules["agent_hooks"], "__version__", ""))
        # Not `Resource.create`, which reads the environment.
        self._resource = Resource({"service.name": "agent-hooks", "service.version": version})
        self._scope = InstrumentationScope("agent_hooks.records", version)
        self._quiet = _Quiet()

    def send(self, spans: Sequence[Span], logs: Sequence[Log]) -> str:
        """Send spans and logs; return the first problem, which ends the sending, or an empty text."""
        for each in _batches(logs):
            if problem := self._send(self._logs, [self._log(log) for log in each], LogRecordExportResult.SUCCESS):
                return problem
        for batch in _batches(spans):
            if problem := self._send(self._spans, [self._span(span) for span in batch], SpanExportResult.SUCCESS):
                return problem
        return ""

    def _send(self, exporter: Any, batch: Sequence[Any], success: Any) -> str:
        self._session.problem = ""
        with self._quiet:
            try:
                done = exporter.export(batch)
            # Of the encoder or of the HTTP client; the caller reports it, and the records stay in their files.
            except Exception as exc:
                return self._session.problem or describe(exc)
        if done is success and not self._session.problem:
            return ""
        return self._session.problem or "the batch was not sent"

    def _log(self, log: Log) -> ReadableLogRecord:
        context = set_span_in_context(NonRecordingSpan(_context(log.trace, log.span)), Context())
        record = LogRecord(
            timestamp=log.time,
            observed_timestamp=log.time,
            context=context,
            severity_text="WARN" if log.severity == WARN else "INFO",
            severity_number=SeverityNumber(log.severity),
            body=log.body,
            attributes=log.attributes,
            event_name=log.name,
        )
        return ReadableLogRecord(record, self._resource, self._scope)

    def _span(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            context=_context(span.trace, span.id),
            parent=None if span.parent is None else _context(span.trace, span.parent),
            resource=self._resource,
            attributes=span.attributes,
            events=[Event(event.name, event.attributes, event.time) for event in span.events],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=_SAMPLED)


def _batches(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


class _Session(requests.Session):
    """Sends requests that are the same in every environment; `problem`: why the last one failed."""

    def __init__(self, headers: Mapping[str, str], *, is_secure: bool) -> None:
        super().__init__()
        self.problem = ""
        self._own = dict(headers)
        # No proxy, no .netrc, no certificates of the environment.
        self.trust_env = False
        if is_secure:
            self.mount("https://", _PlainTLS())

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        kept = {name: request.headers[name] for name in ("Content-Type", "Content-Length")}
        request.headers = CaseInsensitiveDict({**kept, "User-Agent": "agent-hooks", **self._own})
        options |= {"verify": True, "cert": None, "proxies": {}, "allow_redirects": False}
        self.problem = ""
        try:
            response = super().send(request, **options)
        except requests.RequestException as exc:
            self.problem = _reason(exc)
            raise
        if response.status_code >= _ERROR:
            self.problem = f"it answered {response.status_code} {response.reason}".rstrip()
        return response


class _PlainTLS(HTTPAdapter):
    """Verifies certificates with those that the HTTP client brings, and writes no keys into a file."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # type: ignore[no-untyped-call,unused-ignore]  # in versions without types


def _reason(exc: requests.RequestException) -> str:
    """Return why a request failed, in the words of the system if it has any."""
    causes: list[BaseException] = [exc]
    # The libraries below wrap it in several ways.
    for cause in causes:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        inner = (*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__)
        causes += [each for each in inner if isinstance(each, BaseException) and each not in causes]
    return "it did not answer in time" if isinstance(exc, requests.Timeout) else describe(exc)


class _Quiet(logging.Filter):
    """While it is entered, drops the log messages of the SDK in this thread: the caller reports each problem once."""

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def __exit__(self, *_: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread
