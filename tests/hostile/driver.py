"""Run many command lines of `agent-hooks`, each in a process of its own that has imported the command line already.

An argument names the directory of `forking.py`, whose `warm` imports the rest too; without it, each process does.

stdin is JSON: lists of arguments with their stdin.  stdout is JSON: for each, its exit code and its output.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

from agent_hooks.__main__ import main
from agent_hooks.cli.main import cli  # noqa: F401  # every command needs it


def run(args: list[str], given: str) -> dict[str, object]:
    """Run one command line to its end."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout:
        stdin.write(given.encode())
        stdin.seek(0)
        if not (child := os.fork()):
            os.dup2(stdin.fileno(), 0)
            os.dup2(stdout.fileno(), 1)
            os.dup2(stdout.fileno(), 2)
            sys.stdin = open(0, closefd=False)  # noqa: SIM115  # ends with the process
            sys.argv = ["agent-hooks", *args]
            main()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stdout.seek(0)
        return {"code": code, "output": stdout.read().decode(errors="replace")}


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.path.insert(0, sys.argv[1])
        import forking

        forking.warm()
        del sys.path[0]
    print(json.dumps([run(*line) for line in json.load(sys.stdin)]))
