"""The next step is measured while rules judge this one: results are those of measuring on time."""

import gc
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
import steps_saved
from fleets import wait_until
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import open_files

from rule_core.exceptions import TensorDamaged
from rule_core.kernels.sweep import has_kernel
from rule_core.model import streaming_statistics
from rule_core.model.array_difference import ChangeNorms
from rule_core.model.element_statistics import Activity, ZeroCount
from rule_core.model.reductions import Reduction
from rule_core.reading import chunked_reads, step_read_plan
from rule_core.reading.measuring import local_prefetch, part_reads
from rule_core.reading.measuring.part_reads import StepAhead
from rule_core.storage.local import LocalStore
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial

SIZE: Final = 300
MEAN: Final = Reduction("mean")
CHANGE: Final = ChangeNorms()
ZEROS: Final = ZeroCount()
ACTIVITY: Final = Activity(0.5)

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, 3)


def shrink(patch: pytest.MonkeyPatch, threads: int) -> None:
    """Let steps of a few hundred bytes be worth threads."""
    patch.setattr(local_prefetch, "MIN_PREFETCH_BYTES", 100)
    patch.setattr(chunked_reads, "MIN_THREADED_BYTES", 100)
    for module in (streaming_statistics, chunked_reads, step_read_plan):
        patch.setattr(module, "PIECE_BYTES", 256)
    patch.setattr(step_read_plan, "SMALL", 40)
    for module in (local_prefetch, chunked_reads):
        patch.setattr(module, "measuring_threads", lambda: threads)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are measured ahead."""
    steps: list[int] = []
    begin = StepAhead.begin

    def noted(self: StepAhead) -> bool:
        has_begun = begin(self)
        steps.extend([self.step] * has_begun)
        return has_begun

    monkeypatch.setattr(StepAhead, "begin", noted)
    return steps


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of calls of the kernel in what runs together."""
    counts: list[int] = []
    for module in (part_reads, chunked_reads):
        run = module.SweepRun

        def counting(calls: Any, run: Any = run) -> Any:
            counts.append(len(calls))
            return run(calls)

        monkeypatch.setattr(module, "SweepRun", counting)
    return counts


def step(
    number: int, seed: int = 0, worker: str = "worker_0", names: str = "vw", size: int = SIZE
) -> dict[str, bytes]:
    """Return the files of a step."""
    generator = np.random.default_rng([number, seed, int(worker[-1])])
    records = {
        name: steps_saved.record(generator.normal(size=size).astype("f4"), number, name)
        for name in names
    }
    return steps_saved.step_files(number, records, worker=worker)


class Folder:
    """A trial in a folder, and the answers without a look ahead."""

    def __init__(self, root: Path, steps: Mapping[str, bytes], *, workers: int = 1) -> None:
        self.root = root
        for number in range(workers):
            self.add(
                {rawtrial.collections_key(f"worker_{number}"): rawtrial.collections({}, workers)}
            )
        self.add(steps)
        self.trial = self.opened()

    def opened(self, *, prefetch: bool = True) -> Trial:
        store = LocalStore(self.root)
        return steps_saved.trial_of(store, prefetch=prefetch, ended=False)

    def add(self, content: Mapping[str, bytes]) -> None:
        """Write files as a training does: under another name first."""
        for key, data in content.items():
            path = self.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".tmp")
            draft.write_bytes(data)
            draft.rename(path)

    def plain(self, *question: Any, **more: Any) -> Any:
        return ask(self.opened(prefetch=False), *question, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Folder]:
    def make(steps: int = 8, **more: Any) -> Folder:
        workers = [f"worker_{number}" for number in range(more.get("workers", 1))]
        content = [step(number, worker=worker) for number in range(steps) for worker in workers]
        return Folder(tmp_path / "trial", {k: v for one in content for k, v in one.items()}, **more)

    return make


def running_threads() -> int:
    """Return how many threads this process has."""
    return len([*Path("/proc/self/task").iterdir()])


def ask(
    trial: Trial,
    number: int,
    statistic: Any = MEAN,
    before: int | None = None,
    name: str = "w",
    worker: str = "worker_0",
) -> Any:
    """Return an answer to the last bit."""
    with snapshot([trial], number):
        value = trial.tensor(name).measure(number, statistic, before, worker)
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def test_each_step_but_the_first_ones_is_measured_ahead(
    folder: Callable[..., Folder], begun: list[int], calls: list[int]
) -> None:
    trial = folder()
    asked = [ask(trial.trial, number) for number in range(8)]
    assert asked == [trial.plain(number) for number in range(8)]
    assert begun == [2, 3, 4, 5, 6, 7]
    assert calls == [1] * 7


