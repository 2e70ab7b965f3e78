"""`agent-hooks list`, `check`, `emit`, `schema`, and the entry point."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from agent_hooks import __version__
from agent_hooks.cli.main import COMMANDS
from agent_hooks.cli.streams import complain
from agent_hooks.guards.config import read_sections
from agent_hooks.settings import load_settings
from running import Command
from support import PATIENCE

ROOT = Path(__file__).parent.parent.parent
HOOK = """
    import re
    from agent_hooks import Block, Rewrite

    def register(api):
        @api.on("tool_call", tool="bash", priority=5)
        async def gate(event, ctx):
            if event.input.get("command") == "raise":
                raise ValueError("oh")
            return Block("no") if event.input.get("command") == "rm" else None

        @api.on("tool_call", tool=["write", re.compile("^e")])
        async def other(event, ctx):
            return None

        api.on("before_tool_call", lambda event, ctx: Rewrite({"command": "x"}))
"""


def test_no_message_on_stderr_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters of a hook's error or of a file are escapes; lines stay lines."""
    complain("no \x1b[31mred\nhere")
    assert capsys.readouterr().err == "agent-hooks: no \\x1b[31mred\nhere\n"


def hook_rows(command: Command) -> list[list[str]]:
    """Return the words of each line about hooks, which a blank line ends."""
    rows = [line.split() for line in command("list").stdout.splitlines()]
    return rows[: rows.index([])]


