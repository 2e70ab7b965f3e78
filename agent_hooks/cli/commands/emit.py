"""`agent-hooks emit`: fire one event at a hook, and show the answer and the time of each handler, and the outcome."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import anyio
import click
import msgspec
from rich.text import Text

from agent_hooks.cli.completing import event_names, tool_names
from agent_hooks.cli.lifetime import FAILED, OK
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.screen.wording import console, plain_table, short
from agent_hooks.cli.screen.working import working
from agent_hooks.cli.setup import hiding
from agent_hooks.cli.streams import ReservedStdout, echo, echo_json
from agent_hooks.cli.trusting import settle
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.table import EVENT_NAMES, SPECS
from agent_hooks.effects import CallEffects
from agent_hooks.errors import HookError, did_you_mean
from agent_hooks.hooks.loaded import LoadError
from agent_hooks.hooks.loader import load_hooks
from agent_hooks.host.compaction import prepare
from agent_hooks.host.model import now_ms
from agent_hooks.host.session import now_iso
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import merge_settings
from agent_hooks.trees import SourceTree
from agent_hooks.trust.policy import Trust
from agent_hooks.values.answers import Answer
from agent_hooks.values.content import AssistantMessage, Entry, MessageEntry, SessionHeader, TextContent, UserMessage
from agent_hooks.values.events import (
    AfterToolCall,
    AgentEnd,
    AgentStart,
    BeforeToolCall,
    Event,
    ModelRef,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from agent_hooks.values.wire import camel


@click.command("emit")
@click.argument("event", shell_complete=event_names)
@click.option(
    "--hook",
    "hook_files",
    multiple=True,
    required=True,
    metavar="FILE",
    type=click.Path(exists=True),
    help="The hook file or package; repeatable.",
)
@click.option("--tool", default="bash", show_default=True, shell_complete=tool_names, help="The tool, for tool events.")
@click.option("--input", "input_text", metavar="JSON", default="{}", help="The tool's input, for tool events.")
@click.option("--output", default="", metavar="TEXT", help="The tool's output, for tool_result.")
@cwd_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    event: str,
    hook_files: tuple[str, ...],
    tool: str,
    input_text: str,
    output: str,
    cwd: str,
    as_json: bool,
) -> None:
    """Fire one EVENT at a hook file and show the answers of its handlers.

    EVENT is a name such as tool_call; for session add the reason: session:before_clear.
    Only the files named by --hook take part. No dialog is shown: each gets its default answer.
    """
    fired = _event(event, tool, _input(input_text), output)
    if isinstance(fired, ToolCall | BeforeToolCall):
        fired.with_effects(CallEffects(os.path.abspath(cwd)))
    trees = settle(Trust(), cwd).trees
    with ReservedStdout(), working(f"firing {event}"):
        emitted = anyio.run(_emit, fired, hook_files, os.path.abspath(cwd), trees)
    for error in emitted.broken:
        echo(f"not loaded: {error}", err=True)
    if as_json:
        echo_json(json.dumps({"handlers": emitted.rows, "outcome": _plain(emitted.outcome)}))
    else:
        _print(fired, emitted.rows, emitted.outcome)
    ctx.exit(FAILED if emitted.broken or emitted.errors else OK)


def _input(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise click.UsageError(f"--input is not JSON: {exc}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"--input must be a JSON object, not {text}")
    return value


def _event(name: str, tool: str, input: dict[str, Any], output: str) -> Event[Any]:
    kind, _, reason = name.partition(":")
    if kind not in EVENT_NAMES or (reason and name not in SPECS):
        known = [each for each in SPECS if each.startswith(f"{kind}:")] or EVENT_NAMES
        raise click.UsageError(f"unknown event {name!r}{did_you_mean(name, known)}")
    if name == "session:before_compact":
        return _compaction()
    message = AssistantMessage(content=(TextContent(output),), timestamp=now_ms(), provider="emit", model="emit")
    call: dict[str, Any] = {"tool_name": tool, "tool_call_id": "emit"}
    events: dict[str, Event[Any]] = {
        "session": SessionEvent(reason=reason or "start"),  # type: ignore[arg-type]  # checked above
        "agent_start": AgentStart(prompt="What is in this directory?"),
        "agent_end": AgentEnd(messages=(message,)),
        "turn_start": TurnStart(turn_index=0, timestamp=now_ms()),
        "turn_end": TurnEnd(turn_index=0, message=message),
        "before_tool_call": BeforeToolCall(params=input, **call),
        "tool_call": ToolCall(input=input, **call),
        "tool_result": ToolResult(input=input, content=output, **call),
        "after_tool_call": AfterToolCall(params=input, **call),
    }
    return events[kind]


def _compaction() -> SessionEvent:
    """Return the event of a compaction, as the host emits it for a conversation of two prompts."""
    entries: list[Entry] = [SessionHeader(version=1, id="emit", timestamp=now_iso(), cwd=os.getcwd())]
    for prompt, answer in (("What is in this directory?", "A file."), ("Delete it.", "It is gone.")):
        reply = AssistantMessage(content=answer, timestamp=now_ms(), provider="emit", model="emit")
        messages = (UserMessage(content=prompt, timestamp=now_ms()), reply)
        entries += [MessageEntry(timestamp=now_iso(), message=message) for message in messages]
    return prepare(entries, model=ModelRef(provider="emit", id="emit"))


class Emitted(NamedTuple):
    """The result of an event: a row per handler, the combined answer, and the failures to load and to run."""

    rows: list[dict[str, Any]]
    outcome: Any
    broken: list[LoadError]
    errors: list[HookError]


async def _emit(event: Event[Any], hook_files: tuple[str, ...], cwd: str, trees: Sequence[SourceTree]) -> Emitted:
    settings = merge_settings(trees)
    found = await load_hooks([os.path.abspath(file) for file in hook_files], cwd=cwd, isolation=settings.isolation)
    loaded = found.hidden(hiding(settings)) if found.errors else found
    answers: dict[Handler, Any] = {}
    errors: list[HookError] = []
    runner = HookRunner(
        loaded.hooks,
        cwd=cwd,
        timeout=settings.hook_timeout,
        tool_call_timeout=settings.tool_call_timeout,
        mode="print",
    )
    runner.on_answer(lambda handler, _, answer: answers.update({handler: answer}))
    runner.on_error(errors.append)
    async with runner:
        outcome = await runner.emit(event)
    rows = [
        _row(handler, answers.get(handler), errors)
        for hook in loaded.hooks
        for handler in hook.handlers.get(event.type, ())
    ]
    return Emitted(rows, outcome, loaded.errors, errors)


def _row(handler: Handler, answer: Any, errors: list[HookError]) -> dict[str, Any]:
    own = [error.error for error in errors if (error.hook_path, error.handler) == (handler.hook, handler.name)]
    return {
        "hook": handler.hook,
        "handler": handler.name,
        "called": handler.stats.count > 0,
        "answer": _plain(answer),
        "error": "; ".join(own) or None,
        "seconds": handler.stats.max,
    }


def _plain(answer: Any) -> Any:
    if answer is None:
        return None
    if not isinstance(answer, Answer):
        return msgspec.to_builtins(answer, enc_hook=str)
    fields = {
        field.name: value
        for field in msgspec.structs.fields(answer)
        if (value := getattr(answer, field.name)) != field.default or field.required
    }
    wire = {camel(name): value for name, value in fields.items()}
    return {"answer": type(answer).__name__, **msgspec.to_builtins(wire, enc_hook=str)}


def _print(event: Event[Any], rows: list[dict[str, Any]], outcome: Any) -> None:
    if not rows:
        console().print(Text(f"no handler of {event.type}"))
        return
    table = plain_table("hook", "handler", "answer", "time")
    for row in rows:
        answer = "failed: " + row["error"] if row["error"] else _short_answer(row["answer"])
        took = "" if row["seconds"] is None else f"{row['seconds'] * 1000:.1f} ms"
        table.add_row(short(row["hook"]), row["handler"], Text(answer if row["called"] else "not called"), took)
    console().print(table)
    console().print(Text(f"outcome: {'nothing' if outcome is None else json.dumps(_plain(outcome))}"), soft_wrap=True)


def _short_answer(answer: Any) -> str:
    return "no opinion" if answer is None else json.dumps(answer)
