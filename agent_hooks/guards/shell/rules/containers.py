"""Rules about containers: wiping all or many of them, volumes, and the commands that run in one."""

from __future__ import annotations

from msgspec.structs import replace

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.rules.outside import names_test
from agent_hooks.guards.shell.words import EMPTY, Text, Word


def docker(command: Command) -> None:
    """`docker`, `podman`: removal of all or many containers, images or volumes, and commands in a container."""
    words = list(command.argv[1:])
    while words and words[0].startswith("-"):
        words = (
            words[2:] if words[0] in ("-H", "--host", "-c", "--context", "--config", "-l", "--log-level") else words[1:]
        )
    if not words:
        return
    if command.name.endswith("-compose"):
        _compose(command, words)
        return
    if words[0] in ("container", "image") and words[1:2] != ["prune"]:
        verb = words[1:2]
        words = [Word("rmi") if words[0] == "image" and verb == ["rm"] else verb[0], *words[2:]] if verb else words
        if command.argv[1] == "image" and words[0] == "ls":
            words[0] = Word("images")
    kind, rest = str(words[0]), words[1:]
    options = ParsedOptions([command.argv[0], *rest], "f", ("--filter", "--format", "--until"))
    if kind == "system" and rest[:1] == ["prune"]:
        command.report("docker", "removes all unused containers, images and networks")
    elif kind in ("volume", "container", "image"):
        _docker_prune(command, kind, rest, options)
    elif kind == "compose":
        _compose(command, rest)
    elif kind in ("rm", "rmi"):
        if any("docker-list" in word.taint for word in rest) or "docker-list" in command.stdin.taint:
            command.report("docker", "removes all containers or images")
        if options.has("v", "--volumes") and options.has("f", "--force") and any(UNKNOWN in word for word in rest):
            command.report("docker", "removes containers that are not named, and their volumes")
    elif kind in ("ps", "images", "ls"):
        if not options.has("--filter") and "f" not in options.flags and options.has("q", "--quiet"):
            command.output = Text(None, frozenset({"docker-list"}))
    elif kind in ("exec", "run"):
        _docker_runs(command, kind, rest)
    elif kind == "cp" and rest:
        command.reads(*options.operands[:1])
        command.writes(*options.operands[1:])


def _docker_prune(command: Command, kind: str, rest: list[Word], options: ParsedOptions) -> None:
    named = [word for word in rest[1:] if not word.startswith("-")]
    if kind == "volume" and rest[:1] in (["rm"], ["remove"]) and named and all(map(names_test, named)):
        return
    if kind == "volume" and rest[:1] in (["rm"], ["prune"], ["remove"]):
        command.report("docker", "removes volumes, and the data in them")
    elif kind == "volume" and rest[:1] == ["ls"] and options.has("q", "--quiet"):
        command.output = Text(None, frozenset({"docker-list"}))
    elif kind == "image" and rest[:1] == ["prune"] and options.has("a", "--all"):
        command.report("docker", "removes all images that no container uses")
    elif kind == "container":
        command.report("docker", "removes all stopped containers")


def _compose(command: Command, rest: list[Word]) -> None:
    down = next((at for at, word in enumerate(rest) if word in ("down", "rm", "exec", "run")), None)
    if down is None:
        return
    if rest[down] in ("exec", "run"):
        _docker_runs(command, "exec", rest[down + 1 :])
        return
    where = ParsedOptions([Word("compose"), *rest[:down]], "fp", ("--file", "--project-name"))
    if any(names_test(word) for word in where.value("f", "p", "--file", "--project-name")):
        # Containers for tests hold test data.
        return
    options = ParsedOptions(rest[down:], "t", ("--timeout",))
    if options.has("v", "--volumes") or any(word == "--rmi=all" for word in rest) or "all" in options.operands:
        command.report("docker", "removes volumes or images, and the data in them")


_RUN_WITH_VALUE = "veupwhlmcEa"
_RUN_LONG = [
    "--name",
    "--volume",
    "--env",
    "--env-file",
    "--publish",
    "--workdir",
    "--user",
    "--network",
    "--entrypoint",
    "--mount",
    "--platform",
    "--memory",
    "--cpus",
    "--label",
    "--hostname",
    "--add-host",
    "--gpus",
    "--restart",
    "--shm-size",
    "--pull",
    "--index",
]


def _docker_runs(command: Command, verb: str, rest: list[Word]) -> None:
    """Judge a command in a container.

    A new container is harmless, unless a root directory of the machine is mounted in it.
    """
    options = ParsedOptions([Word(verb), *rest], _RUN_WITH_VALUE, _RUN_LONG, stop_early=True)
    inner = options.operands[1:]
    mounts: list[str] = []
    secrets: dict[str, str] = {}
    if verb == "run":
        mounts = [word.partition(":")[0] for word in options.value("v", "--volume")]
        mounted = any(command.is_root(Word(path)) and path.startswith("/") for path in mounts)
        secrets = _mounted_secrets(command, options.value("v", "--volume"))
        if command.interpreter.judging and not (mounted or secrets):
            return
    before = len(command.interpreter.findings)
    if inner:
        inside = command.shell.copy()
        inside.cwd, inside.links = "/", {**inside.links, **secrets}
        attached = options.has("i", "--interactive") or command.argv[1:2] == ["compose"]
        with command.interpreter.apart():
            command.interpreter.command(inner, inside, command.stdin if attached else EMPTY)
    if verb == "run" and command.is_machine(*map(Word, mounts)):
        # What the container removes may be the machine's.
        findings = command.interpreter.findings
        findings[before:] = [replace(each, wall=True) if each.rule == "rm-rf" else each for each in findings[before:]]


def _mounted_secrets(command: Command, volumes: list[Word]) -> dict[str, str]:
    """Return the places in a container of the files with secrets that it gets, each with its path on this machine."""
    parts = [word.split(":") for word in volumes]
    return {
        each[1]: command.path(each[0])
        for each in parts
        if len(each) > 1 and "/" in each[0] and command.interpreter.secret(Word(each[0]), command.shell)
    }


def kubectl(command: Command) -> None:
    """`kubectl exec pod -- command` and `lxc exec box -- command`: the command runs in a container."""
    words = command.argv
    if "exec" in words and "--" in words:
        inside = command.shell.copy()
        inside.cwd = "/"
        at = words.index(Word("--"))
        attached = any(word in ("--stdin", "-i", "-it", "-ti") for word in words[:at])
        with command.interpreter.apart():
            command.interpreter.command(words[at + 1 :], inside, command.stdin if attached else EMPTY)


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("docker podman nerdctl docker-compose podman-compose", docker),
    **rules_of("kubectl k oc lxc incus", kubectl),
}
