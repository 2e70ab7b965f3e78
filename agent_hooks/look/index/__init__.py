"""The index: an sqlite file of all calls in record files and transcripts, for the questions of the page.

    index = Index(Path(agent_home()))
    index.refresh()

1. `store` opens the file.  It can be deleted at any time, because all of it comes from record files and transcripts.
2. `records` and `sessions` read what was appended to files since the last time, and `names` and `columns` hold the parts
   of the index that every question needs, in memory.
3. Everything in the index is redacted.  Record files are redacted when they are written, so their texts go in as they
   are; those of transcripts pass the redactor first.
"""

from __future__ import annotations

from agent_hooks.look.index.columns import Columns
from agent_hooks.look.index.index import Changes, Index

__all__ = ["Changes", "Columns", "Index"]
