"""Hook files in the real Claude Code: the calls that ran, the texts for the model, the messages for the person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clients.driving import IDLE, PROGRAM, ClaudeCode, answer
from model_server import ModelServer, Say
from running import write_shared_command
from tmux import Tmux

pytestmark = pytest.mark.client
EXAMPLES = Path(__file__).parents[2] / "examples/hooks"
Calls = list[tuple[str, Any]]


def bash(command: str) -> tuple[str, dict[str, str]]:
    """Return a call of Bash."""
    return "Bash", {"command": command, "description": "as the test says"}


def log_of(claude: ClaudeCode) -> list[str]:
    """Return the lines that the hooks of a test wrote."""
    path = claude.project / "log"
    return path.read_text().splitlines() if path.exists() else []


# ---- before a call


@pytest.mark.behaviour("B20")
def test_ten_lines_stop_a_command(claude: ClaudeCode) -> None:
    """The model gets the reason, and another command runs."""
    claude.add_hook("""
        from agent_hooks import Block

        def register(api):
            @api.on("tool_call", tool="bash")
            def gate(event, ctx):
                if "rm -r" in event.input["command"]:
                    return Block("not in this house")
    """)
    (claude.project / "build").mkdir()
    run = claude.run(Say(calls=[bash("rm -rf build")]), Say(calls=[bash("touch made")]), Say("done"))
    assert (claude.project / "build").exists()
    assert (claude.project / "made").exists()
    denied, made = run.results
    assert denied.is_error
    assert "not in this house" in denied.text
    assert not made.is_error
    assert run.answer == "done"


def test_the_guards_come_along(claude: ClaudeCode) -> None:
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
    run = claude.run(
        *(Say(calls=[call]) for call in calls),
        Say("done"),
        allow=["Bash", "Read", "Monitor", "Grep"],
        args=["--tools", "Bash,Read,Monitor,Grep"],
    )
    assert (claude.project / "kept").exists()
    assert [result.is_error for result in run.results] == [True] * 5
    assert all("builtin:" in result.text for result in run.results)


@pytest.mark.behaviour("B6", "B7")
def test_a_question_is_a_denial_where_nobody_sits(claude: ClaudeCode) -> None:
    """The denial has the words of the question.  `confirm` is one too, and the code after it does not run."""
    claude.add_hook("""
        from agent_hooks import Ask

        def register(api):
            @api.on("tool_call", tool="bash")
            async def gate(event, ctx):
                if "asked" in event.input["command"]:
                    return Ask("Really?", "this one")
                if "confirmed" in event.input["command"]:
                    if await ctx.ui.confirm("Sure?", "that one"):
                        open("log", "w").write("answered yes")
                        return None
                    from agent_hooks import Block
                    return Block("nobody said yes")
    """)
    run = claude.run(Say(calls=[bash("touch asked")]), Say(calls=[bash("touch confirmed")]), Say("done"))
    asked, confirmed = run.results
    assert asked.is_error
    assert "Really?" in asked.text
    assert confirmed.is_error
    assert "nobody said yes" in confirmed.text
    assert not (claude.project / "asked").exists()
    assert not (claude.project / "confirmed").exists()
    assert log_of(claude) == []


def test_a_rewritten_call_is_what_runs(claude: ClaudeCode) -> None:
    """The client gets its own words, also if a hook used ours."""
    claude.add_hook("""
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
    run = claude.run(Say(calls=[bash("touch old && echo old")]), Say(calls=[("Write", file)]), Say("done"))
    assert run.results[0].text == "new"
    assert (claude.project / "new").exists()
    assert (claude.project / "new.txt").read_text() == "text"
    assert not list(claude.project.glob("old*"))


def test_a_rewrite_into_something_that_a_guard_denies_does_not_run(claude: ClaudeCode) -> None:
    """All rewrites come before the guards."""
    claude.add_hook("""
        from agent_hooks import Rewrite

        def register(api):
            @api.on("before_tool_call", tool="bash")
            def worse(event, ctx):
                return Rewrite({**event.params, "command": "touch ran; rm -rf ~"})
    """)
    run = claude.run(Say(calls=[bash("echo fine")]), Say("done"))
    assert run.results[0].is_error
    assert "builtin:command-safety-guard" in run.results[0].text
    assert not (claude.project / "ran").exists()


