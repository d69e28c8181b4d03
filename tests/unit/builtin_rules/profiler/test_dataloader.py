"""Dataloader: which numbers of loader processes meet it, and what is counted."""

from typing import Any

import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import Series, cpu

from builtin_rules.profiler.dataloader import NO_CORES, NO_LOADERS, TOO_FEW, Dataloader
from rule_core.profiler.traces.event import TraceEvent

SECONDS = 20


def cores(count: int, node: str = "algo-1", n: int = 120) -> list[Series]:
    return [cpu([1.0] * n, f"cpu{at}", node=node) for at in range(count)]


def workers(
    count: int, seconds: int = SECONDS, begin_s: float = 0.0, **more: Any
) -> list[TraceEvent]:
    """Return events of so many processes in each second."""
    return [
        event("fetch", begin_s + at + 0.1, 0.5, phase="DataLoaderWorker", pid=100 + one, **more)
        for at in range(seconds)
        for one in range(count)
    ]


def iterator(seconds: int = SECONDS, wait_s: float = 0.5, **more: Any) -> list[TraceEvent]:
    name = "_SingleProcessDataLoaderIter::GetNext"
    return [event(name, at + 0.1, wait_s, phase="DataLoaderIter", **more) for at in range(seconds)]


@pytest.mark.parametrize(
    ("loaders", "of", "params", "met"),
    [
        pytest.param(1, 4, {}, [0], id="one-of-four"),
        pytest.param(4, 4, {}, [], id="as-many"),
        pytest.param(7, 10, {}, [], id="exactly-70-percent"),
        pytest.param(6, 10, {}, [0], id="fewer"),
        pytest.param(8, 4, {}, [], id="exactly-200-percent"),
        pytest.param(9, 4, {}, [0], id="more"),
        pytest.param(2, 4, {"min_threshold": 50}, [], id="min_threshold"),
        pytest.param(4, 4, {"max_threshold": 99}, [0], id="max_threshold"),
        pytest.param(1, 4, {"patience": SECONDS}, [], id="exactly-patience"),
        pytest.param(1, 4, {"patience": SECONDS - 1}, [0], id="one-more"),
    ],
)
def test_windows(loaders: int, of: int, params: dict[str, Any], met: list[int]) -> None:
    trial = FakeProfilerTrial(*cores(of), events=workers(loaders))
    assert judge_windows(Dataloader, trial, **params).met == met


def test_the_integer_part_of_the_median_counts() -> None:
    # Half of the seconds have three processes, half of them two: 2.5.
    events = workers(3, 10) + workers(2, 10, begin_s=10.0)
    trial = FakeProfilerTrial(*cores(4), events=events)
    (finding,) = judge_windows(Dataloader, trial).findings
    assert (finding.worker, finding.measured, finding.limit, finding.note) == (
        "algo-1",
        50.0,
        70,
        "2 loader processes, 4 cores.",
    )


def test_without_workers_the_iterators_load() -> None:
    trial = FakeProfilerTrial(*cores(4), events=iterator())
    assert judge_windows(Dataloader, trial).met == [0]
    both = FakeProfilerTrial(*cores(4), events=[*workers(4), *iterator(pid=1)])
    assert judge_windows(Dataloader, both).met == []


@pytest.mark.parametrize(
    ("wait_s", "params", "met"),
    [
        (0.21, {}, [0]),
        (0.19, {}, []),
        (0.19, {"literal": True}, [0]),
    ],
)
def test_few_processes_that_keep_up_are_enough(
    wait_s: float, params: dict[str, Any], met: list[int]
) -> None:
    trial = FakeProfilerTrial(*cores(4), events=iterator(wait_s=wait_s))
    assert judge_windows(Dataloader, trial, **params).met == met


def test_many_processes_are_too_many_though_they_keep_up() -> None:
    events = [*workers(9), *iterator(wait_s=0.01, pid=1)]
    (finding,) = judge_windows(Dataloader, FakeProfilerTrial(*cores(4), events=events)).findings
    assert finding.note == "9 loader processes, 4 cores. Batches take 1 percent of the time."


def test_waits_of_one_batch_are_unknown() -> None:
    trial = FakeProfilerTrial(*cores(4), events=[*workers(1), *iterator(1, wait_s=0.001, pid=1)])
    assert judge_windows(Dataloader, trial).met == [0]


@pytest.mark.parametrize(
    ("num_workers", "met"),
    [(4, []), ("4", []), (2, [0]), (9, [0]), (0, [0]), (None, [0]), ("many", [0]), (-4, [0])],
)
def test_a_loader_has_the_workers_that_it_began_with(num_workers: object, met: list[int]) -> None:
    name = "DataLoaderIterInitialize"
    begin = event(name, 0.0, 0.05, phase=name, pid=1, num_workers=num_workers)
    trial = FakeProfilerTrial(*cores(4), events=[begin, *iterator(pid=1)])
    assert judge_windows(Dataloader, trial).met == met


