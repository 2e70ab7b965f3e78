"""`python -m checks.oldest [PATH…]`: run tests with the oldest versions of the dependencies that pyproject.toml allows.

Tests that no dependency concerns are left out: they read this repository, start processes, or call git and the file
system. Tests of type checkers, of the newest versions' output and of the models' packages cannot run with these versions.
"""

from __future__ import annotations

import sys

from checks.environments import ROOT, pytest, python

LEFT_OUT = (
    "tests/adapters",
    "tests/chaos",
    "tests/checkpoints",
    "tests/checks",
    "tests/clients",
    "tests/examples",
    "tests/guards/test_effects.py",
    "tests/guards/test_program_table.py",
    "tests/guards/test_self_protection.py",
    "tests/hostile",
    "tests/installs",
    "tests/pipeline/test_patches.py",
    "tests/pipeline/test_unpacking.py",
    "tests/remembering",
    "tests/storage",
    "tests/test_architecture.py",
    "tests/test_benchmarks.py",
    "tests/test_docs.py",
    "tests/test_exports.py",
    "tests/test_security_page.py",
    "tests/test_typing.py",
    "tests/trust",
)
# Of the commands, `run` and `rpc` are tried.
PATTERNS_LEFT_OUT = (
    "tests/adapters",
    "tests/bridges/test_[!b]*.py",
    "tests/cli/test_[ab]*.py",
    "tests/cli/test_cli_[!r]*.py",
    "tests/cli/test_cli_re*.py",
    "tests/host/test_models_*.py",
    "tests/server/test_[!s]*.py",
)
CONSTRAINTS = ROOT / "constraints-oldest.txt"
EXTRAS = (".[http,otel,trio]", "httpx2", "pytest", "pytest-anyio", "pytest-xdist", "hypothesis", "jsonschema", "uv")


def main(arguments: list[str]) -> int:
    """Install the versions, and run the tests."""
    files = [CONSTRAINTS, ROOT / "pyproject.toml"]
    oldest = python("oldest", "--constraint", str(CONSTRAINTS), "--editable", *EXTRAS, files=files)
    left_out = [f"--ignore={each}" for each in LEFT_OUT] + [f"--ignore-glob={each}" for each in PATTERNS_LEFT_OUT]
    return pytest("-n", "auto", "--dist", "loadfile", *left_out, *arguments, python=oldest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
