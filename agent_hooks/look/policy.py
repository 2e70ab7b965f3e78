"""The headers of every response: nothing runs, loads or sends but the page's own files, and nothing is kept."""

from __future__ import annotations

LIVE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)
"""The Content-Security-Policy of the server's responses."""
SAFE_HEADERS = {
    "content-security-policy": LIVE_POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""The headers that every response has."""


def saved_policy(script: str, style: str) -> str:
    """Return the policy of a saved file: the hashes of its one script and its one style sheet, and no connection at all.

    A meta tag cannot forbid frames, so `frame-ancestors` is left out.
    """
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
