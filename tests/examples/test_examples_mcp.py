"""The example hook that gives the agent the tools of MCP servers: real servers, behind the real command."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import HookRunner, SessionEvent, load_hooks, wrap_tool
from isolation.packages import use_installed
from other_agent import OtherAgent
from running import Command
from support import ROOT, until, wait_for_file

EXAMPLE = ROOT / "examples/hooks/mcp_servers.py"
DEMO = ROOT / "tests/examples/mcp_demo.py"
ODD = ROOT / "tests/examples/mcp_odd.py"

Run = Callable[..., subprocess.CompletedProcess[str]]


def entry(*args: object, **more: Any) -> dict[str, Any]:
    """Return the entry of a server in Python."""
    return {"command": sys.executable, "args": [str(each) for each in args], **more}


def serve(home: Path, **servers: Any) -> Path:
    """Write the person's file, and return its path."""
    path = home / ".agent" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@pytest.fixture(autouse=True)
def _packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let uv take the packages of this environment for those of the hook."""
    use_installed(monkeypatch, tmp_path / "wheels", "mcp", "httpx2", "jsonschema")


@pytest.fixture
def run(command: Command) -> Run:
    """Run a prompt with the example."""

    def run(prompt: str, *args: str) -> subprocess.CompletedProcess[str]:
        return command("run", "--no-session", "--hook", str(EXAMPLE), *args, prompt)

    return run


def warnings(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of the hook."""
    return [line for line in done.stderr.splitlines() if line.startswith(f"[{EXAMPLE}]")]


def answers(port: int) -> bool:
    """Tell whether a server listens."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def is_running(pid: str) -> bool:
    """Tell whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ---- the tools


def test_the_tools_of_a_server_are_the_agents(run: Run, home: Path) -> None:
    """A text is the result, a failure is one, and the server's schema judges an input before the server gets it."""
    serve(home, demo=entry(DEMO), odd=entry(ODD))
    done = run(
        '@mcp__demo__add {"a": 2, "b": 3}\n@mcp__demo__fail\n@mcp__demo__add {"a": "x", "b": 3}\n@mcp__odd__good'
    )
    assert "   the sum is 5\n" in done.stdout
    assert "mcp__demo__fail (error)\n   Error executing tool fail" in done.stdout
    assert 'input \'a\': "x" is not of type "integer"' in done.stdout
    assert done.stdout.endswith("   good\n   [image]\n   the text of a file\n")


@pytest.mark.anyio
async def test_a_tool_has_the_description_and_the_schema_of_its_server(project: Path, home: Path) -> None:
    """The model reads them as the server gives them."""
    serve(home, demo=entry(DEMO))
    loaded = await load_hooks([EXAMPLE], cwd=project)
    async with HookRunner(loaded, cwd=project, mode="print") as runner:
        await runner.emit(SessionEvent(reason="start"))
        [add] = [tool for tool in loaded.hooks[0].tools if tool.name == "mcp__demo__add"]
        assert add.description == "Add two numbers."
        assert (add.input_schema["properties"]["a"]["type"], add.input_schema["required"]) == ("integer", ["a", "b"])
        output = await wrap_tool(add, runner).execute("1", {"a": 2, "b": 3})
        assert (output.text, output.is_error) == ("the sum is 5", False)


