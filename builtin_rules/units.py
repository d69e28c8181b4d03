"""UnitsRule: what rules about the units of a layer share: which they are, and pooled counts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from builtin_rules.activity import Flags
from builtin_rules.selection import Saved, value_shape
from smdebug.rules import Rule
from smdebug.rules.params import FloatParam

if TYPE_CHECKING:
    from smdebug.core.modes import ModeKeys

# Why these: docs/decisions/0007-units-of-a-layer.md.
SAMPLES: Final = 100  # fewer do not tell "active in less than 1 %" from bad luck
ROWS: Final = 10  # fewer images do not, however many positions they have: neighbours are alike

THRESHOLD_LAYER: Final = FloatParam(
    "threshold_layer",
    "The layer fails when more than this share of its units is inactive.",
    default=50.0,
    minimum=0.0,
    maximum=100.0,
    unit="percent",
)
_FIRST: Final = re.compile(r"_(in|out)put(_\w+)?$")  # PyTorch, MXNet
_LAST: Final = re.compile(r"[/:]")  # TensorFlow, Keras
_MOST: Final = 255  # what a byte counts up to


def channel_axis(name: str, shape: tuple[int, ...]) -> int:
    """Return the axis of the channels of an array of four or more dimensions.

    The framework that the tensor's name gives away tells; for names of one's own two sides of one
    length do, and if there are none it is axis 1.
    """
    if _FIRST.search(name):
        return 1
    is_last = _LAST.search(name) or shape[1] == shape[2] != shape[-1]
    return len(shape) - 1 if is_last else 1


def count(flags: Any, axis: int | None) -> Any:
    """Return how many `flags` are set, by unit.

    Parameters
    ----------
    flags
        Booleans of shape ``(rows, ...)``; with fewer than two dimensions they are one unit.
    axis
        Along which the units lie; without it every position behind the rows is one.

    Returns
    -------
    ndarray
        Of shape ``(units,)``.
    """
    if flags.ndim < 2:  # noqa: PLR2004 - rows and units
        return np.array([np.count_nonzero(flags)])
    if axis is None:
        return _down(flags.reshape(len(flags), -1))
    others = tuple(one for one in range(flags.ndim) if one != axis)
    return np.count_nonzero(flags, axis=others)


def _down(flags: Any) -> Any:
    """Return how many `flags` of each column are set; adding up bytes is faster than counting."""
    rows = flags.view(np.uint8)
    found = np.zeros(rows.shape[1], np.intp)
    for at in range(0, len(rows), _MOST):
        found += np.add.reduce(rows[at : at + _MOST], axis=0, dtype=np.uint8)
    return found


@dataclass(slots=True)
class Units:
    """Counts of the units of one layer, in one mode, of one worker: no more than one step's."""

    shape: tuple[int, ...] = ()  # of the latest array
    axis: int | None = None  # of three dimensions: told by the other one, whose length changed
    layout: tuple[int, ...] = ()  # what the pooled arrays have in common
    active: Any = 0
    inactive: Any = 0
    rows: int = 0
    steps: int = 0

    @property
    def samples(self) -> int:
        """The largest number of samples of a unit that are numbers."""
        return int(np.max(self.active + self.inactive))

    def add(self, name: str, active: Any, no_sample: Any = None) -> None:
        """Add flags of a step: what is active, and what is no sample; another shape begins anew."""
        axis = self._axis(name, active.shape)
        layout = active.shape[1:] if axis is None else (axis, active.shape[axis])
        layout = (active.ndim, *layout)
        if layout != self.layout:
            self.clear()
            self.layout = layout
        found = count(active, axis)
        samples = active.size // found.size
        if no_sample is not None:
            samples = samples - count(no_sample, axis)
        self.active = self.active + found
        self.inactive = self.inactive + (samples - found)
        self.rows += len(active) if active.ndim else 1
        self.steps += 1

    def clear(self) -> None:
        """Forget the counts."""
        self.active = self.inactive = self.rows = self.steps = 0

    def inactive_share(self, threshold: float, samples: int) -> tuple[int, int]:
        """Return how many units are active in less than `threshold` percent, and of how many.

        Units with fewer than `samples` samples that are numbers are left out.
        """
        known = self.active + self.inactive
        enough = known >= samples
        activity = 100.0 * self.active[enough] / known[enough]
        return int(np.count_nonzero(activity < threshold)), int(np.count_nonzero(enough))

    def _axis(self, name: str, shape: tuple[int, ...]) -> int | None:
        if len(shape) > 3:  # noqa: PLR2004 - images, volumes
            return channel_axis(name, shape)
        before, self.shape = self.shape, shape
        if len(shape) < 3 or len(before) != len(shape):  # noqa: PLR2004 - sequences
            return self.axis if len(shape) == 3 else None  # noqa: PLR2004 - sequences
        same = [one for one in (1, 2) if shape[one] == before[one]]
        if len(same) == 1:
            self.axis = same[0]
        return self.axis


class UnitsRule(Rule):
    """A rule that is met when too many units of a layer are inactive."""

    threshold_inactivity: float
    threshold_layer: float
    literal: bool

    def __init__(self, base_trial: Any) -> None:
        super().__init__(base_trial)
        # As many as layers, workers and modes; the counts go whenever they were judged.
        self._pools: dict[tuple[str, str, ModeKeys], Units] = {}

    def judge_layers(self, step: int, quantity: str, layers: Iterable[tuple[Saved, Flags]]) -> bool:
        """Judge layers by the flags of what is active in them.

        Parameters
        ----------
        quantity
            What the share of inactive units is called.
        layers
            What was saved, and its flags; NaN is no sample.
        """
        answers = [
            self._judge(step, quantity, one, flags, shape)
            for one, flags in layers
            if (shape := value_shape(one, step)) is not None
        ]
        if not answers:
            return self.not_judged("no values of the tensors at this step")
        if all(answer is None for answer in answers):
            return self.not_judged("too few samples that are numbers since the last judgement")
        return any(answers)

    def _judge(
        self, step: int, quantity: str, one: Saved, flags: Flags, shape: tuple[int, ...]
    ) -> bool | None:
        """Say whether a layer fails, or None if too few samples were pooled so far."""
        if self.literal:
            units, needed = Units(), 1
            flat = (shape[0], -1) if len(shape) > 1 else shape
            units.add(one.name, flags.active(flat))
        else:
            key = one.name, one.worker, self.base_trial.mode(step)
            units, needed = self._pools.setdefault(key, Units()), SAMPLES
            units.add(one.name, flags.active(shape), flags.nan(shape))
        if units.samples < needed or (units.rows < ROWS and not self.literal):
            return None
        lost, known = units.inactive_share(self.threshold_inactivity, needed)
        note = f"{lost} of {known} units; samples: {units.samples}, saved steps: {units.steps}."
        units.clear()
        share = 100.0 * lost / known
        return self.measured(
            step,
            quantity,
            share,
            self.threshold_layer,
            met=share > self.threshold_layer,
            tensor=one.name,
            worker=one.worker,
            note=note,
        )
