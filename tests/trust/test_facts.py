"""The facts about a set, which a person reads before the code."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks.trust.fact import KINDS, Fact
from agent_hooks.trust.facts import TOO_LARGE, FileFacts, set_facts
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.python_facts import python_facts
from agent_hooks.trust.settings_facts import intercept_facts, settings_facts
from support import ROOT

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*/*.py") if "import_module" not in path.read_text())


def texts(source: str, kind: str, **options: bool) -> list[str]:
    """Return the facts of one kind about a Python text, each with its lines."""
    found = python_facts(textwrap.dedent(source).encode(), **options)  # type: ignore[arg-type]  # hook=True
    found.sort(key=lambda fact: fact.lines)
    return [f"{fact.text} {[*fact.lines]}" if fact.lines else fact.text for fact in found if fact.kind == kind]


def facts_of(project: Path, name: str) -> FileFacts:
    """Return the facts about one file of a project's set."""
    (found,) = set_facts(read_set(str(project)), [name])
    return found


def write(project: Path, files: dict[str, str]) -> None:
    """Write files below `.agent`."""
    for name, text in files.items():
        path = project / ".agent" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def test_subscriptions_name_event_and_tools() -> None:
    """Calls and decorators of `api.on`, `api.intercept`, `register_tool` and the registry are found, with their tools."""
    source = """
        import re
        from agent_hooks import Interceptor
        def register(api):
            api.on("session", start)
            @api.on("tool_call", tool=["bash", re.compile("^mcp__")], priority=3)
            async def gate(event, ctx): ...
            @api.intercept("tool.before", tool="^bash$")
            def change(input, output): ...
            api.register_tool(Deploy())
            api.start_task(watch)
            add(Interceptor("x", "chat.params", change))
            @api.register_tool
            def roll(): ...
    """
    assert texts(source, "subscribes") == [
        "session [5]",
        "tool_call of bash, /^mcp__/ [6]",
        "tool.before of ^bash$ [8]",
        "no event: it runs a background task [11]",
        "chat.params [12]",
    ]
    assert texts(source, "offers") == ["a tool (Deploy) [10]", "a tool (roll) [13]"]
    assert texts(source, "unknown") == []


@pytest.mark.parametrize(
    "line",
    [
        "api.on(EVENT, f)",
        "api.on(*given)",
        "api.on('tool_call', f, **options)",
        "api.on('tool_call', f, tool=names)",
        "subscribe = api.on",
        "map(api.on, names)",
        "getattr(api, 'on')('tool_call', f)",
        "getattr(api, name)('tool_call', f)",
        "getattr(*given)",
        "other = api",
        "given = [api]",
        "elsewhere(api)",
        "elsewhere(x=api)",
        "elsewhere(*api)",
        "match api:\n        case object(on=subscribe): pass",
        "eval('1')",
        "run = exec",
        "__import__('os')",
        "import importlib",
        "from importlib import util",
        "from os import *",
        "import sys; sys.path.insert(0, 'x')",
        "import sys as s; s.modules['os']",
        "import os; x = os",
        "import pickle",
        "import ctypes",
        "import builtins",
        "import agent_hooks.runner.runner",
        "import posix",
        "f.__globals__",
        "globals()['x']",
        "(lambda: 0).__code__",
        "from operator import attrgetter",
        "K = Interceptor",
        "from agent_hooks import load_hooks",
        "import agent_hooks as a; a.discover_and_load_hooks(['x'])",
        "from agent_hooks import HookRunner as Runner",
        "from agent_hooks import reset_interceptors",
        "from agent_hooks import Trust",
        "from agent_hooks import hooks",
        "import agent_hooks as a; a.trust.store",
        "import agent_hooks; x = agent_hooks",
        "from functools import singledispatch",
        "import functools; functools.singledispatchmethod",
        "def tool(x: '__import__(1)'): ...",
        "def tool() -> list['eval(1)']: ...",
        "x: 'f.__globals__' = 1",
        "def tool(*x: \"list['eval(1)']\"): ...",
        "async def tool(*, x: 'getattr(y, z)'): ...",
        "import typing; typing._eval_type",
        "from typing import _eval_type as f",
        "import json as j; j._default_decoder",
        "match shutil:\n        case P(f): pass",
        "match shutil:\n        case [P(f), _] | {1: P(f)}: pass",
        "int = P\n    match shutil:\n        case int(f): pass",
        "from elsewhere import P as int\n    match shutil:\n        case int(f): pass",
        "connection.enable_load_extension(True)",
        "connection.load_extension('x')",
        "(x for x in ()).gi_code",
        "work().cr_code",
        "frame.f_code",
        "from xml.sax import make_parser",
    ],
)
def test_every_dynamic_statement_cannot_be_known(line: str) -> None:
    """A statement that can stand for any name is shown with its line."""
    found = [fact for fact in python_facts(f"def register(api):\n    {line}\n".encode()) if fact.kind == "unknown"]
    assert any(fact.lines in ((2,), (3,), (4,)) for fact in found), line


