"""From a file to a hook: the files that are found, their order, and the error entries of broken files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from agent_hooks import (
    Block,
    HookRunner,
    HookUsageError,
    LoadedHook,
    LoadError,
    LoadResult,
    ToolCall,
    TurnStart,
    discover_and_load_hooks,
    load_hooks,
    load_settings,
)
from running import TRIO, Command
from support import PATIENCE

pytestmark = pytest.mark.anyio
LoadHook = Callable[..., Awaitable[LoadedHook]]
GOOD = "def register(api):\n    api.on('turn_start', lambda event, ctx: None, inline=True)\n"
TURN = TurnStart(turn_index=0, timestamp=0)
CALL = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
NBSP = "\N{NO-BREAK SPACE}"


def write(path: Path, source: str | bytes = GOOD) -> Path:
    """Write a hook file, and the directories it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source if isinstance(source, bytes) else dedent(source).encode())
    return path


def hooks_of(directory: Path) -> Path:
    """Return the hook directory of a home or a project."""
    return directory / ".agent" / "hooks"


def names(result: LoadResult) -> list[str]:
    """Return the names of the loaded hooks, in order."""
    return [hook.name for hook in result.hooks]


def private_modules() -> set[str]:
    """Return the modules that belong to hooks."""
    return {name for name in sys.modules if name.startswith("_agent_hooks_")}


async def load_error(path: Path) -> LoadError:
    """Load a broken file, check that no module is left, and return the one error."""
    before = private_modules()
    result = await load_hooks([path], cwd=path.parent)
    assert result.hooks == []
    assert private_modules() == before
    (error,) = result.errors
    assert error.path == str(path)
    return error


# ---- finding ---------------------------------------------------------------------------------------------------------


async def test_without_hook_directories_there_are_no_hooks_and_no_errors(home: Path, project: Path) -> None:
    """A missing hook directory is no error."""
    assert await discover_and_load_hooks(cwd=project, home=home) == LoadResult([], [])


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_handlers_that_register_returns_are_a_load_error(kind: str, tmp_path: Path) -> None:
    """Plugins of another agent return them, and here nothing would call them."""
    write(tmp_path / "h.py", f"{kind} register(api):\n    return {{'tool.execute.before': print}}\n")
    [error] = (await load_hooks(["h.py"], cwd=tmp_path)).errors
    assert error.error.startswith(
        "register returned a mapping with 'tool.execute.before', and nothing reads it: write "
    )
    write(tmp_path / "h.py", f"{kind} register(api):\n    return {{}}\n")
    assert not (await load_hooks(["h.py"], cwd=tmp_path)).errors


