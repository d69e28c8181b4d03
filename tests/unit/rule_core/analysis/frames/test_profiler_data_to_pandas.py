"""PandasFrame: every column of its frames, what is chosen, and what is summed up."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import s3_objects
from profiled_job import loading, write_job
from profiler_writer import Series, cpu, gpu, write_samples
from recorded import MISSING, shared_folder
from timeline_writer import MODEL, START_US, Event, step, write

from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame
from rule_core.exceptions import SMDebugRuntimeError

REAL = shared_folder() / "profiler"
SYSTEM = ["timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type"]
FRAMEWORK = [
    *("start_time", "end_time", "start_time_us", "end_time_us", "tid", "pid"),
    *("framework_metric", "step", "bytes", "process", "nodeID"),
]
DATALOADER = [
    *("start_time", "end_time", "start_time_us", "end_time_us", "duration_us", "pid"),
    *("framework_metric", "step", "worker_id", "num_workers", "pin_memory", "process", "node_id"),
]
NUMBERS = {"timestamp_us", "start_time_us", "end_time_us", "duration_us", "tid", "pid", "step"}
NUMBERS |= {"bytes", "worker_id", "num_workers"}
TEXT = pd.Series(["a"]).dtype  # object before pandas 3


def types(frame: pd.DataFrame) -> dict[str, Any]:
    return frame.dtypes.to_dict()


def stamp(us: int) -> str:
    return f"{pd.Timestamp(START_US + us, unit='us'):%Y-%m-%dT%H:%M:%S:%f}"


# -- columns ----------------------------------------------------------------------------------


def test_the_system_frame(tmp_path: Path) -> None:
    memory = Series("memory", "Memory", None, [30], begin_s=2.000001)
    write_samples(tmp_path, cpu([10], begin_s=1.5), gpu([20.25], begin_s=1.5), memory)
    frame = PandasFrame(tmp_path).get_all_system_metrics()
    assert frame.drop(columns="system_metric").to_dict("list") == {
        "timestamp": [
            "2020-09-13T12:27:01:500000",
            "2020-09-13T12:27:01:500000",
            "2020-09-13T12:27:02:000001",
        ],
        "timestamp_us": [1_500_000, 1_500_000, 2_000_001],
        "value": [10.0, 20.25, 30.0],
        "dimension": ["CPUUtilization", "GPUUtilization", "Memory"],
        "nodeID": ["algo-1"] * 3,
        "type": ["cpu", "gpu", "memory"],
    }
    assert frame["system_metric"].tolist()[:2] == ["cpu0", "gpu0"]
    assert frame["system_metric"].isna().tolist() == [False, False, True]
    expected = dict.fromkeys(SYSTEM, TEXT) | {"timestamp_us": "int64", "value": "float64"}
    assert types(frame) == expected
    assert [*frame.columns] == SYSTEM


def test_the_framework_frame(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    events = [
        step(3, 1000, 500),
        Event("Forward", "Forward", 1100, 20.75, {"name": "conv1", "step_num": 3}),
        Event("gpu_functions-dev:0", "aten::add", 1200, 5, {"layer_name": "l", "name": "n"}),
        Event("DataIterator", "get", 1300, 0, {"bytes_fetched": 77, "thread_id": 5, "pid": 6}),
        Event("Unknown", "no args", 1400, 1),
    ]
    write(tmp_path, events)
    frame = PandasFrame(tmp_path).get_all_framework_metrics()
    assert frame.drop(columns="tid").to_dict("list") == {
        "start_time": [stamp(us) for us in (1000, 1100, 1200, 1300, 1400)],
        "end_time": [stamp(us) for us in (1500, 1120, 1205, 1300, 1401)],
        "start_time_us": [1000, 1100, 1200, 1300, 1400],
        "end_time_us": [1500, 1120, 1205, 1300, 1401],
        "pid": [11, 2, 3, 6, 5],
        "framework_metric": ["Step:ModeKeys.TRAIN", "conv1", "l", "get", "no args"],
        "step": [3, 3, -1, -1, -1],
        "bytes": [-1, -1, -1, 77, -1],
        "process": [
            *("Step:ModeKeys.TRAIN", "Forward", "gpu_functions-dev:0", "DataIterator", "Unknown"),
        ],
        "nodeID": ["algo-1-11"] * 5,
    }
    assert frame["tid"].tolist()[3] == 5
    assert types(frame) == {name: "int64" if name in NUMBERS else TEXT for name in FRAMEWORK}
    assert [*frame.columns] == FRAMEWORK


def test_the_frame_of_data_loaders(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    other = Event("DataLoaderIterInitialize", "x", 5, 1, {"pin_memory": 1, "num_workers": "4"})
    write(tmp_path, [loading(1, 1000, 300), other, Event("Forward", "Forward", 7, 1)])
    frame = PandasFrame(tmp_path).get_all_dataloader_metrics()
    assert frame.to_dict("list") == {
        "start_time": [stamp(1000), stamp(5), stamp(7)],
        "end_time": [stamp(1300), stamp(6), stamp(8)],
        "start_time_us": [1000, 5, 7],
        "end_time_us": [1300, 6, 8],
        "duration_us": [300, 1, 1],
        "pid": [11, 2, 3],
        "framework_metric": ["_MultiProcessingDataLoaderIter::GetNext", "x", "Forward"],
        "step": [-1, -1, -1],
        "worker_id": [1, -1, -1],
        "num_workers": [2, 4, -1],
        "pin_memory": ["True", "False", "NA"],
        "process": ["DataLoaderIter", "DataLoaderIterInitialize", "Forward"],
        "node_id": ["algo-1-11"] * 3,
    }
    assert types(frame) == {name: "int64" if name in NUMBERS else TEXT for name in DATALOADER}
    assert [*frame.columns] == DATALOADER


def test_frames_without_rows_have_all_columns(tmp_path: Path) -> None:
    frames = PandasFrame(tmp_path)
    system, framework = frames.get_profiler_data_by_time(0, 1)
    loaders = frames.get_all_dataloader_metrics()
    assert types(system) == dict.fromkeys(SYSTEM, "object")
    assert types(framework) == dict.fromkeys(FRAMEWORK, "object")
    assert types(loaders) == dict.fromkeys(DATALOADER, "object")
    assert [len(system), len(framework), len(loaders)] == [0, 0, 0]


def test_what_no_writer_writes_becomes_no_number(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    args = {"step_num": "zero", "bytes_fetched": 1 << 80, "name": {"a": 1}, "thread_id": "main"}
    write(tmp_path, [Event("Forward", "Forward", 10, 1, args)])
    row = PandasFrame(tmp_path).get_all_framework_metrics().iloc[0]
    assert row[["step", "bytes", "framework_metric"]].tolist() == [-1, -1, "{'a': 1}"]


# -- rows -------------------------------------------------------------------------------------


def test_equal_rows_count_once_and_leave_a_gap(tmp_path: Path) -> None:
    write_samples(tmp_path, *(cpu([value], begin_s=1) for value in (5, 5, 6, 5)))
    write(tmp_path, [step(0, 1, 2), step(0, 1, 2), step(1, 3, 4)])
    system, framework = PandasFrame(tmp_path).get_profiler_data_by_time(START_US, START_US + 10**7)
    assert (system.index.tolist(), system["value"].tolist()) == ([0, 2], [5, 6])
    assert (framework.index.tolist(), framework["step"].tolist()) == ([0, 2], [0, 1])


def test_times_are_relative_to_the_first_file(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1], begin_s=61), cpu([2], begin_s=121, node="algo-2"))
    write(tmp_path, [step(0, 70_000_000, 10)])
    frames = PandasFrame(tmp_path)
    assert frames.start_time == START_US + 60_000_000
    assert frames.get_all_system_metrics()["timestamp_us"].tolist() == [1_000_000, 61_000_000]
    assert frames.get_all_framework_metrics()["start_time_us"].tolist() == [10_000_000]


def test_without_system_metrics_times_are_absolute(tmp_path: Path) -> None:
    write(tmp_path, [step(0, 7, 10)])
    frames = PandasFrame(tmp_path)
    assert frames.start_time == 0
    assert frames.get_all_framework_metrics()["start_time_us"].tolist() == [START_US + 7]


def test_all_framework_metrics_include_those_before_the_first_system_metrics(
    tmp_path: Path,
) -> None:
    write_samples(tmp_path, cpu([1], begin_s=60))
    write(tmp_path, [step(0, 7, 10)])
    frames = PandasFrame(tmp_path)
    assert frames.get_all_framework_metrics()["start_time_us"].tolist() == [7 - 60_000_000]
    assert len(frames.get_all_dataloader_metrics()) == 1
    assert len(frames.get_profiler_data_by_step(0, 0)[1]) == 1


def test_timelines_come_kind_by_kind(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    write(tmp_path, [Event("a", "model", 1, 2)], kind=MODEL)
    write(tmp_path, [Event("b", "python, late", 100, 200)])
    write(tmp_path, [Event("b", "python, early", 3, 4)], node="12-algo-1")
    frame = PandasFrame(tmp_path).get_all_framework_metrics()
    assert frame["framework_metric"].tolist() == ["python, early", "python, late", "model"]


def test_files_that_come_later_are_seen(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    frames = PandasFrame(tmp_path)
    assert len(frames.get_all_system_metrics()) == 1
    write_samples(tmp_path, cpu([1], begin_s=60))
    write(tmp_path, [step(0, 7, 10)])
    assert len(frames.get_all_system_metrics()) == 2
    assert len(frames.get_all_framework_metrics()) == 1


# -- choice -----------------------------------------------------------------------------------


def test_what_is_chosen_by_name(tmp_path: Path) -> None:
    frames = PandasFrame(write_job(tmp_path))
    system = frames.get_all_system_metrics(["gpu0", "cpu1"])
    assert system["system_metric"].unique().tolist() == ["cpu1", "gpu0"]
    assert len(frames.get_all_system_metrics(["cpu"])) == 0
    framework = frames.get_all_framework_metrics(["aten::add", "Step:ModeKeys.EVAL"])
    assert framework["framework_metric"].unique().tolist() == [
        *("layer0", "layer1", "Step:ModeKeys.EVAL"),
    ]
    loaders = frames.get_all_dataloader_metrics([".*DataLoaderIter::GetNext", "^Forw"])
    assert loaders["process"].unique().tolist() == ["Forward", "DataLoaderIter"]


def test_what_is_chosen_by_time(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1, 2, 3, 4], begin_s=1, every_s=1))
    spans = [(500_000, 999_999), (500_000, 1_000_000), (1, 9_000_000), (3_000_000, 4_000_000)]
    events = [Event("a", str(at), start, end - start) for at, (start, end) in enumerate(spans)]
    write(tmp_path, [*events, Event("a", "late", 3_000_001, 1)])
    frames = PandasFrame(tmp_path)
    start, end = START_US + 1_000_000, START_US + 3_000_000
    system, framework = frames.get_profiler_data_by_time(start, end)
    assert system["value"].tolist() == [1, 2, 3]
    assert framework["framework_metric"].tolist() == ["1", "2", "3"]
    system, framework = frames.get_profiler_data_by_time(start, start)
    assert (system["value"].tolist(), len(framework)) == ([1], 0)
    system, framework = frames.get_profiler_data_by_time(start, end, get_system_metrics=False)
    assert (len(system), len(framework)) == (0, 3)
    system, framework = frames.get_profiler_data_by_time(start, end, get_framework_metrics=False)
    assert (len(system), len(framework)) == (3, 0)
    system, framework = frames.get_profiler_data_by_time(
        start, end, False, ["2"], ["cpu1"], True, True
    )
    assert (len(system), len(framework)) == (0, 1)


def test_cached_metrics_are_those_of_all_calls(tmp_path: Path) -> None:
    """The older library's list grew by itself with every chunk."""
    write_samples(tmp_path, cpu(range(5), every_s=1))
    write(tmp_path, [step(at, at * 1_000_000, 10) for at in range(5)])
    frames = PandasFrame(tmp_path, scan_interval=1)

    def values(start: int, end: int, *, cache: bool) -> tuple[list[float], list[int]]:
        span = START_US + start * 1_000_000, START_US + end * 1_000_000
        system, framework = frames.get_profiler_data_by_time(*span, cache_metrics=cache)
        return system["value"].tolist(), framework["step"].tolist()

    assert values(0, 1, cache=True) == ([0, 1], [0, 1])
    assert values(3, 4, cache=True) == ([0, 1, 3, 4], [0, 1, 3, 4])
    assert values(1, 3, cache=True) == ([0, 1, 3, 4, 2], [0, 1, 3, 4, 2])
    assert values(1, 3, cache=True) == ([0, 1, 3, 4, 2], [0, 1, 3, 4, 2])
    assert values(1, 3, cache=False) == ([1, 2, 3], [1, 2, 3])
    assert sum(len(part[0]) for part in frames._samples._parts) == 5
    assert len(frames._events._numbers) == 5 * 9


