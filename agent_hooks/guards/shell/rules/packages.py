"""Rules about packages of the system: programs that others need are removed."""

from __future__ import annotations

import re

from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "removes programs or libraries of this machine"
_ELSEWHERE = "takes packages or sources from elsewhere from now on"
RULES: dict[str, tuple[Rule, ...]] = losses(
    (
        # Without encryption, whoever is on the way decides about the packages.
        Loss(
            "hidden-code",
            "npm pnpm yarn bun",
            r"\bconfig set (?:\S*:)?registry[= ]http://(?!localhost|127\.)",
            _ELSEWHERE,
        ),
        Loss(
            "hidden-code",
            "pip pip3 uv",
            r"\bconfig set \S*(?:index-url[= ]http://|trusted-host[= ])(?!localhost|127\.)\S",
            _ELSEWHERE,
        ),
        Loss(
            "hidden-code",
            "git",
            (
                r"\bconfig\b.* url\.(?!(?:git@|ssh://(?:git@)?|https://)(?:github|gitlab|bitbucket)\.)\S+"
                r"\.(?:push)?insteadof \S+"
            ),
            _ELSEWHERE,
            r"--(?:get|unset|list)",
        ),
        Loss(
            "packages",
            "apt apt-get aptitude nala",
            r"^\S+ (?:-\S+ )*(?:remove|purge|autoremove|autopurge|full-upgrade|dist-upgrade|clean --all)\b",
            _WHY,
            r" -s\b| -\w*s\w* (?:remove|purge)|--download-only",
        ),
        Loss(
            "packages",
            "yum dnf dnf5 microdnf tdnf zypper urpme swupd eopkg slackpkg removepkg installpkg xbps-remove sorcery",
            (
                r"^\S+ (?:-\S+ )*(?:remove|erase|autoremove|rm|history (?:undo|rollback)|distro-sync|downgrade|swap|"
                r"bundle-remove|module (?:remove|reset))\b|^(?:removepkg|urpme|xbps-remove) \S"
            ),
            _WHY,
            r"--assumeno",
        ),
        Loss(
            "packages",
            "pacman yay paru pamac",
            r"^\S+ (?:-R\w*|--remove|remove|-Scc|-Syu\w*dd)\b|^\S+ -\w*R\w*",
            _WHY,
            r"^\S+ -[QS]\w*|-p\b|--print",
        ),
        Loss("packages", "apk opkg", r"\b(?:del|remove)\b", _WHY, r" -s\b"),
        Loss("packages", "rpm", r" (?:-e\b|--erase)|--nodeps|^rpm -\w*e(?= )", _WHY, r"--test|^rpm -q"),
        Loss("packages", "dpkg", r" (?:-r|-P|--remove|--purge|--force-\S+)\b", _WHY),
        Loss(
            "packages",
            "emerge equery guix nix nix-env nix-collect-garbage nix-store nixos-rebuild",
            (
                r"--unmerge|--depclean|^emerge\b.* -\w*[cC]\b|^guix (?:gc|package .*(?:-r|--remove|-d))|"
                r"^nix-collect-garbage\b.*-d|--delete-old|^nix (?:profile (?:remove|wipe-history)|store (?:gc|"
                r"delete))|^nix-env\b.* (?:-e|--uninstall|--delete-generations)|^nix-store (?:--gc|--delete)|"
                r"^nixos-rebuild .*--rollback|^guix gc$"
            ),
            _WHY,
            r"^nix-collect-garbage$",
        ),
        Loss(
            "packages",
            "brew port fink",
            r"^\S+ (?:uninstall|remove|rm|autoremove|deactivate|untap|unlink --all)\b|^brew cleanup\b.*--prune[= ]all",
            _WHY,
        ),
        Loss("packages", "snap flatpak appimage", r"^\S+ (?:remove|uninstall|disable|repair|revert)\b", _WHY),
        Loss(
            "packages",
            "choco chocolatey winget scoop cinst cuninst pkg pkg_delete pkgin pkgutil installer msiexec softwareupdate",
            (
                r"^\S+ (?:-\S+ )*(?:uninstall|remove|delete|autoremove|rm|upgrade --all|--forget|--unlink|reset)\b|"
                r"^pkg_delete \S|^pkgin .*remove|^msiexec\b.*/(?:x|uninstall)"
            ),
            _WHY,
            r" -n\b",
        ),
        Loss(
            "packages",
            "conda mamba micromamba",
            r"\benv remove\b.* (?:-n|--name)[= ]base\b|\bremove\b.*--all\b|\bclean\b.*--all.*--force",
            _WHY,
        ),
        Loss(
            "packages",
            "rustup nvm fnm volta pyenv rbenv sdk asdf mise ghcup juliaup",
            r"^\S+ (?:self uninstall|uninstall|toolchain (?:uninstall|remove)|rm -rf|remove|implode|nuke)\b",
            _WHY,
            r"\bmise (?:uninstall|remove) \S+ -n",
        ),
        Loss(
            "packages",
            "npm pnpm yarn",
            (
                r"^\S+ (?:uninstall|un|rm|remove|r|unlink|global remove)\b.* (?:-g|--global|--location[= ]global)\b|"
                r"^yarn global remove|^\S+ -g (?:uninstall|un|rm|remove)\b"
            ),
            _WHY,
        ),
    )
)


def pip(command: Command) -> None:
    """`pip freeze | xargs pip uninstall` removes every package."""
    if command.argv[1:2] != ["uninstall"]:
        return
    every = any("freeze" in word or word == "list" for word in command.interpreter.pipeline_words)
    listed = any(re.fullmatch(r"/dev/fd/.*", word) for word in command.argv)
    if every or listed or any(word in ("pip", "setuptools", "*") for word in command.argv[2:]):
        command.report("packages", _WHY)


RULES.update({name: (*RULES[name], pip) for name in ("pip", "pip3")})
