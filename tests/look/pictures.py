"""Make the pictures of docs/look.md and README. The calls are made up."""

from __future__ import annotations

import tempfile
from pathlib import Path

from look.browser import DESKTOP, PHONE, chromium, visiting
from look.made_up import MINUTE, NOW, MadeUpView, rung
from look.serving import served

PICTURES = Path(__file__).parents[2] / "docs" / "assets"
MOST_BYTES = 200_000
"""The largest picture, in bytes."""


def view() -> MadeUpView:
    """Give a month of calls, the last of which a person wants to know about."""
    made = MadeUpView(48_000)
    gate = {"handler": "gate", "file": "/home/dev/app/.agent/hooks/gate.py", "line": 12}
    steps = [
        rung(
            "rewriter",
            "~/.agent/hooks/quiet.py",
            "rewrite",
            handler="quiet",
            file="/home/dev/.agent/hooks/quiet.py",
            line=6,
            diff=[{"op": "-", "text": "git push origin main"}, {"op": "+", "text": "git push --quiet origin main"}],
        ),
        rung("guard", "builtin:command-safety-guard", programs=["git"], ms=1.2),
        rung("guard", "builtin:security-audit", ms=0.1),
        rung("gate", ".agent/hooks/gate.py", "ask", reason="Push to the server?", **gate),
        rung("person", ".agent/hooks/gate.py", "yes", ms=12_400),
        rung("tool", "bash", "ok", ms=1890.0),
        rung(
            "result",
            "redaction",
            "changed",
            redacted={"token": 1},
            diff=[{"op": "-", "text": "remote: token •••"}, {"op": "+", "text": "remote: token [redacted:token]"}],
        ),
        rung("observer", "~/.agent/hooks/audit.py", file="/home/dev/.agent/hooks/audit.py", line=3),
    ]
    made.put(
        NOW + 2 * MINUTE,
        command="git push origin main",
        verdict="allow",
        flags=65,
        rungs=steps,
        by=[".agent/hooks/gate.py"],
        reason="Push to the server?",
    )
    made.put(NOW + 3 * MINUTE, command="rm -rf build", verdict="block")
    made.put(NOW + 4 * MINUTE, command="pytest -q tests/host", verdict="pass")
    return made


def main() -> None:
    """Write each picture, and say how large it is."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        for name, size, dark in (("look", DESKTOP, False), ("look-dark", DESKTOP, True), ("look-phone", PHONE, False)):
            with served(view(), Path(directory)) as server, visiting(browser, size=size, dark=dark) as visit:
                visit.open(server.path)
                visit.page.goto(f"{server.address}/#call=call-{48_000}")
                visit.page.wait_for_selector(".ladder")
                visit.page.wait_for_selector(".row.block", state="attached")
                visit.page.wait_for_timeout(300)
                path = PICTURES / f"{name}.png"
                visit.page.screenshot(path=path)
                print(f"{path}: {path.stat().st_size:,} bytes")
                assert path.stat().st_size <= MOST_BYTES, f"at most {MOST_BYTES:,} bytes"


if __name__ == "__main__":
    main()
