"""The process for one event starts without `site`, and still finds all modules that `site` would have found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

import agent_hooks
from agent_hooks.server import siteless

PACKAGE = Path(agent_hooks.__file__).parent
FINDER = """
import sys
from importlib.util import spec_from_file_location

class Finder:
    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, {file!r}) if name == {name!r} else None

sys.meta_path.append(Finder())
"""
WRITE = """
from pathlib import Path
from agent_hooks.bridges import open_bridge
from agent_hooks.server.stub import config_of, stub_text
Path("stub.py").write_text(stub_text(config_of(open_bridge("claude-code"), start=0.0)))
"""


class Environment:
    """A virtual environment that finds the package, and a project whose events it judges without a server."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", symlinks=True)
        self.python = str(folder / "venv" / "bin" / "python")
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.hook = folder / ".agent" / "hooks" / "hook.py"
        self.hook.parent.mkdir(parents=True)
        self.environment = {"HOME": str(folder), "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self.project)}
        self.packages = Path(self("import site; print(site.getsitepackages()[0])").strip())
        self.add("ours.pth", f"{PACKAGE.parent}\n# a comment\n\nnowhere\n{sysconfig.get_path('purelib')}\n")

    def __call__(self, program: str, *options: str, **variables: str) -> str:
        """Run Python in the project and return its output."""
        return self.run([self.python, *options, "-c", program], **variables)

    def run(self, command: list[str], stdin: str = "", **variables: str) -> str:
        """Run a command in the project and return its output."""
        environment = {**self.environment, **variables}
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=environment, cwd=self.project, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def add(self, name: str, text: str) -> Path:
        """Install a file beside the packages."""
        path = self.packages / name
        path.write_text(text)
        return path

    def add_finder(self, name: str) -> None:
        """Install a module that only a finder finds, as an editable installation does."""
        hidden = self.project.parent / f"{name}.txt.py"
        hidden.write_text("word = 'found'\n")
        self.add(f"{name}_finder.py", FINDER.format(file=str(hidden), name=name))
        self.add(f"{name}.pth", f"import {name}_finder\n")

    def answer(self, hook: str) -> Any:
        """Return the answer of a hook to a call."""
        self.hook.write_text(hook)
        # The hook of an earlier answer would judge too.
        (self.hook.parent.parent / "trust" / "own.json").unlink(missing_ok=True)
        call = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "1"}
        text = json.dumps({**call, "tool_input": {"command": "ls"}})
        return json.loads(self.run([self.python, "-I", "-S", "stub.py", "PreToolUse"], text))

    def said(self, expression: str, imports: str = "import sys") -> str:
        """Return the value of an expression in a hook."""
        tell = f"ctx.ui.notify(str({expression}))"
        return str(
            self.answer(
                f"{imports}\ndef register(api):\n    @api.on('tool_call')\n    def tell(event, ctx):\n        {tell}"
            )["systemMessage"]
        )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Give an environment whose client is not written yet."""
    return Environment(tmp_path)


def test_hooks_find_what_finders_find_installed_before_and_after_the_client_was_written(
    environment: Environment,
) -> None:
    """A later module is found by `site`, which runs only then."""
    environment.add_finder("early")
    environment(WRITE)
    environment.add_finder("late")
    site = "(sys.flags.no_site, 'site' in sys.modules)"
    assert environment.said(site) == "(1, False)"
    assert environment.said(f"({site}, early.word)", "import sys, early") == "((1, False), 'found')"
    assert environment.said(f"({site}, late.word)", "import sys, early, late") == "((1, True), 'found')"
    assert "nothing_has_this_name" in str(environment.answer("import nothing_has_this_name"))


def test_what_the_standard_library_does_without_needs_no_site(environment: Environment) -> None:
    """The standard library tries to import modules of other systems."""
    environment(WRITE)
    missing = "import sys, subprocess\ntry:\n    import _winapi\nexcept ImportError:\n    pass"
    assert environment.said("'site' in sys.modules", missing) == "False"


def test_a_line_that_fails_does_not_keep_the_event_from_being_judged(environment: Environment) -> None:
    """The module that the line imports was uninstalled."""
    environment.add_finder("early")
    environment(WRITE)
    for file in environment.packages.glob("early*"):
        file.unlink()
    assert environment.said("sys.flags.no_site") == "1"


def test_paths_and_prefixes_are_those_with_site_and_none_of_the_project(environment: Environment) -> None:
    """They do not depend on the options of the process that wrote the client."""
    (environment.project / "sitecustomize.py").write_text("import sys\nsys.path.append('/somewhere')\n")
    tell = "import sys; print([sys.path, sys.prefix, sys.exec_prefix])"
    environment(f"import sys; sys.path.insert(0, {str(environment.project)!r})\n{WRITE}", PYTHONPATH=".")
    assert environment.said("[sys.path, sys.prefix, sys.exec_prefix]") == environment(tell, "-P", "-E").strip()


def test_without_the_package_where_site_looks_the_process_starts_with_site(environment: Environment) -> None:
    """This is so for a checkout on PYTHONPATH.  A name in a directory that cannot be read is no error."""
    environment.add("ours.pth", "")
    (environment.packages / "broken.pth").symlink_to("nowhere")
    program = "from agent_hooks.server.siteless import start_of; print(start_of('main.py'))"
    path = os.pathsep.join([str(PACKAGE.parent), sysconfig.get_path("purelib")])
    assert environment(program, PYTHONPATH=path).strip() == "['-P', '-E', 'main.py']"


def test_this_environment_starts_without_site() -> None:
    """The package is installed in it."""
    *options, program = siteless.start_of("main.py")
    assert options == ["-I", "-S", "-c"]
    assert all(os.path.isabs(path) for path in sys.path)
    assert str(PACKAGE.parent) in program
