"""ExecutorMeasurer: measures a trial in the workers of an executor, ahead of the evaluation."""

import math
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any, Final

from rule_core.failures import attempt
from rule_core.format.index_file import Files, IndexFile
from rule_core.format.paths import StepFile
from rule_core.logger import get_logger
from rule_core.model.streaming_statistics import Want
from rule_core.reading.measuring.block import (
    Choose,
    PartRequest,
    earlier_files,
    measure_block,
    parse_block,
)
from rule_core.reading.measuring.codec import EMPTY, DecodedBlock
from rule_core.reading.measuring.measurer import PartMeasures
from rule_core.storage.base import TrialStore
from rule_core.storage.uri import is_s3

KEYS_PER_BLOCK: Final = 512
PARTS_PER_BLOCK: Final = 256
LEAST_PARTS: Final = 64
BLOCKS_AHEAD: Final = 64
BYTES_AHEAD: Final = 256 << 20  # of results that wait for the evaluation
PATIENCE_S: Final = 300.0  # without the result that is waited for
FAILURES: Final = 3  # in a row, after which no more is sent
_SLICE_S: Final = 0.1


class ExecutorMeasurer:
    """Measures the steps after the current one in the workers of an executor.

    Parameters
    ----------
    executor
        Where to measure; it is neither made nor shut down here.
    store
        The store of the trial, which the workers open by its address.
    remaining_s
        Returns the remaining seconds to wait; a negative number means that the time is over.

    Attributes
    ----------
    measured, blocks, lost
        The number of parts of steps measured by workers, of blocks sent, and of those without a
        result.
    reason
        Why the latest of the `lost` blocks has no result.
    """

    def __init__(
        self,
        executor: Executor,
        store: TrialStore,
        remaining_s: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._executor = executor
        self._uri = store.uri if is_s3(store.uri) else str(Path(store.uri).absolute())
        self._remaining_s = remaining_s
        self._files: Files = {}
        self._steps: Sequence[int] = ()
        self._choose: Choose | None = None
        self._wants: list[Want] = []
        self._front = -1  # the last step that was sent
        self._blocks: deque[_SentBlock] = deque()
        self._sizes = [1 << 20]  # bytes of results, an estimate first
        self._failures = 0  # in a row
        self.measured = self.blocks = self.lost = 0
        self.reason = ""

    def begin(
        self, files: Files, steps: Sequence[int], wants: Iterable[Want], choose: Choose
    ) -> None:
        """Start to measure.

        Parameters
        ----------
        files, steps
            The growing collections of the known index files and steps.
        wants
            All statistics that `choose` may return.
        """
        self._files, self._steps = files, steps
        self._wants, self._choose = [*wants], choose

    @property
    def is_usable(self) -> bool:
        """Whether blocks are still sent."""
        return self._failures < FAILURES

    def parse(self, keys: Sequence[tuple[str, StepFile]]) -> Iterator[IndexFile | None]:
        """Yield index files; see `Measurer`."""
        parts = [keys[at : at + KEYS_PER_BLOCK] for at in range(0, len(keys), KEYS_PER_BLOCK)]
        pending: deque[tuple[int, Future[list[IndexFile | None]] | None]] = deque()
        for part in parts:
            pending.append((len(part), self._submit(parse_block, self._uri, part)))
            if len(pending) > BLOCKS_AHEAD:
                yield from self._parsed(*pending.popleft())
        while pending:
            yield from self._parsed(*pending.popleft())

    def _parsed(
        self, size: int, future: Future[list[IndexFile | None]] | None
    ) -> Sequence[IndexFile | None]:
        files = self._result(future)
        return [None] * size if files is None else files

    def measures(self, step: int, part: str) -> PartMeasures | None:
        """Return the measures of a part of a step; see `Measurer`."""
        if self._choose is None:
            return None
        while self._blocks and self._blocks[0].last < step:
            self._blocks.popleft().cancel()
        self._send_ahead(step, self._choose)
        for block in self._blocks:
            if block.first > step:
                break
            if (step, part) in block.parts:
                measures = self._content(block).measures(step, part)
                self.measured += measures is not None
                return measures
        return None

    def close(self) -> None:
        """Cancel what nobody waits for any more."""
        self._choose = None
        while self._blocks:
            self._blocks.popleft().cancel()

    def _content(self, block: "_SentBlock") -> DecodedBlock:
        """Return the results of a block; wait for them if necessary."""
        if block.content is None:
            content = self._result(block.future) or EMPTY
            self._sizes = [*self._sizes[-7:], len(content)]
            block.future, block.content = None, DecodedBlock(content, self._wants)
        return block.content

    def _send_ahead(self, step: int, choose: Choose) -> None:
        """Send the next steps, as far as there is room for their results."""
        room = min(BLOCKS_AHEAD, max(4, BYTES_AHEAD * len(self._sizes) // sum(self._sizes)))
        position = max(bisect_left(self._steps, step), bisect_right(self._steps, self._front))
        while self.is_usable and len(self._blocks) < room and position < len(self._steps):
            chunk = self._chunk(position)
            parts = [(each, part) for each in chunk for part in sorted(self._files[each])]
            if len(parts) < LEAST_PARTS:
                return
            for at in range(0, len(parts), PARTS_PER_BLOCK):
                self._send(parts[at : at + PARTS_PER_BLOCK], choose)
            position += len(chunk)
            self._front = chunk[-1]

    def _chunk(self, position: int) -> Sequence[int]:
        """Return the next steps that make up a block, at least one."""
        end, parts = position, 0
        while end < len(self._steps) and (parts == 0 or parts < PARTS_PER_BLOCK):
            parts += len(self._files[self._steps[end]])
            end += 1
        return self._steps[position:end]

    def _send(self, parts: Sequence[tuple[int, str]], choose: Choose) -> None:
        requests = []
        for step, part in parts:
            file = self._files[step][part]
            wants = choose(file)
            if wants and file.event_key is not None:
                earlier = earlier_files(file, wants, self._files, self._steps)
                requests.append(PartRequest(file, earlier, wants))
        if not requests:
            return
        future = self._submit(measure_block, self._uri, self._wants, requests)
        if future is not None:
            sent = {(request.file.step, request.file.worker) for request in requests}
            self._blocks.append(_SentBlock(parts[0][0], parts[-1][0], sent, future))

    def _submit(self, call: Callable[..., Any], *arguments: Any) -> "Future[Any] | None":
        """Send a call to the workers; None if the executor takes no more."""
        if not self.is_usable:
            return None
        self.blocks += 1

        def refused(err: Exception) -> None:
            self._lose(err)
            self._failures = FAILURES

        return attempt(lambda: self._executor.submit(call, *arguments), refused)

    def _result(self, future: "Future[Any] | None") -> Any:
        """Return the result of a call, or None if there is none."""
        if future is None:
            return None
        end = time.monotonic() + (PATIENCE_S if self.is_usable else 0.0)
        while True:
            try:
                err = future.exception(_SLICE_S)
            except TimeoutError:
                if time.monotonic() < end and self._remaining_s() > 0:
                    continue
                future.cancel()
                err = TimeoutError(f"No result came within {PATIENCE_S:.0f} s.")
                self._failures = FAILURES
            except CancelledError:
                err = CancelledError("The call was cancelled.")
            if err is not None:
                self._lose(err)
                return None
            self._failures = 0
            return future.result()

    def _lose(self, err: BaseException) -> None:
        """Note a call without a result, which this process makes up for."""
        self.lost += 1
        self._failures += 1
        self.reason = f"{type(err).__name__}: {err}"
        get_logger().warning(
            "A block of trial %r was not measured by a worker, but is measured here. %s",
            self._uri,
            self.reason,
        )


class _SentBlock:
    """Parts of steps that were sent together."""

    def __init__(
        self, first: int, last: int, parts: set[tuple[int, str]], future: "Future[bytes]"
    ) -> None:
        self.first, self.last, self.parts = first, last, parts
        self.future: Future[bytes] | None = future
        self.content: DecodedBlock | None = None

    def cancel(self) -> None:
        """Cancel the call if its result was not needed."""
        if self.future is not None:
            self.future.cancel()
