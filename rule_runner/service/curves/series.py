"""SeriesCache: the curves of trials for pages and clients, in bounded time and memory."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

import msgspec

from rule_core.clock import Clock, SystemClock
from rule_core.failures import attempt
from rule_core.sources.options import DEFAULT
from rule_runner.errors import RuleRunnerError
from rule_runner.escape import printable
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import WatchState
from rule_runner.service.curves.measured import MeasuredCurve, MeasuredCurves, read_measured
from rule_runner.service.curves.points import SeriesItem
from rule_runner.service.curves.profile_curves import ProfileCurves
from rule_runner.service.curves.reader import CurveReader
from rule_runner.service.curves.trial_curves import TrialCurves

T = TypeVar("T")

TRIALS_KEPT: Final = 16
READ_S: Final = 0.5  # of a trial, for one answer
READERS: Final = 2  # trials that are read at the same time
WAIT_S: Final = 1.0  # for other readers
PAUSE_S: Final = 0.25  # between two looks at a trial
POINTS: Final = 600
MAX_POINTS: Final = 4000
NO_CURVES: Final = MeasuredCurves((), 0)


class SeriesQuery(msgspec.Struct, frozen=True):
    """What to return of a trial's curves.

    Attributes
    ----------
    names
        Only these curves; all if empty.
    after
        Only the steps after this one.
    points
        About how many points of each curve.
    """

    names: tuple[str, ...] = ()
    after: int | None = None
    points: int = POINTS


class SeriesPage(msgspec.Struct, frozen=True):
    """The curves of a trial.

    Attributes
    ----------
    last_step
        The last step that was read, or in a profile the time; -1 if none was.
    complete
        Whether the answer has everything that is saved now. If not, ask again.
    truncated
        How many curves were left out.
    problem
        Why there are no curves, or no new points, in a sentence; "" otherwise.
    """

    series: list[SeriesItem]
    last_step: int
    complete: bool
    truncated: int
    problem: str


class _CachedTrial:
    """What is known of a trial's curves; used by one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.curves: CurveReader | None = None
        self.measured = NO_CURVES
        self.begun_at = self.updated_at = -math.inf  # of the last look
        self._problem = ""
        self._measured_problem = ""
        self._measured_at: tuple[str, float | None] | None = None

    def read_measured(self, trial: TrialRecord) -> None:
        """Read the measurements of rules if the evaluation has ended since."""
        ended = (trial.state, trial.ended_at)
        if ended != self._measured_at:
            self._measured_at = ended
            self.measured, self._measured_problem = _result_of(
                lambda: read_measured(trial.output), NO_CURVES
            )

    def read(
        self, trial: TrialRecord, open_curves: Callable[[str], CurveReader], seconds: float
    ) -> None:
        """Read what is new; problems become sentences."""

        def read() -> None:
            if self.curves is None:
                self.curves = open_curves(trial.path)
            self.curves.read(seconds, ended=trial.state is not WatchState.RUNNING)

        _, self._problem = _result_of(read, None)
        if self._problem and self.curves is not None:
            self.curves.complete = True
            if not self.curves.has_points:  # what it is may be recognised later
                self.curves = None

    @property
    def problem(self) -> str:
        """Why there are no curves, or not all, in a sentence; "" otherwise."""
        damage = "" if self.curves is None else self.curves.problem
        return self._problem or self._measured_problem or printable(damage)


_WHOLE: Final = SeriesQuery()


