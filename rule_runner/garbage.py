"""Garbage collections of the program: few while it imports, the usual ones while rules judge."""

import gc
from typing import Final

# New objects between two collections. A small evaluation imports fewer, none of them garbage.
IMPORTED: Final = 100_000


class _Usual:
    """The thresholds that Python began with; None if they are in force."""

    thresholds: tuple[int, int, int] | None = None


def collect_rarely() -> None:
    """Collect little garbage until `collect_as_usual`: imports make none."""
    _Usual.thresholds = gc.get_threshold()
    gc.set_threshold(IMPORTED)


def collect_as_usual() -> None:
    """Collect garbage as Python does, after `collect_rarely`; without it, nothing is changed.

    What has been imported is not looked at any more, nor when the program exits.
    """
    if _Usual.thresholds is not None:
        gc.freeze()
        gc.set_threshold(*_Usual.thresholds)
        _Usual.thresholds = None
