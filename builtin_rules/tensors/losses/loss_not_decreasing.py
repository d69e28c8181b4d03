"""LossNotDecreasing: a loss does not decrease fast enough."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.noise_levels import NOISE_WINDOW, noise
from builtin_rules.statistics.parameters import count, percentage
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    LITERAL,
    LOSSES,
    TENSOR_REGEX,
    any_met,
    tensors_of_mode,
    view,
)
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import BoolParam, ChoiceParam, Page, Quantity, TensorInput

LOSS: Final = "loss"
LEVEL: Final = "mean loss"
# Why these, and how they judge: docs/decisions/0003-loss-not-decreasing.md.
LOSSES_OF_NOISE: Final = 5  # minimum to estimate the noise
LOSSES_OF_LEVEL: Final = 10  # number of latest losses whose mean is the level
STARTED: Final = 0.9  # of the first loss; a loss below it has started to fall
STANDSTILL_PERCENT: Final = 0.5  # largest decrease between ten losses and the ten before
CONVERGED: Final = 0.1  # of the first loss; a loss below it need not fall
LONE_DEVIATIONS: Final = 4.0
LEVEL_DEVIATIONS: Final = 2.0


@dataclass(slots=True)
class _LossHistory:
    """One loss in one mode; holds at most `NOISE_WINDOW` + 1 losses."""

    evaluated_at: int | None = None
    first: float | None = None  # the first finite one: the scale of the series
    lacked: bool = False  # whether there was no decrease at the last evaluation
    stood: bool = False  # whether the loss had not started to fall by then
    accepted: float | None = None
    level: float | None = None  # the last accepted one
    level_at: int = 0
    losses: deque[float] = field(default_factory=lambda: deque(maxlen=NOISE_WINDOW + 1))

    def noise(self) -> float:
        """Return the robust deviation of step-to-step differences; 0 if there are too few."""
        if len(self.losses) < LOSSES_OF_NOISE:
            return 0.0
        return math.sqrt(2) * noise(self.losses)  # a difference has twice the variance of a loss

    def latest_level(self) -> float:
        """Return the mean of the latest losses."""
        return sum(list(self.losses)[-LOSSES_OF_LEVEL:]) / LOSSES_OF_LEVEL

    def levels(self) -> tuple[float, float] | None:
        """Return the level and the mean of as many losses before, or None if there are too few."""
        before = list(self.losses)[-2 * LOSSES_OF_LEVEL : -LOSSES_OF_LEVEL]
        if len(before) < LOSSES_OF_LEVEL:
            return None
        return self.latest_level(), sum(before) / LOSSES_OF_LEVEL


class LossNotDecreasing(DeclaredRule):
    """Met when a loss fell by less than `diff_percent` over `num_steps`, or rose too much.

    A loss is judged at the first step with a counterpart `num_steps` earlier, and again whenever
    `num_steps` have passed. Steps count within the mode, or globally for ``GLOBAL``, where losses
    of different modes are never compared. With ``d`` the decrease in percent, the condition is met
    if ``-d > increase_threshold_percent``, or if ``0 <= d`` and ``d < diff_percent`` or ``d == 0``;
    smaller rises are tolerated.

    `literal` disables the following refinements. The loss is also compared with the last accepted
    one, so that tolerated rises add up; with fewer than five losses it is compared with the first
    one only. A lack of decrease counts only at two evaluations in a row. From five losses on, it
    must clearly exceed the noise from step to step. From ten losses on, the mean of the last ten is
    judged too: it has less noise, and must fall by `diff_percent` for each `num_steps` since the
    last accepted mean. The last ten losses must not all exceed the first one by more than is
    tolerated. Nor may their mean stay above 90 % of it and fall by less than half a percent from
    that of the ten before; both count at two evaluations in a row. A loss at 10 % of the first one
    or less has converged and need not fall.

    A loss that is NaN or infinite when it is judged meets the condition; an earlier one is not
    compared with. Losses of several workers are averaged. Tensors with more than one element are
    skipped.
    """

    READS = "the collection losses and the selected tensors: values of one element."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        BoolParam("use_losses_collection", "Judge the collection losses too.", default=True),
        count(
            "num_steps",
            "Distance between two evaluations, and between the two losses compared.",
            10,
            "steps",
        ),
        percentage("diff_percent", "How much the loss must fall.", 0.1, below_100=True),
        percentage(
            "increase_threshold_percent", "How much the loss may rise.", 5.0, below_100=True
        ),
        ChoiceParam(
            "mode",
            "Mode of the steps and losses to judge.",
            default="GLOBAL",
            choices=("EVAL", "TRAIN", "GLOBAL"),
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(LOSS, "loss, and what it must fall below"),
        Quantity(LEVEL, "mean of the latest losses, and what it must fall below"),
    )
    PAGE = Page(
        why="""
        A loss that no longer falls means that the training makes no progress or diverges; the
        sooner you know, the less it costs.
        """,
        save="""
        The collection `losses`, which every hook saves; more often than the default of every 500
        steps:

            Hook(out_dir, save_config=SaveConfig(save_interval=10))
        """,
        missing="""
        NaN and infinity meet the condition when they are due. Tensors with more than one element,
        steps without a loss, and steps less than `num_steps` after the last evaluation are skipped.
        """,
        remedy="""
        - A rise: lower the learning rate, clip gradients, or warm it up.
        - A plateau from the start: check that the optimizer has all parameters and is called, and
          that labels match their inputs; see `VanishingGradient` and `UnchangedTensor`.
        - A plateau later on: lower the learning rate with a schedule, or stop (`Overtraining`).
        """,
        limits="""
        Noise hides a plateau: at 5 % from step to step it is found after about 600 steps, a rise
        within 50. Fewer than ten losses of a mode reveal little: save more often. Do not use this
        rule for losses that are meant to stay level, such as that of a GAN.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]
    use_losses_collection: bool
    num_steps: int
    diff_percent: float
    increase_threshold_percent: float
    mode: str
    literal: bool

    def _prepare(self) -> None:
        usual = LOSSES.collections if self.use_losses_collection else ()
        self._inputs = TensorInput(
            LOSSES.label, (*self.collection_names, *usual), self.tensor_regex
        )
        self.required_inputs = (self._inputs,)
        self._mode = ModeKeys[self.mode]
        self._series: dict[tuple[str, ModeKeys], _LossHistory] = {}  # by loss and mode

    def invoke_at_step(self, step: int) -> bool:
        """Judge the losses of global step `step`."""
        trial = self.base_trial
        modes = trial.modes_at(step)
        is_global = self._mode is ModeKeys.GLOBAL
        if not (is_global or self._mode in modes):
            return self.not_judged("a step of another mode")
        names = self._inputs.names(trial, step)
        losses = [
            (name, mode, loss)
            for mode in modes
            if is_global or mode is self._mode
            for name in names
            if (loss := self._loss(name, step, mode, modes)) is not None
        ]
        if not losses:
            return self.not_judged("no scalar loss at this step")
        answers = [self._judge(name, mode, step, loss) for name, mode, loss in losses]
        return any_met(self, answers, "too few steps since the last evaluation")

    def _loss(
        self, name: str, step: int, mode: ModeKeys, modes: Mapping[ModeKeys, int]
    ) -> float | None:
        """Return a loss averaged over its workers, or None if it is not a single number.

        Parameters
        ----------
        step, mode, modes
            The global step, the mode of the loss, and the mode steps of all modes of the step.
        """
        trial = self.base_trial
        if len(modes) == 1:
            mode = ModeKeys.GLOBAL
        else:
            step = modes[mode]
            if name not in trial.tensor_names(step=step, mode=mode):
                return None
        arrays = [view(saved, step, mode) for saved in tensors_of_mode(trial, step, [name], mode)]
        numbers = [
            float(array.reshape(-1)[0])
            for array in arrays
            if array is not None and array.size == 1 and array.dtype.kind in "iufV"
        ]
        return sum(numbers) / len(numbers) if numbers else None

    def _judge(self, name: str, mode: ModeKeys, step: int, loss: float) -> bool | None:
        """Return whether a loss fails to decrease, or None if it is not due."""
        series = self._series.setdefault((name, mode), _LossHistory())
        if np.isfinite(loss):
            series.losses.append(loss)
            series.first = loss if series.first is None else series.first
        number = self._number(step)
        due = series.evaluated_at is None or number - series.evaluated_at >= self.num_steps
        partner = self._partner(name, mode, number) if due else None
        if partner is None or (np.isfinite(loss) and not np.isfinite(partner)):
            return None
        series.evaluated_at = number
        if series.accepted is None:
            series.accepted = partner
        reference = self._lacked_against(series, partner, loss)
        lacked, series.lacked = series.lacked, reference is not None
        met = reference is not None and (self.literal or lacked or not np.isfinite(loss))
        compared = series.accepted if reference is None else reference
        if self._measured(step, name, loss, compared, met=met):
            return True
        if _decrease(series.accepted, loss) >= self.diff_percent:
            series.accepted = loss
        if self.literal:
            return False
        return self._judge_level(name, series, step) or self._judge_start(name, series, step)

    def _lacked_against(self, series: _LossHistory, partner: float, loss: float) -> float | None:
        """Return the earlier loss from which the loss did not decrease, or None."""
        if self.literal or not np.isfinite(loss):
            return partner if self._lacks(partner, loss) else None
        few = len(series.losses) < LOSSES_OF_NOISE
        margin = LONE_DEVIATIONS * series.noise()
        for reference in (series.first,) if few else (partner, series.accepted):
            if (
                reference is not None
                and self._lacks(reference, loss)
                and not self._has_converged(series, loss)
                and (not margin or self._exceeds(reference, loss, margin))
            ):
                return reference
        return None

    def _has_converged(self, series: _LossHistory, loss: float) -> bool:
        return series.first is not None and abs(loss) <= CONVERGED * abs(series.first)

    def _measured(
        self, step: int, name: str, loss: float, reference: float, *, met: bool, means: str = ""
    ) -> bool:
        note = f"{means}{_note(reference, loss)}"
        quantity = LEVEL if means else LOSS
        return self.measured(step, quantity, loss, reference, met=met, tensor=name, note=note)

    def _judge_level(self, name: str, series: _LossHistory, step: int) -> bool:
        """Return whether the mean of the latest losses fails to decrease."""
        if len(series.losses) < LOSSES_OF_LEVEL:
            return False
        level, number, lone = series.latest_level(), self._number(step), series.noise()
        if series.level is not None and not self._has_converged(series, level):
            intervals = (number - series.level_at) / self.num_steps
            deviation = lone / math.sqrt(LOSSES_OF_LEVEL)  # of the difference of two means
            limit = LEVEL_DEVIATIONS * deviation
            met = bool(lone) and self._exceeds(series.level, level, limit, intervals)
            means = f"Means of {LOSSES_OF_LEVEL} losses. "
            if self._measured(step, name, level, series.level, met=met, means=means):
                return True
            if level > series.level or self._exceeds(series.level, level, 0.0, intervals):
                return False
        series.level, series.level_at = level, number
        return False

    def _judge_start(self, name: str, series: _LossHistory, step: int) -> bool:
        """Return whether the latest losses are all above the first, or have not started to fall.

        Either must hold at two evaluations in a row.
        """
        first = series.first
        if first is None or first <= 0 or len(series.losses) < LOSSES_OF_LEVEL:
            return False
        level, before = series.levels() or (series.latest_level(), None)
        bound = first * (1.0 + self.increase_threshold_percent / 100.0)
        is_above = all(loss > bound for loss in list(series.losses)[-LOSSES_OF_LEVEL:])
        stands = before is not None and level > STARTED * first
        stands = stands and _decrease(before or level, level) < STANDSTILL_PERCENT
        stood, series.stood = series.stood, is_above or stands
        if not (stood and series.stood):
            return False
        reference = first if is_above or before is None else before
        means = f"The latest {LOSSES_OF_LEVEL} losses, since the first one. "
        return self._measured(step, name, level, reference, met=True, means=means)

    def _lacks(self, reference: float, loss: float) -> bool:
        """Return whether a decrease is too small by the documented condition."""
        decrease = _decrease(reference, loss)
        if not np.isfinite(decrease):
            return True
        if decrease < 0:
            return -decrease > self.increase_threshold_percent
        return decrease < self.diff_percent or decrease == 0

    def _exceeds(
        self, reference: float, value: float, margin: float, intervals: float = 1.0
    ) -> bool:
        """Return whether a value exceeds its limit after `intervals` by more than `margin`."""
        owed = intervals * self.diff_percent
        may = -owed
        if value > reference:  # the longer a rise lasts, the less of it is tolerated
            may = max(0.0, self.increase_threshold_percent + self.diff_percent - owed)
        return not value - reference - abs(reference) * may / 100.0 <= margin

    def _number(self, step: int) -> int:
        """Return the step number in which distances are counted."""
        is_global = self._mode is ModeKeys.GLOBAL
        return step if is_global else self.base_trial.modes_at(step)[self._mode]

    def _partner(self, name: str, mode: ModeKeys, number: int) -> float | None:
        """Return the newest finite loss at least `num_steps` back, of the same mode.

        NaN if all losses are non-finite, None if there are none.
        """
        partner = None
        trial = self.base_trial
        for earlier in trial.tensor(name).steps_back(number - self.num_steps, self._mode):
            is_global = self._mode is ModeKeys.GLOBAL
            step = earlier if is_global else trial.global_step(self._mode, earlier)
            modes = trial.modes_at(step)
            if mode in modes:
                loss = self._loss(name, step, mode, modes)
                if loss is not None and np.isfinite(loss):
                    return loss
                partner = partner if loss is None else np.nan
        return partner


def _decrease(reference: float, loss: float) -> float:
    """Return how much lower a loss is than its reference, in percent."""
    return 100.0 * (reference - loss) / max(abs(reference), float(np.finfo(float).tiny))


def _note(reference: float, loss: float) -> str:
    decrease = _decrease(reference, loss)
    return f"A {'rise' if decrease < 0 else 'decrease'} of {abs(decrease):.3g} percent."
