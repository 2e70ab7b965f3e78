"""Rules about files: removing, emptying, copying, rights, and reading what is secret.  Below: command, options."""

from __future__ import annotations

import re

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import Options
from agent_hooks.guards.shell.words import Text, Word

_NAME_TESTS = {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"}
_OTHER_TESTS = {
    "-empty",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-size",
    "-user",
    "-group",
    "-inum",
    "-xtype",
    "-perm",
    "-samefile",
    "-links",
}
_WORLD = re.compile(r"([ugoa]*)([-+=])([rwxXst]*)")


def rm(command: Command) -> None:
    """`rm`, `rimraf`: trees by force, roots, single files of the system."""
    options = Options(command.argv)
    recursive = options.has("r", "R", "--recursive") or command.name in ("rimraf", "del-cli")
    force = options.has("f", "--force") or command.name in ("rimraf", "del-cli")
    for word in options.operands:
        if recursive and (force or command.level == "strict"):
            command.tree(word)
        elif recursive and command.is_root(word):
            command.report("rm-rf", "removes a root of the system, of a home or of the project", word)
        command.deletes(word)


def unlink(command: Command) -> None:
    """`unlink`, `rmdir`, `truncate`, `shred` and the like: files that go or are emptied."""
    options = Options(command.argv, "sniN", ("--size", "--iterations", "--reference"))
    command.deletes(*options.operands)


def find(command: Command) -> None:
    """`find … -delete`, `-exec`: what is found goes; a name narrows it, `.` alone does not."""
    words = command.argv[1:]
    while words and words[0] in ("-H", "-L", "-P"):
        words = words[1:]
    first = next((at for at, word in enumerate(words) if word[:1] in ("-", "(", "!") and len(word) > 0), len(words))
    roots = words[:first] or [Word(".")]
    tests = words[first:]
    names = [tests[at + 1] for at, word in enumerate(tests[:-1]) if word in _NAME_TESTS and not _negated(tests, at)]
    names = [name for name in names if not re.fullmatch(r"[*./]*", name)]
    narrowed = bool(names) or any(word in _OTHER_TESTS for word in tests)
    found = [_below(root, name) for root in roots for name in names] or [_below(root, "*") for root in roots]
    if "-delete" in tests:
        _find_deletes(command, roots, found, named=bool(names), narrowed=narrowed)
    at = 0
    while at < len(tests):
        if tests[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at, len(tests)) if tests[i] in (";", "\\;", "+")), len(tests))
            carried = tests[at + 1 : end]
            if (
                carried
                and carried[0].rpartition("/")[2] in ("rm", "unlink", "shred")
                and not _stays_here(command, roots)
            ):
                command.report("find-delete", "removes what is found in a root of the system or a home")
            for path in found[:16]:
                command.runs([_put(word, path, "{}") for word in carried])
            at = end
        at += 1
    text = "\n".join(found) if names else None
    command.output = Text(text)


def _stays_here(command: Command, roots: list[Word]) -> bool:
    project = command.interpreter.place.project
    return not any(command.is_root(root) and command.path(root) != project for root in roots)


def _negated(tests: list[Word], at: int) -> bool:
    return at > 0 and tests[at - 1] in ("!", "-not")


def _below(root: Word, name: str) -> Word:
    word = Word(f"{root.rstrip('/')}/{name.lstrip('*/') if '/' in name else name}" if root != "/" else f"/{name}")
    word.pattern = True
    word.unsure = root.unsure
    return word


def _put(word: Word, what: str, where: str) -> Word:
    if where not in word:
        return word
    put = Word(word.replace(where, what))
    put.taint, put.unsure, put.pattern = word.taint, word.unsure, True
    return put


def _find_deletes(command: Command, roots: list[Word], found: list[Word], *, named: bool, narrowed: bool) -> None:
    empty = "-empty" in command.argv  # nothing is lost with it
    for root in roots:
        path = command.path(root)
        place = command.interpreter.place
        if place.in_temp(path) or (path in place.temp and narrowed):
            continue
        outside = UNKNOWN in path or not (path == place.project or place.in_project(path))
        if named and not outside:
            continue
        if outside and (named or narrowed) and not command.is_root(root):
            continue
        if narrowed and (empty or not command.is_root(root)):
            continue
        if not place.removable(path, command.level):
            command.report("find-delete", "removes all that is found", f"find {root} … -delete")
    if named:
        command.deletes(*found)


