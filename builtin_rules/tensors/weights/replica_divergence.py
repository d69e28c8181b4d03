"""ReplicaDivergence: workers that train one model no longer have the same parameters."""

import math
import re
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import positive
from builtin_rules.statistics.previous_values import (
    ALL_PARAMETERS,
    IS_SHARDED,
    is_learning_step,
    parameter_names,
)
from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    TensorKey,
    numbers,
    reduction,
    saved_reductions,
    value_shape,
)
from smdebug.rules.extensions import ChangeNorms, Quantity, Severity, TensorInput

DIFFERENCE: Final = "relative difference"
# Values that differ by more than this when first compared are shards, or were never replicas.
SHARDED_DIFFERENCE: Final = 0.1
GRADIENT: Final = "gradient/"  # before the name of a parameter
EQUAL_GRADIENTS: Final = 1e-3  # relative difference, of gradients summed in another order
EQUAL_UPDATES: Final = 1e-2  # relative difference; weight decay differs with the values
_CHANGE: Final = ChangeNorms()
_BUFFERS: Final = re.compile(r"running_(mean|var)|num_batches_tracked")
# Saved reductions that hardly depend on the order of summation.
_COMPARED: Final = frozenset({"l1", "l2", "min", "max", "std", "variance"})


class _Replicas(TensorInput):
    """Tensors of a trial with several workers."""

    def is_in(self, trial: Any) -> bool:
        """Return whether two workers or more may have saved one of these tensors."""
        return trial.num_workers > 1 and bool(self.names(trial))


class ReplicaDivergence(DeclaredRule):
    """Met when a parameter of two workers differs by more than `threshold`, relative to its norm.

    At each saved step of training, the parameters of each worker are compared with those of the
    first worker that saved them: ``|w - p| / |p|``, with the Euclidean norm over all elements; of
    saved reductions, the largest relative difference of l1, l2, min, max, std and variance. NaN or
    infinity on one of the two only meets the condition; on both it is left to `ExplodingTensor`.

    Workers that hold shards are not replicas. Parameters that the hook marked as sharded
    (`parameters/is_sharded/*`) are skipped, and so are those of different shapes. Without a mark,
    parameters that differ by more than 0.1 when first compared are taken for shards, unless the
    workers have equal gradients for them, or change them equally until the next saved step, as data
    parallelism does: then they are replicas that began with different values. If a worker has
    shards, its other parameters count once they were equal and not of one value: shards of ones and
    zeros are equal at first. A note names what is taken for shards. Running statistics of norm
    layers are no parameters: workers have their own.
    """

    SEVERITY = Severity.ERROR
    READS = "the collections weights, biases and parameters of all workers: values or reductions."
    threshold = positive(
        "Largest relative difference allowed between two workers.", 1e-5, "difference per parameter"
    )
    QUANTITIES = (
        Quantity(DIFFERENCE, "norm of difference / norm of parameter", worse="above", log=True),
    )

    required_inputs = (_Replicas("parameters of several workers", ALL_PARAMETERS),)

    def _prepare(self) -> None:
        self._compared: set[TensorKey] = set()
        self._replicas: set[TensorKey] = set()  # that were once equal, and not of one value
        self._shards: set[TensorKey] = set()
        self._doubtful: dict[TensorKey, int] = {}  # shards at this step, if they move differently
        self._sharded: set[str] = set()  # workers that hold shards

    def invoke_at_step(self, step: int) -> bool:
        """Judge the parameters of all workers at global step `step`."""
        trial = self.base_trial
        if not is_learning_step(trial, step):
            return self.not_judged("weights do not change in this mode")
        names = [
            name
            for name in parameter_names(trial, step, ALL_PARAMETERS)
            if not (_BUFFERS.search(name) or trial.has_tensor(IS_SHARDED + name))
        ]
        workers: dict[str, list[SavedTensor]] = {}
        for name, worker in trial.saved_by(step, names):
            workers.setdefault(name, []).append(SavedTensor(trial.tensor(name), worker))
        pairs = [
            _Pair(replicas[0], other, difference)
            for replicas in workers.values()
            for other in replicas[1:]
            if other.key not in self._shards
            and (difference := self._compare(replicas[0], other, step)) is not None
        ]
        pairs += self._replicas_by_updates(workers, step)
        for pair in pairs:
            if self._look_like_shards(pair, step):
                self._sharded.add(pair.other.worker)
            self._compared.add(pair.other.key)
        answers = [self._judge(pair, step) for pair in pairs]
        return any(answers) if answers else self.not_judged("no replicas of a parameter")

    def _replicas_by_updates(
        self, workers: dict[str, list[SavedTensor]], step: int
    ) -> list["_Pair"]:
        """Return the pairs that were taken for shards, and changed equally since."""
        pairs = []
        for first, *others in workers.values():
            for other in others:
                key = other.key
                since = self._doubtful.get(key)
                are_equal = None if since is None else _are_updates_equal(first, other, since, step)
                if are_equal is None:
                    continue
                del self._doubtful[key]
                difference = self._compare(first, other, step)
                if are_equal and difference is not None:
                    self._shards.discard(key)
                    self._replicas.add(key)
                    pairs.append(_Pair(first, other, difference))
        return pairs

    def _compare(self, first: SavedTensor, other: SavedTensor, step: int) -> float | None:
        """Return the relative difference of two tensors, or None if it is unknown."""
        shapes = value_shape(first, step), value_shape(other, step)
        if None not in shapes and shapes[0] != shapes[1]:
            self._sharded.add(other.worker)
            return None
        return _difference(first, other, step)

    def _look_like_shards(self, pair: "_Pair", step: int) -> bool:
        """Return whether a pair differs too much for replicas when first compared."""
        return (
            SHARDED_DIFFERENCE < pair.difference < math.inf
            and pair.other.key not in self._compared
            and not _have_equal_gradients(pair, step)
        )

    def _judge(self, pair: "_Pair", step: int) -> bool:
        """Return whether replicas differ, unless they are shards."""
        first, other, difference = pair
        met = difference > self.threshold
        if met and other.key not in self._replicas and other.worker in self._sharded:
            if not _have_equal_gradients(pair, step):
                self._shards.add(other.key)
                self._doubtful[other.key] = step
                note = f"Differs from {first.worker!r} from the start: sharded, or never a replica."
                return self.found(
                    step, *other.key, difference, SHARDED_DIFFERENCE, note, Severity.NOTE
                )
        elif not met and not _has_one_value(first, step):
            self._replicas.add(other.key)
        note = f"Compared with {first.worker!r}."
        if difference == math.inf:
            note = f"Only one of it and {first.worker!r} is finite."
        key, limit = other.key, self.threshold
        return self.record(
            key, step, DIFFERENCE, difference, limit, met=met, note=note if met else None
        )


