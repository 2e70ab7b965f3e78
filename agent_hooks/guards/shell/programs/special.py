"""The functions of rows whose words need more than roles: the row names one with `@do=`.

Each adds deeds to the reading, and returns whether it has read the operands too.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.patches import patched_names
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.program_listings import OPERATORS, found_words
from agent_hooks.guards.shell.programs import git_verbs
from agent_hooks.guards.shell.programs.reading import Function, Reading, inside
from agent_hooks.guards.shell.words import EMPTY, Word, marked


def _name(word: Word) -> Word:
    return marked(word.rstrip("/").rpartition("/")[2], word)


def _anything(start: str) -> Word:
    """Return the word for all files whose paths begin with a text."""
    return Word(f"{start}{UNKNOWN}")


def split(reading: Reading) -> bool:
    """`split file prefix` writes `prefixaa`, `prefixab` and so on; `csplit` has the prefix as an option."""
    reading.known = reading.known and not reading.has("--filter")
    if reading.words[0].endswith("csplit"):
        prefix = (reading.values("f", "--prefix") or [Word("xx")])[0]
        files = reading.given[:1]
    else:
        files, rest = reading.given[:1], reading.given[1:2]
        prefix = rest[0] if rest else Word("x")
    for file in files:
        reading.add("read", file)
    if not reading.has("--filter"):
        reading.add("write", _anything(prefix))
    return True


def mktemp(reading: Reading) -> bool:
    """`mktemp` makes a file in the directory for temporary files, or as its template says."""
    named = reading.given[:1]
    directory = [word for word in reading.values("p", "--tmpdir") if word]
    template = marked(re.sub("X{3,}", "*", named[0]), named[0]) if named else Word("tmp.*")
    template.pattern = True
    if directory or reading.has("t") or not named:
        template = inside(directory[0] if directory else Word("/tmp"), template)  # noqa: S108  # only compared
    reading.add("write", template)
    return True


def chmod(reading: Reading) -> bool:
    """`chmod -x file`: a mode may look like an option."""
    modes = [word for word in reading.words[1:] if re.fullmatch(r"-[rwxXstugo,=+-]+", word) and word != "-R"]
    operands = reading.given if modes or reading.has("--reference") else reading.given[1:]
    mode = "".join(modes or reading.given[:1])
    for word in operands:
        reading.add("write", word, tree=reading.has("R", "--recursive"))
    if re.search(r"(?:^|,)[ugoa]*[+=][rwxXt]*s", mode) or re.fullmatch(r"0?[2-7][0-7]{3}", mode):
        reading.add("gain", "setuid")
    if re.search(r"(?:^|,)(?:[ugo]*[oa][ugo]*)?[+=][rxXst]*w", mode) or re.fullmatch(r"0?[0-7]?[0-7]{2}[2367]", mode):
        reading.add("gain", "world-writable")
    return True


def patch(reading: Reading) -> bool:
    """`patch`, `git apply` and `apply_patch` write the files that the patch names; it may stand on stdin."""
    if reading.name == "patch" and (reading.given or reading.has("o", "--output")):
        return False
    for word in reading.given if reading.name != "patch" else []:
        reading.add("read", word)
    text = reading.stdin.text
    if reading.name in ("apply_patch", "applypatch") and reading.given:
        text = str(reading.given[0])
    names = patched_names(text) if text and UNKNOWN not in text and reading.given[:1] != ["-"] else ()
    if text and not names and reading.name.startswith("apply"):
        names = patched_names(text)
    if not names:
        reading.add("write", ".", tree=True)
    for name in names:
        if name == "/dev/null":
            continue
        spelled = name if reading.name.startswith("apply") else re.sub(r"^[abciow]/", "", name)
        reading.add("write", spelled)
        if text and re.search(rf"(?:Delete File: *|rename from |Move from: *){re.escape(spelled)}", text):
            reading.add("delete", spelled)
        if text and re.search(rf"^--- .*{re.escape(spelled)}.*\n\+\+\+ /dev/null", text, re.MULTILINE):
            reading.add("delete", spelled)
    return True


def sed(reading: Reading) -> bool:
    """`sed 'w file'` writes a file and `sed 'r file'` reads one; `-i.bak` keeps the old file under another name."""
    scripts = [*reading.values("e", "--expression")]
    files = reading.given
    if not scripts and not reading.has("f", "--file"):
        scripts, files = reading.given[:1], reading.given[1:]
    for script in scripts:
        for verb, name in re.findall(r"(?:^|[;\n{}\d$/a-zA-Z!,]|\s)([wWrR])[ \t]+([^\n;}]+)", script):
            if name.strip() not in ("/dev/stdout", "/dev/stderr"):
                reading.add("write" if verb in "wW" else "read", name.strip())
        if re.search(r"(?:^|[;\n{}\d$])\s*e(?:\s|$)|s(\W).*\1.*\1[gpiI\d]*e", script):
            reading.opaque()
    for suffix in reading.values("i", "--in-place"):
        for word in files:
            reading.add("write", suffix.replace("*", word) if "*" in suffix else f"{word}{suffix}")
    return False


def awk(reading: Reading) -> bool:
    """`awk '{print > "file"}'` writes a file; `system` and pipes run programs; `-i inplace` writes the operands."""
    program = "" if reading.has("f", "--file") else "".join(reading.given[:1])
    reading.given = [word for word in reading.given if word is reading.given[0] or not re.match(r"[A-Za-z_]\w*=", word)]
    for name in re.findall(r"(?:printf?\b[^;}\n]*?)>>?\s*\"([^\"]+)\"", program):
        if name not in ("/dev/stderr", "/dev/stdout"):
            reading.add("write", name)
    if re.search(r"(?:printf?\b[^;}\n]*?)>>?\s*[\w(]", program):
        reading.add("write", UNKNOWN)
    for name in re.findall(r"getline\b[^;}\n]*?<\s*\"([^\"]+)\"", program):
        reading.add("read", name)
    if re.search(r"\bsystem\s*\(|\|\s*(?:getline|\"|&)|\"\s*\|", program) or UNKNOWN in program:
        reading.opaque()
    if "inplace" in reading.values("i", "--include"):
        reading.renamed["r"] = "e"
    return False


def run_filter(reading: Reading) -> bool:
    """Options by which a program runs another one."""
    reading.opaque()
    return False


def archive_zip(reading: Reading) -> bool:
    """`zip name files` writes `name.zip`."""
    if reading.given and "." not in _name(reading.given[0]):
        reading.given[0] = marked(f"{reading.given[0]}.zip", reading.given[0])
    return False


_ENDINGS = {"gzip": ".gz", "pigz": ".gz", "bzip2": ".bz2", "pbzip2": ".bz2", "xz": ".xz", "lzma": ".lzma", "zstd": ".zst",
            "lz4": ".lz4", "lzip": ".lz", "compress": ".Z", "brotli": ".br"}  # fmt: skip
_UNPACKS = {"gunzip", "bunzip2", "unxz", "unlzma", "uncompress", "unzstd"}


def compress(reading: Reading) -> bool:
    """`gzip file` puts `file.gz` in the place of `file`, and `gzip -d` the other way round."""
    unpacks = reading.name in _UNPACKS or reading.has("d", "--decompress", "--uncompress")
    keeps = reading.has("k", "--keep") or reading.name in ("zstd", "lz4", "brotli", "unzstd")
    shows = reading.has("c", "--stdout", "--to-stdout", "l", "--list", "t", "--test")
    suffix = (reading.values("S", "--suffix") or [Word(_ENDINGS.get(reading.name, ""))])[0]
    for word in reading.given:
        reading.add("read", word, tree=reading.has("r", "--recursive"))
        if shows or reading.has("o", "--output"):
            continue
        if reading.has("r", "--recursive"):
            reading.add("write", word, tree=True)
            reading.add("delete", word, tree=True)
            continue
        packed = word if re.search(r"\.(?:gz|bz2|xz|lzma|zst|lz4|lz|Z|br|tgz|tbz2?|txz)$", word) else f"{word}{suffix}"
        plain = re.sub(r"\.t(?:gz|bz2?|xz)$", ".tar", re.sub(r"\.(?:gz|bz2|xz|lzma|zst|lz4|lz|Z|br)$", "", packed))
        reading.add("write", marked(plain, word) if unpacks else marked(f"{word}{suffix}", word))
        if not keeps or reading.has("--rm"):
            reading.add("delete", word)
    return True


_FILES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 1}


def find(reading: Reading) -> bool:
    """`find` lists trees; `-delete` deletes, and `-fprint` writes; the command of `-exec` is a program of its own."""
    words = [word for word in reading.words[1:] if word not in ("-H", "-L", "-P")]
    first = next((at for at, word in enumerate(words) if word[:1] in OPERATORS), len(words))
    for root in words[:first] or [Word(".")]:
        reading.add("list", root, tree=True)
    for at, word in enumerate(words[:-1]):
        if word in _FILES:
            reading.add("write", words[at + 1])
        elif word in ("-newer", "-anewer", "-cnewer", "-samefile", "-files0-from"):
            reading.add("list", words[at + 1])
    if "-delete" in words:
        for each in found_words(reading.words):
            if each.endswith(UNKNOWN):
                reading.add("delete", marked(each[:-1].rstrip("/") or "/", each), tree=True)
            else:
                reading.add("delete", each)
    return True


_FD_VALUES = ("--type", "--max-depth", "--min-depth", "--exact-depth", "--exclude", "--threads", "--color", "--extension",
              "--base-directory", "--search-path", "--size", "--owner", "--changed-within",
              "--changed-before")  # fmt: skip


def fd(reading: Reading) -> bool:
    """`fd pattern dir` lists trees; the command behind `-x` is a program of its own."""
    words = reading.words
    at = next((at for at, word in enumerate(words) if word in ("-x", "-X", "--exec", "--exec-batch")), len(words))
    options = ParsedOptions(words[:at], "dtjcSEoe", _FD_VALUES)
    for root in options.operands[1:] or options.value("--search-path", "--base-directory") or [Word(".")]:
        reading.add("list", root, tree=True)
    return True


def basename(reading: Reading) -> bool:
    """`wget url` and `curl -O url` write a file with the last part of the URL as its name."""
    if reading.has("O", "o", "--output", "--output-document", "--out") and reading.name != "curl":
        return False
    directories = reading.values("P", "d", "--directory-prefix", "--dir") if reading.name != "curl" else []
    for url in reading.given:
        name = (
            url.partition("://")[2].partition("?")[0].partition("#")[0].partition("/")[2].rstrip("/").rpartition("/")[2]
        )
        word = Word(name or "index.html")
        for directory in directories or reading.values("--output-dir"):
            word = inside(directory, word)
        reading.add("write", word)
    return False


def method(reading: Reading) -> bool:
    """`curl -X POST` sends, also without a text."""
    if any(value.upper() not in ("GET", "HEAD", "OPTIONS") for value in reading.values("X", "--request")):
        reading.renamed["h"] = "H"
    return False


def httpie(reading: Reading) -> bool:
    """`http POST url name=value file@path`: a method, a URL, and items."""
    words = list(reading.given)
    verb = str(words.pop(0)).upper() if words and re.fullmatch(r"[A-Za-z]+", words[0]) and len(words) > 1 else ""
    items = words[1:]
    for word in items:
        name, at, path = re.sub(r"(?<=[\w-]):?=@|(?<=[\w-])==@", "@", word).partition("@")
        if at and "=" not in name:
            reading.add("read", path)
            reading.sent.append(path)
        elif "=" in word and "==" not in word:
            reading.sent.append("a text")
    piped = reading.stdin is not EMPTY
    for url in words[:1]:
        if reading.sent or piped or verb in ("POST", "PUT", "PATCH", "DELETE"):
            reading.sends(url)
        else:
            reading.gets(url)
    return True


def mirror(reading: Reading) -> bool:
    """`rsync --delete` deletes files of the target."""
    for word in reading.given[-1:]:
        if ":" not in word.partition("/")[0]:
            reading.add("delete", word, tree=True)
    return False


def moves(reading: Reading) -> bool:
    """`rsync --remove-source-files` deletes the sources."""
    for word in reading.given[:-1]:
        if ":" not in word.partition("/")[0]:
            reading.add("delete", word, tree=True)
    return False


def keygen(reading: Reading) -> bool:
    """`ssh-keygen -f key` writes a pair of keys, or shows one."""
    files = reading.values("f")
    shows = reading.has("l", "y", "F", "B", "L", "e", "i", "E")
    for file in files or ([] if shows or reading.has("R", "A", "H") else [Word("~/.ssh/id_ed25519")]):
        reading.add("read", file, manner="used")
        if not shows:
            reading.add("write", file)
            reading.add("write", f"{file}.pub")
    return True


def lookup(reading: Reading) -> bool:
    """`dig name` asks for a name; one that is made of other texts tells them to the name's server."""
    for word in reading.given:
        if word.startswith(("@", "+")):
            continue
        reading.add("out" if not word.known else "in", word.strip(UNKNOWN + ".").lower() or UNKNOWN, what="a name")
    return True


