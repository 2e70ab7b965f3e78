"""The remedy for a hook that imports a package which is not installed: a command, or a header in the hook's file."""

from __future__ import annotations

import os
import re
import shlex
import sys
from importlib.util import find_spec

from agent_hooks.errors import nearest
from agent_hooks.trust.header import has_header

_OURS = "agent_hooks"
# Packages whose modules have other names.
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "jwt": "PyJWT",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def remedy_for(exc: BaseException, hook: str) -> str:
    """Return the remedy for an import that failed because a module or a name of ours is missing, empty for any other.

    `hook`: the file that imports it.  A file that is missing beside the hook is no package.
    """
    if isinstance(exc, ImportError) and exc.name == _OURS:
        return _remedy_for_name(str(exc))
    if not isinstance(exc, ModuleNotFoundError) or not exc.name or exc.name.startswith("_agent_hooks_"):
        return ""
    top = exc.name.partition(".")[0]
    if top == _OURS:
        return f"; all names for hooks are in one module: from {_OURS} import …"
    if nearest(top, [_OURS]) is not None:
        return f"; did you mean {_OURS}?"
    # A part of a package that is installed, or of Python, has no package of its own.
    if top in sys.stdlib_module_names or (top != exc.name and top in sys.modules):
        return ""
    package = _PACKAGES.get(top, top.replace("_", "-"))
    if _has_header(hook):
        return f'; add "{package}" to the dependencies in its header (# /// script)'
    return (
        f"; install it into the Python that runs agent-hooks: {install_command(package)}; or let the hook carry it, by "
        f'three lines at its top: # /// script, # dependencies = ["{package}"], # /// (see docs/isolation.md)'
    )


def _remedy_for_name(text: str) -> str:
    """Return the remedy for a name that this package does not have."""
    found = re.search(r"cannot import name '(\w+)'", text)
    # This room is below the package itself.
    near = nearest(found[1], getattr(sys.modules.get(_OURS), "__all__", ())) if found else None
    return f"; did you mean {near}?" if near else "; docs/reference.md has its names"


def _has_header(hook: str) -> bool:
    try:
        with open(hook, "rb") as file:
            return has_header(file.read())
    # It was removed meanwhile, or it is a package.
    except (OSError, ValueError):
        return False


def install_command(package: str) -> str:
    """Return the command that installs a package into this Python."""
    prefix, package = sys.prefix, shlex.quote(package)
    if f"{os.sep}uv{os.sep}tools{os.sep}" in prefix:
        return f"uv tool install --with {package} {os.path.basename(prefix)}"
    if f"{os.sep}pipx{os.sep}venvs{os.sep}" in prefix:
        return f"pipx inject {os.path.basename(prefix)} {package}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {package}"
    return f"{python} -m pip install {package}"
