"""The parts of a call that applies a patch: a tool for patches, or a program in the commands of a shell."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import Part
from agent_hooks.bridges.patch_diffs import Applied, applied, parts_of_diff
from agent_hooks.bridges.patch_text import edit, parts_of, unread
from agent_hooks.guards import runs_of
from agent_hooks.guards.base import Run
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.tools import plain_tool, roles_of, use_of

PATCH_TOOLS = ("apply_patch", "applypatch")
"""The names of the tool, and of the program of a shell, that applies such a patch."""
# The texts of one input that are searched.
_MOST_TEXTS = 1000
# Stands for the directory of a call that names none; deep, so that `cd ../..` stays below the root.
_SOMEWHERE = "/" + "/".join(["\x01"] * 32)
_HOME = "/\x01home"
# With this option, Codex is the program that applies a patch.
_AS_PATCH = "--codex-run-as-apply-patch"


def parts_of_call(
    tool_name: str, input: Mapping[str, Any], texts: list[str], cwd: str | None, files: Mapping[str, str]
) -> tuple[Part, ...]:
    """Return the parts of a call, as `patch.parts_of_call` does; `texts`: the texts in its input."""
    plain = plain_tool(tool_name)
    if plain.endswith(PATCH_TOOLS) or plain == "patch":
        return _of_tool(tool_name, input, texts)
    if use_of(tool_name) == "shell":
        return _of_shell(tool_name, input, "\n".join(texts), cwd, files)
    return ()


def _of_tool(tool_name: str, input: Mapping[str, Any], texts: list[str]) -> tuple[Part, ...]:
    if len(texts) > _MOST_TEXTS:
        return unread("the call has too many arguments")
    parts = tuple(part for text in texts for part in parts_of(text) or parts_of_diff(text, None))
    if not parts and tool_name in PATCH_TOOLS:
        return unread("the call holds no patch that can be read")
    return below(_directory(input), parts)


def _directory(input: Mapping[str, Any]) -> str:
    found = (value for key, value in input.items() if "directory" in roles_of(key))
    return next((value for value in found if isinstance(value, str)), "")


def below(directory: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts whose relative paths, which are relative to `directory`, are relative to the agent's directory."""
    return tuple(_below(directory, part) for part in parts) if directory not in ("", ".") else parts


def _below(directory: str, part: Part) -> Part:
    if part.tool_name == "bash":
        program, dashes, *paths = shlex.split(part.input["command"])
        return Part("bash", {"command": shlex.join((program, dashes, *(_joined(directory, each) for each in paths)))})
    if part.unread:
        return part
    return Part(part.tool_name, {**part.input, "path": _joined(directory, part.input["path"])})


def _joined(directory: str, path: str) -> str:
    return path if path.startswith("~") else posixpath.normpath(posixpath.join(directory, path))


# ---- programs of a shell ---------------------------------------------------------------------------------------------


def _of_shell(
    tool_name: str, input: Mapping[str, Any], raw: str, cwd: str | None, files: Mapping[str, str]
) -> tuple[Part, ...]:
    root = cwd or _SOMEWHERE
    known = {posixpath.normpath(posixpath.join(root, path)): text for path, text in files.items()}
    runs = runs_of(tool_name, input, root, _HOME, known)
    if runs is None:
        return (*parts_of(raw), *unread("the command cannot be read"))
    parts: list[Part] = []
    for run in runs:
        if (text := _patch_of(run)) is not None:
            # Codex takes the patch from the command before a shell expands it, so that text counts too.
            found = (*_of_text(text), *parts_of(raw))
            if run.stdin is None and len(run.words) == 1:
                found = _to_be_read(found, run, run.file, root, raw)
            parts += _placed(run.cwd, root, found)
        elif (diffs := applied(run.words)) is not None:
            parts += _of_diffs(run, root, raw, diffs)
    return _distinct(parts)


