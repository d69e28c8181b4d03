from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.format.event_encoder import RecordEncoder
from rule_core.saving.trial_writer import TrialWriter
from rule_core.trials.create_trial import create_trial
from smdebug import modes

STEPS = st.sampled_from([0, 1, 127, 128, 16_383, 16_384, 2_000_000_000, 10**12 - 1])
MODE_STEPS = st.sampled_from([0, 9, 10, 99, 100, 12_345])
TYPES = st.sampled_from(["f2", "f4", "f8", "i1", "i8", "?", "c16"])
NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=12)


@given(STEPS, MODE_STEPS, st.sampled_from(list(modes)), TYPES, st.sampled_from([(), (1,)]), NAMES)
def test_records_made_together_are_those_made_one_by_one(
    step: int,
    mode_step: int,
    mode: modes,
    dtype: str,
    shape: tuple[int, ...],
    names: list[str],
) -> None:
    arrays = [np.full(shape, at % 2, dtype) for at in range(len(names))]
    encoder = RecordEncoder(step, mode, mode_step)
    together, lengths = encoder.encode_alike(tuple(names), arrays, 1.6e9)
    alone = [
        b"".join(encoder.encode(name, array, 1.6e9)[0])
        for name, array in zip(names, arrays, strict=True)
    ]
    assert together == b"".join(alone)
    assert lengths == tuple(map(len, alone))


ODD = [
    pytest.param([np.float32(at) for at in range(20)], id="alike"),
    pytest.param([np.float32(at) for at in range(7)], id="few"),
    pytest.param([np.float64(at) if at % 2 else np.float32(at) for at in range(20)], id="types"),
    pytest.param([np.full((1,) * (at % 3), at, "f4") for at in range(20)], id="shapes"),
    pytest.param([np.array(at, ">f4") for at in range(20)], id="byte-order"),
    pytest.param([np.array([str(at % 10)]) for at in range(20)], id="strings"),
    pytest.param([np.zeros((0,), "f4") for _ in range(20)], id="empty"),
    pytest.param([np.full(100, at, "f4") for at in range(20)], id="large"),
]


@pytest.mark.parametrize("values", ODD)
def test_many_values_are_written_as_if_one_by_one(tmp_path: Path, values: list[np.generic]) -> None:
    arrays = [np.asarray(value) for value in values]
    names = [f"w{at}" for at in range(len(arrays))]
    roots = [tmp_path / "together", tmp_path / "alone"]
    for root in roots:
        with TrialWriter(root) as writer:
            for step in (0, 1, 10, 200):
                draft = writer.begin(step, mode=modes.TRAIN, mode_step=step // 2)
                draft.add("before", np.float64(step), 1.0)
                if root.name == "together":
                    draft.add_many(names, arrays, 2.0)
                else:
                    for name, array in zip(names, arrays, strict=True):
                        draft.add(name, array, 2.0)
                draft.add("behind", np.float64(step), 3.0)
                draft.commit()
    files = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in roots
    ]
    assert files[0] == files[1]
    trial = create_trial(roots[0], timeout=0)
    assert trial.tensor_names(step=200) == sorted(["before", "behind", *names])
    for name, array in zip(names, arrays, strict=True):
        result = trial.tensor(name).value(200)
        assert (result.shape, result.tolist()) == (array.shape, array.tolist())


def test_a_name_that_comes_twice_counts_as_it_came_last(tmp_path: Path) -> None:
    names = ["w"] * 10
    with TrialWriter(tmp_path) as writer:
        draft = writer.begin(0)
        draft.add_many(names, [np.float32(at) for at in range(10)], 1.0)  # type: ignore[misc]
        draft.commit()
    assert create_trial(tmp_path, timeout=0).tensor("w").value(0).tolist() == 9.0
