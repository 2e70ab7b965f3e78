"""Transformers: configured rewrites of a tool's input, and filters of its output.

To add a built-in transformer:

1. Write a module here with `transform(tool_input, config)`, and if needed the other names of `base.Transformer`.
2. Add the module's name to `TRANSFORMERS`.  Configuration, error texts and the command line read that table.

A user's own transformer is a file in `.agent/transformers/` with the same functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from agent_hooks.transformers.base import Transformer

__all__ = ["TRANSFORMERS", "builtin_transformer"]

TRANSFORMERS = ("exclude_directories", "add_default_excludes", "default_args")


def builtin_transformer(name: str) -> Transformer:
    """Import and return a built-in transformer; its name is the name of its module."""
    return cast("Transformer", import_module(f"{__name__}.{name}"))
