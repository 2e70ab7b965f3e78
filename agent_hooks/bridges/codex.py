"""The bridge to Codex, with the hook protocol of version 0.171.0.

Codex is strict.  It drops a whole answer for one key or value that it does not know, and for a denial without a reason,
and then it runs the tool.  So this table has nothing that Codex's own schemas do not allow.

A rewrite stands beside the word `allow`, which Codex demands for it.  Codex asks the person all the same: it holds the
new command against the person's rules, sandbox and approvals, as if the model had written it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent_hooks.bridges.base.happenings import CallAsked, CallEnded
from agent_hooks.bridges.base.installation import PROCESS, Hindrance, Power
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.command_settings import Found
from agent_hooks.bridges.tables import BLOCK, CONTEXT, DENY_CALL, MESSAGE, PERMISSION, VALUE, Layout, Row, nested
from agent_hooks.values.content import ToolOutput

# The tools whose calls have one argument only: Codex drops every other one without a word.
_COMMAND_ONLY = ("Bash", "apply_patch")
_NO_TEXT = "(no output)"
# The events whose matcher Codex ignores.
_UNMATCHED = ("PreModelRequest", "PostModelRequest", "UserPromptSubmit", "Stop", "Interrupt")
# Codex goes on after 3 seconds at these events, and after 1 second without a timeout.
_SHORT = ("SessionEnd", "Interrupt")
_SHORTEST, _LONGEST_SHORT, _USUAL = 1, 3, 600


class Codex(CommandBridge):
    """The bridge to Codex."""

    name, title, program, tested, provider = "codex", "Codex", "codex", "0.171.0", "openai"
    rewrites_by_allow = True
    reads_mark = False
    environment = ("CODEX_HOME", PROCESS)
    process_variable = PROCESS
    rows = (
        Row(
            "PreToolUse",
            "call",
            {"block": DENY_CALL, "input": nested(permissionDecision="allow", updatedInput=VALUE), **CONTEXT},
        ),
        Row("PostToolUse", "result", {"output": BLOCK, **CONTEXT}),
        Row("UserPromptSubmit", "prompt", {"block": BLOCK, **CONTEXT}),
        Row("SessionStart", "start", CONTEXT),
        Row("SessionEnd", "end", timeout=_LONGEST_SHORT),
        Row("Stop", "stop", {"go_on": BLOCK, **MESSAGE}),
        Row("SubagentStop", "stop", {"go_on": BLOCK, **MESSAGE}, always=False),
        # The turn ends too.
        Row("PreCompact", "before_compact", {"block": {"continue": False, "stopReason": VALUE}, **MESSAGE}),
        Row("PostCompact", "compact", MESSAGE),
        Row("PermissionRequest", "permission", PERMISSION),
        Row("SubagentStart", says=CONTEXT),
        Row("Interrupt", says=MESSAGE, timeout=_LONGEST_SHORT),
        Row("PreModelRequest", decides_nothing=True),
        Row("PostModelRequest", decides_nothing=True),
    )
    layout = Layout(
        files={"project": ".codex/hooks.json", "user": "{home}/hooks.json"}, home=("CODEX_HOME", "~/.codex"), first=True
    )
    # The tool `write_stdin` types into a command that runs, and no hook is called for it.
    tools = (ToolWords("Bash", "bash", stays_open=True), ToolWords("view_image", "read"))
    limits: Mapping[Power, str] = {
        "ask": "Codex takes no question from a hook, and would run the tool",
        "stop": "Codex would run a denied tool where the denial also ends the run, and goes on after a result; each "
        "later call is denied instead",
        "failure": "Codex gives hooks no exit status, and calls none after a tool that ends with an error",
    }
    gaps: Mapping[Power, str] = {
        "redact": "the output that a command gives before it ends can reach the model earlier than any hook",
        "patch": "Codex calls no hook with the result of an apply_patch that is typed into a shell",
        "block_prompt": "`codex exec` prints no reason, which only the screen of Codex has",
    }

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return that no person can be asked, because Codex takes no question from a hook."""
        return False

    def refused_rewrite(self, row: Row, event: CallAsked, wanted: Mapping[str, Any]) -> str | None:
        """Return the reason for which Codex would not take a rewrite whole; `None` if it would."""
        more = sorted(wanted.keys() - {"command"}) if event.native_name in _COMMAND_ONLY else []
        if more:
            return f"a hook gave {event.native_name} the argument {', '.join(more)}, which Codex would drop"
        return super().refused_rewrite(row, event, wanted)

    def native_result(self, event: CallEnded, output: ToolOutput) -> tuple[Any, list[str]]:
        """Return a changed result as its text; Codex would keep the old result where this text is blank."""
        return output.text if output.text.strip() else _NO_TEXT, []

    # ---- trust

    def trust_file(self, environment: Mapping[str, str]) -> str:
        """Return the path of Codex's own settings, which hold the trusted hashes."""
        return f"{environment.get('CODEX_HOME') or '~/.codex'}/config.toml"

    def trust(self, path: str, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the key and the `trusted_hash` of each entry of ours in the settings file at `path`.

        They belong into `[hooks.state."KEY"]` of the file `trust_file`.  A key holds the position of the entry, and a
        hash covers its command, so both change with the settings.
        """
        return {_key(path, found): _hash(found) for found in self.found(settings)}

    def moved_trust(self, path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the new key of each entry of another program that a group of ours has moved, by its old key."""
        old, new = self._foreign(path, before), self._foreign(path, after)
        return {
            was: now for event in old for was, now in zip(old[event], new.get(event, ()), strict=False) if was != now
        }

    def _foreign(self, path: str, settings: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the keys of other programs' entries by event, in their order, which no change of ours touches."""
        keys: dict[str, list[str]] = {}
        for found in self.entries(settings):
            if not self.is_ours(found.entry):
                keys.setdefault(found.event, []).append(_key(path, found))
        return keys

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return the settings of config.toml that keep hooks from running."""
        return [*_switched_off(found), *_disabled(found)]


def _switched_off(found: Mapping[str, Any]) -> list[Hindrance]:
    features = found.get("features")
    # The second name is an older one, which counts too.
    given = features if isinstance(features, Mapping) else {}
    off = [name for name in ("hooks", "codex_hooks") if given.get(name) is False]
    return [Hindrance(f"features.{name} is false: Codex runs no hook") for name in off]


def _disabled(found: Mapping[str, Any]) -> list[Hindrance]:
    hooks = found.get("hooks")
    state = hooks.get("state") if isinstance(hooks, Mapping) else None
    return [
        Hindrance(f'hooks.state."{key}" has enabled = false: Codex does not run this entry')
        for key, entry in (state.items() if isinstance(state, Mapping) else ())
        if isinstance(entry, Mapping) and entry.get("enabled") is False
    ]


def _key(path: str, found: Found) -> str:
    group, index = found.at
    return f"{path}:{_snake(found.event)}:{group}:{index}"


def _snake(event: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in event).lstrip("_")


def _hash(found: Found) -> str:
    """Return the hash of an entry, as Codex computes it: of the JSON with sorted keys and with the defaults set."""
    # Imported here, because an event needs no hash.
    from agent_hooks.storage.digests import sha256

    entry, matcher = found.entry, found.group.get("matcher")
    handler = {
        "type": "command",
        "command": entry["command"],
        "timeout": _effective_timeout(found),
        "async": entry.get("async", False),
    }
    if entry.get("statusMessage") is not None:
        handler["statusMessage"] = entry["statusMessage"]
    identity: dict[str, Any] = {"event_name": _snake(found.event), "hooks": [handler]}
    if matcher is not None and found.event not in _UNMATCHED:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode())}"


def _effective_timeout(found: Found) -> int:
    is_short = found.event in _SHORT
    given = found.entry.get("timeout")
    seconds = max(_SHORTEST, given) if isinstance(given, int) else _SHORTEST if is_short else _USUAL
    return min(seconds, _LONGEST_SHORT) if is_short else seconds
