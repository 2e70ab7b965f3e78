"""Rules about secrets: stores whose entries are removed or replaced, and commands that print a secret."""

from __future__ import annotations

import re

from agent_hooks.guards.shell.builtins import LISTED, listing
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.origins import SECRET, names_secret
from agent_hooks.guards.shell.outputs import taint_of
from agent_hooks.guards.shell.rules.outside import Loss, earlier, losses, only_tries, plain_text
from agent_hooks.guards.shell.words import Text

_WHY = "removes or replaces secrets, which programs elsewhere need"
_SHOWN = "prints a secret, which the model and its records would hold"
_STORES = (
    Loss(
        "secret-store",
        "vault bao",
        (
            r"^\S+ (?:-\S+ )*(?:kv (?:delete|destroy|metadata delete|put|patch|undelete|rollback)|delete|write|"
            r"secrets (?:disable|move)|auth disable|lease revoke|token revoke|operator (?:seal|step-down|rotate|"
            r"raft (?:remove|snapshot restore))|audit disable|namespace delete|plugin deregister)\b"
        ),
        _WHY,
        r"\b(?:list|lookup)\b|^\S+ write \S*(?:/login|/verify)\b",
    ),
    Loss(
        "secret-store",
        (
            "infisical chamber akeyless phase envkey dotenvx dotenv-vault keepassxc-cli teller conjur summon "
            "berglas secrethub lpass rbw"
        ),
        r"\b(?:delete|remove|rm|unset|destroy|purge|db-create -f|set|write|edit|duplicate|empty-recycle-bin)\b",
        _WHY,
        r"\b(?:list|ls|show|run|exec|export)\b",
    ),
    Loss(
        "secret-store",
        "op bw",
        (
            r"^\S+ (?:item|items|vault|document|user|group|collection|folder) (?:delete|edit|template|purge)\b|"
            r"^\S+ (?:delete|purge|edit)\b"
        ),
        _WHY,
    ),
    Loss(
        "secret-store",
        "pass gopass",
        r"^\S+ (?:rm|remove|delete|edit|insert|generate|mv|cp|recipients remove|init|set)\b",
        _WHY,
    ),
    Loss(
        "secret-store",
        "aws",
        (
            r"\bsecretsmanager (?:delete|put|update|rotate|remove)-|\bssm (?:delete-parameters?|"
            r"put-parameter .*--overwrite)|\bkms (?:schedule-key-deletion|disable-key|delete-)|\bacm delete-|"
            r"\biam (?:delete|deactivate|update-access-key)"
        ),
        _WHY,
    ),
    Loss(
        "secret-store",
        "gcloud",
        r"\bsecrets (?:delete|versions (?:destroy|disable|add))\b|\bkms\b.*\b(?:destroy|disable|set-primary-version)\b",
        _WHY,
    ),
    Loss("secret-store", "az", r"\bkeyvault\b.*\b(?:delete|purge|set|disable|recover|rotate)\b", _WHY, r"\blist\b"),
    Loss("secret-store", "gh glab", r"\b(?:secret|secrets|variable) (?:delete|remove|set|update)\b", _WHY),
    Loss(
        "secret-store",
        "heroku fly flyctl vercel netlify railway wrangler supabase eb cf doctl firebase render",
        (
            r"\b(?:config:unset|config:set|config:remove|secrets (?:unset|rm|remove|delete|put|import|set)|"
            r"secret (?:delete|put|bulk)|env (?:rm|remove|unset|add)|env:(?:unset|set)|unset-env|"
            r"functions:(?:config:unset|secrets:destroy))\b"
        ),
        _WHY,
    ),
    Loss(
        "secret-store",
        "gpg gpg2 gpgsm",
        r"--delete-(?:secret|key|secret-and-public)\S*|--gen-revoke|--generate-revocation|--delete-keys?\b",
        _WHY,
    ),
    Loss(
        "secret-store",
        "security secret-tool keyring kwallet-query certutil cmdkey",
        (
            r"^security (?:delete|add-trusted|remove-trusted|set-keychain-password|authorizationdb)|"
            r"^secret-tool (?:clear|store)|^keyring del|^certutil .*-(?:D|delstore|addstore)\b|^cmdkey /delete"
        ),
        _WHY,
    ),
    Loss(
        "secret-store",
        "ansible-vault sops age-keygen step certbot acme.sh cfssl",
        (
            r"^ansible-vault rekey|^sops (?:rotate|-r|updatekeys)|^step ca (?:revoke|provisioner remove)|"
            r"^certbot (?:revoke|delete|unregister)|--revoke\b|--remove\b"
        ),
        _WHY,
    ),
)
_PRINTS = (
    Loss(
        "print-secret",
        "gh glab hub tea",
        r"^\S+ auth token\b|\bauth status\b.*(?:--show-token| -t\b)|^hub api .*oauth|^\S+ config get .*token",
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "kubectl k oc",
        (
            r"\bget\b.*\b(?:secrets?|all,secrets?|secrets?/\S+)\b.*(?:-o|--output|--template|"
            r"--export)[= ]?(?!name|wide)\w|\bconfig view\b.*(?:--raw|--flatten)|\bwhoami\b.*(?: -t\b|"
            r"--show-token)|\bextract secret|\bcreate token\b|\bserviceaccounts get-token"
        ),
        _SHOWN,
        # A template that shows names.
        r"(?:jsonpath|template|custom-columns)=(?=.*\.(?:metadata|type)\b)(?!.*(?:\.|\[')(?:data|stringData))",
        whole=True,
    ),
    Loss(
        "print-secret",
        "vault bao",
        (
            r"^\S+ (?:-\S+ )*(?:kv get|read|print token|unwrap|token lookup .*-format)\b|^\S+ (?:write|"
            r"login).*-field[= ]?token"
        ),
        _SHOWN,
        r"\b(?:read|kv get) (?:sys/|-\S+ sys/)",
    ),
    Loss(
        "print-secret",
        "aws",
        (
            r"\b(?:get-secret-value|batch-get-secret-value|export-credentials|get-session-token|"
            r"get-federation-token|assume-role\S*|get-password-data|get-authorization-token)\b|"
            r"\bget-parameters?\S*\b.*--with-decryption|\bconfigure get \S*(?:secret|token|key)|\bkms decrypt\b|"
            r"\brds generate-db-auth-token|\bsso get-role-credentials|\beks get-token"
        ),
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "gcloud gsutil",
        (
            r"\bprint-(?:access|identity|refresh)-token\b|\bsecrets versions access\b|\bkms decrypt\b|"
            r"\bauth describe\b|\bapi-keys get-key-string"
        ),
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "az azd",
        (
            r"\bget-access-token\b|\bkeyvault (?:secret|key) (?:show|download|backup)\b|\b(?:keys|key) list\b|"
            r"\blist-(?:keys|connection-strings|publishing-credentials)\b|\bshow-connection-string\b|"
            r"\bappsettings list\b|\bacr credential show|\bcredential (?:list|reset)|"
            r"\bget-credentials\b.*--file -|\bauth token\b"
        ),
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "infisical chamber akeyless phase envkey dotenvx keepassxc-cli teller berglas lpass rbw",
        r"\b(?:export|get|show|read|decrypt|get-secret-value|access|secrets get|clip)\b",
        _SHOWN,
        r"\b(?:list|ls|run|exec)\b",
    ),
    Loss(
        "print-secret",
        "op",
        (
            r"^op (?:read|inject|item get\b.*(?:--reveal|--fields?|--format|--otp)|item get|document get|"
            r"user get .*token|connect token|service-account create)\b"
        ),
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "bw",
        r"^bw (?:get (?:password|item|totp|notes|attachment)|export|list items|unlock .*--raw|login .*--raw)\b",
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "pass gopass",
        (
            r"^\S+ (?:show|otp|cat|grep|git show|export|-c)\b|^pass (?!ls\b|list\b|find\b|search\b|version\b|"
            r"git\b|init\b|help\b|rm\b|edit\b|insert\b|generate\b|mv\b|cp\b|-)\S+"
        ),
        _SHOWN,
        r"^gopass (?:ls|list)",
    ),
    Loss(
        "print-secret",
        "heroku fly flyctl vercel netlify railway supabase wrangler doctl render",
        (
            r"\bauth:token\b|\bconfig:get\b|^heroku config(?: |$)(?!:)|\bauth token\b|\bauth:?print|\benv pull\b|"
            r"\benv:(?:get|list)\b|^railway variables|\bprojects api-keys\b|\bpg:credentials:url\b|\bwhoami --show"
        ),
        _SHOWN,
        r"^heroku config:(?:set|unset)",
    ),
    Loss(
        "print-secret",
        "sops age rage ansible-vault git-crypt transcrypt blackbox_cat eyaml",
        r"(?:^| )(?:-d|--decrypt|decrypt|view|edit|unlock)(?= |$)|^blackbox_cat",
        _SHOWN,
        r"\b(?:verify|lock)\b",
    ),
    Loss(
        "print-secret",
        "git git-credential-store git-credential-cache",
        r"\bcredential(?:-\S+)? (?:fill|get)\b|^git-credential-\S+ get",
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "docker podman nerdctl",
        r"\bcredential\S* (?:get|list)\b|\bexec\b.* (?:env|printenv)$",
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "docker podman nerdctl",
        r"^\S+ (?:\S+ )?inspect\b.*(?:\.Config\.Env\b|\.Env\b|json \.Config\b(?!\.))",
        _SHOWN,
        whole=True,
    ),
    Loss(
        "print-secret",
        "terraform tofu pulumi terragrunt",
        (
            r"\boutput\b.*(?:password|secret|token|key|credential)|\boutput\b.*(?:-json|-raw$)|\bstate pull\b|"
            r"\bconfig (?:get|--show-secrets)\b.*|--show-secrets"
        ),
        _SHOWN,
        r"\bconfig get (?:\w+:)?(?:region|project|name|zone)",
    ),
    Loss("print-secret", "npm pnpm yarn", r"\bconfig (?:get|list)\b.*(?:_auth|token|password)|\btoken list\b", _SHOWN),
    Loss(
        "print-secret",
        "security gpg gpg2 secret-tool keyring ssh-add keytool openssl",
        (
            r"\bfind-(?:generic|internet)-password\b|\bdump-keychain|--export-secret|^secret-tool (?:lookup|"
            r"search)|^keyring get|^openssl (?:rsa|ec|pkey|pkcs12)\b(?!.*-pubout)(?!.*-noout).*-in\b"
        ),
        _SHOWN,
        r"-pubout|-export\b",
    ),
    Loss(
        "print-secret",
        "systemd-creds systemctl launchctl",
        (
            r"^systemd-creds (?:cat|decrypt)|\bshow-environment\b|^systemctl show\b.*Environment|"
            r"^launchctl (?:getenv|print)\b.*(?:token|key|secret)"
        ),
        _SHOWN,
    ),
    Loss(
        "print-secret",
        "rails rake bin/rails",
        r"\b(?:credentials|encrypted|secrets):(?:show|edit|diff)\b",
        _SHOWN,
        r"diff --enroll",
    ),
    Loss("print-secret", "console symfony", r"\bsecrets:(?:list\b.*--reveal|reveal|decrypt-to-local)\b", _SHOWN),
    Loss("print-secret", "artisan php", r"\b(?:env:decrypt|config:show (?:services|database|mail|app\.key))\b", _SHOWN),
    Loss("print-secret", "dotnet dotnet-user-secrets", r"\buser-secrets (?:list|show)\b", _SHOWN),
    Loss(
        "print-secret",
        "airflow prefect dagster metaflow mlflow",
        r"\b(?:connections (?:export|get|list\b.*(?:json|yaml|plain))|variables (?:export|get)|"
        r"config (?:get-value|view)\b.*(?:--show|fernet|password|secret)|"
        r"block inspect \S*secret)|--show-secrets",
        _SHOWN,
        r"\bexport /dev/null|--show-values False",
    ),
    Loss(
        "print-secret",
        "consul etcdctl nomad",
        r"\bkv get\b.*(?:secret|passw|token|cred)|\bget\b.*(?:secret|passw|token|cred)|\boperator keyring\b|"
        r"\bkeyring list\b|\bacl token read\b|\bvar get\b",
        _SHOWN,
        r"--keys-only|-keys\b",
    ),
    Loss(
        "print-secret",
        "dotenv python-dotenv",
        r"^\S+ (?:-\S+ \S+ )*(?:get \S*(?:secret|key|token|passw)|list)\b",
        _SHOWN,
    ),
    Loss("print-secret", "nmcli wpa_cli netsh", r"(?: -s\b|--show-secrets|key=clear|\bpsk\b)", _SHOWN),
)


