"""StalledParameters: some parameters stand still while others learn."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, positive
from builtin_rules.statistics.previous_values import (
    ALL_PARAMETERS,
    TrainedParameters,
    earlier_steps,
    is_learning_step,
    parameter_names,
)
from builtin_rules.statistics.tensor_selection import (
    GRADIENTS,
    SavedTensor,
    any_met,
    numbers,
    reduction,
    saved_tensors,
    statistic,
    value_shape,
)
from builtin_rules.statistics.training_scalars import LEARNING_RATES, finite_scalars
from smdebug.core.collection import CollectionKeys
from smdebug.rules.extensions import ChangeNorms, Quantity, Severity, TensorInput, WantedMeasure

RATIO: Final = "relative update"
UNCHANGED: Final = "unchanged elements"
NORMS: Final = "optimizer/update_norm/"  # before the name of a parameter
SHARES: Final = TensorInput("shares of unchanged elements", (), ("^optimizer/unchanged_share/",))
ROUNDED_SHARE: Final = 0.9  # of the elements with a gradient, whose updates are rounded away
TYPICAL_UPDATE: Final = 1e-3  # the relative update of a healthy parameter
SPARSE_SHARE: Final = 0.5  # a gradient with more zeros is that of an embedding with rare tokens
MATRIX_RANK: Final = 2
_CHANGE: Final = ChangeNorms()
_UNUSED: Final = ("pooler", "mask_token", "masked_spec_embed", "mask_emb")


class _Move(NamedTuple):
    """The relative update of a parameter of a worker.

    Attributes
    ----------
    saved
        The parameter; None if only the norm of its update was saved.
    """

    name: str
    worker: str
    ratio: float
    is_matrix: bool
    saved: SavedTensor | None = None

    def is_short(self, step: int) -> bool:
        """Return whether the parameter has a short data type, as far as is known."""
        value = None if self.saved is None else numbers(self.saved, step)
        return value is not None and value.dtype.itemsize <= np.dtype(np.float16).itemsize


class StalledParameters(DeclaredRule):
    """Met when a parameter stalls for `patience` saved steps in a row while others move.

    The relative update is ``|w - p| / |p|``: of one step where the hook saved
    `optimizer/update_norm`, otherwise since the previous saved step. A matrix stalls if its
    gradient is not zero, the update is below `threshold`, and others move: any parameter by
    `threshold` or more, if the matrix did not change by one bit or is in half precision; otherwise
    half of the other matrices by 0.001 or more.

    In half precision it is met as well if, at these steps, nine tenths of the elements with a
    gradient did not change by one bit (`optimizer/unchanged_share`, the median over parameters),
    unless the learning rate rises or is zero.

    A parameter of any shape stalls as well if it requires a gradient, has got none so far while
    others have, and does not change by one bit while others do. For parameters that published
    models leave unused on purpose (poolers, mask tokens) this is a note.

    Matrices with gradients that are mostly zero (embeddings with rare tokens) are skipped, and so
    are frozen parameters, zeros, and values that are not finite. Steps at which nothing moves do
    not count: see `LearningRate` and `UnchangedTensor`. Each worker is judged by itself, in
    training.
    """

    READS = (
        "the tensors optimizer/update_norm/* and optimizer/unchanged_share/*, or the collections "
        "weights, biases and parameters: values; the collection gradients: values, or shapes and "
        "the saved reductions abs_min and abs_max; parameters/requires_grad/* and the collection "
        "learning_rates: values."
    )
    SAVED = ("gradients", "optimizer", "model")
    NEEDS_VALUES = False
    threshold = positive("A smaller relative update is none.", 1e-5, "update per parameter")
    patience = count("Number of such steps in a row that is too many.", 4, "saved steps")
    QUANTITIES = (
        Quantity(RATIO, "norm of update / norm of parameter", worse="below", log=True),
        Quantity(UNCHANGED, "share of the elements with a gradient"),
    )

    required_inputs = (GRADIENTS, TensorInput("parameters", (*ALL_PARAMETERS, "optimizer")))
    wants = (WantedMeasure(_CHANGE, TensorInput("parameters", ALL_PARAMETERS), 1),)

    def _prepare(self) -> None:
        self._still: dict[tuple[str, str], int] = {}  # for how many steps, by tensor and worker
        self._rate = 0.0
        self._gradients: tuple[int, list[str]] = -1, []  # the latest step, and those of it
        self._gradient_of: dict[str, str | None] = {}  # among those, by parameter

    def invoke_at_step(self, step: int) -> bool:
        """Judge the parameters of global step `step`."""
        trial = self.base_trial
        if not is_learning_step(trial, step):
            return self.not_judged("parameters do not change in this mode")
        rounded = [*self._judge_rounding(step)]
        if not GRADIENTS.is_in(trial):
            return any_met(self, rounded, "no gradients so far")
        trained = TrainedParameters(trial, step)
        moves = self._moves(step)
        by_worker: dict[str, list[_Move]] = {}
        for move in moves:
            by_worker.setdefault(move.worker, []).append(move)
        moving = {
            worker: sum(move.ratio >= self.threshold for move in its_moves)
            for worker, its_moves in by_worker.items()
        }
        matrices = {
            worker: sorted(move.ratio for move in its_moves if move.is_matrix)
            for worker, its_moves in by_worker.items()
        }
        answers = [
            self._judge(move, matrices[move.worker], moving[move.worker], step, trained)
            for move in moves
        ]
        return any_met(self, [*rounded, *answers], "no parameter with an update to judge")

    def _judge_rounding(self, step: int) -> Iterator[bool]:
        """Judge, for each worker, the share of elements that an update did not change."""
        trial = self.base_trial
        rate = max(finite_scalars(trial, step, LEARNING_RATES).values(), default=self._rate)
        is_usual, self._rate = 0 < rate <= self._rate or not LEARNING_RATES.is_in(trial), rate
        shares: dict[str, list[float]] = {}
        for (_, worker), share in finite_scalars(trial, step, SHARES).items():
            shares.setdefault(worker, []).append(share)
        for worker, values in shares.items():
            share, key = statistics.median(values), (UNCHANGED, worker)
            is_rounded = is_usual and share >= ROUNDED_SHARE
            self._still[key] = self._still.get(key, 0) + 1 if is_rounded else 0
            met = self._still[key] >= self.patience
            note = "In bfloat16 and float16 such small updates are rounded away."
            yield self.record(
                (None, worker), step, UNCHANGED, share, ROUNDED_SHARE, met=met, note=note
            )

    def _moves(self, step: int) -> list[_Move]:
        """Return the relative updates of all parameters: of norms, else since the last values."""
        trial = self.base_trial
        moves: dict[tuple[str, str], _Move] = {}
        names = parameter_names(trial, step, ALL_PARAMETERS)
        for saved in saved_tensors(trial, step, names):
            move = _since_last(saved, step)
            if move is not None:
                moves[move.name, move.worker] = move
        updates = [name for name in trial.tensor_names(step=step) if name.startswith(NORMS)]
        for saved in saved_tensors(trial, step, updates):
            pair = numbers(saved, step)
            name = saved.name.removeprefix(NORMS)
            if pair is None or pair.shape != (2,) or not np.isfinite(pair).all() or pair[1] <= 0:
                continue
            former = moves.get((name, saved.worker))
            is_matrix = former.is_matrix if former else _is_matrix(self._gradient(name, step), step)
            ratio = float(pair[0]) / float(pair[1])
            parameter = former.saved if former else None
            moves[name, saved.worker] = _Move(name, saved.worker, ratio, is_matrix, parameter)
        return [*moves.values()]

    def _judge(
        self,
        move: _Move,
        matrices: Sequence[float],
        moving: int,
        step: int,
        trained: TrainedParameters,
    ) -> bool | None:
        """Return whether a parameter has stalled for long enough, or None if it is not judged.

        Parameters
        ----------
        matrices, moving
            The relative updates of its worker's matrices, ascending, and how many updates of all
            its parameters are not below the threshold.
        """
        key = move.name, move.worker
        if trained.is_frozen(move.name):
            return None
        if moving == (move.ratio >= self.threshold):
            return False  # nothing else moves, which tells nothing of this parameter
        detached = move.ratio == 0 and trained.is_detached(move.name)
        if not detached and not move.is_matrix:
            return None
        stalls = move.ratio < self.threshold and (
            detached or (_others_move(move, matrices, step) and self._is_pulled(move, step))
        )
        self._still[key] = self._still.get(key, 0) + 1 if stalls else 0
        met = self._still[key] >= self.patience
        severity = None
        note = "Its gradient is not zero." if met else None
        if met and move.is_short(step):
            note = "Its gradient is not zero; bfloat16 and float16 round small updates away."
        if met and detached:
            note = "It requires a gradient and got none, while other parameters have one."
            unused = any(part in move.name for part in _UNUSED)
            severity = Severity.NOTE if unused else Severity.ERROR
        ratio, limit = move.ratio, self.threshold
        return self.record(key, step, RATIO, ratio, limit, met=met, note=note, severity=severity)

    def _is_pulled(self, move: _Move, step: int) -> bool:
        """Return whether most elements of the gradient of a parameter are not zero."""
        gradient = self._gradient(move.name, step)
        if gradient is None:
            return False
        values = numbers(gradient, step)
        if values is None:  # of reductions, only a smallest magnitude above zero tells
            least = reduction(gradient, step, "min", absolute=True)
            most = reduction(gradient, step, "max", absolute=True)
            return least is not None and most is not None and 0 < least <= most < math.inf
        if not np.isfinite(values.astype(np.float64)).all():
            return False
        return int(np.count_nonzero(values)) >= SPARSE_SHARE * int(values.size)

    def _gradient(self, parameter: str, step: int) -> SavedTensor | None:
        trial = self.base_trial
        if self._gradients[0] != step:
            names = trial.tensor_names(step=step, collection=CollectionKeys.GRADIENTS)
            if names != self._gradients[1]:
                self._gradient_of = {}
            self._gradients = step, names
        if parameter not in self._gradient_of:
            matching = (name for name in self._gradients[1] if parameter in name)
            self._gradient_of[parameter] = min(matching, key=len, default=None)
        name = self._gradient_of[parameter]
        return None if name is None else next(saved_tensors(trial, step, [name]), None)


def _others_move(move: _Move, matrices: Sequence[float], step: int) -> bool:
    """Return whether the other matrices move enough to tell that a parameter should.

    Parameters
    ----------
    matrices
        The relative updates of all matrices, ascending.
    """
    if move.ratio == 0 or move.is_short(step):
        return True
    own = bisect_left(matrices, move.ratio) if move.is_matrix else len(matrices)
    number = len(matrices) - move.is_matrix
    middle = [at + (at >= own) for at in ((number - 1) // 2, number // 2)]
    return number > 0 and sum(matrices[at] for at in middle) / 2 >= TYPICAL_UPDATE


def _is_matrix(saved: SavedTensor | None, step: int) -> bool:
    shape = value_shape(saved, step) if saved is not None else None
    return sum(length > 1 for length in shape or ()) >= MATRIX_RANK


def _since_last(saved: SavedTensor, step: int) -> _Move | None:
    """Return the relative update of a parameter since it was last saved, or None."""
    trial: Any = saved.tensor.trial
    former = earlier_steps(saved, step - 1, None)
    earlier = next((each for each in former if is_learning_step(trial, each)), None)
    if earlier is None:
        return None
    change = statistic(saved, step, _CHANGE, earlier)
    if change is None:
        value, before = numbers(saved, step), numbers(saved, earlier)
        if value is None or before is None or value.shape != before.shape:
            return None
        change = _CHANGE.between(value, before)
    if not (math.isfinite(change.change) and change.before > 0 and math.isfinite(change.before)):
        return None
    ratio = change.change / change.before
    return _Move(saved.name, saved.worker, ratio, _is_matrix(saved, step), saved)