def test_what_is_chosen_by_step(tmp_path: Path) -> None:
    frames = PandasFrame(write_job(tmp_path))
    system, framework = frames.get_profiler_data_by_step(1, 1)
    assert set(zip(framework["step"], framework["framework_metric"], strict=True)) == {
        *((1, "Step:ModeKeys.TRAIN"), (1, "Forward"), (1, "Step:ModeKeys.EVAL")),
    }
    # From the start of TRAIN 1 to the end of EVAL 1.
    assert system["timestamp_us"].between(6_001_000, 25_501_000).all()
    assert system["timestamp_us"].agg(["min", "max"]).tolist() == [6_037_100, 25_037_100]
    assert [len(one) for one in frames.get_profiler_data_by_step(7, 9, True)] == [0, 0]


# -- sums -------------------------------------------------------------------------------------


def sums_job(root: Path) -> PandasFrame:
    """Write a job whose steps last 10 s, from second 0 to 40."""
    write_samples(root, cpu([1]))
    events = [step(at, at * 10_000_000, 9_000_000) for at in range(4)]
    events += [Event("Forward", "fwd", at * 10_000_000, 4_000_000) for at in range(4)]
    events += [Event("Backward", "bwd", at * 10_000_000 + 4_000_000, 1_000_000) for at in range(4)]
    write(root, events)
    return PandasFrame(root, scan_interval=7_000_000)