def _patch_of(run: Run) -> str | None:
    """Return the patch that a program applies, `UNKNOWN` for one that cannot be known, `None` for another program."""
    words = list(run.words)
    if _AS_PATCH in words:
        words = words[words.index(_AS_PATCH) :]
    elif words[0] not in PATCH_TOOLS:
        return None
    # A program that gets no text waits for one.
    return words[1] if words[1:] else run.stdin or UNKNOWN


def _of_diffs(run: Run, root: str, raw: str, diffs: Applied) -> list[Part]:
    """Return the parts of a program that applies diffs."""
    files, strip, directory, is_reversed = diffs
    parts: list[Part] = []
    only = [each[1:] for each in files if each.startswith("=")]
    for file in [each for each in files if not each.startswith("=")] or [""]:
        path = posixpath.normpath(posixpath.join(run.cwd, file)) if file else run.file
        text = run.files.get(path) if file else run.stdin
        if only and UNKNOWN not in only[0]:
            parts += _changed(only[0], text, is_reversed=is_reversed)
        elif not text or UNKNOWN in "".join((text, directory)):
            reason = "the diff cannot be known before the command runs"
            parts += _to_be_read(unread(reason), run, path, root, raw)
        else:
            found = parts_of_diff(text, strip, is_reversed=is_reversed)
            parts += found or unread("the program gets no diff that can be read")
    return list(_placed(posixpath.join(run.cwd, directory) if directory else run.cwd, root, tuple(parts)))


def _to_be_read(parts: tuple[Part, ...], run: Run, path: str, root: str, raw: str) -> tuple[Part, ...]:
    """Return parts of which those that are unread name their file, if the command line has not changed it before."""
    if not path or UNKNOWN in path or path.startswith(_HOME) or path in run.files:
        return parts
    before, found, _ = raw.partition(posixpath.basename(path))
    # The first mention of the file must be that of this program.
    here = re.split(r"[;&|\n]", before)[-1]
    if not found or not re.search(rf"(?:^|[\s/'\"(`]){re.escape(run.words[0])}\s", here):
        return parts
    file = _from_somewhere(path) if root == _SOMEWHERE else path
    return tuple(replace(part, file=file) if part.unread else part for part in parts)


def _changed(path: str, text: str | None, *, is_reversed: bool) -> list[Part]:
    """Return the part that applies a whole diff to one file."""
    lines = (text or "").split("\n")
    old, new = ([line[1:] for line in lines if line[:1] in (" ", sign)] for sign in ("+-" if is_reversed else "-+"))
    return [edit(path, old, new)]


def _of_text(text: str) -> tuple[Part, ...]:
    """Return the parts of a patch, a part of which may not be known."""
    if UNKNOWN not in text:
        return parts_of(text) or unread("the program gets no patch that can be read")
    known = [part for part in parts_of(text) if not any(UNKNOWN in value for value in part.input.values())]
    return (*known, *unread("the patch cannot be known before the command runs"))


def _placed(directory: str, root: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a program that runs in `directory`; `root`: the directory of the call."""
    if directory == root:
        return parts
    if UNKNOWN in directory:
        return (*parts, *unread("the directory of the patch cannot be known before the command runs"))
    if directory == _HOME or directory.startswith(f"{_HOME}/"):
        return below(f"~{directory[len(_HOME) :]}", parts)
    return below(_from_somewhere(directory) if root == _SOMEWHERE else directory, parts)


def _from_somewhere(directory: str) -> str:
    """Return a directory relative to `_SOMEWHERE`; one that shares nothing with it is absolute."""
    there, here = directory.split("/"), _SOMEWHERE.split("/")
    same = next(
        (at for at, pair in enumerate(zip(there, here, strict=False)) if len({*pair}) > 1), min(len(there), len(here))
    )
    return directory if same < 2 else "/".join([".."] * (len(here) - same) + there[same:])


def _distinct(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple({(part.tool_name, *part.input.values(), part.unread): part for part in parts}.values())
