"""cProfileAnalysis, PyinstrumentAnalysis: the contents of Python profiles by step, time, phase."""

from rule_core.profiler.files.constants import CPROFILE_NAME, PYINSTRUMENT_NAME
from rule_core.profiler.python_profiles.selection import ANY_NODE, PythonProfileAnalysis
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import (
    PyinstrumentStepStats,
    cProfileStats,
    merged_cprofiles,
    pyinstrument_sessions,
)
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase

ModePair = tuple[PythonProfileModes, PythonProfileModes]


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
