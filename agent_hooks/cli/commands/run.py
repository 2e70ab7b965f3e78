"""`agent-hooks run`: a small real agent with the hooks of its directory, in one of three modes."""

from __future__ import annotations

import os
import select
import stat
import sys

import anyio
import click

from agent_hooks.cli.choosing import CHOOSE, choose_model, settle_session
from agent_hooks.cli.completing import file_names, rule_names
from agent_hooks.cli.modes import MODES, mode
from agent_hooks.cli.modes.base import FLAG, Start
from agent_hooks.cli.options import cwd_option, hook_option, required_option, without_option
from agent_hooks.cli.setup import paths_without
from agent_hooks.cli.streams import on_a_terminal, tell
from agent_hooks.cli.trusting import asked
from agent_hooks.errors import count
from agent_hooks.host.caution import LEVELS, Level
from agent_hooks.host.model import THINKING_LEVELS, ThinkingLevel
from agent_hooks.host.models.puppet import parse
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.trust.policy import Trust

PATIENCE = 3.0
"""Seconds in which the first bytes must come, where the prompt is given: an open stdin that stays silent hangs no run."""


@click.command("run")
@click.argument("prompt", required=False)
@click.option("-p", "--print", "mode_name", flag_value="print", help="Print the answer and end: --mode print.")
@click.option(
    "--mode",
    "mode_name",
    type=click.Choice(list(MODES)),
    help="print, rpc (JSON lines on stdin and stdout) or interactive: the default on a terminal without a prompt.",
)
@hook_option
@without_option
@click.option(
    "--model",
    "model_name",
    metavar="M",
    help="puppet, script:FILE, or a real one: anthropic:NAME, openai:NAME, openai-responses:NAME, google:NAME. By "
    "default, the model of your settings; at a terminal, one of the provider whose key is set; else the puppet.",
)
@click.option(
    "--thinking",
    "thinking_level",
    metavar="LEVEL",
    type=click.Choice(THINKING_LEVELS),
    help="How much a real model thinks: off (the default), low, medium or high.",
)
@click.option(
    "--caution",
    metavar="LEVEL",
    type=click.Choice(LEVELS),
    help="How the agent begins in interactive mode: work (the default), ask before each change, accept edits and ask "
    "about the rest, or only plan. By default, the level of your settings.",
)
@cwd_option
@required_option
@click.option("--no-session", is_flag=True, help="Do not save the session.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the latest session of the directory.")
@click.option(
    "--resume",
    metavar="[PATH]",
    is_flag=False,
    flag_value=CHOOSE,
    shell_complete=file_names,
    help="Go on with the session in this file; at a terminal, without a path, with one that you choose from a list.",
)
@click.option(FLAG, "trust_session", is_flag=True, help="Resume a session of another machine without a question.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line instead of the answer.")
@click.option(
    "--allow-once",
    multiple=True,
    metavar="RULE",
    shell_complete=rule_names,
    help="Let one call pass that this rule of a guard would stop; repeatable.",
)
@click.option("--allow-remember", is_flag=True, help="RPC mode: let the client answer a question for always.")
@click.pass_context
def command(
    ctx: click.Context,
    prompt: str | None,
    mode_name: str | None,
    hook_files: tuple[str, ...],
    without: tuple[str, ...],
    model_name: str | None,
    thinking_level: ThinkingLevel | None,
    caution: Level | None,
    cwd: str,
    require_trusted: bool,
    no_session: bool,
    go_on: bool,
    resume: str | None,
    as_json: bool,
    allow_once: tuple[str, ...],
    allow_remember: bool,
    trust_session: bool,
) -> None:
    """Run an agent on PROMPT (or on the text of stdin), with your hooks.

    Text on stdin goes along with a prompt for a model: cat FILE | agent-hooks run 'sum this up'.

    A prompt that begins with a tool, "@bash ls -la", goes to the puppet, which needs no key: each such line calls a
    tool, lines of one block are one turn, a line "---" starts the next turn.

    A blocked call is a normal outcome: the run exits 0.
    """
    if go_on + no_session + (resume is not None) > 1:
        raise click.UsageError("--continue, --resume and --no-session exclude one another")
    if allow_remember and mode_name != "rpc":
        raise click.UsageError("--allow-remember is for --mode rpc; in the other modes only a person answers")
    talks = on_a_terminal() and (prompt is None or caution is not None)
    name = mode_name or ("interactive" if talks else "print")
    if caution is not None and name != "interactive":
        raise click.UsageError("--caution is for interactive mode; elsewhere no person answers")
    if prompt is not None:
        # An argument may hold bytes that are not UTF-8.
        prompt = prompt.encode("utf-8", "replace").decode()
    chosen = choose_model(model_name, at_terminal=name == "interactive")
    if without:
        refuse_below_an_agent("run --without")
    sources = asked(Trust(required=require_trusted), cwd)
    start = Start(
        cwd=cwd,
        hook_files=hook_files,
        model=chosen.model,
        model_note=chosen.note,
        thinking_level=thinking_level,
        caution=caution,
        prompt=print_prompt(prompt) if name == "print" else prompt,
        as_json=as_json,
        no_session=no_session,
        go_on=go_on,
        resume=resume,
        allow_once=allow_once,
        trust_session=trust_session,
        sources=sources,
        required=require_trusted,
        allow_remember=allow_remember,
        without=paths_without(without, cwd, sources),
    )
    if name != "rpc":
        start = settle_session(start, model_named=model_name is not None or name != "interactive")
    ctx.exit(anyio.run(mode(name), start))


def print_prompt(prompt: str | None) -> str:
    """Return the prompt of print mode.  Raises `click.UsageError` without a prompt.

    `prompt`: `None` and `-` stand for the text of stdin.  Any other prompt for a model gets that text as an appendix, as
    in `cat FILE | agent-hooks run 'sum this up'`.
    """
    if prompt is None or prompt == "-":
        prompt = _read() if _gives_text(wait=None) else ""
    elif not any(turn.calls for turn in parse(prompt)) and _gives_text(wait=PATIENCE) and (text := _read()).strip():
        tell(f"{count(len(text.splitlines()), 'line')} of stdin go along with the prompt", err=True)
        prompt = f"{prompt}\n\n<stdin>\n{text.rstrip()}\n</stdin>"
    if not prompt.strip():
        raise click.UsageError("give a prompt, as an argument or on stdin:  agent-hooks run '@bash ls'")
    return prompt


def _gives_text(wait: float | None) -> bool:
    """Tell whether stdin is a file, or a pipe or socket with bytes, or its end, within `wait` seconds."""
    if sys.stdin is None or sys.stdin.isatty():
        return False
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    # A closed descriptor, or an object in the place of stdin.
    except (OSError, ValueError):
        return wait is None
    if wait is None or stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    if select.select([sys.stdin], [], [], wait)[0]:
        return True
    tell(
        f"no text came on stdin within {wait:g} s, so the prompt goes without it; `< /dev/null` says so at once",
        err=True,
    )
    return False


def _read() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")
