"""What every process that a benchmark times has in common: it reports one line of JSON.

Standard library only: the older library's interpreter runs it as well.
"""

import json
import resource
import time
from typing import Any


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
