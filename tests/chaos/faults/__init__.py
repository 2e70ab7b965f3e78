"""The table of faults: one literal list a family, in the order of docs/reliability.md."""

from __future__ import annotations

from chaos.faults import (
    answers,
    context,
    ending,
    exhausting,
    hanging,
    leaving,
    patching,
    process_state,
    raising,
    scopes,
)
from chaos.faults.fault import Fault

FAMILIES: dict[str, tuple[Fault, ...]] = {
    "It raises": raising.FAULTS,
    "It hangs": hanging.FAULTS,
    "It ends the process": ending.FAULTS,
    "It exhausts": exhausting.FAULTS,
    "It changes the process": tuple(fault._replace(cold=True) for fault in process_state.FAULTS),
    "It patches Python": tuple(fault._replace(cold=True) for fault in patching.FAULTS),
    "It abuses tasks and scopes": scopes.FAULTS,
    "It leaves something behind": leaving.FAULTS,
    "It answers": answers.FAULTS,
    "It abuses its context and its api": context.FAULTS,
}
FAULTS: dict[str, Fault] = {fault.name: fault for family in FAMILIES.values() for fault in family}
