"""Own hooks that change while a session runs: the former version judges too, until a user takes the change up."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_hooks.settings import agent_home
from agent_hooks.trust.own import KEPT, own_files
from other_agent import CALL, OtherAgent
from running import Command
from server.test_trust_in_other_agents import by_command, verdict
from support import approve

GATE = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            return Block("not this one")
"""
ASK = """
    from agent_hooks import Ask

    def register(api):
        api.on("tool_call", lambda event, ctx: Ask("sure?"), tool="bash")
"""
YES = """
    def register(api):
        @api.intercept("permission.ask")
        def yes(input, output):
            output.status = "allow"
"""
OPEN = "def register(api): ...\n"


def own(name: str, text: str) -> Path:
    """Write a file of the user's own hooks."""
    path = Path(agent_home(), "hooks", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


def take_up() -> None:
    """Take the own files up as they are, as a user does."""
    own_files(agent_home()).take_up()


def why(answer: dict[str, dict[str, str]]) -> str:
    """Return the reason of a verdict."""
    return answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", "")


def result(agent: OtherAgent, text: str) -> Any:
    """Return the answer to the result of a call."""
    return agent("PostToolUse", **{**CALL, "hook_event_name": "PostToolUse"}, tool_response={"stdout": text})


def test_a_replaced_gate_judges_until_the_change_is_taken_up(agent: OtherAgent) -> None:
    """The verdict names the former version, also after the end of the server and without one."""
    gate = own("gate.py", GATE)
    assert verdict(agent()) == "deny"
    gate.write_text(OPEN)
    answer = agent()
    assert verdict(answer) == "deny"
    assert "the former version of ~/.agent/hooks/gate.py" in why(answer)
    assert "agent-hooks trust" in json.dumps(answer)
    agent.command("serve", "--stop")
    assert verdict(agent()) == "deny"
    assert verdict(by_command(agent.command)) == "deny"
    agent("SessionStart", source="startup", session_id="of an agent")
    assert verdict(agent(session_id="of an agent")) == "deny"
    take_up()
    assert verdict(agent()) == "none"


def test_a_missing_gate_judges(agent: OtherAgent) -> None:
    """A running session needs not even the kept bytes."""
    gate = own("gate.py", GATE)
    assert verdict(agent()) == "deny"
    gate.unlink()
    assert "former version" in why(agent())
    for name in ("hooks", "trust"):
        shutil.rmtree(Path(agent_home(), name))
    assert "former version" in why(agent())


def test_the_stricter_verdict_holds(agent: OtherAgent) -> None:
    """A new version that denies more counts at once, and so does an added hook."""
    gate = own("gate.py", OPEN)
    assert verdict(agent()) == "none"
    gate.write_text(dedent(GATE))
    assert why(agent()) == "not this one (~/.agent/hooks/gate.py)"
    take_up()
    gate.write_text(OPEN)
    own("other.py", GATE.replace("not this one", "added"))
    assert verdict(agent()) == "deny"


@pytest.mark.parametrize("name", ["_rules.py", "_rules/__init__.py", "_rules/_deep.py"])
def test_a_module_that_a_gate_imports_counts(agent: OtherAgent, name: str) -> None:
    """Also where it is imported within the handler, or where a new package takes its place."""
    own("gate.py", GATE.replace("return", "from _rules import allowed; return None if allowed else"))
    if "/" in name:
        own("_rules/__init__.py", "from ._deep import allowed")
        own("_rules/_deep.py", "allowed = False")
    else:
        own("_rules.py", "allowed = False")
    assert verdict(agent()) == "deny"
    if name == "_rules.py":
        own("_rules/__init__.py", "allowed = True")
    else:
        own(name, "allowed = True")
    assert "former version" in why(agent())


def test_settings_that_loosen_wait_and_those_that_tighten_count(agent: OtherAgent) -> None:
    """Guards of both settings judge.  A hook that is disabled by hand judges too."""
    own("gate.py", GATE.replace('"bash"', '"read"'))
    settings = Path(agent_home(), "settings.json")
    danger: dict[str, Any] = {"tool_input": {"command": "rm -rf /"}}
    read: dict[str, Any] = {"tool_name": "Read", "tool_input": {"file_path": "/etc/hostname"}}
    assert verdict(agent(**danger)) == "deny"
    settings.write_text(
        json.dumps({"guards": {"disabled": ["builtin:command-safety-guard"]}, "disabledHooks": ["hooks/gate.py"]})
    )
    assert "former settings" in json.dumps(agent(**danger))
    assert "former version" in why(agent(**read))
    take_up()
    assert verdict(agent(**danger)) == "none"
    assert verdict(agent(**read)) == "none"
    settings.write_text("{}")
    assert verdict(agent(**danger)) == "deny"
    assert verdict(agent(**read)) == "deny"


def test_new_settings_switch_no_gate_off(agent: OtherAgent, project: Path) -> None:
    """A gate of the project, and one elsewhere that the former settings name, judge until the change is taken up."""
    agent.command.add_hook(dedent(GATE), "gate.py")
    approve(project)
    settings = Path(agent_home(), "settings.json")
    settings.write_text("{}")
    take_up()
    assert verdict(agent()) == "deny"
    settings.write_text(json.dumps({"disabledHooks": [str(project / ".agent" / "hooks" / "gate.py")]}))
    assert verdict(agent()) == verdict(by_command(agent.command)) == "deny"
    elsewhere = project / "elsewhere.py"
    elsewhere.write_text(dedent(GATE))
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "hooks": [str(elsewhere)]}))
    take_up()
    assert verdict(agent()) == "deny"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "hooks": []}))
    assert verdict(agent()) == verdict(by_command(agent.command)) == "deny"
    take_up()
    assert verdict(agent()) == "none"


