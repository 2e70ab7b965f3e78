"""`agent-hooks bridge`, run as another agent runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from running import TRIO, Command

ROOT = Path(__file__).parent.parent.parent
PAYLOADS: dict[str, Any] = json.loads((ROOT / "tests" / "bridges" / "claude_code.json").read_text())


@pytest.fixture(autouse=True)
def _no_agent_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests themselves may run inside an agent, whose variables would count."""
    for name in [name for name in os.environ if name.startswith(("CLAUDE", "COPILOT", "CURSOR", "GEMINI"))]:
        monkeypatch.delenv(name)


def payload(command: Command, name: str = "PreToolUse:Bash", **fields: Any) -> dict[str, Any]:
    """Return a payload from the project."""
    return {**PAYLOADS[name], "cwd": str(command.project), **fields}


def bridge(command: Command, given: object, *args: str) -> Any:
    """Return the one JSON object that is printed."""
    text = given if isinstance(given, str) else json.dumps(given)
    done = command("bridge", "claude-code", *args, stdin=text)
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def decision(said: Any) -> tuple[str, str]:
    """Return the decision about a call, and its reason."""
    specific = said["hookSpecificOutput"]
    assert specific["hookEventName"] == "PreToolUse"
    return specific["permissionDecision"], specific.get("permissionDecisionReason", "")


def test_an_example_and_the_guards_stop_a_call(command: Command) -> None:
    """The files are the same as in our own agent; a call without a decision gets an empty answer."""
    command.add_hook((ROOT / "examples" / "hooks" / "permission_gate.py").read_text(), "permission_gate.py")
    command.add_hook((ROOT / "examples" / "hooks" / "protected_paths.py").read_text(), "protected_paths.py")
    verdict, why = decision(bridge(command, payload(command, tool_input={"command": "sudo ls"})))
    assert verdict == "ask"
    assert why.startswith("Run sudo?")
    write = {"file_path": str(command.project / "node_modules" / "x.js"), "content": ""}
    said = bridge(command, payload(command, "PreToolUse:Write", tool_input=write))
    assert decision(said) == ("deny", "node_modules is protected (.agent/hooks/protected_paths.py)")
    assert decision(bridge(command, payload(command, tool_input={"command": "rm -rf /"})))[0] == "deny"
    assert bridge(command, payload(command, tool_input={"command": "ls"})) == {}
    ours = command("run", "--no-session", "@bash sudo ls\n@write node_modules/x.js")
    assert "Run sudo?" in ours.stdout