def test_on_one_core_nothing_begins_ahead(
    folder: Callable[..., Folder], begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch, 1)
    trial = folder()
    asked = [ask(trial.trial, number) for number in range(8)]
    assert asked == [trial.plain(number) for number in range(8)]
    assert begun == []


def test_workers_are_measured_ahead_together(
    folder: Callable[..., Folder], begun: list[int], calls: list[int]
) -> None:
    trial = folder(6, workers=3)
    for number in range(6):
        for worker in ("worker_0", "worker_1", "worker_2"):
            assert ask(trial.trial, number, worker=worker) == trial.plain(number, worker=worker)
    assert begun == [2, 3, 4, 5]
    assert calls == [1, 1, 1, 3, 3, 3, 3]


@pytest.mark.parametrize(("limit", "parts"), [("AHEAD_BYTES", 3), ("AHEAD_FILES", 2)])
def test_memory_and_open_files_are_bounded(
    limit: str,
    parts: int,
    folder: Callable[..., Folder],
    calls: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans: set[chunked_reads.ChunkedReadPlan] = set()
    carry_out = chunked_reads.ChunkedReadPlan.carry_out

    def noted(self: chunked_reads.ChunkedReadPlan, *arguments: Any) -> None:
        plans.add(self)
        carry_out(self, *arguments)

    monkeypatch.setattr(chunked_reads.ChunkedReadPlan, "carry_out", noted)
    trial = folder(7, workers=4)
    plan_bytes = 0
    for number in range(7):
        if number == 4:
            (plan_bytes,) = {plan.nbytes for plan in plans}
            bounds = {"AHEAD_BYTES": parts * plan_bytes + 1, "AHEAD_FILES": parts}
            monkeypatch.setattr(part_reads, limit, bounds[limit])
            plans.clear()
        for worker in map("worker_{}".format, range(4)):
            assert ask(trial.trial, number, worker=worker) == trial.plain(number, worker=worker)
    assert plan_bytes > 256 * 3
    late = [1] * (4 - parts)
    assert calls == [1, 1, 1, 1, 4, 4, 4, parts, parts, *late, *late]


@pytest.mark.parametrize("change", ["gone", "cut", "other", "in place"])
def test_a_file_that_changes_is_measured_as_it_is(
    change: str, folder: Callable[..., Folder], begun: list[int]
) -> None:
    trial = folder()
    for number in range(4):
        ask(trial.trial, number)
    assert begun[-1] == 4
    path = trial.root / rawtrial.event_key(4)
    if change == "gone":
        path.unlink()
    elif change == "cut":
        os.truncate(path, 1000)
    elif change == "other":
        trial.add({rawtrial.event_key(4): step(4, seed=1)[rawtrial.event_key(4)]})
    else:
        path.write_bytes(step(4, seed=1)[rawtrial.event_key(4)])
        os.utime(path, ns=(0, 0))  # however coarse the clock is
    if change in {"gone", "cut"}:
        with pytest.raises(TensorDamaged):
            ask(trial.trial, 4)
    else:
        assert ask(trial.trial, 4) == trial.plain(4)
    assert [ask(trial.trial, number) for number in (5, 6)] == [*map(trial.plain, (5, 6))]


def test_damage_shows_at_its_step_and_not_before(
    folder: Callable[..., Folder], begun: list[int]
) -> None:
    trial = folder()
    os.truncate(trial.root / rawtrial.event_key(4), 1000)
    (trial.root / rawtrial.event_key(5)).unlink()
    for number in (0, 1, 2, 3):
        assert ask(trial.trial, number) == trial.plain(number)
    assert trial.trial.damaged == 0
    for number in (4, 5):
        with pytest.raises(TensorDamaged):
            ask(trial.trial, number)
    assert trial.trial.damaged == 2
    assert ask(trial.trial, 6) == trial.plain(6)
    assert begun == [2, 3, 4, 6]


def test_a_next_step_that_is_not_complete_is_completed(
    folder: Callable[..., Folder], calls: list[int]
) -> None:
    trial = folder(3, workers=2)
    trial.add(step(3))
    trial.trial.index.refresh()
    workers = ("worker_0", "worker_1")
    for number in range(3):
        asked = [ask(trial.trial, number, worker=worker) for worker in workers]
        assert asked == [trial.plain(number, worker=worker) for worker in workers]
    trial.add(step(3, worker="worker_1"))
    trial.trial.index.refresh()
    asked = [ask(trial.trial, 3, worker=worker) for worker in workers]
    assert asked == [trial.plain(3, worker=worker) for worker in workers]
    assert calls == [1, 1, 2, 1, 1]


def test_a_step_that_comes_late_is_the_one_before(tmp_path: Path) -> None:
    content = {key: data for number in (0, 1, 2, 4, 5) for key, data in step(number).items()}
    trial = Folder(tmp_path, content)
    pairs = [(1, 0), (2, 1), (4, 3), (5, 4)]
    asked = [ask(trial.trial, number, CHANGE, before) for number, before in pairs[:2]]
    trial.add(step(3))
    trial.trial.index.refresh()
    asked += [ask(trial.trial, number, CHANGE, before) for number, before in pairs[2:]]
    assert asked == [trial.plain(number, CHANGE, before) for number, before in pairs]


def test_steps_that_rules_skip_are_not_measured(
    folder: Callable[..., Folder], begun: list[int]
) -> None:
    trial = folder(24)
    for number in range(0, 24, 3):
        assert ask(trial.trial, number) == trial.plain(number)
    assert begun == [4]  # until it is noticed


def test_questions_about_earlier_steps_leave_the_next_one(
    folder: Callable[..., Folder], begun: list[int]
) -> None:
    trial = folder()
    for number in range(8):
        assert ask(trial.trial, number) == trial.plain(number)
        if number:
            assert ask(trial.trial, number - 1, ZEROS) == trial.plain(number - 1, ZEROS)
    assert begun == [2, 4, 5, 6, 7]


@pytest.mark.parametrize("leave", ["trial", "rule"])
def test_what_is_not_used_ends_with_its_threads_and_files(
    leave: str, folder: Callable[..., Folder], begun: list[int]
) -> None:
    gc.collect()
    threads = running_threads()
    trial = folder()
    for number in range(4):
        ask(trial.trial, number)
    assert begun[-1] == 4
    assert len(open_files(trial.root)) == 1
    if leave == "trial":
        del trial.trial
        gc.collect()
    else:
        ask(trial.trial, 7)
    assert not open_files(trial.root)
    wait_until(lambda: running_threads() <= threads)


class Foreign:
    """A statistic of a user, which the kernel does not know."""

    def part(self, piece: Any, before: Any = None) -> float:
        del before
        return float(piece.elements[0])

    def join(self, parts: Any, size: int, dtype: Any) -> float:
        del size, dtype
        return float(parts[0])


def test_statistics_of_users_are_measured_on_time(
    folder: Callable[..., Folder], begun: list[int]
) -> None:
    trial, foreign = folder(), Foreign()
    for number in range(8):
        for statistic, name in ((foreign, "v"), (MEAN, "w")):
            expected = trial.plain(number, statistic, name=name)
            assert ask(trial.trial, number, statistic, name=name) == expected
    assert begun == [2, 3, 4, 5, 6, 7]


def test_what_fails_ahead_is_measured_on_time(
    folder: Callable[..., Folder], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(*_: Any) -> Any:
        msg = "This statistic of a user fails."
        raise ZeroDivisionError(msg)

    trial = folder()
    for number in range(3):
        assert ask(trial.trial, number) == trial.plain(number)
    with monkeypatch.context() as patch:
        patch.setattr(chunked_reads.ChunkedReadPlan, "prepare", prepare)
        assert ask(trial.trial, 3) == trial.plain(3)
    assert ask(trial.trial, 4) == trial.plain(4)
    assert calls == [1, 1, 1, 1, 1]


@pytest.mark.merge
@settings(max_examples=25, deadline=None)
@given(
    threads=st.integers(1, 3),
    moves=st.lists(
        st.tuples(
            st.sampled_from((1, 1, 1, 1, 0, -1, 2)),
            st.lists(
                st.tuples(
                    st.sampled_from((MEAN, MEAN, ZEROS, CHANGE, ACTIVITY)),
                    st.integers(1, 2),
                    st.sampled_from("vw"),
                    st.sampled_from(("worker_0", "worker_1")),
                ),
                min_size=1,
                max_size=3,
            ),
            st.sampled_from(("", "", "", "replace", "grow")),
        ),
        min_size=4,
        max_size=12,
    ),
)
def test_answers_are_those_of_asking_on_time(threads: int, moves: list[Any]) -> None:
    workers = ("worker_0", "worker_1")
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        shrink(patch, threads)
        content = [step(number, worker=worker) for number in range(6) for worker in workers]
        trial = Folder(Path(root), {k: v for one in content for k, v in one.items()}, workers=2)
        number, front, last = -1, -1, 5
        for forward, questions, event in moves:
            number = min(max(number + forward, 0), last)
            front = max(front, number)
            for statistic, back, name, worker in questions:
                before = number - back if statistic is CHANGE else None
                if before is not None and before < 0:
                    continue
                question = number, statistic, before, name, worker
                assert ask(trial.trial, *question) == trial.plain(*question)
            if event == "replace" and front < last:
                # Not a step that was reached: its values are cached, however they were measured.
                key = rawtrial.event_key(front + 1)
                trial.add({key: step(front + 1, seed=7)[key]})
            elif event == "grow":
                last += 1
                for worker in workers:
                    trial.add(step(last, worker=worker))
                trial.trial.index.refresh()
