"""Overfit: the validation loss is clearly above the training loss and no longer falls."""

import math
from dataclasses import dataclass, field
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.loss_statistics import (
    NO_LOSS,
    EvaluationPhase,
    EvaluationPhases,
    LossKey,
    losses_at,
)
from builtin_rules.statistics.noise_levels import Levels
from builtin_rules.statistics.parameters import count, non_negative
from builtin_rules.statistics.tensor_selection import LITERAL, LOSSES, TENSOR_REGEX, selection_input
from smdebug.rules.extensions import Page, Quantity, step_in_segment

# Why these, and how they judge: docs/decisions/0010-overfit.md.
GAP: Final = "gap"
DEVIATIONS: Final = 2.0


@dataclass(slots=True)
class _Watched:
    """The state of one validation loss."""

    levels: Levels = field(default_factory=lambda: Levels(1))
    exceeded: int = 0  # phases in a row


class Overfit(DeclaredRule):
    """Met when ``(validation - training) / |training| > ratio_threshold`` in `patience` phases.

    Validation is the mean loss of an evaluation phase, training the mean of the training losses
    since the previous phase. A phase is judged at the first training step after it, or with
    `literal` at the end of the data. The phases must be consecutive. XGBoost's ``train-<metric>``
    is compared with each other set at every saved step.

    `literal` disables two refinements. The gap must exceed the ratio by two standard errors of the
    two means, so that noise between batches does not meet the condition. And a phase counts only if
    the validation loss no longer falls, that is, if its mean over the latest quarter of the phases
    is not below the best such mean before. The first phase counts by its gap alone.

    Losses that are NaN or infinite are left out (`ExplodingTensor` reports them), and a mean
    training loss of 0 is not judged. Losses of several tensors and workers are averaged.
    """

    READS = "the collection losses, or the selected tensors, in the modes TRAIN and EVAL: values."
    PARAMS = (
        TENSOR_REGEX,
        count("start_step", "First step whose losses count.", 0, "global steps", minimum=0),
        count(
            "patience",
            "Number of consecutive evaluation phases that must exceed the ratio.",
            1,
            "phases",
        ),
        non_negative(
            "ratio_threshold",
            "Tolerated excess of the validation loss, relative to the training loss.",
            0.1,
            "(validation - training) / training",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(GAP, "(validation - training) / training, less two standard errors"),)
    PAGE = Page(
        why="""
        A model that performs much better on its training data than on unseen data has started to
        memorise the samples: training longer makes it worse.
        """,
        save="""
        The collection `losses`, in training and in evaluation, often enough for a mean:

            Hook(
                out_dir,
                include_collections=["losses"],
                save_config={ModeKeys.TRAIN: SaveConfigMode(save_interval=10),
                             ModeKeys.EVAL: SaveConfigMode(save_interval=1)},
            )
            hook.set_mode(ModeKeys.EVAL)  # before each evaluation; ModeKeys.TRAIN after it

        XGBoost: name the training set `train` in `evals`.
        """,
        missing="""
        Non-finite losses are left out. Steps within a phase, phases without a preceding training
        loss, and a mean training loss of 0 are skipped. A run that never sets a mode has no
        validation losses, except with XGBoost.
        """,
        remedy="""
        - Stop at the step with the lowest validation loss, or use its checkpoint.
        - Use more or augmented data, fewer parameters, dropout or weight decay.
        - XGBoost: use fewer rounds, a lower `max_depth`, a higher `min_child_weight`.
        - Check that training and validation samples come from one distribution.
        """,
        limits="""
        A gap that persists while the validation loss still falls is not reported; `literal` reports
        it. If both losses are tiny, the ratio is large even for a good model: raise
        `ratio_threshold`. The last phase of a run is judged only if a training step follows, or
        with `literal`. A validation loss that rises by chance while there is a gap is a single
        phase: raise `patience`.
        """,
    )
    tensor_regex: tuple[str, ...]
    start_step: int
    patience: int
    ratio_threshold: float
    literal: bool

    def _prepare(self) -> None:
        self._inputs = selection_input((), self.tensor_regex) if self.tensor_regex else LOSSES
        self.required_inputs = (self._inputs,)
        self._phases = EvaluationPhases()
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
        return self._judge_all(step, ended)

    def invoke_at_end(self, step: int) -> bool:
        """With `literal`, judge the evaluation phase that ends with the data, at `step`."""
        return self.literal and self._judge_all(step, self._phases.end())

    def _judge_all(self, step: int, ended: list[EvaluationPhase]) -> bool:
        met = [self._judge(step, phase) for phase in ended if phase.training]
        return any(met)

    def _judge(self, step: int, phase: EvaluationPhase) -> bool:
        """Judge a phase that has both means."""
        training = float(phase.training or 0.0)
        gap = (phase.validation - training) / abs(training)
        watched = self._watched.setdefault(phase.key, _Watched())
        watched.levels.add(phase.validation)
        if not self.literal:
            margin = phase.training_error * (1 + self.ratio_threshold)
            gap -= DEVIATIONS * math.hypot(margin, phase.validation_error) / abs(training)
        exceeds = gap > self.ratio_threshold and (self.literal or not _falls(watched.levels))
        watched.exceeded = watched.exceeded + 1 if exceeds else 0
        return self.measured(
            step,
            GAP,
            gap,
            self.ratio_threshold,
            met=watched.exceeded >= self.patience,
            tensor=phase.key.name or None,
            note=f"Validation loss {phase.validation:.4g}, training loss {training:.4g}.",
        )


def _falls(levels: Levels) -> bool:
    """Return whether a validation loss is now below all earlier levels."""
    progress = levels.progress()
    return progress is not None and progress.fall > 0
