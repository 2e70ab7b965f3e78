"""Remember git's facts of a repository in the store, so that most checkpoints need not ask git for them again.

The answer holds as long as the files that it comes from are the same: the working tree, its `.git`, and each file of the
configuration.  A configuration that includes other files is not remembered, because a condition may depend on anything.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from msgspec import Struct

from agent_hooks.checkpoints.faults import reason_against
from agent_hooks.checkpoints.json_text import decoded, encoded
from agent_hooks.storage.files import StorageError, read_regular, write_atomically
from agent_hooks.storage.git import KEPT, git_program
from agent_hooks.turn_notes import store_of, working_tree

Signature = tuple[int, ...] | None
"""Device, inode, owner, size and time of a file, which differ after a change; `None` for an absent file."""
_NAME = "facts"
_LONGEST = 1 << 20


class Facts(Struct, frozen=True):
    """Git's facts of a repository.

    `files`: the files that the facts come from; `asked`: the variables, the user and the git that they depend on too.
    """

    top: str
    repository: str
    objects: str
    exclude: str
    object_format: str
    settings: tuple[str, ...]
    hooks: dict[str, str]
    files: dict[str, Signature]
    asked: dict[str, str | None]


def signature(path: str) -> Signature:
    """Return the signature of a file; of a directory, its place and owner count alone."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino, found.st_uid
    return found.st_dev, found.st_ino, found.st_uid, found.st_size, found.st_mtime_ns


def sources(top: str, repository: str, origins: set[str]) -> dict[str, Signature]:
    """Return the files that git's answers come from, those too that could be there; `origins`: those that git named."""
    home = os.path.expanduser("~")
    paths = {
        *(top, os.path.join(top, ".git"), repository),
        *(os.path.join(repository, name) for name in ("objects", "commondir", "config", "config.worktree")),
        *(os.path.join(home, ".gitconfig"), os.path.join(home, ".config", "git", "config")),
        *(os.path.join(os.environ.get("XDG_CONFIG_HOME") or home, "git", "config"), "/etc/gitconfig"),
        *(os.path.join(top, origin) for origin in origins),
    }
    return {path: signature(path) for path in paths}


def circumstances(top: str) -> dict[str, str | None]:
    """Return the variables of the environment, the user and the git program, on which git's answers depend too."""
    names = (*KEPT, "HOME", "XDG_CONFIG_HOME")
    return {**{name: os.environ.get(name) for name in names}, "user": str(os.geteuid()), "git": git_program(top)}


def remember(store: str, facts: Facts) -> None:
    """Write the facts of a repository into its store; without them, git is asked again."""
    path = os.path.join(store, _NAME)
    data = encoded(facts)
    with suppress(OSError, StorageError):
        if not os.path.exists(path) or read_regular(path, path, _LONGEST) != data:
            write_atomically(path, data, secret=True)


def remembered(where: str) -> Facts | None:
    """Return the facts about the working tree around a directory, `None` if they are unknown or may have changed."""
    top = working_tree(where)
    if top is None or "GIT_CEILING_DIRECTORIES" in os.environ:
        return None
    facts = former(store_of(top))
    if facts is None:
        return None
    try:
        inside = os.path.relpath(os.path.realpath(where), facts.top).split(os.sep)[0]
        same_disk = os.stat(where).st_dev == os.stat(facts.top).st_dev
    except (OSError, ValueError):
        return None
    if facts.top != os.path.realpath(top) or inside in (".git", os.pardir) or not same_disk:
        return None
    if not os.path.isfile(os.path.join(facts.repository, "HEAD")) or facts.asked != circumstances(facts.top):
        return None
    return facts if all(signature(each) == known for each, known in facts.files.items()) else None


def former(store: str) -> Facts | None:
    """Return the facts in a store, which may have changed since, or `None` if the store has no usable facts."""
    # The facts become options of git, so no other user may have written them.
    if reason_against(store) is not None:
        return None
    path = os.path.join(store, _NAME)
    try:
        if os.lstat(path).st_uid not in (os.geteuid(), 0):
            return None
        return decoded(read_regular(path, path, _LONGEST), Facts)
    except (OSError, StorageError, ValueError, RecursionError):
        return None
