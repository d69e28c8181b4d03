"""System metrics in a trace: a counter for each sample, a mark for each moment of an idle GPU."""

import numpy as np

from rule_core.profiler.readers.merge import system_events
from rule_core.profiler.system.samples import SeriesKey, SystemSamples

MS = 1000
KEYS = (
    SeriesKey("algo-1", "gpu", "GPUUtilization", "gpu0"),
    SeriesKey("algo-1", "gpu", "GPUUtilization", "gpu1"),
    SeriesKey("algo-1", "cpu", "CPUUtilization", None),
)


class Samples:
    """Samples by (time in ms, value, series), and the ranges that were asked for."""

    def __init__(self, *rows: tuple[int, float, int]) -> None:
        self._rows = sorted(rows)
        self.asked: list[tuple[int, int]] = []

    def __call__(self, start: int, end: int) -> SystemSamples:
        self.asked.append((start, end))
        rows = [row for row in self._rows if start <= row[0] * MS < end]
        return SystemSamples(
            np.array([row[0] * MS for row in rows], np.int64),
            np.array([row[1] for row in rows], np.float64),
            np.array([row[2] for row in rows], np.int32),
            KEYS,
        )


def marks(samples: Samples, *bounds_ms: int) -> list[tuple[float, dict[str, float] | None]]:
    found = system_events(samples, [bound * MS for bound in bounds_ms])
    return [(one.start_time / MS, one.event_args) for one in found if one.phase == "i"]


def test_each_sample_is_a_counter_also_without_a_gpu() -> None:
    samples = Samples((0, 3.5, 2), (60, 4.0, 2), (100, 5.0, 2), (101, 9, 2))
    found = list(system_events(samples, [0, 60 * MS, 101 * MS]))
    assert [(one.start_time, one.event_args) for one in found] == [
        (0, {"value": 3.5}),
        (60 * MS, {"value": 4.0}),
        (100 * MS, {"value": 5.0}),
    ]
    first = found[0]
    assert (first.phase, first.event_name) == ("C", "CPUUtilization_algo-1")
    assert (first.event_phase, first.file_type) == ("sys_metrics", "system_metrics")
    assert len(samples.asked) == 2


def test_what_was_measured_near_an_idle_gpu_is_one_mark() -> None:
    samples = Samples(
        (0, 10, 0), (1, 90, 1), (20, 50, 2), (21, 60, 2),
        (500, 85, 0), (501, 20, 2),
        (1000, 84.9, 1), (1001, 10, 0), (1002, 99, 2),
    )  # fmt: skip
    assert marks(samples, 0, 2000) == [
        (0, {"gpu0_GPUUtilization_algo-1": 10, "gpu1_GPUUtilization_algo-1": 90,
             "CPUUtilization_algo-1": 50}),
        (1000, {"gpu1_GPUUtilization_algo-1": 84.9, "gpu0_GPUUtilization_algo-1": 10,
                "CPUUtilization_algo-1": 99}),
    ]  # fmt: skip


def test_windows_make_no_difference_to_the_marks() -> None:
    samples = Samples((95, 7, 2), (100, 10, 0), (105, 8, 2), (110, 10, 1), (300, 1, 0))
    whole = marks(samples, 0, 400)
    assert [time for time, _ in whole] == [100, 300]
    for bound in [96, 100, 101, 108, 300]:
        assert marks(samples, 0, bound, 400) == whole
