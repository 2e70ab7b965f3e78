"""Hooks, settings and trust that change while an agent runs count from its next turn."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

from running import Command, RpcClient
from support import until

GATE = """
    def register(api):
        @api.on("tool_call", tool="bash", inline=True)
        def gate(event, ctx):
            return {{"block": True, "reason": "{}"}}
"""
FROM_DATA = """
    from pathlib import Path

    def register(api):
        @api.on("tool_call", tool="bash", inline=True)
        def gate(event, ctx):
            return {"block": True, "reason": Path(__file__).with_name("reason.txt").read_text()}
"""


def reason(rpc: RpcClient, prompt: str = "@bash true") -> str:
    """Return the reason for which the call of a prompt was blocked, an empty text for a call that ran."""
    rpc.send("prompt", message=prompt)
    result = rpc.expect("after_tool_call")
    rpc.expect("run_end")
    return str(result.get("blockReason", "")).partition(" (")[0]


def warnings(rpc: RpcClient, text: str) -> list[Any]:
    """Return the warnings so far that hold a text."""
    return [each for each in rpc.all("hook_ui_request", method="notify") if text in each["message"]]


def test_a_change_counts_from_the_next_turn_of_a_run(command: Command) -> None:
    """A module beside the hook, the settings and the transformers count too; the session goes on."""
    hook = command.add_hook("""
        from _beside import word

        def register(api):
            @api.on("tool_call", tool="bash", inline=True)
            def gate(event, ctx):
                return {"block": True, "reason": f"from the {word}"}
    """)
    beside = hook.with_name("_beside.py")
    beside.write_text("word = 'old'")
    command.add_hook(
        f"""
        class Mend:
            name, description, input_schema = "mend", "", {{}}
            async def execute(self, tool_call_id, input, *, on_update=None):
                with open({str(beside)!r}, "w") as file:
                    file.write("word = 'newer'")
                return "done"

        def register(api):
            api.register_tool(Mend())
        """,
        "mend.py",
    )
    done = command("run", "--no-session", "@bash one\n---\n@mend {}\n---\n@bash two")
    assert "from the old" in done.stdout
    assert "from the newer" in done.stdout.partition("from the old")[2], done.stdout


def test_a_client_over_rpc_can_reload(command: Command) -> None:
    """The response names the hooks and the problems; a change counts without it, too."""
    hook = command.add_hook(GATE.format("old"))
    rpc = command.rpc("--no-session")
    assert reason(rpc) == "old"
    hook.write_text(dedent(GATE.format("new")))
    assert reason(rpc) == "new"
    hook.write_text("1/0")
    rpc.send("reload", id="r")
    data = rpc.response("r")["data"]
    assert data["hooks"] == [str(hook)]
    assert "ZeroDivisionError" in data["problems"][0]
    assert reason(rpc) == "new"
    assert len(warnings(rpc, "its former version stays in force")) == 1
    settings = hook.parent.parent / "settings.json"
    settings.write_text("{")
    assert reason(rpc) == "new"
    assert warnings(rpc, "the former hooks and settings stay in force")
    wrong = {"rules": [{"id": "one", "pattern": "(", "reason": "none"}]}
    for guards in ({"level": "unknown"}, wrong):
        settings.write_text(json.dumps({"guards": guards}))
        assert reason(rpc) == "new"
    assert len(warnings(rpc, "the former hooks and settings stay in force")) == 3
    settings.unlink()
    hook.unlink()
    rpc.send("reload", id="r2")
    assert rpc.response("r2")["data"] == {"hooks": [], "problems": []}
    rpc.end()


def test_a_path_that_cannot_be_one_does_not_end_the_session(command: Command, home: Path) -> None:
    """A NUL in a hook of the settings is an error with the key; the former gate judges on until it is mended."""
    gate = home / "gate.py"
    gate.write_text(dedent(GATE.format("former")))
    settings = home / ".agent/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": [str(gate)]}))
    rpc = command.rpc("--no-session")
    assert reason(rpc) == "former"
    for section in ({"hooks": ["a\0b"]}, {"hooks": [str(gate)], "isolation": {"a\0b": "process"}}):
        settings.write_text(json.dumps(section))
        assert reason(rpc) == "former"
        rpc.send("reload", id=1)
        assert "a path cannot have a NUL" in rpc.response(1)["data"]["problems"][0]
    settings.write_text(json.dumps({"hooks": [str(gate)]}))
    gate.write_text(dedent(GATE.format("mended")))
    assert reason(rpc) == "mended"
    rpc.end()


def test_trust_that_changes_counts_at_the_next_turn(command: Command) -> None:
    """Until the person approves a change, the approved bytes judge, with their own data; that is said for each file."""
    command.trusted = False
    hook = command.add_hook(FROM_DATA)
    data = hook.with_name("reason.txt")
    data.write_text("old")
    command("trust", "--yes")
    rpc = command.rpc("--no-session")
    assert reason(rpc) == "old"
    data.write_text("new")
    assert reason(rpc) == reason(rpc) == "old"
    hook.write_text(dedent(GATE.format("newer")))
    assert reason(rpc) == reason(rpc) == "old"
    assert [each["message"].count(".agent/hooks/") for each in warnings(rpc, "the last approved ones count")] == [1, 2]
    command("trust", "--yes")
    assert reason(rpc) == "newer"
    hook.write_text(dedent(FROM_DATA))
    command("trust", "--yes")
    assert reason(rpc) == "new"
    command("untrust")
    assert reason(rpc) == ""
    rpc.end()


def test_list_says_that_a_session_keeps_the_former_version(command: Command) -> None:
    """The file is named with its error, and the exit code is 1."""
    command.add_hook("def register(api:\n")
    done = command("list", code=1)
    assert "hook.py:1" in done.stderr
    assert "keeps the former version" in done.stderr


def test_a_module_that_is_imported_later_counts(command: Command) -> None:
    """A hook outside of the hook directories is watched with the modules that it imports, when it imports them."""
    hook = command.project / "own.py"
    hook.write_text(
        dedent("""
            def register(api):
                @api.on("tool_call", tool="bash", inline=True)
                def gate(event, ctx):
                    import _beside
                    return {"block": True, "reason": _beside.word}
        """)
    )
    beside = command.project / "_beside.py"
    beside.write_text("word = 'old'")
    rpc = command.rpc("--no-session", "--hook", str(hook))
    assert reason(rpc) == "old"
    assert reason(rpc) == "old"
    beside.write_text("word = 'newer'")
    assert reason(rpc) == "newer"
    hook.write_text("import _beside\n" + hook.read_text())
    beside.write_text("word = 1 / 0")
    assert reason(rpc) == "newer"
    beside.write_text("word = 'mended'")
    assert reason(rpc) == "mended"
    rpc.end()


def test_an_exception_for_one_call_is_used_up_after_a_reload(command: Command) -> None:
    """The guards are made again, and remember it."""
    hook = command.add_hook("def register(api): pass")
    rpc = command.rpc("--no-session", "--allow-once", "world-writable")
    (command.project / "a").touch()
    assert reason(rpc, "@bash chmod 777 a") == ""
    for text in ("def register(api): ...", "def register(api): return None"):
        hook.write_text(text)
        rpc.send("prompt", message="@bash chmod 777 a")
        asked = rpc.expect("hook_ui_request", method="confirm")
        assert "777" in asked["title"]
        rpc.send("hook_ui_response", id=asked["id"], confirmed=False)
        assert "777" in rpc.expect("after_tool_call")["blockReason"]
        rpc.expect("run_end")
    rpc.end()


def test_an_abort_during_a_reload_keeps_the_old_hooks(command: Command) -> None:
    """The change stays due: the next run tries again."""
    hook = command.add_hook(GATE.format("old"))
    rpc = command.rpc("--no-session")
    assert reason(rpc) == "old"
    hook.write_text(
        "import anyio\nasync def register(api):\n    open('begun', 'w').close()\n    await anyio.sleep_forever()"
    )
    rpc.send("prompt", message="@bash true")
    until((command.project / "begun").exists)
    rpc.send("abort")
    assert rpc.expect("run_end")["aborted"]
    hook.write_text(dedent(GATE.format("mended")))
    assert reason(rpc) == "mended"
    rpc.end()


def test_the_first_session_of_a_directory_reloads_nothing(command: Command) -> None:
    """The session makes the directory's `.agent`, which holds no hook then; one that appears there later counts."""
    hook = command.project.parent / "outside.py"
    hook.write_text(
        dedent("""
            def register(api):
                @api.on("session")
                async def tell(event, ctx):
                    ctx.ui.notify(f"heard {event.reason}")
        """)
    )
    command.trusted = False
    rpc = command.rpc("--hook", str(hook))
    assert reason(rpc) == ""
    assert (command.project / ".agent" / "sessions").is_dir()
    assert [each["message"] for each in warnings(rpc, "heard")] == ["heard start"]
    command.add_hook(GATE.format("never asked"))
    assert reason(rpc) == ""
    assert len(warnings(rpc, "agent-hooks trust")) == 1
