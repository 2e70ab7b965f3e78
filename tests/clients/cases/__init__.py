"""The cases of the matrix: each shows in a real client whether one promise holds there.

A case returns whether hooks have the power, and asserts what must hold in any client: a denied call does not run, say.
A case that names a `power` may return `False` where `Bridge.limits` states why, and only there.
"""

from __future__ import annotations

from types import ModuleType

from clients.cases import calls, files, installations, outages, questions, results, sessions, table, tools
from clients.cases.table import Case, NothingHereError

# The order of the rows on the page; within a module, a case stands where it is written.
SUBJECTS: tuple[ModuleType, ...] = (calls, questions, results, sessions, tools, files, outages, installations)
CASES: dict[str, Case] = {
    name: each for subject in SUBJECTS for name, each in table.CASES.items() if each.run.__module__ == subject.__name__
}
assert CASES.keys() == table.CASES.keys(), "a module of cases is missing in SUBJECTS"

__all__ = ["CASES", "Case", "NothingHereError"]
