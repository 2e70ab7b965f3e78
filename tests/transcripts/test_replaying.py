"""Recorded calls go through today's gates, and no tool runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_hooks import Ask, BeforeToolCall, Block, HookAPI, HookContext, HookRunner, LoadedHook, Rewrite, ToolCall
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.guards import builtin_guards
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.transcripts import Transcript
from agent_hooks.transcripts.base import Reader, RecordedEnd
from agent_hooks.transcripts.replaying import Answered, Gates, Replay, ReplayUI, Tally
from agent_hooks.values.content import AssistantMessage, MessageEntry, SessionHeader, ToolCallContent
from agent_hooks.values.wire import to_json
from support import ROOT, hook_of, hook_on
from transcripts.test_transcripts import FIRST, SECOND, SUB_AGENT, THIRD, called, calls, came, read, written

HOOKS = ROOT / "examples" / "hooks"


async def replay(
    paths: Sequence[Path], *hooks: LoadedHook, schemas: dict[str, Any] | None = None, **options: Any
) -> tuple[Tally, list[Answered], list[Reader]]:
    """Replay files, and return the sums, the answers, and the readers for which gates were opened."""
    answers: list[Answered] = []
    opened: list[Reader] = []

    async def open_gates(reader: Reader) -> Gates:
        opened.append(reader)
        runner = HookRunner(hooks, **{"cwd": "/here", "ui": ReplayUI(), "mode": "replay", **options})
        return Gates(runner, schemas or {})

    replaying = Replay(open_gates, answers.append, lambda file, line, error: None)
    return await replaying.run(Transcript(str(path)) for path in paths), answers, opened


async def test_the_guards_judge_what_was_recorded(tmp_path: Path) -> None:
    """Each answer has file, line and the recorded end; copies count once, and calls without a hook count apart."""
    tally, answers, opened = await replay([FIRST, SECOND, SUB_AGENT, THIRD], guards=builtin_guards())
    assert [(each.verdict, each.call.input, each.then, Path(each.file), each.line) for each in answers] == [
        ("block", {"path": "/home/dev/app/.env"}, "failed", FIRST, 37),
        ("block", {"command": "rm -rf sub"}, "denied", SUB_AGENT, 6),
    ]
    assert [each.by for each in answers] == [
        "builtin:security-audit (environment-file)",
        "builtin:command-safety-guard (rm-rf)",
    ]
    assert (tally.files, tally.calls, tally.blocked, tally.ran, tally.repeated) == (4, 19, 2, 1, 3)
    assert tally.passed + tally.blocked + tally.invalid == tally.calls
    # The fork has no call of its own, and the sub-agent belongs to the second session.
    assert len(opened) == 2


async def test_hooks_see_each_call_as_it_was(tmp_path: Path) -> None:
    """Directory, session and agent of the record; a call without a directory is in that of the runner."""
    seen: list[Any] = []

    async def look(event: ToolCall, ctx: HookContext) -> None:
        seen.append((event.tool_name, ctx.cwd, ctx.session_id, ctx.agent_id, ctx.mode, ctx.has_ui))
        assert event.native
        assert event.native["hook_event_name"] == "PreToolUse"

    bare = written(tmp_path / "bare.jsonl", [called("Bash", {"command": "ls"})])
    _, answers, _ = await replay([SECOND, SUB_AGENT, bare], hook_on("tool_call", look))
    assert answers == []
    session = SECOND.stem
    assert seen[0] == ("Agent", "/home/dev/app", session, "main", "replay", True)
    assert [each[3] for each in seen] == ["main"] * 4 + ["a9a91937ccdfc1918"] * 2 + ["main"]
    assert seen[-1] == ("bash", "/here", "s", "main", "replay", True)


async def test_who_rewrites_asks_and_blocks_is_told(tmp_path: Path) -> None:
    """A dialog in a gate is a question; a block wins; questions and blocks are about the rewritten input."""

    def register(api: HookAPI) -> None:
        @api.on("before_tool_call")
        async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite | None:
            command = event.params["command"]
            return Rewrite({"command": command[2:]}) if command.startswith("$ ") else None

        @api.on("tool_call")
        async def ask(event: ToolCall, ctx: HookContext) -> Ask | Block | None:
            match event.input["command"]:
                case "ask":
                    return Ask("Really?")
                case "dialog":
                    if not await ctx.ui.confirm("In a dialog?"):
                        return Block("never reached")
                case "block":
                    return Block("no")
                case "fail":
                    raise ValueError("oops")
            api.send("nobody hears this")
            ctx.ui.notify("nor this")
            return None

    commands = ["ls", "$ ls", "ask", "$ dialog", "$ block", "fail"]
    path = written(tmp_path / "t.jsonl", [called("Bash", {"command": text}, text) for text in commands])
    tally, answers, _ = await replay([path], hook_of(register, path="h.py"))
    assert [(each.call.input["command"], each.verdict, each.why) for each in answers] == [
        ("$ ls", "rewrite", "rewritten by h.py"),
        ("ask", "ask", "Really? (h.py)"),
        ("$ dialog", "ask", "In a dialog? (h.py)"),
        ("$ block", "block", "no (h.py)"),
        ("fail", "block", "not run, because hook h.py failed: ValueError: oops"),
    ]
    assert {each.by for each in answers} == {"h.py"}
    assert [each.rewritten and each.rewritten["command"] for each in answers] == ["ls", None, "dialog", "block", None]
    assert answers[4].rewritten_by == ()
    assert answers[0].rewritten_by == ("h.py",)
    assert {each.then for each in answers} == {"unknown"}
    assert (tally.blocked, tally.asked, tally.rewritten, tally.passed, tally.ran) == (2, 2, 1, 1, 0)
    assert tally.by == {"h.py": {"block": 2, "ask": 2, "rewrite": 1}}


async def test_a_permission_that_is_settled_is_no_question(tmp_path: Path) -> None:
    """An interceptor of `permission.ask` answers as it would."""

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def ask(event: ToolCall, ctx: HookContext) -> Ask:
            return Ask("Really?")

        @api.intercept("permission.ask")
        def settle(input: Any, output: Any) -> None:
            output.status = input.args["command"]

    lines = [called("Bash", {"command": text}, text) for text in ("allow", "deny", "ask")]
    tally, answers, _ = await replay([written(tmp_path / "t.jsonl", lines)], hook_of(register))
    assert [each.verdict for each in answers] == ["block", "ask"]
    assert tally.passed == 1


async def test_refused_calls_are_blocked_and_invalid_calls_are_counted_apart(tmp_path: Path) -> None:
    """A call that the bridge refuses is blocked; a call that breaks its tool's schema, or was not valid, counts apart."""
    schema = {"type": "object", "required": ["command"]}
    lines = [
        called("Read", {"file_path": "a", "path": "b"}, "two"),
        called("Bash", {}, "lacks"),
        called("Bash", "ls", "no object"),
        called("Write", {"file_path": "/etc/passwd"}, "refused then"),
        came("<tool_use_error>InputValidationError: …", "refused then"),
        called("Read", {"file_path": "x"}, "nowhere", cwd="/a\0b"),
    ]
    path = written(tmp_path / "t.jsonl", lines)
    tally, answers, _ = await replay([path], schemas={"bash": schema}, guards=builtin_guards())
    assert [(each.verdict, each.by) for each in answers] == [("block", "the bridge"), ("block", "guards")]
    assert "the guard failed: ValueError: no directory" in answers[1].why
    assert (tally.calls, tally.invalid, tally.blocked) == (5, 3, 2)