class SeriesCache:
    """The curves of the trials that were looked at last; safe to use from several threads.

    Parameters
    ----------
    clock
        Bounds the time of each answer.
    profiles
        Whether the curves are those of profiles, over time, instead of those over steps.

    Attributes
    ----------
    sources
        How to read outputs of other writers.
    """

    def __init__(self, clock: Clock | None = None, *, profiles: bool = False) -> None:
        self._clock = clock or SystemClock()
        self.sources = DEFAULT
        self._profiles = profiles
        self._lock = threading.Lock()
        self._readers = threading.BoundedSemaphore(READERS)
        self._trials: OrderedDict[tuple[int, str], _CachedTrial] = OrderedDict()

    def page(self, trial: TrialRecord, query: SeriesQuery = _WHOLE) -> SeriesPage:
        """Return the curves of a trial after reading new data for at most `READ_S`.

        A trial that is gone or damaged has no curves, and a problem. If other requests read for
        too long, the result is what has been read.
        """
        asked_at = self._clock.monotonic()
        cached = self._cached(trial)
        if not cached.lock.acquire(timeout=WAIT_S):
            return SeriesPage([], -1, complete=False, truncated=0, problem="")
        try:
            is_new = self._update(cached, trial, asked_at)
            page = _page(cached, query)
        finally:
            cached.lock.release()
        return page if is_new else msgspec.structs.replace(page, complete=False)

    def _update(self, cached: _CachedTrial, trial: TrialRecord, asked_at: float) -> bool:
        """Read new data, and return whether it is what there was when it was asked for."""
        if self._clock.monotonic() - cached.updated_at < PAUSE_S:
            return cached.begun_at >= asked_at  # another request read meanwhile
        if not self._readers.acquire(timeout=WAIT_S):
            return False
        begun_at = self._clock.monotonic()
        try:
            if not self._profiles:
                cached.read_measured(trial)
            if self._profiles or trial.tensors:
                of_steps = partial(TrialCurves, sources=self.sources)
                open_curves = ProfileCurves if self._profiles else of_steps
                cached.read(trial, lambda path: open_curves(path, self._clock), READ_S)
        finally:
            self._readers.release()
        cached.begun_at, cached.updated_at = begun_at, self._clock.monotonic()
        return True

    def _cached(self, trial: TrialRecord) -> _CachedTrial:
        key = trial.id, trial.path
        with self._lock:
            cached = self._trials.setdefault(key, _CachedTrial())
            self._trials.move_to_end(key)
            if len(self._trials) > TRIALS_KEPT:
                self._trials.popitem(last=False)
        return cached


def _page(cached: _CachedTrial, query: SeriesQuery) -> SeriesPage:
    curves = cached.curves
    count = min(max(query.points, 2), MAX_POINTS)
    items = [*_measured_items(cached.measured, query, count)]
    if curves is not None:
        items += _trial_items(curves, query, count)
    return SeriesPage(
        series=items,
        last_step=-1 if curves is None else curves.last_step,
        complete=curves is None or curves.complete,
        truncated=cached.measured.left_out + (0 if curves is None else curves.left_out),
        problem=cached.problem,
    )


def _trial_items(curves: CurveReader, query: SeriesQuery, count: int) -> Iterator[SeriesItem]:
    for name, kind, unit, points in curves.items():
        if query.names and name not in query.names:
            continue
        steps, values = points.after(query.after, count)
        if steps:
            since = -math.inf if query.after is None else query.after
            marks = [mark for mark in points.marks if mark.step > since]
            yield SeriesItem(name, kind, unit, steps, values, marks)


def _measured_items(
    measured: MeasuredCurves, query: SeriesQuery, count: int
) -> Iterator[SeriesItem]:
    """Yield the measurements of rules, which exist once they have ended: once, as a whole."""
    if query.after is not None:
        return
    for curve in measured.curves:
        if not query.names or curve.item.name in query.names:
            yield _measured_item(curve, count)


def _measured_item(curve: MeasuredCurve, count: int) -> SeriesItem:
    steps, values = curve.points.after(None, count)
    met = curve.item.met[:count]
    return msgspec.structs.replace(
        curve.item, steps=steps, values=values, marks=curve.points.marks, met=met
    )


def _result_of(read: Callable[[], T], otherwise: T) -> tuple[T, str]:
    """Read something of a trial; return it, or why that failed."""
    return attempt(lambda: (read(), ""), lambda err: (otherwise, _sentence(err)))


def _sentence(err: Exception) -> str:
    """Return why a trial cannot be read."""
    text = printable(" ".join(str(err).split())) or type(err).__name__
    if isinstance(err, RuleRunnerError):
        return text
    return f"The trial cannot be read: {text.rstrip('.')}."
