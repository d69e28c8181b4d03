"""PolicyDrift: a policy suddenly moves far from where it was."""

import re
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count
from builtin_rules.statistics.series.reward_trend import RewardTrend
from builtin_rules.statistics.series.usual_rows import UsualRows
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_scalars import finite_scalars
from smdebug.rules.extensions import Quantity, TensorInput

START_ROWS: Final = 20  # rows that tell the usual level
MAX_SERIES: Final = 64  # judged at the same time


class DriftMeasure(NamedTuple):
    """A measure of a policy, and the rise of it that is no progress.

    Attributes
    ----------
    quantity, pattern
        What is measured, and the end of the names of its series.
    factor, least
        How many times the usual level a row exceeds, and which number at least.
    shrinks
        The factor by which it may fall as well; 0 if it may fall by any.
    is_learned
        Whether the change is none where the reward rises.
    """

    quantity: str
    pattern: str
    factor: float
    least: float
    shrinks: float = 0.0
    is_learned: bool = False


MEASURES: Final = (
    DriftMeasure(
        "divergence",
        r"(^|[/_. -]|approx|mean)kl([-_ ]?(div(ergence)?|mean|avg|approx|old|new|ref|\d))*"
        r"([-_/ ](mean|avg))?$",
        10.0,
        0.1,
    ),
    DriftMeasure("clipped", r"clip[-_ ]?(frac(tion)?|ratio)([-_/ ]?(region|mean|avg))*$", 3.0, 0.5),
    DriftMeasure(
        "length",
        r"(completions?|response|answer)s?[-_/ ](mean[-_ ])?len(gth)?s?([-_/ ](mean|avg))?$",
        3.0,
        0.0,
        shrinks=5.0,
        is_learned=True,
    ),
)
POLICIES: Final = TensorInput(
    "measures of a policy",
    (),
    tuple(f"(?i){measure.pattern}" for measure in MEASURES),
    r"(?i)loss(?!es/)|coef|beta|target|penalty|(completions?|response_length).clip|value|terminated"
    r"|(?<![a-z])(vf|max|min|std|var|prior|posterior|latent|vae)(?![a-z])",
)


class _Drift(NamedTuple):
    """The usual rows of a measure, and what is measured."""

    measure: DriftMeasure
    usual: UsualRows


class PolicyDrift(DeclaredRule):
    """Met when a measure of a policy leaves its usual level at once, for `patience` rows.

    Three measures are judged, each by its usual level: the median of the latest 128 rows that have
    not left it, or of the latest ten if that is higher. So a level may grow. It takes 20 rows.

    - divergence: a KL divergence above ten times its level, and above 0.1, whether from the
      reference policy or from the one before the update;
    - clipped: a share of clipped updates above three times its level, and above 0.5;
    - length: a length of answers above three times its level, or below a fifth of it, unless a
      reward has risen and has not lost half of its gain.

    Each row must be beyond the limit, and a row at the limit is not. A measure has recovered after
    20 rows in a row within it. A row is a saved step of mode TRAIN, or without a mode, that has the
    measure. It is judged only if a reward is saved, or if names tell a reinforcement training. NaN
    and infinity are left out.
    """

    READS = "the scalars named as divergences, clipped shares and lengths of answers; and rewards."
    patience = count("Rows in a row beyond the limit.", 5, "rows")
    QUANTITIES = (
        Quantity("divergence", "KL divergence of the policy", log=True),
        Quantity("clipped", "share of clipped updates"),
        Quantity("length", "length of answers", log=True),
    )

    required_inputs = (POLICIES,)

    def _prepare(self) -> None:
        self._rewards = RewardTrend()
        self._series: dict[TensorKey, _Drift] = {}
        self._reported: set[TensorKey] = set()

    def invoke_at_step(self, step: int) -> bool:
        """Judge the measures of global step `step`."""
        trial = self.base_trial
        self._rewards.add(trial, step)
        measured = finite_scalars(trial, step, POLICIES)
        if measured and not self._rewards.is_of_policy(trial):
            return self.not_judged("no training of a policy")
        answers: list[bool | None] = []
        for key, value in measured.items():
            if key not in self._series and len(self._series) < MAX_SERIES:
                self._series[key] = _Drift(_measure_of(key[0]), UsualRows())
            if key in self._series:
                answers.append(self._judge(step, key, value))
        return any_met(self, answers, "fewer than 20 rows of a measure")

    def _judge(self, step: int, key: TensorKey, value: float) -> bool | None:
        measure, usual = self._series[key]
        if len(usual) < START_ROWS:
            usual.add(value, is_away=False)
            return None
        level = max(usual.level(), usual.latest_level())
        limit = max(measure.factor * level, measure.least)
        is_away = value > limit
        if measure.shrinks and value * measure.shrinks < usual.level():
            is_away, limit = True, usual.level() / measure.shrinks
        usual.add(value, is_away=is_away)
        if key in self._reported and usual.is_back:
            self._reported.remove(key)
            self.found(step, *key, recovers=True)
        met = usual.away >= self.patience and not (measure.is_learned and self._rewards.rises())
        if met:
            self._reported.add(key)
        note = f"{value / level:.3g} times its level, for {usual.away} rows." if level else None
        return self.record(key, step, measure.quantity, value, limit, met=met, note=note)


def _measure_of(name: str) -> DriftMeasure:
    return next(each for each in MEASURES if re.search(f"(?i){each.pattern}", name))