async def test_without_arguments_the_hooks_of_here_are_loaded(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place is the working directory at the call, for loading, settings and the runner alike."""
    write(project / ".agent" / "hooks" / "p.py")
    write(project / ".agent" / "settings.json", '{"knownTools": ["dice"]}')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("AGENT_HOME", raising=False)
    monkeypatch.chdir(project)
    loaded = await discover_and_load_hooks()
    assert [hook.name for hook in loaded.hooks] == ["p"]
    assert [hook.name for hook in (await load_hooks([".agent/hooks/p.py"])).hooks] == ["p"]
    assert load_settings().known_tools == ("dice",)
    places: list[str] = []
    loaded.hooks[0].api.on("turn_start", lambda event, ctx: places.append(ctx.cwd), inline=True)
    await HookRunner(loaded).emit(TURN)
    assert places == [str(project)]


async def test_hooks_are_loaded_global_then_project_then_configured(home: Path, project: Path, tmp_path: Path) -> None:
    """Hooks of a directory load by name, capitals first; then the paths of settings and command line, in their order."""
    for name in ("zz", "aa", "B"):
        write(hooks_of(home) / f"{name}.py")
    write(hooks_of(project) / "p.py")
    configured = [write(tmp_path / name) for name in ("setting.py", "argument.py", "a_later_one.py")]
    result = await discover_and_load_hooks(configured, cwd=project, home=home)
    assert names(result) == ["B", "aa", "zz", "p", "setting", "argument", "a_later_one"]
    assert result.errors == []
    assert result.hooks[0].path == result.hooks[0].resolved_path == str(hooks_of(home) / "B.py")


async def test_a_hook_that_the_person_has_disabled_is_left_out_in_a_program_too(home: Path, project: Path) -> None:
    """Wherever it was found; a file that the program loads by name counts, and a project's settings disable nothing."""
    for name in ("one", "two"):
        write(hooks_of(home) / f"{name}.py")
    off = [str(write(hooks_of(project) / "three.py")), str(write(project / "four.py"))]
    settings = home / ".agent" / "settings.json"
    settings.write_text(json.dumps({"disabledHooks": ["hooks/two.py", *off]}))
    (project / ".agent" / "settings.json").write_text('{"disabledHooks": ["~/.agent/hooks/one.py"]}')
    result = await discover_and_load_hooks([project / "four.py"], cwd=project)
    assert (names(result), result.errors) == (["one"], [])
    assert result.disabled == (str(hooks_of(home) / "two.py"), *off)
    assert names(await load_hooks([project / "four.py"], cwd=project)) == ["four"]
    settings.write_text('{"disabledHooks": 5}')
    (error,) = (await discover_and_load_hooks(cwd=project)).errors
    assert str(error).startswith(f"{settings}: key 'disabledHooks': expected ")


async def test_a_file_named_twice_is_loaded_once_at_its_first_position(home: Path, project: Path) -> None:
    """A file is one hook, also if it is discovered and configured, as a relative path and through symlinks."""
    real = write(project / "real.py")
    hooks_of(home).mkdir(parents=True)
    (hooks_of(home) / "alias.py").symlink_to(real)
    write(hooks_of(project) / "other.py")
    (hooks_of(project) / "other_alias.py").symlink_to("other.py")
    again: list[str | Path] = [
        "real.py",
        real,
        hooks_of(project) / "other.py",
        str(hooks_of(project)) + "/../hooks/other.py",
    ]
    result = await discover_and_load_hooks(again, cwd=project, home=home)
    assert names(result) == ["alias", "other"]
    assert result.errors == []
    assert result.hooks[0].path == str(hooks_of(home) / "alias.py")
    assert result.hooks[0].resolved_path == str(real)


async def test_configured_paths_are_resolved_and_a_wrong_one_is_an_error_entry(home: Path, project: Path) -> None:
    """`~` is the given home and a relative path starts at `cwd`; an unknown user's home and a missing file are errors."""
    write(home / "h.py")
    write(project / "rel" / "r.py")
    paths = ["~/h.py", "rel/r.py", "~no-such-user-here/x.py", "gone.py", "nul\0.py", ""]
    result = await discover_and_load_hooks(paths, cwd=project, home=home)
    assert names(result) == ["h", "r"]
    assert [hook.path for hook in result.hooks] == ["~/h.py", "rel/r.py"]
    told = ["there is no user 'no-such-user-here'", "no such file", "cannot have a NUL", "is a directory"]
    assert [error.path for error in result.errors] == paths[2:]
    for error, text in zip(result.errors, told, strict=True):
        assert text in error.error


@pytest.mark.parametrize(
    ("configured", "there"),
    [
        (f"my{NBSP}hook.py", "my hook.py"),
        ("my hook.py", f"my{NBSP}hook.py"),
        (f"a{NBSP}dir/h.py", "a dir/h.py"),
        ("a dir/h.py", f"a{NBSP}dir/h.py"),
        ("caf\u00e9.py", "cafe\u0301.py"),
    ],
    ids=["no-break given", "no-break there", "directory given", "directory there", "composed"],
)
async def test_kinds_of_space_in_a_configured_path_make_no_difference(
    project: Path, configured: str, there: str
) -> None:
    """macOS writes no-break spaces into names and people type plain ones; the file is found either way."""
    write(project / there)
    result = await load_hooks([configured, project / there], cwd=project)
    assert [hook.path for hook in result.hooks] == [configured]
    assert result.hooks[0].resolved_path == str(project / there)
    assert result.errors == []


async def test_a_file_with_exactly_the_configured_name_is_preferred(project: Path) -> None:
    """Two files that differ in the kind of space are two hooks."""
    paths = [write(project / "a b.py"), write(project / f"a{NBSP}b.py")]
    result = await load_hooks(paths, cwd=project)
    assert [hook.resolved_path for hook in result.hooks] == [str(path) for path in paths]


async def test_what_is_no_readable_file_is_an_error_entry_each_and_the_rest_loads(home: Path, project: Path) -> None:
    """A broken symlink, a directory and a pipe with the name of a hook are errors, and the pipe is not read."""
    directory = hooks_of(project)
    write(directory / "good.py")
    (directory / "broken.py").symlink_to("nowhere.py")
    (directory / "directory.py").mkdir()
    os.mkfifo(directory / "pipe.py")
    with anyio.fail_after(PATIENCE):
        result = await discover_and_load_hooks(cwd=project, home=home)
    assert names(result) == ["good"]
    assert [(os.path.basename(error.path), error.error) for error in result.errors] == [
        ("broken.py", "is a symlink to nowhere.py, which does not exist"),
        ("directory.py", "is a directory; a hook is a .py file, or a directory with an __init__.py"),
        ("pipe.py", "is not a regular file; a hook is a .py file"),
    ]


async def test_a_hook_directory_that_cannot_be_read_is_an_error_entry(home: Path, project: Path) -> None:
    """The project's hooks load although the home's hook directory is a file."""
    write(home / ".agent" / "hooks", "not a directory")
    write(hooks_of(project) / "good.py")
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert names(result) == ["good"]
    (error,) = result.errors
    assert str(error) == f"{hooks_of(home)}: the hook directory cannot be read: Not a directory"


async def test_hidden_and_private_files_and_stubs_are_skipped(home: Path, project: Path) -> None:
    """Dotfiles, names that start with `_` and files that do not end in `.py` are not loaded."""
    for name in (".hidden.py", "_private.py", "__init__.py", "stub.pyi", "notes.txt", "cached.pyc", "py"):
        write(hooks_of(project) / name, "raise RuntimeError('must not be imported')")
    write(hooks_of(project) / "sub" / "deep.py")
    write(hooks_of(project) / "good.py")
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert (names(result), result.errors) == (["good"], [])


async def test_agent_home_moves_the_global_hooks(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """$AGENT_HOME replaces `~/.agent`."""
    write(tmp_path / "elsewhere" / "hooks" / "moved.py")
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "elsewhere"))
    assert names(await discover_and_load_hooks(cwd=project)) == ["moved"]


