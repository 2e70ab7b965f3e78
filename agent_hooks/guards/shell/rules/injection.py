"""Rules about options that run a program: the option names a command, a file of code, or settings with one."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.rules.outside import Loss, losses
from agent_hooks.guards.shell.words import Word

RULE = "hidden-code"
_WHY = "an option runs a program or loads code"
_TEMP = r"(?:/tmp|/var/tmp|/dev/shm|\./)"
# Programs that an option may well name.
_USUAL = lazy_pattern(
    r"(?:/usr/bin/|/bin/)?(?:ssh|gzip|pigz|bzip2|pbzip2|xz|zstd|lz4|lzop|cat|less|more|delta|bat|vim?|"
    r"nvim|nano|emacs|code|true|sudo rsync|rsync|git-upload-pack|git-receive-pack|"
    r"brotli|autossh|docker|podman|kubectl|sudo|doas|mosh|rsh|dot|bell|ttyout|totals|echo|sleep|wait|date|wc|sha\d+sum|md5sum|b3sum|"
    r"cksum|more)(?: [\w=:.@%~/\"'-]+)*"
)
_SSH = lazy_pattern(r"(?:\S*/)?(?:ssh|autossh|sshpass|plink|tsh|gcloud|cloudflared|true)\b(?!.*(?:[;|&`<>]|\$\())")


def options_of(*names: str, letters: str = "", reports: bool = True) -> Rule:
    """Return a rule that follows the value of options as a script; `names`: with their dashes, `letters`: short ones.

    `reports`: every program counts that such an option does not name every day, whatever it does.
    """

    def rule(command: Command) -> None:
        words = command.argv
        for at, word in enumerate(words[1:], 1):
            name, equals, value = word.partition("=")
            # An abbreviation of a long option has at least this length.
            abbreviates = len(name) > 6 and name != "--checkpoint" and any(each.startswith(name) for each in names)
            if name in names or (name.startswith("--") and abbreviates):
                script = Word(value) if equals else words[at + 1] if at + 1 < len(words) else Word("")
            elif len(word) > 1 and word[0] == "-" and word[1] in letters:
                script = Word(word[2:]) if len(word) > 2 else words[at + 1] if at + 1 < len(words) else Word("")
            else:
                continue
            script = Word(script.removeprefix("exec="))
            if script and not _USUAL.fullmatch(script):
                command.shell_code(script)
                if reports:
                    command.report(RULE, _WHY)
                else:
                    _file(command, script)

    return rule


def _file(command: Command, script: str) -> None:
    if re.match(rf"{_TEMP}|/", script) and not _USUAL.fullmatch(script) and re.match(_TEMP, script):
        command.report(RULE, _WHY)


def ssh(command: Command) -> None:
    """`-o ProxyCommand=…`, `-F file`, `-S program`."""
    words = command.argv
    for at, word in enumerate(words[1:], 1):
        text = (
            word[2:]
            if word.startswith("-o") and len(word) > 2
            else words[at + 1]
            if word == "-o" and at + 1 < len(words)
            else ""
        )
        key, _, value = text.strip("\"'").partition("=") if "=" in text else text.partition(" ")
        if key.strip().lower() in ("proxycommand", "localcommand", "knownhostscommand", "remotecommand"):
            script = value.strip().strip("\"'")
            command.shell_code(Word(script))
            if not re.match(
                r"(?:ssh|nc|ncat|connect|cloudflared|aws|socat|/usr/bin/nc|none|sh -c \"aws|gcloud)\b", script
            ):
                command.report(RULE, _WHY)
        if key.strip().lower() in ("pkcs11provider", "securitykeyprovider", "include"):
            command.report(RULE, _WHY)
        value_of = word[2:] or (words[at + 1] if at + 1 < len(words) else "")
        if (
            word[:2] in ("-F", "-S", "-D", "-I")
            and re.match(_TEMP, value_of)
            and not (word[:2] == "-S" and command.name == "ssh")
        ):
            command.report(RULE, _WHY)


def git(command: Command) -> None:
    """Settings of git that name a program, and options of its verbs that do."""
    words = command.argv
    text = str(command)
    settings = [*(words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-c", "--config"))]
    plain = [word for word in words[1:] if not word.startswith("-")]
    if plain[:1] == ["config"] and len(plain) > 2:
        settings.append(Word(f"{plain[-2]}={plain[-1]}"))
    for setting in settings:
        key, _, value = setting.partition("=")
        key = key.lower()
        if re.fullmatch(
            (
                r"core\.(?:sshcommand|editor|pager|fsmonitor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|"
                r"diff\.external|(?:diff|merge|filter|difftool|mergetool|gpg|credential|pager|remote|uploadpack|"
                r"receive|sendemail|man|browser|web|interactive)\.(?:.*\.)?(?:command|driver|textconv|clean|smudge|"
                r"process|cmd|program|helper|uploadpack|receivepack|packobjectshook|difffilter|smtpserver|path|vcs|"
                r"proxy)|pager\.\w+|credential\.helper|alias\..*|init\.templatedir"
            ),
            key,
        ):
            script = value.lstrip("!") if value.startswith("!") or not key.startswith("alias.") else ""
            if script and key != "init.templatedir" and not key.startswith("credential"):
                command.shell_code(Word(script))
            elif value.startswith("!"):
                command.shell_code(Word(value[1:]))
            runs_always = key in ("core.sshcommand", "core.gitproxy", "core.fsmonitor") and script not in (
                "true",
                "false",
                "",
            )
            if (
                (runs_always and not _SSH.match(script))
                or re.match(_TEMP, script)
                or (key == "init.templatedir" and re.match(_TEMP, value))
            ):
                command.report(RULE, _WHY)
        if key == "protocol.ext.allow" and value != "never":
            command.report(RULE, _WHY)
        if re.fullmatch(r"gc\.(?:reflogexpire\w*|pruneexpire|worktreepruneexpire)", key) and re.fullmatch(
            r"now|0|all|\d+\.(?:second|minute)s?\.ago", value
        ):
            command.report("git-history", "drops the record of former states")
    if re.search(r"\bext::", text):
        command.report(RULE, _WHY)
    for at, word in enumerate(words[1:], 1):
        found = re.match(
            (
                r"(--(?:upload-pack|receive-pack|exec|extcmd|tree-filter|index-filter|msg-filter|env-filter|"
                r"commit-filter|parent-filter|open-files-in-pager|sh-exec|smtp-server|to-cmd|cc-cmd))(?:=(.*))?$"
            ),
            word,
            re.DOTALL,
        )
        script = ""
        if found:
            script = found[2] or (words[at + 1] if found[2] is None and at + 1 < len(words) else "")
        elif word == "-x" and plain[:1] in (["rebase"], ["difftool"]) and at + 1 < len(words):
            script = words[at + 1]
        elif word.startswith("-O") and plain[:1] == ["grep"]:
            script = word[2:]
        elif word == "-u" and plain[:1] == ["clone"] and at + 1 < len(words):
            script = words[at + 1]
        if script and not _USUAL.fullmatch(script):
            command.shell_code(Word(script))
            _file(command, script)
            if plain[:1] in (["clone"], ["fetch"], ["pull"], ["ls-remote"], ["push"]):
                command.report(RULE, _WHY)
    if plain[:1] == ["branch"] and "-D" in words and any(UNKNOWN in word for word in plain):
        command.report("git-history", "drops branches that are not named")
    if re.search(
        (
            r"^git (?:\S+ )*(?:lfs prune\b.*--force|annex drop\b.*--force|repack\b.*--unpack-unreachable|"
            r"gc\b.*--prune=(?!never)\S*(?:now|all|^0|=0|second|minute)|notes prune|replace --delete|replace -d)"
        ),
        text,
    ):
        command.report("git-history", "drops objects that exist nowhere else")
    deletes = plain[:1] == ["push"] and any(word in ("-d", "--delete") for word in words)
    if deletes and any(UNKNOWN in word for word in plain):
        command.report("git-remote", "deletes branches or tags that are published")
    if plain[:2] == ["bisect", "run"]:
        command.runs(list(words[words.index(Word("run")) + 1 :]))


def console(command: Command) -> None:
    r"""`mysql -e '\! cmd'`, `sqlite3 x '.shell cmd'`, `gdb -ex 'shell cmd'`, `psql -c '\! cmd'`."""
    words = list(command.argv[1:])
    if command.stdin.text:
        words += [Word(line) for line in command.stdin.text.splitlines()[:100]]
    for word in words:
        for match in re.finditer(
            (
                r"(?:^|[;\n])\s*(?:\\!|system\s|\.shell\s|\.system\s|shell\s|!(?!=)|platform shell\s|pi(?:pe)?\s|"
                r"python\s+os\.system)\s*(.*)"
            ),
            word,
        ):
            if match[1].strip():
                command.shell_code(Word(match[1].strip()))
        if found := re.search(r"from\s+program\s+['\"](.*)['\"]", word, re.IGNORECASE):
            command.shell_code(Word(found[1]))


def code_option(command: Command) -> None:
    """`emacs --eval '(shell-command …)'`, `nvim -c "lua os.execute(…)"`, `ed <<< '!cmd'`."""
    texts = [*command.argv[1:], *(Word(line) for line in (command.stdin.text or "").splitlines()[:50])]
    for word in texts:
        for match in re.finditer(
            (
                r"(?:shell-command(?:-to-string)?|call-process|start-process|system|os\.execute|io\.popen|jobstart|"
                r"termopen)\W{0,4}[\"']((?:[^\"'\\]|\\.)+)[\"']"
            ),
            word,
        ):
            command.shell_code(Word(match[1]))
        if found := re.search(r"delete-directory\s+\"([^\"]+)\"", word):
            command.tree(Word(found[1]))
        if found := re.search(r"\(\s*(?:call|start)-process\b(.*)", word):
            command.runs([Word(each) for each in re.findall(r"\"([^\"]*)\"", found[1])])
        if re.match(r"(?:[\d,$%]*!)", word) and command.name in ("ed", "red", "ex", "vi", "vim"):
            command.shell_code(Word(word.partition("!")[2]))
        if word.startswith(("+!", "+:!")):
            command.shell_code(Word(word.partition("!")[2]))


def module(command: Command) -> None:
    """`python -m timeit -s 'code'`, `python -m pdb -c 'code'`, `pdb3 -c`."""
    words = command.argv
    runner = words[1:3] in (["-m", "timeit"], ["-m", "pdb"], ["-m", "cProfile"], ["-m", "trace"])
    if command.name.startswith(("pdb", "ipdb", "ipython")) or runner:
        for at, word in enumerate(words[:-1]):
            if word in ("-s", "-c", "--setup"):
                command.runs([Word("python3"), Word("-c"), words[at + 1]])
        if words[1:3] == ["-m", "timeit"] and not words[-1].startswith("-"):
            command.runs([Word("python3"), Word("-c"), words[-1]])


_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    rules_of("ssh scp sftp ssh-keygen ssh-add autossh mosh sshfs", ssh),
    {"git": (git,)},
    {
        "tar": (
            options_of(
                "--use-compress-program",
                "--checkpoint-action",
                "--to-command",
                "--rsh-command",
                "--rmt-command",
                "--info-script",
                "--new-volume-script",
                letters="I",
            ),
        )
    },
    {"rsync": (options_of("--rsh", "--rsync-path", letters="e"),)},
    {"zip": (options_of("--unzip-command", "-TT"),)},
    {"split": (options_of("--filter", reports=False),)},
    {"sort": (options_of("--compress-program"),)},
    {"man": (options_of("--pager", letters="P", reports=False),)},
    rules_of("mysql mariadb psql sqlite3 gdb lldb sqlplus ftp irb clickhouse-client duckdb", console),
    rules_of("emacs emacsclient vim nvim vi ex ed red view less", code_option),
    rules_of("pdb pdb3 ipdb ipdb3 ipython ipython3", module),
    losses(
        (
            Loss(RULE, "tcpdump", rf" -z ?\S*{_TEMP}", _WHY),
            Loss(RULE, "openssl", rf"-(?:engine|provider|provider-path) \S*{_TEMP}", _WHY),
            Loss(RULE, "gcc g++ cc clang", r" -wrapper\b|-fplugin=\S*/tmp|-B ?/tmp", _WHY),
            Loss(RULE, "php", r"-d ?(?:auto_prepend_file|auto_append_file|extension|zend_extension)=", _WHY),
            Loss(RULE, "wget", r"--use-askpass[= ]", _WHY),
            Loss(
                RULE,
                "npm pnpm yarn",
                (
                    r"--script-shell[= ]|--node-options[= ].*(?:--require|--import)|\bconfig set (?:\S+ )*(?:"
                    r"script-shell|shell|node-options|init-module|"
                    r"git|viewer|editor|globalconfig|onload-script|registry[= ]http:)\b"
                ),
                _WHY,
                whole=True,
            ),
            Loss(RULE, "make gmake", r"(?:^| )SHELL=(?!/bin/(?:ba|z|da)?sh(?: |$)|bash(?: |$)|sh(?: |$))", _WHY),
            Loss(
                RULE,
                "pip pip3",
                r"--(?:index-url|trusted-host|extra-index-url)[= ]http:|--index-url[= ]?http://|-i http://",
                "fetches packages from an address without encryption",
            ),
            Loss(
                RULE,
                "npm pnpm yarn",
                r"--registry[= ]?http://(?!localhost|127\.)",
                "fetches packages from an address without encryption",
            ),
            Loss(RULE, "java", r"-javaagent:\S*/tmp|-agentpath:|-Xbootclasspath", _WHY),
            Loss(RULE, "node nodejs", rf"(?:-r|--require|--import|--loader)[= ]{_TEMP}\S*", _WHY),
        )
    ),
)


def scripts_of_items(command: Command) -> None:
    """`xargs sh -c`, `xargs -I{} sh -c '{}'`: each item is a script."""
    words = [str(word) for word in command.argv[1:]]
    at = next((at for at, word in enumerate(words) if re.fullmatch(r"(?:\S*/)?(?:ba|z|da|k)?sh", word)), None)
    if at is None or words[at + 1 : at + 2] != ["-c"] or command.stdin.text is not None:
        return
    rest = words[at + 2 :]
    if not rest or re.fullmatch(r"\s*(?:\{\}|CMD|%|@)\s*", rest[0]):
        command.report("dynamic-code", "runs each item of a list as a script")


def empties(command: Command) -> None:
    """`tar --remove-files -cf /dev/null .`: the files are packed into nothing, and removed."""
    words = command.argv[1:]
    removes = any(word.startswith("--remove-f") and "--remove-files".startswith(word) for word in words)
    if removes and any(word in ("/dev/null", "-") or word.endswith("=/dev/null") for word in words):
        command.tree(*(word for word in words if not word.startswith("-") and word != "/dev/null"))


def tests_of_zip(command: Command) -> None:
    """`zip -T -TT 'cmd'` runs the command to test the archive."""
    for at, word in enumerate(command.argv[:-1]):
        if word == "-TT":
            command.shell_code(command.argv[at + 1])


def saved_by_sed(command: Command) -> None:
    """`sed 's/a/b/w file'` writes the file."""
    for word in command.argv[1:]:
        if found := re.search(r"s([/|#,])(?:(?!\1).)*\1(?:(?!\1).)*\1[gpIi\d]*w\s+(\S+)", word):
            command.writes(Word(found[2]))


def inside(command: Command) -> None:
    """`podman unshare cmd` and `buildah unshare cmd` run a command with the files of this machine."""
    words = command.argv[1:]
    if words[:1] == ["unshare"]:
        rest = [word for word in words[1:] if not word.startswith("--")]
        command.runs(rest)


def make_shell(command: Command) -> None:
    """`make SHELL='cmd #'` runs the command for each recipe, and `$(shell cmd)` runs one."""
    for word in command.argv[1:]:
        for script in re.findall(r"\$\(shell\s+(.*)\)", word):
            command.shell_code(Word(script))
        if word.startswith("SHELL=") and not re.fullmatch(r"SHELL=(?:/usr)?(?:/bin/)?(?:ba|z|da|k)?sh", word):
            command.report(RULE, _WHY)


RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
for _name in ("tar", "bsdtar", "gtar"):
    RULES[_name] = (*RULES.get(_name, ()), empties)
_MORE = {"zip": tests_of_zip, "sed": saved_by_sed, "gsed": saved_by_sed, "podman": inside, "buildah": inside}
for _name, _rule in _MORE.items():
    RULES[_name] = (*RULES.get(_name, ()), _rule)
for _name in ("xargs", "gxargs"):
    RULES[_name] = (*RULES.get(_name, ()), scripts_of_items)
for _name in ("make", "gmake"):
    RULES[_name] = (*RULES.get(_name, ()), make_shell)
