"""Each documented parameter of SageMaker's rules about profiles at its border; `CASES` has all."""

from collections.abc import Sequence
from typing import Any, Final

from fake_profiler_trial import FakeProfilerTrial, event
from parameter_cases import TENSOR_CASES, Case
from profiler_writer import Series, cpu, gpu, io_wait, memory

from rule_core.profiler.traces.event import TraceEvent

PERCENTILES: Final = "Number of latest samples of which percentiles are taken."
INTERVAL: Final = "Length, in microseconds, of the time that each evaluation adds."
SAMPLES: Final = "Number of samples to wait for before the first judgement."
MINUTE, TWO_MINUTES = "60000000", "120000000"
STEP: Final = "Step:ModeKeys.TRAIN"
BUSY: Final = [95.0] * 120  # a minute


def job(*series: Series, events: Sequence[TraceEvent] = (), end_s: float = 0.0) -> "Any":
    """Return a function that returns a job in memory."""
    return lambda _: FakeProfilerTrial(*series, events=events, end_s=end_s)


def steps(*durations: float, name: str = STEP, begin_s: float = 0.0) -> list[TraceEvent]:
    """Return steps behind one another."""
    events, now = [], begin_s
    for at, duration in enumerate(durations):
        events.append(event(name, now, duration, step_num=str(at)))
        now += duration
    return events


def loaders(count: int, seconds: int = 20, begin_s: float = 0.0) -> list[TraceEvent]:
    """Return events of so many loader processes in each second, and of short waits for them."""
    return [
        event("fetch", begin_s + at + 0.1, 0.5, phase="DataLoaderWorker", pid=100 + one)
        for at in range(seconds)
        for one in range(count)
    ] + [
        event("GetNext", begin_s + at + 0.7, 0.01, phase="DataLoaderIter", pid=1)
        for at in range(seconds)
    ]


def interval(rule: str, trial: str, make: Any, **others: str) -> Case:
    """Return a case in which windows of two minutes hide what those of one minute show."""
    return Case(rule, "scan_interval_us", INTERVAL, trial, make, [MINUTE], [TWO_MINUTES], others)


def _used(cpus: float, gpus: float, memories: float) -> Any:
    return job(cpu([cpus] * 120), gpu([gpus] * 120), memory([memories] * 120))


_SOON: Final = {"patience": "10", "window": "100"}
_BATCH_SIZE: Final = (
    *(
        Case(
            "BatchSize",
            f"{name}_threshold_p95",
            f"{what} has room if the 95th percentile of its use is below this.",
            f"a minute; 80 percent of {what.lower()} are in use, and 30 of the rest",
            _used(*[80 if at == number else 30 for at in range(3)]),
            ["81"],
            ["80"],
            _SOON,
        )
        for number, (name, what) in enumerate(
            [("cpu", "The processor"), ("gpu", "The GPU"), ("gpu_memory", "GPU memory")]
        )
    ),
    Case(
        "BatchSize",
        "patience",
        SAMPLES,
        "a minute with 120 samples, 30 percent of everything are in use",
        _used(30, 30, 30),
        ["119"],
        ["120"],
        {"window": "9"},
    ),
    Case(
        "BatchSize",
        "window",
        PERCENTILES,
        "a busy minute, then 50 idle samples",
        job(*(kind([95.0] * 120 + [5.0] * 50) for kind in (cpu, gpu, memory))),
        ["50"],
        ["60"],
        {"patience": "10"},
    ),
    interval(
        "BatchSize",
        "an idle minute, then a busy one",
        job(*(kind([5.0] * 120 + [95.0] * 120) for kind in (cpu, gpu, memory))),
        **_SOON,
    ),
)


def _bottleneck(rule: str, core: Any, name: str, what: str) -> tuple[Case, ...]:
    def held(low: int, of: int = 120, then: int = 0) -> Any:
        """Return a job whose GPU waits for a core in the first samples, at 5 against 95 percent."""
        waits = [5.0] * low + [99.0] * (of - low + then)
        return job(gpu(waits), core([95.0] * (of + then)))

    soon = {"patience": "10"}
    return (
        Case(
            rule,
            "threshold",
            "Percentage of moments with a bottleneck that is tolerated.",
            "a minute with a bottleneck in three of four moments",
            held(90),
            ["74"],
            ["75"],
            soon,
        ),
        Case(
            rule,
            "gpu_threshold",
            "A GPU waits if less of it is in use.",
            "a minute with 5 percent of the GPU in use, and all cores blocked",
            held(120),
            ["5.1"],
            ["5"],
            soon,
        ),
        Case(
            rule,
            name,
            f"A core is blocked if its {what} is above this.",
            f"a minute with an idle GPU and a core with 95 percent of {what}",
            held(120),
            ["94"],
            ["95"],
            soon,
        ),
        Case(
            rule,
            "patience",
            "Number of moments to see before the first judgement.",
            "a minute with 120 moments with a bottleneck",
            held(120),
            ["119"],
            ["120"],
        ),
        interval(
            rule,
            "a minute with a bottleneck in 70 of 120 moments, then one without any",
            held(70, then=120),
            patience="10",
        ),
    )


