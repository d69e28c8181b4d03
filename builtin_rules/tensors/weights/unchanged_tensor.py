"""UnchangedTensor: a tensor no longer changes from step to step."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from builtin_rules.statistics.broken_tensors import is_skipped
from builtin_rules.statistics.lasting_zeros import ROUTED
from builtin_rules.statistics.losses.objective import no_objective
from builtin_rules.statistics.parameters import Declared, count, flag, names, non_negative
from builtin_rules.statistics.previous_values import (
    ALL_PARAMETERS,
    GRADIENT_NORM,
    ComparableSteps,
    LearningRates,
    TrainedParameters,
    earlier_steps,
    has_fallen,
    is_between_updates,
    is_clipped,
    latest_steps,
    parameter_names,
)
from builtin_rules.statistics.selecting_rule import SelectingRule
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    GRADIENTS,
    LITERAL,
    LOSSES,
    TENSOR_REGEX,
    SavedTensor,
    TensorKey,
    numbers,
    only_number,
    reductions,
    saved_tensor,
    shapes,
    statistics,
    tensor_names,
)
from smdebug.core.collection import CollectionKeys
from smdebug.rules.extensions import Quantity, Tolerance, WantedMeasure

CHANGE: Final = "change"
ACCUMULATED_BATCHES: Final = 16  # batches, or saved steps; more are rarely accumulated by hand
_LIMIT: Final = 1.0  # every element is within the tolerance
_HALF_FACTOR: Final = 4  # times as many values, if they are rounded to half precision
_LOST_BITS: Final = 2**13  # of the 23 of a fraction, float16 keeps 10 and bfloat16 fewer
# Shares of rows, which are often equal from step to step.
_COUNTED: Final = re.compile(
    r"(?i)(?<![a-z])(m?error(@.*)?|acc(uracy)?|auc(pr)?|map|ndcg|precision|recall|f1)(@\d+)?(?![a-z])"
)


class UnchangedTensor(SelectingRule):
    """Met when the last `num_steps` saved values of a tensor are all close to the current one.

    Values are close if ``|a - b| <= atol + rtol * |b|`` for every element, where `b` is the current
    value. A different shape is a change, and so is NaN unless `equal_nan`. The current value is one
    of the `num_steps`; tensors with fewer saved values are not judged. Every worker is compared
    with its own values. Empty and non-numeric tensors, and those with saved reductions only, are
    skipped.

    Only values of the same mode are compared. As weights do not change during evaluation, only the
    first step of each evaluation phase, a run of steps of mode EVAL or PREDICT, is judged. Frozen
    parameters are skipped: those that never required a gradient or, if the hook did not save that,
    those without a gradient while others have one. So are parameters while the learning rate rises,
    or before it is above 0 for the first time (of at most 40 saved steps). With a saved learning
    rate above 0, a parameter must not change by one bit: small rates, as in fine-tunings, change it
    by less than `rtol`.

    A parameter does not count either at steps of a batch that did not use it: it requires a
    gradient, and got none while others did; while it waits to be thawed; while gradients are not
    finite, so that a scaler skips updates; and between two updates of the optimizer, where the hook
    saved `optimizer/grad_norm` (for 40 saved steps, or three times as many as usual). Without that
    norm, a script may accumulate gradients as long as all parameters stand still and their
    gradients are not 0, for at most 16 saved steps. Nor do experts and routers count, which
    `RouterCollapse` judges, and weights that are clipped to one magnitude.

    A loss that has fallen by 10 % since its first value stands still because it has converged,
    those of adversarial and reinforcement trainings need not move, and metrics that are shares of
    rows (error, accuracy, AUC) are often equal: all are skipped.

    A single number with a fraction in half precision, as a loss in bfloat16 is, must be unchanged
    for four times `num_steps` values, since rounding makes neighbours equal.

    With `literal`, or if `num_steps`, `rtol` or `atol` is given, each value is compared with the
    next one only, over all modes, and all selected tensors are judged at all steps.
    """

    READS = (
        "the selected tensors: values; the collection gradients: names; "
        "parameters/requires_grad/* and the collection learning_rates: values."
    )
    SAVED = ("gradients",)
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(TENSOR_REGEX)
    num_steps = count(
        "Number of latest saved values to compare, including the current one.",
        3,
        "saved steps",
        minimum=2,
    )
    rtol = non_negative(
        "Relative tolerance, as a share of the current value.", 1e-5, "share of the value"
    )
    atol = non_negative("Absolute tolerance.", 1e-8, "unit of the tensor")
    equal_nan = flag("Treat NaN as equal to NaN.")
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(CHANGE, "largest change / tolerated change", worse="below", log=True),)

    @property
    def wants(self) -> list[WantedMeasure]:
        """The changes of the selected tensors."""
        measure = Tolerance(self.rtol, self.atol, self.equal_nan)
        backs = (1,) if self._is_bound else range(1, self.num_steps)
        return [WantedMeasure(measure, self._selected, back) for back in backs]

    def _prepare(self) -> None:
        super()._prepare()
        self._is_bound = self.binds()
        self._parameter_names: set[str] | None = None  # of the current step

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        self._parameter_names = None
        comparable = None if self._is_bound else ComparableSteps(trial, step)
        if comparable is not None and step not in comparable:
            return self.not_judged("not the first step of an evaluation phase")
        names = self._names(step)
        if not names:
            return self.not_judged("none of the selected tensors at this step")
        saved = trial.saved_by(step, names)
        rounded = set() if self._is_bound else _rounded(trial, step, saved)
        usual = [key for key in saved if key not in rounded] if rounded else saved
        alike: dict[tuple[int, ...], list[TensorKey]] = {}  # by the steps to compare
        for keys, needed in ((usual, self.num_steps), (rounded, self.num_steps * _HALF_FACTOR)):
            for key, latest in latest_steps(trial, step, keys, comparable, needed).items():
                if len(latest) == needed:
                    alike.setdefault(tuple(reversed(latest)), []).append(key)
        changes: dict[TensorKey, float] = {}
        for steps, keys in alike.items():
            changes |= self._changes(keys, steps)
        if not changes:
            return self.not_judged(f"no tensor with {self.num_steps} values to compare")
        steps_of = {key: steps for steps, keys in alike.items() for key in keys}
        measured = {
            key: changes[key] for key in saved if not math.isnan(changes.get(key, math.nan))
        }
        met = {
            key: self._note(key[0], steps_of[key], change)
            for key, change in measured.items()
            if change <= _LIMIT and self._is_met(saved_tensor(trial, key), steps_of[key], change)
        }
        return self.measured_all(step, CHANGE, measured, _LIMIT, met=met, notes=met)

    def _names(self, step: int) -> list[str]:
        """Return the selected tensors of a step, without frozen parameters."""
        trial = self.base_trial
        by_name = tensor_names(trial, step, [], self.tensor_regex)
        names = {*by_name, *parameter_names(trial, step, self.collection_names)}
        if not self._is_bound:
            losses = tensor_names(trial, step, [CollectionKeys.LOSSES], [])
            names -= {name for name in losses if _COUNTED.search(name)}
            if parameters := self._parameters(step).intersection(names):
                trained = TrainedParameters(trial, step)
                names -= {name for name in parameters if trained.is_frozen(name)}
        return sorted(names)

    def _parameters(self, step: int) -> set[str]:
        """Return the names of the parameters of the current step."""
        if self._parameter_names is None:
            self._parameter_names = set(parameter_names(self.base_trial, step, ALL_PARAMETERS))
        return self._parameter_names

    def _is_met(self, saved: SavedTensor, steps: Sequence[int], change: float) -> bool:
        """Return whether a tensor that stands still at some steps should change."""
        if self._is_bound:
            return True
        trial, step = self.base_trial, steps[-1]
        if saved.name in self._parameters(step):
            return not self._stands_still_for_a_reason(saved, steps, change)
        if saved.name in LOSSES.names(trial, step):
            return not (has_fallen(saved, step) or no_objective(trial))
        return True

    def _stands_still_for_a_reason(
        self, saved: SavedTensor, steps: Sequence[int], change: float
    ) -> bool:
        """Return whether the optimizer need not have changed a parameter at these steps."""
        trial, step = self.base_trial, steps[-1]
        rates, former = LearningRates(trial, step), TrainedParameters(trial, steps[0])
        return (
            (change > 0 and rates.is_set())
            or rates.is_warm_up(steps[0])
            or (former.has_flag(saved.name) and former.is_frozen(saved.name))
            or any(TrainedParameters(trial, each).is_idle(saved.name) for each in steps)
            or any(is_skipped(trial, each, saved.worker) for each in steps)
            or is_between_updates(trial, steps)
            or (change == 0 and self._may_accumulate(saved, steps))
            or ROUTED.search(saved.name) is not None
            or is_clipped(saved, step)
            or any(_overflows(trial, each, saved.worker) for each in steps)
        )

    def _may_accumulate(self, saved: SavedTensor, steps: Sequence[int]) -> bool:
        """Return whether all parameters stand still while gradients add up, not for too long.

        Where the hook saved norms of updates, it is known when the optimizer was called.
        """
        trial, step = self.base_trial, steps[-1]
        rates = LearningRates(trial, step)
        is_off = rates.is_known() and not rates.is_set()
        if is_off or trial.has_tensor(GRADIENT_NORM):
            return False
        if TrainedParameters(trial, step).is_detached(saved.name):
            return False
        gradients = _gradient_means(trial, step)
        of_worker = {name: mean for (name, of), mean in gradients.items() if of == saved.worker}
        if not any(of_worker.values()):
            return False
        earlier = earlier_steps(saved, step, ComparableSteps(trial, step))
        long_ago = next(islice(earlier, ACCUMULATED_BATCHES, None), None)
        if long_ago is not None:
            changes = self._changes([saved.key], [long_ago, step])
            if changes == {saved.key: 0}:
                return False
        others = trial.saved_by(step, sorted(self._parameters(step) - {saved.name}))
        return not any(
            any(self._changes([other], [before, step]).values())
            for other in others
            if other[1] == saved.worker
            for before in steps[:-1]
        )

    def _changes(self, keys: Collection[TensorKey], steps: Sequence[int]) -> dict[TensorKey, float]:
        """Return the largest change of each tensor and worker in units of the tolerance.

        It is NaN if shapes differ. Tensors without numbers to compare are left out.
        """
        trial, measure = self.base_trial, Tolerance(self.rtol, self.atol, self.equal_nan)
        last = len(steps) - 1
        pairs = [(steps[at], steps[at + 1 if self._is_bound else last]) for at in range(last)]
        by_pair = [statistics(trial, later, keys, measure, before) for before, later in pairs]
        changes: dict[TensorKey, float] = {}
        for key in keys:
            values = [changes_of[key] for changes_of in by_pair if key in changes_of]
            if len(values) < len(pairs):
                saved = saved_tensor(trial, key)
                arrays = {step: numbers(saved, step) for step in steps}
                if any(array is None for array in arrays.values()):
                    continue
                if len({array.shape for array in arrays.values()}) > 1:
                    values = [math.nan]
                else:
                    values = [
                        measure.between(arrays[before], arrays[later]) for before, later in pairs
                    ]
            changes[key] = float(max(values))
        return changes

    def _note(self, name: str, steps: Sequence[int], change: float) -> str:
        hint = ""
        if change == 0 and name in self._parameters(steps[-1]):
            hint = " It is bitwise identical."
            if TrainedParameters(self.base_trial, steps[-1]).is_detached(name):
                hint = " It requires a gradient and got none."
        return f"Unchanged since step {steps[0]}.{hint}"


def _overflows(trial: Any, step: int, worker: str) -> bool:
    """Return whether a gradient is not finite: a scaler then skips the update."""
    means = _gradient_means(trial, step)
    return any(not math.isfinite(mean) for (_, of), mean in means.items() if of == worker)


def _gradient_means(trial: Any, step: int) -> dict[TensorKey, float]:
    """Return the mean magnitudes of the gradients of a step."""
    saved = trial.saved_by(step, GRADIENTS.names(trial, step))
    return reductions(trial, step, saved, "mean", absolute=True)


def _rounded(trial: Any, step: int, saved: Mapping[TensorKey, Any]) -> set[TensorKey]:
    """Return the tensors of one number with a fraction that half precision can hold."""
    return {
        key
        for key, shape in shapes(trial, step, saved).items()
        if math.prod(shape) == 1 and _is_half(saved_tensor(trial, key), step)
    }


def _is_half(saved: SavedTensor, step: int) -> bool:
    """Return whether a tensor is one number with a fraction that half precision can hold."""
    value = only_number(saved, step)
    if value is None:
        return False
    with np.errstate(over="ignore"):
        single = np.float32(value)
    is_exact = math.isfinite(value) and float(single) == value
    return is_exact and not value.is_integer() and int(single.view(np.uint32)) % _LOST_BITS == 0
