"""OverallSystemUsage and OverallFrameworkMetrics: they never fire, and sum up what there is."""

import numpy as np
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import Series, cpu, gpu, io_wait, memory

from builtin_rules.profiler import overall_framework_metrics, overall_system_usage
from builtin_rules.profiler.overall_framework_metrics import OverallFrameworkMetrics
from builtin_rules.profiler.overall_system_usage import OverallSystemUsage

EMPTY = {
    name: {}
    for name in (
        *("ratio", "phase", "phase_time", "forward_backward"),
        *("CPU", "GPU", "general", "horovod", "CPU_total", "GPU_total"),
    )
}


def same(value: float) -> dict[str, float]:
    return {"max": value, "p99": value, "p95": value, "p50": value, "min": value}


def test_system_usage_of_a_job_on_processors_alone() -> None:
    trial = FakeProfilerTrial(
        cpu([20.0] * 216, "cpu0"),
        cpu([30.0] * 216, "cpu1"),
        io_wait([1.005] * 216),
        Series("memory", "Memory", "MemoryUsedPercent", [40.0] * 216),
        Series("memory", "Memory", "MemoryFree", [7e9] * 216),
        Series("network", "Algorithm", "bytes-received", [100.0] * 216),
        Series("network", "Algorithm", "bytes-sent", [11.0] * 216),
    )
    judged = judge_windows(OverallSystemUsage, trial)
    assert (judged.met, judged.skipped, judged.findings) == ([], {}, [])
    assert judged.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Datapoints": 7 * 216,
        "RuleParameters": "",
        "Details": {
            "Network": {"algo-1": same(111.0)},
            "GPU": {},
            "CPU": {"algo-1": same(25.0)},
            "CPU memory": {"algo-1": same(40.0)},
            "GPU memory": {},
            "I/O": {"algo-1": same(1.0)},
        },
    }


def test_system_usage_by_node() -> None:
    ramp = np.arange(101.0)
    trial = FakeProfilerTrial(
        gpu(ramp), gpu([np.nan] * 101, "gpu1"), gpu([7.0], node="algo-2"), memory([3.0, 4.0])
    )
    details = judge_windows(OverallSystemUsage, trial).report["Details"]
    assert details["GPU"] == {
        "algo-1": {"max": 100.0, "p99": 99.0, "p95": 95.0, "p50": 50.0, "min": 0.0},
        "algo-2": same(7.0),
    }
    assert details["GPU memory"]["algo-1"]["p50"] == 3.5


def test_windows_without_samples_are_skipped() -> None:
    trial = FakeProfilerTrial(cpu([1.0]), cpu([1.0], begin_s=130.0))
    judged = judge_windows(OverallSystemUsage, trial)
    assert judged.skipped == {1: overall_system_usage.NO_SAMPLES}


def test_framework_metrics() -> None:
    trial = FakeProfilerTrial(
        events=[
            event("Step:ModeKeys.TRAIN", 10.0, 20.0),
            event("Step:ModeKeys.EVAL", 70.0, 10.0),
            event("aten::add", 12.0, 3.0, phase="cpu_functions"),
            event("aten::mm", 15.0, 1.0, phase="gpu_functions-dev:0"),
            event("aten::tiny", 15.0, 0.01, phase="cpu_functions"),
            event("Forward-SubModuleInternal", 12.0, 1.0),
            event("Backward-SubModuleInternal", 13.0, 3.0),
            event("next", 11.0, 2.0, phase="DataLoaderIter"),
            event("allreduce", 20.0, 2.0, phase="gradients", file_type="HorovodMetrics"),
        ]
    )
    judged = judge_windows(OverallFrameworkMetrics, trial)
    assert (judged.met, judged.skipped) == ([], {})
    assert judged.report["Datapoints"] == 9
    assert judged.report["Details"] == {
        "ratio": {"CPU": 75.062, "GPU": 24.938},
        "phase": {"others": 62.5, "Step:ModeKeys.TRAIN": 25.0, "Step:ModeKeys.EVAL": 12.5},
        "phase_time": {
            "Forward-SubModuleInternal": 1_000_000,
            "DataLoaderIter": 2_000_000,
            "cpu_functions": 3_010_000,
            "gpu_functions-dev:0": 1_000_000,
            "Backward-SubModuleInternal": 3_000_000,
            "gradients": 2_000_000,
            "Step:ModeKeys.TRAIN": 20_000_000,
            "Step:ModeKeys.EVAL": 10_000_000,
        },
        "forward_backward": {
            "Backward-SubModuleInternal": 75.0,
            "Forward-SubModuleInternal": 25.0,
        },
        "CPU": {"aten::add": 99.668},
        "GPU": {"aten::mm": 100.0},
        "general": {"next": 100.0},
        "horovod": {"allreduce": 100.0},
        "CPU_total": {"aten::add": 3_000_000},
        "GPU_total": {"aten::mm": 1_000_000},
    }


def test_framework_metrics_of_a_job_without_framework_profiling() -> None:
    judged = judge_windows(OverallFrameworkMetrics, FakeProfilerTrial(cpu([1.0] * 216)))
    no_events = overall_framework_metrics.NO_EVENTS
    assert judged.skipped == {0: no_events, 1: no_events}
    assert judged.report["Details"] == EMPTY