def dockerrun(reading: Reading) -> bool:
    """`docker run -v dir:/x` gives a container a directory, which it may write; `--mount` and `--env-file` too."""
    options = ParsedOptions(reading.words, "veupwhlmcEa", _RUN_LONG, stop_early=True)
    for word in options.value("v", "--volume"):
        path, colon, rest = word.partition(":")
        if (colon and "/" in path) or path in (".", "~"):
            path_word = marked(path, word)
            reading.add("read", path_word, tree=True, manner="used")
            if not rest.endswith(":ro"):
                reading.add("write", path_word, tree=True, manner="used")
    for word in options.value("--mount"):
        parts = dict(part.partition("=")[::2] for part in word.split(","))
        source = parts.get("src") or parts.get("source") or ""
        if "/" in source:
            reading.add("read", source, tree=True, manner="used")
            if "readonly" not in parts and "ro" not in parts:
                reading.add("write", source, tree=True, manner="used")
    for word in options.value("--env-file", "--cidfile"):
        reading.add("read", word, manner="used")
    if options.has("--privileged"):
        reading.add("gain", "root")
    return True


_RUN_LONG = ("--name", "--volume", "--env", "--env-file", "--publish", "--workdir", "--user", "--network", "--entrypoint",
             "--mount", "--platform", "--memory", "--cpus", "--label", "--hostname", "--add-host", "--gpus", "--restart",
             "--shm-size", "--pull", "--cidfile", "--cap-add", "--device", "--pid", "--ipc")  # fmt: skip
