"""A model behind an HTTP API: its key, its address, what is tried again, and what a failure says.

pydantic-ai speaks the providers' protocols; what a person sees of them is decided here.  The HTTP client lives as long as
one response: closing the stream closes the connection, on asyncio as on trio.  Above: anthropic, openai, google.  Below:
conversation, keys, model.
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
from agent_hooks.host.models.conversation import messages_of, parameters_of, pieces_of, settings_of
from agent_hooks.host.models.keys import KEY_VARIABLES, find_key

TRIES = 4
UNKNOWN_WINDOW = 128_000  # tokens that a model of today can look at, if it is not told which
LONGEST_WAIT = 60.0  # seconds; also when the server asks for more
FIRST_WAIT = 1.0  # seconds; doubled after each try
SAID = 300  # characters of what the server said that a message shows
_TIMEOUT = httpx2.Timeout(600.0, connect=15.0)  # seconds; a model that thinks may be silent for minutes
_RETRIED = {408, 409, 429}  # and everything from 500 up
_STOP_REASONS = {"stop": "stop", "length": "length", "tool_call": "tool_use"}


class Access(Struct, frozen=True):
    """What a request needs besides its words; `url` is `None` for the provider's own address."""

    key: str
    url: str | None
    client: httpx2.AsyncClient


class Provider(Struct, frozen=True):
    """One kind of API: its name, the variable of its address, and how a model of it is made.  Its keys: `keys`."""

    name: str
    url_variable: str
    build: Callable[[str, Access], WireModel]
    key_needed_elsewhere: bool = True  # an address of one's own needs a key too


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
        """How many tokens the model can look at, as far as is known."""
        from genai_prices.data_snapshot import get_snapshot  # pydantic-ai's own list; it takes a while to load

        try:
            _, model = get_snapshot().find_provider_model(self.id, None, self.provider.partition("-")[0], None)
        except LookupError:  # a model of one's own server, or a new one
            return UNKNOWN_WINDOW
        return model.context_window or UNKNOWN_WINDOW

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Ask, and ask again while nothing has come and that may help; raises `ModelError`, never with the key in it."""
        for attempt in range(1, TRIES + 1):
            begun = False
            try:
                async with aclosing(self._once(request)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except Exception as exc:  # SDKs' failures have no common base; the prompt ends with their text
                text = self._told(exc)
                if begun or attempt == TRIES or not _passes(exc):
                    tried = f" (tried {attempt} times)" if attempt > 1 else ""
                    remedy = self._remedy(exc)
                    raise ModelError(text + tried + (remedy and f"; {remedy}")) from None
                seconds = _wait(exc, attempt)
            yield NoticePiece(f"{text}; trying again in {seconds:.0f} s ({attempt} of {TRIES - 1})")
            await sleep(seconds)

    async def _once(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Ask once; raises whatever pydantic-ai or an SDK raises."""
        async with httpx2.AsyncClient(timeout=_TIMEOUT, verify=_tls()) as client:
            model = self._kind.build(self.id, Access(self._key or "none", self._url, client))
            async with model_request_stream(
                model,
                messages_of(request, self.provider, self.id),
                model_settings=settings_of(request),
                model_request_parameters=parameters_of(request),
                instrument=False,  # whatever telemetry the environment is set up for: no prompts leave by it
            ) as response:
                async for event in response:
                    for piece in pieces_of(event):
                        yield piece
                if response.finish_reason == "length":
                    yield NoticePiece(
                        f"{self._label}: the answer is cut off: it reached the most that the model may say"
                    )
                yield _end(response)

    # ---- what a failure says

    @property
    def _label(self) -> str:
        return f"{self.provider}:{self.id}"

    def _told(self, exc: Exception) -> str:
        """Return one short line, without the key: who failed, how, and what the server said."""
        status = f"HTTP {exc.status_code}: " if isinstance(exc, exceptions.ModelHTTPError) else ""
        text = _said(exc)
        if len(self._key) > 7:  # what is shorter is a placeholder, for a server that asks for no key
            text = text.replace(self._key, "***")
        text = " ".join(text.split())
        return f"{self._label}: {status}{text if len(text) <= SAID else f'{text[:SAID]}…'}"

    def _remedy(self, exc: Exception) -> str:
        match exc:
            case exceptions.ModelAuthenticationError():
                return f"check the key in {' or '.join(KEY_VARIABLES[self.provider])}"
            case exceptions.ModelNotFoundError():
                return f"check the model's name, and the address{self._address()}"
            case exceptions.ModelHTTPError() if _too_long(exc):
                return "the conversation is too long for this model: start a new session, or take a larger model"
            case exceptions.ModelQuotaExceededError():
                return "the account has used up what it may use"
            case exceptions.ModelRateLimitError():
                return "too many requests: wait a while"
            case exceptions.ModelConnectionError() | BrokenOffError():
                return f"check the network, and the address{self._address()}"
            case exceptions.ModelHTTPError() if exc.status_code >= 500:
                return "the provider has a problem: try later"
        return ""

    def _address(self) -> str:
        """Return the address and the variable that it is from; a password in it stays out."""
        if self._url is None:
            return f" (the provider's own; {self._kind.url_variable} changes it)"
        return f" in {self._kind.url_variable} ({re.sub('//[^/]*@', '//', self._url)})"