def test_a_process_loads_in_every_second_of_an_event() -> None:
    events = [
        event("fetch", at, 10.0, phase="DataLoaderWorker", pid=100 + at) for at in range(4)
    ] + [event("fetch", 10 + at, 10.0, phase="DataLoaderWorker", pid=100 + at) for at in range(4)]
    judged = judge_windows(Dataloader, FakeProfilerTrial(*cores(4), events=events))
    assert (judged.met, judged.report["Details"]["dataloaders"]) == ([], 4)


def test_a_second_counts_once_though_an_event_of_it_ends_in_the_next_window() -> None:
    events = [
        event("fetch", 50.0, 0.5, phase="DataLoaderWorker", pid=1),
        event("fetch", 50.0, 12.0, phase="DataLoaderWorker", pid=2),
    ]
    judged = judge_windows(Dataloader, FakeProfilerTrial(*cores(4), events=events))
    assert judged.report["Datapoints"] == 13


def test_ranks_of_a_node_count_together_and_nodes_apart() -> None:
    ranks = [
        one
        for rank in range(3)
        for one in [
            *workers(1, node=f"algo-1-{rank}"),
            *workers(1, node=f"algo-11-{rank}"),
        ]
    ]
    for at, one in enumerate(ranks):
        one.pid = at % 977 if (one.node_id or "").startswith("algo-1-") else 5
    trial = FakeProfilerTrial(*cores(3), *cores(3, "algo-11"), events=ranks)
    judged = judge_windows(Dataloader, trial)
    assert [one.worker for one in judged.findings] == ["algo-11"]
    assert judged.report["Details"]["nodes"] == {
        "algo-1": {"cores": 3, "dataloaders": 3},
        "algo-11": {"cores": 3, "dataloaders": 1},
    }


def test_the_only_node_is_the_one_whose_name_the_timeline_has_not() -> None:
    trial = FakeProfilerTrial(*cores(4), events=workers(1, node="51-host"))
    assert [one.worker for one in judge_windows(Dataloader, trial).findings] == ["algo-1"]


def test_it_triggers_once() -> None:
    trial = FakeProfilerTrial(*cores(4, n=360), events=workers(1, 180))
    report = judge_windows(Dataloader, trial).report
    assert (report["RuleTriggered"], report["Violations"], report["Datapoints"]) == (1, 3, 180)


def test_what_is_not_judged() -> None:
    other = event("dataset::GetNext", 70.0, 1.0, phase="DataIterator")
    trial = FakeProfilerTrial(*cores(4, n=240), events=[*workers(1, 3, 20.0), other], end_s=110.0)
    assert judge_windows(Dataloader, trial).skipped == {0: TOO_FEW, 1: NO_LOADERS}
    unknown = FakeProfilerTrial(*cores(4), *cores(4, "algo-2"), events=workers(1, node="host-7"))
    assert judge_windows(Dataloader, unknown).skipped == {0: NO_CORES}
    assert judge_windows(Dataloader, FakeProfilerTrial(*cores(4))).report["Details"] == {}


def test_long_jobs_are_counted_by_numbers_and_not_processes() -> None:
    trial = FakeProfilerTrial(*cores(4), events=workers(1, 900) + workers(4, 900, 900.0))
    judged = judge_windows(Dataloader, trial)
    assert judged.report["Datapoints"] == 1800
    assert judged.report["Details"]["dataloaders"] == 2


def test_details() -> None:
    begin = event(
        "_MultiProcessingDataLoaderIter.__init__",
        0.0,
        1.0,
        phase="DataLoaderIterInitialize",
        pin_memory="True",
        num_workers=1,
    )
    trial = FakeProfilerTrial(*cores(4), events=[begin, *workers(1), *iterator()])
    report = judge_windows(Dataloader, trial).report
    details = report["Details"]
    times = details.pop("dataloading_time")
    assert details == {
        "pin_memory": "True",
        "num_workers": 1,
        "prefetch": None,
        "cores": 4,
        "dataloaders": 1,
        "nodes": {"algo-1": {"cores": 4, "dataloaders": 1}},
    }
    assert (times["p25"], times["p50"], times["p95"]) == (0.5, 0.5, 0.5)
    assert (sum(times["probs"]), len(times["binedges"])) == (pytest.approx(1.0), 101)
    assert report["RuleParameters"] == "min_threshold:70\nmax_threshold:200"


def test_time_to_load_a_batch_is_that_of_getnext_and_not_the_life_of_a_worker() -> None:
    life = event("DataLoaderWorker", 0.5, 59.0, phase="DataLoaderWorker", pid=7)
    name = "_MultiProcessingDataLoaderIter::GetNext"
    batches = [event(name, at + 0.1, 0.002, phase="DataLoaderIter") for at in range(SECONDS)]
    trial = FakeProfilerTrial(*cores(1), events=[life, *batches])
    times = judge_windows(Dataloader, trial).report["Details"]["dataloading_time"]
    assert (times["p25"], times["p95"]) == (0.002, 0.002)
    alone = judge_windows(Dataloader, FakeProfilerTrial(*cores(1), events=[life]))
    assert alone.report["Details"]["dataloading_time"] == {"probs": [], "binedges": []}
