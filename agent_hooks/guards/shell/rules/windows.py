"""Rules about Windows: PowerShell, `cmd`, and the programs of the system."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.code_losses import SHOWN, judge_code
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.listings import all_lost
from agent_hooks.guards.shell.origins import names_secret
from agent_hooks.guards.shell.rules.outside import Loss, losses, only_tries
from agent_hooks.guards.shell.searches import lost_root
from agent_hooks.guards.shell.words import Word

_WHY = "changes or destroys a part of Windows"
_ROOT = (
    r"(?:[a-z]:\\?(?:\*|users|windows|program files[^\\]*|programdata)?\\?(?:\*\.?\*?)?|[\\/]\*?|"
    r"~[\\/]?\*?|\.|\.\\?\*|\*(?:\.\*)?|\$home|\$env:\w+|%\w+%)"
)
_SHELL = (
    r"\b(?:format-volume|clear-disk|initialize-disk|remove-partition|clear-content\s+\S*\*|stop-computer|"
    r"restart-computer|clear-recyclebin|"
    r"clear-eventlog|remove-eventlog|disable-computerrestore|set-mppreference|add-mppreference|"
    r"disable-netadapter|remove-netadapter|"
    r"set-executionpolicy|disable-netfirewallrule|set-netfirewallprofile|new-netfirewallrule|remove-ad\w+|"
    r"set-ad\w+|new-localuser|"
    r"add-localgroupmember|remove-localuser|disable-localuser|set-localuser|register-scheduledtask|"
    r"unregister-scheduledtask|new-service|"
    r"remove-service|stop-service\s+(?:-name\s+)?(?:windefend|wuauserv|eventlog|mpssvc)|uninstall-\w+|"
    r"remove-appxpackage|remove-windowsfeature|"
    r"disable-windowsoptionalfeature|disable-bitlocker|reset-computermachinepassword|remove-vm\w*|stop-vm|"
    r"remove-az\w*|remove-ec2\w*|"
    r"remove-s3\w*|remove-gc\w*|remove-mailbox|remove-msoluser|remove-mg\w*|invoke-wmimethod|"
    r"invoke-cimmethod|invoke-mimikatz|"
    r"out-minidump|get-credential|convertfrom-securestring|send-mailmessage|remove-item(?:property)?\s+[^|"
    r";]*hk(?:lm|cu|cr):|"
    r"set-itemproperty\s+[^|;]*hk(?:lm|cu):.*\\run\b|new-itemproperty\s+[^|;]*\\run\b|"
    r"add-type\b.*dllimport|\[system\.io\.(?:file|directory)\]::delete)"
)
_TREES = lazy_pattern(
    rf"\b(?:remove-item|ri|rmdir|rd|del|erase|rm)\b(?=[^|;]*\s-r\w*)[^|;]*?\s['\"]?{_ROOT}['\"]?(?=\s|$|;|\|)|"
    rf"\bget-childitem\b(?![^|]*\s-(?:include|filter)\s+(?!\*))(?=[^|]*-r)[^|]*\s['\"]?{_ROOT}['\"]?\s[^|]*\|\s*(?:%\s*"
    rf"\{{\s*)?remove-item|\b(?:get-process|gps|ps)\s*\|\s*stop-process",
    re.IGNORECASE,
)
_LOADS = lazy_pattern(
    r"(?:downloadstring|downloadfile|invoke-webrequest|invoke-restmethod|\biwr\b|\birm\b|net\.webclient|"
    r"start-bitstransfer).*(?:\biex\b|invoke-expression|start-process|&\s*\S+\.(?:exe|ps1))"
    r"|(?:get-clipboard|\bgcb\b).*(?:\biex\b|invoke-expression)|(?:\biex\b|invoke-expression).*(?:downloadstring|\biwr\b|\birm\b|invoke-webrequest|"
    r"invoke-restmethod|net\.webclient)",
    re.IGNORECASE | re.DOTALL,
)
_READS = lazy_pattern(
    r"\b(?:get-content|gc|cat|type|select-string|copy-item)\b[^|;]*(?:\\|/)\.(?:ssh|aws|azure|kube|gnupg)(?:\\|/)",
    re.IGNORECASE,
)
# A line that is only a variable of the environment prints it.
_PRINTS = lazy_pattern(r"(?:^|[;{(])\s*\$\{?env:(\w+)\}?\s*(?:$|[;})])", re.IGNORECASE)
_PRINTS_ALL = lazy_pattern(
    r"\b(?:get-childitem|gci|ls|dir)\s+env:\\?\*?\s*(?:$|;|\|(?!\s*(?:select\S*\s+(?:-\w+\s+)?name|measure|where)))",
    re.IGNORECASE,
)
_CHILDREN = lazy_pattern(
    r"\b(?:get-childitem|gci|ls|dir)\b([^|;]*)\|[^;]*?(?:\bremove-item\b|\bri\b|\brm\b|\bdel\b|\.delete\(\))",
    re.IGNORECASE,
)
_HAS_VALUE = lazy_pattern(r"-(?:filter|include|exclude|erroraction|ea|depth|attributes)", re.IGNORECASE)
_DELETES = lazy_pattern(
    r"\b(?:invoke-restmethod|invoke-webrequest|irm|iwr)\b.*-method\s+['\"]?delete\b(?!.*(?:localhost|127\.0\.0\.1))",
    re.IGNORECASE,
)
_TEXT = lazy_pattern(r"^\s*(?:write-(?:output|host)|echo)\s+(['\"]).*\1\s*$", re.IGNORECASE)


def _is_machine(text: str) -> bool:
    """Return whether a command names a whole drive, the system's directory, or all homes."""
    return bool(
        re.search(
            r"(?<!\w)[a-z]:[\\/]*(?:[\s'\"*]|$|windows\b|program files|users[\\/]*(?:[\s'\"*]|$))", text, re.IGNORECASE
        )
    )


