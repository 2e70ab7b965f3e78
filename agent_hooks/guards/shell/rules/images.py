"""Rules about images of disks and of the flash of boards: programs that write one over a device."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import Loss, losses

_WRITES = "overwrites a device"
_FLASHES = "erases or rewrites the memory of a device"
_DEVICE = r"/dev/(?!null\b|zero\b|stdout\b|stderr\b|shm/|fd/|tty|full\b)\S+"
_IMAGERS = "rpi-imager etcher etcher-cli balena balena-etcher usbimager caligula popsicle"
_PROGRAMMERS = "st-flash st-info JLinkExe pyocd nrfjprog probe-rs"
RULES = losses(
    (
        Loss("disk", "bmaptool", rf"\bcopy\b.* {_DEVICE}", _WRITES),
        # The second operand is the target.
        Loss("disk", "ddrescue dd_rescue", rf" [^-\s]\S* {_DEVICE}(?: |$)", _WRITES, r"^\S+ \S*/dev/\S+ [^/\s]\S*$"),
        Loss("disk", "dcfldd dc3dd dd_rhelp", rf"\b(?:of|wipe|hof)={_DEVICE}", _WRITES),
        Loss("disk", _IMAGERS, rf" {_DEVICE}", _WRITES),
        Loss("disk", "qemu-img", rf"(?:\bof=| ){_DEVICE}$", _WRITES, r"^qemu-img (?:info|check|map|compare)\b"),
        Loss(
            "disk",
            "partclone.ext4 partclone.ext3 partclone.ext2 partclone.btrfs partclone.xfs partclone.ntfs partclone.vfat "
            "partclone.fat32 partclone.dd partclone.restore ntfsclone partimage",
            rf"(?:-o|-O|--output|--overwrite)[= ]{_DEVICE}|^partimage (?:-\S+ )*restore\b",
            _WRITES,
        ),
        Loss("disk", "fsarchiver", rf"\brest(?:fs|dir)\b.*\bdest={_DEVICE}", _WRITES),
        Loss("disk", "e2image xfs_copy", rf" \S+ {_DEVICE}$", _WRITES),
        Loss("disk", "asr", r"\brestore\b.*--(?:erase|target)", _WRITES),
        Loss("disk", "sg_format", rf"--format\b.*{_DEVICE}|-\w*F\w* .*{_DEVICE}", _WRITES),
        Loss("disk", "cdrecord wodim xorriso", r"\bblank=\S|-blank \S", _WRITES),
        Loss(
            "machine-state",
            "fastboot",
            (
                r"^fastboot (?:-s \S+ |-S \S+ |--slot[= ]\S+ |--\S+ )*(?:flash\w*|erase|format\S*|update|wipe-super|oem|"
                r"set_active|delete-logical-partition|resize-logical-partition|-w)\b"
            ),
            _FLASHES,
        ),
        Loss("machine-state", "heimdall odin4", r"^heimdall flash\b|^odin4 .*-\w", _FLASHES),
        Loss(
            "machine-state",
            "adb",
            (
                r"\bsideload\b|\bshell (?:\S+ )*(?:wipe|recovery --wipe_data)\b|"
                r"\benable-verity\b|\bdisable-verity\b"
            ),
            _FLASHES,
        ),
        Loss(
            "machine-state",
            "esptool esptool.py espefuse espefuse.py",
            r"\berase[_-](?:flash|region)\b|^espefuse\S* .*\bburn",
            _FLASHES,
        ),
        Loss("machine-state", _PROGRAMMERS, r"\berase\b|--eraseall|--recover\b", _FLASHES),
        Loss("machine-state", "mtd", r"^mtd (?:-\S+ )*(?:erase|write|unlock)\b", _FLASHES),
        Loss(
            "machine-state",
            "flash_erase flash_eraseall flashcp nandwrite ubiformat ubirmvol ubiupdatevol sf fw_setenv",
            r"^(?:flash_erase\w*|flashcp|nandwrite|ubi\w+) \S|^fw_setenv \S+",
            _FLASHES,
        ),
        Loss("machine-state", "uuu imx_usb", r"\b-?b \S*(?:emmc|sd|nand|spi|qspi)\w*", _FLASHES),
        Loss("disk", "dism", r"/apply-image|/cleanup-image .*resetbase", _WRITES),
    )
)
"""A board is asked about where its whole memory is lost; `write_flash` of a new build is everyday work."""