def printenv(command: Command) -> None:
    """`printenv NAME` prints one variable, and `printenv` alone all of them."""
    if all(word.startswith("-") for word in command.argv[1:]):
        command.output = listing(command)
    if any(names_secret(word) for word in command.argv[1:]):
        command.report("print-secret", _SHOWN)


def grep(command: Command) -> None:
    """`env | grep -i token` prints the variables with secrets."""
    before = [word for word in earlier(command) if word not in ("sort", "uniq", "cat")]
    lists = before in (
        ["env"],
        ["printenv"],
        ["set"],
        ["export"],
        ["export", "-p"],
        ["declare", "-x"],
        ["declare", "-p"],
    )
    pattern = next((word for word in command.argv[1:] if not word.startswith("-")), "")
    counts = any(word in ("-q", "-c", "--quiet", "--count") or word.startswith("-qi") for word in command.argv[1:])
    if (
        lists
        and not counts
        and re.search(r"token|secret|passw|key|credential|auth|aws|api|pwd", pattern, re.IGNORECASE)
    ):
        command.report("print-secret", _SHOWN)


def echo(command: Command) -> None:
    """`echo $TOKEN` prints a secret, unless a program or a file takes it."""
    line = command.interpreter.line
    taken = line is not None and any(
        operator.startswith((">", "&>")) and not word.isdigit() for operator, word in line.redirects
    )
    if command.interpreter.flow == "shown" and not taken and taint_of(command.argv[1:]) & SECRET:
        command.report("print-secret", _SHOWN)


