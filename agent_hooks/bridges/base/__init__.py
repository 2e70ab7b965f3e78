"""The base class of bridges: a codec between another agent's hook protocol and our events, which does no I/O.

`decode` turns a payload into a `Happening`.  `driver` takes the happening through our hooks and returns a `Verdict`.
`encode` turns the verdict into a `Reply`.  Only the bridge knows the other agent's field names.  The page docs/bridges.md
shows how to write one.

Modules of this folder hold the values that a bridge takes and returns: `happenings`, `verdicts`, `words` (tool
names and payload fields) and `installation` (the powers of hooks, and the agent's settings).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from agent_hooks.bridges.base.happenings import Call, CallEnded, Happening, Part
from agent_hooks.bridges.base.installation import Address, EventRow, Facts, Hindrance, Installed, Power
from agent_hooks.bridges.base.verdicts import Reply, Verdict
from agent_hooks.bridges.base.words import BridgeError, ToolWords
from agent_hooks.errors import shown

__all__ = ["Bridge", "ToolWords", "Verdict"]

_LONGEST = 4096
"""The number of characters in the longest id or directory.  Linux takes no longer path."""


class Bridge(ABC):
    """The base class of all bridges: a bridge defines the abstract methods, and overrides each default that differs.

    `name`: the agent's name on the command line.
    `events`: the agent's events, in the order in which they are installed.
    `tools`: the vocabulary of its tools.
    `environment`: the variables that the methods read, which the agent sets.
    `project_variable`: the variable with the directory in which the agent was started; empty if no variable has it.
    `process_variable`: the variable with the id of the agent's process; empty if no variable has it.
    `timeout`: seconds that the agent waits for a hook command whose row states no timeout.
    `limits`: the powers that the agent does not let hooks have, each with the reason, as the sentence after "because".
    `gaps`: the powers that hooks have with one exception, each with the exception, as the sentence after "except that".
    `settings_format`: the format of its settings files.
    `reads_mark`: the agent reads settings that begin with a byte-order mark.
    `settings_names`: the names that the person's settings file can have in its directory; the agent lets the last one of
    those that exist count.  Empty if the file has one name.
    `reads`: the bridges whose entries this agent runs too, each with the names of the settings files that it reads.
    `plugin`: the file of `server/plugins` that the agent loads into its own process; empty if the agent runs a command.
    `is_untried`: the bridge was written from the agent's documents, and no run of the agent has tried it.
    `event_field`: the field of a payload that holds the event's name; empty if payloads do not name their event.
    `stop_limit`: how often in a row the agent itself lets hooks keep it going; `None` if it never ends that.
    `merges`: the agent merges a rewritten input into the old one, so that no argument can be taken away.
    `rewrites_by_allow`: the agent takes a rewrite only beside the word that also allows a call; the bridge knows that the
    agent asks the person all the same.
    `headless`: the arguments with which the agent's program runs without a person, for an agent that waits for ever for
    an answer then; `None` if it answers such a question itself, or `is_attended` knows.
    `returns_continue`: the agent reports the text with which a hook keeps it going as a prompt of the person.
    `mod`: the folder of `plugins` with the mod that asks before all others, for an agent whose mods can overrule hooks.
    `mod_name`: the name of that mod for the agent.
    `mod_keys`: the settings keys for directories with plugins, for plugins to load, and for plugins to load first.
    `managed`: the paths of the settings that an administrator writes.
    `seat`: the variables that a mod in the agent's process sends, because only the hooks have them.
    `unasked`: its tools that run without asking any gate, although it reports their results; no result of theirs is an
    alarm.
    """

    name: str
    events: Sequence[EventRow]
    tools: Sequence[ToolWords] = ()
    environment: Sequence[str] = ()
    project_variable: str = ""
    process_variable: str = ""
    timeout: int = 600
    limits: Mapping[Power, str] = {}
    gaps: Mapping[Power, str] = {}
    settings_format: Literal["json", "jsonc", "json5"] = "json"
    reads_mark: bool = True
    settings_names: Sequence[str] = ()
    reads: Mapping[str, Sequence[str]] = {}
    plugin: str = ""
    mod: str = ""
    mod_name: str = ""
    mod_keys: tuple[str, str, str] = ("", "", "")
    managed: Sequence[str] = ()
    seat: Mapping[str, str] = {}
    is_untried: bool = False
    event_field: str = ""
    stop_limit: int | None = None
    merges: bool = False
    rewrites_by_allow: bool = False
    headless: tuple[str, ...] | None = None
    returns_continue: bool = False
    unasked: Collection[str] = ()

    @abstractmethod
    def decode(self, payload: object, event_name: str | None = None) -> Happening:
        """Return the happening of a payload.  Raises `BridgeError`, which names the wrong field.

        `event_name`: the event that the agent's entry names, for a payload that names none.
        """

    @abstractmethod
    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the reply to print.  A block overrides everything else, and only `answer.allow` becomes an allow."""

    @abstractmethod
    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return the reply for a failure of ours: a denial for a gate and for an unknown event, else silence."""

    @property
    def reports_continues(self) -> bool:
        """Whether the agent reports that hooks have kept it going, so that `AgentEnd.continued` is not 0."""
        return True

    def parts(self, tool_name: str, input: Mapping[str, Any]) -> Sequence[Part]:
        """Return the calls of our tools that a call amounts to, beside itself; both arguments are in our words.

        `decode` sets `Call.parts` to the same.  This is called again when a hook has rewritten the input.
        """
        return ()

    def describe(self) -> Sequence[EventRow]:
        """Return the events, in the order in which they are installed."""
        return self.events

    def decode_as(self, event_name: str | None, payload: object) -> Happening:
        """Return the happening of a payload for the event that the agent's entry names, if it names one.

        Raises `BridgeError` for a wrong payload, and for one of another event where the entry is that of a gate: the
        agent waits for a gate's answer, and takes any other answer for an approval.
        """
        happening = self.decode(payload, event_name)
        _check_names(happening)
        if happening.name != event_name and self.row(event_name).gate:
            raise BridgeError(f"the agent asks about {event_name}, but the payload is that of {shown(happening.name)}")
        return happening

    def name_in(self, raw: bytes) -> str | None:
        """Return the event's name in the text of a payload that may be broken; `None` without one."""
        # Imported here, because most entries name their event.
        import re

        field = re.escape(self.event_field.encode())
        found = re.search(rb'"%s"\s*:\s*"(\w+)"' % field, raw) if field else None
        return found[1].decode() if found else None

    def gives_later(self) -> Sequence[str]:
        """Return the events whose payloads hold a text for the model that a plugin has kept since an earlier answer."""
        return ()

    def row(self, event_name: str | None) -> EventRow:
        """Return the row of an event.  An unknown event has a row of defaults."""
        return next((row for row in self.describe() if row.name == event_name), EventRow(event_name or ""))

    def seated(self, settings: Mapping[str, Any], directory: str) -> dict[str, Any]:
        """Return the user's settings in which the agent loads the mod in a directory before all others."""
        return dict(settings)

    def unseated(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the user's settings without that mod."""
        return dict(settings)

    def unkeyed(self, settings: Mapping[str, Any]) -> str:
        """Return the name of the repository's plugin, which judges nothing, or an empty text without it."""
        return ""

    @abstractmethod
    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the paths of the settings files `local`, `project` and `user`.

        The first two are relative to the project's directory: this person's own file there, and the shared one.
        """

    def directory(self, environment: Mapping[str, str]) -> str:
        """Return the directory of the person's settings, which exists where the agent has been used; `~` is the home."""
        return self.settings_files(environment)["user"].rpartition("/")[0]

    @abstractmethod
    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the other agent's settings with our entries for `events`.

        `command`: the command line of an entry, without the event's name, which comes after it.
        `address`: post the events that decide nothing to it, if the agent can do that.

        Earlier entries of ours are brought up to date in their place, and nothing else changes.  Raises `BridgeError`.
        """

    @abstractmethod
    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without our entries.  Raises `BridgeError`."""

    @abstractmethod
    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return our entries in the settings.  Settings of a wrong form have none."""

    @abstractmethod
    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return the facts for a check of an installation.  `project`: an absolute path."""

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return the settings that keep hooks from running, in one settings file or one of `facts().files`.

        `found`: the file's content.  `posted`: the URLs of the entries that post.
        """
        return ()

    def trust_file(self, environment: Mapping[str, str]) -> str | None:
        """Return the path of the file in which the agent notes the entries that it trusts; `None` without such a file."""
        return None

    def trust(self, path: str, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the key and the hash by which the agent trusts each entry of ours in the settings file at `path`.

        `path`: absolute.  The directory of the person's own file must be a real path, because the agent resolves it.
        """
        return {}

    def moved_trust(self, path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the new key of each entry of another program whose key has changed, by its old key.

        `before`, `after`: the settings in the file at `path`, without and with a change of our entries.  The agent
        trusts such an entry no more until its hash stands under the new key.
        """
        return {}

    def variables(self, settings: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the environment variables that a settings file sets for the commands of hooks."""
        return ()

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Return whether this agent runs us, and not another agent that reads its settings."""
        return True

    def knows(self, payload: object) -> bool:
        """Return whether a payload has the form of this agent, and not that of the agent whose entries it runs too."""
        return True

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return whether a person is at the agent to answer a question."""
        return True


def _check_names(happening: Happening) -> None:
    """Raise `BridgeError` for a directory or an id that is too long to be one, and for a call without a tool's name."""
    named = {"session id": happening.session_id, "working directory": happening.cwd, "agent id": happening.agent_id}
    if isinstance(happening, Call):
        named["call id"] = happening.tool_call_id
        if not happening.native_name.strip() and not isinstance(happening, CallEnded):
            raise BridgeError("the call names no tool")
    for what, text in named.items():
        if text is not None and len(text) > _LONGEST:
            raise BridgeError(f"the {what} has {len(text)} characters, more than {_LONGEST}")
