"""The state of one shell, as far as a command line shows it."""

from __future__ import annotations

from msgspec import Struct

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.script import Node
from agent_hooks.guards.shell.words import EMPTY, Text, Variables, Word


class Shell(Struct, eq=False):
    """The known state of one shell.

    `cwd`: the current directory, `UNKNOWN` when it is not known; `files`: the texts that this command line has written,
    by path; `links`: the targets of the links that it has made to files which control the agent, by path; `stack`: the
    directories of `pushd`; `secrets`: the kind of the file with secrets that it has sourced, empty without one; `traced`:
    it prints each command before it runs it.
    """

    variables: Variables
    cwd: str
    # The assignments of this command line that a program gets: exported ones, and names in capitals, which by custom
    # belong to the environment.
    exports: dict[str, Word] = {}
    functions: dict[str, Node] = {}
    files: dict[str, Text] = {}
    links: dict[str, str] = {}
    stack: list[str] = []
    secrets: str = ""
    traced: bool = False

    def copy(self) -> Shell:
        """Return the state of a new subshell; all shells share the files and links."""
        shell = Shell(self.variables.copy(), self.cwd)
        shell.links, shell.exports = self.links, dict(self.exports)
        shell.secrets, shell.traced = self.secrets, self.traced
        shell.functions, shell.files, shell.stack = dict(self.functions), self.files, list(self.stack)
        return shell

    def set(self, name: str, value: Word) -> None:
        """Assign a variable."""
        self.variables.arrays.pop(name, None)
        if name.isupper() or name in self.exports:
            self.exports[name] = value
        self.variables.values[name] = Text(str(value), value.taint, unsure=value.unsure)

    def export(self, name: str) -> None:
        """Let programs get a variable from now on."""
        found = self.variables.values.get(name, EMPTY)
        value = Word(UNKNOWN if found.text is None else found.text)
        value.unsure = found.unsure
        self.exports[name] = value

    def lose(self, name: str) -> None:
        """Let programs get a value of a variable that is not known."""
        self.exports[name] = Word(UNKNOWN)
