"""Environments of other programs, each installed once into a directory below `.bench`.

A file `ready` in the directory has the digest of the files that determine it, so a change of one installs again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
BENCH = ROOT / ".bench"
TESTS = ROOT / "tests"


class NotInstalledError(SystemExit):
    """An environment could not be made. Uncaught, it ends the program with the installer's own words."""


def python(name: str, *arguments: str, files: Sequence[Path] = ()) -> Path:
    """Return the Python of an environment of its own, with the packages that pip gets from these arguments.

    `files` determine it too, a file of constraints for example. Raises `NotInstalledError`.
    """
    directory = BENCH / name
    pip = [str(directory / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    _install(directory, [[sys.executable, "-m", "venv", str(directory)], pip], files, " ".join(arguments))
    return directory / "bin/python"


def node(name: str, *packages: str, files: Sequence[Path] = ()) -> Path:
    """Return the directory of npm packages: those named, or those of a `package.json` and its lock among `files`.

    Raises `NotInstalledError`.
    """
    directory = BENCH / name
    command = ["install", *packages] if packages else ["ci"]
    line = ["npm", *command, "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(directory)]
    _install(directory, [line], files, " ".join(packages))
    return directory


def in_tests(module: str, arguments: Sequence[str], **variables: str) -> int:
    """Run a module of the folder `tests`, and return its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), **variables}
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, env=environment).returncode


def pytest(*arguments: str, python: Path | None = None, variables: Mapping[str, str] | None = None) -> int:
    """Run tests, and return pytest's exit code."""
    line = [str(python or sys.executable), "-m", "pytest", "-q", *arguments]
    return subprocess.run(line, cwd=ROOT, env={**os.environ, **(variables or {})}).returncode


def _install(directory: Path, lines: Sequence[Sequence[str]], files: Sequence[Path], words: str) -> None:
    digest = hashlib.sha256(b"\0".join([words.encode(), *(file.read_bytes() for file in files)])).hexdigest()
    stamp = directory / "ready"
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in files:
        shutil.copy(file, directory)
    for line in lines:
        try:
            done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
        except FileNotFoundError as exc:
            raise NotInstalledError(f"{directory.name}: {line[0]} is missing") from exc
        if done.returncode:
            raise NotInstalledError(f"{directory.name}: {' '.join(line)} failed:\n{done.stdout}{done.stderr}")
    stamp.write_text(digest)
