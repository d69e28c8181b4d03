"""Matrices: the confusion matrices of a run, block by block, and which of their shares stay bad."""

from typing import Final, NamedTuple, Self

import numpy as np

from builtin_rules.classes import Classes, Ints
from builtin_rules.shares import lower, upper
from smdebug.core.modes import ModeKeys

# Why these, and how they judge: docs/decisions/0015-confusion.md.
MOST_CLASSES: Final = 1000
PER_CLASS: Final = 15  # samples of a block, at least
STEPS: Final = 10  # of a block of training, at least
BLOCKS: Final = 5  # from so many on there is a latest half to judge
KEPT: Final = 32  # blocks of the latest half; when there are more every other one is dropped
STILL_LEARNING: Final = 0.8  # of the errors are left after half the run: fewer, and it learns
AS_LONG_AGAIN: Final = 2  # halves of the run so far


class Column(NamedTuple):
    """Which share of the samples that are predicted as a class has a label.

    Attributes
    ----------
    label, predicted
        The classes; the same on the diagonal.
    hits, total
        Samples with the label, and all; of a class that is never predicted those labelled with it.
    bound
        The share, or what it is at most (on the diagonal) or at least (beside it).
    empty
        Whether the class is never predicted.
    """

    label: int
    predicted: int
    hits: int
    total: int
    bound: float
    empty: bool = False

    @property
    def on_diagonal(self) -> bool:
        """Whether it is the share of right predictions."""
        return self.label == self.predicted

    @property
    def share(self) -> float:
        """The share that was counted."""
        return self.hits / self.total

    @property
    def note(self) -> str:
        """One sentence for people."""
        if self.empty:
            return f"Class {self.label} is never predicted: {self.total} samples are labelled so."
        whose = "right" if self.on_diagonal else f"labelled {self.label}"
        return f"Predictions of class {self.predicted}: {self.hits} of {self.total} are {whose}."

    def hoped(self, before: Self, factor: float) -> float:
        """Return the bound after as long again, with as much gain as since `before`.

        `factor` is the share of all errors that will be left.
        """
        gain = abs(self.share - before.share)
        if self.on_diagonal:
            gain = gain if self.share > before.share else 0.0
            return 1.0 - (1.0 - min(1.0, self.bound + gain)) * factor
        gain = gain if self.share < before.share else 0.0
        return max(0.0, self.bound - gain) * factor


class Limits(NamedTuple):
    """The smallest accepted share on the diagonal, and the largest beside it."""

    diagonal: float
    beside: float

    def of(self, column: Column) -> float:
        """Return the limit of a column."""
        return self.diagonal if column.on_diagonal else self.beside

    def excess(self, column: Column, value: float) -> float:
        """Return by how much a share is beyond the limit of a column; above 0 it is bad."""
        if column.on_diagonal:
            return self.diagonal - value
        return value - self.beside


Key = tuple[int, bool]  # the class that is predicted; whether it is the diagonal


class Block(NamedTuple):
    """The columns of a matrix, and the share of wrong predictions."""

    columns: dict[Key, Column]
    wrong: float


def counted(found: Classes, size: int) -> Ints:
    """Return how often each label (row) was predicted as each class: ``(size, size)``."""
    cells = np.bincount(found.labels * size + found.predictions, minlength=size * size)
    return cells.reshape(size, size)


def block(matrix: Ints, *, literal: bool) -> Block:
    """Return the shares of a matrix, not empty: on the diagonal, and the largest beside it.

    A class that is labelled and never predicted has none of its labels on the diagonal. With
    `literal` it has no share, and bounds are the shares themselves.
    """
    size, diagonal = len(matrix), matrix.diagonal()
    totals, labelled = matrix.sum(axis=0).tolist(), matrix.sum(axis=1).tolist()
    beside = matrix - np.diag(diagonal)
    columns: dict[Key, Column] = {}
    for at, label in enumerate(beside.argmax(axis=0).tolist()):
        hits, total = int(beside[label, at]), totals[at]
        if hits:
            bound = hits / total if literal else lower(hits, total, size * (size - 1))
            columns[at, False] = Column(label, at, hits, total, bound)
        total = totals[at] or (0 if literal else labelled[at])
        if total:
            hits = int(diagonal[at])
            bound = hits / total if literal else upper(hits, total, size)
            columns[at, True] = Column(at, at, hits, total, bound, empty=not totals[at])
    return Block(columns, 1.0 - float(diagonal.sum() / matrix.sum()))