def rsync(command: Command) -> None:
    """`rsync --delete`: what is not in the source goes from the destination; secrets are copied."""
    options = Options(command.argv, "efTB", ("--exclude", "--include", "--rsh", "--files-from", "--filter"))
    for shell in options.value("e", "--rsh"):
        command.shell_code(shell)
    operands = options.operands
    command.reads(*operands[:-1])
    if not operands or options.has("n", "--dry-run"):
        return
    command.writes(operands[-1], *_unseen(operands[:-1], operands[-1]))
    if any(flag.startswith("--del") for flag in options.flags):
        path = command.path(operands[-1])
        place = command.interpreter.place
        if not ((place.own and place.in_project(path)) or place.in_temp(path)) or ":" in operands[-1]:
            command.report("rsync-delete", "removes files of the destination, outside of the project", operands[-1])


def copy(command: Command) -> None:
    """`cp`, `mv`, `install`, `scp`: the sources are read, the destination is written."""
    options = Options(
        command.argv, "tmogSiFPocJlZ" if command.name in ("scp", "install") else "tS", ("--target-directory",)
    )
    operands = options.operands
    sources, targets = operands[:-1], operands[-1:]
    if into := options.value("t", "--target-directory"):
        sources, targets = operands, into
    if command.name == "install" and options.has("d", "--directory"):
        sources, targets = [], operands
    if command.name == "install":
        _modes(command, options.value("m", "--mode"))
    command.reads(*sources)
    if command.name == "cp" and len(sources) == 1 and _begins_from_sample(sources[0], *targets):
        return
    emptied = "/dev/null" in sources
    for target in targets:
        path = command.path(target)
        if emptied:
            command.deletes(target)
        command.writes(target, *_unseen(sources, target))
        if command.name == "mv" and path == "/dev/null":
            command.report("rm-rf", "moves files into nothing")
        for source in sources:
            command.writes(_below(target, source.rpartition("/")[2]))
    if command.name == "mv":
        for source in sources:
            command.deletes(source)
            if command.is_root(source):
                command.report("rm-rf", "moves a root of the system, of a home or of the project away", source)


def _unseen(sources: list[Word], target: Word) -> list[Word]:
    """Return what may be among the files of a directory that are copied into `target`, whose names nobody sees."""
    unseen = any(source.endswith(("/", "/.", "/*")) or source in (".", "*") for source in sources)
    return [_below(target, "settings.json")] if unseen else []


_ENVIRONMENT = re.compile(r"(?:.*/)?\.env(\.\w+)?")
_ENVIRONMENT_SAMPLE = re.compile(r"(?:.*/)?\.env(\.\w+)?\.(example|sample|template|dist)")


def _begins_from_sample(source: str, target: str = "") -> bool:
    """Tell whether a project's environment file is made of the sample that comes with it, as every README says."""
    return bool(_ENVIRONMENT_SAMPLE.fullmatch(source) and _ENVIRONMENT.fullmatch(target))


def reader(command: Command) -> None:
    """`cat`, `less`, `base64` …: each operand is read."""
    options = Options(command.argv, _READERS_WITH_VALUE.get(command.name, ""))
    command.reads(*options.operands)
    for value in options.value("f", "T"):
        command.reads(value)


def searcher(command: Command) -> None:
    """`grep`, `rg`, `awk`, `sed`, `jq`: the first operand is no file."""
    options = Options(
        command.argv, _READERS_WITH_VALUE.get(command.name, "e"), ("--regexp", "--file", "--include", "--glob")
    )
    given = options.has("e", "--regexp") or (command.name != "jq" and options.has("f", "--file"))
    command.reads(*options.operands[0 if given else 1 :], *options.value("f", "--file"))