# ---- loading ---------------------------------------------------------------------------------------------------------


async def test_a_syntax_error_is_told_with_path_line_and_traceback_and_the_good_file_works(
    home: Path, project: Path
) -> None:
    """A broken file does not keep the others from loading."""
    bad = write(hooks_of(project) / "bad.py", "x = 1\ndef register(api:\n    pass\n")
    write(
        hooks_of(project) / "good.py",
        """
        def register(api):
            api.on("tool_call", lambda event, ctx: {"block": True, "reason": "seen"}, inline=True)
        """,
    )
    result = await discover_and_load_hooks(cwd=project, home=home)
    (error,) = result.errors
    assert (error.path, error.line) == (str(bad), 2)
    assert str(error).startswith(f"{bad}:2: SyntaxError: ")
    assert "SyntaxError" in error.traceback
    assert await HookRunner(result.hooks, cwd=project).emit(CALL) == Block("seen", ".agent/hooks/good.py")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 1", "there is no register"),
        ("", "there is no register"),
        ("register = 5", "register is not callable"),
        ("register = None", "register is not callable"),
    ],
)
async def test_a_file_without_a_register_function_is_told_what_to_define(
    tmp_path: Path, source: str, found: str
) -> None:
    """The error shows the line that the file lacks."""
    error = await load_error(write(tmp_path / "h.py", source))
    assert error.error == f"{found}: a hook defines `def register(api): ...`"


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_register_that_subscribes_and_then_raises_leaves_nothing_behind(tmp_path: Path, kind: str) -> None:
    """No handler, task or tool is left, `on_unload` functions run in reverse order, and the error has the line."""
    log = tmp_path / "log"
    source = f"""
        def note(text):
            with open({str(log)!r}, "a") as file:
                file.write(text + " ")

        async def task():
            note("task")

        async def undo_second():
            note("second")

        {kind} register(api):
            api.on("tool_call", lambda event, ctx: {{"block": True}}, inline=True)
            api.start_task(task)
            api.on_unload(lambda: note("first"))
            api.on_unload(undo_second)
            api.on_unload(lambda: exit("an undo that fails"))
            global kept
            kept = api
            raise ValueError("no such thing")
    """
    path = write(tmp_path / "h.py", source)
    before = private_modules()
    result = await load_hooks([path], cwd=tmp_path)
    assert private_modules() == before
    (error,) = result.errors
    assert error.error == "ValueError: no such thing"
    assert error.line == path.read_text().splitlines().index('    raise ValueError("no such thing")') + 1
    assert "Traceback" in error.traceback
    async with HookRunner(result.hooks, cwd=tmp_path) as runner:
        assert not runner.has_handlers("tool_call")
        assert await runner.emit(CALL) is None
    assert log.read_text().split() == ["second", "first"]


