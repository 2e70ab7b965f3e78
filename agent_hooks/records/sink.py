"""Takes the lines of one runner and writes each into the file of its session.

A line that cannot be written is reported once; the writer notes the number of lost lines in the file as soon as a line
can be written again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from agent_hooks.dispatch.context import Surroundings
from agent_hooks.errors import hook_error
from agent_hooks.records.files import make_directory
from agent_hooks.records.keyed import Keyed, load_key
from agent_hooks.records.lines import Decision, Line
from agent_hooks.records.options import Options
from agent_hooks.records.private import Cleaner, as_json
from agent_hooks.records.pruning import prune_at_times
from agent_hooks.records.steps import StepMaker
from agent_hooks.records.trail import Trail
from agent_hooks.records.writer import LAST_PATIENCE, ChainWriter, RecordError
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError
from agent_hooks.values.wire import camel, to_json

if TYPE_CHECKING:
    from agent_hooks.records.live_export import LiveExport

# Sessions that one recorder keeps open; a resident server leaves them one after another.
_OPEN = 64
# Beginnings of lines, session ids and names of tools that are remembered.
_REMEMBERED = 256
# Seconds that the last head of a session waits for the index, while other sessions may wait for their answers.
_PATIENCE = 0.05


class Sink:
    """Writes the lines of one engine; keeps a writer for each session, and the fields that stay the same.

    `turns`: the index of the turn that is going on, by session and agent.
    """

    def __init__(self, records: Options, engine: Any) -> None:
        self.records = records
        self.engine = engine
        self.turns: dict[tuple[str, str], int] = {}
        self._directory = records.directory
        # The one that was used last is at the end.
        self._writers: dict[str, ChainWriter] = {}
        self._recent = ""
        self._names: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._heads: dict[tuple[Any, ...], bytes] = {}
        self._failing = False
        self._keyless = False
        self._pruned = False
        self._made: tuple[Cleaner, StepMaker] | None = None
        self._keyed: Keyed | None = None
        self._export: LiveExport | None = None

    def close(self) -> None:
        """Write the last heads, close the files, and end the export."""
        deadline = monotonic() + LAST_PATIENCE
        for session in list(self._writers):
            self.close_session(session, max(deadline - monotonic(), 0.0))
        export, self._export = self._export, None
        if export is not None:
            # A resident server answers other sessions meanwhile, so its process waits at its end.
            export.close(*((0.0,) if self.engine.surroundings.mode == "bridge" else ()))

    def close_session(self, session: str, patience: float = _PATIENCE) -> None:
        """Write the last head of a session's file and close it; `patience`: seconds to wait for the index."""
        writer = self._writers.pop(session, None)
        if writer is not None:
            writer.close(patience)

    def new_id(self, place: Surroundings) -> str:
        """Return an id that no other call or line has."""
        return self.writer(place).new_id()

    def call_fields(self, trail: Trail, call: Any) -> dict[str, Any]:
        """Return the fields that every line of a call has."""
        fields: dict[str, Any] = {"id": trail.id, "tool": self._name(call.tool.name)}
        if trail.parent is not None:
            fields["parent"] = trail.parent
        if self.turns:
            place = call.surroundings
            turn = self.turns.get((place.session_id, place.agent_id))
            if turn is not None:
                fields["turn"] = turn
        if turn_id := self.turn_of(call.surroundings)[0]:
            fields["turn_id"] = turn_id
        if call.tool_call_id:
            fields["client_call"] = call.tool_call_id
        native = getattr(call.tool, "native_name", "")
        if native:
            fields["native_tool"] = self._name(native)
        return fields

    def turn_of(self, place: Surroundings) -> tuple[str, str]:
        """Return the id of the turn that checkpoints are made of, and the name of its checkpoint, if there is one."""
        keeper = self.engine.keeper
        return ("", "") if keeper is None else keeper.turn_of(place)

    def call_json(self, trail: Trail, call: Any) -> bytes:
        """Return the same fields as JSON without braces; they are made once for both halves of a call."""
        made = trail.fields
        if not made:
            fields = self.call_fields(trail, call)
            made = trail.fields = as_json({camel(name): value for name, value in fields.items()})[1:-1]
        return made

    def write(self, kind: type[Line], fields: dict[str, Any] | bytes, place: Surroundings) -> str | None:
        """Write a line; return the reason when it cannot be written, which is reported once."""
        session = place.session_id
        try:
            writer = (session == self._recent and self._writers.get(session)) or self.writer(place)
            head = self._heads.get((session, place.agent_id, place.cwd, place.session_file)) or self._head(place)
            writer.write(kind, fields, head, required=kind is Decision and self.records.required)
        except RecordError as exc:
            self.report(str(exc))
            return str(exc)
        except (ValueError, TypeError, msgspec.MsgspecError):
            assert not isinstance(fields, bytes), "only names and values can fail to be JSON"
            return self._write_plainly(kind, fields, place)
        self._failing = False
        return None

    def _write_plainly(self, kind: type[Line], fields: dict[str, Any], place: Surroundings) -> str | None:
        """Write a line whose names and ids hold text that JSON cannot express, half of a surrogate pair for example."""
        plain = {name: msgspec.json.decode(to_json(value)) for name, value in fields.items()}
        try:
            self.writer(place).write(kind, plain, self._head(place))
        except RecordError as exc:
            self.report(str(exc))
            return str(exc)
        return None

    def writer(self, place: Surroundings) -> ChainWriter:
        session = place.session_id
        writer = self._writers.get(session)
        if writer is None:
            if not self._pruned:
                self._pruned = True
                prune_at_times(self._directory, self.records.days, self.records.bytes)
            while len(self._writers) >= _OPEN:
                self.close_session(next(iter(self._writers)), 0.0)
            writer = self._writers[session] = ChainWriter(self._directory, self._session(session), self._tap())
        elif session != self._recent:
            self._writers[session] = self._writers.pop(session)
        self._recent = session
        return writer

    def _session(self, session: str) -> str:
        """Return the id of a session for its lines and its file's name: a digest in the place of one with a secret."""

        def clean(id: str) -> str:
            if self.makers()[0].hides(id):
                return f"session-{sha256(id.encode('utf-8', 'surrogatepass'))[:32]}"
            return id

        return _remembered(self._sessions, session, clean)

    def _name(self, name: str) -> str:
        """Return the name of a tool without its secrets."""
        return _remembered(self._names, name, self.makers()[0].text)

    def _tap(self) -> Callable[[str, bytes], None] | None:
        """Return the function that takes each line for the export, if there is an endpoint."""
        if self.records.otlp is None:
            return None
        if self._export is None:
            # Imported here, because few people export their records.
            from agent_hooks.records.live_export import LiveExport

            self._export = LiveExport(self.records.otlp, self._directory, self._report_export)
        return self._export.take

    def _report_export(self, text: str) -> None:
        error = hook_error(None, hook="records", handler="export", event="records", outcome="continued", error=text)
        self.engine.report(error)

    def _head(self, place: Surroundings) -> bytes:
        """Return the fields that stay the same from line to line, as JSON without braces."""
        key = (place.session_id, place.agent_id, place.cwd, place.session_file)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) > _REMEMBERED:
                self._heads.clear()
            head = self._heads[key] = self._make_head(place)
        return head

    def _make_head(self, place: Surroundings) -> bytes:
        records, trust = self.records, self.records.trust
        text = self.makers()[0].text
        # The package is loaded, and `__init__` is above this room.
        own = getattr(sys.modules["agent_hooks"], "__version__", "")
        session = self._session(place.session_id)
        fields = {
            "session": session,
            "agent": text(place.agent_id),
            "client": records.client,
            "clientVersion": records.client_version,
            "version": own,
            "mode": place.mode,
            "clientSession": session if place.mode == "bridge" else "",
            "transcript": text(place.session_file or ""),
            "cwd": text(place.cwd),
            "project": text(records.project or self.engine.surroundings.cwd),
            "pid": os.getpid(),
            "trust": trust.state,
            "trustedSet": trust.trusted_set,
            "settings": trust.settings,
        }
        return to_json({name: value for name, value in fields.items() if value})[1:-1]

    def renew(self, kept: Sequence[str]) -> None:
        """Make the lines from here on of the records and the hooks as they are now; `kept`: hooks that are the same."""
        made, self._made = self._made, None
        self._heads.clear()
        if made is not None:
            self.makers()[1].take_digests(made[1], kept)

    def makers(self) -> tuple[Cleaner, StepMaker]:
        made = self._made
        if made is None:
            cleaner = Cleaner(self.records.redactor(), self.records.limit, own=bool(self.records.patterns))
            made = self._made = cleaner, StepMaker(cleaner)
        return made

    def digest(self, data: bytes, *, required: bool = False) -> str:
        """Return the keyed digest of an input; empty as long as there is no key.

        Raises `RecordError` instead where a digest is `required`.
        """
        if self._keyed is None:
            try:
                make_directory(self._directory)
                self._keyed = Keyed(load_key(self._directory))
            except StorageError as exc:
                if not self._keyless:
                    # Lines are written without a key, so a line that was written does not end this failure.
                    self._keyless = True
                    self.report(str(exc))
                if required:
                    raise RecordError(str(exc)) from None
                return ""
        return self._keyed(data)

    def report(self, text: str) -> None:
        """Report the first of several failures in a row."""
        if self._failing:
            return
        self._failing = True
        error = hook_error(None, hook="records", handler="recorder", event="records", outcome="continued", error=text)
        self.engine.report(error)


def _remembered(known: dict[str, str], text: str, make: Callable[[str], str]) -> str:
    """Return the result of `make` for a text, and remember it."""
    made = known.get(text)
    if made is None:
        if len(known) > _REMEMBERED:
            known.clear()
        made = known[text] = make(text)
    return made
