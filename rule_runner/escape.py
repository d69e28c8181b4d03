"""Makes text from trials and users safe to print on a terminal, and finds what is no text."""

import unicodedata
from collections.abc import Iterable
from typing import TextIO


def printable(text: object) -> str:
    r"""Return text with control characters escaped, so that a terminal does not interpret them.

    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return "".join(
        char
        if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        else char.encode("unicode_escape").decode()
        for char in str(text)
    )


def print_lines(lines: Iterable[object], file: TextIO | None = None) -> None:
    """Print lines in the form of `printable`, by default to stdout."""
    for line in lines:
        print(printable(line), file=file)


def is_text(path: str) -> bool:
    r"""Return whether a path is text; names of files may hold bytes that are not UTF-8.

    >>> is_text("/runs/a"), is_text("/runs/\udcff")
    (True, False)
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
