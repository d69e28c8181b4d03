import math
import threading
from pathlib import Path

import msgspec
import pytest
import reports
import served

from rule_core.clock import SystemClock
from rule_runner.index.database import WatchDatabase
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import WatchState
from rule_runner.service.curves import series
from rule_runner.service.curves.series import TRIALS_KEPT, SeriesCache, SeriesPage, SeriesQuery


class FakeClock(SystemClock):
    """Time that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:  # type: ignore[override]
        return self.now


def record(tmp_path: Path, name: str = "a", **fields: object) -> TrialRecord:
    path = tmp_path / "index.sqlite"
    database = WatchDatabase(path) if path.exists() else WatchDatabase.empty(path)
    with database:
        trial = served.add(database, str(tmp_path / name), output=str(tmp_path / "out" / name))
    return msgspec.structs.replace(trial, **fields)


def log(tmp_path: Path, name: str = "a", rows: int = 4) -> None:
    (tmp_path / name).mkdir(exist_ok=True)
    text = "".join(f"{step},{math.nan if step == 2 else step / 2}\n" for step in range(rows))
    (tmp_path / name / "log.csv").write_text(f"step,loss\n{text}")


def measured(tmp_path: Path, name: str = "a") -> None:
    lines = [
        reports.series({0: 1e-3, 20: 1e-8}, met=[20], tensor=f"gradient/{number}")
        for number in range(7)
    ]
    folder = tmp_path / "out" / name / "VanishingGradient"
    reports.save(folder, reports.fired(), reports.measurements(*lines, left_out=3))


def test_curves_of_the_trial_and_what_rules_measured(tmp_path: Path) -> None:
    log(tmp_path)
    measured(tmp_path)
    page = SeriesCache().page(record(tmp_path))
    loss = page.series[-1]
    assert (loss.name, loss.kind, loss.steps) == ("loss", "loss", [0, 1, 2, 3])
    assert (loss.values, loss.marks) == ([0, 0.5, None, 1.5], [(2, "NaN")])
    first = page.series[0]
    assert (first.kind, first.rule, first.quantity) == (
        "measured",
        "VanishingGradient",
        "mean |gradient|",
    )
    assert (first.limit, first.worse, first.log, first.met) == (1e-7, "below", True, [20])
    assert len(page.series) == 6
    assert (page.last_step, page.complete, page.truncated, page.problem) == (3, True, 5, "")


def test_only_new_points_of_some_curves(tmp_path: Path) -> None:
    log(tmp_path)
    measured(tmp_path)
    cache = SeriesCache()
    page = cache.page(record(tmp_path), SeriesQuery(after=1))
    assert [(item.name, item.steps, item.marks) for item in page.series] == [
        ("loss", [2, 3], [(2, "NaN")])
    ]
    assert cache.page(record(tmp_path), SeriesQuery(names=("other",))).series == []
    assert cache.page(record(tmp_path), SeriesQuery(after=3)).series == []


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("gone", None, "does not exist"),
        ("empty", {}, ""),
        ("damaged", {"log.csv": b"\xff\xfe\0step"}, ""),
        ("collections", {"collections/000000000/worker_0_collections.json": b"{"}, ""),
    ],
)
def test_a_trial_that_cannot_be_read_gives_an_empty_page(
    tmp_path: Path, name: str, content: dict[str, bytes] | None, problem: str
) -> None:
    for key, data in (content or {}).items():
        (tmp_path / name / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name / key).write_bytes(data)
    if content == {}:
        (tmp_path / name).mkdir()
    clock = FakeClock()
    cache = SeriesCache(clock)
    for _ in range(2):
        clock.now += 1
        page = cache.page(record(tmp_path, name))
        assert page.series == []
        assert page.complete
        assert problem in page.problem


def test_a_damaged_measurement_leaves_the_trials_own_curves(tmp_path: Path) -> None:
    log(tmp_path)
    measured(tmp_path)
    (tmp_path / "out" / "a" / "measurements.json").write_text("{")
    page = SeriesCache().page(record(tmp_path))
    assert "loss" in [item.name for item in page.series]


def test_what_a_rule_measured_is_read_when_the_evaluation_has_ended(tmp_path: Path) -> None:
    log(tmp_path)
    clock = FakeClock()
    cache = SeriesCache(clock)
    running = record(tmp_path, state=WatchState.RUNNING, ended_at=None)
    assert [item.kind for item in cache.page(running).series] == ["loss"]
    measured(tmp_path)
    assert [item.kind for item in cache.page(running).series] == ["loss"]
    clock.now += 1
    kinds = [item.kind for item in cache.page(record(tmp_path)).series]
    assert kinds == ["measured"] * 5 + ["loss"]


def test_a_trial_of_profiler_data_alone_is_not_read(tmp_path: Path) -> None:
    page = SeriesCache().page(record(tmp_path, "gone", tensors=False))
    assert (page.series, page.problem, page.last_step) == ([], "", -1)


def test_few_trials_are_kept(tmp_path: Path) -> None:
    log(tmp_path)
    cache = SeriesCache()
    trial = record(tmp_path)
    for number in range(TRIALS_KEPT + 5):
        cache.page(msgspec.structs.replace(trial, id=number))
    assert len(cache._trials) == TRIALS_KEPT


def test_threads_get_the_same_answer(tmp_path: Path) -> None:
    log(tmp_path, rows=500)
    cache, trial = SeriesCache(), record(tmp_path)
    pages = []
    threads = [threading.Thread(target=lambda: pages.append(cache.page(trial))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pages) == 8
    assert all(page.series == pages[0].series for page in pages)


def test_nobody_waits_long_for_other_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "WAIT_S", 0.01)
    log(tmp_path)
    clock = FakeClock()
    cache, trial = SeriesCache(clock), record(tmp_path)
    cache.page(trial)
    clock.now += 1
    for _ in range(series.READERS):
        cache._readers.acquire()
    page = cache.page(trial)
    assert (len(page.series), page.complete) == (1, False)
    cache._cached(trial).lock.acquire()
    assert cache.page(trial) == SeriesPage([], -1, complete=False, truncated=0, problem="")


def test_several_requests_at_once_read_once(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = SeriesCache(clock)
    trial = record(tmp_path, "gone")
    assert "does not exist" in cache.page(trial).problem
    log(tmp_path, "gone")
    assert "does not exist" in cache.page(trial).problem
    clock.now += 10
    assert cache.page(trial).problem == ""


def test_what_was_written_since_the_last_look_is_asked_for_again(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = SeriesCache(clock)
    log(tmp_path)
    trial = record(tmp_path, state=WatchState.RUNNING)
    before = cache.page(trial)
    assert before.complete
    log(tmp_path, rows=9)
    clock.now += series.PAUSE_S / 2
    assert cache.page(trial) == msgspec.structs.replace(before, complete=False)
    clock.now += 10
    page = cache.page(trial)
    assert page.last_step > before.last_step
    assert page.complete


def test_the_page_is_json_without_nan(tmp_path: Path) -> None:
    log(tmp_path)
    text = msgspec.json.encode(SeriesCache().page(record(tmp_path))).decode()
    assert '"values":[0.0,0.5,null,1.5],"marks":[[2,"NaN"]]' in text