_ASKS = lazy_pattern(
    r"\s*(?:select|show|explain|describe|with|\\[dl]|pragma|get|hget|keys|scan|ttl|llen|info|ping|use)\b", re.I
)
# `\\copy t to 'file'`, `\\o file`, `.output file`.
_DATABASE_FILES = lazy_pattern(
    r"(?:^|;|\n)\s*(?:\\copy\b[^;\n]*?\s|[.\\](?=[a-z]))(to|from|o|out|output|once|backup|save|w|i|ir|read|restore|import)\s+"
    r"('[^']+'|\"[^\"]+\"|[^\s|;'\"]+)",
    re.I,
)
_DATABASE_WRITES = {"to", "o", "out", "output", "once", "backup", "save", "w"}
_LOSES = lazy_pattern(
    r"\b(drop|truncate|delete\s+from|flushall|flushdb|dropDatabase|deleteMany|\.drop\(|remove\()", re.I
)


def database(reading: Reading) -> bool:
    """`psql -c 'DROP TABLE …'`: a query goes to a server, and may lose data."""
    texts = [*reading.values("c", "e", "--command", "--eval", "--execute"), *reading.given]
    text = " ; ".join(texts) + (reading.stdin.text or "")
    host = (reading.values("h", "--host") or [Word("")])[0]
    urls = [word for word in [*reading.given, *reading.values("d", "--dbname", "u")] if "://" in word]
    place = urls[0] if urls else host or Word("localhost")
    for verb, name in _DATABASE_FILES.findall(text):
        reading.add("write" if verb in _DATABASE_WRITES else "read", name.strip("'\""))
    asks = bool(texts) and all(_ASKS.match(each) or each in urls or " " not in each for each in texts)
    if asks:
        reading.gets(place)
    else:
        reading.sends(place, "a query")
    if _LOSES.search(text):
        reading.add("discard", "rows or tables of a database")
    if reading.values("f", "--file") or (not text.strip() and reading.stdin is not EMPTY):
        reading.opaque()
    return True


