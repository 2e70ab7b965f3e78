"""The installation of the real clients, as the committed lock files say.

    python -m clients.installing                every client, into .bench/clients/NAME
    python -m clients.installing codex pi       these two
    python -m clients.installing --latest       the newest versions, into .bench/latest/NAME
    python -m clients.installing --lock         write the lock files of the versions in locks/NAME/package.json

A directory keeps the lock file's hash in `stamp`, so an installation is made once for each lock file.  `npm ci` checks
each package against the hash in the lock file.  All clients run on one Node, which comes from npm too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent / "locks"
PINNED = ROOT / ".bench/clients"
LATEST = ROOT / ".bench/latest"
PATIENCE = 900  # seconds for one installation
NODE = "node"


@dataclass(frozen=True)
class Package:
    """One client on npm.  `name` is ours, `package` is npm's, and `program` is the command that it installs.

    `scripts`: npm runs the package's own installation script, which no other package's may.
    """

    name: str
    package: str
    program: str
    scripts: bool = False

    def version(self) -> str:
        """Return the version in the lock file."""
        return locked(self.name)[self.package]

    def path(self, directory: Path = PINNED) -> Path:
        """Return the path of the installed program."""
        return directory / self.name / "node_modules/.bin" / self.program


CLIENTS = (
    Package("claude-code", "@anthropic-ai/claude-code", "claude", scripts=True),
    Package("codex", "@openai/codex", "codex"),
    Package("gemini-cli", "@google/gemini-cli", "gemini"),
    Package("qwen-code", "@qwen-code/qwen-code", "qwen"),
    Package("copilot-cli", "@github/copilot", "copilot"),
    Package("opencode", "opencode-ai", "opencode", scripts=True),
    Package("pi", "@earendil-works/pi-coding-agent", "pi"),
    Package("openclaw", "openclaw", "openclaw"),
)
PACKAGES = {each.name: each for each in CLIENTS}


class InstallationError(Exception):
    """A client could not be installed; the message has npm's own words."""


def locked(name: str) -> dict[str, str]:
    """Return the versions that locks/NAME/package.json asks for, by package."""
    wanted = json.loads((LOCKS / name / "package.json").read_text())
    return {**wanted.get("dependencies", {}), **wanted.get("optionalDependencies", {})}


def node_directory() -> Path:
    """Return the directory of the Node that runs the clients."""
    return PINNED / NODE / "node_modules/.bin"


def environment() -> dict[str, str]:
    """Return the environment of npm: ours, with the clients' Node first."""
    return {**os.environ, "PATH": f"{node_directory()}{os.pathsep}{os.environ['PATH']}"}


