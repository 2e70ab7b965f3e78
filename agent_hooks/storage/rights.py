"""Check that only this user and root can change a file or directory.

A hook file that another user can change would run that user's program.
"""

from __future__ import annotations

import os
import shlex
import stat

from agent_hooks.errors import os_reason

_ROOT = 0


def check_owner(path: str) -> str | None:
    """Return the reason why other users can change `path`, with the command that mends it, or `None`.

    There is a reason if the path belongs to another user than this one or root, if everybody may write to it, or if a
    group with other members may.  A symlink counts as its target.  A path that does not exist has no reason against it.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as exc:
        return f"{path} cannot be examined: {os_reason(exc)}"
    quoted = shlex.quote(path)
    if status.st_uid not in (os.geteuid(), _ROOT):
        return belongs_to(path, status.st_uid)
    if status.st_mode & stat.S_IWOTH:
        return f"every user can write to {path}; to mend it: chmod go-w {quoted}"
    if status.st_mode & stat.S_IWGRP and (members := _others_in(status.st_gid)):
        return f"{members} can write to {path}; to mend it: chmod g-w {quoted}"
    return None


def belongs_to(path: str, owner: int) -> str:
    """Return the text for a path of another user, the one with the number `owner`, with the command that mends it."""
    mend = f"sudo chown -R {_user_name(os.geteuid())} {shlex.quote(path)}"
    return f"{path} belongs to {_user_name(owner)}; if it is yours: {mend}"


def _others_in(group: int) -> str:
    """Return in words the members of a group beside this user and root; empty if there are none."""
    # Imported here, because few directories are writable for a group.
    import grp
    import pwd

    try:
        found = grp.getgrgid(group)
    except KeyError:
        return f"the unknown group {group}"
    known = {user.pw_name: user.pw_uid for user in pwd.getpwall()}
    members = {*found.gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == group)}
    others = sorted(name for name in members if known.get(name, -1) not in (os.geteuid(), _ROOT))
    shown = ", ".join(others[:3]) + ", …" * (len(others) > 3)
    return f"the group {found.gr_name} ({shown})" if others else ""


def _user_name(uid: int) -> str:
    # Imported here, as above.
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
