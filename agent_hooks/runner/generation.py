"""A generation: the hooks and their surroundings that were loaded together, and the values that one hands to the next."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.errors import describe, shown
from agent_hooks.hooks.imports import is_hook_module
from agent_hooks.hooks.loaded import LoadedHook, LoadError

if TYPE_CHECKING:
    from agent_hooks.dispatch.recording import Records
    from agent_hooks.guards.base import Guard
    from agent_hooks.redaction import Redactor
    from agent_hooks.transformers.base import ConfiguredTransformer


class Generation(Struct, frozen=True, eq=False):
    """The hooks of a runner, and everything else that a reload replaces; `limits`: those of the engine."""

    hooks: list[LoadedHook]
    guards: tuple[Guard, ...]
    transformers: tuple[ConfiguredTransformer, ...]
    redactor: Redactor | None
    limits: dict[str, float | None]
    # The wish for records, `None` if it stays as it is.
    records: Records | None = None


def kept_hooks(old: Iterable[LoadedHook], errors: Iterable[LoadError]) -> list[LoadedHook]:
    """Return the hooks whose new version could not be loaded: they stay in force until they are mended or removed."""
    broken = {error.path for error in errors}
    return [hook for hook in old if hook.error is None and hook.path in broken]


def with_kept(new: Sequence[LoadedHook], kept: Sequence[LoadedHook], old: Sequence[LoadedHook]) -> list[LoadedHook]:
    """Return the new hooks with the kept ones at their places."""
    found = list(new)
    for index in reversed(range(len(old))):
        if old[index] in kept:
            after = {hook.path for hook in old[index + 1 :]}
            place = next((place for place, hook in enumerate(found) if hook.path in after), len(found))
            found.insert(place, old[index])
    return found


def hand_over(old: LoadedHook, new: LoadedHook) -> list[str]:
    """Give the new hook a deep copy of the old one's state; return a sentence for each value that was left out."""
    state = old.api.state
    if not state:
        return []
    # An object of the hook may raise anything while it is copied.  The values are then copied one by one.
    copied = attempt(_copied, dict(state))
    if copied.exception is not None:
        return [text for key in list(state) if (text := _hand_over_one(old, new, key)) is not None]
    new.api.state.update(copied.value)
    return []


def _hand_over_one(old: LoadedHook, new: LoadedHook, key: Any) -> str | None:
    copied = attempt(_copied, {key: old.api.state[key]})
    if copied.exception is not None:
        name = f"api.state[{shown(key)}]"
        return f"{old.api.label}: {name} was left out when the hook was loaded again: {describe(copied.exception)}"
    new.api.state.update(copied.value)
    return None


def _copied(value: Any) -> Any:
    """Return a deep copy; raises an exception for a value that cannot be copied, or that belongs to the old code.

    A copy by `copy.deepcopy` would share functions and classes of the hook's modules, which the reload ends.
    """
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    # The bytes were made here, a line above.
    return pickle.loads(buffer.getvalue())  # noqa: S301  # see above


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        kind = value if isinstance(value, type) else type(value)
        for module in (getattr(value, "__module__", None), kind.__module__):
            if isinstance(module, str) and is_hook_module(module):
                raise TypeError(f"{kind.__qualname__} is a class or function of the hook itself; keep plain values")
        return NotImplemented
