"""Overtraining: the training continues although no loss improves any more."""

from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.losses.loss_statistics import NO_LOSS, EvaluationPhases, losses_at
from builtin_rules.statistics.losses.objective import no_objective
from builtin_rules.statistics.noise_levels import Levels, falls, mean
from builtin_rules.statistics.parameters import Declared, count, non_negative
from builtin_rules.statistics.tensor_selection import LITERAL, LOSSES
from smdebug.rules.extensions import Quantity, Severity

# Why these, and how they judge: docs/decisions/0013-overtraining.md.
TRAINING: Final = "training loss"
VALIDATION: Final = "validation loss"
LOSS_DEVIATIONS: Final = 2.0  # of validation losses
LONE_DEVIATIONS: Final = 3.0  # of training losses alone
PHASES_BEFORE: Final = 3  # minimum validation phases of an earlier level
HALVED_SHARE: Final = 0.5  # a loss near 0 improves by this share of it
LONE_FALL: Final = 0.2  # the same of training losses alone
LEARNED_FACTOR: Final = 4.0  # times delta; a steady fall is a quarter of the total per level
WASTED_FACTOR: Final = 1.25  # a training that goes on for so many times as long wastes time
STILL_FALLS: Final = 0.01  # of the loss, in the latest half of the run
TOO_FEW: Final = "too few losses"
WITHIN: Final = "no phase of evaluation ends here"


class LossVerdict(NamedTuple):
    """A measured value and its limit; whether the series stopped improving, and ever improved."""

    measured: float
    limit: float
    ended: bool
    learned: bool


