"""Rules about version control other than git: work that is thrown away, and history that is rewritten or removed."""

from __future__ import annotations

from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.rules.outside import Loss, losses
from agent_hooks.guards.shell.words import Word

_THROWS = "throws work away"
_PUBLISHED = "overwrites or deletes published history"


def each_repository(command: Command) -> None:
    """`repo forall -c SCRIPT` runs a script in each repository."""
    words = command.argv
    if words[1:2] == ["forall"]:
        at = next((at for at, word in enumerate(words) if word in ("-c", "--command")), len(words))
        command.shell_code(Word(" ".join(words[at + 1 :])))


_LOSSES = losses(
    (
        Loss(
            "git-worktree",
            "hg",
            (
                r"^hg (?:-\S+ )*(?:(?:update|up|checkout|co)\b.*(?: -C\b|--clean)|revert\b.*(?:-a\b|--all)|purge|"
                r"clean|strip|rollback|debugstrip)\b"
            ),
            _THROWS,
            r"--print| -p\b| -n\b",
        ),
        Loss("git-remote", "hg sl", r"^\S+ push\b.*(?: -f\b|--force)", _PUBLISHED),
        Loss(
            "git-worktree",
            "svn",
            r"^svn (?:-\S+ )*(?:revert\b.* -\w*R|revert\b.*--recursive|cleanup\b.*--remove)",
            _THROWS,
        ),
        Loss("git-remote", "svn", r"^svn (?:-\S+ )*(?:delete|del|rm|remove|mv|move)\b.* \w+://", _PUBLISHED),
        Loss("git-remote", "svnadmin svndumpfilter", r"^svnadmin (?:setrevprop|rmtxns|load|recover)\b", _PUBLISHED),
        Loss(
            "git-history",
            "jj",
            (
                r"^jj (?:-\S+ )*(?:abandon|op(?:eration)? (?:restore|abandon|undo)|restore(?! \S)|"
                r"git push .*--delete(?!d)|util gc)\b"
            ),
            _THROWS,
        ),
        Loss("git-remote", "jj", r"^jj (?:-\S+ )*git push .*--deleted\b", _PUBLISHED),
        Loss(
            "git-worktree",
            "p4",
            r"^p4 (?:-\S+ \S+ )*(?:revert\b.*(?:\.\.\.|-a\b)|clean\b|sync -f\b)",
            _THROWS,
            r" -n\b",
        ),
        Loss("git-remote", "p4", r"^p4 (?:-\S+ \S+ )*(?:obliterate\b.* -y\b|(?:client|depot|branch) -d)", _PUBLISHED),
        Loss("git-worktree", "bzr brz", r"^\S+ (?:revert|clean-tree\b.*--force)\b(?! \S+\.\w+)", _THROWS, r"--dry-run"),
        Loss("git-worktree", "fossil", r"^fossil (?:revert(?! \S)|clean\b.*(?:-f|--force)|undo\b)", _THROWS),
        Loss("git-remote", "fossil", r"^fossil (?:purge|shun|scrub)\b", _PUBLISHED),
        Loss("git-worktree", "repo", r"^repo sync\b.*(?:--force-sync|--force-remove-dirty|--force-checkout)", _THROWS),
        Loss("ci", "hub", r"^hub (?:delete|release delete)\b", "deletes something that others use"),
        Loss(
            "git-history",
            "bfg git-filter-repo git-lfs",
            r"^bfg \S|^git-filter-repo \S|\bprune\b.*--force",
            "rewrites the whole history",
        ),
    )
)
RULES: dict[str, tuple[Rule, ...]] = {**_LOSSES, "repo": (each_repository, *_LOSSES["repo"])}
