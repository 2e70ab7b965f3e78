"""`python -m checks.pictures`: make the screenshots of docs/look.md and README, with chromium.

The code is in `tests/look/pictures`, because it uses the helpers of the tests. `--help` shows the options.
"""

from __future__ import annotations

import sys

from checks.environments import in_tests

if __name__ == "__main__":
    sys.exit(in_tests("look.pictures", sys.argv[1:]))
