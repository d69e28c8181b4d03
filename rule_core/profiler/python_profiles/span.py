"""StepPythonProfileStats: a file of a Python profiler, and its span of the training."""

import math
import re
from typing import Final

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes,
    StepPhase,
    str_to_python_profile_mode,
)

LARGEST_STEP: Final = 2**63 - 1
_POINT: Final = r"([a-z]+)-(\*|[0-9]{1,19})-([a-z]+)-([0-9]{1,18}(?:\.[0-9]{1,9})?)"
_SPAN: Final = re.compile(rf"{_POINT}_{_POINT}")
_CHECKED_START_PHASES: Final = frozenset({StepPhase.STEP_END, StepPhase.FORWARD_PASS_END})
# Allowed end phases of a span in the last step of an interval; other end phases allow all.
_ENDS: Final = {
    StepPhase.STEP_START: frozenset({StepPhase.STEP_START}),
    StepPhase.FORWARD_PASS_END: frozenset({StepPhase.STEP_START, StepPhase.FORWARD_PASS_END}),
}


class StepPythonProfileStats:
    """One file of a Python profiler, and its span of the training.

    It is printed as a dictionary of its attributes.

    Parameters
    ----------
    framework, profiler_name, node_id
        Framework, profiler (``cprofile`` or ``pyinstrument``) and node of the profile.
    stats_dir
        Name of the file's folder: ``<mode>-<step>-<phase>-<us>_<mode>-<step>-<phase>-<us>`` of
        start and end.
    stats_path
        Path of the file.

    Attributes
    ----------
    start_mode, end_mode
        Modes at the start and end.
    start_step, end_step
        Steps of these modes; -1 before the first one, infinity at the end of the script.
    start_phase, end_phase
        Phases of these steps.
    start_time_since_epoch_in_micros, end_time_since_epoch_in_micros
        Times in microseconds, with a fraction.

    Raises
    ------
    SMDebugValueError
        If `stats_dir` is not the name of a span.
    """

    def __init__(
        self, framework: str, profiler_name: str, node_id: str, stats_dir: str, stats_path: str
    ) -> None:
        match = _SPAN.fullmatch(stats_dir)
        if match is None:
            raise _invalid_name(stats_dir)
        start, end = match.groups()[:4], match.groups()[4:]
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
            raise _invalid_name(stats_dir) from None
        if self.start_step > LARGEST_STEP or LARGEST_STEP < self.end_step < math.inf:
            raise _invalid_name(stats_dir)
        self.stats_path = stats_path

    def has_start_and_end_mode(
        self, start_mode: PythonProfileModes, end_mode: PythonProfileModes
    ) -> bool:
        """Return whether the span has these modes at its start and end."""
        return self.start_mode == start_mode and self.end_mode == end_mode

    def in_time_interval(
        self, start_time_since_epoch_in_micros: float, end_time_since_epoch_in_micros: float
    ) -> bool:
        """Return whether the span overlaps a time interval in microseconds, ends included."""
        begin, end = sorted(
            (self.start_time_since_epoch_in_micros, self.end_time_since_epoch_in_micros)
        )
        return begin <= end_time_since_epoch_in_micros and end >= start_time_since_epoch_in_micros

    def in_step_interval(
        self, start_step: float, end_step: float, start_phase: StepPhase, end_phase: StepPhase
    ) -> bool:
        """Return whether the span lies in an interval of steps, ends included.

        Parameters
        ----------
        start_step, end_step
            First and last step, regardless of the mode.
        start_phase
            ``FORWARD_PASS_END`` or ``STEP_END``: in the first step, a span must begin there.
        end_phase
            ``STEP_START`` or ``FORWARD_PASS_END``: in the last step, a span must end there or
            earlier.
        """
        if start_step > self.start_step or end_step < self.end_step:
            return False
        starts = (
            start_step < self.start_step
            or start_phase not in _CHECKED_START_PHASES
            or self.start_phase is start_phase
        )
        ends = end_step > self.end_step or self.end_phase in _ENDS.get(end_phase, StepPhase)
        return starts and ends

    def in_half_open_steps(
        self, start_step: int, end_step: int, start_phase: StepPhase, end_phase: StepPhase
    ) -> bool:
        """Return whether the span lies in ``start_step <= step < end_step``.

        A span that ends at the start of `end_step` belongs to the step before. The phases apply to
        the first and the last step as in `in_step_interval`.
        """
        if self.in_step_interval(start_step, end_step - 1, start_phase, end_phase):
            return True
        to_next_step = self.start_step < end_step and end_phase is StepPhase.STEP_END
        return to_next_step and self.in_step_interval(
            start_step, end_step, start_phase, StepPhase.STEP_START
        )

    def has_pre_step_zero_profile_stats(self) -> bool:
        """Return whether the span begins before the first step."""
        return self.start_phase == StepPhase.START

    def has_post_hook_close_profile_stats(self) -> bool:
        """Return whether the span lasts until the end of the script."""
        return self.end_phase == StepPhase.END

    def has_node_id(self, node_id: str) -> bool:
        """Return whether the span is of a node."""
        return self.node_id == node_id

    def __repr__(self) -> str:
        return repr(self.__dict__)


def _invalid_name(name: str) -> SMDebugValueError:
    msg = (
        "The folder of a Python profile must be named "
        f"<mode>-<step>-<phase>-<time>_<mode>-<step>-<phase>-<time>, got {name!r:.300}."
    )
    return SMDebugValueError(msg)
