"""CodePlace and MeasuredCode: what sampling profilers say about functions and lines."""

from typing import NamedTuple


class CodePlace(NamedTuple):
    """A function, or one of its lines; untrusted.

    Attributes
    ----------
    file
        Its file; "" if unknown.
    line
        A line from 1; 0 for a whole function.
    function
        Its name; "" for a line outside of functions.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}({self.function})" if self.function else place


class MeasuredCode(NamedTuple):
    """What one profile measured, usually of a thread.

    Attributes
    ----------
    thread
        Its name.
    unit
        ``s``, ``bytes``, or "" for counts.
    own, whole
        By function or line: the amount in itself, and that with its callees. Of recursive calls
        only the outermost counts.
    """

    thread: str
    unit: str
    own: dict[CodePlace, float]
    whole: dict[CodePlace, float]
