"""ProfileCurves: the curves of a profile over time, read file by file as it grows."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from rule_core.clock import Clock
from rule_core.profiler.files.constants import PYTHONTIMELINE_SUFFIX
from rule_core.profiler.files.file_names import SystemFile, TraceFile
from rule_core.profiler.system.columns import parse_system_metrics, pieces_of
from rule_core.profiler.traces.files import events_of
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_runner.loading.trials import open_profiler_trial, reject_parent
from rule_runner.service.curves.machine_use import CurveKey, MachineUse, ProfileKind, UseCurve
from rule_runner.service.curves.phase_times import PHASES, PhaseTimes, StepTime
from rule_runner.service.curves.points import CurveItem, Points, of_even_groups
from rule_runner.service.curves.reader import CurveReader

POINTS_KEPT: Final = 1024  # of a curve
CURVES_KEPT: Final = 16  # of a kind
FILE_BYTES: Final = 64 << 20  # larger files are left out
TRACE_BYTES: Final = 32 << 20  # of all traces of torch.profiler together
FILE_POINTS: Final = 120  # of a curve in one file: a minute at 500 ms is kept as it is
LATE_MS: Final = 180_000  # a curve that is further behind is not waited for
UNITS: Final = {
    ProfileKind.STEP_TIME: "s",
    ProfileKind.PHASE: "s",
    ProfileKind.DISK: "B/s",
    ProfileKind.NETWORK: "B/s",
}
_KINDS: Final = tuple(ProfileKind)
_LARGE: Final = (
    f"It is larger than {FILE_BYTES >> 20} MiB and left out of the charts; rules judge it."
)
_TRACES_LARGE: Final = (
    f"Together they are larger than {TRACE_BYTES >> 20} MiB and not drawn here; rules judge them, "
    "and the profiler report has their charts."
)


class ProfileCurves(CurveReader):
    """How a training used its machines, and how long its steps and their phases took.

    The steps of its curves are times, in milliseconds since the epoch.

    Parameters
    ----------
    path
        The profiler trial.
    clock
        Bounds the reading.

    Attributes
    ----------
    complete
        Whether everything that is saved now has been read; in S3, that was saved at the last look.

    Raises
    ------
    TrialError
        If there is no trial.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        super().__init__(clock)
        self._trial = open_profiler_trial(path, None, patience=self._waits)
        self._files = self._trial.source.files
        self._use = MachineUse()
        self._phases: dict[str, PhaseTimes] = {}
        self._points: dict[CurveKey, Points] = {}
        self._left_out: set[CurveKey] = set()
        self._counts = dict.fromkeys(_KINDS, 0)
        self._unread: list[tuple[int, str, SystemFile | TraceFile]] = []
        self._sizes: dict[str, int] = {}  # of files that may grow; 0 of the others

    @property
    def problem(self) -> str:
        """What could not be read, in a sentence; "" if there is nothing."""
        texts = self._trial.problems
        more = f" Files with other problems: {len(texts) - 1:,}." if len(texts) > 1 else ""
        return f"{texts[0]}{more}" if texts else ""

    @property
    def left_out(self) -> int:
        """The number of curves beyond `CURVES_KEPT` of a kind."""
        return len(self._left_out)

    @property
    def last_step(self) -> int:
        """The time up to which all curves that still grow have been read; -1 before the first."""
        ends = [points.steps[-1] for points in self._points.values()]
        newest = max(ends, default=-1)
        return min((end for end in ends if end >= newest - LATE_MS), default=-1)

    def items(self) -> Iterator[CurveItem]:
        """Yield the curves by kind and name."""
        for key in sorted(self._points, key=_order):
            yield CurveItem(key.name, key.kind, UNITS.get(key.kind, "%"), self._points[key])

    def read(self, seconds: float, *, ended: bool = False) -> None:
        """Read new data for some seconds and one further file; the next call continues.

        Parameters
        ----------
        ended
            Whether the evaluation has ended; profiles need not know.

        Raises
        ------
        TrialError
            If the profile is gone.
        """
        del ended
        self._deadline = self._clock.monotonic() + seconds
        self.complete = False
        is_remote = self._trial.source.is_remote
        is_current = (
            bool(self._unread)
            or self._look(self._trial, is_remote=is_remote)
            or self._ended  # the last look has to do
            or is_remote
        )
        while self._unread:
            if self._clock.monotonic() >= self._deadline:
                return
            self._read(self._unread[0][2])
            heappop(self._unread)  # not before: if its storage is away, it is read again
        self.complete = is_current

    # -- which files to read -----------------------------------------------------------------

    def _refresh(self) -> None:
        """Look for new files, and queue them."""
        store = self._files.store
        if store.bytes_to_convert() > TRACE_BYTES:
            self._files.problems.report("Traces of torch.profiler", _TRACES_LARGE)
        else:
            ended = self._files.has_end_mark()
            self._files.refresh(whole=True, ended=ended)
            self._list()
            self._ended = ended and not store.converts  # further traces may follow
            if not (self._sizes or ended):
                reject_parent(self._trial)

    def _list(self) -> None:
        """Queue the files that are new, or have grown."""
        for files in self._files.system.values():
            for file in files:
                self._queue(file.start_us, file, may_grow=self._may_grow(file))
        for (kind, _), timelines in self._files.traces.items():
            if kind == PYTHONTIMELINE_SUFFIX:
                for timeline in timelines:
                    self._queue(timeline.end_us, timeline)

    def _may_grow(self, file: SystemFile) -> bool:
        """Return whether a file may not be whole: objects in S3 are."""
        return not self._trial.source.is_remote and self._files.is_growing(file)

    def _queue(self, time_us: int, file: SystemFile | TraceFile, *, may_grow: bool = False) -> None:
        size = self._size(file.key) if may_grow else 0
        if self._sizes.get(file.key) != size:
            self._sizes[file.key] = size
            heappush(self._unread, (time_us, file.key, file))

    def _size(self, key: str) -> int:
        try:
            return self._files.store.status(key).size
        except (ObjectNotFoundError, StorageUnavailableError):
            return 0

    # -- reading them ------------------------------------------------------------------------

    def _read(self, file: SystemFile | TraceFile) -> None:
        """Add the content of a file; a file that cannot be read is a problem.

        Raises
        ------
        StorageUnavailableError
            If the storage is away for the moment.
        """
        if self._size(file.key) > FILE_BYTES:
            self._files.problems.report(file.key, _LARGE)
        elif isinstance(file, SystemFile):
            self._read_system(file)
        else:
            self._read_timeline(file)

    def _read_system(self, file: SystemFile) -> None:
        problems = self._files.problems
        try:
            columns = parse_system_metrics(pieces_of(self._files.store, file.key), self._use.series)
        except (ObjectNotFoundError, StorageUnavailableError) as err:
            if getattr(err, "transient", False):
                raise
            problems.report(file.key, str(err))
            return
        for curve in self._use.curves(columns):
            self._add_use(curve)
        problem = columns.problem()
        if problem and not self._may_grow(file):
            problems.report(file.key, problem, columns.bad_lines + columns.cut_off)
        else:
            problems.clear(file.key)

    def _add_use(self, curve: UseCurve) -> None:
        times, values = curve.time_ms.tolist(), curve.values.tolist()
        chosen = (
            range(len(times))
            if len(times) <= FILE_POINTS
            else of_even_groups(times, values, FILE_POINTS // 2 - 1)
        )
        for index in chosen:
            self._add(curve.key, times[index], values[index])

    def _read_timeline(self, file: TraceFile) -> None:
        texts: list[str] = []
        phases = self._phases.setdefault(file.node, PhaseTimes())
        for step in phases.add(events_of(self._files.store, file.key, texts)):
            self._add_step(file.node, step)
        if texts:
            text = " ".join(texts).replace(f"Timeline {file.key!r} ", "It ")
            self._files.problems.report(file.key, text, len(texts))

    def _add_step(self, node: str, step: StepTime) -> None:
        values = {CurveKey(ProfileKind.STEP_TIME, node, step.mode): step.seconds}
        values |= {
            CurveKey(ProfileKind.PHASE, node, phase): seconds
            for phase, seconds in step.phases.items()
        }
        for key, value in values.items():
            self._add(key, step.end_ms, value)

    def _add(self, key: CurveKey, time_ms: int, value: float) -> None:
        """Add a value to a curve, unless it is of a time that was read before."""
        points = self._points_of(key)
        if points is not None and (not points.steps or time_ms > points.steps[-1]):
            points.add(time_ms, value)

    def _points_of(self, key: CurveKey) -> Points | None:
        """Return the points of a curve; None if there are too many of its kind."""
        points = self._points.get(key)
        if points is not None or key in self._left_out:
            return points
        if self._counts[key.kind] >= CURVES_KEPT:
            self._left_out.add(key)
            return None
        self._counts[key.kind] += 1
        return self._points.setdefault(key, Points(POINTS_KEPT))


def _order(key: CurveKey) -> tuple[int, str, int, str]:
    """Return a sort key: by kind and node, phases in their order in a step, gpu10 after gpu9."""
    position = PHASES.index(key.detail) if key.detail in PHASES else len(key.detail)
    return _KINDS.index(key.kind), key.node, position, key.detail
