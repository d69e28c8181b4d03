import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rule_core.analysis.thinning import thinned


@given(st.lists(st.none() | st.floats(), min_size=1, max_size=100), st.integers(1, 20))
def test_each_section_keeps_its_extremes_and_a_gap(values: list[float | None], width: int) -> None:
    kept = thinned(values, range(0, len(values), width)).tolist()
    assert kept == sorted(set(kept))
    assert {0, len(values) - 1} <= set(kept)
    array = np.array(values, dtype=float)
    for start in range(0, len(values), width):
        section = array[start : start + width]
        shown = array[[index for index in kept if start <= index < start + width]]
        finite = section[np.isfinite(section)]
        if len(finite):
            assert {finite.min(), finite.max()} <= set(shown.tolist())
        assert np.isfinite(section).all() == np.isfinite(shown).all()
        assert len(shown) <= 5
