"""The formats of settings files: each reads a text, and edits it so that all other places keep their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Format = Literal["json", "jsonc", "json5", "toml"]
"""`jsonc` has comments and commas behind the last member; `json5` has single quotes and bare keys too."""

NAMES: Mapping[Format, str] = {"json": "JSON", "jsonc": "JSON with comments", "json5": "JSON5", "toml": "TOML"}
"""The name of each format in an error."""


def parse(text: str, format: Format = "json") -> Any:
    """Return the value of a text, an empty object for an empty text.  Raises `ValueError` or `RecursionError`."""
    if format == "toml":
        # Imported here, because most agents have no settings in TOML.
        from agent_hooks.installs import toml_text

        return toml_text.parse(text)
    from agent_hooks.installs import json_text

    return json_text.parse(text, format)


def edited(text: str, new: dict[str, Any], format: Format = "json") -> str:
    """Return `text` with the value `new`; the members that do not change keep their text.

    Raises `ValueError` or `RecursionError` for a text that cannot be edited.
    """
    if format == "toml":
        from agent_hooks.installs import toml_text

        return toml_text.edited(text, new)
    from agent_hooks.installs import json_text

    return json_text.edited(text, new, format)
