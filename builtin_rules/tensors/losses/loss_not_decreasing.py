"""LossNotDecreasing: a loss does not decrease fast enough."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.losses.judge import BLOWN_UP, LossJudge, LossState, StateVerdict
from builtin_rules.statistics.losses.loss_statistics import loss as mean_loss
from builtin_rules.statistics.losses.loss_statistics import single_number
from builtin_rules.statistics.losses.objective import (
    RATES,
    SUM,
    WarmUp,
    is_metric,
    is_validation,
    no_objective,
    objectives,
    without_twins,
)
from builtin_rules.statistics.parameters import Declared, count, flag, names, percentage
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    LITERAL,
    LOSSES,
    RISING,
    TENSOR_REGEX,
    any_met,
)
from builtin_rules.statistics.training_kind import is_resumed
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import ChoiceParam, Quantity, Severity, TensorInput

# Why these, and how they judge: docs/decisions/0047-one-judge-of-losses.md.
LOSS: Final = "loss"
NO_LOSS: Final = "no scalar loss at this step"
ERRORS: Final = frozenset(
    {LossState.DIVERGED, LossState.DEAD_AT_ZERO, LossState.NON_FINITE_LASTING}
)
WARNINGS: Final = frozenset({LossState.NEVER_LEARNED, LossState.PLATEAU})
UNJUDGED: Final = frozenset({LossState.TOO_FEW, LossState.ABOUT_ZERO, LossState.NON_FINITE_PASSING})
TRAINING: Final = frozenset({ModeKeys.TRAIN, ModeKeys.GLOBAL})
MAX_LOSSES: Final = 64  # judged at the same time


class LossNotDecreasing(DeclaredRule):
    """Met when a training loss never falls, stops falling too early, or rises and stays up.

    It reports four states of a loss, judged by rows, its saved values, whatever their steps:

    - Diverged (error): all but a tenth of the latest twenty rows exceed the level at the start, or
      the best level by half of the fall, by more than 5 % and four times the noise, and do not
      fall; or three of the first rows exceed ten times the first and do not fall. At the end of the
      data ten rows are enough. Three are enough there if one of the first rows is three times the
      first and none comes back to it, or if the last three (the last eighth, if that is more) are
      three times the lowest and have lost half of the fall, unless the loss certainly falls since.
    - Dead at zero (error): exactly 0 for three rows, without having come near it. Metrics of
      XGBoost reach 0 when all rows are predicted rightly.
    - Not finite (error): NaN or infinite for ten rows, or for the last three of the data.
    - Never learned (warning): from 100 rows on, less than 4 % below the start, and the last three
      quarters fall by clearly less than 2.5 %, or by less than 0.1 % in ten rows.
      At the end of the data any number of rows is enough that refutes a fall of 4 % and shows no
      certain fall of 1 %, by the Mann-Kendall test, which is exact for few rows; so it takes four.
      There, evaluation losses are judged likewise, means of epochs (``loss_epoch``) in place of
      their steps, and none is reported if any loss falls by 4 %, or certainly by 1 %.
    - Plateau (warning): from 200 rows on, the last three quarters are level to within 1 %, above
      80 % of the start; or, from 100 rows on, the loss rises by more than is tolerated for half of
      its rows.

    The level at the start is the median of the first five rows, or the first row if that is higher;
    what a loss has lost is counted from the median, and so is what it has learned if noise explains
    a higher first row. Rows during which the learning rate rises for the first time do not count as
    a lack of decrease. Of several losses at a step, the objective is judged: the one that is the
    sum of the others, else the one called ``loss`` or ``total_loss``, else their sum; XGBoost's
    metrics each by itself. Validation losses are judged with mode ``EVAL``; otherwise they have
    diverged at ten times the limit. A run that was resumed has learned before: it is neither called
    never learned nor a plateau. A loss that is below zero in a tenth of its rows, and above in
    another, is a difference that need not fall. A loss has recovered when it is back at its best
    level, within what is tolerated, or has learned after all. Adversarial and reinforcement
    trainings are not judged, since their losses need not fall.

    `literal` judges by the documented sentence instead, and so does `num_steps`, `diff_percent` or
    `increase_threshold_percent` if you give it: met when a loss fell by less than `diff_percent`
    over `num_steps` steps, or rose by more than `increase_threshold_percent`. A loss is judged at
    the first step with a counterpart `num_steps` earlier, and again whenever `num_steps` have
    passed. Steps count within the mode, or globally for ``GLOBAL``, where losses of different modes
    are never compared. With ``d`` the decrease in percent, the condition is met if ``-d >
    increase_threshold_percent``, or if ``0 <= d`` and ``d < diff_percent`` or ``d == 0``. A loss
    that is NaN or infinite when it is judged meets it; an earlier one is not compared with.

    Losses of several workers are averaged. Tensors with more than one element are skipped.
    """

    READS = "the collection losses and the selected tensors: values of one element."
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(TENSOR_REGEX)
    use_losses_collection = flag("Judge the collection losses too.", default=True)
    num_steps = count(
        "Rows of a level; with literal, steps between the two losses compared.", 10, "rows"
    )
    diff_percent = percentage("How much the loss must fall.", 0.1, below_100=True)
    increase_threshold_percent = percentage("How much the loss may rise.", 5.0, below_100=True)
    mode = Declared[str](
        ChoiceParam(
            "mode",
            "Mode of the steps and losses to judge.",
            default="GLOBAL",
            choices=("EVAL", "TRAIN", "GLOBAL"),
        )
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(LOSS, "level of the loss, and what it must stay below"),)

    def _prepare(self) -> None:
        usual = LOSSES.collections if self.use_losses_collection else ()
        # Values that the user gives bind: they are judged by the documented sentence.
        self._literal = self.binds("num_steps", "diff_percent", "increase_threshold_percent")
        selects = self._literal or self.collection_names or self.tensor_regex
        self._inputs = TensorInput(
            LOSSES.label,
            (*self.collection_names, *usual),
            self.tensor_regex,
            never="" if selects else RISING,
        )
        self.required_inputs = (self._inputs,)
        self._mode = ModeKeys[self.mode]
        self._evaluated_at: dict[tuple[str, ModeKeys], int] = {}  # literal: by loss and mode
        self._judges: dict[str, LossJudge] = {}  # by objective
        self._evaluated: dict[str, LossJudge] = {}  # by objective of the evaluations
        self._reported: dict[LossJudge, LossState] = {}  # of what has not recovered
        self._warm_up = WarmUp()
        self._is_resumed: bool | None = None
        self._rates = TensorInput(RATES, (RATES,))

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
        if not self._literal:
            rates = self._rates.names(trial, step)
            warming = self._warm_up.add(trial, step, rates)
            return self._judge_states(step, losses, warming=warming)
        if not losses:
            return self.not_judged(NO_LOSS)
        answers = [self._judge_literally(name, mode, step, loss) for name, mode, loss in losses]
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
        return mean_loss(trial, step, name, mode, single_number)

    def _judge_literally(self, name: str, mode: ModeKeys, step: int, loss: float) -> bool | None:
        """Return whether a loss fails to decrease, or None if it is not due."""
        number = self._number(step)
        evaluated_at = self._evaluated_at.get((name, mode))
        due = evaluated_at is None or number - evaluated_at >= self.num_steps
        partner = self._partner(name, mode, number) if due else None
        if partner is None or (np.isfinite(loss) and not np.isfinite(partner)):
            return None
        self._evaluated_at[name, mode] = number
        met = self._lacks(partner, loss)
        note = _note(partner, loss)
        return self.measured(step, LOSS, loss, partner, met=met, tensor=name, note=note)

    def _judge_states(
        self, step: int, losses: Sequence[tuple[str, ModeKeys, float]], *, warming: bool
    ) -> bool:
        """Return whether an objective is in a state that this rule reports."""
        if not losses:
            return self.not_judged(NO_LOSS)
        is_eval = self._mode is ModeKeys.EVAL
        evaluations: dict[str, float] = {}
        values: dict[str, float] = {}
        for name, mode, loss in losses:
            trains = is_eval or (mode in TRAINING and not is_validation(name))
            (values if trains else evaluations)[name] = loss
        reason = no_objective(self.base_trial)
        if reason:
            return self.not_judged(reason)
        answers: list[bool | None] = [self._judge_evaluations(step, evaluations)]
        for name, loss in objectives(values).items():
            judge = self._judges.get(name)
            if judge is None and len(self._judges) < MAX_LOSSES:
                judge = self._judges[name] = LossJudge()
            if judge is not None:
                answers.append(self._report(step, name, judge, judge.add(loss, warming=warming)))
        reason = "too few rows" if values else "no training loss at this step"
        return any_met(self, answers, reason)

    def _judge_evaluations(self, step: int, losses: Mapping[str, float]) -> bool | None:
        """Return whether an evaluation loss has diverged; None if none was saved."""
        answers: list[bool | None] = []
        for name, loss in objectives(losses).items():
            judge = self._evaluated.get(name)
            if judge is None and len(self._evaluated) < MAX_LOSSES:
                judge = self._evaluated[name] = LossJudge()
            if judge is None:
                continue
            verdict = judge.add(loss)
            if _is_blown_up(verdict):
                answers.append(self._report(step, name, judge, verdict))
            else:
                self._recover(step, name, judge, verdict.state)
        return any(answers) or None

    def _report(self, step: int, name: str, judge: LossJudge, verdict: StateVerdict) -> bool | None:
        """Record a verdict; return whether it is one of this rule, None if there is none yet."""
        state, measured, limit, note = verdict.state, verdict.measured, verdict.limit, verdict.note
        self._recover(step, name, judge, state)
        if state in UNJUDGED:  # compared with the rows before, if there are any
            return None if judge.rows == 1 or state is LossState.NON_FINITE_PASSING else False
        met = state in ERRORS or (state in WARNINGS and not self._goes_on(step))
        if state is LossState.DEAD_AT_ZERO and is_metric(name):  # no row of the data is wrong
            met = False
        tensor = None if name == SUM else name
        if met:
            self._reported[judge] = state
        severity = Severity.ERROR if state in ERRORS else Severity.WARNING
        note = f"{state.capitalize()} for {judge.rows - verdict.row} rows. {note}".rstrip()
        if np.isfinite(measured) and np.isfinite(limit):
            return self.measured(
                step, LOSS, measured, limit, met=met, tensor=tensor, note=note, severity=severity
            )
        return met and self.found(step, tensor, None, measured, None, note, severity)

    def _goes_on(self, step: int) -> bool:
        """Return whether the run was resumed, and has learned before."""
        if self._is_resumed is None:
            self._is_resumed = is_resumed(self.base_trial, step)
        return self._is_resumed

    def _recover(self, step: int, name: str, judge: LossJudge, state: LossState) -> None:
        """Record that a reported loss is back at its best level, or has learned after all."""
        reported = self._reported.get(judge)
        if reported is None or state in ERRORS or state in WARNINGS:
            return
        if reported is LossState.NEVER_LEARNED:
            recovered = judge.has_fallen()
        else:
            falls = state is LossState.FALLING or reported is not LossState.PLATEAU
            recovered = falls and judge.is_back()
        if recovered:
            del self._reported[judge]
            self.found(step, None if name == SUM else name, recovers=True)

    def invoke_at_end(self, step: int) -> bool:
        """Judge what the end of the data tells of each loss."""
        trained, evaluated = (
            [(name, judges[name]) for name in without_twins(judges)]
            for judges in (self._judges, self._evaluated)
        )
        learns = any(judge.has_fallen() for _, judge in (*trained, *evaluated))
        answers: list[bool | None] = []
        for at, (name, judge) in enumerate((*trained, *evaluated)):
            verdict = judge.end()
            of_training = at < len(trained)
            if verdict is None:
                continue
            if verdict.state is LossState.NEVER_LEARNED:
                its = not learns and (of_training or not any(answers))
            else:
                its = of_training or _is_blown_up(verdict)
            if its:
                answers.append(self._report(step, name, judge, verdict))
        return any(answers)

    def _lacks(self, reference: float, loss: float) -> bool:
        """Return whether a decrease is too small by the documented condition."""
        decrease = _decrease(reference, loss)
        if not np.isfinite(decrease):
            return True
        if decrease < 0:
            return -decrease > self.increase_threshold_percent
        return decrease < self.diff_percent or decrease == 0

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


def _is_blown_up(verdict: StateVerdict) -> bool:
    """Return whether an evaluation diverged beyond what overfitting does."""
    far = verdict.measured > BLOWN_UP * verdict.limit
    return verdict.state is LossState.DIVERGED and far


def _decrease(reference: float, loss: float) -> float:
    """Return how much lower a loss is than its reference, in percent."""
    return 100.0 * (reference - loss) / max(abs(reference), float(np.finfo(float).tiny))


def _note(reference: float, loss: float) -> str:
    decrease = _decrease(reference, loss)
    return f"A {'rise' if decrease < 0 else 'decrease'} of {abs(decrease):.3g} percent."