async def test_an_async_register_is_awaited_and_its_handler_is_there_at_once(load_hook: LoadHook) -> None:
    """An async `register` may subscribe after an await."""
    hook = await load_hook("""
        import anyio
        async def register(api):
            await anyio.sleep(0)
            api.on("tool_call", lambda event, ctx: {"block": True}, inline=True)
    """)
    assert await HookRunner([hook], cwd="/").emit(CALL) == Block("", "hooks/hook.py")


async def test_an_async_register_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An async `register` that never ends is an error entry, which names `api.start_task`."""
    monkeypatch.setattr("agent_hooks.hooks.registering.DEFAULT_TIMEOUT", 0.05)
    path = write(tmp_path / "h.py", "import anyio\nasync def register(api):\n    await anyio.sleep_forever()\n")
    error = await load_error(path)
    assert error.error == "register did not end within 0.05 s; start long work with api.start_task"


async def test_loading_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    """If loading is cancelled, the cancellation goes through, and the half loaded hook is undone."""
    log = tmp_path / "log"
    source = f"""
        import anyio, pathlib
        async def register(api):
            api.on_unload(lambda: pathlib.Path({str(log)!r}).write_text("undone"))
            await anyio.sleep_forever()
    """
    path = write(tmp_path / "h.py", source)
    before = private_modules()
    with anyio.move_on_after(0.05) as scope:
        await load_hooks([path], cwd=tmp_path)
    assert scope.cancelled_caught
    assert private_modules() == before
    assert log.read_text() == "undone"


async def test_undoing_a_hook_that_failed_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `on_unload` that hangs does not hold up the other hooks."""
    monkeypatch.setattr("agent_hooks.hooks.registering.UNDO_TIMEOUT", 0.05)
    source = "import anyio\ndef register(api):\n    api.on_unload(anyio.sleep_forever)\n    raise ValueError('no')\n"
    with anyio.fail_after(PATIENCE):
        error = await load_error(write(tmp_path / "h.py", source))
    assert error.error == "ValueError: no"


