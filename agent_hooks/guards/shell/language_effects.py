"""The effects of code in JavaScript, Perl, Ruby, PHP and other languages, by a list of calls.

Code in which every call is known has the effects of those calls.  All other code is opaque, too.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.programs.reading import host_of
from agent_hooks.guards.shell.words import Word
from agent_hooks.values.effects import Access

_QUOTED = r"(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`([^`$]*)`|qw?\(([^)]*)\)|q\{([^}]*)\})"
# Calls with the effects on the files that their first and second arguments name; `+` marks a whole tree.
_CALLS_TEXT = """
writeFile writeFileSync appendFile appendFileSync createWriteStream truncate truncateSync mkdir mkdirSync
 mkdtempSync mkdir_p makedirs outputFileSync outputFile writeJsonSync writeJson ensureFileSync ensureDirSync
 file_put_contents touch utimes utimesSync chmod chmodSync chown chownSync make_path mkpath spurt writeTextFile
 writeTextFileSync File.write IO.write Bun.write : write
unlink unlinkSync File.delete File.unlink os.remove rmdir rmdirSync Deno.remove Deno.removeSync FileUtils.rm :
 delete
rm rmSync rm_r rm_rf rmtree remove_tree rimraf emptyDirSync removeSync remove_dir_all : delete+
rename renameSync File.rename os.rename move moveSync mv FileUtils.mv : delete+ write+
copyFile copyFileSync copy copySync cp cpSync cp_r copy_file FileUtils.cp : read+ write+
symlink symlinkSync link linkSync ln ln_s File.symlink : list write
readFile readFileSync createReadStream file_get_contents readfile File.read File.readlines IO.read readTextFile
 readTextFileSync slurp file readJsonSync IO.readlines File.foreach Bun.file : read
readdir readdirSync stat statSync lstatSync existsSync access accessSync opendir scandir Dir.glob Dir.entries
 Dir.children is_file is_dir file_exists File.exist? File.file? File.directory? File.size filesize realpathSync :
 list
