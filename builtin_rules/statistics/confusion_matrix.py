"""The confusion matrices of a run, block by block, and shares that stay bad."""

import math
import statistics
from typing import Final, NamedTuple, Self

import numpy as np

from builtin_rules.statistics.class_labels import Ints, LabelledClasses
from builtin_rules.statistics.share_of_total import lower, upper
from smdebug.core.modes import ModeKeys

# Why these, and how they judge: docs/decisions/0015-confusion.md.
MOST_CLASSES: Final = 1000
PER_CLASS: Final = 15  # minimum samples of a block
MIN_BLOCK_STEPS: Final = 10  # minimum steps of a training block
MIN_BLOCKS: Final = 5  # minimum blocks to judge the latest half
MAX_BLOCKS: Final = 32  # of the latest half; of more, every other one is dropped
STILL_LEARNING: Final = 0.8  # share of errors left since half of the run; below it, learning
SLOW_SHARE: Final = 0.95  # likewise, if the difference is not chance
WRONG_SHARE: Final = 0.5  # of the predictions of a class; a larger one is more than noise
RARER_FACTOR: Final = 2  # a class that is so many times rarer than another is often taken for it
TIMES_USUAL: Final = 3.0  # so are two classes confused with each other that many times as often
BINARY_CLASSES: Final = 2  # classes are always confused with each other
AS_LONG_AGAIN: Final = 2  # halves of the run so far


class ColumnShare(NamedTuple):
    """The share of a label among all samples predicted as a class.

    Attributes
    ----------
    label, predicted
        The classes; equal on the diagonal.
    hits, total
        Samples with the label, and all; for a class that is never predicted, those labelled so.
    bound
        The share, or its upper bound on the diagonal, or its lower bound off the diagonal.
    empty
        Whether the class is never predicted.
    labelled
        Samples with the label.
    """

    label: int
    predicted: int
    hits: int
    total: int
    bound: float
    empty: bool = False
    labelled: int = 0

    @property
    def on_diagonal(self) -> bool:
        """Whether this is the share of correct predictions."""
        return self.label == self.predicted

    @property
    def share(self) -> float:
        """The counted share."""
        return self.hits / self.total

    @property
    def note(self) -> str:
        """A sentence on the share."""
        if self.empty:
            return (
                f"Class {self.label} is never predicted, but {self.total} samples have this label."
            )
        whose = "correct" if self.on_diagonal else f"labelled {self.label}"
        return f"Predictions of class {self.predicted}: {self.hits} of {self.total} are {whose}."

    def extrapolated(self, before: Self, factor: float) -> float:
        """Return the bound extrapolated: as much time again gains as much as since `before`.

        `factor` is the share of all errors that will remain by then.
        """
        gain = abs(self.share - before.share)
        if self.on_diagonal:
            gain = gain if self.share > before.share else 0.0
            return 1.0 - (1.0 - min(1.0, self.bound + gain)) * factor
        gain = gain if self.share < before.share else 0.0
        return max(0.0, self.bound - gain) * factor


class ConfusionLimits(NamedTuple):
    """The smallest accepted share on the diagonal, and the largest off the diagonal."""

    diagonal: float
    beside: float

    def of(self, column: ColumnShare) -> float:
        """Return the limit of a column."""
        return self.diagonal if column.on_diagonal else self.beside

    def excess(self, column: ColumnShare, value: float) -> float:
        """Return how far a share exceeds the limit of a column; positive if it is bad."""
        if column.on_diagonal:
            return self.diagonal - value
        return value - self.beside


ColumnKey = tuple[int, bool]  # the predicted class, whether on the diagonal


