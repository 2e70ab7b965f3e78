"""Rules about files: copying, reading, editing, archives and transfers."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.inspector import Inspector
from agent_hooks.guards.shell.modes import judge_modes
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word, below


def rsync(command: Command) -> None:
    """`rsync --delete` removes files of the destination that the source lacks; secrets may be copied."""
    options = ParsedOptions(command.argv, "efTB", ("--exclude", "--include", "--rsh", "--files-from", "--filter"))
    for shell in options.value("e", "--rsh"):
        command.shell_code(shell)
    operands = options.operands
    command.reads(*operands[:-1])
    if not operands or options.has("n", "--dry-run"):
        return
    command.writes(operands[-1], *_unnamed(operands[:-1], operands[-1]))
    if any(flag.startswith("--del") for flag in options.flags):
        path = command.path(operands[-1])
        directories = command.interpreter.directories
        if not ((directories.own and directories.in_project(path)) or directories.in_temp(path)) or ":" in operands[-1]:
            reason, wall = "removes files of the destination, outside of the project", command.is_machine(operands[-1])
            command.report("rsync-delete", reason, operands[-1], wall=wall)
        elif any(re.search(r"(?:^|/)(?:empty|blank|void|nothing|null)[\w.-]*/?$", word) for word in operands[:-1]):
            command.report("rsync-delete", "makes the destination as empty as the source", operands[-1])


# A directory that is made and not filled before its files replace those of another.
_FROM_EMPTY = lazy_pattern(
    r"\bmkdir\s+(?:-\w+\s+)*(['\"]?)(?P<made>[^\s'\";&|]+?)/?\1\s*(?:&&|;|\n)\s*rsync\b[^\n;&|]*\s--del[^\n;&|]*?\s['\"]?(?P=made)/"
    r"|\brsync\b[^\n;&|]*\s--del[^\n;&|]*\$\(mktemp\s+-d[^)]*\)/"
)


def judge_script(inspector: Inspector, text: str) -> None:
    """Report `mkdir e && rsync -a --delete e/ src/`: the destination becomes as empty as the source."""
    if "rsync" in text and (found := _FROM_EMPTY.search(text)):
        inspector.report("rsync-delete", "makes the destination as empty as the source", found[0])


def copy(command: Command) -> None:
    """`cp`, `mv`, `install`, `scp` read the sources and write the destination."""
    options = ParsedOptions(
        command.argv, "tmogSiFPocJlZ" if command.name in ("scp", "install") else "tS", ("--target-directory",)
    )
    operands = options.operands
    sources, targets = operands[:-1], operands[-1:]
    if into := options.value("t", "--target-directory"):
        sources, targets = operands, into
    if command.name == "install" and options.has("d", "--directory"):
        sources, targets = [], operands
    if command.name == "install":
        judge_modes(command, options.value("m", "--mode"))
    if command.name == "mv":
        command.deletes(*sources)
    command.reads(*sources)
    if command.name == "cp" and len(sources) == 1 and _begins_from_sample(sources[0], *targets):
        return
    emptied = "/dev/null" in sources
    for target in targets:
        path = command.path(target)
        if emptied:
            command.loses(target)
        command.writes(target, *_unnamed(sources, target))
        if command.name == "mv" and path == "/dev/null":
            command.report("rm-rf", "moves files into nothing")
            command.loses(*sources)
        for source in sources:
            copied = below(target, source.rstrip("/").rpartition("/")[2])
            # A copy of one's own hooks in a temporary directory controls nothing.
            if command.name == "mv" or not (command.controls(source) and command.interpreter.directories.in_temp(path)):
                command.writes(copied)
    if command.name == "mv":
        for source in sources:
            if command.is_root(source):
                reason = "moves a root of the system, of a home or of the project away"
                command.report("rm-rf", reason, source, wall=command.is_machine(source))


def _unnamed(sources: list[Word], target: Word) -> list[Word]:
    """Return a file that may be among the copied ones when a whole directory is copied into `target`."""
    whole = any(source.endswith(("/", "/.", "/*")) or source in (".", "*") for source in sources)
    return [below(target, "settings.json")] if whole else []


_ENVIRONMENT = lazy_pattern(r"(?:.*/)?\.env(\.\w+)?")
_ENVIRONMENT_SAMPLE = lazy_pattern(r"(?:.*/)?\.env(\.\w+)?\.(example|sample|template|dist)")


def _begins_from_sample(source: str, target: str = "") -> bool:
    """Return whether a project's sample of an environment file is copied to the environment file."""
    return bool(_ENVIRONMENT_SAMPLE.fullmatch(source) and _ENVIRONMENT.fullmatch(target))


