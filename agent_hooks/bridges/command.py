"""The engine of the bridges to agents whose hooks are commands.

Such a bridge is a table: `rows` has the kind of each event and the templates of its answers, `fields` names the fields of
the payloads, `layout` describes the settings, `tools` the vocabulary.  `CommandBridge` reads payloads, writes
replies and edits settings by these tables; a bridge overrides a method where its agent is odd.

The rules that hold for each agent:

- A reply has only the templates of its event's row, so an agent never gets a key that it does not know.
- A question, where the agent asks no person, is a denial with the text of the question.
- A rewrite that the agent would not take whole is a denial with the new input.
- Only `Verdict.allow` becomes an allow.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_hooks.bridges.base.happenings import (
    CallAsked,
    CallEnded,
    EventsReported,
    Happening,
    Part,
    PermissionAsked,
    PromptGiven,
)
from agent_hooks.bridges.base.installation import Facts
from agent_hooks.bridges.base.verdicts import NOTHING, SILENCE, Reply, Verdict
from agent_hooks.bridges.base.words import BridgeError, object_field, stays_open, text_field, to_ours, to_theirs
from agent_hooks.bridges.command_settings import CommandSettings
from agent_hooks.bridges.patch import parts_of_call
from agent_hooks.bridges.tables import MESSAGE, NO_WRAP, VALUE, Fields, Layout, Row, Template, Word, filled, our_result
from agent_hooks.errors import shown
from agent_hooks.values.content import AssistantBlock, AssistantMessage, CompactionEntry, TextContent, ToolOutput
from agent_hooks.values.events import TRIAL, AgentEnd, Event, SessionEvent, TurnStart
from agent_hooks.values.tool import NO_SCHEMA

__all__ = ["MESSAGE", "VALUE", "CommandBridge", "Fields", "Layout", "Row"]


class CommandBridge(CommandSettings, ABC):
    """A bridge made of tables: a subclass sets these attributes, and those of `Bridge` that differ.

    `title`: the agent's name, as its maker writes it.
    `program`: its command; `tested`: the version that the tables were tested with.
    `rows`: its events, in the order in which they are installed.
    `unlisted`: the templates of an event that `rows` lacks.
    `fields`, `layout`: the fields of its payloads, and the form of its settings.
    `environment`: the other variables that its methods read; those that the tables name are added.
    `here`: the variable by which a hook knows that this agent runs it; empty if there is none.
    `wrap`: the pattern of a result's text, with the words that the agent puts around it.
    `moves_on`: the reasons of a session's end after which the agent goes on in another session.
    `files`: as in `Facts`.
    `provider`: the name of the model's maker, in the messages that hooks get.
    """

    program: str
    tested: str
    rows: Sequence[Row]
    unlisted: Mapping[Word, Template] = {}
    fields: Fields = Fields()
    here: str = ""
    wrap: re.Pattern[str] = NO_WRAP
    moves_on: Sequence[str] = ("clear", "resume")
    files: tuple[str, ...] = ()
    provider: str = ""
    _rows: Mapping[str, Row] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the rows for the other rooms from the tables."""
        super().__init_subclass__(**kwargs)
        # A class in between may have no tables yet.
        if hasattr(cls, "rows"):
            cls._rows = {row.name: row for row in cls.rows}
            cls.events = tuple(row.event(cls.layout.longest, cls.timeout) for row in cls.rows)
            cls.event_field = cls.fields.event
            read = (*cls.environment, cls.here, cls.project_variable, cls.process_variable, cls.layout.home[0])
            cls.environment = tuple(dict.fromkeys(filter(None, read)))

    def command_row(self, event_name: str | None) -> Row:
        """Return the row of an event.  An event that the table lacks has the templates `unlisted`."""
        return self._rows.get(event_name or "") or Row(event_name or "", says=self.unlisted)

    # ---- in

    def decode(self, payload: object, event_name: str | None = None) -> Happening:
        """Return the happening of a payload.  Raises `BridgeError` with the wrong field and the version we know."""
        try:
            if not isinstance(payload, dict):
                raise BridgeError(f"the payload must be a JSON object, not {shown(payload)}")
            return self._decode(payload, self._name_of(payload, event_name))
        except BridgeError as exc:
            raise BridgeError(f"{exc} (agent-hooks knows the events of {self.title} {self.tested})") from None

    def _name_of(self, payload: Mapping[str, Any], event_name: str | None) -> str:
        if self.fields.event:
            return str(text_field(payload, self.fields.event))
        if not event_name:
            raise BridgeError("neither the payload nor the command of the entry names the event")
        return event_name

    def _decode(self, payload: Mapping[str, Any], name: str) -> Happening:
        row, fields = self.command_row(name), self.fields
        common: dict[str, Any] = {
            "name": name,
            "native": payload,
            "session_id": _optional(payload, fields.session),
            "parent_session": _optional(payload, fields.parent),
            "session_file": _optional(payload, fields.file),
            "cwd": _optional(payload, fields.cwd),
            "agent_id": _optional(payload, fields.agent, "main"),
            "takes_context": self._takes_context(row, payload),
            "starts": row.kind == "start",
            "leaves": row.kind == "end",
        }
        match row.kind:
            case "call":
                call = self._call(payload, fields.input)
                return CallAsked(**common, **call, input_schema=self.schema_of(call["native_name"]))
            case "permission":
                return PermissionAsked(**common, **self._call(payload, fields.asked_input))
            case "result" | "failure":
                call = self._call(payload, fields.input)
                output = self._output(row, payload)
                return CallEnded(**common, **call, output=output, duration_ms=_number(payload, fields.duration))
            case "prompt":
                return PromptGiven(**common, prompt=self.prompt_of(payload), rewritable="prompt" in row.says)
        events = self.events_of(row, payload)
        return EventsReported(**common, events=events) if events else Happening(**common)

    def _takes_context(self, row: Row, payload: Mapping[str, Any]) -> bool:
        if row.kind == "stop":
            # A text for the model after a first stop makes the agent go on.
            return bool({"context", "go_on"} & row.says.keys()) and not self._continues(payload)
        return "context" in row.says

    def _continues(self, payload: Mapping[str, Any]) -> int:
        """Return how often in a row hooks have kept the agent going; 1 where a payload holds only whether they have."""
        if not self.fields.continued:
            return 0
        value = payload.get(self.fields.continued)
        return int(value) if isinstance(value, int) else 1

    def _call(self, payload: Mapping[str, Any], key: str) -> dict[str, Any]:
        given = self.input_of(payload, key)
        native_name = text_field(payload, self.fields.tool)
        name, arguments = to_ours(self.tools, native_name, given)
        return {
            "tool_name": name,
            "tool_call_id": _optional(payload, self.fields.call, ""),
            "input": arguments,
            "native_name": native_name,
            "parts": tuple(self.parts(name, arguments)),
            "stays_open": stays_open(self.tools, native_name),
            "origin": self.origin_of(payload),
        }

    def origin_of(self, payload: Mapping[str, Any]) -> str:
        """Return the text that has a call, see `Call.origin`; empty for a call of the model."""
        return ""

    def input_of(self, payload: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return the input of a call, in the agent's words.  Raises `BridgeError`."""
        return object_field(payload, key)

    def _output(self, row: Row, payload: Mapping[str, Any]) -> ToolOutput:
        if row.kind == "failure":
            return ToolOutput(_optional(payload, self.fields.error, ""), is_error=True)
        return self.our_result(payload.get(self.fields.result))

    def schema_of(self, native_name: str) -> Mapping[str, Any]:
        """Return the schema of a tool's arguments, in our words, as far as it is known."""
        return NO_SCHEMA

    @property
    def reports_continues(self) -> bool:
        """Whether a payload tells that hooks have kept the agent going."""
        return bool(self.fields.continued)

    def prompt_of(self, payload: Mapping[str, Any]) -> str:
        """Return the text of a prompt.  Raises `BridgeError`."""
        return str(text_field(payload, self.fields.prompt))

    def parts(self, tool_name: str, input: Mapping[str, Any]) -> Sequence[Part]:
        """Return the files that a patch changes, as calls of our tools."""
        return parts_of_call(tool_name, input)

    def our_result(self, response: Any) -> ToolOutput:
        """Return a tool's response as hooks get it."""
        return our_result(response, self.wrap)

    def events_of(self, row: Row, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        """Return our events for an event that is neither a tool call nor a prompt; none if we have none for it."""
        fields = self.fields
        file = _optional(payload, fields.file)
        match row.kind:
            case "start" if (source := payload.get(fields.source)) != "compact":
                # The event after a compaction reports the start after it.
                return (SessionEvent(reason="clear" if source == "clear" else "start", session_file=file),)
            case "end" if payload.get(fields.reason) not in self.moves_on:
                return (SessionEvent(reason="shutdown", session_file=file),)
            case "before_compact":
                custom = _optional(payload, fields.instructions)
                return (SessionEvent(reason="before_compact", session_file=file, custom_instructions=custom),)
            case "compact":
                entry = CompactionEntry(
                    timestamp=datetime.now(UTC).isoformat(),
                    summary=_optional(payload, fields.summary, ""),
                    first_kept_entry_index=0,
                    tokens_before=0,
                )
                return (SessionEvent(reason="compact", session_file=file, compaction_entry=entry, from_hook=False),)
            case "stop":
                last = self.assistant_message([TextContent(_optional(payload, fields.said, ""))])
                return (AgentEnd(messages=(last,), continued=self._continues(payload)),)
        return ()

    def assistant_message(self, content: Sequence[AssistantBlock]) -> AssistantMessage:
        """Return a message of the agent's model."""
        now = int(time.time() * 1000)
        return AssistantMessage(content=tuple(content), timestamp=now, provider=self.provider, model="")

    def next_turn(self) -> TurnStart:
        """Return the start of the next turn, which the driver numbers.

        `entry_index` is the time, because the agent does not report how many entries there are.  Checkpoints need only a
        number that grows.
        """
        now = int(time.time() * 1000)
        return TurnStart(turn_index=0, timestamp=now, entry_index=now)

    # ---- out

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the reply, which is exactly one JSON object, of the templates of the event's row."""
        if answer == NOTHING:
            return SILENCE
        row = self.command_row(event.name)
        words, more = self._decision(row, event, answer)
        messages = [*answer.messages, *_unsayable_block(row, words)]
        if answer.stop is not None and "stop" in row.says:
            words["stop"] = answer.stop
        elif answer.stop is not None and answer.block is None:
            messages.append(f"{answer.stop}; each later call is denied until the next prompt")
        context = [*answer.context, *more]
        takes = event.takes_context or (answer.go_on is not None and row.kind == "stop")
        if context and takes and "context" in row.says:
            words["context"] = "\n\n".join(context)
        elif context and takes and "go_on" in row.says:
            words["go_on"] = "\n\n".join([*filter(None, [answer.go_on]), *context])
        else:
            messages += [f"not given to the model, because {event.name} takes no text now: {text}" for text in context]
        told: dict[Word, Any] = {"message": "\n".join(messages)} if messages else {}
        return self._reply(row, told | words)

    def _reply(self, row: Row, words: Mapping[Word, Any]) -> Reply:
        answer = filled(row.says, row.name, words)
        return Reply.of(answer) if answer else SILENCE

    def _decision(self, row: Row, event: Happening, answer: Verdict) -> tuple[dict[Word, Any], list[str]]:
        """Return the words of the decision, and the texts that become context."""
        match event:
            case CallAsked():
                return self._about_call(row, event, answer), []
            case CallEnded() if answer.output is not None:
                return self._about_result(row, event, answer.output)
            case _ if answer.block is not None:
                return {"block": answer.block}, []
            case PermissionAsked() if answer.allow and answer.ask is None:
                return {"allow": True}, []
            case PromptGiven() if answer.prompt is not None:
                return {"prompt": answer.prompt}, []
            case EventsReported() if answer.go_on is not None and row.kind == "stop":
                return {"go_on": answer.go_on}, []
        return {}, []

    def _about_call(self, row: Row, event: CallAsked, answer: Verdict) -> dict[Word, Any]:
        block = self._denied(row, event, answer) if answer.block is None else answer.block
        if block is not None:
            return {"block": block}
        words: dict[Word, Any] = {}
        if answer.input is not None:
            words["input"] = self.their_input(event, answer.input)
        # The decision comes last, so that its keys win over those of a rewrite.
        if answer.ask is not None:
            words["ask"] = answer.ask
        elif answer.allow:
            words["allow"] = True
        return words

    def _denied(self, row: Row, event: CallAsked, answer: Verdict) -> str | None:
        """Return the reason for denying a call, where the agent would not take the answer; else `None`."""
        if answer.ask is not None and "ask" not in row.says:
            return answer.ask
        if answer.input is None:
            return None
        wanted = to_theirs(self.tools, event.native_name, answer.input)
        reason = self.refused_rewrite(row, event, wanted)
        call = f"{event.native_name} {json.dumps(wanted, ensure_ascii=False)}"
        return None if reason is None else f"{reason}; call this instead: {call}"

    def refused_rewrite(self, row: Row, event: CallAsked, wanted: Mapping[str, Any]) -> str | None:
        """Return the reason for which the agent would not take a rewrite whole; `None` if it would.

        `wanted`: the new input, in the agent's words.
        """
        if "input" not in row.says:
            return f"a hook changed this call, and {self.title} takes no changed call from a hook"
        gone = sorted(self.input_of(event.native, self.fields.input).keys() - wanted.keys())
        if self.merges and gone:
            return f"a hook took {', '.join(gone)} away, which {self.title} would put back"
        return None

    def _about_result(self, row: Row, event: CallEnded, output: ToolOutput) -> tuple[dict[Word, Any], list[str]]:
        if "output" not in row.says:
            return {}, [output.text]
        native, rest = self.native_result(event, output)
        return ({} if native is None else {"output": native}), rest

    def their_input(self, event: CallAsked, input: Mapping[str, Any]) -> Any:
        """Return an input of ours as the agent takes it."""
        return to_theirs(self.tools, event.native_name, input)

    def with_input(self, event: CallAsked, input: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a call with another input, which is in our words."""
        return {**event.native, self.fields.input: self.their_input(event, input)}

    def native_result(self, event: CallEnded, output: ToolOutput) -> tuple[Any, list[str]]:
        """Return a changed result as the agent takes it, by default its text, and the texts that have no place there."""
        return output.text, []

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return a denial for a gate and for an unknown event; the start of a session shows the reason to the person."""
        row = self.command_row(event_name) if event_name else next(row for row in self.rows if row.kind == "call")
        if row.kind in ("call", "prompt"):
            return self._reply(row, {"block": reason})
        return self._reply(row, {"message": reason} if row.kind == "start" else {})

    # ---- the agent

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Return whether this agent runs us, and not another agent that reads its settings."""
        return not self.here or bool(environment.get(self.here))

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return the facts for a check of an installation, with a sample call of the agent's shell."""
        fields = self.fields
        gate = next(row.name for row in self.rows if row.kind == "call")
        shell = next((words.theirs for words in self.tools if words.ours == "bash"), "bash")
        sample: dict[str, Any] = {
            fields.event: gate,
            fields.session: TRIAL,
            fields.file: "",
            fields.cwd: project,
            fields.tool: shell,
            fields.input: to_theirs(self.tools, shell, {"command": "true"}),
            fields.call: TRIAL,
        }
        known = {self.here: "1", self.project_variable: project}
        return Facts(
            program=self.program,
            tested=self.tested,
            files=self.files,
            environment={name: value for name, value in known.items() if name},
            sample={key: value for key, value in sample.items() if key},
            event=gate,
            session_field=fields.session,
        )


def _unsayable_block(row: Row, words: Mapping[Word, Any]) -> list[str]:
    """Return a message to the person for a block of an event that the agent lets no hook stop."""
    if "block" not in words or "block" in row.says:
        return []
    return [f"{row.name} goes on, because this agent lets no hook stop it: {words['block']}"]


def _optional(payload: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """Return a text of a payload, or the default if there is none or the field has no name."""
    value = payload.get(key) if key else None
    if value is None:
        return default
    # Each event comes here many times, and nearly all values are texts.
    return value if isinstance(value, str) else text_field(payload, key)


def _number(payload: Mapping[str, Any], key: str) -> float | None:
    value = payload.get(key) if key else None
    return value if isinstance(value, int | float) else None
