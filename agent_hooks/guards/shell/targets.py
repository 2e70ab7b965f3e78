"""Which files a command may remove, and which directories are roots of something.

Above: the rules.  Below: sensitive.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from agent_hooks.guards.base import Level
from agent_hooks.guards.sensitive import UNKNOWN, system_path

_BUILD_OUTPUT = (
    "node_modules build dist target .next .nuxt .output .venv venv __pycache__ .pytest_cache .mypy_cache "
    ".ruff_cache .tox .nox .hypothesis .coverage coverage htmlcov coverage_html .nyc_output .cache .parcel-cache "
    ".turbo .svelte-kit .angular .vite .gradle .eggs *.egg-info _build _site out cmake-build-* .ipynb_checkpoints "
    "DerivedData bower_components .dart_tool dist-newstyle .stack-work elm-stuff storybook-static .docusaurus "
    ".terraform .serverless .astro .expo .swc .pnpm-store package-lock.json yarn.lock pnpm-lock.yaml bun.lockb "
    "npm-shrinkwrap.json .eslintcache *.tsbuildinfo wheelhouse test-results playwright-report .wrangler .aws-sam "
    "zig-out zig-cache .zig-cache .build"
)
BUILD_OUTPUT = tuple(_BUILD_OUTPUT.split())
TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp")  # noqa: S108  # names to compare with, nothing is opened
_EVERYTHING = re.compile(r"[*?.\[\]!^]*[*?][*?.\[\]!^]*")  # a last component that reaches all there is


def _covers(pattern: str, path: str) -> bool:
    """Tell whether a tree, or one of those that a pattern reaches, holds `path`."""
    trees, parts = pattern.split("/"), path.split("/")
    return len(trees) <= len(parts) and all(map(_fits, parts, trees))


def _fits(name: str, pattern: str) -> bool:
    """Tell whether the shell's pattern matches a name; a leading dot is only matched by a dot."""
    return (name[:1] != "." or pattern[:1] == ".") and fnmatchcase(name, pattern)


class Directories:
    """Where a command runs: the project's directory, home, the directories for temporary files, and what is protected."""

    def __init__(self, project: str, home: str, temp: tuple[str, ...], protected: tuple[str, ...] = ()) -> None:
        self.protected = protected
        self.project = project
        self.home = home
        self.temp = tuple(dict.fromkeys(path.rstrip("/") for path in (*temp, *TEMPORARY) if len(path) > 1))

        # somebody who works in / or in /tmp has no project there to protect
        self.own = project not in ("/", *self.temp)

    def protects(self, path: str) -> bool:
        """Tell whether a path is one of the agent's own hooks and settings, or lies below one."""
        return any(f"{path}/".startswith(f"{own}/") for own in self.protected)

    def holds_protected(self, path: str) -> bool:
        """Tell whether one of them is lost with a tree, or with one of those that a pattern reaches."""
        return any(_covers(path, own) for own in self.protected)

    def in_project(self, path: str) -> bool:
        """Tell whether a path lies below the project's directory."""
        return path.startswith(f"{self.project.rstrip('/')}/")

    def in_temp(self, path: str) -> bool:
        """Tell whether a path lies below a directory for temporary files, and is no part of the project in it."""
        if self.own and (path == self.project or self.in_project(path)):
            return False
        if _covers(path, self.project) or _covers(path, self.home):
            return False
        return any(path.startswith(f"{temp}/") and len(path) > len(temp) + 1 for temp in self.temp)

    def removable(self, path: str, level: Level) -> bool:
        """Tell whether a tree may go without a question: temporary, or build output of the project."""
        if UNKNOWN in path or not path.startswith("/"):
            return False
        if self.in_temp(path):
            return True
        if level != "project" or not self.in_project(path):
            return False
        parts = path[len(self.project) :].strip("/").split("/")
        return any(fnmatchcase(part, name) or part == name for part in parts for name in BUILD_OUTPUT)

    def root(self, path: str) -> bool:
        """Tell whether a tree is the system's, a home, or the project as a whole, or one that holds these."""
        head, _, tail = path.rpartition("/")
        if tail and _EVERYTHING.fullmatch(tail) and self.root(head or "/"):
            return True
        path = path.rstrip("/") or "/"
        if path in ("/", self.home, self.project, f"{self.project}/.git") or f"{self.project}/".startswith(f"{path}/"):
            return True
        if f"{self.home}/".startswith(f"{path}/") or system_path(path):
            return True
        parts = path.strip("/").split("/")
        if parts[0] in ("home", "Users"):
            return len(parts) <= 2  # /home and /home/somebody
        return len(parts) == 1 and parts[0] in (
            "root",
            "var",
            "opt",
            "srv",
            "mnt",
            "media",
            "data",
            "run",
            "Applications",
            "tmp",
        )
