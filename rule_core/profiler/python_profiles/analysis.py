"""PythonProfileAnalysis: chooses Python profiles by step, time, mode and node, and lists them.

Its subclasses return what files of cProfile and pyinstrument contain.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rule_core.optional_imports import data_frame
from rule_core.profiler.files.constants import (
    CONVERT_TO_MICROSECS,
    CPROFILE_NAME,
    PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.reader import (
    LocalPythonStatsReader,
    PythonStatsReader,
    S3PythonStatsReader,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import (
    PyinstrumentStepStats,
    cProfileStats,
    merged_cprofiles,
    pyinstrument_sessions,
)
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
ModePair = tuple[PythonProfileModes, PythonProfileModes]
IsSelected = Callable[[StepPythonProfileStats], bool]
ANY_NODE: Final = "any"
_DEFAULT_DIR: Final = "/tmp/python_stats"  # noqa: S108 - the documented default


class PythonProfileAnalysis:
    """The Python profiles of a training job; subclasses select the profiler.

    Each method first looks for new files, and downloads them from S3, unless it is called with
    ``refresh_stats=False``. A fetch returns the profiles of one node, by default the node of the
    first profile; without profiles it prints a message and returns None. Steps can be strings, and
    modes and phases their names.

    Parameters
    ----------
    local_profile_dir
        Without `s3_path`, the folder of the profiles: ``.../framework/<framework>/<profiler>``, or
        any folder above. With it, the folder in which ``python_stats`` is created for downloads.
    s3_path
        The address above ``framework``.

    Attributes
    ----------
    python_profile_stats
        The files, by start and node.
    problems
        The reason for each skipped file, by path.

    Raises
    ------
    ProfileFolderError
        If the folder does not exist, the address is not in S3, or downloads cannot be written.
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
        """The reason for each skipped file, by path."""
        return self.python_stats_reader.problems.texts

    def _refresh_python_profile_stats(self, refresh_stats: bool) -> None:
        if refresh_stats:
            self.python_profile_stats = [
                profile
                for profile in self.python_stats_reader.load_python_profile_stats()
                if self.name in {"", profile.profiler_name}
            ]

    def _aggregate_stats(self, requested_stats: list[StepPythonProfileStats]) -> Any:
        """Return the contents of files in the form of the profiler."""
        return requested_stats

    def _fetch(self, node_id: str, refresh_stats: bool, is_selected: IsSelected) -> Any:
        """Return the contents of the selected files of a node."""
        self._refresh_python_profile_stats(refresh_stats)
        selected = self._of_node(node_id, is_selected)
        if not selected:
            sys.stdout.write("There are no Python profiles of that.\n")
            return None
        return self._aggregate_stats(selected)

    def _of_node(self, node_id: str, is_selected: IsSelected) -> list[StepPythonProfileStats]:
        profiles = self.python_profile_stats
        if node_id == ANY_NODE and profiles:
            node_id = profiles[0].node_id
        return [
            profile for profile in profiles if profile.has_node_id(node_id) and is_selected(profile)
        ]

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
        """Return the profiles of ``start_step <= step <= end_step``.

        Parameters
        ----------
        start_step, end_step
            Steps of the mode; the last one is `start_step` by default.
        mode
            Mode at the start and end of the profiles.
        start_phase, end_phase
            See `StepPythonProfileStats.in_step_interval`.
        node_id, refresh_stats
            See the class.

        Raises
        ------
        SMDebugValueError
            If a step, the mode or a phase is invalid.
        """
        first = to_step(start_step)
        last = first if end_step is None else to_step(end_step)
        is_within = StepPythonProfileStats.in_step_interval
        phases = start_phase, end_phase
        return self._fetch_of_steps(is_within, first, last, mode, phases, node_id, refresh_stats)

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
        """Return the profiles of ``start_step <= step < end_step``; by default of one step.

        See `StepPythonProfileStats.in_half_open_steps` for the ends, and
        `fetch_profile_stats_by_step`, which includes the last step, for the other parameters.
        """
        first = to_step(start_step)
        end = first + 1 if end_step is None else to_step(end_step)
        is_within = StepPythonProfileStats.in_half_open_steps
        phases = start_phase, end_phase
        return self._fetch_of_steps(is_within, first, end, mode, phases, node_id, refresh_stats)

    def _fetch_of_steps(
        self,
        is_within: Callable[[StepPythonProfileStats, int, int, StepPhase, StepPhase], bool],
        first: int,
        last: int,
        mode: Mode,
        phases: tuple[Phase, Phase],
        node_id: str,
        refresh_stats: bool,
    ) -> Any:
        """Return the profiles of a mode that are within a range of steps and phases."""
        profile_mode = to_mode(mode)
        begin, end = map(to_phase, phases)
        return self._fetch(
            node_id,
            refresh_stats,
            lambda profile: (
                profile.has_start_and_end_mode(profile_mode, profile_mode)
                and is_within(profile, first, last, begin, end)
            ),
        )

    def fetch_profile_stats_by_time(
        self,
        start_time_since_epoch_in_secs: float,
        end_time_since_epoch_in_secs: float,
        node_id: str = ANY_NODE,
        refresh_stats: bool = True,
    ) -> Any:
        """Return the profiles whose spans overlap a time interval, in seconds."""
        start_us = start_time_since_epoch_in_secs * CONVERT_TO_MICROSECS
        end_us = end_time_since_epoch_in_secs * CONVERT_TO_MICROSECS
        return self._fetch(
            node_id, refresh_stats, lambda profile: profile.in_time_interval(start_us, end_us)
        )

    fetch_python_profile_stats_by_time = fetch_profile_stats_by_time

    def fetch_profile_stats_between_modes(
        self, start_mode: Mode, end_mode: Mode, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> Any:
        """Return the profiles that begin in `start_mode` and end in `end_mode`."""
        begin, end = to_mode(start_mode), to_mode(end_mode)
        return self._fetch(
            node_id, refresh_stats, lambda profile: profile.has_start_and_end_mode(begin, end)
        )

    def fetch_pre_step_zero_profile_stats(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> Any:
        """Return the profiles from before the first step."""
        is_selected = StepPythonProfileStats.has_pre_step_zero_profile_stats
        return self._fetch(node_id, refresh_stats, is_selected)

    def fetch_post_hook_close_profile_stats(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> Any:
        """Return the profiles that last until the end of the script."""
        is_selected = StepPythonProfileStats.has_post_hook_close_profile_stats
        return self._fetch(node_id, refresh_stats, is_selected)

    def list_profile_stats(self, refresh_stats: bool = True) -> "pd.DataFrame":
        """Return a frame with a row for each file, and a column for each of its attributes.

        Modes are given by name. ``start_step`` is -1 before the first step, ``end_step`` infinite
        at the end of the script; times are microseconds. Without files the frame is empty.
        """
        self._refresh_python_profile_stats(refresh_stats)
        if not self.python_profile_stats:
            sys.stdout.write("There are no Python profiles.\n")
        rows = [
            vars(profile)
            | {
                "start_mode": python_profile_mode_to_str(profile.start_mode),
                "end_mode": python_profile_mode_to_str(profile.end_mode),
            }
            for profile in self.python_profile_stats
        ]
        return data_frame(rows)

    def list_available_node_ids(self, refresh_stats: bool = True) -> list[str]:
        """Return the nodes with profiles, sorted."""
        self._refresh_python_profile_stats(refresh_stats)
        return sorted({profile.node_id for profile in self.python_profile_stats})


class cProfileAnalysis(PythonProfileAnalysis):  # noqa: N801 - the documented name
    """Profiles of cProfile; each fetch returns the sum of several files as `cProfileStats`.

    Unusable files are skipped with a warning, and recorded in `problems`. If all files are
    unusable, the fetch raises the error of the first.
    """

    name = CPROFILE_NAME

    def _aggregate_stats(self, requested_stats: list[StepPythonProfileStats]) -> cProfileStats:
        reader = self.python_stats_reader
        return cProfileStats(merged_cprofiles(requested_stats, reader.read, reader.problems))

    def fetch_profile_stats_by_training_phase(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> dict[ModePair, cProfileStats]:
        """Return the profiles by their modes at start and end."""
        self._refresh_python_profile_stats(refresh_stats)
        pairs: dict[ModePair, list[StepPythonProfileStats]] = {}
        for profile in self._of_node(node_id, lambda _: True):
            pairs.setdefault((profile.start_mode, profile.end_mode), []).append(profile)
        return {pair: self._aggregate_stats(pairs[pair]) for pair in sorted(pairs)}

    def fetch_profile_stats_by_job_phase(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> dict[str, cProfileStats]:
        """Return the profiles from before, within and after the steps.

        Returns
        -------
        dict
            ``initialization`` (until the first step) and ``finalization`` (up to the end of the
            script), if they have profiles, and ``training_loop``, which may be empty.
        """
        self._refresh_python_profile_stats(refresh_stats)
        phases: dict[str, list[StepPythonProfileStats]] = {
            "initialization": [],
            "training_loop": [],
            "finalization": [],
        }
        for profile in self._of_node(node_id, lambda _: True):
            phases[_job_phase(profile)].append(profile)
        return {
            phase: self._aggregate_stats(stats)
            for phase, stats in phases.items()
            if stats or phase == "training_loop"
        }


def _job_phase(profile: StepPythonProfileStats) -> str:
    """Return the part of the job that a profile covers.

    Profiles from after the last step may have the start mode ``PRE_STEP_ZERO``.
    """
    to_end = profile.end_mode is PythonProfileModes.POST_HOOK_CLOSE
    if to_end and profile.start_phase is not StepPhase.START:
        return "finalization"
    if profile.start_mode is PythonProfileModes.PRE_STEP_ZERO:
        return "initialization"
    return "training_loop"


class PyinstrumentAnalysis(PythonProfileAnalysis):
    """Profiles of pyinstrument; each fetch returns a list with one entry for each span.

    HTML pages are returned as paths. Unusable JSON files are treated as in `cProfileAnalysis`.
    """

    name = PYINSTRUMENT_NAME

    def _aggregate_stats(
        self, requested_stats: list[StepPythonProfileStats]
    ) -> list[PyinstrumentStepStats]:
        reader = self.python_stats_reader
        return pyinstrument_sessions(requested_stats, reader.read, reader.problems)
