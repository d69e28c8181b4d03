"""WeightUpdateRatio: a weight changes too much or too little for its size."""

import math
from collections.abc import Collection
from itertools import takewhile
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.lasting_zeros import ROUTED
from builtin_rules.statistics.parameters import Declared, count, non_negative, positive
from builtin_rules.statistics.previous_values import (
    PARAMETERS,
    ComparableSteps,
    LearningRates,
    TrainedParameters,
    earlier_steps,
    is_between_updates,
    is_clipped,
    is_learning_step,
    latest_steps,
    parameter_names,
)
from builtin_rules.statistics.tensor_selection import (
    LITERAL,
    WEIGHTS,
    TensorKey,
    any_met,
    numbers,
    saved_tensor,
    statistics,
    tensor_names,
    value_shape,
)
from smdebug.core.collection import CollectionKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import (
    ChangeNorms,
    Norms,
    Quantity,
    TensorInput,
    WantedMeasure,
)

LARGE: Final = "large update"
SMALL: Final = "small update"
# Weights may be constant for a while: accumulated gradients, a warm-up from learning rate 0, steps
# skipped by mixed precision. See docs/decisions/0009-weights-that-stand-still.md.
STILL_STEPS: Final = 10
# A smaller root mean square of an update is not large, whatever the weight started with: see
# docs/decisions/0049-parameters.md.
SMALL_RMS: Final = 0.05
_CHANGE: Final = ChangeNorms()
_JUDGED: Final = TensorInput("weights", (*WEIGHTS.collections, PARAMETERS))


class _Update(NamedTuple):
    """The change of a weight since an earlier step of its mode."""

    key: TensorKey
    since: int
    change: float
    before: float


