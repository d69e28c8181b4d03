"""What the profiler report remembers for its charts: exact extremes, in bounded memory."""

import itertools

import numpy as np
import pytest
from fake_profiler_trial import SECOND, FakeProfilerTrial, event
from profiler_writer import BEGIN_US, MINUTE_US, Series, cpu, gpu, io_wait, memory

from builtin_rules.reports.profiler import usage_history
from builtin_rules.reports.profiler.step_history import StepHistory
from builtin_rules.reports.profiler.usage_history import (
    BUCKETS,
    UsageBand,
    UsageHistory,
    UsageTrack,
)

GPU0 = UsageTrack("algo-1", "GPUUtilization", "gpu0")


def bands(*series: Series, window_us: int = MINUTE_US) -> dict[UsageTrack, UsageBand]:
    """Return what a history keeps of samples added window by window."""
    trial = FakeProfilerTrial(*series)
    history = UsageHistory(BEGIN_US)
    for start in range(BEGIN_US, trial.newest_timestamp + 1, window_us):
        history.add(trial.system_samples(start, start + window_us))
    return dict(history.bands())


def test_short_jobs_are_kept_by_the_second() -> None:
    ((track, band),) = bands(gpu([10.0, 20.0, 30.0, 50.0])).items()
    assert track == GPU0
    assert ((band.time_us - BEGIN_US) / SECOND).tolist() == [0.5, 1.5]
    assert (band.low.tolist(), band.high.tolist()) == ([10.0, 30.0], [20.0, 50.0])
    assert band.middle.tolist() == [10.5, 30.5]
    assert band.samples == 4


@pytest.mark.parametrize("hours", [0.1, 1, 10])
def test_no_peak_gets_lost_however_long_the_job(hours: float) -> None:
    count = round(hours * 720)
    values = np.full(count, 40.0)
    values[count // 3], values[count // 2] = 99.5, 1.25
    ((_, band),) = bands(gpu(values, every_s=5.0), window_us=10 * MINUTE_US).items()
    assert len(band.time_us) <= BUCKETS
    assert (band.high.max(), band.low.min()) == (99.5, 1.25)
    assert np.count_nonzero(band.high == 99.5) == np.count_nonzero(band.low == 1.25) == 1
    at = int(np.argmax(band.high))
    assert abs(band.time_us[at] - BEGIN_US - count // 3 * 5 * SECOND) <= hours * 3600 * SECOND / 100
    assert band.samples == count


def test_the_same_parts_whatever_the_windows() -> None:
    values = np.random.default_rng(0).uniform(0, 100, 3000)
    kept = [
        bands(gpu(values, every_s=0.7), window_us=one) for one in (MINUTE_US, 7 * SECOND, 10**12)
    ]
    for one, other in itertools.pairwise(kept):
        for name in ("time_us", "low", "middle", "high"):
            first, second = (getattr(next(iter(band.values())), name) for band in (one, other))
            assert first.tolist() == second.tolist()


def test_medians_are_those_of_all_samples_to_a_point() -> None:
    values = np.random.default_rng(1).uniform(0, 100, 2000)
    ((_, band),) = bands(gpu(values, every_s=0.01)).items()
    for at, middle in enumerate(band.middle.tolist()):
        exact = float(np.median(values[100 * at : 100 * (at + 1)]))
        assert abs(middle - exact) <= 2.0
    assert bands(gpu([100.0, 100.0]))[GPU0].middle.tolist() == [100.0]
    assert bands(gpu([0.0]))[GPU0].middle.tolist() == [0.0]


def test_tracks_are_of_gpus_and_of_all_cores_in_order() -> None:
    found = bands(
        *(gpu([1.0], f"gpu{at}", node="b") for at in (10, 9)),
        memory([2.0], "gpu9", node="b"),
        *(cpu([value], f"cpu{value:.0f}", node="a") for value in (3.0, 5.0, 90.0)),
        io_wait([4.0], node="a"),
        Series("memory", "Memory", "MemoryUsedPercent", [6.0], node="a"),
        Series("network", "Algorithm", "eth0", [7.0], node="a"),
        cpu([float("nan"), 1e300], node="c"),
    )
    assert [(one.node, one.device) for one in found] == [
        *(("a", "all cores"), ("a", "I/O wait of all cores"), ("a", "memory")),
        *(("b", "gpu9"), ("b", "gpu10"), ("b", "gpu9"), ("c", "all cores")),
    ]
    cores = found[UsageTrack("a", "CPUUtilization", "all cores")]
    assert (cores.low.tolist(), cores.middle.tolist(), cores.high.tolist()) == ([3], [5.5], [90])
    assert found[UsageTrack("c", "CPUUtilization", "all cores")].samples == 0


def test_devices_beyond_the_bound_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_history, "TRACKS", 2)
    trial = FakeProfilerTrial(*(gpu([1.0], f"gpu{at}") for at in range(5)))
    history = UsageHistory(BEGIN_US)
    history.add(trial.system_samples(BEGIN_US, BEGIN_US + 1))
    assert ([one.device for one, _ in history.bands()], history.left_out) == (["gpu0", "gpu1"], 3)


def test_steps_by_node_and_mode() -> None:
    history = StepHistory(BEGIN_US)
    history.add([event("Step:ModeKeys.TRAIN", at, 0.5, node="b") for at in range(100)])
    history.add([event("Step:ModeKeys.TRAIN", 200.0, 30.0, node="b"), event("Forward", 0.0, 900.0)])
    history.add([event("Step:ModeKeys.EVAL", 3600.0, 2.0, node="a")])
    (evals, one), (trains, other) = history.bands()
    assert (evals, trains) == (("a", "Step:ModeKeys.EVAL"), ("b", "Step:ModeKeys.TRAIN"))
    assert (one.count, one.mean.tolist(), other.count) == (1, [2.0], 101)
    assert (other.high.max(), other.low.min()) == (30.0, 0.5)
    assert len(other.time_us) == len(range(0, 100, 16)) + 1
    assert (history.first_us, history.last_us) == (BEGIN_US, BEGIN_US + 3602 * SECOND)


def test_kinds_of_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtin_rules.reports.profiler.step_history.KINDS", 2)
    history = StepHistory(BEGIN_US)
    history.add([event("Step:ModeKeys.TRAIN", 0.0, 1.0, node=f"n{at}") for at in range(4)])
    assert [kind.node for kind, _ in history.bands()] == ["n0", "n1"]
