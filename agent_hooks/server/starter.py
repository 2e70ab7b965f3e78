"""The head of the generated file (see `stub`): runs the program in the comments below, whose bytecode is kept beside.

To compile the program would take longer than all it does, and to read over it as a text a third of that.
Above: stub.  Below: nothing of the package.
"""

import _imp
import marshal
import posix
import sys

TYPE_CHECKING = False  # `typing` alone would double the time
if TYPE_CHECKING:
    from types import CodeType

MARK = b"#|"  # before each line of the program
_DIGEST, _CHUNK = 16, 1 << 16  # bytes


def code_of(path: str) -> "CodeType":
    """Return the code of the program in a file: what lies beside if it is of this text and this Python, else made now."""
    text = _content(path)
    try:
        found = _content(f"{path}c")
        if found[:_DIGEST] == digest(text, found[_DIGEST:]):
            return marshal.loads(found[_DIGEST:])  # type: ignore[no-any-return]  # noqa: S302  # it is as good as the text
    except (OSError, ValueError, EOFError, TypeError):  # it was not there, or is no bytecode
        pass
    return made(text, path)


def made(text: bytes, path: str) -> "CodeType":
    """Return the code of the program in a text, without docstrings."""
    program = b"\n".join([line[len(MARK) :] for line in text.split(b"\n") if line.startswith(MARK)])
    return compile(program, path, "exec", dont_inherit=True, optimize=2)


def digest(text: bytes, code: bytes) -> bytes:
    """Return what tells that `code` is whole, and the bytecode of this text for this Python and no other.

    By what Python has built in for its own bytecode; there is nobody to keep out who could not change the text.
    """
    known = f"{sys.version}\0{sys.implementation.cache_tag}\0{len(text)}\0".encode() + text + code
    return _imp.source_hash(1, known) + _imp.source_hash(2, known)


def _content(path: str) -> bytes:
    file, content = posix.open(path, posix.O_RDONLY), b""
    while data := posix.read(file, _CHUNK):
        content += data
    posix.close(file)
    return content
