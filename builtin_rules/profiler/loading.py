"""Host: which processes of one node load data, second by second."""

from array import array
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from builtin_rules.profiler.growing import Thinned
from smdebug.profiler import profiler_constants
from smdebug.profiler.analysis.rules.utils import histogram, percentiles

if TYPE_CHECKING:
    from smdebug.profiler.trace_event import TraceEvent

SECOND_US: Final = 1_000_000
DIGITS: Final = 6  # of seconds, behind the point
OPEN_S: Final = 600  # so long before its end an event may have begun to count in full
_WORKER: Final = profiler_constants.PT_DATALOADER_WORKER
_ITER: Final = profiler_constants.PT_DATALOADER_ITER
_BEGIN: Final = profiler_constants.PT_DATALOADER_INITIALIZE
# What the report has of the loader's own settings, and how events name it.
_SETTINGS: Final = {
    "pin_memory": "pin_memory",
    "num_workers": "num_workers",
    "prefetch": "prefetch_factor",
}


def is_loading(event: "TraceEvent") -> bool:
    """Say whether an event is of PyTorch's data loader."""
    return any(one in f"{event.event_phase} {event.event_name}" for one in (_WORKER, _ITER, _BEGIN))


class _Processes:
    """The processes that load data in each second.

    Seconds that may still get events are kept with their processes, `OPEN_S` and a window; of
    others only the number is, 4 bytes each.
    """

    def __init__(self) -> None:
        self._open: defaultdict[int, set[Any]] = defaultdict(set)
        self._settled = array("i")
        self._durations = Thinned()

    @property
    def seconds(self) -> int:
        """How many seconds there were with loading."""
        return len(self._settled) + len(self._open)

    @property
    def median(self) -> int:
        """The integer part of the median number of processes; 0 without any."""
        counts = [*self._settled, *map(len, self._open.values())]
        return int(np.median(counts)) if counts else 0

    def add(self, event: "TraceEvent") -> None:
        """Count an event's process in each second that it is in."""
        last = int(event.end_time) // SECOND_US
        first = max(int(event.start_time) // SECOND_US, last - OPEN_S)
        for second in range(first, last + 1):
            self._open[second].add(event.pid)
        self._durations.extend(np.array([event.duration / SECOND_US]))

    def settle(self, before_us: int) -> None:
        """Keep only numbers of the seconds that no event after a time can count in."""
        border = before_us // SECOND_US - OPEN_S
        for second in sorted(one for one in self._open if one < border):
            self._settled.append(len(self._open.pop(second)))

    def times(self) -> dict[str, Any]:
        """Return percentiles and histogram of how long loading took, in seconds."""
        values = self._durations.values.astype(np.float64)
        found = percentiles(values, (25, 50, 95))
        return {name: round(one, DIGITS) for name, one in found.items()} | histogram(values)


class Host:
    """How one node loads data."""

    def __init__(self) -> None:
        self._workers = _Processes()
        self._iterators = _Processes()
        self._settings: dict[str, Any] = dict.fromkeys(_SETTINGS)

    @property
    def _loading(self) -> _Processes:
        """The workers, or the iterators of a loader that has none."""
        return self._workers if self._workers.seconds else self._iterators

    @property
    def seconds(self) -> int:
        """How many seconds there were with loading."""
        return self._loading.seconds

    @property
    def loaders(self) -> int:
        """The integer part of the median number of processes that load."""
        return self._loading.median

    def add(self, event: "TraceEvent") -> None:
        """Take in an event of the data loader."""
        label = f"{event.event_phase} {event.event_name}"
        for name, arg in _SETTINGS.items():
            value = (event.event_args or {}).get(arg)
            if value is not None:
                self._settings[name] = value
        if _WORKER in label:
            self._workers.add(event)
        elif _BEGIN not in label:
            self._iterators.add(event)

    def settle(self, before_us: int) -> None:
        """Forget the processes of seconds long before a time."""
        self._workers.settle(before_us)
        self._iterators.settle(before_us)

    def details(self) -> dict[str, Any]:
        """Return the loader's settings, None if unknown, and how long loading took."""
        return {**self._settings, "dataloading_time": self._loading.times()}
