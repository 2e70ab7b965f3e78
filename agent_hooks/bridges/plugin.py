"""The engine of the bridges to agents that call hooks in their own process: a plugin sends each event to the server.

A payload is `{hook, event, session, parent, directory}`: the hook's name, the event as the agent gave it, the ids of the
session and of the session that started it as a sub-agent, and the directory where the agent works.

An answer holds operations, which the plugin carries out:

- `throw`: raise an error with this text; `return`: return this value to the agent.
- `assign`: put these values into the event's objects, which stay the same objects.
- `ask`: ask the person, with a `title` and a `message`; `no`: the operations for any answer but yes.
- `prompt`: let the agent go on with this text.
- `later`: keep this text for the model; the payload of the session's next result or prompt holds it, as `later`.
- `stop`: end the run, for this reason.
- `notes`: texts for the person.

An event of a stop may have `final`, the reason why the agent cannot go on, as the sentence after "because".

The tables are those of the command engine: `fields` names the fields of `event`, and a row's templates are the operations
that the agent takes at that hook.
"""

from __future__ import annotations

import json
import posixpath
from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, Happening, PromptGiven
from agent_hooks.bridges.base.installation import PROCESS, Address, Facts, Installed
from agent_hooks.bridges.base.verdicts import SILENCE, Reply, Verdict, whole
from agent_hooks.bridges.base.words import BridgeError, object_field, text_field
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.tables import VALUE, Fields, Row, Templates, Word, filled
from agent_hooks.errors import shown
from agent_hooks.values.content import ContentBlock, TextContent, ToolOutput
from agent_hooks.values.events import TRIAL


