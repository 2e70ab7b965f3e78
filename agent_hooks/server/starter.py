"""The head of the generated file (see `stub`): it runs the program in the comments below, from bytecode beside the file.

To compile the program would take longer than to run it.  The program is in comments, because Python reads over them
faster than over code.
"""

import _imp
import marshal
import posix
import sys

# The import of `typing` would double the time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

# The beginning of each line of the program.
MARK = b"#|"
# Numbers of bytes.
_DIGEST, _CHUNK = 16, 1 << 16


def code_of(path: str) -> "CodeType":
    """Return the code of the program in a file: the bytecode beside it if that fits, else the program compiled now."""
    text = _content(path)
    try:
        found = _content(f"{path}c")
        if found[:_DIGEST] == digest(text, found[_DIGEST:]):
            # The bytecode is as trustworthy as the text, because the same user writes both.
            return marshal.loads(found[_DIGEST:])  # type: ignore[no-any-return]  # noqa: S302  # see above
    except (OSError, ValueError, EOFError, TypeError):
        # The file is missing, or is no bytecode.
        pass
    return made(text, path)


def made(text: bytes, path: str) -> "CodeType":
    """Return the code of the program in a text, without docstrings."""
    program = b"\n".join([line[len(MARK) :] for line in text.split(b"\n") if line.startswith(MARK)])
    return compile(program, path, "exec", dont_inherit=True, optimize=2)


def digest(text: bytes, code: bytes) -> bytes:
    """Return a hash that shows that `code` is complete, and was compiled from this text by this Python.

    It is the hash that Python has built in for its bytecode.  It need not withstand an attack, because a program that can
    write the bytecode can write the text too.
    """
    known = f"{sys.version}\0{sys.implementation.cache_tag}\0{len(text)}\0".encode() + text + code
    return _imp.source_hash(1, known) + _imp.source_hash(2, known)


def _content(path: str) -> bytes:
    file, content = posix.open(path, posix.O_RDONLY), b""
    while data := posix.read(file, _CHUNK):
        content += data
    posix.close(file)
    return content
