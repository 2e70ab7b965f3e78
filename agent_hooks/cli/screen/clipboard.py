"""The person's clipboard: an image in it, saved as a file that the model can read, and a text that is put there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from base64 import b64encode

from agent_hooks.errors import AgentHooksError, os_reason

# Programs that print it: of Wayland, of X11, of macOS.
_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
# Programs that write a text: of Wayland, of X11, of macOS.
_WRITERS = (("wl-copy",), ("xclip", "-selection", "clipboard", "-in"), ("pbcopy",))
_PATIENCE = 5
_PNG = b"\x89PNG\r\n\x1a\n"


class ClipboardError(AgentHooksError):
    """There is no image in the clipboard, or no program that reads it; the text names the remedy."""


def save_image() -> str:
    """Save the image in the clipboard, and return the path of the file.  Raises `ClipboardError`."""
    programs = [each for each in _PROGRAMS if shutil.which(each[0])]
    if not programs:
        names = ", ".join(each[0] for each in _PROGRAMS)
        raise ClipboardError(
            f"no program reads images from the clipboard; install one of {names}, or name a file: @PATH"
        )
    data = next((found for each in programs if (found := _printed(each)).startswith(_PNG)), None)
    if data is None:
        raise ClipboardError("there is no image in the clipboard; a file can be named: @PATH")
    try:
        path = os.path.join(tempfile.mkdtemp(prefix="agent-hooks-"), "pasted.png")
        with open(path, "wb") as file:
            file.write(data)
    except OSError as exc:
        raise ClipboardError(f"the image cannot be saved: {os_reason(exc)}") from None
    return path


def copy_text(text: str) -> bool:
    """Put a text into the clipboard; return whether a program has done so."""
    return any(shutil.which(each[0]) and _takes(each, text) for each in _WRITERS)


def _takes(command: tuple[str, ...], text: str) -> bool:
    try:
        # Its output is no pipe, because xclip goes on in the background and would keep that open.
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def osc52(text: str) -> str:
    """Return the escape with which a terminal puts a text into the clipboard, also over ssh."""
    return f"\x1b]52;c;{b64encode(text.encode('utf-8', 'replace')).decode()}\x07"


def _printed(command: tuple[str, ...]) -> bytes:
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""