@pytest.mark.parametrize(
    ("place", "shown"), [("project/h.py", "h.py"), ("home/x/h.py", "~/x/h.py"), ("elsewhere/h.py", None)]
)
async def test_a_blocked_call_names_the_hook_as_a_person_would(
    home: Path, project: Path, tmp_path: Path, place: str, shown: str | None
) -> None:
    """A label is relative to the project's directory, starts with `~`, or is the whole path."""
    source = "def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True}, inline=True)\n"
    path = write(tmp_path / place, source)
    result = await discover_and_load_hooks([path], cwd=project, home=home)
    assert await HookRunner(result.hooks, cwd=project).emit(CALL) == Block("", shown or str(path))


async def test_sending_while_loading_is_a_clear_error(tmp_path: Path) -> None:
    """A message cannot be sent before the agent runs."""
    error = await load_error(write(tmp_path / "h.py", "def register(api):\n    api.send('hi')\n"))
    assert "cannot be used while hooks are loading" in error.error
    assert error.line == 2


@pytest.mark.parametrize(
    ("source", "told", "line"),
    [
        ("raise ValueError('no')", "ValueError: no", 1),
        ("import sys\nsys.exit(3)", "called sys.exit(3) while loading", 2),
        ("import sys\ndef register(api):\n    sys.exit()", "called sys.exit() while loading", 3),
        ("def register(api):\n    raise GeneratorExit", "GeneratorExit", 2),
        ("def register(): pass", "TypeError: register() takes 0 positional arguments", None),
        ("import no_such_module_here", "ModuleNotFoundError: No module named 'no_such_module_here'", 1),
        ("if 1:\nx", "IndentationError: expected an indented block", 2),
        ("x = 1\n\0", "null bytes", None),
        (b"x = '\xff\xfe'", "utf-8", 1),
        (b"# coding: no-such-coding\n", "no-such-coding", None),
        ("def f():\n    raise KeyError('k')\nf()", "KeyError: 'k'", 2),
        (
            "class Bad(Exception):\n    def __str__(self): raise self\ndef register(api):\n    raise Bad",
            "Bad: <Bad that cannot be shown>",
            4,
        ),
        (
            "import sys\nclass Code:\n    def __repr__(self): raise ValueError\nsys.exit(Code())",
            "called sys.exit(<Code that cannot be shown>)",
            4,
        ),
        ("def __getattr__(name):\n    raise ValueError(name)", "ValueError: register", 2),
    ],
)
async def test_whatever_a_hook_does_wrong_is_an_error_entry(
    tmp_path: Path, source: str | bytes, told: str, line: int | None
) -> None:
    """A hook's mistake is an error entry with the text, and with the line if there is one."""
    error = await load_error(write(tmp_path / "h.py", source))
    assert told in error.error
    assert "\n" not in error.error
    if line is not None:
        assert error.line == line


async def test_a_hook_that_raises_an_interrupt_cannot_be_loaded(tmp_path: Path) -> None:
    """It is no Ctrl-C, so the error names the file and the line."""
    error = await load_error(write(tmp_path / "h.py", "x = 1\nraise KeyboardInterrupt"))
    assert error.error == "raised KeyboardInterrupt while loading; a hook must not end the agent"
    assert error.line == 2


