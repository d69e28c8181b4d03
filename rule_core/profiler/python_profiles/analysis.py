"""cProfileAnalysis, PyinstrumentAnalysis: what Python profilers recorded, by step, time, phase."""

from rule_core.profiler.constants import CPROFILE_NAME, PYINSTRUMENT_NAME
from rule_core.profiler.python_profiles.contents import merged_cprofiles, pyinstrument_sessions
from rule_core.profiler.python_profiles.selection import ANY_NODE, PythonProfileAnalysis
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import PyinstrumentStepStats, cProfileStats
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase

ModePair = tuple[PythonProfileModes, PythonProfileModes]


class cProfileAnalysis(PythonProfileAnalysis):  # noqa: N801 - the documented name
    """What cProfile recorded: each fetch adds the files up and returns `cProfileStats`.

    A file that cannot be used is left out, with a warning and a line in `problems`; if that holds
    for all, the fetch raises what is wrong with the first.
    """

    name = CPROFILE_NAME

    def _aggregate_stats(self, requested_stats: list[StepPythonProfileStats]) -> cProfileStats:
        problems = self.python_stats_reader.problems
        return cProfileStats(merged_cprofiles(requested_stats, self._read, problems))

    def fetch_profile_stats_by_training_phase(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> dict[ModePair, cProfileStats]:
        """Return what was recorded for each pair of modes that there are profiles of."""
        self._refresh_python_profile_stats(refresh_stats)
        pairs: dict[ModePair, list[StepPythonProfileStats]] = {}
        for one in self._of_node(node_id, lambda _: True):
            pairs.setdefault((one.start_mode, one.end_mode), []).append(one)
        return {pair: self._aggregate_stats(pairs[pair]) for pair in sorted(pairs)}

    def fetch_profile_stats_by_job_phase(
        self, node_id: str = ANY_NODE, refresh_stats: bool = True
    ) -> dict[str, cProfileStats]:
        """Return what was recorded before, in and after the steps.

        Returns
        -------
        dict
            ``initialization`` (until the first step) and ``finalization`` (up to the end of the
            script), if there are profiles of them, and ``training_loop``, which may be empty.
        """
        self._refresh_python_profile_stats(refresh_stats)
        phases: dict[str, list[StepPythonProfileStats]] = {
            "initialization": [],
            "training_loop": [],
            "finalization": [],
        }
        for one in self._of_node(node_id, lambda _: True):
            phases[_job_phase(one)].append(one)
        return {
            phase: self._aggregate_stats(stats)
            for phase, stats in phases.items()
            if stats or phase == "training_loop"
        }


def _job_phase(one: StepPythonProfileStats) -> str:
    """Return the part of the job that a profile is of.

    What is recorded after the last step says of itself that it begins before the first one.
    """
    if (
        one.end_mode is PythonProfileModes.POST_HOOK_CLOSE
        and one.start_phase is not StepPhase.START
    ):
        return "finalization"
    if one.start_mode is PythonProfileModes.PRE_STEP_ZERO:
        return "initialization"
    return "training_loop"


class PyinstrumentAnalysis(PythonProfileAnalysis):
    """What pyinstrument recorded: each fetch returns a list with one entry for each span.

    Of the HTML pages only the paths are given. JSON files that cannot be used are treated as
    `cProfileAnalysis` treats its files.
    """

    name = PYINSTRUMENT_NAME

    def _aggregate_stats(
        self, requested_stats: list[StepPythonProfileStats]
    ) -> list[PyinstrumentStepStats]:
        problems = self.python_stats_reader.problems
        return pyinstrument_sessions(requested_stats, self._read, problems)
