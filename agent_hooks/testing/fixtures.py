"""pytest fixtures for tests of hooks: `pytest_plugins = ["agent_hooks.testing.fixtures"]` in a `conftest.py`.

They are not a plugin: a project without that line does not get them.  Only this module imports pytest.  The tests are
async; anyio's own pytest plugin, which comes with anyio, runs them.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.runner.runner import HookRunner
from agent_hooks.testing import LoadHook, MakeRunner
from agent_hooks.ui.base import Dialogs

__all__ = ["hook_runner", "load_hook"]


@pytest.fixture
def load_hook(tmp_path: Path, request: pytest.FixtureRequest) -> LoadHook:
    """Load a hook from a file or from source text.

    `hook = await load_hook("gate.py")`, or `await load_hook("def register(api): ...")`.  One line that ends in `.py` is a
    file, relative to pytest's root directory; any other text is the source of a hook, which is written to a file called
    `name`.  A hook that cannot be loaded fails the test with the reason.
    """

    async def load(hook: str | Path, name: str = "hook.py") -> LoadedHook:
        root = request.config.rootpath
        if isinstance(hook, str) and not _is_path(hook):
            root, path = tmp_path, tmp_path / "hooks" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(dedent(hook))
            hook = path
        loaded = await load_hooks([hook], cwd=root)
        if loaded.errors:
            raise AssertionError("\n".join(filter(None, [str(loaded.errors[0]), loaded.errors[0].traceback])))
        return loaded.hooks[0]

    return load


@pytest.fixture
def hook_runner(load_hook: LoadHook, tmp_path: Path) -> MakeRunner:
    """Make a runner of hooks.

    `runner = await hook_runner("gate.py", ui=ScriptedUI(True))`.  Each hook is a file or source text, as for `load_hook`,
    or a loaded hook; options are those of `HookRunner`, and `cwd` is `tmp_path` by default.  For hooks with background
    tasks, enter the runner: `async with await hook_runner("watcher.py") as runner:`.
    """

    async def make(*hooks: str | Path | LoadedHook, ui: Dialogs | None = None, **options: Any) -> HookRunner:
        loaded = []
        for number, hook in enumerate(hooks, 1):
            if not isinstance(hook, LoadedHook):
                hook = await load_hook(hook, "hook.py" if number == 1 else f"hook{number}.py")
            loaded.append(hook)
        return HookRunner(loaded, ui=ui, **{"cwd": tmp_path, **options})

    return make


def _is_path(hook: str) -> bool:
    return "\n" not in hook and hook.endswith(".py")
