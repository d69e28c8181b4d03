"""plain_text: the lines that a terminal showed."""

import io
import re
from collections.abc import Iterator
from typing import Final

_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~]|$)"
)
_MOVES: Final = frozenset("ABEFGHJf")  # leave the line, go to a column, or clear the screen
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_BAR: Final = 16  # backspaces that begin a bar anew
_COUNT_IN_BAR: Final = re.compile(rf"^([^\x08]+)\x08{{{_BAR},}}( +\d+/\d+ +)$")
_ERASURES: Final = re.compile("([^\b]*)(\b*)")


def plain_text(line: str) -> list[str]:
    r"""Return what was visible of a line, one after another, without blank ones.

    Carriage returns, backspaces over half of it and movements of the cursor begin a new line. A
    count that is written over a bar precedes it. Other escape sequences and control characters are
    removed; tabs stay.

    >>> plain_text("\r 1/2 loss 3\r 2/2 loss \x1b[31m1\x1b[0m"), plain_text("1/2\b\b\b2/2")
    ([' 1/2 loss 3', ' 2/2 loss 1'], ['1/2', '2/2'])
    """
    if line.isprintable() or not _CONTROLS.search(line):
        return [line] if line.strip() else []
    if "\x1b" in line:
        line = _ESCAPE.sub(lambda match: "\r" if match[1] in _MOVES else "", line)
    rows = (_COUNT_IN_BAR.sub(r"\2\1", row) for row in line.split("\r"))
    visible = (_CONTROLS.sub("", state) for row in rows for state in _states(row))
    return [state for state in visible if state.strip()]


def _states(row: str) -> Iterator[str]:
    """Yield a row as it was each time that backspaces reached its start, and at its end."""
    screen = io.StringIO()
    for written, erased in _ERASURES.findall(row) if "\b" in row else [(row, "")]:
        screen.write(written)
        # Writers of bars may count too few.
        if len(erased) >= min(screen.tell(), max(_BAR, screen.tell() // 2)) > 0:
            yield screen.getvalue()
            screen = io.StringIO()
        screen.seek(max(screen.tell() - len(erased), 0))
    yield screen.getvalue()
