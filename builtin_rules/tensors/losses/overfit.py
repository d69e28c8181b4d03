"""Overfit: the validation loss rises, and is clearly above the training loss."""

import math
from collections import deque
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
from builtin_rules.statistics.noise_levels import (
    ERROR_RATE,
    NOISE_ROWS,
    RobustWindow,
    falls,
    mean,
    rises,
)
from builtin_rules.statistics.parameters import Declared, count, names, non_negative
from builtin_rules.statistics.tensor_selection import LITERAL, LOSSES, TENSOR_REGEX, selection_input
from smdebug.rules.extensions import Quantity, step_in_segment

# Why these, and how they judge: docs/decisions/0010-overfit.md.
GAP: Final = "gap"
GAP_DEVIATIONS: Final = 2.0  # of the gap
RISE_DEVIATIONS: Final = 3.0  # more, as the best of many levels is low by chance
MIN_RISE: Final = 0.01  # of the best validation loss: a smaller rise counts as none
END_RISE: Final = 0.05  # the same at the end; a run that is stopped early ends lower
LARGE_RISE: Final = 0.1  # the same, which shows in one phase
SMOOTHED_PHASES: Final = 3  # phases whose mean is the level
MIN_PHASES: Final = 4  # that tell a trend from its noise
TINY_LOSS: Final = 1e-300
STRICT_RATE: Final = 0.01  # errors of tests whose phases are not chosen beforehand
MIN_PATIENCE: Final = 10  # phases; a hump of the first epochs is shorter
LEARNED_SHARE: Final = 0.3  # of the training loss at the start, which is left of it


