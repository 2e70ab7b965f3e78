"""Record docs/assets/demo.svg: the commands of a first hook, run in a real terminal (tmux), and its screen as a picture.

The picture has no fonts and no links, so that a page with it asks no other machine.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "assets" / "demo.svg"
COLUMNS, ROWS = 100, 60
PATIENCE = 120.0  # seconds
HOOK = """\
from agent_hooks import Block, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    @api.on("tool_call")
    async def lock(event: ToolCall, ctx: HookContext) -> Block | None:
        if event.effects.writes("uv.lock") or event.effects.deletes("uv.lock"):
            return Block("only uv changes uv.lock")
        return None
"""
LINES = (
    "cat .agent/hooks/lock.py",
    "agent-hooks trust --yes -q",
    "agent-hooks run '@bash sed -i s/1.0/9.9/ uv.lock'",
    "agent-hooks run '@bash L=lock; echo > uv.$L'",
    "agent-hooks run '@bash cat uv.lock'",
    "agent-hooks why",
)
# Prints each command as a person types it, and runs it.
SCRIPT = """\
clear
for line in {lines}; do
    printf '\\e[1;32m$\\e[0m \\e[1m%s\\e[0m\\n' "$line"
    eval "$line"
    echo
done
tmux -S "$SOCKET" wait-for -S recorded
exec sleep 600
"""
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def main() -> int:
    """Write the picture, and return 0."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        screen = record(Path(folder))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(picture(screen))
    print(f"{TARGET.relative_to(ROOT)}: written")
    return 0


def record(folder: Path) -> str:
    """Run the commands in a terminal, and return its screen with the codes of its colours."""
    project, socket = folder / "shop", folder / "socket"
    hook = project / ".agent" / "hooks" / "lock.py"
    hook.parent.mkdir(parents=True)
    hook.write_text(HOOK)
    (project / "uv.lock").write_text("anyio 1.0\n")
    script = folder / "script.sh"
    script.write_text(SCRIPT.format(lines=" ".join(map(shlex.quote, LINES))))
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TMUX", "AGENT_HOME")},
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SOCKET": str(socket),
        "LC_ALL": "C.UTF-8",
    }
    tmux = ["tmux", "-S", str(socket), "-f", os.devnull]
    size = ["-x", str(COLUMNS), "-y", str(ROWS)]
    start = [*tmux, "new-session", "-d", *size, "-c", str(project), f"bash {shlex.quote(str(script))}"]
    subprocess.run(start, env=environment, check=True)
    done = False
    try:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run([*tmux, "wait-for", "recorded"], env=environment, check=True, timeout=PATIENCE)
            done = True
        capture = [*tmux, "capture-pane", "-p", "-e"]
        shown = subprocess.run(capture, env=environment, check=True, capture_output=True, text=True).stdout.rstrip()
    finally:
        subprocess.run([*tmux, "kill-server"], env=environment, check=False)
    if not done:
        sys.exit(f"a command did not end within {PATIENCE:g} s:\n{shown}")
    return shown


def picture(screen: str) -> str:
    """Return a screen as SVG that loads nothing."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(screen), soft_wrap=True)
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", _FONTS).replace(
        "<!-- Generated with Rich https://www.textualize.io -->", ""
    )
    svg = console.export_svg(title="agent-hooks", code_format=form, unique_id="demo")
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    sys.exit(main())