_MEMORY: Final = (
    Case(
        "GPUMemoryIncrease",
        "increase",
        "Rise of the moving average, in points, that is tolerated.",
        "a minute in which GPU memory jumps from 20 to 60 percent",
        job(memory([20.0] * 60 + [60.0] * 60)),
        ["3.9"],
        ["4"],
        {"patience": "10"},
    ),
    Case(
        "GPUMemoryIncrease",
        "patience",
        SAMPLES,
        "a minute; GPU memory jumps at the last of 120 samples",
        job(memory([20.0] * 119 + [90.0])),
        ["119"],
        ["120"],
    ),
    Case(
        "GPUMemoryIncrease",
        "window",
        "Number of samples of the moving average.",
        "a minute in which GPU memory jumps from 20 to 60 percent",
        job(memory([20.0] * 60 + [60.0] * 60)),
        ["7"],
        ["8"],
        {"patience": "10"},
    ),
    Case(
        "GPUMemoryIncrease",
        "scan_interval_us",
        f"{INTERVAL} Each sample is judged, so it does not change the verdict.",
        "two minutes; GPU memory jumps from 20 to 90 percent after one",
        job(memory([20.0] * 120 + [90.0] * 120)),
        [MINUTE, TWO_MINUTES],
        (),
        {"patience": "10"},
    ),
)
_BALANCE: Final = (
    Case(
        "LoadBalancing",
        "threshold",
        "Distance of the histograms of two GPUs that is tolerated.",
        "a minute with 94 percent of one GPU in use and 93 of the other: a distance of 0.83",
        job(gpu([94.0] * 120), gpu([93.0] * 120, "gpu1")),
        ["0.8"],
        ["0.84"],
        {"patience": "10"},
    ),
    Case(
        "LoadBalancing",
        "patience",
        SAMPLES,
        "a minute with 120 samples of a busy and an idle GPU",
        job(gpu([94.0] * 120), gpu([3.0] * 120, "gpu1")),
        ["119"],
        ["120"],
    ),
    interval(
        "LoadBalancing",
        "a minute with a busy and an idle GPU, then one in which both are busy",
        job(gpu([94.0] * 240), gpu([3.0] * 120 + [94.0] * 120, "gpu1")),
        patience="10",
        threshold="0.6",
    ),
)
_LOW_GPU: Final = (
    Case(
        "LowGPUUtilization",
        "threshold_p95",
        "A GPU is underused if the 95th percentile of its use is below this.",
        "a minute with 40 percent of the GPU in use",
        job(gpu([40.0] * 120)),
        ["41"],
        ["40"],
        {"patience": "10"},
    ),
    Case(
        "LowGPUUtilization",
        "threshold_p5",
        "A busy GPU fluctuates if the 5th percentile of its use is below this.",
        "ten busy minutes with a pause of 15 seconds with 8 percent at the end",
        job(gpu([*BUSY * 9, *BUSY[:90], *[8.0] * 30])),
        ["9"],
        ["8"],
        {"patience": "10"},
    ),
    Case(
        "LowGPUUtilization",
        "patience",
        SAMPLES,
        "a minute with 120 samples of an idle GPU",
        job(gpu([5.0] * 120)),
        ["119"],
        ["120"],
    ),
    Case(
        "LowGPUUtilization",
        "window",
        PERCENTILES,
        "ten busy minutes with a pause of 10 seconds at the end",
        job(gpu([*BUSY * 9, *BUSY[:100], *[0.0] * 20])),
        ["300"],
        ["500"],
        {"patience": "10"},
    ),
    interval(
        "LowGPUUtilization",
        "an idle minute, then a busy one",
        job(gpu([5.0] * 120 + BUSY)),
        patience="10",
        window="100",
    ),
)
_SLOW: Final = [0.1] * 389 + [0.2] * 11  # 11 outliers that cost 3 percent of the time
_STEPS: Final = (
    Case(
        "StepOutlier",
        "stddev",
        "Factor of the standard deviation from which a step is an outlier.",
        "400 steps of 0.1 s, of which 11 take 0.2 s: 5.95 deviations above the mean",
        job(events=steps(*_SLOW)),
        ["5.9"],
        ["6"],
    ),
    Case(
        "StepOutlier",
        "n_outliers",
        "Number of outliers that are tolerated.",
        "400 steps of 0.1 s, of which 11 take 0.2 s",
        job(events=steps(*_SLOW)),
        ["9"],
        ["11"],
    ),
    Case(
        "StepOutlier",
        "mode",
        "Mode whose steps are examined.",
        "400 training steps, of which 20 take ten times as long, and 400 even ones of evaluation",
        job(
            events=steps(*[0.1] * 380, *[1.0] * 20)
            + steps(*[0.1] * 400, name="Step:ModeKeys.EVAL", begin_s=60)
        ),
        ["TRAIN"],
        ["EVAL"],
    ),
    Case(
        "StepOutlier",
        "scan_interval_us",
        INTERVAL,
        "a minute with 11 outliers among 400 steps, then one with 600 steps that take as long",
        job(events=steps(*_SLOW, begin_s=15) + steps(*[0.2] * 600, begin_s=61)),
        [MINUTE],
        ["300000000"],
        {"stddev": "4"},
    ),
)
_LOADERS: Final = (
    Case(
        "Dataloader",
        "min_threshold",
        "Percentage of the cores that loader processes should use at least.",
        "2 loader processes on 4 cores that never let the model wait",
        job(*(cpu([1.0] * 120, f"cpu{at}") for at in range(4)), events=loaders(2)),
        ["51"],
        ["50"],
    ),
    Case(
        "Dataloader",
        "max_threshold",
        "Percentage of the cores that loader processes should use at most.",
        "4 loader processes on 4 cores",
        job(*(cpu([1.0] * 120, f"cpu{at}") for at in range(4)), events=loaders(4)),
        ["99"],
        ["100"],
    ),
    Case(
        "Dataloader",
        "patience",
        "Number of seconds with data loading to wait for.",
        "20 seconds with 9 loader processes on 4 cores",
        job(*(cpu([1.0] * 120, f"cpu{at}") for at in range(4)), events=loaders(9)),
        ["19"],
        ["20"],
    ),
    interval(
        "Dataloader",
        "20 seconds with 9 loader processes on 4 cores, a minute later 40 with 4",
        job(
            *(cpu([1.0] * 240, f"cpu{at}") for at in range(4)),
            events=loaders(9) + loaders(4, 40, 61.0),
        ),
    ),
)
_EARLY: Final = event("load", 1.0, 1.0, phase="DataLoaderIter")
_START: Final = (
    Case(
        "MaxInitializationTime",
        "threshold",
        "Minutes to wait for the first step.",
        "a first step after 90 seconds",
        job(cpu([1.0] * 240), events=[_EARLY, event(STEP, 90.0, 1.0)]),
        ["1.4"],
        ["1.5"],
    ),
    Case(
        "MaxInitializationTime",
        "scan_interval_us",
        f"{INTERVAL} The time to the first step is judged, so it does not change the verdict.",
        "a first step after 90 seconds",
        job(cpu([1.0] * 240), events=[_EARLY, event(STEP, 90.0, 1.0)]),
        [MINUTE, TWO_MINUTES],
        (),
        {"threshold": "1.4"},
    ),
)
_SUMMARIES: Final = tuple(
    Case(
        rule,
        "scan_interval_us",
        f"{INTERVAL} The rule only writes a report.",
        "a minute with an idle GPU and a step",
        job(gpu([1.0] * 120), events=steps(0.1)),
        (),
        [MINUTE, TWO_MINUTES],
    )
    for rule in ("OverallSystemUsage", "OverallFrameworkMetrics")
)