def sqlite(reading: Reading) -> bool:
    """`sqlite3 a.db '.output file'` writes a file."""
    text = " ; ".join(reading.given[1:]) + (reading.stdin.text or "")
    for verb, name in _DATABASE_FILES.findall(text):
        reading.add("write" if verb in _DATABASE_WRITES else "read", name.strip("'\""))
    for name in re.findall(r"(?:\battach(?:\s+database)?|\bvacuum\s+into)\s+'([^']+)'", text, re.I):
        reading.add("write", name)
    return False


def kill(reading: Reading) -> bool:
    """`kill -9 12`: the signal may look like an option."""
    words = [word for word in reading.words[1:] if not re.fullmatch(r"-(?:\d{1,2}|(?:SIG)?[A-Z]\w*|[ns])", word)]
    for word in words:
        if (word[:1] != "-" or re.fullmatch(r"-\d+", word)) and word not in reading.values("s", "n", "--signal"):
            reading.add("kill", word)
    return True


def nohup(reading: Reading) -> bool:
    """`nohup` writes `nohup.out`, if its output goes to a terminal; a tool's output does not."""
    return True


def mount(reading: Reading) -> bool:
    """`mount` alone lists the mounts."""
    if reading.given:
        reading.add("gain", "root")
        reading.opaque()
    return True