def npm(*args: str, cwd: Path) -> None:
    """Run npm.  Raises `InstallationError` with its output."""
    program = shutil.which("npm")
    if program is None:
        raise InstallationError("npm is missing; it comes with Node, from https://nodejs.org")
    line = [program, *args, "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(line, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise InstallationError(f"npm {' '.join(args)} failed in {cwd}:\n{done.stdout}{done.stderr}")


def run_script(package: Package, directory: Path) -> None:
    """Run the package's own installation script."""
    own = directory / "node_modules" / package.package
    script = json.loads((own / "package.json").read_text())["scripts"]["postinstall"]
    done = subprocess.run(
        script, shell=True, cwd=own, env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise InstallationError(f"{script} failed in {own}:\n{done.stdout}{done.stderr}")


def stamp_of(name: str) -> str:
    """Return the hash of the lock files that determine an installation."""
    files = [LOCKS / name / "package-lock.json", LOCKS / NODE / "package-lock.json"]
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()


def install(name: str) -> bool:
    """Install a client, or Node, by its lock file; return `False` if it was there.  Raises `InstallationError`."""
    directory = PINNED / name
    stamp = directory / "stamp"
    if stamp.exists() and stamp.read_text() == stamp_of(name):
        return False
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(LOCKS / name / file, directory / file)
    npm("ci", cwd=directory)
    finish(name, directory, None if name == NODE else PACKAGES[name].version())
    stamp.write_text(stamp_of(name))
    return True


def install_latest(name: str) -> bool:
    """Install the newest version of a client, beside the pinned one; return `True`.  Raises `InstallationError`."""
    directory = LATEST / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "package.json").write_text('{"private": true}')
    npm("install", f"{PACKAGES[name].package}@latest", cwd=directory)
    finish(name, directory, None)
    return True


def finish(name: str, directory: Path, version: str | None) -> None:
    """Run the installation script that a client needs, and check that its package has the version."""
    if name == NODE:
        return
    package = PACKAGES[name]
    if package.scripts:
        run_script(package, directory)
    found = installed_version(name, directory.parent)
    if version not in (None, found):
        raise InstallationError(f"{name}: npm installed {found}, but the lock file asks for {version}")


def installed_version(name: str, directory: Path = PINNED) -> str:
    """Return the version of an installed client."""
    file = directory / name / "node_modules" / PACKAGES[name].package / "package.json"
    return str(json.loads(file.read_text())["version"])


# ---- lock files


def write_lock(name: str) -> None:
    """Write the lock file of a client's package.json.  Raises `InstallationError`."""
    directory = LOCKS / name
    file = directory / "package-lock.json"
    file.unlink(missing_ok=True)
    npm("install", "--package-lock-only", cwd=directory)
    lock = json.loads(file.read_text())
    packages: dict[str, dict[str, Any]] = lock["packages"]
    for package in packages.values():
        # An address names the machine that wrote the file; npm takes the reader's registry without it.
        package.pop("resolved", None)
    for package in list(packages.values()):
        for wanted, version in package.get("optionalDependencies", {}).items():
            if f"node_modules/{wanted}" not in packages and "npm:" not in version:
                packages[f"node_modules/{wanted}"] = {"version": version, "optional": True, **platform_of(wanted)}
    lock["packages"] = dict(sorted(packages.items()))
    file.write_text(json.dumps(lock, indent=2) + "\n")


def platform_of(package: str) -> dict[str, list[str]]:
    """Return the platform that the name of a package says, for one that the registry here does not have."""
    words = package.replace("/", "-").split("-")
    systems = {"darwin": "darwin", "windows": "win32", "win32": "win32", "android": "android", "freebsd": "freebsd"}
    system = next((systems[word] for word in words if word in systems), "linux")
    chips = {"x64": "x64", "arm64": "arm64", "arm": "arm", "ia32": "ia32", "universal": "arm64"}
    chip = next((chips[word] for word in words if word in chips), "none")
    found = {"os": [system], "cpu": [chip]}
    return {**found, "libc": ["musl"]} if "musl" in words else found


def main() -> None:
    """Install the clients that the command line names, and print how long each took."""
    parser = argparse.ArgumentParser(prog="clients.installing")
    parser.add_argument("names", nargs="*", choices=[*PACKAGES, NODE, []], default=[])
    parser.add_argument("--latest", action="store_true")
    parser.add_argument("--lock", action="store_true")
    given = parser.parse_args()
    names = given.names or list(PACKAGES)
    if given.lock:
        for name in given.names or [NODE, *PACKAGES]:
            write_lock(name)
        return
    with ThreadPoolExecutor(2) as pool:
        failures = [each for each in (one(NODE, False), *pool.map(lambda name: one(name, given.latest), names)) if each]
    sys.exit(1 if failures else 0)


def one(name: str, latest: bool) -> str | None:
    """Install one client and print it; return the error."""
    began = time.monotonic()
    try:
        fresh = install_latest(name) if latest else install(name)
    except (InstallationError, subprocess.TimeoutExpired, OSError) as exc:
        print(f"{name}: CANNOT BE INSTALLED: {exc}", file=sys.stderr, flush=True)
        return str(exc)
    if fresh and name != NODE:
        version = installed_version(name, LATEST if latest else PINNED)
        print(f"{name} {version}: installed in {time.monotonic() - began:.0f} s", flush=True)
    return None


if __name__ == "__main__":
    main()
