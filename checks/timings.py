"""`python -m checks.timings DIRECTORY`: print the seconds of CI's steps and its slowest tests, and write both as JSON.

The directory has `steps.tsv` (step, seconds, exit code; the last line of a step is
valid) and the JUnit files of the steps' tests, `STEP-NAME.xml`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

SLOWEST = 50


def read_steps(file: Path) -> list[dict[str, Any]]:
    """Return the steps in the order in which they ran last."""
    rows: dict[str, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        name, seconds, code = line.split("\t")
        rows.pop(name, None)
        rows[name] = {"step": name, "seconds": int(seconds), "exitCode": int(code)}
    return list(rows.values())


def read_tests(directory: Path) -> list[dict[str, Any]]:
    """Return all tests, the slowest first. A file that a killed pytest left half written is passed over."""
    found: list[dict[str, Any]] = []
    for file in sorted(directory.glob("*.xml")):
        try:
            cases = ET.parse(file).getroot().iter("testcase")
        except ET.ParseError:
            continue
        step = file.stem.partition("-")[0]
        for case in cases:
            name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
            found.append({"step": step, "test": name, "seconds": float(case.get("time", 0))})
    return sorted(found, key=lambda each: -each["seconds"])


def main(directory: Path) -> None:
    """Print both tables, and the path of the JSON file."""
    steps, tests = read_steps(directory / "steps.tsv"), read_tests(directory)
    total = sum(each["seconds"] for each in steps)
    print("\n== seconds of each step")
    for each in steps:
        print(f"{each['seconds']:6}  {each['step']}{'' if each['exitCode'] == 0 else '  FAILED'}")
    print(f"{total:6}  in all, on {os.cpu_count()} cores")
    print(f"\n== the {min(SLOWEST, len(tests))} slowest of {len(tests)} tests, in seconds")
    for each in tests[:SLOWEST]:
        print(f"{each['seconds']:8.1f}  {each['step']}: {each['test']}")
    path = directory / "report.json"
    path.write_text(json.dumps({"seconds": total, "steps": steps, "slowest": tests[:SLOWEST]}, indent=1) + "\n")
    print(f"\nboth tables as JSON: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
