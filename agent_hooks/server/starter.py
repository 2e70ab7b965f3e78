"""The head of the generated file (see `stub`): it runs the program in the comments below, from bytecode beside the file.

To compile the program would take longer than to run it.  The program is in comments, because Python reads over them
faster than over code.  This head is compiled at each event, so it is short.
"""

import _imp
import marshal
import sys

# The beginning of each line of the program, after the line before.
MARK = b"\n#|"


def code_of(path: str) -> object:
    """Return the code of the program in a file: the bytecode beside it if that fits, else the program compiled now."""
    text = _content(path)
    try:
        found = _content(path + "c")
        if found[:16] == digest(text, found[16:]):
            # The bytecode is as trustworthy as the text, because the same user writes both.
            return marshal.loads(found[16:])  # noqa: S302  # see above
    except (OSError, ValueError, EOFError, TypeError):
        # The file is missing, or is no bytecode.
        pass
    return made(text, path)


def made(text: bytes, path: str) -> object:
    """Return the code of the program in a text, without docstrings."""
    program = text.partition(MARK)[2].replace(MARK, b"\n")
    return compile(program, path, "exec", dont_inherit=True, optimize=2)


def digest(text: bytes, code: bytes) -> bytes:
    """Return a hash of 16 bytes that shows that `code` is complete, and was compiled from this text by this Python.

    It is the hash that Python has built in for its bytecode.  It need not withstand an attack, because a program that can
    write the bytecode can write the text too.
    """
    known = sys.version.encode() + b"%d" % len(text) + text + code
    return _imp.source_hash(1, known) + _imp.source_hash(2, known)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
