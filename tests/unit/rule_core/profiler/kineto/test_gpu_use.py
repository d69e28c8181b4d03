"""The use of a GPU by windows: kernels of several streams count once."""

import numpy as np
import pytest

from rule_core.profiler.kineto import gpu_use
from rule_core.profiler.kineto.gpu_use import GPUUse

EDGES = np.arange(0.0, 50.0, 10.0)


def busy_by_microsecond(kernels: list[tuple[int, int]]) -> list[float]:
    line = np.zeros(40)
    for start, end in kernels:
        line[max(start, 0) : max(end, 0)] = 1
    return line.reshape(4, 10).sum(axis=1).tolist()


@pytest.mark.parametrize("merge_at", [4, 1 << 20])
def test_the_busy_time_is_that_of_a_line_of_microseconds(
    monkeypatch: pytest.MonkeyPatch, merge_at: int
) -> None:
    monkeypatch.setattr(gpu_use, "_UNMERGED", merge_at)
    random = np.random.default_rng(5)
    for _ in range(50):
        starts = random.integers(-5, 35, 12)
        kernels = [(int(start), int(start + random.integers(0, 9))) for start in starts]
        use = GPUUse()
        for start, end in kernels:
            use.add_kernel(start, end)
        assert use.busy(EDGES).tolist() == busy_by_microsecond(kernels)


def test_the_last_sample_of_a_window_is_its_memory() -> None:
    use = GPUUse()
    for time, used in [(5.0, 100), (9.0, 300), (7.0, 200)]:
        use.add_memory(time, 0, used)
    assert use.memory == {0: (9.0, 300)}
    assert not use.has_kernels
    assert use.busy(EDGES).tolist() == [0.0] * 4
