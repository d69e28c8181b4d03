"""Stores for tests: one that counts what it is asked, one that fails as stores over networks do."""

import random
from collections import Counter
from collections.abc import Iterator
from threading import Lock

from rule_core.storage.base import (
    ByteRange,
    FileStatus,
    ReadCosts,
    StorageUnavailableError,
    TrialStore,
)

LOCAL, REMOTE = ReadCosts(), ReadCosts(parallel=4, gap=1 << 18)


class CountingStore:
    """Passes everything on, counts it, and may claim other costs.

    `counts` has ``list``, ``head``, and ``get`` with the first part of the key behind it, such as
    ``get events``; `reads` each read in order; `bytes` what was read.
    """

    def __init__(self, store: TrialStore, costs: ReadCosts = LOCAL) -> None:
        self.store = store
        self.uri = store.uri
        self.costs = costs
        self.counts: Counter[str] = Counter()
        self.reads: list[tuple[str, ByteRange | None]] = []
        self.bytes = 0
        self._lock = Lock()

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        self.counts["list"] += 1
        return self.store.list_keys(prefix, start_after=start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        empty = byte_range is not None and byte_range.stop <= byte_range.start
        with self._lock:
            self.counts["head" if empty else f"get {key.partition('/')[0]}"] += 1
            self.reads.append((key, byte_range))
        data = self.store.read(key, byte_range)
        with self._lock:
            self.bytes += len(data)
        return data

    def status(self, key: str) -> FileStatus:
        self.counts["status"] += 1
        return self.store.status(key)


class FaultyStore:
    """Fails by a schedule drawn from `seed` for each key.

    Parameters
    ----------
    failing
        Up to so many of the first reads of each key fail for a reason that passes.
    torn
        Up to so many of the next ones end early: of event files with an error, as stores tell it
        that know how long an answer has to be; of others without a word.
    lag
        Up to so many of the first listings that could show a key do not.
    lost
        Beginnings of keys that can never be read.
    """

    def __init__(
        self,
        store: TrialStore,
        seed: int = 0,
        *,
        failing: int = 0,
        torn: int = 0,
        lag: int = 0,
        lost: tuple[str, ...] = (),
        costs: ReadCosts | None = None,
    ) -> None:
        self.store = store
        self.uri = store.uri
        self.costs = costs or store.costs
        self.lost = lost
        self._draw = random.Random(seed)
        self._most = {"failing": failing, "torn": torn, "lag": lag}
        self._left: dict[tuple[str, str], int] = {}
        self._lock = Lock()

    def _strikes(self, fault: str, key: str) -> bool:
        """Return whether a fault meets this question about a key, and count it."""
        with self._lock:
            left = self._left.setdefault((fault, key), self._draw.randint(0, self._most[fault]))
            self._left[fault, key] = max(left - 1, 0)
        return left > 0

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        for key in self.store.list_keys(prefix, start_after=start_after):
            if not self._strikes("lag", key):
                yield key

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        if key.startswith(self.lost) and self.lost:
            raise StorageUnavailableError(key, "its disk has burnt")
        if self._strikes("failing", key):
            raise StorageUnavailableError(key, "SlowDown", transient=True)
        data = self.store.read(key, byte_range)
        if len(data) and self._strikes("torn", key):
            if key.startswith("events/"):
                raise StorageUnavailableError(key, "it broke off", transient=True)
            return data[: len(data) // 2]
        return data

    def status(self, key: str) -> FileStatus:
        return self.store.status(key)
