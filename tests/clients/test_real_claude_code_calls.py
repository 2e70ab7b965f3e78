"""Calls in the real Claude Code: its own tools, its permissions, its sub-agents and skills, and the tools of a server."""

from __future__ import annotations

import json

import pytest

from clients.claude_seat import Calls, ClaudeSeat, bash, with_server
from model_server import Say

pytestmark = pytest.mark.client


def test_the_guards_come_along(claude: ClaudeSeat) -> None:
    """They work without a hook file, for commands and files, and for every tool that reaches these."""
    (claude.project / "kept").mkdir()
    (claude.project / ".env").write_text("TOKEN=x")
    claude.install()
    calls: Calls = [
        bash("rm -rf kept ~"),
        ("Read", {"file_path": str(claude.project / ".env")}),
        ("Monitor", {"command": "rm -rf kept ~", "description": "x", "timeout_ms": 1000}),
        ("Grep", {"pattern": "TOKEN", "path": str(claude.project / ".env")}),
        ("Grep", {"pattern": "TOKEN", "glob": "*.py .env", "output_mode": "content"}),
    ]
    run = claude.play(
        *(Say(calls=[call]) for call in calls),
        Say("done"),
        allow=["Bash", "Read", "Monitor", "Grep"],
        args=["--tools", "Bash,Read,Monitor,Grep"],
    )
    assert (claude.project / "kept").exists()
    assert [result.is_error for result in run.results] == [True] * 5
    assert all("builtin:" in result.text for result in run.results)


def test_a_rewritten_call_is_what_runs(claude: ClaudeSeat) -> None:
    """The client gets its own words, also if a hook used ours."""
    claude.hook("""
        from agent_hooks import Rewrite

        def register(api):
            @api.on("before_tool_call", tool="bash")
            def shell(event, ctx):
                return Rewrite({**event.params, "command": event.params["command"].replace("old", "new")})

            @api.on("before_tool_call", tool="write")
            def write(event, ctx):
                return Rewrite({**event.params, "path": event.params["path"].replace("old", "new")})
    """)
    file = {"file_path": str(claude.project / "old.txt"), "content": "text"}
    run = claude.play(Say(calls=[bash("touch old && echo old")]), Say(calls=[("Write", file)]), Say("done"))
    assert run.results[0].text == "new"
    assert (claude.project / "new").exists()
    assert (claude.project / "new.txt").read_text() == "text"
    assert not list(claude.project.glob("old*"))


def test_of_two_hooks_that_disagree_the_block_wins(claude: ClaudeSeat) -> None:
    """Tested with two of our files, and with ours beside an entry of another program that allows everything."""
    claude.install()
    allow = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    settings = json.loads(claude.settings.read_text())
    entry = {"type": "command", "command": f"cat >/dev/null; echo '{json.dumps(allow)}'"}
    settings["hooks"]["PreToolUse"].append({"hooks": [entry]})
    claude.settings.write_text(json.dumps(settings))
    claude.hook(
        """
        def register(api):
            @api.intercept("permission.ask")
            def yes(input, output):
                output.status = "allow"
    """,
        "a_yes.py",
    )
    claude.hook(
        """
        from agent_hooks import Ask, Block

        def register(api):
            @api.on("tool_call", tool="bash")
            def no(event, ctx):
                return Block("no") if "blocked" in event.input["command"] else Ask("May it?", "run")
    """,
        "b_no.py",
    )
    run = claude.play(Say(calls=[bash("touch blocked")]), Say(calls=[bash("touch settled")]), Say("done"), allow=())
    assert run.results[0].is_error
    assert "b_no.py" in run.results[0].text
    assert not (claude.project / "blocked").exists()
    assert (claude.project / "settled").exists()


def test_a_permission_request_is_answered_by_permission_ask(claude: ClaudeSeat) -> None:
    """A request without an answer is denied, because no person is present."""
    claude.hook("""
        def register(api):
            @api.intercept("permission.ask")
            def decide(input, output):
                for status in ("allow", "deny"):
                    if status in input.args["command"]:
                        output.status = status
    """)
    calls = [bash(f"touch {status}.txt") for status in ("allow", "deny", "neither")]
    run = claude.play(*(Say(calls=[call]) for call in calls), Say("done"), allow=())
    assert [result.is_error for result in run.results] == [False, True, True]
    assert "denied by permission.ask" in run.results[1].text
    assert [path.name for path in claude.project.glob("*.txt")] == ["allow.txt"]


