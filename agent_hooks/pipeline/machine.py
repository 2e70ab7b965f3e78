"""The machine as guards may ask about it: which files exist, and which files an archive or a patch would write."""

from __future__ import annotations

import os

from agent_hooks.effects import LocalMachine
from agent_hooks.storage.real_path import real_path, spelled_for_disk


class RealMachine(LocalMachine):
    """Answers by looking at the disk, and touches no file system that may not answer; see `Machine`.

    `cwd`, `home`: absolute directories, which answer.  Where there is no list of mounts, all links are followed, because
    a link that is not followed would hide a secret.  Raises `ValueError` when `cwd` cannot be a directory.
    """

    def __init__(self, cwd: str, home: str) -> None:
        if "\0" in cwd:
            raise ValueError(f"no directory has a null character in its name: {cwd!r}")
        super().__init__(cwd, cwd, home)

    def exists(self, path: str) -> bool:
        """Return whether a path is a file or a directory that is not empty; one that may not answer counts as one."""
        if not self._touchable(path):
            return True
        try:
            with os.scandir(path) as found:
                return next(found, None) is not None
        except (OSError, ValueError):
            return os.path.lexists(path) and not os.path.isdir(path)

    def real(self, path: str) -> str:
        """Return a path with its links followed, as far as no slow file system is touched."""
        return real_path(path) if self.without_list else super().real(spelled_for_disk(path))

    def members(self, archive: str) -> tuple[str, ...] | None:
        """Return the names of the files that an archive holds, `None` when they cannot be listed."""
        if not self._touchable(archive):
            return None
        # Imported here, because few commands unpack anything.
        from agent_hooks.pipeline.archives import list_archive

        return list_archive(archive)

    def patched(self, patch: str) -> tuple[str, ...] | None:
        """Return the names of the files that a patch changes, `None` when it cannot be read."""
        if not self._touchable(patch):
            return None
        from agent_hooks.pipeline.archives import list_patch  # here, as above

        return list_patch(patch)

    def _touchable(self, path: str) -> bool:
        return self.without_list or self.answers(self.real(path))