class LossTrend:
    """The losses of one mode, and the loss that they must fall below.

    Parameters
    ----------
    patience
        The number of losses without a better one, or the minimum number of losses of a level.
    delta
        How much lower a loss must be to be better.
    earlier
        The minimum number of losses of earlier levels.
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

    def still_falls(self) -> bool:
        """Return whether the loss certainly falls by a hundredth in the latest half of the run."""
        blocks = self._levels.blocks()
        blocks = blocks[len(blocks) // 2 :]
        part = -(-len(blocks) // 4)
        before, latest = mean(blocks[:part]), mean(blocks[-part:])
        return before - latest > STILL_FALLS * abs(latest) and falls(blocks)

    def latest(self) -> LossVerdict:
        """Judge the latest loss by the documented condition."""
        limit = 0.0 if self._best is None else self._best - self._delta
        return LossVerdict(self._latest, limit, ended=self._since >= self._patience, learned=True)

    def level(self, deviations: float, share: float, scale: float) -> LossVerdict | None:
        """Judge the latest level, or return None without two levels.

        It must be below the best earlier level by `delta`, relative to `scale` if that is below
        1, or by `share` of the best level if that is less. A failure must exceed `deviations`
        standard errors; with 0 of them, `share` does not matter.
        """
        progress = self._levels.progress()
        if progress is None or self.first is None:
            return None
        delta = self._delta * min(1.0, abs(scale))
        enough = min(delta, share * abs(progress.best)) if deviations else delta
        margin = deviations * progress.error
        limit = progress.best - enough + margin
        certain = margin + LOSS_DEVIATIONS * progress.noise
        learned = self.first - progress.best > LEARNED_FACTOR * delta + certain
        ended = progress.level >= limit and progress.best != 0.0  # nothing is better than 0
        return LossVerdict(progress.level, limit, ended=ended, learned=learned)


class Overtraining(DeclaredRule):
    """Met when neither training nor validation losses improve by `delta` any more.

    A training loss is the mean of a step, a validation loss that of an evaluation phase. A phase is
    judged at the first training step after it, or at the end of the data. The rule compares levels:
    the mean of the latest `patience_train` or `patience_validation` losses, or of the latest
    quarter of the run if that is more, with the best earlier mean, which spans as many training
    losses or three phases (more in proportion). Both must have stopped improving. A run without
    validation losses is judged by its training losses alone, and vice versa.

    So that noise does not hide a slow improvement, validation losses must fail to improve by two
    standard errors more, and training losses that decide alone by three. Some loss must have
    clearly fallen from its first value by four times `delta`: a training that never learned, or
    whose loss still falls steadily, is not overtrained. If the first training loss is below 1,
    `delta` is relative to it. The loss that decides, that of validation if there is one, improves
    too if it falls by half (training losses alone: by a fifth): a loss near 0 has no room for more.

    A run that ends converged is healthy, so this is a note at first. It becomes a warning, which
    meets the condition, once the training has gone on for a quarter of the rows until then, and for
    `patience_validation` rows at least. It stays a note if either loss certainly falls by 1 % in
    the latest half of the run (Mann-Kendall test), and if there are no losses of one kind. It has
    recovered when either does, or the loss that decides improves again.
    Adversarial and reinforcement trainings are not judged.

    With `literal`, or if you give one of the three numbers, each saved step counts on its own: none
    of the last `patience_train` training losses and `patience_validation` validation losses is
    below the best one by `delta`.

    XGBoost's set ``train`` has the training losses, other sets the validation losses. In a run that
    never sets a mode all losses are training losses. Losses of several tensors and workers are
    averaged; NaN and infinity are left out (`ExplodingTensor` reports them).
    """

    READS = "the collection losses in the modes TRAIN and EVAL, or without modes: values."
    patience_train = count("Number of training losses to wait for an improvement.", 5, "losses")
    patience_validation = count(
        "Number of validation losses to wait for an improvement.", 10, "losses"
    )
    delta = non_negative("How far below the best loss an improvement must be.", 0.01, "loss")
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(TRAINING, "training loss, mean of the latest, against what it has to be below"),
        Quantity(
            VALIDATION, "validation loss, mean of the latest, against what it has to be below"
        ),
    )

    required_inputs = (LOSSES,)

    def _prepare(self) -> None:
        # Values that the user gives bind: they are judged by the documented sentence.
        self._literal = self.binds("patience_train", "patience_validation", "delta")
        self._phases = EvaluationPhases()
        self._rows = 0  # judged
        self._ended_at: int | None = None  # row since which nothing has improved
        self._is_reported = False
        self._training = LossTrend(self.patience_train, self.delta, self.patience_train)
        self._validation = LossTrend(self.patience_validation, self.delta, PHASES_BEFORE)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the losses of global step `step`."""
        trial = self.base_trial
        names = LOSSES.names(trial, step)
        losses = losses_at(trial, step, names)
        ended = [phase.validation for phase in self._phases.add(trial, step, losses)]
        if losses.training:
            self._training.add(mean(losses.training.values()))
        validation = list(losses.validation.values()) if self._literal else ended
        if validation:
            self._validation.add(mean(validation))
        if not losses.training and not validation:
            has_validation = bool(losses.validation)
            return self.not_judged(WITHIN if has_validation else NO_LOSS)
        reason = "" if self._literal else no_objective(trial)
        return self.not_judged(reason) if reason else self._judge(step)

    def invoke_at_end(self, step: int) -> bool:
        """Judge the evaluation phase that ends with the data, at global step `step`."""
        ended = [phase.validation for phase in self._phases.end()]
        if not ended or self._literal or no_objective(self.base_trial):
            return False
        self._validation.add(mean(ended))
        return self._judge(step)

    def _judge(self, step: int) -> bool:
        """Judge the current levels of the losses."""
        training, validation = self._training, self._validation
        alone = training.first is None or validation.first is None
        scale = validation.first if training.first is None else training.first
        judged = {
            name: series.latest()
            if self._literal
            else series.level(deviations, share, scale or 0.0)
            for name, series, deviations, share in (
                (TRAINING, training, LONE_DEVIATIONS if alone else 0.0, LONE_FALL),
                (VALIDATION, validation, LOSS_DEVIATIONS, HALVED_SHARE),
            )
            if series.first is not None
        }
        verdicts = {name: verdict for name, verdict in judged.items() if verdict is not None}
        if len(verdicts) < len(judged):
            self._rows += 1
            return self.not_judged(TOO_FEW)
        met = all(verdict.ended for verdict in verdicts.values()) and any(
            verdict.learned for verdict in verdicts.values()
        )
        decisive = verdicts.get(VALIDATION) or verdicts[TRAINING]
        goes_on = self._goes_on(decisive, met=met)
        severity = Severity.WARNING if self._literal or (goes_on and not alone) else Severity.NOTE
        if self._is_reported and not (goes_on or (met and self._literal)):
            self._is_reported = False
            self.found(step, recovers=True)
        self._is_reported |= met and severity is Severity.WARNING
        judged_met = [
            self.measured(step, name, verdict.measured, verdict.limit, met=met, severity=severity)
            for name, verdict in verdicts.items()
        ]
        return any(judged_met)

    def _goes_on(self, decisive: LossVerdict, *, met: bool) -> bool:
        """Return whether the training has gone on for long since no loss improves any more."""
        self._rows += 1
        if not decisive.ended:
            self._ended_at = None
        elif met and self._ended_at is None:
            self._ended_at = self._rows
        since = self._ended_at
        if since is None or self._rows < max(
            WASTED_FACTOR * since, since + self.patience_validation
        ):
            return False
        return not any(
            each.still_falls()
            for each in (self._training, self._validation)
            if each.first is not None
        )
