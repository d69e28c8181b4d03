"""convert_trace: writes a trace of torch.profiler as the files that a profiler would have written.

The trace is read once, in pieces. Its steps become a Python timeline, its operators, kernels and
calls a model timeline, and the use of its GPUs system metrics.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np

from rule_core.profiler.files.chunks import LIMITS, TimelineFaultError, TimelineLimits, chunks
from rule_core.profiler.files.constants import MODELTIMELINE_SUFFIX, PYTHONTIMELINE_SUFFIX
from rule_core.profiler.files.conversion import Converted, NumberedKey, read_each
from rule_core.profiler.files.whole_text import whole_number
from rule_core.profiler.kineto.gpu_use import WINDOW_US, GPUUse
from rule_core.profiler.kineto.header import KinetoHeader, header_of
from rule_core.profiler.kineto.trace_names import node_of
from rule_core.profiler.traces.assembler import LATEST
from rule_core.profiler.traces.records import NotUsedError, Record, RecordReader
from rule_core.profiler.traces.timeline_files import ConvertedTimelines
from rule_core.storage.base import TrialStore

STEP: Final = "Step:ModeKeys.GLOBAL"
CPU_PHASE: Final = "cpu_functions"
GPU_PHASE: Final = "gpu_functions-dev:"
MEMORY_PHASE: Final = "memory"
MOST_WINDOWS: Final = 864_000  # a day
_STEP_NAME: Final = re.compile(r"ProfilerStep#(\d{1,18})")
_MEMORY_NAME: Final = "[memory]"
_CUDA: Final = 1  # the device type of GPUs, for AMD's too
_GPU_CATEGORIES: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver"})
_ANNOTATION: Final = "user_annotation"
# The names of categories in traces of torch before 1.12.
_OLD_CATEGORIES: Final = MappingProxyType(
    {
        "Operator": "cpu_op",
        "Kernel": "kernel",
        "Memcpy": "gpu_memcpy",
        "Memset": "gpu_memset",
        "Runtime": "cuda_runtime",
    }
)
_GROUP_ARGS: Final = MappingProxyType(
    {"Process Group Name": "group", "Process Group Ranks": "group_ranks"}
)
_LONGEST_TEXT: Final = 200  # characters of a group's ranks
_EARLIEST_S: Final = 10**9  # 2001; the names of files have ten digits
_LATEST_S: Final = 10**10
_MOST_GPUS: Final = 1024
_EXTENT: Final = "Its times span more than a day: the use of its GPUs is not computed."
_NO_TIME: Final = (
    "It does not say when it was recorded: it counts as recorded just before the file was written."
)


def convert_traces(
    store: TrialStore, keys: Sequence[NumberedKey], folder: Path
) -> Iterator[Converted]:
    """Convert traces one by one; a file that cannot be read is a separate problem."""
    return read_each(keys, lambda numbered: convert_trace(store, numbered, folder))


def convert_trace(
    store: TrialStore, numbered: NumberedKey, folder: Path, limits: TimelineLimits = LIMITS
) -> Converted:
    """Convert one trace.

    Parameters
    ----------
    store
        Location of the trace.
    numbered
        Its key, and the number in the names of the files and in the events.
    folder
        Where to write the files.
    limits
        Limits for the untrusted trace.

    Raises
    ------
    OSError
        If the files cannot be written.
    ObjectNotFoundError, StorageUnavailableError
        If the trace cannot be read.
    """
    number, key = numbered
    steps, calls = folder / f"{number}.steps", folder / f"{number}.events"
    with (
        closing(ConvertedTimelines(steps)) as step_file,
        closing(ConvertedTimelines(calls)) as call_file,
    ):
        conversion = _Conversion(store, numbered, step_file, call_file)
        conversion.read(limits)
        if not (step_file.count or call_file.count):
            conversion.problems.append("It has no events that are read.")
            return Converted(key, {}, conversion.problems, conversion.lost)
        zero = conversion.zero_us()
        node = node_of(key, conversion.header.rank)
        prefix = f"framework/pevents/{number:06}"
        suffixes = {step_file: PYTHONTIMELINE_SUFFIX, call_file: MODELTIMELINE_SUFFIX}
        files = {
            f"{prefix}/{index:06}/{math.ceil(zero + last)}_{node}_{suffix}": path
            for timelines, suffix in suffixes.items()
            for index, (path, last) in enumerate(timelines.finish(zero))
        }
    samples = folder / f"{number}.samples"
    first_s = conversion.write_samples(samples, node, zero)
    if first_s:
        files[f"system/incremental/{number:06}/{first_s:010}.{node}.json"] = samples
    first_us = int(zero + conversion.first)
    return Converted(key, files, conversion.problems, conversion.lost, first_us)


class _Conversion:
    """The reading of one trace; times are relative to its zero.

    Attributes
    ----------
    first, last
        The first start and the last end of an event.
    header, problems, lost
        The header, the problems, and how much was lost, once it is read.
    """

    def __init__(
        self,
        store: TrialStore,
        numbered: NumberedKey,
        steps: ConvertedTimelines,
        calls: ConvertedTimelines,
    ) -> None:
        self.first, self.last = math.inf, -math.inf
        self.header = KinetoHeader()
        self.problems: list[str] = []
        self.lost = 0
        self._store = store
        self._number, self._key = numbered
        self._steps = steps
        self._calls = calls
        self._gpus: dict[int, GPUUse] = {}

    def read(self, limits: TimelineLimits) -> None:
        """Read the whole trace."""
        pieces = chunks(self._store, self._key, limits)
        reader = RecordReader(pieces, limits)
        rest = b""
        try:
            for record in chain.from_iterable(reader.batches()):
                try:
                    self._add(record)
                except NotUsedError as err:
                    reader.skip(str(err))
            rest = _bounded(pieces, limits.header)
        except TimelineFaultError as err:
            self.problems.append(f"It {err}.")
        self.lost = len(self.problems) + reader.skipped
        self.problems += reader.problems("It")
        self.header = header_of(reader, rest)

    def zero_us(self) -> float:
        """Return the epoch microseconds of the trace's zero."""
        base_us = self.header.base_us
        first, last = ((base_us + time) / 1e6 for time in (self.first, self.last))
        if first >= _EARLIEST_S and last < _LATEST_S - 1:
            return base_us
        self.problems.append(_NO_TIME)
        return math.floor(self._store.status(self._key).modified * 1e6 - self.last)

    def _add(self, record: Record) -> None:
        if record.ph == "i" and record.name == _MEMORY_NAME:
            self._add_memory(_time(record), record.args or {})
        if record.ph != "X":
            return
        category = _OLD_CATEGORIES.get(record.cat or "", record.cat)
        if category in _GPU_CATEGORIES:
            self._add_kernel(record, category)
        elif category in {"cpu_op", _ANNOTATION} or category in _CALLS:
            self._add_host_event(record, category)

    def _add_host_event(self, record: Record, category: str) -> None:
        ts, dur = self._span(record)
        name = record.name or ""
        step = _STEP_NAME.fullmatch(name)
        tid = 0 if record.tid is None else record.tid
        if step is not None:
            args: dict[str, Any] = {"step_num": step[1], "trace": self._number}
            self._steps.add(STEP, STEP, ts, dur, tid, args)
            return
        args = {}
        if category in _CALLS:
            args = self._launch_args(record)
        phase = CPU_PHASE if category == "cpu_op" else category
        self._calls.add(phase, name, ts, dur, tid, args)

    def _launch_args(self, record: Record) -> dict[str, Any]:
        correlation = whole_number((record.args or {}).get("correlation"))
        return {} if correlation is None else {"correlation": correlation, "trace": self._number}

    def _add_kernel(self, record: Record, category: str) -> None:
        ts, dur = self._span(record)
        source = record.args or {}
        gpu = whole_number(source.get("device", record.pid))
        stream = whole_number(source.get("stream", record.tid))
        if gpu is None:
            raise NotUsedError("it does not name its GPU")
        self._gpu(gpu).add_kernel(ts, ts + dur)
        args = {"category": category, "device": gpu, "stream": stream, "trace": self._number}
        args |= self._launch_args(record)
        for name, short in _GROUP_ARGS.items():
            if isinstance(source.get(name), str):
                args[short] = source[name][:_LONGEST_TEXT]
        self._calls.add(f"{GPU_PHASE}{gpu}", record.name or "", ts, dur, stream or 0, args)

    def _add_memory(self, ts: float, source: Mapping[str, Any]) -> None:
        allocated = whole_number(source.get("Total Allocated"))
        if allocated is None:  # not in traces of torch before 1.12
            return
        args = {"allocated": allocated, "trace": self._number}
        gpu = whole_number(source.get("Device Id"))
        if source.get("Device Type") == _CUDA and gpu is not None:
            args["device"] = gpu
            used = whole_number(source.get("Total Reserved")) or allocated
            self._gpu(gpu).add_memory(ts, int(ts // WINDOW_US), used)
        self._extend(ts, ts)
        self._calls.add(MEMORY_PHASE, _MEMORY_NAME, ts, 0, 0, args)

    def _gpu(self, number: int) -> GPUUse:
        if number not in self._gpus and len(self._gpus) >= _MOST_GPUS:
            raise NotUsedError(f"there are more than {_MOST_GPUS} GPUs")
        return self._gpus.setdefault(number, GPUUse())

    def _span(self, record: Record) -> tuple[float, float]:
        """Return the start and the duration of an event."""
        ts, dur = _time(record), record.dur
        if dur is None or not 0 <= dur <= LATEST:
            raise NotUsedError(f"it lasts {dur} us")
        self._extend(ts, ts + dur)
        return ts, dur

    def _extend(self, start: float, end: float) -> None:
        self.first, self.last = min(self.first, start), max(self.last, end)

    def write_samples(self, path: Path, node: str, zero: float) -> int:
        """Write the use of the GPUs; return the second of its first sample, or 0 without samples.

        A sample is at the end of its window, as if it had been measured then.
        """
        first, last = (int(time // WINDOW_US) for time in (self.first, self.last))
        if not self._gpus:
            return 0
        if last - first >= MOST_WINDOWS:
            self.problems.append(_EXTENT)
            return 0
        edges = np.clip(np.arange(first, last + 2) * float(WINDOW_US), self.first, self.last)
        encode = msgspec.json.Encoder().encode
        times: list[float] = []
        with path.open("wb") as file:
            for gpu, use in sorted(self._gpus.items()):
                sample = {"Type": "gpu", "Name": f"gpu{gpu}", "NodeId": node}
                memory = self.header.gpu_memory.get(gpu)
                for dimension, window, value in _samples(use, edges, first, memory):
                    time = (zero + (window + 1) * WINDOW_US) / 1e6
                    times.append(time)
                    values = {"Dimension": dimension, "Value": value, "Timestamp": time}
                    file.write(encode({**sample, **values}) + b"\n")
        return int(min(times, default=0))


def _samples(
    use: GPUUse, edges: np.ndarray[Any, np.dtype[np.float64]], first: int, memory: int | None
) -> Iterator[tuple[str, int, float]]:
    """Yield the dimension, the window and the percentage of each sample of a GPU."""
    lengths = np.diff(edges)
    if use.has_kernels:
        for index, busy in enumerate(use.busy(edges).tolist()):
            if lengths[index] > 0:
                yield "GPUUtilization", first + index, 100 * busy / float(lengths[index])
    if memory:
        for window, (_, used) in sorted(use.memory.items()):
            yield "GPUMemoryUtilization", window, 100 * used / memory


def _time(record: Record) -> float:
    if record.ts is None or not -LATEST <= record.ts <= LATEST:
        raise NotUsedError(f"its time is {record.ts} us")
    return record.ts


def _bounded(pieces: Iterator[bytes], most: int) -> bytes:
    """Return the remaining text, at most `most` bytes and the rest of a piece."""
    text = b""
    for piece in pieces:
        text += piece
        if len(text) > most:
            break
    return text
