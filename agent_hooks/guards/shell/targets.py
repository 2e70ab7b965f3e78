"""The trees that a command may remove, and the directories that are roots."""

from __future__ import annotations

import re
from fnmatch import translate

from agent_hooks.guards.base import Level
from agent_hooks.guards.control import covers
from agent_hooks.guards.lazy import lazy_pattern, read_once
from agent_hooks.guards.sensitive import UNKNOWN, system_path

_BUILD_OUTPUT = (
    "node_modules build dist dist-* target .next .nuxt .output .venv venv __pycache__ .pytest_cache .mypy_cache "
    ".ruff_cache .tox .nox .hypothesis .coverage coverage htmlcov coverage_html .nyc_output .cache .parcel-cache "
    ".turbo .svelte-kit .angular .vite .gradle .eggs *.egg-info _build _site out cmake-build-* .ipynb_checkpoints "
    "DerivedData bower_components .dart_tool dist-newstyle .stack-work elm-stuff storybook-static .docusaurus "
    ".terraform .serverless .astro .expo .swc .pnpm-store package-lock.json yarn.lock pnpm-lock.yaml bun.lockb "
    "npm-shrinkwrap.json .eslintcache *.tsbuildinfo wheelhouse test-results playwright-report .wrangler .aws-sam "
    "zig-out zig-cache .zig-cache .build tmp .tmp obj Pods .vercel .netlify .nx .sass-cache .jekyll-cache .bundle "
    ".pdm-build *.dSYM TestResults dbt_packages spark-warehouse metastore_db derby.log CMakeFiles "
    "CMakeCache.txt bazel-* cover .elixir_ls"
)
BUILD_OUTPUT = tuple(_BUILD_OUTPUT.split())
# Caches below the home: their programs fetch or make the content again.  Models that took hours to fetch are none.
_CACHES = lazy_pattern(
    r"(?:\.cache|Library/Caches)/(?:pip|uv|pre-commit|go-build|golangci-lint|yarn|pnpm|npm|node|node-gyp|deno|bun|poetry|pypoetry"
    r"|pipx|black|ruff|mypy|pylint|virtualenv|Homebrew|ms-playwright|Cypress|electron|electron-builder|typescript|turbo|sccache"
    r"|ccache|bazel|bazelisk|composer|thumbnails|fontconfig|mesa_shader_cache|helm|terraform|cargo-update|nix|zig|act)(?:/.*)?"
    r"|\.npm/(?:_cacache|_npx|_logs)(?:/.*)?|\.cargo/(?:registry/(?:cache|src|index)|git/(?:db|checkouts))(?:/.*)?"
    r"|\.gradle/(?:caches|daemon)(?:/.*)?|\.m2/repository(?:/.*)?|\.ivy2/cache(?:/.*)?|\.yarn/(?:berry/)?cache(?:/.*)?"
    r"|\.bun/install/cache(?:/.*)?|\.composer/cache(?:/.*)?|\.pub-cache/hosted(?:/.*)?|\.nuget/packages(?:/.*)?"
    r"|\.local/share/pnpm/store(?:/.*)?|\.ccache(?:/.*)?|\.bundle/cache(?:/.*)?|\.cocoapods/repos(?:/.*)?|go/pkg/mod/cache(?:/.*)?"
    r"|Library/Developer/Xcode/DerivedData(?:/.*)?"
)
# A build of its own for a target (`build-arm`), but not the sources of a build, and the assets that a framework packs.
_MORE_OUTPUT = lazy_pattern(
    r"(?:^|/)build[-_](?!(?:logic|tools?|scripts?|src|source|conf\w*|conventions?|plugins?|system|utils?|support|data|info|extras?|rules|defs|files|kit"
    r"|pipelines?|images?|ci|deps|docs?|helpers?|lib|common|env\w*|templates?|resources|assets|packages?|setup|infra)(?:$|[/_.-]))[\w.+-]+(?:/|$)"
    r"|^public/(?:assets|packs(?:-test)?|build|vite(?:-\w+)?)(?:/|$)"
)
TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp")  # noqa: S108  # only compared, never opened
# A last component that matches every file of the directory.
_EVERYTHING = lazy_pattern(r"[*?.\[\]!^]*[*?][*?.\[\]!^]*")


@read_once
def _build_output() -> re.Pattern[str]:
    return re.compile("|".join(f"{translate(name)}|{re.escape(name)}" for name in BUILD_OUTPUT))


_WILD = lazy_pattern(r"[*?\[]")


class Directories:
    """The directories that paths are judged by.

    `project`: the directory in which the command runs; `home`; `temp`: for temporary files; `own`: whether `project` is
    a project, not `/` or a temporary directory.
    """

    def __init__(self, project: str, home: str, temp: tuple[str, ...]) -> None:
        self.project = project
        self.home = home
        self.temp = tuple(dict.fromkeys(path.rstrip("/") for path in (*temp, *TEMPORARY) if len(path) > 1))
        self.own = project not in ("/", *self.temp)

    def in_project(self, path: str) -> bool:
        """Return whether a path lies in the project's directory."""
        return path.startswith(f"{self.project.rstrip('/')}/")

    def in_temp(self, path: str) -> bool:
        """Return whether a path lies in a directory for temporary files, and is not part of a project there."""
        if self.own and (path == self.project or self.in_project(path)):
            return False
        if covers(path, self.project) or covers(path, self.home):
            return False
        return any(path.startswith(f"{temp}/") and len(path) > len(temp) + 1 for temp in self.temp)

    def removable(self, path: str, level: Level) -> bool:
        """Return whether a tree may be removed: it is temporary, or at level `project` it is build output."""
        if UNKNOWN in path or not path.startswith("/"):
            return False
        if self.in_temp(path):
            return True
        if level == "project" and self.is_cache(path):
            return True
        if level != "project" or not self.in_project(path):
            return False
        parts = path[len(self.project) :].strip("/").split("/")
        return any(_build_output().fullmatch(part) for part in parts) or bool(_MORE_OUTPUT.search("/".join(parts)))

    def is_cache(self, path: str) -> bool:
        """Return whether a path lies in a cache of the home that its program fills again by itself."""
        inside = path[len(self.home) + 1 :] if path.startswith(f"{self.home}/") else ""
        # Of a glob, the directory in front of it has to be in the cache.
        known = inside[: found.start()].rpartition("/")[0] if (found := _WILD.search(inside)) else inside
        return bool(known) and bool(_CACHES.fullmatch(known))

    def machine(self, path: str) -> bool:
        """Return whether a path is a root, and more than the project."""
        head, _, tail = path.rpartition("/")
        if tail and _EVERYTHING.fullmatch(tail):
            path = head or "/"
        path = path.rstrip("/") or "/"
        own = self.own and path in (self.project, f"{self.project}/.git")
        return self.root(path) and (not own or path == self.home)

    def root(self, path: str) -> bool:
        """Return whether a path is a root: a directory of the system, a home, the project, or a parent of one."""
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
            # `/home`, and `/home/dev`.
            return len(parts) <= 2
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
