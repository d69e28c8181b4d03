"""StepPythonProfileStats: one file of a Python profiler, and over which span it was recorded."""

import math
import re
from typing import Final

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.python_profile_utils import (
    PythonProfileModes,
    StepPhase,
    str_to_python_profile_mode,
)

LARGEST_STEP: Final = 2**63 - 1
_POINT: Final = r"([a-z]+)-(\*|[0-9]{1,19})-([a-z]+)-([0-9]{1,18}(?:\.[0-9]{1,9})?)"
_SPAN: Final = re.compile(rf"{_POINT}_{_POINT}")
_START_PHASES_HEEDED: Final = frozenset({StepPhase.STEP_END, StepPhase.FORWARD_PASS_END})
# At the last step of an interval a span ends in one of these; with any other end there is no bound.
_ENDS: Final = {
    StepPhase.STEP_START: frozenset({StepPhase.STEP_START}),
    StepPhase.FORWARD_PASS_END: frozenset({StepPhase.STEP_START, StepPhase.FORWARD_PASS_END}),
}


class StepPythonProfileStats:
    """One file of a Python profiler, and over which span of the training it was recorded.

    It prints as a dictionary of its attributes.

    Parameters
    ----------
    framework, profiler_name, node_id
        Which framework trained, which profiler (``cprofile`` or ``pyinstrument``) recorded, where.
    stats_dir
        Name of the file's folder: ``<mode>-<step>-<phase>-<us>_<mode>-<step>-<phase>-<us>`` of
        start and end.
    stats_path
        The file.

    Attributes
    ----------
    start_mode, end_mode
        What the training job did then.
    start_step, end_step
        Step of that mode; -1 before the first one, infinity at the end of the script.
    start_phase, end_phase
        Where in the step.
    start_time_since_epoch_in_micros, end_time_since_epoch_in_micros
        When, in microseconds with a fraction.

    Raises
    ------
    SMDebugValueError
        If `stats_dir` is no name of a span.
    """

    def __init__(
        self, framework: str, profiler_name: str, node_id: str, stats_dir: str, stats_path: str
    ) -> None:
        found = _SPAN.fullmatch(stats_dir)
        if found is None:
            raise _no_span(stats_dir)
        start, end = found.groups()[:4], found.groups()[4:]
        self.profiler_name = profiler_name
        self.framework = framework
        self.node_id = node_id
        try:
            self.start_mode = str_to_python_profile_mode(start[0])
            self.start_step = -1 if start[1] == "*" else int(start[1])
            self.start_phase = StepPhase(start[2])
            self.start_time_since_epoch_in_micros = float(start[3])
            self.end_mode = str_to_python_profile_mode(end[0])
            self.end_step: float = math.inf if end[1] == "*" else int(end[1])
            self.end_phase = StepPhase(end[2])
            self.end_time_since_epoch_in_micros = float(end[3])
        except ValueError:
            raise _no_span(stats_dir) from None
        if self.start_step > LARGEST_STEP or LARGEST_STEP < self.end_step < math.inf:
            raise _no_span(stats_dir)
        self.stats_path = stats_path

    def has_start_and_end_mode(
        self, start_mode: PythonProfileModes, end_mode: PythonProfileModes
    ) -> bool:
        """Say whether it began in one mode and ended in the other."""
        return self.start_mode == start_mode and self.end_mode == end_mode

    def in_time_interval(
        self, start_time_since_epoch_in_micros: float, end_time_since_epoch_in_micros: float
    ) -> bool:
        """Say whether it overlaps an interval of time, both ends included, in microseconds."""
        begin, end = sorted(
            (self.start_time_since_epoch_in_micros, self.end_time_since_epoch_in_micros)
        )
        return begin <= end_time_since_epoch_in_micros and end >= start_time_since_epoch_in_micros

    def in_step_interval(
        self,
        start_step: float,
        end_step: float,
        start_phase: StepPhase,
        end_phase: StepPhase,
    ) -> bool:
        """Say whether it lies in an interval of steps, both ends included.

        Parameters
        ----------
        start_step, end_step
            First and last step; the mode is not looked at.
        start_phase
            ``FORWARD_PASS_END`` or ``STEP_END``: a span of the first step begins just there.
        end_phase
            ``STEP_START`` or ``FORWARD_PASS_END``: a span that ends in the last step does so no
            later than there.
        """
        if start_step > self.start_step or end_step < self.end_step:
            return False
        starts = (
            start_step < self.start_step
            or start_phase not in _START_PHASES_HEEDED
            or self.start_phase is start_phase
        )
        ends = end_step > self.end_step or self.end_phase in _ENDS.get(end_phase, StepPhase)
        return starts and ends

    def in_half_open_steps(
        self, start_step: int, end_step: int, start_phase: StepPhase, end_phase: StepPhase
    ) -> bool:
        """Say whether it lies in ``start_step <= step < end_step``.

        What ends at the very start of `end_step` belongs to the step before. The phases are heeded
        in the first and the last step as by `in_step_interval`.
        """
        if self.in_step_interval(start_step, end_step - 1, start_phase, end_phase):
            return True
        to_next_step = self.start_step < end_step and end_phase is StepPhase.STEP_END
        return to_next_step and self.in_step_interval(
            start_step, end_step, start_phase, StepPhase.STEP_START
        )

    def has_pre_step_zero_profile_stats(self) -> bool:
        """Say whether it is of the time before the first step."""
        return self.start_phase == StepPhase.START

    def has_post_hook_close_profile_stats(self) -> bool:
        """Say whether it lasts until the end of the script."""
        return self.end_phase == StepPhase.END

    def has_node_id(self, node_id: str) -> bool:
        """Say whether it is of a node."""
        return self.node_id == node_id

    def __repr__(self) -> str:
        return repr(self.__dict__)


def _no_span(name: str) -> SMDebugValueError:
    msg = (
        "The folder of a Python profile must be named "
        f"<mode>-<step>-<phase>-<time>_<mode>-<step>-<phase>-<time>, got {name!r:.300}."
    )
    return SMDebugValueError(msg)