def compiler(reading: Reading) -> bool:
    """`gcc -c a.c` writes `a.o`; without `-o`, a program is `a.out`."""
    sources = [word for word in reading.given if re.search(r"\.(?:c|cc|cpp|cxx|C|m|s|S|f|f90|rs)$", word)]
    shows = reading.has("E", "--version") or any(word in ("-fsyntax-only", "-E", "-M", "-MM") for word in reading.words)
    for at, word in enumerate(reading.words[:-1]):
        if word == "-MF":
            reading.add("write", reading.words[at + 1])
    if any(word in ("-MD", "-MMD") for word in reading.words):
        reading.add("write", _anything(""))
    if reading.has("o") or shows or not reading.given or reading.name in ("ld", "lld"):
        if reading.name in ("ld", "lld") and not reading.has("o"):
            reading.add("write", "a.out")
        return False
    suffix = ".o" if reading.has("c") else ".s" if reading.has("S") else ""
    for word in sources:
        stem = _name(word).rpartition(".")[0]
        if reading.name == "rustc":
            reading.add("write", stem)
            reading.add("write", f"lib{stem}.rlib")
        elif suffix:
            reading.add("write", f"{stem}{suffix}")
    if not suffix and reading.name != "rustc":
        reading.add("write", "a.out")
    return False


def go_build(reading: Reading) -> bool:
    """`go build` writes a program with the name of the package."""
    if not reading.has("--o"):
        names = [_name(word).removesuffix(".go") for word in reading.given if word not in (".", "./...")]
        for name in names or [_anything("")]:
            reading.add("write", name)
    return True


# The commands of a line editor that write: `w`, `wq`, `x`, also behind addresses, and the file that `w` names.
_SAVES = lazy_pattern(r"(?:%|[\d.$,]+)?(?:w|sav(?:eas)?|up(?:date)?)(?:q|!|q!)?[ \t]+(\S+)")


def saves(reading: Reading) -> bool:
    """`vim -c 'w file'`, `ed` with `w file` on stdin: a script of an editor names another file."""
    typed = [word[1:] for word in reading.given if word.startswith("+")]
    reading.given = [word for word in reading.given if not word.startswith("+")]
    for script in (*reading.values("c", "--cmd"), *typed, reading.stdin.text or ""):
        for piece in re.split(r"[\n|;]", script):
            if found := _SAVES.fullmatch(piece.strip(" \t:")):
                reading.add("write", found[1])
    return False


def module(reading: Reading) -> bool:
    """`python -m json.tool a b`, `-m venv`, `-m zipfile`, `-m tarfile`: modules of the standard library."""
    words = reading.words
    at = next((at for at, word in enumerate(words[:-1]) if re.fullmatch(r"-[bBdEiIOPqRsSuvx]*m", word)), None)
    if at is None:
        return False
    name, rest = str(words[at + 1]), words[at + 2 :]
    operands = [word for word in rest if not word.startswith("-")]
    if name == "json.tool":
        for kind, word in zip(("read", "write"), operands, strict=False):
            reading.add("read" if kind == "read" else "write", word)
    elif name in ("venv", "virtualenv"):
        for word in operands:
            reading.add("write", word, tree=True)
    elif name in ("zipfile", "tarfile"):
        makes, unpacks = {"-c", "--create"} & set(rest), {"-e", "--extract"} & set(rest)
        for number, word in enumerate(operands):
            if number == 0:
                reading.add("write" if makes else "read", word)
            else:
                reading.add("write" if unpacks else "read", word, tree=True)
        if unpacks and len(operands) == 1:
            reading.add("write", ".", tree=True)
    elif name in (
        "compileall",
        "py_compile",
        "tokenize",
        "ast",
        "dis",
        "this",
        "calendar",
        "platform",
        "site",
        "sysconfig",
    ):
        for word in operands:
            reading.add("read", word, tree=True)
    elif name == "http.server":
        reading.add("out", UNKNOWN, what="the files of the directory")
    else:
        reading.opaque()
    return True


FUNCTIONS: dict[str, Function] = {
    **git_verbs.FUNCTIONS,
    **{
        each.__name__: each
        for each in (split, mktemp, chmod, patch, sed, awk, compress, find, fd, basename, method, httpie)
    },
    **{
        each.__name__: each
        for each in (
            mirror,
            moves,
            keygen,
            lookup,
            dockerrun,
            database,
            kill,
            nohup,
            mount,
            compiler,
            module,
            saves,
            sqlite,
        )
    },
    "filter": run_filter,
    "zip": archive_zip,
    "gobuild": go_build,
}
