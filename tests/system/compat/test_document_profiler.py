"""The analysis of profiler data as it is documented, method by method, over a small job."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from profiled_job import write_job
from profiler_writer import BEGIN_US

pd = pytest.importorskip("pandas", reason="pandas is not installed.")
from smdebug.profiler import profiler_constants
from smdebug.profiler.analysis.utils.merge_timelines import (
    MergedTimeline,
    MergeUnit,
)
from smdebug.profiler.analysis.utils.pandas_data_analysis import (
    JobStats,
    PandasFrameAnalysis,
    Resource,
    StatsBy,
)
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from smdebug.profiler.analysis.utils.pytorch_dataloader_analysis import (
    PT_dataloader_analysis,
)

SECOND = 1_000_000
STEP = "Step:ModeKeys.TRAIN"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_job(tmp_path_factory.mktemp("job"))


@pytest.fixture
def frame(job: Path) -> PandasFrame:
    return PandasFrame(str(job), use_in_memory_cache=False, scan_interval=5000000000)


@pytest.fixture
def analysis(frame: PandasFrame) -> PandasFrameAnalysis:
    return PandasFrameAnalysis(
        system_df=frame.get_all_system_metrics(), framework_df=frame.get_all_framework_metrics()
    )


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(BEGIN_US / 1e6 + seconds, UTC)


# -- data frames ----------------------------------------------------------------------------------


def test_all_system_metrics(frame: PandasFrame) -> None:
    result = frame.get_all_system_metrics()
    assert set(result["type"]) == {"cpu", "gpu", "memory", "network"}
    assert {"timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID"} <= set(
        result
    )


def test_selected_system_metrics(frame: PandasFrame) -> None:
    result = frame.get_all_system_metrics(selected_system_metrics=["gpu0"])
    assert set(result["system_metric"]) == {"gpu0"}


def test_all_framework_metrics(frame: PandasFrame) -> None:
    result = frame.get_all_framework_metrics()
    assert {STEP, "Step:ModeKeys.EVAL", "Forward"} <= set(result["framework_metric"])


def test_selected_framework_metrics(frame: PandasFrame) -> None:
    result = frame.get_all_framework_metrics(selected_framework_metrics=[STEP])
    assert set(result["framework_metric"]) == {STEP}
    assert sorted(result["step"]) == [0, 1, 2, 3]


def test_data_loader_metrics(frame: PandasFrame) -> None:
    result = frame.get_all_dataloader_metrics(selected_framework_metrics=["DataLoaderIter"])
    assert len(result) == 6
    assert set(result["num_workers"]) == {2}


def test_a_date_becomes_microseconds(frame: PandasFrame) -> None:
    assert frame.convert_datetime_to_timestamp(at(3)) == BEGIN_US + 3 * SECOND


def test_framework_metrics_at_points_of_time(frame: PandasFrame) -> None:
    # Not a frame, as documented, but the sums that smdebug returns.
    phases, names, steps = frame.get_framework_metrics_by_timesteps(
        timestep_list=[at(2.5)], selected_framework_metrics=[STEP, "Forward"]
    )
    assert set(phases) == {"Forward"}
    assert set(names) == {"Forward"}
    assert set(steps) == {STEP}


def test_framework_metrics_in_intervals(frame: PandasFrame) -> None:
    phases, names = frame.get_framework_metrics_by_begin_and_end_timesteps(
        begin_timestep_list=[at(2)],
        end_timestep_list=[at(9)],
        selected_framework_metrics=["Forward"],
    )
    assert (phases, names) == ({"Forward": 1.0}, {"Forward": 1.0})


@pytest.mark.parametrize("framework", [True, False])
@pytest.mark.parametrize("system", [True, False])
def test_data_by_time(frame: PandasFrame, framework: bool, system: bool) -> None:
    metrics = frame.get_profiler_data_by_time(
        BEGIN_US,
        BEGIN_US + 10 * SECOND,
        cache_metrics=False,
        selected_framework_metrics=[STEP],
        selected_system_metrics=["gpu0"],
        get_framework_metrics=framework,
        get_system_metrics=system,
    )
    assert [len(metric) > 0 for metric in metrics] == [system, framework]


def test_data_by_step(frame: PandasFrame) -> None:
    system, framework = frame.get_profiler_data_by_step(start_step=1, end_step=2)
    assert len(system) > 0
    assert STEP in set(framework["framework_metric"])


# -- analysis of frames ---------------------------------------------------------------------------

MEMBERS: dict[Any, dict[str, str]] = {
    MergeUnit: {"TIME": "time", "STEP": "step"},
    StatsBy: {
        "TRAINING_PHASE": "training_phase",
        "FRAMEWORK_METRICS": "framework_metric",
        "PROCESS": "process",
    },
    Resource: {
        "CPU": "cpu",
        "GPU": "gpu",
        "IO": "i/o",
        "NETWORK": "network",
        "MEMORY": "memory",
    },
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, *member) for kind, members in MEMBERS.items() for member in members.items()],
)
def test_member(kind: Any, name: str, value: str) -> None:
    assert kind(value) is kind[name]


@pytest.mark.parametrize(
    "part",
    [
        *("start_time", "end_time", "job_duration", "training_loop_start", "training_loop_end"),
        *("training_loop_duration", "initialization", "finalization"),
        *("initialization_%", "training_loop_%", "finalization_%"),
    ],
)
def test_job_statistics(analysis: PandasFrameAnalysis, part: str) -> None:
    result = analysis.get_job_statistics()
    assert isinstance(result, JobStats)
    assert isinstance(result, dict)
    assert result[part] is not None


@pytest.mark.parametrize("by", list(StatsBy))
def test_step_statistics(analysis: PandasFrameAnalysis, by: StatsBy) -> None:
    result = analysis.get_step_statistics(by=by)
    assert result is not None
    assert [*result.columns] == [
        by.value,
        *(f"duration_{statistic}_us" for statistic in ("mean", "min", "max", "p50", "p95", "p99")),
    ]
    assert len(result) > 0


@pytest.mark.parametrize("resource", [None, Resource.CPU, [Resource.CPU, Resource.GPU]])
def test_utilisation(analysis: PandasFrameAnalysis, resource: Any) -> None:
    result = analysis.get_utilization_stats(resource=resource)
    assert result is not None
    assert {"Resource", "nodeID", "utilization_mean", "utilization_p99"} <= set(result)


@pytest.mark.parametrize("phase", [None, [STEP], ["Step:ModeKeys.EVAL"]])
def test_utilisation_by_phase(analysis: PandasFrameAnalysis, phase: Any) -> None:
    result = analysis.get_utilization_stats(by=StatsBy.TRAINING_PHASE, phase=phase)
    assert result is not None
    assert "Training_phase" in result


@pytest.mark.parametrize("device", [None, [Resource.CPU], Resource.GPU])
@pytest.mark.parametrize("ranges", [None, [(0, 50), (50, 100)]])
def test_usage_of_devices(analysis: PandasFrameAnalysis, device: Any, ranges: Any) -> None:
    result = analysis.get_device_usage_stats(device=device, utilization_ranges=ranges)
    assert {"type", "nodeID"} <= set(result)
    expected = ranges or [(0, 10), (10, 90), (90, 100)]
    assert {column for column in result.columns if isinstance(column, tuple)} <= set(expected)


@pytest.mark.parametrize("phase", [None, STEP, [STEP, "Step:ModeKeys.EVAL"]])
def test_intervals_of_phases(analysis: PandasFrameAnalysis, phase: Any) -> None:
    result = analysis.get_training_phase_intervals(phase=phase)
    assert result is not None
    assert {"start_time_us", "end_time_us", "phase"} <= set(result)
    assert f"Before {STEP}" in set(result["phase"])


# -- data loader ----------------------------------------------------------------------------------

LOADER: dict[str, Callable[[PT_dataloader_analysis], object]] = {
    "initialisation": lambda loader: loader.analyze_dataloaderIter_initialization(),
    "workers": lambda loader: loader.analyze_dataloaderWorkers(),
    "batches": lambda loader: loader.analyze_dataloader_getnext(),
    "time between batches": lambda loader: loader.analyze_batchtime(),
}


@pytest.mark.parametrize("question", LOADER)
def test_data_loader(frame: PandasFrame, question: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = LOADER[question](PT_dataloader_analysis(frame))
    assert result is not None or capsys.readouterr().out


# -- merged timelines -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "start", "end"),
    [
        (MergeUnit.TIME, BEGIN_US, BEGIN_US + 60 * SECOND),
        (MergeUnit.STEP, 0, 3),
        ("time", BEGIN_US, BEGIN_US + 60 * SECOND),
        ("step", 0, 3),
    ],
)
def test_merged_timeline(job: Path, tmp_path: Path, unit: Any, start: int, end: int) -> None:
    merged = MergedTimeline(
        path=str(job), file_suffix_filter=None, output_directory=str(tmp_path / "out")
    )
    name = merged.merge_timeline(start, end, unit, sys_metrics_filter={"lowgpu": ()})
    merged.close()
    assert name is not None
    assert Path(name).parent == tmp_path / "out"
    records = json.loads(Path(name).read_text())
    assert STEP in {record.get("name") for record in records}


@pytest.mark.parametrize(
    "suffix",
    [
        profiler_constants.PYTHONTIMELINE_SUFFIX,
        profiler_constants.MODELTIMELINE_SUFFIX,
        profiler_constants.HOROVODTIMELINE_SUFFIX,
        profiler_constants.SMDATAPARALLELTIMELINE_SUFFIX,
        profiler_constants.TENSORBOARDTIMELINE_SUFFIX,
    ],
)
def test_merging_some_files_only(job: Path, tmp_path: Path, suffix: str) -> None:
    merged = MergedTimeline(str(job), file_suffix_filter=[suffix], output_directory=str(tmp_path))
    name = merged.merge_timeline(BEGIN_US, BEGIN_US + 60 * SECOND, sys_metrics_filter={})
    records = json.loads(Path(name).read_text()) if name else []
    names = {record.get("name") for record in records if record.get("ph") == "X"}
    assert (STEP in names) is (suffix == profiler_constants.PYTHONTIMELINE_SUFFIX)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTHONTIMELINE_SUFFIX", "pythontimeline.json"),
        ("MODELTIMELINE_SUFFIX", "model_timeline.json"),
        ("TENSORBOARDTIMELINE_SUFFIX", "trace.json.gz"),
        ("HOROVODTIMELINE_SUFFIX", "horovod_timeline.json"),
        ("SMDATAPARALLELTIMELINE_SUFFIX", "smdataparallel_timeline.json"),
    ],
)
def test_suffix(name: str, value: str) -> None:
    assert getattr(profiler_constants, name) == value


def test_file_of_a_merged_timeline(job: Path, tmp_path: Path) -> None:
    merged = MergedTimeline(str(job), output_directory=str(tmp_path))
    assert merged.file_name(end_timestamp_in_us=BEGIN_US).endswith("_merged_timeline.json")
    merged.open(file_path=str(tmp_path / "x.json"))
    merged.close()
    assert (tmp_path / "x.json").exists()
