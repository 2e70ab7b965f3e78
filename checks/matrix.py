"""`python -m checks.matrix`: run every case in every real agent, and write docs/agents.md.

The code is in `tests/clients/matrix`, because it uses the helpers of the tests. `--help` shows the options.
"""

from __future__ import annotations

import sys

from checks.environments import in_tests

if __name__ == "__main__":
    sys.exit(in_tests("clients.matrix", sys.argv[1:]))