def test_list_shows_handlers_in_the_order_they_run_and_where_they_came_from(command: Command, home: Path) -> None:
    """The order is by event, then by priority; the sources are global, project, settings and --hook."""
    text = "def register(api):\n    api.on('tool_call', print)\n"
    for path in (home / ".agent/hooks/g.py", command.project / "s.py", command.project / "x.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command.add_hook(HOOK, "p.py")
    (command.project / ".agent/settings.json").write_text('{"hooks": ["../s.py"]}')

    done = command("list", "--hook", "x.py")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["event", "hook", "source", "handler", "tool", "priority"]
    assert [(row[0], row[2], row[3]) for row in rows[1 : rows.index([])]] == [
        ("before_tool_call", "project", "<lambda>"),
        ("tool_call", "project", "gate"),
        ("tool_call", "global", "print"),
        ("tool_call", "project", "other"),
        ("tool_call", "settings", "print"),
        ("tool_call", "--hook", "print"),
    ]
    assert "write, /^e/" in done.stdout

    handlers = json.loads(command("list", "--json").stdout)["handlers"]
    assert handlers[1] == {
        "event": "tool_call",
        "hook": str(command.project / ".agent/hooks/p.py"),
        "source": "project",
        "isolation": "inline",
        "handler": "gate",
        "tool": "bash",
        "priority": 5,
    }


def test_list_without_hooks_says_where_it_looked(command: Command) -> None:
    """The message names the directories that were searched."""
    assert "no hooks: ~/.agent/hooks and .agent/hooks of the project hold none" in command("list").stdout


def test_list_shows_tools_and_hooks_that_register_nothing(command: Command) -> None:
    """A hook is listed even if it registers nothing."""
    command.add_hook("def register(api): pass\n", "a.py")
    command.add_hook(
        """
        class Tool:
            name = "dice"
            description = ""
            input_schema = {}

            async def execute(self, tool_call_id, input, *, on_update=None): ...

        def register(api):
            api.register_tool(Tool())
        """,
        "b.py",
    )
    rows = hook_rows(command)[1:]
    assert rows == [
        ["(nothing)", ".agent/hooks/a.py", "project"],
        ["(offers", "a", "tool)", ".agent/hooks/b.py", "project", "dice"],
    ]


def test_list_names_what_could_not_be_loaded(command: Command) -> None:
    """It exits 1, with file and line."""
    command.add_hook("def register(api): pass\n!\n", "bad.py")
    assert "bad.py:2: SyntaxError" in command("list", code=1).stderr
    assert json.loads(command("list", "--json", code=1).stdout)["errors"][0]["line"] == 2


def test_check_loads_without_running_an_agent(command: Command) -> None:
    """Each file without a problem has a line."""
    command.add_hook(HOOK, "p.py")
    assert command("check", ".agent/hooks/p.py").stdout == ".agent/hooks/p.py: loaded, 3 handlers\n"


def test_check_counts_everything_that_a_hook_registers(command: Command) -> None:
    """Handlers, interceptors, tools and tasks; a hook that registers nothing is loaded."""
    command.add_hook(
        """
        from agent_hooks import Interceptor, initialize_interceptors

        async def watch(): ...

        def roll(sides: int = 6) -> str:
            return "4"

        def register(api):
            api.on("tool_call", lambda event, ctx: None)
            api.intercept("tool.before", lambda input, output: None)
            initialize_interceptors().add(Interceptor("x", "event", lambda input, output: None))
            api.register_tool(roll)
            api.start_task(watch)
        """,
        "all.py",
    )
    command.add_hook("def register(api): pass\n", "nothing.py")
    assert command("check", ".agent/hooks").stdout.splitlines() == [
        ".agent/hooks/all.py: loaded, 1 handler, 2 interceptors, 1 tool, 1 task",
        ".agent/hooks/nothing.py: loaded",
    ]


def test_check_refuses_a_tool_that_could_not_be_called(command: Command) -> None:
    """The line is that of `api.register_tool`."""
    command.add_hook(
        """
        class Tool:
            name, description, input_schema = "dice", "", {}

            async def execute(self, input): ...

        def register(api):
            api.register_tool(Tool())
        """
    )
    assert "hook.py:8: api.register_tool: dice.execute cannot be called with" in command("check", code=1).stdout


def test_check_takes_directories(command: Command) -> None:
    """A project or its `.agent`: hooks, transformers and their settings; any other directory: the hooks in it."""
    agent = command.project / ".agent"
    command.add_hook("def register(api): pass\n", "a.py")
    (agent / "transformers").mkdir()
    (agent / "transformers" / "mine.py").write_text("def transform(tool_input, config): return tool_input\n")
    (agent / "transformers" / "wrong.py").write_text("class Mine:\n    def transform(self, tool_input, config): ...\n")
    (agent / "command_intercept.yaml").write_text("version: 1\ntools: {bash: {transformers: [{name: mine}]}}\n")
    (command.project / "empty").mkdir()
    (command.project / "loose").mkdir()
    (command.project / "loose" / "b.py").write_text("def register(api): pass\n")
    wrong = (
        "there is no transform, only the class Mine; take its method out of the class, without `self`: "
        "a transformer defines `def transform(tool_input, config): ...`"
    )
    for named in (".", ".agent"):
        assert command("check", named, code=1).stdout.splitlines() == [
            f"{agent}/transformers/wrong.py: {wrong}",
            ".agent/hooks/a.py: loaded",
            ".agent/transformers/mine.py: loaded, 1 transformer",
            ".agent/command_intercept.yaml: read, 1 transformer",
        ]
    assert command("check", "loose").stdout == "loose/b.py: loaded\n"
    assert command("check", "empty", code=1).stdout.startswith("empty: no hooks here; ")


def test_check_without_a_path_checks_what_counts_here(command: Command) -> None:
    """The agent home's hooks, and the project's as far as they are approved: no code of a stranger runs.

    Files that wait for approval were not checked, which the exit code says too.
    """
    command.trusted = False
    assert command("check").stdout == "no hooks: ~/.agent/hooks and .agent/hooks of the project hold none\n"
    command.add_hook("open('ran', 'w')\ndef register(api):\n    api.on('tool_call', lambda e, c: None)\n", "mine.py")
    done = command("check", code=1)
    assert done.stdout == ""
    assert ".agent waits for approval, and nothing of it was checked" in done.stderr
    assert "to check its files: agent-hooks check .agent" in done.stderr
    assert not (command.project / "ran").exists()
    settings = "version: 1\ntools: {ls: {transformers: [{name: exclude_directories, config: {patterns: [x]}}]}}\n"
    (command.project / ".agent" / "command_intercept.yaml").write_text(settings)
    command("trust", "--yes")
    (command.project / ".agent" / "hooks" / "mine.py").write_text("def register(:")
    done = command("check", code=1)
    assert done.stdout.splitlines() == [
        ".agent/hooks/mine.py, as approved: loaded, 1 handler",
        ".agent/command_intercept.yaml, as approved: read, 1 transformer",
    ]
    assert (
        ".agent was changed, and the approved files were checked; to check those on the disk: agent-hooks check .agent"
        in done.stderr
    )
    command.trusted = True
    command.add_hook("def register(api):\n    api.on('tool_call', lambda e, c: None)\n", "mine.py")
    assert command("check").stdout.splitlines() == [
        ".agent/hooks/mine.py: loaded, 1 handler",
        ".agent/command_intercept.yaml: read, 1 transformer",
    ]


def test_check_reports_each_problem_as_file_and_line(command: Command) -> None:
    """A syntax error, a matcher that fits no tool and a missing file are problems; the exit code is 1."""
    command.add_hook("def register(api):\n    1 +\n", "bad.py")
    command.add_hook("def register(api):\n    api.on('tool_call', lambda event, ctx: None, tool='bahs')\n", "typo.py")
    done = command("check", ".agent/hooks/bad.py", ".agent/hooks/typo.py", "gone.py", code=1)
    assert ".agent/hooks/bad.py:2: SyntaxError" in done.stdout
    assert "typo.py:2: <lambda> on tool_call: tool='bahs' can match no known tool" in done.stdout
    assert "did you mean 'bash'" in done.stdout
    assert "gone.py: no such file" in done.stdout
    command.add_hook("def register(api):\n    api.on('tool_call', lambda e, c: None, tool='Bash|Edit')\n", "typo.py")
    told = "a text is one exact name: write a list of names, or re.compile('Bash|Edit')"
    assert told in command("check", ".agent/hooks/typo.py", code=1).stdout


def test_a_tool_of_another_agent_is_no_mistake_when_the_settings_know_it(command: Command) -> None:
    """`knownTools`: for handlers and interceptors, in check and in a run."""
    command.add_hook("""\
        import re

        def register(api):
            api.on("tool_call", lambda event, ctx: None, tool=["Glob", re.compile("^Glo")])
            api.intercept("tool.before", lambda input, output: None, tool="^Glob$")
    """)
    run = ("run", "--no-session", "@ls")
    assert command("check", ".agent/hooks/hook.py", code=1).stdout.count("can match no known tool") == 2
    assert command(*run).stderr.count("can match no known tool") == 2
    (command.project / ".agent" / "settings.json").write_text('{"knownTools": ["Glob"]}')
    assert command("check", ".agent/hooks/hook.py").stdout == ".agent/hooks/hook.py: loaded, 1 handler, 1 interceptor\n"
    assert "can match no known tool" not in command(*run).stderr


def test_emit_shows_each_answer_its_time_and_the_outcome(command: Command) -> None:
    """Only the named files take part; handlers that were not called are shown as such."""
    command.add_hook("def register(api):\n    raise ValueError('not mine')\n", "bad.py")
    hook = str(command.add_hook(HOOK, "p.py").relative_to(command.project))
    done = command("emit", "tool_call", "--hook", hook, "--input", '{"command": "rm"}')
    assert 'gate     {"answer": "Block", "reason": "no"}' in done.stdout
    assert " ms" in done.stdout
    assert "not called" in done.stdout
    assert 'outcome: {"answer": "Block", "reason": "no", "by": ".agent/hooks/p.py"}' in done.stdout

    done = command("emit", "tool_call", "--hook", hook, "--tool", "edit", "--json")
    assert json.loads(done.stdout)["outcome"] is None
    called = {row["handler"].split(".")[-1]: row["called"] for row in json.loads(done.stdout)["handlers"]}
    assert called == {"gate": False, "other": True}


def test_emit_shows_a_failing_handler_and_exits_1(command: Command) -> None:
    """Its exception stands in the place of its answer."""
    hook = str(command.add_hook(HOOK, "p.py"))
    done = command("emit", "tool_call", "--hook", hook, "--input", '{"command": "raise"}', code=1)
    assert "failed: ValueError: oh" in done.stdout
    assert "not loaded" in command("emit", "turn_start", "--hook", str(command.add_hook("!", "bad.py")), code=1).stderr


@pytest.mark.parametrize(
    "event",
    [
        "session",
        "session:before_clear",
        "agent_start",
        "agent_end",
        "turn_start",
        "turn_end",
        "before_tool_call",
        "tool_result",
        "after_tool_call",
    ],
)
def test_every_event_can_be_emitted(command: Command, event: str) -> None:
    """The handler sees it."""
    name = event.partition(":")[0]
    hook = command.add_hook(f"def register(api):\n    api.on('{name}', lambda event, ctx: print('saw', event.type))\n")
    assert f"saw {name}" in command("emit", event, "--hook", str(hook), "--output", "x").stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["tool_cal"], "did you mean 'tool_call'"),
        (["session:begin"], "unknown event"),
        (["tool_call", "--input", "{"], "--input is not JSON"),
        (["tool_call", "--input", "[]"], "must be a JSON object"),
    ],
)
def test_emit_says_what_is_wrong_with_its_arguments(command: Command, args: list[str], says: str) -> None:
    """The exit code is 2, and the error names the nearest name."""
    hook = command.add_hook("def register(api): pass\n")
    assert says in command("emit", *args, "--hook", str(hook), code=2).stderr


