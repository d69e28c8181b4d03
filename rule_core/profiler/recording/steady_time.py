"""SteadyTime: the time of a recording, which never goes back."""

import time
from typing import Final

_NS: Final = 1000


class SteadyTime:
    """Epoch microseconds that follow the clock of the machine as it was at the start.

    Later changes of that clock have no effect.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

    def __call__(self) -> int:
        """Return the time in epoch microseconds."""
        return (self._offset_ns + time.perf_counter_ns()) // _NS
