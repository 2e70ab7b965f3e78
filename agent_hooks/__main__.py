"""The command `agent-hooks`, and `python -m agent_hooks`.

One event of another agent must not wait for what only a command line needs: it goes straight to what judges it.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    match sys.argv[1:]:
        case ["bridge", agent, event] if not event.startswith("-"):
            _load_msgspec()
            gc.disable()  # until the hooks are loaded: what is made before lives as long as the process
            from agent_hooks.cli.answering import answer_and_leave  # here and below, so that neither loads the other

            if sys.flags.no_site:
                sys.meta_path.append(_LateSite())
            answer_and_leave(agent, event)  # returns where the arguments are not right, which `bridge` tells
            gc.enable()
    from agent_hooks.cli.main import main

    main()


class _LateSite:
    """Comes after all finders of modules: lets `site` do its work, once, and asks them again.

    What was installed after the client was written is found so (see `server.siteless`).
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top in sys.stdlib_module_names or top == "org" or self not in sys.meta_path:
            return None  # the standard library asks for modules of other systems, and does without; `org` is Jython's
        sys.meta_path.remove(self)
        import site

        site.main()
        found = (finder.find_spec(fullname, path, target) for finder in tuple(sys.meta_path))
        return next((spec for spec in found if spec is not None), None)


class _Later(ModuleType):
    """Stands for a module until something of it is used."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = import_module(self.__name__)
        vars(self).update(vars(real))
        return getattr(real, name)


def _load_msgspec() -> None:
    """Import msgspec without what takes as long and is not needed.

    That is `typing_extensions`, where it looks first for what `typing` has, and `platform`, which `uuid` asks for the
    system's name and which compiles ten patterns.
    """
    if not {"uuid", "platform"} & sys.modules.keys():
        named = ModuleType("platform")
        named.system = lambda: os.uname().sysname  # type: ignore[attr-defined]
        sys.modules["platform"] = named
        try:
            import uuid

            vars(uuid).pop("platform", None)
        except AttributeError:  # another Python asks for more: msgspec will import it as it is
            pass
        del sys.modules["platform"]
    sys.modules.setdefault("msgspec.inspect", _Later("msgspec.inspect"))  # for JSON Schemas only
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # as if it were not installed
        import msgspec  # noqa: F401

        del sys.modules["typing_extensions"]


if __name__ == "__main__":
    main()
