"""FeatureImportanceOverweight against a slow version over whole series of rounds."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save, with_defaults

from builtin_rules import FeatureImportanceOverweight

KINDS = ("weight", "gain")
Series = dict[int, dict[str, list[float]]]  # step -> kind -> importances
rounds = st.dictionaries(
    st.integers(0, 40),
    st.dictionaries(
        st.sampled_from(KINDS),
        st.lists(
            st.sampled_from([0.0, 1.0, 2.0, 8.0, 32.0, np.nan, -1.0]), min_size=1, max_size=14
        ),
        min_size=1,
    ),
    min_size=1,
    max_size=7,
)


def by_hand(series: Series, kind: str, count: int, threshold: float, *, literal: bool) -> set[int]:
    """Return the steps at which one kind meets the condition."""
    usable = {
        step: kinds[kind]
        for step, kinds in sorted(series.items())
        if kind in kinds and not any(one != one or one < 0 for one in kinds[kind])
    }
    few = {step: sum(one > 0 for one in values) <= count for step, values in usable.items()}
    found = set()
    for step, values in usable.items():
        alike = [
            at
            for at in few
            if at <= step and all(few[other] == few[step] for other in few if at <= other <= step)
        ]
        from_the_start = min(alike) == min(few)
        old = step - min(alike) >= 10 or (from_the_start and not few[step])
        total = sum(values)
        features = max(len(usable[at]) for at in usable if at <= step)
        top = count if literal else min(count, max(1, round(features / 5)))
        share = sum(sorted(values)[-top:]) / total if total else 0
        if share > threshold and (old or literal):
            found.add(step)
    return found


@given(st.lists(rounds, min_size=1, max_size=2), st.integers(1, 3), st.booleans())
def test_feature_importance_overweight(workers: list[Series], count: int, literal: bool) -> None:
    expected = {
        (step, kind, f"worker_{rank}")
        for rank, series in enumerate(workers)
        for kind in KINDS
        for step in by_hand(series, kind, count, 0.75, literal=literal)
    }
    with tempfile.TemporaryDirectory() as folder:
        for rank, series in enumerate(workers):
            steps = {
                step: {
                    f"feature_importance/{kind}/f{at}": np.array(value)
                    for kind, values in kinds.items()
                    for at, value in enumerate(values)
                }
                for step, kinds in series.items()
            }
            save(Path(folder), steps, worker=f"worker_{rank}", num_workers=len(workers))
        rule = with_defaults(FeatureImportanceOverweight, threshold=0.75, nfeatures=count)
        params = {"tensor_regex": "feature_", "literal": literal}
        found = judge(rule, Path(folder), **params).findings
    assert expected == {(one.step, str(one.tensor).split("/")[1], str(one.worker)) for one in found}
