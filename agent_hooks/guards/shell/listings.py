"""Lists of all files of a tree, and the programs that keep such a list whole.

`find`, `git ls-files`, `ls` and others print the names of files.  A list of every file, that is with no test that narrows
it, marks its text with `EVERY`.  A filter that leaves most names in the list keeps the mark, and any other program drops
it.  A program that removes the files of a marked list removes the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.words import Word

EVERY = frozenset({"every-file"})
"""Marks the names of all files of a tree that is neither temporary nor build output."""
EACH = frozenset({"each-file"})
"""Marks the name of each file in a loop over all files of a directory, or over all source files of a language."""
_SOURCE_ENDINGS_LINE = (
    "py ts tsx jsx vue svelte go rs java kt kts scala swift rb php c cc cpp cxx h hpp cs ex exs hs ml clj lua dart "
    "erl hrl r jl pl pm fs fsx vb groovy cljs lisp el scm rkt nim zig cr hx gd sol cu cuh vhd vhdl sv f90 adb ads pas "
    "scss sass less twig erb gleam elm purs tcl ps1 sh"
)
_SOURCE_ENDINGS = frozenset(_SOURCE_ENDINGS_LINE.split())
# Data, documents and pictures that no build of a project makes.
_DATA_ENDINGS_LINE = (
    "parquet feather avro orc arrow h5 hdf5 npz npy ckpt safetensors gguf onnx rds rdata ipynb jsonl tsv csv sav dta "
    "jpg jpeg heic raw cr2 nef dng png psd tif tiff mp4 mov mkv wav flac mp3 ogg m4a xlsx docx pptx odt blend fbx glb "
    "sql proto tf md rst tex bib fastq bam vcf nc gpkg shp kicad_pcb kicad_sch stl dwg step mbox eml org"
)
_DATA_ENDINGS = frozenset(_DATA_ENDINGS_LINE.split())
# Filters that leave the names as they are, or change them.
_WHOLE_LINE = "cat tee sort uniq tr nl tac rev shuf column cut paste echo printf pv sponge perl realpath comm"
_WHOLE = frozenset(_WHOLE_LINE.split())
_ALL = lazy_pattern(r"|\.\*?|\^|\$|\^\.\*?")
# Programs that `xargs` gives the names to, and that print them again.
_ECHOES = frozenset({"echo", "printf", "ls", "realpath", "readlink"})
# Code that removes the files that it reads the names of.
_REMOVES = lazy_pattern(
    r"\bunlink(?:Sync)?\b|rmSync\b|\bos\.(?:remove|unlink)\b|\brmtree\b|rm_rf?\b|File\.delete|File\.unlink|file\.remove|FileUtils\.rm\w*|remove_tree"
    r"|\b(?:system|exec|popen|run)\b.*[\"'(]\s*rm\b"
)


def keeps_every(name: str, argv: list[Word]) -> bool:
    """Return whether a program that reads a list of names prints most of them."""
    words = [str(word) for word in argv[1:]]
    operands = [word for word in words if not word.startswith("-")]
    if name in ("grep", "egrep", "fgrep", "rg"):
        inverts = any(re.match(r"-[a-zA-Z]*v|--invert-match", word) for word in words)
        return inverts or bool(_ALL.fullmatch("".join(operands[:1])))
    if name == "sed":
        return not any(re.match(r"-\w*n|--quiet|--silent", word) for word in words)
    if name in ("awk", "gawk", "mawk"):
        return any(re.match(r"\s*(?:\{|!)", word) for word in operands[:2])
    if name in ("xargs", "gxargs"):
        return not operands or operands[0] in _ECHOES
    return name in _WHOLE


def all_sources(names: Sequence[str]) -> bool:
    """Return whether one of the names, as `*.py`, is that of every source file of a language, which no program makes."""
    return any(name.startswith("*.") and name[2:].lower() in _SOURCE_ENDINGS for name in names)


def all_data(names: Sequence[str]) -> bool:
    """Return whether one of the names, as `*.parquet`, is that of all data, documents or pictures of a kind."""
    return any(name.startswith("*.") and name[2:].lower() in _DATA_ENDINGS for name in names)


def all_lost(names: Iterable[str]) -> bool:
    """Return whether one of the names is that of all source files or all data of a kind."""
    names = list(names)
    return all_sources(names) or all_data(names)


# Directories that programs fill with their output.
_OUTPUT_LINE = (
    "outputs output out runs logs log results reports screenshots plots figures renders exports thumbnails snapshots "
    "__snapshots__ artifacts checkpoints wandb mlruns lightning_logs tmp temp cache .cache _output frames generated gen"
)
_OUTPUT = frozenset(_OUTPUT_LINE.split())


def is_output(path: str) -> bool:
    """Return whether a path lies in a directory that programs fill with their output."""
    return not _OUTPUT.isdisjoint(path.lower().split("/"))


def names_each(text: str) -> bool:
    """Return whether a word of a loop is the name of the file itself, not of another one beside it."""
    return text.endswith(UNKNOWN) or names_source(text)


def names_source(text: str) -> bool:
    """Return whether a word has the ending of source files."""
    return "." in text and all_sources([f"*.{text.rpartition('.')[2]}"])


def lists_here(argv: list[Word]) -> bool:
    """Return whether `ls` prints the names of all files of the current directory."""
    return all(word.startswith("-") or word in (".", "./", "*", "*/", "./*") for word in argv[1:])


# A walk over all files of the current directory in other languages, and tests that leave some of them out.
_WALKS = lazy_pattern(
    r"readdir(?:Sync)?\(\s*['\"]\.?/?['\"]|Dir(?:\.glob\s*\(?|\[)\s*['\"](?:\*\*/)?\*['\"]|Dir\.(?:children|each_child|foreach)\b"
)
_CHOOSES = lazy_pattern(r"\.(?:filter|endsWith|includes|match|test|select|grep|end_with\?|extname)\b|=~")


def walks_here(code: str) -> bool:
    """Return whether code of a language goes through all files of the current directory."""
    return bool(_WALKS.search(code)) and not _CHOOSES.search(code)


def chooses(code: str) -> bool:
    """Return whether code leaves some of the files that it lists out."""
    return bool(_CHOOSES.search(code))


def removes_files(code: str) -> bool:
    """Return whether code of a language removes files."""
    return bool(_REMOVES.search(code))
