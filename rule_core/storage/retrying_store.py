"""RetryingStore: repeats requests to a store after transient errors."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from rule_core.clock import Clock
from rule_core.logger import get_logger
from rule_core.storage.base import (
    ByteRange,
    FileStatus,
    StorageUnavailableError,
    TrialStore,
    list_folder,
)
from rule_core.storage.retry import retry

if TYPE_CHECKING:
    from rule_core.storage.wait_budget import WaitBudget

T = TypeVar("T")
DEADLINE_S: Final = 30.0
ENTRIES: Final = 10_001  # listed at most of one folder


class RetryingStore:
    """A store that retries the reads and listings of another one.

    Parameters
    ----------
    store
        The other store.
    clock
        Measures and waits.
    deadline_s
        Seconds for which a request is retried; 0 disables retries. In a listing the deadline
        restarts after each key, because it resumes after the last key.

    Attributes
    ----------
    patience
        A bound on the total of all waits, or None. With it, an object whose read failed until the
        deadline is not retried in later reads, until one succeeds.
    """

    def __init__(self, store: TrialStore, clock: Clock, deadline_s: float = DEADLINE_S) -> None:
        self.store = store
        self.uri = store.uri
        self.costs = store.costs
        self.clock = clock
        self.deadline_s = deadline_s
        self.patience: WaitBudget | None = None
        self._failed: dict[str, str] = {}  # reason by key

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys, each once; see `TrialStore`."""
        last = start_after
        keys: Iterator[str] | None = None

        def next_key() -> str | None:
            nonlocal keys
            listing = self.store.list_keys(prefix, start_after=last) if keys is None else keys
            keys = None  # a generator that has raised is exhausted
            key = next(listing, None)
            keys = listing
            return key

        while (key := self.ask(next_key)) is not None:
            last = key
            yield key

    def list_folder(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder; see `ListedStore`."""
        return iter(self.ask(lambda: list(islice(list_folder(self.store, folder), ENTRIES))))

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of a file; see `TrialStore`."""
        failed = key in self._failed
        try:
            data = self.ask(lambda: self.store.read(key, byte_range), once=failed)
        except StorageUnavailableError as err:
            if not err.transient or self.patience is None:
                raise
            reason = self._failed.setdefault(key, err.reason)
            raise StorageUnavailableError(err.key, reason, transient=True) from err
        if failed:
            self._failed.pop(key, None)
        return data

    def status(self, key: str) -> FileStatus:
        """Return the size and time of a file; see `TrialStore`."""
        return self.ask(lambda: self.store.status(key))

    def ask(self, call: Callable[[], T], *, once: bool = False) -> T:
        """Return the result of a call, which is retried after transient errors.

        Parameters
        ----------
        once
            Whether to call only once.

        Raises
        ------
        StorageUnavailableError
            With the last reason, and for how long the call was retried.
        WaitEndedError
            If `patience` has run out.
        """
        patience = self.patience
        clock = patience or self.clock
        began = clock.monotonic()
        deadline_s = 0.0 if once else self.deadline_s

        def is_transient(err: StorageUnavailableError) -> bool:
            """Return whether to retry, and log the reason."""
            if not err.transient or (patience is not None and patience.remaining_s() <= 0):
                return False
            get_logger("storage").info("Retrying %r: %s.", err.key, err.reason)
            return True

        try:
            return retry(
                call if patience is None else partial(patience.call, call),
                StorageUnavailableError,
                is_transient=is_transient,
                deadline_s=deadline_s,
                clock=clock,
            )
        except StorageUnavailableError as err:
            if not err.transient or not deadline_s:
                raise
            reason = f"{err.reason} ({_effort(err, clock.monotonic() - began, deadline_s)})"
            raise StorageUnavailableError(err.key, reason, transient=True) from err


def _effort(err: StorageUnavailableError, tried_s: float, deadline_s: float) -> str:
    """Describe the attempts of a failed call."""
    if err.retry_after > deadline_s - tried_s > 0:
        return f"the store asks to retry after {err.retry_after:.0f} s"
    return f"tried for {tried_s:.0f} s"
