"""`python -m checks.peers`: install the other hook systems that the benchmarks compare with.

Each has an environment of its own, and a line says which cannot be installed.
"""

from __future__ import annotations

import sys

from checks.environments import NotInstalledError, node, python

PYTHON = {
    "pluggy": "pluggy",
    "blinker": "blinker",
    "google_adk": "google-adk",
    "strands": "strands-agents",
    "pydantic_ai": "pydantic-ai-slim",
    "uvicorn": "uvicorn",
    "claude-code-log": "claude-code-log",
}
NODE = {
    "pi": "@mariozechner/pi-coding-agent@0.27.9",
    "claude-replay": "claude-replay@0.9.0",
}


def main() -> int:
    """Install them, and return 0, because a machine without one of them only has fewer rows."""
    for name, install in {**dict.fromkeys(PYTHON, python), **dict.fromkeys(NODE, node)}.items():
        try:
            install(name, (PYTHON | NODE)[name])
            print(f"{name}: installed")
        except NotInstalledError as exc:
            print(f"{name}: cannot be installed: {str(exc).splitlines()[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
