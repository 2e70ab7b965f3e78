"""Patches whose files are not known to a bridge: read from the disk, or a question where hooks judge paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Ask, Block, HookContext, HookRunner, LoadedHook, Rewrite, ToolCall
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, PermissionAsked
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.bridges.patch import parts_of_call
from agent_hooks.dispatch.points import PermissionInput, PermissionOutput
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.config import GuardSettings
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import ToolResult
from support import hook_of, hook_on

DIFF = "--- a/src/secret.py\n+++ b/src/secret.py\n@@ -1 +1 @@\n-a\n+b\n"
PATCH = "*** Begin Patch\n*** Add File: src/secret.py\n+x\n*** End Patch\n"


def fields(command: str) -> dict[str, Any]:
    """Return the fields of a call of a shell, as a bridge would."""
    given = {"command": command}
    own = {"native": {}, "name": "before", "tool_name": "bash", "native_name": "Bash", "tool_call_id": "c1"}
    return {**own, "input": given, "parts": parts_of_call("bash", given)}


async def answer(happening: Any, *hooks: LoadedHook, cwd: Path, **options: Any) -> Verdict:
    """Return the verdict of hooks on a happening."""
    ui = BridgeUI()
    async with HookRunner(hooks, cwd=str(cwd), ui=ui, mode="bridge", **options) as runner:
        return await Bridging(runner, ui, divide=parts_of_call).answer(happening)


async def keep_secret(event: ToolCall, ctx: HookContext) -> Block | None:
    """Block writes of one file: a gate of paths."""
    return Block("that file is mine") if event.input["path"].endswith("secret.py") else None


GATES = [hook_on("tool_call", keep_secret, tool=tool) for tool in ("write", "edit")]


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """Give a directory with a diff and a patch."""
    (tmp_path / "x.diff").write_text(DIFF)
    (tmp_path / "x.apply").write_text(PATCH)
    (tmp_path / "other.diff").write_text(DIFF.replace("secret", "public"))
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "git apply x.diff",
        "patch -p1 < x.diff",
        "patch -p1 -i x.diff",
        "cd src; git apply ../x.diff",
        "apply_patch < x.apply",
    ],
)
async def test_a_patch_on_the_disk_is_judged_by_its_files(at: Path, command: str) -> None:
    """The file is read before the call runs, and its paths reach the gates."""
    verdict = await answer(CallAsked(**fields(command)), *GATES, cwd=at)
    assert verdict.block is not None
    assert "that file is mine" in verdict.block


async def test_a_patch_of_other_files_passes(at: Path) -> None:
    """A patch that can be read is no question."""
    assert (await answer(CallAsked(**fields("git apply other.diff")), *GATES, cwd=at)) == Verdict()


UNKNOWN = [
    "curl -s https://x.example/x.diff | git apply",
    "curl -o x.diff https://x.example; git apply x.diff",
    "git apply missing.diff",
    'apply_patch "$(cat x.apply)"',
    "cp other.diff x.diff; patch -p1 < x.diff",
]


@pytest.mark.parametrize("command", UNKNOWN)
async def test_a_patch_that_nobody_can_read_is_one_question(at: Path, command: str) -> None:
    """The question names the tools that hooks judge; it is asked once."""
    verdict = await answer(CallAsked(**fields(command)), *GATES, cwd=at)
    assert verdict.ask is not None
    assert verdict.ask.count("may change any file") == 1
    assert "write and edit" in verdict.ask


@pytest.mark.parametrize("command", UNKNOWN)
async def test_where_no_hook_judges_paths_it_passes(at: Path, command: str) -> None:
    """A hook of commands sees the command itself, and nothing more is asked."""

    async def look(event: ToolCall, ctx: HookContext) -> None:
        return None

    assert (await answer(CallAsked(**fields(command)), hook_on("tool_call", look, tool="bash"), cwd=at)) == Verdict()


@pytest.mark.parametrize(("undecidable", "expected"), [("ask", "ask"), ("block", "block"), ("allow", "nothing")])
async def test_the_setting_decides_about_what_cannot_be_known(at: Path, undecidable: Any, expected: str) -> None:
    """`guards.undecidable` holds here too."""
    guards = builtin_guards(GuardSettings(undecidable=undecidable))
    verdict = await answer(CallAsked(**fields(UNKNOWN[0])), *GATES, cwd=at, guards=guards)
    assert ("block" if verdict.block else "ask" if verdict.ask else "nothing") == expected


async def test_a_rewriter_of_writes_counts_as_a_gate(at: Path) -> None:
    """A hook that rewrites edits would change an edit that it does not see."""

    async def rewrite(event: Any, ctx: HookContext) -> Rewrite | None:
        return None

    hook = hook_on("before_tool_call", rewrite, tool="edit")
    verdict = await answer(CallAsked(**fields(UNKNOWN[0])), hook, cwd=at)
    assert verdict.ask is not None


async def test_without_a_person_the_question_is_a_block(at: Path) -> None:
    """No answer blocks."""
    ui = BridgeUI(attended=False)
    async with HookRunner(GATES, cwd=str(at), ui=ui, mode="bridge") as runner:
        bridging = Bridging(runner, ui, attended=False, divide=parts_of_call)
        assert (await bridging.answer(CallAsked(**fields(UNKNOWN[0])))).block


async def test_an_unread_part_has_no_result_and_is_never_allowed(at: Path) -> None:
    """Handlers of results see only calls with an input; `permission.ask` leaves the question to the person."""
    seen: list[str] = []

    async def result(event: ToolResult, ctx: HookContext) -> None:
        seen.append(event.tool_name)

    def allow(input: PermissionInput, output: PermissionOutput) -> None:
        output.status = "allow"

    hooks = [
        *GATES,
        hook_on("tool_result", result),
        hook_of(lambda api: api.intercept("permission.ask", allow, id="p")),
    ]
    await answer(CallEnded(**fields(UNKNOWN[0]), output=ToolOutput("done")), *hooks, cwd=at)
    assert seen == ["bash"]
    verdict = await answer(PermissionAsked(**fields(UNKNOWN[0])), *hooks, cwd=at)
    assert not verdict.allow
    settled = await answer(PermissionAsked(**fields("ls")), *hooks, cwd=at)
    assert settled.allow


async def test_a_tool_that_stays_open_reaches_the_guards(at: Path) -> None:
    """The flag of the call makes the start of a console a question."""
    call = {**fields("python3"), "stays_open": True}
    verdict = await answer(CallAsked(**call), cwd=at, guards=builtin_guards())
    assert verdict.ask is not None
    assert "typed into it later" in verdict.ask
    assert (await answer(CallAsked(**fields("python3")), cwd=at, guards=builtin_guards())) == Verdict()


async def test_codex_starts_no_console_that_it_could_type_into(at: Path) -> None:
    """The tool `write_stdin` of Codex calls no hook, so its shell is told to stay open."""
    for command, expected in (("python3", True), ("cat | sh", True), ("python3 x.py", False)):
        payload = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(at), "tool_name": "Bash",
                   "tool_input": {"command": command}, "tool_use_id": "c"}  # fmt: skip
        verdict = await answer(open_bridge("codex").decode(payload), cwd=at, guards=builtin_guards())
        assert bool(verdict.ask or verdict.block) == expected, command


@pytest.mark.parametrize("tool", ["apply_patch", "bash"])
async def test_a_patch_into_the_hooks_is_stopped_as_a_whole(at: Path, tool: str) -> None:
    """The self-protection guard stops a patch that adds a hook, as a tool and in a shell."""
    patch = PATCH.replace("src/secret.py", ".agent/hooks/evil.py")
    given = {"input": patch} if tool == "apply_patch" else {"command": f"apply_patch <<'EOF'\n{patch}EOF"}
    asked = CallAsked(native={}, name="before", tool_name=tool, native_name=tool, tool_call_id="c", input=given,
                      parts=parts_of_call(tool, given))  # fmt: skip
    verdict = await answer(asked, cwd=at, guards=builtin_guards())
    assert verdict.block is not None
    assert ".agent/hooks/evil.py" in verdict.block


async def test_a_gate_that_asks_about_writes_asks_about_a_patch(at: Path) -> None:
    """A hook with `tool="write"` sees each file that a patch adds."""

    async def ask(event: ToolCall, ctx: HookContext) -> Ask:
        return Ask(f"Write {event.input['path']}?")

    verdict = await answer(
        CallAsked(**fields(f"apply_patch <<'EOF'\n{PATCH}EOF")), hook_on("tool_call", ask, tool="write"), cwd=at
    )
    assert verdict.ask is not None
    assert "Write src/secret.py?" in verdict.ask
