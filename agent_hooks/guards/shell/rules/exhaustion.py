"""Rules about exhaustion: loops without end, files without bound, and load on other machines."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.inspector import Inspector
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.rules.outside import Loss, losses

RULE = "exhaustion"
_FILLS = "writes without end"
_QUOTED = lazy_pattern(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|#[^\n]*", re.DOTALL)
# A loop whose condition never changes, and its body.
_ENDLESS = lazy_pattern(
    (
        r"\b(?:while\s+(?:true|:|1|\[\s*1\s*\]|\(\(\s*1\s*\)\))|until\s+(?:false|!\s*:)|"
        r"for\s*\(\(\s*;\s*;\s*\)\))\s*;?\s*do\b(.*?)\bdone\b"
    ),
    re.DOTALL,
)
# A loop over more numbers than a machine has room for processes, each of which starts one.
_COUNTED = lazy_pattern(
    r"\bfor\s+\w+\s+in\s+(?:\$\(\s*seq\s[^)]*?(\d{4,})\s*\)|`seq\s[^`]*?(\d{4,})`|\{\d+\.\.(\d{4,})\})"
    r"\s*;?\s*do\b(.*?)\bdone\b",
    re.DOTALL,
)
_MOST_PROCESSES = 2000
_ENDS = lazy_pattern(r"\b(?:sleep|read|wait|break|exit|return|inotifywait|fswatch|timeout|usleep)\b")
_FEEDS = lazy_pattern(r">>|\b(?:mkdir|touch|curl|wget|yes|cat\s+/dev/|dd|fallocate|cp|nc|ping|echo\b.*>)")
_FUNCTION = lazy_pattern(r"([\w:.]+)\s*\(\)\s*\{[^}]*?\1[^}]*?(?:\||&)[^}]*\}\s*;?\s*\1", re.DOTALL)
_GIB = {"": 1 / 2**30, "b": 1 / 2**30, "k": 1 / 2**20, "m": 1 / 2**10, "g": 1, "t": 2**10, "p": 2**20, "e": 2**30}
_MOST_GIB = 50
_SOURCE = lazy_pattern(r"/dev/(?:zero|u?random|full)")


def judge_script(inspector: Inspector, text: str) -> None:
    """Report an endless loop that starts processes, fills a disk or sends requests without a pause."""
    if "do" not in text and "()" not in text:
        return
    plain = _QUOTED.sub("''", text) if "<<" not in text else ""
    for body in _ENDLESS.findall(plain):
        if re.search(r"(?<!&)&\s*;?\s*$", body) or (not _ENDS.search(body) and _FEEDS.search(body)):
            inspector.report(RULE, "a loop without end that starts processes, or writes, without a pause", text)
    for one, two, three, body in _COUNTED.findall(plain):
        starts = re.search(r"(?<![&>])&\s*(?:\)\s*)?;?\s*$", body)
        if starts and int(one or two or three) > _MOST_PROCESSES and "wait" not in body:
            inspector.report(RULE, "a loop that starts more processes than the machine has room for", text)
    if _FUNCTION.search(plain) and re.search(r"(?<!&)&(?!&)", plain):
        inspector.report("fork-bomb", "a function that calls itself without bound", text)


def _gib(text: str) -> float:
    match = re.fullmatch(r"\+?(\d+(?:\.\d+)?)([bkmgtpe]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    return float(match[1]) * _GIB[match[2].lower()] if match else 0


def _written(command: Command) -> bool:
    """Return whether the output of a command goes to a file."""
    line = command.interpreter.line
    return line is not None and any(operator in (">", ">>", "&>", ">|", "&>>") for operator, _ in line.redirects)


def endless(command: Command) -> None:
    """`yes > file`, `cat /dev/zero > file`, `tail /dev/zero`: only a reader that stops ends them."""
    operands = [word for word in command.argv[1:] if not word.startswith("-")]
    if command.name != "yes" and not any(_SOURCE.fullmatch(word) for word in operands):
        return
    if command.name in ("head", "od", "xxd", "hexdump") and ParsedOptions(
        command.argv, "cnNl", ("--bytes", "--lines")
    ).value("c", "n", "N", "l", "--bytes"):
        return
    if command.interpreter.flow != "pipe" or _written(command):
        command.report(RULE, _FILLS)


def copies(command: Command) -> None:
    """`dd if=/dev/zero of=file` without a count, or with one that fills a disk."""
    given = dict(word.partition("=")[::2] for word in command.argv[1:])
    if not _SOURCE.fullmatch(given.get("if", "")) or given.get("of", "/dev/null") == "/dev/null":
        return
    size = (
        _gib(given.get("bs", "512")) * int(given["count"])
        if given.get("count", "").isdigit()
        else _gib(given.get("count", ""))
    )
    if "count" not in given or size > _MOST_GIB:
        command.report(RULE, _FILLS)


def sizes(command: Command) -> None:
    """`fallocate -l 900G`, `head -c 900G /dev/zero`: a file that fills the disk."""
    options = ParsedOptions(command.argv, "lcson", ("--length", "--bytes", "--size"))
    if any(_gib(word) > _MOST_GIB for word in options.value("l", "c", "--length", "--bytes")):
        command.report(RULE, "makes a file that fills the disk")


_HUNGRY = lazy_pattern(
    r"while\s+(?:1|True)\b[^\n]*:\s*\n?[^\n]*(?:append|\+=|\.write|fork|Popen)|\*\s*10\s*\*\*\s*(?:9|"
    r"\d\d)|\bos\.fork\(\).*\bos\.fork\(\)|while\s*\(?(?:1|true)\)?\s*\{?[^}]*(?:push|fork|spawn|\.=|\+=)"
)


def code(command: Command) -> None:
    """Inline code that takes memory or processes without end."""
    text = "\n".join(command.argv[1:])
    if _HUNGRY.search(text) and not _ENDS.search(text):
        command.report(RULE, "takes memory or processes without end")


_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    rules_of("yes cat tail tac sort base64", endless),
    {"dd": (copies,)},
    rules_of("fallocate head", sizes),
    losses(
        (
            Loss(
                RULE,
                "stress stress-ng sysbench memtester",
                r"(?:--?(?:cpu|vm|all|io|hdd|matrix|class|sequential|c|m|i|d|fork)\b)",
                "loads the machine without need",
                r"--timeout[= ]\d{1,2}s?\b|--version",
            ),
            Loss(
                RULE,
                "hping3 hping slowloris slowhttptest goldeneye torshammer mdk4 t50 thc-ssl-dos",
                r"\S+ \S",
                "loads another machine",
            ),
            Loss(RULE, "ping ping6", r" (?:-\w*f\b|--flood)", "loads another machine"),
            Loss(
                RULE,
                "nmap masscan zmap rustscan unicornscan",
                (
                    r"(?:/(?:\d|1\d)(?= |$)|0\.0\.0\.0/0|-iR\b|--script[= ]\S*(?:vuln|exploit|brute|dos))|^(?:masscan|"
                    r"zmap|rustscan) \S"
                ),
                "searches or attacks networks",
                r"\blocalhost\b|127\.0\.0\.1",
            ),
            Loss(
                RULE,
                (
                    "hydra medusa ncrack patator crowbar john hashcat sqlmap msfconsole msfvenom nikto gobuster dirb "
                    "ffuf wfuzz responder bettercap ettercap aircrack-ng aireplay-ng mimikatz crackmapexec netexec "
                    "impacket-secretsdump evil-winrm beef-xss wpscan commix"
                ),
                r"\S+ \S",
                "attacks other machines or passwords",
                r"--version|\blocalhost\b|127\.0\.0\.1",
            ),
        )
    ),
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
