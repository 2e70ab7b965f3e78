"""Rules about the running system: kernel, devices, mounts, network, services, accounts, clock, logs, attributes."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN, raw_device
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.rules.outside import Loss, losses
from agent_hooks.guards.shell.words import Word

RULE = "machine-state"
_WHY = "changes the running system: its kernel, devices, services, accounts or clock"
_PERSISTS = "starts a program again and again, also after this session"
_TRACKS = "removes the record of commands"
_DISK = "destroys or rewrites a volume"


def reads_device(command: Command) -> None:
    """`cat /dev/sda`, `strings /dev/mem`, `dd if=/dev/sda`: the content of a whole disk or of the memory."""
    for word in command.argv[1:]:
        value = word.removeprefix("if=")
        path = command.path(Word(value)) if value.startswith("/") else ""
        if re.fullmatch(
            r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mem|kmem|port|input|dm-|mapper/|md).*|/proc/kcore", path
        ):
            command.report("disk", "reads a whole device", word)


def link_loader(command: Command) -> None:
    """`/lib64/ld-linux.so.2 /bin/rm …` runs a program by the loader."""
    rest = [word for word in command.argv[1:] if not word.startswith("--")]
    if rest:
        command.runs(rest)


def schedule(command: Command) -> None:
    """`crontab file` replaces all scheduled jobs, and `crontab -` takes them from stdin."""
    words = command.argv[1:]
    if any(word in ("-l", "-e", "-T", "--help", "-V") for word in words) or not words:
        return
    text = command.stdin.text
    if (
        words == ["-"]
        and text is not None
        and not re.search(r"(?:/tmp|/var/tmp|/dev)/|\b(?:curl|wget|nc|base64|eval)\b", text)
    ):
        return
    command.report("persistence", _PERSISTS)


def carried(command: Command) -> None:
    """`capsh -- -c '…'`, `start-stop-daemon --exec PROGRAM -- …`: programs that run another one."""
    words = command.argv[1:]
    if command.name == "capsh" and "-c" in words:
        command.shell_code(words[words.index(Word("-c")) + 1] if words[-1] != "-c" else Word(""))
    elif command.name == "start-stop-daemon":
        program = next(
            (words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--exec", "-x", "--startas", "-a")), None
        )
        rest = words[words.index(Word("--")) + 1 :] if "--" in words else []
        if program is not None:
            command.runs([program, *rest])


def attributes(command: Command) -> None:
    """`chattr`, `setfacl`, `chcon`, `xattr` on a tree or a file of the system."""
    words = command.argv[1:]
    operands = [word for word in words if not word.startswith(("-", "+", "="))]
    recursive = any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in words)
    locks = command.name == "chattr" and any(re.fullmatch(r"[+-=]\w*[iau]\w*", word) for word in words)
    for word in operands:
        path = command.path(word)
        system = (
            re.match(r"/(?:etc|usr|bin|sbin|lib\w*|boot|var|opt|Applications|System|Library|root)(?:/|$)", path)
            is not None
        )
        own = command.is_root(word) or path.startswith(f"{command.interpreter.directories.home}/.")
        if (
            (recursive and (system or own))
            or (locks and (system or own))
            or (command.name in ("setfattr", "xattr") and system)
        ):
            command.report("chmod-root", "changes attributes of a file or a tree of the system or of a home", word)


def modes(command: Command) -> None:
    """`chmod` and `chown` on a file of the system, also without `-R`."""
    words = [word for word in command.argv[1:] if not word.startswith("--")]
    for word in words:
        if (
            word.startswith("/")
            and re.match(r"/(?:etc|usr|bin|sbin|lib\w*|boot)(?:/|$)", command.path(word))
            and not re.match(r"/usr/local/", command.path(word))
        ):
            command.report("chmod-root", "changes the rights of a file of the system", word)
    project = command.interpreter.directories.project
    globs = [word for word in words[1:] if word.pattern and UNKNOWN not in word]
    found = any(command.is_root(word) and not command.path(word).startswith(project) for word in globs)
    if found and "find" in command.interpreter.programs:
        command.report("chmod-root", "changes the rights of every file of a root")
    if command.name in ("chown", "chgrp") and any(re.fullmatch(r"-\w*R\w*", word) for word in words):
        for word in words:
            if word.startswith(("/", "~")) and command.is_root(word):
                command.report("chmod-root", "hands over a root of the system or a home", word)
    recursive = any(re.fullmatch(r"-\w*R\w*|--recurs\w*", word) for word in command.argv[1:])
    roots = [word for word in words if command.is_root(word)]
    if command.name == "chmod" and recursive and roots and any(map(_TAKES.fullmatch, words)):
        command.report("chmod-root", "takes rights from a root, or gives them to everybody", roots[0])


_TAKES = lazy_pattern(r"0?[0-7]?000|a?-r\w*|[gu]*o[gu]*\+\w*w\w*|a\+\w*w\w*|[augo]*-\w*[rx]\w*")


def device_node(command: Command) -> None:
    """`mknod`, and `mount --bind` over a directory of the system."""
    text = str(command)
    if command.name == "mknod" and re.search(r" [bc] \d", text):
        command.report("disk", "makes a device")
    if command.name == "mount":
        target = command.argv[-1]
        if re.search(r"--bind|--rbind|-o \S*bind|--move", text) and command.is_root(target):
            command.report(RULE, _WHY)
        if re.search(r"-o \S*remount\S*", text) and command.is_root(target) and len(command.argv) > 3:
            command.report(RULE, _WHY)


def raw(command: Command) -> None:
    """A program that rewrites a file system."""
    if any(raw_device(command.path(word)) for word in command.argv[1:] if word.startswith("/")):
        command.report("disk", _DISK)


def environment(command: Command) -> None:
    """`LD_PRELOAD=x.so program`: a library or a file that every later program runs."""
    for name, value in command.environment.items():
        variable(command, name, value)


_LOADED = lazy_pattern(
    r"LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|DYLD_LIBRARY_PATH|LD_LIBRARY_PATH|BASH_ENV|PYTHONSTARTUP|"
    r"PERL5OPT|RUBYOPT|NODE_OPTIONS|"
    r"PERL5LIB|JAVA_TOOL_OPTIONS|PYTHONINSPECT|GIT_TEMPLATE_DIR|GIT_PROXY_COMMAND|LESSOPEN|GCONV_PATH|"
    r"GIT_EXEC_PATH|PIP_INDEX_URL"
)
_CODE = {
    "PERL5OPT": r"-M|-I|-d",
    "RUBYOPT": r"-r|-I",
    # A module of the project, or of its dependencies, is code that its programs run anyway.
    "NODE_OPTIONS": r"(?:--(?:require|import|(?:experimental-)?loader)|(?:^|\s)-r)[= ]['\"]?"
    r"(?!(?:\./)?[@\w][^\s:]*(?:\s|$))"
    r"|(?:require|import|loader)[= ]\S*\.\./",
    "JAVA_TOOL_OPTIONS": r"-javaagent|-agentpath|-agentlib",
    "LD_LIBRARY_PATH": r"(?:^|:)(?:/tmp|/var/tmp|/dev/shm)",
    "DYLD_LIBRARY_PATH": r"(?:^|:)(?:/tmp|/var/tmp)",
    "PIP_INDEX_URL": r"^http://",
    "PERL5LIB": r"^/tmp",
    "PYTHONINSPECT": r"^$",
}
_SSH = lazy_pattern(
    r"(?:\S*/)?[\w-]*(?:ssh|plink|tsh|gcloud|cloudflared|true)[\w-]*(?:\.(?:sh|py|exe))?(?:\s|$)|\ue000|$"
)
_TEMPORARY = lazy_pattern(r"^(?:/tmp|/var/tmp|/dev/shm|\.\.?)(?:/|$)|^\.$")


def variable(command: Command, name: str, value: str) -> None:
    """Report a variable that lets other programs run a library or a file, or that hides the history."""
    if _LOADED.fullmatch(name) and re.search(_CODE.get(name, r"\S"), value):
        command.report("hidden-code", "lets other programs load code", f"{name}={value}")
    if name in ("GIT_SSH_COMMAND", "GIT_SSH", "GIT_PROXY_COMMAND") and not _SSH.match(value):
        command.report("hidden-code", "lets git run another program in the place of ssh", f"{name}={value}")
    if name == "PATH" and _TEMPORARY.match(value.partition(":")[0]):
        command.report(
            "hidden-code", "puts a directory that anybody writes to before those of the system", f"{name}={value}"
        )
    if name in ("HISTFILE", "HISTSIZE", "HISTFILESIZE") and value in ("/dev/null", "0", ""):
        command.report("log-removal", _TRACKS, f"{name}={value}")


def exported(command: Command) -> None:
    """`export LD_PRELOAD=x.so`."""
    for word in command.argv[1:]:
        name, equals, value = word.partition("=")
        if equals:
            variable(command, name, value)


def unset(command: Command) -> None:
    """`unset HISTFILE`."""
    if any(word in ("HISTFILE", "HISTSIZE", "PROMPT_COMMAND") for word in command.argv[1:]):
        command.report("log-removal", _TRACKS)


_SERVICES = (
    r"sshd?|networking|NetworkManager|systemd-\w+|docker|containerd|firewalld|ufw|iptables|nftables|dbus|"
    r"cron|crond|auditd|rsyslog|syslog|fail2ban|apparmor|selinux|falco|falcon\S*|osqueryd|clamav\S*|"
    r"wazuh\S*|ntp|chronyd|kubelet|postgresql|mysql|mariadb|mongod|redis\S*|nginx|apache2|httpd|"
    r"display-manager"
)
# Servers that a developer stops and starts again.
_STARTED_AGAIN = r"nginx|apache2|httpd|postgresql(?:@\S*)?|mysql|mariadb|mongod|redis\S*"
_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    rules_of("cat head tail strings dd xxd od hexdump cp tee base64 gzip less more hd", reads_device),
    rules_of("ld-linux-x86-64.so.2 ld-linux.so.2 ld-musl-x86_64.so.1 ld-linux-aarch64.so.1 ld.so", link_loader),
    {"crontab": (schedule,), "mknod": (device_node,), "mount": (device_node,)},
    rules_of("capsh start-stop-daemon", carried),
    rules_of("chattr setfacl chcon setfattr xattr chflags", attributes),
    rules_of("chmod chown chgrp", modes),
    rules_of(
        (
            "tune2fs debugfs resize2fs xfs_repair fsck e2fsck fsck.ext4 ntfsfix mdadm grub-install lvresize "
            "lvreduce partprobe"
        ),
        raw,
    ),
    losses(
        (
            Loss(
                "disk",
                "dmsetup lvremove vgremove pvremove lvreduce vgreduce dmraid multipath",
                r"\b(?:remove|remove_all|wipe_table|suspend)\b|^\S+ -\w|^(?:lv|vg|pv)\w+ \S",
                _DISK,
                r"^dmsetup (?:ls|info|status|table)|^multipath -l|-t\b|--test",
            ),
            Loss("disk", "mdadm", r"--(?:stop|zero-superblock|remove|fail|create)\b", _DISK),
            Loss(
                "disk",
                "hdparm nvme cryptsetup sgdisk blkdiscard",
                (
                    r"--(?:security-(?:erase|set-pass)\S*|zap\S*|yes-i-know\S*|trim-sector\S*)|\b(?:format|sanitize|"
                    r"delete-ns|erase|luksErase|luksFormat|luksKillSlot|luksRemoveKey|erase|reencrypt)\b|^blkdiscard \S"
                ),
                _DISK,
            ),
            Loss(
                "disk",
                "efibootmgr grub-install bootctl update-initramfs dracut mokutil",
                (
                    r" -\w*B\b|--delete-bootnum|^grub-install \S|^bootctl (?:remove|set-default)|-d\b.*-k|"
                    r"^mokutil --(?:import|disable|reset|delete)"
                ),
                _DISK,
            ),
            Loss(
                "disk",
                "diskutil",
                r"\b(?:erase\w*|reformat|partitiondisk|zerodisk|secureerase|apfs delete\w*|unmountdisk force)\b",
                _DISK,
            ),
            Loss(RULE, "insmod rmmod kexec", r"^\S+ \S", _WHY, r"^kexec (?:-u|--status)"),
            Loss(RULE, "modprobe", r"^modprobe (?!-n\b|-c\b|--show|-D\b|--resolve)\S", _WHY),
            Loss(
                RULE,
                "sysctl",
                r"(?:-w\b|--write|-p\b|--load|--system|\s[\w./-]+=\S)",
                _WHY,
                # Limits that watchers of files and databases need.
                r"(?:-w )?(?:fs\.inotify\.\w+|vm\.max_map_count|vm\.overcommit_memory|net\.core\.somaxconn)=\d+$",
            ),
            Loss(
                RULE,
                "umount",
                r" (?:-\w*a\w*|--all)(?= |$)| -\w*[lf]\w* /(?:home|usr|var|etc|boot)?$| /(?:home|usr|var|boot)?$",
                _WHY,
            ),
            Loss(
                RULE,
                "swapoff setenforce aa-teardown aa-disable aa-complain apparmor_parser",
                r"^\S+ \S|^aa-teardown$",
                _WHY,
                r"^apparmor_parser -Q|^setenforce 1",
            ),
            Loss(
                RULE,
                "setcap",
                r"cap_\w+",
                "gives a program rights of the administrator",
                r"^setcap -r|cap_net_bind_service",
            ),
            Loss(
                RULE,
                "spctl csrutil",
                r"--(?:master|global)-disable|--disable|\bdisable\b|--add|\bclear\b|authenticated-root",
                _WHY,
            ),
            Loss(RULE, "gdb strace ltrace", r"(?: -p ?|--pid[= ])1\b", _WHY),
            Loss(
                "system-file",
                "visudo vipw vigr",
                r" -f\b|^vi(?:pw|gr)",
                "writes a file of accounts",
                r"^visudo (?:-c|--check)",
            ),
            Loss(
                RULE,
                "iptables ip6tables iptables-restore nft ufw firewall-cmd pfctl ebtables arptables ipset",
                (
                    r"(?: (?:-F|--flush|-X|-P (?:INPUT|OUTPUT|FORWARD)(?: (?:DROP|ACCEPT))?|-Z|-D|flush ruleset|flush|"
                    r"disable|reset|--force reset|--panic-on|-d|destroy|delete (?:table|chain))(?= |$))"
                ),
                "opens the firewall or cuts the machine off",
                r" -[LS]\b",
            ),
            Loss(
                RULE,
                "ip ifconfig nmcli networksetup wg-quick ifdown tc netplan route rfkill airmon-ng",
                (
                    r"\b(?:link set (?:dev )?\S+ down|link (?:delete|del)|addr flush|route (?:flush|del)|(?:eth|en|wl|"
                    r"wlan)\S* down|networking off|radio (?:all|wifi) off|connection (?:delete|down)|device "
                    r"(?:disconnect|delete)|-setnetworkserviceenabled .* off|^ifdown \S+|"
                    r"qdisc (?:add|replace|change|del)|rfkill block|"
                    r"^netplan apply)\b|^ifdown \S|^rfkill block|^wg-quick down|^airmon-ng start"
                ),
                "cuts the machine off",
            ),
            Loss(
                RULE,
                "shutdown reboot halt poweroff init telinit systemctl pm-suspend",
                (
                    r"^(?:shutdown|reboot|halt|poweroff|pm-suspend)(?= |$)|^(?:tel)?init [0-6sS]\b|"
                    r"^systemctl (?:-\S+ )*(?:poweroff|reboot|halt|suspend|hibernate|rescue|emergency|kexec|soft-reboot|"
                    r"isolate|default|daemon-reexec|set-default)\b"
                ),
                "stops the machine",
                r"shutdown -c\b|\bshutdown --show",
            ),
            Loss(
                RULE,
                "systemctl service rc-service rc-update launchctl sv s6-svc supervisorctl update-rc.d chkconfig",
                (
                    rf"\b(?:stop|disable|mask|kill|bootout|unload|remove|delete|down)\b.*\b(?:{_SERVICES})(?:\.\w+)?(?= |"
                    rf"$)|\b(?:{_SERVICES}) stop\b|\bdisable --now\b|\bmask\b|\b"
                    r"supervisorctl (?:stop all|shutdown|remove)"
                ),
                "stops a service that the machine needs",
                (
                    rf"--user\b(?!.*mask)|\bsystemctl unmask|\bstop (?:{_STARTED_AGAIN})(?:\.service)?$|"
                    rf"\b(?:{_STARTED_AGAIN}) stop$"
                ),
            ),
            Loss(
                "persistence",
                "systemctl",
                (
                    r"\b(?:enable|link|edit|import-environment|add-wants|revert)\b.*(?:[./~]\S*/|\./|"
                    r"--now \S*/)\S*\.(?:service|timer|path|socket)"
                ),
                _PERSISTS,
            ),
            Loss("persistence", "launchctl", r"\b(?:load|bootstrap|submit|enable)\b", _PERSISTS),
            Loss("persistence", "loginctl", r"\benable-linger\b|\bkill-\w+|\bterminate-\w+", _PERSISTS),
            Loss(
                RULE,
                "kill",
                r"^kill (?:-\S+ )*(?:--? ?)?(?:-?1|-1)(?= |$)",
                "stops the first process, or all of them",
                r"^kill -(?:0|l|1|HUP|SIGHUP) \d{2,}|^kill -0|^kill -1 \d{2,}|^kill -[lL]\b",
            ),
            Loss(
                RULE,
                "killall killall5 pkill skill slay",
                (
                    r"(?:-u (?:root|0|\$USER)\b|\b(?:sshd|systemd|init|dockerd|kubelet|launchd|loginwindow|containerd|"
                    r"dbus-daemon)\b|^(?:pkill|killall) (?:-\S+ )*['\"]?(?:\.|\.\*|\^|\*|-1)['\"]?$|^killall5|-U \S+$|"
                    r"-u \S+$|\s-v\s)"
                ),
                "stops processes that the machine needs",
                r"-0\b|--signal 0",
            ),
            Loss(
                RULE,
                "date hwclock timedatectl ntpdate chronyc",
                (
                    r" (?:-s\b|--set\b|--systohc|--hctosys|-w\b|set-time|set-ntp|set-timezone|settime|makestep)|"
                    r"^date -u? ?\d{8,}|^date \d{8,}|^ntpdate \S"
                ),
                "sets the clock",
                r"^hwclock -r|^ntpdate -q|^date .*\+",
            ),
            Loss(
                RULE,
                "hostnamectl scutil localectl",
                r"\b(?:set-hostname|set-name|hostname \S+|--set|set-locale|set-keymap)\b",
                _WHY,
            ),
            Loss(
                RULE,
                "userdel groupdel deluser delgroup usermod passwd chage pw chpasswd sysadminctl dscl faillock newusers",
                (
                    r"^(?:userdel|groupdel|deluser|delgroup) \S|^usermod\b.* (?:-L|--lock|-e|-s /bin/false|-p)\b|"
                    r"^passwd\b.* (?:-d|-l|-e|--delete|--lock|root)\b|^passwd root|^chage\b.* -E|^chpasswd|^newusers|"
                    r"^sysadminctl .*-(?:delete|reset)|^dscl .*-delete|^pw (?:user|group)del"
                ),
                "removes or locks an account",
                r"^passwd -S|^chage -l",
            ),
            Loss("hidden-code", "enable", r" -f\b", "loads code into the shell"),
            Loss("hidden-code", "hash", r" -p\b", "lets a name run another program"),
            Loss(
                "hidden-code",
                "ldconfig update-alternatives",
                r"^ldconfig (?:/tmp|\.)|--(?:install|set) \S+ \S+ (?:/tmp|/var/tmp|\./)|--install .* /tmp",
                "lets a name run another program",
            ),
        )
    ),
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}


_LOG = lazy_pattern(
    (
        r"/var/log(?:/.*)?|.*/\.(?:bash|zsh|python|psql|mysql|node_repl)_history|.*/fish_history|"
        r".*/\.histfile|.*/\.lesshst"
    ),
    re.IGNORECASE,
)


def removes_logs(command: Command) -> None:
    """`rm /var/log/x`, `truncate -s 0 /var/log/x`: the records of the system."""
    for word in command.argv[1:]:
        if not word.startswith("-") and _LOG.fullmatch(command.path(word)):
            command.report("log-removal", "removes a record of the system or of commands", word)


_GIT = lazy_pattern(r"(?:.*/)?\.git/(?:index|HEAD|ORIG_HEAD|packed-refs|refs(?:/.*)?|objects(?:/.*)?|logs(?:/.*)?)")


def removes_git(command: Command) -> None:
    """`rm .git/index`, `rm -r .git/refs`: the data from which git restores."""
    for word in command.argv[1:]:
        if not word.startswith("-") and _GIT.fullmatch(command.path(word)):
            command.report("git-history", "removes data of git from which work is restored", word)


def wipes(command: Command) -> None:
    """`wipe -rf`, `srm -r`, `scrub`: whole trees."""
    if any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in command.argv[1:]):
        command.tree(*(word for word in command.argv[1:] if not word.startswith("-")))


for _name in ("wipe", "srm", "scrub", "sfill", "shred"):
    RULES[_name] = (*RULES.get(_name, ()), wipes)
for _name in ("rm", "unlink", "mv", "truncate", "shred"):
    RULES[_name] = (*RULES.get(_name, ()), removes_git)
for _name in ("rm", "unlink", "truncate", "shred", "tee", "mv", "wipe", "srm"):
    RULES[_name] = (*RULES.get(_name, ()), removes_logs)


def empties(command: Command) -> None:
    """`truncate -s 0 src/*`: all files of a directory lose their content."""
    directories = command.interpreter.directories
    for word in command.argv[1:]:
        name = word.rpartition("/")[2]
        if word.pattern and name in ("*", "**") and not directories.removable(command.path(word), "project"):
            command.report("find-delete", "empties all files of a directory", word)


def gio(command: Command) -> None:
    """`gio remove`, `gio trash`: files and trees."""
    words = [word for word in command.argv[2:] if not word.startswith("-")]
    if command.argv[1:2] in (["remove"], ["trash"]):
        for word in words:
            if command.is_root(word) or command.argv[1] == "remove":
                command.tree(word)


def ends(command: Command) -> None:
    """`ps … | xargs kill -9`: every process that is listed."""
    words = set(map(str, command.interpreter.pipeline_words))
    narrowed = any(re.search(r"grep|^rg$|^-C$|^-p$|/", word) for word in words)
    if "ps" in words and not narrowed and any(UNKNOWN in word for word in command.argv[1:]):
        command.report(RULE, "ends every process that is listed")


_MORE = {"truncate": empties, "shred": empties, "gio": gio, "kill": ends}
for _name, _rule in _MORE.items():
    RULES[_name] = (*RULES.get(_name, ()), _rule)
