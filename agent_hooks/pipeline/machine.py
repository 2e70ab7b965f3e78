"""The machine as guards may ask about it: which files exist, and which files an archive or a patch would write."""

from __future__ import annotations

import os

from agent_hooks.guards.base import Machine


class RealMachine(Machine):
    """Answers by looking at the disk; see `Machine`."""

    def exists(self, path: str) -> bool:
        """Return whether a path is a file or a directory that is not empty."""
        try:
            with os.scandir(path) as found:
                return next(found, None) is not None
        except (OSError, ValueError):
            return os.path.lexists(path) and not os.path.isdir(path)

    def real(self, path: str) -> str:
        """Return a path with all links followed."""
        return os.path.realpath(path)

    def members(self, archive: str) -> tuple[str, ...] | None:
        """Return the names of the files that an archive holds, `None` when they cannot be listed."""
        # Imported here, because few commands unpack anything.
        from agent_hooks.pipeline.archives import list_archive

        return list_archive(archive)

    def patched(self, patch: str) -> tuple[str, ...] | None:
        """Return the names of the files that a patch changes, `None` when it cannot be read."""
        from agent_hooks.pipeline.archives import list_patch  # here, as above

        return list_patch(patch)


MACHINE = RealMachine()
