"""StepProfiler: the interface of profilers that follow the steps of a training."""

from typing import NamedTuple, Protocol

from rule_core.modes import ModeKeys
from rule_core.profiler.python_profiles.types import StepPhase
from rule_core.profiler.recording.config import RecordingConfig


class StepPoint(NamedTuple):
    """A moment of the training.

    Attributes
    ----------
    mode, mode_step
        Mode of the current step, and its number within the mode.
    step
        Its number over all modes; -1 before the first step.
    time_us
        Epoch microseconds.
    """

    mode: ModeKeys
    mode_step: int
    step: int
    time_us: int


class StepProfiler(Protocol):
    """A profiler that follows the steps, such as that of Python functions."""

    def reach(self, phase: StepPhase, point: StepPoint, config: RecordingConfig) -> None:
        """Begin or end profiling at a phase of a step."""
        ...

    def close(self, point: StepPoint, config: RecordingConfig) -> None:
        """End profiling when the hook is closed."""
        ...

    def stop(self) -> None:
        """End profiling without a result, after an error."""
        ...
