"""Overtraining: the training goes on although no loss improves any more."""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from builtin_rules.levels import Levels
from builtin_rules.losses import NO_LOSS, Phases, losses_at
from builtin_rules.selection import LITERAL, named
from smdebug.core.collection import CollectionKeys
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, set_parameters

# Why these, and how they judge: docs/decisions/0013-overtraining.md.
TRAINING: Final = "training loss"
VALIDATION: Final = "validation loss"
DEVIATIONS: Final = 2.0  # of validation losses
LONE_DEVIATIONS: Final = 3.0  # of training losses alone
PHASES_BEFORE: Final = 3  # phases of validation that an earlier level is the mean of
LEARNED: Final = 4.0  # times delta: from level to level a steady fall is a quarter of all
TOO_FEW: Final = "too few losses"
WITHIN: Final = "no phase of evaluation ends here"


class Judged(NamedTuple):
    """What was measured of a series, its limit, whether it has ended to improve, and ever did."""

    measured: float
    limit: float
    ended: bool
    learned: bool


class Series:
    """The losses of one mode, and what they have to beat.

    Parameters
    ----------
    patience
        Losses without a better one, or the least number of losses that a level is the mean of.
    delta
        By how much a loss must be lower to be better.
    earlier
        How many losses the levels before are means of.
    """

    def __init__(self, patience: int, delta: float, earlier: int) -> None:
        self._patience = patience
        self._delta = delta
        self._best: float | None = None
        self._since = 0  # losses since the best one
        self._latest = 0.0
        self._levels = Levels(patience, earlier)

    def add(self, loss: float) -> None:
        """Add the next loss."""
        self._levels.add(loss)
        self._latest = loss
        better = self._best is None or loss < self._best - self._delta
        self._best = loss if better else self._best
        self._since = 0 if better else self._since + 1

    @property
    def first(self) -> float | None:
        """The first loss, or None before there is one."""
        return self._levels.first

    def latest(self) -> Judged:
        """Judge the latest loss by the documented sentence."""
        limit = 0.0 if self._best is None else self._best - self._delta
        return Judged(self._latest, limit, ended=self._since >= self._patience, learned=True)

    def level(self, deviations: float, scale: float) -> Judged | None:
        """Judge the latest level, or return None while there are too few losses for two.

        It must be below the best level before by `delta`, taken in parts of `scale` where that is
        below 1, and its lack must exceed so many standard errors.
        """
        progress = self._levels.progress()
        if progress is None or self.first is None:
            return None
        enough = self._delta * min(1.0, abs(scale))
        margin = deviations * progress.error
        limit = progress.best - enough + margin
        certain = margin + DEVIATIONS * progress.noise
        learned = self.first - progress.best > LEARNED * enough + certain
        return Judged(progress.level, limit, ended=progress.level >= limit, learned=learned)


