"""Rules about programs that have commands for files of their own: each is followed as the program of the shell.

`cmake -E rm -rf build` is `rm -rf build`, `perl -MExtUtils::Command -e rm_rf build` is `rm -rf build`.
"""

from __future__ import annotations

from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.words import Word

# The program of the shell for each command of `cmake -E`.
_CMAKE: dict[str, tuple[str, ...]] = {
    "rm": ("rm",),
    "remove": ("rm",),
    "remove_directory": ("rm", "-rf"),
    "copy": ("cp", "-r"),
    "copy_directory": ("cp", "-r"),
    "copy_directory_if_different": ("cp", "-r"),
    "copy_if_different": ("cp",),
    "copy_if_newer": ("cp",),
    "rename": ("mv",),
    "cat": ("cat",),
    "touch": ("touch",),
    "touch_nocreate": ("touch",),
    "make_directory": ("mkdir", "-p"),
    "create_symlink": ("ln", "-s"),
    "create_hardlink": ("ln",),
    "env": ("env",),
    "time": ("time",),
    "tar": ("tar",),
    "compare_files": ("cmp",),
}
_PERL: dict[str, tuple[str, ...]] = {
    "rm_rf": ("rm", "-rf"),
    "rm_f": ("rm", "-f"),
    "cat": ("cat",),
    "mv": ("mv",),
    "cp": ("cp",),
    "touch": ("touch",),
    "mkpath": ("mkdir", "-p"),
    "chmod": ("chmod",),
}
_RUBY = ("rm", "cp", "mv", "ln", "mkdir", "rmdir", "install", "chmod", "touch")


def cmake(command: Command) -> None:
    """`cmake -E COMMAND`."""
    words = command.argv[1:]
    if words[:1] != ["-E"] or len(words) < 2:
        return
    verb, rest = words[1], words[2:]
    if verb == "chdir" and len(rest) > 1:
        inside = command.inside(rest[0])
        inside.runs(rest[1:])
    elif verb in _CMAKE:
        command.output = command.runs([*map(Word, _CMAKE[verb]), *rest])


def perl(command: Command) -> None:
    """`perl -MExtUtils::Command -e COMMAND`."""
    words = command.argv[1:]
    if words[:1] == ["-MExtUtils::Command"] and words[1:2] == ["-e"] and words[2] in _PERL:
        command.runs([*map(Word, _PERL[words[2]]), *(word for word in words[3:] if word != "--")])


def ruby(command: Command) -> None:
    """`ruby -run -e COMMAND`."""
    words = command.argv[1:]
    if words[:2] == ["-run", "-e"] and words[2:3] and words[2] in _RUBY:
        command.runs([words[2], *(word for word in words[3:] if word != "--")])


RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("cmake", "cmake3"), (cmake,)),
    "perl": (perl,),
    "ruby": (ruby,),
}
