"""No resident server: a bridge that cannot be imported, a server that cannot start, and how the person hears of it."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import bridges
from agent_hooks.bridges import BRIDGES, usable_bridges
from agent_hooks.cli.commands.doctor import _examine
from agent_hooks.cli.doctor.base import Case
from agent_hooks.server import client
from agent_hooks.server.control import place_of
from other_agent import OtherAgent, end_server
from server.test_server_protocol import answer_of, request, serving, stdout_of

BROKEN = """
import agent_hooks.server.server
import agent_hooks.server.stub

def fail(*args, **options):
    raise OSError("no room for a server")

agent_hooks.server.server.Server.serve = fail
# Else it would write the generated file anew, with a server that works.
agent_hooks.server.stub.refresh_stubs = lambda: None
"""


def break_server(agent: OtherAgent, tmp_path: Path) -> None:
    """Let each server of this agent fail at its start."""
    script = tmp_path / "broken.py"
    main = Path(bridges.__file__).parents[1] / "__main__.py"
    script.write_text(f"{BROKEN}\nimport runpy\nrunpy.run_path({str(main)!r}, run_name='__main__')\n")
    agent.write_stub(serve=[str(script)])


def reports() -> set[str]:
    """Return the names of the reports in the temporary directory."""
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("agent-hooks-error-")}


async def test_a_bridge_that_cannot_be_imported_leaves_the_other_agents_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server starts, judges the calls of the others, and the log names the bridge; its own calls are refused."""
    monkeypatch.setitem(BRIDGES, "damaged", ("agent_hooks.bridges.damaged", "Damaged"))
    usable_bridges.cache_clear()
    try:
        async with serving(tmp_path) as server:
            assert stdout_of(await answer_of(server, request())) == {}
            assert b"error" in await answer_of(server, request(agent="damaged"))
    finally:
        usable_bridges.cache_clear()
    assert "the bridge to damaged cannot be used" in caplog.text


def test_doctor_names_a_bridge_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """It checks the other agents all the same."""
    monkeypatch.setitem(BRIDGES, "damaged", ("agent_hooks.bridges.damaged", "Damaged"))
    found = _examine(["claude-code", "damaged"], Case(str(tmp_path), None), None)
    (damaged,) = [each for each in found if each.what == "damaged"]
    assert damaged.status == "problem"
    assert "its bridge cannot be used" in damaged.text
    assert any(each.what == "claude-code" for each in found)


def test_a_generated_file_that_cannot_be_updated_is_no_reason_not_to_serve(agent: OtherAgent, home: Path) -> None:
    """The log names it."""
    stub = home / ".agent" / "bridges" / "agent-hooks-gemini-cli.py"
    # No file takes the place of this directory.
    stub.with_suffix(".pyc").mkdir(parents=True)
    stub.write_text("# an earlier version\n")
    assert agent() == {}
    assert agent.server() is not None
    assert str(stub.with_suffix(".pyc")) in Path(f"{place_of(str(agent.command.project))}.log").read_text()


def test_a_server_that_cannot_start_is_told_once_in_a_session(agent: OtherAgent, tmp_path: Path) -> None:
    """The message names the reason and the hooks that lose their state; no event leaves a file behind."""
    agent.command.add_hook("def register(api): api.on('tool_call', lambda event, ctx: None)")
    break_server(agent, tmp_path)
    before = reports()
    said = [agent(session_id=session).get("systemMessage") for session in ("a", "a", "b", "a")]
    assert [bool(each) for each in said] == [True, False, True, False], said
    assert "no room for a server" in said[0]
    assert "keep no state between events: .agent/hooks/hook.py" in said[0]
    assert reports() == before
    left = {name.rpartition(".")[2] for name in os.listdir(client.directory()) if place_of_name(agent) in name}
    assert left <= {"log", "start"}


def place_of_name(agent: OtherAgent) -> str:
    """Return the name of the files of a project's server."""
    return os.path.basename(place_of(str(agent.command.project)))


def test_the_sign_of_a_missing_server_is_kept_from_hooks(agent: OtherAgent, tmp_path: Path) -> None:
    """Programs that they start would be told the same."""
    source = """
        import os

        def register(api):
            @api.on("tool_call")
            def gate(event, ctx):
                ctx.ui.notify(str("AGENT_HOOKS_ALONE" in os.environ))
    """
    agent.command.add_hook(source)
    agent.write_stub(serve=["/bin/false"])
    assert agent()["systemMessage"].startswith("False")


def test_doctor_names_a_server_that_cannot_start(agent: OtherAgent, tmp_path: Path) -> None:
    """With the reason, and with the command that shows more."""
    settings = agent.command.project / ".claude" / "settings.local.json"
    agent.command("install", "claude-code")
    assert settings.exists()
    agent.write_stub()
    assert server_findings(agent) == []
    end_server(agent.command.project)
    break_server(agent, tmp_path)
    (found,) = server_findings(agent)
    assert found["status"] == "problem"
    assert "no room for a server" in found["text"]
    assert "agent-hooks serve" in found["remedy"]


def server_findings(agent: OtherAgent) -> list[dict[str, Any]]:
    """Return the findings of doctor about the server."""
    done = agent.command("doctor", "claude-code", "--json", code=None)
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return [each for each in found if each["status"] == "problem" and "resident server" in each["text"]]
