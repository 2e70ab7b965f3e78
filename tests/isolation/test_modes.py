"""Which hooks get a process of their own, from which bytes, under which limits, and in which programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from agent_hooks import Block, HookRunner, SettingsError, discover_and_load_hooks, load_hooks, load_settings
from agent_hooks.isolation.mode import Isolation, IsolationError, literal_of, mode_of
from agent_hooks.settings import HookIsolation
from agent_hooks.trust.policy import Trust
from isolation.isolating import load, running
from other_agent import OtherAgent
from running import Command
from support import call_of, gone
from trust.approving import agent_file, approve


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ('ISOLATION = "process"', "process"),
        ('ISOLATION: str = "process"', "process"),
        ('x = 1\nISOLATION = "inline"', "inline"),
        ("def f():\n    ISOLATION = 5", None),
        ("# ISOLATION = 'process'", None),
        ("class C:\n    ISOLATION = 'process'", None),
        ("print(ISOLATION)", None),
        ("ISOLATION = (", None),
        ('\uff29\uff33\uff2f\uff2c\uff21\uff34\uff29\uff2f\uff2e = "process"', "process"),
        ("x = [ISOLATION for ISOLATION in 'ab']", None),
        ("def f():\n    x = lambda ISOLATION: [ISOLATION := 1]", None),
        ("def f():\n    global ISOLATION\n    return ISOLATION", None),
        ("import os.ISOLATION", None),
        ("from x import *\n# ISOLATION", None),
        ("# ISOLATION\nx = a" + ".b()" * 900, None),
        ("ISOLATION = 'process'\nx = " + "+".join(["1"] * 900), "process"),
    ],
)
def test_the_mode_of_a_file_is_a_literal_at_its_top(source: str, mode: Isolation | None) -> None:
    """Other uses of the name, and files with a syntax error, name no mode."""
    assert literal_of(source.encode()) == mode


@pytest.mark.parametrize(
    "source",
    [
        'ISOLATION = "pro" + "cess"',
        "ISOLATION = True",
        "ISOLATION = 'thread'",
        "import os\nISOLATION = os.environ['X']",
        "try:\n    ISOLATION = 'process'\nfinally: pass",
        "from x import ISOLATION",
        "for ISOLATION in 'ab': pass",
        "ISOLATION = 'inline'\nISOLATION = 'process'",
        "ISOLATION += 'x'",
        "a, ISOLATION = 1, 'process'",
        "def ISOLATION(): pass",
        "class ISOLATION: pass",
        "match 'process':\n    case ISOLATION: pass",
        "match ['process']:\n    case [*ISOLATION]: pass",
        "match {}:\n    case {**ISOLATION}: pass",
        "try: 1/0\nexcept Exception as ISOLATION: pass",
        "def f():\n    global ISOLATION\n    ISOLATION = 'process'",
        "class C:\n    def f(self):\n        global ISOLATION\n        import os as ISOLATION",
        "import os as ISOLATION",
        "with open('x') as ISOLATION: pass",
        "(ISOLATION := 'process')",
        "x = [(ISOLATION := y) for y in 'ab']",
        "def f(x=(ISOLATION := 'process')): pass",
        "for \uff29SOLATION in 'ab': pass",
        "ISOLATION = a" + ".b()" * 900,
    ],
)
async def test_a_mode_that_is_no_literal_is_a_load_error_and_nothing_of_the_file_runs(
    source: str, tmp_path: Path
) -> None:
    """The error names the line."""
    with pytest.raises(IsolationError):
        literal_of(source.encode())
    path = tmp_path / "hook.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{source}\ndef register(api): pass\n")
    loaded = await load_hooks([path], cwd=tmp_path)
    assert loaded.hooks == []
    assert "ISOLATION" in loaded.errors[0].error
    assert loaded.errors[0].line in range(2, 6)
    assert not (tmp_path / "ran").exists()


async def test_a_file_that_is_nested_too_deeply_is_a_load_error(tmp_path: Path) -> None:
    """It names the file, and the other hooks are loaded."""
    deep, other = tmp_path / "deep.py", tmp_path / "other.py"
    deep.write_text("ISOLATION = 'process'\nx = " + "+".join(["a"] * 9000))
    other.write_text("def register(api): pass")
    loaded = await load_hooks([deep, other], cwd=tmp_path)
    assert [hook.path for hook in loaded.hooks] == [str(other)]
    assert [error.path for error in loaded.errors] == [str(deep)]


@pytest.mark.parametrize("reader", ["mode_of", "header_of"])
async def test_a_failure_to_read_the_mode_of_a_file_is_its_load_error(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any failure concerns this file only."""

    def fail(*_: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(f"agent_hooks.hooks.loader.{reader}", fail)
    path = tmp_path / "hook.py"
    path.write_text("ISOLATION = 'process'\ndef register(api): pass")
    loaded = await load_hooks([path], cwd=tmp_path)
    assert loaded.hooks == []
    assert loaded.errors[0].path == str(path)
    assert "maximum recursion depth exceeded" in loaded.errors[0].error


@pytest.mark.parametrize(
    ("own", "wanted", "mode"),
    [
        (None, None, "inline"),
        ("process", None, "process"),
        ("process", "inline", "process"),
        ("inline", "process", "process"),
        (None, "process", "process"),
        (None, "inline", "inline"),
    ],
)
def test_the_stricter_of_file_and_settings_counts(own: str | None, wanted: Isolation | None, mode: str) -> None:
    """The settings can ask for a process, and cannot take one from a file that asks for it."""
    source = b"" if own is None else f'ISOLATION = "{own}"'.encode()
    assert mode_of(source, wanted) == mode


def test_the_section_of_the_person_names_hooks_and_limits(project: Path, home: Path) -> None:
    """A path is that of a hook, `*` stands for the others, and a project's section does not count."""
    section = {"*": {"memory": 512}, "hooks/a.py": "process", "~/b.py": {"mode": "process", "cpu": 9, "files": 64}}
    (home / ".agent").mkdir()
    (home / ".agent/settings.json").write_text(json.dumps({"isolation": section}))
    (project / ".agent").mkdir()
    (project / ".agent/settings.json").write_text('{"isolation": {"*": "inline"}}')
    settings = load_settings(cwd=project)
    assert settings.isolation.of(f"{home}/.agent/hooks/a.py") == HookIsolation(mode="process", memory=512)
    assert settings.isolation.of("/x", f"{home}/b.py") == HookIsolation(mode="process", memory=512, cpu=9, files=64)
    assert settings.isolation.of("/elsewhere.py") == HookIsolation(memory=512)
    assert "'isolation' counts only in your own settings" in settings.ignored[-1]


@pytest.mark.parametrize("arguments", [["list"], ["doctor"]])
def test_a_key_that_names_no_hook_is_a_warning(arguments: list[str], command: Command, home: Path) -> None:
    """The text has the key and the path; the key of a file or a package that exists is none."""
    (home / ".agent/hooks/packed").mkdir(parents=True)
    (home / ".agent/hooks/packed/__init__.py").write_text("def register(api): pass\n")
    (home / ".agent/hooks/here.py").write_text("def register(api): pass\n")
    section = dict.fromkeys(("*", "hooks/here.py", "hooks/packed", "hooks/hree.py"), "inline")
    (home / ".agent/settings.json").write_text(json.dumps({"isolation": section}))
    done = command(*arguments)
    text = " ".join((done.stdout + done.stderr).split())
    assert text.count("names no hook") == 1
    assert "'isolation.hooks/hree.py' names no hook" in text


@pytest.mark.parametrize(
    ("section", "part"),
    [
        ('{"a.py": "thread"}', "key 'isolation.a.py': expected 'inline', 'process' or an object, found 'thread'"),
        ('{"a.py": 5}', "key 'isolation.a.py'"),
        ('{"a.py": ["process"]}', "key 'isolation.a.py'"),
        ('{"a.py": {"memory": 1}}', "isolation.a.py.memory"),
        ('{"a.py": {"cpu": "1"}}', "isolation.a.py.cpu"),
        ('{"a.py": {"memory": 9223372036854775808}}', "isolation.a.py.memory"),
        ('{"a.py": {"cpu": 4611686018427387904}}', "isolation.a.py.cpu"),
        ('{"a.py": {"files": 1000000001}}', "isolation.a.py.files"),
        ('{"a.py": {"mode": "thread"}}', "isolation.a.py.mode"),
        ('{"": "process"}', "the key '' is no path of a hook"),
        ('{"a.py": {"memroy": 64}}', "did you mean 'memory'?"),
        ('"process"', "isolation"),
    ],
)
def test_a_wrong_section_is_an_error(section: str, part: str, project: Path, home: Path) -> None:
    """The error names the key."""
    (home / ".agent").mkdir()
    (home / ".agent/settings.json").write_text(f'{{"isolation": {section}}}')
    with pytest.raises(SettingsError) as error:
        load_settings(cwd=project)
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("source", "text", "line"),
    [
        ("def register(api:\n", "SyntaxError", 1),
        ("x = 1\nraise ValueError('boom')\n", "ValueError: boom", 2),
        ("def f(): pass\n", "there is no register", None),
        ("import sys\nsys.exit(3)\n", "called sys.exit(3)", 2),
        ("import os\nos._exit(3)\n", "its process ended (exit code 3)", None),
        ("def register(api):\n    api.on('tool_cal', print)\n", "did you mean 'tool_call'", 2),
        ("def register(api):\n    api.send('x')\n", "cannot be used while hooks are loading", 2),
    ],
)
async def test_a_hook_that_fails_to_load_in_its_process_is_a_load_error(
    source: str, text: str, line: int | None, tmp_path: Path
) -> None:
    """With the text and the line that it has inside of the agent."""
    loaded = await load(tmp_path, source)
    [error] = loaded.errors
    assert text in error.error
    assert error.line == line


