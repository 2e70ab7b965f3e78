"""A model behind an HTTP API: its key, its address, retries, and the error texts.

pydantic-ai implements the providers' protocols; the retries and the texts for the person are ours.  The HTTP client lives
as long as one response: closing the stream closes the connection, on asyncio and trio.
"""

from __future__ import annotations

import os
import random
import re
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from typing import Any

import httpx2
from anyio import sleep
from msgspec import Struct
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as WireModel
from pydantic_ai.models import StreamedResponse

from agent_hooks.errors import ModelError, describe, text_of
from agent_hooks.host.model import EndPiece, ModelRequest, NoticePiece, Piece
from agent_hooks.host.models import KEY_VARIABLES, find_key
from agent_hooks.host.models.conversation import messages_of, parameters_of, pieces_of, settings_of
from agent_hooks.host.prices import window_of
from agent_hooks.values.content import Usage

TRIES = 4
UNKNOWN_WINDOW = 128_000
"""The window of a model that is not in the list, in tokens: most models of today have at least that."""
FIRST_WAIT = 1.0
"""Seconds before the second try; doubled before each further one."""
LONGEST_WAIT = 60.0
"""The most seconds before a try, also when the server asks for more."""
SERVER_TEXT = 300
"""The most characters of the server's own text in an error text."""
# Seconds; a model that thinks may be silent for minutes.
_TIMEOUT = httpx2.Timeout(600.0, connect=15.0)
# The HTTP statuses that are tried again, besides all from 500 on.
_RETRIED = {408, 409, 429}
_STOP_REASONS = {"stop": "stop", "length": "length", "tool_call": "tool_use"}


class Provider(Struct, frozen=True):
    """One kind of API: its name, the environment variable of its address, and the classes that speak it.

    `model` takes the model's name and a provider, and `access` takes the key, the address and the client.
    `key_needed_elsewhere`: a server at another address needs a key too.  The variables of the key are in `keys`.
    """

    name: str
    url_variable: str
    model: Callable[..., WireModel]
    access: Callable[..., object]
    key_needed_elsewhere: bool = True


def open_remote(provider: Provider, model: str) -> Remote:
    """Return `model` of `provider`, with key and address from the environment; raises `ModelError` without a key."""
    if not model:
        raise ModelError(f"which model? Use --model {provider.name}:MODEL")
    url = os.environ.get(provider.url_variable) or None
    key = find_key(provider.name) or ""
    if not key and (url is None or provider.key_needed_elsewhere):
        raise ModelError(f"there is no key: set the environment variable {' or '.join(KEY_VARIABLES[provider.name])}")
    return Remote(provider, model, key=key, url=url)


class Remote:
    """A model behind an HTTP API."""

    def __init__(self, provider: Provider, model: str, *, key: str, url: str | None) -> None:
        self.provider = provider.name
        self.id = model
        self._kind = provider
        self._key = key
        self._url = url

    @property
    def window(self) -> int:
        """The model's window in tokens, `UNKNOWN_WINDOW` when it is not known."""
        return window_of(self.provider, self.id) or UNKNOWN_WINDOW

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of the response.

        A failure before the first piece that may pass by itself is tried again, `TRIES` times in all.
        Raises `ModelError`, whose text never has the key in it.
        """
        for attempt in range(1, TRIES + 1):
            begun = False
            try:
                async with aclosing(self._once(request)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            # The SDKs' errors have no common base.  The person gets the text; the request is tried again, or fails.
            except Exception as exc:
                text = self._error_text(exc)
                if begun or attempt == TRIES or not _passes(exc):
                    tried = f" (tried {attempt} times)" if attempt > 1 else ""
                    remedy = self._remedy(exc)
                    raise ModelError(text + tried + (remedy and f"; {remedy}")) from None
                seconds = _wait(exc, attempt)
            yield NoticePiece(f"{text}; trying again in {seconds:.0f} s ({attempt} of {TRIES - 1})")
            await sleep(seconds)

    async def _once(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Send the request once; raises the errors of pydantic-ai and of the SDK."""
        async with httpx2.AsyncClient(timeout=_TIMEOUT, verify=_tls()) as client:
            access = self._kind.access(api_key=self._key or "none", base_url=self._url, http_client=client)
            model = self._kind.model(self.id, provider=access)
            async with model_request_stream(
                model,
                messages_of(request, self.provider, self.id),
                model_settings=settings_of(request),
                model_request_parameters=parameters_of(request),
                # No prompt leaves by the telemetry that the environment may have set up.
                instrument=False,
            ) as response:
                async for event in response:
                    for piece in pieces_of(event):
                        yield piece
                if response.finish_reason == "length":
                    yield NoticePiece(f"{self._label}: the answer is cut off: it reached the model's limit")
                yield _end(response)

    # ---- the text of a failure

    @property
    def _label(self) -> str:
        return f"{self.provider}:{self.id}"

    def _error_text(self, exc: Exception) -> str:
        """Return one short line, without the key: the model, the HTTP status, and the server's own text."""
        status = f"HTTP {exc.status_code}: " if isinstance(exc, exceptions.ModelHTTPError) else ""
        text = _server_text(exc)
        # A shorter key is a placeholder, for a server without keys.
        if len(self._key) > 7:
            text = text.replace(self._key, "***")
        text = " ".join(text.split())
        return f"{self._label}: {status}{text if len(text) <= SERVER_TEXT else f'{text[:SERVER_TEXT]}…'}"

    def _remedy(self, exc: Exception) -> str:
        match exc:
            case exceptions.ModelAuthenticationError():
                return f"check the key in {' or '.join(KEY_VARIABLES[self.provider])}"
            case exceptions.ModelNotFoundError():
                return f"check the model's name, and the address{self._address()}"
            case exceptions.ModelHTTPError() if _too_long(exc):
                return "the conversation is too long for this model: start a new session, or take a larger model"
            case exceptions.ModelQuotaExceededError():
                return "the quota of the account is used up"
            case exceptions.ModelRateLimitError():
                return "too many requests: wait a while"
            case exceptions.ModelConnectionError() | BrokenOffError():
                return f"check the network, and the address{self._address()}"
            case exceptions.ModelHTTPError() if exc.status_code >= 500:
                return "the provider has a problem: try later"
        return ""

    def _address(self) -> str:
        """Return the address and its environment variable; a password in the address is left out."""
        if self._url is None:
            return f" (the provider's own; {self._kind.url_variable} changes it)"
        return f" in {self._kind.url_variable} ({re.sub('//[^/]*@', '//', self._url)})"


