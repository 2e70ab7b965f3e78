"""Rules about content that leaves the machine: files, archives, directories, the environment, tunnels.

A request with data of its own is everyday work; a request with the content of files that are whole directories, archives
or databases, with the environment, or with a text that was encoded first, is a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.origins import SECRET, names_secret
from agent_hooks.guards.shell.outputs import taint_of
from agent_hooks.guards.shell.rules.outside import Loss, earlier, losses, only_tries
from agent_hooks.guards.shell.rules.requests import CURL_LONG, CURL_VALUES, addresses, local
from agent_hooks.guards.shell.words import Text, Word

RULE = "send-out"
_WHY = "sends files or the environment to another machine"
# Programs whose output is the content of files, or the environment; and those that encode it.
_SOURCES = {
    *("env", "printenv", "set", "export", "declare", "cat", "tac", "head", "tail", "tar", "zip", "bsdtar", "gzip"),
    *("bzip2", "xz", "zstd", "pg_dump", "pg_dumpall", "mysqldump", "mongodump", "sqlite3", "dd", "cpio", "7z", "gpg"),
    *("docker", "ps", "history", "find", "strings", "base64", "base32", "xxd", "od", "hexdump", "openssl", "uuencode"),
    *("basenc", "split", "git", "kubectl", "id", "ss", "last"),
}
_PACKED = {
    "tar",
    "docker",
    "podman",
    "zip",
    "pg_dump",
    "pg_dumpall",
    "mysqldump",
    "mongodump",
    "env",
    "printenv",
    "dd",
    "cpio",
}
_BULK = lazy_pattern(
    (
        r"(?:.*/)?[^/]*\.(?:tar|tgz|tbz2?|txz|gz|bz2|xz|zst|zip|7z|rar|jar|sql|dump|db|sqlite3?|bak|pem|key|"
        r"p12|pfx|kdbx|img|iso|ova|vmdk|qcow2|pcap|mbox|pst|dmp|env|log|history)(?:\.\w+)?"
    ),
    re.IGNORECASE,
)
_OUTPUT = lazy_pattern(r"(?:^|/)(?:dist|build|public|out|_site|site|html|target|coverage|docs?)(?:/|$|\.)")
_STORAGE = lazy_pattern(r"(?:\w{2,}:|https://\S*\.(?:blob|file)\.core|minio/|s3/)")
_PASTE = lazy_pattern(
    r"(?:^|[/.@])(?:transfer\.sh|0x0\.st|ix\.io|sprunge\.us|termbin\.com|bashupload\.com|file\.io|"
    r"pastebin\.\w+|paste\.\w+\.\w+|dpaste\.\w+|hastebin\.\w+|"
    r"webhook\.site|requestbin\.\w+|\w+\.ngrok(?:-free)?\.\w+|pipedream\.net|interact\.sh|oast\.\w+|"
    r"burpcollaborator\.net|temp\.sh|gofile\.io|anonfiles\.com|catbox\.moe|envs\.sh)",
    re.IGNORECASE,
)


def _report(command: Command) -> None:
    command.report(RULE, _WHY)


def _holds_content(words: Iterable[Word]) -> bool:
    """Return whether words hold the output of a program that reads files, or a variable with a secret."""
    return bool(taint_of(list(words)) & {"content", "encoded", "secret"})


def _reads_sources(command: Command) -> bool:
    """Return whether the command reads the content of files or of the environment from stdin."""
    stdin = command.stdin
    if stdin.file or stdin.taint >= SECRET:
        return True
    before = {word.rpartition("/")[2] for word in earlier(command)}
    return stdin.text is None and bool(before & _SOURCES)


def curl(command: Command) -> None:
    """`curl -T file`, `-d @dump`, `-d "$(env)"`, `https://host/?d=$(base64 file)`."""
    wget = command.name == "wget"
    options = ParsedOptions(command.argv, "OPotTwQUeaiADIRXBl" if wget else CURL_VALUES, CURL_LONG)
    there = addresses(command, options)
    if not there or only_tries(command):
        return
    data = options.value(
        "d",
        "F",
        "--data",
        "--data-binary",
        "--data-raw",
        "--data-urlencode",
        "--form",
        "--json",
        "--post-data",
        "--body-data",
    )
    if wget:
        data = options.value("--post-data", "--body-data")
    files = options.value("--upload-file", "--post-file", "--body-file", *(() if wget else ("T",)))
    heads = options.value("H", "--header", "A", "b", "u", "e", "--user-agent", "--cookie", "--referer")
    named = [Word(re.sub(r"^.*?[@<]", "", word).partition(";")[0]) for word in data if re.search(r"^@|=@|=<|@", word)]
    sent = (files and not all(word == "-" and not _reads_sources(command) for word in files)) or _holds_content(data)
    spelled = taint_of(there) & {"encoded", "secret"} or any(_spells(word) for word in heads)
    items = any("{}" in word or (UNKNOWN in word and "encoded" in command.stdin.taint) for word in there)
    pasted = (data or files) and any(_PASTE.search(word) for word in there)
    if sent or spelled or items or pasted or any(_sent(command, word) for word in named):
        _report(command)


def _spells(header: Word) -> bool:
    """Return whether a header holds an encoded text that is no name with a password."""
    signs_in = header.lower().startswith("authorization: basic ") and "content" not in header.taint
    return "encoded" in header.taint and not signs_in


def _sent(command: Command, word: Word) -> bool:
    """Return whether a named file holds more than the data of one request: an archive, a database, stdin with content."""
    if word == "-":
        return _reads_sources(command)
    return bool(_BULK.fullmatch(word)) and not re.search(r"(?:^|/)(?:tests?|fixtures?|examples?)/", word)


def httpie(command: Command) -> None:
    """`http POST host < dump.sql`, `http -f POST host file@dump.sql`."""
    operands = ParsedOptions(command.argv, "absf"[:3], ("--auth", "--session", "--body", "--raw")).operands
    there = [word for word in operands if not re.fullmatch(r"[A-Za-z]{3,7}", word)][:1]
    if not there or local(there[0]) or only_tries(command):
        return
    named = [Word(word.rpartition("@")[2]) for word in operands if "@" in word and word is not there[0]]
    if command.stdin.file or any(_sent(command, word) for word in named) or _holds_content(operands):
        _report(command)


def socket(command: Command) -> None:
    """`nc host port < file`: whatever the program reads goes to the host."""
    operands = [word for word in ParsedOptions(command.argv, "pswXxqiIGc").operands if not word.isdigit()]
    text = str(command)
    if command.name == "openssl":
        found = re.search(r"-connect (\S+)", text)
        operands = [Word(found[1].rpartition(":")[0])] if found else []
    if command.name == "socat":
        names = re.findall(r"(?:TCP|UDP|OPENSSL|SSL)[46]?(?:-CONNECT)?:([^:,\s]+)", text, re.IGNORECASE)
        operands = [Word(each) for each in names]
        if re.search(r"\b(?:FILE|OPEN|GOPEN):", text, re.IGNORECASE) and operands and not local(operands[0]):
            _report(command)
    if (
        operands
        and not local(operands[0])
        and (_reads_sources(command) or "content" in command.stdin.taint)
        and command.stdin.file != "/dev/null"
    ):
        _report(command)


def _remote(word: str) -> bool:
    """Return whether a word names a place on another machine: `host:path`, `rsync://host/path`."""
    if re.match(r"rsync://(?!localhost)", word):
        return True
    match = re.match(r"(?:[\w.-]+@)?([\w.-]{2,}):(?!//)", word)
    return bool(match) and not local(match[1] if match else "")


def copy(command: Command) -> None:
    """`scp -r dir host:`, `rsync dir host:`: directories and archives, but not build output."""
    options = ParsedOptions(
        command.argv, "efTBPiFoJlcS", ("--exclude", "--include", "--rsh", "--files-from", "--filter")
    )
    operands = options.operands
    if len(operands) < 2 or not _remote(operands[-1]) or options.has("n", "--dry-run"):
        return
    sources = [word for word in operands[:-1] if not _remote(word)]
    whole = command.name == "rsync" or options.has("r", "R", "--recursive")
    host = operands[-1].partition(":")[0].rpartition("@")[2]
    packed = command.shell.files
    for word in sources:
        known = packed.get(command.path(word))
        if known is not None and known.taint & {"packed"}:
            _report(command)
        if _OUTPUT.search(word):
            continue
        # A name without a dot is a machine of the own network, to which programs are brought.
        foreign = "." in host or command.name == "scp" or operands[-1].startswith("rsync:")
        if (whole and (foreign or command.is_root(word))) or _BULK.fullmatch(word):
            _report(command)


def sftp(command: Command) -> None:
    """`sftp host <<< 'put file'`, `ftp -u`, `lftp -e 'mirror -R'`, `tftp -c put`."""
    text = f"{command} {command.stdin.text or ''}"
    if re.search(r"\b(?:m?put|reput|mirror\s+(?:-\w+\s+)*-\w*R|mirror .*--reverse)\b|\s-u\s", text):
        _report(command)


def git(command: Command) -> None:
    """`git push URL`: a repository that is no remote of the project, or that the same line adds."""
    words = [word for word in command.argv[1:] if not word.startswith("-")]
    if words[:2] == ["bundle", "create"]:
        # The bundle holds the whole history.
        command.shell.files.update({command.path(word): Text(None, frozenset({"packed"})) for word in words[2:3]})
    values = command.shell.variables.values
    if words[:2] in (["remote", "add"], ["remote", "set-url"]) and len(words) > 2:
        values[f"git remote {words[2]}"] = command.shell.variables.values["HOME"]
    if words[:1] != ["push"] or any(word in ("-n", "--dry-run") for word in command.argv):
        return
    there = words[1] if len(words) > 1 else Word("origin")
    foreign = re.match(r"(?:https?|ssh|git|ext|ftp)://|[\w.-]+@[\w.-]+:|ext::", there)
    if foreign or f"git remote {there}" in values:
        command.report(RULE, "pushes to a repository that is no remote of this project")


def ask_name(command: Command) -> None:
    """`dig $(cat file).host`: a name that carries content."""
    words = command.argv[1:]
    if taint_of(words) & {"content", "encoded", "secret", "host"} or (
        any(UNKNOWN in word and "." in word for word in words) and "encoded" in command.stdin.taint
    ):
        _report(command)


def bucket(command: Command) -> None:
    """`aws s3 cp -r dir s3://…`, `gsutil cp`, `rclone copy`: a directory or an archive goes to a bucket."""
    words = [word for word in command.argv[1:] if not word.startswith("-")]
    text = str(command)
    verb = re.search(
        r"^(?:aws s3 (?:cp|sync|mv)|aws s3api put-object|gsutil (?:-m )?(?:cp|rsync|mv)|gcloud storage (?:cp|"
        r"rsync|mv)|az storage blob (?:upload\S*|sync)|"
        r"az storage (?:copy|file upload\S*)|rclone (?:copy|copyto|sync|move)|azcopy (?:copy|cp|sync)|"
        r"mc (?:cp|mirror)|s3cmd (?:put|sync)|s5cmd (?:cp|sync)|b2 (?:upload-file|sync))\b",
        text,
    )
    if not verb or only_tries(command) or "--dryrun" in text:
        return
    used = len(verb[0].split())
    operands = [word for word in [command.argv[0], *words] if not word.startswith("-")][
        used if "-m" not in verb[0] else used - 1 :
    ]
    if len(operands) > 1 and _STORAGE.match(operands[0]) and not _STORAGE.match(operands[-1]):
        return
    source = operands[0] if operands else Word("")
    if command.name == "az":
        source = next(
            (
                command.argv[at + 1]
                for at, word in enumerate(command.argv[:-1])
                if word in ("-f", "-s", "--file", "--source")
            ),
            Word("."),
        )
    whole = re.search(r"\bsync\b|\bmirror\b|\s-r\b|\s-R\b|--recursive", verb[0] + text) or source in (
        ".",
        "./",
        "~",
        "/",
        "*",
    )
    # rclone copies whole directories.
    whole = whole or (command.name == "rclone" and "." not in source.rpartition("/")[2])
    if _STORAGE.match(source) and command.name != "az":
        return
    if (whole and not _OUTPUT.search(source)) or _BULK.fullmatch(source):
        _report(command)


def redirected(command: Command) -> None:
    """`cat file > /dev/tcp/host/port`."""
    line = command.interpreter.line
    for _, word in line.redirects if line is not None else ():
        parts = word.split("/")
        if word.startswith(("/dev/tcp/", "/dev/udp/")) and len(parts) > 3 and not local(parts[3]):
            known = command.name in _SOURCES - {"export", "set", "declare"}
            if known or command.name == "exec":
                _report(command)


def tunnel(command: Command) -> None:
    """`ssh -R` opens a port of this machine to another one."""
    if ParsedOptions(command.argv, "bcDEeFIiJLlmOopQRSWw", stop_early=True).value("R"):
        command.report(RULE, "opens a port of this machine to others")
    options = ParsedOptions(command.argv, "bcDEeFIiJLlmOopQRSWw", stop_early=True)
    if any("." in word for word in options.operands[:1]) and (
        set(earlier(command)) & {*_PACKED, "archive", "bundle"} or (command.stdin.file and len(options.operands) > 1)
    ):
        _report(command)


def serves(command: Command) -> None:
    """`python -m http.server -d /` serves a root directory to the network."""
    text = str(command)
    if not re.search(r"-m\s+(?:http\.server|SimpleHTTPServer|pyftpdlib|uploadserver)\b", text):
        return
    directory = next(
        (command.argv[at + 1] for at, word in enumerate(command.argv[:-1]) if word in ("-d", "--directory")), Word(".")
    )
    outer = "127.0.0.1" not in text and "localhost" not in text
    if outer and command.is_root(directory) and command.path(directory) != command.interpreter.directories.project:
        command.report(RULE, "serves a root directory to the network")


_PROGRAMS = losses(
    (
        Loss(
            RULE,
            (
                "pastebinit wgetpaste termbin fpaste croc wormhole magic-wormhole ffsend transfer dropbox gdrive "
                "onedrive megaput mega-put sharex wetransfer portal"
            ),
            r"^\S+ (?:send|upload|-\w |\S)",
            _WHY,
            r"\breceive\b|\blist\b|^croc (?:--?\S+ )*\d+-[\w-]+$|^\S+ (?:--help|ls|status)",
        ),
        Loss(RULE, "ncftpput wput curlftpfs", r"^\S+ \S", _WHY),
        Loss(RULE, "unison", r" (?:ssh|socket)://", _WHY),
        Loss(RULE, "gist", r"^gist (?!-l|--login|-r)\S", _WHY),
        Loss(RULE, "gh", r"^gh gist create\b", _WHY),
        Loss(
            RULE,
            "ngrok cloudflared localtunnel lt bore frpc chisel serveo pinggy zrok expose inlets rathole localhost.run",
            r"\b(?:http|tcp|tls|tunnel|client|start|share|local)\b|--(?:port|url)\b",
            "opens a port of this machine to others",
            r"\bconfig check|^cloudflared (?:tunnel (?:list|info)|version)",
        ),
        Loss(RULE, "logger", r"(?:-n|--server)[ =]?\S.*(?:-f|--file)", _WHY),
    )
)
_CODE_SENDS = lazy_pattern(
    r"(?:requests|httpx|session|client)\.(?:post|put|patch)\s*\(|urlopen\([^)]*(?:data\s*=|,\s*[^)]+\))|"
    r"\.(?:send|sendall|sendto)\s*\(|method\s*:\s*['\"](?:POST|PUT)|"
    r"axios\.(?:post|put)|http\.request\s*\(|IO::Socket|fsockopen|TCPSocket|Net::HTTP\.post|"
    r"file_get_contents\s*\(\s*['\"]https?:|smtplib|ftplib|storbinary|curl_exec|put_object|upload_file",
    re.IGNORECASE,
)
_CODE_READS = lazy_pattern(
    r"\bopen\s*\(|os\.environ|process\.env\b(?!\.\w*(?:URL|HOST|PORT))|read_(?:bytes|text)\s*\(|readFile|"
    r"`cat |`env|file_get_contents\s*\(\s*['\"](?!https?:)|File\.read|getenv\(\s*\)|\bENV\b|"
    r"shutil\.make_archive|\$_ENV|upload_file|storbinary"
)
_CODE_DELETES = lazy_pattern(
    (
        r"(?:requests|httpx|session|client|axios|http)\.delete\s*\(|(?:request|fetch|"
        r"axios)\s*\([^)]*['\"]DELETE['\"]|method\s*[:=]\s*['\"]DELETE['\"]|Net::HTTP::Delete"
    ),
    re.IGNORECASE,
)
_ADDRESS = lazy_pattern(r"https?://([^/'\"\s?]+)", re.IGNORECASE)
_CODE_PRINTS_ALL = lazy_pattern(
    r"(?:print|pprint|console\.log|puts|dumps|stringify|var_dump|print_r)\s*\(?\s*(?:dict\(|list\(|"
    r"sorted\(|str\()?\s*(?:os\.environ(?!\w|\.get|\[)|process\.env(?![\w.\[])|ENV\b(?!\[|\.(?:key|has_key|include|fetch|size|keys|dig|values_at))|\$_ENV\b(?!\[))"
)


def code(command: Command) -> None:
    """Inline code of a language: it sends files, deletes by a request, or prints a secret."""
    text = "\n".join([*command.argv[1:], command.stdin.text or ""])
    if len(text) < 8 or command.argv[1:2] == ["-m"]:
        return
    hosts = _ADDRESS.findall(text)
    outside = not hosts or not all(local(host) for host in hosts)
    if re.search(r"\bos\.(?:remove|unlink)\b", text) and re.search(r"glob\(\s*['\"](?:\./)?(?:\*\*/)?\*['\"]", text):
        command.report("find-delete", "removes all files that are listed")
    if re.search(r"array_map\(\s*['\"]unlink['\"]\s*,\s*glob\(\s*['\"][*./]*['\"]", text):
        command.report("find-delete", "removes all files that are listed")
    if outside and _CODE_DELETES.search(text):
        command.report("http-delete", "deletes something by a request")
    if outside and _CODE_SENDS.search(text) and _CODE_READS.search(text) and (hosts or "." in text):
        _report(command)
    short = re.search(r"(?:^|\n)process\.env\.(\w+)\s*$", text)
    if (short and names_secret(short[1])) or _CODE_PRINTS_ALL.search(text):
        command.report("print-secret", "prints a secret, which the model and its records would hold")


def loads(command: Command) -> None:
    """`pg_dump app | psql -h HOST`: a whole database goes to another machine."""
    host = ParsedOptions(command.argv, "hUpdPuD", ("--host", "--username", "--port", "--dbname")).value("h", "--host")
    host += [word for word in command.argv[1:] if "://" in word]
    dumped = set(earlier(command)) & {"pg_dump", "pg_dumpall", "mysqldump", "mariadb-dump", "mongodump"}
    if dumped and any("." in word and not local(word.rpartition("@")[2]) for word in host):
        _report(command)


_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    rules_of("curl wget curlie", curl),
    rules_of("http https xh xhs", httpie),
    rules_of("nc ncat netcat nc.openbsd nc.traditional socat telnet openssl", socket),
    rules_of("scp rsync", copy),
    rules_of("sftp ftp lftp tftp", sftp),
    rules_of("psql pg_restore mysql mariadb mongorestore", loads),
    {"git": (git,), "ssh": (tunnel,), "autossh": (tunnel,)},
    rules_of("dig nslookup host ping drill resolvectl getent kdig", ask_name),
    rules_of("aws gsutil gcloud az rclone azcopy mc s3cmd s5cmd b2", bucket),
    _PROGRAMS,
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
