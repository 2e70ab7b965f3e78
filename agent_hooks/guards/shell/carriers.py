"""Programs whose arguments are another command, which they carry: `sudo`, `env`, `timeout` and others.

A row of the table tells how to find the carried command behind the program's own options and operands.
"""

from __future__ import annotations

from msgspec import Struct

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word, marked


class Prefix(Struct, frozen=True):
    """How to find the command that a program carries.

    `short`: letters of short options with a value; `long`: long options with a value as the next word; `leading`: the
    number of operands before the command; `assigns`: whether `NAME=value` words come before it; `query`: letters of
    options with which the program runs nothing.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    leading: int = 0
    assigns: bool = False
    query: str = ""


_PLAIN = Prefix()
_ONE = Prefix(leading=1)
_EMULATOR = Prefix("LEUrscBgpdD0", ("--cpu",))
_CPUS = "x86_64 i386 aarch64 arm riscv64 ppc64le s390x mips"
# Programs without options of their own.
_BARE = "chronic cronic ifne run-one tini dumb-init heaptrack torify tsocks wine wine64 with-contenv coreutils shx"
PREFIXES: dict[str, Prefix] = {
    "sudo": Prefix(
        "ugpCcDhRrTtU", ("--user", "--group", "--prompt", "--chdir", "--host", "--chroot"), assigns=True, query="lvKk"
    ),
    "doas": Prefix("uC", assigns=True, query="L"),
    "run0": Prefix("u", ("--user", "--setenv"), assigns=True),
    "pkexec": Prefix("", ("--user",)),
    "env": Prefix("uCP", ("--unset", "--chdir"), assigns=True),
    "command": Prefix(query="vV"),
    "builtin": _PLAIN,
    "exec": Prefix("a"),
    "coproc": _PLAIN,
    "nohup": _PLAIN,
    "nice": Prefix("n", ("--adjustment",)),
    "ionice": Prefix("cnpPu", ("--class", "--classdata")),
    "chrt": Prefix("TPD", leading=1),
    "taskset": Prefix("", leading=1),
    "timeout": Prefix("ks", ("--kill-after", "--signal"), leading=1),
    "gtimeout": Prefix("ks", ("--kill-after", "--signal"), leading=1),
    "time": Prefix("fo", ("--format", "--output")),
    "stdbuf": Prefix("ioe", ("--input", "--output", "--error")),
    "setsid": _PLAIN,
    "setpriv": Prefix("", ("--reuid", "--regid")),
    "setarch": _ONE,
    "flock": Prefix("wEc", ("--timeout", "--wait", "--conflict-exit-code"), leading=1),
    "chroot": Prefix("", ("--userspec", "--groups"), leading=1),
    "unshare": Prefix("RSGw"),
    "nsenter": Prefix("tSGw", ("--target",)),
    "bwrap": Prefix(leading=0),
    "firejail": _PLAIN,
    "fakeroot": _PLAIN,
    "proot": Prefix("rbwqk"),
    "strace": Prefix("eopsuEaISPXb"),
    "ltrace": Prefix("eopsuaAnDl"),
    "valgrind": _PLAIN,
    "gosu": _ONE,
    "su-exec": _ONE,
    "chpst": Prefix("uUbenmdofprctl/"),
    "unbuffer": _PLAIN,
    "xvfb-run": Prefix("enfpsw"),
    "dbus-run-session": Prefix("", ("--config-file",)),
    "systemd-run": Prefix("pEuM", ("--unit", "--property", "--setenv", "--uid", "--description")),
    "caffeinate": Prefix("tw"),
    "torsocks": _PLAIN,
    "proxychains": Prefix("f"),
    "proxychains4": Prefix("f"),
    "sshpass": Prefix("fdpP"),
    "rlwrap": Prefix("bcfHlSs"),
    "eatmydata": _PLAIN,
    "busybox": _PLAIN,
    "toybox": _PLAIN,
    "npx": Prefix("pc", ("--package", "--call")),
    "bunx": _PLAIN,
    "pnpx": _PLAIN,
    "uvx": Prefix("p", ("--from", "--with", "--python")),
    "dotenv": Prefix("ef"),
    "doppler": Prefix(leading=1),
    **dict.fromkeys(_BARE.split(), _PLAIN),
    **dict.fromkeys(("s6-setuidgid", "setuidgid", "envdir", "envchain"), _ONE),
    "choom": Prefix("np", ("--adjust", "--pid")),
    "prlimit": Prefix("p", ("--pid",)),
    "numactl": Prefix("NmCpil", ("--cpunodebind", "--membind", "--physcpubind", "--interleave", "--preferred")),
    "cpulimit": Prefix("lepPc", ("--limit", "--exe", "--pid")),
    "faketime": Prefix("", leading=1),
    "retry": Prefix("tdmx", ("--times", "--delay", "--until", "--while")),
    "systemd-inhibit": Prefix("", ("--what", "--who", "--why", "--mode")),
    "dbus-launch": Prefix("", ("--config-file",)),
    "flatpak-spawn": Prefix("", ("--directory",)),
    "systemd-nspawn": Prefix("DMupUE", ("--directory", "--machine", "--user", "--setenv", "--bind")),
    "kitty": Prefix("ocdTn", ("--override", "--config", "--directory", "--title", "--name", "--class")),
    "watchexec": Prefix("ewifdsoEr", ("--exts", "--watch", "--ignore", "--filter", "--signal", "--debounce")),
    "tsp": Prefix("LDNSWOo"),
    "nq": _PLAIN,
    **{f"qemu-{cpu}{kind}": _EMULATOR for cpu in _CPUS.split() for kind in ("", "-static")},
    "nocorrect": _PLAIN,
    "noglob": _PLAIN,
}
# Programs that carry a command behind a verb: `uv run …`.
VERBS: dict[str, tuple[str, ...]] = {
    "uv": ("run",),
    "pipx": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "conda": ("run",),
    "bundle": ("exec",),
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "bun": ("x",),
    "mise": ("exec", "x"),
    "op": ("run",),
    "direnv": ("exec",),
    "aws-vault": ("exec",),
    "perf": ("stat", "record"),
    **dict.fromkeys(("asdf", "rbenv", "pyenv", "nodenv", "goenv", "jenv", "lerna", "nx", "tox"), ("exec",)),
    **dict.fromkeys(("devbox", "overmind", "foreman", "honcho", "dotenvx", "infisical", "teller"), ("run",)),
    **dict.fromkeys(("micromamba", "mamba", "pixi", "toolbox"), ("run",)),
    "chamber": ("exec",),
    "sops": ("exec-env", "exec-file"),
    "devenv": ("shell",),
    "pueue": ("add",),
    "rr": ("record",),
    "uftrace": ("record", "live"),
    "nix": ("run", "develop", "shell"),
}
# Programs that carry a command behind one of these words.
BEHIND: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("xterm", "urxvt", "rxvt", "st", "konsole", "lxterminal", "mate-terminal", "terminology"), ("-e",)),
    **dict.fromkeys(("gnome-terminal", "xfce4-terminal", "terminator", "ptyxis", "kgx"), ("--", "-x", "-e")),
    "alacritty": ("-e", "--command"),
    "distrobox": ("--", "-e", "--exec"),
    "wsl": ("--", "-e", "--exec"),
    **dict.fromkeys(("guix", "flox"), ("--",)),
    "just": ("-c", "--command"),
    "nix-shell": ("--run", "--command"),
    "nodemon": ("-x", "--exec"),
    "bpftrace": ("-c",),
}
# Words between a program and its verb: `hatch env run`, `yarn workspaces foreach -A exec`, `yarn workspace app exec`.
_BETWEEN = {"uv": ("tool",), "hatch": ("env",), "yarn": ("workspaces", "foreach")}
# Programs whose verb has an operand before the command.
_LEADING = ("direnv", "aws-vault", "chamber", "sops")
_ASSIGN = lazy_pattern(r"[A-Za-z_]\w*=")


def carried(name: str, argv: list[Word]) -> tuple[list[Word], list[Word]] | None:
    """Return the carried command and the `NAME=value` words before it; `None` when the program carries none."""
    prefix = PREFIXES.get(name)
    if prefix is None:
        verbs = VERBS.get(name)
        if verbs is None:
            return _behind(name, argv)
        while len(argv) > 2 and argv[1] in _BETWEEN.get(name, ()):
            argv = [argv[0], *argv[2:]]
        for at, word in enumerate(argv[1:], 1):
            if word in verbs:
                carrier = ParsedOptions(
                    argv[at:],
                    "pnef",
                    (
                        "--with",
                        "--python",
                        "--package",
                        "--env-file",
                        "--filter",
                        "-C",
                        "--from",
                        "--spec",
                        "--pip-args",
                    ),
                    stop_early=True,
                )
                leading = 1 if name in _LEADING else 0
                rest = [word for word in carrier.operands[leading:] if word != "--"]
                if name == "uv" and carrier.has("m", "--module"):
                    return [Word("python"), Word("-m"), *rest], []
                return _without_version(name, _script(rest)), []
            if not word.startswith("-"):
                return None
        return None
    if name == "coreutils" and argv[1:] and argv[1].startswith("--coreutils-prog="):
        return [Word(argv[1].partition("=")[2]), *argv[2:]], []
    options = ParsedOptions(argv, prefix.short, prefix.long, stop_early=True)
    if any(letter in options.flags for letter in prefix.query):
        # `command -v NAME` prints the name.
        return [Word("echo"), *options.operands] if name == "command" else [], []
    rest = options.operands
    assigns: list[Word] = []
    while prefix.assigns and rest and _ASSIGN.match(rest[0]):
        assigns.append(rest[0])
        rest = rest[1:]
    rest = rest[prefix.leading :]
    if rest and rest[0] == "--":
        rest = rest[1:]
    return _without_version(name, _script(rest) if name in ("kitty", "watchexec") else rest), assigns


def _behind(name: str, argv: list[Word]) -> tuple[list[Word], list[Word]] | None:
    """Return the command behind a word that starts it, as `xterm -e` has one; `None` without such a word."""
    marks = BEHIND.get(name, ())
    at = next((at for at, word in enumerate(argv) if word in marks), len(argv))
    return (_script(argv[at + 1 :]), []) if at + 1 < len(argv) else None


def _script(words: list[Word]) -> list[Word]:
    """Return the words of a command; a first word with blanks is a script."""
    return [Word("sh"), Word("-c"), words[0]] if words and " " in words[0] else words


def _without_version(name: str, words: list[Word]) -> list[Word]:
    """Return a command with the package's bare name: `uvx tool@1.0` and `npx tool@latest` run `tool`."""
    if name not in _RUNNERS or not words:
        return words
    return [marked(_VERSION.sub("", words[0]), words[0]), *words[1:]]


_RUNNERS = {"npx", "bunx", "pnpx", "uvx", "uv", "pipx", "npm", "pnpm", "yarn", "bun"}
# The name may begin with `@`.
_VERSION = lazy_pattern(r"(?<=[^/])[@=<>~!\[].*")