def test_what_runs_at_given_times(tmp_path: Path) -> None:
    """The older library lost times after the first chunk, and always the last one."""
    frames = sums_job(tmp_path)
    times = [stamp(us) for us in (31_000_000, 1_000_000, 4_500_000, 34_000_000, 12_000_000)]
    assert frames.get_framework_metrics_by_timesteps(times) == (
        {"Forward": 1.0, "Backward": 1 / 12},
        {"fwd": 12_000_000, "bwd": 1_000_000},
        {"Step:ModeKeys.TRAIN": 45_000_000},
    )
    assert frames.get_framework_metrics_by_timesteps(times, ["bwd", "nothing"]) == (
        {"Backward": 1.0},
        {"bwd": 1_000_000},
        {},
    )
    assert frames.get_framework_metrics_by_timesteps([stamp(9_500_000)]) == ({}, {}, {})
    assert frames.get_framework_metrics_by_timesteps([stamp(4_500_000)] * 2)[1] == {
        "bwd": 2_000_000
    }


def test_no_times_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        IndexError, match=r"No times of framework metrics were given\. Give at least one\."
    ):
        PandasFrame(tmp_path).get_framework_metrics_by_timesteps([])


def test_what_runs_in_given_intervals(tmp_path: Path) -> None:
    frames = sums_job(tmp_path)
    begins = [stamp(us) for us in (25_000_000, 4_000_000, 4_000_000)]
    ends = [stamp(us) for us in (39_000_000, 5_000_000, 4_000_001)]
    # Forward: 3 | 0 | 0; Backward: 2, 3 (touching 25 s) | 0 | 0.
    expected = {"Forward": 1.0, "Backward": 1 / 3}
    found = frames.get_framework_metrics_by_begin_and_end_timesteps(begins, ends)
    assert found == (expected, {"fwd": 1.0, "bwd": 1 / 3})
    found = frames.get_framework_metrics_by_begin_and_end_timesteps(begins, ends, ["Backward"])
    assert found == ({"Backward": 1.0}, {"bwd": 1.0})