@cache
def _tls() -> ssl.SSLContext:
    """Return the certificates to trust; reading them takes most of the time of creating a client."""
    return httpx2.create_ssl_context()


class BrokenOffError(Exception):
    """The stream ended before the response did."""


class RefusedError(Exception):
    """The provider stopped the response."""


# The errors whose texts are sentences, without the name of their type.
_IN_WORDS = (BrokenOffError, RefusedError, exceptions.AgentRunError)


def _end(response: StreamedResponse) -> EndPiece:
    """Return the end of a response.

    Raises `BrokenOffError` when the stream ended before the response, `RefusedError` when the provider stopped it.
    """
    reason = response.finish_reason
    details = response.provider_details or {}
    # This is the provider's own reason: `response.finish_reason` is filled in by pydantic-ai when it is missing.
    if not details.get("finish_reason"):
        raise BrokenOffError("the connection was closed in the middle of the response")
    if reason in ("content_filter", "error"):
        raise RefusedError(f"the provider stopped the response ({details.get('finish_reason', reason)})")
    counted = response.usage
    usage = Usage(
        input_tokens=counted.input_tokens or 0,
        output_tokens=counted.output_tokens or 0,
        cache_read_tokens=counted.cache_read_tokens or 0,
        cache_write_tokens=counted.cache_write_tokens or 0,
    )
    return EndPiece(_STOP_REASONS.get(reason or "", "stop"), None if usage == Usage() else usage)


def _too_long(exc: exceptions.ModelHTTPError) -> bool:
    """Tell whether the conversation is too long; pydantic-ai does not recognise Gemini's error, which has only a text."""
    if isinstance(exc, exceptions.ModelContextWindowExceededError) or exc.status_code == 413:
        return True
    return exc.status_code == 400 and "maximum number of tokens" in _server_text(exc)


def _passes(exc: Exception) -> bool:
    """Tell whether a failure may pass by itself."""
    if isinstance(exc, exceptions.ModelQuotaExceededError):
        return False
    if isinstance(exc, exceptions.ModelHTTPError):
        return exc.status_code in _RETRIED or exc.status_code >= 500
    return isinstance(exc, exceptions.ModelConnectionError | httpx2.TransportError | BrokenOffError)


def _wait(exc: Exception, attempt: int) -> float:
    """Return the seconds to wait: those that the server asks for, or twice as many each time, with some jitter."""
    asked = exc.retry_after if isinstance(exc, exceptions.ModelAPIError) else None
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT)
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret


def _server_text(exc: Exception) -> str:
    """Return the server's message in the body of an error, or the failure of the connection."""
    body: Any = getattr(exc, "body", None)
    # Gemini puts the error of a stream into a list.
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        error = body.get("error", body)
        body = error.get("message") if isinstance(error, dict) else error
    if body:
        return str(body)
    if isinstance(exc, exceptions.ModelTimeoutError):
        return "no answer came in time"
    if isinstance(exc, exceptions.ModelConnectionError | httpx2.TransportError):
        return f"the connection failed ({describe(_root(exc))})"
    return text_of(exc) if isinstance(exc, _IN_WORDS) else describe(exc)


def _root(exc: BaseException) -> BaseException:
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return exc