class History:
    """The matrices of one prediction tensor in one mode: the one in hand, and some before it.

    Of the blocks of the latest half at most `KEPT` are remembered; older ones go.
    """

    def __init__(self, mode: ModeKeys, limits: Limits) -> None:
        self._mode = mode
        self._limits = limits
        self._matrix: Ints = np.zeros((0, 0), np.int64)
        self._step = -1  # the latest
        self._steps = 0  # of the block in hand
        self._labels: list[int] = []  # hashes of those of the latest step, by worker
        self._labels_before: list[int] = []  # of the step before it
        self._kept: list[tuple[int, Block]] = []  # with their numbers, multiples of the stride
        self._stride = 1
        self._closed = 0  # blocks
        self._before = 0  # samples of the latest closed one
        self._lacked: set[Key] = set()  # columns that it lacked

    def add(self, found: Classes, size: int, step: int) -> None:
        """Add samples of at most `size` classes to the block in hand."""
        size = max(size, len(self._matrix))
        grown = np.pad(self._matrix, (0, size - len(self._matrix)))
        self._matrix = grown + counted(found, size)
        if step != self._step:
            self._step, self._steps = step, self._steps + 1
            self._labels, self._labels_before = [], self._labels
        self._labels.append(hash(found.labels.tobytes()))

    @property
    def is_full(self) -> bool:
        """Whether the block in hand has enough samples to be judged."""
        return 0 < PER_CLASS * len(self._matrix) <= int(self._matrix.sum())

    @property
    def is_whole(self) -> bool:
        """Whether the block in hand may be judged.

        It is full and, in evaluation, as large as the one before; in training of enough steps. Of
        a run without modes each step is an evaluation if its labels are the same again (boosting).
        """
        if self._mode is ModeKeys.EVAL:
            return self.is_full and int(self._matrix.sum()) >= self._before
        again = self._labels == self._labels_before and self._mode is not ModeKeys.TRAIN
        return self.is_full and (again or self._steps >= STEPS)

    def judge(self) -> list[tuple[Column, bool]]:
        """Return the worst column on the diagonal and beside it, and whether they meet the limits.

        Empty while there are too few blocks.
        """
        if self._closed + 1 < BLOCKS:
            return []
        now = block(self._matrix, literal=False)
        met = self._lacking(now) & self._lacked
        return [(column, key in met) for key, column in worst(now, self._limits, met).items()]

    def close(self) -> None:
        """Begin the next block."""
        now = block(self._matrix, literal=False)
        self._lacked = self._lacking(now)
        if self._closed % self._stride == 0:
            self._kept.append((self._closed, now))
        self._closed += 1
        # The latest half of a later block begins later still.
        self._kept = [one for one in self._kept if one[0] >= (self._closed + 1) // 2]
        if len(self._kept) > KEPT:
            self._stride *= 2
            self._kept = [one for one in self._kept if one[0] % self._stride == 0]
        self._before = int(self._matrix.sum())
        self._matrix = np.zeros_like(self._matrix)
        self._steps = 0

    def _lacking(self, now: Block) -> set[Key]:
        """Return the columns that were bad for the latest half, and are no better after as much."""
        half = [one for number, one in self._kept if number >= (self._closed + 1) // 2]
        if self._closed + 1 < BLOCKS or now.wrong < STILL_LEARNING * half[0].wrong:
            return set()
        left = min(1.0, now.wrong / half[0].wrong) if half[0].wrong else 1.0
        return {
            key
            for key, column in now.columns.items()
            if all(self._is_bad(one, key) for one in (*half, now))
            and self._limits.excess(column, column.hoped(half[0].columns[key], left**AS_LONG_AGAIN))
            > 0
        }

    def _is_bad(self, one: Block, key: Key) -> bool:
        column = one.columns.get(key)
        return column is not None and self._limits.excess(column, column.bound) > 0


def worst(found: Block, limits: Limits, among: set[Key]) -> dict[Key, Column]:
    """Return the worst column on the diagonal and that beside it: of those `among`, or of all."""

    def rank(key: Key) -> tuple[bool, float]:
        column = found.columns[key]
        return key in among, limits.excess(column, column.bound)

    sides = [[key for key in found.columns if key[1] is side] for side in (True, False)]
    return {key: found.columns[key] for key in (max(side, key=rank) for side in sides if side)}