async def test_a_hook_imports_the_files_beside_it_and_the_modules_of_the_agent(tmp_path: Path) -> None:
    """Its modules are copies of its own."""
    (tmp_path / "helper.py").write_text("word = 'beside'\n")
    source = """
    import support, helper
    from agent_hooks import Block
    def register(api):
        api.on("tool_call", lambda event, ctx: Block(f"{helper.word} {support.PATIENCE}"), inline=True)
    """
    async with running(tmp_path, source) as started:
        answer = await started.block_of(call_of())
        assert answer.reason == "beside 60.0"
        assert started.process.files == (str(tmp_path / "hook.py"), str(tmp_path / "helper.py"))


async def test_the_approved_bytes_count_also_after_a_restart(project: Path) -> None:
    """The process imports no file that was changed after its approval."""
    source = """
from agent_hooks import Block
import word
ISOLATION = "process"
def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        if event.input["command"] == "fall":
            import os
            os._exit(1)
        return Block(word.WORD)
"""
    agent_file(project, "hooks/gate.py", source)
    agent_file(project, "hooks/word/__init__.py", "WORD = 'approved'\n")
    approve(project)
    agent_file(project, "hooks/gate.py", source.replace("Block(", "print("))
    agent_file(project, "hooks/word/__init__.py", "WORD = 'changed'\n")
    loaded = await discover_and_load_hooks(cwd=project, trust=Trust())
    assert loaded.errors == []
    async with HookRunner([hook for hook in loaded.hooks if hook.name == "gate"], cwd=project) as runner:
        for command in ("ls", "fall", "ls"):
            answer = await runner.emit(call_of(command))
            assert isinstance(answer, Block)
            assert ("approved" in answer.reason) == (command == "ls")


