"""Rules about the machine: disks, containers, network shells, downloads, programs that carry scripts.

Below: command, options.
"""

from __future__ import annotations

import re

from agent_hooks.guards.sensitive import UNKNOWN, raw_device
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import Options
from agent_hooks.guards.shell.outputs import DOWNLOADED, taint_of
from agent_hooks.guards.shell.words import EMPTY, Text, Word, decode_ansi

# ---- disks


def disk(command: Command) -> None:
    """Programs that make, wipe or cut up what is on a device."""
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
    """`zpool destroy`, `diskutil eraseDisk`, `lvremove` and the like."""
    text = str(command).lower()
    if re.search(
        r"^(zpool|zfs) destroy|^diskutil (erase|reformat|partition|zero|secureerase)|^(lv|vg|pv)remove\b|^mdadm .*--zero",
        text,
    ):
        command.report("disk", "destroys a volume")


def own(command: Command) -> None:
    """What takes the hooks out of another agent, lets it run others, or ends what judges its calls."""
    words = command.argv[1:]
    ends = words[:1] == ["serve"] and "--stop" in words
    if ends or (words[:1] in (["uninstall"], ["install"]) and "--dry-run" not in words):
        command.report("write-guard-settings", "changes what decides about guards and hooks")


def own_process(command: Command) -> None:
    """`kill`, `pkill` and the like, of what judges an agent's calls."""
    if any(re.search("agent[-_.]?hooks", word) for word in command.argv[1:]):
        command.report("write-guard-settings", "ends or stops what decides about calls")


def own_package(command: Command) -> None:
    """`pip uninstall` and the like, of this package."""
    if "uninstall" in command.argv and any(re.match("agent[-_.]hooks", word) for word in command.argv):
        command.report("write-guard-settings", "takes away what decides about calls")


# ---- containers


def docker(command: Command) -> None:
    """`docker`, `podman`: wiping all or many, volumes, and what runs in a container."""
    words = list(command.argv[1:])
    while words and words[0].startswith("-"):
        words = (
            words[2:] if words[0] in ("-H", "--host", "-c", "--context", "--config", "-l", "--log-level") else words[1:]
        )
    if not words:
        return
    if command.name.endswith("-compose"):
        _compose(command, words)
        return
    if words[0] in ("container", "image") and words[1:2] != ["prune"]:
        verb = words[1:2]
        words = [Word("rmi") if words[0] == "image" and verb == ["rm"] else verb[0], *words[2:]] if verb else words
        if command.argv[1] == "image" and words[0] == "ls":
            words[0] = Word("images")
    kind, rest = str(words[0]), words[1:]
    options = Options([command.argv[0], *rest], "f", ("--filter", "--format", "--until"))
    if kind == "system" and rest[:1] == ["prune"]:
        command.report("docker", "removes all unused containers, images and networks")
    elif kind in ("volume", "container", "image"):
        _docker_prune(command, kind, rest, options)
    elif kind == "compose":
        _compose(command, rest)
    elif kind in ("rm", "rmi"):
        if any("docker-list" in word.taint for word in rest) or "docker-list" in command.stdin.taint:
            command.report("docker", "removes all containers or images")
        if options.has("v", "--volumes") and options.has("f", "--force") and any(UNKNOWN in word for word in rest):
            command.report("docker", "removes containers that nobody named, with their volumes")
    elif kind in ("ps", "images", "ls"):
        if not options.has("--filter") and "f" not in options.flags and options.has("q", "--quiet"):
            command.output = Text(None, frozenset({"docker-list"}))
    elif kind in ("exec", "run"):
        _docker_runs(command, kind, rest)
    elif kind == "cp" and rest:
        command.reads(*options.operands[:1])
        command.writes(*options.operands[1:])