def test_intervals_that_an_event_touches(tmp_path: Path) -> None:
    write(tmp_path, [Event("a", "a", 10, 10), Event("b", "b", 11, 8)])
    begins, ends = ([stamp(us) for us in times] for times in ((0, 20, 0, 21), (10, 30, 9, 30)))
    found = PandasFrame(tmp_path).get_framework_metrics_by_begin_and_end_timesteps(begins, ends)
    assert found == ({"a": 1.0}, {"a": 1.0})
    found = PandasFrame(tmp_path).get_framework_metrics_by_begin_and_end_timesteps(
        [*begins, stamp(15)], [*ends, stamp(15)]
    )
    assert found[0] == {"a": 1.0, "b": 8 / 30}


def test_events_that_take_no_time_have_no_part(tmp_path: Path) -> None:
    write_samples(tmp_path, cpu([1]))
    write(tmp_path, [Event("a", "b", 5, 0)])
    found = PandasFrame(tmp_path).get_framework_metrics_by_begin_and_end_timesteps(
        [stamp(0)], [stamp(9)]
    )
    assert found == ({"a": 0.0}, {"b": 0.0})


@pytest.mark.parametrize(
    ("begins", "ends"), [([], []), ([5], [4]), ([1, 2], [3])], ids=["none", "reversed", "unequal"]
)
def test_intervals_that_are_none(tmp_path: Path, begins: list[int], ends: list[int]) -> None:
    frames = PandasFrame(tmp_path)
    with pytest.raises(ValueError, match="Intervals need as many begins as ends"):
        frames.get_framework_metrics_by_begin_and_end_timesteps(
            [stamp(us) for us in begins], [stamp(us) for us in ends]
        )


