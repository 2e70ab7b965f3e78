"""The head of the generated file (see `stub`): runs the program below it, whose bytecode is kept beside the file.

To compile the program would take longer than all it does.  Above: stub.  Below: nothing of the package.
"""

import _blake2
import marshal
import posix
import sys

_DIGEST, _LIMIT = 16, 1 << 20  # bytes


def code_of(program: str, kept: str) -> object:
    """Return the code of a program: what the file `kept` holds, if it is of this text and this Python; else made now."""
    try:
        file = posix.open(kept, posix.O_RDONLY)
        found = posix.read(file, _LIMIT)
        if found[:_DIGEST] == digest(program, found[_DIGEST:]):
            return marshal.loads(found[_DIGEST:])  # noqa: S302  # it is as good as the file beside it
    except (OSError, ValueError, EOFError, TypeError):  # it was not there, or is no bytecode
        pass
    return compile(program, kept, "exec", dont_inherit=True)


def digest(program: str, code: bytes) -> bytes:
    """Return what proves that `code` is whole, and the bytecode of this program for this Python and no other."""
    known = f"{sys.version}\0{sys.implementation.cache_tag}\0{len(program)}\0{program}"
    return _blake2.blake2b(known.encode() + code, digest_size=_DIGEST).digest()
