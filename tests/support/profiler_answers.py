"""Answers about profiler data: the same calls for this library and for smdebug 1.0.34."""

import contextlib
import io
from typing import Any

import pandas as pd

from smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
from smdebug.profiler.analysis.utils.pandas_data_analysis import (
    PandasFrameAnalysis,
    Resource,
    StatsBy,
)
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from smdebug.profiler.analysis.utils.pytorch_dataloader_analysis import PT_dataloader_analysis
from smdebug.profiler.system_metrics_reader import LocalSystemMetricsReader
from smdebug.profiler.utils import TimeUnits

Json = Any
START_US, END_US = 1_500_000_000_000_000, 1_700_000_000_000_000
_EVENT = (
    *("start_time", "end_time", "duration", "event_name", "event_phase", "phase", "phase_pid"),
    *("pid", "node_id", "event_args"),
)
NO_KIND = {"HorovodMetrics": ""}  # smdebug forgets this one
_SAMPLE = ("timestamp", "type", "name", "dimension", "value", "node_id")
TRAIN, EVAL = "Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"


def table(frame: pd.DataFrame | None) -> Json:
    """Return a frame as JSON, but for numbers of threads, which smdebug draws by lot."""
    if frame is None:
        return None
    frame = frame.drop(columns="tid", errors="ignore")
    return {
        "columns": {str(name): _kind(str(name), kind) for name, kind in frame.dtypes.items()},
        "labels": [int(label) for label in frame.index],
        "rows": [[plain(cell) for cell in row] for row in frame.itertuples(index=False)],
    }


def _kind(name: str, dtype: Any) -> str:
    # smdebug fills the column of the batches before with -1 for the first: it is of no type then.
    is_text = name == "previous_batch_start" or str(dtype) in {"str", "object"}
    return "text" if is_text else str(dtype).replace("[ns]", "[us]")


def plain(value: Any) -> Json:
    """Return a value as JSON has it."""
    if isinstance(value, pd.Series):  # smdebug's, of several nodes
        return plain(value.iloc[0])
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or value is pd.NaT or value != value:
        return None
    return value.item() if hasattr(value, "item") else str(value) if _odd(value) else value


def _odd(value: Any) -> bool:
    return not isinstance(value, (int, float, str))