def editor(command: Command) -> None:
    """`sed -i`, `perl -i`: the files are written as well."""
    options = Options(command.argv, "efl", ("--expression", "--file"))
    if command.name == "sed" and (options.has("i", "--in-place") or any(w.startswith("-i") for w in command.argv)):
        given = options.has("e", "f", "--expression", "--file")
        command.writes(*options.operands[0 if given else 1 :])


def tee(command: Command) -> None:
    """`tee`: each operand is written."""
    options = Options(command.argv)
    command.writes(*options.operands, overwrite=not options.has("a", "--append"))


def archive(command: Command) -> None:
    """`tar`, `zip`: what goes in is read; extracting writes."""
    words = command.argv[1:]
    bundled = bool(words) and command.name == "tar" and not words[0].startswith("-")
    argv = [command.argv[0], Word(f"-{words[0]}"), *words[1:]] if bundled else command.argv
    options = Options(argv, "fCTXIb" if command.name == "tar" else "", ("--file", "--directory", "--exclude"))
    if command.name == "tar" and not (options.has("c", "r", "u", "--create", "--append") or options.has("--update")):
        command.writes(*options.value("C", "--directory"))
        return
    command.reads(*options.operands, *options.value("C", "--directory"))


def unzip(command: Command) -> None:
    """`unzip -d directory`: what comes out is written there."""
    command.writes(*Options(command.argv, "dPxO").value("d"))


def patch(command: Command) -> None:
    """`patch file`: the file is written."""
    options = Options(command.argv, "idopBDFVYzg", ("--input", "--output", "--directory", "--strip"))
    command.writes(*options.operands[:1], *options.value("o", "--output"))


def dd(command: Command) -> None:
    """`dd`: `if=` is read, `of=` is written."""
    for word in command.argv[1:]:
        key, equals, value = word.partition("=")
        if equals and key in ("if", "of"):
            path = Word(value)
            path.taint, path.unsure = word.taint, word.unsure
            command.reads(path) if key == "if" else command.writes(path)


def chmod(command: Command) -> None:
    """`chmod`: world-writable, setuid, roots."""
    words = command.argv[1:]
    mode_at = next((at for at, word in enumerate(words) if _is_mode(word)), None)
    if mode_at is None:
        return
    rest = words[:mode_at] + words[mode_at + 1 :]
    options = Options([command.argv[0], *rest])
    _modes(command, [words[mode_at]])
    operands = options.operands
    if options.has("R", "--recursive") and any(_system_root(command, word) for word in operands):
        command.report("chmod-root", "changes the rights of a root of the system or of a home")
    for word in operands:
        path = command.path(word)
        if "/.git/hooks/" in path and re.search(r"-[rwst]*x|^[0-7]*[0246]{3}$", words[mode_at]):
            command.report("git-hooks", "switches a hook of the repository off", word)


def _is_mode(word: str) -> bool:
    return bool(re.fullmatch(r"[0-7]{1,5}|([ugoa]*[-+=][rwxXstugo]*,?)+", word)) and not re.fullmatch(r"-[Rvfc]+", word)


def _modes(command: Command, modes: list[Word]) -> None:
    for mode in modes:
        if re.fullmatch(r"[0-7]{1,5}", mode):
            bits = int(mode, 8)
            if bits & 0o002:
                command.report("world-writable", "lets everybody write")
            if bits & 0o4000:
                command.report("setuid", "lets everybody run it as its owner")
            continue
        for clause in mode.split(","):
            match = _WORLD.fullmatch(clause)
            if match is None or match[2] == "-":
                continue
            who, rights = match[1], match[3]
            if "w" in rights and ("o" in who or "a" in who):
                command.report("world-writable", "lets everybody write")
            if "s" in rights and (not who or "u" in who or "a" in who):
                command.report("setuid", "lets everybody run it as its owner")


def make_directory(command: Command) -> None:
    """`mkdir -m 777`."""
    _modes(command, Options(command.argv, "m", ("--mode",)).value("m", "--mode"))