def powershell(command: Command) -> None:
    """`pwsh -c …`: the cmdlets of a script, and the switches that let any script run."""
    text = " ".join(command.argv[1:])
    inner = re.sub(r"^(?:-\w+\s+(?!-)?)*?-c(?:ommand)?\s+", "", text, flags=re.IGNORECASE)
    if _TEXT.match(inner) or re.search(r"-whatif\b", text, re.IGNORECASE):
        return
    judge(command, inner)
    judge_code(command, "pwsh", inner)
    if any(map(names_secret, _PRINTS.findall(inner))) or _PRINTS_ALL.search(inner):
        command.report("print-secret", SHOWN)
    _children(command, inner)
    if re.search(r"(?:^|\s)-(?:ex\w*|ep)\s+(?:bypass|unrestricted)\b", text, re.IGNORECASE) or re.search(
        r"(?:^|\s)-w\w*\s+hidden\b", text, re.IGNORECASE
    ):
        command.report("windows", "lets any script run, or hides its window")


def _children(command: Command, text: str) -> None:
    """`Get-ChildItem src -Recurse | Remove-Item`: every file of a directory, or every source file of a language."""
    for found in _CHILDREN.finditer(text):
        if re.search(r"\|\s*(?:where|\?)", found[0], re.IGNORECASE):
            continue
        words = [word.strip("'\",") for word in found[1].split()]
        given = [
            word
            for at, word in enumerate(words)
            if word[:1] != "-" and not (at and _HAS_VALUE.fullmatch(words[at - 1]))
        ]
        masks = [word for at, word in enumerate(words) if "*." in word or (at and _HAS_VALUE.fullmatch(words[at - 1]))]
        names = [word.replace("\\", "/").rpartition("/")[2] for word in masks]
        if any(name not in ("*", "*.*") for name in names) and not all_lost(names):
            continue
        root = Word(re.sub(r"/?[^/]*[*?].*$", "", given[0].replace("\\", "/")) or "." if given else ".")
        if lost_root(command, [root], named=False, narrowed=False) is not None:
            command.report("find-delete", "removes all files that are found", wall=command.is_machine(root))


def judge(command: Command, text: str) -> None:
    """Judge a script of PowerShell."""
    if re.search(_SHELL, text, re.IGNORECASE):
        command.report("windows", _WHY)
    if _TREES.search(text):
        command.report("rm-rf", "removes a tree by force, or ends all processes", wall=_is_machine(text))
    if _LOADS.search(text):
        command.report("download-exec", "downloaded text is run unseen")
    if _READS.search(text):
        command.report("read-ssh-keys", "reads a file with secrets")
    if _DELETES.search(text):
        command.report("http-delete", "deletes something by a request")


def cmdlet(command: Command) -> None:
    """A cmdlet that a shell of another kind is given as a command."""
    if not only_tries(command):
        judge(command, str(command))


def cmd(command: Command) -> None:
    """`cmd /c …`: its own commands, and the programs that it starts."""
    words = [str(word) for word in command.argv[1:]]
    at = next((at for at, word in enumerate(words) if word.lower() in ("/c", "/k", "/r", "-c")), None)
    if at is None:
        return
    text = " ".join(words[at + 1 :])
    if re.match(r"\s*(?:echo|rem)\b[^&|]*$", text, re.IGNORECASE):
        return
    if re.search(rf"\b(?:del|erase|rd|rmdir)\b(?=.*\s/s\b).*\s['\"]?{_ROOT}['\"]?(?=\s|$|&)", text, re.IGNORECASE):
        command.report("rm-rf", "removes a tree by force", wall=_is_machine(text))
    # The separator of paths is kept.
    command.shell_code(Word(text.replace("\\", "\\\\")))


