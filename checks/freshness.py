"""`python -m checks.freshness [NAME…]`: compare the newest version of each agent with the tables of its bridge.

The packages come from `npm pack`, and are read, never installed or run.  Each line names an agent and what is new there:
a version, an event or a tool that no table has, or one of a table that is gone.  `freshness.toml` has the names that need
no row in a bridge, with the reasons.  The exit code is 0 all the same, because a release of another project must not stop
a change of this one.  `--strict`: it is 1 if there is a line.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent_hooks.bridges import open_bridge
from checks.environments import TESTS

LOCKS = TESTS / "clients/locks"
KNOWN = Path(__file__).with_suffix(".toml")
PATIENCE = 300  # seconds for one package
Kind = Literal["event", "tool"]


@dataclass(frozen=True)
class Listing:
    """The place of a name list in the newest package.

    `package`: the package on npm.  The agent's own package may have a version of it among its optional dependencies.
    `file`: a pattern for the path in the package.  The first file with the list is read.
    `place`: a pattern for the list, its first group; `name`: a pattern for a name in it, its first group.
    `whole`: the list has all names, so a name that is missing there is gone.
    `spelled`: returns the name as the bridge has it.
    """

    kind: Kind
    package: str
    file: str
    place: str
    name: str = r"[\"'](\w+)[\"']"
    whole: bool = True
    spelled: Callable[[str], str] = str

    def names(self, archive: Path) -> set[str]:
        """Return the names in a packed package.  Raises `FreshnessError` if the list is not found."""
        place, name = (re.compile(each.encode(), re.DOTALL) for each in (self.place, self.name))
        with tarfile.open(archive) as packed:
            for member in packed:
                path = member.name.partition("/")[2]
                if not re.fullmatch(self.file, path) or (file := packed.extractfile(member)) is None:
                    continue
                found = {each[1].decode() for part in place.finditer(file.read()) for each in name.finditer(part[1])}
                if found:
                    return {self.spelled(each) for each in found}
        raise FreshnessError(
            f"{self.file} of {self.package} has no list of {self.kind}s as before: mend its row in {__file__}"
        )


class FreshnessError(Exception):
    """A package cannot be fetched, or has another form than before."""


def _pascal(name: str) -> str:
    """Return `PreToolUse` for `pre-tool-use`."""
    return "".join(word.capitalize() for word in name.split("-"))


def _camel(name: str) -> str:
    """Return `preToolUse` for `PreToolUse`."""
    return name[0].lower() + name[1:]


_CLAUDE = "@anthropic-ai/claude-agent-sdk"
_CODEX = r"vendor/[^/]+/bin/codex"
_GEMINI = "@google/gemini-cli-core"
_QWEN = "@qwen-code/qwen-code"
_PI = "@earendil-works/pi-coding-agent"
LISTINGS: dict[str, tuple[Listing, ...]] = {
    "claude-code": (
        Listing("event", _CLAUDE, r"sdk\.d\.ts", r"HOOK_EVENTS: readonly \[(.*?)\]"),
        # The tools that a rule of permission may name.
        Listing("tool", _CLAUDE, r"sdk\.mjs", r'\[("Agent",(?:"\w+",)*"Write")\]'),
    ),
    # The program has a schema for most of its events, and no list of its tools.
    "codex": (
        Listing(
            "event",
            "@openai/codex-linux-x64",
            _CODEX,
            r'"title": ("[a-z-]+\.command\.input")',
            r'"([a-z-]+)\.',
            whole=False,
            spelled=_pascal,
        ),
    ),
    "gemini-cli": (
        Listing("event", _GEMINI, r"dist/src/hooks/types\.d\.ts", r"enum HookEventName \{(.*?)\}"),
        Listing("tool", _GEMINI, r"dist/src/tools/tool-names\.d\.ts", r"ALL_BUILTIN_TOOL_NAMES: readonly \[(.*?)\]"),
    ),
    "qwen-code": (
        Listing("event", _QWEN, r"chunks/.*\.js", r"var HookEventName = (.*?)\}\)", r'\["(\w+)"\]'),
        Listing("tool", _QWEN, r"chunks/.*\.js", r"var ToolNames = \{(.*?)\}", r': "(\w+)"'),
    ),
    # The program is compressed. The SDK's types have most events, and no tools.
    "copilot-cli": (
        Listing(
            "event",
            "@github/copilot-sdk",
            r"dist/types\.d\.ts",
            r"interface SessionHooks \{(.*?)\n\}",
            r"\bon(\w+)\?:",
            whole=False,
            spelled=_camel,
        ),
    ),
    "opencode": (
        # The events of its bus are not in this list.
        Listing(
            "event",
            "@opencode-ai/plugin",
            r"dist/index\.d\.ts",
            r"interface Hooks \{(.*?)\n\}",
            r'\n    "?([\w.]+)"?\?:',
            whole=False,
        ),
        # The tools that its screen can show.
        Listing("tool", "opencode-linux-x64", r"bin/opencode", r'new Set\(\[("bash","glob".*?)\]'),
    ),
    "pi": (
        Listing("event", _PI, r"dist/core/extensions/types\.d\.ts", r'\bon\(event: ("\w+")'),
        Listing("tool", _PI, r"dist/core/tools/index\.d\.ts", r"type ToolName = (.*?);"),
        Listing("tool", _PI, r"dist/extensions/codemode/tool\.d\.ts", r"_TOOL_NAME = (.*?);", whole=False),
        Listing("tool", _PI, r"dist/extensions/tool-search/tool\.d\.ts", r"_TOOL_NAME = (.*?);", whole=False),
    ),
    "openclaw": (
        Listing("event", "openclaw", r"dist/[^/]*\.d\.ts", r"type PluginHookName = (.*?);"),
        # The tools of its workers.
        Listing("tool", "openclaw", r"dist/[^/]*\.d\.ts", r"\bWORKER_TOOL_NAMES: readonly \[(.*?)\]", whole=False),
    ),
}


def lines_of(name: str, directory: Path) -> list[str]:
    """Return the lines about an agent; `directory`: for its packages."""
    lines = []
    try:
        ((package, locked),) = json.loads((LOCKS / name / "package.json").read_text())["dependencies"].items()
        manifest = manifest_of(pack(f"{package}@latest", directory))
    except FreshnessError as exc:
        return [f"{name}: {exc}"]
    if manifest["version"] != locked:
        lines.append(f"{name}: version {manifest['version']} is new, and the lock file has {locked}")
    archives: dict[str, Path] = {}
    for listing in LISTINGS[name]:
        try:
            if listing.package not in archives:
                wanted = manifest.get("optionalDependencies", {}).get(listing.package, "latest")
                spec = wanted.removeprefix("npm:") if wanted.startswith("npm:") else f"{listing.package}@{wanted}"
                archives[listing.package] = pack(spec, directory)
            lines += differences(name, listing, listing.names(archives[listing.package]))
        except FreshnessError as exc:
            lines.append(f"{name}: {exc}")
    return lines


def differences(name: str, listing: Listing, found: Iterable[str]) -> list[str]:
    """Return a line for each name that is new, and for each name of the bridge that is gone."""
    bridge, found = open_bridge(name), set(found)
    is_event = listing.kind == "event"
    ours = {row.name for row in bridge.describe()} if is_event else {words.theirs for words in bridge.tools}
    known = tomllib.loads(KNOWN.read_text()).get(name, {}).get(f"{listing.kind}s", {})
    without_row = {each for names in known.values() for each in names}
    gone = ours - found - without_row if listing.whole else set[str]()
    return [
        *(f"{name}: new {listing.kind} {each}" for each in sorted(found - ours - without_row)),
        *(f"{name}: {listing.kind} {each} is gone" for each in sorted(gone)),
    ]


def pack(spec: str, directory: Path) -> Path:
    """Return the archive of a package, which npm fetches without running anything.  Raises `FreshnessError`."""
    line = ["npm", "pack", spec, "--json", "--ignore-scripts", "--pack-destination", str(directory)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise FreshnessError(f"{spec} cannot be fetched: {exc}") from None
    if done.returncode:
        raise FreshnessError(f"{spec} cannot be fetched: {done.stderr.strip()}")
    return directory / str(json.loads(done.stdout)[0]["filename"])


def manifest_of(archive: Path) -> dict[str, Any]:
    """Return the `package.json` of a packed package.  Raises `FreshnessError`."""
    with tarfile.open(archive) as packed:
        file = packed.extractfile("package/package.json")
        if file is None:
            raise FreshnessError(f"{archive.name} has no package.json")
        return dict(json.load(file))


def main(arguments: Sequence[str]) -> int:
    """Print the lines of the agents, and return the exit code."""
    parser = argparse.ArgumentParser(prog="checks.freshness")
    parser.add_argument("names", nargs="*", choices=[*LISTINGS, []], default=[], metavar="NAME")
    parser.add_argument("--strict", action="store_true", help="fail if there is a line")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(2) as pool:
        lines = [
            line
            for each in pool.map(lambda name: lines_of(name, Path(directory)), given.names or LISTINGS)
            for line in each
        ]
    print("\n".join(lines) or "all agents are as the tables say")
    return 1 if lines and given.strict else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