def passes(command: Command) -> None:
    """`echo $TOKEN | base64` prints a secret too; a part of it (`cut`) is none."""
    shown = command.interpreter.flow == "shown" and not command.interpreter.taken
    line = command.interpreter.line
    written = line is not None and any(operator.startswith((">", "&>")) for operator, _ in line.redirects)
    if shown and not written and command.stdin.taint & SECRET and "cut" not in earlier(command):
        command.report("print-secret", _SHOWN)


# Programs of which no line of the list comes out, and those that a pattern narrows.
_HIDES = frozenset({"wc", "true", "cksum", "md5sum", "sha256sum", "curl", "wget", "nc", "ncat", "netcat", "ssh"})
_NARROWS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack"})


def shows_list(command: Command) -> None:
    """`source .env; env | sort`: the list of variables comes out of another program."""
    if command.stdin.taint >= LISTED and command.name not in _HIDES | _NARROWS:
        if command.interpreter.flow == "shown":
            command.report("read-environment-file", "shows the variables of a file with secrets")
        else:
            command.output = Text(None, command.stdin.taint)


def _listed(command: Command) -> None:
    text = plain_text(command)
    if not only_tries(command) and re.fullmatch(r"doppler secrets(?: -\S+)*", text) and "--only-names" not in text:
        command.report("print-secret", _SHOWN)


