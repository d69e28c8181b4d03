"""Parsers of the kinds of timelines, under their documented names."""

from typing import Final

from smdebug.profiler.profiler_constants import (
    HOROVODTIMELINE_SUFFIX,
    PYTHONTIMELINE_SUFFIX,
    SMDATAPARALLELTIMELINE_SUFFIX,
    TF_METRICS_PREFIX,
)
from smdebug.profiler.trace_event_file_parser import TraceEvent, TraceEventParser
from smdebug.profiler.trace_files import FILE_TYPES, TENSORFLOW

_MARKED: Final = ("ForwardPass", "ComputeGradient", "ApplyGradient")


class SMProfilerEvents(TraceEventParser):
    """Timelines that smdebug writes itself: of Python, or of a framework."""

    def __init__(
        self,
        type: str = FILE_TYPES[PYTHONTIMELINE_SUFFIX],  # noqa: A002 - the documented name
    ) -> None:
        super().__init__(type)


class TensorboardProfilerEvents(TraceEventParser):
    """Detailed profiles of TensorFlow: gzip, with their zero in the name of a file beside them."""

    def __init__(self) -> None:
        super().__init__(TENSORFLOW)

    def get_complete_op_events(self, tracefile: str) -> list[tuple[TraceEvent, str]]:
        """Read a profile and return the events that are marked with a phase, and the phase."""
        self.read_events_from_file(tracefile)
        marked = ((event, _marked_phase(event)) for event in self.get_all_events())
        return [(event, phase) for event, phase in marked if phase is not None]

    def get_training_info(self, tracefile: str) -> dict[str, list[list[str | float]]]:
        """Read a profile and return ``[name, start, duration]`` (microseconds) of each phase."""
        found: dict[str, list[list[str | float]]] = {phase: [] for phase in _MARKED}
        for event, phase in self.get_complete_op_events(tracefile):
            found[phase].append([event.event_name, event.start_time, event.duration])
        return found


class HorovodProfilerEvents(TraceEventParser):
    """Timelines of Horovod, raw or rewritten by smdebug."""

    def __init__(self) -> None:
        super().__init__(FILE_TYPES[HOROVODTIMELINE_SUFFIX])


class SMDataParallelProfilerEvents(TraceEventParser):
    """Timelines of SageMaker's library for data-parallel training."""

    def __init__(self) -> None:
        super().__init__(FILE_TYPES[SMDATAPARALLELTIMELINE_SUFFIX])


def _marked_phase(event: TraceEvent) -> str | None:
    """Return the phase between the marker and the first slash of an event's name."""
    if event.event_args is None or not event.event_name.startswith(TF_METRICS_PREFIX):
        return None
    phase = event.event_name.partition("/")[0].removeprefix(TF_METRICS_PREFIX)
    return phase if phase in _MARKED else None
