"""`python -m checks.fuzz.guided TARGET CORPUS OPTION…`: run one target under Atheris, with options of libFuzzer."""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]  # not installed everywhere


def main() -> None:
    """Import the target with its code instrumented, and run it until the time is over or an exception is raised."""
    with atheris.instrument_imports(include=["agent_hooks"]):
        from checks.fuzz.targets import TARGETS
    read = TARGETS[sys.argv.pop(1)].read

    def once(data: bytes) -> None:
        read(data)

    atheris.Setup(sys.argv, once)
    atheris.Fuzz()


main()