def test_of_two_hooks_that_disagree_the_block_wins(claude: ClaudeCode) -> None:
    """Tested with two of our files, and with ours beside an entry of another program that allows everything."""
    claude.install()
    allow = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    settings = json.loads(claude.settings.read_text())
    entry = {"type": "command", "command": f"cat >/dev/null; echo '{json.dumps(allow)}'"}
    settings["hooks"]["PreToolUse"].append({"hooks": [entry]})
    claude.settings.write_text(json.dumps(settings))
    claude.add_hook(
        """
        def register(api):
            @api.intercept("permission.ask")
            def yes(input, output):
                output.status = "allow"
    """,
        "a_yes.py",
    )
    claude.add_hook(
        """
        from agent_hooks import Ask, Block

        def register(api):
            @api.on("tool_call", tool="bash")
            def no(event, ctx):
                return Block("no") if "blocked" in event.input["command"] else Ask("May it?", "run")
    """,
        "b_no.py",
    )
    run = claude.run(Say(calls=[bash("touch blocked")]), Say(calls=[bash("touch settled")]), Say("done"), allow=())
    assert run.results[0].is_error
    assert "b_no.py" in run.results[0].text
    assert not (claude.project / "blocked").exists()
    assert (claude.project / "settled").exists()


def test_parallel_calls_are_judged_one_by_one(claude: ClaudeCode) -> None:
    """A denied call does not delay the others."""
    claude.add_hook("""
        from agent_hooks import Block

        def register(api):
            @api.on("tool_call", tool="bash")
            def gate(event, ctx):
                return Block("not this one") if "two" in event.input["command"] else None

            @api.on("after_tool_call")
            def note(event, ctx):
                with open("log", "a") as log:
                    log.write(f"{event.tool_call_id} {event.blocked}\\n")
    """)
    calls = [bash(f"touch {name}") for name in ("one", "two", "three")]
    run = claude.run(Say(calls=calls), Say("done"))
    assert [result.is_error for result in run.results] == [False, True, False]
    assert sorted(path.name for path in claude.project.glob("t*")) == ["three"]
    assert (claude.project / "one").exists()
    seen = [line.split() for line in log_of(claude)]
    assert sorted(blocked for _, blocked in seen) == ["False", "False", "True"]
    assert len({call for call, _ in seen}) == 3


@pytest.mark.behaviour("B8")
def test_a_permission_request_is_answered_by_permission_ask(claude: ClaudeCode) -> None:
    """A request without an answer is denied, because no person is present."""
    claude.add_hook("""
        def register(api):
            @api.intercept("permission.ask")
            def decide(input, output):
                for status in ("allow", "deny"):
                    if status in input.args["command"]:
                        output.status = status
    """)
    calls = [bash(f"touch {status}.txt") for status in ("allow", "deny", "neither")]
    run = claude.run(*(Say(calls=[call]) for call in calls), Say("done"), allow=())
    assert [result.is_error for result in run.results] == [False, True, True]
    assert "denied by permission.ask" in run.results[1].text
    assert [path.name for path in claude.project.glob("*.txt")] == ["allow.txt"]


# ---- after a call