"""
_CALLS = {
    name: roles.split()
    for names, _, roles in (line.partition(" : ") for line in _CALLS_TEXT.strip().replace("\n ", " ").splitlines())
    for name in names.split()
}
_CALL = lazy_pattern(
    r"(?<![\w$>])((?:[A-Za-z_$][\w$]*(?:\.|::|->|\?\.))*[A-Za-z_$][\w$]*[?!]?)[ \t]*(\(|(?=[ \t]*[\"']))"
)
_ARGUMENTS = lazy_pattern(rf"\s*(?:{_QUOTED})?(\s*,\s*(?:{_QUOTED})?)?", re.DOTALL)
# `open(F, '>', 'file')`, `open(F, ">file")`, `File.open('file', 'w')`, `fopen('file', 'w')`
_OPENS = lazy_pattern(r"\b(?:File\.|IO\.|io\.|fs\.)?(?:f?open|openSync)\s*\(?\s*([^;\n]*)")
_MODE = lazy_pattern(r"[rwax]?b?\+?t?|>>?|\+?<|<:\S*|>>?:\S*")
_URL = lazy_pattern(r"\b(?:https?|ftp|wss?)://[^\s\"'`)\\]+")
_NETWORK = lazy_pattern(
    r"\b(?:fetch|axios|got|request|XMLHttpRequest|WebSocket|https?\.(?:get|request)|net\.(?:connect|createConnection|Socket)|"
    r"Net::HTTP|TCPSocket|URI\.open|HTTParty|Faraday|LWP|IO::Socket|HTTP::Tiny|curl_exec|fsockopen|stream_socket_client|dgram)\b"
)
_SENDS = lazy_pattern(r"\b(?:POST|PUT|PATCH|DELETE|post|put|patch|send|write|body)\b")
_RUNS = lazy_pattern(
    r"\b(?:eval|exec\w*|system|spawn\w*|popen\w*|passthru|shell_exec|proc_open|fork|Function|vm\.\w+|child_process|qx|"
    r"do\s+shell\s+script|instance_eval|class_eval|const_get|create_function|assert|include(?:_once)?|load|autoload)\b|`[^`]*`"
)
_STARTS = lazy_pattern(
    r"\b(?:system|exec\w*|spawn\w*|popen\w*|shell_exec|passthru)\s*\(?\s*[\[\s]*[\"'`](?![^\"'`]*[$#])"
)
_MODULES = lazy_pattern(r"\b(?:require(?:_relative)?|import|from|use)\b[\s(]*[\"']?(?:node:)?([\w@./:-]+)")
_KNOWN_MODULES_TEXT = """
fs fs/promises path os util url querystring crypto assert events stream zlib readline buffer timers string_decoder
punycode perf_hooks process http https net json yaml csv set date time pathname fileutils optparse digest erb uri
net/http open-uri securerandom tempfile stringio bigdecimal pp strict warnings utf8 feature File::Path File::Copy
File::Find File::Basename File::Spec JSON::PP Data::Dumper List::Util POSIX Cwd Time::HiRes Encode MIME::Base64
Getopt::Long bytes integer lib child_process v5 vars constant parent base Digest::MD5 Digest::SHA Scalar::Util
Storable Text::Wrap File::Temp File::Slurp
"""
_KNOWN_MODULES = frozenset(_KNOWN_MODULES_TEXT.split())


def record_code(command: Command, name: str, text: str) -> None:
    """Record the effects of the calls in code; `name`: the language."""
    opaque = bool(_RUNS.search(_STARTS.sub("", text))) or any(
        each not in _KNOWN_MODULES for each in _MODULES.findall(text)
    )
    for match in _CALL.finditer(text):
        roles = _roles(match[1])
        if roles is not None:
            _record(command, roles, text[match.end() :])
    for match in _OPENS.finditer(text):
        _opened(command, match[1])
    if _NETWORK.search(text):
        hosts: list[Word | None] = [host_of(url) for url in _URL.findall(text)]
        for host in hosts or [None]:
            command.transfers("out" if _SENDS.search(text) else "in", host, f"{name} code")
    if opaque:
        command.unknown("opaque", f"{name} code with calls that are not known")


def _roles(called: str) -> list[str] | None:
    parts = re.split(r"\?\.|->|\.|::", called)
    for count in (2, 1):
        if (roles := _CALLS.get(".".join(parts[-count:]))) is not None and len(parts) >= count:
            return roles
    return None


def _record(command: Command, roles: list[str], rest: str) -> None:
    found = _ARGUMENTS.match(rest)
    groups = found.groups() if found else ()
    first = next((each for each in groups[:5] if each is not None), None)
    second = next((each for each in groups[6:11] if each is not None), None)
    for role, path in zip(roles, (first, second), strict=False):
        access: Access = role.rstrip("+")  # type: ignore[assignment]  # a word of the table above
        if path is None and access in ("list", "read"):
            continue
        command.effect(access, _word(path), tree=role.endswith("+"))


def _opened(command: Command, arguments: str) -> None:
    """Record a file that is opened: `open("file", "w")`, or in Perl `open(F, ">", "file")` and `open(F, ">file")`."""
    texts = ["".join(groups) for groups in re.findall(_QUOTED, arguments)]
    if not texts:
        return
    mode, path = (texts[0], texts[1]) if len(texts) > 1 else ("", texts[0])
    if arguments.lstrip(" (").startswith(("'", '"', "`")):
        mode, path = texts[1] if len(texts) > 1 else "", texts[0]
    elif len(texts) == 1 and (found := re.match(r"\s*(\+?[<>]{1,2})\s*(.*)", path, re.DOTALL)):
        mode, path = found[1], found[2]
    elif len(texts) == 1 and _MODE.fullmatch(path):
        # The path is a variable, and the text is the mode.
        mode, path = path, ""
    if _MODE.fullmatch(mode) or not mode:
        command.effect("write" if re.search(r"[wax+>]", mode) else "read", _word(path))


def _word(path: str | None) -> Word:
    if path is None or not path:
        return Word(UNKNOWN)
    # A variable in a text.
    return Word(re.sub(r"\$\{?\w+\}?|#\{[^}]*\}", UNKNOWN, path))
