"""StalledTrainingRule against a slow version that looks at all times at every step."""

import tempfile
from pathlib import Path

import rawtrial
from hypothesis import given
from hypothesis import strategies as st
from judging import judge
from timed import files

from builtin_rules import StalledTrainingRule

THRESHOLD = 10
Found = set[tuple[int, str]]
steps_of_one = st.dictionaries(
    st.integers(0, 8), st.one_of(st.none(), st.integers(-5, 60).map(float)), max_size=6
)


def by_hand(workers: list[dict[int, float | None]]) -> Found:
    """Return step and worker of each finding."""
    found: Found = set()
    for rank, times in enumerate(workers):
        told = {step: time for step, time in times.items() if time is not None}
        reported = False
        for step in sorted({step for one in workers for step in one}):
            here = [one[step] for one in workers if one.get(step) is not None]
            earlier = [told[at] for at in sorted(told) if at < step]
            if not here or not earlier:
                continue
            if step in told:
                reported = False
                gap = told[step] - earlier[-1]
            else:
                gap = max(time for time in here if time is not None) - earlier[-1]
            if gap > THRESHOLD and not reported:
                found.add((step, f"worker_{rank}"))
                reported = step not in told
    return found


@given(st.lists(steps_of_one, min_size=1, max_size=3))
def test_stalled_training_rule(workers: list[dict[int, float | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rawtrial.write(Path(folder), files(workers))
        findings = judge(StalledTrainingRule, Path(folder), threshold=THRESHOLD).findings
    assert by_hand(workers) == {(one.step, str(one.worker)) for one in findings if one.counts}
