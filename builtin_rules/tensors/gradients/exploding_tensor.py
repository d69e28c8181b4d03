"""ExplodingTensor: a tensor holds NaN or infinity."""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import numpy as np

from builtin_rules.statistics.broken_tensors import (
    BrokenTensor,
    ExecutionOrder,
    PassingValues,
    is_mask,
)
from builtin_rules.statistics.losses.objective import is_validation, training_losses
from builtin_rules.statistics.parameters import Declared, flag, names
from builtin_rules.statistics.selecting_rule import SelectingRule
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    LITERAL,
    LOSSES,
    TENSOR_REGEX,
    SavedTensor,
    TensorKey,
    modes_by_name,
    saved_reductions,
    saved_tensor,
    statistics,
    tensor_names,
    view,
)
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import (
    NonFiniteCount,
    NonFiniteCounts,
    Quantity,
    Severity,
    step_in_segment,
)

NOT_FINITE: Final = "elements that are not finite"

TREES: Final = "trees"  # a collection of XGBoost trainings

_FLOATING: Final = "fcV"  # kinds of data types
# Unlike sums and norms, these do not overflow on healthy tensors.
_BOUNDED: Final = frozenset({("min", False), ("max", False), ("min", True), ("max", True)})


_NOT_FINITE: Final = NonFiniteCount()


