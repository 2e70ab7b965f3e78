"""Rules about the machine: disks, network shells, downloads."""

from __future__ import annotations

import re

from agent_hooks.guards.sensitive import raw_device
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.outputs import DOWNLOADED, taint_of
from agent_hooks.guards.shell.words import Text, Word


def disk(command: Command) -> None:
    """Programs that format, wipe or partition a device."""
    words = command.argv[1:]
    devices = [word for word in words if raw_device(command.path(word))]
    if not devices or _only_shows(command.name, words):
        return
    command.report("disk", "overwrites a device")


def _only_shows(name: str, words: list[Word]) -> bool:
    flags = [word for word in words if word.startswith("-")]
    if name.startswith("mkfs") or name in ("wipefs", "mke2fs", "sfdisk"):
        shows = any(flag in ("-n", "--no-act", "-l", "--list", "-d", "--dump", "-V") for flag in flags)
        return shows or (name == "wipefs" and not flags)
    if name in ("fdisk", "gdisk", "sgdisk", "cfdisk"):
        return any(flag in ("-l", "--list", "-p", "--print", "-x") for flag in flags)
    if name == "parted":
        return "print" in words or "-l" in words
    if name == "badblocks":
        return "-w" not in words
    if name == "hdparm":
        return not any("erase" in flag for flag in flags)
    if name in ("cryptsetup", "nvme"):
        return not any(word in ("luksFormat", "erase", "format", "sanitize", "luksErase") for word in words)
    return False


def volumes(command: Command) -> None:
    """`zpool destroy`, `diskutil eraseDisk`, `lvremove` and others destroy a volume."""
    text = str(command).lower()
    if re.search(
        r"^(zpool|zfs) destroy|^diskutil (erase|reformat|partition|zero|secureerase)|^(lv|vg|pv)remove\b|^mdadm .*--zero",
        text,
    ):
        command.report("disk", "destroys a volume")


def netcat(command: Command) -> None:
    """`nc -e sh` gives a shell to each connection."""
    options = ParsedOptions(command.argv, "ecpswoqXxG", ("--exec", "--sh-exec", "--lua-exec"))
    if options.value("e", "--exec", "--sh-exec", "--lua-exec") or (options.value("c") and command.name != "nc.openbsd"):
        command.report("shell-on-socket", "hands a program to a network connection")


def socat(command: Command) -> None:
    """`socat TCP:… EXEC:sh` gives a shell to a connection."""
    text = str(command)
    if re.search(r"\b(exec|system|shell):", text, re.IGNORECASE) and re.search(
        r"\b(tcp|udp|openssl|sctp|vsock)[\w-]*:", text, re.IGNORECASE
    ):
        command.report("shell-on-socket", "hands a program to a network connection")


# Programs that print content from elsewhere with one of these verbs.
_FETCHERS_BY_VERB = {
    **dict.fromkeys(("gsutil", "rclone", "ipfs", "mc", "s5cmd"), ("cat",)),
    "openssl": ("s_client",),
    "redis-cli": ("get", "hget", "lrange", "--raw"),
    "git": ("archive",),
}


def _prints_fetched(name: str, argv: list[str]) -> bool:
    verbs = _FETCHERS_BY_VERB.get(name, ())
    if name == "git":
        return "archive" in argv[1:3] and any(word.startswith("--remote") for word in argv)
    if name == "socat":
        return any(re.match(r"(?:tcp|ssl|openssl|udp)[\w-]*:(?!listen)", word, re.IGNORECASE) for word in argv[1:])
    return any(word.lower() in verbs for word in argv[1:])


_CLIPBOARDS = ("pbpaste", "wl-paste", "xclip", "xsel", "getclip", "termux-clipboard-get")


def downloads(command: Command) -> None:
    """`curl`, `wget` and others: their output, or the files that they save, were downloaded."""
    name, argv = command.name, command.argv
    if name in _CLIPBOARDS:
        # The clipboard may hold a text of any page.
        if (
            name not in ("xclip", "xsel")
            or any(word.startswith(("-o", "--output")) for word in argv)
            or argv[1:] == ["-b"]
        ):
            command.output = Text(None, DOWNLOADED)
        return
    if name in ("aws", "gh", "ssh", "az") or (name == "gsutil" and "cat" not in argv):
        if name == "ssh" or argv[-1] == "-" or "api" in argv[1:2] or "gist" in argv[1:2]:
            command.output = Text(None, DOWNLOADED)
        return
    if _prints_fetched(name, [str(word) for word in argv]):
        command.output = Text(None, DOWNLOADED)
        return
    if name in _FETCHERS_BY_VERB:
        return
    # These print the page, and their options are words behind one dash.
    if name in ("lynx", "links", "w3m"):
        command.output = Text(None, DOWNLOADED)
        return
    if name in ("wget", "wget2"):
        options = ParsedOptions(
            argv, "OPotTwQUeai", ("--output-document", "--directory-prefix", "--header", "--post-data")
        )
        files = options.value("O", "--output-document")
        if any(word == "-" for word in files):
            command.output = Text(None, DOWNLOADED)
            return
        files = files or [Word(url.rstrip("/").rpartition("/")[2]) for url in options.operands]
    else:
        options = ParsedOptions(
            argv, "oHXdFuAbeTKmwx", ("--output", "--header", "--request", "--data", "--user", "--user-agent")
        )
        files = options.value("o", "--output")
        if options.has("O", "--remote-name"):
            files = [*files, *(Word(url.rstrip("/").rpartition("/")[2]) for url in options.operands)]
        local = all(re.match(r"file://", url) for url in options.operands) and options.operands
        if not files or any(word in ("-", "/dev/stdout") for word in files):
            command.output = Text(None, frozenset() if local else DOWNLOADED | taint_of(argv))
    for word in files:
        command.shell.files[command.path(word)] = Text(None, frozenset({"saved-download"}))


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of(
        "mkfs mke2fs mkswap wipefs parted fdisk sfdisk cfdisk gdisk sgdisk shred blkdiscard badblocks hdparm "
        "cryptsetup nvme newfs",
        disk,
    ),
    **{
        f"mkfs.{kind}": (disk,)
        for kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "fat", "ntfs", "f2fs", "exfat", "minix", "bfs")
    },
    **rules_of("zpool zfs diskutil lvremove vgremove pvremove mdadm", volumes),
    **rules_of("nc ncat netcat nc.traditional nc.openbsd", netcat),
    "socat": (socat, downloads),
    **rules_of(
        "curl wget fetch lynx links w3m http https xh aria2c ftp curlie get lwp-request aws gsutil gh az dig "
        "pbpaste wl-paste xclip xsel getclip termux-clipboard-get iwr irm invoke-webrequest tftp wget2 rclone "
        "ipfs mc s5cmd openssl redis-cli git",
        downloads,
    ),
    "ssh": (downloads,),
}