@pytest.mark.behaviour("B4")
def test_a_changed_result_is_what_the_model_is_shown(claude: ClaudeCode) -> None:
    """Each result has the shape of its tool, also the words of a server."""
    claude.add_hook("""
        from agent_hooks import Replace

        def register(api):
            @api.on("tool_result")
            def hide(event, ctx):
                if event.is_error or event.tool_name in ("write", "edit"):
                    return None
                return Replace(content=event.text.replace("secret", "***"))
    """)
    project = claude.project
    (project / "a.txt").write_text("first\nsecret\n")
    (project / "secret.txt").write_text("nothing")
    notebook = {"cells": [{"cell_type": "code", "id": "1", "metadata": {}, "source": ["secret"], "outputs": []}]}
    (project / "a.ipynb").write_text(json.dumps({**notebook, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    calls: Calls = [
        bash("echo secret; echo secret >&2"),
        ("Read", {"file_path": str(project / "a.txt")}),
        ("Read", {"file_path": str(project / "a.ipynb")}),
        ("Glob", {"pattern": "*.txt"}),
        ("Grep", {"pattern": "nothing"}),
        ("Grep", {"pattern": "secret", "output_mode": "content", "glob": "*.txt"}),
        ("Grep", {"pattern": "nothing", "output_mode": "count"}),
        ("mcp__probe__echo", {"text": "secret"}),
    ]
    run = claude.run(
        *(Say(calls=[call]) for call in calls),
        Say("done"),
        allow=["Bash", "Read", "Glob", "Grep", "mcp__probe"],
        args=["--tools", "Bash,Read,Glob,Grep", *with_server()],
    )
    assert len(run.results) == len(calls)
    for (name, _), result in zip(calls, run.results, strict=True):
        assert "***" in result.text, name
        assert "secret" not in result.text, name
    assert run.results[1].text == "1\tfirst\n2\t***\n3\t"


def test_secrets_are_hidden_from_the_model(claude: ClaudeCode) -> None:
    """This works without a hook file, in a notebook, and in an output so long that Claude Code keeps it in a file."""
    token = "ghp_" + "0123456789" * 4
    project = claude.project
    (project / "a.txt").write_text(f"token = {token}\n")
    cell = {"cell_type": "code", "id": "1", "metadata": {}, "source": [f"token = '{token}'"], "outputs": []}
    (project / "a.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    claude.install()
    calls: Calls = [
        bash("cat a.txt"),
        bash("cat a.txt; seq 1 20000"),
        ("Read", {"file_path": str(project / "a.txt")}),
        ("Read", {"file_path": str(project / "a.ipynb")}),
        ("Grep", {"pattern": "token", "output_mode": "content"}),
        ("mcp__probe__echo", {"text": token}),
    ]
    allow = ["Bash", "Read", "Grep", "mcp__probe"]
    run = claude.run(*(Say(calls=[call]) for call in calls), Say("done"), allow=allow, args=with_server())
    assert len(run.results) == len(calls)
    for call, result in zip(calls, run.results, strict=True):
        assert "[redacted github-token]" in result.text, call
        assert token not in result.text, call
    assert "saved to" not in run.results[1].text


def test_what_hooks_say_reaches_the_model_and_the_person(claude: ClaudeCode) -> None:
    """At the start, at the prompt, before and after a call."""
    claude.add_hook("""
        def register(api):
            @api.on("session")
            def start(event, ctx):
                if event.reason == "start":
                    api.send("from the start")

            @api.intercept("message.before")
            def prompt(input, output):
                output.context.append("from the prompt")

            @api.on("tool_call")
            def before(event, ctx):
                api.send("from the call")
                ctx.ui.notify("a call of " + event.tool_name)

            @api.on("tool_result")
            def after(event, ctx):
                api.send("from the result")

            @api.on("turn_end")
            def batch(event, ctx):
                api.send(f"from the turn, {len(event.tool_results)} result")
    """)
    run = claude.run(Say(calls=[bash("true")]), Say("done"))
    for words in ("the start", "the prompt", "the call", "the result", "the turn, 1 result"):
        assert run.context.count(f"from {words}") == 1, words
    assert "PreToolUse:Bash says: a call of bash" in run.notices


def test_a_text_sent_at_the_end_keeps_the_agent_going_once(claude: ClaudeCode) -> None:
    """The second text waits for the next prompt, which does not come here."""
    claude.add_hook("""
        def register(api):
            @api.on("agent_end")
            def more(event, ctx):
                api.send("go on")
    """)
    run = claude.run(Say("first"), Say("second"))
    assert run.answer == "second"
    assert run.context.count("go on") == 1


@pytest.mark.behaviour("B16")
def test_hooks_keep_the_agent_going_and_are_capped(claude: ClaudeCode) -> None:
    """The agent stops when no hook wants more, or after eight times."""
    claude.add_hook("""
        from agent_hooks import Continue

        def register(api):
            @api.on("agent_end")
            def more(event, ctx):
                said = event.messages[-1].content[0].text
                return None if said == "enough" else Continue(f"more after {said}")
    """)
    content = claude.run(Say("one"), Say("two"), Say("enough"))
    assert content.answer == "enough"
    assert content.context.count("Stop hook feedback:\nmore after") == 2
    never = claude.run(*(Say(f"say {number}") for number in range(9)))
    assert never.answer == "say 8"
    assert never.context.count("Stop hook feedback:\nmore after") == 8


@pytest.mark.behaviour("B11")
def test_hooks_keep_their_state_over_a_session(claude: ClaudeCode) -> None:
    """One process answers all events of the session, and another session has hooks of its own."""
    claude.add_hook("""
        def register(api):
            seen = []

            @api.on("tool_call", tool="bash")
            def count(event, ctx):
                seen.append(event.input["command"])
                api.send(f"seen: {len(seen)}")

            @api.on("session")
            def note(event, ctx):
                with open("log", "a") as log:
                    log.write(f"{event.reason} {ctx.session_id}\\n")
    """)
    run = claude.run(Say(calls=[bash("true")]), Say(calls=[bash("true ")]), Say("done"))
    assert "seen: 2" in run.context
    (server,) = claude.servers()
    again = claude.run(Say(calls=[bash("true")]), Say("done"))
    assert "seen: 1" in again.context
    assert claude.servers() == [server]
    sessions = [run.session_id, again.session_id]
    assert log_of(claude) == [f"{reason} {session}" for session in sessions for reason in ("start", "shutdown")]


def test_a_failed_call_is_a_result_with_is_error(claude: ClaudeCode) -> None:
    """Its text stays as it is, and the changed text becomes context."""
    claude.add_hook("""
        from agent_hooks import Replace

        def register(api):
            @api.on("tool_result")
            def explain(event, ctx):
                if event.is_error:
                    return Replace(content=f"{event.tool_name} failed: {event.text.splitlines()[-1]}; try harder")
    """)
    run = claude.run(Say(calls=[bash("echo oh; exit 3")]), Say("done"))
    assert run.results[0].is_error
    assert "Exit code 3" in run.results[0].text
    assert "bash failed: oh; try harder" in run.context


# ---- command_intercept.yaml


EXCLUDE = """
version: 1
tools:
  Glob:
    transformers:
      - name: exclude_directories
        config: {patterns: [.venv, "*.egg-info"]}
  Grep:
    auto_allow: true
    transformers:
      - name: exclude_directories
        config: {patterns: [.venv, "*.egg-info"]}
      - name: add_default_excludes
        config: {glob_excludes: ["*.min.py"]}
"""


@pytest.fixture
def crowded(claude: ClaudeCode) -> ClaudeCode:
    """Return a project with directories that are to be left out."""
    for path in ("a.py", "sub/b.py", ".venv/lib/v.py", "sub/.venv/w.py", "x.egg-info/x.py", "c.min.py"):
        file = claude.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import os\n")
    (claude.project / ".agent").mkdir()
    (claude.project / ".agent/command_intercept.yaml").write_text(EXCLUDE)
    claude.install()
    return claude


@pytest.mark.behaviour("B21")
def test_glob_really_leaves_directories_out(crowded: ClaudeCode) -> None:
    """The result is filtered, because Glob has no argument for it; the model reads how many lines are missing."""
    run = crowded.run(Say(calls=[("Glob", {"pattern": "**/*.py"})]), Say("done"))
    assert sorted(run.results[0].text.splitlines()) == ["a.py", "c.min.py", "sub/b.py"]
    assert "[exclude_directories took 3 lines out of this result of find: .venv, *.egg-info]" in run.context


@pytest.mark.behaviour("B21")
@pytest.mark.parametrize("given", [{}, {"glob": "*.{py,js}"}], ids=["no glob", "a glob"])
def test_grep_really_leaves_directories_out(given: dict[str, str], crowded: ClaudeCode) -> None:
    """The input is changed, so that its limits count only the wanted lines; the rewritten call needs no permission."""
    grep = {"pattern": "import", **given}
    calls: Calls = [
        ("Grep", grep),
        ("Grep", {**grep, "output_mode": "content", "head_limit": 2}),
        ("Grep", {**grep, "output_mode": "count"}),
        ("Grep", {**grep, "path": str(crowded.project / "sub/.venv")}),
    ]
    run = crowded.run(*(Say(calls=[call]) for call in calls), Say("done"), allow=(), args=["--tools", "Grep"])
    files, lines, counts, asked = (sorted(result.text.splitlines()) for result in run.results)
    assert files == ["Found 2 files", "a.py", "sub/b.py"]
    assert lines == ["a.py:1:import os", "sub/b.py:1:import os"]
    assert counts == ["", "Found 2 total occurrences across 2 files.", "a.py:1", "sub/b.py:1"]
    assert asked == ["No files found"]
    assert "[exclude_directories changed this call of grep: exclude=.venv/, *.egg-info/]" in run.context


@pytest.mark.behaviour("B21")
def test_only_auto_allow_spares_a_call_the_prompt(crowded: ClaudeCode) -> None:
    """No person is present to answer the prompt."""
    file = crowded.project / ".agent/command_intercept.yaml"
    default = """
  Write:
    auto_allow: ALLOW
    transformers:
      - name: default_args
        config: {append: {content: "\\n"}}
"""
    for allow in ("false", "true"):
        file.write_text(EXCLUDE + default.replace("ALLOW", allow))
        call = ("Write", {"file_path": str(crowded.project / f"{allow}.txt"), "content": "text"})
        run = crowded.run(Say(calls=[call]), Say("done"), allow=())
        assert run.results[0].is_error is (allow == "false")
    assert not (crowded.project / "false.txt").exists()
    assert (crowded.project / "true.txt").read_text() == "text\n"


# ---- sub-agents, servers


def test_calls_of_a_sub_agent_are_judged_and_known_as_such(claude: ClaudeCode) -> None:
    """They have an `agent_id`, and so does the sub-agent's end."""
    claude.add_hook("""
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
    run = claude.run(
        Say(calls=[("Agent", task)]),
        Say(calls=[bash("touch deny")]),
        Say(calls=[bash("touch fine")]),
        Say("I looked"),
        Say("done"),
    )
    assert run.answer == "done"
    assert (claude.project / "fine").exists()
    assert not (claude.project / "deny").exists()
    (who, what), *rest = [line.split() for line in log_of(claude)]
    assert (who, what) == ("main", "Agent")
    helper = rest[0][0]
    assert helper != "main"
    assert rest == [[helper, "bash"], [helper, "bash"], [helper, "end"], ["main", "end"]]


def with_server() -> list[str]:
    """Return the arguments that offer the tools of a server."""
    server = {"command": sys.executable, "args": ["-I", str(Path(__file__).parent / "mcp_server.py")]}
    return ["--mcp-config", json.dumps({"mcpServers": {"probe": server}})]


def test_the_tools_of_a_server_keep_their_names(claude: ClaudeCode) -> None:
    """Their calls can be denied and rewritten, and their failures reach hooks."""
    claude.add_hook("""
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
    run = claude.run(*(Say(calls=[call]) for call in calls), Say("done"), allow=["mcp__probe"], args=with_server())
    assert [(result.is_error, "too loud" in result.text) for result in run.results] == [
        (False, False),
        (True, True),
        (True, False),
    ]
    assert run.results[0].text == "HI"
    assert log_of(claude) == ["True it broke"]


# ---- prompts, compaction, checkpoints


def test_a_blocked_prompt_never_reaches_the_model(claude: ClaudeCode) -> None:
    """The person gets the reason."""
    claude.add_hook("""
        def register(api):
            @api.intercept("message.before")
            def gate(input, output):
                if "password" in output.message:
                    output.block = True
                    output.block_reason = "no passwords here"
    """)
    run = claude.run(prompt="my password is 1234")
    assert run.requests == []
    assert "no passwords here" in run.answer


def test_a_rewritten_prompt_is_added_to_what_was_said(claude: ClaudeCode) -> None:
    """Claude Code lets no hook change a prompt, and a message tells the person so."""
    claude.add_hook("""
        def register(api):
            @api.intercept("message.before")
            def polite(input, output):
                output.message += ", please"
    """)
    run = claude.run(Say("done"), prompt="build it")
    assert "Read it as:\nbuild it, please" in run.context
    assert any("a hook rewrote the prompt" in notice for notice in run.notices)


@pytest.mark.behaviour("B22")
def test_what_no_hook_sees(claude: ClaudeCode) -> None:
    """As the page says: a file that a prompt names, and the commands in a skill; a prompt and a skill can be blocked."""
    claude.add_hook("""
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
    run = claude.run(*(Say(calls=[call]) for call in calls), Say("done"), prompt="look at @notes.txt", allow=["Skill"])
    assert "what is noted" in run.context
    assert [result.is_error for result in run.results] == [False, True]
    assert (claude.project / "known").exists()
    assert not (claude.project / "unknown").exists()
    assert log_of(claude) == ["Skill", "Skill"]


def test_the_example_of_three_promises(claude: ClaudeCode) -> None:
    """Uploads are asked about, customer ids are hidden, and the files of each prompt are kept."""
    subprocess.run(["git", "init", "--quiet"], cwd=claude.project, check=True)
    (claude.project / "a.txt").write_text("mine")
    claude.add_hook((EXAMPLES / "safe_session.py").read_text(), "safe_session.py")
    show = bash("echo theirs > a.txt; echo cus_12345678 paid")
    run = claude.run(Say(calls=[bash("git push")]), Say(calls=[show]), Say("done"))
    push, paid = run.results
    assert push.is_error
    assert "Let it git push?" in push.text
    assert paid.text == "cus_*** paid"
    (kept,) = json.loads(claude.command("checkpoints", "list", "--json").stdout)
    claude.command("checkpoints", "restore", kept["name"])
    assert (claude.project / "a.txt").read_text() == "mine"


def test_a_compaction_can_be_cancelled(claude: ClaudeCode) -> None:
    """Hooks get the summary of one that is not cancelled."""
    hook = """
        from agent_hooks import Cancel

        def register(api):
            @api.on("session")
            def compaction(event, ctx):
                if event.reason == "before_compact" and "cancel" in (event.custom_instructions or ""):
                    return Cancel("not now")
                if event.reason == "compact":
                    open("log", "w").write(event.compaction_entry.summary)
    """
    claude.add_hook(hook)
    first = claude.run(Say("one"), prompt="hello")
    again = claude.run(Say("two"), prompt="hello again", args=["--resume", first.session_id])
    cancelled = claude.run(prompt="/compact cancel it", args=["--resume", again.session_id])
    assert "not now" in cancelled.answer
    assert cancelled.requests == []
    done = claude.run(Say("<summary>all of it</summary>"), prompt="/compact", args=["--resume", again.session_id])
    assert len(done.requests) == 1
    assert any("all of it" in line for line in log_of(claude))


def test_checkpoints_bring_the_files_back(claude: ClaudeCode) -> None:
    """Made before each turn by the example, restored by the command."""
    subprocess.run(["git", "init", "--quiet"], cwd=claude.project, check=True)
    claude.add_hook((EXAMPLES / "git_checkpoint.py").read_text(), "git_checkpoint.py")
    file = claude.project / "a.txt"
    file.write_text("mine\n")
    run = claude.run(Say(calls=[bash("echo theirs > a.txt; touch b.txt")]), Say(calls=[bash("rm a.txt")]), Say("done"))
    assert not file.exists()
    listed = json.loads(claude.command("checkpoints", "list", "--json").stdout)
    assert [each["session_id"] for each in listed] == [run.session_id] * len(listed)
    assert len(listed) == 3
    claude.command("checkpoints", "restore", listed[1]["name"])
    assert file.read_text() == "theirs\n"
    claude.command("checkpoints", "restore", listed[0]["name"])
    assert file.read_text() == "mine\n"
    assert not (claude.project / "b.txt").exists()


# ---- a person at it


@pytest.mark.terminal
def test_a_person_is_asked_by_claude_codes_own_prompt(claude: ClaudeCode) -> None:
    """The prompt has the words of the question.  A yes lets the call run, a no does not, and `confirm` asks likewise."""
    claude.add_hook("""
        from agent_hooks import Ask

        def register(api):
            @api.on("tool_call", tool="bash")
            async def gate(event, ctx):
                if "confirmed" in event.input["command"]:
                    ctx.ui.notify("this is about to be confirmed")
                    await ctx.ui.confirm("Are you sure of this?", "it touches")
                return Ask("Shall it touch that?", "it is a file")
    """)
    with ModelServer() as server, closing(Tmux(claude.project, columns=120, rows=45)) as tmux:
        server.play(
            Say(calls=[bash("touch asked")]),
            Say("that was a yes"),
            Say(calls=[bash("touch confirmed")]),
            Say("that was another"),
            Say(calls=[bash("touch refused")]),
        )
        claude.open(tmux, server)
        tmux.enter("first")
        question = answer(tmux, "Enter")
        assert "Shall it touch that?" in question
        assert "it is a file" in question
        tmux.sees("that was a yes")
        assert (claude.project / "asked").exists()
        tmux.sees(IDLE)
        tmux.enter("second")
        assert "Are you sure of this?" in answer(tmux, "Enter")
        assert "this is about to be confirmed" in tmux.sees("that was another")
        assert (claude.project / "confirmed").exists()
        tmux.sees(IDLE)
        tmux.enter("third")
        assert "Shall it touch that?" in answer(tmux, "2")
        tmux.sees(IDLE)
        assert not (claude.project / "refused").exists()
        assert not server.replies


@pytest.mark.terminal
def test_a_question_is_asked_though_all_permissions_are_bypassed(claude: ClaudeCode) -> None:
    """A call without a question runs."""
    claude.add_hook("""
        from agent_hooks import Ask

        def register(api):
            @api.on("tool_call", tool="bash")
            def gate(event, ctx):
                return Ask("Shall it touch that?", "it is a file") if "asked" in event.input["command"] else None
    """)
    with ModelServer() as server, closing(Tmux(claude.project, columns=120, rows=45)) as tmux:
        server.play(Say(calls=[bash("touch first")]), Say(calls=[bash("touch asked")]))
        claude.open(tmux, server, "--permission-mode", "bypassPermissions")
        tmux.enter("go")
        assert "Shall it touch that?" in answer(tmux, "2")
        tmux.sees(IDLE)
    assert (claude.project / "first").exists()
    assert not (claude.project / "asked").exists()


# ---- when something is wrong, or gone


@pytest.mark.parametrize(
    "source",
    ["def register(api:", "def register(api):\n    api.on('tool_call', lambda event, ctx: 1 / 0)"],
    ids=["no Python", "raises"],
)
@pytest.mark.behaviour("B10")
def test_a_broken_hook_denies_every_call_by_name(source: str, claude: ClaudeCode) -> None:
    """A gate that cannot be loaded must not be open."""
    claude.add_hook(source, "broken.py")
    run = claude.run(Say(calls=[bash("touch made")]), Say("done"))
    assert run.results[0].is_error
    assert "broken.py" in run.results[0].text
    assert not (claude.project / "made").exists()


GATE = """
    import os
    from agent_hooks import Block

    def register(api):
        @api.on("session")
        def start(event, ctx):
            if event.reason == "start":
                with open("log", "a") as log:
                    log.write(f"{os.getpid()}\\n")

        @api.on("tool_call", tool="bash")
        def gate(event, ctx):
            if "leave" in event.input["command"]:
                os._exit(0)
            if "gated" in event.input["command"]:
                return Block("as ever")
"""


@pytest.mark.behaviour("B13")
def test_a_server_that_is_killed_in_a_session_leaves_no_gap(claude: ClaudeCode) -> None:
    """The next event starts another server."""
    claude.add_hook(GATE)
    (claude.project / "crash.sh").write_text("kill -9 $(tail -n 1 log)")
    crash = bash("sh crash.sh; echo killed")
    run = claude.run(Say(calls=[crash]), Say(calls=[bash("touch gated")]), Say(calls=[bash("touch fine")]), Say("done"))
    killed, gated, fine = run.results
    assert killed.text == "killed"
    assert "as ever" in gated.text
    assert not fine.is_error
    assert [path.name for path in claude.project.glob("[gf]*e*")] == ["fine"]
    first, second = map(int, log_of(claude))
    assert claude.servers() == [second]
    assert first != second


TURNS = """
    import os
    from agent_hooks import ForeignEvent

    def register(api):
        log = open("log", "a", buffering=1)

        @api.on("turn_end")
        def turn(event, ctx):
            print(os.getpid(), file=log)
            api.send(f"heard in process {os.getpid()}")
"""
ALSO_FOREIGN = """
        @api.intercept("event")
        def other(input, output):
            if isinstance(input.event, ForeignEvent):
                print(input.event.name, file=log)
"""


@pytest.mark.behaviour("B23")
def test_what_decides_nothing_is_heard_by_http(claude: ClaudeCode) -> None:
    """The same hooks answer it, in the session that commands opened, and the model gets their texts."""
    claude.command.add_hook(TURNS + ALSO_FOREIGN)
    claude.command("install", "claude-code", "--http")
    task = {"description": "x", "prompt": "look", "subagent_type": "general-purpose", "run_in_background": False}
    run = claude.run(Say(calls=[("Agent", task)]), Say("looked"), Say("done"))
    (server,) = claude.servers()
    assert log_of(claude) == ["SubagentStart", str(server)]
    assert f"heard in process {server}" in run.context


@pytest.mark.behaviour("B23")
def test_a_dead_server_loses_what_decides_nothing_and_nothing_else(claude: ClaudeCode) -> None:
    """The next command starts another server, which listens at the same port."""
    claude.command.add_hook(TURNS)
    # With redaction, the command of PostToolUse would start another server first.
    without = {"redaction": {"enabled": False}}
    (claude.project / ".agent/settings.json").write_text(json.dumps(without))
    claude.command("install", "claude-code", "--http")
    (claude.project / "crash.sh").write_text("kill -9 $(tail -n 1 log)")
    crash = bash("sh crash.sh; echo killed")
    run = claude.run(*(Say(calls=[call]) for call in (bash("true"), crash, bash("true"))), Say("done"))
    assert [result.is_error for result in run.results] == [False] * 3
    first, second = log_of(claude)  # of three turns
    assert claude.servers() == [int(second)]
    assert first != second
    assert run.answer == "done"


@pytest.mark.behaviour("B13")
def test_a_hook_that_ends_its_process_denies(claude: ClaudeCode) -> None:
    """A missing answer is no approval."""
    claude.add_hook(GATE)
    run = claude.run(Say(calls=[bash("touch leave")]), Say(calls=[bash("touch gated")]), Say("done"))
    left, gated = run.results
    assert left.is_error
    assert "as ever" in gated.text
    assert not (claude.project / "leave").exists()


def test_a_shared_project_finds_the_command_on_the_path(claude: ClaudeCode, home: Path, tmp_path: Path) -> None:
    """`--project` writes no path of this machine into a committed file; without the command, calls are denied."""
    claude.command.add_hook(GATE)
    claude.command("install", "claude-code", "--project")
    settings = (claude.project / ".claude/settings.json").read_text()
    assert sys.prefix not in settings
    path = {"PATH": f"{write_shared_command(tmp_path / 'bin', home)}{os.pathsep}{os.environ['PATH']}"}
    run = claude.run(Say(calls=[bash("touch gated")]), Say("done"), environment=path)
    assert "as ever" in run.results[0].text
    without = claude.run(prompt="go", environment={"PATH": "/usr/bin:/bin"})
    assert without.requests == []
    assert "agent-hooks" in without.answer


def test_a_python_that_is_gone_denies_too(claude: ClaudeCode) -> None:
    """Calls and prompts are denied, and the denial names the command that could not run."""
    claude.install()
    settings = claude.settings.read_text()
    claude.settings.write_text(settings.replace(json.dumps(sys.executable), json.dumps("/gone/python")))
    run = claude.run(prompt="go")
    assert "/gone/python" in run.answer
    assert run.requests == []


@pytest.mark.behaviour("B9")
def test_once_uninstalled_nothing_fires(claude: ClaudeCode) -> None:
    """The settings are as they were."""
    claude.add_hook("""
        from agent_hooks import Block

        def register(api):
            @api.on("tool_call")
            def gate(event, ctx):
                return Block("no")
    """)
    claude.configure(env={"MINE": "1"})
    claude.command("uninstall", "claude-code")
    assert json.loads(claude.settings.read_text()) == {"env": {"MINE": "1"}}
    run = claude.run(Say(calls=[bash("touch made")]), Say("done"))
    assert not run.results[0].is_error
    assert (claude.project / "made").exists()


COUNT = """
    def register(api):
        @api.on("tool_call")
        def count(event, ctx):
            with open("count", "a") as file:
                file.write("x")
"""


@pytest.mark.parametrize(("target", "times"), [("--local", "x"), ("--project", "xx")])
def test_one_command_in_two_files_runs_once_and_two_commands_twice(
    claude: ClaudeCode, home: Path, tmp_path: Path, target: str, times: str
) -> None:
    """The warnings of `install` and `doctor` rely on this."""
    claude.command.add_hook(COUNT)
    environment = {"PATH": f"{write_shared_command(tmp_path / 'bin', home)}{os.pathsep}{os.environ['PATH']}"}
    claude.command("install", "claude-code", "--user")
    warned = claude.command("install", "claude-code", target).stderr
    claude.run(Say(calls=[bash("true")]), Say("done"), environment=environment)
    assert (claude.project / "count").read_text() == times
    assert ("fire twice" in warned) == (times == "xx")


def test_a_hook_that_waits_in_vain_is_told_to_the_person(claude: ClaudeCode) -> None:
    """The message has the command that installs the missing event."""
    claude.install()
    claude.command.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: open('ended', 'w'))")
    run = claude.run(Say(calls=[bash("true")]), Say("done"))
    remedy = "agent-hooks install claude-code --local"
    told = f"agent_hooks: PostToolBatch, which turn_end needs, is not installed: {remedy}"
    # On a terminal, this output of the hook is on the screen.
    assert told in json.dumps(run.messages)
    assert not (claude.project / "ended").exists()
    claude.install()
    claude.run(Say(calls=[bash("true")]), Say("done"))
    assert (claude.project / "ended").exists()


def test_the_doctor_sees_a_real_installation(claude: ClaudeCode) -> None:
    """The version is the tested one, and the installation works."""
    claude.install()
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "agent_hooks", "doctor", "claude-code"],
        cwd=claude.project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "which this was tested with" in done.stdout
    assert "PreToolUse: answered in" in done.stdout
    assert "WARNING" not in done.stdout