@cache
def _tls() -> ssl.SSLContext:
    """Return the certificates to trust; reading them takes longer than all the rest of a client."""
    return httpx2.create_ssl_context()


class BrokenOffError(Exception):
    """The stream ended, but the response did not."""


class RefusedError(Exception):
    """The provider refused to go on."""


_IN_WORDS = (BrokenOffError, RefusedError, exceptions.AgentRunError)  # their texts are sentences


def _end(response: StreamedResponse) -> EndPiece:
    """Return the end of a response; raises when it has none, or a bad one."""
    reason = response.finish_reason
    details = response.provider_details or {}
    if not details.get("finish_reason"):  # the provider's own word; pydantic-ai fills in one of its words without it
        raise BrokenOffError("the connection was closed in the middle of the response")
    if reason in ("content_filter", "error"):
        raise RefusedError(f"the provider stopped the response ({details.get('finish_reason', reason)})")
    usage = response.usage
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
    }
    return EndPiece(_STOP_REASONS.get(reason or "", "stop"), {name: count for name, count in counts.items() if count})


def _too_long(exc: exceptions.ModelHTTPError) -> bool:
    """Tell whether the conversation does not fit; pydantic-ai does not know how Gemini says so."""
    if isinstance(exc, exceptions.ModelContextWindowExceededError) or exc.status_code == 413:
        return True
    return exc.status_code == 400 and "maximum number of tokens" in _said(exc)


def _passes(exc: Exception) -> bool:
    """Tell whether a failure may pass by itself."""
    if isinstance(exc, exceptions.ModelQuotaExceededError):
        return False
    if isinstance(exc, exceptions.ModelHTTPError):
        return exc.status_code in _RETRIED or exc.status_code >= 500
    return isinstance(exc, exceptions.ModelConnectionError | httpx2.TransportError | BrokenOffError)


def _wait(exc: Exception, attempt: int) -> float:
    """Return the seconds to wait: what the server asks for, or twice as long each time, with some jitter."""
    asked = exc.retry_after if isinstance(exc, exceptions.ModelAPIError) else None
    if asked is not None:
        return min(max(asked, 0.0), LONGEST_WAIT)
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret


def _said(exc: Exception) -> str:
    """Return what the server said: the message in the body of an error, or what became of the connection."""
    body: Any = getattr(exc, "body", None)
    if isinstance(body, list) and body:  # Gemini puts an error into a list when it was asked for a stream
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
