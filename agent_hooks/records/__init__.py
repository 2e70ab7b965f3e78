"""Records: every decision is written down, one line of JSON each, in files below the agent home.

    runner = HookRunner(hooks, cwd=cwd, records=Records())

`lines` has the kinds of lines, `reading` reads them, `joining` joins those of a call, and `verifying` compares chains and
heads.  `recorder` takes the calls and events of a runner, `trail` and `steps` the steps of their handlers, `sink` and
`writer` write the lines, and `index` and `pruning` keep the files.
`otlp` makes spans and logs of the lines, and `exporting` and `live_export` send them.
"""

from __future__ import annotations

from agent_hooks.records.options import TrustFacts
from agent_hooks.records.recorder import Records
from agent_hooks.settings import OtlpSettings

__all__ = ["OtlpSettings", "Records", "TrustFacts"]