def test_an_interrupt_of_the_person_ends_loading(command: Command) -> None:
    """Ctrl-C while a hook loads goes through, because it is no mistake of the hook."""
    hook = command.add_hook("import signal\nsignal.raise_signal(signal.SIGINT)\ndef register(api): pass\n")
    for first in ("", TRIO):
        line = command.line("list", "--hook", str(hook), first=first)
        done = subprocess.run(line, cwd=command.project, capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == 130, done.stderr


async def test_a_hook_may_print_while_loading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hook may print while it loads."""
    result = await load_hooks([write(tmp_path / "h.py", "print('hi')\n" + GOOD)], cwd=tmp_path)
    assert names(result) == ["h"]
    assert capsys.readouterr().out == "hi\n"


async def test_a_hook_that_could_not_be_loaded_can_be_made_to_block(tmp_path: Path) -> None:
    """`fail_closed` puts a gate in the place of a broken file."""
    good, bad = write(tmp_path / "good.py"), write(tmp_path / "bad.py", "raise ValueError('no')")
    result = await load_hooks([good, bad], cwd=tmp_path)
    assert await HookRunner(result.hooks, cwd=tmp_path).emit(CALL) is None
    verdict = await HookRunner(result.fail_closed(), cwd=tmp_path).emit(CALL)
    assert isinstance(verdict, Block)
    assert "could not be loaded" in verdict.reason
    assert f"{bad}:1: ValueError: no" in verdict.reason


async def test_a_loaded_hook_shows_what_it_registered(load_hook: LoadHook) -> None:
    """A loaded hook lists its handlers by event, in order of registration, and its tools."""
    hook = await load_hook("""
        from types import SimpleNamespace
        def one(event, ctx): pass
        def two(event, ctx): pass
        async def execute(tool_call_id, input, *, on_update=None): pass
        def register(api):
            api.on("turn_end", one)
            api.on("turn_start", two)
            api.on("turn_end", two)
            api.register_tool(SimpleNamespace(name="t", description="d", input_schema={}, execute=execute))
    """)
    assert {event: [handler.name for handler in hook.handlers[event]] for event in hook.handlers} == {
        "turn_end": ["one", "two"],
        "turn_start": ["two"],
    }
    assert [tool.name for tool in hook.tools] == ["t"]


async def test_a_changed_file_is_compiled_afresh(tmp_path: Path) -> None:
    """A second load within the same second reads the new source, also of a module beside the hook."""
    write(tmp_path / "beside.py", "VALUE = 1\n")
    path = write(tmp_path / "h.py", "from beside import VALUE\n" + GOOD)
    first = await load_hooks([path], cwd=tmp_path)
    write(tmp_path / "beside.py", "VALUE = 2\n")
    second = await load_hooks([path], cwd=tmp_path)
    assert [getattr(result.hooks[0].module, "VALUE", None) for result in (first, second)] == [1, 2]
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("link", [".agent", ".agent/hooks"])
async def test_a_hook_directory_that_is_a_link_to_nothing_is_an_error(home: Path, project: Path, link: str) -> None:
    """A symlink to a missing directory is an error, because hooks were meant to be there."""
    (home / link).parent.mkdir(exist_ok=True)
    (home / link).symlink_to("gone")
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert [error.error for error in result.errors] == [
        f"the hook directory cannot be read: {home / link} is a symlink to a missing file"
    ]


@pytest.mark.anyio
async def test_one_path_instead_of_a_list_is_refused(project: Path) -> None:
    """A single path raises, because a text is a list of characters too."""
    with pytest.raises(HookUsageError, match=r"load_hooks\(\['a.py'\]"):
        await load_hooks("a.py", cwd=project)


# ---- packages --------------------------------------------------------------------------------------------------------


def package(directory: Path, **files: str) -> Path:
    """Write a hook package, an empty file for each name without a source."""
    for name, source in files.items():
        write(directory / f"{name}.py", source)
    return directory


async def test_a_directory_whose_init_has_register_is_one_hook(home: Path, project: Path) -> None:
    """Packages and files load in the order of their names, and a package's files import one another."""
    write(hooks_of(project) / "zz.py")
    package(
        hooks_of(project) / "my.gate",
        __init__="""
            from . import rules
            from .rules import WORD
            from .handlers import gate as watch
            LIMIT = 3
            async def register(api):
                from .late import NAME
                assert (NAME, rules.WORD, WORD) == ("late", "rm", "rm")
                api.on("tool_call", watch)
        """,
        rules="WORD = 'rm'\n",
        handlers="""
            import rules as absolute
            from .rules import WORD
            from . import rules
            assert rules is absolute
            async def gate(event, ctx):
                from . import LIMIT
                from .deep.inside import why
                return {"block": True, "reason": f"{why} {WORD} {LIMIT}"}
        """,
        late="NAME = 'late'\n",
    )
    write(hooks_of(project) / "my.gate" / "deep" / "__init__.py", "")
    write(hooks_of(project) / "my.gate" / "deep" / "inside.py", "from ..rules import WORD as why\n")
    before = private_modules()
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert result.errors == []
    assert names(result) == ["my", "zz"]
    assert result.hooks[0].path == str(hooks_of(project) / "my.gate")
    assert await HookRunner(result.hooks, cwd=project).emit(CALL) == Block("rm rm 3", ".agent/hooks/my.gate")
    assert len({name.partition(".")[0] for name in private_modules() - before}) == 2


@pytest.mark.parametrize(
    ("source", "is_hook"),
    [
        ("def register(api): pass\n", True),
        ("async def register(api): pass\n", True),
        ("from .main import register\n", True),
        ("from .main import setup as register\n", True),
        ("from .main import *\n", True),
        ("from .main import setup\nregister = setup\n", True),
        ("register: object = lambda api: None\n", True),
        ("if True:\n    def register(api): pass\n", True),
        ("try:\n    from .nothing import x\nexcept ImportError:\n    from .main import register\n", True),
        ("", False),
        ("raise RuntimeError('a helper is not run')\n", False),
        ("def setup(api):\n    register = api\n    def register(api): pass\n", False),
        ("class A:\n    def register(self): pass\n", False),
        ("register.me = 1\n", False),
    ],
)
async def test_a_package_without_register_is_no_hook_but_something_that_hooks_import(
    home: Path, project: Path, source: str, is_hook: bool
) -> None:
    """The loader reads the `__init__.py` to find `register`, so that a helper package is not run."""
    main = "def register(api): pass\nsetup = register\n"
    package(hooks_of(project) / "thing", __init__=source, main=main)
    for name in ("_private", ".hidden", "bare"):
        package(hooks_of(project) / name, main=GOOD)
    package(hooks_of(project) / "_private", __init__=GOOD)
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert result.errors == []
    assert names(result) == (["thing"] if is_hook else [])


@pytest.mark.parametrize(
    ("files", "file", "line", "told"),
    [
        ({"__init__": "from .sub import x\ndef register(api): pass\n", "sub": "x = (\n"}, "sub", 1, "SyntaxError"),
        (
            {"__init__": "from .sub import register\n", "sub": "\n\nraise ValueError('no')\n"},
            "sub",
            3,
            "ValueError: no",
        ),
        (
            {"__init__": "from .sub import register\n", "sub": "def register(api):\n    api.on('x')\n"},
            "sub",
            2,
            "unknown",
        ),
        ({"__init__": "def register(api:\n"}, "__init__", 1, "SyntaxError"),
        ({"__init__": "\nfrom .gone import register\n"}, "__init__", 2, "ModuleNotFoundError"),
        ({"__init__": "from .sub import *\n", "sub": "x = 1\n"}, None, None, "there is no register"),
        ({"__init__": "\0"}, None, None, "null bytes"),
    ],
)
async def test_what_is_wrong_with_a_package_is_told_with_file_and_line(
    project: Path, home: Path, files: dict[str, str], file: str | None, line: int | None, told: str
) -> None:
    """The error of a package names the file and line, and no module of it is left."""
    directory = package(hooks_of(project) / "pkg", **files)
    before = private_modules()
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert private_modules() == before
    (error,) = result.errors
    assert told in error.error
    assert error.path == str(directory)
    assert (error.file, error.line) == (file and str(directory / f"{file}.py"), line)
    assert str(error).startswith(f"{directory / f'{file}.py'}:{line}: " if file else f"{directory}: ")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("link to nowhere", "is a symlink to nowhere, which does not exist"),
        ("init to nowhere", "its __init__.py is a symlink to nowhere, which does not exist"),
        ("init is a pipe", "its __init__.py is not a regular file; a hook is a .py file"),
        (
            "init is a directory",
            "its __init__.py is a directory; a hook is a .py file, or a directory with an __init__.py",
        ),
    ],
)
async def test_a_package_that_cannot_be_read_is_an_error_and_not_left_out(
    home: Path, project: Path, kind: str, told: str
) -> None:
    """It may be a gate: a link to a repository that is not there now, for example.  A pipe is not opened."""
    gate = hooks_of(home) / "gate"
    if kind == "link to nowhere":
        gate.parent.mkdir(parents=True)
        gate.symlink_to("nowhere")
    else:
        gate.mkdir(parents=True)
        init = gate / "__init__.py"
        if kind == "init to nowhere":
            init.symlink_to("nowhere")
        elif kind == "init is a pipe":
            os.mkfifo(init)
        else:
            init.mkdir()
    write(hooks_of(project) / "good.py")
    with anyio.fail_after(PATIENCE):
        result = await discover_and_load_hooks(cwd=project, home=home)
    assert names(result) == ["good"]
    assert [(error.path, error.error) for error in result.errors] == [(str(gate), told)]