@pytest.mark.parametrize(
    "line",
    [
        "def tool(x: 'int', y: 'HookAPI' = 1) -> 'list[str] | None': ...",
        "x: 'Literal[1]' = 'eval(1)'",
        "x: 'not a type' = 1",
        "match event:\n        case str(text) | int(text): pass",
        "match event:\n        case ToolCall(tool_name='bash'): pass",
        "from agent_hooks import ToolCall, checkpoints, effects_of, is_bash_tool_call",
        "import agent_hooks; agent_hooks.Block('no')",
        "self._own = 1",
        "from __future__ import annotations",
    ],
)
def test_annotations_patterns_and_the_public_api_hide_nothing(line: str) -> None:
    """The facts name what can stand for any name, and nothing more."""
    found = [fact for fact in python_facts(f"def register(api):\n    {line}\n".encode()) if fact.kind == "unknown"]
    assert found == []


def test_the_text_of_an_annotation_is_read_as_code() -> None:
    """Our own `register_tool` evaluates it, and so does `singledispatch`."""
    source = """
        def tool(x: "__import__('os').system('id') or int",
                 y: "environ") -> None: ...
    """
    assert texts(source, "programs") == ["….system [2]"]
    assert texts(source, "unknown") == ["__import__ [2]"]


def test_the_api_may_be_passed_on_inside_of_the_set() -> None:
    """A function of the file, or of a file beside it, may take the api: its subscriptions are found there."""
    source = (
        b"from helpers import more\ndef some(x): x.on('session', f)\ndef register(api):\n  some(api)\n  more(api)\n"
    )
    found = python_facts(source, beside=frozenset({"helpers"}), hook=True)
    assert [fact.kind for fact in found] == ["imports", "subscribes"]
    assert "unknown" in {fact.kind for fact in python_facts(source, hook=True)}


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("programs", "import subprocess"),
        ("programs", "from subprocess import run"),
        ("programs", "import os; os.system('x')"),
        ("programs", "from os import execv as e"),
        ("programs", "from shutil import os as helper; helper.popen('x')"),
        ("programs", "ctx.exec(['ls'])"),
        ("programs", "anyio.run_process(['ls'])"),
        ("programs", "import pty"),
        ("programs", "getattr(os, 'system')('x')"),
        ("programs", "from asyncio import create_subprocess_exec"),
        ("programs", "f'{os.popen(1)}'"),
        ("connections", "import socket"),
        ("connections", "from http import client"),
        ("connections", "import urllib.request as r"),
        ("connections", "import httpx"),
        ("connections", "anyio.connect_tcp('x', 1)"),
        ("environment", "import os; os.environ['X']"),
        ("environment", "from os import getenv"),
        ("environment", "open('/proc/self/environ')"),
        ("needs", "import requests"),
        ("needs", "import helpers"),
    ],
)
def test_programs_connections_environment_and_dependencies_are_found(kind: str, line: str) -> None:
    """Also by an alias, by `from … import`, and in an f-string."""
    assert texts(line, kind)


