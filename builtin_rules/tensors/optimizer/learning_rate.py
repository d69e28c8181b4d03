"""LearningRate: a learning rate is zero, negative, jumps, or its schedule does not fit the run."""

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, positive
from builtin_rules.statistics.tensor_selection import LOSSES, TensorKey
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from builtin_rules.statistics.training_scalars import LEARNING_RATES, finite_scalars
from smdebug.rules.extensions import Quantity, Severity

RATE: Final = "rate"
ZERO_SHARE: Final = 1e-6  # of the highest rate; below it a rate counts as zero
MIN_ROWS: Final = 10  # rows for a verdict at the end, or on the end of a schedule
IDLE_SHARE: Final = 0.2  # of the rows; the printed tail of a cosine decay is shorter
TURN_SHARE: Final = 0.1  # of the highest rate: what a rate that has turned reaches again
DIP_SHARE: Final = 0.01  # of the highest rate: what it was below before
TURN_ROWS: Final = 3  # of the rise, which a restart does not have
WARM_UP: Final = 20  # rows in which a rate may jump
LATEST_ROWS: Final = 10
PLATEAUS: Final = 5
PLATEAU_ROWS: Final = 5
MOVED_SHARE: Final = 0.02  # of the highest rate
LEARNED_SHARE: Final = 0.9  # of the first losses
RATE_UNITS: Final = 100  # printing units of the highest rate: three significant digits
SMALLEST_UNITS: Final = 10  # printing units of the smallest positive rate


class _Verdict(NamedTuple):
    limit: float
    note: str
    severity: Severity


@dataclass(slots=True)
class _Rates:
    """The rates of one group; holds a few of them."""

    rows: int = 0
    first: float = 0.0
    highest: float = 0.0
    last: float = 0.0
    zero: int = 0  # latest rows in a row
    # The steps of the first and of the latest row, the smallest distance of two, and the steps of
    # the last row above zero, of the highest, of the last above `TURN_SHARE`, of the lowest since.
    first_step: int = 0
    step: int = 0
    gap: float = math.inf
    moving_step: int = 0
    highest_step: int = 0
    above_step: int = 0
    dip_step: int = 0
    dip: float = math.inf  # the lowest rate since the last one above `TURN_SHARE`
    since_dip: int = 0  # rows
    smallest: float = math.inf  # of the positive ones
    decimals: int = 0  # the most of any rate
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST_ROWS))
    is_noted: bool = False
    is_reported: bool = False  # as zero or negative
    # Plateaus: their number, the length of the current one, the shortest and the longest before.
    plateaus: int = 0
    length: int = 0
    shortest: float = math.inf
    longest: int = 0
    rises: int = 0
    falls: int = 0
    others_move: bool = False

    def add(self, rate: float, step: int) -> None:
        """Add a rate, which was judged before."""
        if self.rows:
            self.gap = min(self.gap, max(1, step - self.step))
        else:
            self.first_step = step
        self.step = step
        if rate > self.highest:
            self.highest_step = step
        if rate < self.dip:
            self.dip, self.dip_step, self.since_dip = rate, step, 0
        self.since_dip += 1
        if self.rows and rate == self.last:
            self.length += 1
        else:
            if self.plateaus > 1:  # the first plateau may be shorter
                self.shortest = min(self.shortest, self.length)
                self.longest = max(self.longest, self.length)
            self.rises += int(self.rows > 0 and rate > self.last)
            self.falls += int(self.rows > 0 and rate < self.last)
            self.plateaus, self.length = self.plateaus + 1, 1
        if not self.rows:
            self.first = rate
        self.highest = max(self.highest, rate)
        if rate > 0:
            self.smallest = min(self.smallest, rate)
        self.decimals = max(self.decimals, _decimals(rate))
        self.zero = self.zero + 1 if rate <= ZERO_SHARE * self.highest else 0
        self.moving_step = self.moving_step if self.zero else step
        self.last = rate
        self.rows += 1
        self.latest.append(rate)

    def may_be_rounded(self) -> bool:
        """Return whether the rates have so few digits that zero may be a small rate."""
        unit = 10.0**-self.decimals
        return (
            self.highest < (RATE_UNITS - 0.5) * unit
            or self.smallest < (SMALLEST_UNITS - 0.5) * unit
        )

    def idle_rows(self) -> float:
        """Return for how many rows the rate has been zero, with those that were not saved."""
        return (self.step - self.moving_step) / self.gap if self.zero < self.rows > 1 else 0.0

    def is_idle(self) -> bool:
        """Return whether the rate has been zero for a large part of the run, at the end."""
        return self.idle_rows() > IDLE_SHARE * (1 + (self.step - self.first_step) / self.gap)

    def turns(self) -> bool:
        """Return whether a rate that came down to next to nothing rises as it fell.

        A restart rises at once. A cyclic schedule rose like that before it fell.
        """
        if self.last < TURN_SHARE * self.highest:
            return False
        fell, rises = self.dip_step - self.above_step, self.step - self.dip_step
        rose, came_down = self.highest_step - self.first_step, self.dip_step - self.highest_step
        turned = (
            self.dip <= DIP_SHARE * self.highest
            and self.since_dip > TURN_ROWS
            and fell <= 2 * rises <= 4 * fell
            and 2 * rose < came_down
        )
        self.above_step, self.dip = self.step, math.inf
        return turned

    def is_continued(self) -> bool:
        """Return whether more steps precede the rows than they span: the run was resumed."""
        return self.first_step > self.step - self.first_step

    def is_by_epoch(self) -> bool:
        """Return whether the rate changed at regular intervals of many rows, in one direction."""
        return (
            self.plateaus >= PLATEAUS
            and min(self.rises, self.falls) == 0
            and self.shortest >= PLATEAU_ROWS
            and max(self.longest, self.length) - self.shortest <= 1
        )