@dataclass(slots=True)
class _Watched:
    """The state of one validation loss."""

    window: RobustWindow = field(default_factory=RobustWindow)
    best: float = math.inf  # lowest mean of three phases in a row
    exceeded: int = 0  # phases in a row
    latest: EvaluationPhase | None = None
    is_best: bool = False  # the latest such mean
    is_reported: bool = False
    training: deque[float] = field(default_factory=lambda: deque(maxlen=NOISE_ROWS))

    def add(self, phase: EvaluationPhase) -> bool:
        """Add a phase and return whether the validation loss is clearly above its best level."""
        self.latest = phase
        self.training.append(phase.training or 0.0)
        self.window.add(phase.validation)
        latest = self.window.latest(SMOOTHED_PHASES)
        if len(latest) < SMOOTHED_PHASES:
            return False
        level = mean(latest)
        self.is_best = level <= self.best
        self.best = min(self.best, level)
        error = self.window.noise_about_trend() * math.sqrt(2 / SMOOTHED_PHASES)
        enough = len(self.window) >= MIN_PHASES
        return enough and level - self.best > MIN_RISE * abs(self.best) + RISE_DEVIATIONS * error

    def rises(self) -> bool:
        """Return whether validation rises in the latest half, or since its best, as training falls.

        Fewer than ten phases are judged as a whole.
        """
        values = self.window.latest(NOISE_ROWS)
        since_best = values[values.index(min(values)) + 1 :]
        half = values[len(values) // 2 :] if len(values) >= MIN_PATIENCE else values
        rise = (mean(values[-SMOOTHED_PHASES:]) - self.best) / max(abs(self.best), TINY_LOSS)
        rate = ERROR_RATE if len(since_best) == MIN_PHASES else STRICT_RATE  # four show no more
        strict = rises(since_best, error_rate=rate) or rises(values, error_rate=STRICT_RATE)
        risen = (strict and rise > MIN_RISE) or (rise > END_RISE and rises(half))
        is_large = self.exceeded > 0 and rise > LARGE_RISE
        return (risen or is_large) and falls(self.training)

    def exceeds_start(self) -> bool:
        """Return whether validation is worse than training was at first, and does not fall."""
        start = self.latest.start if self.latest else math.inf
        has_learned = 0 <= self.training[-1] < LEARNED_SHARE * start
        is_worse = min(self.window.latest(SMOOTHED_PHASES)) > start
        return has_learned and is_worse and not falls(self.window.latest(NOISE_ROWS))


class Overfit(DeclaredRule):
    """Met when the validation loss rises while it is ``ratio_threshold`` above the training loss.

    Validation is the mean loss of an evaluation phase, training the mean of the training losses
    since the previous phase: of ``train_loss_epoch`` alone if that is saved beside single steps. A
    phase is judged at the first training step after it, or at the end of the data. XGBoost's
    ``train-<metric>`` is compared with each other set at every saved step.

    A phase counts if ``(validation - training) / |training| > ratio_threshold`` by more than two
    standard errors of the two means, and if the validation loss has risen: the mean of three phases
    is above the best such mean before by more than 1 % and three standard errors. The noise is that
    about a trend, from differences of differences. The condition is met when ten phases in a row
    count, as is usual for early stopping. At the end of the data one is enough, if the training
    loss falls and the mean of three is 10 % above the best. So are four phases, if validation rises
    by the Mann-Kendall test, which is exact for few phases: over the latest half (all of fewer than
    ten) at 5 %, and the mean of three is 5 % above the best; or over all or those since the best at
    1 % (four since the best: all rise), and it is 1 % above. And so is any number of phases, if the
    training loss has fallen below 30 % of the highest of its first three, which each of the last
    three phases exceeds, and validation does not fall. So a validation loss that starts high
    and falls, however large the gap, is healthy, and so are a hump of the first epochs and one that
    is level for long. It has recovered with a new best mean of three.

    With `literal`, or if you give `patience` or `ratio_threshold`, a phase counts by ``(validation
    - training) / |training| > ratio_threshold`` alone, and `patience` phases are enough.
    Adversarial and reinforcement trainings are not judged otherwise.

    Losses that are NaN or infinite are left out (`ExplodingTensor` reports them), and by the
    documented sentence, a mean training loss of 0 is not judged. Losses of several tensors and
    workers are averaged.
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
        # Values that the user gives bind: they are judged by the documented sentence.
        self._literal = self.binds("patience", "ratio_threshold")
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
        if not any(map(self._has_gap, ended)):
            return self.not_judged("no training loss before this phase, or a loss of 0")
        reason = "" if self._literal else no_objective(self.base_trial)
        if reason:
            return self.not_judged(reason)
        return self._judge_all(step, ended)

    def invoke_at_end(self, step: int) -> bool:
        """Judge the evaluation phase that ends with the data, at `step`."""
        ended = self._phases.end()
        if self._literal:
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
        met = [self._judge(step, phase) for phase in ended if self._has_gap(phase)]
        return any(met)

    def _has_gap(self, phase: EvaluationPhase) -> bool:
        """Return whether a phase has a training loss, which is not 0 in the documented ratio."""
        return phase.training is not None and (phase.training != 0 or not self._literal)

    def _judge(self, step: int, phase: EvaluationPhase) -> bool:
        """Judge a phase that has both means."""
        gap = self._gap(phase)
        watched = self._watched.setdefault(phase.key, _Watched())
        risen = watched.add(phase)
        exceeds = gap > self.ratio_threshold and (self._literal or risen)
        watched.exceeded = watched.exceeded + 1 if exceeds else 0
        return self._record(step, phase, watched)

    def _gap(self, phase: EvaluationPhase) -> float:
        """Return the relative gap, less two standard errors unless the sentence decides."""
        if self._literal:
            return _ratio(phase)
        training = max(abs(float(phase.training or 0.0)), TINY_LOSS)
        margin = phase.training_error * (1 + self.ratio_threshold)
        error = math.hypot(margin, phase.validation_error)
        return _ratio(phase) - GAP_DEVIATIONS * error / training

    def _record(self, step: int, phase: EvaluationPhase, watched: _Watched) -> bool:
        """Record a phase and return whether the condition is met."""
        key, gap = (phase.key.name or None, None), self._gap(phase)
        met = watched.exceeded >= (self.patience if self._literal else MIN_PATIENCE)
        if self._at_end:
            met = met or (gap > self.ratio_threshold and watched.rises())
            if not met and watched.exceeds_start():
                met, gap = True, _ratio(phase)
        if watched.is_reported and not met and (watched.is_best or self._literal):
            watched.is_reported = False
            self.found(step, *key, recovers=True)
        watched.is_reported |= met
        training, phases = float(phase.training or 0.0), watched.exceeded
        since = (
            f"for {phases} phase{'s' * (phases != 1)}" if phases else f"{phase.start:.4g} at first"
        )
        note = f"Validation loss {phase.validation:.4g}, training loss {training:.4g}, {since}."
        return self.record(key, step, GAP, gap, self.ratio_threshold, met=met, note=note)


def _ratio(phase: EvaluationPhase) -> float:
    """Return how far validation is above training, as a share of training."""
    training = float(phase.training or 0.0)
    return (phase.validation - training) / max(abs(training), TINY_LOSS)