class _Pair(NamedTuple):
    """A parameter of two workers, and their relative difference."""

    first: SavedTensor
    other: SavedTensor
    difference: float


def _has_one_value(saved: SavedTensor, step: int) -> bool:
    """Return whether all elements are equal; false if that is unknown."""
    low, high = (reduction(saved, step, operation) for operation in ("min", "max"))
    return low is not None and low == high


def _have_equal_gradients(pair: _Pair, step: int) -> bool:
    """Return whether two workers have the same gradient of a parameter, other than 0."""
    trial: Any = pair.other.tensor.trial
    name = GRADIENT + pair.other.name
    workers = [worker for _, worker in trial.saved_by(step, [name])]
    if not {pair.first.worker, pair.other.worker}.issubset(workers):
        return False
    first, other = (
        SavedTensor(trial.tensor(name), saved.worker) for saved in (pair.first, pair.other)
    )
    top = reduction(first, step, "max", absolute=True) or reduction(first, step, "l2")
    difference = _difference(first, other, step) if top else None
    return difference is not None and difference < EQUAL_GRADIENTS


def _are_updates_equal(
    first: SavedTensor, other: SavedTensor, since: int, step: int
) -> bool | None:
    """Return whether two workers changed a parameter equally; None if that is unknown."""
    before, after = numbers(first, since), numbers(first, step)
    other_before, other_after = numbers(other, since), numbers(other, step)
    if before is None or after is None or other_before is None or other_after is None:
        return None
    if not before.shape == after.shape == other_before.shape == other_after.shape:
        return None
    difference, update = _CHANGE.between(
        np.subtract(other_after, other_before, dtype=np.float32),
        np.subtract(after, before, dtype=np.float32),
    )
    if not (update and math.isfinite(difference) and math.isfinite(update)):
        return None
    return bool(difference <= EQUAL_UPDATES * update)


def _difference(first: SavedTensor, other: SavedTensor, step: int) -> float | None:
    """Return the relative difference, infinity if one is not finite, or None if unknown."""
    before, value = numbers(first, step), numbers(other, step)
    if before is None or value is None:
        earlier, later = saved_reductions(first, step), saved_reductions(other, step)
        keys = [key for key in earlier if key in later and key[0] in _COMPARED]
        differences = [
            _relative(abs(later[key] - earlier[key]), abs(earlier[key]), abs(later[key]))
            for key in keys
        ]
        return max((item for item in differences if item is not None), default=None)
    if before.shape != value.shape:
        return None
    change, norm = _CHANGE.between(value, before)
    return _relative(
        change, norm, change if math.isfinite(norm) else _CHANGE.between(before, value).before
    )


def _relative(change: float, before: float, after: float) -> float | None:
    if not (math.isfinite(before) or math.isfinite(after)):
        return None
    if not (math.isfinite(before) and math.isfinite(after)):
        return math.inf
    return change / before if before else (math.inf if change else 0.0)
