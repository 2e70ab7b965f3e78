"""The wish for records: where they are kept, how long, and for which agent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_hooks.records.files import records_directory
from agent_hooks.records.private import INPUT_LIMIT
from agent_hooks.settings import OtlpSettings, agent_home

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor

DAYS = 30
BYTES = 1 << 30


class TrustFacts(Struct, frozen=True, kw_only=True):
    """The trust under which a runner works: its state, and the digests of the trusted set and of the settings."""

    state: str = ""
    trusted_set: str = ""
    settings: str = ""


class Options(Struct, frozen=True, kw_only=True):
    """The options of `Records`.

    `home`: the agent home, that of the person unless given; `client`, `client_version`: the agent that the runner works
    for; `required`: a call whose decision cannot be written is blocked; `days`, `bytes`: how long and how many records
    are kept; `limit`: characters of an input that a line holds; `redact`: hide secrets (only measurements turn it off);
    `patterns`: regular expressions for secrets of your own, by name; `project`: the project's root, the runner's
    directory unless given; `trust`: see `TrustFacts`; `otlp`: an endpoint that all lines
    are exported to as well.
    """

    home: str | None = None
    client: str = "embedded"
    client_version: str = ""
    required: bool = False
    days: float = DAYS
    bytes: int = BYTES
    limit: int = INPUT_LIMIT
    redact: bool = True
    patterns: Mapping[str, str] = {}
    project: str | None = None
    trust: TrustFacts = TrustFacts()
    otlp: OtlpSettings | None = None

    @property
    def directory(self) -> str:
        """The directory of the record files."""
        return records_directory(agent_home() if self.home is None else os.path.abspath(self.home))

    def redactor(self) -> Redactor | None:
        """Return the redactor of the records, which hides secrets whether or not results are redacted."""
        if not self.redact:
            return None
        # Imported here, because compiling its patterns takes a while.
        from agent_hooks.redaction import Redactor

        return Redactor(patterns=self.patterns)
