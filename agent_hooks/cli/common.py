"""The conventions that hold for every command: `-q`, and help texts that are not cut."""

from __future__ import annotations

import shlex
from typing import Any

import click

from agent_hooks.cli.streams import be_quiet
from agent_hooks.errors import did_you_mean, nearest

ASKS_FOR_COMPLETIONS = "_AGENT_HOOKS_COMPLETE"
"""The variable by which the script of a shell asks for completions; click derives it from the command's name."""


def _quiet(_ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value:
        be_quiet()
    return value


_DECLARATION: dict[str, Any] = {
    "is_flag": True,
    "expose_value": False,
    "callback": _quiet,
    "help": "Print answers, warnings and errors only.",
}
quiet_option = click.option("-q", "--quiet", **_DECLARATION)


class WholeHelpGroup(click.Group):
    """A group whose list of commands has the whole first sentence of each, where click cuts it at the line's end.

    `otherwise`: the remedy for a word that is no command of it; `WORD` in it stands for that word.
    """

    def __init__(self, *args: Any, otherwise: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self._otherwise = otherwise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (word := args[0]) not in (names := self.list_commands(ctx)):
            remedy = f"; {self._otherwise.replace('WORD', shlex.quote(word))}" if self._otherwise else ""
            near = nearest(word, names) is not None
            ctx.fail(f"No such command {word!r}{did_you_mean(word, names)}{'' if near else remedy}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, first_sentence(each)) for name, each in commands if each is not None and not each.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def first_sentence(command: click.Command) -> str:
    """Return the first sentence of a command's help text."""
    return command.get_short_help_str(limit=1000)


def with_common_options(command: click.Command) -> click.Command:
    """Return the command with `-q` before `--help`; so have the commands of a group."""
    if not any("-q" in parameter.opts for parameter in command.params):
        command.params.append(click.Option(["-q", "--quiet"], **_DECLARATION))
        for each in command.commands.values() if isinstance(command, click.Group) else ():
            with_common_options(each)
    return command