def test_a_server_is_reached_over_http(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the headers of its entry, and a variable in them."""
    monkeypatch.setenv("WORD", "open")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, DEMO, "http", str(port)])
    try:
        until(lambda: answers(port))
        url = f"http://127.0.0.1:{port}/mcp"
        serve(home, open={"url": url, "headers": {"X-Word": "${WORD}"}}, shut={"url": url})
        done = run('@mcp__open__add {"a": 2, "b": 3}')
    finally:
        server.kill()
        server.wait()
    assert "   the sum is 5\n" in done.stdout
    assert len(warnings(done)) == 1
    assert "MCP server 'shut' has no tools: " in warnings(done)[0]


def test_guards_and_hooks_judge_its_calls(run: Run, command: Command, home: Path) -> None:
    """A blocked call does not reach the server; a guard knows an argument by its name."""
    serve(home, demo=entry(DEMO))
    command.add_hook("""
        from agent_hooks import Block
        def register(api):
            @api.on("tool_call", tool="mcp__demo__write_file")
            async def gate(event, ctx):
                return Block("no marks") if "secret" in event.input["path"] else None
    """)
    paths = [command.project / "secret", home / ".agent" / "settings.json", command.project / "fine"]
    done = run("\n".join(f"@mcp__demo__write_file {json.dumps({'path': str(path)})}" for path in paths))
    assert "blocked: no marks (.agent/hooks/hook.py)" in done.stderr
    assert "decides which calls are allowed; only a person changes it" in done.stderr
    assert [path.exists() for path in paths] == [False, False, True]
    assert "can match no known tool" not in done.stderr


def test_only_the_persons_file_counts_and_no_file_of_the_project(
    run: Run, command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server works outside of the project, and gets no variable but those that its entry names."""
    serve(home, demo=entry(DEMO, "${PROJECT}", env={"GIVEN": "${WORD}"}))
    for name in (".mcp.json", "mcp.json", ".agent/mcp.json"):
        path = command.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"mcpServers": {"theirs": entry("-c", "open('started', 'w')")}}))
    monkeypatch.setenv("WORD", 'a "word"')
    done = run("@mcp__demo__place\n@mcp__theirs__x")
    assert f"in {home}/.agent with ['{command.project}'] and a \"word\", None" in done.stdout
    assert "there is no tool 'mcp__theirs__x'" in done.stdout
    assert not (command.project / "started").exists()


def test_an_agent_does_not_write_that_file(command: Command, home: Path) -> None:
    """It would start a program of its choice in the next session."""
    command("run", "--no-session", "@bash mkdir -p ~/.agent; echo {} > ~/.agent/mcp.json")
    assert not (home / ".agent" / "mcp.json").exists()


def test_another_agent_starts_no_server(agent: OtherAgent, home: Path) -> None:
    """It starts its own, and the hook has nothing to do there."""
    serve(home, demo=entry("-c", f"open({str(home / 'started')!r}, 'w')"))
    hook = home / ".agent" / "hooks" / "mcp_servers.py"
    hook.parent.mkdir()
    hook.write_text(EXAMPLE.read_text())
    agent.command("list")
    agent("SessionStart", source="startup")
    assert "deny" not in str(agent())
    assert not (home / "started").exists()


def test_a_long_text_is_cut(run: Run, home: Path) -> None:
    """The model reads how much is missing."""
    serve(home, demo=entry(DEMO))
    done = run("@mcp__demo__much")
    assert done.stdout.endswith("[cut: 950000 more characters]\n")
    assert len(done.stdout) < 60_000


# ---- failures


BROKEN: dict[str, tuple[Any, str]] = {
    "missing": ({"command": "no-such-program"}, "it said: [Errno 2] No such file or directory: 'no-such-program'"),
    "crash": (entry("-c", "raise SystemExit('no key')"), "it said: no key"),
    "silent": (entry("-c", "import time; time.sleep(600)"), "no answer within 4 s; "),
    "nonsense": (
        entry("-c", "import sys\nfor line in sys.stdin: print('what?', flush=True)"),
        "no answer within 4 s; ",
    ),
    "number": (3, 'its entry needs a text "command" or "url"; '),
    "args": ({"command": "true", "args": [3]}, 'its entry needs a text "command" or "url"; '),
    "env": ({"command": "true", "env": {"A": 3}}, 'its entry needs a text "command" or "url"; '),
    "nobody": ({"url": "http://127.0.0.1:9/mcp"}, "All connection attempts failed; "),
}


def test_a_server_that_does_not_work_is_one_warning_and_the_others_work(command: Command, home: Path) -> None:
    """It names the server, the reason, the file and the remedy."""
    hook = command.project / "hook.py"
    hook.write_text(EXAMPLE.read_text().replace("START = 25", "START = 4"))
    path = serve(home, **{name: given for name, (given, _) in BROKEN.items()}, demo=entry(DEMO))
    done = command("run", "--no-session", "--hook", str(hook), '@mcp__demo__add {"a": 2, "b": 3}')
    assert "   the sum is 5\n" in done.stdout
    lines = [line for line in done.stderr.splitlines() if "MCP server" in line]
    assert len(lines) == len(BROKEN), done.stderr
    for name, (_, reason) in BROKEN.items():
        [line] = [line for line in lines if f"MCP server {name!r} has no tools: " in line]
        assert reason in line
        assert f"mend or remove its entry in {path}, then /reload" in line


