"""A hook can import the files beside it, and never the files beside another hook."""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

import agent_hooks
from agent_hooks import HookRunner, TurnStart, load_hooks
from agent_hooks.hooks import imports
from agent_hooks.hooks.imports import files_of, forget_module
from agent_hooks.testing import RecordedEvents

pytestmark = pytest.mark.anyio
REGISTER = "def register(api): pass\n"


def write(path: Path, source: str) -> Path:
    """Write a file, and the directories it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source))
    return path


async def load(*paths: Path) -> list[Any]:
    """Load hooks without an error, and return their modules."""
    result = await load_hooks(paths, cwd="/")
    assert not result.errors, result.errors[0].traceback
    return [hook.module for hook in result.hooks]


async def test_two_hooks_of_one_name_each_see_their_own_sibling(tmp_path: Path) -> None:
    """Two hooks of one name in two directories each import their own helper."""
    paths = []
    for name in ("one", "two"):
        write(tmp_path / name / "helpers.py", f"NAME = {name!r}\n")
        paths.append(
            write(tmp_path / name / "hook.py", "import helpers\nfrom helpers import NAME as also\n" + REGISTER)
        )
    one, two = await load(*paths)
    assert (one.helpers.NAME, one.also, two.helpers.NAME, two.also) == ("one", "one", "two", "two")
    assert "helpers" not in sys.modules


async def test_an_import_inside_a_handler_sees_the_sibling_too(tmp_path: Path) -> None:
    """The hook's directory comes first in a handler too, on the loop and in a thread."""
    paths = []
    for name in ("one", "two"):
        write(tmp_path / name / "helpers.py", f"NAME = {name!r}\n")
        source = """
            seen = []
            def threaded(event, ctx):
                import helpers
                seen.append(helpers.NAME)
            async def on_loop(event, ctx):
                from helpers import NAME
                seen.append(NAME)
            def register(api):
                api.on("turn_start", threaded)
                api.on("turn_start", on_loop)
        """
        paths.append(write(tmp_path / name / "hook.py", source))
    result = await load_hooks(paths, cwd=tmp_path)
    runner = HookRunner(result.hooks, cwd=tmp_path)
    recorded = RecordedEvents(runner)
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    assert recorded.errors == []
    modules: list[Any] = [hook.module for hook in result.hooks]
    assert [module.seen for module in modules] == [["one", "one"], ["two", "two"]]


async def test_siblings_that_import_siblings_stay_in_the_family(tmp_path: Path) -> None:
    """A helper's import finds the helper beside it, and the hook gets the same module."""
    paths = []
    for name in ("one", "two"):
        write(tmp_path / name / "base.py", f"NAME = {name!r}\n")
        write(tmp_path / name / "helpers.py", "import base\n")
        paths.append(write(tmp_path / name / "hook.py", "import helpers, base\n" + REGISTER))
    one, two = await load(*paths)
    assert (one.helpers.base.NAME, two.helpers.base.NAME) == ("one", "two")
    assert one.helpers.base is one.base


@pytest.mark.parametrize(
    ("statement", "expression"),
    [
        ("import helpers.sub", "helpers.sub.NAME"),
        ("import helpers.sub", "helpers.TOP"),
        ("import helpers.sub as sub", "sub.NAME"),
        ("from helpers import sub", "sub.NAME"),
        ("from helpers.sub import NAME", "NAME"),
        ("from helpers import sub, TOP", "sub.NAME and TOP"),
        ("from helpers import *", "TOP"),
        ("from helpers.sub import *", "NAME"),
        ("from . import helpers", "helpers.TOP"),
        ("from .helpers import sub", "sub.NAME"),
        ("from .helpers.sub import NAME", "NAME"),
        ("import bare.inner", "bare.inner.NAME"),
        ("from bare import inner", "inner.NAME"),
    ],
)
async def test_every_form_of_import_finds_the_package_beside_the_hook(
    tmp_path: Path, statement: str, expression: str
) -> None:
    """Packages with and without `__init__.py`, dotted, renamed, starred and relative."""
    write(tmp_path / "helpers" / "__init__.py", "TOP = 'yes'\n")
    write(tmp_path / "helpers" / "sub.py", "from . import TOP\nNAME = TOP\n")
    write(tmp_path / "bare" / "inner.py", "NAME = 'yes'\n")
    (module,) = await load(write(tmp_path / "my.hook.py", f"{statement}\nresult = {expression}\n{REGISTER}"))
    assert module.result == "yes"


async def test_a_name_that_a_neighbour_lacks_is_an_import_error_in_the_hooks_line(tmp_path: Path) -> None:
    """The error is Python's own, and `try: … except ImportError` works."""
    write(tmp_path / "helpers" / "__init__.py", "")
    path = write(tmp_path / "h.py", "x = 1\nfrom helpers import nothing\n")
    (error,) = (await load_hooks([path], cwd=tmp_path)).errors
    assert (error.line, error.error.startswith("ImportError: cannot import name 'nothing'")) == (2, True)


@pytest.mark.parametrize("name", ["json", "re", "sys"])
async def test_a_file_beside_a_hook_does_not_shadow_the_standard_library(tmp_path: Path, name: str) -> None:
    """A hook called `json.py` does not break `import json`."""
    write(tmp_path / f"{name}.py", "raise RuntimeError('shadow')\n")
    (module,) = await load(write(tmp_path / "h.py", f"import {name}\n{REGISTER}"))
    assert getattr(module, name) is sys.modules[name]
    assert json.loads("1") == 1


