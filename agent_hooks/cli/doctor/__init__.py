"""The checks of `agent-hooks doctor`: each is a function that yields diagnoses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent_hooks.cli.doctor import entries, lasting, seats, standing, trial
from agent_hooks.cli.doctor.base import AgentCase, Case, Diagnosis

CHECKS: tuple[Callable[[Case], Iterable[Diagnosis]], ...] = (
    standing.versions,
    standing.store,
    standing.projects,
    standing.hooks,
    standing.guards,
    lasting.unlocked,
    lasting.answers,
    lasting.raised,
)
AGENT_CHECKS: tuple[Callable[[AgentCase], Iterable[Diagnosis]], ...] = (
    entries.agent_version,
    trial.distributions,
    entries.settings_files,
    entries.commands,
    entries.shared_entries,
    entries.environment,
    entries.failures_and_timeouts,
    entries.events,
    entries.doubled_entries,
    standing.entries_of_others,
    standing.trusted_entries,
    standing.plugin,
    seats.seat,
    entries.hindrances,
    entries.mods,
    entries.hookless,
    trial.server_directory,
    trial.call,
    trial.variables,
    trial.running,
    trial.posts,
    standing.powers,
)
"""`trial.posts` comes after `trial.call`, which has started the server."""
