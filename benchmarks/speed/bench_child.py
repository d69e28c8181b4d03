"""What every process that a benchmark times has in common: it reports one line of JSON.

Standard library only: the older library's interpreter runs it as well.
"""

import json
import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

Figures = Mapping[str, float]  # what a child prints


class Watch:
    """Counts seconds from when it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def report(self, judged: int, **more: Any) -> None:
        """Print the time so far, the steps that were judged in it, and more."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        result = {"seconds": wall, "cpu_seconds": cpu, "judged": judged, "peak_mb": peak, **more}
        print(json.dumps(result))


def comparison(pairs: Sequence[tuple[Figures, Figures]], other: str, numbers: int) -> str:
    """Return the ratios of a reading to another one, and its memory.

    Parameters
    ----------
    pairs
        What a child printed of each reading: ``cpu_seconds``, ``peak_mb`` and ``idle_mb``.
    numbers
        How many numbers were read, of 16 bytes each.
    """
    ratios = sorted(ours["cpu_seconds"] / theirs["cpu_seconds"] for ours, theirs in pairs)
    peak = max(ours["peak_mb"] - ours["idle_mb"] for ours, _ in pairs)
    return (
        f"{statistics.median(ratios):.1f} times the CPU of {other} ({ratios[0]:.1f} to "
        f"{ratios[-1]:.1f}); {peak:.0f} MB more memory, of which numbers take "
        f"{numbers * 16 / 1e6:.0f}"
    )
