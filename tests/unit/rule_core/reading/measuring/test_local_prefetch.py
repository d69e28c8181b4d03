"""LocalPrefetch: measures what was queried at the last two steps, and nothing else."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
import steps_saved
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryFile, MemoryStore

from rule_core.exceptions import (
    InvalidWorker,
    SMDebugValueError,
    TensorDamaged,
    TensorUnavailableForStep,
)
from rule_core.kernels.cores import THREADS
from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.element_statistics import ZeroCount
from rule_core.model.streaming_statistics import Piece
from rule_core.reading import step_read_plan
from rule_core.reading.measuring import local_prefetch, part_reads
from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import ByteRange
from rule_core.storage.local import LocalStore
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial

CHANGE: Final = ChangeNorms()


class Noting:
    """Measures the first element, and notes which; equal to itself only."""

    def __init__(self) -> None:
        self.noted: list[float] = []

    def part(self, piece: Piece, before: Piece | None = None) -> float:
        first = float(piece.elements[0])
        self.noted.append(first)
        return first if before is None else first + float(before.elements[0]) / 1000

    def join(self, parts: Sequence[float], size: int, dtype: "np.dtype[Any]") -> float:
        del size, dtype
        return parts[0]


class OpeningStore(MemoryStore):
    """A store that notes which event files were opened, which are open, and what was brought."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.content = files
        self.steps: list[int] = []
        self.open: list[int] = []
        self.brought: list[tuple[int, ByteRange]] = []

    @contextmanager
    def opened(self, key: str) -> Iterator[MemoryFile]:
        number = int(key.split("/")[1])
        content = self.read(key)
        self.steps.append(number)
        self.open.append(number)
        try:
            yield NotingFile(content, self, number)
        finally:
            self.open.remove(number)


class NotingFile(MemoryFile):
    """An event file of an `OpeningStore`."""

    def __init__(self, content: memoryview, store: OpeningStore, number: int) -> None:
        super().__init__(content)
        self.store = store
        self.number = number

    def read_ahead(self, byte_range: ByteRange) -> None:
        self.store.brought.append((self.number, byte_range))


def step(
    number: int,
    names: str = "w",
    mode: str = "GLOBAL",
    mode_step: int | None = None,
    worker: str = "worker_0",
    size: int = 3,
) -> dict[str, bytes]:
    """Return the files of a step, whose tensors begin with its number, and with 0.5 more each."""
    arrays = {name: np.full(size, number + at / 2) for at, name in enumerate(names)}
    records = {name: steps_saved.record(one, number, name) for name, one in arrays.items()}
    return steps_saved.step_files(number, records, mode, mode_step, worker)


def files(*found: dict[str, bytes], workers: int = 1) -> dict[str, bytes]:
    content = {
        rawtrial.collections_key(f"worker_{one}"): rawtrial.collections({}, workers)
        for one in range(workers)
    }
    for one in found:
        content |= one
    return content


def trial_of(content: dict[str, bytes], *, ended: bool = True) -> tuple[Trial, OpeningStore]:
    store = OpeningStore(content)
    return steps_saved.trial_of(store, ended=ended), store


def ask(
    trial: Trial,
    number: int,
    one: Any,
    before: int | None = None,
    name: str = "w",
    worker: str | None = None,
) -> Any:
    with snapshot([trial], number):
        return trial.tensor(name).measure(number, one, before, worker)