def test_headless_a_question_denies(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `claude -p` no person can answer."""
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ATTENDED", "0")
    command.add_hook((ROOT / "examples" / "hooks" / "permission_gate.py").read_text())
    verdict, why = decision(bridge(command, payload(command, tool_input={"command": "sudo ls"})))
    assert (verdict, "no person is here to answer" in why) == ("deny", True)


def test_every_captured_payload_is_answered(command: Command) -> None:
    """The answer is one JSON object, on both event loops."""
    same = {"tool_use_id": "one"}
    for name in ("SessionStart:startup", "UserPromptSubmit", "PreToolUse:Bash", "PostToolUse:Bash", "Stop"):
        assert bridge(command, payload(command, name, **same)) == {}
    for name in ("SessionEnd", "SubagentStart"):
        assert bridge(command, payload(command, name)) == {}
    done = subprocess.run(
        command.line("bridge", "claude-code", first=TRIO),
        input=json.dumps(payload(command, tool_input={"command": "rm -rf /"})),
        cwd=command.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert decision(json.loads(done.stdout))[0] == "deny"


@pytest.mark.parametrize(
    ("stdin", "args", "denied"),
    [
        ("", (), True),
        ("nonsense", (), True),
        ("[]", ("PreToolUse",), True),
        ('{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_in', (), True),
        ('{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_in', (), False),
        ("[" * 100_000, ("PreToolUse",), True),
        ("", ("PostToolUse",), False),
        ('{"hook_event_name": "PreToolUse", "tool_name": "Bash"}', (), True),
    ],
    ids=["empty", "words", "a list", "half", "half of another", "deep", "empty, of another", "no input"],
)
def test_what_cannot_be_read_denies_a_call(stdin: str, args: tuple[str, ...], denied: bool, command: Command) -> None:
    """Events that cannot be stopped pass without a message."""
    said = bridge(command, stdin, *args)
    assert said == {} if not denied else decision(said)[0] == "deny"


def test_a_payload_of_50_mb_denies(command: Command) -> None:
    """It is read to its end, so that the agent is not cut off."""
    said = bridge(command, payload(command, tool_input={"command": "x" * 50_000_000}), "PreToolUse")
    assert decision(said) == ("deny", "agent-hooks could not read the event: the payload is larger than 32 MiB")


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit(0)",
        "def register(api):\n    api.on('tool_call', lambda event, ctx: 1 / 0)",
        "import sys\ndef register(api):\n    api.on('tool_call', lambda event, ctx: sys.exit(0))",
        "def register(api):\n    api.on('tool_call', lambda event, ctx: 'yes')",
    ],
    ids=["not loaded", "raises", "exits", "odd answer"],
)
def test_a_broken_gate_denies(source: str, command: Command) -> None:
    """The refusal names it, without a traceback."""
    path = command.add_hook(source)
    verdict, why = decision(bridge(command, payload(command)))
    assert verdict == "deny"
    assert path.name in why


def test_broken_settings_deny_calls_and_prompts_and_are_told_at_the_start(command: Command) -> None:
    """The guards that the settings ask for are unknown."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text("{")
    assert "settings.json" in decision(bridge(command, payload(command)))[1]
    said = bridge(command, payload(command, "UserPromptSubmit"))
    assert (said["decision"], "settings.json" in said["reason"]) == ("block", True)
    assert "settings.json" in bridge(command, payload(command, "SessionStart:startup"))["systemMessage"]
    assert bridge(command, payload(command, "Stop")) == {}


def test_a_hook_keeps_the_agent_going_once_in_a_row(command: Command) -> None:
    """Each event is a process of its own, which cannot count."""
    hook = command.add_hook("""
        def register(api):
            api.on("agent_end", lambda event, ctx: {"continue": "run the tests"})
    """)
    for name in ("Stop", "SubagentStop"):
        assert bridge(command, payload(command, name)) == {"decision": "block", "reason": "run the tests"}
        said = bridge(command, payload(command, name, stop_hook_active=True))
        told = f"the agent stops here: hooks may keep it going once in a row; {hook} wants it to go on"
        assert said == {"systemMessage": told}


def test_an_answer_that_cannot_be_written_denies(command: Command) -> None:
    """The exit code denies, because nothing else reaches the agent."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agent_hooks", "bridge", "claude-code"],
            input=json.dumps(payload(command, tool_input={"command": "rm -rf /"})),
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=command.project,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "could not be written" in done.stderr


def test_a_rewrite_that_is_no_json_denies(command: Command) -> None:
    """Claude Code would run the call as it was."""
    command.add_hook(
        "def register(api):\n    api.on('before_tool_call', lambda event, ctx: {'params': {'x': float('nan')}})"
    )
    verdict, why = decision(bridge(command, payload(command)))
    assert (verdict, "not JSON compliant" in why) == ("deny", True)


def test_what_hooks_print_is_not_in_the_answer(command: Command) -> None:
    """A failure after the answer is not in it either: errors of hooks go to stderr."""
    command.add_hook(
        """
        print("at import")

        def register(api):
            api.on("tool_call", lambda event, ctx: print("judging"), tool="bash")
            api.on("after_tool_call", lambda event, ctx: 1 / 0)
            api.on("tool_call", lambda event, ctx: None, tool="Bash")
        """
    )
    done = command("bridge", "claude-code", stdin=json.dumps(payload(command)))
    assert done.stdout == "{}\n"
    assert "judging" in done.stderr
    done = command("bridge", "claude-code", stdin=json.dumps(payload(command, "PostToolUse:Bash")))
    assert "ZeroDivisionError" in done.stderr
    started = bridge(command, payload(command, "SessionStart:startup"))
    assert "never runs: the tool 'Bash' is 'bash' here" in started["systemMessage"]


def test_the_hooks_are_those_of_the_project_wherever_the_agent_went(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `cd` of the agent must not shake them off."""
    command.add_hook(
        "def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True, 'reason': ctx.cwd})"
    )
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(command.project))
    assert decision(bridge(command, payload(command, cwd="/tmp")))[1].startswith("/tmp")


def test_another_agent_that_reads_the_settings_is_left_alone(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a bridge of its own, or none; an agent that sends the events of these settings is judged by its table."""
    monkeypatch.setenv("GEMINI_SESSION_ID", "s")
    assert bridge(command, payload(command, tool_input={"command": "rm -rf /"})) == {}


def test_a_call_whose_payload_says_that_it_is_another_event_is_denied(command: Command) -> None:
    """The event's name on the command line counts; without one, the payload's does."""
    verdict, why = decision(bridge(command, payload(command, "Stop"), "PreToolUse"))
    assert (verdict, "the payload is that of 'Stop'" in why) == ("deny", True)
    assert bridge(command, payload(command, "Stop")) == {}
    assert bridge(command, payload(command, "Stop"), "Stop") == {}
