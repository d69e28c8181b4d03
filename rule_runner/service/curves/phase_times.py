"""PhaseTimes: how long each step of one node took, and which parts of a step took how long."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from rule_core.profiler.files.constants import PT_DATALOADER_ITER
from rule_core.profiler.rule_helpers.framework_times import is_step
from rule_core.profiler.traces.event import TraceEvent

REST: Final = "rest"
# The beginning of an event's phase, and the part of the step that it belongs to.
_PHASES: Final = {
    "Forward": "forward",
    "Backward(post-forward)": "backward",
    "Optimizer": "optimizer",
}
LOADING: Final = "data loading"
PHASES: Final = (*_PHASES.values(), LOADING, REST)
_STEP: Final = "Step:ModeKeys."
_ANY_MODE: Final = "GLOBAL"
_US_PER_S: Final = 1_000_000


class StepTime(NamedTuple):
    """A step: when it ended, its mode, how long it took, and the parts of that.

    Attributes
    ----------
    end_ms
        Milliseconds since the epoch.
    mode
        Such as ``TRAIN``; "" if the writer does not tell modes apart.
    seconds
        The length of the step's own event.
    phases
        Seconds by phase since the end of the step before; `REST` is what no event explains. Empty
        if only steps were recorded.
    """

    end_ms: int
    mode: str
    seconds: float
    phases: Mapping[str, float]


class PhaseTimes:
    """Turns the Python timeline of one process into times of steps, file by file."""

    def __init__(self) -> None:
        self._phases: dict[str, float] = {}
        self._before: float | None = None  # the end of the step before

    def add(self, events: Iterable[TraceEvent]) -> Iterator[StepTime]:
        """Yield the steps among events, which are in the order of the file."""
        for event in events:
            if is_step(event):
                yield self._step(event)
            elif phase := _phase(event):
                self._phases[phase] = self._phases.get(phase, 0.0) + event.duration

    def _step(self, event: TraceEvent) -> StepTime:
        start = event.start_time if self._before is None else self._before
        whole = event.end_time - start
        phases = {phase: us / _US_PER_S for phase, us in self._phases.items()}
        if phases:
            phases[REST] = max(whole / _US_PER_S - sum(phases.values()), 0.0)
        self._phases, self._before = {}, event.end_time
        mode = event.event_name.partition(_STEP)[2]
        return StepTime(
            int(event.end_time // 1000),
            "" if mode == _ANY_MODE else mode,
            event.duration / _US_PER_S,
            phases,
        )


def _phase(event: TraceEvent) -> str:
    """Return the part of a step that an event belongs to, or ""."""
    phase = event.event_phase
    return LOADING if phase.startswith(PT_DATALOADER_ITER) else _PHASES.get(phase, "")
