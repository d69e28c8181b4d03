"""RowSteps: one axis of steps for the rows of a run, whatever counts them."""

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from rule_core.reading.source_record import is_step

NO_CLASS: Final = 5  # of rows that nothing counts
# What counts rows, the preferred first, with classes: counters of one class are on one axis. The
# first one of a row is its step; the epoch says when a counter that restarts was begun anew.
COUNTERS: Final = (
    (0, "step, steps, schritt, étape, paso, шаг"),
    (0, "global_step, global_steps"),
    (0, "_step"),
    (0, "current_step, current_steps"),
    (0, "num_update, num_updates"),
    (0, "training_iteration"),
    (1, "total_timesteps, timesteps_total, num_env_steps, env_step, env_steps, timesteps"),
    (1, "frame, frames, env_frames"),
    (0, "iteration, iterations, iter, iters, it, itr, niter, n_iter, global_iter, tick, #"),
    (0, "update, updates, up, upd"),
    (0, "batch_idx, batch_index, minibatch"),
    (0, "batch, batches"),
    (2, "samples, tokens"),
    (3, "round, rounds, gen, generation, episode, episodes"),
    (3, "timestep"),
    (4, "epoch, epochs, ep, epoche, époque, época, epoca, эпоха"),
)
_RANKS: Final = {name: rank for rank, row in enumerate(COUNTERS) for name in row[1].split(", ")}
_CLASSES: Final = (*(row[0] for row in COUNTERS), NO_CLASS)
UNNAMED: Final = _RANKS["batch"]  # the rank of a count without a name, such as [20/100]
EPOCH: Final = _RANKS["epoch"]
_ITERATION: Final = _RANKS["iteration"]
NO_COUNTER: Final = len(COUNTERS)
ROW: Final = "row"  # the name of a step column that counts rows
_PREFIXES: Final = re.compile(r"^(?:(?:trainer|train|time|progress|training)/)?(?:train(?:ing)?_)?")
_FRACTION: Final = re.compile(r"\s*(\d+)\s*/\s*(\d+)\s*")
_ROUNDED: Final = re.compile(
    r"\s*(?P<number>\d+(?:\.(?P<decimals>\d+))?)(?:e\+?(?P<exponent>\d{1,2})|(?P<unit>[kKM]))\s*"
)
_EXPONENTS: Final = {"k": 3, "K": 3, "M": 6}
_MOST_EPOCHS: Final = 10_000  # whose first steps are kept
_FIRM_ROWS: Final = 3  # after which epochs go on counting beside a count without a name


