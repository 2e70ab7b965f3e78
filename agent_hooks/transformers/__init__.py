"""Configured rewrites of a tool's input, and filters of its output; one module per transformer.

A built-in one is a module here, a user's own is a file in `.agent/transformers/`, and both have the same functions (see
`base.Transformer`).  Above: command_intercept, judging, results.  Below: content, schema.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from agent_hooks.transformers.base import Transformer

__all__ = ["TRANSFORMERS", "builtin_transformer"]

TRANSFORMERS = ("exclude_directories", "add_default_excludes", "default_args")


def builtin_transformer(name: str) -> Transformer:
    """Return the built-in transformer of that name, which is the name of its module."""
    return cast("Transformer", import_module(f"{__name__}.{name}"))