@pytest.mark.parametrize(
    ("limits", "work", "reason"),
    [
        ({"memory": 512}, "x = bytearray(1 << 30)", "MemoryError"),
        ({"files": 32}, "x = [open('/dev/null') for _ in range(64)]", "Too many open files"),
        ({"cpu": 2}, "while True: pass", "its process ended (used up its cpu limit of 2 s)"),
    ],
)
async def test_a_limit_that_is_exceeded_is_a_failure_of_the_hook(
    limits: dict[str, int], work: str, reason: str, tmp_path: Path
) -> None:
    """The gate blocks, and the agent has no such limit."""
    source = f"""
    def register(api):
        @api.on("tool_call")
        async def gate(event, ctx):
            if event.input["command"] == "work":
                {work}
    """
    async with running(tmp_path, source, limits=limits) as started:
        answer = await started.block_of(call_of("work"))
        assert reason in answer.reason
        assert await started.emit(call_of("ls")) is None


# ---- programs


GATE = """
import os
from pathlib import Path
from agent_hooks import Block
ISOLATION = "process"
def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        (Path(__file__).parents[2] / "pid").write_text(str(os.getpid()))
        if "fall" in event.input["command"]:
            os._exit(7)
        if "rm" in event.input["command"]:
            return Block("no rm")
        if "ask" in event.input["command"] and not await ctx.ui.confirm("really?"):
            return Block("the person said no")
"""