class WeightUpdateRatio(DeclaredRule):
    """Met when ``|w - p| / (|p| + epsilon)`` is above `large_threshold` or below `small_threshold`.

    `w` is a weight and `p` its value at an earlier step of the same mode: the previous saved step
    or, with `num_steps`, the earliest saved step not further back (counted within the mode, or
    globally without modes). ``| |`` is the Euclidean norm over all elements. Steps of mode EVAL and
    PREDICT are not judged, as weights do not change there. Every worker is compared with its own
    values. Non-finite ratios (`ExplodingTensor` reports them), empty and non-numeric weights,
    changed shapes and weights with saved reductions only are skipped.

    Weights that were zero are not judged. A ratio is large only if the root mean square of the
    update is above 0.05: factors that start close to zero multiply at first. A small ratio meets
    the condition once it has been small for ten saved steps, without those of a warm-up: while the
    learning rate rises, or before it is above 0 for the first time. If it is exactly 0, the weight
    may be frozen: it counts if the weight moved before, requires a gradient or has one; if neither
    gradients nor `requires_grad` were saved, it counts if no weight of the trial has moved. Steps
    do not count while a parameter waits to be thawed, of a batch that did not use it (it got no
    gradient, and others did), and between two updates of the optimizer, where the hook saved
    `optimizer/grad_norm`. Nor do small ratios of experts and routers, which `RouterCollapse`
    judges, and of weights that are clipped to one magnitude. With `literal`, every ratio counts. So
    does every ratio above `large_threshold` or below `small_threshold` if that one is given, and
    both if `num_steps` or `epsilon` is.
    """

    READS = (
        "the collections weights and parameters, without biases: values at two steps; the "
        "collection gradients: names; parameters/requires_grad/* and the collection "
        "learning_rates: values."
    )
    SAVED = ("weights",)
    num_steps = count(
        "Largest distance of the step to compare with; by default the previous saved step.",
        None,
        "steps of the mode",
    )
    large_threshold = positive(
        "A larger ratio of update to weight meets the condition.", 10.0, "update per weight"
    )
    small_threshold = non_negative(
        "A smaller ratio of update to weight meets the condition.", 1e-8, "update per weight"
    )
    epsilon = positive("Added to the norm of the weight.", 1e-9, "unit of the weight")
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(LARGE, "norm of update / norm of weight", worse="above", log=True),
        Quantity(SMALL, "norm of update / norm of weight", worse="below", log=True),
    )

    required_inputs = (_JUDGED,)

    @property
    def wants(self) -> list[WantedMeasure]:
        """The changes of the weights."""
        return [WantedMeasure(_CHANGE, _JUDGED, self.num_steps or 1)]

    def _prepare(self) -> None:
        if self.small_threshold > self.large_threshold:
            raise SMDebugValueError(
                f"Parameter 'small_threshold' must be <= 'large_threshold', "
                f"{self.large_threshold!r}, got {self.small_threshold!r}."
            )
        # By weight and worker: those that ever moved, and for how many steps a ratio is small.
        self._moved: set[TensorKey] = set()
        self._small: dict[TensorKey, int] = {}
        self._trained: TrainedParameters | None = None  # of the current step
        common = "num_steps", "epsilon"
        self._is_bound = {
            LARGE: self.binds("large_threshold", *common),
            SMALL: self.binds("small_threshold", *common),
        }

    def invoke_at_step(self, step: int) -> bool:
        """Judge the weights of global step `step`."""
        trial = self.base_trial
        if not is_learning_step(trial, step):
            return self.not_judged("weights do not change in this mode")
        names = parameter_names(trial, step, WEIGHTS.collections)
        if not self.literal:
            parameters = set(parameter_names(trial, step, [PARAMETERS]))
            parameters.difference_update(tensor_names(trial, step, [CollectionKeys.BIASES], []))
            names = sorted(parameters.union(names))
        if not names:
            return self.not_judged("no weights at this step")
        self._trained = None
        updates = self._updates(trial.saved_by(step, names), step)
        self._moved.update(update.key for update in updates if update.change > 0)
        answers = [self._judge(update, step) for update in updates]
        return any_met(self, answers, "no weight to compare with an earlier step")

    def _updates(self, keys: Collection[TensorKey], step: int) -> list[_Update]:
        """Return the changes of the weights that can be compared."""
        trial = self.base_trial
        partners = self._partners(keys, step)
        changes: dict[TensorKey, Norms] = {}
        alike: dict[int, list[TensorKey]] = {}
        for key, earlier in partners.items():
            alike.setdefault(earlier, []).append(key)
        for earlier, compared in alike.items():
            changes |= statistics(trial, step, compared, _CHANGE, earlier)
        updates = []
        for key, earlier in partners.items():
            change = changes.get(key)
            if change is None:  # no value, or of another type
                saved = saved_tensor(trial, key)
                value, before = numbers(saved, step), numbers(saved, earlier)
                if value is None or before is None or value.shape != before.shape:
                    continue
                change = _CHANGE.between(value, before)
            updates.append(_Update(key, earlier, *change))
        return updates

    def _partners(self, keys: Collection[TensorKey], step: int) -> dict[TensorKey, int]:
        """Return the step to compare each weight with, if there is one."""
        trial, comparable = self.base_trial, ComparableSteps(self.base_trial, step)
        if self.num_steps is None:
            latest = latest_steps(trial, step - 1, keys, comparable, 1)
            return {key: steps[0] for key, steps in latest.items() if steps}
        number = trial.mode_step
        first = number(step) - self.num_steps
        partners: dict[TensorKey, int] = {}
        for key in keys:
            earlier = earlier_steps(saved_tensor(trial, key), step - 1, comparable)
            for candidate in takewhile(lambda candidate: number(candidate) >= first, earlier):
                partners[key] = candidate
        return partners

    def _judge(self, update: _Update, step: int) -> bool | None:
        """Return whether a weight changed too much or too little, or None if unknown."""
        ratio = update.change / (update.before + self.epsilon)
        if not math.isfinite(ratio):
            return None
        answers = []
        note = "Not changed at all." if ratio == 0 else None
        for quantity, limit, is_outside in (
            (LARGE, self.large_threshold, self._is_large),
            (SMALL, self.small_threshold, self._is_small),
        ):
            if update.before or self._is_bound[quantity]:
                met, key = is_outside(update, ratio, step), update.key
                answers.append(self.record(key, step, quantity, ratio, limit, met=met, note=note))
        return any(answers) if answers else None

    def _is_large(self, update: _Update, ratio: float, step: int) -> bool:
        """Return whether a weight has changed too much, not just a factor that started small."""
        if ratio <= self.large_threshold or self._is_bound[LARGE]:
            return ratio > self.large_threshold
        size = math.prod(value_shape(saved_tensor(self.base_trial, update.key), step) or ())
        return update.change / math.sqrt(size) > SMALL_RMS

    def _is_small(self, update: _Update, ratio: float, step: int) -> bool:
        """Return whether a weight has changed too little for long enough and is not frozen."""
        key = update.key
        if ratio >= self.small_threshold:
            self._small.pop(key, None)
            return False
        if self._is_bound[SMALL]:
            return True
        if LearningRates(self.base_trial, step).is_warm_up(update.since):
            self._small.pop(key, None)
            return False
        before = TrainedParameters(self.base_trial, update.since)
        if (
            (before.has_flag(key[0]) and before.is_frozen(key[0]))
            or TrainedParameters(self.base_trial, step).is_idle(key[0])
            # The update of a step comes after the value that is saved at it.
            or is_between_updates(self.base_trial, [update.since - 1, step])
            or ROUTED.search(key[0])
            or is_clipped(saved_tensor(self.base_trial, key), step)
        ):
            return False
        self._small[key] = self._small.get(key, 0) + 1
        lasts = self._small[key] >= STILL_STEPS
        return lasts and (ratio > 0 or key in self._moved or not self._is_frozen(key[0], step))

    def _is_frozen(self, name: str, step: int) -> bool:
        """Return whether a weight that has never changed is frozen."""
        trained = self._trained = self._trained or TrainedParameters(self.base_trial, step)
        if trained.are_known or trained.has_flag(name):
            return trained.is_frozen(name)
        return bool(self._moved)
