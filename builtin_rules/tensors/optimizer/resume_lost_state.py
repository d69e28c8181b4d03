"""ResumeLostState: a resumed training lost its weights, its optimizer or its schedule."""

import math
import statistics
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.noise_levels import spread
from builtin_rules.statistics.parameters import count
from builtin_rules.statistics.tensor_selection import LOSSES, TensorKey, any_met
from builtin_rules.statistics.training_scalars import (
    GRADIENT_NORMS,
    LEARNING_RATES,
    finite_scalars,
)
from smdebug.rules.extensions import Quantity, Severity, TensorInput, step_in_segment

LOSS: Final = "loss"
NORM: Final = "norm"
RATE: Final = "rate"
FIRST_SEGMENT: Final = "the run was not resumed yet"
NOT_AFTER_A_RESUME: Final = "no rows after a resume to compare with rows before it"
ROWS_BEFORE: Final = 20  # rows before the resume that give the level
MIN_ROWS: Final = 10
LATEST_ROWS: Final = 5
AT_ONCE: Final = 3  # rows that show the loss of an untrained model
BACK_SHARE: Final = 0.7  # of the way back to the first loss
LEVEL_DEVIATIONS: Final = 5.0
LOSS_RISE: Final = 0.1  # of the loss
CHANGE_FACTOR: Final = 2.0  # of norms and rates
ROWS_KEPT: Final = 20_000


class _Level(NamedTuple):
    """The level of the values before a resume, and the limit above it."""

    level: float
    limit: float


