"""Judges inline code of any language other than the shell's; several rules find such code."""

from __future__ import annotations

from agent_hooks.guards.shell.code_losses import judge_code
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.language_effects import record_code
from agent_hooks.guards.shell.languages import judge_calls
from agent_hooks.guards.shell.python import judge_python
from agent_hooks.guards.shell.rules.outside import on_test_data
from agent_hooks.guards.shell.service_code import judge_services
from agent_hooks.guards.shell.words import Word


def inline(command: Command, name: str, text: Word) -> None:
    """Judge code in a language other than the shell's."""
    if command.interpreter.code_taint(text.taint, name):
        return
    if command.interpreter.judging:
        tests = on_test_data(command)
        judge_services(command, text, on_test_data=tests)
        judge_code(command, name, text, on_test_data=tests)
    if name in ("python", "pypy"):
        judge_python(command, text)
    else:
        if not command.interpreter.judging:
            record_code(command, name, text)
            command.recorded = True
        judge_calls(command, name, text)
