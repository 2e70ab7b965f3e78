"""Each example hook keeps the promise of its first lines, driven by the real command."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from agent_hooks import (
    AgentEnd,
    Cancel,
    HookRunner,
    SessionEvent,
    SkipConversationRestore,
    UserMessage,
    checkpoints,
    load_hooks,
)
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.models import open_model
from agent_hooks.host.session import Session
from agent_hooks.host.tools import builtin_tools
from agent_hooks.testing import Asked, MakeRunner, ScriptedUI, call_tool
from agent_hooks.turn_notes import store_of
from other_agent import OtherAgent
from running import Command
from support import ROOT, SilentView, call_of

EXAMPLES = ROOT / "examples"
HOOKS = EXAMPLES / "hooks"


GUARDS = ["builtin:command-safety-guard", "builtin:security-audit"]


def without_guards(command: Command, guards: list[str]) -> None:
    """Turn the guards off, so that only the hook judges."""
    path = command.project / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"guards": {"disabled": guards}}))


def example(name: str) -> str:
    """Return the path of an example hook."""
    return str(HOOKS / name)


@pytest.mark.parametrize(
    "call",
    [
        "rm -rf build",
        "rm -f -r build",
        "rm build -rf",
        "true; rm --force --recursive build",
        "sudo ls",
    ],
)
def test_the_permission_gate_blocks_where_nobody_can_be_asked(command: Command, call: str) -> None:
    """In print mode there is no person, so the command is blocked."""
    (command.project / "build").mkdir()
    done = command("run", "--hook", example("permission_gate.py"), f"@bash {call}")
    assert "no person is here to answer (asked by " in done.stdout
    assert (command.project / "build").is_dir()


def test_what_is_never_right_a_guard_stops_before_the_gate_asks(command: Command) -> None:
    """The refusal names the guard; with that guard off, the gate asks."""
    (command.project / "build").mkdir()
    for off, says in (([], "(builtin:command-safety-guard (world-writable))"), (GUARDS, "no person is here to answer")):
        without_guards(command, off)
        done = command("run", "--hook", example("permission_gate.py"), "@bash chmod 0777 build")
        assert says in done.stdout
    assert (command.project / "build").stat().st_mode & 0o777 != 0o777


def test_the_permission_gate_lets_harmless_commands_pass(command: Command) -> None:
    """A harmless command is neither asked about nor blocked."""
    done = command("run", "--hook", example("permission_gate.py"), "@bash touch a && rm a && echo fine")
    assert "   fine" in done.stdout


@pytest.mark.anyio
@pytest.mark.parametrize("yes", [True, False])
async def test_the_permission_gate_asks_the_person(project: Path, hook_runner: MakeRunner, yes: bool) -> None:
    """Yes runs the command, no does not, and the question shows the command."""
    (project / "build").mkdir()
    ui = ScriptedUI(yes)
    runner = await hook_runner("examples/hooks/permission_gate.py", ui=ui, cwd=project)
    bash = builtin_tools(cwd=str(project))[0]
    output = await call_tool(runner, "bash", {"command": "rm -rf build"}, bash)
    assert (project / "build").exists() is not yes
    assert output.is_error is not yes
    assert ui.asked[0].title == "Run a recursive rm?"
    assert "rm -rf build" in ui.asked[0].more
    assert yes or "the user said no" in output.text


@pytest.mark.parametrize(
    "path", [".env", "a/../.env", "./.git/config", "node_modules/x/y.js", "link/config", "sub/.env"]
)
def test_protected_paths_keeps_write_and_edit_out(command: Command, path: str) -> None:
    """Each spelling of a protected path is blocked, and so is a symlink to it."""
    without_guards(command, GUARDS)
    (command.project / ".git").mkdir()
    (command.project / "link").symlink_to(".git")
    call = json.dumps({"path": path, "content": "x"})
    done = command("run", "--hook", example("protected_paths.py"), f"@write {call}\n@edit {call}")
    assert " is protected" in done.stdout
    assert not list((command.project / ".git").iterdir())


CHANGES = [
    "echo x > uv.lock",
    "echo x >> ./uv.lock",
    "echo x | tee -a uv.lock",
    "cat <<END > uv.lock\nx\nEND",
    "sed -i s/a/b/ uv.lock",
    "perl -pi -e s/a/b/ uv.lock",
    "python -c \"open('uv.lock', 'w')\"",
    "git checkout -- uv.lock",
    "mv uv.lock old.lock",
    "mv old.lock uv.lock",
    "cp a uv.lock",
    "rm *.lock",
    "(cd . && rm uv.lock) &",
    "cd $WHERE && rm uv.lock",
    "echo x > $FILE",
    "ls | xargs tee",
    "find . -name '*.lock' -exec rm {} +",
    "bash -c 'rm uv.lock'",
    "rm -r .",
    "echo A=1 > .env.local",
    "cp a my.env",
]


@pytest.mark.anyio
@pytest.mark.parametrize("changes", CHANGES)
async def test_protected_paths_stops_each_way_to_change_a_file(
    project: Path, hook_runner: MakeRunner, changes: str
) -> None:
    """The hook asks for effects, so the way does not matter."""
    runner = await hook_runner("examples/hooks/protected_paths.py", cwd=project)
    output = await call_tool(runner, "bash", {"command": changes})
    assert output.is_error, changes
    assert " is protected" in output.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    "harmless",
    [
        "cat uv.lock",
        "echo x > out.txt",
        "echo x > out-$(date).log",
        "git status",
        "rm -rf dist",
        "mv a.py b.py",
        "make",
    ],
)
async def test_protected_paths_lets_other_commands_pass(project: Path, hook_runner: MakeRunner, harmless: str) -> None:
    """A command that reads a protected file, or changes another one, is none of its business."""
    runner = await hook_runner("examples/hooks/protected_paths.py", cwd=project)
    output = await call_tool(runner, "bash", {"command": harmless})
    assert not output.is_error, output.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("dangerous", "title"),
    [
        ("/usr/bin/sudo ls", "Run sudo?"),
        ("bash -c 'sudo ls'", "Run sudo?"),
        ("ssh host 'sudo ls'", "Run sudo?"),
        ("su'do' ls", "Run sudo?"),
        ("docker exec box sh -c 'rm -rf /data'", "Run a recursive rm?"),
        ("r''m -rf src", "Run a recursive rm?"),
        ("X=rm; $X -rf src", "Run a recursive rm?"),
        ("chmod a+w src", "Let everybody write?"),
    ],
)
async def test_the_permission_gate_asks_about_each_spelling(
    project: Path, hook_runner: MakeRunner, dangerous: str, title: str
) -> None:
    """A directory, quotes, a variable, a shell, another machine or a container hide nothing."""
    ui = ScriptedUI(False)
    runner = await hook_runner("examples/hooks/permission_gate.py", ui=ui, cwd=project)
    assert (await call_tool(runner, "bash", {"command": dangerous})).is_error
    assert [asked.title for asked in ui.asked] == [title]


def test_protected_paths_leaves_other_files_alone(command: Command) -> None:
    """A similar name is no match, and reading is allowed."""
    without_guards(command, GUARDS)
    (command.project / ".env").write_text("A=1")
    call = json.dumps({"path": "x.env.example", "content": "x"})
    done = command("run", "--hook", example("protected_paths.py"), f"@write {call}\n@read .env")
    assert "protected" not in done.stdout
    assert "A=1" in done.stdout


def test_python_gate_blocks_what_cannot_be_parsed_and_survives_its_parser(command: Command) -> None:
    """A deeply nested text is an error of the hook's process at most, and good Python is written."""
    without_guards(command, GUARDS)
    calls = [("bad.py", "def f(:\n"), ("deep.py", "(" * 100_000), ("good.py", "x = 1\n"), ("bad.txt", "def f(:\n")]
    prompt = "\n".join(f"@write {json.dumps({'path': path, 'content': text})}" for path, text in calls)
    done = command("run", "--hook", example("python_gate.py"), stdin=prompt)
    assert "bad.py:1: invalid syntax" in done.stdout
    assert sorted(path.name for path in command.project.iterdir() if path.is_file()) == ["bad.txt", "good.py"]