def chown(command: Command) -> None:
    """`chown -R` of roots."""
    options = Options(command.argv, "", ("--from", "--reference"))
    operands = options.operands[0 if options.has("--reference") else 1 :]
    if options.has("R", "--recursive") and any(_system_root(command, word) for word in operands):
        command.report("chmod-root", "hands over a root of the system or a home")


def _system_root(command: Command, word: Word) -> bool:
    """Tell whether a word names a root that is not the project: there, rights are the user's business."""
    place = command.interpreter.place
    return command.is_root(word) and not (place.own and command.path(word) == place.project)


def setfacl(command: Command) -> None:
    """`setfacl -m o::rwx`."""
    if any(re.search(r"\bo(ther)?::?[rx-]*w", word) for word in command.argv[1:]):
        command.report("world-writable", "lets everybody write")


def transfer(command: Command) -> None:
    """`curl -d @file`, `-T file`, `-F x=@file`: the file is sent; what comes back may be written to one."""
    options = Options(
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
        command.writes(*(_below(directory, url.rstrip("/").rpartition("/")[2]) for url in options.operands))
    for word in options.operands:
        if word.lower().startswith("file://"):
            command.reads(word)


def keychain(command: Command) -> None:
    """`security find-generic-password -w` and other programs that print what a key store holds."""
    text = str(command)
    if re.search(
        r"^security .*(find-(generic|internet)-password .*-[wg]|dump-keychain)|^secret-tool (lookup|search)"
        r"|^gpg2? .*--export-secret|^pass show|^keyring get|^op (read|item get)",
        text,
    ):
        command.report("read-keyring", "prints what a key store holds")


def link(command: Command) -> None:
    """`ln -s secret name`: another name for it; with `-f`, whatever had that name is gone."""
    operands = Options(command.argv, "tS").operands
    command.reads(*operands[:1])
    command.writes(*operands[1:2])


def openssl(command: Command) -> None:
    """`openssl … -in key`: reads it, unless it only shows a certificate."""
    words = command.argv
    if len(words) > 1 and words[1] in ("x509", "s_client", "req", "verify", "genrsa", "genpkey"):
        return
    command.reads(*[words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-in", "-inkey")])


def remove_item(command: Command) -> None:
    """PowerShell's `Remove-Item -Recurse -Force` and the like."""
    words = [word for word in command.argv[1:] if not word.startswith("-") and not word.startswith("/s")]
    flags = " ".join(word.lower() for word in command.argv[1:] if word[:1] in "-/")
    if re.search(r"-r(ec\w*)?\b|/s\b", flags):
        command.tree(*words)


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
    "cat tac head tail less more bat batcat nl od xxd hexdump hd strings base64 base32 uuencode view vi vim "
    "nvim nano emacs ed ex cut sort uniq paste fold fmt diff cmp colordiff comm join column pr expand rev "
    "split iconv dos2unix look pbcopy xclip pg gzip bzip2 xz zstd wc md5sum sha256sum yq ccat glow most sdiff "
    "vimdiff code subl open jless"
)
RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("rm rimraf del-cli srm grm", rm),
    **rules_of("unlink rmdir truncate shred wipe", unlink),
    **rules_of("remove-item ri rd erase", remove_item),
    "find": (find,),
    "gfind": (find,),
    "rsync": (rsync,),
    **rules_of("cp mv install scp gcp pax cpio ditto", copy),
    "ln": (link,),
    **rules_of(_READERS, reader),
    **rules_of("grep egrep fgrep zgrep rg ag ack awk gawk mawk jq pcregrep", searcher),
    "sed": (searcher, editor),
    "tee": (tee,),
    **rules_of("tar zip 7z bsdtar rar ar", archive),
    "unzip": (unzip,),
    "patch": (patch,),
    "dd": (dd,),
    "chmod": (chmod,),
    "mkdir": (make_directory,),
    **rules_of("chown chgrp", chown),
    "setfacl": (setfacl,),
    **rules_of("curl wget http https xh", transfer),
    **rules_of("security secret-tool gpg gpg2 pass keyring op", keychain),
    "openssl": (openssl,),
    "gpg": (reader, keychain),
}