class PluginSettings(Bridge, ABC):
    """A bridge whose settings name the plugin in a list of paths, as data: the text is the business of `installs`.

    `listed`: the path of this list in the settings.
    `scheme`: the text before the plugin's path there.
    """

    listed: tuple[str, ...]
    scheme: str = ""

    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the settings with the plugin's path; `command` is this path alone.  Raises `BridgeError`.

        A plugin gets all events of its bridge, so `events` is not used.
        """
        path = f"{self.scheme}{command[-1]}"
        found = self._list(settings)
        ours = [each for each in found if self._is_ours(each)]
        if ours == [path]:
            return self.with_more(settings)
        kept = [each for each in found if each not in ours]
        return self.with_more(_with(settings, self.listed, [*kept, path]))

    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without the plugin's path, and without a list that held nothing else."""
        found = self._list(settings)
        kept = [each for each in found if not self._is_ours(each)]
        settings = self.without_more(settings)
        return _with(settings, self.listed, kept) if len(kept) < len(found) else dict(settings)

    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return an entry for each event, with the plugin's path as its command.  Settings of a wrong form have none."""
        try:
            found = self._list(settings)
        except BridgeError:
            return []
        path = next((each.removeprefix(self.scheme) for each in found if self._is_ours(each)), None)
        return [] if path is None else [Installed(row.name, (path,), fails_closed=True) for row in self.describe()]

    def with_more(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with all that the agent needs beside the path, by default nothing."""
        return dict(settings)

    def without_more(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without all that `with_more` adds."""
        return dict(settings)

    def _list(self, settings: Mapping[str, Any]) -> list[Any]:
        value: Any = settings
        for number, key in enumerate(self.listed):
            if not isinstance(value, Mapping):
                raise BridgeError(f"{'.'.join(self.listed[:number])} must be an object, not {shown(value)}")
            value = value.get(key, [] if key == self.listed[-1] else {})
        if not isinstance(value, list):
            raise BridgeError(f"{'.'.join(self.listed)} must be a list, not {shown(value)}")
        return value

    def _is_ours(self, entry: Any) -> bool:
        name = posixpath.basename(entry) if isinstance(entry, str) else ""
        return name == f"agent-hooks-{self.name}.mjs"


def _with(settings: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return settings with a value at a path; an empty value takes its key away, and so does an object left empty."""
    key, *rest = path
    inner = _with(settings.get(key, {}), rest, value) if rest else value
    if inner:
        return {**settings, key: inner}
    return {each: there for each, there in settings.items() if each != key}


NOTES: Templates = {"message": {"notes": {"message": VALUE}}}
"""The template of a message to the person."""
LATER: Templates = {"context": {"later": VALUE}}
"""The template of a text for the model where the agent takes one only with the next result or prompt."""
END: Templates = {"stop": {"stop": VALUE, "notes": {"stop": VALUE}}}
"""The template of the end of a run; the person gets the reason."""
DIRECTORY, ATTENDED = "AGENT_HOOKS_PROJECT", "AGENT_HOOKS_ATTENDED"
"""The variables that a plugin sends with each event beside `PROCESS`: the project, and whether a person is there."""


class PluginFields(Fields, frozen=True, kw_only=True):
    """The names of the fields of `event` in a payload; without a name, the agent's event does not hold the fact.

    The payload holds the event's name, the session, the sub-agent and the directory beside `event`.
    """

    event: str = "hook"
    session: str = ""
    file: str = ""
    cwd: str = ""
    agent: str = ""
    duration: str = ""
    source: str = ""
    reason: str = ""
    summary: str = ""
    instructions: str = ""


class PluginBridge(PluginSettings, CommandBridge, ABC):
    """A bridge to an agent with a plugin, made of tables; `fields` is a `PluginFields`."""

    environment = (DIRECTORY, PROCESS, ATTENDED)
    project_variable = DIRECTORY
    process_variable = PROCESS

    # ---- in

    def _name_of(self, payload: Mapping[str, Any], event_name: str | None) -> str:
        return str(text_field(payload, "hook"))

    def _decode(self, payload: Mapping[str, Any], name: str) -> Happening:
        session, parent = text_field(payload, "session", None), text_field(payload, "parent", None)
        happening = super()._decode(object_field(payload, "event"), name)
        if isinstance(happening, PromptGiven):
            happening = replace(happening, rewritable="prompt" in self.command_row(name).says)
        return replace(
            happening,
            native=payload,
            # The calls of a sub-agent belong to the session that started it.
            session_id=parent or session,
            agent_id=session if parent and session else "main",
            cwd=text_field(payload, "directory", None),
        )

    def _takes_context(self, row: Row, payload: Mapping[str, Any]) -> bool:
        if row.kind == "stop" and payload.get("final"):
            return False
        # A text becomes a part of the result or of the prompt.
        return self._takes_later(row) or super()._takes_context(row, payload)

    def _takes_later(self, row: Row) -> bool:
        """Return whether the answer can hold a text that an earlier answer has let the plugin keep."""
        return (row.kind == "result" and "output" in row.says) or (
            row.kind == "prompt" and bool({"prompt", "context"} & row.says.keys())
        )

    def gives_later(self) -> Sequence[str]:
        """Return the names of the events whose payloads hold the text that the plugin has kept."""
        return [row.name for row in self.rows if self._takes_later(row)]

    # ---- out

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the operations for the plugin, of the templates of the event's row."""
        row = self.command_row(event.name)
        says = row.says
        if answer.go_on is not None and (reason := event.native["event"].get("final")):
            text = f"the agent stops here, because {reason}; a hook wants it to go on: {answer.go_on}"
            answer = replace(answer, go_on=None, messages=(*answer.messages, text))
        if self._takes_later(row) and (later := text_field(event.native, "later", "")):
            answer = replace(answer, context=(later, *answer.context))
        if answer.context and answer.block is None:
            if isinstance(event, CallEnded) and "output" in says:
                output = answer.output or event.output
                content = [*output.content, *map(TextContent, answer.context)]
                answer = replace(answer, output=ToolOutput(content, output.details, output.is_error), context=())
            elif isinstance(event, PromptGiven) and "prompt" in says:
                text = "\n\n".join([event.prompt if answer.prompt is None else answer.prompt, *answer.context])
                answer = replace(answer, prompt=text, context=())
        return super().encode(event, answer)

    def _reply(self, row: Row, words: Mapping[Word, Any]) -> Reply:
        # JavaScript reads half of a surrogate pair in JSON, so the input that a hook has rewritten keeps its own.
        texts = {word: value if word == "input" else whole(value) for word, value in words.items()}
        answer = filled(row.says, row.name, texts)
        return Reply(json.dumps(answer, allow_nan=False) + "\n") if answer else SILENCE

    def _decision(self, row: Row, event: Happening, answer: Verdict) -> tuple[dict[Word, Any], list[str]]:
        if isinstance(event, PromptGiven) and answer.prompt is not None and answer.block is None:
            return {"prompt": self.their_prompt(event, answer.prompt)}, []
        return super()._decision(row, event, answer)

    def _about_call(self, row: Row, event: CallAsked, answer: Verdict) -> dict[Word, Any]:
        words = super()._about_call(row, event, answer)
        if "ask" in words:
            words["ask"] = self.their_question(row, words["ask"])
        return words

    def _denied(self, row: Row, event: CallAsked, answer: Verdict) -> str | None:
        return answer.ask if answer.ask is not None and "ask" not in row.says else None

    def their_question(self, row: Row, question: str) -> Any:
        """Return a question as the agent takes it, by default with the operations for any answer but yes."""
        title, _, message = question.partition("\n")
        no = filled(row.says, row.name, {"block": f"the person did not allow it: {question}"})
        return {"title": title, "message": message, "no": no}

    def their_prompt(self, event: PromptGiven, text: str) -> Any:
        """Return another prompt as the agent takes it, by default its text."""
        return text

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return a denial for a gate and for an unknown event; for any other event, a message to the person."""
        known = event_name in self._rows
        row = self.command_row(event_name) if known else next(row for row in self.rows if row.kind == "call")
        words: dict[Word, Any] = {"block": reason} if row.kind in ("call", "prompt") else {"message": reason}
        return self._reply(row, words)

    # ---- the agent

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return whether a person is at the agent, as the plugin found it."""
        return environment.get(ATTENDED) == "1"

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return the facts for a check of an installation, with a sample call of the agent's shell."""
        facts = super().facts(project, environment)
        event = {key: value for key, value in facts.sample.items() if key != self.fields.event}
        sample = {"hook": facts.event, "event": event, "session": TRIAL, "parent": None, "directory": project}
        return replace(facts, environment={DIRECTORY: project}, sample=sample, session_field="session")


def their_block(block: ContentBlock) -> dict[str, Any]:
    """Return a content block in the form that these agents share with the Model Context Protocol."""
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    return {"type": "image", "data": block.data, "mimeType": block.mime_type}
