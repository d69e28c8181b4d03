"""UnitsRule: the base class of rules about the units of a layer, with pooled counts."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, percentage
from builtin_rules.statistics.tensor_selection import (
    TensorKey,
    any_met,
    modes_by_name,
    shapes,
    statistics,
)
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Activity, ActivityFlags, Severity, TensorInput

# Why these: docs/decisions/0007-units-of-a-layer.md.
MIN_SAMPLES: Final = 100  # fewer cannot distinguish "active in less than 1 %" from chance
MIN_IMAGE_ROWS: Final = 10  # fewer images cannot either: neighbouring positions are alike

THRESHOLD_LAYER: Final = percentage(
    "A layer fails if more than this share of its units is inactive.", 50.0
)
_FIRST: Final = re.compile(r"_(in|out)put(_\w+)?$")  # PyTorch, MXNet
_LAST: Final = re.compile(r"[/:]")  # TensorFlow, Keras
_MAX_BYTE: Final = 255
SEQUENCE_DIMENSIONS: Final = 3  # dimensions: batch, position, channel
_Layer = tuple[str, str, ModeKeys | None]  # tensor, worker, mode


def channel_axis(name: str, shape: tuple[int, ...]) -> int:
    """Return the channel axis of an array with four or more dimensions.

    It is inferred from the framework that the name indicates. For other names it is the last axis
    if the two before it are of equal length, otherwise axis 1.
    """
    if _FIRST.search(name):
        return 1
    is_last = _LAST.search(name) or shape[1] == shape[2] != shape[-1]
    return len(shape) - 1 if is_last else 1


def count(flags: Any, axis: int | None) -> Any:
    """Return the number of `flags` set, by unit.

    Parameters
    ----------
    flags
        Booleans of shape ``(rows, ...)``; with fewer than two dimensions there is a single unit.
    axis
        The axis of the units; None if every position after the rows is a unit.

    Returns
    -------
    ndarray
        Of shape ``(units,)``.
    """
    if flags.ndim <= 1:
        return np.array([np.count_nonzero(flags)])
    if axis is None:
        return _down(flags.reshape(len(flags), -1))
    other_axes = tuple(other_axis for other_axis in range(flags.ndim) if other_axis != axis)
    return np.count_nonzero(flags, axis=other_axes)


def _down(flags: Any) -> Any:
    """Return the number of `flags` set in each column; adding bytes is faster than counting."""
    rows = flags.view(np.uint8)
    counts = np.add.reduce(rows[:_MAX_BYTE], axis=0, dtype=np.uint8).astype(np.intp)
    for start in range(_MAX_BYTE, len(rows), _MAX_BYTE):
        counts += np.add.reduce(rows[start : start + _MAX_BYTE], axis=0, dtype=np.uint8)
    return counts


@dataclass(slots=True)
class PooledUnits:
    """Pooled counts of the units of one layer, mode and worker."""

    shape: tuple[int, ...] = ()  # of the latest array
    axis: int | None = None  # of sequences: set once the length of the other axis changes
    layout: tuple[int, ...] = ()  # common to the pooled arrays
    active: Any = 0  # samples of each unit
    totals: Any = 0  # numeric samples of each unit; one number if it is that of all
    rows: int = 0
    steps: int = 0

    @property
    def samples(self) -> int:
        """The largest number of numeric samples of a unit."""
        return self.totals if isinstance(self.totals, int) else int(self.totals.max())

    def add(self, name: str, active: Any, no_sample: Any = None) -> None:
        """Add the flags of a step: active elements, and non-samples; a new shape starts over."""
        axis = self._axis(name, active.shape)
        layout = active.shape[1:] if axis is None else (axis, active.shape[axis])
        layout = (active.ndim, *layout)
        if layout != self.layout:
            self.clear()
            self.layout = layout
        active_counts = count(active, axis)
        samples = active.size // active_counts.size
        if no_sample is not None:
            samples = samples - count(no_sample, axis)
        self.active = self.active + active_counts
        self.totals = self.totals + samples
        self.rows += len(active) if active.ndim else 1
        self.steps += 1

    def clear(self) -> None:
        """Reset the counts."""
        self.active = self.totals = self.rows = self.steps = 0

    def inactive_share(self, threshold: float, samples: int) -> tuple[int, int]:
        """Return the number of units active in less than `threshold` percent, and of all units.

        Units with fewer than `samples` numeric samples are left out; one of them has more.
        """
        active, totals = self.active, self.totals
        if not isinstance(totals, int):
            enough = totals >= samples
            active, totals = active[enough], totals[enough]
        activity = 100.0 * active / totals
        return int(np.count_nonzero(activity < threshold)), activity.size

    def _axis(self, name: str, shape: tuple[int, ...]) -> int | None:
        if len(shape) > SEQUENCE_DIMENSIONS:  # images, volumes
            return channel_axis(name, shape)
        previous, self.shape = self.shape, shape
        if len(shape) < SEQUENCE_DIMENSIONS:
            return None
        if len(previous) != SEQUENCE_DIMENSIONS:
            return self.axis
        same = [axis for axis in (1, 2) if shape[axis] == previous[axis]]
        if len(same) == 1:
            self.axis = same[0]
        return self.axis


class UnitsRule(DeclaredRule):
    """A rule, of one quantity, that is met when too many units of a layer are inactive.

    Attributes
    ----------
    CERTAIN
        A share of inactive units, in percent, up to which a layer that fails is a note.
    LASTING
        The number of judgements in a row at which a layer must fail; fewer are notes.
    """

    CERTAIN: ClassVar[float] = 0.0
    LASTING: ClassVar[int] = 3

    threshold_inactivity: Declared[float]
    threshold_layer: Declared[float]
    literal: Declared[bool]

    def _prepare(self) -> None:
        # Reset after each judgement.
        self._pools: dict[_Layer, PooledUnits] = {}
        self._bad: dict[_Layer, int] = {}  # judgements in a row
        self._is_bound = self.binds()

    def judge_layers(
        self, step: int, tensors: TensorInput, activity_of: Callable[[str], Activity | None]
    ) -> bool:
        """Judge the tensors of a step by the activity of their units.

        Parameters
        ----------
        activity_of
            Maps the name of a tensor to the range of its active elements; None skips the tensor.
        """
        trial = self.base_trial
        names = tensors.names(trial, step)
        if not names:
            return self.not_judged(f"no {tensors.label} at this step")
        activities = {
            name: activity for name in names if (activity := activity_of(name)) is not None
        }
        saved = trial.saved_by(step, activities)
        alike: dict[Activity, list[TensorKey]] = {}
        for key in saved:
            alike.setdefault(activities[key[0]], []).append(key)
        flags: dict[TensorKey, ActivityFlags] = {}
        for activity, keys in alike.items():
            flags |= statistics(trial, step, keys, activity)
        measured = {key: entry for key, entry in saved.items() if key in flags}
        modes = modes_by_name(trial, step, activities)
        answers = [
            self._judge(step, (*key, modes[key[0]]), flags[key], shape)
            for key, shape in shapes(trial, step, measured).items()
        ]
        if not answers:
            return self.not_judged("no values of the tensors at this step")
        return any_met(self, answers, "too few numeric samples since the last judgement")

    def _judge(
        self, step: int, layer: _Layer, flags: ActivityFlags, shape: tuple[int, ...]
    ) -> bool | None:
        """Return whether a layer fails, or None if there are too few samples so far."""
        name, *_ = key = layer[:2]
        needed = 1 if self._is_bound else MIN_SAMPLES
        if self.literal:
            units = PooledUnits()
            flat = (shape[0], -1) if len(shape) > 1 else shape
            units.add(name, flags.active(flat))
        else:
            units = self._pools.setdefault(layer, PooledUnits())
            units.add(name, flags.active(shape), flags.nan(shape))
        if units.samples < needed or (units.rows < MIN_IMAGE_ROWS and not self._is_bound):
            return None
        lost, judged = units.inactive_share(self.threshold_inactivity, needed)
        note = f"{lost} of {judged} units; samples: {units.samples}, saved steps: {units.steps}."
        units.clear()
        share, limit = 100.0 * lost / judged, self.threshold_layer
        is_certain = self._is_bound or share > self.CERTAIN
        self._bad[layer] = self._bad.get(layer, 0) + 1 if share > limit and is_certain else 0
        lasts = self._is_bound or self._bad[layer] >= self.LASTING
        severity = None if is_certain and lasts else Severity.NOTE
        quantity, met = self.QUANTITIES[0].name, share > limit
        return self.record(key, step, quantity, share, limit, met=met, note=note, severity=severity)