def _docker_prune(command: Command, verb: str, rest: list[Word], options: Options) -> None:
    if verb == "volume" and rest[:1] in (["rm"], ["prune"], ["remove"]):
        command.report("docker", "removes volumes, and the data in them")
    elif verb == "volume" and rest[:1] == ["ls"] and options.has("q", "--quiet"):
        command.output = Text(None, frozenset({"docker-list"}))
    elif verb == "image" and rest[:1] == ["prune"] and options.has("a", "--all"):
        command.report("docker", "removes all images that no container uses")
    elif verb == "container":
        command.report("docker", "removes all stopped containers")


def _compose(command: Command, rest: list[Word]) -> None:
    down = next((at for at, word in enumerate(rest) if word in ("down", "rm", "exec", "run")), None)
    if down is None:
        return
    if rest[down] in ("exec", "run"):
        _docker_runs(command, "exec", rest[down + 1 :])
        return
    options = Options(rest[down:], "t", ("--timeout",))
    if options.has("v", "--volumes") or any(word == "--rmi=all" for word in rest) or "all" in options.operands:
        command.report("docker", "removes volumes or images, and the data in them")


_RUN_WITH_VALUE = "veupwhlmcEa"
_RUN_LONG = [
    "--name",
    "--volume",
    "--env",
    "--env-file",
    "--publish",
    "--workdir",
    "--user",
    "--network",
    "--entrypoint",
    "--mount",
    "--platform",
    "--memory",
    "--cpus",
    "--label",
    "--hostname",
    "--add-host",
    "--gpus",
    "--restart",
    "--shm-size",
    "--pull",
    "--index",
]


def _docker_runs(command: Command, verb: str, rest: list[Word]) -> None:
    """Judge what is run in a container; a container of its own is its own, unless it holds a directory of the machine."""
    options = Options([Word(verb), *rest], _RUN_WITH_VALUE, _RUN_LONG, stop_early=True)
    inner = options.operands[1:]
    if verb == "run":
        mounts = [word.partition(":")[0] for word in options.value("v", "--volume")]
        if not any(command.is_root(Word(path)) and path.startswith("/") for path in mounts):
            return
    if inner:
        inside = command.shell.copy()
        inside.cwd = "/"
        command.interpreter.command(inner, inside, EMPTY)


def kubectl(command: Command) -> None:
    """`kubectl exec pod -- command`."""
    words = command.argv
    if "exec" in words and "--" in words:
        inside = command.shell.copy()
        inside.cwd = "/"
        command.interpreter.command(words[words.index(Word("--")) + 1 :], inside, EMPTY)


# ---- network


def netcat(command: Command) -> None:
    """`nc -e sh`: a shell for whoever connects."""
    options = Options(command.argv, "ecpswoqXxG", ("--exec", "--sh-exec", "--lua-exec"))
    if options.value("e", "--exec", "--sh-exec", "--lua-exec") or (options.value("c") and command.name != "nc.openbsd"):
        command.report("shell-on-socket", "hands a program to a network connection")


def socat(command: Command) -> None:
    """`socat TCP:… EXEC:sh`."""
    text = str(command)
    if re.search(r"\b(exec|system|shell):", text, re.IGNORECASE) and re.search(
        r"\b(tcp|udp|openssl|sctp|vsock)[\w-]*:", text, re.IGNORECASE
    ):
        command.report("shell-on-socket", "hands a program to a network connection")


