"""The outcome of loading hooks: the hooks, the errors, and the gates that stand for hooks which could not be loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.dispatch.context import HookContext
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.errors import at
from agent_hooks.hooks.api import HookAPI
from agent_hooks.values.answers import Block
from agent_hooks.values.events import ToolCall
from agent_hooks.values.tool import Tool

if TYPE_CHECKING:
    from agent_hooks.isolation.dependencies import Dependencies
    from agent_hooks.isolation.mode import Isolation
    from agent_hooks.isolation.process import HookProcess


class LoadedHook(Struct, eq=False):
    """One loaded hook: `path` as given, `resolved_path` without symlinks, and the `api` it registered through.

    `name`: of the file, without `.py`; `error`: set for the gate that stands for a hook which could not be loaded;
    `dependencies`: the packages of a hook with a header; `module`: the hook's, inside of the agent; `process`: the
    process of a hook that has one of its own.

    - `former_of`: for a former version, the path of the hook.  Its denials and questions are its only answers.
    - `waits`: no user has taken the hook up, so it settles no question.
    """

    path: str
    resolved_path: str
    name: str
    api: HookAPI
    module: ModuleType | None = None
    process: HookProcess | None = None
    # Set for the gate that stands for a hook which could not be loaded.
    error: LoadError | None = None
    # The packages of a hook with a header.
    dependencies: Dependencies | None = None
    former_of: str = ""
    waits: bool = False

    def __repr__(self) -> str:
        """Return the path only; the api and the module would be pages."""
        return f"LoadedHook({self.path!r})"

    @property
    def handlers(self) -> dict[str, list[Handler]]:
        """The subscribed handlers by event, in registration order."""
        return self.api.handlers

    @property
    def isolation(self) -> Isolation:
        """Where the hook runs: `inline`, in the agent's process, or `process`, in one of its own."""
        return "inline" if self.process is None else "process"

    @property
    def digest(self) -> str:
        """The SHA-256 of the source files that the hook was loaded from; empty when they are not known."""
        # Imported here, because few programs ask for it.
        from agent_hooks.hooks.imports import sources_of
        from agent_hooks.storage.digests import sha256

        sources = self.process.sources if self.process is not None else {}
        if self.module is not None:
            sources = sources_of(self.module)
        parts = (part for path in sorted(sources) for part in (os.fsencode(path), sources[path]))
        return sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)) if sources else ""

    @property
    def tools(self) -> list[Tool]:
        """The tools the hook offers."""
        return [] if self.former_of else self.api.tools


class LoadError(Struct, frozen=True):
    """A hook that could not be loaded.

    `error`: one line of text, with the remedy; `traceback`: of its exception.  `line` is the line that failed.  It is a
    line of `file`, one of a package's files, or of `path` if `file` is `None`.
    """

    path: str
    error: str
    line: int | None = None
    traceback: str = ""
    file: str | None = None

    def __str__(self) -> str:
        """Return `path:line: error`."""
        return f"{at(self.file or self.path, self.line)}: {self.error}"

    def hidden(self, hide: Callable[[str], str]) -> LoadError:
        """Return the error with its texts as `hide` returns them: an exception may name a secret."""
        return replace(self, error=hide(self.error), traceback=hide(self.traceback))


class LoadResult(Struct, frozen=True):
    """The result of loading: `hooks` were loaded, and `errors` are those of the others.

    `disabled`: the paths of the hooks that the person's settings leave out.
    """

    hooks: list[LoadedHook]
    errors: list[LoadError]
    disabled: tuple[str, ...] = ()

    def fail_closed(self) -> list[LoadedHook]:
        """Return the hooks, and for each that could not be loaded a gate that blocks every tool call.

        A broken file may have been meant to stop any of them.
        """
        return [*self.hooks, *(_gate_for(error) for error in self.errors)]

    def hidden(self, hide: Callable[[str], str]) -> LoadResult:
        """Return the result with the texts of its errors as `hide` returns them."""
        return replace(self, errors=[error.hidden(hide) for error in self.errors])


def stem(path: str) -> str:
    """Return the name of a file without its extension."""
    return os.path.splitext(os.path.basename(path))[0]


def _gate_for(error: LoadError) -> LoadedHook:
    api = HookAPI(error.path)

    def could_not_be_loaded(event: ToolCall, ctx: HookContext) -> Block:
        return Block(f"this hook could not be loaded, and might have blocked the call: {error}; mend or remove it")

    api.on("tool_call", could_not_be_loaded, inline=True)
    return LoadedHook(error.path, error.path, stem(error.path), api, error=error)
