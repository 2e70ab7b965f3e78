"""Rules for links to the files that control the agent; they are applied after all others of a program.

The link itself is judged like any other file.  From then on its name stands for the file behind it.
"""

from __future__ import annotations

import posixpath

from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word


def other_names(command: Command) -> None:
    """`ln` and `cp -s` give a file another name, by which the rest of the command line may change it."""
    options = ParsedOptions(command.argv, "tS", ("--target-directory",))
    if command.name == "cp" and not options.has("s", "l", "--symbolic-link", "--link"):
        return
    sources, names = options.operands[:-1], options.operands[-1:]
    if into := options.value("t", "--target-directory"):
        sources, names = options.operands, into
    elif len(options.operands) == 1:
        sources, names = options.operands, [Word(".")]
    symbolic = options.has("s", "--symbolic", "--symbolic-link")
    for source, name in ((source, name) for source in sources for name in names):
        _other_name(command, source, command.path(name), symbolic=symbolic)


def _other_name(command: Command, source: Word, name: str, *, symbolic: bool) -> None:
    control, links = command.interpreter.control, command.shell.links
    inside = f"{name.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}"
    for link in (name, inside):
        # The target of a symbolic link is relative to the directory of the link.
        target = command.path(source)
        if symbolic and source[:1] not in ("/", "~"):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(link), source))
        directories = command.interpreter.directories
        known = link in (*directories.temp, directories.home, directories.project, "/tmp", command.shell.cwd)  # noqa: S108  # compared only
        if not known and (control.stops_removing(target) or control.stops_reading(target)):
            links[link] = target


RULES: dict[str, tuple[Rule, ...]] = {"ln": (other_names,), "cp": (other_names,)}
