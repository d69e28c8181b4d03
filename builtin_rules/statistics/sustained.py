"""SustainedRule: the base class of rules about values that stay beyond a limit."""

import math
from typing import ClassVar, Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, count
from builtin_rules.statistics.previous_values import is_learning_step
from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    TensorKey,
    any_met,
    by_role,
    numbers,
    saved_tensors,
)
from smdebug.rules.extensions import PatternsParam, TensorInput

NOT_TRAINING: Final = "not a training step"
MIN_SAMPLES: Final = 8  # rows of a batch that tell how much samples differ
RISING_FACTOR: Final = 1.5  # a value that has grown by this factor since it was too small recovers
TINY_SHARE: Final = 0.1  # of the threshold; a smaller value does not recover, however it grows


def steps_in_a_row(default: int) -> Declared[int]:
    """Return the parameter for the number of saved steps in a row that meet the condition."""
    return count("Number of saved steps in a row that must be bad.", default, "saved steps")


def finite_array(saved: SavedTensor, step: int) -> "np.ndarray | None":
    """Return a saved array as float64, or None if it is missing or has a non-finite value."""
    array = numbers(saved, step)
    if array is None:
        return None
    array = np.asarray(array, np.float64)
    return array if np.isfinite(array).all() else None


class TensorState(NamedTuple):
    """The measured value of a tensor, whether it is bad, and a note."""

    value: float
    is_bad: bool
    note: str | None = None


class SustainedRule(DeclaredRule):
    """A rule that is met when a tensor is bad at `patience` saved steps in a row.

    A subclass declares its `TENSORS` and one quantity, and overrides `_measure`. Only training
    steps count; each tensor and each worker is judged separately. Tensors without a measurement
    neither extend nor end a series of bad steps.

    Attributes
    ----------
    TENSORS
        What is judged, in the plural, and the parameter that selects it.
    """

    TENSORS: ClassVar[tuple[str, PatternsParam]]
    required_inputs: tuple[TensorInput, ...]
    threshold: Declared[float]
    patience: Declared[int]
    tensor_regex: Declared[tuple[str, ...]]

    def _prepare(self) -> None:
        self.required_inputs = (by_role(*self.TENSORS, self.tensor_regex),)
        self._bad: dict[TensorKey, int] = {}
        self._low: dict[TensorKey, float] = {}  # the first value that was too small

    def _measure(self, saved: SavedTensor, step: int) -> TensorState | None:
        """Return the measurement of a tensor, or None if it cannot be judged."""
        raise NotImplementedError

    def _stays_low(self, key: TensorKey, value: float, *, is_low: bool) -> bool:
        """Return whether a value is too small and has not clearly grown since it first was."""
        if not is_low:
            self._low.pop(key, None)
            return False
        first = self._low.setdefault(key, value)
        return value < max(RISING_FACTOR * first, TINY_SHARE * self.threshold)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the tensors of global step `step`."""
        if not is_learning_step(self.base_trial, step):
            return self.not_judged(NOT_TRAINING)
        (tensors,) = self.required_inputs
        names = tensors.names(self.base_trial, step)
        if not names:
            return self.not_judged(f"no {tensors.label} at this step")
        answers = [
            self._judge(saved, step) for saved in saved_tensors(self.base_trial, step, names)
        ]
        return any_met(self, answers, f"no {tensors.label} that can be judged at this step")

    def _judge(self, saved: SavedTensor, step: int) -> bool | None:
        measurement = self._measure(saved, step)
        if measurement is None or math.isnan(measurement.value):
            return None
        value, is_bad, note = measurement
        key = saved.key
        self._bad[key] = self._bad.get(key, 0) + 1 if is_bad else 0
        met = self._bad[key] >= self.patience
        quantity, limit = self.QUANTITIES[0].name, self.threshold
        return self.record(key, step, quantity, value, limit, met=met, note=note)