def of_readers(root: str) -> dict[str, Json]:
    """Return the readers' answers about a job."""
    system, framework = LocalSystemMetricsReader(root), LocalAlgorithmMetricsReader(root)
    first, last = (
        framework.get_timestamp_of_first_available_file(),
        framework.get_timestamp_of_latest_available_file(),
    )
    early = system.get_timestamp_of_first_available_file()

    def events(*arguments: Any, **more: Any) -> Json:
        matches = framework.get_events(*arguments, **more)
        return [
            [NO_KIND.get(event.file_type, event.file_type)]
            + [plain(getattr(event, name)) for name in _EVENT]
            for event in matches
        ]

    def samples(*arguments: Any, **more: Any) -> Json:
        matches = system.get_events(*arguments, **more)
        return [[plain(getattr(sample, name)) for name in _SAMPLE] for sample in matches]

    return {
        "files": [first, last, early, system.get_timestamp_of_latest_available_file()],
        "events": events(START_US, END_US),
        "events of a second": events(last - 1_000_000, last),
        "events in seconds": events(first // 1_000_000, last // 1_000_000, TimeUnits.SECONDS),
        "events of Python": events(START_US, END_US, file_suffix_filter=["pythontimeline.json"]),
        "events of steps": [
            [event.start_time, event.event_name] for event in framework.get_events_by_step(1, 3)
        ],
        "no such steps": len(framework.get_events_by_step(70, 80)),
        "samples": samples(START_US, END_US),
        "samples of a minute": samples(early, early + 60_000_000),
        "samples of a type": samples(START_US, END_US, event_type="gpu"),
        "samples in milliseconds": samples(
            early // 1000 + 500, early // 1000 + 9000, TimeUnits.MILLISECONDS
        ),
    }


def of_frames(root: str, start_us: int, end_us: int) -> dict[str, Json]:
    """Return the frames of a range of time of a job."""
    frames = PandasFrame(root)
    names = ["aten::add", TRAIN]
    cached = [
        frames.get_profiler_data_by_time(start, start + 5_000_000, cache_metrics=True)
        for start in (start_us, start_us + 20_000_000)
    ]
    return {
        "start": frames.start_time,
        "system": table(frames.get_all_system_metrics()),
        "chosen system": table(frames.get_all_system_metrics(["gpu0", "cpu1"])),
        "by time": [table(frame) for frame in frames.get_profiler_data_by_time(start_us, end_us)],
        "chosen": [
            table(frame)
            for frame in frames.get_profiler_data_by_time(start_us, end_us, False, names, ["cpu0"])
        ],
        "not asked for": [
            table(frame)
            for frame in frames.get_profiler_data_by_time(
                start_us, end_us, get_framework_metrics=False, get_system_metrics=False
            )
        ],
        "cached": [table(frame)["rows"] for frame in cached[-1]],
    }


def of_whole_frames(root: str) -> dict[str, Json]:
    """Return the frames of all of a job that has system metrics."""
    frames = PandasFrame(root)
    times = frames.get_all_system_metrics()["timestamp"].unique().tolist()
    by_times = frames.get_framework_metrics_by_timesteps
    by_intervals = frames.get_framework_metrics_by_begin_and_end_timesteps
    return {
        "framework": table(frames.get_all_framework_metrics()),
        "chosen framework": table(frames.get_all_framework_metrics(["Forward", EVAL])),
        "loaders": table(frames.get_all_dataloader_metrics()),
        "chosen loaders": table(frames.get_all_dataloader_metrics([".*Iter::GetNext", "ward$"])),
        "steps": [table(frame) for frame in frames.get_profiler_data_by_step(1, 2)],
        "no steps": [table(frame)["rows"] for frame in frames.get_profiler_data_by_step(70, 80)],
        # The last time lies after all events: smdebug leaves the last one out.
        "at times": plain(by_times(times[::7][:-1] + times[-1:])),
        "chosen at times": plain(by_times([*times[::5], times[-1]], ["Forward", "aten::add"])),
        "in intervals": plain(by_intervals(times[3:30:9], times[5:32:9])),
        "chosen in intervals": plain(by_intervals(times[:30:9], times[5:35:9], ["Forward"])),
    }


def of_analysis(root: str, *, nodes: int) -> dict[str, Json]:
    """Return the analysis of a job, without what smdebug cannot do for several nodes."""
    frames = PandasFrame(root)
    system, framework = frames.get_all_system_metrics(), frames.get_all_framework_metrics()
    analysis = PandasFrameAnalysis(system, framework)
    usage = [
        analysis.get_device_usage_stats(),
        analysis.get_device_usage_stats(Resource.MEMORY, [(0, 40), (40, 60)]),
        analysis.get_device_usage_stats([Resource.GPU, Resource.CPU], [(20, 30), (0, 100)]),
        analysis.get_device_usage_stats("gpu"),
    ]
    stats = analysis.get_job_statistics()
    names = ["start_time", "end_time", "job_duration", "training_loop_start", "training_loop_end"]
    # Its initialization counts from before the first sample, so that the parts add up to too much.
    names += ["training_loop_duration", "finalization"]
    answers = {
        "framework": table(framework),
        "job": {name: plain(stats[name]) for name in [*names, "training_loop_%", "finalization_%"]},
        "steps": [table(analysis.get_step_statistics(by)) for by in StatsBy],
        "no steps": analysis.get_step_statistics("process"),
        "use": table(analysis.get_utilization_stats()),
        "chosen use": table(analysis.get_utilization_stats([Resource.MEMORY, Resource.GPU])),
        "no use": analysis.get_utilization_stats("gpu"),
        "ranges": [
            [[plain(name) for name in frame.columns], table(frame)["rows"]] for frame in usage
        ],
        "no phases": [analysis.get_training_phase_intervals(phase) for phase in (3, "PREDICT")],
    }
    if nodes == 1:
        phases: list[Any] = [None, TRAIN, [EVAL], [EVAL, TRAIN, "PREDICT"]]
        answers["phases"] = [
            table(analysis.get_training_phase_intervals(phase)) for phase in phases
        ]
        answers["use by phase"] = [
            table(analysis.get_utilization_stats(by=StatsBy.TRAINING_PHASE, phase=phase))
            for phase in phases
        ]
    return answers


def of_loaders(root: str) -> dict[str, Json]:
    """Return what the analysis of data loaders returns, without what it prints."""
    analysis = PT_dataloader_analysis(PandasFrame(root))
    calls: list[Any] = [
        analysis.analyze_dataloaderIter_initialization,
        analysis.analyze_dataloaderWorkers,
        analysis.analyze_dataloader_getnext,
        analysis.analyze_batchtime,
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        return {call.__name__: table(call()) for call in calls}


def answers(questions: dict[str, list[Any]]) -> dict[str, Json]:
    """Return the answers about some jobs: each is a folder, or a folder and a range of time."""
    collected: dict[str, Json] = {}
    for root in questions["readers"]:
        collected[f"readers {root}"] = of_readers(root)
    for root, start_us, end_us in questions["frames"]:
        collected[f"frames {root}"] = of_frames(root, start_us, end_us)
    for root, nodes in questions["whole"]:
        collected[f"whole {root}"] = of_whole_frames(root)
        collected[f"analysis {root}"] = of_analysis(root, nodes=nodes)
        collected[f"loaders {root}"] = of_loaders(root)
    return collected
