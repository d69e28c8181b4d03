"""SimilarAcrossRuns: a tensor differs from the same tensor of another run."""

from typing import Any, Final

import numpy as np

from builtin_rules.statistics.parameters import Declared, names
from builtin_rules.statistics.selecting_rule import SelectingRule
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    FROM_REDUCTIONS,
    TENSOR_REGEX,
    SavedTensor,
    any_met,
    numbers,
    saved_reductions,
    saved_tensors,
)
from smdebug.rules import Rule
from smdebug.rules.extensions import NamesParam, Quantity, Tolerance, set_parameters
from smdebug.trials import create_trial

DIFFERENCE: Final = "difference"
# Not documented: the defaults of `numpy.allclose`, with NaN equal to NaN.
RTOL: Final = 1e-5
ATOL: Final = 1e-8
_LIMIT: Final = 1.0  # every element is within the tolerance


class _TrialsParam(NamesParam):
    """Trials, or paths of trials."""

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "the path of the run to compare with, as by --other-trial PATH"

    def _read(self, raw: object) -> tuple[Any, ...]:
        trials = raw if isinstance(raw, (list, tuple)) else (raw,)
        if not trials or any(isinstance(trial, str) for trial in trials):
            return super()._read(raw)
        return tuple(trials)


class SimilarAcrossRuns(SelectingRule):
    """Met when a tensor differs from that of the same name and step in another run.

    Despite its name, similar runs do not meet the condition. A tensor differs if its shape does, or
    if ``|a - b| <= 1e-8 + 1e-5 * |b|`` fails for some element, where `b` belongs to the other run;
    NaN equals NaN. Without selectors all tensors are judged, each step separately, in all modes.
    Tensors missing from the other run are skipped, as are non-numeric and empty ones. Workers are
    matched by name; if each run has a single worker, these are matched whatever their names. If
    both runs saved reductions only, these are compared. Of several other runs, only the first is
    used.
    """

    READS = "every saved tensor, or those selected, in two trials: values, or saved reductions."
    other_trials = Declared[Any](
        _TrialsParam("other_trials", "Path of the trial to compare with.", required=True)
    )
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(TENSOR_REGEX)
    QUANTITIES = (
        Quantity(DIFFERENCE, "largest difference / tolerated difference", worse="above", log=True),
    )
    ALL_BY_DEFAULT = True

    def __init__(
        self,
        base_trial: Any,
        other_trials: Any = None,
        collection_names: Any = None,
        tensor_regex: Any = None,
    ) -> None:
        (param, *_) = self.PARAMS
        values = param.parse(other_trials)
        trials = [
            create_trial(value, timeout=0) if isinstance(value, str) else value for value in values
        ]
        Rule.__init__(self, base_trial, other_trials=trials)
        self.given = set_parameters(
            self, other_trials=trials, collection_names=collection_names, tensor_regex=tensor_regex
        )
        self._prepare()
        self._other = trials[0]
        if len(trials) > 1:
            self.logger.warning(
                "Rule %r uses only %r, the first of %d other trials.",
                self.rule_name,
                self._other.path,
                len(trials),
            )

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tensors that both runs saved at global step `step`."""
        trial = self.base_trial
        names = trial.tensor_names(step=step)
        if self._has_selection:
            names = self._selected.names(trial, step)
        common = sorted(set(names).intersection(self._other.tensor_names(step=step)))
        if not common:
            return self.not_judged("no selected tensor at this step in both runs")
        answers = [self._judge(saved, step) for saved in saved_tensors(trial, step, common)]
        return any_met(self, answers, "no tensor with numbers in both runs")

    def _judge(self, saved: SavedTensor, step: int) -> bool | None:
        """Return whether a tensor differs, or None if there is nothing to compare."""
        worker = self._worker(saved, step)
        if worker is None:
            return None
        counterpart = SavedTensor(self._other.tensor(saved.name), worker)
        value, reference = numbers(saved, step), numbers(counterpart, step)
        if value is None or reference is None:
            return self._judge_reductions(saved, counterpart, step)
        if value.shape != reference.shape:
            note = f"Its shape is {value.shape}, but {reference.shape} in the other run."
            return self.found(step, saved.name, saved.worker, note=note)
        return self._differs(saved, step, value, reference)

    def _worker(self, saved: SavedTensor, step: int) -> str | None:
        """Return the worker of the other run to compare with, or None."""
        workers = self._other.tensor(saved.name).workers(step)
        if saved.worker in workers:
            return saved.worker
        alone = len(workers) == len(saved.tensor.workers(step)) == 1
        return workers[0] if alone else None

    def _judge_reductions(
        self, saved: SavedTensor, counterpart: SavedTensor, step: int
    ) -> bool | None:
        """Compare the reductions that both runs saved."""
        values, references = saved_reductions(saved, step), saved_reductions(counterpart, step)
        common = sorted(values.keys() & references.keys())
        if not common:
            return None
        value = np.array([values[key] for key in common])
        reference = np.array([references[key] for key in common])
        return self._differs(saved, step, value, reference, FROM_REDUCTIONS)

    def _differs(
        self, saved: SavedTensor, step: int, value: Any, reference: Any, note: str | None = None
    ) -> bool:
        difference = Tolerance(RTOL, ATOL, equal_nan=True).between(value, reference)
        met = difference > _LIMIT
        return self.record(saved.key, step, DIFFERENCE, difference, _LIMIT, met=met, note=note)
