"""SampledTimes: every time of some steps, and some times of many steps."""

import numpy as np
import pytest

from rule_core.model import sampled_times
from rule_core.model.sampled_times import SampledTimes


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17, 100])
@pytest.mark.parametrize("at_once", [1, 3, 40])
def test_times_of_many_steps_are_thinned_out(
    monkeypatch: pytest.MonkeyPatch, count: int, at_once: int
) -> None:
    monkeypatch.setattr(sampled_times, "MAX_SAMPLES", 8)
    times = np.arange(count, dtype=np.float64)
    by_one, by_more = SampledTimes(), SampledTimes()
    for time in times:
        by_one.append(float(time))
    for start in range(0, count, at_once):
        by_more.extend(times[start : start + at_once])
    stride = 1
    while -(-count // stride) > 8:
        stride *= 2
    expected = [*(np.arange(count - 1) // stride * stride), count - 1]
    for sampled in (by_one, by_more):
        assert len(sampled) == count
        assert [sampled[place] for place in range(count)] == expected