def measured_for_a_question(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return where to find the steps of questions for which something had to be measured."""
    result: list[int] = []
    measured = trial.index.tensors._measured

    def noted(name: str, step: int, *args: Any) -> Any:
        result.append(step)
        return measured(name, step, *args)

    monkeypatch.setattr(trial.index.tensors, "_measured", noted)
    return result


# -- what is measured ---------------------------------------------------------------------------


def test_what_was_asked_of_one_step_is_measured_at_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial, _ = trial_of(files(*(step(number) for number in range(5))))
    found = measured_for_a_question(trial, monkeypatch)
    noting = Noting()
    assert [ask(trial, number, noting) for number in range(5)] == [0, 1, 2, 3, 4]
    assert found == [0]
    assert noting.noted == [0, 1, 2, 3, 4]
    assert trial.reads == 5


def test_reductions_are_measured_ahead_too(monkeypatch: pytest.MonkeyPatch) -> None:
    trial, _ = trial_of(files(*(step(number) for number in range(4))))
    found = measured_for_a_question(trial, monkeypatch)
    for number in range(4):
        with snapshot([trial], number):
            assert trial.tensor("w").reduction_value(number, "mean", worker="worker_0") == number
            assert trial.tensor("w").reduction_value(number, "median") == number
    assert found == [0, 0, 1, 2, 3]  # a median needs the whole


def test_what_was_not_asked_of_two_steps_is_measured_no_more() -> None:
    trial, _ = trial_of(files(*(step(number, "wv") for number in range(9))))
    one, other = Noting(), Noting()
    for number in range(9):
        ask(trial, number, other, name="v")
        if number in {0, 5}:
            ask(trial, number, one)
    assert one.noted == [0, 1, 2, 5, 6, 7]
    assert other.noted == [number + 0.5 for number in range(9)]


def test_many_tensors_that_are_queried_together_are_measured_at_once() -> None:
    trial, _ = trial_of(files(*(step(number, "wvu") for number in range(4))))
    one, found = Noting(), []
    for number in range(4):
        with snapshot([trial], number):
            found.append(trial.prefetched_all(number, "worker_0", ["v", "w", "x"], one))
            for name in "wv"[: max(2 - number, 0)]:
                ask(trial, number, one, name=name)
    assert found == [{"v": at + 0.5, "w": at} for at in range(4)]
    assert sorted(one.noted) == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]
    assert trial.reads == 11
    assert trial.prefetched_all(3, "worker_0", "wv", one) == {}


def test_what_cannot_be_measured_together_is_not_tried_at_each_step() -> None:
    trial, store = trial_of(files(*(step(number, "w") for number in range(4))))
    for number in range(4):
        with snapshot([trial], number):
            assert trial.prefetched_all(number, "worker_0", ["x", "y"], Noting()) == {}
            assert trial.prefetched_all(number, "worker_0", ["x"], Noting()) == {}
    one = Noting()
    for number in range(4):
        with snapshot([trial], number):
            assert trial.prefetched_all(number, "worker_0", ["x", "y"], one) == {}
    assert store.steps == []


def test_workers_that_save_alike_share_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = ("worker_0", "worker_1", "worker_2")
    content = [step(number, "wv", worker=one) for number in range(5) for one in workers]
    trial, _ = trial_of(files(*content, workers=3))
    plans: list[object] = []
    made = part_reads.StepPlan

    def counting(*arguments: Any) -> Any:
        plans.append(made(*arguments))
        return plans[-1]

    monkeypatch.setattr(part_reads, "StepPlan", counting)
    one = Noting()
    for number in range(5):
        with snapshot([trial], number):
            for worker in workers:
                assert len(trial.prefetched_all(number, worker, ["v", "w"], one)) == 2
    assert len(plans) == 1


def test_nothing_is_opened_while_nothing_is_asked() -> None:
    trial, store = trial_of(files(*(step(number) for number in range(8))))
    one = Noting()
    ask(trial, 0, one)
    for number in range(1, 8):
        with snapshot([trial], number), pytest.raises(InvalidWorker):
            trial.tensor("w").measure(number, one, worker="nobody")
    assert {*store.steps} == {1, 2}


def test_modes_and_workers_have_habits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ["TRAIN", "TRAIN", "EVAL", "TRAIN", "EVAL", "TRAIN"]
    steps = [
        step(number, mode=mode, mode_step=number, worker=worker)
        for number, mode in enumerate(modes)
        for worker in ("worker_0", "worker_1")
    ]
    trial, _ = trial_of(files(*steps, workers=2))
    found = measured_for_a_question(trial, monkeypatch)
    one, other = Noting(), Noting()
    for number, mode in enumerate(modes):
        ask(trial, number, one if mode == "TRAIN" else other, worker="worker_1")
    assert one.noted == [0, 1, 3, 5]
    assert other.noted == [2, 4]
    assert found == [0, 2]


def test_without_a_worker_only_that_of_a_single_one_is_meant() -> None:
    first = [step(number, worker="worker_1") for number in range(3)]
    trial, store = trial_of(files(*first, workers=2), ended=False)
    one = Noting()
    assert [ask(trial, number, one) for number in range(3)] == [0, 1, 2]
    # The step is judged again because of another worker, whose tensor begins with something else.
    late = {name: steps_saved.record(np.full(3, 70.0), 2, name) for name in "w"}
    store.content |= steps_saved.step_files(2, late, worker="worker_0")
    trial.index.refresh()
    assert ask(trial, 2, one) == 70
    assert ask(trial, 2, one, worker="worker_1") == 2


def test_shapes_of_what_was_measured_are_reported_without_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial, _ = trial_of(files(*(step(number, "wv", size=7) for number in range(4))))
    read: list[int] = []
    tensor = trial.index.tensors.value

    def noted(name: str, at: int, *more: Any) -> Any:
        read.append(at)
        return tensor(name, at, *more)

    monkeypatch.setattr(trial.index.tensors, "value", noted)
    for number in range(4):
        with snapshot([trial], number):
            assert trial.tensor("w").shape(number) == (7,)
            assert trial.tensor("w").reduction_value(number, "mean") == number
            assert trial.tensor("v").shape(number) == (7,)
    assert read == [0, 0, 0, 1, 2, 3]  # of the other one nothing was measured
    assert trial.reads == 12


def test_shapes_are_those_of_the_step_that_is_judged() -> None:
    trial, _ = trial_of(files(*(step(number, size=3 + number // 2) for number in range(4))))
    for number in range(4):
        ask(trial, number, CHANGE)
        with snapshot([trial], number):
            assert [trial.tensor("w").shape(at) for at in range(number + 1)] == [
                (3 + at // 2,) for at in range(number + 1)
            ]


@pytest.mark.parametrize("small", [True, False])
def test_workers_have_shapes_of_their_own(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not small:
        monkeypatch.setattr(step_read_plan, "SMALL", -1)
    shapes = {"worker_0": (2, 3), "worker_1": (3, 2)}
    steps = [
        steps_saved.step_files(
            number, {"w": steps_saved.record(np.ones(shape), number, "w")}, worker=worker
        )
        for number in range(5)
        for worker, shape in shapes.items()
    ]
    trial, _ = trial_of(files(*steps, workers=2))
    for number in range(5):
        with snapshot([trial], number):
            for worker, shape in shapes.items():
                assert trial.tensor("w").reduction_value(number, "mean", worker=worker) == 1.0
                assert trial.tensor("w").shape(number, worker=worker) == shape


# -- earlier values -------------------------------------------------------------------------------


def test_values_are_compared_with_the_step_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial, _ = trial_of(files(*(step(number) for number in (0, 2, 5, 6, 8, 9))))
    found = measured_for_a_question(trial, monkeypatch)
    one = Noting()
    pairs = [(2, 0), (5, 2), (6, 5), (8, 5), (9, 8)]  # once two steps back
    assert [ask(trial, number, one, before) for number, before in pairs] == [
        number + before / 1000 for number, before in pairs
    ]
    assert found == [2, 8]


@pytest.mark.parametrize("measure", [Tolerance(0.1, 0.1), CHANGE], ids=["tolerance", "change"])
def test_steps_of_other_modes_and_the_step_itself_are_what_they_are(measure: Any) -> None:
    modes = ["TRAIN", "EVAL"] * 4
    steps = [step(number, mode=mode, mode_step=number) for number, mode in enumerate(modes)]
    trial, plain = trial_of(files(*steps))[0], trial_of(files(*steps))[0]
    plain.index.tensors.local_prefetch = None
    questions = [
        (number, before)
        for number in range(8)
        for before in (number - 1, number - 3, number)
        if before >= 0
    ]
    assert [ask(trial, *question[:1], measure, question[1]) for question in questions] == [
        ask(plain, *question[:1], measure, question[1]) for question in questions
    ]


@pytest.mark.parametrize("back", [0, 1, -1])
def test_nothing_is_measured_because_of_steps_of_another_mode(back: int) -> None:
    modes = ["TRAIN", "EVAL"] * 5
    steps = [step(number, mode=mode, mode_step=number) for number, mode in enumerate(modes)]
    trial, _ = trial_of(files(*steps))
    one = Noting()
    for number in range(2, 9):
        ask(trial, number, ZeroCount())
        with snapshot([trial], 9 if back < 0 else number):
            trial.tensor("w").measure(number, one, number - back)
    assert one.noted == [*range(2, 9)]


def test_nothing_is_measured_because_of_questions_about_earlier_steps() -> None:
    trial, store = trial_of(files(*(step(number) for number in range(8))))
    one = Noting()
    for number in range(1, 8):
        with snapshot([trial], number):
            assert trial.tensor("w").reduction_value(number, "median") == number
            assert trial.tensor("w").measure(number - 1, one) == number - 1
    assert one.noted == [*range(7)]
    assert store.steps == []


def test_nothing_is_compared_where_there_is_no_step_so_far_back() -> None:
    trial, store = trial_of(files(*(step(number) for number in range(6))))
    one = Noting()
    for number in (2, 3, 4):
        assert ask(trial, number, one, number - 2) == number + (number - 2) / 1000
    store.steps.clear()
    assert ask(trial, 1, ZeroCount()) == (0, 3)
    assert store.steps == [1]
    assert one.noted == [2, 3, 4]


def test_step_that_comes_late_is_the_one_before() -> None:
    steps = [step(number) for number in (0, 1, 2, 4, 5)]
    trial, store = trial_of(files(*steps), ended=False)
    one = Noting()
    assert [ask(trial, number, one, number - 1) for number in (1, 2)] == [1.0, 2.001]
    assert ask(trial, 4, one, 2) == 4.002
    store.content |= step(3)
    trial.index.refresh()
    assert ask(trial, 4, one, 3) == 4.003  # the same step once more
    assert ask(trial, 5, one, 4) == 5.004
    assert ask(trial, 5, one, 3) == 5.003


# -- what goes wrong ------------------------------------------------------------------------------


class Choosy(Noting):
    """Measures as it does, and fails at one value."""

    def part(self, piece: Piece, before: Piece | None = None) -> float:
        found = super().part(piece, before)
        if found == 3:
            msg = "It cannot be 3."
            raise ZeroDivisionError(msg)
        return found


def test_measure_that_fails_fails_for_whom_it_is() -> None:
    trial, _ = trial_of(files(*(step(number, "wv") for number in range(6))))
    one, other = Choosy(), Noting()
    for number in range(6):
        assert ask(trial, number, other, name="v") == number + 0.5
        if number == 3:
            with pytest.raises(ZeroDivisionError, match=r"It cannot be 3\."):
                ask(trial, number, one)
        else:
            assert ask(trial, number, one) == number


@pytest.mark.parametrize("damage", ["gone", "cut", "empty", "other"])
def test_event_file_that_breaks_between_steps_is_damage(
    damage: str,
) -> None:
    trial, store = trial_of(files(*(step(number) for number in range(8))))
    one, key = Noting(), rawtrial.event_key(6)
    for number in range(3):
        ask(trial, number, one)
    content = store.content.pop(key)
    broken = {"cut": content[:-1], "empty": b"", "other": content[:-4] + b"1234"}
    store.content |= {key: broken[damage]} if damage in broken else {}
    for number in range(3, 8):
        if number == 6:
            with pytest.raises(TensorDamaged, match=key):
                ask(trial, number, one)
        else:
            assert ask(trial, number, one) == number
    assert (trial.reads, trial.damaged) == (7, 1)


def test_place_that_no_file_has_is_damage(tmp_path: Path) -> None:
    content = files(*(step(number) for number in range(4)))
    key = rawtrial.index_key(3)
    content[key] = content[key].replace(b'"start_idx": 0', b'"start_idx": %d' % (2**63 + 5))
    trial = steps_saved.trial_of(LocalStore(rawtrial.write(tmp_path, content)))
    assert [ask(trial, number, CHANGE, number - 1)[1] for number in (1, 2)] == [0.0, 3**0.5]
    with pytest.raises(TensorDamaged, match="cut off"):
        ask(trial, 3, CHANGE, 2)


def test_without_memory_whoever_asks_learns_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trial, _ = trial_of(files(*(step(number, size=number + 1) for number in range(4))))

    def full(*_: Any) -> Any:
        raise MemoryError

    one = Noting()
    ask(trial, 0, one)
    monkeypatch.setattr(part_reads, "learn_layout", full)
    assert [ask(trial, number, one) for number in (1, 2, 3)] == [1, 2, 3]


# -- horizon and order ----------------------------------------------------------------------------


def test_nothing_of_a_later_step_shows() -> None:
    trial, _ = trial_of(files(*(step(number) for number in range(6))))
    one = Noting()
    for number in range(3):
        ask(trial, number, one)
    with snapshot([trial], 2):
        tensor = trial.tensor("w")
        for later in (3, 4):
            with pytest.raises(TensorUnavailableForStep, match=f"at step {later}"):
                tensor.measure(later, one)
            with pytest.raises(TensorUnavailableForStep, match=f"at step {later}"):
                tensor.measure(2, one, later)
        assert tensor.measure(1, one) == 1
        assert tensor.steps() == [0, 1, 2]
    assert trial.reads == 4


def test_steps_may_be_judged_in_any_order() -> None:
    trial, _ = trial_of(files(*(step(number) for number in range(9))))
    one = Noting()
    order = [0, 1, 2, 1, 0, 5, 3, 4, 8, 8, 7, 2]
    assert [ask(trial, number, one) for number in order] == order


def test_views_of_one_trial_share_what_was_prefetched() -> None:
    trial, _ = trial_of(files(*(step(number) for number in range(4))))
    other, one = trial.share(), Noting()
    for number in range(4):
        assert ask(trial, number, one) == ask(other, number, one) == number
    assert one.noted == [0, 1, 2, 3]
    assert (trial.reads, other.reads) == (4, 4)


def test_outside_of_steps_nothing_is_prefetched() -> None:
    trial, store = trial_of(files(*(step(number) for number in range(4))))
    assert [trial.tensor("w").measure(number, Noting()) for number in range(4)] == [0, 1, 2, 3]
    assert store.steps == []


def test_stores_where_each_read_takes_its_time_have_no_prefetch() -> None:
    store = MemoryStore(files(step(0)))
    assert NativeIndex(store).tensors.local_prefetch is not None
    assert NativeIndex(CountingStore(store)).tensors.local_prefetch is None  # cannot be opened
    assert NativeIndex(CountingStore(store, REMOTE)).tensors.local_prefetch is None


# -- what is brought near -------------------------------------------------------------------------


def test_next_step_is_brought_while_one_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_prefetch, "MIN_PREFETCH_BYTES", 100)
    trial, store = trial_of(files(*(step(number, "vw", size=50) for number in range(6))))
    for number in range(6):
        assert ask(trial, number, ZeroCount()) == (0, 50)
    ((_, span),) = {
        (key, one.raw)
        for key, one in trial.index.files[2]["worker_0"].entries.items()
        if key == "w"
    }
    assert span is not None
    assert store.brought == [
        (number, ByteRange(span.start, span.start + span.length)) for number in range(2, 6)
    ]
    assert store.open == []


@pytest.mark.parametrize(("worth", "asked"), [(10**6, "uvw"), (100, "uw")])
def test_little_is_not_brought_nor_what_lies_far_apart(
    worth: int, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_prefetch, "MIN_PREFETCH_BYTES", worth)
    sizes = {"u": 50, "v": 500, "w": 50}
    steps = [
        steps_saved.step_files(
            number,
            {name: steps_saved.record(np.ones(size), number, name) for name, size in sizes.items()},
        )
        for number in range(5)
    ]
    trial, store = trial_of(files(*steps))
    for number in range(5):
        assert [ask(trial, number, ZeroCount(), name=name)[0] for name in asked] == [0] * len(asked)
    assert store.brought == []


def test_a_next_step_that_does_not_exist_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_prefetch, "MIN_PREFETCH_BYTES", 0)
    trial, store = trial_of(files(*(step(number) for number in range(4))))
    one = Noting()
    assert [ask(trial, number, one) for number in range(2)] == [0, 1]
    del store.content[rawtrial.event_key(3)]
    assert ask(trial, 2, one) == 2
    assert [number for number, _ in store.brought] == [2]


def test_a_wrong_number_of_threads_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "many")
    with pytest.raises(SMDebugValueError, match=f"The environment's {THREADS} must be a number"):
        local_prefetch.LocalPrefetch(None, {}, [], {})