def test_a_pattern_of_redaction_counts_after_a_change(agent: OtherAgent) -> None:
    """A new expression of the same name hides what it fits, and the former one too."""
    settings = Path(agent_home(), "settings.json")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"redaction": {"patterns": {"acme": "ACME-[0-9]{4}"}}}))
    take_up()
    agent()
    before = json.dumps(result(agent, "x ACME-1234 NEW-1234"))
    assert ("ACME-1234" in before, "NEW-1234" in before) == (False, True)
    settings.write_text(json.dumps({"redaction": {"patterns": {"acme": "NEW-[0-9]{4}"}}}))
    agent()
    after = json.dumps(result(agent, "x ACME-1234 NEW-1234"))
    assert ("x " in after, "1234" in after) == (True, False)


def test_a_hook_that_waits_settles_no_question(agent: OtherAgent) -> None:
    """An added hook counts at once, but for its permissions."""
    own("ask.py", ASK)
    before = verdict(agent())
    assert before in ("ask", "deny")
    own("yes.py", YES)
    assert verdict(agent()) == before
    take_up()
    assert verdict(agent()) != before


def test_a_former_version_judges_and_does_nothing_else(agent: OtherAgent) -> None:
    """What it tells, and what it does at other events, would come twice."""
    seen = Path(agent_home(), "seen")
    gate = own(
        "gate.py",
        f"""
        from agent_hooks import Block

        def note(text):
            with open({str(seen)!r}, "a") as file:
                print(VERSION, text, file=file)

        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                note("call")
                ctx.ui.notify(f"news of {{VERSION}}")
                return None

            @api.on("tool_call")
            def plain(event, ctx):
                ctx.ui.notify(f"plain news of {{VERSION}}")

            @api.on("after_tool_call")
            def after(event, ctx):
                note("after")

            @api.on("tool_result")
            def result(event, ctx):
                note("result")

            @api.intercept("tool.before")
            def before(input, output, ctx):
                note("before")
                ctx.ui.notify(f"point news of {{VERSION}}")

        VERSION = "old"
        """,
    )
    agent()
    take_up()
    seen.unlink()
    gate.write_text(gate.read_text().replace('VERSION = "old"', 'VERSION = "new"'))
    told = agent()["systemMessage"].splitlines()
    result(agent, "x")
    news = [each for each in told if "news of" in each]
    assert news == ["point news of new", "news of new", "plain news of new"]
    lines = seen.read_text().splitlines()
    both = {f"{version} {event}" for version in ("old", "new") for event in ("call", "before", "result")}
    assert {*lines} == {*both, "new after"}