async def test_no_depth_of_a_package_ends_the_search_for_register(home: Path, project: Path) -> None:
    """A chain of 2,000 `elif` nests as many statements, and `register` stands behind it."""
    chain = "".join(f"elif 0 == {number}: pass\n" for number in range(2000))
    package(hooks_of(project) / "helper", __init__=f"if 0: pass\n{chain}")
    package(hooks_of(project) / "deep", __init__=f"if 0: pass\n{chain}{GOOD}")
    result = await discover_and_load_hooks(cwd=project, home=home)
    assert [*names(result), *(os.path.basename(error.path) for error in result.errors)] == ["deep"]


async def test_a_package_can_be_configured_and_is_loaded_once(home: Path, project: Path) -> None:
    """A package is named by directory, `__init__.py` or symlink; a directory without an `__init__.py` is an error."""
    directory = package(project / "pkg", __init__=GOOD)
    (project / "alias").symlink_to(directory)
    (project / "bare").mkdir()
    package(project / "dir.py", __init__=GOOD)
    paths: list[str | Path] = ["pkg", "pkg/__init__.py", "alias", directory, "bare", "dir.py"]
    result = await load_hooks(paths, cwd=project)
    assert [hook.path for hook in result.hooks] == ["pkg"]
    assert [str(error) for error in result.errors] == [
        "bare: is a directory; a hook is a .py file, or a directory with an __init__.py",
        "dir.py: is a directory; its name must not end in .py",
    ]


