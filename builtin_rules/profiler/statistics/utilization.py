"""LoadingNode: the processes of a node that load data in each second."""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from builtin_rules.profiler.statistics.growth import ThinnedValues
from builtin_rules.profiler.statistics.parameters import SECOND_US
from smdebug.profiler import profiler_constants
from smdebug.rules.extensions import histogram, percentiles

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

DIGITS: Final = 6  # decimals of seconds
MOST_WORKERS: Final = 1024  # of one iterator
OPEN_S: Final = 600  # longest duration of an event that counts in full
_WORKER: Final = profiler_constants.PT_DATALOADER_WORKER
_ITER: Final = profiler_constants.PT_DATALOADER_ITER
_BEGIN: Final = profiler_constants.PT_DATALOADER_INITIALIZE
# Settings of the loader in the report, and their names in events.
_SETTINGS: Final = {
    "pin_memory": "pin_memory",
    "num_workers": "num_workers",
    "prefetch": "prefetch_factor",
}


def _count(value: object) -> int:
    """Return a number of workers as a loader's event has it, or 0."""
    text = str(value)
    return min(int(text), MOST_WORKERS) if text.isascii() and text.isdigit() else 0


def is_loading(event: "TraceEvent") -> bool:
    """Return whether an event is from PyTorch's data loader."""
    label = f"{event.event_phase} {event.event_name}"
    return any(name in label for name in (_WORKER, _ITER, _BEGIN))


@dataclass(slots=True)
class _Waits:
    """The time that a process takes for batches after its first one, which starts the workers.

    Attributes
    ----------
    first_us, last_us
        Ends of the first and the latest batch.
    us
        How long the batches after the first one took.
    """

    first_us: int | float
    last_us: int | float = 0.0
    us: int | float = 0.0

    def add(self, event: "TraceEvent") -> None:
        """Add a batch that is not the first one."""
        self.us += event.duration
        self.last_us = max(self.last_us, event.end_time)


class LoadingProcesses:
    """The processes that load data in each second.

    Processes are kept for seconds that may still get events, `OPEN_S` and a window; for earlier
    seconds only their number is kept, in 4 bytes each.
    """

    def __init__(self) -> None:
        self._open: defaultdict[int, set[Any]] = defaultdict(set)
        self._settled = array("i")

    @property
    def seconds(self) -> int:
        """The number of seconds with data loading."""
        return len(self._settled) + len(self._open)

    @property
    def median(self) -> int:
        """The integer part of the median number of processes, or 0."""
        counts = [*self._settled, *map(len, self._open.values())]
        return int(np.median(counts)) if counts else 0

    def add(self, event: "TraceEvent", processes: Iterable[object]) -> None:
        """Count processes in each second of an event."""
        last = int(event.end_time) // SECOND_US
        first = max(int(event.start_time) // SECOND_US, last - OPEN_S)
        for second in range(first, last + 1):
            self._open[second].update(processes)

    def settle(self, before_us: int) -> None:
        """Reduce the seconds that later events cannot affect to their numbers."""
        border = before_us // SECOND_US - OPEN_S
        for second in sorted(open_second for open_second in self._open if open_second < border):
            self._settled.append(len(self._open.pop(second)))


class LoadingNode:
    """The data loading of one node."""

    def __init__(self) -> None:
        self._workers = LoadingProcesses()
        self._iterators = LoadingProcesses()
        # Durations of batches. Events of workers do not count: they last as long as the worker.
        self._batches = ThinnedValues()
        self._settings: dict[str, Any] = dict.fromkeys(_SETTINGS)
        self._workers_of: dict[Any, int] = {}  # by the process of the iterator
        self._waits: dict[Any, _Waits] = {}  # likewise

    @property
    def loading(self) -> LoadingProcesses:
        """The workers, or the iterators of a loader without workers."""
        return self._workers if self._workers.seconds else self._iterators

    @property
    def waiting(self) -> float | None:
        """The percentage of time that iterators take for batches; None if it is unknown.

        A process that was seen with one batch only does not count: how long it trains is unknown.
        """
        seen = [waits for waits in self._waits.values() if waits.last_us > waits.first_us]
        span = sum(waits.last_us - waits.first_us for waits in seen)
        return 100 * sum(waits.us for waits in seen) / span if seen else None

    def add(self, event: "TraceEvent") -> None:
        """Add an event of the data loader."""
        label = f"{event.event_phase} {event.event_name}"
        for name, arg in _SETTINGS.items():
            value = (event.event_args or {}).get(arg)
            if value is not None:
                self._settings[name] = value
        if _WORKER in label:
            self._workers.add(event, [event.pid])
        elif _BEGIN in label:
            self._workers_of[event.pid] = _count((event.event_args or {}).get("num_workers"))
        else:
            # The event of a worker is written when the worker ends, which may be hours later.
            workers = range(self._workers_of.get(event.pid, 0))
            self._iterators.add(event, [(event.pid, number) for number in workers or [0]])
            self._batches.extend(np.array([event.duration / SECOND_US]))
            if waits := self._waits.get(event.pid):
                waits.add(event)
            else:
                self._waits[event.pid] = _Waits(event.end_time)

    def settle(self, before_us: int) -> None:
        """Drop the processes of seconds long before a time."""
        self._workers.settle(before_us)
        self._iterators.settle(before_us)

    def details(self) -> dict[str, Any]:
        """Return the settings of the loader, None if unknown, and the time per batch."""
        return {**self._settings, "dataloading_time": self._times()}

    def _times(self) -> dict[str, Any]:
        """Return percentiles and histogram of the time per batch, in seconds."""
        values = self._batches.values.astype(np.float64)
        seconds = percentiles(values, (25, 50, 95))
        return {name: round(value, DIGITS) for name, value in seconds.items()} | histogram(values)