async def test_the_runtime_itself_is_never_shadowed(tmp_path: Path) -> None:
    """A hook in a checkout of this project gets the runtime that runs it, not a second copy."""
    write(tmp_path / "agent_hooks" / "__init__.py", "raise RuntimeError('shadow')\n")
    source = "import agent_hooks\nfrom agent_hooks.values.answers import Block\n"
    (module,) = await load(write(tmp_path / "h.py", source + REGISTER))
    assert module.agent_hooks is agent_hooks
    assert module.Block is agent_hooks.Block


async def test_a_bare_directory_gives_way_to_an_installed_package_and_a_file_does_not(tmp_path: Path) -> None:
    """A directory of data called `rich` or `msgspec` hides nothing; a file `click.py` is meant."""
    for name in ("msgspec", "rich"):
        write(tmp_path / name / "data.txt", "")
    write(tmp_path / "click.py", "OWN = True\n")
    source = "import msgspec, click\nfrom rich.text import Text\n"
    (module,) = await load(write(tmp_path / "h.py", source + REGISTER))
    assert module.msgspec is sys.modules["msgspec"]
    assert module.Text.__module__ == "rich.text"
    assert module.click.OWN


async def test_hooks_that_import_each_other_in_a_circle_load(tmp_path: Path) -> None:
    """Hooks may import each other in a circle, as modules of one package may."""
    a = write(tmp_path / "a.py", "import b\nNAME = 'a'\ndef register(api):\n    assert b.other() == 'a'\n")
    b = write(tmp_path / "b.py", "import a\ndef other():\n    return a.NAME\n" + REGISTER)
    first, second = await load(a, b)
    assert first.b is not second


async def test_dataclasses_and_tracebacks_of_a_hook_work(tmp_path: Path) -> None:
    """A hook is a real module: `sys.modules` has it, and it knows its file."""
    source = """
        from __future__ import annotations
        from dataclasses import dataclass, field
        from typing import ClassVar, get_type_hints

        @dataclass
        class Point:
            x: int
            kind: ClassVar[str] = "p"

        hints = get_type_hints(Point)
    """
    path = write(tmp_path / "h.py", dedent(source) + REGISTER)
    (module,) = await load(path)
    assert module.hints["x"] is int
    assert module.__file__ == str(path)
    assert sys.modules[module.__name__] is module


@pytest.mark.parametrize("statement", ["helpers = __import__('helpers')", "scope = {}; exec('import helpers', scope)"])
async def test_an_import_without_the_hooks_globals_finds_the_neighbour_too(tmp_path: Path, statement: str) -> None:
    """A call of `__import__` and code that runs in an empty namespace find the file beside the hook."""
    write(tmp_path / "helpers.py", "NAME = 'mine'\n")
    (module,) = await load(write(tmp_path / "hook.py", f"{statement}\nhelpers = locals().get('helpers')\n" + REGISTER))
    helpers = module.helpers or module.scope["helpers"]
    assert helpers.NAME == "mine"


async def test_a_hook_gets_the_builtins_of_the_time_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that a program adds to the builtins between two loads is there for the second hook."""
    first = write(tmp_path / "first.py", REGISTER)
    second = write(tmp_path / "second.py", "FOUND = translated('text')\n" + REGISTER)
    await load(first)
    monkeypatch.setattr(builtins, "translated", str.upper, raising=False)
    (module,) = await load(second)
    assert module.FOUND == "TEXT"


async def test_hooks_do_not_each_keep_a_copy_of_the_builtins(tmp_path: Path) -> None:
    """All hooks share one copy, for each of their own would take 3.4 KiB."""
    one, two = await load(write(tmp_path / "one.py", REGISTER), write(tmp_path / "two.py", REGISTER))
    assert vars(one)["__builtins__"] is vars(two)["__builtins__"]
    assert vars(builtins)["__import__"] is not vars(one)["__builtins__"]["__import__"]


class CountedModules(dict[str, Any]):
    """Modules by name that count how often they are read, and that cannot be searched."""

    reads = 0

    def get(self, name: str, default: Any = None) -> Any:
        self.reads += 1
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self.reads += 1
        return super().pop(name, *default)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all modules were searched")

    items = keys = values = __iter__  # type: ignore[assignment]  # none of them may be used


async def test_the_files_of_a_hook_are_found_without_a_search_of_all_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To list or forget the modules of a hook takes a look-up for each of them, and does not grow with other hooks."""
    write(tmp_path / "helper.py", "")
    write(tmp_path / "late.py", "")
    hook = write(tmp_path / "hook.py", "import helper\n\n\ndef more():\n    import late\n\n\n" + REGISTER)
    others = [write(tmp_path / "others" / f"{number}.py", REGISTER) for number in range(20)]
    module, *_ = await load(hook, *others)
    module.more()
    modules = CountedModules(sys.modules)
    monkeypatch.setattr(imports, "sys", SimpleNamespace(modules=modules))
    names = [Path(file).name for file in files_of(module)]
    assert (names, modules.reads) == (["hook.py", "helper.py", "late.py"], 4)
    forget_module(module)
    assert modules.reads == 8
