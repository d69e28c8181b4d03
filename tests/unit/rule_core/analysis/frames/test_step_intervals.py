"""Numbers of steps: what halving finds is what comparing each with each finds."""

import numpy as np
import pandas as pd
import pytest

from rule_core.analysis.frames import step_intervals as module
from rule_core.analysis.frames.step_intervals import step_numbers


@pytest.mark.parametrize("cells", [0, 50, 1 << 20])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 64])
def test_the_first_step_around_each_event(
    count: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CELLS", cells)
    rng = np.random.default_rng(count)
    starts = rng.integers(0, 100, count)
    steps = pd.DataFrame(
        {
            "step": np.arange(count) * 3,
            "start_time_us": starts,
            "end_time_us": starts + rng.integers(0, 40, count),
        }
    )
    begins = rng.integers(-5, 110, 300)
    events = pd.DataFrame(
        {
            "step": rng.choice([-1, -1, 1000], 300),
            "start_time_us": begins,
            "end_time_us": begins + rng.integers(0, 10, 300),
        }
    )
    expected = [
        own
        if own != -1
        else next(
            (
                number
                for number, first, last in steps.itertuples(index=False)
                if first < start and end < last
            ),
            -1,
        )
        for own, start, end in events.itertuples(index=False)
    ]
    assert step_numbers(events, steps).tolist() == expected
