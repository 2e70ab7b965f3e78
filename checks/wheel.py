"""A hook of the build: the wheel takes the man page along, if `make man` has made it; `make wheel` does so first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found]  # builds only

PAGE = "share/man/man1/agent-hooks.1"


class ManPage(BuildHookInterface):  # type: ignore[misc]  # its class is not known here
    """Adds the page to the files that are installed beside the directory of the program."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add it to a wheel; an editable installation has none."""
        page = Path(self.root, PAGE)
        if version == "standard" and page.is_file():
            build_data["shared_data"][str(page)] = PAGE
