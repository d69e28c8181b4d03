"""SimilarAcrossRuns against a second, slow version of it, over random pairs of trials."""

import math
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, opened, save

from builtin_rules import SimilarAcrossRuns

Run = dict[int, dict[str, tuple[float, ...]]]  # step -> name -> elements

numbers = st.sampled_from([0.0, 1.0, 1.0 + 9e-6, 1.0 + 3e-5, 1e-9, np.nan, np.inf, -np.inf])
values = st.tuples(numbers) | st.tuples(numbers, numbers)
tensors = st.dictionaries(st.sampled_from(["loss", "fc.weight"]), values)
runs = st.dictionaries(st.integers(0, 5), tensors, min_size=1, max_size=4)


def is_the_same(ours: float, theirs: float) -> bool:
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    if math.isinf(ours) or math.isinf(theirs):
        return ours == theirs
    return abs(ours - theirs) <= 1e-8 + 1e-5 * abs(theirs)


@given(runs, runs)
def test_similar_across_runs(ours: Run, theirs: Run) -> None:
    expected = {
        (step, name)
        for step in ours.keys() & theirs.keys()
        for name in ours[step].keys() & theirs[step].keys()
        for pair in [(ours[step][name], theirs[step][name])]
        if len(pair[0]) != len(pair[1]) or not all(map(is_the_same, *pair))
    }
    with tempfile.TemporaryDirectory() as folder:
        for run, steps in (("base", ours), ("other", theirs)):
            arrays = {
                step: {name: np.array(value) for name, value in tensors.items()} | {"x": "text"}
                for step, tensors in steps.items()
            }
            save(Path(folder) / run, arrays)
        other = opened(Path(folder) / "other")
        found = judge(SimilarAcrossRuns, Path(folder) / "base", other_trials=other).findings
    assert {(one.step, one.tensor) for one in found} == expected