def reader(command: Command) -> None:
    """`cat`, `less`, `base64` and others read each operand."""
    options = ParsedOptions(command.argv, _READERS_WITH_VALUE.get(command.name, ""))
    command.reads(*options.operands)
    for value in options.value("f", "T"):
        command.reads(value)


def searcher(command: Command) -> None:
    """`grep`, `rg`, `awk`, `sed`, `jq` read their operands, except for a pattern or program that comes first."""
    options = ParsedOptions(
        command.argv, _READERS_WITH_VALUE.get(command.name, "e"), ("--regexp", "--file", "--include", "--glob")
    )
    given = options.has("e", "--regexp") or (command.name != "jq" and options.has("f", "--file"))
    command.reads(*options.operands[0 if given else 1 :], *options.value("f", "--file"))


def editor(command: Command) -> None:
    """`sed -i` writes the files."""
    options = ParsedOptions(command.argv, "efl", ("--expression", "--file"))
    if command.name == "sed" and (options.has("i", "--in-place") or any(w.startswith("-i") for w in command.argv)):
        given = options.has("e", "f", "--expression", "--file")
        command.writes(*options.operands[0 if given else 1 :])


def tee(command: Command) -> None:
    """`tee` writes each operand."""
    options = ParsedOptions(command.argv)
    command.writes(*options.operands, overwrite=not options.has("a", "--append"))


def archive(command: Command) -> None:
    """`tar`, `zip` read the files that they pack; `tar -x` writes a directory."""
    words = command.argv[1:]
    bundled = bool(words) and command.name == "tar" and not words[0].startswith("-")
    argv = [command.argv[0], Word(f"-{words[0]}"), *words[1:]] if bundled else command.argv
    options = ParsedOptions(argv, "fCTXIb" if command.name == "tar" else "", ("--file", "--directory", "--exclude"))
    if command.name == "tar" and not (options.has("c", "r", "u", "--create", "--append") or options.has("--update")):
        command.writes(*options.value("C", "--directory"))
        return
    command.reads(*options.operands, *options.value("C", "--directory"))


def unzip(command: Command) -> None:
    """`unzip -d directory` writes the directory."""
    command.writes(*ParsedOptions(command.argv, "dPxO").value("d"))


def sponge(command: Command) -> None:
    """`sponge file` writes the file when stdin has ended."""
    command.writes(*ParsedOptions(command.argv).operands)


def patch(command: Command) -> None:
    """`patch file` writes the file."""
    options = ParsedOptions(command.argv, "idopBDFVYzg", ("--input", "--output", "--directory", "--strip"))
    command.writes(*options.operands[:1], *options.value("o", "--output"))


def dd(command: Command) -> None:
    """`dd` reads the file of `if=` and writes the file of `of=`."""
    for word in command.argv[1:]:
        key, equals, value = word.partition("=")
        if equals and key in ("if", "of"):
            path = Word(value)
            path.taint, path.unsure = word.taint, word.unsure
            command.reads(path) if key == "if" else command.writes(path)


def transfer(command: Command) -> None:
    """`curl -d @file`, `-T file` and `-F x=@file` send a file; `-o file` writes one."""
    options = ParsedOptions(
        command.argv,
        "dFTuHoXAbcKeEmwxr" if command.name != "wget" else "OPotTwQUeaiADIRXBl",
        (
            "--data",
            "--data-binary",
            "--data-raw",
            "--data-urlencode",
            "--form",
            "--upload-file",
            "--post-file",
            "--body-file",
            "--config",
            "--json",
            "--output",
            "--output-document",
            "--output-dir",
            "--directory-prefix",
            "--header",
        ),
    )
    for value in options.value("d", "F", "--data", "--data-binary", "--data-urlencode", "--form", "--json"):
        _, at, path = value.partition("@")
        if at:
            command.reads(Word(path.partition(";")[0]))
        elif "=<" in value:
            command.reads(Word(value.partition("<")[2]))
    command.reads(*options.value("--upload-file", "--post-file", "--body-file"))
    if command.name == "wget":
        command.writes(*options.value("O", "--output-document", "o", "a"))
    else:
        command.reads(*options.value("T"))
        command.writes(*options.value("o", "--output"))
    for directory in options.value("P", "--directory-prefix", "--output-dir"):
        command.writes(*(below(directory, url.rstrip("/").rpartition("/")[2]) for url in options.operands))
    for word in options.operands:
        if word.lower().startswith("file://"):
            command.reads(word)


