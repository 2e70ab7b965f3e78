"""The command line: a table of commands, each imported when it is used, and the one place where errors end.

Exit codes: 0 success, 1 the run failed, 2 wrong usage, 130 interrupted (docs/exit-codes.md).
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

import click

from agent_hooks import __version__
from agent_hooks.cli.common import ASKS_FOR_COMPLETIONS, quiet_option, with_common_options
from agent_hooks.cli.lifetime import FAILED, INTERRUPTED, OK, leave, open_standard_streams
from agent_hooks.cli.streams import complain, echo, on_a_terminal, silence_gone
from agent_hooks.errors import AgentHooksError, describe, did_you_mean, nearest

COMMANDS = {
    "run": "Run an agent on a prompt, with your hooks.",
    "new": "Write a hook from a template, and approve it.",
    "examples": "List the examples, and add one to your hooks.",
    "disable": "Let a hook count nowhere, until you enable it.",
    "enable": "Let a disabled hook count again.",
    "trust": "Read and approve the hooks and settings of a project.",
    "untrust": "Forget the approvals of a project.",
    "list": "List the hooks, in the order they run.",
    "check": "Load hook files and report their problems.",
    "emit": "Fire one event at a hook and show its answers.",
    "replay": "Show the calls of recorded sessions that your hooks would have stopped.",
    "records": "Show, verify and remove the records of calls and decisions.",
    "look": "Show the work of your hooks as a page in the browser, or save it as one file.",
    "stats": "Show how often each hook judged, stopped, asked and failed, and its times.",
    "why": "Say why the last call was stopped, asked about or changed, and how to allow it.",
    "undo": "Take back what the last turns of agents changed in a working tree.",
    "redo": "Bring the changes back that the last undo took back.",
    "checkpoints": "List, show, compare and restore the checkpoints of a working tree.",
    "guard": "Ask the built-in guards about a command, or score a corpus.",
    "install": "Let other agents run your hooks: one, several, or all that are here.",
    "uninstall": "Take your hooks out of another agent's settings again.",
    "unlock": "Let the agent change hooks and settings for a limited time.",
    "doctor": "Check hooks, settings and installations, with the remedy for each problem.",
    "bridge": "Answer one event of another agent; installed entries run this.",
    "serve": "Run or ask the resident server, which answers another agent's events.",
    "schema": "Print a JSON Schema: of settings, of events, of records or of RPC.",
    "completion": "Print a script that lets TAB complete this command in bash, zsh or fish.",
}


class LazyGroup(click.Group):
    """Imports the module of a command when the command is used, so that `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"agent_hooks.cli.commands.{cmd_name}").command
        # Shells show it beside a completion; click would cut the first sentence of the help text.
        command.short_help = COMMANDS[cmd_name]
        return with_common_options(command)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:
            # The reader of the help text has gone.
            silence_gone()
            raise click.exceptions.Exit(OK) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of stdout, for example `head`, has gone, and other code printed there; that is no error.
            silence_gone()
            raise click.exceptions.Exit(FAILED) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Where `agent-hooks` alone is `agent-hooks run`, so are these.
        if args and args[0] in ("-c", "--continue", "--resume"):
            args = ["run", *args]
        elif args and on_a_terminal() and self._begins_a_talk(ctx, args):
            args = ["run", "--mode", "interactive", *args]
        given = shlex.join(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as exc:
            run = self.get_command(ctx, "run")
            if run is None or not any(exc.option_name in parameter.opts for parameter in run.params):
                raise
            text = f"No such option {exc.option_name!r}; it comes after `run`: agent-hooks run {given}"
            raise click.UsageError(text, ctx) from None

    def _begins_a_talk(self, ctx: click.Context, args: list[str]) -> bool:
        """Tell whether arguments without a command are a prompt, or options of `run` that say nothing of a mode."""
        # No command has a space in its name.
        if not args[0].startswith("-"):
            return len(args) == 1 and " " in args[0]
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if args[0].partition("=")[0] in own or not {"-p", "--print", "--mode", "--json"}.isdisjoint(args):
            return False
        run = self.get_command(ctx, "run")
        return run is not None and any(args[0].partition("=")[0] in each.opts for each in run.params)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (name := args[0]) not in COMMANDS:
            hint = did_you_mean(name, COMMANDS)
            if nearest(name, COMMANDS) is None:  # then it may be a prompt
                hint += f"; a prompt comes after `run`: agent-hooks run {shlex.join(args)}"
            ctx.fail(f"No such command {name!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@quiet_option
@click.version_option(__version__, prog_name="agent-hooks")
def cli() -> None:
    """Guard, steer and record a coding agent from one Python file.

    Hooks are .py files in ~/.agent/hooks, and in .agent/hooks of a project, where you approve them (agent-hooks trust);
    try one with --hook. At a terminal, `agent-hooks` alone is `agent-hooks run`: an agent to talk to.
    """
    try:
        os.getcwd()
    except OSError:
        raise click.UsageError("the current directory does not exist any more; cd to one that does") from None


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    open_standard_streams()
    if ASKS_FOR_COMPLETIONS in os.environ:
        # Imported here, because only the script of a shell asks.
        from agent_hooks.cli.completing import answer_and_leave

        answer_and_leave(cli)
    try:
        code = cli.main(sys.argv[1:] or (["run"] if on_a_terminal() else []), standalone_mode=False)
    except click.ClickException as exc:
        _show_usage(exc)
        code = exc.exit_code
    except click.exceptions.Exit as exc:
        code = exc.exit_code
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        code = INTERRUPTED
    except BaseExceptionGroup as group:
        # A task group wraps the exception of a task in a group.
        if group.subgroup(KeyboardInterrupt):
            complain("interrupted")
            code = INTERRUPTED
        else:
            code = _internal_error(group)
    except SystemExit as exc:
        # A task or callback of a hook raised it.
        complain(f"a hook called sys.exit({exc.code!r}), which ended the run")
        code = FAILED
    except AgentHooksError as exc:
        complain(str(exc))
        code = FAILED
    # A bug in this package: the person gets one line, and a file to report.
    except Exception as exc:
        code = _internal_error(exc)
    leave(code if isinstance(code, int) else OK)


def _show_usage(exc: click.ClickException) -> None:
    """Print the usage of the command, its help option and the error; an argument may hold control characters."""
    ctx = exc.ctx if isinstance(exc, click.UsageError) else None
    # A group without a subcommand: click's error, which its older versions do not have, is the help text.
    if type(exc).__name__ == "NoArgsIsHelpError":
        echo(exc.format_message(), err=True)
        return
    if ctx is not None:
        echo(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n", err=True)
    complain(exc.format_message())


def _internal_error(exc: BaseException) -> int:
    """Print one line for the person, and write the traceback to a file."""
    # Each task group adds a group around the exception.
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    complain(f"internal error: {describe(exc)}; please report it with {_write_report()}")
    return FAILED


def _write_report() -> str:
    # Imported here, because it is large and reports are rare.
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="agent-hooks-error-", suffix=".txt", delete=False) as file:
        file.write(f"agent-hooks {__version__}, Python {sys.version}\n\n{traceback.format_exc()}")
    return file.name