def test_an_event_without_handlers_says_so(command: Command) -> None:
    """Silence would look like success."""
    hook = command.add_hook("def register(api): pass\n")
    assert "no handler of turn_start" in command("emit", "turn_start", "--hook", str(hook)).stdout


def test_the_settings_example_has_every_key_and_fits_the_schema(command: Command, tmp_path: Path) -> None:
    """The example is a valid settings file."""
    schema = json.loads(command("schema", "settings").stdout)
    text = (ROOT / "settings.example.json").read_text()
    jsonschema.validate(json.loads(text), schema)
    assert set(json.loads(text)) == set(schema["$defs"]["SettingsFile"]["properties"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"hookTimeout": 0}, schema)

    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent" / "settings.json").write_text(text)
    settings = load_settings(cwd=tmp_path, home=tmp_path / "nobody")
    assert (settings.hook_timeout, settings.tool_call_timeout) == (30.0, None)
    assert settings.hooks == ()


def test_the_settings_example_copied_into_place_changes_nothing(
    command: Command, home: Path, no_agent_around: None
) -> None:
    """Every key has its default, so our host and a bridge run as without the file, and say nothing about it."""
    (home / ".agent").mkdir()
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "cwd": str(command.project)}
    payload = json.dumps({**call, "tool_input": {"command": "echo prod"}})

    def run() -> tuple[Any, ...]:
        host = command("run", "--no-session", "@bash echo prod")
        bridge = command("bridge", "claude-code", stdin=payload)
        doctor = json.loads(command("doctor", "--json").stdout)
        settings = load_settings(cwd=command.project, home=home)
        guards = read_sections(settings.guards)
        others = replace(settings, guards=())
        return host.stdout, host.stderr.partition("(")[0], bridge.stdout, bridge.stderr, doctor, guards, others

    before = run()
    shutil.copy(ROOT / "settings.example.json", home / ".agent" / "settings.json")
    assert run() == before
    assert before[1] == "• bash echo prod → ok "
    assert before[2:4] == ("{}\n", "")


