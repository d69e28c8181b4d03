"""What arrives of a remote trial is measured together: the same answers from the same requests."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import pytest
import s3_objects
import steps_saved
from faulty_store import REMOTE, CountingStore, FaultyStore
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore
from rawtrial import collections, collections_key, event_key

from rule_core.exceptions import TensorDamaged
from rule_core.kernels.sweep import has_kernel
from rule_core.model import streaming_statistics
from rule_core.model.array_difference import ChangeNorms
from rule_core.model.element_statistics import Activity, ZeroCount
from rule_core.model.reductions import Reduction
from rule_core.reading.measuring import arrived
from rule_core.storage.base import ReadCosts
from rule_core.storage.read_pool import ReadPool
from rule_core.storage.uri import open_store
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial

MEAN: Final = Reduction("mean")
ZEROS: Final = ZeroCount()
MEDIAN: Final = Reduction("median")
CHANGE: Final = ChangeNorms()
ACTIVITY: Final = Activity(0.5)
NAMES: Final = "uvw"

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, 3)


def shrink(patch: pytest.MonkeyPatch, threads: int) -> None:
    """Let steps of a few hundred bytes be worth threads, which are faster than their requests."""
    patch.setattr(arrived, "MIN_THREADED_BYTES", 100)
    patch.setattr(arrived, "measuring_threads", lambda: threads)
    for module in (streaming_statistics, arrived):
        patch.setattr(module, "PIECE_BYTES", 256)
    patch.setattr(ReadPool, "submit", lambda _, read: at_once(read))


def at_once(read: Callable[[], memoryview]) -> Future[memoryview]:
    """Stand in for a pool whose threads are always faster."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of calls of the kernel in what runs together."""
    counts: list[int] = []
    run = arrived.SweepRun

    def counting(calls: Any) -> Any:
        counts.append(len(calls))
        return run(calls)

    monkeypatch.setattr(arrived, "SweepRun", counting)
    return counts


def content(steps: int = 8, workers: int = 1, seed: int = 0, dtype: str = "f4") -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for worker in map("worker_{}".format, range(workers)):
        files[collections_key(worker)] = collections({}, workers)
        for number in range(steps):
            generator = np.random.default_rng([number, seed, int(worker[-1])])
            records = {
                name: steps_saved.record(generator.normal(size=200).astype(dtype), number, name)
                for name in NAMES
            }
            files |= steps_saved.step_files(number, records, worker=worker)
    return files


def trial_of(files: dict[str, bytes], *, together: bool = True) -> tuple[Trial, CountingStore]:
    store = CountingStore(MemoryStore(files), REMOTE)
    trial = steps_saved.trial_of(store)
    if not together:
        trial.index.tensors._arrived = None
    return trial, store


def ask(
    trial: Trial,
    number: int,
    statistic: Any = MEAN,
    before: int | None = None,
    names: Iterable[str] = NAMES,
    worker: str = "worker_0",
) -> list[str]:
    """Return answers to the last bit, or the types of errors."""
    answers = []
    with snapshot([trial], number):
        for name in names:
            try:
                value = trial.tensor(name).measure(number, statistic, before, worker)
                answers.append(repr(value.tobytes() if isinstance(value, np.ndarray) else value))
            except TensorDamaged as err:
                answers.append(str(err))
    return answers


def test_tensors_of_a_step_are_measured_ahead_together(calls: list[int]) -> None:
    (trial, store), (plain, other) = trial_of(content()), trial_of(content(), together=False)
    assert [ask(trial, at) for at in range(8)] == [ask(plain, at) for at in range(8)]
    assert calls == [1] * 7
    assert sorted(map(str, store.reads)) == sorted(map(str, other.reads))


def test_an_earlier_step_has_its_own_answers(calls: list[int]) -> None:
    trial, plain = trial_of(content())[0], trial_of(content(), together=False)[0]
    for number in (4, 5, 6, 2):
        assert ask(trial, number) == ask(plain, number)
    assert calls == [1, 1, 1]


def test_a_trial_in_s3_is_measured_as_it_arrives(aws_endpoint: str, calls: list[int]) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "run/", content(5, 2))
    trial = steps_saved.trial_of(open_store("s3://bucket/run"))
    plain = trial_of(content(5, 2), together=False)[0]
    for number in range(5):
        for worker in ("worker_0", "worker_1"):
            assert ask(trial, number, worker=worker) == ask(plain, number, worker=worker)
    assert calls == [2, 1, 1, 2, 2]


@pytest.mark.parametrize(("threads", "least"), [(1, 100), (3, 1 << 20)], ids=["core", "small"])
def test_on_one_core_or_if_small_they_are_measured_together_on_time(
    threads: int, least: int, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch, threads)
    monkeypatch.setattr(arrived, "MIN_THREADED_BYTES", least)
    trial, plain = trial_of(content())[0], trial_of(content(), together=False)[0]
    for number in range(4):
        assert ask(trial, number) == ask(plain, number)
        assert calls == [1] * number
    assert trial.index.tensors._arrived is not None
    assert trial.index.tensors._arrived._ahead is None