def _report(
    name: str, sentence: str, met: Sequence[str], clear: Sequence[str], **more: str
) -> Case:
    trial = "a minute with 120 samples of an idle GPU, with met_if_triggered"
    others = {"met_if_triggered": "true", **more}
    return Case("ProfilerReport", name, sentence, trial, job(gpu([5.0] * 120)), met, clear, others)


_REPORT: Final = (
    _report(
        "LowGPUUtilization_patience",
        "A parameter of one of its rules, as RULE_PARAMETER.",
        ["119"],
        ["120"],
    ),
    _report(
        "custom_rule_parameters",
        "Parameters of its rules, as the text of a dict.",
        ["{'LowGPUUtilization_patience': 119}"],
        ["{'LowGPUUtilization_patience': 120}"],
    ),
    _report(
        "opt_out_telemetry",
        "Whether to send nothing: nothing is ever sent.",
        ["True", "False"],
        (),
        LowGPUUtilization_patience="119",
    ),
)
CASES: Final = (
    *TENSOR_CASES,
    *_BATCH_SIZE,
    *_bottleneck("CPUBottleneck", cpu, "cpu_threshold", "use"),
    *_bottleneck("IOBottleneck", io_wait, "io_threshold", "wait for data"),
    *_MEMORY,
    *_BALANCE,
    *_LOW_GPU,
    *_STEPS,
    *_LOADERS,
    *_START,
    *_SUMMARIES,
    *_REPORT,
)