async def test_a_session_starts_without_what_another_left(tmp_path: Path) -> None:
    """Files of one session in a row share the gates; each other session gets gates of its own."""
    lines = [called("Bash", {"command": "ls"}, str(number)) for number in range(6)]
    files = [
        written(tmp_path / f"{number}.jsonl", [{**line, "sessionId": session}])
        for number, (line, session) in enumerate(zip(lines, "aabbca", strict=True))
    ]
    _, _, opened = await replay(files)
    assert len(opened) == 4


async def test_an_answer_is_told_once_its_end_is_known(tmp_path: Path) -> None:
    """It is reported at the call's end or at the end of the file; a copy in between changes nothing."""
    lines = [called("Bash", {"command": "rm -rf /"}, each) for each in ("1", "2", "3")]
    lines[1:1] = [came("", "1", error=False), lines[0]]
    lines.append(came("boom", "3"))
    tally, answers, _ = await replay([written(tmp_path / "t.jsonl", lines)], guards=builtin_guards())
    assert [(each.call.tool_call_id, each.then) for each in answers] == [
        ("1", "ran"),
        ("3", "failed"),
        ("2", "unknown"),
    ]
    assert (tally.repeated, tally.ran) == (1, 2)


async def test_ids_that_begin_anew_are_other_calls(tmp_path: Path) -> None:
    """Some models number their calls in each turn; an answer without an end is reported before the next of that id."""

    def said(time: str) -> bytes:
        call = ToolCallContent("1", "bash", {"command": "rm -rf /"})
        message = AssistantMessage(content=(call,), timestamp=1, provider="p", model="m")
        return to_json(MessageEntry(timestamp=time, message=message))

    head = to_json(SessionHeader(version=1, id="one", timestamp="2026", cwd="/w"))
    path = written(tmp_path / "s.jsonl", [head, said("2026-01-01"), said("2026-01-02"), said("2026-01-02")])
    tally, answers, _ = await replay([path], guards=builtin_guards())
    assert [(each.line, each.then) for each in answers] == [(2, "unknown"), (3, "unknown")]
    assert (tally.calls, tally.repeated) == (2, 1)


