"""The facts about settings: the protection that they loosen, the hooks that they name, the tools that they rewrite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_hooks.trust.fact import Fact, shortened

_YAML = "tag:yaml.org,2002:"
# The most bytes of a YAML file that are read; its reader takes seconds for each MiB.
_MOST_YAML = 1 << 20
# The most nodes of a YAML file that are read; an alias can make a short file very large.
_MOST_NODES = 10_000


def settings_facts(data: bytes) -> list[Fact]:
    """Return the facts about the text of a `settings.json`; raises nothing."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        return [Fact("unknown", f"all of it: it is not JSON ({shortened(str(exc))})")]
    if not isinstance(found, dict):
        return [Fact("unknown", "all of it: it is not a JSON object")]
    return [*_named_hooks(found), *_limits(found), *_redaction(found), *_checkpoints(found), *_guards(found)]


def _named_hooks(found: dict[str, Any]) -> Iterator[Fact]:
    hooks = found.get("hooks", [])
    for each in hooks if isinstance(hooks, list) else [hooks]:
        yield Fact("names", shortened(str(each)))


def _limits(found: dict[str, Any]) -> Iterator[Fact]:
    for key, gates in (("hookTimeout", "hooks"), ("toolCallTimeout", "gates")):
        if key in found:
            value = found[key]
            limit = "without a limit" if value is None else f"up to {shortened(str(value))} ms"
            yield Fact("loosens", f"{key}: {gates} may take time {limit}")
    for key, does in (
        ("knownTools", "no matcher of these tools is reported as a mistake"),
        ("trust", "counts in the person's own settings only"),
    ):
        if key in found:
            yield Fact("loosens", f"{key}: {does}: {shortened(str(found[key]))}")


def _redaction(found: dict[str, Any]) -> Iterator[Fact]:
    section = found.get("redaction", {})
    if not isinstance(section, dict):
        yield Fact("unknown", "redaction, which is no JSON object")
        return
    if section.get("enabled", True) is not True:
        yield Fact("loosens", "redaction.enabled: secrets in results are not hidden")
    if section.get("reportOnly", False) is not False:
        yield Fact("loosens", "redaction.reportOnly: secrets in results are reported, and not hidden")
    for each in _list(section, "disabled"):
        yield Fact("loosens", f"redaction.disabled: secrets of the kind {shortened(str(each))} are not hidden")
    if section.get("patterns"):
        yield Fact("loosens", "redaction.patterns: patterns of the project replace yours of the same name")


def _checkpoints(found: dict[str, Any]) -> Iterator[Fact]:
    section = found.get("checkpoints", {})
    if not isinstance(section, dict):
        yield Fact("unknown", "checkpoints, because it is not a JSON object")
    elif section.get("enabled", True) is not True:
        yield Fact("loosens", "checkpoints.enabled: files are not saved, so undo brings nothing back")


def _guards(found: dict[str, Any]) -> Iterator[Fact]:
    section = found.get("guards", {})
    if not isinstance(section, dict):
        yield Fact("unknown", "guards, which is no JSON object")
        return
    for each in _list(section, "disabled"):
        yield Fact("loosens", f"guards.disabled: the guard {shortened(str(each))} is switched off")
    for each in _list(section, "exceptions"):
        rule = each.get("id") if isinstance(each, dict) else each
        pattern = each.get("pattern") if isinstance(each, dict) else None
        calls = "every call" if pattern is None else f"calls that fit {pattern}"
        yield Fact("loosens", shortened(f"guards.exceptions: the rule {rule} lets {calls} pass"))
    if "level" in section:
        yield Fact("loosens", f"guards.level: {shortened(str(section['level']))} counts in place of yours")
    if "undecidable" in section:
        value = shortened(str(section["undecidable"]))
        yield Fact("loosens", f"guards.undecidable: {value}, in place of yours, when a guard cannot decide")


def _list(section: dict[str, Any], key: str) -> list[Any]:
    found = section.get(key, [])
    return found if isinstance(found, list) else [found]


def intercept_facts(data: bytes) -> list[Fact]:
    """Return the facts about the text of a `command_intercept.yaml`; raises nothing."""
    if len(data) > _MOST_YAML:
        return [Fact("unknown", "all of it: it is too large to be read")]
    # Imported here, because few processes show facts.
    import yaml

    try:
        node = yaml.SafeLoader(data).get_single_node()
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        return [Fact("unknown", f"all of it: it is not YAML ({shortened(' '.join(str(exc).split()))})")]
    try:
        return list(_intercept(node))
    except _TooManyError:
        return [Fact("unknown", "all of it: it has too many entries")]


class _TooManyError(Exception):
    """A YAML file has too many entries to be shown."""


def _intercept(node: Any) -> Iterator[Fact]:
    for key, value, line in _entries(node):
        if key == "enabled" and not _is(value, "true"):
            yield Fact("loosens", "enabled: no transformer is active, yours included", (line,))
        elif key == "tools":
            for tool, section, _ in _entries(value):
                yield from _tool(tool, section)


def _tool(tool: str, section: Any) -> Iterator[Fact]:
    for key, value, line in _entries(section):
        if key == "auto_allow" and not _is(value, "false"):
            yield Fact("loosens", f"auto_allow: calls of {tool} need no permission of the client", (line,))
        elif key == "enabled" and not _is(value, "true"):
            yield Fact("loosens", f"enabled: no transformer of {tool} is active, yours included", (line,))
        elif key == "transformers":
            for step in value.value if value.id == "sequence" else []:
                names = [each.value for name, each, _ in _entries(step) if name == "name"]
                text = f"{tool} by {shortened(str(names[0]))}" if names else tool
                yield Fact("rewrites", text, (line,))


def _is(node: Any, word: str) -> bool:
    return node.tag == f"{_YAML}bool" and str(node.value).lower() == word


def _entries(node: Any) -> list[tuple[str, Any, int]]:
    """Return the keys, values and lines of a mapping; none for anything else."""
    if node is None or node.id != "mapping":
        return []
    if len(node.value) > _MOST_NODES:
        raise _TooManyError
    return [
        (shortened(str(key.value)) if key.id == "scalar" else "…", value, key.start_mark.line + 1)
        for key, value in node.value
    ]
