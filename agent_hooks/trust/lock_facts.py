"""The facts about the lock file of a hook: each package with its version, and where it comes from."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from agent_hooks.trust.fact import Fact, shortened


def lock_facts(data: bytes) -> Iterator[Fact]:
    """Yield the packages that a lock file names; raises nothing."""
    try:
        packages = tomllib.loads(data.decode()).get("package", [])
    except (ValueError, RecursionError):
        yield Fact("unknown", "its packages: it is no TOML")
        return
    for each in packages if isinstance(packages, list) else [packages]:
        yield Fact("needs", shortened(_described(each), 200))


def _described(package: Any) -> str:
    if not isinstance(package, dict):
        return str(package)
    source = package.get("source")
    places = [str(each) for each in source.values()] if isinstance(source, dict) else [str(source)]
    return f"{package.get('name')} {package.get('version', '')} from {', '.join(places)} (lock file)"