@dataclass(slots=True)
class _History:
    """The values of one tensor over all segments, without what was repeated."""

    first: list[float] = field(default_factory=list)
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    segment: int = 0
    before: list[float] = field(default_factory=list)  # the latest before the resume
    after: list[float] = field(default_factory=list)  # the first since the resume

    def add(self, segment: int, step: int, value: float, patience: int) -> None:
        if segment != self.segment:
            self.segment = segment
            kept = bisect_left(self.steps, step)
            del self.steps[kept:], self.values[kept:]
            self.before, self.after = list(self.values[-ROWS_BEFORE:]), []
        self.steps.append(step)
        self.values.append(value)
        if len(self.values) > ROWS_KEPT:
            del self.steps[: ROWS_KEPT // 2], self.values[: ROWS_KEPT // 2]
        if len(self.first) < LATEST_ROWS:
            self.first.append(value)
        if len(self.before) >= MIN_ROWS and len(self.after) <= patience:
            self.after.append(value)


class ResumeLostState(DeclaredRule):
    """Met when losses, gradient norms or learning rates do not continue after a resume.

    A run is resumed where its steps go back: there a segment begins. The last 20 rows before the
    step of the resume, at least 10, are compared with the first ones after it. What the earlier
    segment saved at repeated steps does not count. With the median of these rows as level, the
    condition is met if

    - the first 3 losses are all at least 70 % of the way back from the level to the first losses of
      the run, and above the limit of the next condition: the weights were lost (error);
    - the median of every 5 losses in a row among the first `patience` is above the level by more
      than 10 % and five robust deviations (warning);
    - the median of every 5 gradient norms in a row among the first `patience` is more than twice
      the level, and their logarithm above it by five robust deviations (warning);
    - the first 5 learning rates rise from below half the last rate before, which did not rise; or
      all of them are above twice that rate, and the first is within 10 % of the first or of the
      highest rate of the run: the schedule began anew (warning).

    A row is a saved step of mode TRAIN, or without a mode, that has the value. NaN and infinity are
    left out. Each tensor and worker is judged by itself, and once after each resume.
    """

    READS = (
        "the collections losses, gradient_norms and learning_rates: values of one element, in "
        "runs with several segments."
    )
    patience = count("Rows in which a value may come back.", 20, "rows", minimum=5)
    QUANTITIES = (
        Quantity(LOSS, "loss after the resume, median of five"),
        Quantity(NORM, "gradient norm after the resume, median of five", log=True),
        Quantity(RATE, "learning rate after the resume"),
    )

    required_inputs = (
        TensorInput(
            "losses, gradient norms or learning rates",
            (*LOSSES.collections, *GRADIENT_NORMS.collections, *LEARNING_RATES.collections),
        ),
    )

    def _prepare(self) -> None:
        self._segment = 0
        self._histories: dict[tuple[str, TensorKey], _History] = {}

    def segment_begins(self, segment: int) -> None:
        """Compare the values of the next steps with those of the segments before."""
        self._segment = segment

    def invoke_at_step(self, step: int) -> bool:
        """Judge the scalars of global step `step`."""
        answers = [
            self._judge(step, quantity, key, value, judge)
            for quantity, selected, judge in (
                (LOSS, LOSSES, self._judge_loss),
                (NORM, GRADIENT_NORMS, self._judge_norm),
                (RATE, LEARNING_RATES, self._judge_rate),
            )
            for key, value in finite_scalars(self.base_trial, step, selected).items()
        ]
        return any_met(self, answers, NOT_AFTER_A_RESUME if self._segment else FIRST_SEGMENT)

    def _judge(
        self,
        step: int,
        quantity: str,
        key: TensorKey,
        value: float,
        judge: Callable[[int, TensorKey, _History], bool],
    ) -> bool | None:
        history = self._histories.setdefault((quantity, key), _History())
        history.add(self._segment, step_in_segment(step), value, self.patience)
        if not history.after or len(history.after) > self.patience:
            return None
        met = judge(step, key, history)
        if met:
            history.before, history.after = [], []
        return met

    def _judge_loss(self, step: int, key: TensorKey, history: _History) -> bool:
        before = history.before
        level = statistics.median(before)
        margin = max(LOSS_RISE * abs(level), LEVEL_DEVIATIONS * spread(before))
        first, limit = statistics.median(history.first), level + margin
        back = max(limit, level + BACK_SHARE * (first - level))
        if len(history.after) == AT_ONCE and min(history.after) > back:
            note = f"From {level:.4g} to {history.after[0]:.4g}: the weights were lost."
            lowest, severity = min(history.after), Severity.ERROR
            return self.record(
                key, step, LOSS, lowest, back, met=True, note=note, severity=severity
            )
        return self._judge_median(step, LOSS, key, history, _Level(level, limit))

    def _judge_norm(self, step: int, key: TensorKey, history: _History) -> bool:
        logs = [math.log(norm) for norm in history.before if norm > 0]
        if len(logs) < MIN_ROWS:
            return False
        level = statistics.median(logs)
        margin = max(math.log(CHANGE_FACTOR), LEVEL_DEVIATIONS * spread(logs))
        bound = _Level(math.exp(level), math.exp(min(700.0, level + margin)))
        return self._judge_median(step, NORM, key, history, bound)

    def _judge_median(
        self, step: int, quantity: str, key: TensorKey, history: _History, bound: _Level
    ) -> bool:
        """Judge whether the values have stayed above the limit for all of `patience` rows."""
        after = history.after
        if len(after) < LATEST_ROWS:
            return False
        latest = statistics.median(after[-LATEST_ROWS:])
        stays = len(after) == self.patience and all(
            statistics.median(after[row : row + LATEST_ROWS]) > bound.limit
            for row in range(len(after) - LATEST_ROWS + 1)
        )
        note = f"From {bound.level:.4g}; not back within {len(after)} rows."
        return self.record(key, step, quantity, latest, bound.limit, met=stays, note=note)

    def _judge_rate(self, step: int, key: TensorKey, history: _History) -> bool:
        after, before = history.after, history.before
        if len(after) != LATEST_ROWS:
            return False
        last = before[-1]
        warms_up = (
            after[0] < last / CHANGE_FACTOR
            and all(earlier < later for earlier, later in pairwise(after))
            and before[-LATEST_ROWS] >= last
        )
        starts = (history.first[0], max(history.values[: -len(after)]))
        begins_anew = min(after) > CHANGE_FACTOR * last and any(
            math.isclose(after[0], start, rel_tol=LOSS_RISE) for start in starts
        )
        note = f"From {last:.4g} to {after[0]:.4g}: the schedule began anew."
        met = last > 0 and (warms_up or begins_anew)
        return self.record(key, step, RATE, after[0], last, met=met, note=note)