def keychain(command: Command) -> None:
    """`security find-generic-password -w` and other programs print secrets from a key store."""
    text = str(command)
    if re.search(
        r"^security .*(find-(generic|internet)-password .*-[wg]|dump-keychain)|^secret-tool (lookup|search)"
        r"|^gpg2? .*--export-secret|^pass show|^keyring get|^op (read|item get)",
        text,
    ):
        command.report("read-keyring", "prints secrets from a key store")


def link(command: Command) -> None:
    """`ln -s secret name` gives a file another name; with `-f`, the file that had this name is lost."""
    operands = ParsedOptions(command.argv, "tS").operands
    command.reads(*operands[:1])
    command.writes(*operands[1:2])


# The commands of a line editor that write: `w`, `wq`, `x`, also behind addresses, and the file that `w` names.
_SAVES = lazy_pattern(r"(?:%|[\d.$,]+)?(?:wq?|x|W|up(?:date)?|sav(?:eas)?)!?(?:[ \t]+(\S+))?")


def line_editor(command: Command) -> None:
    """`ed file` and `ex file` write the file when their script says so."""
    options = ParsedOptions([word for word in command.argv if not word.startswith("+")], "cpS", ("--cmd",))
    typed = [word[1:] for word in command.argv[1:] if word.startswith("+")]
    for script in (command.stdin.text or "", *map(str, options.value("c")), *typed):
        found_all = (_SAVES.fullmatch(piece.strip(" \t:")) for piece in re.split(r"[\n|;]", script))
        for found in filter(None, found_all):
            command.writes(*([Word(found[1])] if found[1] else options.operands))


# The names of keys and certificates that a program makes; a new file of another name may decide something for an agent.
_KEY_NAME = lazy_pattern(r".*\.(?:pem|key|crt|cer|csr|der|pub|p12|pfx)", re.IGNORECASE)


def _is_new_key(command: Command, word: Word) -> bool:
    """Return whether a word names a key of the project, or a temporary one, that does not exist yet."""
    if not _KEY_NAME.fullmatch(word):
        return False
    path, directories = command.path(word), command.interpreter.directories
    inside = (directories.own and directories.in_project(path)) or directories.in_temp(path)
    return (
        inside and not word.taint and not command.controls(word) and not command.interpreter.call.machine.exists(path)
    )


def openssl(command: Command) -> None:
    """`openssl … -in key` reads the key, unless the verb only shows a certificate or makes a key."""
    words = command.argv
    outputs = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-out", "-keyout")]
    command.writes(*(word for word in outputs if not _is_new_key(command, word)))
    if len(words) > 1 and words[1] in ("x509", "s_client", "req", "verify", "genrsa", "genpkey"):
        return
    command.reads(*[words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-in", "-inkey")])


_READERS_WITH_VALUE = {
    "head": "nc",
    "tail": "nc",
    "cut": "dfcb",
    "sort": "kto",
    "od": "AjNtw",
    "xxd": "cgls",
    "nl": "bhfivw",
    "fold": "w",
    "base64": "w",
    "base32": "w",
    "awk": "Fvf",
    "gawk": "Fvf",
    "mawk": "Fvf",
    "sed": "el",
    "grep": "emABCd",
    "egrep": "emABC",
    "fgrep": "emABC",
    "rg": "egtTmABCj",
    "jq": "L",
    "yq": "",
    "split": "abln",
}
_READERS = (
    "cat tac head tail less more bat batcat nl od xxd hexdump hd strings base64 base32 uuencode view "
    "nano emacs cut sort uniq paste fold fmt diff cmp colordiff comm join column pr expand rev "
    "split iconv dos2unix look pbcopy xclip pg gzip bzip2 xz zstd wc md5sum sha256sum yq ccat glow most sdiff "
    "vimdiff code subl open jless"
)
RULES: dict[str, tuple[Rule, ...]] = {
    "rsync": (rsync,),
    **rules_of("cp mv install scp gcp pax cpio ditto", copy),
    "ln": (link,),
    **rules_of(_READERS, reader),
    **rules_of("grep egrep fgrep zgrep rg ag ack awk gawk mawk jq pcregrep", searcher),
    "sed": (searcher, editor),
    "tee": (tee,),
    **rules_of("tar zip 7z bsdtar rar ar", archive),
    "sponge": (sponge,),
    **rules_of("ed red ex vi vim nvim", reader, line_editor),
    "unzip": (unzip,),
    **rules_of("patch gpatch", patch),
    "dd": (dd,),
    **rules_of("curl wget http https xh", transfer),
    **rules_of("security secret-tool gpg gpg2 pass keyring op", keychain),
    "openssl": (openssl,),
    "gpg": (reader, keychain),
}