class LearningRate(DeclaredRule):
    """Met when a learning rate is zero or negative, jumps up, or its schedule misses the run.

    A row is a saved step of mode TRAIN, or without a mode, that has the rate. A rate below a
    millionth of the highest one so far counts as zero. The condition is met if

    - a rate is negative (error);
    - a rate is zero in the first `patience` rows, or in all rows of a run of at least 10 (error);
    - a rate has been zero for at least 10 rows and more than 20 % of all rows, after it was higher:
      the schedule has ended, the training has not (warning). Where rows are further apart than
      others, those in between count as well;
    - a rate that came down to 1 % of the highest one rises again, as slowly as it fell: the
      schedule, such as a half cosine, was stepped beyond its end (warning);
    - after the first 20 rows, a rate is at least `jump` times the row before and the highest rate
      of all rows before, unless it rose within the last 10 rows (warning);
    - at the end of the run, the rate has changed only in steps of the same number of rows, at least
      five times five rows, and has either fallen by less than 2 % in all or only risen: its
      schedule counts batches, but is stepped once an epoch (warning). A rate that only rises is a
      note where the loss has clearly fallen, since the warm-up may be as long as the run. A run
      that was resumed in the second half of its steps is not judged by this.

    A rate of zero is only a note in a group beside others that are not zero, since its parameters
    are frozen, and where the loss has clearly fallen meanwhile, since the log then has too few
    digits. The end of a schedule is a note, too, if the log may have rounded to zero: if the
    highest rate has fewer than three digits down to the last decimal place of any rate, or the
    smallest positive rate is less than ten units of that place. A language model whose rate is
    highest in its first rows has no warm-up: a note. A rate of zero or below has recovered when it
    is above, or such a note explains it. NaN and infinity are left out. Each group and worker is
    judged by itself.
    """

    READS = "the collection learning_rates: values of one element; and the collection losses."
    patience = count("Rows from the first one on in which a rate may be zero.", 40, "rows")
    jump = positive("How many times the highest rate so far a jump is.", 10.0, "times")
    QUANTITIES = (Quantity(RATE, "learning rate", worse="below"),)

    required_inputs = (LEARNING_RATES,)

    def _prepare(self) -> None:
        self._groups: dict[TensorKey, _Rates] = {}
        self._first_losses: list[float] = []
        self._losses: deque[float] = deque(maxlen=LATEST_ROWS)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the learning rates of global step `step`."""
        trial = self.base_trial
        self._add_losses(finite_scalars(trial, step, LOSSES).values())
        rates = finite_scalars(trial, step, LEARNING_RATES)
        if not rates:
            return self.not_judged("no learning rate of training at this step")
        met = [self._judge(step, key, rate, rates) for key, rate in rates.items()]
        return any(met)

    def invoke_at_end(self, step: int) -> bool:
        """Judge the schedules as a whole, at the last global step `step`."""
        met = [
            self._report(step, key, group.last, verdict)
            for key, group in self._groups.items()
            if group.rows >= MIN_ROWS
            for verdict in self._at_end(group)
        ]
        return any(met)

    def _add_losses(self, losses: Collection[float]) -> None:
        if losses:
            mean = sum(losses) / len(losses)
            self._losses.append(mean)
            if len(self._first_losses) < LATEST_ROWS:
                self._first_losses.append(mean)

    def _judge(
        self, step: int, key: TensorKey, rate: float, rates: Mapping[TensorKey, float]
    ) -> bool:
        group = self._groups.setdefault(key, _Rates())
        is_jump = self._is_jump(group, rate)
        before = group.highest
        group.add(rate, step)
        group.others_move = any(
            other > 0 for others, other in rates.items() if others != key and others[1] == key[1]
        )
        verdicts = [*self._at_row(group)]
        if rate < 0:
            verdicts.append(_Verdict(0.0, "A negative rate climbs the loss.", Severity.ERROR))
        if is_jump:
            note = f"A jump to {rate / before:.3g} times the highest rate before."
            verdicts.append(_Verdict(self.jump * before, note, Severity.WARNING))
        if not verdicts:
            self.record(key, step, RATE, rate, 0.0, met=False)
        lasts = any(verdict.severity is not Severity.NOTE for verdict in verdicts)
        if group.is_reported and (not group.zero or (verdicts and not lasts)):
            group.is_reported = False
            self.found(step, *key, recovers=True)
        met = [self._report(step, key, rate, verdict) for verdict in verdicts]
        return any(met)

    def _is_jump(self, group: _Rates, rate: float) -> bool:
        return (
            group.rows >= WARM_UP
            and group.highest > 0
            and rate >= self.jump * group.highest
            and group.latest[0] >= group.last
        )

    def _at_row(self, group: _Rates) -> Iterator[_Verdict]:
        """Yield what is wrong with a group after its latest row."""
        if group.turns():
            since = group.dip_step
            note = f"It rises again since step {since}: its schedule is shorter than the run."
            yield _Verdict(TURN_SHARE * group.highest, note, Severity.WARNING)
        if group.zero == group.rows >= self.patience:
            yield self._zero(group, "Zero in all rows so far.")
        elif group.idle_rows() >= MIN_ROWS and group.is_idle():
            note = f"Zero for {group.zero} of {group.rows} rows: the schedule has ended."
            severity = Severity.NOTE if group.others_move else Severity.WARNING
            if group.may_be_rounded():
                note = f"{note[:-1]}, or is printed with too few digits."
                severity = Severity.NOTE
            yield _Verdict(ZERO_SHARE * group.highest, note, severity)
        elif group.rows == WARM_UP and group.first == group.highest:
            kind = training_kind(self.base_trial)
            if kind is TrainingKind.LANGUAGE_MODEL:
                yield _Verdict(0.0, "A language model without warm-up.", Severity.NOTE)

    def _at_end(self, group: _Rates) -> Iterator[_Verdict]:
        """Yield what is wrong with the whole schedule of a group."""
        if group.zero == group.rows < self.patience:
            yield self._zero(group, "Zero in all rows.")
        elif MIN_ROWS <= group.zero < group.rows and not group.is_idle():
            note = f"Zero in the last {group.zero} of {group.rows} rows."
            yield _Verdict(ZERO_SHARE * group.highest, note, Severity.NOTE)
        if not group.is_by_epoch() or group.is_continued():
            return
        if group.falls and group.last > (1.0 - MOVED_SHARE) * group.highest:
            note = f"It moved {group.falls} times, but hardly: its schedule is stepped too rarely."
            yield _Verdict((1.0 - MOVED_SHARE) * group.highest, note, Severity.WARNING)
        elif group.rises:
            note = "Still warming up: its schedule is stepped too rarely."
            severity = Severity.NOTE if self._has_learned() else Severity.WARNING
            yield _Verdict(group.last, note, severity)

    def _zero(self, group: _Rates, note: str) -> _Verdict:
        if group.others_move:
            return _Verdict(0.0, f"{note} Its parameters are frozen.", Severity.NOTE)
        if self._has_learned():
            note = f"{note} The loss falls: the log has too few digits."
            return _Verdict(0.0, note, Severity.NOTE)
        return _Verdict(0.0, note, Severity.ERROR)

    def _has_learned(self) -> bool:
        """Return whether the latest losses are below nine tenths of the first ones."""
        if len(self._first_losses) < LATEST_ROWS:
            return False
        first = sorted(self._first_losses)[LATEST_ROWS // 2]
        return sorted(self._losses)[LATEST_ROWS // 2] < first - (1.0 - LEARNED_SHARE) * abs(first)

    def _report(self, step: int, key: TensorKey, rate: float, verdict: _Verdict) -> bool:
        """Record a verdict; of notes, the first of each group."""
        group, (limit, note, severity) = self._groups[key], verdict
        is_note = severity is Severity.NOTE
        is_new = not (is_note and group.is_noted)
        group.is_noted |= is_note
        group.is_reported |= bool(group.zero) and not is_note
        return self.record(key, step, RATE, rate, limit, met=is_new, note=note, severity=severity)


def _decimals(rate: float) -> int:
    """Return how many decimal places a rate has.

    >>> _decimals(0.0012), _decimals(1e-5), _decimals(30.0)
    (4, 5, 0)
    """
    exponent = Decimal(repr(rate)).normalize().as_tuple().exponent
    return max(0, -int(exponent))
