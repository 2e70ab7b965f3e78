"""`python -m checks.page [ARGUMENT…]`: check the page of `look` with TypeScript, then test it in Debian's chromium.

TypeScript reads the JSDoc types of the page's modules. Arguments go to pytest: `-m 'browser and not slow'` is
the short group.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from checks.environments import ROOT, node, pytest

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Check the types, then run the tests; return the first exit code that is not 0."""
    packages = node("page", files=[HERE / "package.json", HERE / "package-lock.json"])
    compiler = packages / "node_modules/typescript/bin/tsc"
    done = subprocess.run(["node", str(compiler), "-p", str(HERE / "tsconfig.json")], cwd=ROOT)
    return done.returncode or pytest("-m", "browser", "tests/look", *arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