class ExplodingTensor(SelectingRule):
    """Met when a selected floating-point tensor holds NaN, or infinity unless `only_nan`.

    Without selectors, every saved tensor of every worker is judged, in all modes. Integers,
    booleans and strings are skipped. So are XGBoost's trees, which hold NaN at every leaf, unless
    they are selected, and masks: tensors of zeros and minus infinity, and those named after masks
    or attention whose only infinities are negative. If only reductions were saved, NaN counts in
    any of them, infinity only in min, max, abs_min and abs_max.

    Gradients, losses and norms may be broken for a moment; that is a note. They meet the condition
    if they are broken at two saved steps in a row, at three of ten, or at the last one, in training
    and in evaluation separately.
    Gradients and their norms are an exception while a gradient scaler skips the update
    (`optimizer/skipped`, or a falling loss scale) and, for at most 20 saved steps in a row, if the
    saved weights stay finite or the gradient has not been finite yet. A gradient norm that has
    never been finite, beside losses that are, is undefined, as loggers write it: a note.

    Any other logged number is a metric, such as a reward, which may be undefined for a while: a
    note. It is a warning if a metric that has been finite is broken in its last row.

    Of a validation loss, the evidence says so, and whether the latest training loss is finite.

    Broken tensors are listed in order of execution: inputs, parameters, activations, losses,
    gradients (the last layer first), the rest; the evidence names the first one.

    With `literal`, every step is judged by itself, masks and trees too, infinity counts in every
    reduction, and tensors are listed by name.
    """

    SEVERITY = Severity.ERROR
    READS = (
        "every saved tensor, or those selected: values, or saved reductions; "
        "model/execution_order/*, optimizer/skipped and the collection loss_scales: values."
    )
    SAVED = ("gradients",)
    NEEDS_VALUES = False
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(TENSOR_REGEX)
    only_nan = flag("Count only NaN and ignore infinity.")
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(NOT_FINITE, "NaN and infinite elements", worse="above"),)
    ALL_BY_DEFAULT = True
    STATISTIC = _NOT_FINITE

    def _prepare(self) -> None:
        super()._prepare()
        # By worker: the first broken tensor since the last step without any, and its step.
        self._origins: dict[str, tuple[str, int]] = {}
        self._passing = PassingValues()
        self._which_losses: dict[TensorKey, str] = {}  # for the notes on losses of evaluations

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tensors of global step `step`."""
        trial = self.base_trial
        order = ExecutionOrder(trial, step)
        examined: dict[TensorKey, BrokenTensor | None] = {}  # None if finite
        saved = trial.saved_by(step, self._names(step))
        logged = {name for name, scalar in trial.scalars(step).items() if math.isfinite(scalar)}
        unknown = [key for key in saved if key[0] not in logged] if logged else saved
        counts = statistics(trial, step, unknown, _NOT_FINITE)
        for key in saved:
            count = counts.get(key)
            if key[0] in logged:
                examined[key] = None
            elif count is None or count.nan or count.infinite:
                item = self._examine(saved_tensor(trial, key), count, order, step)
                if item is not None:
                    examined[key] = item if item.elements else None
            elif count.kind in _FLOATING:
                examined[key] = None
        if not examined:
            return self.not_judged("no floating-point tensor at this step")
        broken = [item for item in examined.values() if item is not None]
        if self.literal:
            for key, item in examined.items():
                if item is None:
                    self.measured_all(step, NOT_FINITE, {key: 0}, 0, met=())
                else:
                    self._report(item, step, item.note)
            return bool(broken)
        finite = {key: 0 for key, item in examined.items() if item is None}
        answers = [*self._in_order(broken, finite, order, step)]
        self.measured_all(step, NOT_FINITE, finite, 0, met=())
        return any(answers)

    def _names(self, step: int) -> list[str]:
        """Return the names of the tensors to judge."""
        trial = self.base_trial
        if self._has_selection:
            return self._selected.names(trial, step)
        names: list[str] = trial.tensor_names(step=step)
        trees = set() if self.literal else {*tensor_names(trial, step, [TREES], [])}
        return [name for name in names if name not in trees] if trees else names

    def invoke_at_end(self, step: int) -> bool:
        """Report what was not finite in its last row: it did not pass."""
        del step
        answers = [
            self._report(broken, earlier, broken.note, Severity.WARNING if is_metric else None)
            for broken, earlier, is_metric in self._passing.unsettled()
        ]
        return any(answers)

    def _in_order(
        self,
        broken: Iterable[BrokenTensor],
        finite: Collection[TensorKey],
        order: ExecutionOrder,
        step: int,
    ) -> Iterator[bool]:
        """Yield for each broken tensor, in order of execution, whether it is so for good."""
        broken = sorted(broken, key=order.position)
        firsts = {item.saved.worker: item.saved.name for item in reversed(broken)}
        if self._origins:
            for _, worker in finite:
                if worker not in firsts:
                    self._origins.pop(worker, None)
        for worker, name in firsts.items():
            self._origins.setdefault(worker, (name, step))
        lasting = self._passing.lasting(broken, finite, order, step)
        for item in broken:
            if item.saved.key not in lasting:
                yield self._report(item, step, f"{item.note} It may pass.", Severity.NOTE)
            else:
                yield self._report(item, step, self._note(item, step))

    def _note(self, item: BrokenTensor, step: int) -> str | None:
        note = f"{item.note} {self._which_loss(item.saved.key, step)}".rstrip()
        origin, since = self._origins.get(item.saved.worker, ("", step))
        if (origin, since) == (item.saved.name, step):
            return note
        when = "" if since == step else f" at step {step_in_segment(since)}"
        return f"{note} The first in order of execution was {origin!r}{when}."

    def _which_loss(self, key: TensorKey, step: int) -> str:
        """Return which losses are broken if the tensor is a validation loss; otherwise ""."""
        trial, name = self.base_trial, key[0]
        if name not in LOSSES.names(trial, step):
            return ""
        if modes_by_name(trial, step, [name])[name] is not ModeKeys.EVAL and (
            not is_validation(name)
        ):
            return ""
        if key not in self._which_losses:
            trained = trial.steps(ModeKeys.TRAIN, show_incomplete_steps=True)
            latest = trial.global_step(ModeKeys.TRAIN, trained[-1]) if trained else step
            training = training_losses(trial, latest, LOSSES.names(trial, latest)).values()
            also = (
                "; the training loss is" if training and all(map(math.isfinite, training)) else ""
            )
            self._which_losses[key] = f"The validation loss is not finite{also}."
        return self._which_losses[key]

    def _report(
        self, item: BrokenTensor, step: int, note: str | None, severity: Severity | None = None
    ) -> bool:
        key, elements = item.saved.key, item.elements
        if item.reduced is not None:  # a saved reduction, which does not tell how many
            return self.found(step, *key, item.reduced, None, note, severity)
        return self.record(
            key, step, NOT_FINITE, elements, 0, met=elements > 0, note=note, severity=severity
        )

    def _examine(
        self, saved: SavedTensor, counts: NonFiniteCounts | None, order: ExecutionOrder, step: int
    ) -> BrokenTensor | None:
        """Return how many elements of a tensor are not finite, or None if that is unknown.

        Parameters
        ----------
        counts
            The counts; None without real numbers.
        """
        if counts is None:  # no value, or no real numbers
            counts = self._count_other(saved, step)
        if counts is None:
            return self._examine_reductions(saved, step)
        if counts.kind not in _FLOATING:
            return None
        count = counts.nan if self.only_nan else counts.nan + counts.infinite
        if count and not counts.nan and not self.literal and is_mask(saved, step, order):
            count = 0
        if not count:
            return BrokenTensor(saved, 0, "")
        note = f"{counts.nan} NaN and {counts.infinite} infinite of {counts.size} elements."
        return BrokenTensor(saved, count, note, bool(counts.nan))

    @staticmethod
    def _count_other(saved: SavedTensor, step: int) -> "NonFiniteCounts | None":
        """Return the counts of an array without real numbers, or None without a value."""
        array = view(saved, step)
        if array is None:
            return None
        nan = infinite = 0
        if array.dtype.kind == "c":
            nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        return NonFiniteCounts(nan, infinite, array.size, array.dtype.kind)

    def _examine_reductions(self, saved: SavedTensor, step: int) -> BrokenTensor | None:
        values = saved_reductions(saved, step)
        if not values:
            return None
        for key, value in values.items():
            if np.isnan(value) or (np.isinf(value) and self._bounds(key) and not self.only_nan):
                note = f"Saved reduction {'abs_' if key[1] else ''}{key[0]}."
                return BrokenTensor(saved, 1, note, bool(np.isnan(value)), value)
        return BrokenTensor(saved, 0, "")

    def _bounds(self, key: tuple[str, bool]) -> bool:
        """Return whether a reduction is infinite only if an element is."""
        return self.literal or key in _BOUNDED
