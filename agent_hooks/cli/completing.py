"""The completions for a shell: click's own, and the names of hooks, rules, tools and checkpoints of this directory.

TAB never prints an error, whatever is wrong with settings, files or this installation: then there is no completion.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from click.shell_completion import CompletionItem, get_completion_class

from agent_hooks.cli.common import ASKS_FOR_COMPLETIONS
from agent_hooks.cli.lifetime import OK, leave_at_once
from agent_hooks.cli.streams import echo_data
from agent_hooks.errors import AgentHooksError

if TYPE_CHECKING:
    import click

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]

PROGRAM = "agent-hooks"
# The places of click's script for each shell that are changed.  At TAB they would print an error: this command may be
# gone, and an older bash lacks `compopt` and `-o nosort`.
_CHANGED: dict[str, dict[str, str]] = {
    "bash": {
        "bash_complete $1)": "bash_complete $1 2>/dev/null)",
        "compopt -o dirnames": "compopt -o dirnames 2>/dev/null",
        "compopt -o default": "compopt -o default 2>/dev/null",
        "complete -o nosort -F %(complete_func)s %(prog_name)s": "complete -o nosort -F %(complete_func)s %(prog_name)s"
        " 2>/dev/null || complete -F %(complete_func)s %(prog_name)s",
    },
    "zsh": {"zsh_complete %(prog_name)s)": "zsh_complete %(prog_name)s 2>/dev/null)"},
    "fish": {
        "(commandline -t) %(prog_name)s)": "(commandline -t) %(prog_name)s 2>/dev/null)",
        # The text beside a completion may have commas.
        'string split ","': 'string split -m 1 ","',
    },
}
SHELLS = tuple(_CHANGED)
_PLAIN = re.compile(r"\w[\w.@+:/-]*")


def script(shell: str) -> str:
    """Return click's script for a shell of `SHELLS`, changed so that TAB prints no error."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows each of these shells"
    template = kind.source_template
    for place, changed in _CHANGED[shell].items():
        template = template.replace(place, changed)
    words = {"complete_func": "_agent_hooks_completion", "complete_var": ASKS_FOR_COMPLETIONS, "prog_name": PROGRAM}
    return (template % words).strip()


def answer_and_leave(cli: click.Command) -> NoReturn:
    """Print the completions for the words that the shell has put into the environment, and end the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A damaged installation or any bug.  The person wants a completion at most, and the command itself tells the error.
    with suppress(Exception):
        kind = get_completion_class(os.environ[ASKS_FOR_COMPLETIONS].removesuffix("_complete"))
        if kind is not None:
            echo_data(f"{kind(cli, {}, PROGRAM, ASKS_FOR_COMPLETIONS).complete()}\n")
    leave_at_once(OK)


# ---- the words of some arguments -------------------------------------------------------------------------------------


def _completer(words: Callable[[], Iterable[str]]) -> Completer:
    """Return a completer of these words, which are found at TAB. After a failure there are none.

    A stranger may have named a file, and bash inserts a word as it is.  So only words that no shell changes are offered.
    """

    def complete(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        with suppress(AgentHooksError, OSError):
            found = (word for word in sorted(set(words())) if word.startswith(incomplete))
            return [CompletionItem(word) for word in found if _PLAIN.fullmatch(word)]
        return []

    return complete


# The functions import their modules themselves, because a shell asks for one kind of word at a time.


def _hooks() -> Iterator[str]:
    """Yield the names of the hooks here by the names of their files: nothing is loaded at TAB."""
    from agent_hooks.hooks.finding import HOOKS_DIRECTORY
    from agent_hooks.settings import PROJECT_DIRECTORY, agent_home
    from agent_hooks.trust.place import find_place

    projects = find_place(os.getcwd()).projects
    for home in [agent_home(), *(os.path.join(each, PROJECT_DIRECTORY) for each in projects)]:
        with suppress(OSError), os.scandir(os.path.join(home, HOOKS_DIRECTORY)) as entries:
            for entry in entries:
                name, dot, ending = entry.name.partition(".")
                if name and not name.startswith("_") and (ending == "py" or (not dot and entry.is_dir())):
                    yield name


def _rules() -> Iterable[str]:
    from agent_hooks.guards.table import RULES

    return RULES


def _events() -> Iterable[str]:
    from agent_hooks.dispatch.table import EVENT_NAMES

    return EVENT_NAMES


def _tools() -> Iterable[str]:
    from agent_hooks.host.tools import builtin_tools

    return [tool.name for tool in builtin_tools(cwd=os.getcwd())]


def _checkpoints() -> Iterable[str]:
    import anyio

    from agent_hooks import checkpoints

    return [each.name for each in anyio.run(checkpoints.list, os.getcwd())]


def file_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Let the shell complete the names of files."""
    return [CompletionItem(incomplete, type="file")]


hook_names = _completer(_hooks)
rule_names = _completer(_rules)
event_names = _completer(_events)
tool_names = _completer(_tools)
checkpoint_names = _completer(_checkpoints)