def directories(command: Command) -> None:
    """`rd /s /q` and `del /s` remove trees."""
    text = str(command)
    if re.search(rf"\s/s\b(?=.*\s['\"]?{_ROOT}['\"]?(?=\s|$))", text, re.IGNORECASE) or re.search(
        rf"\s['\"]?{_ROOT}['\"]?\s.*/s\b", text, re.IGNORECASE
    ):
        command.report("rm-rf", "removes a tree by force", wall=_is_machine(text))
    elif re.search(r"\s/s\b", text, re.IGNORECASE):
        command.tree(*(word for word in command.argv[1:] if not re.fullmatch(r"/[a-z]", word, re.IGNORECASE)))


_TABLE = losses(
    (
        Loss("windows", "format", r"^format\b.*(?:[a-z]:|/q|/y)", _WHY, wall=True),
        Loss("windows", "diskpart bootsect bootrec manage-bde", r"^\S+ \S", _WHY, r"-status|/\?", wall=True),
        Loss("windows", "format-volume clear-disk initialize-disk", r"", _WHY, wall=True),
        Loss(
            "windows",
            "reg",
            (
                r"^reg (?:delete|import|unload|restore|load)\b|^reg add\b.*(?:\\run|versionrun|winlogon|"
                r"image file execution|policies|services|defender)"
            ),
            _WHY,
        ),
        Loss(
            "windows",
            "schtasks sc at.exe",
            r"^\S+ (?:/?(?:delete|create|change|end)|delete|create|config|stop|failure)\b",
            _WHY,
        ),
        Loss(
            "windows",
            "net net1",
            (
                r"^\S+ (?:user \S+ (?:\S+ )?/(?:add|delete|active\S*)|user \S+ \S+|localgroup .*/(?:add|delete)|"
                r"group .*/(?:add|delete)|stop \S|share \S+=|accounts /|use \S+ /delete)"
            ),
            _WHY,
        ),
        Loss("windows", "bcdedit", r"/(?:set|delete|deletevalue|import|createstore)", _WHY),
        Loss("windows", "cipher", r"/(?:w|e|d)\b", _WHY),
        Loss(
            "windows",
            "takeown icacls cacls attrib",
            r"/r\b|/t\b|/grant:?r? \S*(?:everyone|users)|/reset\b|/setowner|/deny|\+h \+s",
            _WHY,
            r"/\?",
        ),
        Loss("windows", "wmic", r"\b(?:delete|call|create|uninstall|set)\b", _WHY),
        Loss("windows", "netsh", r"\b(?:delete|reset|set|add|off|disable)\b", _WHY, r"\bset (?:alias|mode)"),
        Loss(
            "windows",
            (
                "fsutil vssvc sdelete sdelete64 dism sfc wsl diskshadow chkdsk convert ntdsutil dcpromo psexec "
                "procdump rundll32 regsvr32 mshta cscript wscript msbuild installutil regasm cmstp hh forfiles"
            ),
            (
                r"\b(?:deletejournal|usn|--unregister|/disable-feature|/remove\S*|/f\b|/r\b|-accepteula|lsass|"
                r"javascript:|vbscript:|https?:|/i:|scrobj|setzerodata|behavior|-p\b|-s\b|snapshot)"
            ),
            _WHY,
        ),
        Loss(
            "windows",
            "certutil",
            r"-(?:urlcache|decode|decodehex|addstore|delstore|f .*http)",
            "fetches or unpacks a program",
        ),
        Loss("windows", "bitsadmin", r"/(?:transfer|addfile|create|setnotifycmdline)", "fetches a program"),
        Loss(
            "windows",
            "robocopy",
            r"/(?:mir|purge|move|mov)\b",
            "removes files of the destination, or of the source",
            r"/l\b",
        ),
        Loss(
            "windows",
            "stop-computer restart-computer clear-recyclebin set-mppreference",
            r"",
            _WHY,
        ),
    )
)
_CMDLETS = (
    "remove-item stop-process get-childitem invoke-restmethod invoke-webrequest irm iwr "
    "set-executionpolicy remove-aduser disable-netadapter "
    "get-process invoke-expression iex set-itemproperty new-localuser add-localgroupmember "
    "register-scheduledtask clear-eventlog get-content"
)
RULES: dict[str, tuple[Rule, ...]] = {
    **_TABLE,
    **rules_of(_CMDLETS, cmdlet),
    "cmd": (cmd,),
    **rules_of("del erase rd", directories),
    "rmdir": (directories,),
}
