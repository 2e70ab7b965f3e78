"""Change `disabledHooks` in the person's settings, and show the hooks that it leaves out."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.setup import find_sources
from agent_hooks.cli.trusting import settle
from agent_hooks.errors import AgentHooksError
from agent_hooks.hooks.choosing import chosen
from agent_hooks.hooks.loaded import stem
from agent_hooks.installs.edits import Settings, edit
from agent_hooks.settings import SETTINGS_FILE, agent_home, resolve_path
from agent_hooks.trust.own import own_files
from agent_hooks.trust.policy import Trust

KEY = "disabledHooks"


def disable(name: str, cwd: str) -> str:
    """Disable the hook with a name, and return its path; raises `AgentHooksError` for a name of no hook."""
    found = find_sources(cwd, (), settle(Trust(), cwd))
    try:
        path = chosen(name, found.hooks.paths, cwd=os.getcwd())
    except AgentHooksError:
        # A hook that is disabled already is no mistake.
        if (off := _named(name, found.settings.disabled_hooks)) is None:
            raise
        raise AgentHooksError(f"{short(off)} is disabled already; to enable it: {remedy(off)}") from None
    _change([path], [])
    return path


def enable(name: str, cwd: str) -> str:
    """Enable a disabled hook, also one whose file is gone, and return its path; raises `AgentHooksError`."""
    found = find_sources(cwd, (), settle(Trust(), cwd))
    disabled = found.settings.disabled_hooks
    if (path := _named(name, disabled)) is None:
        # The text says whether there is such a hook at all.
        enabled = chosen(name, [*found.hooks.paths, *disabled], cwd=os.getcwd())
        raise AgentHooksError(f"{short(enabled)} is not disabled")
    _change([], [path])
    return path


def _named(name: str, disabled: Iterable[str]) -> str | None:
    try:
        return chosen(name, [*disabled], cwd=os.getcwd())
    except AgentHooksError as exc:
        # One name may stand for several.
        if "say which" in str(exc):
            raise
        return None


def _change(more: Iterable[str], fewer: Iterable[str]) -> None:
    """Put paths into the person's settings, and take others out; raises `SettingsError`."""
    home, gone = agent_home(), set(fewer)

    def change(settings: Mapping[str, Any]) -> Settings:
        # As it is written in the file, a path may be relative or begin with `~`.
        left = [each for each in settings.get(KEY, []) if resolve_path(each, base=home) not in gone]
        changed = {key: value for key, value in settings.items() if key != KEY}
        both = [*left, *more]
        return {**changed, KEY: both} if both else changed

    os.makedirs(home, exist_ok=True)
    path = os.path.join(home, SETTINGS_FILE)
    before = own_files(home)
    edit(path, change).make()
    # The user has typed this change, so it applies at once.  An earlier change is still pending.
    if before.taken is not None and before.is_current(path):
        own_files(home).take_up([path])


def remedy(path: str) -> str:
    """Return the command that enables a hook again."""
    return f"agent-hooks enable {shlex.quote(stem(path))}"


def disabled_lines(disabled: Iterable[str], without: Iterable[str] = ()) -> Iterator[str]:
    """Yield a line for each hook here that the person's settings leave out, and for each that this run goes without."""
    for path in disabled:
        yield one_line(f"disabled: {short(path)}; to enable it: {remedy(path)}")
    for path in without:
        yield one_line(f"left out: {short(path)} (--without)")
