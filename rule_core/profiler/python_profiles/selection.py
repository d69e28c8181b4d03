"""PythonProfileAnalysis: chooses Python profiles by step, time, mode and node, and lists them."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rule_core.optional_imports import import_pandas
from rule_core.profiler.constants import CONVERT_TO_MICROSECS
from rule_core.profiler.python_profiles.reader import (
    LocalPythonStatsReader,
    PythonStatsReader,
    S3PythonStatsReader,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes,
    StepPhase,
    python_profile_mode_to_str,
    to_mode,
    to_phase,
    to_step,
)

if TYPE_CHECKING:
    import pandas as pd

Step = int | str
Mode = PythonProfileModes | str
Phase = StepPhase | str
ANY_NODE: Final = "any"
_DEFAULT_DIR: Final = "/tmp/python_stats"  # noqa: S108 - the documented default


class PythonProfileAnalysis:
    """The Python profiles of a training job; subclasses say of which profiler.

    All that fetches or lists looks for new files first, unless it is given
    ``refresh_stats=False``; in S3 that is a download. All that fetches is of one node: that of the
    first profile, if ``node_id`` is ``"any"``. Where there is nothing, it says so and returns None.
    Steps may be given as texts, modes and phases as words.

    Parameters
    ----------
    local_profile_dir
        Without `s3_path`, where the profiles are: ``.../framework/<framework>/<profiler>``, or any
        folder above. With it, the folder that ``python_stats`` is made in, for downloads.
    s3_path
        The address above ``framework``.

    Attributes
    ----------
    python_profile_stats
        The files, by start and node.
    problems
        Files that were left out, and why.

    Raises
    ------
    ProfileFolderError
        If there is no such folder, the address is none of S3, or downloads cannot be written.
    """

    name = ""

    def __init__(
        self, local_profile_dir: str | os.PathLike[str] = _DEFAULT_DIR, s3_path: str | None = None
    ) -> None:
        self.python_stats_reader: PythonStatsReader = (
            S3PythonStatsReader(local_profile_dir, s3_path, self.name or None)
            if s3_path
            else LocalPythonStatsReader(local_profile_dir)
        )
        self.python_profile_stats: list[StepPythonProfileStats] = []
        self._refresh_python_profile_stats(refresh_stats=True)

    @property
    def problems(self) -> dict[str, str]:
        """Files that were left out, and why."""
        return self.python_stats_reader.problems.texts

    def _refresh_python_profile_stats(self, refresh_stats: bool) -> None:
        if refresh_stats:
            found = self.python_stats_reader.load_python_profile_stats()
            self.python_profile_stats = [
                one for one in found if self.name in {"", one.profiler_name}
            ]

    def _read(self, one: StepPythonProfileStats) -> memoryview:
        return self.python_stats_reader.read(one.stats_path)

    def _aggregate_stats(self, requested_stats: list[StepPythonProfileStats]) -> Any:
        """Return what files hold, in the form of the profiler."""
        return requested_stats

    def _fetch(
        self, node_id: str, refresh_stats: bool, wanted: Callable[[StepPythonProfileStats], bool]
    ) -> Any:
        """Return what the wanted files of a node hold."""
        self._refresh_python_profile_stats(refresh_stats)
        chosen = self._of_node(node_id, wanted)
        if not chosen:
            print("There are no Python profiles of that.")  # noqa: T201 - documented
            return None
        return self._aggregate_stats(chosen)

    def _of_node(
        self, node_id: str, wanted: Callable[[StepPythonProfileStats], bool]
    ) -> list[StepPythonProfileStats]:
        stats = self.python_profile_stats
        if node_id == ANY_NODE and stats:
            node_id = stats[0].node_id
        return [one for one in stats if one.has_node_id(node_id) and wanted(one)]

    def fetch_profile_stats_by_step(
        self,
        start_step: Step,
        end_step: Step | None = None,
        mode: Mode = PythonProfileModes.TRAIN,
        start_phase: Phase = StepPhase.STEP_START,
        end_phase: Phase = StepPhase.STEP_END,
        node_id: str = ANY_NODE,
        refresh_stats: bool = True,
    ) -> Any:
        """Return what was recorded from `start_step` to `end_step`, the last one included.

        Parameters
        ----------
        start_step, end_step
            Steps of the mode; one step, if the last is not given.
        mode
            A profile begins and ends in it.
        start_phase, end_phase
            See `StepPythonProfileStats.in_step_interval`.
        node_id, refresh_stats
            See the class.

        Raises
        ------
        SMDebugValueError
            If steps, mode or phases are none.
        """
        first = to_step(start_step)
        last = first if end_step is None else to_step(end_step)
        within = StepPythonProfileStats.in_step_interval
        phases = start_phase, end_phase
        return self._fetch_of_steps(within, first, last, mode, phases, node_id, refresh_stats)

    def fetch_python_profile_stats_by_step(
        self,
        start_step: Step,
        end_step: Step | None = None,
        mode: Mode = PythonProfileModes.TRAIN,
        start_phase: Phase = StepPhase.STEP_START,
        end_phase: Phase = StepPhase.STEP_END,
        node_id: str = ANY_NODE,
        refresh_stats: bool = True,
    ) -> Any:
        """Return what was recorded over ``start_step <= step < end_step``.

        Without `end_step` that is one step; see `StepPythonProfileStats.in_half_open_steps` for the
        ends, and `fetch_profile_stats_by_step`, which includes the last step, for the rest.
        """
        first = to_step(start_step)
        beyond = first + 1 if end_step is None else to_step(end_step)
        within = StepPythonProfileStats.in_half_open_steps
        phases = start_phase, end_phase
        return self._fetch_of_steps(within, first, beyond, mode, phases, node_id, refresh_stats)

    def _fetch_of_steps(
        self,
        within: Callable[[StepPythonProfileStats, int, int, StepPhase, StepPhase], bool],
        first: int,
        last: int,
        mode: Mode,
        phases: tuple[Phase, Phase],
        node_id: str,
        refresh_stats: bool,
    ) -> Any:
        """Return what was recorded in a mode `within` some steps and phases."""
        asked = to_mode(mode)
        begin, end = map(to_phase, phases)
        return self._fetch(
            node_id,
            refresh_stats,
            lambda one: (
                one.has_start_and_end_mode(asked, asked) and within(one, first, last, begin, end)
            ),
        )

    def fetch_profile_stats_by_time(
        self,
        start_time_since_epoch_in_secs: float,
        end_time_since_epoch_in_secs: float,
        node_id: str = ANY_NODE,
        refresh_stats: bool = True,
    ) -> Any:
        """Return what was recorded over spans that overlap an interval of time, in seconds."""
        start_us = start_time_since_epoch_in_secs * CONVERT_TO_MICROSECS
        end_us = end_time_since_epoch_in_secs * CONVERT_TO_MICROSECS
        return self._fetch(
            node_id, refresh_stats, lambda one: one.in_time_interval(start_us, end_us)
        )

    fetch_python_profile_stats_by_time = fetch_profile_stats_by_time

    def fetch_profile_stats_between_modes(
        self, start_mode: Mode, end_mode: Mode, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> Any:
        """Return what was recorded over spans that begin in one mode and end in the other."""
        begin, end = to_mode(start_mode), to_mode(end_mode)
        return self._fetch(
            node_id, refresh_stats, lambda one: one.has_start_and_end_mode(begin, end)
        )

    def fetch_pre_step_zero_profile_stats(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> Any:
        """Return what was recorded before the first step."""
        wanted = StepPythonProfileStats.has_pre_step_zero_profile_stats
        return self._fetch(node_id, refresh_stats, wanted)

    def fetch_post_hook_close_profile_stats(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> Any:
        """Return what was recorded up to the end of the script."""
        wanted = StepPythonProfileStats.has_post_hook_close_profile_stats
        return self._fetch(node_id, refresh_stats, wanted)

    def list_profile_stats(self, refresh_stats: bool = True) -> "pd.DataFrame":
        """Return a frame with a row for each file, and a column for each of its attributes.

        Modes are words there. ``start_step`` is -1 before the first step, ``end_step`` infinite at
        the end of the script; times are microseconds. Without files the frame is empty.
        """
        self._refresh_python_profile_stats(refresh_stats)
        if not self.python_profile_stats:
            print("There are no Python profiles.")  # noqa: T201 - documented
        rows = [
            vars(one)
            | {
                "start_mode": python_profile_mode_to_str(one.start_mode),
                "end_mode": python_profile_mode_to_str(one.end_mode),
            }
            for one in self.python_profile_stats
        ]
        frame: pd.DataFrame = import_pandas().DataFrame(rows)
        return frame

    def list_available_node_ids(self, refresh_stats: bool = True) -> list[str]:
        """Return the nodes that profiles are of, sorted."""
        self._refresh_python_profile_stats(refresh_stats)
        return sorted({one.node_id for one in self.python_profile_stats})
