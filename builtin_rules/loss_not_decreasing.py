"""LossNotDecreasing: a loss does not go down fast enough."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from builtin_rules.selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    named,
    saved,
    view,
)
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys
from smdebug.rules import Rule
from smdebug.rules.params import BoolParam, ChoiceParam, FloatParam, IntParam, parse_params

# Step-to-step noise is estimated from so many latest differences, once there are enough
# (docs/decisions/0003-loss-not-decreasing.md).
NOISE_WINDOW: Final = 40
NOISE_FROM: Final = 9  # differences: ten losses
DEVIATIONS: Final = 2.0
_MAD_TO_DEVIATION: Final = 1.4826  # of a normal distribution


@dataclass(slots=True)
class _Series:
    """What is remembered of one loss in one mode; it holds `NOISE_WINDOW` numbers at most."""

    evaluated_at: int | None = None
    accepted: float | None = None
    latest: float | None = None
    differences: deque[float] = field(default_factory=lambda: deque(maxlen=NOISE_WINDOW))

    def saw(self, loss: float) -> None:
        """Take a loss into the estimate of the noise."""
        if self.latest is not None and np.isfinite(loss - self.latest):
            self.differences.append(loss - self.latest)
        self.latest = loss

    def noise(self) -> float:
        """Return the robust deviation of step-to-step differences; 0 while there are too few."""
        if len(self.differences) < NOISE_FROM:
            return 0.0
        found = np.array(self.differences)
        return _MAD_TO_DEVIATION * float(np.median(np.abs(found - np.median(found))))


class LossNotDecreasing(Rule):
    """Met when a loss fell by less than `diff_percent` over `num_steps`, or rose too much.

    A loss is judged at the first step that has a partner `num_steps` back, and then whenever
    `num_steps` have passed since; steps count within the mode, and globally for ``GLOBAL``, where
    losses of different modes are never compared. With ``d`` the decrease in percent the condition
    is met if ``-d > increase_threshold_percent``, or if ``0 <= d`` and ``d < diff_percent`` or
    ``d == 0``; smaller rises are tolerated.

    Two refinements, which `literal` leaves out: the loss is compared with the last accepted one,
    so that tolerated rises add up; and from ten losses on what lacks must exceed two robust
    deviations of the step-to-step noise, so that a noisy healthy loss does not meet the condition.

    A loss that is NaN or infinite meets it. Losses of several workers are averaged. Tensors with
    more than one element are passed over.
    """

    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        BoolParam("use_losses_collection", "Judge the collection losses too.", default=True),
        IntParam(
            "num_steps",
            "Distance between two evaluations, and between the two losses compared.",
            default=10,
            minimum=1,
            unit="steps",
        ),
        FloatParam(
            "diff_percent",
            "How much the loss has to go down.",
            default=0.1,
            minimum=0.0,
            maximum=100.0,
            maximum_open=True,
            unit="percent",
        ),
        FloatParam(
            "increase_threshold_percent",
            "How much the loss may go up.",
            default=5.0,
            minimum=0.0,
            maximum=100.0,
            maximum_open=True,
            unit="percent",
        ),
        ChoiceParam(
            "mode",
            "Whose steps and losses are judged.",
            default="GLOBAL",
            choices=("EVAL", "TRAIN", "GLOBAL"),
        ),
        LITERAL,
    )

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        use_losses_collection: Any = True,
        num_steps: Any = 10,
        diff_percent: Any = 0.1,
        increase_threshold_percent: Any = 5.0,
        mode: Any = "GLOBAL",
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        given = {
            "collection_names": collection_names,
            "tensor_regex": tensor_regex,
            "use_losses_collection": use_losses_collection,
            "num_steps": num_steps,
            "diff_percent": diff_percent,
            "increase_threshold_percent": increase_threshold_percent,
            "mode": mode,
            "literal": literal,
        }
        values: dict[str, Any] = parse_params(self.PARAMS, given, self.rule_name)
        losses = (CollectionKeys.LOSSES,) if values["use_losses_collection"] else ()
        self.collection_names: tuple[str, ...] = (*(values["collection_names"] or ()), *losses)
        self.tensor_regex: tuple[str, ...] = values["tensor_regex"] or ()
        self.num_steps: int = values["num_steps"]
        self.diff_percent: float = values["diff_percent"]
        self.increase_threshold_percent: float = values["increase_threshold_percent"]
        self.mode = ModeKeys[values["mode"]]
        self.literal: bool = values["literal"]
        self._series: dict[tuple[str, ModeKeys], _Series] = {}  # as many as losses and modes

    def invoke_at_step(self, step: int) -> bool:
        """Judge the losses of global step `step`."""
        mode = self.base_trial.mode(step)
        if self.mode not in {ModeKeys.GLOBAL, mode}:
            return self.not_judged("a step of another mode")
        names = named(self.base_trial, step, self.collection_names, self.tensor_regex)
        losses = {name: loss for name in names if (loss := self._loss(name, step)) is not None}
        if not losses:
            return self.not_judged("no scalar loss at this step")
        answers = [self._judge(name, mode, step, loss) for name, loss in losses.items()]
        if all(answer is None for answer in answers):
            return self.not_judged("too few steps since the last evaluation")
        return any(answers)

    def _loss(self, name: str, step: int) -> float | None:
        """Return a loss, the mean over its workers, or None if it is no single number."""
        arrays = [view(one, step) for one in saved(self.base_trial, step, [name])]
        numbers = [
            float(array.reshape(-1)[0])
            for array in arrays
            if array is not None and array.size == 1 and array.dtype.kind in "iufV"
        ]
        return float(np.mean(numbers)) if numbers else None

    def _judge(self, name: str, mode: ModeKeys, step: int, loss: float) -> bool | None:
        """Say whether one loss lacks decrease, or None if it is not its turn."""
        series = self._series.setdefault((name, mode), _Series())
        series.saw(loss)
        number = self._number(step)
        due = series.evaluated_at is None or number - series.evaluated_at >= self.num_steps
        partner = self._partner(name, mode, number) if due else None
        if partner is None:
            return None
        series.evaluated_at = number
        reference = partner if self.literal or series.accepted is None else series.accepted
        decrease = 100.0 * (reference - loss) / max(abs(reference), np.finfo(float).tiny)
        if self._lacks(decrease) and not self._is_noise(series, reference, loss):
            return self.found(
                step, name, None, loss, reference, f"A decrease of {decrease:.3g} percent."
            )
        if series.accepted is None or decrease >= self.diff_percent:
            series.accepted = loss if decrease >= self.diff_percent else reference
        return False

    def _lacks(self, decrease: float) -> bool:
        """Say whether a decrease in percent is too small, to the letter of the documentation."""
        if not np.isfinite(decrease):
            return True
        if decrease < 0:
            return -decrease > self.increase_threshold_percent
        return decrease < self.diff_percent or decrease == 0

    def _is_noise(self, series: _Series, reference: float, loss: float) -> bool:
        """Say whether what lacks lies within the noise."""
        if self.literal or not np.isfinite(loss):
            return False
        rise = loss > reference
        percent = self.increase_threshold_percent if rise else -self.diff_percent
        lack = loss - reference - abs(reference) * percent / 100.0
        return lack <= DEVIATIONS * series.noise()

    def _number(self, step: int) -> int:
        """Return the number by which distances are counted."""
        return step if self.mode is ModeKeys.GLOBAL else self.base_trial.mode_step(step)

    def _partner(self, name: str, mode: ModeKeys, number: int) -> float | None:
        """Return the newest loss at least `num_steps` back, of the same mode."""
        trial = self.base_trial
        before = trial.tensor(name).prev_steps(number - self.num_steps, mode=self.mode)
        for one in reversed(before):
            step = one if self.mode is ModeKeys.GLOBAL else trial.global_step(self.mode, one)
            if trial.mode(step) is mode:
                loss = self._loss(name, step)
                if loss is not None and np.isfinite(loss):
                    return loss
        return None