def test_a_tool_that_no_model_takes_is_left_out(run: Run, home: Path) -> None:
    """One warning names the tools of the server, and the others of it work."""
    serve(home, odd=entry(ODD))
    done = run("@mcp__odd__good\n@mcp__odd__a_b")
    assert done.stdout.startswith("1. mcp__odd__good\n   good\n")
    assert "2. mcp__odd__a_b\n   a.b\n" in done.stdout
    [line] = warnings(done)
    assert "MCP server 'odd': left out: " in line
    assert f"mcp__odd__{'x' * 70} has more than 64 characters" in line
    assert "wrong: its schema is wrong: 12 is not " in line
    assert "a_b: the name mcp__odd__a_b" in line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "does not exist, so there are no MCP servers"),
        ("{", "so no MCP server is started; mend it: JSONDecodeError("),
        ("[]", "so no MCP server is started; mend it: TypeError("),
        ('{"mcpServers": []}', "so no MCP server is started; mend it: AttributeError("),
    ],
)
def test_without_a_file_that_can_be_read_one_line_says_so(run: Run, home: Path, text: str | None, says: str) -> None:
    """The agent works without these tools."""
    path = serve(home)
    path.unlink()
    if text is not None:
        path.write_text(text)
    done = run("@bash echo fine")
    assert "   fine\n" in done.stdout
    [line] = warnings(done)
    assert str(path) in line
    assert says in line


def test_a_server_that_ends_later_fails_its_calls(run: Run, home: Path) -> None:
    """The call that it worked on, and each later one, fail with a text; another server works on."""
    serve(home, demo=entry(DEMO), odd=entry(ODD))
    done = run('@mcp__demo__die\n---\n@mcp__demo__add {"a": 2, "b": 3}\n---\n@mcp__odd__good')
    assert done.stdout.count("MCP server 'demo': Connection closed; if it has ended, /reload starts it again") == 2
    assert "   good\n" in done.stdout


def test_an_abort_cancels_the_call_in_the_server(command: Command, home: Path) -> None:
    """The server goes on with later calls."""
    serve(home, demo=entry(DEMO))
    path = command.project / "state"
    rpc = command.rpc("--no-session", "--hook", str(EXAMPLE))
    rpc.send("prompt", message=f"@mcp__demo__wait {json.dumps({'path': str(path)})}")
    wait_for_file(path, "waiting")
    rpc.send("abort")
    rpc.expect("run_end", aborted=True)
    wait_for_file(path, "cancelled")
    rpc.send("prompt", message='@mcp__demo__add {"a": 2, "b": 3}')
    assert "the sum is 5" in str(rpc.expect("tool_result"))
    rpc.end()


@pytest.mark.parametrize("how", ["end", "kill"])
@pytest.mark.parametrize("args", [[], ["deaf"]])
def test_no_server_outlives_the_agent(command: Command, home: Path, how: str, args: list[str]) -> None:
    """Also when the agent is killed, and when the server does not end with its input."""
    serve(home, demo=entry(DEMO, *args))
    path = command.project / "pid"
    rpc = command.rpc("--no-session", "--hook", str(EXAMPLE))
    rpc.send("prompt", message=f"@mcp__demo__write_file {json.dumps({'path': str(path)})}")
    rpc.expect("run_end")
    pid = path.read_text()
    assert is_running(pid)
    if how == "end":
        rpc.end()
    else:
        os.kill(rpc.pid, signal.SIGKILL)
        rpc.end(-signal.SIGKILL)
    until(lambda: not is_running(pid))


def test_the_line_to_try_works_once_the_server_is_there(command: Command, home: Path) -> None:
    """Before, the hook says which file it misses."""
    line = next(line for line in EXAMPLE.read_text().splitlines() if line.startswith("Try it:  agent-hooks "))
    (command.project / "examples").symlink_to(ROOT / "examples")
    words = shlex.split(line.removeprefix("Try it:  agent-hooks "))
    assert "mcp.json does not exist, so there are no MCP servers" in command(*words).stderr