async def test_a_package_that_is_loaded_again_is_read_again(project: Path) -> None:
    """A second load reads each file of a package again, and the two copies are separate."""
    directory = package(project / "pkg", __init__="from .sub import VALUE\n" + GOOD, sub="VALUE = 1\n")
    first = await load_hooks([directory], cwd=project)
    package(directory, sub="VALUE = 2\n")
    second = await load_hooks([directory], cwd=project)
    assert [getattr(result.hooks[0].module, "VALUE", None) for result in (first, second)] == [1, 2]
    assert not (directory / "__pycache__").exists()


async def test_a_failure_inside_of_a_package_names_the_file(project: Path) -> None:
    """The text of the error has the file, because the line is a line of it."""
    directory = package(
        project / "pkg",
        __init__="from .sub import register\n",
        sub="""
            async def broken(event, ctx):
                raise ValueError("no")
            def register(api):
                api.on("turn_start", broken)
                api.on("tool_call", broken, tool="bsh")
        """,
    )
    result = await load_hooks([directory], cwd=project)
    runner = HookRunner(result.hooks, cwd=project)
    errors: list[str] = []
    runner.on_error(lambda error: errors.append(str(error)))
    await runner.emit(TURN)
    runner.know_tools(["bash"])
    runner.check_matchers()
    assert errors[0] == f"{directory} ({directory}/sub.py:3): broken on turn_start: ValueError: no"
    assert errors[1].startswith(
        f"{directory} ({directory}/sub.py:2): broken on tool_call: tool='bsh' can match no known tool"
    )