def test_a_former_version_still_redacts_results(agent: OtherAgent) -> None:
    """A result that it changes is protection, too."""
    hide = """
        from agent_hooks import Replace

        def register(api):
            @api.on("tool_result")
            def hide(event, ctx):
                return Replace(content="hidden")
    """
    gate = own("gate.py", hide)
    agent()
    gate.write_text(OPEN)
    agent()
    assert "hidden" in json.dumps(result(agent, "secret words"))


def test_the_kept_bytes_are_private_and_replaced(agent: OtherAgent) -> None:
    """No other user reads them.  The bytes before a change are gone."""
    own("gate.py", "# secret words\n" + dedent(GATE))
    agent()
    kept = Path(agent_home(), KEPT)
    assert kept.stat().st_mode & 0o777 == 0o600
    own("gate.py", OPEN)
    take_up()
    assert "gate.py" in kept.read_text()
    assert own_files(agent_home()).taken == {".agent/hooks/gate.py": OPEN.encode()}


def test_kept_bytes_that_cannot_be_read_deny(agent: OtherAgent) -> None:
    """A server that never read them cannot know the gates."""
    own("gate.py", OPEN)
    assert verdict(agent()) == "none"
    agent.command("serve", "--stop")
    Path(agent_home(), KEPT).write_text("{}")
    assert verdict(agent()) == "deny"
    assert "agent-hooks trust" in json.dumps(agent())
    assert verdict(by_command(agent.command)) == "deny"


def test_only_the_start_of_a_user_takes_up(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run at a terminal names each changed file once.  A run below an agent takes nothing up."""
    gate = own("gate.py", GATE)
    assert "not this one" in command("run", "--no-session", "@bash true").stdout
    gate.write_text(OPEN)
    done = command("run", "--no-session", "@bash true")
    assert "the former version of" in done.stdout
    assert "gate.py" in done.stderr
    seen = command.on_terminal("run", "--no-session", "@bash true")
    assert "the former version of" in seen
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "the former version of" in command.dialog("run", "--no-session", "@bash true").end()
    monkeypatch.delenv("CLAUDECODE")
    seen = command.dialog("run", "--no-session", "@bash true").end()
    assert "count from now on: gate.py" in seen
    assert "former version" not in seen
    assert "gate.py" not in command("run", "--no-session", "@bash true").stderr


def test_trust_shows_a_change_and_takes_it_up(command: Command, home: Path) -> None:
    """While a session is recent, the code is wanted as well.  A no changes nothing."""
    gate = own("gate.py", GATE)
    command("run", "--no-session", "@bash true")
    gate.write_text("# loose\n" + OPEN)
    refused = command("trust", code=2).stderr
    assert "terminal" in refused
    dialog = command.dialog("trust")
    assert "# loose" in dialog.sees("Take these changes up?")
    dialog.type("n\n")
    dialog.end(1)
    assert "former version" in command("run", "--no-session", "@bash true").stdout
    dialog = command.dialog("trust")
    dialog.sees("Take these changes up?")
    dialog.type("y\n")
    dialog.end(None)
    assert "blocked" not in command("run", "--no-session", "@bash true").stdout


def test_a_typed_disable_counts_at_once(agent: OtherAgent) -> None:
    """An earlier edit of the settings is still pending."""
    own("gate.py", GATE)
    own("gates.py", GATE.replace("not this one", "not that one"))
    assert verdict(agent()) == "deny"
    dialog = agent.command.dialog("disable", "gate")
    dialog.end()
    assert "not that one" in why(agent())
    settings = Path(agent_home(), "settings.json")
    settings.write_text(json.dumps({"disabledHooks": ["hooks/gate.py", "hooks/gates.py"]}))
    assert "former version" in why(agent())