def test_redact_secrets_hides_keys_before_the_model_sees_them(command: Command) -> None:
    """In the answer, in the session file and in the JSON events."""
    secrets = ["sk-abcdefghijklmnopqrstuvwxyz", "ghp_0123456789abcdefghijABCDEFGHIJ", "hunter2hunter2hunter2"]
    (command.project / "config").write_text(f"{secrets[0]}\n{secrets[1]}\npassword = '{secrets[2]}'\nplain\n")
    done = command("run", "--hook", example("redact_secrets.py"), "--json", "@read config\n@bash cat config")
    [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    for text in (done.stdout, session.read_text()):
        assert text.count("sk-***") >= 2
        assert "plain" in text
        assert not any(secret in text for secret in secrets)


def test_audit_log_has_every_call_run_or_blocked(command: Command) -> None:
    """One JSON line each, with reason, error and duration."""
    gate = example("permission_gate.py")
    command("run", "--hook", example("audit_log.py"), "--hook", gate, "@bash sudo x\n@bash echo hi\n@bash exit 3")
    lines = (command.project / ".agent" / "audit.jsonl").read_text().splitlines()
    entries = {entry["input"]["command"]: entry for entry in map(json.loads, lines)}
    assert entries["sudo x"]["blocked"] == "Run sudo?"
    assert entries["sudo x"]["ms"] is None
    assert (entries["echo hi"]["blocked"], entries["echo hi"]["error"]) == (None, None)
    assert entries["echo hi"]["ms"] > 0
    assert "[exit code 3]" in entries["exit 3"]["error"]


@pytest.mark.anyio
@pytest.mark.parametrize("yes", [True, False])
async def test_a_conversation_is_left_only_when_the_person_says_so(
    project: Path, hook_runner: MakeRunner, yes: bool
) -> None:
    """A session without messages is left without a question."""
    ui = ScriptedUI(*[yes] * 4)
    runner = await hook_runner(example("confirm_session_actions.py"), ui=ui, cwd=project, mode="interactive")
    session = Session.create(str(project))
    host = SessionHost(runner=runner, model=open_model("puppet"), tools=[], session=session, view=SilentView())
    async with host:
        await host.clear()
        assert ui.asked == []
        for act in (host.clear, host.new_session, lambda: host.branch(2)):
            await host.prompt("hello")
            outcome = await act()
            assert outcome.cancelled is not yes
            assert (len(host.messages) == 0) is yes
            assert yes or str(outcome.reason).endswith("confirm_session_actions.py: the conversation goes on")
    titles = ["Clear the conversation?", "Leave this conversation for another one?", "Go back to an earlier message?"]
    assert [asked.title for asked in ui.asked] == titles
    assert f"It has {2 if yes else 6} messages. It stays in {project}" in ui.asked[-1].more


def test_the_end_of_a_run_is_shown_on_the_desktop(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed program shows the last answer."""
    program = command.project / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > notified\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    command("run", "--hook", example("notify_when_done.py"), "hello $(there)")
    assert (command.project / "notified").read_text() == "--\nThe agent is done\nhello $(there)\n\n"


@pytest.mark.parametrize("there", [True, False])
def test_without_a_desktop_the_bell_rings(command: Command, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """The bell also rings when the installed program fails, without a desktop session say."""
    directory = command.project / "bin"
    directory.mkdir()
    if there:
        (directory / "osascript").write_text("#!/bin/sh\nexit 1\n")
        (directory / "osascript").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))
    shown = command.on_terminal("run", "--hook", example("notify_when_done.py"), "hello")
    assert shown.count("\a") == 1
    assert "\a" not in command("run", "--hook", example("notify_when_done.py"), "hello").stderr


MAKEFILE = "test:\n\t@test -e fixed || { echo fixed is missing; exit 1; }\n"


def test_the_agent_is_sent_back_until_the_tests_pass(command: Command) -> None:
    """The agent gets the output of the tests, and may end when they pass."""
    (command.project / "Makefile").write_text(MAKEFILE)
    mend = {"toolCalls": [{"name": "bash", "arguments": {"command": "touch fixed"}}]}
    turns = [{"text": "done"}, mend, {"text": "now it is"}]
    (command.project / "turns.jsonl").write_text("".join(f"{json.dumps(turn)}\n" for turn in turns))
    done = command("run", "--hook", example("finish_the_tests.py"), "--model", "script:turns.jsonl", "go")
    assert done.stdout == "now it is\n"
    [line] = [line for line in done.stderr.splitlines() if line.startswith("> ")]
    assert line.endswith("finish_the_tests.py] The tests fail: make test says")
    assert done.stderr.count("fixed is missing") == 1


async def test_the_agent_is_not_sent_back_for_ever(project: Path, hook_runner: MakeRunner) -> None:
    """After the last time the person gets a warning; when the tests pass, there is no warning."""
    (project / "Makefile").write_text(MAKEFILE)
    ui = ScriptedUI()
    runner = await hook_runner("examples/hooks/finish_the_tests.py", ui=ui, cwd=project)
    answer = await runner.emit(AgentEnd(continued=2))
    assert answer
    assert "fixed is missing" in answer.text
    assert await runner.emit(AgentEnd(continued=3)) is None
    assert [asked.title for asked in ui.asked] == ["make test still fails"]
    (project / "fixed").touch()
    assert await runner.emit(AgentEnd()) is None
    assert len(ui.asked) == 1


def test_a_run_that_is_stuck_is_warned_and_then_ended(command: Command) -> None:
    """The third failure of the same call in a row ends the run; another call in between begins the count anew."""
    turns = [
        "@bash false",
        "@bash false",
        "@bash true",
        "@bash false",
        "@bash false",
        "@bash false",
        "@bash touch late",
    ]
    done = command("run", "--hook", example("stop_when_stuck.py"), "\n---\n".join(turns), code=1)
    assert "the run was stopped: the same call has failed 3 times in a row" in done.stderr
    assert not (command.project / "late").exists()


# A person tries these with a second terminal; test_examples_sending drives them.
AT_A_TERMINAL = {"file_trigger.py", "webhook.py"}
# Its packages are fetched; test_examples_mcp drives it.
WITH_PACKAGES = {"mcp_servers.py"}
TRIED = [path for path in sorted(HOOKS.glob("*.py")) if path.name not in AT_A_TERMINAL | WITH_PACKAGES]


@pytest.mark.parametrize("path", TRIED, ids=lambda path: path.name)
def test_what_an_example_says_to_try_works(command: Command, path: Path) -> None:
    """The line after "Try it:" runs, from a checkout, and its hook takes part."""
    match = re.search(r"^Try it:  agent-hooks (.*)$", path.read_text(), re.MULTILINE)
    assert match, f"{path.name} says how to try it"
    (command.project / "examples").symlink_to(EXAMPLES)
    words = shlex.split(match[1])
    if "&&" in words:
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        line = ["bash", "-c", f"agent-hooks {match[1]}"]
        done = subprocess.run(line, cwd=command.project, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    else:
        done = command(*words)
    shows = {
        "call_count.py": "call 1 of 100",
        "confirm_session_actions.py": "Cancel",
        "git_checkpoint.py": "no checkpoints; one is made before each turn",
        "custom_compaction.py": "- What is in this directory?",
        "everywhere.py": "deploying is for people",
        "finish_the_tests.py": "The tests fail: make test says",
        "full_compaction.py": "Person: Delete it.",
        "intercept_block.py": "publishing is done by CI",
        "intercept_defaults.py": "bash ls --color=never",
        "intercept_enrich.py": "examples",
        "intercept_log.py": "calling ls {}",
        "intercept_redact.py": "sk-***",
        "intercept_strip_ansi.py": "red and plain",
        "lint_after_edit.py": "wrote 10 bytes",
        "notify_when_done.py": "notify",
        "permission_gate.py": "no person is here",
        "protected_paths.py": "protected",
        "python_gate.py": "x.py:1: invalid syntax",
        "safe_session.py": "no person is here",
        "stop_when_stuck.py": "failed 2 times in a row",
        "redact_secrets.py": "sk-***",
    }
    assert shows.get(path.name, '"tool": "ls"') in done.stdout + done.stderr


def test_the_hook_for_all_agents_works_in_our_own_host(command: Command) -> None:
    """A rewrite, a guard after a rewrite, a path gate and a redaction; docs/agents.md shows the same in other agents."""
    (command.project / "kept").mkdir()
    calls = (
        "@bash printf 'cus_%s paid' 33333333\n@bash echo npm install\n@bash tidy-home\n"
        '@write {"path": "prices.txt", "content": "1"}'
    )
    done = command("run", "--hook", example("everywhere.py"), calls)
    output = done.stdout + done.stderr
    assert "cus_*** paid" in output
    assert "npm ci" in output
    assert "builtin:command-safety-guard" in output
    assert "prices are for people" in output
    assert not (command.project / "prices.txt").exists()


def test_every_example_is_driven() -> None:
    """A new example has a test here or in a file beside this one."""
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_examples*.py"))
    driven = {match[1] for match in re.finditer(r'(?:example\("|"examples/hooks/|HOOKS / ")(\w+\.py)"', text)}
    templates = (Path(__file__).parent / "test_templates.py").read_text()
    driven |= {f"{match[1]}.py" for match in re.finditer(r'\("(\w+)", "hooks"\)', templates)}
    assert [path.name for path in HOOKS.glob("*.py") if path.name not in driven] == []


def test_the_demo_shows_a_hook_stopping_a_real_call(tmp_path: Path) -> None:
    """`make demo` runs this file."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "• bash sed -i s/1.0/9.9/ uv.lock → blocked: only uv changes uv.lock (lock.py)" in done.stderr
    assert "• bash cat uv.lock → ok" in done.stderr
    assert done.stdout.endswith("uv.lock is as it was: the hook stopped the sed.\n")


def rpc_client(project: Path, answers: str, *args: str) -> str:
    """Run the example client with these answers of the person; return its output."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "rpc_client.py"), *args],
        cwd=project,
        input=answers,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(("answers", "runs"), [("yes\n", True), ("no\n", False), ("", False)])
def test_the_rpc_client_asks_the_person(command: Command, answers: str, runs: bool) -> None:
    """Only a yes counts; the end of stdin is a no."""
    (command.project / "build").mkdir()
    seen = rpc_client(command.project, answers, "@bash rm -rf build", "--hook", example("permission_gate.py"))
    assert "Run a recursive rm?" in seen
    assert (command.project / "build").exists() is not runs
    assert ("the user said no" in seen) is not runs


def test_the_rpc_client_knows_every_dialog(command: Command) -> None:
    """The client handles lists, text, cancelled dialogs, notifications and errors."""
    command.add_hook("""
        def register(api):
            @api.on("turn_start")
            async def ask(event, ctx):
                color = await ctx.ui.select("Color?", ["red", "blue"])
                name = await ctx.ui.input("Name?", "Ada")
                ctx.ui.notify(f"{name} likes {color}")
                raise ValueError("broken")
    """)
    seen = rpc_client(command.project, "blue\n\n", "hello")
    for text in ("Color?  ['red', 'blue']", "Name?  (Ada)", "info: None likes blue", "ValueError: broken (continued)"):
        assert text in seen
    assert "hook_ui_response: dialog" in rpc_client(command.project, "green\n\n", "hello")
    assert rpc_client(command.project, "", " ") == "prompt: the message is empty\n"


def test_the_page_on_rpc_shows_the_client_as_it_is() -> None:
    """The page has the whole source, which is as short as it says."""
    source = (EXAMPLES / "rpc_client.py").read_text()
    assert source in (EXAMPLES.parent / "docs" / "rpc.md").read_text()
    assert source.count("\n") <= 60


# ---- safe_session.py -------------------------------------------------------------------------------------------------


def test_safe_session_asks_keeps_the_files_and_hides_in_another_agent_too(agent: OtherAgent) -> None:
    """One hook file serves one session, and its list of questions comes at the end."""
    project = agent.command.project
    subprocess.run([*GIT, "init", "-q"], cwd=project, check=True)
    (project / "notes.txt").write_text("before")
    agent.command.add_hook(Path(example("safe_session.py")).read_text())
    assert agent("UserPromptSubmit", prompt="change the notes", cwd=str(project)) == {}
    said = agent(tool_input={"command": "git push origin"}, cwd=str(project))["hookSpecificOutput"]
    assert (said["permissionDecision"], "Let it git push?" in said["permissionDecisionReason"]) == ("ask", True)
    response = {"stdout": "cus_1234567890 pays", "stderr": "", "interrupted": False}
    said = agent("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="2", tool_response=response)
    assert said["hookSpecificOutput"]["updatedToolOutput"]["stdout"] == "cus_*** pays"
    (project / "notes.txt").write_text("after")
    assert agent("Stop")["systemMessage"] == "asked about in this session: git push"
    agent.command("checkpoints", "restore", "--yes")
    assert (project / "notes.txt").read_text() == "before"


# ---- git_checkpoint.py -----------------------------------------------------------------------------------------------

GIT = ["git", "-c", "user.name=p", "-c", "user.email=p@example.com"]


def before_branch(target: int) -> SessionEvent:
    """Return the event of a branch from an entry."""
    return SessionEvent(reason="before_branch", target_turn_index=target)


async def three_turns(runner: HookRunner, project: Path) -> None:
    """Let three prompts at the entries 1, 3 and 5 write a file each, after a checkpoint."""
    for turn, entries in enumerate((2, 4, 6)):
        await checkpoints.create(project, runner.session_id, entries)
        (project / f"{turn}.txt").write_text(f"{turn}")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("choice", "answer", "files"),
    [
        ("Restore files and conversation", None, ["0.txt"]),
        ("Restore files only", SkipConversationRestore(), ["0.txt"]),
        ("Restore the conversation only", None, ["0.txt", "1.txt", "2.txt"]),
        ("Cancel", Cancel("the user said no"), ["0.txt", "1.txt", "2.txt"]),
        (None, Cancel("the user said no"), ["0.txt", "1.txt", "2.txt"]),
    ],
)
async def test_git_checkpoint_offers_the_files_as_the_prompt_found_them(
    project: Path, hook_runner: MakeRunner, choice: str | None, answer: object, files: list[str]
) -> None:
    """It asks once; the files are those of the first checkpoint after the entry, and the text names undo."""
    subprocess.run([*GIT, "init", "-q"], cwd=project, check=True)
    ui = ScriptedUI(choice)
    runner = await hook_runner(HOOKS / "git_checkpoint.py", ui=ui, cwd=project, session_id="one")
    await three_turns(runner, project)
    assert await runner.emit(before_branch(3)) == answer
    assert sorted(path.name for path in project.glob("*.txt")) == files
    question, *said = ui.asked
    assert question.title == "Branch back: what shall be restored?"
    if files == ["0.txt"]:
        [told] = said
        assert told.title == ("restored the files: 0 written, 2 deleted; `agent-hooks checkpoints undo` takes it back")
        await checkpoints.undo(project)
    assert sorted(path.name for path in project.glob("*.txt")) == ["0.txt", "1.txt", "2.txt"]


@pytest.mark.anyio
async def test_one_branches_back_and_back_again_with_the_files_of_the_moment(
    project: Path, hook_runner: MakeRunner
) -> None:
    """In a real session, the branch has the checkpoints of the entries that both sessions share."""
    subprocess.run([*GIT, "init", "-q"], cwd=project, check=True)
    (project / "note").write_text("untracked\n")
    ui = ScriptedUI(*["Restore files and conversation"] * 2, "Restore files only")
    runner = await hook_runner(HOOKS / "git_checkpoint.py", ui=ui, cwd=project, mode="interactive")
    session = Session.create(str(project))
    tools = builtin_tools(cwd=str(project))
    host = SessionHost(runner=runner, model=open_model("puppet"), tools=tools, session=session, view=SilentView())

    def prompts() -> list[int]:
        messages = [getattr(entry, "message", None) for entry in host.entries]
        return [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]

    async with host:
        for text in ("one", "two", "three", "four"):
            await host.prompt(f"@bash echo {text} >> note\n---\n@bash touch {text}")
        assert (project / "note").read_text() == "untracked\none\ntwo\nthree\nfour\n"
        outcome = await host.branch(prompts()[2])
        assert "echo three" in str(outcome.text)
        assert (project / "note").read_text() == "untracked\none\ntwo\n"
        assert not (project / "three").exists()
        await host.prompt("@bash echo anew >> note")
        await host.branch(prompts()[1])
        assert (project / "note").read_text() == "untracked\none\n"
        assert ((project / "one").exists(), (project / "two").exists()) == (True, False)
        said = len(host.messages)
        await host.branch(prompts()[0])
        assert (project / "note").read_text() == "untracked\n"
        assert len(host.messages) == said
    assert (await checkpoints.undo(project)).left == ()
    assert (project / "note").read_text() == "untracked\none\n"


@pytest.mark.anyio
async def test_git_checkpoint_lets_another_hook_cancel_first(project: Path, hook_runner: MakeRunner) -> None:
    """Then no file has changed, and there was no question."""
    subprocess.run([*GIT, "init", "-q"], cwd=project, check=True)
    ui = ScriptedUI()
    other = (
        "def register(api):\n    api.on('session', lambda e, c: {'cancel': True} if 'before' in e.reason else None)\n"
    )
    runner = await hook_runner(HOOKS / "git_checkpoint.py", other, ui=ui, cwd=project)
    await three_turns(runner, project)
    assert await runner.emit(before_branch(1)) == Cancel()
    assert (len(list(project.glob("*.txt"))), ui.asked) == (3, [])


@pytest.mark.anyio
async def test_git_checkpoint_goes_on_where_there_is_nothing_to_save_or_restore(
    project: Path, hook_runner: MakeRunner
) -> None:
    """No error without a repository, for a missing checkpoint, a removed repository or a large file."""
    ui = ScriptedUI("Restore files only")
    errors: list[object] = []
    runner = await hook_runner(HOOKS / "git_checkpoint.py", ui=ui, cwd=project, session_id="one")
    runner.on_error(errors.append)
    assert await runner.emit(before_branch(1)) is None

    subprocess.run([*GIT, "init", "-q"], cwd=project, check=True)
    with (project / "huge").open("wb") as file:
        file.truncate(60 * 2**20)
    await three_turns(runner, project)
    assert await runner.emit(before_branch(6)) is None
    (project / "huge").unlink()
    (project / "huge").write_text("small")
    assert isinstance(await runner.emit(before_branch(1)), SkipConversationRestore)
    assert [each.method for each in ui.asked] == ["select", "notify", "notify"]
    assert ui.asked[-1].title.startswith("not restored: huge: is not in the checkpoint: untracked and large")
    assert (project / "huge").read_text() == "small"

    (project / ".git").rename(project / "gone")
    said = len(ui.asked)
    await runner.emit(SessionEvent(reason="branch"))
    assert len(ui.asked) == said
    assert errors == []


def test_each_turn_of_the_puppet_that_changes_files_has_a_checkpoint(command: Command) -> None:
    """The command brings back the files of the real agent, and the live session is not rewound."""
    subprocess.run([*GIT, "init", "-q"], cwd=command.project, check=True)
    prompt = '@write {"path": "a.txt", "content": "one"}\n---\n@write {"path": "a.txt", "content": "two"}'
    command("run", prompt)
    names = [row["name"] for row in json.loads(command("checkpoints", "list", "--json").stdout)]
    assert len(names) == 2
    [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    saved = session.read_bytes()
    done = command("checkpoints", "restore", "--yes", names[1])
    assert "1 file written, 0 files deleted" in done.stdout
    assert (command.project / "a.txt").read_text() == "one"
    assert session.read_bytes() == saved
    command("checkpoints", "undo")
    assert (command.project / "a.txt").read_text() == "two"


@pytest.mark.anyio
async def test_git_checkpoint_cancels_the_branch_when_the_files_cannot_be_restored(
    project: Path, hook_runner: MakeRunner
) -> None:
    """The person asked for files and conversation, so neither is restored alone."""
    subprocess.run([*GIT, "init", "-q"], cwd=project, check=True)
    store = Path(store_of(str(project)))

    def break_store(asked: Asked) -> str:
        store.rename(store.with_suffix(".gone"))
        store.touch()
        return str(asked.more[0])

    ui = ScriptedUI(break_store)
    runner = await hook_runner(HOOKS / "git_checkpoint.py", ui=ui, cwd=project)
    await three_turns(runner, project)
    answer = await runner.emit(before_branch(1))
    assert isinstance(answer, Cancel)
    assert str(answer.reason).startswith(f"the files cannot be restored: {store}: the checkpoints cannot be used")
    assert len(list(project.glob("*.txt"))) == 3


def test_the_example_of_a_transformer_limits_git_log(command: Command) -> None:
    """The configuration in its first lines works, and a note names the change."""
    source = EXAMPLES / "transformers" / "short_git_log.py"
    target = command.project / ".agent" / "transformers" / source.name
    target.parent.mkdir(parents=True)
    target.write_text(source.read_text())
    yaml = re.search(r"^    version: 1\n(?:    .*\n)+", source.read_text(), re.MULTILINE)
    assert yaml
    (command.project / ".agent" / "command_intercept.yaml").write_text(dedent(yaml[0]))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(command.project)]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in range(22):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"commit {number}"], check=True)
    done = command("run", "--no-session", "--json", "@bash git log\n@bash git log --oneline")
    results = [event for event in map(json.loads, done.stdout.splitlines()) if event["type"] == "tool_result"]
    # They ran at the same time.
    results.sort(key=lambda event: str(event["toolCallId"]))
    texts = ["\n".join(block["text"] for block in event["content"]) for event in results]
    assert "[short_git_log changed this call of bash: command='git log -n 20']" in texts[0]
    assert texts[0].count("    commit ") == 20
    assert texts[1].count(" commit ") == 22


@pytest.mark.anyio
async def test_the_count_of_calls_survives_an_edit(tmp_path: Path) -> None:
    """The limit of the edited file counts at once."""
    hook = tmp_path / "call_count.py"
    text = Path(example("call_count.py")).read_text()
    hook.write_text(text)
    async with HookRunner(await load_hooks([hook], cwd=tmp_path), cwd=tmp_path) as runner:
        for _ in range(2):
            assert await runner.emit(call_of()) is None
        hook.write_text(text.replace("LIMIT = 100", "LIMIT = 2"))
        await runner.reload(await load_hooks([hook], cwd=tmp_path))
        assert "has made 2 tool calls" in str(await runner.emit(call_of()))
