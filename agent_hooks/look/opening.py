"""The file that leads the browser to the page: only its owner can read it, and it is there for a minute at most.

The start token is in this file, and in no argument of a process, because every user of the machine can read those.  It
stands behind `#` in the address, a part that a browser sends to no server.
"""

from __future__ import annotations

import html
import os
import secrets
from contextlib import suppress

from agent_hooks.storage.files import refusing

_PAGE = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>agent-hooks look</title>
<p><a href="{url}" rel="noreferrer">Go on to the page</a></p>
"""


class StartFile:
    """The redirect file of one start.

    `directory`: where it is written, made with access for its owner only; `url`: the address with the start token.
    """

    def __init__(self, directory: str, url: str) -> None:
        self.path = os.path.join(directory, f"start-{secrets.token_hex(8)}.html")
        with refusing("write", self.path):
            os.makedirs(directory, 0o700, exist_ok=True)
            # Only a new file has the rights that are asked for, and no link leads elsewhere.
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "w") as file:
                file.write(_PAGE.format(url=html.escape(url, quote=True)))

    def remove(self) -> None:
        """Remove the file; it may be gone already."""
        with suppress(OSError):
            os.unlink(self.path)
