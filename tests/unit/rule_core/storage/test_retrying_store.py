"""A patient store: what it asks again, how long, and what it never gives twice."""

from collections.abc import Iterator

import pytest
from clocks import SHORTEST_SLEEP_S, PatientClock
from memory_store import MemoryStore

from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.wait_budget import WaitBudget

FILES = {f"k{number}": bytes([number]) for number in range(6)}
BUSY = StorageUnavailableError("k", "busy", transient=True)


class Faltering(MemoryStore):
    """Raises at scripted calls and after scripted keys."""

    costs = ReadCosts(3, 7)

    def __init__(self, *faults: Exception | None, breaks_after: int = 99) -> None:
        super().__init__(FILES, "memory://mine")
        self.faults = list(faults)
        self.breaks_after = breaks_after
        self.asked: list[object] = []

    def _falter(self) -> None:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        self.asked.append(start_after)
        for given, key in enumerate(super().list_keys(prefix, start_after=start_after)):
            if given in {0, self.breaks_after}:
                self._falter()
            yield key

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        self.asked.append(key)
        self._falter()
        return super().read(key, byte_range)


def patient(store: TrialStore, deadline_s: float = 30.0) -> tuple[RetryingStore, PatientClock]:
    clock = PatientClock(1000)
    return RetryingStore(store, clock, deadline_s), clock


def test_it_is_known_by_the_other_store() -> None:
    store, _ = patient(Faltering())
    assert (store.uri, store.costs) == ("memory://mine", ReadCosts(3, 7))


def test_what_may_pass_is_asked_again() -> None:
    behind = Faltering(BUSY, BUSY, BUSY)
    store, clock = patient(behind)
    assert bytes(store.read("k2", ByteRange(0, 1))) == b"\2"
    assert behind.asked == ["k2"] * 4
    assert 0.35 <= clock.now <= 0.7


@pytest.mark.parametrize(
    "err", [StorageUnavailableError("k", "denied"), ObjectNotFoundError("k"), KeyError("k")]
)
def test_what_does_not_pass_is_not_asked_again(err: Exception) -> None:
    behind = Faltering(err)
    store, clock = patient(behind)
    with pytest.raises(type(err)) as raised:
        store.read("k2")
    assert (raised.value, behind.asked, clock.now) == (err, ["k2"], 0.0)


@pytest.mark.parametrize("deadline_s", [0.0, 3.0, 30.0])
def test_it_is_reported_how_long_it_was_tried(deadline_s: float) -> None:
    behind = Faltering(*[BUSY] * 99)
    store, clock = patient(behind, deadline_s)
    with pytest.raises(StorageUnavailableError) as raised:
        store.read("k2")
    tried = f" (tried for {deadline_s:.0f} s)" if deadline_s else ""
    assert str(raised.value) == f"Cannot read 'k': busy{tried}."
    assert (raised.value.transient, clock.now) == (
        True,
        pytest.approx(deadline_s, abs=SHORTEST_SLEEP_S),
    )
    assert 1 <= len(behind.asked) <= 2 + 3 * deadline_s


@pytest.mark.parametrize("breaks_after", [0, 1, 2, 5])
@pytest.mark.parametrize("start_after", ["", "k0", "k3x"])
def test_a_listing_goes_on_after_its_last_key(breaks_after: int, start_after: str) -> None:
    behind = Faltering(None, BUSY, None, BUSY, BUSY, breaks_after=breaks_after)
    store, _ = patient(behind)
    result = list(store.list_keys("k", start_after=start_after))
    assert result == [key for key in FILES if key > start_after]
    assert behind.asked == sorted(map(str, behind.asked))
    assert set(behind.asked) <= {start_after, *FILES}


def test_a_listing_has_the_whole_time_after_each_key() -> None:
    class Slow(Faltering):
        """Gives one key, then nothing for a while."""

        def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
            yield next(super().list_keys(prefix, start_after=start_after))
            if start_after != "k4":
                raise BUSY

    behind = Slow(*[*[BUSY] * 6, None] * 12)
    store, clock = patient(behind, 12.0)
    assert list(store.list_keys("")) == list(FILES)
    assert clock.now > 12.0


def test_a_listing_that_ends_in_silence_is_reported() -> None:
    behind = Faltering(None, *[BUSY] * 99, breaks_after=2)
    store, _ = patient(behind)
    keys = store.list_keys("")
    assert [next(keys), next(keys)] == ["k0", "k1"]
    with pytest.raises(StorageUnavailableError, match=r"busy \(tried for 30 s\)\.$"):
        next(keys)
    assert set(behind.asked) == {"", "k1"}


@pytest.mark.parametrize("wait", [2.0, 29.0])
def test_a_store_that_asks_for_a_pause_gets_it(wait: float) -> None:
    busy = StorageUnavailableError("k", "busy", transient=True, retry_after=wait)
    behind = Faltering(busy)
    store, clock = patient(behind)
    assert bytes(store.read("k2")) == b"\2"
    assert (clock.now, len(behind.asked)) == (pytest.approx(wait), 2)


def test_a_pause_that_passes_the_deadline_is_not_begun() -> None:
    busy = StorageUnavailableError("k", "busy", transient=True, retry_after=120.0)
    behind = Faltering(busy)
    store, clock = patient(behind)
    text = r"^Cannot read 'k': busy \(the store asks to retry after 120 s\)\.$"
    with pytest.raises(StorageUnavailableError, match=text):
        store.read("k2")
    assert (clock.now, len(behind.asked)) == (0.0, 1)


def test_what_failed_until_the_deadline_is_asked_for_once_at_a_time_until_it_is_read() -> None:
    behind = Faltering(*[BUSY] * 99)
    store, clock = patient(behind, 3.0)
    store.patience = WaitBudget(clock)
    reasons = []
    for _ in range(3):
        with pytest.raises(StorageUnavailableError) as raised:
            store.read("k2")
        reasons.append(raised.value.reason)
    assert reasons == ["busy (tried for 3 s)"] * 3
    assert clock.now == pytest.approx(3.0, abs=SHORTEST_SLEEP_S)
    behind.faults = []
    asked = len(behind.asked)
    assert bytes(store.read("k2")) == b"\2"
    assert len(behind.asked) == asked + 1
    behind.faults = [BUSY, BUSY]
    assert bytes(store.read("k2")) == b"\2"
