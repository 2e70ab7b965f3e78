"""Rules about programs that run a script on other machines, or in containers and guests: each script is followed there.

A row of the table tells where a program's words hold the script.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.outputs import taint_of
from agent_hooks.guards.shell.words import Text, Word


class Front(NamedTuple):
    """How to find the script.

    `verb`: the words behind the program's name, which have to be there; `options`, `long`: the options with a value;
    `leading`: the number of operands before the script; `script`: the options whose value is the script; `behind`: the
    script stands behind `--` only; `direct`: the words are run as they are, without a shell.
    """

    programs: str
    verb: str = ""
    options: str = ""
    long: tuple[str, ...] = ()
    leading: int = 0
    script: tuple[str, ...] = ()
    behind: bool = False
    direct: bool = False


_FRONTS = (
    Front("pssh parallel-ssh", options="hHlpoetxOX", long=("--hosts", "--host", "--user", "--option")),
    Front("pdsh", options="wxglnfutR"),
    Front("clush", options="wxgXftuOl"),
    Front("dsh", options="mgfF", long=("--machine", "--group", "--file")),
    Front("tsh", "ssh", "lpiLd", ("--login", "--port", "--cluster", "--proxy"), 1),
    Front("tailscale", "ssh", leading=1),
    Front("plink kitten-ssh sshx et", options="lPpiLRDm", leading=1),
    Front("docker-machine", "ssh", leading=1),
    Front("knife", "ssh", options="axPiG", leading=1),
    Front("bolt", "command run", "tnu"),
    Front("juju", "exec", "mua", ("--application", "--unit", "--machine")),
    Front("juju", "run", "mua", ("--application", "--unit", "--machine")),
    Front("juju", "ssh", "m", leading=1),
    Front("nomad", "alloc exec", long=("-task", "-job"), leading=1, direct=True),
    Front("adb", "shell", "eT"),
    Front("kubectl k oc", "rsh", "nc", ("--namespace", "--container"), 1, direct=True),
    Front("kubectl k oc", "debug", behind=True, direct=True),
    Front("kubectl k oc", "run", behind=True, direct=True),
    Front("fab", behind=True),
    Front("eb", "ssh", script=("-c", "--command")),
    Front("doctl", script=("--ssh-command",)),
    Front("gcloud", script=("--command",)),
    Front("fly flyctl", "ssh console", script=("-C", "--command")),
    Front("aws", "ecs execute-command", script=("--command",)),
    Front("az", "vm run-command", script=("--scripts",)),
    Front("az", "containerapp exec", script=("--command",)),
)
_SERIAL = lazy_pattern(r"(?:-s|-t|--serial)$")


def run_there(command: Command, words: list[Word], *, direct: bool = False) -> None:
    """Follow a script that runs on another machine, in a directory that is not known; `direct`: without a shell."""
    if not words:
        return
    if direct:
        inside = command.shell.copy()
        inside.cwd = "/"
        with command.interpreter.apart():
            command.interpreter.command(words, inside, command.stdin)
        return
    text = Word(" ".join(words))
    text.taint = taint_of(words)
    elsewhere = command.shell.copy()
    elsewhere.cwd = UNKNOWN
    with command.interpreter.apart():
        command.interpreter.shell_code(text, elsewhere, command.name, command.stdin)


def _front(row: Front) -> Rule:
    verb = row.verb.split()

    def rule(command: Command) -> None:
        argv = command.argv
        if command.name == "adb" and len(argv) > 2 and _SERIAL.match(argv[1]):
            # `adb -s DEVICE shell`
            argv = [argv[0], *argv[3:]]
        if argv[1 : 1 + len(verb)] != verb:
            return
        if row.script:
            for text in _values(argv, row.script):
                run_there(command, [text])
            return
        if row.behind:
            words = argv[argv.index(Word("--")) + 1 :] if "--" in argv else []
            run_there(command, words, direct=row.direct)
            return
        operands = ParsedOptions(argv[len(verb) :], row.options, row.long, stop_early=True).operands
        run_there(command, [word for word in operands[row.leading :] if word != "--"], direct=row.direct)

    return rule


def _values(argv: list[Word], names: tuple[str, ...]) -> list[Word]:
    """Return the values of options: each is the next word, or stands behind `=`."""
    found: list[Word] = []
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            found += [Word(value)] if equals else argv[at + 1 : at + 2]
    return found


_SHELL_MODULES = lazy_pattern(r"(?:ansible\.(?:builtin|legacy)\.)?(?:shell|command|raw)")


def ansible(command: Command) -> None:
    """`ansible web -m shell -a SCRIPT` runs a script; without a module, the arguments are one too."""
    options = ParsedOptions(
        command.argv, "amiulftTcPMBe", ("--args", "--module-name", "--inventory", "--limit", "--user")
    )
    module = next(iter(options.value("m", "--module-name")), Word("command"))
    if _SHELL_MODULES.fullmatch(module):
        for text in options.value("a", "--args"):
            # `chdir=/srv rm -rf x`
            run_there(command, [Word(re.sub(r"^(?:(?:chdir|creates|removes|executable|cmd)=\S+\s+)+", "", text))])
    elif re.fullmatch(r"(?:ansible\.(?:builtin|legacy)\.)?reboot", module):
        command.report("iac", "changes many machines at once")


def salt(command: Command) -> None:
    """`salt '*' cmd.run SCRIPT` runs a script on each machine."""
    words = command.argv
    at = next((at for at, word in enumerate(words) if word.startswith(("cmd.run", "cmd.shell", "cmd.script"))), None)
    if at is not None:
        run_there(command, [word for word in words[at + 1 :] if not re.match(r"[\w-]+=", word)][:1])


def send_command(command: Command) -> None:
    """`aws ssm send-command --parameters 'commands=[…]'` runs each command of the list."""
    if command.argv[1:3] != ["ssm", "send-command"]:
        return
    for text in _values(command.argv, ("--parameters",)):
        found = re.search(r"commands\"?\s*[=:]\s*(.*)", text, re.DOTALL)
        given = found[1].strip() if found else ""
        listed = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'", given)
        for each in [one or two for one, two in listed] or [given]:
            run_there(command, [Word(each)])


def receives(command: Command) -> None:
    """`docker run -i image sh` gets its script on stdin."""
    words = command.argv
    attached = any(re.fullmatch(r"-[a-z]*i[a-z]*|--interactive|--stdin", word) for word in words[2:])
    given: Text = command.stdin
    if "run" in words[1:3] and attached and words[-1] in ("sh", "bash", "ash", "-s", "python", "python3"):
        with command.interpreter.apart():
            command.interpreter.code_taint(given.taint, command.name)


_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    *(rules_of(row.programs, _front(row)) for row in _FRONTS),
    {"ansible": (ansible,), "salt": (salt,), "salt-ssh": (salt,), "aws": (send_command,)},
    rules_of("docker podman nerdctl kubectl", receives),
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
