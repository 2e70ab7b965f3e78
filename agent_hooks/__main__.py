"""The command `agent-hooks`, and `python -m agent_hooks`.

One event of another agent must not wait for the imports of a command line: it goes straight to `cli.answering`.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    match sys.argv[1:]:
        case ["bridge", agent, event] if not event.startswith("-"):
            # No garbage collection until the hooks are loaded: the objects made before live as long as the process.
            gc.disable()
            _load_msgspec()
            # Imported here and below, because each event loads only one of them.
            from agent_hooks.cli.answering import answer_and_leave

            if sys.flags.no_site:
                sys.meta_path.append(_LateSite())
            # It returns only for wrong arguments, which the command line reports.
            answer_and_leave(agent, event)
            gc.enable()
    from agent_hooks.cli.main import main

    main()


class _LateSite:
    """The last finder of modules: runs `site` once and asks all finders again.

    It finds the packages that were installed after the client was written (see `server.siteless`).
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        # The standard library tries to import modules of other systems; `org` is Jython's.
        if top in sys.stdlib_module_names or top == "org" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        import site

        site.main()
        found = (finder.find_spec(fullname, path, target) for finder in tuple(sys.meta_path))
        return next((spec for spec in found if spec is not None), None)


def _load_msgspec() -> None:
    """Import msgspec without `typing_extensions`, in place of which `typing` serves.

    A process for one event takes 54.3 instead of 56.9 ms this way (`python -m benchmarks bridge`).
    """
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # as if it were not installed
        import msgspec  # noqa: F401

        del sys.modules["typing_extensions"]


if __name__ == "__main__":
    main()
