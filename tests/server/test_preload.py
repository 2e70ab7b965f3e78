"""The generated file loads C modules from the places that the installation found, and does without those places."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks.server import preload
from agent_hooks.server.stub import config_of, stub_text
from other_agent import BRIDGE, OtherAgent

# Without directories to search, `import` finds the modules that are loaded already, and no others.
PROGRAM = """
{text}
preload({version!r}, {files!r})
sys.path.clear()
import {name}
"""


def imported(name: str, file: str, version: str = sys.version) -> bool:
    """Return whether a new interpreter has the module of a file after it was loaded beforehand."""
    text = Path(preload.__file__).read_text()
    program = PROGRAM.format(text=text, version=version, files={name: file}, name=name)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "ModuleNotFoundError" in done.stderr, done.stderr
    return done.returncode == 0


def file_of_a_module() -> tuple[str, str]:
    """Return a C module of the standard library that is a file here, and its file."""
    for name in ("_socket", "_json", "_asyncio", "_elementtree", "_testcapi"):
        file = str(getattr(__import__(name), "__file__", ""))
        if file.endswith(".so"):
            return name, file
    pytest.skip("this Python has all modules in its program")


def test_a_module_is_loaded_from_its_file_without_a_search() -> None:
    """The file is that which the installation found."""
    assert imported(*file_of_a_module())


def test_the_files_of_another_python_are_left_alone() -> None:
    """A Python that was replaced could crash with them; it finds its own by a search."""
    assert not imported(*file_of_a_module(), version="another")


def test_a_file_that_is_gone_is_left_to_the_search() -> None:
    """The standard library has moved."""
    name, file = file_of_a_module()
    assert not imported(name, f"{file}.gone")


@pytest.mark.parametrize("change", [(".so'", ".gone'"), ("preload('", "preload('another ")])
def test_an_event_is_answered_after_python_was_moved_or_replaced(agent: OtherAgent, change: tuple[str, str]) -> None:
    """The generated file was written for the Python that was there before."""
    text = Path(agent.stub).read_text()
    Path(agent.stub).write_text(text.replace(*change))
    assert agent() == {}


def test_the_generated_file_is_a_program_whose_every_line_after_the_head_is_a_comment() -> None:
    """So Python reads over the program, which comes from the bytecode."""
    head, _, program = stub_text(config_of(BRIDGE)).partition("\nexec(code_of(__file__))")
    assert "\n#|" not in head
    assert all(line.startswith("#|") for line in program.splitlines()[1:] if line)


def test_the_import_of_the_module_changes_nothing() -> None:
    """The server imports it to write the generated file, and has to collect its garbage."""
    code = "import gc; from agent_hooks.server import preload; print(gc.isenabled())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"
