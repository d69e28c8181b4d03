"""ArrivedMeasures: measures tensors of a remote trial together, once their bytes have arrived."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from rule_core.format.index_file import IndexFile, Span
from rule_core.format.record_layout import RecordLayout
from rule_core.kernels.cores import measuring_threads
from rule_core.kernels.operations import KernelOperation
from rule_core.kernels.sweep import Read, Sweep, SweepCall, SweepRun, SweptPiece, is_supported
from rule_core.model.streaming_statistics import PIECE_BYTES, StreamingStatistic, kernel_operation
from rule_core.model.swept_tensors import Results, SweptTensor, SweptTensors
from rule_core.reading.chunked_reads import MIN_THREADED_BYTES
from rule_core.reading.measuring.part_reads import AHEAD_BYTES

if TYPE_CHECKING:
    from rule_core.modes import ModeKeys

LEAST_NAMES: Final = 2  # of tensors that are measured together
MOST_RANGES: Final = 16  # of an event file, for the kernel

Asked = dict[str, dict[StreamingStatistic, None]]  # statistics by tensor


class ArrivedBytes(Protocol):
    """Bytes of event files that have been read."""

    layouts: dict[Any, RecordLayout]

    def arrived(self, key: str, span: Span) -> tuple[int, memoryview] | None:
        """Return bytes around a record and their offset in the file; None if they are missing."""
        ...


class _ArrivedTensor(NamedTuple):
    """A tensor to measure, and where its elements are: in which range, and at which byte."""

    name: str
    statistics: tuple[StreamingStatistic, ...]
    operations: tuple[tuple[KernelOperation, int], ...]
    layout: RecordLayout
    source: int
    start: int

    def pieces(self) -> Iterator[SweptPiece]:
        nbytes = self.layout.stop - self.layout.start
        for start in range(0, nbytes, PIECE_BYTES):
            size = min(PIECE_BYTES, nbytes - start)
            read = Read(-1 - self.source, self.start + start, 0, size, 0, 0)
            yield SweptPiece(self.layout.dtype, [read], self.operations)


class _ArrivedPart(NamedTuple):
    """What is measured of an event file; `ranges` are the bytes around some records."""

    key: str
    ranges: list[tuple[Span, memoryview]]
    sweep: Sweep
    swept: SweptTensors
    call: SweepCall


class _Ahead(NamedTuple):
    """The next step, which is being measured."""

    step: int
    parts: dict[str, _ArrivedPart]
    run: SweepRun


class ArrivedMeasures:
    """Answers queries about the current step, if they were made about the step before as well.

    Those about a worker are answered by one call of the kernel. Other cores make that call for the
    next step while rules judge this one, if its bytes have arrived. Nothing is requested from the
    store: what is not answered is read and measured by itself.

    Parameters
    ----------
    reader
        The bytes that have been read.
    files, steps
        The growing collections of the known index files and steps.
    """

    def __init__(
        self,
        reader: ArrivedBytes,
        files: Mapping[int, Mapping[str, IndexFile]],
        steps: Sequence[int],
    ) -> None:
        self._reader = reader
        self._files = files
        self._steps = steps
        self._threads = measuring_threads()
        self._step = -1
        self._next: int | None = None
        self._asking: dict[str, Asked] = {}  # by part
        self._asked: dict[tuple[str, ModeKeys], Asked] = {}
        self._answers: dict[str, Results] = {}  # by part
        self._latest: tuple[list[_ArrivedTensor], Sweep, SweptTensors] | None = None
        self._ahead: _Ahead | None = None

    def get(self, step: int, part: str, name: str, statistic: StreamingStatistic) -> Any:
        """Return the answer to a query about a value, or None."""
        if step > self._step:
            self._turn_to(step)
        if step < self._step:
            return None
        self._asking.setdefault(part, {}).setdefault(name, {})[statistic] = None
        if part not in self._answers:
            self._answers[part] = self._measured(part)
        return self._answers[part].get((statistic, 0), {}).get(name)

    def _turn_to(self, step: int) -> None:
        for part, asked in self._asking.items():
            file = self._files.get(self._step, {}).get(part)
            if file is not None:
                self._asked[part, file.mode] = asked
        is_expected = self._next in {None, step}
        position = bisect_right(self._steps, step)
        self._next = next(iter(self._steps[position : position + 1]), None)
        self._step, self._asking, self._answers = step, {}, {}
        ahead, self._ahead = self._ahead, None
        parts: dict[str, _ArrivedPart] = {}
        if ahead is not None and ahead.step == step:
            ahead.run.finish()
            parts = ahead.parts
        if is_expected and self._next is not None and self._threads > 1:
            self._begin(self._next)
        for part, measured in parts.items():
            if self._is_current(measured):
                self._answers[part] = _answers(measured)

    def _begin(self, step: int) -> None:
        """Let other cores measure a step, as far as it has arrived."""
        parts: dict[str, _ArrivedPart] = {}
        nbytes = 0
        for name, file in self._files.get(step, {}).items():
            part = self._prepared(name, file)
            if part is not None and part.sweep.threads > 1:
                nbytes += part.sweep.nbytes
                if nbytes > AHEAD_BYTES:
                    break
                parts[name] = part
        if parts:
            self._ahead = _Ahead(step, parts, SweepRun([part.call for part in parts.values()]))

    def _measured(self, name: str) -> Results:
        """Measure what has arrived of a part of the current step."""
        file = self._files.get(self._step, {}).get(name)
        part = None if file is None else self._prepared(name, file)
        if part is None:
            return {}
        SweepRun([part.call]).finish()
        return _answers(part)

    def _is_current(self, part: _ArrivedPart) -> bool:
        """Return whether what was measured of a part has not been read again."""
        arrived = [self._reader.arrived(part.key, span) for span, _ in part.ranges]
        return all(
            each is not None and each[1] is data
            for each, (_, data) in zip(arrived, part.ranges, strict=True)
        )

    def _prepared(self, name: str, file: IndexFile) -> _ArrivedPart | None:
        """Return how to measure what has arrived of a part; None if there is nothing to gain."""
        asked = self._asked.get((name, file.mode), {})
        if len(asked) < LEAST_NAMES or file.event_key is None:
            return None
        ranges: list[tuple[Span, memoryview]] = []
        tensors: list[_ArrivedTensor] = []
        for tensor, statistics in asked.items():
            with suppress(Exception):  # a statistic may be a user's
                arrived = self._tensor(tensor, tuple(statistics), file, ranges)
                tensors += [] if arrived is None else [arrived]
        if len(tensors) < LEAST_NAMES:
            return None
        if self._latest is None or self._latest[0] != tensors:
            self._latest = tensors, *self._sweep_of(tensors)
        _, sweep, swept = self._latest
        call = sweep.prepare(sources=[data for _, data in ranges])
        return _ArrivedPart(file.event_key, ranges, sweep, swept, call)

    def _sweep_of(self, tensors: Sequence[_ArrivedTensor]) -> tuple[Sweep, SweptTensors]:
        """Return what measures tensors, and what forms their statistics."""
        pieces: list[SweptPiece] = []
        swept = []
        for tensor in tensors:
            first = len(pieces)
            pieces += tensor.pieces()
            wants = [(statistic, 0) for statistic in tensor.statistics]
            own = range(first, len(pieces))
            layout = tensor.layout
            swept.append(SweptTensor(tensor.name, layout.size, layout.dtype, wants, own))
        nbytes = sum(piece.reads[0].size for piece in pieces)
        sweep = Sweep(pieces, self._threads if nbytes >= MIN_THREADED_BYTES else 1)
        return sweep, SweptTensors(swept, sweep)

    def _tensor(
        self,
        name: str,
        statistics: tuple[StreamingStatistic, ...],
        file: IndexFile,
        ranges: list[tuple[Span, memoryview]],
    ) -> _ArrivedTensor | None:
        """Return how to measure a tensor, and add the bytes that it is in."""
        entry = file.entries.get(name)
        if entry is None or entry.raw is None or file.event_key is None:
            return None
        span = entry.raw
        layout = entry.layout or self._reader.layouts.get(((name, None), span.length))
        arrived = self._reader.arrived(file.event_key, span)
        if layout is None or arrived is None:
            return None
        start, data = span.start - arrived[0], arrived[1]
        if layout.view(data[start : start + span.length]) is None:
            return None
        statistics = tuple(each for each in statistics if _can_measure(each, layout))
        source = next((i for i, (_, other) in enumerate(ranges) if other is data), len(ranges))
        if not statistics or source >= MOST_RANGES:
            return None
        if source == len(ranges):
            ranges.append((span, data))
        operations = (kernel_operation(each, 0) for each in statistics)
        program = tuple((each, 0) for each in operations if each is not None)
        return _ArrivedTensor(name, statistics, program, layout, source, start + layout.start)


def _can_measure(statistic: StreamingStatistic, layout: RecordLayout) -> bool:
    """Return whether the kernel can compute a statistic."""
    has_operation = kernel_operation(statistic, 0) is not None
    return layout.size > 0 and is_supported(layout.dtype) and has_operation


def _answers(part: _ArrivedPart) -> Results:
    """Return what was measured."""
    answers: Results = defaultdict(dict)
    part.swept.add_to(answers, part.call.results())
    return answers