def downloads(command: Command) -> None:
    """`curl`, `wget` and others: what they print was downloaded; what they save as well."""
    name, argv = command.name, command.argv
    if name in ("aws", "gsutil", "gh", "ssh", "az"):
        if name == "ssh" or argv[-1] == "-" or "api" in argv[1:2] or "gist" in argv[1:2]:
            command.output = Text(None, DOWNLOADED)
        return
    if name in ("lynx", "links", "w3m"):  # they print, and their options are words after one dash
        command.output = Text(None, DOWNLOADED)
        return
    if name == "wget":
        options = Options(argv, "OPotTwQUeai", ("--output-document", "--directory-prefix", "--header", "--post-data"))
        files = options.value("O", "--output-document")
        if any(word == "-" for word in files):
            command.output = Text(None, DOWNLOADED)
            return
        files = files or [Word(url.rstrip("/").rpartition("/")[2]) for url in options.operands]
    else:
        options = Options(
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


# ---- programs that carry scripts


def xargs(command: Command) -> None:
    """`xargs`: what comes in is appended to the command."""
    options = Options(
        command.argv,
        "aEIiLlnPsd",
        ("--arg-file", "--replace", "--max-args", "--max-procs", "--delimiter"),
        stop_early=True,
    )
    replaced = next(iter(options.value("I", "--replace")), "{}" if options.has("i", "I") else None)
    text = command.stdin.text
    if options.has("a", "--arg-file"):
        text = None
    coming = [Word(UNKNOWN)] if text is None else [Word(word) for word in _items(text, options, bool(replaced))[:64]]
    for word in coming:
        word.taint = command.stdin.taint
        word.unsure = text is None
    carried = options.operands or [Word("echo")]
    if replaced:
        for each in coming[:16] or [Word(UNKNOWN)]:
            command.runs([_replace(word, replaced, each) for word in carried])
    else:
        command.runs([*carried, *coming])


def _items(text: str, options: Options, lines: bool) -> list[str]:
    """Return what `xargs` makes one argument each: words, lines where it puts them into the command, or as it is told."""
    ends = "\0" if options.has("0", "--null") else "\n" if lines else None
    for told in options.value("d", "--delimiter"):
        ends = decode_ansi(told) or None
    return [item for item in (each.rstrip("\n") for each in text.split(ends)) if item]


def _replace(word: Word, what: str, by: Word) -> Word:
    if what not in word:
        return word
    replaced = Word(word.replace(what, by))
    replaced.taint, replaced.unsure = word.taint | by.taint, by.unsure
    return replaced


def parallel(command: Command) -> None:
    """`parallel cmd ::: args`; `entr cmd`; `fd … -x cmd`."""
    words = command.argv[1:]
    if command.name in ("fd", "fdfind"):
        at = next((at for at, word in enumerate(words) if word in ("-x", "-X", "--exec", "--exec-batch")), None)
        if at is not None:
            command.runs([*(_replace(word, "{}", Word(UNKNOWN)) for word in words[at + 1 :]), Word(UNKNOWN)])
        return
    options = Options(command.argv, "jINSad", ("--jobs", "--arg-file"), stop_early=True)
    stops = [at for at, word in enumerate(options.operands) if word.startswith(":::")]
    carried = options.operands[: stops[0]] if stops else options.operands
    given = options.operands[stops[0] + 1 :] if stops else [Word(UNKNOWN)]
    if carried and not any("{" in word for word in carried):
        command.shell_code(Word(" ".join(carried)))
    for each in given[:16]:
        command.shell_code(Word(" ".join([*(_replace(word, "{}", each) for word in carried), each])))


def script_option(letters: str, *long: str) -> Rule:
    """Return a rule for programs that run the text of an option, as `su -c`, `script -c`, `flock -c` do."""

    def rule(command: Command) -> None:
        for text in Options(command.argv, letters + "sgGl", long).value(*letters, *long):
            command.shell_code(text)

    return rule


def script_words(command: Command) -> None:
    """`watch`, `hyperfine`, `tmux new`, `screen`, `entr`: the words are a script."""
    if command.name in ("tmux", "screen"):
        for word in command.argv[2:]:
            if " " in word:
                command.shell_code(word)
        at = 2 if command.name == "tmux" else 1
        rest = Options(command.argv[at - 1 :], "cnstxyFeS", stop_early=True).operands
        if rest:
            command.runs(rest)
        return
    options = Options(
        command.argv,
        "nwmrLpSNd",
        ("--interval", "--warmup", "--runs", "--prepare"),
        stop_early=command.name != "hyperfine",
    )
    if command.name == "hyperfine":
        for word in [*options.operands, *options.value("--prepare", "p")]:
            command.shell_code(word)
    elif options.operands:
        command.shell_code(Word(" ".join(options.operands)))


def ssh(command: Command) -> None:
    """`ssh host command`: the same, elsewhere."""
    options = Options(command.argv, "bcDEeFIiJLlmOopQRSWw", stop_early=True)
    for value in options.value("o"):
        if value.lower().startswith(("proxycommand=", "localcommand=")):
            command.shell_code(Word(value.partition("=")[2]))
    elsewhere = command.shell.copy()
    elsewhere.cwd = UNKNOWN
    if len(options.operands) > 1:
        text = Word(" ".join(options.operands[1:]))
        text.taint = taint_of(options.operands[1:])
        command.interpreter.shell_code(text, elsewhere, "ssh", command.stdin)
    else:
        command.interpreter.shell_code(command.stdin, elsewhere, "ssh")


def stdin_script(command: Command) -> None:
    """`at`, `batch`, `crontab -`: what comes in is run later."""
    if command.name == "crontab":
        text = command.stdin.text
        if text is not None and command.argv[1:] in ([], ["-"]):
            for line in text.splitlines():
                fields = re.match(r"\s*(@\w+|(\S+\s+){5})(.*)", line)
                if fields:
                    command.shell_code(Word(fields[3]))
        return
    command.shell_code(command.stdin)


def make(command: Command) -> None:
    """`make -f -`: a recipe that comes in is a script."""
    if "-" in Options(command.argv, "fCjIo").value("f") and command.stdin.text is not None:
        for line in command.stdin.text.splitlines():
            recipe = (
                line.partition(";")[2]
                if ";" in line and not line.startswith("\t")
                else line
                if line.startswith("\t")
                else ""
            )
            if recipe.strip():
                command.shell_code(Word(recipe.strip().lstrip("@-+")))
    for word in command.argv[1:]:
        if word.startswith("--eval="):
            command.shell_code(Word(word.partition(";")[2]))


def tar(command: Command) -> None:
    """`tar --checkpoint-action=exec=…` and its relatives."""
    for at, word in enumerate(command.argv):
        for start in (
            "--checkpoint-action=exec=",
            "--to-command=",
            "--use-compress-program=",
            "--info-script=",
            "--new-volume-script=",
        ):
            if word.startswith(start):
                command.shell_code(Word(word[len(start) :]))
        if word in ("-I", "-F") and at + 1 < len(command.argv):
            command.shell_code(command.argv[at + 1])


def pager(command: Command) -> None:
    """`vim -c ':!cmd'`: an editor runs it."""
    for at, word in enumerate(command.argv[1:], 1):
        text = word[1:] if word.startswith("+") else word if command.argv[at - 1] in ("-c", "--cmd", "-S") else ""
        if match := re.search(r"!(.*)|system\(['\"](.*)['\"]\)", text):
            command.shell_code(Word(match[1] or match[2] or ""))


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
    **rules_of("agent-hooks", own),
    **rules_of("pip pip3 pipx uv", own_package),
    **rules_of("kill pkill killall", own_process),
    **rules_of("zpool zfs diskutil lvremove vgremove pvremove mdadm", volumes),
    **rules_of("docker podman nerdctl docker-compose podman-compose", docker),
    **rules_of("kubectl k oc", kubectl),
    **rules_of("nc ncat netcat nc.traditional nc.openbsd", netcat),
    "socat": (socat,),
    **rules_of(
        "curl wget fetch lynx links w3m http https xh aria2c ftp curlie get lwp-request aws gsutil gh az dig "
        "iwr irm invoke-webrequest tftp",
        downloads,
    ),
    "xargs": (xargs,),
    "gxargs": (xargs,),
    **rules_of("parallel fd fdfind", parallel),
    **rules_of("su runuser script sg newgrp expect", script_option("c", "--command")),
    **rules_of("watch hyperfine tmux screen entr", script_words),
    "ssh": (ssh, downloads),
    **rules_of("at batch crontab", stdin_script),
    **rules_of("make gmake", make),
    **rules_of("tar bsdtar", tar),
    **rules_of("vim vi nvim view ex less emacs", pager),
}
CARRIERS: dict[str, Rule] = {
    "flock": script_option("c", "--command"),
    **dict.fromkeys(("npx", "npm", "pnpm"), script_option("c", "--call", "--shell-mode")),
}
