"""`python -m checks.chaos`: break hooks in every way, and see that no forbidden call runs and no result is lost.

The code is in `tests/chaos`, because it uses the helpers of the tests. `--help` shows the options.
"""

from __future__ import annotations

import sys

from checks.environments import in_tests

if __name__ == "__main__":
    sys.exit(in_tests("chaos", sys.argv[1:]))
