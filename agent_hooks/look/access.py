"""The rules by which the server answers a request: its place, its origin and its token.

1. `Host` is exactly the address that the server listens at, so that no other name leads here (DNS rebinding).
2. Data goes to this page alone: `Sec-Fetch-Site` is `same-origin`, or `Origin` is our own.  A page of another port of
   127.0.0.1 is another origin, and is refused.
3. Data needs the bearer token, because every user of the machine can connect.  There is no cookie, because a browser
   sends the cookies of 127.0.0.1 to every port.
4. The bearer token is given once, for the start token, which is valid for one use within a minute.
5. Only `POST /start` changes anything.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from time import monotonic

from msgspec import Struct

START_SECONDS = 60.0
"""The seconds in which the start token is valid."""


class Refusal(Struct, frozen=True):
    """A request that is not answered: the status, and the reason with the remedy."""

    status: int
    reason: str


class Access:
    """The tokens and the address of one server.

    `host`: the only `Host` that is answered, with the port; `clock`: seconds of a monotonic clock.
    """

    def __init__(self, host: str, clock: Callable[[], float] = monotonic) -> None:
        self.host = host
        self.origin = f"http://{host}"
        self.start_token = secrets.token_urlsafe(32)
        self._bearer = secrets.token_urlsafe(32)
        self._clock = clock
        self._until = clock() + START_SECONDS
        self._is_used = False

    @property
    def is_open(self) -> bool:
        """Whether the start token can still be exchanged."""
        return not self._is_used and self._clock() < self._until

    def exchange(self, start_token: str) -> str | None:
        """Return the bearer token for the start token, once and in time; otherwise `None`."""
        if not self.is_open or not _equal(start_token, self.start_token):
            return None
        self._is_used = True
        return self._bearer

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Return the reason not to answer a request, or `None`."""
        if headers.get("host") != self.host:
            return Refusal(421, f"this server answers at {self.origin} only")
        posts = path == "/start"
        if method not in (("POST",) if posts else ("GET", "HEAD")):
            return Refusal(405, "this page is read only")
        is_data = posts or path.startswith("/api/")
        if not self._comes_from_here(headers, is_data=is_data):
            return Refusal(403, "only the page of this server may ask for this")
        if is_data and not posts and not _equal(headers.get("authorization", ""), f"Bearer {self._bearer}"):
            return Refusal(401, "the token is missing or not valid; run agent-hooks look again")
        return None

    def _comes_from_here(self, headers: Mapping[str, str], *, is_data: bool) -> bool:
        """Tell whether a request comes from our page; the page itself may be opened from anywhere, by a person."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != self.origin:
            return False
        if site is not None and site != "same-origin":
            return not is_data and headers.get("sec-fetch-mode") == "navigate"
        return not is_data or origin is not None or site is not None


def _equal(given: str, wanted: str) -> bool:
    """Compare two tokens in a time that tells nothing; a header may hold any character."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())