def test_times_are_converted_exactly(tmp_path: Path) -> None:
    """By way of seconds as a float, one microsecond was lost now and then."""
    frames = PandasFrame(tmp_path)
    times = range(START_US, START_US + 2000)
    found = [frames.convert_datetime_to_timestamp(stamp(us - START_US)) for us in times]
    assert found == list(times)
    aware = pd.Timestamp(START_US, unit="us", tz="Asia/Tokyo").to_pydatetime()
    assert frames.convert_datetime_to_timestamp(aware) == START_US
    with pytest.raises(ValueError, match=r"Times are written as .*, got 'yesterday'\."):
        frames.convert_datetime_to_timestamp("yesterday")


# -- the world --------------------------------------------------------------------------------


def test_without_pandas_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = PandasFrame(write_job(tmp_path))
    monkeypatch.setitem(sys.modules, "pandas", None)
    cure = r"Frames need pandas, which the variant 'full' .* pip install 'rule-runner\[profiler\]'"
    with pytest.raises(SMDebugRuntimeError, match=cure):
        frames.get_all_system_metrics()


def test_a_job_in_s3(tmp_path: Path, aws_endpoint: str) -> None:
    local = PandasFrame(write_job(tmp_path))
    s3_objects.make_bucket(aws_endpoint)
    files = (path for path in tmp_path.rglob("*.json"))
    content = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in files}
    s3_objects.put(aws_endpoint, "job/", content)
    remote = PandasFrame(f"s3://{s3_objects.BUCKET}/job")
    expected = local.get_profiler_data_by_step(0, 9)
    for one, two in zip(expected, remote.get_profiler_data_by_step(0, 9), strict=True):
        pd.testing.assert_frame_equal(one, two)
    readers = [remote.system_metrics_reader, remote.framework_metrics_reader]
    assert [type(one).__name__ for one in readers] == [
        *("S3SystemMetricsReader", "S3AlgorithmMetricsReader"),
    ]
    assert readers[0].get_timestamp_of_first_available_file() == START_US
    readers = [local.system_metrics_reader, local.framework_metrics_reader]
    assert [type(one).__name__ for one in readers] == [
        *("LocalSystemMetricsReader", "LocalAlgorithmMetricsReader"),
    ]


def test_all_events_may_be_kept(tmp_path: Path) -> None:
    root = write_job(tmp_path)
    frames = PandasFrame(str(root), use_in_memory_cache=True)
    first = frames.get_all_framework_metrics()
    for path in (root / "framework").rglob("*.json"):
        path.write_text("[]")
    pd.testing.assert_frame_equal(frames.get_all_framework_metrics(), first)


@pytest.mark.skipif(not REAL.exists(), reason=MISSING)
def test_a_real_job() -> None:
    frames = PandasFrame(REAL / "test_traces")
    system = frames.get_all_system_metrics()
    assert frames.start_time == 1_591_160_699_000_000
    assert system.iloc[0].tolist() == [
        *("2020-06-03T05:04:59:457089", 457_089, 4.76, "cpu0", "CPUUtilization", "algo-1", "cpu"),
    ]
    assert len(system) == 78
    framework = PandasFrame(REAL / "merge_traces").get_all_framework_metrics()
    assert framework["process"].value_counts().to_dict()["Step:ModeKeys.TRAIN"] == 30
    assert len(framework) == 702
