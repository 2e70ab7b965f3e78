"""Redaction: credentials are hidden in the results of tools, before the model, the session file and the screen get them.

    redacted, secrets = Redactor().redact("token: ghp_0123456789abcdefghij0123456789abcdef")
    # 'token: [redacted github-token]', (Secret(kind='github-token', start=7, end=47),)

Three things count as secrets: text that has the form of a known kind of credential (`kinds`), the values of environment
variables with a secret name (`environment`), and matches of the person's own patterns.  A password in a sentence has no
form, so it is not found.
"""

from __future__ import annotations

from agent_hooks.redaction.kinds import secret_values
from agent_hooks.redaction.redacting import RedactedStream, Redactor, redactor
from agent_hooks.redaction.signs import Secret

__all__ = ["RedactedStream", "Redactor", "Secret", "redactor", "secret_values"]