@pytest.mark.parametrize("line", ["import urllib.parse", "from http import HTTPStatus", "import re; re.compile('x')"])
def test_harmless_modules_yield_their_import_only(line: str) -> None:
    """The facts are short for ordinary code."""
    assert {fact.kind for fact in python_facts(line.encode())} == {"imports"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_hide_nothing(path: Path) -> None:
    """An ordinary hook is known as a whole."""
    assert [fact for fact in python_facts(path.read_bytes()) if fact.kind in ("unknown", "refused")] == []


def test_the_metadata_block_of_a_script_names_dependencies() -> None:
    """A block of PEP 723 is read; a damaged one cannot be known."""
    block = '# /// script\n# dependencies = ["rich<14", "numpy"]\n# ///\n'
    assert texts(block, "needs") == ["rich<14 (metadata block)", "numpy (metadata block)"]
    assert texts(block.replace("]", ""), "unknown") == ["the dependencies in its metadata block, which is no TOML"]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"# coding: latin-1\n", "latin-1"),
        (b"#!x\n# -*- coding: utf-7 -*-\n", "utf-7"),
        (b"#!x\r# vim: set fileencoding=cp037 :\r", "cp037"),
        (b"\x0c# coding=rot13\n", "rot13"),
        (b"\xef\xbb\xbf# coding: ascii\n", "ascii"),
        (b"#" + b"x" * 70_000 + b"coding: utf-7\n", "utf-7"),
        (b"x = '\xff'\n", "byte 5 is 0xff"),
        (b"def (:\n", "it is not Python"),
        (b"x = 1\0\n", "it is not Python"),
        (b"\xff\xfex\0", "byte 0"),
    ],
)
def test_another_encoding_and_broken_code_are_refused(data: bytes, word: str) -> None:
    """The text that a person reads is the text that would run."""
    (fact,) = python_facts(data)
    assert fact.kind == "refused"
    assert word in fact.text


@pytest.mark.parametrize("data", [b"# coding: utf-8\nimport os\n", b"\xef\xbb\xbfimport os\r\n", b"import os\r\x0c\n"])
def test_utf_8_is_read_with_any_line_ends(data: bytes) -> None:
    """A cookie for UTF-8, a byte order mark, CRLF, a lone carriage return and a form feed hide nothing."""
    assert [fact.text for fact in python_facts(data) if fact.kind == "imports"] == ["os"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + ")" * 5000,
        "x" + ".a" * 50_000,
        "-" * 50_000 + "1",
        "x = " + "[" * 90 + "]" * 90,
        "+".join(["a"] * 60_000),
        "lambda: " * 3000 + "0",
    ],
    ids=["brackets", "attributes", "signs", "lists", "sums", "lambdas"],
)
def test_deep_code_is_no_error(text: str) -> None:
    """Code that is too deep for the parser cannot be known, and nothing raises."""
    assert isinstance(python_facts(text.encode()), list)


