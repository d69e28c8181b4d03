"""PandasFrameAnalysis: times of jobs and steps, use of resources, intervals of phases."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from profiled_job import steps_of, write_job
from profiler_writer import Series, cpu, gpu, write_samples
from timeline_writer import Event, step, write

from rule_core.analysis.frames.pandas_data_analysis import (
    JobStats,
    PandasFrameAnalysis,
    Resource,
    StatsBy,
)
from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame

TRAIN, EVAL, GLOBAL = (f"Step:ModeKeys.{mode}" for mode in ("TRAIN", "EVAL", "GLOBAL"))


def analysis(root: Path) -> PandasFrameAnalysis:
    frames = PandasFrame(root)
    return PandasFrameAnalysis(frames.get_all_system_metrics(), frames.get_all_framework_metrics())


def of(events: list[Event], root: Path, *series: Series) -> PandasFrameAnalysis:
    write_samples(root, *(series or [cpu([1])]))
    write(root, events)
    return analysis(root)


def rows(frame: pd.DataFrame | None) -> list[list[Any]]:
    assert frame is not None
    return [list(row) for row in frame.itertuples(index=False)]


# -- numbers of steps -------------------------------------------------------------------------


def test_events_get_the_number_of_the_step_around_them(tmp_path: Path) -> None:
    events = [
        step(0, 100, 100),
        step(1, 300, 100),
        Event("Forward", "within 0", 110, 20),
        Event("Forward", "within 1", 301, 98),
        Event("Forward", "with the start of 1", 300, 10),
        Event("Forward", "with the end of 1", 390, 10),
        Event("Forward", "own", 110, 20, {"step_num": 7}),
    ]
    write_samples(tmp_path, cpu([1]))
    write(tmp_path, events)
    write(tmp_path, [step(2, 500, 100, pid=12), Event("Forward", "of all", 0, 9)], node="12-algo-1")
    framework = analysis(tmp_path).framework_metrics_df
    numbers = dict(zip(framework["framework_metric"], framework["step"], strict=True))
    assert numbers == {
        TRAIN: 2,
        "within 0": 0,
        "within 1": 1,
        "with the start of 1": -1,
        "with the end of 1": -1,
        "own": 7,
        "of all": -1,
    }
    assert framework["step"].dtype == "int64"
    assert framework["duration_us"].tolist()[:3] == [100, 100, 20]


def test_steps_of_one_number_are_one(tmp_path: Path) -> None:
    events = [
        step(0, 100, 100),
        step(1, 300, 100),
        step(0, 600, 100, "EVAL"),
        Event("Forward", "between", 450, 20),
    ]
    found = of(events, tmp_path)
    assert rows(found.step_time_df) == [[0, 100, 700], [1, 300, 400]]
    assert found.framework_metrics_df["step"].tolist() == [0, 1, 0, 0]


def test_a_job_may_begin_before_its_first_step(tmp_path: Path) -> None:
    """The older library raised an IndexError for any event outside of all steps."""
    found = of([Event("DataLoaderIterInitialize", "init", 1, 5)], tmp_path)
    assert found.framework_metrics_df["step"].tolist() == [-1]
    assert rows(found.get_step_statistics(StatsBy.PROCESS)) == []


def test_frames_without_rows() -> None:
    frames = PandasFrame("/nowhere/at/all")
    found = PandasFrameAnalysis(*frames.get_profiler_data_by_time(1, 2))
    assert rows(found.get_step_statistics()) == []
    assert found.get_training_phase_intervals() is None
    assert rows(found.get_device_usage_stats()) == []


# -- the job ----------------------------------------------------------------------------------


def test_statistics_of_a_job(tmp_path: Path) -> None:
    events = [Event("init", "init", 2_000_000, 1), step(0, 3_000_000, 5), step(1, 4_000_000, 10**7)]
    found = of(events, tmp_path, cpu([1, 1], begin_s=1, every_s=20)).get_job_statistics()
    assert list(found.items()) == [
        ("start_time", "2020-09-13T12:27:01:000000"),
        ("end_time", "2020-09-13T12:27:21:000000"),
        ("job_duration", 20_000_000),
        ("training_loop_start", "2020-09-13T12:27:03:000000"),
        ("training_loop_end", "2020-09-13T12:27:14:000000"),
        ("training_loop_duration", 11_000_000),
        ("initialization", 2_000_000),
        ("finalization", 7_000_000),
        ("initialization_%", 10.0),
        ("training_loop_%", 55.0),
        ("finalization_%", 35.0),
    ]


def test_shares_of_a_job_add_up_where_a_loader_event_outlives_the_system_data(
    tmp_path: Path,
) -> None:
    worker = Event("DataLoaderWorker", "DataLoaderWorker", 5_000_000, 59_000_000)
    events = [step(0, 500_000, 5), step(1, 4_000_000, 10**6), worker]
    found = of(events, tmp_path, cpu([1] * 49, begin_s=1)).get_job_statistics()
    names = ("initialization_%", "training_loop_%", "finalization_%")
    shares = [found[name] for name in names]
    assert all(0 <= share <= 100 for share in shares)
    assert sum(shares) == pytest.approx(100)
    assert found["start_time"] <= found["training_loop_start"]
    assert found["training_loop_end"] <= found["end_time"]
    parts = ("initialization", "training_loop_duration", "finalization")
    assert sum(found[name] for name in parts) == found["job_duration"] == 63_500_000


@pytest.mark.merge
def test_statistics_of_a_job_are_a_dict_of_numbers(tmp_path: Path) -> None:
    """The older library's was empty but for ``[]``, and had a Series among its values."""
    found = analysis(write_job(tmp_path, nodes=2)).get_job_statistics()
    assert isinstance(found, JobStats)
    assert (len(found), "finalization" in found) == (11, True)
    assert json.loads(json.dumps(found)) == found
    lines = repr(found).splitlines()
    assert lines[3].split() == ["job_duration", "119000000"]
    assert len(lines) == 12


