"""RetryingStore: asks a store again that could not be asked for a reason that passes."""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from smdebug.core.clock import Clock
from smdebug.core.logger import get_logger
from smdebug.storage.protocol import ByteRange, ReadCosts, StorageUnavailableError, TrialStore
from smdebug.storage.retry import retry

T = TypeVar("T")
DEADLINE_S: Final = 30.0


class RetryingStore:
    """Another store, with patience; the only place that reads again.

    Parameters
    ----------
    store
        The other one.
    clock
        Measures the time, and sleeps.
    deadline_s
        Seconds for which the same question is asked; 0 is once. A listing has them anew after
        each key, for it goes on after the last one that it gave.
    """

    def __init__(self, store: TrialStore, clock: Clock, deadline_s: float = DEADLINE_S) -> None:
        self.store = store
        self.clock = clock
        self.deadline_s = deadline_s

    @property
    def uri(self) -> str:
        """Return the other store's root."""
        return self.store.uri

    @property
    def costs(self) -> ReadCosts:
        """Return what reading costs in the other store."""
        return self.store.costs

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield keys, each once; see `TrialStore`."""
        last = start_after
        keys: Iterator[str] | None = None

        def following() -> str | None:
            nonlocal keys
            if keys is None:
                keys = self.store.list_keys(prefix, start_after=last)
            try:
                return next(keys, None)
            except Exception:
                keys = None  # what has raised gives nothing more
                raise

        while (key := self.ask(following)) is not None:
            last = key
            yield key

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Return bytes of a file; see `TrialStore`."""
        return self.ask(lambda: self.store.read(key, byte_range))

    def ask(self, call: Callable[[], T]) -> T:
        """Return what a call returns, made again as long as what it raises may pass.

        Raises
        ------
        StorageUnavailableError
            With the last reason, and how long it was tried.
        """
        began = self.clock.monotonic()
        try:
            return retry(call, passes=_passes, deadline_s=self.deadline_s, clock=self.clock)
        except StorageUnavailableError as err:
            if not err.transient or not self.deadline_s:
                raise
            reason = f"{err.reason} (tried for {self.clock.monotonic() - began:.0f} s)"
            raise StorageUnavailableError(err.key, reason, transient=True) from err


def _passes(err: Exception) -> bool:
    """Say whether to ask again, and why."""
    if not isinstance(err, StorageUnavailableError) or not err.transient:
        return False
    get_logger("storage").info("%r is asked for again: %s.", err.key, err.reason)
    return True