class Overtraining(Rule):
    """Met when neither training nor validation losses became better by `delta` for so many.

    A training loss is the mean of a step, a validation loss that of a phase of evaluation, judged
    at the first step of training behind it, or at the end of the data. What is compared are levels:
    the mean of the latest `patience_train` or `patience_validation` losses, or of the latest
    quarter of the run once that is more, against the best earlier mean: of as many training losses,
    or of three phases (more in proportion). Both must have ended to improve; a run without
    validation losses is judged by its training losses alone, one without training losses by those
    of validation. So that noise does not hide a slow improvement validation losses must lack two
    standard errors more, and training losses that decide alone three. Some loss must have come down
    from its first value by four times `delta`, and clearly: what never learned, or still falls
    steadily, is not overtrained. Where the first training loss is below 1, `delta` is a part of it.

    With `literal` each saved step counts by itself: none of the last `patience_train` training
    losses and `patience_validation` losses of validation is below the best one by `delta`.

    XGBoost's set ``train`` has the training losses, other sets those of validation. Losses of a run
    that never set a mode are those of training. Losses of several tensors and workers are averaged;
    NaN and infinity are left out (`ExplodingTensor` owns them).
    """

    READS = "the collection losses in the modes TRAIN and EVAL, or without modes: values."
    PARAMS = (
        IntParam(
            "patience_train",
            "Training losses that may pass without a better one.",
            default=5,
            minimum=1,
            unit="losses",
        ),
        IntParam(
            "patience_validation",
            "Validation losses that may pass without a better one.",
            default=10,
            minimum=1,
            unit="losses",
        ),
        FloatParam(
            "delta",
            "How much lower than the best a loss must be to count as better.",
            default=0.01,
            minimum=0.0,
            unit="loss",
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(TRAINING, "training loss, mean of the latest, against what it has to be below"),
        Quantity(
            VALIDATION, "validation loss, mean of the latest, against what it has to be below"
        ),
    )
    PAGE = Page(
        why="""
        From here on the training costs what it costs and gives nothing; at best the model stays
        what it is, and at worst it overfits.
        """,
        save="""
        The collection `losses`, in training and in evaluation:

            Hook(out_dir, include_collections=["losses"], save_config=SaveConfig(save_interval=10))
            hook.set_mode(ModeKeys.EVAL)  # before each evaluation, ModeKeys.TRAIN behind it

        XGBoost: name the training set `train` in `evals`.
        """,
        missing="""
        Losses that are not finite are left out. Steps without a loss are skipped, and so are the
        first ones, until there are two levels: of twice `patience_train` training losses and, once
        there is a validation loss, of `patience_validation` phases of evaluation and three more.
        """,
        remedy="""
        - Stop earlier: early stopping does what this rule sees.
        - If the losses ought to be lower still, lower the learning rate, or let it decay.
        - See whether the model is too small for its data.
        """,
        limits="""
        Without validation losses it decides late where noise is large against `delta`: save them,
        or raise `delta`. A loss that improves by less than `delta` over a quarter of the run has
        ended to improve: lower `delta` for losses that are meant to become very small. While the
        training loss still falls nothing is found, however the validation loss rises: see
        `Overfit`. Runs with fewer than fourteen phases of evaluation are not judged: lower
        `patience_validation`.
        """,
    )
    patience_train: int
    patience_validation: int
    delta: float
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        patience_train: Any = 5,
        patience_validation: Any = 10,
        delta: Any = 0.01,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            patience_train=patience_train,
            patience_validation=patience_validation,
            delta=delta,
            literal=literal,
        )
        self._phases = Phases()
        self._training = Series(self.patience_train, self.delta, self.patience_train)
        self._validation = Series(self.patience_validation, self.delta, PHASES_BEFORE)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the losses of global step `step`."""
        trial = self.base_trial
        names = named(trial, step, [CollectionKeys.LOSSES], [])
        losses = losses_at(trial, step, names)
        ended = [one.validation for one in self._phases.add(trial, step, losses)]
        if losses.training:
            self._training.add(_mean(losses.training.values()))
        validation = list(losses.validation.values()) if self.literal else ended
        if validation:
            self._validation.add(_mean(validation))
        if not losses.training and not validation:
            found = bool(losses.validation)
            return self.not_judged(WITHIN if found else NO_LOSS)
        return self._judge(step)

    def invoke_at_end(self, step: int) -> bool:
        """Judge the phase of evaluation that ends with the data, at global step `step`."""
        ended = [one.validation for one in self._phases.end()]
        if not ended or self.literal:
            return False
        self._validation.add(_mean(ended))
        return self._judge(step)

    def _judge(self, step: int) -> bool:
        """Judge what the losses have come to."""
        training, validation = self._training, self._validation
        alone = training.first is None or validation.first is None
        scale = validation.first if training.first is None else training.first
        judged = {
            name: series.latest() if self.literal else series.level(deviations, scale or 0.0)
            for name, series, deviations in (
                (TRAINING, training, LONE_DEVIATIONS if alone else 0.0),
                (VALIDATION, validation, DEVIATIONS),
            )
            if series.first is not None
        }
        known = {name: one for name, one in judged.items() if one is not None}
        if len(known) < len(judged):
            return self.not_judged(TOO_FEW)
        met = all(one.ended for one in known.values()) and any(
            one.learned for one in known.values()
        )
        for name, one in known.items():
            self.measured(step, name, one.measured, one.limit, met=met)
        return met


def _mean(losses: Collection[float]) -> float:
    return sum(losses) / len(losses)