def test_calls_of_a_sub_agent_are_judged_and_known_as_such(claude: ClaudeSeat) -> None:
    """They have an `agent_id`, and so does the sub-agent's end."""
    claude.hook("""
        from agent_hooks import Block

        def register(api):
            @api.on("tool_call")
            def gate(event, ctx):
                with open("log", "a") as log:
                    log.write(f"{ctx.agent_id} {event.tool_name}\\n")
                if ctx.agent_id != "main" and "deny" in event.input.get("command", ""):
                    return Block("not for a helper")

            @api.on("agent_end")
            def end(event, ctx):
                with open("log", "a") as log:
                    log.write(f"{ctx.agent_id} end\\n")
    """)
    task = {"description": "look", "prompt": "look around", "run_in_background": False}
    run = claude.play(
        Say(calls=[("Agent", task)]),
        Say(calls=[bash("touch deny")]),
        Say(calls=[bash("touch fine")]),
        Say("I looked"),
        Say("done"),
    )
    assert run.answer == "done"
    assert (claude.project / "fine").exists()
    assert not (claude.project / "deny").exists()
    (who, what), *rest = [line.split() for line in claude.lines()]
    assert (who, what) == ("main", "Agent")
    helper = rest[0][0]
    assert helper != "main"
    assert rest == [[helper, "bash"], [helper, "bash"], [helper, "end"], ["main", "end"]]


def test_the_tools_of_a_server_keep_their_names(claude: ClaudeSeat) -> None:
    """Their calls can be denied and rewritten, and their failures reach hooks."""
    claude.hook("""
        from agent_hooks import Block, Rewrite

        def register(api):
            @api.on("before_tool_call", tool="mcp__probe__echo")
            def louder(event, ctx):
                return Rewrite({"text": event.params["text"].upper()})

            @api.on("tool_call", tool="mcp__probe__echo")
            def gate(event, ctx):
                return Block("too loud") if "SHOUT" in event.input["text"] else None

            @api.on("tool_result", tool="mcp__probe__fail")
            def failed(event, ctx):
                open("log", "w").write(f"{event.is_error} {event.text}")
    """)
    calls: Calls = [
        ("mcp__probe__echo", {"text": "hi"}),
        ("mcp__probe__echo", {"text": "shout"}),
        ("mcp__probe__fail", {}),
    ]
    run = claude.play(*(Say(calls=[call]) for call in calls), Say("done"), allow=["mcp__probe"], args=with_server())
    assert [(result.is_error, "too loud" in result.text) for result in run.results] == [
        (False, False),
        (True, True),
        (True, False),
    ]
    assert run.results[0].text == "HI"
    assert claude.lines() == ["True it broke"]


def test_what_no_hook_sees(claude: ClaudeSeat) -> None:
    """As the page says: a file that a prompt names, and the commands in a skill; a prompt and a skill can be blocked."""
    claude.hook("""
        from agent_hooks import Block

        def register(api):
            @api.on("tool_call")
            def gate(event, ctx):
                with open("log", "a") as log:
                    log.write(f"{event.tool_name}\\n")
                return None if event.tool_name == "Skill" and event.input["skill"] == "known" else Block("no")
    """)
    (claude.project / "notes.txt").write_text("what is noted")
    for name in ("known", "unknown"):
        skill = claude.project / f".claude/skills/{name}/SKILL.md"
        skill.parent.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {name}\nallowed-tools: Bash(touch:*)\n---\n"
        skill.write_text(f"{head}Result: !`touch {name}`\n")
    calls: Calls = [("Skill", {"skill": name}) for name in ("known", "unknown")]
    run = claude.play(*(Say(calls=[call]) for call in calls), Say("done"), prompt="look at @notes.txt", allow=["Skill"])
    assert "what is noted" in run.context
    assert [result.is_error for result in run.results] == [False, True]
    assert (claude.project / "known").exists()
    assert not (claude.project / "unknown").exists()
    assert claude.lines() == ["Skill", "Skill"]
