"""Overfit: the validation loss is clearly worse than the training loss, and falls no longer."""

import math
from dataclasses import dataclass, field
from typing import Any, Final

from builtin_rules.levels import Levels
from builtin_rules.losses import NO_LOSS, Key, Phase, Phases, losses_at
from builtin_rules.selection import LITERAL, TENSOR_REGEX, named
from smdebug.core.collection import CollectionKeys
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, set_parameters

# Why these, and how they judge: docs/decisions/0010-overfit.md.
GAP: Final = "gap"
DEVIATIONS: Final = 2.0


@dataclass(slots=True)
class _Watched:
    """What is remembered of one validation loss."""

    levels: Levels = field(default_factory=lambda: Levels(1))
    exceeded: int = 0  # phases in a row


class Overfit(Rule):
    """Met when ``(validation - training) / |training| > ratio_threshold`` in `patience` phases.

    The means are taken of the losses of a phase of evaluation, and of the training losses since the
    last phase; the phase is judged at the first step of training behind it, or with `literal` at
    the end of the data. The phases count in a row. XGBoost's ``train-<metric>`` is compared with
    each other set's at every saved step.

    Two refinements, which `literal` leaves out. The gap must exceed the ratio by two standard
    errors of the two means, so that noise from batch to batch does not meet the condition. And a
    phase counts only if the validation loss falls no longer: if its mean over the latest quarter of
    the phases is not below the best such mean before. The first phase counts by its gap alone.

    Losses that are NaN or infinite are left out (`ExplodingTensor` owns them), and a mean training
    loss of 0 is not judged. Losses of several tensors and workers are averaged.
    """

    READS = "the collection losses, or the selected tensors, in the modes TRAIN and EVAL: values."
    PARAMS = (
        TENSOR_REGEX,
        IntParam(
            "start_step",
            "First step whose losses count.",
            default=0,
            minimum=0,
            unit="global steps",
        ),
        IntParam(
            "patience",
            "How many phases of evaluation in a row must exceed the ratio.",
            default=1,
            minimum=1,
            unit="phases",
        ),
        FloatParam(
            "ratio_threshold",
            "How much larger than the training loss the validation loss may be, in parts of it.",
            default=0.1,
            minimum=0.0,
            unit="(validation - training) / training",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(GAP, "(validation - training) / training, less two standard errors"),)
    PAGE = Page(
        why="""
        A model that is much better on what it was trained with than on what it has not seen has
        begun to learn the samples by heart: from here on training longer makes it worse.
        """,
        save="""
        The collection `losses`, in training and in evaluation, often enough for a mean:

            Hook(
                out_dir,
                include_collections=["losses"],
                save_config={ModeKeys.TRAIN: SaveConfigMode(save_interval=10),
                             ModeKeys.EVAL: SaveConfigMode(save_interval=1)},
            )
            hook.set_mode(ModeKeys.EVAL)  # before each evaluation, ModeKeys.TRAIN behind it

        XGBoost: name the training set `train` in `evals`.
        """,
        missing="""
        Losses that are not finite are left out. Steps within a phase, a phase without a training
        loss before it, and a mean training loss of 0 are skipped. A run that never sets a mode has
        no validation losses, unless it is XGBoost's.
        """,
        remedy="""
        - Stop at the step with the lowest validation loss, or take its checkpoint.
        - More data, or augmented data; fewer parameters; dropout or weight decay.
        - XGBoost: fewer rounds, a lower `max_depth`, a higher `min_child_weight`.
        - See that training and validation samples come from one distribution.
        """,
        limits="""
        A gap that stays while the validation loss still falls is not reported; `literal` reports
        it. Where both losses are tiny the ratio is large though both are good: raise
        `ratio_threshold`. The last phase of a run is judged only if a step of training follows, or
        by `literal`.
        A validation loss that rises by chance while there is a gap is one phase: raise `patience`.
        """,
    )
    tensor_regex: tuple[str, ...]
    start_step: int
    patience: int
    ratio_threshold: float
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        tensor_regex: Any = None,
        start_step: Any = 0,
        patience: Any = 1,
        ratio_threshold: Any = 0.1,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            tensor_regex=tensor_regex,
            start_step=start_step,
            patience=patience,
            ratio_threshold=ratio_threshold,
            literal=literal,
        )
        self._phases = Phases()
        self._watched: dict[Key, _Watched] = {}  # as many as validation losses

    def invoke_at_step(self, step: int) -> bool:
        """Judge the phases of evaluation that end with global step `step`."""
        if step < self.start_step:
            return self.not_judged("before start_step")
        collections = [] if self.tensor_regex else [CollectionKeys.LOSSES]
        names = named(self.base_trial, step, collections, self.tensor_regex)
        losses = losses_at(self.base_trial, step, names)
        ended = self._phases.add(self.base_trial, step, losses)
        if not ended:
            found = losses.training or losses.validation
            return self.not_judged("no phase of evaluation ends here" if found else NO_LOSS)
        if not any(one.training for one in ended):
            return self.not_judged("no training loss before this phase, or one of 0")
        return self._judge_all(step, ended)

    def invoke_at_end(self, step: int) -> bool:
        """Judge to the letter the phase of evaluation that ends with the data, at `step`."""
        return self.literal and self._judge_all(step, self._phases.end())

    def _judge_all(self, step: int, ended: list[Phase]) -> bool:
        met = [self._judge(step, one) for one in ended if one.training]
        return any(met)

    def _judge(self, step: int, phase: Phase) -> bool:
        """Judge one phase of which both means are there."""
        training = float(phase.training or 0.0)
        gap = (phase.validation - training) / abs(training)
        watched = self._watched.setdefault(phase.key, _Watched())
        watched.levels.add(phase.validation)
        if not self.literal:
            own = phase.training_error * (1 + self.ratio_threshold)
            gap -= DEVIATIONS * math.hypot(own, phase.validation_error) / abs(training)
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
    """Say whether a validation loss is now below all that it was before."""
    progress = levels.progress()
    return progress is not None and progress.fall > 0
