"""The man page, in the language of man(7), made of the help texts of the commands, so that it says the same."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from agent_hooks.cli.completing import PROGRAM

_END = """\
.SH EXIT STATUS
.TP
.B 0
Success.  A blocked call is a normal outcome, too.
.TP
.B 1
The run failed, or the command has found a problem.
.TP
.B 2
Wrong usage: an argument, an option, or no prompt.
.TP
.B 130
Interrupted.
.SH ENVIRONMENT
.TP
.B AGENT_HOME
The agent home, in place of ~/.agent.
.TP
.B NO_COLOR
If it is not empty, no output has a colour.
.SH FILES
.TP
.I ~/.agent
Your own hooks and settings, and the records and approvals.
.TP
.I .agent
The hooks and settings of a project, which count after you have approved them.
"""


def page(cli: click.Command) -> str:
    """Return the man page of the command and all its subcommands."""
    name = PROGRAM.replace("-", "\\-")
    ctx = click.Context(cli, info_name=PROGRAM, **cli.context_settings)
    first, *rest = _paragraphs(cli)
    lines = [
        f'.TH {PROGRAM.upper()} 1 "" "agent_hooks" "User Commands"',
        ".SH NAME",
        f"{name} \\- {_text(first).rstrip('.')}",
        ".SH SYNOPSIS",
        *_synopsis(ctx),
        ".SH DESCRIPTION",
        *_filled(rest),
        ".SH OPTIONS",
        *_options(ctx),
        ".SH COMMANDS",
    ]
    for each in _subcommands(ctx):
        lines += [f".SS {_text(each.command_path)}", *_synopsis(each)]
        lines += [".PP", *_filled(_paragraphs(each.command)), *_options(each)]
    return "\n".join(lines) + "\n" + _END


def _subcommands(ctx: click.Context) -> Iterator[click.Context]:
    """Yield a context for each command, those of groups too."""
    group = ctx.command
    assert isinstance(group, click.Group), "only groups are asked"
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=ctx)
        yield inner
        if isinstance(command, click.Group):
            yield from _subcommands(inner)


def _paragraphs(command: click.Command) -> list[str]:
    """Return the paragraphs of a help text, each on one line."""
    return [" ".join(each.split()) for each in inspect.cleandoc(command.help or "").split("\n\n")]


def _filled(paragraphs: list[str]) -> Iterator[str]:
    for number, each in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield _text(each)


def _synopsis(ctx: click.Context) -> Iterator[str]:
    yield f".B {_text(ctx.command_path)}"
    yield _text(" ".join(ctx.command.collect_usage_pieces(ctx)))


def _options(ctx: click.Context) -> Iterator[str]:
    """Yield the options of a command, as its help text has them."""
    for parameter in ctx.command.get_params(ctx):
        row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
        if row is not None:
            yield from (".TP", f".B {_text(row[0])}", _text(row[1]))


def _text(text: str) -> str:
    """Return a text without harm for the formatter: its backslashes, its hyphens, a dot or quote that begins a line."""
    escaped = re.sub(r"[\\-]", lambda match: "\\e" if match[0] == "\\" else "\\-", text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
