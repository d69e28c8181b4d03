"""Makes text from trials and users safe to print on a terminal."""

import unicodedata


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