class Count(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    name
        The name of the counter; "" if it has none.
    rank
        The position of the name in `COUNTERS`.
    value
        What it counts, from 0 or 1.
    total
        Where it ends; 0 if unknown.
    rounding
        By how much the value may be off, since it was printed as ``1K`` or ``1.01e+03``.
    """

    name: str
    rank: int
    value: float
    total: int = 0
    rounding: float = 0.0


@lru_cache(maxsize=4096)
def counter_rank(name: str) -> int:
    """Return the position of a name in `COUNTERS`; `NO_COUNTER` if it counts nothing.

    >>> counter_rank("Step") == counter_rank("train/step"), counter_rank("loss") == NO_COUNTER
    (True, True)
    """
    plain = re.sub(r"[ -]+", "_", name.strip().lower()).removesuffix("_sampled")
    plain = plain.removesuffix("_lifetime")
    bare = _PREFIXES.sub("", plain)
    return _RANKS.get(plain, _RANKS.get(bare, NO_COUNTER))


def rounded_number(written: str) -> tuple[float, float] | None:
    """Return a number such as ``1K`` or ``1.01e+03``, and by how much it may be off.

    >>> rounded_number("1.01e+03"), rounded_number("26K"), rounded_number("260")
    ((1010.0, 5.0), (26000.0, 500.0), None)
    """
    match = None if written.isdigit() else _ROUNDED.fullmatch(written.replace(",", ""))
    if match is None:
        return None
    exponent = int(match["exponent"] or _EXPONENTS[match["unit"]])
    rounding = 0.5 * 10.0 ** (exponent - len(match["decimals"] or ""))
    return float(f"{match['number']}e{exponent}"), rounding


def to_count(name: str, value: object, rank: int | None = None) -> Count | None:
    """Return the count that a cell says, such as ``3`` or ``"3/60"``; None if it says none."""
    rank = counter_rank(name) if rank is None else rank
    if isinstance(value, str):
        match = _FRACTION.fullmatch(value)
        if match:
            return Count(name, rank, int(match[1]), int(match[2]))
        if rounded := rounded_number(value):
            return Count(name, rank, rounded[0], rounding=rounded[1])
        try:
            value = float(value.replace(",", ""))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return Count(name, rank, value) if value < float("inf") else None


class RowSteps:
    """Gives the rows of one file their steps, all along one axis.

    A row that has the best counter so far is at that count. If the counter goes back while the
    epoch grows, it counts within the epoch, and the epochs before are added. Any other row follows
    the latest one. Without a counter, training rows are counted from 0. Beside `episode`, `steps`
    is its length. Nothing depends on later rows, so that a file that grows is read as it would be
    at its end.
    """

    def __init__(self) -> None:
        self.name = ""
        self._last: int | None = None  # step
        self._epoch: float | None = None  # the latest
        self._fraction = 0.0  # the latest epoch with a fraction
        self._rows_of_epochs = 0  # that epochs alone counted
        self._begin(NO_COUNTER)

    def _begin(self, rank: int) -> None:
        """Count by another counter from now on."""
        self.rank = rank
        self._rows_count = False  # whether rows are counted, since an epoch had a fraction
        self._base = 0
        self._inner: Count | None = None  # the last count of the counter
        self._inner_epoch: float | None = None
        self._first = self._largest = self._interval = 0
        self._lengths: set[int] = set()
        self._bases: dict[float, int] = {}

    @property
    def last(self) -> int:
        """The step of the latest row; -1 before the first."""
        return -1 if self._last is None else self._last

    @property
    def has_counter(self) -> bool:
        """Whether a counter was found."""
        return self.rank < NO_COUNTER

    def step_of(self, counts: Sequence[Count], *, is_training: bool = True) -> int:
        """Return the step of a row.

        Parameters
        ----------
        counts
            Its counters, and those that the lines before it announced; fractions are ignored.
        is_training
            Whether it has numbers of the training, and not of an evaluation only.
        """
        if len(counts) == 1 and self._epoch is None and self._goes_on(counts[0]):
            self._last = self._counted(counts[0])
            return self._last
        whole = [count for count in counts if is_step(count.value)]
        fraction = max((count.value for count in counts if count not in whole), default=0.0)
        if fraction and self.rank >= EPOCH and all(count.rank == EPOCH for count in counts):
            self._rows_count = True
        epochs = [] if self._rows_count else [c.value for c in whole if c.rank == EPOCH]
        self._epoch = epochs[0] if epochs else self._epoch
        inner = _preferred([count for count in whole if count.rank != EPOCH])
        if epochs and inner and inner.rank == UNNAMED and self._rows_of_epochs >= _FIRM_ROWS:
            inner = None  # a bar that was printed into the line
        if inner is not None and _CLASSES[inner.rank] <= _CLASSES[self.rank]:
            before = self._inner
            inner = self._unrounded(inner)
            step = self._counted(inner)
            is_ahead = before is not None and inner.value > before.value
            self._last = max(step, self.last) if is_ahead else step
        elif self.rank < EPOCH:
            # Several rows in an epoch are told apart by its fraction.
            is_next = is_training and fraction > self._fraction
            self._last = self._following(is_training=is_training) + is_next
        elif epochs:
            self.rank, self.name = EPOCH, "epoch"
            self._rows_of_epochs += 1
            self._last = int(epochs[0])
        elif self._last is None:
            self._last = 0
        elif is_training and (self.rank == NO_COUNTER or self._rows_count):
            self._last += 1
        if is_training:
            self._fraction = max([fraction, *epochs]) or self._fraction
        return self._last or 0

    def _goes_on(self, count: Count) -> bool:
        """Return whether a count is the next one of the counter, as nearly all are."""
        before = self._inner
        return (
            before is not None
            and count.rank == before.rank
            and not count.rounding
            and count.value > max(before.value, self.last - self._base)
            and is_step(count.value)
        )

    def _unrounded(self, count: Count) -> Count:
        """Return a count as it was before it was rounded, if its interval stays the same."""
        if not count.rounding or self._inner is None or self._interval <= 0:
            return count
        value = self._inner.value + self._interval
        return count._replace(value=value) if abs(value - count.value) <= count.rounding else count

    def _counted(self, inner: Count) -> int:
        """Return the step of a row that has the counter."""
        if _CLASSES[inner.rank] < _CLASSES[self.rank]:
            self._begin(inner.rank)
            self.name = inner.name
        value, before = int(inner.value), self._inner
        if before is not None and value <= before.value:
            self._go_back(value, before)
        elif before is not None:
            self._interval = value - int(before.value)
        if before is None:
            self._first = value
            if not self._base and self._epoch is not None:  # perhaps the run goes on
                self._base = max(int(self._epoch) - 1, 0) * inner.total
        self._inner, self._inner_epoch = inner, self._epoch
        self._largest = max(self._largest, value)
        if self._epoch is not None and len(self._bases) < _MOST_EPOCHS:
            self._bases.setdefault(self._epoch, self._base)
        return self._base + value

    def _go_back(self, value: int, before: Count) -> None:
        """Decide what it means that the counter did not grow."""
        epoch, last = self._epoch, self._inner_epoch
        has_grown = self._largest > self._first and before.rank != UNNAMED
        if value == before.value and has_grown:
            return  # a count of the run, at the end of an epoch and the start of the next
        if epoch is not None and last is not None and epoch > last:
            length = before.total
            if length < self._largest:
                length = self._largest + (self._interval if not self._first else 0)
            self._lengths.add(length)
            self._base += length * (int(epoch - last) if before.total else 1)
        elif epoch is not None and last is not None and epoch < last:
            self._base = self._bases.get(epoch, 0)  # resumed at an earlier epoch
            self._bases = {e: base for e, base in self._bases.items() if e <= epoch}
            self._largest = value
        elif last is None and self._is_over(before) and value < before.value:
            self._base += before.total  # a bar for each epoch, which has no number
        elif value < before.value and epoch is None:
            self._base = 0

    @staticmethod
    def _is_over(count: Count) -> bool:
        """Return whether a count without a name, such as that of a bar, has reached its end."""
        return count.rank == UNNAMED and count.value == count.total

    def _following(self, *, is_training: bool) -> int:
        """Return the latest step, or the end of the epoch for an evaluation after its last row."""
        inner = self._inner
        if inner is None or is_training:
            return self._last or 0
        rest = inner.total - int(inner.value)
        is_last = 0 < rest <= self._interval and self._epoch is not None
        return self._base + int(inner.value) + (rest if is_last else 0)

    @property
    def is_bar_over(self) -> bool:
        """Whether the counter is that of a bar that has reached its end, in no known epoch."""
        bar = self._inner
        return bar is not None and self._inner_epoch is None and self._is_over(bar)

    def end_bar(self) -> None:
        """Begin another epoch, since a bar for which `is_bar_over` holds is drawn anew."""
        self._base += self._inner.total if self._inner is not None else 0
        self._inner = None

    def count_rows(self) -> None:
        """Count the rows from now on, since several have the same epoch and nothing else."""
        if self.rank >= EPOCH:
            self.rank, self._rows_count = NO_COUNTER, True

    def decisions(self) -> list[str]:
        """Return how the steps were chosen; see `DecidingSource`."""
        return [] if self._last is None else [self._decision()]

    def _decision(self) -> str:
        if self.rank == NO_COUNTER or (self.rank == EPOCH and self._rows_count):
            return "steps: the number of the row, since nothing counts the rows"
        name = repr(self.name) if self.name else "a count such as [20/100]"
        if not self._base:
            return f"steps: {name}"
        lengths = " or ".join(map(str, sorted(self._lengths)[:3]))
        return f"steps: epoch x {lengths} + {name}, which restarts in each epoch"


def _preferred(counts: Sequence[Count]) -> Count | None:
    """Return the count that is the step of a row; None if there is none.

    With accumulated gradients, several iterations are one step; then it is the iteration.
    """
    best = min(counts, key=lambda count: count.rank, default=None)
    if best is not None and best.name.lower() == "steps":  # perhaps the length of an episode
        best = next((count for count in counts if count.name.lower() == "episode"), best)
    if best is not None and best.rank == 0:
        alike = (count for count in counts if count.rank in {0, _ITERATION})
        return max(alike, key=attrgetter("value"))
    return best