async def test_a_replay_says_what_the_bridge_would_have_said() -> None:
    """Of every recorded call, with guards and hooks that ask, rewrite and fail."""
    loaded = await load_hooks([HOOKS / "permission_gate.py", HOOKS / "protected_paths.py"], cwd="/home/dev/app")

    async def quieter(event: BeforeToolCall, ctx: HookContext) -> Rewrite | None:
        return Rewrite({**event.params, "command": "ls"}) if event.params.get("command") == "ls -la" else None

    hooks = [*loaded.hooks, hook_on("before_tool_call", quieter)]
    said: dict[str, str] = {}
    ui = BridgeUI()
    async with HookRunner(hooks, cwd="/here", ui=ui, mode="bridge", guards=builtin_guards()) as runner:
        for path in (FIRST, SECOND, SUB_AGENT):
            for call in calls(path):
                assert call.native
                runner.engine.surroundings.cwd = call.cwd or "/here"
                verdict = await Bridging(runner, ui).answer(ClaudeCode().decode(call.native))
                word = "block" if verdict.block else "ask" if verdict.ask else "rewrite" if verdict.input else "pass"
                said[call.tool_call_id] = word
    invalid = {
        found.tool_call_id for found in read(FIRST) if isinstance(found, RecordedEnd) and found.then == "invalid"
    }
    _, answers, _ = await replay([FIRST, SECOND, SUB_AGENT], *hooks, guards=builtin_guards())
    assert {each.call.tool_call_id: each.verdict for each in answers} == {
        call: word for call, word in said.items() if word != "pass" and call not in invalid
    }
    assert {"block", "ask", "rewrite", "pass"} == set(said.values())


def said(id: str, command: str, message: str, session: str = "s") -> dict[str, Any]:
    """Return a line of Claude Code with a call in a message."""
    line = called("Bash", {"command": command}, id, sessionId=session)
    line["message"]["id"] = message
    return line


async def test_two_calls_with_one_id_are_both_judged(tmp_path: Path) -> None:
    """In one message, in two turns of a session, and in two sessions.  Each has its own end."""
    bad = "rm -rf /"
    done = came("", error=False)
    turns = written(tmp_path / "turns.jsonl", [said("t1", "ls", "m1"), done, said("t1", bad, "m2"), done])
    other = written(tmp_path / "other.jsonl", [said("t1", bad, "m1", "s2"), came("no", toolDenialKind="user-rejected")])
    both = said("t1", "ls", "m3", "s3")
    both["message"]["content"] += said("t1", bad, "m3")["message"]["content"]
    numbered = said("t1", "ls", "m4", "s4"), said("t1", bad, "m4", "s4")
    files = [turns, other, written(tmp_path / "both.jsonl", [both]), written(tmp_path / "again.jsonl", numbered)]
    tally, answers, _ = await replay(files, guards=builtin_guards())
    assert [(Path(each.file).name, each.line, each.then) for each in answers] == [
        ("turns.jsonl", 3, "ran"),
        ("other.jsonl", 1, "denied"),
        ("both.jsonl", 1, "unknown"),
        ("again.jsonl", 2, "unknown"),
    ]
    assert (tally.calls, tally.blocked, tally.passed, tally.repeated) == (7, 4, 3, 0)


async def test_a_streamed_copy_is_the_same_call_with_its_fullest_text(tmp_path: Path) -> None:
    """A shorter copy that comes later changes nothing, and neither does a fork of the session."""
    texts = ["", "rm", "rm -rf /", "rm -r"]
    lines = [said("t1", text, "m1") for text in texts]
    lines.insert(2, said("t2", "ls", "m1"))
    lines += [came("", error=False), came("", "t2", error=False)]
    files = [written(tmp_path / name, lines) for name in ("one.jsonl", "fork.jsonl")]
    tally, answers, _ = await replay(files, guards=builtin_guards())
    assert [(each.call.input, each.line, each.then) for each in answers] == [({"command": "rm -rf /"}, 4, "ran")]
    assert (tally.calls, tally.repeated) == (2, 8)


async def test_an_invalid_call_is_counted_once(tmp_path: Path) -> None:
    """Its input was not an object, and its end says so too.  A fork of the session changes nothing."""
    lines = [called("Bash", "ls"), came("<tool_use_error>InputValidationError: …")]
    files = [written(tmp_path / name, lines) for name in ("one.jsonl", "fork.jsonl")]
    tally, _, _ = await replay(files)
    assert (tally.calls, tally.invalid, tally.passed, tally.repeated) == (1, 1, 0, 1)


async def test_calls_without_a_result_are_judged_in_their_order(tmp_path: Path) -> None:
    """Also where there are more than wait for a fuller copy."""
    seen: list[str] = []

    async def look(event: ToolCall, ctx: HookContext) -> None:
        seen.append(event.input["command"])

    lines = [called("Bash", {"command": str(number)}, str(number)) for number in range(150)]
    tally, _, _ = await replay([written(tmp_path / "t.jsonl", lines)], hook_on("tool_call", look))
    assert seen == [str(number) for number in range(150)]
    assert tally.passed == 150
