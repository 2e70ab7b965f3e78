"""Code of any language that loses files or data, prints a secret, runs unseen text, or gives a shell away.

A language that nobody named has the same few things: a call that opens a socket, one that runs a command, one that walks
over files, one that prints.  Each judgement wants two of them together, so that one alone stays silent.

1. A socket, and a command or code that is no constant: the other end decides what is run.
2. Decoded text, or text from an address, that is run.
3. A walk over the files of a directory, and a removal of each; an ending that a program makes again narrows the walk.
4. A call that prints, and a secret of the environment, of a file of variables, or of a framework's settings.  A test of
   its length or its presence prints no secret, and a request that it signs is its use.
5. A statement of SQL that loses data (`sql`), and a call that publishes a package.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.listings import all_lost, chooses
from agent_hooks.guards.shell.origins import names_secret
from agent_hooks.guards.shell.searches import lost_root
from agent_hooks.guards.shell.service_code import uses_own_data
from agent_hooks.guards.shell.sql import in_code
from agent_hooks.guards.shell.words import Word

SHOWN = "prints a secret, which the model and its records would hold"
_SOCKET = lazy_pattern(
    r"TCPSocket|UNIXSocket|TCPServer|\bSocket\.(?:tcp|new|open)|fsockopen|stream_socket_client|socket_create|"
    r"\bsocket\.(?:socket|create_connection|tcp|connect)|[\"']socket[\"']\)\.(?:tcp|connect)|[\"']net[\"']\)?[.;)]|\bnet\.(?:connect|createConnection|Socket|Dial|createServer)|"
    r"\btls\.connect|gen_tcp[:.](?:connect|listen)|TcpStream|TcpClient|Net\.Sockets|\bnew\s+(?:java\.net\.)?(?:Server)?Socket\s*\(|"
    r"IO::Socket|IO\.Socket|socketConnection|\busing\s+Sockets|Sockets\.connect|Deno\.(?:connect|listen)|Bun\.(?:connect|listen)|"
    r"new\s+WebSocket|\bsocket\s*\(\s*(?:AF_|PF_)|/inet/tcp|InetSocketAddress|NWConnection|websockets?\.connect|asyncio\.open_connection",
    re.IGNORECASE,
)
# A call that runs a command or evaluates code.
_CALL = (
    r"(?:\bsystem2?|\bshell_exec|\bpassthru|\bpopen\d?e?|\bproc_open|(?:child_process[\"']\)|\bcp)\.exec\w*|(?<![.\w])exec\w*|"
    r"\bexec(?:Sync|FileSync)|\bspawn(?:Sync|_shell)?|\bos[:.]cmd|\bos\.execute|\bio\.popen|\bSystem\.(?:cmd|shell)|\bOpen3\.\w+|"
    r"\bIO\.popen|\bgetRuntime\(\)\.exec|\bProcessBuilder|\bProcess\.(?:Start|run|spawn)|\bnew\s+Deno\.Command|\bDeno\.run|\bsubprocess\.\w+|"
    r"\bos\.(?:system|popen)|\bcallCommand|\bEval\.me|\b\w*eval(?!uate\b)\w*|\bInvoke-Expression|\biex|\bloadstring|(?<![.\w])load|"
    r"\bexec\.Command|\bCommand::new|\bcreateProcess|\bshell\.(?:run|exec)|\bqx|\bsh\.exec)"
)
_RUNS_VARIABLE = lazy_pattern(
    rf"{_CALL}[!?]?\s*[(\s]\s*\(?(?:my\s+)?[$&@.]?(?!(?:import|function|true|false|null|None|new)\b)[A-Za-z_][\w.]*|"
    r"\blaunchPath\s*=\s*\w|`[^`\n]*[$#][\w{][^`\n]*`|\w\.execute\(\)|\bqx[{(/]\s*\$",
)
_SHELL_WORD = lazy_pattern(
    r"[\"'`(\s](?:/(?:usr/)?bin/)?(?:ba|z|da|k)?sh[\"'`](?!\s*:)|[\"'`]cmd(?:\.exe)?[\"'`]|[\"'`]powershell|`(?:ba)?sh -c"
)
_DECODES = (
    r"(?:decode_?base64|base64_?decode|b64decode|decode64!?|urlsafe_b64decode|FromBase64String|\batob\s*\(|Buffer\.from\s*\([^)]*,\s*[\"'](?:base64|hex)|"
    r"\.pack\(|unpack1?\(\s*[\"']m|pack\(\s*[\"']H|hex2bin|fromhex|unhexlify|gzinflate|str_rot13|rot13|unb64|b64dec|base64::|base64\.decode|decodeBase64|"
    r"getDecoder\(\)\.decode|decodeHex)"
)
_RUNS_DECODED = lazy_pattern(
    rf"{_CALL}[!?]?\s*[(\s][^;\n]{{0,120}}?{_DECODES}|{_DECODES}[^;\n]{{0,80}}?\.execute\(\)|"
    # A variable that holds decoded text is run.
    rf"\b(\w{{1,40}})\s*(?:=|<-)\s*[^;\n=]{{0,60}}?{_DECODES}[^\n;]*[;\n](?s:.{{0,160}}?){_CALL}\s*[(\s]\s*\$?\1\b",
    re.IGNORECASE,
)
# An evaluator of another language than the one that runs, and an address.
_EVALUATOR = lazy_pattern(
    r"GroovyShell|\bEval\.(?:me|x+y?z?)\b|ScriptEngine|CSharpScript|\bCode\.(?:eval|compile)_\w+|\[scriptblock\]::Create|"
    r"\berl_(?:eval|parse)\b|\bcompile-string\b|\beval_string\b|\bload_string\b|InteractiveInterpreter|\bToolBox\b"
)
_ADDRESS = lazy_pattern(r"(?:https?|ftp)://(?!localhost|127\.|0\.0\.0\.0|\[::1\])[\w$#{]", re.IGNORECASE)
_WALK = lazy_pattern(
    r"\b(?:Recursive)?DirectoryIterator|\bscandir|\bglob(?:Sync|\.glob)?\b|\bnew\s+(?:Bun\.)?Glob\b|filelib:wildcard|filelib:fold_files|Path\.wildcard|"
    r"\bFiles\.(?:walk|list|find|newDirectoryStream|walkFileTree)|\beachFile(?:Recurse|Match)?\b|\beachDirRecurse|\btraverse\b|\bwalk(?:TopDown|BottomUp|Sync|dir|_?files)?\b|"
    r"\blistFiles\b|\bEnumerate(?:Files|FileSystemEntries)|\bGetFile(?:s|SystemEntries|SystemInfos)\b|filepath\.Walk(?:Dir)?|os\.ReadDir|ioutil\.ReadDir|"
    r"Deno\.readDir(?:Sync)?|expandGlob(?:Sync)?|\bread_dir|\bWalkDir\b|\blist[._]files|\bdir_ls|\bdir\s*\((?!\s*\))|\breaddir(?:Sync)?|(?-i:\bDir\b\s*(?:\.\w+|\[))|\bFind\.find|"
    r"\bfind(?:depth)?\s*\(|lfs\.dir|enumerator\(at|contentsOfDirectory|\bos\.(?:walk|list)\b|\bfile-seq\b|\bdirectory-files\b|\bdirectory\b\s*\(|\bgetDirectoryContents|\blistDirectory",
    re.IGNORECASE,
)
_CONSTANT = r"(?!\s*\(?\s*(?:\"[^\"$`{#]*\"|'[^']*')\s*(?:[,);]|$))"
_REMOVES = lazy_pattern(
    rf"(?:\bunlink(?:Sync)?|\brmSync|\bfs\.(?:rm|unlink)(?:Sync)?|\bFile\.(?:rm!?|delete|unlink|Delete)|\bfile:delete|\bfile_delete|\bos\.remove(?:\.all)?|\bos\.(?:unlink|Remove)|"
    rf"Deno\.remove(?:Sync)?|Files\.delete(?:IfExists)?|\bfile\.remove|\bremove_file|\bremoveFile|\bdeleteFile|\bdelete-file|io/delete-file|FileUtils\.(?:rm\w*|remove\w*)|"
    rf"(?<![.\w])rm\s*\((?!\s*list)){_CONSTANT}|\.[dD]elete(?:IfExists|Recursively)?!?(?:\(\)|\b(?!\())|\.unlink(?:Sync)?\(\)|\bfs/delete[\w-]*|:delete\b|\bunlink\s+(?:if|for|while)\b"
)
_QUOTED = lazy_pattern(
    r"(require\s*\(\s*|import\s+|from\s+|use\s+)?(?:\"([^\"\n]{0,200})\"|'([^'\n]{0,200})'|`([^`\n]{0,200})`)"
)
_ENDING = lazy_pattern(r"(?:\*|\\|[\"'`])\.(\w{1,9})\$?[\"'`]")
_NO_FILE = lazy_pattern(r"temp(?:dir|file)|mkd?s?temp|tmpdir|gettempdir|TMPDIR|temp_dir", re.IGNORECASE)
# A text with a letter in front of its wildcards, or a root.
_PATH = lazy_pattern(r"[./~@+{},-]*\w[\w./~*?{},@+-]*|\.{1,2}/?|[/~*]|\*\*/\*")
_PRINT = (
    r"(?<![\w.-])(?:print\w*!?|pp?|puts|echo|say|cat|message|write\w*!?|dump|dd|dbg!?|disp|display|format|prn?|putStr\w*|stringify|var_dump|"
    r"Write-(?:Output|Host)|(?:console|fmt|IO|io|Console|STDOUT|stdout|logger|log|Logger|process\.stdout|System\.out|sys\.stdout|std)[.:](?!get)\w+[!?]?)(?![\w.])"
)
_ENVIRONMENT = (
    r"(?:environ(?:\.get\(|\[)\s*[\"']|process\.env(?:\.|\[[\"'])|getenv!?\s*\(?\s*[\"']|System[./]get_?env\s*\(?\s*[\"']|fetch_env!\(\s*[\"']|"
    r"Getenv\(\s*[\"']|LookupEnv\(\s*[\"']|env::var\(\s*[\"']|env!\(\s*[\"']|GetEnvironmentVariable\(\s*[\"']|\$\{?env:|\bENV(?:\.fetch)?\s*[\[({]\s*[\"']|\$ENV\{[\"']?|"
    r"\bsys\.env\(\s*[\"']|Deno\.env\.get\(\s*[\"']|Bun\.env\.|environment\[\s*[\"']|\$_(?:ENV|SERVER)\[\s*[\"']|\bget(?:-environment-variable|env)\s+[\"']|"
    r"lookupEnv\s+[\"']|getEnv\s+[\"'])(\w+)"
)
_PRINTED = lazy_pattern(rf"{_PRINT}([^\n;]{{0,160}}?){_ENVIRONMENT}([^\n;]{{0,40}})")
# In front of a secret: a call whose value tells little of it, or a request.
_MEASURES = lazy_pattern(
    r"(?:\b(?:len|bool|boolean|nchar|nzchar|length|isset|empty|strlen|size|haskey|defined|sha\d*\w*|md5\w*|hash\w*|typeof|type|not|is_nil|is_null|any|exists|byte_size|str\.len|count)|!!?)\s*[(\s]\s*(?:[\w.]+\.)?$|"
    r"\b(?:fetch|requests|httpx|axios|headers?|authorization|bearer|client|connect|login|urlopen|request|session|Net::HTTP|HTTP\w*|Octokit|query|execute)\b|\b(?:keys|in)\s*\(",
    re.IGNORECASE,
)
_COMPARES = lazy_pattern(
    r"[\"')\]}]*\s*(?:is\b|[!=]=|\?(?![?.])|\.(?:length|size|present|nil|empty|blank|isEmpty|nonEmpty|isDefined|key|slice\(0|substring\(0|substr\(0|\[)|\[:?\d|\[0|&&|and\b|\|>\s*(?:is_nil|byte_size|String\.length))"
)
_PRINTED_ALL = lazy_pattern(
    rf"{_PRINT}([^\n;]{{0,60}}?)(?:Sys\.getenv\(\)|System\.(?:getenv|get_env)\(\)|os\.Environ\(\)|Deno\.env\.toObject\(\)|env::vars\(|os:getenv\(\)|"
    r"\bsys\.env\b(?![.(\[])|\bBun\.env\b(?![.\[])|\.environment\b(?![\w.(\[])|\bENV(?:\.(?:to_h|to_a|inspect|"
    r"sort)\b|(?![\w.\[({/])))|(?:^|[;\n])[ \t]*Sys\.getenv\(\)\s*(?:$|[;\n])"
)
_SETTING = lazy_pattern(
    rf"{_PRINT}([^\n;]{{0,120}}?)(?:\b(?:settings|config|conf|configuration|current_app|application|app|get_env|fetch_env!?|Rails|secrets)\b[^\n;]{{0,60}}?"
    r"(?<![A-Za-z])(?:secret\w*|passw\w+|\w*api_?key\w*|private_?key|\w*access_?token|\w*auth_?token|credentials)\b|\bcredentials\.(?:config|to_h|read|\w+[\[!]|\w+$))([^\n;]{0,40})",
    re.IGNORECASE,
)
_FILE_OF_VARIABLES = lazy_pattern(
    rf"(?s)\A(?=.*{_PRINT})(?=.*(?:dotenv_values\(|\bDotenv\.(?:parse|load)\b|\bdotenv\b.{{0,60}}\.parsed|\bdotenv[\"']?\)?\.parse\(|\bgodotenv\.Read|Dotenv::create\w+))"
    r"(?!.*\.env\.(?:example|sample|template|dist|test))(?!.*(?:\.keys\b|Object\.keys|\blist\(|\blen\())"
)
_PUBLISHES = lazy_pattern(
    r"\bdevtools::(?:release|submit_cran)\b|\bsubmit_cran\s*\(|\brsconnect::(?:deploy|write)\w*|\bpkgdown::deploy\w*|\.push_to_hub\s*\(|\bupload_(?:folder|large_folder)\s*\(|"
    r"\busing\s+(?:LocalRegistry|Registrator)\b.{0,200}\bregister\s*\(|\b(?:npm|libnpmpublish)\.publish\s*\(|\b(?:create_release|createRelease)\s*\(|\btwine\.commands\.upload",
    re.DOTALL,
)


# Quick tests: most code holds none of these words.
_CONNECTS = ("sock", "tcp", "connect", "listen", "inet", "net.", "net'", 'net"')
_CODECS = ("64", "hex", "pack", "rot13", "inflate")
_SECRETS = ("env", "secret", "passw", "token", "key", "credential")


def judge_code(command: Command, name: str, source: str, *, on_test_data: bool = False) -> None:
    """Judge code of a language by its calls, whatever the language is; `on_test_data`: its databases hold test data."""
    if len(source) < 8:
        return
    lower = source.lower()
    if (
        any(word in lower for word in _CONNECTS)
        and _SOCKET.search(source)
        and (_SHELL_WORD.search(source) or _RUNS_VARIABLE.search(source))
    ):
        command.report("shell-on-socket", "runs what a network connection sends", name)
    if any(word in lower for word in _CODECS) and _RUNS_DECODED.search(source):
        command.report("encoded-exec", "decoded text is run unseen", name)
    if _EVALUATOR.search(source) and _ADDRESS.search(source):
        command.report("download-exec", "downloaded text is run unseen", name)
    if in_code(source) and not (on_test_data or uses_own_data(source)):
        command.report("sql", "drops or empties data")
    if _PUBLISHES.search(source):
        command.report("publish", "publishes something, which others get from then on")
    if any(word in lower for word in _SECRETS) and prints_secret(source):
        command.report("print-secret", SHOWN)
    if not name.startswith(("python", "pypy")):
        _walks(command, source)


def prints_secret(source: str) -> bool:
    """Return whether code prints a secret of the environment, of a file of variables, or of a framework's settings."""
    for found in _PRINTED.finditer(source):
        if names_secret(found[2]) and not (_MEASURES.search(found[1]) or _COMPARES.match(found[3])):
            return True
    if (all_of_it := _PRINTED_ALL.search(source)) and not _MEASURES.search(all_of_it[1] or ""):
        return True
    for found in _SETTING.finditer(source):
        if not (_MEASURES.search(found[1]) or _COMPARES.match(found[2])):
            return True
    return "env" in source and bool(_FILE_OF_VARIABLES.search(source))


def _walks(command: Command, source: str) -> None:
    """Report code that removes every file of a directory, or every source file of a language."""
    if not _REMOVES.search(source):
        return
    endings = set(_ENDING.findall(source))
    if endings and not all_lost(f"*.{ending}" for ending in endings):
        return
    if not endings and chooses(source):
        return
    for found in _WALK.finditer(source):
        place = source[max(0, found.start() - 60) : found.end() + 120]
        if _NO_FILE.search(place):
            continue
        given = [next(filter(None, match.groups()[1:]), "") for match in _QUOTED.finditer(place) if not match[1]]
        paths = [path for path in given if _PATH.fullmatch(path)]
        root = Word(re.sub(r"/?[^/]*[*?{].*$", "", paths[0]) or "." if paths else ".")
        if lost_root(command, [root], named=False, narrowed=False) is not None:
            command.report("find-delete", "removes all files that are found", wall=command.is_machine(root))
            return
