"""NoLearningSignal: nothing tells a policy which of its answers or actions are better."""

import re
import statistics
from collections import deque
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count
from builtin_rules.statistics.series.reward_trend import RewardTrend
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_scalars import finite_scalars
from smdebug.rules.extensions import Quantity, TensorInput

END_ROWS: Final = 20  # that the end of the data takes
END_SHARE: Final = 0.25  # of all rows
MAX_SERIES: Final = 64  # judged at the same time


class SignalMeasure(NamedTuple):
    """A measure of what a policy learns from.

    Attributes
    ----------
    quantity, pattern
        What is measured, and the end of the names of its series.
    limit
        The first level that is none to learn from.
    is_low
        Whether lower levels are worse, otherwise higher ones.
    is_slow
        Whether only the end of the data tells, as policies may learn late.
    """

    quantity: str
    pattern: str
    limit: float
    is_low: bool = False
    is_slow: bool = False


MEASURES: Final = (
    SignalMeasure("equal_groups", r"(^|/)frac_reward_zero_std$", 0.9),
    SignalMeasure("deviation", r"(^|/)reward_std$", 1e-6, is_low=True),
    SignalMeasure(
        "truncated",
        r"(completions?|responses?)[-_/ ](length[-_/ ])?(clip(ped)?|truncated|truncation)"
        r"[-_ ](ratio|rate|frac(tion)?)$",
        0.9,
    ),
    SignalMeasure("explained", r"(explained[-_ ]?var(iance)?|vf_explained_var)$", 0.05, True, True),
)
SIGNALS: Final = TensorInput(
    "what a policy learns from", (), tuple(f"(?i){measure.pattern}" for measure in MEASURES)
)


class _Signal:
    """The latest rows of a measure."""

    def __init__(self, measure: SignalMeasure, patience: int) -> None:
        self.measure = measure
        self.rows = 0
        self._latest: deque[float] = deque(maxlen=max(patience, 4 * END_ROWS))

    def add(self, value: float) -> None:
        self.rows += 1
        self._latest.append(value)

    def level(self, rows: int) -> float:
        """Return the median of the latest rows, at most as many as are kept."""
        return statistics.median(list(self._latest)[-rows:])

    def is_bad(self, level: float) -> bool:
        is_low, limit = self.measure.is_low, self.measure.limit
        return level <= limit if is_low else level >= limit


class NoLearningSignal(DeclaredRule):
    """Met when a policy gets nothing to learn from for `patience` rows, and no reward rises.

    Four measures are judged by the median of the latest `patience` rows; at the limit is bad:

    - equal_groups: in 90 % or more of the groups of answers all rewards are equal, so that their
      advantages are 0;
    - deviation: the deviation of the rewards is 0;
    - truncated: 90 % or more of the answers are cut off at the longest length;
    - explained: the value function explains 5 % of the variance of returns or less. This is judged
      at the end of the data only, since many policies get their first reward late.

    At the end of the data, the median is that of the latest quarter of the rows, 20 or more. There,
    measures with fewer rows than `patience` are judged too. A reward that has risen, and has not
    lost half of its gain, shows that the policy learns all the same. A measure has recovered when
    its median is within the limit again. NaN and infinity are left out.
    """

    READS = "the scalars named as such measures; and rewards."
    patience = count("Rows whose median is judged.", 50, "rows")
    QUANTITIES = (
        Quantity("equal_groups", "share of groups whose rewards are equal"),
        Quantity("deviation", "deviation of the rewards", worse="below"),
        Quantity("truncated", "share of answers that are cut off"),
        Quantity("explained", "explained variance of the returns", worse="below"),
    )

    required_inputs = (SIGNALS,)

    def _prepare(self) -> None:
        self._rewards = RewardTrend()
        self._series: dict[TensorKey, _Signal] = {}
        self._reported: set[TensorKey] = set()

    def invoke_at_step(self, step: int) -> bool:
        """Judge the measures of global step `step`."""
        trial = self.base_trial
        self._rewards.add(trial, step)
        answers: list[bool | None] = []
        for key, value in finite_scalars(trial, step, SIGNALS).items():
            if key not in self._series and len(self._series) < MAX_SERIES:
                self._series[key] = _Signal(_measure_of(key[0]), self.patience)
            series = self._series.get(key)
            if series is None:
                continue
            series.add(value)
            if series.measure.is_slow:
                answers.append(False)
            else:
                enough = series.rows >= self.patience
                answers.append(self._judge(step, key, self.patience) if enough else None)
        return any_met(self, answers, "too few rows of a measure")

    def invoke_at_end(self, step: int) -> bool:
        """Judge what the end of the data tells of each measure."""
        answers = [False]
        for key, series in self._series.items():
            is_due = series.measure.is_slow or series.rows < self.patience
            if is_due and series.rows >= END_ROWS:
                rows = max(END_ROWS, round(END_SHARE * series.rows))
                answers.append(self._judge(step, key, rows))
        return any(answers)

    def _judge(self, step: int, key: TensorKey, rows: int) -> bool:
        series = self._series[key]
        level = series.level(rows)
        is_bad = series.is_bad(level)
        if key in self._reported and not is_bad:
            self._reported.remove(key)
            self.found(step, *key, recovers=True)
        met = is_bad and not self._rewards.rises()
        if met:
            self._reported.add(key)
        return self.record(key, step, series.measure.quantity, level, series.measure.limit, met=met)


def _measure_of(name: str) -> SignalMeasure:
    return next(each for each in MEASURES if re.search(f"(?i){each.pattern}", name))
