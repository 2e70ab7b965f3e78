"""The paths that hold secrets, decide which calls are allowed, or belong to the system.

Paths are judged by their names; nothing is opened.  Exceptions (dependencies, test fixtures, samples) are applied to the
normalised path, and never inside a directory that is secret as a whole.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import unquote

from agent_hooks.guards.agents import CODE_PATTERN, PATTERN
from agent_hooks.guards.lazy import LazyPattern, lazy_pattern

UNKNOWN = "\ue000"
"""One character that stands for any text that is unknown before the command runs."""
LONGEST_PATH = 4096
"""No path of the system is longer than this, in characters."""

# Directories that are secret as a whole, and their rules.
_SECRET_DIRECTORIES: dict[str, str] = {
    ".ssh": "ssh-keys",
    ".aws": "cloud-credentials",
    ".azure": "cloud-credentials",
    ".config/gcloud": "cloud-credentials",
    ".config/doctl": "cloud-credentials",
    ".oci": "cloud-credentials",
    ".bluemix": "cloud-credentials",
    ".aliyun": "cloud-credentials",
    ".kube": "cloud-credentials",
    ".gnupg": "keyring",
    ".password-store": "keyring",
    ".local/share/keyrings": "keyring",
    "library/keychains": "keyring",
    ".config/op": "keyring",
    ".mozilla/firefox": "keyring",
    ".config/google-chrome": "keyring",
    ".config/chromium": "keyring",
    ".config/github-copilot": "agent-token",
    ".claude/credentials": "agent-token",
    ".openclaw/credentials": "agent-token",
    ".minimax": "agent-token",
    ".config/gh": "package-token",
    ".config/hub": "package-token",
    **dict.fromkeys((".anthropic", ".openai", ".amazonq", ".config/openai", ".config/anthropic"), "agent-token"),
    **dict.fromkeys((".config/io.datasette.llm", ".codebuddy", ".augment"), "agent-token"),
    **dict.fromkeys((".config/bravesoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera"), "keyring"),
    **dict.fromkeys((".thunderbird", "library/application support/google/chrome", "library/cookies"), "keyring"),
    **dict.fromkeys(("library/application support/firefox", "appdata/local/google/chrome/user data"), "keyring"),
    **dict.fromkeys(("appdata/roaming/mozilla/firefox", "appdata/local/microsoft/edge/user data"), "keyring"),
    **dict.fromkeys((".config/slack", ".config/discord", ".config/signal", ".config/1password"), "keyring"),
    **dict.fromkeys((".config/bitwarden", ".config/bitwarden cli", ".electrum", ".bitcoin", ".ethereum"), "keyring"),
    **dict.fromkeys((".config/solana", "telegramdesktop/tdata", ".purple", ".config/evolution"), "keyring"),
    **dict.fromkeys((".config/keepassxc", ".local/share/gnome-keyring", ".config/exodus", ".monero"), "keyring"),
    **dict.fromkeys((".config/hcloud", ".config/heroku", ".config/stripe", ".config/netlify"), "package-token"),
    **dict.fromkeys(
        (".config/glab-cli", ".config/ngrok", ".wrangler/config", ".supabase", ".snowsql"), "package-token"
    ),
    **dict.fromkeys((".config/filezilla", ".config/remmina", ".config/configstore", ".dbt"), "package-token"),
    **dict.fromkeys((".subversion/auth", ".config/sops", ".config/rclone", ".config/linode-cli"), "package-token"),
    **dict.fromkeys((".config/vercel", ".local/share/com.vercel.cli", ".config/railway", ".fly"), "package-token"),
    **dict.fromkeys((".snowflake", ".config/snowflake", ".config/prefect/profiles"), "package-token"),
    ".secrets": "cloud-credentials",
    "/etc/ssl/private": "private-key",
    "/etc/sudoers.d": "account-file",
}
_PUBLIC_IN_SSH = lazy_pattern(r"known_hosts(\..*)?|.*\.pub|config")
# Names of files that are secret in any directory.
_NAMES: dict[str, str] = {
    **dict.fromkeys((".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".git-credentials"), "package-token"),
    **dict.fromkeys((".npmrc", ".pypirc", ".yarnrc.yml", ".htpasswd", ".dockercfg", ".databrickscfg"), "package-token"),
    **dict.fromkeys((".vault-token", ".boto", ".s3cfg", ".terraformrc", "credentials.tfrc.json"), "cloud-credentials"),
    **dict.fromkeys(("kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", "rclone.conf"), "cloud-credentials"),
    **dict.fromkeys(("credentials", "credentials.json", "credentials.yml", "credentials.yaml"), "cloud-credentials"),
    **dict.fromkeys(
        ("credentials.toml", "credentials.ini", "application_default_credentials.json"), "cloud-credentials"
    ),
    **dict.fromkeys(("secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "master.key"), "cloud-credentials"),
    **dict.fromkeys((".credentials.json", "auth-profiles.json", "oauth_creds.json", ".claude.json"), "agent-token"),
    **dict.fromkeys(("hosts.json.copilot", "mcp-auth.json"), "agent-token"),
    **dict.fromkeys(("logins.json", "key4.db", "key3.db", "cookies.sqlite", "login data"), "keyring"),
    **dict.fromkeys((".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"), "shell-profile"),
    **dict.fromkeys((".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc"), "shell-profile"),
    **dict.fromkeys((".bash_aliases", "config.fish", ".bash_history", ".zsh_history", ".histfile"), "shell-profile"),
    **dict.fromkeys((".psql_history", ".mysql_history", ".python_history", ".sqlite_history"), "shell-profile"),
    **dict.fromkeys((".node_repl_history", ".rediscli_history", ".dbshell", "fish_history"), "shell-profile"),
    **dict.fromkeys((".env", ".envrc", ".flaskenv"), "environment-file"),
    **dict.fromkeys((".xprofile", ".xinitrc", ".xsessionrc", ".xsession", ".pam_environment"), "shell-profile"),
    **dict.fromkeys((".lesshst", ".viminfo", ".wget-hsts", ".zsh_sessions"), "shell-profile"),
    **dict.fromkeys(
        (".erlang.cookie", "jupyter_cookie_secret", ".credentials", "arduino_secrets.h"), "cloud-credentials"
    ),
    **dict.fromkeys(("keystore.properties", "signing.properties", "credentials.properties"), "cloud-credentials"),
    **dict.fromkeys((".renviron", "credentials.sbt", "sonatype.sbt", "wifi_secrets.h"), "package-token"),
    **dict.fromkeys((".msmtprc", ".fetchmailrc", ".mutt_secrets", "muttrc.secret"), "package-token"),
    **dict.fromkeys(("settings-security.xml", "wallet.dat"), "package-token"),
    **dict.fromkeys(("key.properties", "local.settings.json", "wp-config.php"), "cloud-credentials"),
    **dict.fromkeys((".dev.vars", ".secrets", ".vault_pass", ".aider.conf.yml"), "environment-file"),
    **dict.fromkeys(("prod.env", "production.env", "staging.env", "secrets.env", "secret.env"), "environment-file"),
}
# The last components of paths, two or more.
_ENDINGS: dict[str, str] = {
    ".hex/hex.config": "package-token",
    ".dvc/config.local": "cloud-credentials",
    "containers/auth.json": "package-token",
    "gitlab-runner/config.toml": "cloud-credentials",
    ".docker/config.json": "package-token",
    ".composer/auth.json": "package-token",
    ".config/composer/auth.json": "package-token",
    ".cargo/credentials": "package-token",
    ".gem/credentials": "package-token",
    ".m2/settings.xml": "package-token",
    ".config/pip/pip.conf": "package-token",
    ".pip/pip.conf": "package-token",
    ".config/git/credentials": "package-token",
    ".kaggle/kaggle.json": "package-token",
    ".huggingface/token": "package-token",
    "huggingface/token": "package-token",
    ".fly/config.yml": "cloud-credentials",
    ".codex/auth.json": "agent-token",
    ".qwen/.env": "agent-token",
    ".gemini/google_accounts.json": "agent-token",
    "opencode/auth.json": "agent-token",
    ".factory/auth.json": "agent-token",
    ".vercel/auth.json": "package-token",
    ".gradle/gradle.properties": "package-token",
    "nuget/nuget.config": "package-token",
    ".irssi/config": "package-token",
    ".weechat/sec.conf": "package-token",
    "sops/age/keys.txt": "private-key",
    ".copilot/config.json": "agent-token",
    ".continue/config.json": "agent-token",
    ".codeium/config.json": "agent-token",
    ".config/amp/settings.json": "agent-token",
    ".config/crush/crush.json": "agent-token",
    ".local/share/crush/crush.json": "agent-token",
}
_PATTERNS: tuple[tuple[LazyPattern, str], ...] = (
    (lazy_pattern(r"\.env([._-].+)?"), "environment-file"),
    (lazy_pattern(r"id_(rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)([._-](?!pub$)[\w.-]*)?"), "ssh-keys"),
    (lazy_pattern(r"ssh_host_\w+_key"), "ssh-keys"),
    (lazy_pattern(r".+\.(pem|key|ppk|pfx|p12|jks|keystore|kdbx|kdb)"), "private-key"),
    (lazy_pattern(r"(client_secret|service[-_]account)[\w.-]*\.json"), "cloud-credentials"),
    (lazy_pattern(r"(.+[._-])?deploy[._-](key|rsa|ed25519|ecdsa)([._-](?!pub$)\w+)?"), "ssh-keys"),
    (lazy_pattern(r".+\.(p8|gpg\.key|jceks|bcfks|ovpn)"), "private-key"),
    (lazy_pattern(r"[\w.-]*([-_]key|firebase-adminsdk[\w-]*|[-_]credentials?)\.json"), "cloud-credentials"),
    (lazy_pattern(r".+\.tfvars(\.json)?|.+\.tfstate(\.backup)?|terraform\.tfstate.*"), "cloud-credentials"),
    (
        lazy_pattern(r"\.?vault[-_]?pass(word)?(\.txt)?|vault\.ya?ml|appsettings\.(production|staging)\.json"),
        "cloud-credentials",
    ),
    (lazy_pattern(r"(?:.+\.)?secrets?\.(?:exs|properties|ini|cfg|conf|ps1)"), "cloud-credentials"),
    (lazy_pattern(r".+\.env"), "environment-file"),
)
# Places where secrets are mounted, and where programs keep those of the machine.
_MOUNTED = lazy_pattern(
    r"/(var/)?run/secrets/.*|/(etc|mnt|vault|app)/secrets(-store)?/.*|.*/kubernetes\.io~(secret|projected)/.*|/run/credentials/.*"
    r"|/etc/kubernetes/(\w[\w-]*\.conf|pki/.*\.key)|/etc/rancher/.*\.ya?ml|/etc/openvpn/.*|/etc/wireguard/.*"
    r"|/etc/networkmanager/system-connections/.*|/etc/wpa_supplicant/.*\.conf|/etc/letsencrypt/(live|archive)/.*privkey.*"
    r"|/etc/(msmtprc|docker/key\.json|mysql/debian\.cnf|ppp/(chap|pap)-secrets|ipsec\.secrets|racoon/psk\.txt)"
    r"|/var/lib/jenkins/(secrets/.*|credentials\.xml)|/(var/)?run/(docker|containerd/containerd|podman/podman|crio/crio)\.sock"
    r"|(.*/)?secrets/[^/]+\.(ya?ml|json|env|txt|toml|ini|enc)"
)
# Files with tokens among those of a coding agent.
_AGENT_TOKENS = lazy_pattern(
    r".*/(\.(copilot|codex|gemini|qwen|cursor|continue|codeium|factory|kimi|grok|warp|claude|openclaw|pi|cline|roo|kilocode|trae|qoder|minimax)"
    r"|\.config/(goose|amp|cursor|crush|opencode|zed|windsurf|kilo)|\.local/share/(amp|opencode|crush|amazon-q|goose|kilo|zed))/(.*/)?"
    r"([\w.-]*(auth|token|credential|oauth|secret|api[_-]?key)[\w.-]*|session|apps|hosts|accounts|user-settings|keys|data|kimi)"
    r"\.(json|ya?ml|toml|sqlite3?|db|key|txt)"
)
# Files that a desktop, a shell or an editor runs at its start: they may be read, but not written.
_HOME_STARTED = (
    r"\.(?:iex\.exs|erlang|ghci|sbclrc|octaverc|ocamlinit|guile|clisprc|eclrc|perldb|phpsh|psqlrc|sqliterc|duckdbrc|powerlinerc)"
    r"|\.julia/config/startup\.jl|\.gradle/init(?:\.gradle(?:\.kts)?|\.d/.*)|\.m2/extensions\.xml|\.sbt/[\d.]+/.*\.sbt|\.lein/profiles\.clj"
    r"|\.config/powershell/.*\.ps1|documents/(?:windows)?powershell/.*profile\.ps1|\.ipython/profile_\w+/startup/.*|\.jupyter/jupyter_\w+_config\.py"
    r"|\.config/(?:ghc/ghci\.conf|nushell/(?:config|env)\.nu|matplotlib/.*\.py)|\.stack/global-project/.*"
)
_STARTED = lazy_pattern(
    r".*/(\.config/(autostart/.*\.desktop|systemd/user/.*|fish/(conf\.d|functions)/.*|plasma-workspace/env/.*|environment\.d/.*)"
    r"|\.local/share/systemd/user/.*|library/launch(agents|daemons)/.*|\.(inputrc|vimrc|exrc|emacs|gdbinit|lldbinit|screenrc|tmux\.conf|irbrc|pryrc|pythonrc|rprofile))"
    rf"|/(?:(?:home|users)/[^/]+|root)/(?:{_HOME_STARTED})|.*/(?:sitecustomize|usercustomize)\.py|.*/rprofile\.site"
)
_ACCOUNTS = lazy_pattern(
    r"/etc/(passwd|shadow|group|gshadow|sudoers)[-~]?|/etc/(master\.passwd|security/opasswd|krb5\.keytab)"
)
_PROCESS = lazy_pattern(r"/proc/[^/]+/(environ|mem)|/dev/(mem|kmem)|/proc/kcore")
_SAMPLE = lazy_pattern(r".*\.(example|sample|template|tmpl|tpl|dist|defaults)(\.\w+)?|.*[._-](example|sample)\..*")
_CODE = lazy_pattern(r".*\.(md|rst|py|pyi|ts|tsx|js|mjs|go|rs|rb|java|kt|c|h|cpp|css|html|png|jpe?g|svg|gif)")
_DEPENDENCIES = {"node_modules", "site-packages", "dist-packages"}
_FIXTURES = {"fixtures", "__fixtures__", "testdata", "test-data", "test_data"}
# Settings of guards, hooks and permissions, and hooks themselves: they may be read, but not written.
_SETTINGS = lazy_pattern(
    rf"(.*/)?(?:{PATTERN}|\.git/(config|hooks(/.*)?)|\.gitconfig|\.config/git/config|\.config/agent_hooks(/.*)?"
    r"|managed-settings\.json|/etc/(?:claude-code|codex|gemini-cli|qwen-code|opencode|openclaw)/.*)"
)
_CLIENT_CODE = lazy_pattern(rf"(.*/)?(?:{CODE_PATTERN})")
_MACHINE = lazy_pattern(
    r"/etc/(ld\.so\.(preload|conf)(\.d(/.*)?)?|pam\.d(/.*)?|pam\.conf|fstab|crontab|cron\.[^/]+(/.*)?|inittab|rc\.local|init\.d/.*"
    r"|profile(\.d(/.*)?)?|bash\.bashrc|environment|ssh/sshd_config|default/grub|grub\.d/.*|security/.*|nsswitch\.conf"
    r"|sudoers\.d(/.*)?|systemd/(?:system|user)/.*|udev/rules\.d/.*|modprobe\.d/.*|modules-load\.d/.*|sysctl\.d/.*|sysctl\.conf"
    r"|selinux/.*|apparmor\.d/.*|xdg/autostart/.*|polkit-1/.*|doas\.conf)|/sys/.*|/proc/(?:sys/.*|sysrq-trigger)"
    r"|/(?:usr/)?lib/systemd/system/.*|/boot(/.*)?|/var/spool/cron(/.*)?|/efi(/.*)?|/library/launchdaemons(/.*)?"
)
# Files that may be added to, but not overwritten.
_LOSABLE = lazy_pattern(r"/etc/(hosts|resolv\.conf|hostname|services|group)|/var/log/.*")
_SYSTEM = (
    "etc",
    "boot",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "usr",
    "sys",
    "proc",
    "dev",
    "efi",
    "system",
    "library",
)
_HARMLESS_DEVICES = lazy_pattern(
    r"/dev/(null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd(/.*)?|shm(/.*)?|tcp/.*|udp/.*|pts/.*)"
)


# The same, as they are searched in a path between slashes: the directory, whether the path begins with it, the rule.
_DIRECTORIES = tuple((f"/{name.strip('/')}/", name[0] == "/", rule) for name, rule in _SECRET_DIRECTORIES.items())
_PADDED_ENDINGS = tuple((f"/{ending}/", rule) for ending, rule in _ENDINGS.items())


# A command names few paths, and each of them is judged by several rules.
@lru_cache(maxsize=512)
def normalise(path: str, *, cwd: str, home: str) -> str:
    """Return a path in one spelling: absolute, without `.`, `..`, `//`, `~`, `file://` and links of `/proc`."""
    path = path.strip()
    if path[:7].lower() == "file://":
        path = unquote(path[7:].removeprefix("localhost"))
    if "\\" in path:
        path = path.replace("\\", "/")
    if len(path) > 1 and path[1] == ":" and path[0].isalpha():
        path = path[2:]
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    path = posixpath.normpath(posixpath.join(cwd, path))
    if path.startswith("//"):
        path = path[1:]
    if path.startswith("/proc/"):
        path = re.sub(r"^/proc/[^/]+/cwd(?=/|$)", cwd, path)
        path = re.sub(r"^/proc/[^/]+/root(?=/|$)", "", path) or "/"
    if path.startswith("/private/"):
        path = path[8:]
    return path


@lru_cache(maxsize=512)
def sensitive(path: str, *, write: bool = False) -> str | None:
    """Return the rule that protects a normalised path, `None` when none does; the case of letters does not matter."""
    path = path.lower().rstrip(" .") or "/"
    if _ACCOUNTS.fullmatch(path):
        return "account-file"
    if _PROCESS.fullmatch(path):
        return "process-memory"
    if write and _SETTINGS.fullmatch(path):
        return "guard-settings"
    if write and _CLIENT_CODE.fullmatch(path):
        return "client-code"
    parts = path.strip("/").split("/")
    name = parts[-1]
    padded = f"/{path.strip('/')}/"
    for directory, first, rule in _DIRECTORIES:
        if directory not in padded or (first and not padded.startswith(directory)):
            continue
        if rule == "ssh-keys" and _PUBLIC_IN_SSH.fullmatch(name) and not (write and name == "config"):
            return None
        return rule
    if not _DEPENDENCIES.isdisjoint(parts) or not _FIXTURES.isdisjoint(parts) or path.startswith("/etc/ssl/certs/"):
        return None
    if name in _NAMES:
        return _NAMES[name]
    if write and _STARTED.fullmatch(path) and not path.startswith(("/tmp/", "/var/tmp/")):  # noqa: S108  # only compared
        return "shell-profile"
    if _SAMPLE.fullmatch(name) or _CODE.fullmatch(name):
        return None
    if _MOUNTED.fullmatch(path):
        return "cloud-credentials"
    if _AGENT_TOKENS.fullmatch(path):
        return "agent-token"
    for ending, rule in _PADDED_ENDINGS:
        if padded.endswith(ending):
            return rule
    for pattern, rule in _PATTERNS:
        if pattern.fullmatch(name):
            return rule
    return None


_EXEMPLARS = ("/etc/passwd", "/etc/shadow", "/etc/sudoers", ".env", ".netrc", ".npmrc", ".bashrc", ".zshrc", ".profile",
              ".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".gnupg/secring.gpg", ".kube/config", ".pgpass",
              ".claude/.credentials.json", ".codex/auth.json", ".git-credentials", ".docker/config.json")  # fmt: skip


def sensitive_glob(path: str, *, home: str, write: bool = False) -> str | None:
    """Return the rule that protects a file which a glob can match, `None` when it can match none.

    `path`: the normalised glob, with `*`, `?` or `[`.
    """
    if rule := sensitive(path, write=write):
        return rule
    parts = path.lower().split("/")
    for exemplar in _EXEMPLARS:
        inside = exemplar if exemplar.startswith("/") else f"{home}/{exemplar}"
        for candidate in (inside, "/".join([*path.split("/")[: -exemplar.count("/") - 1], exemplar])):
            names = candidate.lower().split("/")
            if len(names) == len(parts) and all(map(_reaches, names, parts)):
                return sensitive(candidate, write=write)
    return None


def _reaches(name: str, pattern: str) -> bool:
    if name.startswith(".") and not pattern.startswith("."):
        # In a glob, only a dot matches a leading dot.
        return False
    return name == pattern or fnmatchcase(name, pattern.replace("[^", "[!"))


def system_path(path: str) -> bool:
    """Return whether a normalised path belongs to the operating system; `/usr/local` belongs to the user."""
    parts = path.lower().strip("/").split("/")
    if not _DEPENDENCIES.isdisjoint(parts):
        return False
    if parts[0] not in _SYSTEM or _HARMLESS_DEVICES.fullmatch(path):
        return False
    return parts[:2] != ["usr", "local"]


def machine_file(path: str, *, overwrite: bool = False) -> bool:
    """Return whether a normalised path is a file of accounts, login or boot.

    `overwrite`: whether the file loses its content, which also counts for files such as `/etc/hosts`.
    """
    path = path.lower()
    return bool(_MACHINE.fullmatch(path) or _ACCOUNTS.fullmatch(path) or (overwrite and _LOSABLE.fullmatch(path)))


# A terminal by its name.  `/dev/tty` is the program's own one, and `/dev/ttyUSB0` and `/dev/ttyS0` are serial lines.
_TERMINAL = lazy_pattern(
    rf"/dev/(?:pts/.+|tty(?:s?\d+|[\d*?\[{UNKNOWN}].*)|vcsa?\d*|console|{UNKNOWN}.*)|/proc/(?!self/|thread-self/|0+/)[^/]+/fd/.+"
)


def other_terminal(path: str) -> bool:
    """Return whether a normalised path is a terminal that a program names, or a stream of another process."""
    return _TERMINAL.fullmatch(path) is not None


def raw_device(path: str) -> bool:
    """Return whether a normalised path is a disk or another device that must not be written to."""
    return path.startswith("/dev/") and not _HARMLESS_DEVICES.fullmatch(path)
