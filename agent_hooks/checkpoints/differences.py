"""List the files that differ between two trees of a store, by the paths that they have in the working tree.

The `.git` of a repository inside differs if a turn has made or removed it.  It does not differ after a commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from agent_hooks.checkpoints.git import CheckpointError, Worktree, names_in
from agent_hooks.checkpoints.placing import ABSENT, Leaf, hash_of_blob
from agent_hooks.checkpoints.refused import git_directory, real_name

# In a submodule git would run a git of its own, with the submodule's filters.
_DIFF = ("diff-tree", "-r", "--no-renames", "--ignore-submodules=all")
_NO_GIT = ":(exclude,glob)**/.git@agent-hooks/**"
_HEADER = re.compile(r"^(diff |--- |\+\+\+ ).*@agent-hooks.*", re.MULTILINE)


class Difference(NamedTuple):
    """A path that differs between two trees, with the leaf of each."""

    path: str
    now: Leaf
    new: Leaf

    @property
    def is_made(self) -> bool:
        """Whether the first tree lacks the path."""
        return self.now == ABSENT

    @property
    def is_deleted(self) -> bool:
        """Whether the second tree lacks the path."""
        return self.new == ABSENT

    @property
    def kind(self) -> str:
        """The letter that git has for it."""
        if self.is_made or self.is_deleted:
            return "A" if self.is_made else "D"
        return "M" if self.now.mode[:3] == self.new.mode[:3] else "T"


async def differences(worktree: Worktree, pairs: Sequence[tuple[str, str]]) -> list[list[Difference]]:
    """List the differences between the trees in each pair.  Raises `CheckpointError`.

    A `.git` that only the first tree has is listed with all files.  If only the second tree has it, one file is listed.
    """
    if not pairs:
        return []
    heads = [f"{one} {other}\n".encode() for one, other in pairs]
    words = ("--stdin", "-z", "--raw", "--no-abbrev")
    out = (await worktree.git(*_DIFF, *words, stdin=b"".join(heads))).need()
    found: list[list[Difference]] = []
    position = 0
    for at, head in enumerate(heads):
        if not out.startswith(head, position):
            raise CheckpointError(f"git diff-tree answered for other trees than {head.decode().strip()}")
        position += len(head)
        following = heads[at + 1] if at + 1 < len(heads) else None
        raw = []
        while position < len(out) and not (following is not None and out.startswith(following, position)):
            end = out.index(b"\0", position)
            stop = out.index(b"\0", end + 1)
            # A line of each is `:100644 100755 1f09… 4c7e… M`.
            fields = out[position:end].decode().lstrip(":").split(" ")
            path = os.fsdecode(out[end + 1 : stop])
            raw.append(Difference(path, _leaf(fields[0], fields[2]), _leaf(fields[1], fields[3])))
            position = stop + 1
        found.append(_by_real_names(worktree, raw))
    return found


async def patch(worktree: Worktree, one: str, other: str) -> str:
    """Return the differences of two trees as `git diff` prints them, without each `.git`.  Raises `CheckpointError`."""
    done = await worktree.git(*_DIFF, "-p", "--no-ext-diff", "--no-textconv", one, other, "--", ".", _NO_GIT)
    text = done.need().decode(errors="replace")
    return _HEADER.sub(lambda match: match[0].replace("@agent-hooks", ""), text)


async def leaves(worktree: Worktree, tree: str) -> dict[str, Leaf]:
    """Return all files of a tree.  Raises `CheckpointError`."""
    out = (await worktree.git("ls-tree", "-r", "-z", "--full-tree", tree)).need()
    lines = (line.partition("\t") for line in names_in(out))
    return {real_name(path): Leaf(facts.split(" ")[0], facts.split(" ")[2]) for facts, _, path in lines}


def _leaf(mode: str, digest: str) -> Leaf:
    return ABSENT if mode == ABSENT.mode else Leaf(mode, digest)


def _by_real_names(worktree: Worktree, raw: Iterable[Difference]) -> list[Difference]:
    found: dict[str, Difference] = {}
    for each in raw:
        path = real_name(each.path)
        # A path that became a symlink may have had another name in the store.
        one = found.get(path, each)
        found[path] = Difference(path, one.now if each.is_made else each.now, one.new if each.is_deleted else each.new)
    empty = hash_of_blob(worktree.object_format, 0).hexdigest()
    remade = _remade(found)
    return [each for each in found.values() if _counts(worktree, each, found, empty, remade)]


def _remade(found: dict[str, Difference]) -> set[str]:
    """Return each `.git` inside that has lost objects and got none, because it was made again."""
    units: dict[bool, set[str]] = {True: set(), False: set()}
    for each in found.values():
        before, is_object, _ = each.path.partition("/.git/objects/")
        if is_object and (each.is_made or each.is_deleted):
            units[each.is_made].add(f"{before}/.git")
    return units[False] - units[True]


def _counts(
    worktree: Worktree, each: Difference, found: dict[str, Difference], empty: str, remade: Collection[str]
) -> bool:
    parts = each.path.split("/")
    if parts[0] == ".git" or (worktree.ignores_case and parts[0].lower() == ".git"):
        # Nobody has saved this.
        return False
    unit = git_directory(each.path)
    if unit is None:
        return True
    own = found.get(unit)
    if own is not None and empty in (own.now.digest, own.new.digest):
        # The rest of it was not saved.
        return False
    if unit in remade:
        return each.is_deleted
    if own is not None and not own.is_made:
        # The file of a submodule, or a link.
        return own.is_deleted or own is each
    head = found.get(f"{unit}/HEAD")
    if each is own or each is head:
        return each.is_made or each.is_deleted
    return head is not None and head.is_deleted
