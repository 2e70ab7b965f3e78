"""The checks of hooks and settings."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

import agent_hooks
from agent_hooks.cli.disabling import remedy
from agent_hooks.cli.doctor.base import Case, Diagnosis
from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import SettingsError, count


def versions(case: Case) -> Iterator[Diagnosis]:
    """Name the running versions of agent_hooks and Python."""
    python = f"Python {platform.python_version()} ({sys.executable})"
    yield Diagnosis("ok", "agent_hooks", f"{agent_hooks.__version__}, {python}")


def hooks(case: Case) -> Iterator[Diagnosis]:
    """Report each hook that fails to load, by file and line."""
    if case.setup is not None:
        for error in case.setup.errors:
            yield Diagnosis("problem", "hooks", str(error), "mend or remove it; until then it blocks calls")
        loaded, steps = case.setup.loaded.hooks, case.setup.transformers.configured
        handlers = sum(len(each) for hook in loaded for each in hook.handlers.values())
        handlers += sum(len(hook.api.interceptors) for hook in loaded)
        text = f"{count(len(loaded), 'hook')}, {count(handlers, 'handler')}, {count(len(steps), 'transformer')}"
        yield Diagnosis("ok", "hooks", text)
        for path in case.setup.disabled:
            yield Diagnosis("warning", "hooks", f"{short(path)}: disabled, so it counts nowhere", remedy(path))
        for hook in loaded:
            if hook.dependencies is not None:
                yield Diagnosis("ok", "packages", f"{short(hook.path)}: {hook.dependencies}")


def guards(case: Case) -> Iterator[Diagnosis]:
    """Check the guards' section of the settings."""
    if case.setup is None:
        return
    try:
        _ = case.setup.guard_settings
    except SettingsError as exc:
        yield Diagnosis("problem", "guards", str(exc), "mend the file; until then every tool call is denied")
    else:
        redaction = "on" if case.setup.redactor is not None else "off"
        yield Diagnosis("ok", "settings", f"read; redaction is {redaction}")
    for text in case.setup.settings.ignored:
        yield Diagnosis("warning", "settings", text)
