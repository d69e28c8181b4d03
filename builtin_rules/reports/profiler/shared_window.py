"""SharedWindow: a profiler trial that reads each window once for several rules."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smdebug.profiler.trace_event_file_parser import TraceEvent
    from smdebug.rules.extensions import SystemSamples


class SharedWindow:
    """A profiler trial that caches the samples and events of the latest window.

    Everything else is delegated to the trial.
    """

    def __init__(self, trial: Any) -> None:
        self._trial = trial
        self._samples: tuple[tuple[int, int], SystemSamples] | None = None
        self._events: tuple[tuple[int, int], Sequence[TraceEvent]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def system_samples(self, start: int, end: int) -> "SystemSamples":
        """Return the samples of ``start <= time < end``."""
        if self._samples is None or self._samples[0] != (start, end):
            self._samples = (start, end), self._trial.system_samples(start, end)
        return self._samples[1]

    def framework_events(self, start: int, end: int) -> "Sequence[TraceEvent]":
        """Return the framework events with ``start <= end_time < end``."""
        if self._events is None or self._events[0] != (start, end):
            self._events = (start, end), self._trial.framework_events(start, end)
        return self._events[1]

    def forget(self) -> None:
        """Clear the cache at the end of a window."""
        self._samples = self._events = None
