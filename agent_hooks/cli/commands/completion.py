"""`agent-hooks completion`: the script that lets TAB complete this command in a shell."""

from __future__ import annotations

import click

from agent_hooks.cli.completing import SHELLS, script
from agent_hooks.cli.streams import echo_data


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script that lets TAB complete this command in bash, zsh or fish.

    bash: add `eval "$(agent-hooks completion bash)"` to ~/.bashrc. zsh: the same with `zsh` to ~/.zshrc, below the line
    with compinit. fish: agent-hooks completion fish > ~/.config/fish/completions/agent-hooks.fish
    """
    echo_data(f"{script(shell)}\n")
