"""LossSpike: the training loss jumps up at once."""

import math
from collections import defaultdict, deque
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.losses.judge import LossJudge, LossState
from builtin_rules.statistics.losses.loss_statistics import NO_LOSS
from builtin_rules.statistics.losses.objective import no_objective, objectives, training_losses
from builtin_rules.statistics.noise_levels import NOISE_ROWS
from builtin_rules.statistics.parameters import flag
from builtin_rules.statistics.tensor_selection import LOSSES, any_met
from smdebug.rules.extensions import Quantity, Severity

# Why these, and how they judge: docs/decisions/0047-one-judge-of-losses.md.
SPIKE: Final = "loss"
OFTEN_ROWS: Final = 6  # rows of spikes among the latest NOISE_ROWS: one in twenty
FAR_FACTOR: Final = 3.0  # times the tolerated distance from the level: 30 times the noise
REPEATED_SPIKES: Final = 3  # separate spikes so far above the level
OVER: Final = NOISE_ROWS  # rows without an outlier, after which there are no more to expect
MAX_LOSSES: Final = 64  # judged at the same time
REPORTED_STATES: Final = frozenset({LossState.SPIKE_RECOVERED, LossState.SPIKE_LASTING})
UNJUDGED_STATES: Final = frozenset({LossState.TOO_FEW, LossState.NON_FINITE_PASSING})


class LossSpike(DeclaredRule):
    """Met when a training loss jumps above its level and stays up, or does so often.

    A row is a spike if it exceeds the level by more than ten times the noise and by more than 20 %
    of the level. The level is the median of the latest ten rows, the noise the robust deviation
    from differences over the latest 128 (1.4826 MAD over the square root of two); rows of a spike
    count as their level. It is judged from 20 rows on. A spike has recovered when the median of
    three rows is back at the level from before, within four times the noise or 20 %: that is a
    note, which `only_lasting` leaves out. It is a warning, which meets the condition, if the spike
    has not recovered 50 rows later, if six of the latest 128 rows are above the limit, or if three
    of them, not next to each other, are three times as far above the level (30 times the noise and
    60 %). At a level below 1 % of the loss at the start, where a single sample can lift a batch,
    only rows above half of that loss are counted. A jump that loses half of the fall or rises above
    the start is a divergence, which `LossNotDecreasing` reports. What is a warning has recovered
    when the loss is back, and 128 rows had no spike.

    The objective is chosen as by `LossNotDecreasing`, and adversarial and reinforcement trainings
    are not judged. NaN and infinity are left out (`ExplodingTensor` reports them). Losses of
    several workers are averaged. Rows are saved values: step numbers do not matter.
    """

    READS = "the collection losses in the mode TRAIN, or without modes: values."
    only_lasting = flag("Leave out spikes that recovered.")
    QUANTITIES = (Quantity(SPIKE, "training loss, and the limit of a spike"),)

    required_inputs = (LOSSES,)

    def _prepare(self) -> None:
        self._judges: dict[str, LossJudge] = {}  # by objective
        self._limits: dict[str, float] = {}  # to which a loss with a spike has to come back
        # Rows by objective: those above the limit, and the first ones of those far above it.
        self._spikes: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=OFTEN_ROWS))
        self._far: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=REPEATED_SPIKES))

    def invoke_at_step(self, step: int) -> bool:
        """Judge the training losses of global step `step`."""
        trial = self.base_trial
        losses = training_losses(trial, step, LOSSES.names(trial, step))
        if not losses:
            return self.not_judged(NO_LOSS)
        reason = no_objective(trial)
        if reason:
            return self.not_judged(reason)
        answers: list[bool | None] = []
        for name, value in objectives(losses).items():
            judge = self._judges.get(name)
            if judge is None and len(self._judges) < MAX_LOSSES:
                judge = self._judges[name] = LossJudge()
            if judge is not None:
                answers.append(self._report(step, name, value, judge))
        return any_met(self, answers, "too few rows")

    def _report(self, step: int, name: str, value: float, judge: LossJudge) -> bool | None:
        """Record a verdict; return whether it is a lasting spike, None if there is none yet."""
        rows, verdict = judge.rows, judge.add(value)
        if verdict.state in UNJUDGED_STATES:
            return None
        spikes, far = self._spikes[name], self._far[name]
        self._recover(step, name, judge)
        is_spike = verdict.excess > 0 and judge.is_outlier(value)
        excess = verdict.excess if is_spike else 0.0
        is_far = excess > FAR_FACTOR and rows - 1 not in spikes
        if excess > 1:
            spikes.append(rows)
        if is_far:
            far.append(rows)
        repeated = len(far) == REPEATED_SPIKES and rows - far[0] < NOISE_ROWS
        note = verdict.note
        if is_far and repeated:
            note = f"{note} One of {REPEATED_SPIKES} outliers in {rows - far[0] + 1} rows.".lstrip()
        elif verdict.state not in REPORTED_STATES:
            if verdict.state is LossState.SPIKE:
                self.measured(step, SPIKE, value, verdict.limit, met=False, tensor=name)
            return False
        lasting = verdict.state is LossState.SPIKE_LASTING
        if not lasting and self.only_lasting:
            return False
        often = repeated or (len(spikes) == OFTEN_ROWS and rows - spikes[0] < NOISE_ROWS)
        severity = Severity.WARNING if lasting or often else Severity.NOTE
        if lasting or often:
            self._limits[name] = min(verdict.back, self._limits.get(name, math.inf))
        peak, limit = value if lasting else verdict.measured, verdict.limit
        return self.record(
            (name, None), step, SPIKE, peak, limit, met=True, note=note, severity=severity
        )

    def _recover(self, step: int, name: str, judge: LossJudge) -> None:
        """Record that a loss with a reported spike is back, and has had none for long."""
        limit = self._limits.get(name)
        if limit is None or judge.level() > limit:
            return
        latest = judge.rows - 1
        if latest - max([*self._spikes[name], *self._far[name]], default=latest) > OVER:
            del self._limits[name]
            self.found(step, name, recovers=True)