class MatrixBlock(NamedTuple):
    """The shares of a matrix, and the share of wrong predictions."""

    columns: dict[ColumnKey, ColumnShare]
    wrong: float
    samples: int = 0
    usual: float = 0.0  # the median class's share of wrong predictions
    labelled: tuple[int, ...] = ()  # samples by class

    def is_noise(self, column: ColumnShare) -> bool:
        """Return whether the noise of the task may explain a share."""
        wrong = 1.0 - column.bound if column.on_diagonal else column.bound
        if wrong > WRONG_SHARE:
            return False
        other = self.columns.get((column.predicted, False))
        if other is None:
            return True
        is_lost = lower(other.hits, other.labelled, len(self.labelled)) > WRONG_SHARE
        if is_lost and RARER_FACTOR * other.labelled >= self.labelled[column.predicted]:
            return False
        back = self.columns.get((other.label, False))
        is_mutual = back is not None and back.label == column.predicted
        return (
            wrong <= TIMES_USUAL * self.usual
            or not is_mutual
            or len(self.labelled) <= BINARY_CLASSES
        )

    def has_lost_errors_since(self, before: "MatrixBlock") -> bool:
        """Return whether the share of errors has clearly fallen since another matrix."""
        if self.wrong < STILL_LEARNING * before.wrong:
            return True
        spread = math.sqrt(
            sum(item.wrong * (1 - item.wrong) / max(item.samples, 1) for item in (self, before))
        )
        fall = before.wrong - self.wrong
        return self.wrong < SLOW_SHARE * before.wrong and fall > 2 * spread


def counted(sample: LabelledClasses, size: int) -> Ints:
    """Return how often each label (row) was predicted as each class: ``(size, size)``."""
    cells = np.bincount(sample.labels * size + sample.predictions, minlength=size * size)
    return cells.reshape(size, size)


def block(matrix: Ints, *, literal: bool) -> MatrixBlock:
    """Return the shares of a non-empty matrix: the diagonal, and the largest off the diagonal.

    A class that is labelled but never predicted has a share of 0 on the diagonal. With `literal` it
    has none, and bounds are the shares themselves.
    """
    size, diagonal = len(matrix), matrix.diagonal()
    totals, labelled = matrix.sum(axis=0).tolist(), matrix.sum(axis=1).tolist()
    off_diagonal = matrix - np.diag(diagonal)
    columns: dict[ColumnKey, ColumnShare] = {}
    for predicted, label in enumerate(off_diagonal.argmax(axis=0).tolist()):
        hits, total = int(off_diagonal[label, predicted]), totals[predicted]
        if hits:
            bound = hits / total if literal else lower(hits, total, size * (size - 1))
            columns[predicted, False] = ColumnShare(
                label, predicted, hits, total, bound, labelled=labelled[label]
            )
        total = totals[predicted] or (0 if literal else labelled[predicted])
        if total:
            hits = int(diagonal[predicted])
            bound = hits / total if literal else upper(hits, total, size)
            columns[predicted, True] = ColumnShare(
                predicted, predicted, hits, total, bound, empty=not totals[predicted]
            )
    samples = int(matrix.sum())
    shares = [column.share for column in columns.values() if column.on_diagonal]
    wrong = float((samples - diagonal.sum()) / samples)
    return MatrixBlock(columns, wrong, samples, 1.0 - statistics.median(shares), tuple(labelled))