@pytest.mark.slow
def test_a_large_file_is_read() -> None:
    """One MiB of calls yields all its facts."""
    line = b"os.system('x')\n"
    found = python_facts(line * ((1 << 20) // len(line)))
    assert len(found) == (1 << 20) // len(line)


SOURCES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(
        st.sampled_from(
            [
                *(
                    "api",
                    ".on",
                    "(",
                    ")",
                    "'session'",
                    ",",
                    "*",
                    "**",
                    "=",
                    "\n",
                    " ",
                    "def register(",
                    "):",
                    "getattr",
                ),
                *("import ", "from ", "os", " as ", "\r", "\x0c", "\0", "# coding: ", "utf-7", "[", "]", "@", "tool="),
                *("match x:\n case ", "lambda", ":", "f'{", "}'", "\\", "\ud800", "# /// script\n", "# ///\n"),
            ]
        ),
        max_size=40,
    ).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass")),
)


@given(SOURCES)
@example(b"getattr()")
@example(b"getattr(x)")
@example(b"api.on()")
@example(b"api.register_tool()")
@example(b"api.register_tool(*x)")
@example(b"Interceptor()")
@example(b"from . import *")
def test_no_text_makes_the_facts_fail(data: bytes) -> None:
    """Any bytes give facts, as Python, as settings, and as YAML."""
    for found in (python_facts(data, hook=True), settings_facts(data), intercept_facts(data)):
        assert all(isinstance(fact, Fact) and fact.kind in KINDS for fact in found)


def test_settings_show_the_protection_that_they_loosen() -> None:
    """Guards that are off, exceptions, redaction, limits of time; and the hooks that they name."""
    settings = {
        "hooks": ["../x.py"],
        "hookTimeout": None,
        "toolCallTimeout": 5,
        "redaction": {"enabled": False, "reportOnly": True},
        "guards": {
            "disabled": ["builtin:security-audit"],
            "exceptions": [{"id": "rm-rf", "reason": "x"}, {"id": "disk", "pattern": "dd .*", "reason": "x"}],
            "undecidable": "allow",
            "level": "project",
        },
    }
    found = settings_facts(json.dumps(settings).encode())
    assert [fact.text for fact in found if fact.kind == "names"] == ["../x.py"]
    assert [fact.text.partition(": ")[0] for fact in found if fact.kind == "loosens"] == [
        *("hookTimeout", "toolCallTimeout", "redaction.enabled", "redaction.reportOnly", "guards.disabled"),
        *("guards.exceptions", "guards.exceptions", "guards.level", "guards.undecidable"),
    ]
    assert settings_facts(b'{"guards": {"rules": []}, "checkpoints": {"enabled": true}}') == []
    (off,) = settings_facts(b'{"checkpoints": {"enabled": false}}')
    assert (off.kind, off.text) == ("loosens", "checkpoints.enabled: files are not saved, so undo brings nothing back")


@pytest.mark.parametrize(
    "text", ["[]", "{", "\xff", '{"guards": 1}', '{"redaction": []}', '{"checkpoints": 0}', "[" * 100_000]
)
def test_settings_that_cannot_be_read_cannot_be_known(text: str) -> None:
    """They raise nothing."""
    assert [fact.kind for fact in settings_facts(text.encode("latin-1"))] == ["unknown"]


def test_transformers_settings_show_permissions_and_rewrites() -> None:
    """`auto_allow`, sections that are off, and the transformers of each tool, with lines."""
    text = b"version: 1\nenabled: false\ntools:\n  bash:\n    auto_allow: true\n    transformers:\n      - name: tidy\n"
    assert intercept_facts(text) == [
        Fact("loosens", "enabled: no transformer is active, yours included", (2,)),
        Fact("loosens", "auto_allow: calls of bash need no permission of the client", (5,)),
        Fact("rewrites", "bash by tidy", (6,)),
    ]
    assert [fact.kind for fact in intercept_facts(b"a: [")] == ["unknown"]
    assert [fact.kind for fact in intercept_facts(b"a: " + b"[" * 20_000)] == ["unknown"]


def test_each_file_has_a_role(project: Path) -> None:
    """Hooks, modules beside them, packages, transformers, settings, data, and files that are never imported."""
    write(
        project,
        {
            "hooks/gate.py": "import helpers, _rules\ndef register(api): ...\n",
            "hooks/_rules.py": "",
            "hooks/helpers/__init__.py": "",
            "hooks/helpers/more.py": "from . import x\n",
            "hooks/fast.so": "",
            "hooks/policy.json": "{}",
            "transformers/tidy.py": "",
            "settings.json": '{"hooks": ["named/extra.py"]}',
            "named/extra.py": "",
            "command_intercept.yaml": "",
        },
    )
    found = {each.name.removeprefix(".agent/"): each for each in set_facts(read_set(str(project)))}
    assert {name: each.role for name, each in found.items()} == {
        "hooks/gate.py": "hook",
        "hooks/_rules.py": "module",
        "hooks/helpers/__init__.py": "hook",
        "hooks/helpers/more.py": "module",
        "hooks/fast.so": "unused",
        "hooks/policy.json": "data",
        "transformers/tidy.py": "transformer",
        "settings.json": "settings",
        "named/extra.py": "hook",
        "command_intercept.yaml": "intercept",
    }
    assert found["hooks/gate.py"].of("needs") == []
    assert found["named/extra.py"].of("unknown") == [Fact("unknown", "its register: the file defines none")]
    assert found["hooks/fast.so"].of("refused")


def test_a_link_out_of_the_project_is_shown_with_its_target(project: Path, tmp_path: Path) -> None:
    """The facts are those of the target."""
    write(project, {"hooks/a.py": ""})
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text("import socket\ndef register(api): ...\n")
    os.symlink(elsewhere, project / ".agent" / "hooks" / "link.py")
    found = facts_of(project, ".agent/hooks/link.py")
    assert found.target == str(elsewhere)
    assert found.of("connections")


@pytest.mark.slow
def test_the_time_for_a_large_set_is_limited(project: Path) -> None:
    """Files beyond the first MiB are not read, and the facts say so."""
    line = f"x = '{'a' * 100}'\n"
    write(project, {f"hooks/{name}.py": line * 11_000 for name in "abcdef"})
    found = set_facts(read_set(str(project)))
    assert [each.facts == (TOO_LARGE,) for each in found] == [False] * 3 + [True] * 3


def test_blocks_of_metadata_take_linear_time() -> None:
    """Many heads without an end are skipped together."""
    assert texts("# /// script\n" * 50_000, "needs") == []
    assert texts("# /// script\n" * 3 + "# ///\n", "unknown")
