"""`python -m checks.agents [NAME…] [-- ARGUMENT…]`: install real agents from npm, and run our hooks in them.

The lock files in `tests/clients/locks` have the versions. With names, these agents run the cases of the matrix. Without a
name, all agents run: every case in the fast ones, six cases in each other one, and the tests of single agents. Arguments
after `--` go to pytest.
"""

from __future__ import annotations

import sys

from checks.environments import TESTS, in_tests, pytest


def main(arguments: list[str]) -> int:
    """Install the agents, then run the tests; return the first exit code that is not 0."""
    names, options = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        names, options = arguments[:at], arguments[at + 1 :]
    installed = in_tests("clients.installing", names)
    if installed:
        return installed
    tests = TESTS / "clients"
    group = ("-n", "2", "--dist", "loadgroup", "-m", "client and not slow")
    if names:
        return pytest(*group, str(tests / "test_matrix.py"), *options, variables={"MATRIX_ONLY": " ".join(names)})
    return pytest(*group, str(tests), *options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