class MatrixHistory:
    """The matrices of one prediction tensor in one mode: the current and earlier blocks.

    At most `MAX_BLOCKS` blocks of the latest half are kept; older ones are dropped.
    """

    def __init__(self, mode: ModeKeys, limits: ConfusionLimits) -> None:
        self._mode = mode
        self._limits = limits
        self._matrix: Ints = np.zeros((0, 0), np.int64)
        self._step = -1  # the latest
        self._steps = 0  # of the current block
        self._labels: list[int] = []  # hashes of those of the latest step, by worker
        self._labels_before: list[int] = []  # of the step before it
        # Blocks with their numbers, which are multiples of the stride.
        self._kept: list[tuple[int, MatrixBlock]] = []
        self._stride = 1
        self._closed = 0  # blocks
        self._before = 0  # samples of the latest closed one
        self._lacked: set[ColumnKey] = set()  # columns that it lacked

    def add(self, sample: LabelledClasses, size: int, step: int) -> None:
        """Add samples of at most `size` classes to the current block."""
        size = max(size, len(self._matrix))
        grown = np.pad(self._matrix, (0, size - len(self._matrix)))
        self._matrix = grown + counted(sample, size)
        if step != self._step:
            self._step, self._steps = step, self._steps + 1
            self._labels, self._labels_before = [], self._labels
        self._labels.append(hash(sample.labels.tobytes()))

    @property
    def is_full(self) -> bool:
        """Whether the current block has enough samples to be judged."""
        return 0 < PER_CLASS * len(self._matrix) <= int(self._matrix.sum())

    @property
    def is_whole(self) -> bool:
        """Whether the current block may be judged.

        It must be full. In evaluation, it must be as large as the one before; in training, of
        enough steps. In a run without modes, a step that repeats its labels (boosting) is an
        evaluation.
        """
        if self._mode is ModeKeys.EVAL:
            return self.is_full and int(self._matrix.sum()) >= self._before
        again = self._labels == self._labels_before and self._mode is not ModeKeys.TRAIN
        return self.is_full and (again or self._steps >= MIN_BLOCK_STEPS)

    def judge(self) -> list[tuple[ColumnShare, bool]]:
        """Return the worst shares on and off the diagonal, and whether the condition is met.

        Empty before there are enough blocks.
        """
        if self._closed + 1 < MIN_BLOCKS:
            return []
        current = block(self._matrix, literal=False)
        met = self._lacking(current) & self._lacked
        return [(column, key in met) for key, column in worst(current, self._limits, met).items()]

    def close(self) -> None:
        """Start the next block."""
        current = block(self._matrix, literal=False)
        self._lacked = self._lacking(current)
        if self._closed % self._stride == 0:
            self._kept.append((self._closed, current))
        self._closed += 1
        # The latest half only moves forward.
        self._kept = [item for item in self._kept if item[0] >= (self._closed + 1) // 2]
        if len(self._kept) > MAX_BLOCKS:
            self._stride *= 2
            self._kept = [item for item in self._kept if item[0] % self._stride == 0]
        self._before = int(self._matrix.sum())
        self._matrix = np.zeros_like(self._matrix)
        self._steps = 0

    def _lacking(self, current: MatrixBlock) -> set[ColumnKey]:
        """Return the shares that were bad over the latest half and will stay bad for as long."""
        half = [old_block for number, old_block in self._kept if number >= (self._closed + 1) // 2]
        if self._closed + 1 < MIN_BLOCKS or current.has_lost_errors_since(half[0]):
            return set()
        remaining = min(1.0, current.wrong / half[0].wrong) if half[0].wrong else 1.0
        return {
            key
            for key, column in current.columns.items()
            if all(self._is_bad(old_block, key) for old_block in (*half, current))
            and not current.is_noise(column)
            and self._limits.excess(
                column, column.extrapolated(half[0].columns[key], remaining**AS_LONG_AGAIN)
            )
            > 0
        }

    def _is_bad(self, matrix_block: MatrixBlock, key: ColumnKey) -> bool:
        column = matrix_block.columns.get(key)
        return column is not None and self._limits.excess(column, column.bound) > 0


def worst(
    matrix_block: MatrixBlock, limits: ConfusionLimits, preferred: set[ColumnKey]
) -> dict[ColumnKey, ColumnShare]:
    """Return the worst shares on and off the diagonal, preferring those of `preferred`."""

    def rank(key: ColumnKey) -> tuple[bool, float]:
        column = matrix_block.columns[key]
        return key in preferred, limits.excess(column, column.bound)

    sides = [[key for key in matrix_block.columns if key[1] is side] for side in (True, False)]
    return {
        key: matrix_block.columns[key] for key in (max(side, key=rank) for side in sides if side)
    }
