"""Results in the real Claude Code: each of its tools has a shape of its own, and so has a failure."""

from __future__ import annotations

import json

import pytest

from clients.claude_seat import Calls, ClaudeSeat, bash, with_server
from model_server import Say

pytestmark = pytest.mark.client


def test_a_changed_result_is_what_the_model_is_shown(claude: ClaudeSeat) -> None:
    """Each result has the shape of its tool, also the words of a server."""
    claude.hook("""
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
    run = claude.play(
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


def test_secrets_are_hidden_from_the_model(claude: ClaudeSeat) -> None:
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
    run = claude.play(*(Say(calls=[call]) for call in calls), Say("done"), allow=allow, args=with_server())
    assert len(run.results) == len(calls)
    for call, result in zip(calls, run.results, strict=True):
        assert "[redacted github-token]" in result.text, call
        assert token not in result.text, call
    assert "saved to" not in run.results[1].text


def test_a_failed_call_is_a_result_with_is_error(claude: ClaudeSeat) -> None:
    """Its text stays as it is, and the changed text becomes context."""
    claude.hook("""
        from agent_hooks import Replace

        def register(api):
            @api.on("tool_result")
            def explain(event, ctx):
                if event.is_error:
                    return Replace(content=f"{event.tool_name} failed: {event.text.splitlines()[-1]}; try harder")
    """)
    run = claude.play(Say(calls=[bash("echo oh; exit 3")]), Say("done"))
    assert run.results[0].is_error
    assert "Exit code 3" in run.results[0].text
    assert "bash failed: oh; try harder" in run.context
