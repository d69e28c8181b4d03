"""ThroughputDrop: a training has become slower for good, or its speed is impossible."""

import re
from types import MappingProxyType
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.noise_levels import LEVEL_ROWS, RobustWindow
from builtin_rules.statistics.parameters import count, share
from builtin_rules.statistics.series.usual_rows import UsualRows
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_kind import TrainingKind
from builtin_rules.statistics.training_scalars import finite_scalars
from smdebug.rules.extensions import Quantity, TensorInput

SPEED: Final = "speed"
UTILIZATION: Final = "utilization"
MAX_SPEEDS: Final = 64  # judged at the same time
START_ROWS: Final = 50  # rows that tell the usual speed
SPREADS: Final = 4.0  # of a row, that a fall exceeds
HIGHEST_UTILIZATION: Final = 100.0  # percent

_TIME: Final = (
    r"(?i)(^|[^a-z])((step|iter(ation)?|batch)[-_ ]?(time|duration)|(time|sec|seconds?|ms|s)"
    r"([-_ ]per[-_ ]|/)(step|iter(ation)?|batch|it))([-_ (]*(m?s|sec|seconds?)[)]?)?$"
)
SPEEDS: Final = TensorInput(
    "speeds of the training",
    ("throughputs",),
    (_TIME,),
    never=r"(?i)eval|valid|data|load|cumulative|total|avg|average|mean",
)
_OF_TIME: Final = re.compile(_TIME)
_OF_UTILIZATION: Final = re.compile(r"(?i)(?<![a-z])[mh]fu(?![a-z])")


def is_time(name: str) -> bool:
    """Return whether a speed is the time of a step."""
    return _OF_TIME.search(name) is not None


class _Speed(NamedTuple):
    """A speed: the usual rows, and the latest rows, whatever they are."""

    usual: UsualRows
    latest: RobustWindow


class ThroughputDrop(DeclaredRule):
    """Met when the speed falls by `fall` or more for `patience` rows, or a utilization is too high.

    The speed is a throughput, such as tokens, samples or iterations in a second, or a utilization
    of the peak performance; or the inverse of the time of a step. A row is a saved step of mode
    TRAIN, or without a mode, that has it. Single rows, such as pauses for evaluations and
    checkpoints, do not count: the median of the latest ten rows is compared with the usual speed.
    That is the median of the latest 128 rows that have not fallen; it takes 50.

    Unless `fall` is given, the fall must also exceed four robust deviations of a row. If a run has
    several speeds, all of them must have fallen: longer sequences make steps slower, but not
    tokens. A speed has recovered after 20 rows at the usual level. A utilization whose median of
    ten rows is above 100 percent is reported as well. Reinforcement trainings are not judged, since
    their episodes and answers change in length. NaN, infinity and numbers that are not positive are
    left out.
    """

    READS = "the collection throughputs, and the scalars named as the time of a step."
    UNSUITED = MappingProxyType(
        {TrainingKind.REINFORCEMENT: "reinforcement training: episodes differ in length"}
    )
    fall = share("How much slower the training is.", 0.1, "of the usual speed")
    patience = count("Rows for which it is slower.", 20, "rows")
    QUANTITIES = (
        Quantity(SPEED, "speed of the training", worse="below"),
        Quantity(UTILIZATION, "utilization (percent)"),
    )

    required_inputs = (SPEEDS,)

    def _prepare(self) -> None:
        self._speeds: dict[TensorKey, _Speed] = {}
        self._reported: set[TensorKey] = set()

    def invoke_at_step(self, step: int) -> bool:
        """Judge the speeds of global step `step`."""
        trial = self.base_trial
        reason = self.unsuited(trial)
        if reason:
            return self.not_judged(reason)
        limits: dict[TensorKey, float | None] = {}
        answers: list[bool | None] = []
        for key, saved in finite_scalars(trial, step, SPEEDS).items():
            if saved <= 0 or (key not in self._speeds and len(self._speeds) >= MAX_SPEEDS):
                continue
            speed = self._speeds.setdefault(key, _Speed(UsualRows(), RobustWindow(LEVEL_ROWS)))
            limits[key] = self._add(speed, 1 / saved if is_time(key[0]) else saved)
            if _OF_UTILIZATION.search(key[0]):
                answers.append(self._judge_utilization(step, key, speed.latest))
        all_slow = all(speed.usual.away for speed in self._speeds.values())
        answers += [self._judge(step, key, limit, all_slow) for key, limit in limits.items()]
        return any_met(self, answers, "too few rows of a speed")

    def _add(self, speed: _Speed, value: float) -> float | None:
        """Add a speed; return the limit of a fall, or None while there are too few rows."""
        usual = speed.usual
        speed.latest.add(value)
        if len(usual) < START_ROWS:
            usual.add(value, is_away=False)
            return None
        level = usual.level()
        margin = 0.0 if "fall" in self.given else SPREADS * usual.spread()
        limit = level - max(self.fall * level, margin)
        usual.add(value, is_away=speed.latest.level() <= limit)
        return limit

    def _judge(self, step: int, key: TensorKey, limit: float | None, all_slow: bool) -> bool | None:
        usual, latest = self._speeds[key]
        if limit is None:
            return None
        if key in self._reported and usual.is_back:
            self._reported.remove(key)
            self.found(step, *key, recovers=True)
        met = usual.away >= self.patience and all_slow
        if met:
            self._reported.add(key)
        speed, level = latest.level(), usual.level()
        note = f"{100 * (1 - speed / level):.0f} percent slower, for {usual.away} rows."
        return self.record(key, step, SPEED, speed, limit, met=met, note=note)

    def _judge_utilization(self, step: int, key: TensorKey, latest: RobustWindow) -> bool | None:
        if len(latest) < LEVEL_ROWS:
            return None
        level = latest.level()
        met = level > HIGHEST_UTILIZATION
        return self.record(key, step, UTILIZATION, level, HIGHEST_UTILIZATION, met=met)
