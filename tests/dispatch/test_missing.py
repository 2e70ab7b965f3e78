"""A hook that imports a package which is not installed says how to get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent_hooks import Block, HookError, HookRunner, ToolCall, load_hooks
from agent_hooks.dispatch import missing
from agent_hooks.dispatch.missing import install_command, remedy_for

pytestmark = pytest.mark.anyio
CALL = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
LATE = """\
def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        import no_such_package
"""


async def test_a_missing_package_is_an_error_with_the_command_and_the_header(tmp_path: Path) -> None:
    """The command is for the Python that runs the hooks; a module with another name than its package is known."""
    (tmp_path / "hook.py").write_text("import no_such_package\n")
    (tmp_path / "deep.py").write_text("from no_such_package.inner import x\n")
    result = await load_hooks([tmp_path / "hook.py", tmp_path / "deep.py"], cwd=tmp_path)
    for error in result.errors:
        assert error.error.startswith("ModuleNotFoundError: No module named 'no_such_package'; install it into")
        assert f"{sys.executable} -m pip install no-such-package; or" in error.error
        assert '# /// script, # dependencies = ["no-such-package"], # ///' in error.error
    assert [error.line for error in result.errors] == [1, 1]
    assert "pip install PyYAML;" in remedy_for(ModuleNotFoundError("gone", name="yaml"), str(tmp_path / "hook.py"))


async def test_an_import_inside_a_handler_gets_the_same_remedy(tmp_path: Path) -> None:
    """Where the hook runs makes no difference; the call is blocked."""
    for name, isolation in (("inline", ""), ("process", 'ISOLATION = "process"')):
        (tmp_path / f"{name}.py").write_text(f"{isolation}\n{LATE}")
        runner, errors = HookRunner(await load_hooks([f"{name}.py"], cwd=tmp_path), cwd=tmp_path), list[HookError]()
        runner.on_error(errors.append)
        async with runner:
            answer = await runner.emit(CALL)
        assert isinstance(answer, Block)
        (error,) = errors
        assert error.error.startswith(
            "ModuleNotFoundError: No module named 'no_such_package'; install it into the Python"
        )
        assert f"{sys.executable} -m pip install no-such-package; or" in error.error
        assert error.error in answer.reason
        assert str(error).startswith(f"{name}.py:5: gate on tool_call: ModuleNotFoundError")


async def test_a_hook_with_a_header_is_told_to_add_to_it(tmp_path: Path) -> None:
    """It has an environment of its own."""
    hook = tmp_path / "hook.py"
    hook.write_text("# /// script\n# dependencies = []\n# ///\nimport gone\n")
    text = remedy_for(ModuleNotFoundError("gone", name="gone"), str(hook))
    assert text == '; add "gone" to the dependencies in its header (# /// script)'


async def test_a_missing_file_beside_the_hook_is_no_package(tmp_path: Path) -> None:
    """Nor is a part of Python or of an installed package."""
    package = tmp_path / "hook"
    package.mkdir()
    (package / "__init__.py").write_text("from .gone import register\n")
    (error,) = (await load_hooks([package], cwd=tmp_path)).errors
    assert "install" not in error.error
    for name in ("os.gone", "msgspec.gone", "tkinter"):
        assert remedy_for(ModuleNotFoundError("gone", name=name), "") == ""
    assert remedy_for(ImportError("gone", name="x"), "") == ""


@pytest.mark.parametrize(
    ("prefix", "pip", "command"),
    [
        ("/home/me/.local/share/uv/tools/agent-hooks-runtime", True, "uv tool install --with x agent-hooks-runtime"),
        ("/home/me/.local/pipx/venvs/agent-hooks-runtime", True, "pipx inject agent-hooks-runtime x"),
        ("/venv", True, "'/my venv/python' -m pip install x"),
        ("/venv", False, "uv pip install --python '/my venv/python' x"),
    ],
)
async def test_the_command_is_that_of_the_tool_that_made_the_environment(
    monkeypatch: pytest.MonkeyPatch, prefix: str, pip: bool, command: str
) -> None:
    """An environment of uv or pipx has no pip."""
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", "/my venv/python")
    monkeypatch.setattr(missing, "find_spec", lambda name: object() if pip else None)
    assert install_command("x") == command
