"""Programs that no rule names: a verb that only means loss or publication, and code or a script in an option.

The verbs are few, and each stands where a sub-command or a task stands: among the first words, not behind an option, with
no blank, dot or slash.  Verbs that everyday tools use too (`delete`, `remove`) count with an option that skips the
question, or with the name of a production environment.  What is local, cached, tested or only tried out is passed over.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.names import is_language
from agent_hooks.guards.shell.readers import READERS, TEXT_PROGRAMS
from agent_hooks.guards.shell.rules.inline import inline
from agent_hooks.guards.shell.rules.outside import names_test, only_tries
from agent_hooks.guards.shell.words import Word

_LOSS = "its verb tells that it destroys something, and no rule knows the program"
_PUBLISHED = "its verb tells that it publishes something, and no rule knows the program"
_WHAT = r"(?:[:_-](?:all|prod\w*|live|everything|cluster|db|database|env\w*|stack|infra\w*|force|project|account))?"
_LOSES = lazy_pattern(
    rf"(?:[A-Za-z\d-]+[:._])*(?:nuke|destroy|purge|obliterate|wipe|decommission|deprovision|teardown|tear-down|erase|"
    rf"factory-?reset|(?:mass|chip|flash)-?erase|erase-?(?:all|flash|chip)|drop-?(?:database|db|all)){_WHAT}",
    re.IGNORECASE,
)
_PUBLISHES = lazy_pattern(
    r"(?:[A-Za-z\d-]+[:._])*(?:publish|unpublish|yank)(?:[:_-](?:all|prod\w*|npm|release|packages?))?", re.IGNORECASE
)
_REMOVES = lazy_pattern(
    r"(?:[A-Za-z\d-]+[:._])*(?:delete|remove|rm|drop|reset|revoke|terminate|uninstall|prune)", re.IGNORECASE
)
# A quick test: most commands hold none of these words.
_QUICK = lazy_pattern(
    r"(?i)nuke|destroy|purge|obliterate|wipe|deco|deprov|tear|erase|reset|drop|publish|yank|delete|remove|rm\b|revoke|terminate|uninstall|prune"
)
_SURE = lazy_pattern(
    r"-y|--(?:yes|force|confirm|auto-approve|skip-confirm\w*|no-confirm\w*|cascade|all|no-prompt|non-interactive|assume-yes|really|i-know\S*)"
)
_PRODUCTION = lazy_pattern(r"(?:^|[-_./:=@])(?:prod|production|live)(?:$|[-_./:\d])", re.IGNORECASE)
# Options without a value: the word behind them may be the verb.
_SWITCH = lazy_pattern(
    r"-[yqvf]|--(?:yes|force|quiet|verbose|debug|no-\w[\w-]*|auto-approve|json|non-interactive|confirm)|--[\w-]+=.*|-\w*=.*"
)
# What is made again, or lies on this machine only, and verbs whose operand may have any name.
_SPARED = lazy_pattern(
    r"(?:[\w-]+[:_-])?(?:cache|caches|logs?|temp|tmp|session|history|local\w*|tests?|sandbox|scratch|demo|example|build|coverage|sessions|add|create|new|"
    r"init|generate|g|show|list|ls|describe|get|help|search|find|explain|edit|view|note|todo|topic|message|event|stash|plan|lint|check|validate|completion)",
    re.IGNORECASE,
)
# Tools for clusters, machines and sessions of this machine, for tests, and for plugins.
_LOCAL_LINE = (
    "molecule kitchen vagrant minikube kind k3d k3s colima lima limactl multipass podman-machine orb tilt asdf "
    "nvm fnm pyenv "
    "rbenv sdk sdkman zellij playwright cypress storybook hugo jekyll zola jupyter code cursor codium subl "
    "kubectx kubens krew "
    "volta rustup ghcup opam-switch conda mamba micromamba pixi brew flatpak snap nix direnv ollama tmuxp "
    "autojump zoxide chezmoi "
    "task-master jrnl nb atuin mcfly watchman lerna nx turbo mosquitto_pub nats ros2 timew task todo.sh todo "
    "docker-machine ddev lando"
)
_LOCAL = frozenset(_LOCAL_LINE.split())
_NAMED = lazy_pattern(r"[\w-]+[-_](?:nuke|wipe|wiper|destroyer)")
# An option whose value is code, and one whose value is a script of a shell.
_CODE = frozenset({"-e", "-E", "--eval", "-eval", "--execute", "--expr", "-x"})
_SCRIPT = frozenset({"-c", "-C", "-x", "-e", "--command", "--exec", "--run", "--cmd", "--script", "--shell"})
_BEGINS = lazy_pattern(
    r"\s*(?:sudo |env )?(?:/\S*/)?(?:rm|dd|mkfs\S*|shred|sh|bash|zsh|curl|wget|git|nc|chmod|chown|find|kill|cat|"
    r"mv|psql|mysql|aws|kubectl|docker|terraform|printenv|truncate)\s"
)
# The words of a sub-command, and the letters of one.
_MOST, _LONGEST = 3, 80


def program(command: Command) -> None:
    """`acmectl env destroy prod`, `cloud-nuke aws`, `janet -e '(os/execute …)'`."""
    name, argv = command.name, command.argv
    if name in READERS or name in TEXT_PROGRAMS or name in _LOCAL or is_language(name):
        return
    _options(command)
    verbs(command)
    if _NAMED.fullmatch(name) and len(argv) > 1 and not only_tries(command) and not _SPARED.fullmatch(argv[1]):
        command.report("cloud", _LOSS)


def _options(command: Command) -> None:
    """Judge the code and the scripts that the words of a program hold."""
    argv = command.argv
    if len(argv) < 3:
        return
    for at, word in enumerate(argv[1:-1], 1):
        text = argv[at + 1]
        if (word in _CODE or (word in ("rpc", "eval", "remote_eval", "run-script") and at < 3)) and "(" in text:
            inline(command, command.name, text)
        if word in _SCRIPT and " " in text and _BEGINS.match(text):
            command.shell_code(text)


def verbs(command: Command) -> None:
    """Judge the sub-command of a program by its verb."""
    argv = command.argv
    if not _QUICK.search(" ".join(argv[1:12])):
        return
    operands = _operands(argv)
    first = next((at for at, word in enumerate(operands) if _LOSES.fullmatch(word) or _PUBLISHES.fullmatch(word)), None)
    grave = first is None and any(map(_REMOVES.fullmatch, operands)) and any(map(_is_sure, argv[1:]))
    if first is None and not grave:
        return
    around = operands if first is None else operands[: first + 2]
    if only_tries(command) or any(_SPARED.fullmatch(word) or names_test(word) for word in around):
        return
    if any(word.startswith(("--local", "--test", "--env=test", "http://localhost")) for word in argv):
        return
    if first is not None and _PUBLISHES.fullmatch(operands[first]):
        command.report("publish", _PUBLISHED)
    else:
        command.report("cloud", _LOSS)


def _is_sure(word: str) -> bool:
    return bool(_SURE.fullmatch(word) or _PRODUCTION.search(word))


def _operands(argv: list[Word]) -> list[Word]:
    """Return the first words that may be a sub-command or its object."""
    found: list[Word] = []
    for at, word in enumerate(argv[1:], 1):
        if word == "--" or len(found) == _MOST:
            break
        if word.startswith("-") or " " in word or len(word) > _LONGEST:
            continue
        before = argv[at - 1]
        if at > 1 and before.startswith("-") and not _SWITCH.fullmatch(before):
            continue
        found.append(word)
    return found


def task(command: Command) -> None:
    """`make destroy`, `just nuke`, `npm run publish`: a task whose name only means loss or publication."""
    words = [word for word in command.argv[1:] if not word.startswith("-") and "=" not in word]
    if command.name in ("npm", "pnpm", "yarn", "bun", "composer", "deno", "poe", "pdm", "hatch"):
        if words[:1] not in (["run"], ["run-script"], ["task"]):
            return
        words = words[1:2]
    if any(re.fullmatch(r"-\w*n\w*|--(?:dry-run|just-print|list|summary)", word) for word in command.argv[1:]):
        return
    if any(_TASK.fullmatch(word) for word in words):
        command.report("cloud", "the name of its task tells that it destroys or publishes something")


_TASK = lazy_pattern(
    r"(?:[\w-]+[:_-])?(?:nuke|destroy|obliterate)(?:[:_-](?:all|prod\w*|live|infra\w*|stack|cluster|env\w*))?|publish(?:[:_-](?:npm|pypi|prod\w*|all|release))?"
)
RULES: dict[str, tuple[Rule, ...]] = rules_of(
    "make gmake just task npm pnpm yarn bun composer deno poe pdm hatch rake inv invoke mage doit ant gulp grunt", task
)
