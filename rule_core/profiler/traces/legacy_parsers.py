"""Parsers of each type of timeline, under the names of smdebug."""

from typing import Final

from rule_core.profiler.files.constants import (
    HOROVODTIMELINE_SUFFIX,
    PYTHONTIMELINE_SUFFIX,
    SMDATAPARALLELTIMELINE_SUFFIX,
    TF_METRICS_PREFIX,
)
from rule_core.profiler.traces.event import TraceEvent
from rule_core.profiler.traces.files import FILE_TYPES, TENSORFLOW
from rule_core.profiler.traces.legacy_parser import TraceEventParser

_MARKED: Final = ("ForwardPass", "ComputeGradient", "ApplyGradient")


class SMProfilerEvents(TraceEventParser):
    """Timelines written by smdebug itself: of Python or a framework."""

    def __init__(
        self,
        type: str = FILE_TYPES[PYTHONTIMELINE_SUFFIX],  # noqa: A002 - the documented name
    ) -> None:
        super().__init__(type)


class TensorboardProfilerEvents(TraceEventParser):
    """Detailed profiles of TensorFlow: gzip, with their start in the name of a metadata file."""

    def __init__(self) -> None:
        super().__init__(TENSORFLOW)

    def get_complete_op_events(self, tracefile: str) -> list[tuple[TraceEvent, str]]:
        """Read a profile and return the events marked with a phase, with the phase."""
        self.read_events_from_file(tracefile)
        marked = ((event, _marked_phase(event)) for event in self.get_all_events())
        return [(event, phase) for event, phase in marked if phase is not None]

    def get_training_info(self, tracefile: str) -> dict[str, list[list[str | float]]]:
        """Read a profile and return ``[name, start, duration]`` (microseconds) of each phase."""
        phases: dict[str, list[list[str | float]]] = {phase: [] for phase in _MARKED}
        for event, phase in self.get_complete_op_events(tracefile):
            phases[phase].append([event.event_name, event.start_time, event.duration])
        return phases


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
