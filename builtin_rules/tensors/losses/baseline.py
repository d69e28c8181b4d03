"""Baseline: a run differs from the good runs of its recipe."""

from functools import partial

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.baselines.baseline_file import read_baseline
from builtin_rules.statistics.baselines.differences import QUANTITIES, Difference, differences
from builtin_rules.statistics.baselines.trend import TREND, trends
from builtin_rules.statistics.parameters import Declared, count
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import FileParam, Quantity, Severity, TextParam, step_in_segment


class Baseline(DeclaredRule):
    """Met when the whole run is outside of the bands that ``rule-runner baseline make`` wrote.

    It judges once, at the end of the run, the losses, metrics that rise, rewards, gradient norms,
    speeds and the duration that the file `baseline` has bands of. The progress of a run counts
    steps, tokens or its share, as the file says; what comes after a progress of 1 is left out.
    The condition is met if

    - the final value (the mean of the last 20 % of the run, without a tenth of the rows at each
      end), the best mean of a twentieth of the run, or the mean over the run is worse than the
      limit of its band;
    - a loss has more spikes than the band allows: rows above the median of their 20 by more than
      ten times the deviation and 20 %;
    - the level (the median after the first 10 %) of a speed, the time of a step or the duration is
      worse than its limit, or that of a gradient norm is outside of its band in either direction;
    - a metric of the good runs is missing, or ends 25 % of the run before the others;
    - a metric is NaN or infinite at the end;
    - the run ends more than 2 % before the shortest good run. What is left of it is judged by
      speeds and gradient norms only.

    A run that is better than its band gets a note. A run whose settings differ from those of the
    good runs is refused with an error that names them. With `trend`, the final values and levels of
    the latest `runs` runs in a folder are compared in the order of their times: a metric is
    reported if it becomes worse by the Mann-Kendall test, at an error rate of one in a thousand,
    and by at least the least width of a band. Rows that are not finite are left out; of a run that
    was resumed, the repeated steps count.
    """

    READS = "the losses, metrics, rewards, gradient norms, speeds and times of the whole run."
    baseline = Declared[str](
        FileParam("", "File of 'rule-runner baseline make' with the bands.", required=True)
    )
    trend = Declared[str | None](
        TextParam("", "Folder of earlier runs of the recipe, each a folder or a log in it.")
    )
    runs = count("Latest runs in that folder that are looked at.", 20, "runs", minimum=7)
    QUANTITIES = tuple(Quantity(name, name.replace("_", " ")) for name in (*QUANTITIES, TREND))

    def _prepare(self) -> None:
        self._bands = read_baseline(self.baseline)

    def segment_begins(self, segment: int) -> None:
        """Go on: the run is judged as a whole."""

    def invoke_at_step(self, step: int) -> bool:
        """Judge nothing yet: the run is judged at its end."""
        del step
        return self.not_judged("the run is judged at its end")

    def invoke_at_end(self, step: int) -> bool:
        """Judge the run, whose last step is `step`."""
        trial, bands = self.base_trial.share(), self._bands
        trial.dynamic_refresh = False  # it shows all segments of a run that was resumed
        if differing := bands.other_recipe(trial):
            msg = f"the run has another recipe than baseline {self.baseline!r}: {differing}"
            raise SMDebugValueError(f"{msg}. Compare it with a baseline of its own recipe.")
        compared = [*differences(bands, trial)]
        if self.trend is not None:
            compared += trends(bands, self.trend, trial, self.runs)
        return any([*map(partial(self._record, step), compared)])  # each is recorded

    def _record(self, step: int, difference: Difference) -> bool:
        """Record a difference at the step since which it lasts."""
        metric, quantity, since, measured, limit, note, met, is_better = difference
        first = step if since is None else min(step, step - step_in_segment(step) + since)
        rank = Severity.NOTE if is_better else None
        key = (metric, None)
        return self.record(key, first, quantity, measured, limit, met=met, note=note, severity=rank)
