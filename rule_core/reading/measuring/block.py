"""A block of a trial: index files to parse, or parts of steps to measure, by one call anywhere.

Arguments are pickled, results are bytes: what waits for the evaluation takes little memory.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import Files, IndexFile, IndexParser
from rule_core.format.paths import StepFile
from rule_core.model.streaming_statistics import Want
from rule_core.reading.measuring.codec import BlockEncoder
from rule_core.reading.measuring.large_tensors import RemoteFile
from rule_core.reading.measuring.part_reads import FileOpener, measure_part, plan_for
from rule_core.reading.step_read_plan import Layouts, Names, StepPlan
from rule_core.storage.base import ByteRange, FileStore, OpenFile, TrialStore
from rule_core.storage.read_pool import ReadPool, read_each, read_pool
from rule_core.storage.uri import open_store

WHOLE_FILE: Final = 8 << 20  # bytes up to which a remote event file is read in one request
STEPS_BACK: Final = 64  # how far an earlier value of the same mode is looked for
FILES_KEPT: Final = 256  # remote event files, for statistics that compare with earlier values


# Returns the statistics to compute for an index file, and their tensors: one object for all files
# with the same names.
Choose = Callable[[IndexFile], Mapping[Want, Names]]


class PartRequest(NamedTuple):
    """What to measure of a part of a step.

    Attributes
    ----------
    file
        Its index file.
    earlier
        The index files of earlier steps to compare with: their steps back, and global steps.
    wants
        The statistics to compute, and their tensors; one object for all parts with the same names.
    """

    file: IndexFile
    earlier: Mapping[int, IndexFile]
    wants: Mapping[Want, Names]


def earlier_files(
    file: IndexFile, wants: Mapping[Want, Names], files: Files, steps: Sequence[int]
) -> dict[int, IndexFile]:
    """Return the earlier files of the same worker and mode that statistics compare with.

    Parameters
    ----------
    files, steps
        The known index files, and their steps.
    """
    backs = {back for _, back in wants if back}
    earlier: dict[int, IndexFile] = {}
    if not backs:
        return earlier
    position, back = bisect_left(steps, file.step), 0
    for step in reversed(steps[max(position - STEPS_BACK, 0) : position]):
        former = files[step].get(file.worker)
        if former is None or former.mode is not file.mode:
            continue
        back += 1
        if back in backs:
            earlier[back] = former
        if back == max(backs):
            break
    return earlier


def parse_block(uri: str, keys: Sequence[tuple[str, StepFile]]) -> list[IndexFile | None]:
    """Parse index files; None for those that cannot be read."""
    store, _ = _store(uri)
    parser = IndexParser()
    files: list[IndexFile | None] = []
    reads = read_each(store, _pool(uri), [key for key, _ in keys])
    for (_, read), (key, step_file) in zip(reads, keys, strict=True):
        file = None
        with suppress(SMDebugError):
            file = parser.parse(read(), key, step_file)
        files.append(file)
    return files


def measure_block(uri: str, wants: Sequence[Want], requests: Sequence[PartRequest]) -> bytes:
    """Measure parts of steps; return their measures, for `DecodedBlock`.

    Parameters
    ----------
    wants
        All statistics of the requests.
    """
    store, layouts = _store(uri)
    opener: FileOpener
    opener = store if isinstance(store, FileStore) else _RemoteFiles(store, _pool(uri), requests)
    encoder = BlockEncoder(wants)
    plan: StepPlan | None = None
    for file, earlier, part_wants in requests:
        plan = plan_for(opener, file, part_wants, layouts, plan)
        results = measure_part(opener, plan, {0: file, **earlier})
        before = {back: former.step for back, former in earlier.items()}
        encoder.add(file.step, file.worker, results, before, plan.shapes)
    return encoder.content()


@lru_cache(maxsize=8)
def _store(uri: str) -> tuple[TrialStore, Layouts]:
    """Return the store of a trial, and the record layouts that this process has learned."""
    return open_store(uri), {}


@lru_cache(maxsize=8)
def _pool(uri: str) -> ReadPool[memoryview] | None:
    return read_pool(_store(uri)[0])


class _RemoteFiles:
    """Opens the event files of requests in a remote store; small ones are read ahead, whole."""

    def __init__(
        self, store: TrialStore, pool: ReadPool[memoryview] | None, requests: Sequence[PartRequest]
    ) -> None:
        self._store = store
        self._pool = pool
        files = [
            file
            for request in requests
            for file in (request.file, *request.earlier.values())
            if file.event_key is not None
        ]
        self._ends = {file.event_key: file.end for file in files}
        small = [key for key, end in self._ends.items() if key and end <= WHOLE_FILE]
        self._reads = read_each(store, pool, small)
        self._kept: OrderedDict[str, memoryview] = OrderedDict()

    @contextmanager
    def opened(self, key: str) -> Iterator[OpenFile]:
        """Open an event file; see `FileOpener`."""
        end = self._ends[key]
        if end > WHOLE_FILE:
            yield RemoteFile(self._store, self._pool, key, end)
            return
        yield _FileInMemory(self._content(key))

    def _content(self, key: str) -> memoryview:
        """Return the content of a small file; the files before it in the order are read first."""
        if key not in self._kept:
            for ahead, read in islice(self._reads, FILES_KEPT):
                with suppress(SMDebugError):
                    self._keep(ahead, read())
                if ahead == key:
                    break
        if key not in self._kept:
            self._keep(key, self._store.read(key, ByteRange(0, self._ends[key])))
        return self._kept[key]

    def _keep(self, key: str, content: memoryview) -> None:
        self._kept[key] = content
        if len(self._kept) > FILES_KEPT:
            self._kept.popitem(last=False)


class _FileInMemory:
    """A file whose content is in memory."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.size = len(content)

    def read_ahead(self, byte_range: ByteRange) -> None:
        """Do nothing: all bytes are in memory."""

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers with bytes from `start`; see `OpenFile`."""
        position = start
        for buffer in buffers:
            part = self._content[position : position + len(buffer)]
            buffer[: len(part)] = part
            position += len(part)
        return position - start