def test_the_events_schema_takes_what_run_prints(command: Command) -> None:
    """The wire form of every event fits it."""
    schema = json.loads(command("schema", "events").stdout)
    lines = command("run", "--json", '@bash echo x\n@write {"path": 1}').stdout.splitlines()
    assert len(lines) > 10
    for line in lines:
        jsonschema.validate(json.loads(line), schema)


def test_help_and_version(command: Command) -> None:
    """Every command is listed."""
    text = command("--help").stdout
    for name in ("run", "list", "check", "emit", "schema"):
        assert f"  {name} " in text
        assert "Usage" in command(name, "--help").stdout
    assert __version__ in command("--version").stdout


@pytest.mark.parametrize("bug", ["RuntimeError('a bug')", "ExceptionGroup('in a task', [RuntimeError('a bug')])"])
def test_a_bug_of_ours_is_one_line_and_a_file_to_report(
    command: Command, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    """The person never sees a traceback; the file has it."""
    (command.project / "sitecustomize.py").write_text(
        f"import agent_hooks.cli.setup as common\ndef broken(*_): raise {bug}\ncommon.merge_settings = broken\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(command.project))
    stderr = command("list", code=1).stderr
    assert "internal error: RuntimeError: a bug; please report it with " in stderr
    report = Path(stderr.split("report it with ")[1].strip())
    assert "Traceback" in report.read_text()
    report.unlink()


def test_a_hook_package_is_listed_checked_and_run_like_a_file(command: Command) -> None:
    """It is discovered, or named with --hook; an error names the file inside the package."""
    package = command.project / ".agent" / "hooks" / "gate"
    command.add_hook("from .rules import register\n", "gate/__init__.py")
    command.add_hook(
        """
        def register(api):
            api.on("tool_call", lambda event, ctx: {"block": True, "reason": "not here"}, tool="bash")
        """,
        "gate/rules.py",
    )
    command.add_hook("WORDS = []\n", "helpers/__init__.py")
    [_, row] = hook_rows(command)
    assert row == ["tool_call", ".agent/hooks/gate", "project", "<lambda>", "bash", "0"]
    assert command("check", str(package)).stdout == ".agent/hooks/gate: loaded, 1 handler\n"
    assert "not here (.agent/hooks/gate)" in command("run", "@bash ls").stdout
    moved = package.rename(command.project / "gate")
    assert "not here (gate)" in command("run", "--hook", "gate", "@bash ls").stdout
    assert "not here" in command("emit", "tool_call", "--hook", "gate").stdout

    (moved / "rules.py").write_text("register = (\n")
    assert command("check", "gate", code=1).stdout == f"{moved}/rules.py:1: SyntaxError: '(' was never closed\n"
    done = command("list", "--json", "--hook", "gate", code=1)
    [error] = json.loads(done.stdout)["errors"]
    assert (error["path"], error["file"], error["line"]) == (str(moved), f"{moved}/rules.py", 1)
    assert command("check", "helpers", "--cwd", ".", code=1).stdout.endswith("helpers: no such file\n")


def test_list_shows_transformers_and_check_reads_their_file(command: Command) -> None:
    """The list shows their source; a mistake is a line with file and key, and exit code 1."""
    path = command.project / ".agent" / "command_intercept.yaml"
    path.parent.mkdir()
    path.write_text("version: 1\ntools:\n  ls: {transformers: [{name: default_args}]}\n  find: {enabled: 5}\n")
    listed = command("list", code=1)
    row = "(transforms) .agent/command_intercept.yaml project default_args ls"
    assert row in [" ".join(line.split()) for line in listed.stdout.splitlines()]
    mistake = f"{path}:4: key 'tools.find.enabled': expected true or false, found '5'"
    assert f"not loaded: {mistake}" in listed.stderr
    found = json.loads(command("list", "--json", code=1).stdout)
    assert found["handlers"][0]["handler"] == "default_args"
    assert (found["errors"][0]["path"], found["errors"][0]["line"]) == (str(path), 4)
    checked = command("check", str(path), "nowhere.yaml", code=1)
    assert mistake in checked.stdout
    assert f"{command.project}/nowhere.yaml: no such file" in checked.stdout
    assert ".agent/command_intercept.yaml: read, 1 transformer" in checked.stdout


def test_the_table_of_points_is_there_for_programs_too(command: Command) -> None:
    """Each point has its input, the fields that may be changed, and whether it may block."""
    points = {row["point"]: row for row in json.loads(command("list", "--points", "--json").stdout)["points"]}
    assert len(points) == 12
    assert points["tool.before"] == {
        "point": "tool.before",
        "when": "before a tool call is judged",
        "input": ["tool_name", "tool_call_id"],
        "output": ["args", "block", "block_reason"],
        "matcher": "tool",
        "blocks": True,
    }


def test_a_reader_that_goes_is_no_error_to_tell(command: Command) -> None:
    """`agent-hooks list --points | head -1` has such a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        line = [sys.executable, "-m", "agent_hooks", "list", "--points"]
        done = subprocess.run(
            line, stdout=gone, stderr=subprocess.PIPE, cwd=command.project, timeout=PATIENCE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_page_of_the_command_has_each_command() -> None:
    """A command that is added, or renamed, has a row in the table of docs/command.md."""
    rows = re.findall(r"^\| (.*?[^\\]) \|", (ROOT / "docs" / "command.md").read_text(), re.MULTILINE)
    named = {name.split()[0] for row in rows for name in re.findall(r"`(.*?)`", row)}
    assert set(COMMANDS) <= named


def test_list_shows_guards_redaction_and_checkpoints_with_their_files(command: Command, home: Path) -> None:
    """Without settings they are built in; a rule of your own is a row, and a guard that is off names the file."""
    shown = {row["name"]: row for row in json.loads(command("list", "--json").stdout)["inForce"]}
    assert list(shown) == ["builtin:command-safety-guard", "builtin:security-audit", "redaction", "checkpoints"]
    assert {(row["state"], *row["sources"]) for row in shown.values()} == {
        ("on, level project", "built in"),
        ("on", "built in"),
    }
    own = home / ".agent" / "settings.json"
    own.parent.mkdir(exist_ok=True)
    own.write_text(json.dumps({"redaction": {"reportOnly": True}, "guards": {"disabled": ["builtin:security-audit"]}}))
    project = command.project / ".agent" / "settings.json"
    project.parent.mkdir(exist_ok=True)
    rule = {"id": "mine", "pattern": "deploy", "reason": "ask first", "tool": "bash", "ask": True}
    project.write_text(json.dumps({"checkpoints": {"enabled": False}, "guards": {"level": "strict", "rules": [rule]}}))
    printed = [line.split(None, 1) for line in command("list").stdout.splitlines()]
    rows = {words[0]: " ".join(words[1].split()) for words in printed if len(words) == 2}
    assert rows["builtin:command-safety-guard"] == "on, level strict .agent/settings.json"
    assert rows["builtin:security-audit"] == f"off {own}"
    assert rows["rule"] == "mine asks bash .agent/settings.json"
    assert rows["redaction"] == f"reports only {own}"
    assert rows["checkpoints"] == "off .agent/settings.json"