_DOPPLER = (
    *losses(
        (
            Loss(
                "secret-store",
                "doppler",
                (
                    r"^doppler (?:secrets|projects|configs|environments|activity|setup)? ?(?:delete|unlock|update|"
                    r"rollback|set|upload)\b"
                ),
                _WHY,
            ),
            Loss(
                "print-secret",
                "doppler",
                r"^doppler (?:secrets (?:get|download|substitute)|configs tokens create|configure get token)\b",
                _SHOWN,
            ),
        )
    )["doppler"],
    _listed,
)


def doppler(command: Command) -> None:
    """`doppler secrets …`; `doppler run` is followed elsewhere."""
    for rule in _DOPPLER:
        rule(command)


_TABLES = (
    losses(_STORES),
    losses(_PRINTS),
    rules_of("printenv", printenv),
    {"echo": (echo,)},
    rules_of("cat tac rev base64 base32 xxd od hexdump", passes),
    rules_of("grep egrep fgrep rg ag ack", grep),
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}


def dotenv(command: Command) -> None:
    """`dotenv get NAME` and `dotenv list` print variables of a file; `dotenv run` is followed elsewhere."""
    for rule in RULES["python-dotenv"]:
        rule(command)


CARRIERS: dict[str, Rule] = {"doppler": doppler, "dotenv": dotenv}