def test_what_has_not_arrived_is_not_measured_ahead(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, plain = trial_of(content())[0], trial_of(content(), together=False)[0]
    monkeypatch.setattr(ReadPool, "submit", lambda *_: Future())
    for number in range(4):
        assert ask(trial, number) == ask(plain, number)
        assert trial.index.tensors._arrived is not None
        assert trial.index.tensors._arrived._ahead is None
    assert calls == [1, 1, 1]


def test_workers_are_measured_ahead_within_bounds(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, plain = (trial_of(content(7, 3), together=one)[0] for one in (True, False))
    workers = ("worker_0", "worker_1", "worker_2")
    for number in range(7):
        if number == 4:
            assert trial.index.tensors._arrived is not None
            assert trial.index.tensors._arrived._latest is not None
            one = trial.index.tensors._arrived._latest[1].nbytes
            monkeypatch.setattr(arrived, "AHEAD_BYTES", 2 * one)
        for worker in workers:
            assert ask(trial, number, worker=worker) == ask(plain, number, worker=worker)
    assert calls == [3, 1, 1, 1, 3, 3, 2, 2, 1, 1]


def test_of_more_ranges_than_the_kernel_takes_the_rest_is_measured_by_itself() -> None:
    names = [f"t{number:02}" for number in range(arrived.MOST_RANGES + 2)]
    files = {collections_key(): collections({})}
    for number in range(4):
        generator = np.random.default_rng(number)
        records = {
            name: steps_saved.record(generator.normal(size=200).astype("f4"), number, name)
            for name in names
        }
        files |= steps_saved.step_files(number, records, gap=300)
    costs = ReadCosts(parallel=4, gap=100)
    trial, plain = (steps_saved.trial_of(CountingStore(MemoryStore(files), costs)) for _ in "ab")
    plain.index.tensors._arrived = None
    for number in range(4):
        assert ask(trial, number, names=names) == ask(plain, number, names=names)
    assert trial.index.tensors._arrived is not None
    assert trial.index.tensors._arrived._latest is not None
    assert len(trial.index.tensors._arrived._latest[0]) == arrived.MOST_RANGES


@pytest.mark.parametrize("damage", ["cut", "other", "gone"])
def test_damage_shows_at_its_step(damage: str) -> None:
    files = content()
    key = event_key(4)
    files[key] = {"cut": files[key][:-9], "other": files[key][:-4] + b"1234", "gone": b""}[damage]
    if damage == "gone":
        del files[key]
    trial, plain = trial_of(dict(files))[0], trial_of(dict(files), together=False)[0]
    for number in range(8):
        assert ask(trial, number) == ask(plain, number)
        assert trial.damaged == plain.damaged == (0 if number < 4 else plain.damaged)
    assert trial.damaged > 0


def test_bytes_that_are_read_again_are_measured_again(calls: list[int]) -> None:
    files = content()
    trial = trial_of(files)[0]
    for number in range(4):
        ask(trial, number)
    files[event_key(4)] = content(seed=1)[event_key(4)]
    trial.index.tensors._reader.forget(event_key(4))
    assert ask(trial, 4) == ask(trial_of(files, together=False)[0], 4)
    assert len(calls) == 6  # one more than steps


def test_what_rules_skip_is_not_measured(calls: list[int]) -> None:
    trial, plain = trial_of(content(20))[0], trial_of(content(20), together=False)[0]
    for number in range(0, 20, 3):
        assert ask(trial, number) == ask(plain, number)
    assert len(calls) <= 8


class Failing:
    """A statistic of a user that fails where the kernel measured it, and nowhere else."""

    kernel_operation = MEAN.kernel_operation

    def kernel_part(self, _: Any) -> float:
        raise ZeroDivisionError

    def part(self, piece: Any, before: Any = None) -> float:
        del before
        return float(piece.elements[0])

    def join(self, parts: Any, size: int, dtype: Any) -> float:
        del size, dtype
        return float(parts[0])


def test_a_statistic_that_fails_fails_for_whom_it_is(calls: list[int]) -> None:
    trial, plain = trial_of(content())[0], trial_of(content(), together=False)[0]
    failing = Failing()
    for number in range(4):
        with pytest.raises(ZeroDivisionError):
            ask(trial, number, failing, names="u")
        assert ask(trial, number) == ask(plain, number)
    assert calls == [1, 1, 1, 1]


@settings(max_examples=30, deadline=None)
@given(
    threads=st.integers(1, 3),
    dtype=st.sampled_from(("f2", "f4", "f8", "i4", "u1", "?")),
    failing=st.sampled_from((0, 0, 1)),
    moves=st.lists(
        st.tuples(
            st.sampled_from((1, 1, 1, 1, 0, -1, 2)),
            st.lists(
                st.tuples(
                    st.sampled_from((MEAN, MEAN, ZEROS, MEDIAN, CHANGE, ACTIVITY)),
                    st.sampled_from(("uvw", "uvw", "v", "wu")),
                    st.sampled_from(("worker_0", "worker_1")),
                ),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=3,
        max_size=10,
    ),
)
def test_answers_and_requests_are_those_of_asking_one_by_one(
    threads: int, dtype: str, failing: int, moves: list[Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, threads)
        files = content(8, 2, dtype=dtype)
        trials, stores = [], []
        for together in (True, False):
            trial, store = trial_of(files, together=together)
            store.store = FaultyStore(store.store, failing=failing, costs=REMOTE)
            trials.append(trial)
            stores.append(store)
        number = -1
        for forward, questions in moves:
            number = min(max(number + forward, 0), 7)
            for statistic, names, worker in questions:
                before = number - 1 if statistic is CHANGE else None
                if before is not None and before < 0:
                    continue
                found, expected = (
                    ask(trial, number, statistic, before, names, worker) for trial in trials
                )
                assert found == expected
        assert stores[0].reads == stores[1].reads
