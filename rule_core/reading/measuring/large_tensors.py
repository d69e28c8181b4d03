"""LargeTensors: measures large tensors piece by piece that were not measured in advance."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rule_core.exceptions import SMDebugValueError, TruncatedFileError
from rule_core.failures import attempt
from rule_core.format.index_file import Entry
from rule_core.reading.file_problems import UNREADABLE
from rule_core.reading.measuring.measurer import Question
from rule_core.reading.step_read_plan import StepPlan
from rule_core.storage.base import ByteRange, FileStore, OpenFile, TrialStore
from rule_core.storage.read_pool import ReadPool

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rule_core.model.streaming_statistics import Want

LARGE: Final = 16 << 20  # bytes; smaller ones are read whole
BLOCK_BYTES: Final = 8 << 20  # of a request to a remote store
BLOCKS_AHEAD: Final = 3
QUESTIONS_KEPT: Final = 32


class LargeTensor(NamedTuple):
    """A tensor of one step, and its value at an earlier step.

    Attributes
    ----------
    name, step
        The tensor and its global step.
    key, entry
        The file, and the entry with a known layout.
    before
        File and entry of the earlier value; None without one.
    """

    name: str
    step: int
    key: str
    entry: Entry
    before: tuple[str, Entry] | None


class LargeTensors:
    """Measures tensors in bounded memory.

    The questions about other tensors of a step are answered in the same pass, since rules usually
    ask the same about all tensors.

    Parameters
    ----------
    store, pool
        The store, and the threads that read from a remote one.
    """

    def __init__(self, store: TrialStore, pool: ReadPool[memoryview] | None) -> None:
        self._store = store
        self._pool = pool
        self._step = -1
        self._asked: dict[Question, None] = {}
        self._last: tuple[Any, dict[Question, Any]] = None, {}

    def measure(self, tensor: LargeTensor, question: Question) -> Any:
        """Return a statistic of a tensor.

        Raises
        ------
        SMDebugValueError
            If the two values differ in shape or type.
        ObjectNotFoundError, StorageUnavailableError, TruncatedFileError
            If a file cannot be read.
        """
        if tensor.step != self._step:
            self._step = tensor.step
            self._asked = {asked: None for asked in self._asked if asked[1] is None}
        self._asked[question] = None
        if len(self._asked) > QUESTIONS_KEPT:
            del self._asked[next(iter(self._asked))]
        identity = tensor.key, tensor.name, tensor.step
        last, answers = self._last
        if last != identity:
            answers = {}
        if question not in answers:
            answers = {**answers, **self._measured(tensor, question, answers)}
            self._last = identity, answers
        return answers[question]

    def _measured(
        self, tensor: LargeTensor, question: Question, answered: Mapping[Question, Any]
    ) -> dict[Question, Any]:
        before = question[1]
        others = [
            asked
            for asked in self._asked
            if asked not in answered and (asked[1] is None or asked[1] == before)
        ]
        files = [(tensor.key, tensor.entry)]
        if before is not None and tensor.before is not None:
            files.append(tensor.before)
            if _form(tensor.entry) != _form(tensor.before[1]):
                raise SMDebugValueError(
                    f"Tensor {tensor.name!r} is of another shape or type at step {before}."
                )

        def failed(err: Exception) -> dict[Question, Any]:
            if isinstance(err, UNREADABLE):
                raise err
            return self._carry_out(tensor.name, [question], files)  # another one is a user's

        return attempt(lambda: self._carry_out(tensor.name, others, files), failed)

    def _carry_out(
        self, name: str, questions: Sequence[Question], files: Sequence[tuple[str, Entry]]
    ) -> dict[Question, Any]:
        wants: dict[Want, Question] = {
            (statistic, 0 if step is None else 1): (statistic, step)
            for statistic, step in questions
        }
        entries = {name: files[0][1]}
        names = frozenset([name])
        plan = StepPlan(entries, dict.fromkeys(wants, names), {}, lambda *_: None)
        with ExitStack() as stack:
            opened = {}
            for back, (key, entry) in enumerate(files):
                opened[back] = self._open(stack, key, entry), {name: entry}
            results = plan.carry_out(opened)
        measured = {wants[want]: values[name] for want, values in results.items() if name in values}
        if not measured:
            key, entry = files[0]
            length = 0 if entry.raw is None else entry.raw.length
            raise TruncatedFileError(key, f"{length} bytes of {name!r}", "fewer")
        return measured

    def _open(self, stack: ExitStack, key: str, entry: Entry) -> OpenFile:
        if isinstance(self._store, FileStore):
            return stack.enter_context(self._store.opened(key))
        stop = 0 if entry.raw is None else entry.raw.start + entry.raw.length
        return RemoteFile(self._store, self._pool, key, stop)


class RemoteFile:
    """A remote file that is read in order, in blocks, with some blocks read ahead."""

    def __init__(
        self, store: TrialStore, pool: ReadPool[memoryview] | None, key: str, size: int
    ) -> None:
        self.size = size
        self._store = store
        self._pool = pool
        self._key = key
        self._start = 0
        self._block = memoryview(b"")
        self._ahead: dict[int, Future[memoryview]] = {}

    def read_ahead(self, byte_range: ByteRange) -> None:
        """Do nothing: blocks are read ahead anyway."""

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        """Fill buffers with bytes from `start`; see `OpenFile`."""
        position = start
        for buffer in buffers:
            done = 0
            while done < len(buffer):
                available = self._at(position)[: len(buffer) - done]
                if not available:
                    return position - start
                buffer[done : done + len(available)] = available
                done += len(available)
                position += len(available)
        return position - start

    def _at(self, position: int) -> memoryview:
        """Return the bytes from a position up to the end of their block."""
        if not self._start <= position < self._start + len(self._block):
            self._start, self._block = position, self._fetch(position)
        return self._block[position - self._start :]

    def _fetch(self, position: int) -> memoryview:
        pending = self._ahead.pop(position, None)
        if self._pool is not None:
            for place in range(1, BLOCKS_AHEAD + 1):
                start = position + place * BLOCK_BYTES
                if start < self.size and start not in self._ahead:
                    self._ahead[start] = self._pool.submit(partial(self._read, start))
        return self._read(position) if pending is None else pending.result()

    def _read(self, start: int) -> memoryview:
        stop = min(start + BLOCK_BYTES, self.size)
        return self._store.read(self._key, ByteRange(start, stop))


def _form(entry: Entry) -> Any:
    """Return type and shape of a value."""
    return None if entry.layout is None else (entry.layout.dtype, entry.layout.shape)
