"""Rules about backups and snapshots: the copies from which everything else could be restored."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "removes backups or snapshots, from which nothing can be restored any more"
RULES = losses(
    (
        Loss(
            "backup",
            "borg borgmatic attic",
            r"^\S+ (?:-\S+ )*(?:delete|prune|recreate|repo-delete|key (?:remove|change-\w+)|config .*append_only 0)\b",
            _WHY,
            r" -\w*n\w*\b|\blist\b",
        ),
        Loss(
            "backup",
            "restic rustic",
            r"\b(?:forget|prune|key remove|rewrite\b.*--forget|repair (?:snapshots|index)\b.*--forget)\b",
            _WHY,
            r" -n\b",
        ),
        Loss(
            "backup",
            "rclone",
            (
                r"^rclone (?:-\S+ )*(?:delete|deletefile|purge|rmdirs?|cleanup|dedupe|config (?:delete|dump|show))\b|"
                r"^rclone (?:-\S+ )*(?:sync|bisync|move|moveto)\b.* \S*\w{2,}:\S*(?: -\S+)*$|"
                r"^rclone (?:-\S+ )*(?:move|moveto)\b"
            ),
            _WHY,
            r" -\w*n\w*(?= |$)|--interactive\b",
        ),
        Loss("backup", "duplicity duply", r"\b(?:remove-\S+|cleanup|purge\S*)\b", _WHY),
        Loss(
            "backup",
            (
                "duplicacy kopia velero tarsnap bup rdiff-backup rsnapshot urbackupclientctl ark k8up stash snapper "
                "timeshift tmutil bareos bconsole proxmox-backup-client obnam hb"
            ),
            (
                r"\b(?:delete\w*|forget|prune|purge|expire|nuke|disconnect|remove|rm|disable|gc|remove-older-than|"
                r"remove increments|--remove-older-than|--nuke|--delete|--delete-all|--fsck-prune)\b|^tarsnap\b.* -d\b"
            ),
            _WHY,
            r"\b(?:list|get|describe)\b|--list",
        ),
        Loss(
            "backup",
            "pgbackrest barman wal-g wal-e pg_probackup mysqlbackup xtrabackup pghoard mongodb-backup",
            r"\b(?:stanza-delete|delete|expire|delete-backup|del|repo-rm|remove)\b",
            _WHY,
        ),
        Loss(
            "backup",
            "zfs zpool btrfs lvremove stratis bcachefs",
            (
                r"^zfs (?:-\S+ )*(?:destroy|rollback|receive .*-F)|^zpool (?:destroy|labelclear|remove|create .*-f)|"
                r"^btrfs (?:subvolume|su\w*) (?:delete|del)\b|^btrfs (?:device|dev) (?:delete|remove)|^btrfs balance|"
                r"\b(?:destroy|subvolume delete)\b"
            ),
            _WHY,
            r"^z\w+ \S+ -\w*n",
        ),
        Loss(
            "backup",
            "aws",
            (
                r"\bbackup (?:delete|stop|disassociate)-|\bdelete-(?:db-)?(?:cluster-)?snapshots?\b|"
                r"\bdelete-recovery-point|\bdelete-backup"
            ),
            _WHY,
        ),
        Loss("backup", "vssadmin wbadmin", r"\bdelete\b|\bresize shadowstorage\b", _WHY),
    )
)