def test_the_host_asks_a_gate_in_its_process_and_list_shows_it(command: Command) -> None:
    """In print mode, over the lifetime of a run, and no process is left."""
    hook = command.add_hook(GATE)
    prompt = "@bash echo one\n---\n@bash echo fall\n---\n@bash echo rm\n---\n@bash echo two"
    done = command("run", "-p", "--json", "--no-session", prompt)
    assert "its process ended (exit code 7)" in done.stdout
    assert "no rm" in done.stdout
    assert "4. bash echo two\\n   two" in done.stdout
    pid = int((hook.parents[2] / "pid").read_text())
    anyio.run(gone, pid)
    listed = command("list").stdout
    assert "runs in" in listed
    assert "its own process" in listed
    [row] = json.loads(command("list", "--json").stdout)["handlers"]
    assert row["isolation"] == "process"


@pytest.mark.parametrize(
    ("call", "reason"), [("rm", "no rm"), ("fall", "its process ended (exit code 7)"), ("ls", None)]
)
def test_a_bridge_of_one_event_starts_and_ends_the_process(command: Command, call: str, reason: str | None) -> None:
    """Slower than the resident server, and with the same verdict."""
    hook = command.add_hook(GATE)
    payload = {"hook_event_name": "PreToolUse", "session_id": "1", "cwd": str(command.project), "tool_name": "Bash"}
    done = command("bridge", "claude-code", stdin=json.dumps({**payload, "tool_input": {"command": call}}))
    said = json.loads(done.stdout or "{}")
    if reason is None:
        assert "deny" not in done.stdout
    else:
        assert reason in said["hookSpecificOutput"]["permissionDecisionReason"]
    anyio.run(gone, int((hook.parents[2] / "pid").read_text()))


def test_the_resident_server_has_a_process_for_each_session_until_its_end(agent: OtherAgent) -> None:
    """The same process judges the events of a session; a dialog goes to the other agent."""
    hook = agent.command.add_hook(GATE)
    path = hook.parents[2] / "pid"
    found = []
    for session in ("a", "b", "a"):
        said = agent(session_id=session, tool_input={"command": "rm"})
        assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
        found.append(path.read_text())
    assert found[0] == found[2] != found[1]
    said = agent(session_id="a", tool_input={"command": "ask"})
    assert said["hookSpecificOutput"]["permissionDecision"] == "ask"
    said = agent(session_id="a", tool_input={"command": "fall"})
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    agent(session_id="a", tool_input={"command": "ls"})
    first = int(path.read_text())
    agent("SessionEnd", session_id="a", reason="exit")
    anyio.run(gone, first)
    os.kill(int(found[1]), 0)
