"""Overfit: the validation loss rises, and is clearly above the training loss."""

import math
from dataclasses import dataclass, field
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.losses.loss_statistics import (
    NO_LOSS,
    EvaluationPhase,
    EvaluationPhases,
    LossKey,
    losses_at,
)
from builtin_rules.statistics.losses.objective import no_objective
from builtin_rules.statistics.noise_levels import RobustWindow, mean
from builtin_rules.statistics.parameters import Declared, count, names, non_negative
from builtin_rules.statistics.tensor_selection import LITERAL, LOSSES, TENSOR_REGEX, selection_input
from smdebug.rules.extensions import Quantity, step_in_segment

# Why these, and how they judge: docs/decisions/0010-overfit.md.
GAP: Final = "gap"
GAP_DEVIATIONS: Final = 2.0  # of the gap
RISE_DEVIATIONS: Final = 3.0  # more, as the best of many levels is low by chance
MIN_RISE: Final = 0.01  # of the best validation loss: a smaller rise counts as none
END_RISE: Final = 0.05  # that one phase needs at the end; a run that is stopped early ends lower
END_PATIENCE: Final = 3  # phases at the end of the data, if the rise is smaller
SMOOTHED_PHASES: Final = 3  # phases whose mean is the level
MIN_PHASES: Final = 4  # that tell a trend from its noise
MIN_PATIENCE: Final = 10  # phases; a hump of the first epochs is shorter


@dataclass(slots=True)
class _Watched:
    """The state of one validation loss."""

    window: RobustWindow = field(default_factory=RobustWindow)
    best: float = math.inf  # lowest mean of three phases in a row
    exceeded: int = 0  # phases in a row
    latest: EvaluationPhase | None = None
    high: bool = False  # above the best level by so much that the last phase is enough

    def add(self, validation: float) -> bool:
        """Add a phase and return whether the validation loss is clearly above its best level."""
        self.window.add(validation)
        latest = self.window.latest(SMOOTHED_PHASES)
        if len(latest) < SMOOTHED_PHASES:
            return False
        level = mean(latest)
        self.best = min(self.best, level)
        error = self.window.noise_about_trend() * math.sqrt(2 / SMOOTHED_PHASES)
        rise = level - self.best
        self.high = rise > END_RISE * abs(self.best)
        enough = len(self.window) >= MIN_PHASES
        return enough and rise > MIN_RISE * abs(self.best) + RISE_DEVIATIONS * error


class Overfit(DeclaredRule):
    """Met when the validation loss rises while it is ``ratio_threshold`` above the training loss.

    Validation is the mean loss of an evaluation phase, training the mean of the training losses
    since the previous phase. A phase is judged at the first training step after it, or at the end
    of the data. XGBoost's ``train-<metric>`` is compared with each other set at every saved step.

    A phase counts if ``(validation - training) / |training| > ratio_threshold`` by more than two
    standard errors of the two means, and if the validation loss has risen: the mean of three phases
    is above the best such mean before by more than 1 % and three standard errors. The noise is that
    about a trend, from differences of differences. The condition is met when `patience` phases in a
    row count, at least ten of them, as is usual for early stopping. At the end of the data three
    are enough, and one if it is 5 % above the best. So a validation loss that starts high and
    falls, however large the gap, is healthy, and so is a hump of the first epochs.

    With `literal`, a phase counts by ``(validation - training) / |training| > ratio_threshold``
    alone, and `patience` phases are enough. Adversarial and reinforcement trainings are not judged
    otherwise.

    Losses that are NaN or infinite are left out (`ExplodingTensor` reports them), and a mean
    training loss of 0 is not judged. Losses of several tensors and workers are averaged.
    """

    READS = "the collection losses, or the selected tensors, in the modes TRAIN and EVAL: values."
    tensor_regex = names(TENSOR_REGEX)
    start_step = count("First step whose losses count.", 0, "global steps", minimum=0)
    patience = count(
        "Number of consecutive evaluation phases that must exceed the ratio.", 1, "phases"
    )
    ratio_threshold = non_negative(
        "Tolerated excess of the validation loss, relative to the training loss.",
        0.1,
        "(validation - training) / training",
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(GAP, "(validation - training) / training, less two standard errors"),)

    def _prepare(self) -> None:
        self._inputs = selection_input((), self.tensor_regex) if self.tensor_regex else LOSSES
        self.required_inputs = (self._inputs,)
        self._phases = EvaluationPhases()
        self._at_end = False
        self._watched: dict[LossKey, _Watched] = {}  # by validation loss

    def invoke_at_step(self, step: int) -> bool:
        """Judge the evaluation phases that end with global step `step`."""
        if step_in_segment(step) < self.start_step:
            return self.not_judged("before start_step")
        names = self._inputs.names(self.base_trial, step)
        losses = losses_at(self.base_trial, step, names)
        ended = self._phases.add(self.base_trial, step, losses)
        if not ended:
            has_losses = losses.training or losses.validation
            return self.not_judged("no evaluation phase ends here" if has_losses else NO_LOSS)
        if not any(phase.training for phase in ended):
            return self.not_judged("no training loss before this phase, or a loss of 0")
        reason = "" if self.literal else no_objective(self.base_trial)
        if reason:
            return self.not_judged(reason)
        return self._judge_all(step, ended)

    def invoke_at_end(self, step: int) -> bool:
        """Judge the evaluation phase that ends with the data, at `step`."""
        ended = self._phases.end()
        if self.literal:
            return self._judge_all(step, ended)
        if no_objective(self.base_trial):
            return False
        self._at_end = True
        judged = self._judge_all(step, ended)
        again = [
            watched.latest
            for watched in self._watched.values()
            if watched.latest is not None and watched.latest not in ended
        ]
        met = [self._record(step, phase, self._watched[phase.key]) for phase in again]
        return judged or any(met)

    def _judge_all(self, step: int, ended: list[EvaluationPhase]) -> bool:
        met = [self._judge(step, phase) for phase in ended if phase.training]
        return any(met)

    def _judge(self, step: int, phase: EvaluationPhase) -> bool:
        """Judge a phase that has both means."""
        gap = self._gap(phase)
        watched = self._watched.setdefault(phase.key, _Watched())
        watched.latest = phase
        rises = watched.add(phase.validation)
        exceeds = gap > self.ratio_threshold and (self.literal or rises)
        watched.exceeded = watched.exceeded + 1 if exceeds else 0
        return self._record(step, phase, watched)

    def _gap(self, phase: EvaluationPhase) -> float:
        """Return the relative gap, less two standard errors unless `literal`."""
        training = float(phase.training or 0.0)
        gap = phase.validation - training
        if not self.literal:
            margin = phase.training_error * (1 + self.ratio_threshold)
            gap -= GAP_DEVIATIONS * math.hypot(margin, phase.validation_error)
        return gap / abs(training)

    def _record(self, step: int, phase: EvaluationPhase, watched: _Watched) -> bool:
        """Record a phase and return whether the condition is met."""
        at_end = 1 if watched.high else END_PATIENCE
        least = 1 if self.literal else at_end if self._at_end else MIN_PATIENCE
        met = watched.exceeded >= max(self.patience, least)
        key, gap = (phase.key.name or None, None), self._gap(phase)
        note = (
            f"Validation loss {phase.validation:.4g}, training loss "
            f"{float(phase.training or 0.0):.4g}, for {watched.exceeded} phases."
        )
        return self.record(key, step, GAP, gap, self.ratio_threshold, met=met, note=note)
