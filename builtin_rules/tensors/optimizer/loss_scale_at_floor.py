"""LossScaleAtFloor: the gradient scaler has reached its floor, or keeps lowering the scale."""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, positive
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_scalars import LOSS_SCALES, finite_scalars
from smdebug.rules.extensions import Quantity, Severity

SCALE: Final = "scale"
FALLS: Final = "falls"
START_ROWS: Final = 20  # rows in which a scaler looks for its scale
WINDOW_ROWS: Final = 20  # latest rows in which falls are counted
LEAST_FALL: Final = 2.0**8  # over these rows: equilibrium wanders by much less


@dataclass(slots=True)
class _Scales:
    """The scales of one scaler."""

    rows: int = 0
    highest: float = 0.0
    at_floor: int = 0  # rows in a row
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_ROWS + 1))

    def add(self, scale: float, floor: float) -> None:
        self.rows += 1
        self.highest = max(self.highest, scale)
        if self.rows >= START_ROWS:
            self.latest.append(scale)
        is_low = scale <= floor < self.highest and self.rows > START_ROWS
        self.at_floor = self.at_floor + 1 if is_low else 0

    def falls(self) -> int:
        return sum(after < before for before, after in pairwise(self.latest))


class LossScaleAtFloor(DeclaredRule):
    """Met when a loss scale stays at `floor` or below, or falls again and again.

    A scale is at its floor if it is at most `floor` in `patience` rows in a row; a scale just above
    `floor` is not. It falls again and again if it is lower than in the row before in more than half
    of the latest 20 rows, and lower by a factor of at least 256 over all of them. A row is a saved
    step of mode TRAIN, or without a mode, that has the scale.

    The first 20 rows are not judged: a scaler starts high and looks for its scale. A scale that was
    never above `floor` belongs to no dynamic scaler, such as the constant 1 of bfloat16. Each
    scaler and worker is judged by itself.
    """

    READS = "the collection loss_scales: values of one element."
    SEVERITY = Severity.ERROR
    floor = positive("The scale below which nothing is left to lower.", 1.0, "loss scale")
    patience = count("Number of rows in a row at the floor.", 3, "rows")
    QUANTITIES = (
        Quantity(SCALE, "loss scale", worse="below", log=True),
        Quantity(FALLS, "rows of the latest 20 in which the loss scale fell"),
    )

    required_inputs = (LOSS_SCALES,)

    def _prepare(self) -> None:
        self._scalers: dict[TensorKey, _Scales] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the loss scales of global step `step`."""
        scales = finite_scalars(self.base_trial, step, LOSS_SCALES)
        if not scales:
            return self.not_judged("no loss scale of training at this step")
        answers = [self._judge(step, key, scale) for key, scale in scales.items()]
        return any_met(
            self, answers, f"the scaler looks for its scale in the first {START_ROWS} rows"
        )

    def _judge(self, step: int, key: TensorKey, scale: float) -> bool | None:
        scaler = self._scalers.setdefault(key, _Scales())
        scaler.add(scale, self.floor)
        if scaler.rows <= START_ROWS:
            return None
        lasts = scaler.at_floor >= self.patience
        note = f"At its floor for {scaler.at_floor} rows, after up to {scaler.highest:.6g}."
        met = self.record(key, step, SCALE, scale, self.floor, met=lasts, note=note)
        if len(scaler.latest) <= WINDOW_ROWS:
            return met
        falls, first, limit = scaler.falls(), scaler.latest[0], WINDOW_ROWS / 2
        keeps_falling = falls > limit and scale * LEAST_FALL <= first
        note, severity = f"From {first:.6g} to {scale:.6g} in {WINDOW_ROWS} rows.", Severity.WARNING
        return met | self.record(
            key, step, FALLS, falls, limit, met=keeps_falling, note=note, severity=severity
        )
