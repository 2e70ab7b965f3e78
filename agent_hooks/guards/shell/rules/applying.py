"""Rules about fetched content that a program applies unseen: to a cluster, a database, a host, a store of images.

A manifest, a dump or an image does as much as a script.  Fetched content that is only shown, searched, compared or kept
in a file meets no rule, and neither does data for a statement that stands in the command.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.fetched import fetched
from agent_hooks.guards.shell.rules.outside import LOCAL_CLUSTER, names_test, on_test_data, only_tries, plain_text
from agent_hooks.guards.shell.words import Text, Word

# The words by which programs apply a content; an empty pattern: they do nothing else with it.
_APPLIES: dict[str, str] = {
    "kubectl k oc": r" (?:apply|create|replace|patch)\b",
    "helm": r" (?:install|upgrade)\b",
    "docker podman nerdctl": (
        r" (?:image )?(?:load|import)\b| stack (?:deploy|up)\b| (?:play kube|kube play)\b"
        r"| (?:build|buildx build|image build)\b| compose\b.* (?:up|create|run|start)\b"
    ),
    "docker-compose podman-compose": r" (?:up|create|run|start)\b",
    "ctr k3s crictl": r" images? import\b",
    "nomad": r" (?:job )?run\b",
    "consul": r" (?:kv import|snapshot restore)\b| config write\b",
    "vault bao": r" (?:policy )?write\b",
    "argocd": r" create\b",
    "virsh": r" (?:define|create|net-define)\b",
    "terraform tofu pulumi": r" (?:apply|up|import)\b",
    "aws": r" cloudformation (?:deploy|create-stack|update-stack)\b",
    "ansible ansible-playbook salt puppet": r"",
    "psql mysql mariadb sqlite3 sqlcmd clickhouse-client cqlsh cockroach mongosh mongo redis-cli valkey-cli": r"",
    "pg_restore mongorestore": r"",
    "iptables-restore ip6tables-restore debconf-set-selections ldapmodify ldapadd newusers chpasswd": r"",
    "nft": r" (?:-f|--file)\b",
    "zfs": r" (?:receive|recv)\b",
    "pip pip3 uv": r" install\b.* (?:-r|--requirement)\b",
}
_STATEMENT = lazy_pattern(r"(?:^| )(?:-c|-e|-x|-q|--command|--execute|--eval|--query)(?:[ =]|$)")
_LOCAL = lazy_pattern(LOCAL_CLUSTER)


def _rule(pattern: str) -> Rule:
    searched = lazy_pattern(pattern)

    def rule(command: Command) -> None:
        if not _takes_fetched(command):
            return
        text = plain_text(command)
        if searched.search(text) and not only_tries(command) and not _is_spared(command, text):
            command.report("download-exec", "fetched content is applied unseen")

    return rule


def _takes_fetched(command: Command) -> bool:
    """Return whether a program gets fetched content on stdin, or as a file."""
    if command.stdin.taint & {"download", "saved-download"}:
        return True
    return any("download" in word.taint or fetched(command, word) for word in command.argv[1:])


def _is_spared(command: Command, text: str) -> bool:
    """Return whether the content is data for a statement, or goes to test data or to a cluster of this machine."""
    operands = [word for word in command.argv[1:] if not word.startswith("-")]
    if command.name == "sqlite3":
        inside = command.interpreter.directories.in_temp
        return len(operands) > 1 or any(word == ":memory:" or inside(command.path(word)) for word in operands)
    if command.name in _DATABASES and (_STATEMENT.search(text) or any(map(names_test, operands))):
        return True
    return on_test_data(command) or bool(_LOCAL.search(text))


_DESTROYS = frozenset({"destroys"})


def planned(command: Command) -> None:
    """`terraform plan -destroy -out=x && terraform apply x`: the plan destroys everything when it is applied."""
    words, files = command.argv[1:], command.shell.files
    operands = [word for word in words if not word.startswith("-")]
    verb = operands[0] if operands else ""
    if verb == "plan" and any(word in ("-destroy", "--destroy") for word in words):
        for at, word in enumerate(words):
            name, equals, value = word.partition("=")
            if name in ("-out", "--out"):
                named = Word(value) if equals else words[at + 1] if at + 1 < len(words) else Word("")
                files[command.path(named)] = Text(None, _DESTROYS)
    if verb != "apply":
        return
    given = [files.get(command.path(word)) for word in operands[1:]]
    arguments = " ".join(value for name, value in command.environment.items() if name.startswith("TF_CLI_ARGS"))
    if any(text is not None and text.taint >= _DESTROYS for text in given) or re.search(
        r"-destroy|-auto-approve", arguments
    ):
        command.report("iac", "destroys infrastructure, or changes it unseen")


_OWN_MACHINE = lazy_pattern(r"[ @/](?:localhost|127\.|vagrant|default)")


def stopped(command: Command) -> None:
    """`ssh HOST systemctl stop nginx`: a service of another machine."""
    words = set(command.argv[1:])
    if not command.interpreter.elsewhere or "--user" in words or not words & {"stop", "disable", "mask", "kill"}:
        return
    around = [line.words for line in command.interpreter.around if line.words]
    fronts = [" ".join(words) for words in around if words[0].rpartition("/")[2] == "ssh"]
    if fronts and not any(map(_OWN_MACHINE.search, fronts)):
        command.report("services", "stops a service of another machine")


def pushed(command: Command) -> None:
    """`dvc remote modify store url … && dvc push`: the data of the project goes to another place."""
    words = [word for word in command.argv[1:] if not word.startswith("-")]
    values = command.shell.variables.values
    if words[:2] in (["remote", "add"], ["remote", "modify"]) and any("://" in word for word in words):
        values["dvc remote"] = Text("changed")
    elif words[:1] == ["push"] and "dvc remote" in values:
        command.report("send-out", "sends the project's data to a place that the same line names")


_DATABASES = frozenset(next(names for names in _APPLIES if names.startswith("psql")).split())
RULES: dict[str, tuple[Rule, ...]] = {
    program: (_rule(pattern),) for programs, pattern in _APPLIES.items() for program in programs.split()
}
_MORE: dict[str, Rule] = {
    **dict.fromkeys(("terraform", "tofu", "terragrunt"), planned),
    **dict.fromkeys(("systemctl", "service", "rc-service", "supervisorctl", "sv"), stopped),
    "dvc": pushed,
}
for _name, _more in _MORE.items():
    RULES[_name] = (*RULES.get(_name, ()), _more)