def test_a_job_of_no_time(tmp_path: Path) -> None:
    found = of([step(0, 3, 5, "GLOBAL")], tmp_path)
    found.framework_metrics_df[["start_time_us", "end_time_us"]] = 0
    statistics = found.get_job_statistics()
    assert (statistics["job_duration"], math.isnan(statistics["training_loop_%"])) == (0, True)


def test_a_job_without_the_first_step(tmp_path: Path) -> None:
    found = of([step(1, 3, 5), step(0, 30, 5, "EVAL")], tmp_path)
    with pytest.raises(KeyError, match=r"no step 0 of TRAIN or GLOBAL: the training loop is unkn"):
        found.get_job_statistics()


def test_a_job_without_system_metrics(tmp_path: Path) -> None:
    write(tmp_path, [step(0, 3, 5)])
    with pytest.raises(ValueError, match=r"no samples: the duration of the job is unknown\."):
        analysis(tmp_path).get_job_statistics()


# -- steps ------------------------------------------------------------------------------------


def test_statistics_of_steps(tmp_path: Path) -> None:
    events = [step(at, at * 1000, 100 + at) for at in range(5)] + [step(9, 9000, 7, "EVAL")]
    events += [Event("Forward", "fwd", at * 1000 + 1, 10, {"step_num": at}) for at in (0, 1)]
    events += [Event("Forward", "bwd", at * 1000 + 20, 10, {"step_num": at}) for at in (0, 1)]
    events += [Event("init", "outside", 10**6, 10)]
    found = of(events, tmp_path)
    names = ["mean", "min", "max", "p50", "p95", "p99"]
    table = found.get_step_statistics()
    assert table is not None
    assert [*table.columns] == ["training_phase", *(f"duration_{one}_us" for one in names)]
    assert table.dtypes.tolist()[1:] == ["float64"] * 6
    assert rows(table) == [
        [EVAL, 7, 7, 7, 7, 7, 7],
        [TRAIN, 102, 100, 104, 102, pytest.approx(103.8), pytest.approx(103.96)],
    ]
    by_process = found.get_step_statistics(StatsBy.PROCESS)
    assert [row[:4] for row in rows(by_process)] == [
        *(["Forward", 29, 29, 29], [EVAL, 7, 7, 7], [TRAIN, 102, 100, 104]),
    ]
    by_metric = found.get_step_statistics(StatsBy.FRAMEWORK_METRICS)
    assert by_metric is not None
    assert by_metric["framework_metric"].tolist() == [EVAL, TRAIN, "bwd", "fwd"]
    assert by_metric["duration_mean_us"].tolist() == [7, 102, 10, 10]


def test_a_step_is_from_its_first_start_to_its_last_end_on_any_node(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    write(tmp_path, [step(0, 100, 50)])
    write(tmp_path, [step(0, 130, 100, pid=12)], node="12-algo-2")
    assert rows(analysis(tmp_path).get_step_statistics())[0][1] == 130


def test_statistics_by_nothing_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = analysis(write_job(tmp_path))
    with caplog.at_level("INFO", "smdebug"):
        assert found.get_step_statistics("training_phase") is None
        assert found.get_utilization_stats(by="training_phase") is None
        assert found.get_utilization_stats("cpu") is None
        assert found.get_utilization_stats([Resource.CPU, "gpu"]) is None
        assert found.get_training_phase_intervals(3) is None
        assert found.get_training_phase_intervals("Step:ModeKeys.PREDICT") is None
        assert found.get_utilization_stats(by=StatsBy.TRAINING_PHASE, phase="PREDICT") is None
    assert len(caplog.records) == 7


# -- resources --------------------------------------------------------------------------------


def resources(root: Path) -> PandasFrameAnalysis:
    series = [
        cpu(range(5), every_s=1),
        Series("cpu", "I/OWaitPercentage", "io", range(90, 95), every_s=1),
        Series("gpu.0", "GPUUtilization", "gpu0", [50], begin_s=2),
        Series("i/o", "x", None, [7], begin_s=3),
    ]
    events = [step(0, 1_000_000, 1_500_000), step(0, 3_500_000, 400_000, "EVAL")]
    return of(events, root, *series)


def test_use_of_resources(tmp_path: Path) -> None:
    found = resources(tmp_path)
    table = found.get_utilization_stats()
    names = ["mean", "min", "max", "p50", "p95", "p99"]
    assert table is not None
    assert [*table.columns] == ["Resource", "nodeID", *(f"utilization_{one}" for one in names)]
    assert rows(table) == [
        ["cpu", "algo-1", 47, 0, 94, 47, pytest.approx(93.55), pytest.approx(93.91)],
        ["gpu", "algo-1", 50, 50, 50, 50, 50, 50],
        ["i/o", "algo-1", 7, 7, 7, 7, 7, 7],
    ]
    assert rows(found.get_utilization_stats(Resource.GPU, by=StatsBy.PROCESS)) == [rows(table)[1]]
    both = found.get_utilization_stats([Resource.IO, Resource.MEMORY, Resource.GPU])
    assert [row[0] for row in rows(both)] == ["i/o", "gpu"]
    with pytest.raises(ValueError, match=r"System metrics have no samples of network, memory\."):
        found.get_utilization_stats([Resource.NETWORK, Resource.MEMORY])


def test_use_of_resources_by_phase(tmp_path: Path) -> None:
    found = resources(tmp_path)
    table = found.get_utilization_stats([Resource.CPU, Resource.GPU], StatsBy.TRAINING_PHASE)
    assert table is not None
    assert [*table.columns][:4] == ["Resource", "Training_phase", "nodeID", "utilization_mean"]
    assert [row[:4] for row in rows(table)] == [
        ["cpu", f"After {EVAL}", "algo-1", 49],
        ["cpu", f"Before {TRAIN}", "algo-1", 45],
        ["cpu", f"Between {EVAL} and {TRAIN}", "algo-1", 48],
        ["cpu", TRAIN, "algo-1", 46.5],
        ["gpu", TRAIN, "algo-1", 50],
    ]
    table = found.get_utilization_stats(Resource.CPU, StatsBy.TRAINING_PHASE, EVAL)
    assert [row[1:4] for row in rows(table)] == [
        *([f"After {EVAL}", "algo-1", 49], [f"Before {EVAL}", "algo-1", 46.5]),
    ]
    phases = found.sys_metrics_df["phase"]
    assert phases.iloc[0] == f"Before {EVAL}"


def test_samples_are_of_the_phases_of_their_host(tmp_path: Path) -> None:
    for node, start in ((1, 1_000_000), (2, 3_000_000)):
        write_samples(tmp_path, cpu(range(6), every_s=1, node=f"algo-{node}"))
        write(tmp_path, [step(0, start, 1_500_000)], node=f"1{node}-algo-{node}")
    write_samples(tmp_path, cpu([2], begin_s=2, node="algo-3"))
    table = analysis(tmp_path).get_utilization_stats(Resource.CPU, StatsBy.TRAINING_PHASE)
    assert [row[1:6] for row in rows(table) if row[1] == TRAIN] == [
        *([TRAIN, "algo-1", 1.5, 1, 2], [TRAIN, "algo-2", 3.5, 3, 4]),
    ]
    # A host without processes of its own takes the phases of all, and of these the last.
    assert [row[1:4] for row in rows(table) if row[2] == "algo-3"] == [
        [f"Before {TRAIN}", "algo-3", 2]
    ]


def test_samples_in_ranges(tmp_path: Path) -> None:
    cores = [cpu([0, 9.99, 10, 50, 90, 90.1, 100, 101]), cpu([5], node="algo-2")]
    write_samples(tmp_path, *cores, gpu([95]), Series("memory", "Memory", None, [50]))
    found = analysis(tmp_path)
    table = found.get_device_usage_stats()
    assert [*table.columns] == ["type", "nodeID", (0, 10), (10, 90), (90, 100)]
    assert rows(table) == [
        *(["cpu", "algo-1", 2, 2, 3], ["cpu", "algo-2", 1, 0, 0], ["gpu", "algo-1", 0, 0, 1]),
    ]
    assert table.dtypes.tolist()[2:] == ["int64"] * 3
    table = found.get_device_usage_stats([Resource.MEMORY, Resource.GPU], [(60, 99), (1, 2)])
    assert [[*table.columns], rows(table)] == [
        *(["type", "nodeID", (60, 99)], [["gpu", "algo-1", 1]]),
    ]
    assert found.sys_metrics_df["ranges"].tolist()[:3] == [(), (60, 99), ()]
    assert rows(found.get_device_usage_stats(Resource.IO)) == []


@pytest.mark.parametrize(
    ("device", "ranges"),
    [("cpu", None), (None, []), (None, (1, 2)), (None, [(1, 2, 3)]), ([0], None)],
)
def test_ranges_that_are_none(tmp_path: Path, device: Any, ranges: Any) -> None:
    found = of([step(0, 1, 1)], tmp_path).get_device_usage_stats(device, ranges)
    assert (found.shape, isinstance(found, pd.DataFrame)) == ((0, 0), True)


# -- phases -----------------------------------------------------------------------------------


def test_intervals_of_phases(tmp_path: Path) -> None:
    events = steps_of(["TRAIN", "TRAIN", "EVAL", "TRAIN"], first=2_000_000, every=1_000_000)
    found = of(events, tmp_path, cpu([1, 1], begin_s=0.5, every_s=8.5))
    table = found.get_training_phase_intervals()
    assert table is not None
    assert rows(table) == [
        [500_000, 1_999_999, f"Before {TRAIN}"],
        [2_000_000, 3_500_000, TRAIN],
        [3_500_001, 3_999_999, f"Between {EVAL} and {TRAIN}"],
        [4_000_000, 4_500_000, EVAL],
        [4_500_001, 4_999_999, f"Between {EVAL} and {TRAIN}"],
        [5_000_000, 5_500_000, TRAIN],
        [5_500_001, 9_000_000, f"After {TRAIN}"],
    ]
    assert [*table.columns] == ["start_time_us", "end_time_us", "phase"]
    assert table.dtypes.tolist()[:2] == ["int64", "int64"]
    assert rows(found.get_training_phase_intervals([TRAIN, EVAL, "PREDICT"])) == rows(table)
    assert rows(found.get_training_phase_intervals([EVAL, "PREDICT"])) == [
        [500_000, 3_999_999, f"Before {EVAL}"],
        [4_000_000, 4_500_000, EVAL],
        [4_500_001, 9_000_000, f"After {EVAL}"],
    ]


def test_each_step_of_the_only_phase_is_an_interval(tmp_path: Path) -> None:
    found = of([step(0, 10, 5), step(1, 20, 5)], tmp_path, cpu([1, 1], every_s=1))
    between = f"Between {TRAIN} and {TRAIN}"
    assert [row[2] for row in rows(found.get_training_phase_intervals(TRAIN))] == [
        *(f"Before {TRAIN}", TRAIN, between, TRAIN, f"After {TRAIN}"),
    ]


def test_intervals_of_several_nodes_are_found_by_themselves(tmp_path: Path) -> None:
    """In the order of the frame, they overlapped each other, and some ended before they began."""
    write_samples(tmp_path, cpu([1, 1], every_s=9))
    for node in (2, 1):
        events = [step(1, 50 + node, 5, "EVAL"), step(0, 10 * node, 5)]
        write(tmp_path, events, node=f"7-algo-{node}")
    table = analysis(tmp_path).get_training_phase_intervals()
    assert table is not None
    assert [*table.columns] == ["start_time_us", "end_time_us", "phase", "nodeID"]
    expected = []
    for node, start in (("algo-1-7", 10), ("algo-2-7", 20)):
        then = 51 if start == 10 else 52
        expected += [
            [0, start - 1, f"Before {TRAIN}", node],
            [start, start + 5, TRAIN, node],
            [start + 6, then - 1, f"Between {EVAL} and {TRAIN}", node],
            [then, then + 5, EVAL, node],
            [then + 6, 9_000_000, f"After {EVAL}", node],
        ]
    assert rows(table) == expected
    assert (table["end_time_us"] >= table["start_time_us"]).all()
